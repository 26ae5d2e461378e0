"""Hyper-parameters that are not known make the posterior of the latent functions wider."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from tolerances import IDENTITY

from polyfid import MultiFidelityClassifier, load
from polyfid.datasets import make_cokriging
from polyfid.inference import SCHEMES
from polyfid.inference.posterior import Posterior
from polyfid.kernels import RBF
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning import spread as spread_module
from polyfid.learning.evidence import Evidence
from polyfid.learning.spread import Spread, _fitted, find_spread
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

MADE = make_cokriging(60, 25, 2, labels="sigmoid", n_test=60, random_state=3)


def fitted(**parameters):
    kernel = parameters.pop("kernel", 1.0 * RBF())
    model = MultiFidelityClassifier(kernel, inference="ep", random_state=0, **parameters)
    return model.fit(MADE.data, MADE.target, fidelity=MADE.fidelity)


@pytest.fixture(scope="module")
def model():
    return fitted()


def plain(model):
    """The model with its hyper-parameters taken as known."""
    (mixture,) = model._model.mixtures
    other = MultiFidelityClassifier()
    other._publish(replace(model._model, mixtures=(replace(mixture, spread=None),)))
    return other


@pytest.fixture(scope="module")
def evidence():
    prior = Autoregressive((2.0 * RBF(0.4), 1.0 * RBF(0.4)), (0.9,))
    labels = Logit(np.where(MADE.target == 1, 1.0, -1.0), np.ones(len(MADE.target)))
    return Evidence(prior, labels, Points(MADE.data, MADE.fidelity), SCHEMES["ep"], 1e-8)


def test_parameters_that_are_known_add_nothing(evidence):
    n = len(evidence.theta)
    known = HyperPrior.independent(evidence.theta, [1e-6] * n)
    spread = find_spread(evidence, known, evidence.theta)
    for name, value in {"mean": 1.0, "variance": 1.0, "scale": 0.0, "tail": 0.0}.items():
        np.testing.assert_allclose(getattr(spread, name), value, atol=1e-5)


def test_factors_of_functions_that_differ_in_scale_alone_are_exact():
    rng = np.random.default_rng(0)
    mode = np.stack([rng.normal(size=(2, 30)), rng.uniform(1, 2, (2, 30))], axis=1)
    scales, widths, weights = np.array([0.7, 1.0, 1.6]), np.array([1.0, 1.2, 1.9]), [0.2, 0.5, 0.3]
    points = mode * np.stack([scales, widths], axis=1)[:, None, :, None]
    spread = _fitted(mode, points, np.array(weights))
    mean = weights @ scales
    np.testing.assert_allclose(spread.mean, mean, rtol=IDENTITY, atol=IDENTITY)
    np.testing.assert_allclose(spread.variance, weights @ widths, rtol=IDENTITY, atol=IDENTITY)
    np.testing.assert_allclose(
        spread.scale, weights @ np.square(scales - mean), rtol=IDENTITY, atol=IDENTITY
    )
    log_t = np.log(widths)
    tail = np.sqrt(weights @ np.square(log_t - weights @ log_t))
    np.testing.assert_allclose(spread.tail, tail, rtol=IDENTITY, atol=IDENTITY)


def test_the_spread_is_the_average_over_the_hyper_posterior(evidence, monkeypatch):
    """With one parameter free, that of many points on a line is known; nothing is left out."""
    monkeypatch.setattr(spread_module, "WIDER", 1.0)
    kernel = 2.0 * RBF(0.4, "fixed")
    labels = evidence.likelihood.take(np.flatnonzero(MADE.fidelity == 0))
    points = Points(MADE.data[MADE.fidelity == 0], np.zeros(60, dtype=int))
    one = Evidence(Autoregressive((kernel,), ()), labels, points, SCHEMES["ep"], 1e-8)
    prior = HyperPrior.independent([0.7], [1.0])
    grid = np.linspace(-4.0, 6.0, 81)
    values = [one(np.array([t]), gradient=False).value + prior(np.array([t]))[0] for t in grid]
    mode = grid[int(np.argmax(values))]
    spread = find_spread(one, prior, np.array([mode]))
    weights = np.exp(np.array(values) - max(values))
    weights /= weights.sum()
    each = []
    for t in grid:
        covariance, _, fixed = one.fixed(np.array([t]))
        posterior = Posterior.from_belief(covariance.prior, points, fixed.belief)
        each.append(posterior.mean_and_variance(points))
    means, variances = np.array([m for m, _ in each]), np.array([v for _, v in each])
    mean = weights @ means
    total = weights @ (variances + np.square(means - mean))
    at = int(np.argmax(values))
    wide_mean, wide = spread.moments(means[at], variances[at], points.level)
    assert np.sqrt(np.mean(np.square(wide_mean - mean) / total)) < 0.1
    # Over the rows, standard deviations are right on average, and at the mode alone they are not.
    assert abs(np.mean(np.sqrt(wide / total)) - 1.0) < 0.03
    assert np.mean(np.sqrt(variances[at] / total)) < 0.92


def test_latent_functions_are_wider_and_probabilities_stay(model):
    x, before = MADE.test_data, plain(model)
    spread = model._model.mixtures[0].spread
    assert spread.variance[1] > 1.05
    for level in (0, 1):
        p, mean, variance = model.predict_all(x, fidelity=level)
        q, old_mean, old_variance = before.predict_all(x, fidelity=level)
        wanted = spread.moments(old_mean, old_variance, np.full(len(x), level))
        np.testing.assert_allclose([mean, variance], wanted, rtol=IDENTITY, atol=IDENTITY)
        assert (variance >= old_variance).all()
        np.testing.assert_array_equal(p, q)


def test_joint_covariance_and_samples_are_as_wide(model):
    x = np.repeat(MADE.test_data[:12], 2, axis=0)
    at = np.tile([0, 1], 12)
    mean, covariance = model.latent_mean_and_covariance(x, fidelity=at)
    np.testing.assert_allclose(
        [mean, np.diagonal(covariance)], model.latent_mean_and_variance(x, fidelity=at), rtol=1e-8
    )
    samples = model.sample_latent(x, 40_000, fidelity=at, random_state=0)
    np.testing.assert_allclose(samples.mean(axis=1), mean, atol=0.05 * np.sqrt(covariance.max()))
    sd = np.sqrt(np.diagonal(covariance))
    correlation = covariance / np.outer(sd, sd)
    np.testing.assert_allclose(np.cov(samples) / np.outer(sd, sd), correlation, atol=0.04)


NOMINAL = (0.5, 0.8, 0.95, 0.99)


@pytest.mark.parametrize("level", [0, 1])
def test_intervals_have_their_share_of_functions_of_unknown_scale(model, level):
    x, spread = MADE.test_data[:20], model._model.mixtures[0].spread
    mean, variance = plain(model).latent_mean_and_variance(x, fidelity=level)
    rng = np.random.default_rng(0)
    s, t = (factor[level] for factor in spread.factors(rng.standard_normal(100_000)))
    noise = rng.standard_normal((len(x), 100_000))
    f = s * mean[:, None] + np.sqrt(t * variance[:, None]) * noise
    for coverage in NOMINAL:
        low, high = (end[:, None] for end in model.latent_interval(x, coverage, fidelity=level))
        np.testing.assert_allclose((f < low).mean(axis=1), 0.5 * (1 - coverage), atol=0.012)
        np.testing.assert_allclose((f > high).mean(axis=1), 0.5 * (1 - coverage), atol=0.012)


def test_the_mixture_of_the_intervals_has_the_moments_that_are_reported():
    z, weights = np.polynomial.hermite_e.hermegauss(40)
    weights /= weights.sum()
    spread = Spread(*np.array([[1.0, 1.3], [1.2, 2.0], [0.0, 0.2], [0.4, 1.1]]))
    s, t = spread.factors(z)
    np.testing.assert_allclose(s @ weights, spread.mean)
    np.testing.assert_allclose(t @ weights, spread.variance)
    np.testing.assert_allclose(np.square(s - spread.mean[:, None]) @ weights, spread.scale)


def test_wide_intervals_contain_narrow_ones_and_tails_are_heavy(model):
    x = MADE.test_data
    _, variance = model.latent_mean_and_variance(x)
    ends = [model.latent_interval(x, coverage) for coverage in (1e-3, *NOMINAL, 1 - 1e-9)]
    assert all((low < high).all() for low, high in ends)
    assert (np.diff([low for low, _ in ends], axis=0) < 0).all()
    assert (np.diff([high for _, high in ends], axis=0) > 0).all()
    widths = np.array([np.mean((high - low) / np.sqrt(variance)) for low, high in ends[1:5]])
    normal = 2.0 * ndtri(0.5 + np.array(NOMINAL) / 2.0)
    assert widths[0] < normal[0]
    assert widths[-1] > normal[-1]


def test_intervals_of_hyper_parameters_that_are_known_are_normal(model):
    known, x = plain(model), MADE.test_data
    mean, variance = known.latent_mean_and_variance(x)
    for coverage in NOMINAL:
        reach = ndtri(0.5 + coverage / 2) * np.sqrt(variance)
        ends = known.latent_interval(x, coverage)
        np.testing.assert_allclose(ends, [mean - reach, mean + reach], rtol=IDENTITY, atol=IDENTITY)


def test_intervals_of_structures_are_quantiles_of_their_mixture(model):
    """Two structures, each with its share, and their hyper-parameters known."""
    (mixture,) = model._model.mixtures
    (one,), x, level = mixture.members, MADE.test_data, np.ones(len(MADE.test_data), dtype=int)
    posterior = replace(one.fit.posterior, alpha=-0.5 * one.fit.posterior.alpha)
    other = replace(one, weight=0.3, fit=replace(one.fit, posterior=posterior))
    both = replace(mixture, members=(replace(one, weight=0.7), other), spread=None)
    means, variances = both._moments(x, level)
    for coverage in NOMINAL:
        for end, p in zip(both.interval(x, level, coverage), (-1, 1), strict=True):
            below = np.array([0.7, 0.3]) @ ndtr((end - means) / np.sqrt(variances))
            np.testing.assert_allclose(below, 0.5 + p * coverage / 2, atol=1e-9)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 95, np.nan, "0.9"])
def test_coverage_lies_between_0_and_1(model, coverage):
    with pytest.raises(ValueError, match="coverage"):
        model.latent_interval(MADE.test_data, coverage)


def test_intervals_of_many_classes_have_one_for_each():
    y = (MADE.data[:, 0] > 0.3).astype(int) + (MADE.data[:, 0] > 0.6)
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0)
    model.fit(MADE.data, y, fidelity=MADE.fidelity)
    mean, _ = model.latent_mean_and_variance(MADE.test_data[:7])
    low, high = model.latent_interval(MADE.test_data[:7])
    assert ((low < mean) & (mean < high)).all()
    assert low.shape == (7, 3)


@pytest.mark.parametrize("known", [{"optimizer": None}, {"prior": None}])
def test_hyper_parameters_that_count_as_known(known):
    assert fitted(**known)._model.mixtures[0].spread is None


def test_the_spread_is_kept_in_files(model, tmp_path):
    model.save(tmp_path / "model.polyfid")
    again = load(tmp_path / "model.polyfid")
    for a, b in zip(
        model.predict_all(MADE.test_data), again.predict_all(MADE.test_data), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_factors_that_make_no_sense_are_refused():
    good = Spread(*np.array([[1.0], [1.2], [0.1], [0.5]]))
    good.check(1)
    for name, value in {
        "mean": [np.nan],
        "variance": [0.5],
        "scale": [[-1.0]],
        "tail": [-0.1],
    }.items():
        with pytest.raises(ValueError, match=name):
            replace(good, **{name: np.array(value)}).check(1)
