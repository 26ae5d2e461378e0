"""The posterior at new points: mean, variance, covariance and samples of the latent functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief, ExactCovariance, Sites, Start
from polyfid.inference.inducing import Basis, Inducing, LevelBlock, SparseBelief, pieces
from polyfid.inference.linalg import Factor, QuadraticForm, jittered_root, suitable_threads
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import CrossCovariance, Prior
from polyfid.rows import Points

#: Of more rows than this the factor is out of cache, and batches get no shorter: it is read once
#: per batch. Nor is it inverted, which takes memory, and time that only very many points give back.
_MANY_ROWS = 512
#: Directions of v of which the labels say less than this, relative to the prior, are left out.
_NEGLIGIBLE = 1e-13
#: Variances of more points than this may be computed in single precision, where that is safe.
_MANY_POINTS = 4096


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
    variances = np.stack([k.diagonal(x) for k in prior.kernels])
    own = [np.asarray(np.square(A[t]) @ variances) for t in (lower, upper)]
    return own, np.asarray((A[lower] * A[upper]) @ variances)


@dataclass(frozen=True)
class JointMoments:
    """The covariance of points, of which columns are computed when they are asked for."""

    prior: Prior
    points: Points
    coordinates: Array
    explained: Array

    def column(self, i: int) -> Array:
        """Covariance of all points with one of them, (n,)."""
        one = self.points.take(slice(i, i + 1))
        prior = self.prior.cross_covariance(self.points, one)[:, 0]
        return np.asarray(prior - self.explained @ self.coordinates[i])


#: Some of the new points: rows, K and alpha with mean K alpha, and by how much labels reduce the
#: variance: a function of K, which it may overwrite, and of the most that it can be.
_Batch = tuple[slice, Array, Array, Callable[[Array, float], Array]]


class LatentPosterior(ABC):
    """Gaussian posterior of the latent functions; copies carry fields only, and no caches.

    Labels reduce the prior covariance of points a and b by h(a) M h(b)^T; a subclass gives the
    coordinates h and their product with M.
    """

    prior: Prior
    points: Points

    @property
    @abstractmethod
    def size(self) -> int:
        """Rows or inducing points, which is the size of the matrices."""

    @abstractmethod
    def _batches(self, new: Points) -> Iterator[_Batch]:
        """The points in batches of bounded memory."""

    def mean(self, new: Points) -> Array:
        """Posterior mean at the points, (m,)."""
        mean = np.empty(len(new))
        for rows, K, alpha, _ in self._batches(new):
            np.matmul(K, alpha, out=mean[rows])
        return mean

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """Posterior mean and variance at the points, (m,) each."""
        mean, variance = np.empty(len(new)), self.prior.diagonal(new)
        for rows, K, alpha, shrinkage in self._batches(new):
            np.matmul(K, alpha, out=mean[rows])
            most = variance[rows].max() if len(new) > _MANY_POINTS else np.inf
            variance[rows] -= shrinkage(K, most)
        return mean, np.maximum(variance, 0.0, out=variance)

    @abstractmethod
    def _coordinates(self, new: Points) -> Array:
        """The coordinates of the points, (m, r)."""

    @abstractmethod
    def _explained(self, h: Array) -> Array:
        """The product h M, (m, r)."""

    @abstractmethod
    def _projections(self, others: Points) -> Callable[[int], Array]:
        """Of each level a G such that labels reduce the covariance with other points by K G."""

    def moments_with(self, new: Points, others: Points) -> tuple[Array, Array, Array]:
        """Mean (m,), variance (m,) and covariance (m, k) with other points; memory O(m k)."""
        mean, variance = np.empty(len(new)), self.prior.diagonal(new)
        covariance = self.prior.cross_covariance(new, others)
        projection = self._projections(others)
        for rows, K, alpha, shrinkage in self._batches(new):
            np.matmul(K, alpha, out=mean[rows])
            covariance[rows] -= K @ projection(int(new.level[rows.start]))
            variance[rows] -= shrinkage(K, np.inf)
        return mean, np.maximum(variance, 0.0, out=variance), covariance

    def joint(self, points: Points) -> JointMoments:
        """Moments of points, any columns of whose covariance are wanted later."""
        h = self._coordinates(points)
        return JointMoments(self.prior, points, h, self._explained(h))

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """Posterior mean (m,) and joint covariance (m, m) at the points."""
        h = self._coordinates(new)
        return self.mean(new), self.prior.joint_covariance(new) - self._explained(h) @ h.T

    def pair(self, x: Array, lower: int, upper: int) -> LevelPair:
        """The latent values of two levels at the same points."""
        at = [Points(x, np.full(len(x), t, dtype=np.intp)) for t in (lower, upper)]
        below, above = (self._coordinates(points) for points in at)
        explained = self._explained(below)
        own, shared = prior_pair(self.prior, x, lower, upper)
        return LevelPair(
            self.mean(at[0]),
            self.mean(at[1]),
            own[0] - np.einsum("ij,ij->i", explained, below),
            own[1] - np.einsum("ij,ij->i", self._explained(above), above),
            shared - np.einsum("ij,ij->i", explained, above),
        )

    def sample(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint samples at the points, (m, n_samples)."""
        mean, covariance = self.mean_and_covariance(new)
        noise = rng.standard_normal((len(mean), n_samples))
        return np.asarray(mean[:, None] + jittered_root(covariance) @ noise)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Posterior(LatentPosterior):
    """Gaussian posterior of the latent functions, given the rows.

    mean = k_*^T alpha and covariance = k_** - k_*^T R k_*, with R = root B^-1 root.
    """

    prior: Prior
    points: Points
    sites: Sites
    alpha: Array
    factor: Factor

    @classmethod
    def from_belief(cls, prior: Prior, points: Points, belief: ExactBelief) -> Posterior:
        """The posterior that a belief at the rows implies; keeps its factor, not the covariance."""
        return cls(prior, points, belief.sites, belief.alpha, belief.factor)

    @property
    def n_rows(self) -> int:
        return len(self.points)

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def root(self) -> Array:
        return self.sites.root

    @property
    def start(self) -> Start:
        """What inference may start from."""
        return Start(self.sites, self.alpha, self.factor)

    def _coordinates(self, new: Points) -> Array:
        k = self.prior.cross_covariance(new, self.points) * self.root
        return self.factor.half_solve(k.T, overwrite=True).T

    def _explained(self, h: Array) -> Array:
        return np.asarray(h * self.factor.signs)

    def _projections(self, others: Points) -> Callable[[int], Array]:
        k = self.prior.cross_covariance(others, self.points).T * self.root[:, None]
        G = self.factor.solve(k) * self.root[:, None]
        return lambda level: G

    def variance_from(self, level: int, new: Points, likelihood: Likelihood) -> Array:
        """Posterior variance if only rows from a level upwards had labels; their sites stay."""
        chosen = (self.points.level >= level) & (self.sites.w > 0.0)
        variance = self.prior.diagonal(new)
        if not chosen.any():
            return variance
        rows = self.points.take(chosen)
        sites = Sites(self.sites.w[chosen], self.sites.nu[chosen])
        k = self.prior.cross_covariance(rows, new) * sites.root[:, None]
        with suitable_threads(len(rows)):
            factor = ExactCovariance(self.prior, rows).factorise(sites)
            return np.asarray(variance - factor.quadratic(k))

    def check(self, likelihood: Likelihood) -> None:
        """Raise ValueError where arrays do not fit each other."""
        n, sites = len(self.points.x), self.sites
        arrays = {"alpha": self.alpha, "w": sites.w, "nu": sites.nu, "weight": likelihood.weight}
        for name, values in arrays.items():
            if values.shape != (n,):
                raise ValueError(f"{name} is of shape {values.shape}, and there are {n} points")

    @cached_property
    def _towards(self) -> CrossCovariance:
        return CrossCovariance(self.prior, self.points)

    @cached_property
    def _form(self) -> QuadraticForm:
        with suitable_threads(len(self.points)):
            return self.factor.quadratic_form(self.root)

    def _shrinkage(self, k: Array, most: float) -> Array:
        """diag(k R k^T), (m,), of a covariance k with the rows, (m, n)."""
        if len(self.points) <= _MANY_ROWS:
            return self._form(k, most)
        return self.factor.quadratic(np.multiply(k, self.root, out=k).T, overwrite=True)

    def _batches(self, new: Points) -> Iterator[_Batch]:
        for level, rows in new.segments():
            for batch in pieces(rows, min(len(self.points), _MANY_ROWS)):
                K = self._towards(new.x[batch], level)
                yield batch, K, self.alpha, self._shrinkage


