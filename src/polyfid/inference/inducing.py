"""Inducing points: a few points per process that stand for it in all rows.

With u_s = g_s(Z_s) and K_uu = L L^T, a row of level t has the features

    phi_i = [A[t, s] L_s^-1 k_s(Z_s, x_i)]_s,  f_i = phi_i^T v + the rest,  v ~ N(0, I),

where the rest, of variance k_ii - phi_i^T phi_i, is what inducing points do not explain. Noise
that every row has of its own (`White`) is in k_ii only: no other point explains it.

The belief of v is q(v) = N(mu, S), by natural parameters relative to the prior N(0, I): sums over
the rows, which steps mix linearly,

    S^-1 = I + sum_i w_i phi_i phi_i^T,  S^-1 mu = sum_i nu_i phi_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyfid.arrays import Array, Indices, own_order, sort_rows
from polyfid.inference.linalg import (
    Cholesky,
    NotPositiveDefinite,
    jittered_whitener,
    lower_root,
    times_triangular,
)
from polyfid.kernels import Kernel, Pairs
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.pairs import PassingPairs, PointSet
from polyfid.model.prior import Prior
from polyfid.rows.rows import Points, consecutive
from polyfid.rows.source import one_blas_thread

#: Elements of an array of covariances while features are computed: a megabyte stays in cache.
PIECE_ELEMENTS = 1 << 17
#: Candidates for points: at least so many rows, and so many per point that is wanted.
_CANDIDATES, _CANDIDATES_EACH = 5000, 4
#: A point that the others explain to this share of its variance adds nothing but rounding errors.
_EXPLAINED = 1e-10
#: Length-scales may well become this much shorter in tuning.
_SHORTER = 10.0
#: Rows that differ by less, relative to the range of the widest column, are at the same place.
_SAME_PLACE = 1e-7
#: Rows are as near to a centre if their squared distances differ by less, relative to the mean.
_TIE = 1e-10
_FEW_ROWS = 32  # at a time where a diagonal comes out of a square


@dataclass(frozen=True)
class Inducing:
    """Points of each process, (m_s, d) each; a process may have none."""

    z: tuple[Array, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(z) for z in self.z)

    @property
    def total(self) -> int:
        return sum(self.sizes)

    @property
    def slices(self) -> list[slice]:
        """Where each process has its coordinates among all of v."""
        return consecutive(self.sizes)


def choose(
    points: Points, prior: Prior, n_inducing: int | Sequence[int], random_state: Any = None
) -> Inducing:
    """Inducing points for each process: rows, nearest to centres of clusters, of its levels.

    Rows are never means of rows, so that categories stay categories. No row is taken twice, nor
    one that others explain wholly under the kernel. ``n_inducing`` is the most per process.
    """
    rng = check_random_state(random_state)
    chosen = []
    columns = own_order(points.x)  # so that the choice does not depend on their order
    back = np.argsort(columns)
    for s, m in enumerate(np.broadcast_to(n_inducing, len(prior.kernels)).tolist()):
        x = _candidates(points.x[prior.support[points.level, s]][:, columns], m, rng)
        apart = _apart(x) if m < len(x) else x
        x = _nearest_to_centres(apart, m, rng) if m < len(apart) else apart
        x = np.ascontiguousarray(x[:, back])
        chosen.append(x[_pivots(_wigglier(prior.kernels[s]), x, m)])
    return Inducing(tuple(chosen))


def _candidates(x: Array, m: int, rng: np.random.RandomState) -> Array:
    """Distinct rows, a sample of them if they are many, in an order of their own."""
    most = max(_CANDIDATES, _CANDIDATES_EACH * m)
    if len(x) > most:
        x = x[rng.permutation(len(x))[:most]]
    order, starts = sort_rows(*x.T)
    return np.ascontiguousarray(x[order[starts]])


def _apart(x: Array) -> Array:
    """Rows of which no two are at the same place as far as squared distances can tell."""
    reach = np.ptp(x, axis=0).max(initial=0.0)
    if not reach > np.finfo(float).tiny:
        return x[:1]
    order, starts = sort_rows(*np.round((x - x.min(axis=0)) / (_SAME_PLACE * reach)).T)
    return np.ascontiguousarray(x[np.sort(order[starts])])


def _nearest_to_centres(x: Array, m: int, rng: np.random.RandomState) -> Array:
    # Exact fits, most of all small ones, do without these, which take a while to import.
    from sklearn.cluster import KMeans

    seed = rng.randint(2**31 - 1)
    # A power of two changes no digit; without it squares of tiny numbers would vanish. Rounding
    # errors, which depend on the order of the columns, may decide between clusters as good.
    unit = np.ldexp(1.0, np.frexp(np.ptp(x, axis=0).max())[1])
    scaled = np.round(x / unit, 12)
    # KMeans limits BLAS too: another thread that then began to would take that for what was before.
    with one_blas_thread():
        centres = KMeans(m, n_init=1, max_iter=30, random_state=seed).fit(scaled).cluster_centers_
    nearest = []
    for centre in centres:
        distances = np.square(scaled - centre).sum(axis=1)
        # Both rows of a cluster of two are as near: the first one, whatever rounding says.
        nearest.append(np.argmax(distances <= distances.min() + _TIE * distances.mean()))
    return x[np.unique(nearest)]


def _wigglier(kernel: Kernel) -> Kernel:
    """The kernel with shorter length-scales: what is redundant even then stays so while tuned."""
    lengths = np.array(["length_scale" in name for name in kernel.theta_names], dtype=bool)
    return kernel.with_theta(kernel.theta - np.where(lengths, np.log(_SHORTER), 0.0))


def _pivots(kernel: Kernel, x: Array, m: int) -> Indices:
    """At most m rows, each the one of which the earlier ones leave most variance unexplained.

    These are the pivots of a Cholesky factorisation of the kernel's matrix without noise.
    """
    blocks = (x[start : start + _FEW_ROWS] for start in range(0, len(x), _FEW_ROWS))
    own = [np.diagonal(kernel.evaluate(Pairs(block, block))) for block in blocks]
    left = np.concatenate([np.empty(0), *own])
    enough = _EXPLAINED * left.max(initial=0.0)
    rows = np.empty((min(m, len(x)), len(x)))
    pivots: list[int] = []
    for j, row in enumerate(rows):
        i = int(np.argmax(left))
        if left[i] <= enough:
            break
        row[:] = kernel.evaluate(Pairs(x[i : i + 1], x))[0]
        row -= rows[:j, i] @ rows[:j]
        row /= np.sqrt(left[i])
        left -= np.square(row)
        left[i] = 0.0
        pivots.append(i)
    return np.array(pivots, dtype=np.intp)


class LevelBlock:
    """The coordinates of v that the latent function of one level depends on."""

    def __init__(self, prior: Prior, inducing: Inducing, level: int) -> None:
        self.all_processes: list[int] = np.flatnonzero(prior.support[level]).tolist()
        #: Processes with inducing points that load on the level.
        self.processes = [s for s in self.all_processes if inducing.sizes[s]]
        #: The row of A that belongs to the level.
        self.loading = prior.loadings[level]
        own = [np.r_[inducing.slices[s]] for s in self.processes]
        #: Coordinates among all of v, and where each process has its own among these.
        self.columns: Indices = np.concatenate([np.empty(0, dtype=np.intp), *own])
        self.slices = dict(zip(self.processes, consecutive(map(len, own)), strict=True))

    @property
    def width(self) -> int:
        return len(self.columns)

    @cached_property
    def square(self) -> tuple[Indices, ...]:
        """Index of the square block of these coordinates."""
        return np.ix_(self.columns, self.columns)


class Basis:
    """The features of a prior's inducing points, one set of points per process.

    With ``places``, gradients are in the places of the points too: the parameters of a process are
    then its kernel's theta and the coordinates of its points, row by row.
    """

    def __init__(self, prior: Prior, inducing: Inducing, places: bool = False) -> None:
        if inducing.total == 0:
            raise ValueError(
                "n_inducing goes with kernels of which points explain each other, and this kernel "
                "is noise of single rows alone; add another one to it, or use n_inducing=None"
            )
        self.prior, self.inducing, self.places = prior, inducing, places
        self._sets = tuple(PointSet(z) for z in inducing.z)
        # Without noise, even where a point is a row: inducing points are not rows.
        squares = (k.evaluate(Pairs(z, z)) for k, z in zip(prior.kernels, inducing.z, strict=True))
        #: L_s^-T, upper triangular, of each process.
        self.whiteners, self._jitters = zip(*map(jittered_whitener, squares), strict=True)
        self.levels = tuple(LevelBlock(prior, inducing, t) for t in range(prior.n_levels))

    @cached_property
    def parameters(self) -> list[slice]:
        """Where the parameters of each process are among those of all."""
        kernels = zip(self.prior.kernels, self.inducing.z, strict=True)
        return consecutive(len(kernel.theta) + self.places * z.size for kernel, z in kernels)

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
            self.whiten(self.covariance(x, s), s, block.loading[s], out[:, block.slices[s]])

    def features(self, points: Points) -> Array:
        """Phi, (n, total)."""
        Phi = np.zeros((len(points), self.inducing.total))
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
        bars = []
        for s, (z, own) in enumerate(zip(self.inducing.z, self.inducing.slices, strict=True)):
            low = np.tril(B[own, own])
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


@dataclass(frozen=True)
class SparseBelief:
    """q(v) of m inducing variables: ``gram`` = S^-1 - I, (m, m), and ``linear`` = S^-1 mu, (m,)."""

    gram: Array
    linear: Array

    @classmethod
    def prior(cls, m: int) -> SparseBelief:
        """What is believed with no labels."""
        return cls(np.zeros((m, m)), np.zeros(m))

    @cached_property
    def _moments(self) -> tuple[Array, Array, float]:
        """Mean mu, covariance S, and log|S^-1|."""
        precision = self.gram.copy()
        precision.flat[:: len(precision) + 1] += 1.0
        factor = Cholesky(precision)
        mean, inverse = factor.solve(self.linear), factor.into_inverse()
        S = np.triu(inverse.matrix)
        return mean, S + np.triu(S, 1).T, inverse.log_det

    @property
    def mean(self) -> Array:
        return self._moments[0]

    @property
    def covariance(self) -> Array:
        return self._moments[1]

    @property
    def is_proper(self) -> bool:
        """Whether there is such a distribution: negative sites may outweigh the prior."""
        try:
            return bool(np.isfinite(self.mean).all())
        except NotPositiveDefinite:
            return False

    @property
    def divergence(self) -> float:
        """KL(q || N(0, I))."""
        mean, S, log_det = self._moments
        return 0.5 * float(np.trace(S) - len(S) + mean @ mean + log_det)

    def whitened(self, gram: Array, linear: Array) -> Array:
        """A change of the natural parameters in units of this belief's standard deviations.

        To second order the sum of squares, (m + m^2,), is twice the divergence of the change.
        """
        shift = self._root.T @ (linear - gram @ self.mean)
        turn = self._root.T @ gram @ self._root
        return np.concatenate([shift, np.sqrt(0.5) * turn.ravel()])

    @cached_property
    def _root(self) -> Array:
        return lower_root(self.covariance)

    def __getstate__(self) -> dict[str, Any]:
        # Moments are of the size of the belief, and a copy computes its own.
        return {"gram": self.gram, "linear": self.linear}
