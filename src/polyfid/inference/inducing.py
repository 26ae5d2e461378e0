"""Inducing points: a few points a process through which all rows see it.

With u_s = g_s(Z_s) and K_uu = L L^T, a row of level t has the features

    phi_i = [A[t, s] L_s^-1 k_s(Z_s, x_i)]_s,  f_i = phi_i^T v + the rest,  v ~ N(0, I),

where the rest is what inducing points do not explain, of variance k_ii - phi_i^T phi_i. Noise
that every row has of its own (`White`) cannot be explained by other points, not even by one with
the same coordinates: it is in k_ii only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyfid.arrays import Array, Indices
from polyfid.inference.linalg import jittered_whitener, times_triangular
from polyfid.kernels import Kernel, Pairs
from polyfid.kernels.base import Pullback
from polyfid.kernels.pairs import Anchors, PassingPairs
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


class Seen:
    """What rows of one level see: their processes, loadings, and coordinates in v."""

    def __init__(self, prior: Prior, inducing: Inducing, level: int) -> None:
        stops = np.cumsum(inducing.sizes)
        self.level = level
        #: Processes that a level is made of, and those of them that have inducing points.
        self.all_processes: list[int] = np.flatnonzero(prior.support[level]).tolist()
        self.processes = [s for s in self.all_processes if inducing.sizes[s]]
        self.loading = prior.loadings[level]
        #: Coordinates among all of v, and where each process has its own among these.
        self.columns: Indices = np.concatenate(
            [
                np.empty(0, dtype=np.intp),
                *(np.arange(stops[s] - inducing.sizes[s], stops[s]) for s in self.processes),
            ]
        )
        own = np.cumsum([0, *(inducing.sizes[s] for s in self.processes)]).tolist()
        self.parts = {s: slice(own[i], own[i + 1]) for i, s in enumerate(self.processes)}

    @property
    def width(self) -> int:
        return len(self.columns)

    @cached_property
    def block(self) -> tuple[Indices, ...]:
        """Index of the square block of these coordinates."""
        return np.ix_(self.columns, self.columns)


class Basis:
    """The features of a prior's inducing points.

    Parameters
    ----------
    prior : Prior
    inducing : Inducing
        One set of points a process of the prior.

    Raises
    ------
    NotPositiveDefinite
        Where the covariance of the inducing points is, even with jitter.

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

    def __init__(self, prior: Prior, inducing: Inducing) -> None:
        if len(inducing.z) != len(prior.kernels):
            raise ValueError(
                f"inducing must have one set of points a process, {len(prior.kernels)} in all; "
                f"got {len(inducing.z)}"
            )
        if inducing.total == 0:
            raise ValueError(
                "inducing must have at least one point; kernels of noise alone have none to choose"
            )
        self.prior, self.inducing = prior, inducing
        self._anchors = tuple(Anchors(z) for z in inducing.z)
        made = [
            jittered_whitener(_square(k, z)) for k, z in zip(prior.kernels, inducing.z, strict=True)
        ]
        #: L_s^-T, upper triangular, a process.
        self.whiteners = tuple(T for T, _ in made)
        self._jitters = tuple(jitter for _, jitter in made)
        self.levels = tuple(Seen(prior, inducing, t) for t in range(prior.n_levels))

    @property
    def total(self) -> int:
        return self.inducing.total

    def covariance(self, x: Array, s: int) -> Array:
        """k_s(x, Z_s), (n, m_s)."""
        pairs = PassingPairs(x, self._anchors[s])
        return np.broadcast_to(self.prior.kernels[s].evaluate(pairs), pairs.shape)

    def n_parameters(self, s: int) -> int:
        """Of process s, in which gradients are: the kernel's theta."""
        return len(self.prior.kernels[s].theta)

    def vjp(self, pairs: Pairs, s: int) -> tuple[Array, Pullback]:
        """k_s of the pairs, and the pullback from its adjoint to that of the parameters."""
        return self.prior.kernels[s].vjp(pairs)

    def diagonal_vjp(self, x: Array, s: int) -> tuple[Array, Pullback]:
        """k_s(x_i, x_i), and the pullback from its adjoint to that of the parameters."""
        return self.prior.kernels[s].diagonal_vjp(x)

    def covariance_vjp(self, x: Array, s: int) -> tuple[Array, Pullback]:
        """As `covariance`, and the pullback from its adjoint to that of the parameters."""
        pairs = PassingPairs(x, self._anchors[s])
        K, pullback = self.vjp(pairs, s)
        return np.broadcast_to(K, pairs.shape), pullback

    def whiten(self, K: Array, s: int, loading: float, out: Array) -> None:
        """Loading times K L^-T, in ``out``: the part of the features that process s makes."""
        times_triangular(K, self.whiteners[s], lower=False, out=out)
        if loading != 1.0:
            out *= loading

    def level_features(self, x: Array, seen: Seen, out: Array) -> None:
        """Features of points of one level in the coordinates that they see, (n, seen.width)."""
        for s in seen.processes:
            self.whiten(self.covariance(x, s), s, seen.loading[s], out[:, seen.parts[s]])

    def features(self, points: Points) -> Array:
        """Phi, (n, total)."""
        Phi = np.zeros((len(points), self.total))
        for t, rows in points.segments():
            seen = self.levels[t]
            own = np.empty((rows.stop - rows.start, seen.width))
            self.level_features(points.x[rows], seen, own)
            Phi[rows, seen.columns] = own
        return Phi

    def pullback(self, B: Array) -> list[Array]:
        """Adjoints of the parameters by way of K_uu, from B = sum_i phi_bar_i phi_i^T.

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
            bars.append(
                self.square_pullback(K_bar, s) if len(z) else np.zeros(self.n_parameters(s))
            )
        return bars

    def square_pullback(self, K_bar: Array, s: int) -> Array:
        """The adjoint of the parameters from the symmetric one of K_uu."""
        z = self.inducing.z[s]
        return self.vjp(Pairs(z, z), s)[1](K_bar)


class MovableBasis(Basis):
    """The same features, with gradients in the kernels' theta and then in places, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.model.prior import Autoregressive
    >>> basis = MovableBasis(Autoregressive((RBF(),)), Inducing((np.zeros((1, 1)),)))
    >>> basis.covariance_vjp(np.ones((1, 1)), 0)[1](np.ones((1, 1))).round(4)
    array([0.6065, 0.6065])
    """

    def n_parameters(self, s: int) -> int:
        return super().n_parameters(s) + self.inducing.z[s].size

    def vjp(self, pairs: Pairs, s: int) -> tuple[Array, Pullback]:
        K, to_theta = super().vjp(pairs, s)
        _, to_places = self.prior.kernels[s].place_vjp(pairs)
        return K, lambda K_bar: np.concatenate([to_theta(K_bar), to_places(K_bar).ravel()])

    def diagonal_vjp(self, x: Array, s: int) -> tuple[Array, Pullback]:
        diagonal, to_theta = super().diagonal_vjp(x, s)
        nothing = np.zeros(self.inducing.z[s].size)
        return diagonal, lambda k_bar: np.concatenate([to_theta(k_bar), nothing])

    def square_pullback(self, K_bar: Array, s: int) -> Array:
        bar = super().square_pullback(K_bar, s)
        bar[super().n_parameters(s) :] *= 2.0  # both points of a pair move
        return bar


def _square(kernel: Kernel, z: Array) -> Array:
    """K_uu of a process, without noise: inducing points are not rows."""
    if len(z) == 0:
        return np.empty((0, 0))
    return np.array(np.broadcast_to(kernel.evaluate(Pairs(z, z)), (len(z), len(z))))


def pieces(rows: slice, width: int) -> list[slice]:
    """Cut rows into pieces whose arrays of this width stay in cache."""
    size = max(64, PIECE_ELEMENTS // max(width, 1))
    return [slice(a, min(a + size, rows.stop)) for a in range(rows.start, rows.stop, size)]
