"""Priors over several levels: every latent function is a linear mix of independent processes.

f_t = sum_s A[t, s] g_s with g_s ~ GP(0, k_s), hence
cov(f_t(x), f_u(z)) = sum_s A[t, s] A[u, s] k_s(x, z).
A prior says how its parameters make the loadings A; the rest is common to all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.kernels import Kernel, Pairs
from polyfid.kernels.contract import Linearised
from polyfid.kernels.pairs import PairsWithin, PassingPairs, PointSet
from polyfid.kernels.parameters import HyperPrior, Parameters, Tunable
from polyfid.rows import Points

#: Elements of a tile of the covariance matrix: small enough to stay in a core's cache.
TILE_ELEMENTS = 32768

#: Mean and standard deviation of what is plausible for rho, of all steps or of each.
RhoPrior = tuple[float | tuple[float, ...], float | tuple[float, ...]]


@dataclass(frozen=True)
class Tile:
    """A rectangle of the upper triangle of a covariance matrix, of one level on each side."""

    rows: slice
    cols: slice
    levels: tuple[int, int]
    pairs: Pairs
    on_diagonal: bool


def tiles(points: Points) -> list[Tile]:
    """Cut the upper triangle of the covariance of sorted points into tiles."""
    height = int(np.clip(TILE_ELEMENTS // max(len(points), 1), 16, 256))
    segments, shared = points.segments(), PointSet(points.x)
    result = []
    for t, of_level in segments:
        count = -(-(of_level.stop - of_level.start) // height)
        edges = np.linspace(of_level.start, of_level.stop, count + 1).astype(int).tolist()
        for rows in map(slice, edges[:-1], edges[1:]):
            for u, cols_of_level in segments:
                cols = slice(max(cols_of_level.start, rows.start), cols_of_level.stop)
                if cols.start < cols.stop:
                    pairs = PairsWithin(shared, rows, cols)
                    result.append(Tile(rows, cols, (t, u), pairs, cols.start == rows.start))
    return result


class Prior(Tunable):
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
    def mixing(self) -> Parameters:
        """Free parameters of the loadings."""

    @abstractmethod
    def with_mixing(self, theta: Array) -> Self:
        """The same prior with other loadings; at least one of their parameters is free."""

    @abstractmethod
    def pull_loadings(self, A_bar: Array) -> Array:
        """The adjoint of the loadings' free parameters from that of the loadings."""

    @abstractmethod
    def mixing_prior(self) -> HyperPrior:
        """What is plausible for the parameters of the loadings."""

    @property
    @abstractmethod
    def process_names(self) -> tuple[str, ...]:
        """Names of the latent processes."""

    @property
    def mirrors(self) -> range:
        """Entries of ``theta`` whose sign separates modes of the evidence."""
        return range(0)

    @property
    def n_levels(self) -> int:
        return len(self.loadings)

    @cached_property
    def parameters(self) -> Parameters:
        named = zip(self.process_names, self.kernels, strict=True)
        return Parameters.join([self.mixing, *(k.parameters.prefixed(name) for name, k in named)])

    def with_theta(self, theta: Array) -> Self:
        cuts = np.cumsum([len(self.mixing.values), *(len(k.theta) for k in self.kernels)])
        mixing, *thetas = np.split(theta, cuts[:-1])
        kernels = (k.with_theta(own) for k, own in zip(self.kernels, thetas, strict=True))
        mixed = self.with_mixing(mixing) if len(mixing) else self
        return replace(mixed, kernels=tuple(kernels))  # type: ignore[type-var]

    def slopes(self, x: Array) -> Array:
        """Of neighbouring levels, at typical points: rho and correlation, (n_levels - 1, 2).

        Rho is the slope of the upper latent function by the lower one, before any label.
        """
        variances = np.array([float(np.mean(k.diagonal(x))) for k in self.kernels])
        joint = (self.loadings * variances) @ self.loadings.T
        own = np.maximum(np.diagonal(joint), np.finfo(float).tiny)
        shared = np.diagonal(joint, 1)
        sd = np.sqrt(own)
        return np.stack([shared / own[:-1], shared / sd[:-1] / sd[1:]], axis=1)

    def covariance(self, tiling: Sequence[Tile]) -> Array:
        """K of the tiled points, upper triangle valid, (n, n)."""
        K = _square(tiling)
        for tile in tiling:
            self._fill(K, tile, {s: k.evaluate(tile.pairs) for s, k in self._kernels_of(tile)})
        return K

    def linearise(self, tiling: Sequence[Tile]) -> LinearisedPrior:
        """`covariance`, with its derivatives."""
        K, linearised = _square(tiling), []
        for tile in tiling:
            own = {s: k.linearise(tile.pairs) for s, k in self._kernels_of(tile)}
            self._fill(K, tile, {s: at.K for s, at in own.items()})
            linearised.append((tile, own))
        return LinearisedPrior(K, self, linearised)

    def _kernels_of(self, tile: Tile) -> list[tuple[int, Kernel]]:
        """The processes that both levels of a tile have in common, and their kernels."""
        t, u = tile.levels
        common = self.support[t] & self.support[u]
        return [(s, k) for s, k in enumerate(self.kernels) if common[s]]

    def _fill(self, K: Array, tile: Tile, values: dict[int, Array]) -> None:
        (t, u), A, target = tile.levels, self.loadings, K[tile.rows, tile.cols]
        target[...] = 0.0
        for s, k in values.items():
            target += (A[t, s] * A[u, s]) * k

    def cross_covariance(self, a: Points, b: Points) -> Array:
        """Covariance of the latent values at two sets of points, (len(a), len(b))."""
        K, towards = np.empty((len(a), len(b))), CrossCovariance(self, b)
        for t, rows in a.segments():
            K[rows] = towards(a.x[rows], t)
        return K

    def joint_covariance(self, points: Points) -> Array:
        """Covariance of the latent values at the points, (n, n), noise of its rows included."""
        K = self.cross_covariance(points, points)
        K.flat[:: len(K) + 1] = self.diagonal(points)
        return K

    def diagonal(self, points: Points) -> Array:
        """Prior variance of the latent values, (n,)."""
        squares = np.square(self.loadings)[points.level]
        variances = np.stack([kernel.diagonal(points.x) for kernel in self.kernels], axis=1)
        return np.einsum("is,is->i", squares, variances)


