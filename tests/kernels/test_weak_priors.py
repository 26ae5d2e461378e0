"""What kernels hold plausible for their parameters before they see a label."""

import numpy as np
import pytest
from tolerances import IDENTITY

from polyfid.kernels import RBF, Categorical, Constant, Linear, Matern52
from polyfid.kernels.leaf import FREE_SD, OWN_SD, SHARED_SD

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
X /= X.std(axis=0)
SPREAD = np.array([0.1, 1.0, 5.0, 20.0])


def weak(kernel, x):
    return kernel.for_features(x.shape[1]).weak_prior(x)


def covariance(prior):
    return np.linalg.inv(prior.precision)


@pytest.mark.parametrize("kernel", [RBF(), Matern52(), Linear()])
def test_a_shared_length_scale_is_the_length_of_typical_distances(kernel):
    # sqrt(d) of standardised columns; in general the root of the sum of their variances.
    assert weak(kernel, X).mean[0] == pytest.approx(np.log(2.0))
    expected = 0.5 * np.log(np.square(SPREAD).sum())
    assert weak(kernel, X * SPREAD).mean[0] == pytest.approx(expected)
    assert weak(kernel, X).sd[0] == pytest.approx(SHARED_SD)


@pytest.mark.parametrize(("ard", "own"), [(True, OWN_SD), ("free", FREE_SD)])
def test_length_scales_follow_the_spread_of_columns_and_move_together(ard, own):
    prior = weak(RBF(ard=ard), X * SPREAD)
    np.testing.assert_allclose(prior.mean, np.log(2.0 * SPREAD))
    assert prior.known.all()
    K = covariance(prior)
    np.testing.assert_allclose(np.diag(K), SHARED_SD**2 + own**2)
    np.testing.assert_allclose(K[~np.eye(4, dtype=bool)], SHARED_SD**2)


@pytest.mark.parametrize("ard", [False, True, "free"])
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-3, 1e3, 1e200, 1e300])
def test_the_unit_of_the_features_only_shifts_the_mean(ard, size):
    plain, other = (weak(RBF(ard=ard), x) for x in (X * SPREAD, X * SPREAD * size))
    np.testing.assert_allclose(other.mean, plain.mean + np.log(size), rtol=IDENTITY)
    np.testing.assert_allclose(other.precision, plain.precision, rtol=IDENTITY)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
def test_constant_columns(value):
    assert weak(RBF(), np.full((7, 3), value)).mean[0] == pytest.approx(0.5 * np.log(3.0))
    wider = np.column_stack([X * SPREAD, np.full(50, value)])
    # They add nothing to distances, and have a length-scale of no consequence.
    assert weak(RBF(), wider).mean[0] == pytest.approx(weak(RBF(), X * SPREAD).mean[0])
    for ard in (True, "free"):
        mean = weak(RBF(ard=ard), wider).mean
        np.testing.assert_allclose(mean[:4], np.log(np.sqrt(5.0) * SPREAD))
        assert mean[4] == pytest.approx(0.5 * np.log(5.0))


@pytest.mark.parametrize("ard", [False, True, "free"])
def test_codes_have_no_spread(ard):
    codes = RNG.integers(0, 3, (50, 4)).astype(float)
    plain, other = (weak(Categorical(ard=ard), x) for x in (codes, 1000.0 * codes))
    np.testing.assert_allclose(plain.mean, np.log(4.0))
    np.testing.assert_array_equal(plain.mean, other.mean)
    np.testing.assert_array_equal(plain.precision, other.precision)


def test_kernels_of_a_sum_keep_their_priors():
    kernel = Constant(2.0) * RBF(columns=(3, 1), ard="free") + Linear()
    prior = weak(kernel, X * SPREAD)
    np.testing.assert_allclose(prior.mean[:3], [1.5, *np.log(np.sqrt(2.0) * SPREAD[[3, 1]])])
    K = covariance(prior)
    np.testing.assert_allclose(np.diag(K), [2.5**2, *[SHARED_SD**2 + FREE_SD**2] * 2, SHARED_SD**2])
    np.testing.assert_allclose(K[0, 1:], 0.0, atol=IDENTITY)
