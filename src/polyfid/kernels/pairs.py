"""Pairs of points: what a kernel may ask of its two arguments, computed once where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from polyfid.arrays import Array, Indices

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
        return _Side(z, scale=scale).squared_distances(x)

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


class Anchors:
    """Points that block after block of others is compared with; what they alone decide is kept.

    Threads may share them: at worst two of them compute the same thing.

    Parameters
    ----------
    z : ndarray of shape (m, d)
    """

    def __init__(self, z: Array) -> None:
        self.z = z
        self._sides: dict[object, _Side] = {}

    def side(self, columns: Columns, scale: Array | None = None) -> _Side:
        """What distances to the points take, over the columns, divided by a scale."""
        key = columns, None if scale is None else scale.tobytes()
        if key not in self._sides:
            chosen = self.z if columns is None else self.z[:, columns]
            centre = chosen.mean(axis=0)  # differences survive, cancellation does not
            self._sides[key] = _Side(chosen - centre, centre, scale)
        return self._sides[key]


class PassingPairs(Pairs):
    """Pairs that are looked at once, as in a prediction: distances come from a product."""

    def __init__(self, x: Array, anchors: Anchors) -> None:
        super().__init__(x, anchors.z)
        self._anchors = anchors

    def squared_distances(self, columns: Columns) -> Array:
        def product() -> Array:
            return self._anchors.side(columns).squared_distances(self._chosen(columns))

        return self._keep(("squared", columns), product)

    def scaled_squared_distances(self, columns: Columns, scale: Array) -> Array:
        return self._anchors.side(columns, scale).squared_distances(self._chosen(columns))

    def _chosen(self, columns: Columns) -> Array:
        return self.x if columns is None else self.x[:, columns]


class _Side:
    """One side of squared distances by a product: points that were shifted to the origin.

    |x|^2 + |z|^2 - 2 x.z is one product and several times as fast as differences, but cancels for
    points close to each other, where a Matern 1/2 would see the square root of the error; those few
    are computed from their differences.
    """

    def __init__(self, z: Array, centre: Array | None = None, scale: Array | None = None) -> None:
        self._z = z if scale is None else z / scale
        self._centre, self._scale = centre, scale
        zz = np.einsum("ij,ij->i", self._z, self._z)
        self._factor = np.column_stack([-2.0 * self._z, np.ones(len(z)), zz]).T
        self._reach = zz.max(initial=0.0)

    def squared_distances(self, x: Array) -> Array:
        """|x_i - z_j|^2, (n, m), of points that are shifted and scaled as the others were."""
        n, d = x.shape
        left = np.empty((n, d + 2))
        x = np.subtract(x, 0.0 if self._centre is None else self._centre, out=left[:, :d])
        if self._scale is not None:
            x /= self._scale
        xx = np.einsum("ij,ij->i", x, x, out=left[:, d])
        left[:, d + 1] = 1.0
        s: Array = left @ self._factor
        limit = CLOSE * (xx.max(initial=0.0) + self._reach)
        if s.size == 0 or s.min() >= limit:
            return s
        close = np.flatnonzero(s < limit)
        if close.size * d > s.size:  # not so few
            return cdist(x, self._z, "sqeuclidean")
        i, j = np.divmod(close, len(self._z))
        s[i, j] = np.square(x[i] - self._z[j]).sum(axis=1)
        return s
