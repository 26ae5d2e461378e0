"""What a fitted model has learnt: links, contributions, differences of levels, relevance."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from two_levels import fitted, two_levels

from polyfid import MultiFidelityClassifier
from polyfid.inspection import (
    _both_positive,
    feature_relevance,
    level_contributions,
    level_difference,
    level_links,
    likely_wrong,
)
from polyfid.kernels import RBF
from polyfid.learning.links import link_levels
from polyfid.learning.mixture import BinaryFit


@pytest.fixture(scope="module")
def plane():
    X, y, fidelity = two_levels()
    return fitted(X, y, fidelity), X


@pytest.fixture(scope="module")
def averaged():
    X, y, fidelity = two_levels(n=(24, 14))
    return MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity), X


@pytest.fixture(scope="module")
def three():
    X, y, fidelity = two_levels(n_classes=3)
    return fitted(X, y, fidelity), X


@pytest.mark.parametrize(
    ("name", "tolerance"), [("plane", 0.015), ("averaged", 0.015), ("three", 0.03)]
)
def test_levels_differ_as_often_as_in_samples(name, tolerance, request):
    model, X = request.getfixturevalue(name)
    x = X[:4] + 0.1
    levels = np.repeat(["crowd", "gold"], 4)
    samples = model.sample_latent(np.concatenate([x, x]), 40000, fidelity=levels, random_state=0)
    predicted = samples.argmax(axis=-1) if samples.ndim == 3 else samples > 0
    expected = (predicted[:4] != predicted[4:]).mean(axis=1)
    probability = level_difference(model, x, 0, 1, 1).probability
    np.testing.assert_allclose(probability, expected, atol=tolerance)


def test_delta_has_the_joint_moments_of_the_model(plane):
    model, X = plane
    x = X[:4] + 0.1
    mean, covariance = model.latent_mean_and_covariance(
        np.concatenate([x, x]), np.repeat(["crowd", "gold"], 4)
    )
    mix = np.concatenate([-model.rho_[0] * np.eye(4), np.eye(4)], axis=1)
    difference = level_difference(model, x, 0, 1, 1)
    np.testing.assert_allclose(difference.delta_mean, mix @ mean)
    np.testing.assert_allclose(difference.delta_sd**2, np.diagonal(mix @ covariance @ mix.T))


def test_delta_between_levels_that_are_not_neighbours():
    X, y, _ = two_levels()
    names = ["bots", "crowd", "gold"]
    model = MultiFidelityClassifier(4.0 * RBF(), rho=[0.5, 0.8], levels=names, optimizer=None)
    model.fit(X, y, fidelity=np.resize(names, len(y)))
    bots, gold = (model.latent_mean_and_variance(X[:5], name)[0] for name in ("bots", "gold"))
    difference = level_difference(model, X[:5], 0, 2, 1)
    np.testing.assert_allclose(difference.delta_mean, gold - 0.4 * bots)


@pytest.mark.parametrize("r", [-1 + 1e-12, -0.6, 0.0, 0.6, 1 - 1e-12])
def test_probability_that_both_are_positive(r):
    a, b = np.array([0.0, 0.5, -1.0, 2.0, 0.0]), np.array([0.0, -0.7, -0.2, 2.0, 1.0])
    u, v = np.random.default_rng(0).standard_normal((2, 200000))
    w = r * u + np.sqrt(1 - r * r) * v
    expected = [((p + u > 0) & (q + w > 0)).mean() for p, q in zip(a, b, strict=True)]
    np.testing.assert_allclose(_both_positive(a, b, np.full(5, r)), expected, atol=0.005)


def test_links_without_tuning_are_the_values_given(plane):
    ((link,),) = level_links(plane[0])
    assert link.rho == pytest.approx(0.5)
    assert link.rho_interval == pytest.approx((0.5, 0.5))
    assert link.correlation == pytest.approx(0.5 * 9 / np.sqrt(9 * (0.25 * 9 + 9)))


@pytest.mark.parametrize(("n_features", "ard"), [(2, False), (18, True)])
def test_tuned_links_come_with_intervals(n_features, ard):
    how = {"kernel": 1.0 * RBF(ard=ard), "optimizer": "lbfgs", "n_restarts": 0, "max_iter": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 20 steps are few
        model = fitted(*two_levels(n_features), **how)
    ((link,),) = level_links(model)
    assert link.rho == pytest.approx(model.rho_[0])
    assert link.rho_interval[0] < link.rho < link.rho_interval[1]
    low, high = link.correlation_interval
    assert -1 <= low <= link.correlation <= high <= 1


def test_links_of_structures_are_averaged_by_weight(averaged):
    model, _ = averaged
    ((link,),) = level_links(model)
    assert len(link.rho_each) == len(model.structures_) > 1
    assert link.rho == pytest.approx(sum(s.weight * s.rho[0] for s in model.structures_))


def test_links_are_computed_when_the_report_is_read_and_only_once(monkeypatch, averaged):
    calls = []

    def counted(*given):
        calls.append(given)
        return link_levels(*given)

    monkeypatch.setattr("polyfid.estimator.summary.link_levels", counted)
    X, y, fidelity = two_levels(n=(24, 14))
    model = fitted(X, y, fidelity, optimizer="lbfgs", kernel=1.0 * RBF())
    model.predict_proba(X)
    copy = pickle.loads(pickle.dumps(model))
    assert calls == []
    text = str(model.report_)
    assert str(model.report_) == text
    assert level_links(model) is model.report_.links
    assert len(calls) == 1
    assert str(copy.report_) == text
    assert str(pickle.loads(pickle.dumps(model.report_))) == text
    assert not hasattr(clone(model), "report_")


def test_the_report_shows_averages_with_their_intervals(averaged, three, plane):
    ((link,),) = level_links(averaged[0])
    text, html = str(averaged[0].report_), averaged[0].report_.to_html()
    for value, (low, high) in (
        (link.rho, link.rho_interval),
        (link.correlation, link.correlation_interval),
    ):
        assert low < high
        for shown in (text, html):
            assert f" {value:+.2f} ({low:+.2f} to {high:+.2f})" in shown
    assert "(averages over structures, with 95 % intervals)" in text
    assert str(plane[0].report_).count("gold on crowd: rho +0.50, correlation +0.45") == 1
    assert "95 %" not in str(plane[0].report_)  # hyper-parameters were given
    assert str(three[0].report_).count("gold on crowd: rho +0.50") == 3  # one per class
    alone = MultiFidelityClassifier(1.0 * RBF()).fit(plane[1], plane[1][:, 0] > 0)
    assert alone.report_.links == [[]]
    assert "rho" not in str(alone.report_)


def test_intervals_of_large_fits_leave_light_structures_out(monkeypatch):
    X, y, fidelity = two_levels(n=(24, 14))
    model = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)
    fits = [member.fit for member in model._mixtures[0].members]
    n, p = len(fits[0].posterior.points), len(fits[0].theta)
    asked = []

    def noted(self, *given):
        asked.append(self.prior)
        return evidence(self, *given)

    evidence = BinaryFit.evidence
    monkeypatch.setattr(BinaryFit, "evidence", noted)
    monkeypatch.setattr("polyfid.learning.links._CURVATURE_COST", 1.01 * p * (n**3 + p * n**2))
    ((link,),) = level_links(model)
    assert {id(prior) for prior in asked} == {id(fits[0].prior)}
    assert link.has_intervals


def test_links_of_unordered_sources():
    model = fitted(*two_levels(), coupling="coregional")
    A = model._fits[0].prior.loadings
    joint = 9.0 * A @ A.T
    assert level_links(model)[0][0].rho == pytest.approx(joint[0, 1] / joint[0, 0])


def test_contributions_are_drops_of_the_posterior_variance(plane):
    model, X = plane
    crowd, gold, rest = level_contributions(model, X)[0]
    assert crowd + gold + rest == pytest.approx(1.0)
    assert min(crowd, gold, rest) > 0
    variance = model.latent_mean_and_variance(X)[1]
    assert rest == pytest.approx(variance.mean() / (0.25 * 9 + 9))


def test_labels_of_an_unrelated_level_contribute_nothing():
    model = fitted(*two_levels(), rho=0.0)
    assert level_contributions(model)[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert level_links(model)[0][0].correlation == 0.0


def test_contributions_with_learnt_label_noise():
    X, y, fidelity = two_levels(n=(30, 14))
    model = MultiFidelityClassifier(1.0 * RBF(), label_noise="fidelity", max_iter=30)
    assert np.isfinite(level_contributions(model.fit(X, y, fidelity=fidelity))).all()


def test_columns_of_one_feature_are_permuted_together():
    x = np.random.RandomState(0).normal(size=(80, 3))
    X = pd.DataFrame({"a": x[:, 0], "same": x[:, 0], "b": x[:, 1], "noise": x[:, 2]})
    model = LogisticRegression(C=100.0).fit(X, x[:, 0] + 0.3 * x[:, 1] > 0)
    groups = [slice(0, 2), slice(2, 3), slice(3, 4)]
    relevance = feature_relevance(model, X, groups)
    together, b, noise = relevance[:, 0]
    alone = feature_relevance(model, X, [slice(0, 1)])[0, 0]
    assert 1.0 > together > alone > 0.0
    assert together > b > noise >= 0.0
    low, high = relevance[:, 1:].T
    assert (low <= relevance[:, 0]).all()
    assert (relevance[:, 0] <= high).all()
    assert low[0] > high[2]
    assert (high - low)[0] > 0.02


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {"inference": "laplace"},
        {"inference": "ep"},
        {"label_noise": [0.1, 0.0]},
        {"n_inducing": 25},
    ],
    ids=["laplace", "ep", "noise", "sparse"],
)
def test_a_label_is_judged_as_if_the_model_had_not_seen_it(n_classes, settings):
    X, y, fidelity = two_levels(n_classes=n_classes, n=(50, 12))
    flipped = np.random.RandomState(0).uniform(size=len(y)) < 0.25
    y = np.where(flipped, (y + 1) % n_classes, y)
    model = fitted(X, y, fidelity, **settings)
    wrong = likely_wrong(model, X, y, fidelity)
    assert sorted(wrong.rows) == list(range(50))  # those of the crowd
    assert (np.diff(wrong.probability) <= 0).all()
    with_own = 1 - model.predict_proba(X)[np.arange(len(y)), y]
    gains = []
    for i, p in list(zip(wrong.rows, wrong.probability, strict=True))[::7]:
        rest = np.arange(len(y)) != i
        without = fitted(X[rest], y[rest], fidelity[rest], **settings)
        expected = 1 - without.predict_proba(X[[i]])[0, y[i]]
        assert p == pytest.approx(expected, abs=0.012)
        gains.append(expected - with_own[i])
    assert max(gains) > 0.02  # a label speaks for itself


def test_likely_wrong_labels_are_the_flipped_ones_and_repeats_count(plane):
    _, X = plane
    y = (X[:, 0] > 0).astype(int)
    fidelity = np.where(np.arange(len(X)) < 60, "crowd", "gold")
    clear = np.flatnonzero(np.abs(X[:60, 0]) > 1.2)[:4]
    y[clear] = 1 - y[clear]
    model = fitted(X, y, fidelity, rho=1.0, levels=["crowd", "gold"])
    wrong = likely_wrong(model, X, y, fidelity)
    assert {*wrong.rows[:4]} == {*clear}
    assert (wrong.expected[:4] == 1 - y[wrong.rows[:4]]).all()
    assert (wrong.probability[:4] > 0.5).all()
    weight = np.ones(len(X))
    weight[clear[0]] = 0.0
    kept = likely_wrong(model, X, y, fidelity, sample_weight=weight)
    assert clear[0] not in kept.rows


def test_structures_that_know_the_truth_take_nothing_from_repeats():
    X, y, fidelity = two_levels(n=(40, 14))
    X[:10] = X[40:50]
    y[:10] = y[40:50]
    y[0] = 1 - y[0]
    model = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)
    wrong = likely_wrong(model, X, y, fidelity)
    assert 0 in wrong.rows[:8]
    assert np.isfinite(wrong.probability).all()


def test_likely_wrong_needs_two_levels():
    X, y, _ = two_levels()
    model = MultiFidelityClassifier(4.0 * RBF(), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="one level only"):
        likely_wrong(model, X, y)
