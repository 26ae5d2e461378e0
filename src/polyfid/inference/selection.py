"""Choosing inducing points among the rows.

They are rows, never means of rows, so that categories and indicators are what they are among rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polyfid.arrays import Array, sort_rows
from polyfid.inference.inducing import Inducing
from polyfid.kernels import Kernel, Pairs
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Candidates for points: at least so many rows, and so many per point that is wanted.
_CANDIDATES, _CANDIDATES_EACH = 5000, 4
#: A point that the others explain to this share of its variance adds nothing but rounding errors.
_EXPLAINED = 1e-10
#: Length-scales may well become this much shorter in tuning.
_SHORTER = 10.0
#: Rows are as near to a centre if their squared distances differ by less, relative to the mean.
_TIE = 1e-10
_FEW_ROWS = 32  # at a time where a diagonal comes out of a square


def choose(
    points: Points, prior: Prior, n_inducing: int | Sequence[int], random_state: Any = None
) -> Inducing:
    """Inducing points for each process of a prior, from the rows of levels that load on it.

    They are the rows nearest to the centres of clusters. No row is taken twice, nor one that others
    explain wholly under the process's kernel: a linear kernel of five columns has five points, a
    process that no row depends on has none. ``n_inducing`` is the most per process, or one number
    for each.
    """
    rng = check_random_state(random_state)
    chosen = []
    for s, m in enumerate(np.broadcast_to(n_inducing, len(prior.kernels)).tolist()):
        x = _candidates(points.x[prior.support[points.level, s]], m, rng)
        x = _nearest_to_centres(x, m, rng) if m < len(x) else x
        chosen.append(x[_pivots(_wigglier(prior.kernels[s]), x, m)])
    return Inducing(tuple(chosen))


def _candidates(x: Array, m: int, rng: np.random.RandomState) -> Array:
    """Distinct rows, a sample of them if they are many, in an order of their own."""
    most = max(_CANDIDATES, _CANDIDATES_EACH * m)
    if len(x) > most:
        x = x[rng.permutation(len(x))[:most]]
    order, starts = sort_rows(*x.T)
    return np.ascontiguousarray(x[order[starts]])


def _nearest_to_centres(x: Array, m: int, rng: np.random.RandomState) -> Array:
    # Exact fits, most of all small ones, do without these, which take a while to import.
    from sklearn.cluster import KMeans

    seed = rng.randint(2**31 - 1)
    centres = KMeans(m, n_init=1, max_iter=30, random_state=seed).fit(x).cluster_centers_
    nearest = []
    for centre in centres:
        distances = np.square(x - centre).sum(axis=1)
        # Both rows of a cluster of two are as near: the first one, whatever rounding says.
        nearest.append(np.argmax(distances <= distances.min() + _TIE * distances.mean()))
    return x[np.unique(nearest)]


def _wigglier(kernel: Kernel) -> Kernel:
    """The kernel with shorter length-scales: what is redundant even then stays so while tuned."""
    lengths = np.array(["length_scale" in name for name in kernel.theta_names], dtype=bool)
    return kernel.with_theta(kernel.theta - np.where(lengths, np.log(_SHORTER), 0.0))


def _pivots(kernel: Kernel, x: Array, m: int) -> NDArray[np.intp]:
    """The first m pivots of a pivoted Cholesky factorisation of the kernel's matrix.

    Each is the row of which the earlier ones leave most variance unexplained; there are fewer where
    the rank of the matrix is less.
    """
    left = _variance(kernel, x)
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


def _variance(kernel: Kernel, x: Array) -> Array:
    """The diagonal of the kernel's matrix without noise, which no other row explains, (n,)."""
    variance = np.empty(len(x))
    for start in range(0, len(x), _FEW_ROWS):
        part = slice(start, start + _FEW_ROWS)
        variance[part] = np.diagonal(kernel.evaluate(Pairs(x[part], x[part])))
    return variance
