"""Integrals of the logistic sigmoid against a Gaussian, accurate in both tails.

Every integral is split at zero. On either side the sigmoid is an alternating power series in
exp(-|f|), whose terms integrate in closed form (a scaled complementary error function), and the
alternating sum is accelerated (Cohen, Rodriguez Villegas and Zagier, 2000). Twenty terms give
about fourteen digits for every mean and variance, relative to the value itself, so the tails
need no special case. No quadrature nodes have to follow the scale of the Gaussian.

Predictions need the probability alone, of very many rows. Unless the Gaussian is wide, that is a
sum over equidistant nodes (the trapezoidal rule), which converges as fast for this integrand and
needs one exponential per node instead of two error functions per term.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr

from polyfid.arrays import Array

_TERMS = 20
_SMALL_SD = 1e-7  # below it the Gaussian is a point mass to machine precision


def _alternating_weights(n: int) -> Array:
    """Weights w such that sum_k w_k a_k = sum_k (-1)^k a_k for totally monotone a."""
    d = (3.0 + np.sqrt(8.0)) ** n
    d = (d + 1.0 / d) / 2.0
    b, c = -1.0, -d
    weights = np.empty(n)
    for k in range(n):
        c = b - c
        weights[k] = c / d
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1.0))
    return weights


_WEIGHTS = _alternating_weights(_TERMS)
_K = np.arange(_TERMS, dtype=float)
_FEW = 13  # terms where only the probability itself is wanted, to nine digits
_FEW_WEIGHTS = _alternating_weights(_FEW)
_CHUNK = 1 << 15  # terms at a time, so that they stay in cache


def _trapezoidal_rule(s: float) -> tuple[Array, Array]:
    """Nodes z and weights w: E sigmoid(m + s z) = w @ sigmoid(m + s z), z ~ N(0, 1), for m <= 0.

    To nine digits, for all standard deviations up to s. The step goes by the poles of the sigmoid,
    at -m +- pi i. The integrand peaks between 0 and s and falls off faster than the density.
    """
    step, reach = 0.8 / max(s + 0.2, 1.15), 6.4
    z = step * np.arange(-np.ceil(reach / step), np.ceil((reach + s) / step) + 1.0)
    return z, step / np.sqrt(2.0 * np.pi) * np.exp(-0.5 * z * z)


_WIDTHS = (1.0, 2.0, 3.0, 4.5, 6.5)  # standard deviations up to which a rule serves
_RULES = tuple(map(_trapezoidal_rule, _WIDTHS))


class _Unit(NamedTuple):
    """What integrals are divided by, as their logarithms may be huge numbers.

    Either exp(power m + power^2 s^2 / 2), or exp(-(m/s)^2 / 2) / density with power 0.
    """

    power: Array | float
    density: Array  # exp(-(m/s)^2 / 2) in this unit


def _negative_half(kappa: Array, m: Array, s: Array, unit: _Unit | None = None) -> Array:
    """The integral of exp(kappa f) N(f | m, s^2) over f < 0, in a unit."""
    t = m / s + kappa * s
    power, density = _Unit(0.0, np.exp(-0.5 * (m / s) ** 2)) if unit is None else unit
    out = np.copysign(0.5 * density, t) * erfcx(np.abs(t) * np.sqrt(0.5))
    inside = t < 0.0
    if inside.any():
        # kappa m + kappa^2 s^2 / 2 minus the same with power.
        exponent = (kappa - power) * (m + 0.5 * (kappa + power) * s * s)
        out += np.exp(exponent, where=inside, out=np.zeros_like(t))
    return np.asarray(out)


class SigmoidMoments(NamedTuple):
    """Expectations under f ~ N(mean, variance) of log sigmoid(f), sigmoid(f) and its slope."""

    log_sigmoid: Array
    sigmoid: Array
    slope: Array


def sigmoid_moments(mean: ArrayLike, variance: ArrayLike) -> SigmoidMoments:
    """E log sigmoid(f), E sigmoid(f) and E sigmoid'(f) for f ~ N(mean, variance)."""
    m, v = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    s = np.maximum(np.sqrt(np.maximum(v, 0.0)), _SMALL_SD)
    k = (_K + 1.0)[:, None]
    left = _negative_half(k, m, s)
    right = _negative_half(k, -m, s)
    both = left + right
    z = m / s
    below = m * ndtr(-z) - s * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return SigmoidMoments(
        log_sigmoid=below - (_WEIGHTS / (_K + 1.0)) @ both,
        sigmoid=np.clip(ndtr(z) + _WEIGHTS @ (left - right), 0.0, 1.0),
        slope=np.maximum((_WEIGHTS * (_K + 1.0)) @ both, 0.0),
    )


