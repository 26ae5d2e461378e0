"""Priors over several levels: every latent function is a linear mix of independent processes.

f_t = sum_s A[t, s] g_s with g_s ~ GP(0, k_s), hence
cov(f_t(x), f_u(z)) = sum_s A[t, s] A[u, s] k_s(x, z).
A prior says how its parameters make the loadings A; the rest is common to all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.kernels import Kernel, Pairs
from polyfid.kernels.base import Pullback
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.model.cross import CrossCovariance
from polyfid.rows import Points

#: Turns the adjoint of K, handed out by tiles, into the adjoint of theta. Entries of a tile off
#: the diagonal of K stand for two of K, those below it within a tile are zero.
PriorPullback = Callable[[Callable[["Tile"], Array]], Array]

#: Elements of a tile of the covariance matrix: small enough to stay in a core's cache.
TILE_ELEMENTS = 32768


@dataclass(frozen=True)
class Tile:
    """A rectangle of the upper triangle of a covariance matrix, with one level a side."""

    rows: slice
    cols: slice
    levels: tuple[int, int]
    pairs: Pairs
    on_diagonal: bool


def tiles(points: Points) -> list[Tile]:
    """Cut the upper triangle of the covariance of sorted points into tiles."""
    n = len(points)
    height = int(np.clip(TILE_ELEMENTS // max(n, 1), 16, 256))
    segments = points.segments()
    result = []
    for t, of_level in segments:
        count = -(-(of_level.stop - of_level.start) // height)
        edges = np.linspace(of_level.start, of_level.stop, count + 1).astype(int).tolist()
        for rows in map(slice, edges[:-1], edges[1:]):
            for u, cols_of_level in segments:
                cols = slice(max(cols_of_level.start, rows.start), cols_of_level.stop)
                if cols.start >= cols.stop:
                    continue
                pairs = Pairs(points.x[rows], points.x[cols], rows.start - cols.start)
                result.append(Tile(rows, cols, (t, u), pairs, cols.start == rows.start))
    return result


class Prior(ABC):
    """Kernels of the latent processes and the loadings that mix them into levels."""

    kernels: tuple[Kernel, ...]

    @property
    @abstractmethod
    def loadings(self) -> Array:
        """A, (n_levels, n_processes)."""

    @property
    @abstractmethod
    def support(self) -> NDArray[np.bool_]:
        """Which loadings may differ from zero."""

    @property
    @abstractmethod
    def mixing_theta(self) -> Array:
        """Free parameters of the loadings."""

    @abstractmethod
    def with_mixing_theta(self, theta: Array) -> Self:
        """The same prior with other loadings."""

    @property
    @abstractmethod
    def mixing_bounds(self) -> Array:
        """Bounds of ``mixing_theta``."""

    @property
    @abstractmethod
    def mixing_names(self) -> tuple[str, ...]:
        """Names of ``mixing_theta``."""

    @abstractmethod
    def mixing_prior(self) -> HyperPrior:
        """What is plausible for ``mixing_theta``."""

    @property
    def mirrors(self) -> range:
        """Entries of ``mixing_theta`` whose sign separates modes of the evidence."""
        return range(0)

    @abstractmethod
    def loadings_pullback(self, A_bar: Array) -> Array:
        """Adjoint of ``mixing_theta`` from the adjoint of the loadings."""

    @property
    @abstractmethod
    def process_names(self) -> tuple[str, ...]:
        """Names of the latent processes."""

    @property
    def n_levels(self) -> int:
        return len(self.loadings)

    @property
    def theta(self) -> Array:
        return np.concatenate([self.mixing_theta, *(k.theta for k in self.kernels)])

    def with_theta(self, theta: Array) -> Self:
        start = len(self.mixing_theta)
        prior = self.with_mixing_theta(theta[:start])
        kernels = []
        for kernel in self.kernels:
            stop = start + len(kernel.theta)
            kernels.append(kernel.with_theta(theta[start:stop]))
            start = stop
        return replace(prior, kernels=tuple(kernels))  # type: ignore[type-var]

    @property
    def bounds(self) -> Array:
        return np.concatenate([self.mixing_bounds, *(k.bounds for k in self.kernels)])

    @property
    def theta_names(self) -> tuple[str, ...]:
        return self.mixing_names + tuple(
            f"{process}.{name}"
            for process, kernel in zip(self.process_names, self.kernels, strict=True)
            for name in kernel.theta_names
        )

    def covariance(self, points: Points, parts: Sequence[Tile]) -> Array:
        """K of the points, upper triangle valid, (n, n)."""
        return self._assemble(points, parts, lambda tile, s: self.kernels[s].evaluate(tile.pairs))

    def _assemble(
        self, points: Points, parts: Sequence[Tile], part: Callable[[Tile, int], Array]
    ) -> Array:
        K = np.empty((len(points), len(points)))
        A, support = self.loadings, self.support
        for tile in parts:
            t, u = tile.levels
            target = K[tile.rows, tile.cols]
            target[...] = 0.0
            for s in np.nonzero(support[t] & support[u])[0].tolist():
                target += (A[t, s] * A[u, s]) * part(tile, s)
        return K

    def vjp(self, points: Points, parts: Sequence[Tile]) -> tuple[Array, PriorPullback]:
        """K as `covariance` gives it, and the pullback from its adjoint to that of ``theta``."""
        kept: dict[tuple[int, int, int], tuple[Array, Pullback]] = {}

        def part(tile: Tile, s: int) -> Array:
            kept[tile.rows.start, tile.cols.start, s] = value = self.kernels[s].vjp(tile.pairs)
            return value[0]

        K = self._assemble(points, parts, part)

        def pullback(adjoint: Callable[[Tile], Array]) -> Array:
            A = self.loadings
            A_bar = np.zeros_like(A)
            kernel_bars = [np.zeros(len(k.theta)) for k in self.kernels]
            for tile in parts:
                t, u = tile.levels
                K_bar = adjoint(tile)
                for s, bar in enumerate(kernel_bars):
                    if (key := (tile.rows.start, tile.cols.start, s)) not in kept:
                        continue
                    k, pull = kept[key]
                    bar += A[t, s] * A[u, s] * pull(K_bar)
                    if len(A) > 1:
                        inner = np.vdot(K_bar, np.broadcast_to(k, K_bar.shape))
                        A_bar[t, s] += inner * A[u, s]
                        A_bar[u, s] += inner * A[t, s]
            return np.concatenate([self.loadings_pullback(A_bar), *kernel_bars])

        return K, pullback

    def cross_covariance(self, a: Points, b: Points) -> Array:
        """Covariance of the latent values at two sets of points, (len(a), len(b))."""
        K, towards = np.empty((len(a), len(b))), self.towards(b)
        for t, rows in a.segments():
            K[rows] = towards(a.x[rows], t)
        return K

    def towards(self, points: Points) -> CrossCovariance:
        """The covariance of any latent values with those at the points, for use time and again."""
        return CrossCovariance(self.kernels, self.loadings, points)

    def diagonal(self, points: Points) -> Array:
        """Prior variance of the latent values, (n,)."""
        squares = np.square(self.loadings)[points.level]
        total = np.zeros(len(points))
        for s, kernel in enumerate(self.kernels):
            total += squares[:, s] * kernel.diagonal(points.x)
        return total


@dataclass(frozen=True)
class Autoregressive(Prior):
    """Co-kriging: f_0 = g_0 and f_t = rho_t f_{t-1} + g_t (Kennedy and O'Hagan, 2000).

    Parameters
    ----------
    kernels : one kernel a level, that of f_0 first, then those of the corrections delta_t.
    rho : one coefficient a step, (n_levels - 1,).
    rho_bounds : (low, high) or "fixed".
    rho_prior : mean and standard deviation of what is plausible for rho.

    Examples
    --------
    >>> from polyfid.kernels import RBF
    >>> Autoregressive((RBF(), RBF(), RBF()), rho=(0.5, 2.0)).loadings
    array([[1. , 0. , 0. ],
           [0.5, 1. , 0. ],
           [1. , 2. , 1. ]])
    """

    kernels: tuple[Kernel, ...]
    rho: tuple[float, ...] = ()
    rho_bounds: tuple[float, float] | str = (-10.0, 10.0)
    # Cheap labels are expected to point the right way, and may well not.
    rho_prior: tuple[float, float] = (1.0, 0.75)

    def __post_init__(self) -> None:
        rho = tuple(float(r) for r in np.atleast_1d(np.asarray(self.rho, dtype=float)))
        if len(rho) != len(self.kernels) - 1:
            raise ValueError(
                f"rho needs {len(self.kernels) - 1} values for {len(self.kernels)} levels, "
                f"got {len(rho)}"
            )
        object.__setattr__(self, "rho", rho)

    @property
    def loadings(self) -> Array:
        n = len(self.kernels)
        A = np.eye(n)
        for t in range(1, n):
            A[t, :t] = self.rho[t - 1] * A[t - 1, :t]
        return A

    @property
    def support(self) -> NDArray[np.bool_]:
        n = len(self.kernels)
        return np.tri(n, dtype=bool)

    @property
    def mixing_theta(self) -> Array:
        return np.empty(0) if self.rho_bounds == "fixed" else np.array(self.rho, dtype=float)

    def with_mixing_theta(self, theta: Array) -> Self:
        return self if self.rho_bounds == "fixed" else replace(self, rho=tuple(theta.tolist()))

    @property
    def mixing_bounds(self) -> Array:
        if isinstance(self.rho_bounds, str):
            return np.empty((0, 2))
        return np.array([self.rho_bounds] * len(self.rho), dtype=float).reshape(-1, 2)

    @property
    def mixing_names(self) -> tuple[str, ...]:
        if self.rho_bounds == "fixed":
            return ()
        return tuple(f"rho[{t}]" for t in range(1, len(self.kernels)))

    def mixing_prior(self) -> HyperPrior:
        n = len(self.mixing_theta)
        mean, sd = self.rho_prior
        return HyperPrior.independent([mean] * n, [sd] * n)

    @property
    def mirrors(self) -> range:
        return range(len(self.mixing_theta))

    def loadings_pullback(self, A_bar: Array) -> Array:
        if self.rho_bounds == "fixed":
            return np.empty(0)
        # A[t] = rho_t A[t-1] + e_t, run backwards.
        A, A_bar = self.loadings, A_bar.copy()
        rho_bar = np.zeros(len(self.rho))
        for t in range(len(self.kernels) - 1, 0, -1):
            rho_bar[t - 1] = A_bar[t] @ A[t - 1]
            A_bar[t - 1] += self.rho[t - 1] * A_bar[t]
        return rho_bar

    @property
    def process_names(self) -> tuple[str, ...]:
        return ("f[0]", *(f"delta[{t}]" for t in range(1, len(self.kernels))))


@dataclass(frozen=True)
class Coregional(Prior):
    """Linear model of coregionalisation: unordered sources share Q processes, loadings free.

    Parameters
    ----------
    kernels : one kernel a latent process, Q in all.
    weights : loadings, (n_levels, Q).
    weight_bounds : (low, high) or "fixed".

    Examples
    --------
    >>> from polyfid.kernels import RBF
    >>> Coregional((RBF(),), [[1.0], [-0.5]]).loadings
    array([[ 1. ],
           [-0.5]])
    """

    kernels: tuple[Kernel, ...]
    weights: tuple[tuple[float, ...], ...]
    weight_bounds: tuple[float, float] | str = (-10.0, 10.0)

    def __post_init__(self) -> None:
        A = np.asarray(self.weights, dtype=float)
        if A.ndim != 2 or A.shape[1] != len(self.kernels):
            raise ValueError(
                f"weights must be (n_levels, {len(self.kernels)}), one column a kernel; "
                f"got shape {A.shape}"
            )
        object.__setattr__(self, "weights", tuple(tuple(row) for row in A.tolist()))

    @property
    def loadings(self) -> Array:
        return np.asarray(self.weights, dtype=float)

    @property
    def support(self) -> NDArray[np.bool_]:
        return np.ones(self.loadings.shape, dtype=bool)

    @property
    def mixing_theta(self) -> Array:
        return np.empty(0) if self.weight_bounds == "fixed" else self.loadings.ravel()

    def with_mixing_theta(self, theta: Array) -> Self:
        if self.weight_bounds == "fixed":
            return self
        rows = theta.reshape(self.loadings.shape)
        return replace(self, weights=tuple(tuple(row.tolist()) for row in rows))

    @property
    def mixing_bounds(self) -> Array:
        if isinstance(self.weight_bounds, str):
            return np.empty((0, 2))
        return np.array([self.weight_bounds] * self.loadings.size, dtype=float).reshape(-1, 2)

    @property
    def mixing_names(self) -> tuple[str, ...]:
        if self.weight_bounds == "fixed":
            return ()
        n, q = self.loadings.shape
        return tuple(f"loading[{t},{s}]" for t in range(n) for s in range(q))

    def mixing_prior(self) -> HyperPrior:
        n = len(self.mixing_theta)
        return HyperPrior.independent([0.5] * n, [0.75] * n)

    def loadings_pullback(self, A_bar: Array) -> Array:
        return np.empty(0) if self.weight_bounds == "fixed" else A_bar.ravel()

    @property
    def process_names(self) -> tuple[str, ...]:
        return tuple(f"g[{s}]" for s in range(len(self.kernels)))
