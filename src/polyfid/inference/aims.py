"""Better aims than the sites that labels ask for, with the same fixed points.

What a label asks for depends on its row's own site, and steeply where labels are nearly certain or
weights are large: then steps towards it overshoot, however weakly rows depend on each other. Once
every row has settled with its own cavity (`settle`), only what rows have in common is left to the
loop; near the fixed point Newton's method deals with that too (`newton`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from polyfid.arrays import Array, Indices
from polyfid.inference.exact import ExactBelief, Sites
from polyfid.model.likelihoods import Likelihood

#: Steps of a row, and the longest ones: of the mean in standard deviations, and of their logarithm.
_STEPS, _FARTHEST = 15, (3.5, 0.7)
#: Differences in standard deviations: forward ones of `settle`, central ones of `newton`.
_DIFFERENCE, _SMALL_DIFFERENCE = 1e-4, 1e-6
_LEAST_SLOPE = 0.05  # where the residual does not fall as it should
#: Rows are done when their residuals are this small, relative to the largest one at the start.
_TOLERANCE, _SMALLEST = 1e-3, 1e-10


class Marginals(NamedTuple):
    """Means and variances of rows, and the sites that brought them about."""

    mean: Array
    variance: Array
    sites: Sites


#: The sites that rows ask for under their marginals.
Ask = Callable[[Marginals, Likelihood], Sites]


class _Rows(NamedTuple):
    """Rows on their way: mean, log standard deviation, sites asked for, residuals of both."""

    mean: Array
    log_sd: Array
    w: Array
    nu: Array
    mean_gap: Array  # in standard deviations
    sd_gap: Array

    @property
    def residual(self) -> Array:
        return np.hypot(self.mean_gap, self.sd_gap)


def settle(ask: Ask, likelihood: Likelihood, at: ExactBelief) -> Sites:
    """The sites that rows ask for once they have settled, while all other rows keep theirs.

    Newton's method by differences, row by row, in the mean and the logarithm of the standard
    deviation: in these, variational inference of one row is a concave problem. A step that does
    not lower the residual of its row is not taken, and the next one is shorter.
    """
    w, nu = at.sites.w, at.sites.nu
    shrink = np.maximum(1.0 - w * at.variance, 1e-8)
    cavity = np.stack([shrink / at.variance, (at.mean - at.variance * nu) / at.variance])

    def evaluate(rows: Indices, labels: Likelihood, mean: Array, log_sd: Array) -> _Rows:
        precision, linear = cavity[:, rows]
        sd, variance = np.exp(log_sd), np.exp(2.0 * log_sd)
        own = Sites(1.0 / variance - precision, mean / variance - linear)
        asked = ask(Marginals(mean, variance, own), labels)
        mean_gap = sd * (asked.nu - asked.w * mean + linear - precision * mean)
        sd_gap = 1.0 - variance * (asked.w + precision)
        return _Rows(mean, log_sd, asked.w, asked.nu, mean_gap, sd_gap)

    every = np.arange(len(at.mean))
    best = np.array(evaluate(every, likelihood, at.mean, 0.5 * np.log(at.variance)))
    enough = max(_TOLERANCE * float(_Rows(*best).residual.max()), _SMALLEST)
    caution = np.ones(len(every))
    for _ in range(_STEPS):
        rows = np.flatnonzero(_Rows(*best).residual > enough)
        if not len(rows):
            break
        now, labels = _Rows(*best[:, rows]), likelihood.take(rows)
        new = evaluate(rows, labels, *_newton(now, partial(evaluate, rows, labels), caution[rows]))
        # NaN is no success.
        lower = new.residual <= now.residual
        best[:, rows[lower]] = np.array(new)[:, lower]
        caution[rows] = np.where(lower, 1.0, 4.0 * caution[rows])
    return Sites(*best[2:4])


def _newton(
    now: _Rows, evaluate: Callable[[Array, Array], _Rows], caution: Array
) -> tuple[Array, Array]:
    """Means and log standard deviations after a step of Newton's method."""
    sd, h = np.exp(now.log_sd), _DIFFERENCE
    right, wide = evaluate(now.mean + h * sd, now.log_sd), evaluate(now.mean, now.log_sd + h)
    # Minus the derivatives of both residuals.
    a, b = (now.mean_gap - right.mean_gap) / h, (now.mean_gap - wide.mean_gap) / h
    c, d = (now.sd_gap - right.sd_gap) / h, (now.sd_gap - wide.sd_gap) / h
    a, d = caution * np.maximum(a, _LEAST_SLOPE), caution * np.maximum(d, _LEAST_SLOPE)
    coupled = a * d - b * c > _LEAST_SLOPE * a * d
    b, c = np.where(coupled, b, 0.0), np.where(coupled, c, 0.0)
    determinant = a * d - b * c
    along = (d * now.mean_gap - b * now.sd_gap) / determinant
    wider = (a * now.sd_gap - c * now.mean_gap) / determinant
    excess = np.maximum(np.abs(along) / _FARTHEST[0], np.abs(wider) / _FARTHEST[1])
    share = 1.0 / np.maximum(excess, 1.0)
    return now.mean + share * along * sd, now.log_sd + share * wider


def newton(ask: Ask, likelihood: Likelihood, at: ExactBelief) -> Sites | None:
    """The sites after a step of Newton's method on all rows together; None where there is none.

    With b = nu - w m, m the mean at hand and S the posterior covariance, the marginals change by
    dm = S db and dv = -(S * S) dw. How what rows ask for changes with them is found by differences.
    """
    n, m, S, w, b = len(at.mean), at.mean, at.joint, at.sites.w, at.alpha
    units = np.stack([1.0 / at.spread, 1.0 / np.sqrt(at.spread)])  # of w and b

    def evaluate(mean: Array, variance: Array, w: Array, nu: Array) -> Array:
        asked = ask(Marginals(mean, variance, Sites(w, nu)), likelihood)
        return np.stack([asked.w, asked.nu - asked.w * m]) / units

    here, sd, h = (m, at.variance, w, at.sites.nu), np.sqrt(at.variance), _SMALL_DIFFERENCE
    slopes = []
    for i, step in enumerate((h * sd, h * at.variance, h / at.variance, h / sd)):
        up, down = ([*here[:i], here[i] + s, *here[i + 1 :]] for s in (step, -step))
        slopes.append((evaluate(*up) - evaluate(*down)) / (2.0 * step))
    by_mean, by_variance, by_w, by_nu = slopes
    J, each = np.empty((2, n, 2, n)), np.arange(n)
    for to in range(2):
        J[to, :, 0] = by_variance[to][:, None] * S * S * units[0]
        J[to, :, 1] = -by_mean[to][:, None] * S * units[1]
        J[to, each, 0, each] -= (by_w[to] + by_nu[to] * m) * units[0]
        J[to, each, 1, each] -= by_nu[to] * units[1]
        J[to, each, to, each] += 1.0
    gap = evaluate(*here) - np.stack([w, b]) / units
    if not (np.isfinite(J).all() and np.isfinite(gap).all()):
        return None
    try:
        change = np.linalg.solve(J.reshape(2 * n, 2 * n), gap.ravel()).reshape(2, n) * units
    except np.linalg.LinAlgError:
        return None
    return Sites(w + change[0], at.sites.nu + change[1] + change[0] * m)
