"""The posterior at new points, through the inducing points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.inducing import Basis, Inducing, LevelBlock, pieces
from polyfid.inference.linalg import QuadraticForm
from polyfid.inference.posterior import LatentPosterior
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Directions of v of which the labels say less than this, relative to the prior, are left out.
_NEGLIGIBLE = 1e-13


class _Weights(NamedTuple):
    """For one level: mean = K alpha, variance = k - shrinkage(K), K with the inducing points."""

    block: LevelBlock
    alpha: Array
    shrinkage: QuadraticForm


@dataclass(frozen=True)
class SparsePosterior(LatentPosterior):
    """Gaussian posterior of the latent functions, given a belief of the inducing variables.

    With phi = L^-1 k_u, the mean is phi^T mu and the covariance k_** - phi^T (I - S) phi. The cost
    of a prediction depends on the number of inducing points, not on that of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.model.prior import Autoregressive
    >>> belief = SparseBelief(np.eye(1), np.ones(1))
    >>> posterior = SparsePosterior(Autoregressive((RBF(),)), Inducing((np.zeros((1, 1)),)), belief)
    >>> mean, variance = posterior.mean_and_variance(Points(np.zeros((1, 1)), np.zeros(1, int)))
    >>> mean.round(6), variance.round(6)
    (array([0.5]), array([0.5]))
    """

    prior: Prior
    inducing: Inducing
    belief: SparseBelief
    points: Points = field(default_factory=lambda: Points(np.empty((0, 0)), np.empty(0, np.intp)))
    n_rows: int = 0

    @cached_property
    def basis(self) -> Basis:
        return Basis(self.prior, self.inducing)

    def mean(self, new: Points) -> Array:
        mean = np.empty(len(new))
        for part, K, weights in self._batches(new):
            np.matmul(K, weights.alpha, out=mean[part])
        return mean

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        mean, variance = np.empty(len(new)), self.prior.diagonal(new)
        for part, K, weights in self._batches(new):
            np.matmul(K, weights.alpha, out=mean[part])
            variance[part] -= weights.shrinkage(K)
        return mean, np.maximum(variance, 0.0, out=variance)

    def _coordinates(self, new: Points) -> Array:
        return self.basis.features(new)

    def _explained(self, h: Array) -> Array:
        return h - h @ self.belief.covariance

    def variance_from(self, level: int, new: Points, likelihood: Likelihood) -> Array:
        """Posterior variance if only rows from a level upwards had labels; their sites stay.

        An estimate: the rows that were kept stand for all, with the weights of their likelihood.
        """
        rows = np.flatnonzero(self.points.level >= level)
        if not len(rows):
            return self.prior.diagonal(new)
        part = Points(self.points.x[rows], self.points.level[rows])
        expected = likelihood.take(rows).expectations(*self.mean_and_variance(part))
        Phi = self.basis.features(part)
        gram = (Phi.T * np.maximum(-expected.second, 0.0)) @ Phi
        belief = SparseBelief(gram, np.zeros(len(gram)))
        return replace(self, belief=belief).mean_and_variance(new)[1]

    def check(self, likelihood: Likelihood) -> None:
        """Raise ValueError where the parts do not fit each other."""
        m, n = self.inducing.total, len(self.points.x)
        if self.belief.gram.shape != (m, m) or self.belief.linear.shape != (m,):
            raise ValueError(f"a belief is not of {m} inducing points")
        if len(self.inducing.z) != len(self.prior.kernels):
            raise ValueError("there is not one set of inducing points per process")
        if any(z.ndim != 2 or z.shape[1] != self.points.x.shape[1] for z in self.inducing.z):
            raise ValueError("inducing points do not have the columns of the points")
        if likelihood.weight.shape != (n,):
            raise ValueError(f"there are {n} points and weights {likelihood.weight.shape}")

    @cached_property
    def _weights(self) -> tuple[_Weights, ...]:
        return tuple(self._weights_of(block) for block in self.basis.levels)

    def _weights_of(self, block: LevelBlock) -> _Weights:
        """Whitening and loadings applied to the belief instead of to every point."""
        shrink = -self.belief.covariance[block.square]
        shrink.flat[:: len(shrink) + 1] += 1.0
        values, vectors = np.linalg.eigh(shrink)
        kept = np.abs(values) > _NEGLIGIBLE
        G = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
        alpha = self.belief.mean[block.columns]
        for s in block.processes:
            part, T = block.parts[s], block.loading[s] * self.basis.whiteners[s]
            G[part], alpha[part] = T @ G[part], T @ alpha[part]
        return _Weights(block, alpha, QuadraticForm(G, np.sign(values[kept])))

    def _batches(self, new: Points) -> Iterator[tuple[slice, Array, _Weights]]:
        """Slices of the points, and their covariance with the inducing points of their level."""
        for t, rows in new.segments():
            weights = self._weights[t]
            block = weights.block
            for part in pieces(rows, block.width):
                K = np.empty((part.stop - part.start, block.width))
                for s in block.processes:
                    K[:, block.parts[s]] = self.basis.covariance(new.x[part], s)
                yield part, K, weights
