"""What all combinations of the parts promise: exact gradients, regression, plain formulas."""

import numpy as np
import pytest
from families import (
    LOG_CONCAVE,
    NOISY,
    NOISY_LABELS,
    PRIORS,
    SMOOTH,
    assert_gradient,
    assert_gradient_along_a_direction,
    contradicted_rows,
    converged,
    dense_covariance,
    differences,
    every_combination,
    every_kernel,
    every_prior,
    make_points,
    make_rows,
)
from scipy.stats import multivariate_normal
from tolerances import GRADIENT, IDENTITY

from polyfid.inference import SCHEMES
from polyfid.inference.posterior import Posterior
from polyfid.kernels import RBF, White
from polyfid.learning.evidence import Evidence
from polyfid.model import prior as prior_module
from polyfid.model.numbers import TYPICAL, Gaussian, NumberScale
from polyfid.model.prior import Autoregressive, Coregional, tiles
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints


def make_evidence(prior, scheme, likelihood="logit"):
    # EP has no fractions of labels that went through a channel.
    whole = scheme == "ep" and likelihood not in LOG_CONCAVE
    weights = (1.0, 2.0, 2.5) if whole else (0.3, 1.0, 2.0, 2.5)
    rows = make_rows(prior, likelihood, 12, weights)
    return tight(prior, rows, scheme)


def tight(prior, rows, scheme):
    return Evidence(prior, rows.likelihood, rows.points, SCHEMES[scheme], tol=1e-10, max_iter=500)


# ------------------------------------------------------------------------- gradient of evidence


@every_combination
@every_prior
@every_kernel([*SMOOTH, *NOISY, "wrapped noise"])
def test_evidence_gradient_along_a_direction(kernel, make_prior, scheme, likelihood):
    assert_gradient_along_a_direction(make_evidence(make_prior(kernel), scheme, likelihood))


@every_combination
@every_prior
def test_evidence_gradient_of_each_parameter(make_prior, scheme, likelihood, monkeypatch):
    monkeypatch.setattr(prior_module, "TILE_ELEMENTS", 1)  # many tiles
    assert_gradient(make_evidence(make_prior(1.5 * RBF(1.1) + White(0.2)), scheme, likelihood))


@pytest.mark.parametrize("scheme", ["ep", "variational"])
def test_evidence_gradient_with_negative_sites(scheme):
    evidence = tight(*contradicted_rows(), scheme)
    assert evidence.fixed(evidence.theta)[2].belief.sites.w.min() < -1e-3
    assert_gradient(evidence)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("scale", [1e-3, 100.0])
def test_evidence_gradient_far_from_typical(scheme, scale):
    # At 100 whole steps overshoot near the end by less than the merit can tell from rounding.
    assert_gradient(make_evidence(PRIORS["two levels"](scale * RBF(1.1)), scheme))


@pytest.mark.parametrize("likelihood", NOISY_LABELS)
def test_laplace_refuses_label_noise(likelihood):
    prior = PRIORS["two levels"](RBF(1.1))
    evidence = make_evidence(prior, "laplace", likelihood)
    with pytest.raises(ValueError, match=r'label noise.*use inference="ep" or .*"variational"'):
        evidence(evidence.theta)
    with pytest.raises(ValueError, match="Laplace"):
        evidence.likelihood.derivatives(np.zeros(12))


def test_ep_refuses_fractions_of_noisy_labels():
    prior = PRIORS["two levels"](RBF(1.1))
    evidence = tight(prior, make_rows(prior, "flip rates", 12, [0.5]), "ep")
    with pytest.raises(ValueError, match=r'sample_weight below 1.*use inference="variational"'):
        evidence(evidence.theta)


def test_gradient_needs_to_be_asked_for():
    evidence = make_evidence(PRIORS["two levels"](RBF(1.1)), "laplace")
    assert evidence(evidence.theta, gradient=False).gradient.size == 0
    covariance, _, fixed = evidence.fixed(evidence.theta)
    with pytest.raises(RuntimeError, match="gradient=True"):
        covariance.pull(fixed.belief, None)


# ---------------------------------------------------------- a Gaussian likelihood is regression


#: The scale that leaves numbers as they are.
AS_GIVEN = NumberScale(0.0, TYPICAL)


