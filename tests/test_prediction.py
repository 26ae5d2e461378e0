"""The moments at new points, batch by batch, against covariances from differences, all at once."""

import pickle

import numpy as np
import pytest

from polyfid.inference import posterior as posterior_module
from polyfid.inference.exact import ExactCovariance
from polyfid.inference.posterior import Posterior
from polyfid.inference.sites import Sites
from polyfid.kernels import RBF, Linear, Matern12, Pairs, White
from polyfid.model.prior import Autoregressive, Coregional
from polyfid.rows import Points

N_FEATURES = 4


def make_points(n, seed, n_levels=2, scale=1.0):
    rng = np.random.RandomState(seed)
    level = np.sort(rng.randint(n_levels, size=n))
    return Points(scale * rng.standard_normal((n, N_FEATURES)), level)


def make_posterior(kernels, points):
    rng = np.random.RandomState(5)
    prior = Autoregressive(kernels, (0.7,) * (len(kernels) - 1))
    covariance = ExactCovariance(prior, points)
    n = len(points)
    sites = Sites(rng.uniform(0.1, 0.3, n), rng.standard_normal(n))
    belief = covariance.condition(sites, covariance.prior_belief())
    return Posterior.from_belief(prior, points, belief)


def expected(posterior, new):
    prior, rows = posterior.prior, posterior.points
    A, pairs = prior.loadings, Pairs(new.x, rows.x)
    k = sum(
        np.outer(A[new.level, s], A[rows.level, s]) * kernel.evaluate(pairs)
        for s, kernel in enumerate(prior.kernels)
    )
    shrink = posterior.factor.quadratic((k * posterior.root).T)
    return k @ posterior.alpha, posterior.prior.diagonal(new) - shrink


def check(posterior, new, rtol=1e-10):
    mean, variance = posterior.mean_and_variance(new)
    want_mean, want_variance = expected(posterior, new)
    np.testing.assert_allclose(mean, want_mean, rtol=0.0, atol=rtol)
    np.testing.assert_allclose(variance, want_variance, rtol=rtol)
    np.testing.assert_array_equal(posterior.mean(new), mean)


KERNELS = {
    "smooth": (2.0 * RBF(1.5), 0.5 * RBF(0.8)),
    "rough": (Matern12(2.0), 0.5 * Matern12(1.0)),
    "some columns": (RBF(1.0, columns=(0, 2)) + Linear(2.0), RBF(1.0, columns=(1,))),
    "one a column": (RBF((1.0, 2.0, 3.0, 4.0)), RBF(1.0) + White(0.1)),
}


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("batch", [1, 500, 1 << 16])
def test_batches_agree_with_all_at_once(kernels, batch, monkeypatch):
    monkeypatch.setattr(posterior_module, "BATCH_ELEMENTS", batch)
    check(make_posterior(kernels, make_points(40, 0)), make_points(75, 1))


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
def test_new_points_on_and_next_to_the_rows(kernels):
    points = make_points(40, 0)
    posterior = make_posterior(kernels, points)
    for apart in (0.0, 1e-12, 1e-6, 1e-3):
        check(posterior, Points(points.x + apart, points.level))


@pytest.mark.parametrize("far", [1e4, 1e8, 1e150, 1e300])
def test_one_point_far_away_does_not_blur_the_others(far):
    posterior = make_posterior(KERNELS["rough"], make_points(40, 0))
    new = make_points(30, 1)
    new.x[7] = far
    check(posterior, new)


def test_rows_far_from_the_origin():
    points, new = make_points(40, 0), make_points(30, 1)
    there = make_posterior(KERNELS["rough"], Points(points.x + 1e6, points.level))
    check(there, Points(new.x + 1e6, new.level))


def test_levels_that_share_nothing():
    points = make_points(30, 0)
    rng = np.random.RandomState(5)
    prior = Autoregressive((RBF(1.0), RBF(1.0)), (0.0,))
    covariance = ExactCovariance(prior, points)
    sites = Sites(np.full(30, 0.2), rng.standard_normal(30))
    belief = covariance.condition(sites, covariance.prior_belief())
    check(Posterior.from_belief(prior, points, belief), make_points(20, 1))


def test_levels_on_both_sides_of_one_that_shares_nothing_with_them():
    # The rows that have a part in the first process are no single slice.
    kernels, points, new = (RBF(1.0), RBF(2.0)), make_points(30, 0, 3), make_points(20, 1, 3)
    prior = Coregional(kernels, ((1.0, 0.0), (0.0, 1.0), (-0.5, 0.3)))
    sites = Sites(np.full(30, 0.2), np.random.RandomState(5).standard_normal(30))
    covariance = ExactCovariance(prior, points)
    belief = covariance.condition(sites, covariance.prior_belief())
    check(Posterior.from_belief(prior, points, belief), new)


def test_many_rows_are_predicted_without_an_inverse(monkeypatch):
    monkeypatch.setattr(posterior_module, "_MANY_ROWS", 10)
    check(make_posterior(KERNELS["smooth"], make_points(40, 0)), make_points(75, 1))


def test_a_copy_carries_no_more_than_the_posterior_itself():
    posterior, new = make_posterior(KERNELS["smooth"], make_points(40, 0)), make_points(75, 1)
    size = len(pickle.dumps(posterior))
    moments = posterior.mean_and_variance(new)
    copy = pickle.dumps(posterior)
    assert len(copy) == size
    np.testing.assert_array_equal(pickle.loads(copy).mean_and_variance(new), moments)


def test_predicting_leaves_the_posterior_and_the_points_alone():
    posterior, new = make_posterior(KERNELS["smooth"], make_points(40, 0)), make_points(75, 1)
    kept = new.x.copy(), posterior.points.x.copy(), posterior.alpha.copy()
    first = posterior.mean_and_variance(new)
    for before, now in zip(kept, (new.x, posterior.points.x, posterior.alpha), strict=True):
        np.testing.assert_array_equal(before, now)
    np.testing.assert_array_equal(first, posterior.mean_and_variance(new))
