"""Scores of a fitted model, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)

from polyfid import MultiFidelityClassifier
from polyfid.evaluation import MODEL_SCORES, score_model


def rows(n, seed, n_classes=2):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, (n, 1))
    score = X[:, 0] + 0.3 * rng.standard_normal(n)
    y = np.digitize(score, [-0.1, 0.1] if n_classes == 3 else [0.0])
    return X, np.array(["bad", "fair", "good"])[y] if n_classes == 3 else y


@pytest.fixture(scope="module")
def model():
    return MultiFidelityClassifier("rbf", optimizer=None).fit(*rows(40, 0))


X, Y = rows(60, 1)


def test_scores_are_those_of_scikit_learn(model):
    made = score_model(model, X, Y, n_bootstrap=50)
    p = model.predict_proba(X)[:, 1]
    expected = {
        "log_loss": log_loss(Y, p),
        "roc_auc": roc_auc_score(Y, p),
        "accuracy": accuracy_score(Y, p > 0.5),
        "brier": brier_score_loss(Y, p),
    }
    assert [*made.scores] == [*MODEL_SCORES]
    for name, value in expected.items():
        e = made.scores[name]
        assert e.value == pytest.approx(value, rel=1e-12)
        assert e.low < value < e.high
    np.testing.assert_array_equal(made.confusion[:, :2], confusion_matrix(Y, p > 0.5))
    (tn, fp, _), (fn, tp, _) = made.confusion.tolist()
    assert [e.value for e in made.recall] == [tn / (tn + fp), tp / (tp + fn)]
    assert [e.value for e in made.precision] == [tn / (tn + fn), tp / (tp + fp)]
    assert made.rule is None
    assert made.costs == {}


def test_costs_are_averages_over_rows(model):
    made = score_model(model, X, Y, costs={"fp": 1, "fn": 9}, cost_abstain=0.3, n_bootstrap=50)
    p = model.predict_proba(X)[:, 1]
    nothing = np.minimum(9 * p, 1 - p) > 0.3
    decided = np.where(p > 0.1, Y == 0, 9 * (Y == 1))
    by_rule, usual = np.where(nothing, 0.3, decided), np.where(p > 0.5, Y == 0, 9 * (Y == 1))
    assert made.costs["decided"].value == pytest.approx(by_rule.mean())
    assert made.costs["most probable"].value == pytest.approx(usual.mean())
    assert made.costs["difference"].value == pytest.approx((by_rule - usual).mean())
    assert made.confusion[:, 2].sum() == nothing.sum() > 0
    assert made.confusion.sum() == len(Y)
    text = str(made)
    assert "(none)" in text
    assert max(map(len, text.splitlines())) <= 60


def test_weights_count_like_repeats(model):
    weight = np.arange(60) % 3
    made = score_model(model, X, Y, sample_weight=weight, n_bootstrap=20)
    again = score_model(model, np.repeat(X, weight, 0), np.repeat(Y, weight), n_bootstrap=20)
    assert made.n_rows == np.count_nonzero(weight)
    for name in {*MODEL_SCORES} - {"calibration_error"}:  # whose bins have as many rows each
        assert made.scores[name].value == pytest.approx(again.scores[name].value, rel=1e-10)


def test_three_classes_and_json():
    model = MultiFidelityClassifier("rbf", optimizer=None).fit(*rows(60, 0, 3))
    made = score_model(model, *rows(50, 1, 3), costs={("bad", "good"): 9}, n_bootstrap=20)
    found = made.to_dict()
    assert found["confusion"]["bad"].keys() == {"bad", "fair", "good", "no decision"}
    assert found["rule"]["costs"]["bad"] == {"bad": 0.0, "fair": 1.0, "good": 9.0}
    assert found["average_cost"]["difference"]["value"] == made.costs["difference"].value
    assert "by most probable class" in str(made)


def test_what_is_refused(model):
    with pytest.raises(ValueError, match="y has 7, and the classes of the model are 0, 1"):
        score_model(model, X, np.full(60, 7))
    with pytest.raises(ValueError, match=r"y must have labels of two classes.*it has 1"):
        score_model(model, X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="sample_weight must be one number from 0 for each row"):
        score_model(model, X, Y, sample_weight=-np.ones(60))
