"""The posterior at new points: mean, variance, covariance and samples of the latent functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief
from polyfid.inference.linalg import Cholesky, Indefinite, jittered_root, suitable_threads
from polyfid.inference.sites import Sites
from polyfid.model.cross import CrossCovariance
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Elements of a temporary array while predicting, (batch, n): a megabyte stays in cache.
BATCH_ELEMENTS = 1 << 17
#: Of more rows than this the factor is out of cache, and batches get no shorter: it is read once a
#: batch. Nor is it inverted, which takes memory, and time that only very many points give back.
_MANY_ROWS = 512


class LevelPair(NamedTuple):
    """Means, variances and covariance of the latent values of two levels, (n,) each."""

    below: Array
    above: Array
    var_below: Array
    var_above: Array
    covariance: Array


def prior_pair(prior: Prior, x: Array, lower: int, upper: int) -> tuple[list[Array], Array]:
    """Prior variances of the latent values of two levels at the points, and their covariance."""
    A = prior.loadings
    variances = np.stack([np.broadcast_to(k.diagonal(x), len(x)) for k in prior.kernels])
    own = [np.asarray(np.square(A[t]) @ variances) for t in (lower, upper)]
    return own, np.asarray((A[lower] * A[upper]) @ variances)


@dataclass(frozen=True)
class Posterior:
    """Gaussian posterior of the latent functions, given the rows.

    mean = k_*^T alpha and covariance = k_** - k_*^T R k_*, with R = root B^-1 root.
    """

    prior: Prior
    points: Points
    sites: Sites
    alpha: Array
    factor: Cholesky | Indefinite

    @classmethod
    def from_belief(cls, prior: Prior, points: Points, belief: ExactBelief) -> Posterior:
        """The posterior that a belief at the rows implies; keeps its factor, not the covariance."""
        return cls(prior, points, belief.sites, belief.alpha, belief.release_factor())

    @property
    def n_rows(self) -> int:
        return len(self.points)

    @property
    def root(self) -> Array:
        return self.sites.root

    def solve(self, b: Array) -> Array:
        """B^-1 b at the rows."""
        return self.factor.solve(b)

    def mean(self, new: Points) -> Array:
        """Posterior mean at the points, (m,)."""
        mean = np.empty(len(new))
        for part, k in self._batches(new):
            np.matmul(k, self.alpha, out=mean[part])
        return mean

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """Posterior mean and variance at the points, (m,) each, in batches of bounded memory."""
        mean, variance, shrinkage = np.empty(len(new)), self.prior.diagonal(new), self._shrinkage
        for part, k in self._batches(new):
            np.matmul(k, self.alpha, out=mean[part])
            variance[part] -= shrinkage(k)
        return mean, np.maximum(variance, 0.0, out=variance)

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """Posterior mean (m,) and joint covariance (m, m) at the points."""
        k = self.prior.cross_covariance(new, self.points)
        mean = k @ self.alpha
        k *= self.root
        joint = self.prior.cross_covariance(new, new)
        # What independent noise adds to a point's own variance is not in the cross-covariance.
        joint.flat[:: len(joint) + 1] = self.prior.diagonal(new)
        return mean, joint - self.factor.gram(k.T)

    def pair(self, x: Array, lower: int, upper: int) -> LevelPair:
        """The latent values of two levels at the same points."""
        k = [
            self.prior.cross_covariance(Points(x, np.full(len(x), t, dtype=np.intp)), self.points)
            for t in (lower, upper)
        ]
        means = [part @ self.alpha for part in k]
        halves = [np.ascontiguousarray((part * self.root).T) for part in k]
        solved = self.solve(halves[0])
        own, shared = prior_pair(self.prior, x, lower, upper)
        return LevelPair(
            means[0],
            means[1],
            own[0] - np.einsum("ij,ij->j", halves[0], solved),
            own[1] - self.factor.quadratic(halves[1]),
            shared - np.einsum("ij,ij->j", halves[1], solved),
        )

    def variance_from(self, level: int, new: Points, likelihood: Likelihood) -> Array:
        """Posterior variance if only rows from a level upwards had labels; their sites stay."""
        w = self.sites.w
        chosen = (self.points.level >= level) & (w > 0.0)
        variance = self.prior.diagonal(new)
        if not chosen.any():
            return variance
        part = Points(np.ascontiguousarray(self.points.x[chosen]), self.points.level[chosen])
        root = np.sqrt(w[chosen])
        B = self.prior.cross_covariance(part, part)
        B.flat[:: len(B) + 1] = self.prior.diagonal(part)
        B *= root * root[:, None]
        B.flat[:: len(B) + 1] += 1.0
        k = self.prior.cross_covariance(part, new) * root[:, None]
        with suitable_threads(len(B)):
            return np.asarray(variance - Cholesky(B).quadratic(k))

    def check(self, likelihood: Likelihood) -> None:
        """Refuse parts that do not fit each other: ValueError."""
        parts = {
            "alpha": self.alpha,
            "w": self.sites.w,
            "nu": self.sites.nu,
            "weight": likelihood.weight,
        }
        for name, values in parts.items():
            if values.shape != (len(self.points.x),):
                raise ValueError(
                    f"{name} is of shape {values.shape}, and there are {len(self.points.x)} points"
                )

    def sample(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint samples at the points, (m, n_samples)."""
        mean, covariance = self.mean_and_covariance(new)
        noise = rng.standard_normal((len(mean), n_samples))
        return np.asarray(mean[:, None] + jittered_root(covariance) @ noise)

    @cached_property
    def _towards(self) -> CrossCovariance:
        return self.prior.towards(self.points)

    @cached_property
    def _shrinkage(self) -> Callable[[Array], Array]:
        """diag(k R k^T), (m,), of a covariance k with the rows, (m, n); may overwrite it."""
        root = self.root
        if len(self.points) <= _MANY_ROWS:
            return self.factor.quadratics(root)
        return lambda k: self.factor.quadratic(np.multiply(k, root, out=k).T, overwrite=True)

    def _batches(self, new: Points) -> Iterator[tuple[slice, Array]]:
        """Parts of the points, and their covariance with the rows."""
        size = max(1, BATCH_ELEMENTS // max(1, min(len(self.points), _MANY_ROWS)))
        for level, rows in new.segments():
            for start in range(rows.start, rows.stop, size):
                part = slice(start, min(start + size, rows.stop))
                yield part, self._towards(new.x[part], level)

    def __getstate__(self) -> dict[str, Any]:
        # A copy makes what it needs for predictions itself.
        return {field.name: getattr(self, field.name) for field in fields(self)}
