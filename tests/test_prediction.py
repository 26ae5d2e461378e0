"""Posteriors at new points, exact and sparse: plain formulas, batches, copies."""

import pickle

import numpy as np
import pytest
from families import (
    KERNELS,
    PRIORS,
    dense_covariance,
    every_combination,
    every_kernel,
    inducing_at_rows,
    make_points,
    make_rows,
)
from tolerances import IDENTITY

from polyfid.inference import SCHEMES
from polyfid.inference import inducing as inducing_module
from polyfid.inference import posterior as posterior_module
from polyfid.inference.exact import ExactCovariance, Sites
from polyfid.inference.inducing import SparseBelief
from polyfid.inference.linalg import SINGLE_ERROR
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.kernels import RBF, Linear, Matern12, White
from polyfid.learning.evidence import Evidence
from polyfid.model.logistic import expected_sigmoid, log_expected_sigmoid
from polyfid.model.prior import Autoregressive, Coregional
from polyfid.rows import Points

N = 20
NOTHING = Points(np.empty((0, 4)), np.empty(0, dtype=np.intp))


def fitted(scheme, likelihood="logit", kernel=None):
    prior = PRIORS["three levels"](2.0 * RBF(1.1) if kernel is None else kernel)
    rows = make_rows(prior, likelihood, N, [1.0, 2.0, 2.5])
    evidence = Evidence(prior, rows.likelihood, rows.points, SCHEMES[scheme], 1e-10, 500)
    covariance, _, fixed = evidence.fixed(evidence.theta)
    return Posterior.from_belief(covariance.prior, rows.points, fixed.belief), fixed.belief


def sparse():
    prior = PRIORS["three levels"](2.0 * RBF(1.1) + White(0.1))
    inducing = inducing_at_rows(make_points(60, 3), prior, 7)
    rng = np.random.RandomState(3)
    F = rng.normal(size=(inducing.total, 30))
    return SparsePosterior(prior, inducing, SparseBelief(F @ F.T, rng.normal(size=len(F))))


POSTERIORS = {
    "exact": lambda: fitted("laplace")[0],
    "exact, negative sites": lambda: fitted("ep", "flip rates")[0],
    "sparse": sparse,
}


@pytest.fixture(params=POSTERIORS)
def posterior(request):
    return POSTERIORS[request.param]()


# ------------------------------------------------------------------------ what all posteriors do


def test_the_ways_to_predict_agree(posterior):
    new = make_points(11, 3, seed=7)
    mean, variance = posterior.mean_and_variance(new)
    joint_mean, covariance = posterior.mean_and_covariance(new)
    np.testing.assert_allclose(posterior.mean(new), mean, rtol=IDENTITY, atol=IDENTITY)
    np.testing.assert_allclose(joint_mean, mean, atol=1e-9)
    np.testing.assert_allclose(np.diag(covariance), variance, atol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    assert [a.shape for a in posterior.mean_and_variance(NOTHING)] == [(0,), (0,)]


def test_two_levels_at_the_same_points(posterior):
    x = make_points(9, 3, seed=7).x
    pair = posterior.pair(x, 0, 2)
    both = Points(np.concatenate([x, x]), np.repeat([0, 2], 9))
    mean, covariance = posterior.mean_and_covariance(both)
    np.testing.assert_allclose(np.concatenate(pair[:2]), mean, atol=1e-9)
    np.testing.assert_allclose(np.concatenate(pair[2:4]), np.diag(covariance), atol=1e-9)
    # The noise of one row at two levels is common to both; two rows have noise of their own.
    noise = posterior.prior.loadings[0, 0] * posterior.prior.loadings[2, 0]
    noise *= 0.1 if isinstance(posterior, SparsePosterior) else 0.0
    np.testing.assert_allclose(pair.covariance, np.diag(covariance[:9, 9:]) + noise, atol=1e-9)


def test_samples_have_the_posterior_mean_and_covariance(posterior):
    new, n_samples = make_points(8, 3, seed=9), 40_000
    mean, covariance = posterior.mean_and_covariance(new)
    samples = posterior.sample(new, n_samples, np.random.RandomState(0))
    assert samples.shape == (8, n_samples)
    sd = np.sqrt(np.diag(covariance))
    z = (samples.mean(axis=1) - mean) / (sd / np.sqrt(n_samples))
    assert np.abs(z).max() < 4.5
    # The standard error of a covariance is sqrt((S_ii S_jj + S_ij^2) / n).
    error = np.cov(samples) - covariance
    z = error / np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / n_samples)
    assert np.abs(z).max() < 4.5


