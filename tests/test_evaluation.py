"""Whether cheaper labels help: out-of-fold predictions, scores, intervals and the verdict."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.evaluation import METHODS, Estimate, evaluate
from polyfid.evaluation.result import bootstrap, score
from polyfid.kernels import RBF

# Hyper-parameters as given: fits are tested elsewhere, here they are to be fast.
MODEL = MultiFidelityClassifier(kernel=9.0 * RBF(0.8), rho=0.9, optimizer=None)


def two_levels(n_cheap=60, n_trusted=24, n_classes=2, seed=0):
    """Labels of rings in the plane, all of them right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_cheap + n_trusted, 2))
    y = np.digitize(np.hypot(*X.T), [1.3, 1.9][: n_classes - 1])
    return stack_levels({"crowd": (X[:n_cheap], y[:n_cheap]), "gold": (X[n_cheap:], y[n_cheap:])})


MANY = two_levels(n_cheap=90, n_trusted=40)


@pytest.fixture(scope="module")
def helped():
    return evaluate(*MANY, model=MODEL)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(n_classes), 80).round(2)  # with ties
    proba /= proba.sum(axis=1, keepdims=True)
    code = rng.permutation(np.arange(80) % n_classes)
    weight = rng.uniform(0.2, 3.0, 80)
    auc, loss, brier, _ = score(proba, code, weight[None])[0]
    each = [roc_auc_score(code == k, p, sample_weight=weight) for k, p in enumerate(proba.T)]
    assert auc == pytest.approx(each[1] if n_classes == 2 else np.mean(each))
    assert loss == pytest.approx(log_loss(code, proba, sample_weight=weight))
    expected = brier_score_loss(code, proba, sample_weight=weight, labels=range(n_classes))
    assert brier == pytest.approx(expected)


def test_calibration_error_is_the_gap_of_over_confidence():
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.2, 0.8, 4000)
    code = (rng.uniform(size=4000) < truth).astype(int)
    honest, wrong = (
        score(np.column_stack([1 - p, p]), code, np.ones((1, 4000)))[0, 3]
        for p in (truth, truth + 0.15)
    )
    assert honest < 0.03
    assert wrong == pytest.approx(0.15, abs=0.03)
    auc, loss, *_ = score(np.eye(2), np.array([1, 0]), np.ones((1, 2)))[0]  # impossible outcomes
    assert auc == 0.0
    assert 30 < loss < np.inf


def test_every_bootstrap_sample_has_every_class():
    code = np.repeat([0, 1, 2], [2, 30, 5])
    same = dict.fromkeys("ab", np.random.default_rng(0).dirichlet(np.ones(3), 37))
    samples = bootstrap(same, code, np.ones(37), 200, np.random.RandomState(0))
    assert np.isfinite(samples["a"]).all()  # without rows of a class there is no ROC AUC
    assert len(np.unique(samples["a"][:, 1])) > 100
    np.testing.assert_array_equal(samples["a"], samples["b"])  # differences are paired
    assert Estimate.of(0.1, np.linspace(0.2, 0.3, 50)).low == 0.1  # intervals hold their value


@pytest.mark.parametrize("encoder", [None, StandardScaler()])
def test_rows_are_predicted_by_models_and_encoders_fitted_without_them(helped, encoder):
    X, y, fidelity = MANY
    result = helped if encoder is None else evaluate(*MANY, model=MODEL, encoder=encoder)
    assert result.rows.tolist() == list(range(90, 130))
    assert (result.labels == y[90:]).all()
    held_out = result.fold == 3
    test = result.rows[held_out]
    train = np.setdiff1d(np.arange(130), test)
    X = X if encoder is None else clone(encoder).fit(X[train]).transform(X)
    ours = MODEL.fit(X[train], y[train], fidelity=fidelity[train]).predict_proba(X[test])
    np.testing.assert_array_equal(result.out_of_fold["polyfid"][held_out], ours)
    alone = train[train >= 90]
    only = MODEL.fit(X[alone], y[alone]).predict_proba(X[test])
    np.testing.assert_array_equal(result.out_of_fold["trusted only"][held_out], only)


