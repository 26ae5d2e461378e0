"""Slices through the space of features, and the rows that are drawn on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyfid.arrays import Array
from polyfid.estimator.inputs import as_table, check_rows
from polyfid.estimator.levels import encode_levels, order_levels

Index = NDArray[np.intp]

#: Rows whose features stand for the others in an average.
_MOST_BACKGROUND = 40


@dataclass(frozen=True)
class Table:
    """Rows as numbers, with the names of the features and a way back to what the model takes."""

    x: Array
    names: tuple[str, ...]
    wrap: Callable[[Array], Any]
    fidelity: Any = None  # the column of X that the model takes for it

    @classmethod
    def read(cls, model: Any, X: Any, feature_names: Sequence[str] | None = None) -> Table:
        """X without a column of the fidelity, its columns in the order of the model's."""
        X = as_table(X)
        fidelity = None
        column = getattr(model, "_fidelity_column", None)
        if column is not None:
            X, fidelity = column.split_if_there(X, model.n_features_in_)
        columns = getattr(X, "columns", None)
        known = getattr(model, "feature_names_in_", None)
        if columns is not None and known is not None and set(known) <= set(columns):
            X = X[list(known)]
        if X.shape[0] == 0:
            raise ValueError("X has no rows; pass those that the figure is to cover")
        x = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        wrap = _wrapper(X)
        if feature_names is None:
            own = list(X.columns) if columns is not None else known
            feature_names = [f"feature {j}" for j in range(x.shape[1])] if own is None else own
        if len(feature_names) != x.shape[1]:
            raise ValueError(
                f"feature_names must have one name a column of X, {x.shape[1]}; got "
                f"{len(feature_names)}"
            )
        return cls(x, tuple(map(str, feature_names)), wrap, fidelity)

    def find(self, features: Any) -> tuple[int, ...]:
        """Places of one or two features given by place or name; None: the first two."""
        d = self.x.shape[1]
        if features is None:
            return tuple(range(min(2, d)))
        single = isinstance(features, str | int | np.integer)
        given = [features] if single else list(features)
        places = [self._find(f) for f in given]
        if len(places) not in (1, 2) or len(set(places)) < len(places):
            raise ValueError(
                f"features must be one feature or two different ones; got {features!r}"
            )
        return tuple(places)

    def _find(self, feature: Any) -> int:
        d = self.x.shape[1]
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        if isinstance(feature, int | np.integer) and -d <= feature < d:
            return int(feature) % d
        raise ValueError(
            f"features has {feature!r}, which is no feature of X; pass a place from 0 to {d - 1} "
            f"or one of the names {list(self.names[:20])}"
        )


def _wrapper(X: Any) -> Callable[[Array], Any]:
    """A function that gives rows the container that X came in."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return lambda rows: rows
    make, names = type(X), list(columns)
    if hasattr(X, "iloc"):
        return lambda rows: make(rows, columns=names)
    return lambda rows: make(rows, schema=names)


@dataclass(frozen=True)
class Slice:
    """A grid over one or two features; the others are as in each row of ``background``."""

    index: tuple[int, ...]
    values: tuple[Array, ...]
    background: Array

    @classmethod
    def of(cls, x: Array, index: tuple[int, ...], resolution: int, others: Any) -> Slice:
        """A grid over the range of the rows.

        Parameters
        ----------
        x : ndarray of shape (n, d)
        index : tuple of one or two int
        resolution : int
            Nodes along each feature.
        others : "median", "average" or array-like of shape (d,)
        """
        values = []
        for j in index:
            low, high = x[:, j].min(), x[:, j].max()
            margin = 0.05 * (high - low) or 0.5
            values.append(np.linspace(low - margin, high + margin, resolution))
        return cls(index, tuple(values), _background(x, index, others))

    def average(self, function: Callable[[Array], Array]) -> Array:
        """A function of rows, (m, k), at the nodes, averaged over the background: (..., k).

        The first axis is that of the second feature, as matplotlib has it.
        """
        nodes = np.stack([g.ravel() for g in np.meshgrid(*self.values)], axis=1)
        total: Any = 0.0
        for row in self.background:
            rows = np.tile(row, (len(nodes), 1))
            rows[:, self.index] = nodes
            total = total + function(rows)
        shape = [len(v) for v in reversed(self.values)]
        return np.asarray(total / len(self.background)).reshape(*shape, -1)


def _background(x: Array, index: tuple[int, ...], others: Any) -> Array:
    if isinstance(others, str) and others == "median":
        return np.asarray(np.median(x, axis=0)[None])
    if isinstance(others, str) and others == "average":
        if len(index) == x.shape[1]:
            return x[:1]  # there are no others
        rows = np.random.RandomState(0).permutation(len(x))[:_MOST_BACKGROUND]
        return x[np.sort(rows)]
    try:
        row = np.asarray(others, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (x.shape[1],) or not np.isfinite(row).all():
        raise ValueError(
            f'others must be "median", "average" or {x.shape[1]} numbers, a value a feature; got '
            f"{others!r}"
        )
    return row[None]


def default_resolution(model: Any, others: Any, n_axes: int) -> int:
    """Nodes along a feature: fewer where a prediction costs more."""
    if n_axes == 1:
        return 200
    if isinstance(others, str) and others == "average":
        return 30
    report = getattr(model, "report_", None)
    n = 0 if report is None else int(report.counts.sum())
    return int(np.clip(80 * 500 / max(n, 1), 40, 80))


@dataclass(frozen=True)
class Labelled:
    """Labelled rows to draw: which are of the class shown, and the level of each."""

    x: Array
    inside: NDArray[np.bool_]
    level: Index
    levels: tuple[Any, ...]

    @classmethod
    def read(cls, model: Any, table: Table, y: ArrayLike, fidelity: Any, target: Any) -> Labelled:
        labels = np.asarray(y)
        check_rows("y", labels, len(table.x))
        fidelity = table.fidelity if fidelity is None else fidelity
        levels = getattr(model, "levels_", None)
        if fidelity is None:
            names = (None,) if levels is None else levels[-1:]
            return cls(table.x, labels == target, np.zeros(len(labels), dtype=np.intp), names)
        names = order_levels(fidelity) if levels is None else levels
        level = encode_levels(fidelity, names)
        check_rows("fidelity", level, len(table.x))
        return cls(table.x, labels == target, level, names)


def class_place(model: Any, target: Any) -> int:
    """The column of a class; by default the last, which of two is the positive one."""
    classes = list(model.classes_)
    if target is None:
        return len(classes) - 1
    if target not in classes:
        raise ValueError(f"target must be one of the classes {classes}, got {target!r}")
    return classes.index(target)


def principal_components(x: Array) -> tuple[tuple[Array, ...], tuple[str, ...]]:
    """Places of rows along their first two principal components, and names with shares."""
    spread = x.std(axis=0)
    z = (x - x.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    vectors, sizes, axes = np.linalg.svd(z, full_matrices=False)
    if len(sizes) < 2:
        raise ValueError('features="pca" needs two features and two rows or more; name a feature')
    # The sign of a component is arbitrary: its largest entry is made positive.
    signs = np.sign(axes[np.arange(2), np.abs(axes[:2]).argmax(axis=1)])
    shares = np.square(sizes) / max(np.square(sizes).sum(), np.finfo(float).tiny)
    values = tuple(vectors[:, k] * sizes[k] * (signs[k] or 1.0) for k in range(2))
    return values, tuple(f"component {k + 1} ({shares[k]:.0%})" for k in range(2))
