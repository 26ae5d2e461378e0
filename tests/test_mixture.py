"""Averages of models: one member is itself, several are weighted sums, tails keep their digits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax, logsumexp
from tolerances import IDENTITY

from polyfid.inference import SCHEMES
from polyfid.kernels import RBF, Linear
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import Member, Mixture, coupled, infer
from polyfid.model.features import AsGiven, Ranked, Standardised
from polyfid.model.likelihoods import Logit
from polyfid.model.logistic import expected_sigmoid
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(size=(40, 2)))
LEVEL = np.repeat([0, 1], [28, 12])
Y = np.where(X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=40) > 0.0, 1.0, -1.0)
NEW = np.exp(np.random.default_rng(1).normal(size=(9, 2)))
AT = np.repeat([0, 1], [4, 5])
WEIGHTS = np.array([0.5, 0.3, 0.2])


def make_member(kind, kernel, weight, rho=0.8):
    features = kind.of(X, np.ones(len(X)))
    prior = Autoregressive((kernel, 0.5 * RBF(1.0)), (rho,))
    points = Points(features(X), LEVEL)
    evidence = Evidence(prior, Logit(Y, np.ones(len(Y))), points, SCHEMES["ep"])
    return Member(kind.words, features, infer(evidence, None), weight)


@pytest.fixture(scope="module")
def members():
    """Models that disagree: other features, kernels and signs of rho."""
    return (
        make_member(Standardised, 2.0 * RBF(1.5), WEIGHTS[0]),
        make_member(Ranked, 5.0 * Linear(1.0), WEIGHTS[1], rho=-2.0),
        make_member(AsGiven, 20.0 * RBF(0.5), WEIGHTS[2]),
    )


@pytest.fixture(scope="module")
def mixture(members):
    return Mixture(members)


def moments(member):
    """Of a member alone, straight from its posterior."""
    return member.fit.posterior.mean_and_variance(Points(member.features(NEW), AT))


def test_one_member_is_itself(members):
    alone = Mixture((Member("alone", members[0].features, members[0].fit),))
    posterior, points = members[0].fit.posterior, Points(members[0].features(NEW), AT)
    mean, variance = posterior.mean_and_variance(points)
    np.testing.assert_array_equal(alone.mean_and_variance(NEW, AT), (mean, variance))
    np.testing.assert_allclose(
        alone.mean_and_covariance(NEW, AT)[1], posterior.mean_and_covariance(points)[1], rtol=0
    )
    np.testing.assert_allclose(alone.predict(NEW, AT).up, expected_sigmoid(mean, variance))
    np.testing.assert_array_equal(alone.positive(NEW, AT), mean > 0.0)
    np.testing.assert_array_equal(
        alone.sample(NEW, AT, 5, np.random.RandomState(0)),
        posterior.sample(points, 5, np.random.RandomState(0)),
    )


def test_probabilities_are_weighted_means(mixture, members):
    down, up = mixture.predict(NEW, AT)[:2]
    each = np.stack([expected_sigmoid(*moments(m)) for m in members])
    np.testing.assert_allclose(up, WEIGHTS @ each, rtol=IDENTITY)
    np.testing.assert_array_equal(down + up, 1.0)
    assert np.ptp(each, axis=0).max() > 0.3  # they do disagree
    np.testing.assert_array_equal(mixture.positive(NEW, AT), up > 0.5)


def test_the_law_of_total_variance(mixture, members):
    means, variances = (np.stack(values) for values in zip(*map(moments, members), strict=True))
    mean, variance = mixture.mean_and_variance(NEW, AT)
    np.testing.assert_allclose(mean, WEIGHTS @ means, rtol=IDENTITY)
    np.testing.assert_allclose(variance, WEIGHTS @ (variances + means**2) - mean**2, rtol=1e-9)
    assert (variance > WEIGHTS @ variances).all()
    same, covariance = mixture.mean_and_covariance(NEW, AT)
    np.testing.assert_allclose(same, mean, rtol=1e-9)
    np.testing.assert_allclose(np.diag(covariance), variance, rtol=1e-8)
    np.testing.assert_allclose(covariance, covariance.T, atol=IDENTITY)
    assert np.linalg.eigvalsh(covariance).min() > -1e-8


def test_samples_have_the_moments_of_the_mixture(mixture):
    n = 40_000
    samples = mixture.sample(NEW, AT, n, np.random.RandomState(0))
    mean, covariance = mixture.mean_and_covariance(NEW, AT)
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(samples.mean(axis=1) - mean) < 4.5 * sd / np.sqrt(n)).all()
    # Fourth moments are larger than a Gaussian's, by less than a factor of four here.
    np.testing.assert_allclose(np.cov(samples), covariance, atol=0.06 * sd.max() ** 2)
    # Samples are of members, not Gaussian ones of the mixture's moments.
    _, up = mixture.predict(NEW, AT)[:2]
    np.testing.assert_allclose(expit(samples).mean(axis=1), up, atol=0.01)


def test_variance_due_to_the_latent_function(mixture):
    p = mixture.predict(NEW, AT)
    f = mixture.sample(NEW, AT, 40_000, np.random.RandomState(0))
    np.testing.assert_allclose(p.unsure, expit(f).var(axis=1) / (p.up * p.down), atol=0.01)
    np.testing.assert_allclose(mixture.log_probabilities(NEW, AT)[2], p.unsure, rtol=1e-6)


def test_labels_of_a_level_whose_labels_are_flipped(mixture, members):
    flips = (0.3, 0.0)
    one, two = mixture.members[:2]
    flipped = Mixture((replace(one, flips=flips), two, *mixture.members[2:]))
    low = np.zeros_like(AT)
    plain, p = mixture.predict(NEW, low), flipped.predict(NEW, low)
    alone = Mixture((replace(one, weight=1.0),)).predict(NEW, low).up
    np.testing.assert_allclose(p.up, plain.up + one.weight * 0.3 * (1.0 - 2.0 * alone), rtol=1e-9)
    np.testing.assert_allclose(p.up + p.down, 1.0, rtol=IDENTITY)
    for log, probability in zip(
        flipped.log_probabilities(NEW, low), (p.down, p.up, None), strict=True
    ):
        if probability is not None:
            np.testing.assert_allclose(np.exp(log), probability, rtol=1e-8)
    np.testing.assert_allclose(flipped.log_probabilities(NEW, low)[2], p.unsure, rtol=1e-6)
    # The variance of such a label, with the latent function known: by samples of one member.
    single = Mixture((replace(one, weight=1.0, flips=flips),))
    f = single.sample(NEW, low, 40_000, np.random.RandomState(0))
    q, mean = 0.3 + 0.4 * expit(f), single.predict(NEW, low)
    np.testing.assert_allclose(mean.up, q.mean(axis=1), atol=0.01)
    np.testing.assert_allclose(mean.unsure, q.var(axis=1) / (mean.up * mean.down), atol=0.01)
    # Nothing is flipped at the top.
    top = np.ones_like(AT)
    np.testing.assert_array_equal(flipped.predict(NEW, top).up, mixture.predict(NEW, top).up)


# Tails


def oracles(means, variances, weights):
    """A mixture of members whose posteriors have these moments, whatever the points."""
    rows = np.zeros((np.size(means[0]), 1))
    members = []
    for m, v, w in zip(means, variances, weights, strict=True):
        moments = np.atleast_1d(m), np.atleast_1d(v)
        posterior = SimpleNamespace(mean_and_variance=lambda points, moments=moments: moments)
        members.append(Member("", AsGiven(), SimpleNamespace(posterior=posterior), w))
    return Mixture(tuple(members)), rows, np.zeros(len(rows), dtype=int)


EXTREME = np.array([-800.0, -300.0, -50.0, -5.0, 0.0, 5.0, 50.0, 300.0, 800.0])


def test_extreme_means():
    # Without variance the integrals are sigmoids, and logarithms of sums of them are known.
    means = EXTREME, EXTREME / 2.0, EXTREME[::-1] / 100.0
    mixture, rows, level = oracles(means, [np.zeros(9)] * 3, WEIGHTS)
    log_down, log_up, _ = mixture.log_probabilities(rows, level)
    for found, sign in ((log_up, 1.0), (log_down, -1.0)):
        expected = logsumexp(log_expit(sign * np.stack(means)), b=WEIGHTS[:, None], axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    down, up = mixture.predict(rows, level)[:2]
    np.testing.assert_array_equal(down + up, 1.0)
    np.testing.assert_allclose(np.minimum(down, up), np.exp(np.minimum(log_down, log_up)), 1e-8)


@pytest.mark.parametrize("variance", [1e-12, 1.0, 30.0, 1e4])
def test_tails_of_members_that_agree(variance):
    mixture, rows, level = oracles(
        (EXTREME, EXTREME * 1.1), [np.full(9, variance), np.full(9, 2.0 * variance)], (0.6, 0.4)
    )
    down, up = mixture.predict(rows, level)[:2]
    log_down, log_up, _ = mixture.log_probabilities(rows, level)
    np.testing.assert_array_equal(down + up, 1.0)
    assert np.isfinite([log_down, log_up]).all()
    np.testing.assert_allclose(np.logaddexp(log_down, log_up), 0.0, atol=1e-9)
    # Either tail has all its digits: up for large negative means is down for large positive ones.
    np.testing.assert_allclose(up[:4], down[:4:-1], rtol=1e-12)
    normal = np.minimum(down, up) > 1e-300
    for p, log_p in ((down, log_down), (up, log_up)):
        np.testing.assert_allclose(p[normal], np.exp(log_p[normal]), rtol=1e-8)
    assert (np.diff(up) >= 0.0).all()


def test_probabilities_of_members_that_disagree():
    # 1 - (1 - p) would be zero.
    mixture, rows, level = oracles(([40.0], [45.0]), ([0.0], [0.0]), (0.75, 0.25))
    down, _ = mixture.predict(rows, level)[:2]
    assert down[0] == pytest.approx(0.75 * np.exp(-40.0) + 0.25 * np.exp(-45.0), rel=1e-9)
    # Members in balance.
    mixture, rows, level = oracles(([3.0], [-3.0]), ([1.0], [1.0]), (0.5, 0.5))
    down, up = mixture.predict(rows, level)[:2]
    assert down[0] == up[0] == 0.5
    assert not mixture.positive(rows, level)[0]
    # Two members are mildly for the positive class, one is wildly against it.
    mixture, rows, level = oracles(([1.0], [1.0], [-50.0]), ([0.1], [0.1], [0.1]), WEIGHTS)
    mean, variance = mixture.mean_and_variance(rows, level)
    assert mean[0] == pytest.approx(0.8 - 10.0)
    assert variance[0] == pytest.approx(0.1 + 0.8 * 0.2 * 51.0**2)
    assert mixture.positive(rows, level)[0]
    assert mixture.predict(rows, level).up[0] > 0.5


# More than two classes


def logs(*members):
    """Log probabilities and shares of classes with these means and variances, (n, n_classes)."""
    each = []
    for mean, variance in members:
        mixture, rows, level = oracles([mean], [variance], [1.0])
        each.append(mixture.log_probabilities(rows, level))
    return [np.stack(a, axis=1) for a in zip(*each, strict=True)]


def test_coupled_probabilities_sum_to_one_whatever_the_order():
    down, up, unsure = logs(*(RNG.normal(size=(2, 20)) ** 2 * [[1], [4]] for _ in range(4)))
    p = np.exp(coupled(down, up, unsure))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=IDENTITY)
    np.testing.assert_array_equal(np.argsort(p), np.argsort(up))
    order = [2, 0, 3, 1]
    other = np.exp(coupled(*(a[:, order] for a in (down, up, unsure))))
    np.testing.assert_allclose(other, p[:, order], rtol=IDENTITY)


def test_coupled_probabilities_of_functions_that_are_known():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    down, up, unsure = logs(*((np.log(q / (1.0 - q)), np.zeros(10)) for q in p.T))
    np.testing.assert_allclose(np.exp(coupled(down, up, unsure)), p, rtol=1e-9)


def test_coupled_probabilities_of_functions_that_are_not_known():
    # Three models that know little of steps: each would say that the class is likelier than not.
    down, up, unsure = logs(([1e4], [1e10]), ([-1e4], [1e10]), ([-1e4], [1e10]))
    assert unsure.min() > 0.9999
    odds = log_softmax(2.0 * (up - down), axis=1)
    np.testing.assert_allclose(coupled(down, up, unsure), odds, atol=1e-3)


@pytest.mark.parametrize("variance", [0.0, 1.0, 30.0, 1e4])
def test_tails_of_coupled_probabilities(variance):
    wide = np.full(9, variance)
    classes = (EXTREME, wide), (EXTREME[::-1] / 2.0, 2.0 * wide), (np.full(9, -5.0), wide)
    log_p = coupled(*logs(*classes))
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(logsumexp(log_p, axis=1), 0.0, atol=1e-12)
    if variance == 0.0:  # the last row: certainly the first class, and exp(-400) of the second
        np.testing.assert_allclose(log_p[-1], [0.0, -400.0, log_expit(-5.0)], atol=0.01)