def log_expected_sigmoid(mean: ArrayLike, variance: ArrayLike) -> Array:
    """Logarithm of E sigmoid(f) for f ~ N(mean, variance), exact in the tails."""
    return tilted_sigmoid(mean, variance).log_z


def expected_sigmoid(mean: ArrayLike, variance: ArrayLike) -> Array:
    """E sigmoid(f) for f ~ N(mean, variance): the predictive probability of the positive class.

    The smaller of it and its complement is accurate to nine digits.
    """
    return _expected(mean, variance, slope=False)[0]


def expected_sigmoid_and_slope(mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
    """E sigmoid(f) and E sigmoid'(f), which is accurate to seven digits, at the price of one."""
    return _expected(mean, variance, slope=True)


def _expected(mean: ArrayLike, variance: ArrayLike, slope: bool) -> tuple[Array, Array]:
    """E sigmoid(f) and, if asked for, E sigmoid'(f)."""
    means, variances = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    away, spread = -np.abs(means.ravel()), np.sqrt(np.maximum(variances.ravel(), 0.0))
    both = np.empty((2, means.size))
    rule = np.searchsorted(_WIDTHS, spread)
    for number in np.unique(rule).tolist():
        rows = np.flatnonzero(rule == number)
        size = _CHUNK // (len(_RULES[number][0]) if number < len(_RULES) else 2 * _FEW)
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            both[: 1 + slope, chunk] = _smaller(away[chunk], spread[chunk], number, slope)
    smaller, slopes = both.reshape(2, *means.shape)
    return np.where(means > 0.0, 1.0 - smaller, smaller), slopes


def _smaller(m: Array, s: Array, rule: int, slope: bool) -> list[Array]:
    """E sigmoid(f) and E sigmoid'(f) for means m <= 0 by a trapezoidal rule or by the series."""
    if rule < len(_RULES):
        z, weights = _RULES[rule]
        f = np.multiply.outer(z, s)
        f += m
        odds = np.exp(f, out=f)
        p = odds / (1.0 + odds)
        return [weights @ p, weights @ (p * (1.0 - p))] if slope else [weights @ p]
    k = _K[1 : _FEW + 1, None]
    left, right = _negative_half(k, m, s), _negative_half(k, -m, s)
    smaller = ndtr(m / s) + _FEW_WEIGHTS @ (left - right)
    return [smaller, (_FEW_WEIGHTS * k[:, 0]) @ (left + right)] if slope else [smaller]


class Tilted(NamedTuple):
    """log Z of a Gaussian times sigmoid^power, and its first two derivatives in the mean."""

    log_z: Array
    first: Array
    second: Array


def tilted_sigmoid(mean: ArrayLike, variance: ArrayLike, power: ArrayLike = 1.0) -> Tilted:
    """Moments of N(f | mean, variance) sigmoid(f)^power for 0 < power <= 1."""
    m, v = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    s = np.maximum(np.sqrt(np.maximum(v, 0.0)), _SMALL_SD)
    # (1 + x)^-p = sum_k (-1)^k (p)_k / k! x^k, and (p)_k / k! is again totally monotone.
    p = np.atleast_1d(np.asarray(power, float))
    growth = np.ones((_TERMS, len(p)))
    np.cumprod((p + _K[:-1, None]) / (_K[1:, None]), axis=0, out=growth[1:])
    weights = growth * _WEIGHTS[:, None]
    left_k, right_k = p + _K[:, None], _K[:, None]
    inside = m + p * s * s < 0.0
    # A unit for the tails: Phi(m / s) where m is negative, one elsewhere.
    z = np.minimum(m / s, 0.0)
    log_unit = np.where(inside, p * (m + 0.5 * p * s * s), log_ndtr(z))
    log_unit = np.where(m < 0.0, log_unit, 0.0)
    # Phi(z) = exp(-z^2 / 2) erfcx(-z / sqrt 2) / 2.
    outside = np.where(m < 0.0, 2.0 / erfcx(-z * np.sqrt(0.5)), np.exp(-0.5 * (m / s) ** 2))
    density = np.where(inside, np.exp(-0.5 * (m / s + p * s) ** 2), outside)
    unit = _Unit(np.where(inside, p, 0.0), density)
    left = weights * _negative_half(left_k, m, s, unit)
    right = weights * _negative_half(right_k, -m, s, unit)
    z0 = left.sum(0) + right.sum(0)
    z1 = (left_k * left).sum(0) - (right_k * right).sum(0)
    z2 = (left_k**2 * left).sum(0) + (right_k**2 * right).sum(0)
    # Differentiating each half adds nothing at zero, where both agree in value and slope.
    first = z1 / z0
    return Tilted(log_unit + np.log(z0), first, np.minimum(z2 / z0 - first**2, 0.0))