def _square(tiling: Sequence[Tile]) -> Array:
    n = max((tile.rows.stop for tile in tiling), default=0)
    return np.empty((n, n))


@dataclass(frozen=True)
class LinearisedPrior:
    """The covariance of tiled points, upper triangle valid, and its derivatives tile by tile."""

    K: Array
    prior: Prior
    tiles: list[tuple[Tile, dict[int, Linearised]]]

    def pull(self, adjoint: Callable[[Tile], Array]) -> Array:
        """The adjoint of ``theta`` from that of K, which ``adjoint`` gives for one tile.

        Entries of a tile off the diagonal of K stand for two of K; those below it are zero.
        """
        prior = self.prior
        A, A_bar = prior.loadings, np.zeros_like(prior.loadings)
        kernel_bars = [np.zeros(len(k.theta)) for k in prior.kernels]
        for tile, own in self.tiles:
            t, u = tile.levels
            K_bar = adjoint(tile)
            for s, at in own.items():
                kernel_bars[s] += A[t, s] * A[u, s] * at.pull(K_bar).theta
                if len(A) > 1:
                    inner = np.vdot(K_bar, at.K)
                    A_bar[t, s] += inner * A[u, s]
                    A_bar[u, s] += inner * A[t, s]
        return np.concatenate([prior.pull_loadings(A_bar), *kernel_bars])


class CrossCovariance:
    """Covariances with fixed points; what depends on these alone is computed once."""

    def __init__(self, prior: Prior, points: Points) -> None:
        self._prior, self._n = prior, len(points)
        own = prior.loadings[points.level]  # (n, n_processes)
        # Runs of neighbouring points whose levels load on a process.
        self._runs = [
            (s, run, own[run, s], PointSet(points.x[run]))
            for s in range(len(prior.kernels))
            for run in _slices(own[:, s] != 0.0)
        ]

    def __call__(self, x: Array, level: int) -> Array:
        """Covariance of the points ``x``, all at one level, with the fixed ones, (len(x), n)."""
        K: Array | None = None
        for s, columns, loadings, points in self._runs:
            loading = self._prior.loadings[level, s]
            if loading == 0.0:
                continue
            k = self._prior.kernels[s].weighted(PassingPairs(x, points), loading * loadings)
            if K is None and k.shape[1] == self._n and k.flags.writeable:
                K = k
                continue
            K = np.zeros((len(x), self._n)) if K is None else K
            K[:, columns] += k
        return np.zeros((len(x), self._n)) if K is None else K