@pytest.mark.parametrize("weights", [[1.0], [0.25, 1.0, 3.0]], ids=["plain", "weighted"])
@every_prior
@pytest.mark.parametrize("scheme", SCHEMES)
def test_gaussian_likelihood_is_exact_regression(scheme, make_prior, weights):
    n, noise = 15, 0.3  # a variance
    prior = make_prior(1.5 * RBF(1.1) + White(0.1))
    points, new = make_points(n, prior.n_levels), make_points(7, prior.n_levels, seed=5)
    y, weight = np.random.RandomState(2).normal(0.0, 1.5, n), np.resize(weights, n)
    likelihood = Gaussian(y, weight, 0, AS_GIVEN, np.sqrt(noise), free=False)
    evidence = tight(prior, LabelledPoints(points, likelihood), scheme)
    value = converged(evidence(evidence.theta))
    belief = evidence.fixed(evidence.theta)[2].belief

    K = dense_covariance(prior, points, points, same=True)
    S = K + np.diag(noise / weight)
    # Of w repeated measurements: N(y | f, s)^w = N(y | f, s/w) (2 pi s)^(-w/2) (2 pi s/w)^(1/2).
    extra = 0.5 * (np.log(2.0 * np.pi * noise / weight) - weight * np.log(2.0 * np.pi * noise))
    log_z = multivariate_normal(np.zeros(n), S).logpdf(y) + extra.sum()
    assert value.value == pytest.approx(log_z, rel=IDENTITY)

    def check(mean, variance, k, own):
        exact = np.diag(own - k @ np.linalg.solve(S, k.T))
        np.testing.assert_allclose(mean, k @ np.linalg.solve(S, y), rtol=0.0, atol=IDENTITY)
        np.testing.assert_allclose(variance, exact, rtol=IDENTITY, atol=IDENTITY)

    check(belief.mean, belief.variance, K, K)
    moments = Posterior.from_belief(prior, points, belief).mean_and_variance(new)
    own = dense_covariance(prior, new, new, same=True)
    check(*moments, dense_covariance(prior, new, points), own)

    # d log Z / d theta = tr((a a^T - S^-1) dK / d theta) / 2, a = S^-1 y.
    a = np.linalg.solve(S, y)
    G = 0.5 * (np.outer(a, a) - np.linalg.inv(S))

    def weighted(theta):
        return np.sum(G * dense_covariance(prior.with_theta(theta), points, points, same=True))

    expected = differences(weighted, prior.theta)
    atol = 1e-2 * GRADIENT * np.abs(expected).max()
    np.testing.assert_allclose(value.gradient, expected, rtol=GRADIENT, atol=atol)


# ----------------------------------------------------------------------- the prior and its tiles


@pytest.mark.parametrize("kind", [Autoregressive, Coregional])
def test_fixed_loadings_are_not_in_theta(kind):
    kernels = (1.5 * RBF(1.1), RBF(0.7))
    given = (0.8,) if kind is Autoregressive else [[1.0, 0.2], [0.5, -0.7]]
    fixed, free = kind(kernels, given, "fixed"), kind(kernels, given)
    cut = np.size(given)
    assert len(fixed.theta) == len(fixed.bounds) == len(fixed.theta_names) == len(free.theta) - cut
    gradients = [make_evidence(p, "laplace")(p.theta).gradient for p in (fixed, free)]
    np.testing.assert_allclose(gradients[0], gradients[1][cut:], rtol=IDENTITY)
    changed = fixed.with_theta(np.log([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(changed.loadings, fixed.loadings)
    assert changed.kernels[1].length_scale == pytest.approx(3.0)
    moved = free.with_theta(free.theta + 0.1)
    np.testing.assert_allclose(moved.theta, free.theta + 0.1)
    assert (moved.loadings != free.loadings).any()


@pytest.mark.parametrize("n", [1, 2, 47, 200])
@pytest.mark.parametrize("present", [[0, 1, 2], [0, 2], [1]], ids=["all", "gap", "one"])
def test_covariance_by_tiles_is_the_plain_formula(n, present, monkeypatch):
    monkeypatch.setattr(prior_module, "TILE_ELEMENTS", 64)
    rng = np.random.RandomState(n)
    points = Points(rng.uniform(-2, 2, (n, 3)), np.sort(rng.choice(present, n)))
    prior = Autoregressive((1.3 * RBF(1.0) + White(0.2), RBF(0.5), 2.0 * RBF(2.0)), (0.8, -0.6))
    # f_0 = g_0, f_1 = 0.8 g_0 + g_1, f_2 = -0.6 (0.8 g_0 + g_1) + g_2.
    loadings = np.array([[1.0, 0.0, 0.0], [0.8, 1.0, 0.0], [-0.48, -0.6, 1.0]])
    np.testing.assert_allclose(prior.loadings, loadings, rtol=1e-15)

    parts = tiles(points)
    assert n < 200 or len(parts) > 10
    covered = np.zeros((n, n), dtype=int)
    for tile in parts:
        covered[tile.rows, tile.cols] += 1
        assert set(points.level[tile.rows]) == {tile.levels[0]}
        assert set(points.level[tile.cols]) == {tile.levels[1]}
    assert (covered[np.triu_indices(n)] == 1).all()

    expected = dense_covariance(prior, points, points, same=True)
    for K in (prior.covariance(parts), prior.linearise(parts).K):
        np.testing.assert_allclose(np.triu(K), np.triu(expected), rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(prior.diagonal(points), np.diag(expected), rtol=1e-13)
    # Between two sets of points no row is the same, so that there is no noise.
    other = Points(rng.uniform(-2, 2, (5, 3)), np.array([0, 0, 1, 2, 2]))
    cross = dense_covariance(prior, points, other)
    np.testing.assert_allclose(prior.cross_covariance(points, other), cross, rtol=0.0, atol=1e-13)


def test_wrong_number_of_loadings_is_refused():
    with pytest.raises(ValueError, match="rho needs 1 values for 2 levels, got 2"):
        Autoregressive((RBF(), RBF()), (1.0, 2.0))
    with pytest.raises(ValueError, match=r"\(n_levels, 2\)"):
        Coregional((RBF(), RBF()), [[1.0], [2.0]])
