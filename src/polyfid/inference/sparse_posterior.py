"""The posterior at new points, through the inducing points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.inducing import Basis, Inducing, Seen, pieces
from polyfid.inference.linalg import jittered_root
from polyfid.inference.posterior import LevelPair, prior_pair
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Directions of v of which the labels say less than this, relative to the prior, are left out.
_NEGLIGIBLE = 1e-13


class _Weights(NamedTuple):
    """For one level: mean = K alpha and variance = k - sum_j signs_j (K G)_j^2."""

    seen: Seen
    alpha: Array
    G: Array
    signs: Array


@dataclass(frozen=True)
class SparsePosterior:
    """Gaussian posterior of the latent functions, given a belief of the inducing variables.

    It takes the place of `polyfid.inference.posterior.Posterior`: with phi = L^-1 k_u, the mean is
    phi^T mu and the covariance k_** - phi^T (I - S) phi. Rows of a prediction cost as many
    operations as there are pairs of inducing points, however many rows there were.

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
        """Posterior mean at the points, (m,)."""
        mean = np.empty(len(new))
        for part, K, weights in self._batches(new):
            np.matmul(K, weights.alpha, out=mean[part])
        return mean

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """Posterior mean and variance at the points, (m,) each, in batches of bounded memory."""
        mean, variance = np.empty(len(new)), self.prior.diagonal(new)
        for part, K, weights in self._batches(new):
            np.matmul(K, weights.alpha, out=mean[part])
            variance[part] -= np.square(K @ weights.G) @ weights.signs
        return mean, np.maximum(variance, 0.0, out=variance)

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """Posterior mean (m,) and joint covariance (m, m) at the points."""
        Phi = self.basis.features(new)
        joint = self.prior.cross_covariance(new, new)
        # What independent noise adds to a point's own variance is not in the cross-covariance.
        joint.flat[:: len(joint) + 1] = self.prior.diagonal(new)
        joint -= Phi @ Phi.T - Phi @ self.belief.covariance @ Phi.T
        return Phi @ self.belief.mean, joint

    def pair(self, x: Array, lower: int, upper: int) -> LevelPair:
        """The latent values of two levels at the same points."""
        Phi = [
            self.basis.features(Points(x, np.full(len(x), t, dtype=np.intp)))
            for t in (lower, upper)
        ]
        # S - I: what labels take away.
        change = [part @ self.belief.covariance - part for part in Phi]
        own, shared = prior_pair(self.prior, x, lower, upper)
        return LevelPair(
            Phi[0] @ self.belief.mean,
            Phi[1] @ self.belief.mean,
            own[0] + np.einsum("ij,ij->i", change[0], Phi[0]),
            own[1] + np.einsum("ij,ij->i", change[1], Phi[1]),
            shared + np.einsum("ij,ij->i", change[0], Phi[1]),
        )

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
        """Refuse parts that do not fit each other: ValueError."""
        m, n = self.inducing.total, len(self.points.x)
        if self.belief.gram.shape != (m, m) or self.belief.linear.shape != (m,):
            raise ValueError(f"a belief is not of {m} inducing points")
        if len(self.inducing.z) != len(self.prior.kernels):
            raise ValueError("there is not one set of inducing points a process")
        if any(z.ndim != 2 or z.shape[1] != self.points.x.shape[1] for z in self.inducing.z):
            raise ValueError("inducing points do not have the columns of the points")
        if likelihood.weight.shape != (n,):
            raise ValueError(f"there are {n} points and weights {likelihood.weight.shape}")

    def sample(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint samples at the points, (m, n_samples)."""
        mean, covariance = self.mean_and_covariance(new)
        noise = rng.standard_normal((len(mean), n_samples))
        return np.asarray(mean[:, None] + jittered_root(covariance) @ noise)

    @cached_property
    def _weights(self) -> tuple[_Weights, ...]:
        return tuple(self._weights_of(seen) for seen in self.basis.levels)

    def _weights_of(self, seen: Seen) -> _Weights:
        """Whitening and loadings done to the belief instead of to every point."""
        shrink = -self.belief.covariance[seen.block]
        shrink.flat[:: len(shrink) + 1] += 1.0
        values, vectors = np.linalg.eigh(shrink)
        kept = np.abs(values) > _NEGLIGIBLE
        G = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
        alpha = self.belief.mean[seen.columns]
        for s in seen.processes:
            part, T = seen.parts[s], seen.loading[s] * self.basis.whiteners[s]
            G[part], alpha[part] = T @ G[part], T @ alpha[part]
        return _Weights(seen, alpha, G, np.sign(values[kept]))

    def _batches(self, new: Points) -> Iterator[tuple[slice, Array, _Weights]]:
        """Parts of the points, and their covariance with the inducing points that they see."""
        for t, rows in new.segments():
            weights = self._weights[t]
            seen = weights.seen
            for part in pieces(rows, seen.width):
                K = np.empty((part.stop - part.start, seen.width))
                for s in seen.processes:
                    K[:, seen.parts[s]] = self.basis.covariance(new.x[part], s)
                yield part, K, weights
