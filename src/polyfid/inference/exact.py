"""The full covariance matrix: exact linear algebra, n^3 time and n^2 memory.

With root = |w|^(1/2), J = sign(w) and B = J + root K root (J = I unless a site is negative),

    alpha = nu - w m,  m = K alpha,  R = root B^-1 root,
    w v = 1 - J diag(B^-1),  log|I + K W| = log|det B|.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.linalg import Cholesky, Indefinite, symm, symv
from polyfid.inference.sites import Sites
from polyfid.model.prior import Prior, PriorPullback, Tile, tiles
from polyfid.rows import Points

#: Below this w_i K_ii, 1 - diag(B^-1) has lost the digits that v_i needs.
_WEAK_SITE = 1e-5
_COLUMNS = 64  # of K at a time where variances are computed one by one


class Start(Protocol):
    """What inference may start from: a belief, or a posterior that was kept."""

    @property
    def sites(self) -> Sites: ...

    @property
    def alpha(self) -> Array: ...

    def solve(self, b: Array) -> Array:
        """B^-1 b."""
        ...


class ExactCovariance:
    """Prior covariance K of the latent values at the rows.

    Parameters
    ----------
    prior : Prior
    points : Points
    parts : list of Tile, optional
        Tiles of the points from an earlier covariance; distances between points are kept there.
    gradient : bool
        Keep what `pullback` needs.
    """

    def __init__(
        self, prior: Prior, points: Points, parts: list[Tile] | None = None, gradient: bool = False
    ) -> None:
        self.prior, self.points = prior, points
        self.tiles = tiles(points) if parts is None else parts
        self._pullback: PriorPullback | None = None
        if gradient:
            self.K, self._pullback = prior.vjp(points, self.tiles)
        else:
            self.K = prior.covariance(points, self.tiles)
        self.diagonal = np.diagonal(self.K).copy()

    def prior_belief(self) -> ExactBelief:
        """What is believed with no labels."""
        zero = np.zeros(len(self.diagonal))
        return ExactBelief(self, Sites(zero, zero), zero, zero)

    def carry_over(self, old: Start) -> ExactBelief:
        """A belief of another covariance moved to this one by keeping its alpha."""
        mean = symv(self.K, old.alpha)
        sites = Sites(old.sites.w, old.alpha + old.sites.w * mean)
        return ExactBelief(self, sites, old.alpha, mean)

    def condition(self, sites: Sites, start: ExactBelief) -> ExactBelief:
        """The posterior given the sites, by factorising B; ``start`` is refined."""
        belief = ExactBelief(self, sites, start.alpha, start.mean)
        root = belief.root
        residual = sites.nu - sites.w * start.mean - start.alpha
        correction = belief.factor.solve(root * symv(self.K, residual))
        belief.alpha = start.alpha + residual - root * correction
        belief.mean = symv(self.K, belief.alpha)
        return belief

    def condition_near(
        self, sites: Sites, start: ExactBelief, near: Start, tolerance: float, max_iter: int
    ) -> ExactBelief | None:
        """As `condition`, for the mean only: conjugate gradients preconditioned by another factor.

        Returns None where ``max_iter`` steps do not reach the relative tolerance: the other
        belief is too far for this to pay.
        """
        root = sites.root
        residual = sites.nu - sites.w * start.mean - start.alpha
        r = root * symv(self.K, residual)
        y = np.zeros_like(r)
        p = np.zeros_like(r)
        first = previous = None
        for _ in range(max_iter + 1):
            z = near.solve(r)
            gamma = float(r @ z)  # about the squared energy norm of the error
            first = gamma if first is None else first
            if gamma <= tolerance**2 * first:
                alpha = start.alpha + residual - root * y
                mean = symv(self.K, alpha)
                # The sites whose posterior this is exactly; near the ones that were asked for.
                return ExactBelief(self, Sites(sites.w, alpha + sites.w * mean), alpha, mean)
            p = z if previous is None else z + (gamma / previous) * p
            q = p + root * symv(self.K, root * p)
            step = gamma / float(p @ q)
            y += step * p
            r -= step * q
            previous = gamma
        return None

    def distance(self, belief: ExactBelief, target: Sites) -> float:
        """How far sites are from those of a belief, in units of posterior standard deviations."""
        # 1 / (1 / K_ii + w_i) bounds the posterior variance (for w >= 0) and needs no inverse.
        spread = self.diagonal / (1.0 + self.diagonal * np.maximum(target.w, 0.0))
        gradient = target.nu - target.w * belief.mean - belief.alpha
        change = np.abs(gradient) * np.sqrt(spread)
        return float(max(change.max(), (np.abs(target.w - belief.sites.w) * spread).max()))

    def pullback(self, belief: ExactBelief, implicit: tuple[Array, Array] | None) -> Array:
        """Gradient of the evidence in the prior's theta.

        The derivative in K is alpha alpha^T / 2 - R / 2 + (u g^T + g u^T) / 2, with (u, g) the
        implicit pair.
        """
        if self._pullback is None:
            raise RuntimeError("this covariance was built without gradient=True, or is used up")
        left, right = [belief.alpha], [belief.alpha]
        if implicit is not None:
            u, g = implicit
            left += [u, g]
            right += [g, u]
        U, V, root, inverse = np.stack(left, 1), np.stack(right, 1), belief.root, belief.inverse

        def adjoint(tile: Tile) -> Array:
            rows, cols = tile.rows, tile.cols
            K_bar = U[rows] @ V[cols].T
            R = inverse[rows, cols] * root[cols]
            R *= root[rows, None]
            K_bar -= R
            if tile.on_diagonal:
                K_bar[:, : len(K_bar)] *= _upper(len(K_bar))
            return np.asarray(K_bar)

        theta_bar = self._pullback(adjoint)
        self._pullback = None  # it holds arrays of the size of K
        return theta_bar


@lru_cache(maxsize=16)
def _upper(n: int) -> Array:
    """One above the diagonal, one half on it, zero below."""
    return np.triu(np.ones((n, n))) - 0.5 * np.eye(n)


class ExactBelief:
    """The Gaussian posterior at the rows, given sites; factorised when it is asked for."""

    def __init__(
        self, covariance: ExactCovariance, sites: Sites, alpha: Array, mean: Array
    ) -> None:
        self._covariance = covariance
        self.sites, self.alpha, self.mean = sites, alpha, mean
        self.root = sites.root
        self._signs = np.where(sites.w < 0.0, -1.0, 1.0)
        self._factor: Cholesky | Indefinite | None = None
        self._log_det: float | None = None

    @property
    def factor(self) -> Cholesky | Indefinite:
        """B factorised. It is used up by `inverse`, and made again if asked for afterwards."""
        if self._factor is None:
            covariance, root = self._covariance, self.root
            B = np.empty_like(covariance.K)
            for tile in covariance.tiles:
                rows, cols = tile.rows, tile.cols
                np.multiply(covariance.K[rows, cols], root[cols], out=B[rows, cols])
                B[rows, cols] *= root[rows, None]
            B.flat[:: len(B) + 1] += self._signs
            n_negative = int((self._signs < 0.0).sum())
            self._factor = Indefinite(B, n_negative) if n_negative else Cholesky(B)
            self._log_det = self._factor.log_det
        return self._factor

    def release_factor(self) -> Cholesky | Indefinite:
        """Hand B's factor over for good: `inverse`, asked for later, makes one of its own."""
        factor, self._factor = self.factor, None
        return factor

    @cached_property
    def inverse(self) -> Array:
        """B^-1, upper triangle valid."""
        inverse = self.factor.into_inverse()
        self._factor = None
        return inverse

    @property
    def log_det(self) -> float:
        """Log |I + K W|."""
        if self._log_det is None:
            self._log_det = self.factor.log_det
        return self._log_det

    def solve(self, b: Array) -> Array:
        """B^-1 b, from whichever of inverse and factor is there."""
        if "inverse" in self.__dict__:
            return symv(self.inverse, b)
        return self.factor.solve(b)

    @cached_property
    def scaled_variance(self) -> Array:
        """w_i v_i, accurate also where w_i is small."""
        return 1.0 - self._signs * np.diagonal(self.inverse)

    @cached_property
    def variance(self) -> Array:
        """Posterior variance of the latent value of each row."""
        w, K = self.sites.w, self._covariance.K
        weak = np.abs(w) * self._covariance.diagonal < _WEAK_SITE
        if not w.any():
            return self._covariance.diagonal
        variance = np.divide(self.scaled_variance, w, out=np.zeros_like(w), where=~weak)
        below = np.arange(len(K))[:, None]
        weak_rows = np.nonzero(weak)[0]
        for start in range(0, len(weak_rows), _COLUMNS):
            index = weak_rows[start : start + _COLUMNS]
            V = np.where(below <= index, K[:, index], K[index].T) * self.root[:, None]
            shrink = np.einsum("ij,ij->j", V, symm(self.inverse, V))
            variance[index] = self._covariance.diagonal[index] - shrink
        return np.maximum(variance, np.finfo(float).tiny)

    def implicit_solve(self, a: Array) -> Array:
        """(I + W K)^-1 a."""
        K = self._covariance.K
        return a - self.root * self.solve(self.root * symv(K, a))
