"""The full covariance matrix: exact linear algebra, n^3 time and n^2 memory.

With root = |w|^(1/2), J = sign(w) and B = J + root K root (J = I unless a site is negative),

    alpha = nu - w m,  m = K alpha,  R = root B^-1 root,
    w v = 1 - J diag(B^-1),  log|I + K W| = log|det B|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.linalg import Cholesky, Factor, Indefinite, Inverse, symm, symv
from polyfid.model.prior import Prior, Tile, tiles
from polyfid.rows import Points

#: Below this w_i K_ii, 1 - diag(B^-1) has lost the digits that v_i needs.
_WEAK_SITE = 1e-5
_COLUMNS = 64  # of K at a time where variances are computed one by one


@dataclass(frozen=True)
class Sites:
    """What stands in for the labels: one factor exp(nu f - w f^2 / 2) per row, (n,) each."""

    w: Array
    nu: Array

    @property
    def root(self) -> Array:
        """|w|^(1/2)."""
        return np.sqrt(np.abs(self.w))

    @property
    def signs(self) -> Array:
        """-1 where w is negative, else 1."""
        return np.where(self.w < 0.0, -1.0, 1.0)


@dataclass(frozen=True)
class Start:
    """What inference may start from: sites and alpha of another belief, and its B to solve with."""

    sites: Sites
    alpha: Array
    solver: Factor | Inverse


class ExactCovariance:
    """Prior covariance K of the latent values at the rows; ``gradient`` keeps what `pull` needs.

    ``tiled``: tiles of the same points from before, which keep the distances between them.
    """

    def __init__(
        self, prior: Prior, points: Points, tiled: list[Tile] | None = None, gradient: bool = False
    ) -> None:
        self.prior, self.points = prior, points
        self.tiles = tiles(points) if tiled is None else tiled
        self._linearised = prior.linearise(self.tiles) if gradient else None
        self.K = prior.covariance(self.tiles) if self._linearised is None else self._linearised.K
        self.diagonal = np.diagonal(self.K).copy()

    def prior_belief(self) -> ExactBelief:
        """What is believed with no labels."""
        zero = np.zeros(len(self.diagonal))
        return ExactBelief(self, Sites(zero, zero), zero, zero)

    def factorise(self, sites: Sites) -> Factor:
        """B, factorised."""
        root, signs = sites.root, sites.signs
        B = np.empty_like(self.K)
        for tile in self.tiles:
            rows, cols = tile.rows, tile.cols
            np.multiply(self.K[rows, cols], root[cols], out=B[rows, cols])
            B[rows, cols] *= root[rows, None]
        B.flat[:: len(B) + 1] += signs
        return Indefinite.of(B, signs) if (signs < 0.0).any() else Cholesky(B)

    def condition(self, sites: Sites, start: ExactBelief, inverted: bool = False) -> ExactBelief:
        """The posterior given the sites; its mean is refined from that of ``start``."""
        factor = self.factorise(sites)
        residual = sites.nu - sites.w * start.mean - start.alpha
        correction = factor.solve(sites.root * symv(self.K, residual))
        alpha = start.alpha + residual - sites.root * correction
        solver = factor.into_inverse() if inverted else factor
        return ExactBelief(self, sites, alpha, symv(self.K, alpha), solver)

    def condition_near(
        self, sites: Sites, start: ExactBelief, near: Factor | Inverse, tolerance: float, steps: int
    ) -> ExactBelief | None:
        """The mean only, by conjugate gradients preconditioned by a similar B; None if too far."""
        root = sites.root
        residual = sites.nu - sites.w * start.mean - start.alpha
        r = root * symv(self.K, residual)
        y, p = np.zeros_like(r), np.zeros_like(r)
        first = previous = None
        for _ in range(steps + 1):
            z = near.solve(r)
            gamma = float(r @ z)  # about the squared energy norm of the error
            first = gamma if first is None else first
            if gamma <= tolerance**2 * first:
                # Not quite the sites that were asked for, but exactly those of this posterior.
                return self.with_alpha(start.alpha + residual - root * y, sites.w)
            p = z if previous is None else z + (gamma / previous) * p
            q = p + root * symv(self.K, root * p)
            step = gamma / float(p @ q)
            y += step * p
            r -= step * q
            previous = gamma
        return None

    def times(self, a: Array) -> Array:
        """K a."""
        return np.asarray(symv(self.K, a))

    def with_alpha(self, alpha: Array, w: Array) -> ExactBelief:
        """The belief with this alpha and these precisions of the sites."""
        mean = symv(self.K, alpha)
        return ExactBelief(self, Sites(w, alpha + w * mean), alpha, mean)

    def pull(self, belief: ExactBelief, implicit: tuple[Array, Array] | None) -> Array:
        """Gradient of the evidence in the prior's theta, with (u, g) the implicit pair.

        The derivative in K is alpha alpha^T / 2 - R / 2 + (u g^T + g u^T) / 2.
        """
        if self._linearised is None:
            raise RuntimeError("this covariance was built without gradient=True")
        left, right = [belief.alpha], [belief.alpha]
        if implicit is not None:
            u, g = implicit
            left += [u, g]
            right += [g, u]
        U, V = np.stack(left, 1), np.stack(right, 1)
        root, inverse = belief.sites.root, belief.inverse.matrix

        def adjoint(tile: Tile) -> Array:
            """2 K_bar = U V^T - R of a tile."""
            K_bar: Array = U[tile.rows] @ V[tile.cols].T
            R = inverse[tile.rows, tile.cols] * root[tile.cols]
            R *= root[tile.rows, None]
            K_bar -= R
            if tile.on_diagonal:
                K_bar[:, : len(K_bar)] *= _upper(len(K_bar))
            return K_bar

        return self._linearised.pull(adjoint)


@lru_cache(maxsize=16)
def _upper(n: int) -> Array:
    """One above the diagonal, one half on it, zero below."""
    return np.triu(np.ones((n, n))) - 0.5 * np.eye(n)


@dataclass(frozen=True)
class ExactBelief:
    """The Gaussian posterior at the rows, given sites; with B factorised, B^-1 or neither."""

    covariance: ExactCovariance
    sites: Sites
    alpha: Array
    mean: Array
    solver: Factor | Inverse | None = None

    def solved(self, inverted: bool) -> ExactBelief:
        """The belief with B^-1, or with B factorised; itself if it has that already."""
        if isinstance(self.solver, Inverse if inverted else Factor):
            return self
        return self.covariance.condition(self.sites, self, inverted)

    @property
    def factor(self) -> Factor:
        """B, factorised."""
        if isinstance(self.solver, Factor):
            return self.solver
        return self.covariance.factorise(self.sites)

    @cached_property
    def inverse(self) -> Inverse:
        """B^-1."""
        if isinstance(self.solver, Inverse):
            return self.solver
        return self.covariance.factorise(self.sites).into_inverse()

    def start(self) -> Start:
        """What another inference may start from, without the covariance of this one."""
        return Start(self.sites, self.alpha, self.solver or self.factor)

    @property
    def log_det(self) -> float:
        """Log |I + K W|."""
        if self.solver is None and not self.sites.w.any():
            return 0.0
        return (self.solver or self.factor).log_det

    @cached_property
    def scaled_variance(self) -> Array:
        """w_i v_i, accurate also where w_i is small."""
        return np.asarray(1.0 - self.sites.signs * np.diagonal(self.inverse.matrix))

    @cached_property
    def variance(self) -> Array:
        """Posterior variance of the latent value of each row."""
        w, K, prior = self.sites.w, self.covariance.K, self.covariance.diagonal
        if self.solver is None and not w.any():
            return prior
        weak = np.abs(w) * prior < _WEAK_SITE
        variance = np.divide(self.scaled_variance, w, out=np.zeros_like(w), where=~weak)
        below = np.arange(len(K))[:, None]
        weak_rows = np.flatnonzero(weak)
        for start in range(0, len(weak_rows), _COLUMNS):
            index = weak_rows[start : start + _COLUMNS]
            V = np.where(below <= index, K[:, index], K[index].T) * self.sites.root[:, None]
            shrink = np.einsum("ij,ij->j", V, symm(self.inverse.matrix, V))
            variance[index] = prior[index] - shrink
        # What is smaller is rounding error; rows whose latent value is known to be 0 have none.
        least = np.finfo(float).eps * self.spread
        return np.maximum(variance, np.maximum(least, np.finfo(float).tiny))

    @property
    def joint(self) -> Array:
        """Posterior covariance of the latent values of all rows, (n, n)."""
        sites, K, B_inverse = self.sites, self.covariance.K, self.inverse.matrix
        weak = np.abs(sites.w) * self.covariance.diagonal < _WEAK_SITE
        root, signs = np.where(weak, 1.0, sites.root), sites.signs
        joint = -np.triu(B_inverse, 1) * signs * signs[:, None]
        joint += joint.T
        joint.flat[:: len(joint) + 1] = signs - np.diagonal(B_inverse)
        joint /= root * root[:, None]
        below, weak_rows = np.arange(len(K))[:, None], np.flatnonzero(weak)
        if len(weak_rows):
            columns = np.where(below <= weak_rows, K[:, weak_rows], K[weak_rows].T)
            half = symm(B_inverse, columns * sites.root[:, None]) * sites.root[:, None]
            columns = columns - symm(K, half)
            joint[:, weak_rows] = columns
            joint[weak_rows] = columns.T
        return joint

    def whitened(self, w: Array, nu: Array) -> Array:
        """A change of the sites in posterior standard deviations: of means, of precisions, (2n,).

        The deviations are those of `spread`, which needs no inverse.
        """
        spread = self.spread
        return np.concatenate([np.sqrt(spread) * (nu - w * self.mean), spread * w])

    @property
    def spread(self) -> Array:
        """An upper bound of the posterior variances, if no site is negative."""
        prior = self.covariance.diagonal
        return np.asarray(prior / (1.0 + prior * np.maximum(self.sites.w, 0.0)))

    def implicit_solve(self, a: Array) -> Array:
        """(I + W K)^-1 a."""
        root = self.sites.root
        return np.asarray(a - root * self.inverse.solve(root * symv(self.covariance.K, a)))