def test_shown_scores_belong_to_the_probabilities(helped):
    assert list(helped.scores) == list(METHODS)
    for method, scores in helped.scores.items():
        p = helped.out_of_fold[method]
        assert scores["log_loss"].value == pytest.approx(log_loss(helped.labels, p))
        assert scores["roc_auc"].value == pytest.approx(roc_auc_score(helped.labels, p[:, 1]))
    for method, row in helped.differences.items():
        for name, difference in row.items():
            ours, other = helped.scores["polyfid"][name], helped.scores[method][name]
            assert difference.value == pytest.approx(ours.value - other.value)
            assert difference.low <= difference.value <= difference.high


def test_the_seed_decides_the_figures_whatever_the_number_of_processes(helped):
    assert evaluate(*MANY, model=MODEL, n_jobs=2).to_dict() == helped.to_dict()
    other = evaluate(*MANY, model=MODEL, random_state=1)
    assert other.fold.tolist() != helped.fold.tolist()


def test_audit_rows_alone_are_scored(helped):
    X, y, fidelity = MANY
    audit = np.arange(130) % 3 == 0
    result = evaluate(*MANY, model=MODEL, audit=audit)
    marked = np.flatnonzero(audit & (np.arange(130) >= 90))
    assert result.rows.tolist() == marked.tolist()
    assert (result.n_audit, helped.n_audit) == (len(marked), 0)
    assert result.to_dict()["n_audit"] == len(marked)
    assert f"scores are from {len(marked)} audit rows" in " ".join(str(result).split())
    test = result.rows[result.fold == 1]
    train = np.setdiff1d(np.arange(130), test)  # with the trusted rows that are not marked
    ours = MODEL.fit(X[train], y[train], fidelity=fidelity[train]).predict_proba(X[test])
    np.testing.assert_array_equal(result.out_of_fold["polyfid"][result.fold == 1], ours)
    without = evaluate(*MANY, model=MODEL, audit=np.arange(130) < 90)
    assert without.to_dict() == helped.to_dict()


def test_too_few_audit_rows_are_refused():
    audit = np.isin(np.arange(130), [90, 91])
    with pytest.raises(ValueError, match=r"the audit rows of level 'gold' are 2 of .*audit=None"):
        evaluate(*MANY, model=MODEL, audit=audit)


def test_rows_of_weight_zero_are_left_out():
    X, y, fidelity = two_levels()
    kept = np.isin(np.arange(len(y)), [3, 70], invert=True)
    weighted = evaluate(X, y, fidelity, model=MODEL, sample_weight=kept.astype(float))
    without = evaluate(X[kept], y[kept], fidelity[kept], model=MODEL)
    assert 70 not in weighted.rows
    for method, expected in without.out_of_fold.items():
        np.testing.assert_allclose(weighted.out_of_fold[method], expected, atol=1e-6)


def test_data_frames_and_text_labels():
    X, y, fidelity = two_levels()
    labels = np.where(y, "far", "near")
    frame = pd.DataFrame(X, columns=["width", "height"], index=np.arange(len(y))[::-1])
    levels = pd.Series(pd.Categorical(fidelity, ["crowd", "gold"], ordered=True))
    result = evaluate(frame, pd.Series(labels), levels, model=MODEL)
    assert result.classes == ("far", "near")
    assert result.codes.tolist() == [result.classes.index(label) for label in result.labels]
    plain = evaluate(X, labels, fidelity, model=MODEL)
    np.testing.assert_array_equal(result.out_of_fold["pooled"], plain.out_of_fold["pooled"])


def test_three_classes_of_which_one_has_cheap_labels_only():
    X, y, fidelity = two_levels(n_classes=3, n_cheap=80, n_trusted=40)
    keep = (fidelity == "crowd") | (y != 2)
    result = evaluate(X[keep], y[keep], fidelity[keep], model=MODEL, n_splits=2)
    assert result.out_of_fold["polyfid"].shape[1] == 3
    assert any("class 2" in note for note in result.notes)
    assert np.isfinite([e.value for row in result.scores.values() for e in row.values()]).all()


def test_levels_given_are_the_order_of_trust():
    X, y, fidelity = two_levels()
    names = np.where(np.asarray(fidelity) == "gold", "a", "b")  # sorts the wrong way
    by_argument = evaluate(X, y, names, model=MODEL, levels=["b", "a"])
    by_model = evaluate(X, y, names, model=clone(MODEL).set_params(levels=["b", "a"]))
    assert by_argument.levels == by_model.levels == ("b", "a")
    assert by_argument.rows.tolist() == list(range(60, 84))


