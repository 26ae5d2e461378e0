"""The posterior at new points: mean, variance, covariance and samples of the latent functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from polyfid.covariances import ExactBelief, Sites
from polyfid.data import Points
from polyfid.kernels import Pairs
from polyfid.kernels.pairs import CLOSE, Columns
from polyfid.linalg import Cholesky, Indefinite, jittered_root
from polyfid.prior import Prior

Array = NDArray[np.float64]

#: Elements of a temporary array while predicting, (batch, n): half a megabyte stays in cache, and
#: is little enough to be reused by the next batch instead of going back to the system.
BATCH_ELEMENTS = 1 << 16
#: Of more rows than this the factor is out of cache, and batches get no shorter: it is read once a
#: batch.
_MANY_ROWS = 512


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
        mean, variance, root = np.empty(len(new)), self.prior.diagonal(new), self.root
        for part, k in self._batches(new):
            np.matmul(k, self.alpha, out=mean[part])
            k *= root
            variance[part] -= self.factor.quadratic(k.T, overwrite=True)
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

    def sample(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint samples at the points, (m, n_samples)."""
        mean, covariance = self.mean_and_covariance(new)
        noise = rng.standard_normal((len(mean), n_samples))
        return np.asarray(mean[:, None] + jittered_root(covariance) @ noise)

    def _batches(self, new: Points) -> Iterator[tuple[slice, Array]]:
        """Parts of the points and their covariance with the rows, in memory that the next uses."""
        n = len(self.points)
        size = max(1, BATCH_ELEMENTS // max(1, min(n, _MANY_ROWS)))
        memory = np.empty((min(size, len(new)), n))
        rows, segments, A = _Rows(self.points.x), self.points.segments(), self.prior.loadings
        for t, of_level in new.segments():
            for start in range(of_level.start, of_level.stop, size):
                part = slice(start, min(start + size, of_level.stop))
                k, distances = memory[: part.stop - start], rows.distances(new.x[part])
                for u, cols in segments:
                    self._fill(k[:, cols], _NewPairs(distances, cols), A[t] * A[u])
                yield part, k

    def _fill(self, k: Array, pairs: Pairs, factors: Array) -> None:
        """Covariance of pairs, those of the processes by their factors."""
        used = np.flatnonzero(factors).tolist()
        if not used:
            k[...] = 0.0
        for s in used:
            part = self.prior.kernels[s].evaluate(pairs)
            if s == used[0]:
                np.multiply(part, factors[s], out=k)
            else:
                k += factors[s] * part


class _Rows:
    """The rows, ready for squared distances from many batches of new points.

    |x|^2 + |z|^2 - 2 x.z is one product of matrices and several times as fast as differences, but
    cancels for points close to each other; those few get theirs from differences.
    """

    def __init__(self, z: Array) -> None:
        self.z = z
        self._sides: dict[Columns, tuple[Array, Array, float]] = {}

    def distances(self, x: Array) -> _Distances:
        return _Distances(self, x)

    def squared_distances(self, x: Array, columns: Columns) -> Array:
        z = self.z
        if columns is not None:
            x, z = x[:, columns], z[:, columns]
        if columns not in self._sides:
            self._sides[columns] = self._side(z)
        centre, right, longest = self._sides[columns]
        left = np.empty((len(x), right.shape[1]))
        shifted = np.subtract(x, centre, out=left[:, :-2])
        np.einsum("ij,ij->i", shifted, shifted, out=left[:, -2])
        left[:, -1] = 1.0
        limit = CLOSE * (left[:, -2].max() + longest)
        shifted *= -2.0
        s: Array = left @ right.T
        if s.min() < limit:
            close = np.flatnonzero(s < limit)
            if close.size * x.shape[1] > s.size:  # not so few
                return np.asarray(cdist(x, z, "sqeuclidean"))
            i, j = np.divmod(close, len(z))
            s[i, j] = np.square(x[i] - z[j]).sum(axis=1)
        return s

    @staticmethod
    def _side(z: Array) -> tuple[Array, Array, float]:
        """The centre of the rows, their part of the product, and the largest squared norm."""
        centre = z.mean(axis=0)  # differences survive, cancellation does not
        shifted = z - centre
        squares = np.einsum("ij,ij->i", shifted, shifted)
        right = np.column_stack([shifted, np.ones(len(z)), squares])
        return centre, right, float(squares.max())


class _Distances:
    """Squared distances of a batch from all rows, on any columns; computed once."""

    def __init__(self, rows: _Rows, x: Array) -> None:
        self.rows, self.x = rows, x
        self._known: dict[Columns, Array] = {}

    def __call__(self, columns: Columns) -> Array:
        if columns not in self._known:
            self._known[columns] = self.rows.squared_distances(self.x, columns)
        return self._known[columns]


class _NewPairs(Pairs):
    """A batch of new points with the rows of one level."""

    def __init__(self, distances: _Distances, rows: slice) -> None:
        super().__init__(distances.x, distances.rows.z[rows])
        self._distances, self._rows = distances, rows

    def squared_distances(self, columns: Columns) -> Array:
        return self._distances(columns)[:, self._rows]