@dataclass(frozen=True)
class SparsePosterior(LatentPosterior):
    """Gaussian posterior of the latent functions, given a belief of the inducing variables.

    With phi = L^-1 k_u, the mean is phi^T mu and the covariance k_** - phi^T (I - S) phi.
    """

    prior: Prior
    inducing: Inducing
    belief: SparseBelief
    points: Points = field(default_factory=lambda: Points(np.empty((0, 0)), np.empty(0, np.intp)))
    n_rows: int = 0

    @property
    def size(self) -> int:
        return self.inducing.total

    @cached_property
    def basis(self) -> Basis:
        return Basis(self.prior, self.inducing)

    def _coordinates(self, new: Points) -> Array:
        return self.basis.features(new)

    def _explained(self, h: Array) -> Array:
        return h - h @ self.belief.covariance

    def _projections(self, others: Points) -> Callable[[int], Array]:
        explained = self._explained(self.basis.features(others)).T

        def of_level(level: int) -> Array:
            block = self.basis.levels[level]
            G = explained[block.columns]
            for s in block.processes:
                own = block.slices[s]
                G[own] = block.loading[s] * self.basis.whiteners[s] @ G[own]
            return G

        return of_level

    def moments_apart(self, new: Points) -> tuple[Array, Array, Array]:
        """Mean and variance of phi^T v, which labels act on, and the variance of the rest, (m,)."""
        mean, variance, rest = np.empty(len(new)), np.empty(len(new)), self.prior.diagonal(new)
        for rows in pieces(slice(0, len(new)), self.inducing.total):
            Phi = self.basis.features(new.take(rows))
            mean[rows] = Phi @ self.belief.mean
            variance[rows] = np.einsum("ij,ij->i", Phi @ self.belief.covariance, Phi)
            rest[rows] -= np.einsum("ij,ij->i", Phi, Phi)
        return mean, variance, np.maximum(rest, 0.0, out=rest)

    def variance_from(self, level: int, new: Points, likelihood: Likelihood) -> Array:
        """Posterior variance if only rows from a level upwards had labels; their sites stay.

        An estimate: the rows that were kept stand for all, with the weights of their likelihood.
        """
        rows = np.flatnonzero(self.points.level >= level)
        if not len(rows):
            return self.prior.diagonal(new)
        chosen = self.points.take(rows)
        expected = likelihood.take(rows).expectations(*self.mean_and_variance(chosen))
        Phi = self.basis.features(chosen)
        gram = (Phi.T * np.maximum(-expected.second, 0.0)) @ Phi
        belief = SparseBelief(gram, np.zeros(len(gram)))
        return replace(self, belief=belief).mean_and_variance(new)[1]

    def check(self, likelihood: Likelihood) -> None:
        """Raise ValueError where arrays do not fit each other."""
        (n, d), m = self.points.x.shape, self.inducing.total
        expected = {
            "gram": (self.belief.gram.shape, (m, m)),
            "linear": (self.belief.linear.shape, (m,)),
            "inducing": ([z.shape[1:] for z in self.inducing.z], [(d,)] * len(self.prior.kernels)),
            "weight": (likelihood.weight.shape, (n,)),
        }
        for name, (got, wanted) in expected.items():
            if got != wanted:
                raise ValueError(f"{name} is of shape {got}, and must be of shape {wanted}")

    @cached_property
    def _weights(self) -> list[tuple[Array, QuadraticForm]]:
        """Alpha and shrinkage of batches of each level."""
        return [self._weights_of(block) for block in self.basis.levels]

    def _weights_of(self, block: LevelBlock) -> tuple[Array, QuadraticForm]:
        """Whitening and loadings applied to the belief instead of to every point."""
        shrink = -self.belief.covariance[block.square]
        shrink.flat[:: len(shrink) + 1] += 1.0
        values, vectors = np.linalg.eigh(shrink)
        kept = np.abs(values) > _NEGLIGIBLE
        G = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
        alpha = self.belief.mean[block.columns]
        for s in block.processes:
            own, T = block.slices[s], block.loading[s] * self.basis.whiteners[s]
            G[own], alpha[own] = T @ G[own], T @ alpha[own]
        return alpha, QuadraticForm(G, np.sign(values[kept]))

    def _batches(self, new: Points) -> Iterator[_Batch]:
        for t, rows in new.segments():
            block = self.basis.levels[t]
            for batch in pieces(rows, block.width):
                K = np.empty((batch.stop - batch.start, block.width))
                for s in block.processes:
                    K[:, block.slices[s]] = self.basis.covariance(new.x[batch], s)
                yield batch, K, *self._weights[t]
