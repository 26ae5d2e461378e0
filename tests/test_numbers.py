"""Likelihoods of numbers: their scale, their integrals, and exact regression."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.preprocessing import PowerTransformer
from tolerances import IDENTITY

from polyfid.model.likelihoods import Logit, Parts
from polyfid.model.numbers import DEGREES, TYPICAL, Gaussian, NumberScale, Student

AS_GIVEN = NumberScale(0.0, TYPICAL)
VALUES = np.array([-8.0, -1.0, -1e-9, 0.0, 0.3, 2.0, 40.0])


def one(kind, value, noise=0.5, weight=1.0, scale=AS_GIVEN, **options):
    return kind(np.array([value]), np.array([weight]), 0, scale, noise, **options)


# ------------------------------------------------------------------------------------- the scale


@pytest.mark.parametrize("power", [0.0, 1e-4, 0.4, 1.0, 1.7, 2.0])
def test_scaled_numbers_are_those_of_yeo_and_johnson(power):
    scale = NumberScale(0.5, 2.0, power)
    theirs = PowerTransformer(standardize=False).fit(VALUES[:, None])
    theirs.lambdas_ = [power]
    expected = TYPICAL * theirs.transform((VALUES[:, None] - 0.5) / 2.0)[:, 0]
    np.testing.assert_allclose(scale(VALUES), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scale.back(scale(VALUES)), VALUES, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0, 1.7, 2.0])
def test_slopes_of_the_scale_are_those_of_differences(power):
    scale = NumberScale(0.5, 2.0, power)
    values, h = np.array([-8.0, -1.0, 0.3, 2.0, 40.0]), 1e-6
    slope = (scale(values + h) - scale(values - h)) / (2.0 * h)
    slope *= 2.0 / TYPICAL  # without shift and factor
    np.testing.assert_allclose(np.exp(scale.log_slope(values)), slope, rtol=1e-7)
    # One-sided at the bounds of the power.
    low, high = max(power - h, 0.0), min(power + h, 2.0)
    up, down = (NumberScale(0.5, 2.0, p) for p in (high, low))
    by_value, by_slope = scale.by_power(values)
    for found, of in ((by_value, NumberScale.__call__), (by_slope, NumberScale.log_slope)):
        expected = (of(up, values) - of(down, values)) / (high - low)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_numbers_are_centred_and_scaled_by_weight():
    value, weight = np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 3.0])
    repeated = np.repeat(value, [1, 2, 3])
    scale = NumberScale.of(value, weight)
    assert scale.centre == pytest.approx(repeated.mean())
    assert scale.spread == pytest.approx(repeated.std())
    assert np.std(scale(repeated)) == pytest.approx(TYPICAL)


@pytest.mark.parametrize("value", [[], [3.0], [1e200, 1e200]])
def test_numbers_without_a_spread_have_one(value):
    value = np.array(value)
    scale = NumberScale.of(value, np.ones(len(value)))
    assert scale.spread == 1.0
    assert np.isfinite(scale(value)).all()


def test_moments_of_warped_numbers_are_those_of_draws():
    scale = NumberScale(3.0, 2.0, 0.3)
    mean, variance = scale.moments(np.array([1.0]), np.array([0.8]))
    draws = scale.back(1.0 + np.sqrt(0.8) * np.random.RandomState(0).standard_normal(400_000))
    assert mean[0] == pytest.approx(draws.mean(), rel=0.005)
    assert variance[0] == pytest.approx(draws.var(), rel=0.03)


# ---------------------------------------------------------------------------------- the integrals


@pytest.mark.parametrize("kind", [Gaussian, Student])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_densities_integrate_to_one(kind, power):
    # At a point mass of the latent value, over all numbers.
    scale = NumberScale(1.0, 2.0, power)

    def density(value):
        at = np.array([0.7]), np.array([0.0])
        unit = TYPICAL / 2.0  # densities are per unit of the latent scale
        return unit * float(np.exp(one(kind, value, scale=scale).tilted(*at).log_z[0]))

    edges = [-1e5, -100.0, -10.0, 0.0, 3.0, 10.0, 100.0, 1e5]
    total = sum(quad(density, a, b, limit=500)[0] for a, b in pairwise(edges))
    assert total == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize("gap", [0.0, 0.7, 5.0, 60.0])
@pytest.mark.parametrize("variance", [1e-4, 0.5, 30.0])
def test_student_by_quadrature(gap, variance):
    noise, mean = 0.5, gap
    likelihood = one(Student, 0.0, noise)
    sd = np.sqrt(variance)

    def log_p(f):
        return student_t(DEGREES, scale=noise).logpdf(-f)

    def integral(function):
        low, high = mean - 12.0 * sd, mean + 12.0 * sd
        edges = np.unique(np.clip([low, -3.0, 0.0, 3.0, high], low, high))
        return sum(
            quad(lambda f: function(f) * norm(mean, sd).pdf(f), a, b, epsabs=0.0, limit=400)[0]
            for a, b in pairwise(edges)
        )

    at = np.array([mean]), np.array([variance])
    expected = likelihood.expectations(*at)
    assert expected.value[0] == pytest.approx(integral(log_p), rel=1e-8)
    z = integral(lambda f: np.exp(log_p(f)))
    assert likelihood.tilted(*at).log_z[0] == pytest.approx(np.log(z), rel=1e-8)
    h = 1e-4 * max(sd, noise)
    for of in ("expectations", "tilted"):
        value, first, second = getattr(likelihood, of)(*at)
        up, down = (getattr(likelihood, of)(at[0] + s, at[1]) for s in (h, -h))
        assert first[0] == pytest.approx((up[0][0] - down[0][0]) / (2 * h), rel=1e-5, abs=1e-7)
        assert second[0] == pytest.approx((up[1][0] - down[1][0]) / (2 * h), rel=1e-5, abs=1e-7)
        assert np.isfinite(value[0])


def test_an_outlier_pulls_little_on_a_student_and_much_on_a_gaussian():
    at = np.zeros(1), np.ones(1)
    pulls = [one(kind, 50.0).tilted(*at).first[0] for kind in (Gaussian, Student)]
    assert pulls[0] > 30.0
    assert 0.0 < pulls[1] < 0.2


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_a_gaussian_number_is_its_own_site(weight):
    likelihood = one(Gaussian, 1.3, 0.4, weight)
    assert likelihood.is_exact.all()
    value, first, second, third = likelihood.derivatives(np.array([0.9]))
    assert value[0] == pytest.approx(weight * norm(1.3, 0.4).logpdf(0.9), rel=IDENTITY)
    assert -second[0] == pytest.approx(weight / 0.4**2, rel=IDENTITY)
    assert first[0] - second[0] * 0.9 == pytest.approx(weight * 1.3 / 0.4**2, rel=IDENTITY)
    assert third[0] == 0.0


def test_noise_is_given_in_squared_units_of_the_numbers():
    value, weight = np.array([1.0, 5.0, 9.0]), np.ones(3)
    scale = NumberScale.of(value, weight)
    for kind, factor in ((Gaussian, 1.0), (Student, DEGREES / (DEGREES - 2.0))):
        likelihood = kind(value, weight, 0, scale, 0.3)
        in_units = 0.3 * scale.spread / TYPICAL
        assert likelihood.noise_variance == pytest.approx(factor * in_units**2)


# ---------------------------------------------------------------------------------------- parts


def test_parts_keep_their_rows_apart():
    rng = np.random.RandomState(0)
    part = np.array([0, 1, 1, 0, 2, 1, 0])
    logit = Logit(np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, 3.0]))
    first = Gaussian(np.array([5.0, 6.0, 7.0]), np.array([4.0, 5.0, 6.0]), 0, AS_GIVEN, 0.5)
    second = Gaussian(np.array([8.0]), np.array([7.0]), 1, AS_GIVEN, 0.7)
    parts = Parts((logit, first, second), part)
    assert parts.weight.tolist() == [1.0, 4.0, 5.0, 2.0, 7.0, 6.0, 3.0]
    assert parts.y.tolist() == [1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0]
    assert parts.is_number.tolist() == (part > 0).tolist()
    assert parts.numbers == {0: first, 1: second}
    assert parts.labels is logit
    mean, variance = rng.standard_normal(7), rng.uniform(size=7)
    whole = parts.expectations(mean, variance)
    order = rng.permutation(7)[:5]
    some = parts.take(order).expectations(mean[order], variance[order])
    for a, b in zip(whole, some, strict=True):
        np.testing.assert_array_equal(a[order], b)
    own = first.expectations(mean[part == 1], variance[part == 1])
    np.testing.assert_array_equal(whole.value[part == 1], own.value)
    doubled = parts.times(np.full(7, 2.0)).expectations(mean, variance)
    np.testing.assert_allclose(doubled.value, 2.0 * whole.value)
    with pytest.raises(ValueError, match="as often as it has rows"):
        Parts((logit, first), part)
