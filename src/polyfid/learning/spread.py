"""What follows from hyper-parameters that are not known: a wider posterior of the latent functions.

The posterior of the hyper-parameters is approximated by a few weighted points around its mode, in
the directions that change the latent functions most. Averages over these points are then described
by what a prediction at the mode gives anyway, its mean m and its variance v,

    E f = c m,  var f = a v + b m^2,

with factors per level, found by least squares at training rows. So predictions cost what they did,
and joint samples exist: the functions are known up to their scale, the more widely the larger b.
Intervals at a point have the tails of functions whose scale is not known,

    f = s m + sqrt(t) (f_mode - m),  E s = c,  var s = b,  E t = a,

s and t lognormal and both driven by one standard normal number, since larger functions are also
less certain. They are heavier than those of the samples, which are normal.
Probabilities stay those at the mode: a larger scale comes with a wider posterior, and the two
nearly cancel in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.special import softmax

from polyfid.arrays import Array, Indices
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.inference.posterior import LevelPair, Posterior
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.evidence import Evidence
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

# Chosen by ``python -m benchmarks coverage``, on other problems than those that it measures.
#: Directions in which hyper-parameters are moved; two points each.
N_DIRECTIONS = 3
#: How much larger variances of the hyper-parameters are than the curvature at their mode says, as
#: for Student's t with five degrees of freedom. Their posterior has heavy tails (by importance
#: sampling the factor is 1.4), and other modes and what is not known of the other structures'
#: hyper-parameters are left out.
WIDER = 5.0 / 3.0
#: Rows at which the averages are compared with predictions at the mode, and the most rows that
#: tell of the hyper-parameters: small levels are whole, and of large ones it is no great matter.
N_ROWS, N_EVIDENCE = 100, 400
#: Steps of finite differences, and how near to its fixed point inference ends for them.
STEP, TOL = 0.1, 1e-3
#: Bounds of the factor of means: beyond them points are too few to be believed.
MEAN = 0.5, 2.0


@dataclass(frozen=True)
class Spread:
    """Factors per level, (n_levels,) each: c, a and b of the module's docstring.

    ``tail`` is the standard deviation of log t.
    """

    mean: Array
    variance: Array
    scale: Array
    tail: Array

    def moments(self, mean: Array, variance: Array, level: Indices) -> tuple[Array, Array]:
        """Means and variances from those at the mode, (..., n) each, of points of these levels."""
        wider = self.variance[level] * variance + self.scale[level] * np.square(mean)
        return self.mean[level] * mean, wider

    def factors(self, z: Array) -> tuple[Array, Array]:
        """Factors s and t of the module's docstring, (n_levels, len(z)), of standard normal z."""
        log_variance = np.log1p(self.scale / np.square(self.mean))[:, None]
        s = self.mean[:, None] * np.exp(np.sqrt(log_variance) * z - 0.5 * log_variance)
        tail = self.tail[:, None]
        return s, self.variance[:, None] * np.exp(tail * z - 0.5 * np.square(tail))

    def pair(self, at: LevelPair, lower: int, upper: int) -> LevelPair:
        """The latent values of two levels from those at the mode."""
        c, a, b = self.mean, self.variance, self.scale
        shared = np.sqrt(a[lower] * a[upper]) * at.covariance
        return LevelPair(
            c[lower] * at.below,
            c[upper] * at.above,
            a[lower] * at.var_below + b[lower] * np.square(at.below),
            a[upper] * at.var_above + b[upper] * np.square(at.above),
            shared + np.sqrt(b[lower] * b[upper]) * at.below * at.above,
        )

    def covariance(self, mean: Array, covariance: Array, level: Indices) -> Array:
        """The joint covariance (n, n) from that at the mode."""
        inner, outer = np.sqrt(self.variance[level]), np.sqrt(self.scale[level]) * mean
        return np.asarray(inner[:, None] * covariance * inner + np.outer(outer, outer))

    def sample(self, mean: Array, samples: Array, level: Indices, noise: Array) -> Array:
        """Joint samples (n, n_samples) from those at the mode and from standard normal numbers."""
        inner, outer = np.sqrt(self.variance[level]), np.sqrt(self.scale[level]) * mean
        centre = (self.mean[level] * mean)[:, None]
        return np.asarray(
            centre + inner[:, None] * (samples - mean[:, None]) + np.outer(outer, noise)
        )

    def check(self, n_levels: int) -> None:
        """Raise ValueError where factors are not such as `find_spread` gives."""
        lowest = {"mean": MEAN[0], "variance": 1.0, "scale": 0.0, "tail": 0.0}
        for name, low in lowest.items():
            values = getattr(self, name)
            if values.shape != (n_levels,) or not (np.isfinite(values) & (values >= low)).all():
                raise ValueError(f"{name} must be {n_levels} numbers from {low:g}; got {values}")


class _At(NamedTuple):
    """At some hyper-parameters: the log posterior, its gradient, and the latent functions.

    ``moments`` are means and variances by level, (n_levels, 2, n).
    """

    value: float
    gradient: Array
    moments: Array


