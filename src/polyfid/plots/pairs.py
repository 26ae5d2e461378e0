"""The joint posterior of two levels at the same points, and how probably their classes differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, owens_t
from scipy.stats import qmc

from polyfid.arrays import Array
from polyfid.inference.posterior import prior_pair
from polyfid.learning.mixture import Member, Mixture

#: Elements of the largest temporary array.
_BATCH_ELEMENTS = 1 << 20
#: Draws a point with more than two classes, the same for all points so that maps are smooth.
_DRAWS = 1024


class Pair(NamedTuple):
    """Moments (n,) of the latent values of two levels under one structure, and its weight.

    ``slope`` is what the upper function follows of the lower one: rho between neighbours.
    """

    weight: float
    below: Array
    above: Array
    var_below: Array
    var_above: Array
    covariance: Array
    slope: Array


class Difference(NamedTuple):
    """What is known of two levels at points, (n,) each."""

    probability: Array
    delta_mean: Array
    delta_sd: Array


def difference(model: Any, x: Array, lower: int, upper: int, place: int) -> Difference:
    """How two levels differ at rows of a fitted MultiFidelityClassifier; delta is of one class."""
    n = max(len(mixture.best.fit.posterior.points) for mixture in model._mixtures)
    size = max(1, _BATCH_ELEMENTS // max(_DRAWS, n))
    parts = []
    for start in range(0, len(x), size):
        rows = x[start : start + size]
        pairs = [_pairs(mixture, rows, lower, upper) for mixture in model._mixtures]
        differ = _signs_differ(pairs[0]) if len(pairs) == 1 else _classes_differ(pairs)
        mean, sd = _delta(pairs[0 if len(pairs) == 1 else place])
        # The latent function of two classes is that of the second one.
        mean = -mean if len(pairs) == 1 and place == 0 else mean
        parts.append((differ, mean, sd))
    return Difference(*(np.concatenate(p) for p in zip(*parts, strict=True)))


def _pairs(mixture: Mixture, x: Array, lower: int, upper: int) -> list[Pair]:
    return [_joint(m, np.ascontiguousarray(m.features(x)), lower, upper) for m in mixture.members]


def _joint(m: Member, x: Array, lower: int, upper: int) -> Pair:
    posterior, floor = m.fit.posterior, np.finfo(float).tiny
    pair = posterior.pair(x, lower, upper)
    own, shared = prior_pair(posterior.prior, x, lower, upper)
    return Pair(
        m.weight,
        pair.below,
        pair.above,
        np.maximum(pair.var_below, floor),
        np.maximum(pair.var_above, floor),
        pair.covariance,
        shared / np.maximum(own[0], floor),
    )


def _delta(pairs: list[Pair]) -> tuple[Array, Array]:
    """Mean and standard deviation of upper - slope * lower, over structures."""
    means = np.stack([p.above - p.slope * p.below for p in pairs])
    variances = np.stack(
        [p.var_above + p.slope**2 * p.var_below - 2.0 * p.slope * p.covariance for p in pairs]
    )
    weights = np.array([p.weight for p in pairs])
    mean = weights @ means
    variance = weights @ (np.maximum(variances, 0.0) + np.square(means - mean))
    return mean, np.sqrt(variance)


def _signs_differ(pairs: list[Pair]) -> Array:
    """Probability that the latent values have different signs, over structures."""
    total = np.zeros(len(pairs[0].below))
    for p in pairs:
        a, b = p.below / np.sqrt(p.var_below), p.above / np.sqrt(p.var_above)
        both = _both_positive(a, b, _correlation(p))
        total += p.weight * (ndtr(a) + ndtr(b) - 2.0 * both)
    return np.clip(total, 0.0, 1.0)


def _correlation(p: Pair) -> Array:
    limit = 1.0 - 1e-12
    return np.clip(p.covariance / np.sqrt(p.var_below * p.var_above), -limit, limit)


def _both_positive(a: Array, b: Array, correlation: Array) -> Array:
    """P(u > 0 and v > 0) of two normal variables with means a, b and variances 1 (Owen, 1956)."""
    a, b = (np.where(np.abs(z) < 1e-12, 1e-12, z) for z in (a, b))
    other = np.sqrt((1.0 - correlation) * (1.0 + correlation))
    tails = owens_t(a, (b / a - correlation) / other) + owens_t(b, (a / b - correlation) / other)
    return np.asarray(0.5 * (ndtr(a) + ndtr(b)) - tails - 0.5 * (a * b < 0.0))


def _classes_differ(pairs: list[list[Pair]]) -> Array:
    """Probability that the largest latent values of the two levels are of different classes."""
    n_classes = len(pairs)
    uniform = qmc.Sobol(3 * n_classes, scramble=True, seed=0).random(_DRAWS)
    n = len(pairs[0][0].below)
    lower, upper = (np.empty((n_classes, n, _DRAWS)) for _ in range(2))
    for k, members in enumerate(pairs):
        u = uniform[:, 3 * k : 3 * k + 3]
        edges = np.cumsum([p.weight for p in members])[:-1]
        which = np.searchsorted(edges, u[:, 2] * sum(p.weight for p in members))
        z = ndtri(np.clip(u[:, :2], 1e-9, 1.0 - 1e-9))
        for j, p in enumerate(members):
            chosen = which == j
            r = _correlation(p)[:, None]
            first, second = z[chosen].T
            low, high = np.sqrt(p.var_below)[:, None], np.sqrt(p.var_above)[:, None]
            lower[k][:, chosen] = p.below[:, None] + low * first
            mixed = r * first + np.sqrt((1.0 - r) * (1.0 + r)) * second
            upper[k][:, chosen] = p.above[:, None] + high * mixed
    return np.asarray((lower.argmax(axis=0) != upper.argmax(axis=0)).mean(axis=1))
