"""Pairs of points: what a kernel may ask of its two arguments, computed once where possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from polyfid.arrays import Array, Indices

Columns = tuple[int, ...] | None
Method = TypeVar("Method", bound=Callable[..., Any])

#: Squared distances below this share of the largest squared norms lose digits in a product.
CLOSE = 1e-6
#: Up to squared norms of this size, in length-scales, a product gives exp(-s/2) to twelve digits.
NEAR = 1e4


def _computed_once(method: Method) -> Method:
    """A method whose values are computed once; at worst two threads compute the same one."""

    @wraps(method)
    def first_time_only(self: Any, *key: Any) -> Any:
        values = self.__dict__.setdefault(f"_{method.__name__}", {})
        if key not in values:
            values[key] = method(self, *key)
        return values[key]

    return first_time_only  # type: ignore[return-value]


class PointSet:
    """Points (n, d) of many pairs: shifted to their centre once for all of these."""

    def __init__(self, x: Array) -> None:
        self.x = x

    @_computed_once
    def centre(self, columns: Columns) -> Array:
        """The mean of the points on the chosen columns."""
        return np.asarray(_on(self.x, columns).sum(axis=0) / max(len(self.x), 1))

    @_computed_once
    def centred(self, columns: Columns) -> Array:
        """The points on the chosen columns minus their centre."""
        return _on(self.x, columns) - self.centre(columns)

    @_computed_once
    def right(self, columns: Columns, scale: tuple[float, ...] | None) -> Array:
        """The right factor of squared distances to these points, divided by a scale."""
        x = self.centred(columns)
        return _right(x if scale is None else x / scale)

    @_computed_once
    def one_hot(self, columns: Columns) -> tuple[NDArray[np.bool_], Array, Indices]:
        """Indicators of the k values on the columns, (n, k), the values, and their columns."""
        x = _on(self.x, columns)
        values = [np.unique(x[:, c]) for c in range(x.shape[1])]
        column = np.repeat(np.arange(len(values)), [len(own) for own in values])
        every = np.concatenate(values)
        # Truth values take an eighth of the memory of floats; converting them costs little.
        return x[:, column] == every, every, column


class Pairs:
    """All pairs (x_i, z_j) of two sets of points, (n, d) and (m, d).

    Quantities that do not depend on hyper-parameters are kept, so that a kernel evaluated many
    times on the same pairs (an optimisation) pays for them once. Row i of ``x`` and row
    ``i + offset`` of ``z`` are the same row of data; with None no row of ``x`` is a row of ``z``,
    even where the points coincide.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import Pairs
    >>> Pairs(np.array([[0.0]]), np.array([[1.0], [3.0]])).squared_distances(None)
    array([[1., 9.]])
    """

    def __init__(self, x: Array, z: Array | PointSet, offset: int | None = None) -> None:
        self._points = z if isinstance(z, PointSet) else PointSet(z)
        self.x, self.z, self.offset = x, self._points.x, offset

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x), len(self.z)

    def raw(self, columns: Columns) -> tuple[Array, Array]:
        """Both sets of points on the chosen columns."""
        return _on(self.x, columns), _on(self.z, columns)

    @_computed_once
    def centred(self, columns: Columns) -> tuple[Array, Array]:
        """Both sets on the chosen columns, shifted by a common vector: no digits cancel."""
        x = _on(self.x, columns) - self._points.centre(columns)
        return x, self._points.centred(columns)

    @_computed_once
    def squared_distances(self, columns: Columns) -> Array:
        """``|x_i - z_j|^2`` over the columns, (n, m)."""
        return cdist(*self.raw(columns), "sqeuclidean")

    @_computed_once
    def city_distances(self, columns: Columns) -> Array:
        """``sum_c |x_ic - z_jc|``, (n, m)."""
        return cdist(*self.raw(columns), "cityblock")

    def scaled_squared_distances(self, columns: Columns, scale: Array) -> Array:
        """sum_c ((x_ic - z_jc) / scale_c)^2, (n, m); exactly zero where points coincide."""
        x, z = self.centred(columns)
        return _product(_left(x, scale), _right(z / scale))

    def weighted_gaussians(self, columns: Columns, scale: Array, weight: Array) -> Array | None:
        """weight_j exp(-s_ij / 2), (n, m), of scaled squared distances s; None if digits cancel.

        The logarithms of weights are part of the exponents, and these are one product.
        """
        key = tuple(np.atleast_1d(scale).tolist())
        left = _left(_on(self.x, columns), scale, self._points.centre(columns))
        right = -0.5 * self._points.right(columns, key)
        norms = left[:, -2].max(initial=0.0) - 2.0 * right[:, -1].min(initial=0.0)
        if not (norms <= NEAR and weight.all()):  # weights may be so small that they are zero
            return None
        right[:, -1] += np.log(np.abs(weight))
        K: Array = left @ right.T
        np.exp(K, out=K)
        return K if (weight > 0.0).all() else np.multiply(K, np.sign(weight), out=K)

    @_computed_once
    def inner(self, columns: Columns) -> Array:
        """x_i . z_j over the columns, (n, m)."""
        x, z = self.raw(columns)
        return np.asarray(x @ z.T)

    @_computed_once
    def mismatches(self, columns: Columns) -> Array:
        """Number of columns in which x_i and z_j differ, (n, m)."""
        x, z = self.raw(columns)
        return np.asarray(cdist(x, z, "hamming") * x.shape[1])

    @_computed_once
    def one_hot(self, columns: Columns) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Indices]:
        """Indicators of the k values of z, (n, k) and (m, k), and their columns."""
        z, values, column = self._points.one_hot(columns)
        return _on(self.x, columns)[:, column] == values, z, column

    def same_rows(self) -> tuple[Indices, Indices]:
        """Index arrays of the pairs that are one and the same row of data."""
        n, m = self.shape
        if self.offset is None:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        i = np.arange(max(0, -self.offset), min(n, m - self.offset))
        return i, i + self.offset


class PairsWithin(Pairs):
    """Pairs of two slices of one set of points: views of what the set has computed."""

    def __init__(self, points: PointSet, rows: slice, cols: slice) -> None:
        super().__init__(points.x[rows], points.x[cols], rows.start - cols.start)
        self._whole, self._rows, self._cols = points, rows, cols

    def centred(self, columns: Columns) -> tuple[Array, Array]:
        x = self._whole.centred(columns)
        return x[self._rows], x[self._cols]


class PassingPairs(Pairs):
    """Pairs that are used once, as in a prediction, with a `PointSet` that stays."""

    @_computed_once
    def squared_distances(self, columns: Columns) -> Array:
        return self.scaled_squared_distances(columns, None)

    def scaled_squared_distances(self, columns: Columns, scale: Array | None) -> Array:
        left = _left(_on(self.x, columns), scale, self._points.centre(columns))
        key = None if scale is None else tuple(scale.tolist())
        return _product(left, self._points.right(columns, key))


def _on(x: Array, columns: Columns) -> Array:
    return x if columns is None else x[:, columns]


def _left(x: Array, scale: Array | None = None, centre: Array | float = 0.0) -> Array:
    """[x, |x|^2, 1], (n, d + 2), of points that are shifted and scaled first."""
    n, d = x.shape
    left = np.empty((n, d + 2))
    x = np.subtract(x, centre, out=left[:, :d])
    if scale is not None:
        x /= scale
    np.einsum("ij,ij->i", x, x, out=left[:, d])
    left[:, d + 1] = 1.0
    return left


def _right(z: Array) -> Array:
    """[-2 z, 1, |z|^2], (m, d + 2)."""
    return np.column_stack([-2.0 * z, np.ones(len(z)), np.einsum("ij,ij->i", z, z)])


def _product(left: Array, right: Array) -> Array:
    """|x_i - z_j|^2, (n, m), as one product: several times as fast as from differences.

    It cancels for points close to each other; these few are computed from their differences.
    """
    d = left.shape[1] - 2
    s: Array = left @ right.T
    limit = CLOSE * (left[:, d].max(initial=0.0) + right[:, d + 1].max(initial=0.0))
    if s.size == 0 or s.min() >= limit:
        return s
    x, z = left[:, :d], -0.5 * right[:, :d]
    close = np.flatnonzero(s < limit)
    if close.size * d > s.size:  # not so few
        return cdist(x, z, "sqeuclidean")
    i, j = np.divmod(close, len(z))
    s[i, j] = np.square(x[i] - z[j]).sum(axis=1)
    return s
