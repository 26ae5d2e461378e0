"""The rows that a figure shows: as numbers, as a grid over one or two features, as points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from polyfid.arrays import Array
from polyfid.estimator.inputs import as_table
from polyfid.plots.style import (
    CLASS_COLOURS,
    INK,
    LEGEND_LETTERS,
    PAPER,
    REST,
    SHADE,
    class_colours,
    label_all,
)

#: Most rows that give the values of the other features with ``others="average"``.
_MOST_BACKGROUND = 40
#: Points drawn per level; of more, a sample.
MOST_POINTS = 300
#: Markers of levels, least trusted first; the top level has its own and is drawn larger.
_MARKERS, _TOP_MARKER = ("o", "^", "s", "v", "P"), "D"


@dataclass(frozen=True)
class FeatureTable:
    """Rows as numbers, the names of the features, and the data frame that the rows came in."""

    x: Array
    names: tuple[str, ...]
    frame: Any = None  # None for arrays
    fidelity: Any = None  # the column of X that the model takes for it

    @classmethod
    def read(cls, model: Any, X: Any, feature_names: Sequence[str] | None = None) -> FeatureTable:
        """X without its fidelity column, with the columns in the order of the model."""
        X = as_table(X)
        column, fidelity = getattr(model, "_fidelity_column", None), None
        if column is not None:
            X, fidelity = column.split_if_there(X, model.n_features_in_)
        if X.shape[0] == 0:
            raise ValueError("X has no rows; pass the rows that the figure is to cover")
        names = getattr(model, "feature_names_in_", None)
        is_frame = hasattr(X, "columns")
        if is_frame:
            X = X[list(names)] if names is not None and {*names} <= {*X.columns} else X
            names = X.columns
        x = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        if names is None:
            names = [f"feature {j}" for j in range(x.shape[1])]
        names = names if feature_names is None else feature_names
        if len(names) != x.shape[1]:
            raise ValueError(
                f"feature_names must have one name per column of X, {x.shape[1]} in all; got "
                f"{len(names)}"
            )
        return cls(x, tuple(map(str, names)), X if is_frame else None, fidelity)

    def like_given(self, rows: Array) -> Any:
        """Rows as a data frame if X is one, so that the model finds its feature names."""
        if self.frame is None:
            return rows
        keyword = "columns" if hasattr(self.frame, "iloc") else "schema"
        return type(self.frame)(rows, **{keyword: list(self.frame.columns)})

    def find(self, features: Any) -> list[int]:
        """Indices of one or two features given by index or name; None: the first two."""
        d = self.x.shape[1]
        if features is None:
            return list(range(min(2, d)))
        places = dict(zip(self.names, range(d), strict=True)) | {j: j % d for j in range(-d, d)}
        index = [places.get(f, -1) for f in np.asarray(features, dtype=object).ravel()]
        if len(index) not in (1, 2) or len(set(index)) < len(index) or min(index) < 0:
            raise ValueError(
                f"features must be one feature or two different ones, by index from 0 to {d - 1} "
                f"or by name, of {list(self.names[:20])}; got {features!r}"
            )
        return index

    def principal_components(self) -> tuple[tuple[Array, ...], tuple[str, ...]]:
        """The rows along their first two principal components, and names with shares."""
        if min(self.x.shape) < 2:
            raise ValueError(
                'features="pca" needs two features and two rows or more; name a feature'
            )
        pca = PCA(2)
        with np.errstate(invalid="ignore"):  # if all features are constant
            first, second = pca.fit_transform(StandardScaler().fit_transform(self.x)).T
        shares = np.nan_to_num(pca.explained_variance_ratio_)
        return (first, second), tuple(f"component {k} ({s:.0%})" for k, s in enumerate(shares, 1))


@dataclass(frozen=True)
class FeatureGrid:
    """A grid over one or two features; the others are as in each row of ``background``."""

    index: list[int]
    values: tuple[Array, ...]
    names: tuple[str, ...]
    background: Array

    @classmethod
    def over(
        cls, model: Any, table: FeatureTable, features: Any, others: Any, resolution: int | None
    ) -> FeatureGrid:
        """A grid over the range of the rows; a finer one where a prediction costs less."""
        x, index = table.x, table.find(features)
        background = _background(x, others, all_shown=len(index) == x.shape[1])
        if resolution is None:
            n = int(model.report_.n_rows.sum()) if hasattr(model, "report_") else 1
            fine = 30 if len(background) > 1 else int(np.clip(80 * 500 / n, 40, 80))
            resolution = 200 if len(index) == 1 else fine
        values = []
        for j in index:
            low, high = x[:, j].min(), x[:, j].max()
            margin = 0.05 * (high - low) or 0.5
            values.append(np.linspace(low - margin, high + margin, resolution))
        return cls(index, tuple(values), tuple(table.names[j] for j in index), background)

    def average(self, function: Callable[[Array], Array]) -> Array:
        """A function of rows, (m, k), at the nodes, averaged over the background: k maps.

        The first axis of a map is that of the second feature, as matplotlib has it.
        """
        nodes = np.stack([g.ravel() for g in np.meshgrid(*self.values)], axis=1)
        total: Any = 0.0
        for row in self.background:
            rows = np.tile(row, (len(nodes), 1))
            rows[:, self.index] = nodes
            total = total + function(rows)
        shape = [len(v) for v in reversed(self.values)]
        return np.asarray(total / len(self.background)).T.reshape(-1, *shape)


def _background(x: Array, others: Any, all_shown: bool) -> Array:
    """Rows that give the values of the other features, (m, d)."""
    if isinstance(others, str) and others in ("median", "average"):
        if others == "median" or all_shown:
            return np.asarray(np.median(x, axis=0)[None])
        return x[np.sort(np.random.RandomState(0).permutation(len(x))[:_MOST_BACKGROUND])]
    try:
        row = np.asarray(others, dtype=float)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (x.shape[1],) or not np.isfinite(row).all():
        raise ValueError(
            f'others must be "median", "average" or {x.shape[1]} numbers, one per feature; got '
            f"{others!r}"
        )
    return row[None]


@dataclass(frozen=True)
class DrawnPoints:
    """Labelled rows to draw: the class and the level of each, and their names."""

    x: Array
    code: NDArray[np.intp]
    classes: tuple[Any, ...]
    level: NDArray[np.intp]
    levels: tuple[Any, ...]

    @property
    def at_top(self) -> DrawnPoints:
        """Those of the top level, among the same levels and classes."""
        chosen = self.level == len(self.levels) - 1
        return replace(self, x=self.x[chosen], code=self.code[chosen], level=self.level[chosen])

    def draw(self, ax: Axes, places: Array, target: int) -> list[Artist]:
        """Draw them at places (n, 2), by level and class; return the entries of a legend.

        Of very many classes, ``target`` alone has a colour of its own.
        """
        n_levels, n_classes = len(self.levels), len(self.classes)
        colours = class_colours(n_classes, target)
        entries: list[Artist] = []
        for t, name in enumerate(label_all(self.levels, LEGEND_LETTERS)):
            members = drawn = np.flatnonzero(self.level == t)
            if len(members) > MOST_POINTS:
                drawn = np.sort(np.random.RandomState(0).permutation(members)[:MOST_POINTS])
                name = f"{name} ({len(drawn)} of {len(members)})"
            marker, size = _MARKERS[t % len(_MARKERS)], 2.6 if len(drawn) > 100 else 3.4
            edge: dict[str, Any] = {"mec": PAPER, "mew": 0.4}
            if t == n_levels - 1:
                marker, size, edge = _TOP_MARKER, 4.6, {"mec": INK, "mew": 0.7}
            mark: dict[str, Any] = {"marker": marker, "markersize": size, "linestyle": "none"}
            for k, colour in [(-1, REST), *enumerate(colours)]:  # numbers have no class
                chosen = drawn[self.code[drawn] == k]
                if len(chosen):
                    ax.plot(*places[chosen].T, **mark, **edge, mfc=colour, zorder=4 + t)
            if len(members) and n_levels > 1:
                entries.append(Line2D([], [], **mark, mfc=SHADE, mec=INK, mew=0.5, label=name))
        dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5, "mew": 0.0}
        names = label_all(self.classes, LEGEND_LETTERS)
        if n_classes > len(CLASS_COLOURS):
            names, colours = [names[target], "others"], [colours[target], REST]
        entries += [
            Line2D([], [], **dot, mfc=colour, label=name)
            for colour, name in zip(colours, names, strict=True)
        ]
        return entries