def _slices(chosen: NDArray[np.bool_]) -> list[slice]:
    """Where it is true, as slices."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _rho_prior(given: RhoPrior, n: int) -> HyperPrior:
    """What is plausible for n free parameters rho; those that are fixed are none."""
    mean, sd = (np.broadcast_to(v, n).tolist() if n else [] for v in given)
    return HyperPrior.independent(mean, sd)


@dataclass(frozen=True)
class Autoregressive(Prior):
    """Co-kriging: f_0 = g_0 and f_t = rho_t f_{t-1} + g_t (Kennedy and O'Hagan, 2000).

    One kernel per level, that of f_0 first, then those of the corrections delta_t; one rho per
    step. ``rho_prior`` has the mean and the standard deviation of what is plausible for rho: a
    number each, or one per step.
    """

    kernels: tuple[Kernel, ...]
    rho: tuple[float, ...] = ()
    rho_bounds: tuple[float, float] | str = (-10.0, 10.0)
    # Cheap labels are expected to point the right way, and may well not.
    rho_prior: RhoPrior = (1.0, 0.75)

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
        return np.tri(len(self.kernels), dtype=bool)

    @property
    def mixing(self) -> Parameters:
        names = (f"rho[{t}]" for t in range(1, len(self.kernels)))
        return Parameters.of(names, np.array(self.rho, dtype=float), self.rho_bounds)

    def with_mixing(self, theta: Array) -> Self:
        return replace(self, rho=tuple(theta.tolist()))

    def mixing_prior(self) -> HyperPrior:
        return _rho_prior(self.rho_prior, len(self.mixing.values))

    @property
    def mirrors(self) -> range:
        return range(len(self.mixing.values))

    def pull_loadings(self, A_bar: Array) -> Array:
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
class Deviating(Prior):
    """One function that lower levels show with deviations of their own, and the top without.

    f_t = c_t g_0 + g_{t+1} below the top and f_t = c_t g_0 at the top, with c_0 = 1 and
    c_t = rho_t c_{t-1}. Unlike in co-kriging no level inherits what is wrong with another. One
    kernel per level, that of g_0 first, then those of the deviations from the lowest level on.
    """

    kernels: tuple[Kernel, ...]
    rho: tuple[float, ...] = ()
    rho_bounds: tuple[float, float] | str = (-10.0, 10.0)
    # Noisy labels show less of the function: rho is a ratio of amplitudes.
    rho_prior: tuple[float, float] = (2.0, 1.5)

    @property
    def _shared(self) -> Array:
        return np.cumprod(np.array([1.0, *self.rho]))

    @property
    def loadings(self) -> Array:
        return np.column_stack([self._shared, np.eye(len(self.kernels))[:, :-1]])

    @property
    def support(self) -> NDArray[np.bool_]:
        support = np.eye(len(self.kernels), k=1, dtype=bool)
        support[:, 0] = True
        return support

    @property
    def mixing(self) -> Parameters:
        names = (f"rho[{t}]" for t in range(1, len(self.kernels)))
        return Parameters.of(names, np.array(self.rho, dtype=float), self.rho_bounds)

    def with_mixing(self, theta: Array) -> Self:
        return replace(self, rho=tuple(theta.tolist()))

    def mixing_prior(self) -> HyperPrior:
        return _rho_prior(self.rho_prior, len(self.mixing.values))

    @property
    def mirrors(self) -> range:
        return range(len(self.mixing.values))

    def pull_loadings(self, A_bar: Array) -> Array:
        if self.rho_bounds == "fixed":
            return np.empty(0)
        c, c_bar = self._shared, A_bar[:, 0].copy()
        rho_bar = np.zeros(len(self.rho))
        for t in range(len(self.rho), 0, -1):
            rho_bar[t - 1] = c_bar[t] * c[t - 1]
            c_bar[t - 1] += c_bar[t] * self.rho[t - 1]
        return rho_bar

    @property
    def process_names(self) -> tuple[str, ...]:
        return ("f", *(f"deviation[{t}]" for t in range(len(self.kernels) - 1)))


@dataclass(frozen=True)
class Coregional(Prior):
    """Linear model of coregionalisation: unordered sources share Q processes, loadings free.

    One kernel per process; ``weights`` are the loadings, (n_levels, Q).
    """

    kernels: tuple[Kernel, ...]
    weights: tuple[tuple[float, ...], ...]
    weight_bounds: tuple[float, float] | str = (-10.0, 10.0)

    def __post_init__(self) -> None:
        A = np.asarray(self.weights, dtype=float)
        if A.ndim != 2 or A.shape[1] != len(self.kernels):
            raise ValueError(
                f"weights must be (n_levels, {len(self.kernels)}), one column per kernel; "
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
    def mixing(self) -> Parameters:
        A = self.loadings
        names = (f"loading[{t},{s}]" for t, s in np.ndindex(*A.shape))
        return Parameters.of(names, A.ravel(), self.weight_bounds)

    def with_mixing(self, theta: Array) -> Self:
        return replace(self, weights=theta.reshape(self.loadings.shape))  # type: ignore[arg-type]

    def mixing_prior(self) -> HyperPrior:
        n = len(self.mixing.values)
        return HyperPrior.independent([0.5] * n, [0.75] * n)

    def pull_loadings(self, A_bar: Array) -> Array:
        return np.empty(0) if self.weight_bounds == "fixed" else A_bar.ravel()

    @property
    def process_names(self) -> tuple[str, ...]:
        return tuple(f"g[{s}]" for s in range(len(self.kernels)))