def test_batches_do_not_matter(posterior, monkeypatch):
    new = make_points(300, 3, seed=7)
    whole = posterior.mean_and_variance(new)
    monkeypatch.setattr(inducing_module, "PIECE_ELEMENTS", 1)
    for a, b in zip(whole, posterior.mean_and_variance(new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_copy_carries_no_caches(posterior):
    new = make_points(75, 3, seed=1)
    size = len(pickle.dumps(posterior))
    moments = posterior.mean_and_variance(new)
    copy = pickle.dumps(posterior)
    assert len(copy) == size
    np.testing.assert_array_equal(pickle.loads(copy).mean_and_variance(new), moments)


# ---------------------------------------------------------------------------- exact: plain formulas


@every_combination
@pytest.mark.parametrize("kernel", [2.0 * RBF(1.1), 2.0 * RBF(1.1) + White(0.3)], ids=str)
def test_posterior_is_the_dense_formula(scheme, likelihood, kernel):
    posterior, belief = fitted(scheme, likelihood, kernel)
    prior, points = posterior.prior, posterior.points
    new = make_points(23, 3, seed=9)
    w, nu = belief.sites.w, belief.sites.nu
    K = dense_covariance(prior, points, points, same=True)
    k = dense_covariance(prior, new, points)
    own = dense_covariance(prior, new, new)
    np.fill_diagonal(own, np.diag(dense_covariance(prior, new, new, same=True)))
    # q(z) = N(z | 0, K) exp(nu z - w z^2 / 2): mean K (I + W K)^-1 nu, R = (I + W K)^-1 W.
    inverse = np.linalg.inv(np.eye(N) + w[:, None] * K)
    np.testing.assert_allclose(belief.mean, K @ inverse @ nu, rtol=0.0, atol=1e-9)
    at_rows = np.diag(K - K @ (inverse * w) @ K)
    np.testing.assert_allclose(belief.variance, at_rows, rtol=1e-9)
    log_det = np.linalg.slogdet(np.eye(N) + w[:, None] * K)[1]
    assert belief.log_det == pytest.approx(log_det, rel=1e-10)
    v = np.random.RandomState(0).normal(size=N)
    solved = belief.implicit_solve(v)
    np.testing.assert_allclose(solved, inverse @ v, rtol=0.0, atol=1e-9)
    mean, joint = posterior.mean_and_covariance(new)
    np.testing.assert_allclose(mean, k @ inverse @ nu, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(joint, own - k @ (inverse * w) @ k.T, rtol=0.0, atol=1e-9)


def posterior_of(prior, points):
    rng = np.random.RandomState(5)
    covariance = ExactCovariance(prior, points)
    sites = Sites(rng.uniform(0.1, 0.3, len(points)), rng.standard_normal(len(points)))
    belief = covariance.condition(sites, covariance.prior_belief())
    return Posterior.from_belief(prior, points, belief)


def check(posterior, new):
    """Against covariances from differences, all at once."""
    prior, rows = posterior.prior, posterior.points
    k = dense_covariance(prior, new, rows)
    shrink = posterior.factor.quadratic((k * posterior.root).T)
    mean, variance = posterior.mean_and_variance(new)
    np.testing.assert_allclose(mean, k @ posterior.alpha, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(variance, prior.diagonal(new) - shrink, rtol=1e-10)
    np.testing.assert_array_equal(posterior.mean(new), mean)


PLAIN_PRIORS = {
    "smooth": Autoregressive((2.0 * RBF(1.5), 0.5 * RBF(0.8)), (0.7,)),
    "rough": Autoregressive((Matern12(2.0), 0.5 * Matern12(1.0)), (0.7,)),
    "some columns": Autoregressive(
        (RBF(1.0, columns=(0, 2)) + Linear(2.0), RBF(1.0, columns=(1,))), (0.7,)
    ),
    "ard": Autoregressive((RBF((1.0, 2.0, 3.0, 4.0)), RBF(1.0) + White(0.1)), (0.7,)),
    "levels that share nothing": Autoregressive((RBF(1.0), RBF(1.0)), (0.0,)),
    # The rows whose levels load on the first process are no single slice.
    "three levels": Coregional((RBF(1.0), RBF(2.0)), ((1.0, 0.0), (0.0, 1.0), (-0.5, 0.3))),
}


@pytest.mark.parametrize("prior", PLAIN_PRIORS.values(), ids=PLAIN_PRIORS)
def test_new_points_on_and_next_to_the_rows(prior):
    points = make_points(40, prior.n_levels)
    posterior = posterior_of(prior, points)
    check(posterior, make_points(75, prior.n_levels, seed=1))
    for apart in (0.0, 1e-12, 1e-6, 1e-3):
        check(posterior, Points(points.x + apart, points.level))


@pytest.mark.parametrize("far", [1e4, 1e8, 1e150, 1e300])
def test_one_point_far_away_does_not_blur_the_others(far):
    prior, points, new = PLAIN_PRIORS["rough"], make_points(40, 2), make_points(30, 2, seed=1)
    shift = min(far, 1e6)  # all rows there
    there = posterior_of(prior, Points(points.x + shift, points.level))
    check(there, Points(new.x + shift, new.level))
    new.x[7] = far
    check(posterior_of(prior, points), new)


# -------------------------------------------------------------------- many points: single precision


def in_both(posterior, new, monkeypatch):
    """Moments in double precision, and as if the points were many."""
    exact = posterior.mean_and_variance(new)
    with monkeypatch.context() as patch:
        patch.setattr(posterior_module, "_MANY_POINTS", len(new) - 1)
        mean, variance = posterior.mean_and_variance(new)
    np.testing.assert_array_equal(mean, exact[0])
    assert np.abs(variance - exact[1]).max() <= SINGLE_ERROR
    return mean, exact[1], variance


# scikit-learn's periodic kernel is positive in one column only.
@every_kernel([name for name in KERNELS if "ExpSineSquared" not in repr(KERNELS[name])])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_single_precision_moves_no_probability(kernel, scale, monkeypatch):
    points, new = make_points(150, 3), make_points(400, 3, seed=1)
    new.x[:150] = points.x
    posterior = posterior_of(PRIORS["three levels"](scale * kernel), points)
    mean, *variances = in_both(posterior, new, monkeypatch)
    apart = np.subtract(*(expected_sigmoid(mean, v) for v in variances))
    assert np.abs(apart).max() <= 1e-5
    for signed in (mean, -mean):
        apart = np.subtract(*(log_expected_sigmoid(signed, v) for v in variances))
        assert np.abs(apart).max() <= 1e-4


def test_single_precision_where_it_is_safe(monkeypatch):
    new, points = make_points(400, 2, seed=1), make_points(150, 2)
    for scale, safe in ((1.0, True), (1e4, False)):
        prior = Autoregressive((scale * RBF(1.5), scale * RBF(0.8)), (0.7,))
        _, exact, variance = in_both(posterior_of(prior, points), new, monkeypatch)
        assert (variance != exact).any() == safe
    # Far from the rows a line has a large variance; there are batches with and without such rows.
    monkeypatch.setattr(inducing_module, "PIECE_ELEMENTS", 1)
    new.x[:10] *= 1e3
    posterior = posterior_of(Autoregressive((Linear(2.0), RBF(0.8)), (0.7,)), points)
    _, exact, variance = in_both(posterior, new, monkeypatch)
    assert (variance[:10] == exact[:10]).all()
    assert (variance != exact).any()


def test_single_precision_with_inducing_points(monkeypatch):
    in_both(sparse(), make_points(400, 3, seed=1), monkeypatch)


def test_many_rows_are_predicted_without_an_inverse(monkeypatch):
    monkeypatch.setattr(posterior_module, "_MANY_ROWS", 10)
    check(posterior_of(PLAIN_PRIORS["smooth"], make_points(40, 2)), make_points(75, 2, seed=1))
