"""Pairs of points: what a kernel may ask of its two arguments, computed once where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Columns = tuple[int, ...] | None
Kept = TypeVar("Kept")

CLOSE = 1e-6  # squared distances below this part of the largest squared norms lose digits


class Pairs:
    """All pairs (x_i, z_j) of two sets of points.

    Quantities that do not depend on hyper-parameters are kept, so that a kernel evaluated many
    times on the same pairs (an optimisation) pays for them once.

    Parameters
    ----------
    x, z : ndarray of shape (n, d) and (m, d)
    offset : int, optional
        Row i of ``x`` and row ``i + offset`` of ``z`` are the same row of data. None: no row of
        ``x`` is a row of ``z``, even where the points coincide.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import Pairs
    >>> Pairs(np.array([[0.0]]), np.array([[1.0], [3.0]])).squared_distances(None)
    array([[1., 9.]])
    """

    def __init__(self, x: Array, z: Array, offset: int | None = None) -> None:
        self.x, self.z, self.offset = x, z, offset
        self._cache: dict[object, Any] = {}

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x), len(self.z)

    def raw(self, columns: Columns) -> tuple[Array, Array]:
        """Both sets of points on the chosen columns."""
        if columns is None:
            return self.x, self.z
        return self.x[:, columns], self.z[:, columns]

    def select(self, columns: Columns) -> tuple[Array, Array]:
        """Both sets of points on the chosen columns, shifted by a common vector; kept."""

        def shifted() -> tuple[Array, Array]:
            x, z = self.raw(columns)
            centre = z.mean(axis=0)  # differences survive, cancellation does not
            return x - centre, z - centre

        return self._keep(("select", columns), shifted)

    def squared_distances(self, columns: Columns) -> Array:
        """|x_i - z_j|^2 over the columns, (n, m); kept."""
        key = ("squared", columns)
        return self._keep(key, lambda: cdist(*self.raw(columns), "sqeuclidean"))

    def scaled_squared_distances(self, columns: Columns, scale: Array) -> Array:
        """sum_c ((x_ic - z_jc) / scale_c)^2, (n, m); exactly zero where points coincide."""
        x, z = self.select(columns)
        return _squared_distances(x / scale, z / scale)

    def inner(self, columns: Columns) -> Array:
        """x_i . z_j over the columns, (n, m); kept."""

        def product() -> Array:
            x, z = self.raw(columns)
            return np.asarray(x @ z.T)

        return self._keep(("inner", columns), product)

    def mismatches(self, columns: Columns) -> Array:
        """Number of columns in which x_i and z_j differ, (n, m); kept."""

        def count() -> Array:
            x, z = self.raw(columns)
            return np.asarray(cdist(x, z, "hamming") * x.shape[1])

        return self._keep(("mismatches", columns), count)

    def one_hot(self, columns: Columns) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Indices]:
        """Indicators of the k values that x and z share, (n, k) and (m, k), and their columns.

        x_i and z_j agree in column c where the product of their indicators of c is one. Kept as
        truth values, an eighth of the memory of floats; converting costs less than the product.
        """

        def encode() -> tuple[NDArray[np.bool_], NDArray[np.bool_], Indices]:
            x, z = self.raw(columns)
            shared = [np.intersect1d(x[:, c], z[:, c]) for c in range(x.shape[1])]
            column = np.repeat(np.arange(x.shape[1]), [len(values) for values in shared])
            values = np.concatenate(shared)
            return x[:, column] == values, z[:, column] == values, column

        return self._keep(("one_hot", columns), encode)

    def same_rows(self) -> tuple[Indices, Indices]:
        """Index arrays of the pairs that are one and the same row of data."""
        n, m = self.shape
        if self.offset is None:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        i = np.arange(max(0, -self.offset), min(n, m - self.offset))
        return i, i + self.offset

    def _keep(self, key: object, compute: Callable[[], Kept]) -> Kept:
        if key not in self._cache:
            self._cache[key] = compute()
        value: Kept = self._cache[key]
        return value


class PassingPairs(Pairs):
    """Pairs that are looked at once, as in a prediction: distances come from a product."""

    def squared_distances(self, columns: Columns) -> Array:
        return self._keep(("squared", columns), lambda: _squared_distances(*self.select(columns)))


def _squared_distances(x: Array, z: Array) -> Array:
    """|x_i - z_j|^2, (n, m), for points that were shifted to the origin.

    |x|^2 + |z|^2 - 2 x.z is one product and several times as fast as differences, but cancels for
    points close to each other, where a Matern 1/2 would see the square root of the error; those few
    are computed from their differences.
    """
    xx, zz = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", z, z)
    left = np.column_stack([-2.0 * x, xx, np.ones(len(x))])
    s: Array = left @ np.column_stack([z, np.ones(len(z)), zz]).T
    limit = CLOSE * (xx.max(initial=0.0) + zz.max(initial=0.0))
    if s.size == 0 or s.min() >= limit:
        return s
    close = np.flatnonzero(s < limit)
    if close.size * x.shape[1] > s.size:  # not so few
        return cdist(x, z, "sqeuclidean")
    i, j = np.divmod(close, len(z))
    s[i, j] = np.square(x[i] - z[j]).sum(axis=1)
    return s