def test_settings_per_level_stay_with_the_model():
    levels = {"rho": [0.8], "label_noise": [0.1, 0.0], "levels": ["crowd", "gold"]}
    model = MultiFidelityClassifier(
        [1.0 * RBF(), 0.5 * RBF()], inference="ep", optimizer=None, n_jobs=1, **levels
    )
    before = model.get_params()
    assert set(evaluate(*two_levels(), model=model, n_splits=2).out_of_fold) == set(METHODS)
    assert model.get_params() == before
    assert not hasattr(model, "report_")


def test_cheap_labels_of_held_out_points_can_be_left_out():
    X, y, fidelity = two_levels(n_cheap=60, n_trusted=20)
    X, y = np.concatenate([X, X[60:]]), np.concatenate([y, y[60:]])
    level = np.concatenate([np.asarray(fidelity) == "gold", np.zeros(20, bool)])
    kept = evaluate(X, y, level, model=MODEL)
    dropped = evaluate(X, y, level, model=MODEL, drop_repeats=True)
    assert any("20 of the 20 trusted points" in text for text in kept.judgement.caveats)
    assert not any("trusted points" in text for text in dropped.judgement.caveats)
    better, worse = (e.scores["polyfid"]["log_loss"].value for e in (kept, dropped))
    assert better < worse


def test_the_default_model_and_progress():
    X, y, fidelity = two_levels(n_cheap=16, n_trusted=8, seed=3)
    counts = []
    how = {"n_splits": 2, "n_bootstrap": 50, "progress": lambda *done: counts.append(done)}
    assert evaluate(X[:, :1], y, fidelity, **how).n_bootstrap == 50
    assert counts == [(done, 8) for done in range(9)]


def test_warnings_of_fits_become_notes():
    model = MultiFidelityClassifier(1.0 * RBF(), max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate(*two_levels(), model=model, n_splits=2)
    early = [note for note in result.notes if "tuning stopped early" in note]
    assert 1 <= len(early) <= len(METHODS)
    assert early[0].startswith(("polyfid, ", "all methods, "))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, f: {"fidelity": np.ones(len(y))}, "one level only.*cross_val_score"),
        (lambda X, y, f: {"X": X[:60], "y": y[:60], "fidelity": f[:60]}, "'gold'\\) are none"),
        (lambda X, y, f: {"y": np.where(f == "gold", 1, y)}, "are 24 of class 1, and"),
        (lambda X, y, f: {"y": np.r_[y[:60], 2, [0, 1] * 11, 0]}, "1 of class 2, and"),
        (lambda X, y, f: {"y": y[1:]}, "y has 83 entries and X has 84 rows"),
        (lambda *_: {"fidelity": None}, "fidelity is None"),
        (lambda *_: {"n_splits": 1}, "n_splits == 1, must be >= 2"),
        (lambda *_: {"n_bootstrap": 0}, "n_bootstrap == 0, must be >= 10"),
        (lambda *_: {"model": object()}, "model must be a MultiFidelityClassifier"),
        (lambda *_: {"model": MultiFidelityClassifier(fidelity_feature=0)}, "fidelity_feature=0"),
        (lambda *_: {"model": MultiFidelityClassifier(label_noise="annotator")}, "annotator"),
        (lambda *_: {"levels": ["gold"]}, "unknown level"),
    ],
)
def test_what_cannot_be_evaluated(change, message):
    X, y, fidelity = two_levels()
    given = {"X": X, "y": y, "fidelity": fidelity, "model": MODEL}
    with pytest.raises(ValueError, match=message):
        evaluate(**(given | change(X, y, fidelity)))


def test_folds_are_capped_by_the_rarest_class():
    X, y, fidelity = two_levels(n_trusted=30)
    y[fidelity == "gold"] = [1] * 3 + [0] * 27
    notes = evaluate(X, y, fidelity, model=MODEL).notes
    assert "3 folds instead of 5, as a class has 3 trusted rows" in notes


def test_a_failing_fit_says_where():
    X, y, fidelity = two_levels()
    X[70, 0] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        evaluate(X, y, fidelity, model=MODEL)
    assert "method 'polyfid'" in caught.value.__notes__[0]
