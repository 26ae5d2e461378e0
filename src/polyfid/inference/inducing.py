"""Inducing points: a few points per process that stand for it in all rows.

With u_s = g_s(Z_s) and K_uu = L L^T, a row of level t has the features

    phi_i = [A[t, s] L_s^-1 k_s(Z_s, x_i)]_s,  f_i = phi_i^T v + the rest,  v ~ N(0, I),

where the rest, of variance k_ii - phi_i^T phi_i, is what inducing points do not explain. Noise
that every row has of its own (`White`) cannot be explained by other points, not even by one with
the same coordinates: it is in k_ii only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyfid.arrays import Array, Indices
from polyfid.inference.linalg import jittered_whitener, times_triangular
from polyfid.kernels import Pairs
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.pairs import PassingPairs, PointSet
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Elements of an array of covariances while features are computed: a megabyte stays in cache.
PIECE_ELEMENTS = 1 << 17


@dataclass(frozen=True)
class Inducing:
    """Points of each process, (m_s, d) each; a process may have none.

    Examples
    --------
    >>> import numpy as np
    >>> Inducing((np.zeros((3, 2)), np.ones((1, 2)))).sizes
    (3, 1)
    """

    z: tuple[Array, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(z) for z in self.z)

    @property
    def total(self) -> int:
        return sum(self.sizes)


class LevelBlock:
    """The part of v that the latent function of one level depends on.

    Attributes
    ----------
    processes : those with inducing points that load on the level; ``all_processes``: all that do.
    loading : the row of A that belongs to the level.
    columns : coordinates among all of v.
    parts : where each process has its own among these.
    """

    def __init__(self, prior: Prior, inducing: Inducing, level: int) -> None:
        stops = np.cumsum(inducing.sizes)
        self.all_processes: list[int] = np.flatnonzero(prior.support[level]).tolist()
        self.processes = [s for s in self.all_processes if inducing.sizes[s]]
        self.loading = prior.loadings[level]
        own = [np.arange(stops[s] - inducing.sizes[s], stops[s]) for s in self.processes]
        self.columns: Indices = np.concatenate([np.empty(0, dtype=np.intp), *own])
        edges = np.cumsum([0, *map(len, own)]).tolist()
        self.parts = dict(zip(self.processes, map(slice, edges[:-1], edges[1:]), strict=True))

    @property
    def width(self) -> int:
        return len(self.columns)

    @cached_property
    def square(self) -> tuple[Indices, ...]:
        """Index of the square block of these coordinates."""
        return np.ix_(self.columns, self.columns)


class Basis:
    """The features of a prior's inducing points.

    Parameters
    ----------
    prior : Prior
    inducing : Inducing
        One set of points per process of the prior.
    places : bool
        Whether gradients are in the places of the points too: a process's parameters are then its
        kernel's theta and the coordinates of its points, row by row.

    Raises
    ------
    NotPositiveDefinite
        Where the covariance of the inducing points is not, even with jitter.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.model.prior import Autoregressive
    >>> prior = Autoregressive((RBF(), RBF()), (2.0,))
    >>> basis = Basis(prior, Inducing((np.zeros((1, 1)), np.zeros((1, 1)))))
    >>> basis.features(Points(np.zeros((2, 1)), np.array([0, 1]))).round(6)
    array([[1., 0.],
           [2., 1.]])
    """

    def __init__(self, prior: Prior, inducing: Inducing, places: bool = False) -> None:
        if len(inducing.z) != len(prior.kernels):
            raise ValueError(
                f"inducing must have one set of points per process, {len(prior.kernels)} in all; "
                f"got {len(inducing.z)}"
            )
        if inducing.total == 0:
            raise ValueError(
                "inducing must have at least one point; kernels of noise alone have none to choose"
            )
        self.prior, self.inducing, self.places = prior, inducing, places
        self._sets = tuple(PointSet(z) for z in inducing.z)
        # Without noise, even where a point is a row: inducing points are not rows.
        squares = (k.evaluate(Pairs(z, z)) for k, z in zip(prior.kernels, inducing.z, strict=True))
        made = [jittered_whitener(K) for K in squares]
        #: L_s^-T, upper triangular, of each process.
        self.whiteners = tuple(T for T, _ in made)
        self._jitters = tuple(jitter for _, jitter in made)
        self.levels = tuple(LevelBlock(prior, inducing, t) for t in range(prior.n_levels))

    @property
    def total(self) -> int:
        return self.inducing.total

    @cached_property
    def parameters(self) -> list[slice]:
        """Where the parameters of each process are among those of all."""
        kernels = zip(self.prior.kernels, self.inducing.z, strict=True)
        sizes = [len(kernel.theta) + self.places * z.size for kernel, z in kernels]
        edges = np.cumsum([0, *sizes]).tolist()
        return list(map(slice, edges[:-1], edges[1:]))

    def covariance(self, x: Array, s: int) -> Array:
        """k_s(x, Z_s), (n, m_s)."""
        return self.prior.kernels[s].evaluate(PassingPairs(x, self._sets[s]))

    def linearise(self, x: Array, s: int) -> Linearised:
        """`covariance`, with its derivatives."""
        return self.prior.kernels[s].linearise(PassingPairs(x, self._sets[s]))

    def pull(self, at: Linearised, K_bar: Array) -> Array:
        """The adjoint of a process's parameters from that of its covariance."""
        return _flat(at.pull(K_bar, self.places))

    def pull_diagonal(self, x: Array, k_bar: Array, s: int) -> Array:
        """The adjoint of a process's parameters from that of k_s(x_i, x_i)."""
        theta_bar = self.prior.kernels[s].pull_diagonal(x, k_bar)
        return np.concatenate([theta_bar, np.zeros(self.places * self.inducing.z[s].size)])

    def whiten(self, K: Array, s: int, loading: float, out: Array) -> None:
        """Loading times K L^-T, in ``out``: the features that come from process s."""
        times_triangular(K, self.whiteners[s], lower=False, out=out)
        if loading != 1.0:
            out *= loading

    def level_features(self, x: Array, block: LevelBlock, out: Array) -> None:
        """Features of points of one level in their own coordinates, (n, block.width)."""
        for s in block.processes:
            self.whiten(self.covariance(x, s), s, block.loading[s], out[:, block.parts[s]])

    def features(self, points: Points) -> Array:
        """Phi, (n, total)."""
        Phi = np.zeros((len(points), self.total))
        for t, rows in points.segments():
            block = self.levels[t]
            own = np.empty((rows.stop - rows.start, block.width))
            self.level_features(points.x[rows], block, own)
            Phi[rows, block.columns] = own
        return Phi

    def pull_features(self, B: Array) -> list[Array]:
        """Adjoints of each process's parameters through K_uu, from B = sum_i phi_bar_i phi_i^T.

        With dL = L low(L^-1 dK_uu L^-T), where low takes the lower triangle and half the diagonal,
        d phi = -low(L^-1 dK_uu L^-T) phi, so that K_uu_bar = -L^-T low(B) L^-1.
        """
        stops = np.cumsum(self.inducing.sizes)
        bars = []
        for s, z in enumerate(self.inducing.z):
            part = slice(stops[s] - len(z), stops[s])
            low = np.tril(B[part, part])
            low.flat[:: len(z) + 1] *= 0.5
            T = self.whiteners[s]
            K_bar = -0.5 * (T @ (low + low.T) @ T.T)
            # The jitter is a share of the mean of the diagonal.
            share = self._jitters[s] * np.trace(K_bar) / max(len(z), 1)
            K_bar.flat[:: len(z) + 1] += share
            bar = self.prior.kernels[s].linearise(Pairs(z, z)).pull(K_bar, self.places)
            bars.append(_flat(bar._replace(places=2.0 * bar.places)))  # both points of a pair move
        return bars


def _flat(bars: Adjoints) -> Array:
    return np.concatenate([bars.theta, bars.places.ravel()])


def pieces(rows: slice, width: int) -> list[slice]:
    """Cut rows into pieces whose arrays of this width stay in cache."""
    size = max(64, PIECE_ELEMENTS // max(width, 1))
    return [slice(a, min(a + size, rows.stop)) for a in range(rows.start, rows.stop, size)]