def find_spread(evidence: Evidence, hyperprior: HyperPrior, theta: Array) -> Spread | None:
    """How much wider the latent functions are than at the mode ``theta``; None if it is unknown.

    Inference starts from ``evidence.warm``.
    """
    rows = LabelledPoints(evidence.points, evidence.likelihood)
    if len(rows.points) > N_EVIDENCE:
        rows = rows.sample(N_EVIDENCE, np.random.RandomState(0))
        evidence = Evidence(evidence.prior, rows.likelihood, rows.points, evidence.scheme)
    evidence = evidence.with_scheme(evidence.scheme.name, TOL, evidence.warm)
    with suitable_threads(len(rows.points)):
        return _find(_Finder(evidence, hyperprior, evidence.warm), theta)


def _find(finder: _Finder, theta: Array) -> Spread | None:
    mode = finder(theta, gradient=True)
    if mode is None or not len(theta):
        return None
    low, high = finder.evidence.bounds.T
    root = finder.root(theta, mode, high)
    if root is None:
        return None
    k = root.shape[1]
    points, log_weights = [], []
    for z in np.vstack([np.eye(k), -np.eye(k)]) * np.sqrt(WIDER * k):
        at = finder(np.clip(theta + root @ z, low, high))
        if at is not None:
            points.append(at.moments)
            log_weights.append(at.value - mode.value + 0.5 * z @ z / WIDER)
    if len(points) < 2:
        return None
    # No point may outweigh all others: it is the best of few.
    log_weights = np.minimum(log_weights, np.sort(log_weights)[-2])
    return _fitted(mode.moments, np.stack(points), softmax(log_weights))


@dataclass(frozen=True)
class _Finder:
    """Log posterior of the hyper-parameters and latent functions at some of the rows."""

    evidence: Evidence
    hyperprior: HyperPrior
    warm: object

    def __call__(self, theta: Array, gradient: bool = False) -> _At | None:
        """None where there is no posterior, or none that inference finds."""
        evidence, points = self.evidence, self.evidence.points
        evidence.warm = self.warm
        try:
            found = evidence.fixed(theta, gradient)
        except NotPositiveDefinite:
            return None
        covariance, _, fixed = found
        if not fixed.report.converged:
            return None
        log_prior, slope = self.hyperprior(theta)
        if gradient:
            slope = slope + evidence.gradient(*found)
        rows = np.unique(np.linspace(0, len(points) - 1, N_ROWS).astype(np.intp))
        x, posterior = points.x[rows], Posterior.from_belief(covariance.prior, points, fixed.belief)
        moments = [
            posterior.mean_and_variance(Points(x, np.full(len(x), t, dtype=np.intp)))
            for t in range(covariance.prior.n_levels)
        ]
        return _At(fixed.log_z + log_prior, slope, np.array(moments))

    def root(self, theta: Array, mode: _At, high: Array) -> Array | None:
        """Steps of one posterior standard deviation that move the functions most, (p, k).

        The posterior counts as no wider than the prior, in units of which it is taken apart.
        """
        curvature, change = [], []
        for j in range(len(theta)):
            step = STEP if theta[j] + STEP <= high[j] else -STEP
            at = self(theta + step * (np.arange(len(theta)) == j), gradient=True)
            if at is None:
                return None
            curvature.append((mode.gradient - at.gradient) / step)
            change.append((at.moments - mode.moments)[:, 0] / step)
        unit = np.where(self.hyperprior.is_flat, 1.0, self.hyperprior.sd)
        hessian = 0.5 * (np.array(curvature) + np.array(curvature).T) * np.outer(unit, unit)
        if not np.isfinite(hessian).all():
            return None
        values, vectors = np.linalg.eigh(hessian)
        root = unit[:, None] * vectors / np.sqrt(np.maximum(values, 1.0))
        sd = np.sqrt(np.maximum(mode.moments[:, 1], np.finfo(float).tiny))
        moved = np.tensordot(root, np.array(change) / sd, axes=(0, 0)).reshape(len(theta), -1)
        directions = np.linalg.svd(moved, full_matrices=False)[0]
        return np.asarray(root @ directions[:, :N_DIRECTIONS])


def _fitted(mode: Array, points: Array, weights: Array) -> Spread | None:
    """The factors that describe averages over points, (n_points, n_levels, 2, n), best."""
    factors = []
    for (m, v), own in zip(mode, np.moveaxis(points, 1, 0), strict=True):
        means, variances = own[:, 0], own[:, 1]
        mean = weights @ means
        total = weights @ (variances + np.square(means - mean))
        c, (a, b), tail = 1.0, (1.0, 0.0), 0.0
        if (m != 0.0).any():
            c = float(np.clip(m @ mean / (m @ m), *MEAN))
        if (rows := v > 0.0).any():
            terms = np.stack([v[rows], np.square(m[rows])], axis=1) / v[rows, None]
            a, b = nnls(terms, total[rows] / v[rows])[0]
            log_t = np.log(np.mean(variances[:, rows] / v[rows], axis=1))
            tail = np.sqrt(weights @ np.square(log_t - weights @ log_t))
        factors.append((c, max(a, 1.0), b, tail))
    values = np.array(factors).T
    return Spread(*values) if np.isfinite(values).all() else None
