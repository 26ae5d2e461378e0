"""Covariances with fixed points, of block after block of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.kernels import Kernel
from polyfid.kernels.pairs import Anchors, PassingPairs
from polyfid.rows import Points


@dataclass(frozen=True)
class _Part:
    """A latent process that neighbouring levels of the fixed points have a share in."""

    process: int
    columns: slice
    loadings: Array
    anchors: Anchors


class CrossCovariance:
    """cov(f_t(x), f_u(z)) = sum_s A[t, s] A[u, s] k_s(x, z) for fixed z, each at its level u.

    What the fixed points alone decide is computed once.

    Parameters
    ----------
    kernels : one kernel a latent process.
    loadings : A, (n_levels, n_processes).
    points : the fixed points, (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.model.cross import CrossCovariance
    >>> from polyfid.rows import Points
    >>> from polyfid.kernels import RBF, Constant
    >>> points = Points(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> covariance = CrossCovariance((RBF(), Constant(2.0)), np.array([[1, 0], [3, 1]]), points)
    >>> covariance(np.array([[1.0]]), 1).round(3)
    array([[ 1.82, 11.  ]])
    """

    def __init__(self, kernels: Sequence[Kernel], loadings: Array, points: Points) -> None:
        self._kernels, self._loadings, self._n = tuple(kernels), loadings, len(points)
        own = loadings[points.level]  # (n, n_processes)
        self._parts = [
            _Part(s, run, own[run, s], Anchors(points.x[run]))
            for s in range(len(self._kernels))
            for run in _runs(own[:, s] != 0.0)
        ]

    def __call__(self, x: Array, level: int) -> Array:
        """Covariance of the points ``x``, all at one level, with the fixed ones, (len(x), n)."""
        K: Array | None = None
        for part in self._parts:
            loading = self._loadings[level, part.process]
            if loading == 0.0:
                continue
            k = self._kernels[part.process].evaluate(PassingPairs(x, part.anchors))
            weights = loading * part.loadings
            if K is None and k.shape == (len(x), self._n):
                K = np.multiply(k, weights, out=k)
                continue
            K = np.zeros((len(x), self._n)) if K is None else K
            K[:, part.columns] += k * weights
        return np.zeros((len(x), self._n)) if K is None else K


def _runs(chosen: NDArray[np.bool_]) -> list[slice]:
    """Where it is true, as slices."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).tolist()
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
