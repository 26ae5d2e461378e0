"""Boosted trees as arrays: the mean of a latent function that many rows have taught.

Trees are fitted elsewhere. Here they are values like all others of a model: arrays that can be
kept in a file, checked, and evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices

#: Rows at a time: their features stay in a core's cache while all trees are evaluated.
BLOCK = 8192


@dataclass(frozen=True)
class Turn:
    """Adds columns to rows (n, d): how far each is from ``centre`` (d,) in ``directions`` (d, k).

    A tree cuts across columns only. Trees of columns that are turned, each sum in another way, cut
    across other directions too, and their average is smoother.
    """

    centre: Array
    directions: Array

    @classmethod
    def none(cls, n_columns: int) -> Self:
        """No columns are added."""
        return cls(np.zeros(n_columns), np.empty((n_columns, 0)))

    def __call__(self, x: Array) -> Array:
        """The rows with their further columns, (n, d + k)."""
        added = np.zeros((len(x), self.directions.shape[1]))
        # Column by column: the digits of a product of matrices depend on the number of rows.
        for column, centre, weights in zip(x.T, self.centre, self.directions, strict=True):
            if weights.any():
                added += np.multiply.outer(column - centre, weights)
        return np.column_stack([x, added])

    def check(self, n_columns: int) -> None:
        """Raise ValueError where this does not go with so many columns."""
        if self.centre.shape != (n_columns,) or self.directions.shape[:-1] != (n_columns,):
            raise ValueError(f"turned columns of trees must be of {n_columns} columns")
        if not (np.isfinite(self.centre).all() and np.isfinite(self.directions).all()):
            raise ValueError("turned columns of trees must be sums with weights that are numbers")


@dataclass(frozen=True)
class Trees:
    """A sum of trees over rows (n, d): log-odds of a label.

    ``sizes`` are nodes per tree. Inner nodes send a row to their child ``left`` if its ``feature``
    is at most ``threshold``, else to ``right``; children count from the root of their tree and come
    after their parent. Leaves have a feature of -1 and a ``value``. Features are the d columns and
    those of ``turn``.
    """

    baseline: float
    sizes: Indices
    feature: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Array
    turn: Turn

    @classmethod
    def of(cls, booster: Any, turn: Turn | None = None) -> Self:
        """The trees of a fitted `HistGradientBoostingClassifier` of two classes of numbers."""
        turn = Turn.none(booster.n_features_in_) if turn is None else turn
        each = [predictor.nodes for (predictor,) in booster._predictors]
        nodes = np.concatenate(each)
        is_leaf = nodes["is_leaf"] == 1
        return cls(
            float(booster._baseline_prediction.ravel()[0]),
            np.array([len(own) for own in each], dtype=np.intp),
            np.where(is_leaf, -1, nodes["feature_idx"]).astype(np.int32),
            np.where(is_leaf, 0.0, nodes["num_threshold"]),
            np.where(is_leaf, 0, nodes["left"]).astype(np.int32),
            np.where(is_leaf, 0, nodes["right"]).astype(np.int32),
            np.where(is_leaf, nodes["value"], 0.0),
            turn,
        )

    def __call__(self, x: Array) -> Array:
        """The sums at points, (n,)."""
        total = np.full(len(x), self.baseline)
        starts = range(0, len(x), BLOCK)
        blocks = [slice(start, start + BLOCK) for start in starts]

        def add(rows: slice) -> None:
            own, term = self.turn(x[rows]), np.empty(len(total[rows]))
            for nodes in self._nodes:
                self._evaluate(nodes, own, term)
                total[rows] += term

        if len(blocks) == 1:
            add(blocks[0])
        else:
            with ThreadPoolExecutor(joblib.cpu_count()) as pool:
                list(pool.map(add, blocks))
        return total

    def _evaluate(self, nodes: NDArray[Any], x: Array, out: Array) -> None:
        # The loop of scikit-learn over node arrays; numpy alone would take five times as long.
        from sklearn.ensemble._hist_gradient_boosting._predictor import _predict_from_raw_data

        no_sets, no_columns = np.empty((0, 8), np.uint32), np.empty(0, np.uint32)
        _predict_from_raw_data(nodes, x, no_sets, no_sets, no_columns, 1, out)

    @cached_property
    def _nodes(self) -> list[NDArray[Any]]:
        """The nodes of each tree in the form that scikit-learn evaluates."""
        from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

        nodes = np.zeros(len(self.feature), dtype=PREDICTOR_RECORD_DTYPE)
        nodes["is_leaf"] = self.feature < 0
        nodes["feature_idx"] = np.maximum(self.feature, 0)
        nodes["num_threshold"] = self.threshold
        nodes["left"], nodes["right"], nodes["value"] = self.left, self.right, self.value
        return np.split(nodes, np.cumsum(self.sizes)[:-1])

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # no caches

    def check(self, n_columns: int) -> None:
        """Raise ValueError where these are no trees over so many columns.

        The evaluation trusts its arrays. Here every child comes after its parent and inside its
        tree, so that every path ends at a leaf.
        """
        self.turn.check(n_columns)
        n, sizes = len(self.feature), self.sizes
        for name in ("feature", "threshold", "left", "right", "value"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name} of trees must have {n} entries")
        if sizes.ndim != 1 or not len(sizes) or not (sizes > 0).all() or sizes.sum() != n:
            raise ValueError("sizes of trees must be positive and add up to all nodes")
        inner, size = self.feature >= 0, np.repeat(sizes, sizes)
        place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        for child in (self.left, self.right):
            if not ((place < child) & (child < size))[inner].all():
                raise ValueError("children of trees must come after their parents")
        if not (self.feature < n_columns + self.turn.directions.shape[1]).all():
            raise ValueError(f"trees must be of {n_columns} columns")
        if np.isnan(self.threshold).any() or not np.isfinite([self.baseline, *self.value]).all():
            raise ValueError("thresholds and values of trees must be numbers")


@dataclass(frozen=True)
class Margin:
    """The log-odds of a level's labels, by the trees of several folds of its rows.

    Rows are cut into ``parts``, of which the first ones are the folds. Trees of a fold have learnt
    from all rows but those of the fold. Where there is a margin of a lower level, ``corrects`` says
    so: its value is the last column of the trees' points, and the margin is how far log-odds
    differ from it.
    """

    level: int
    folds: tuple[Trees, ...]
    parts: int
    corrects: bool = False

    def __call__(self, x: Array, fold: Indices | None = None, below: Array | None = None) -> Array:
        """The margin at points (n, d): new ones, or with the fold of each, -1 for none.

        A point of a fold gets the trees that were fitted without it, any other one the average of
        all. ``below`` is the log-odds of the level below, which this margin may correct.
        """
        if self.corrects and below is not None:
            return self._log_odds(np.column_stack([x, below]), fold) - below
        return self._log_odds(x, fold)

    def _log_odds(self, x: Array, fold: Indices | None) -> Array:
        if fold is None:
            return np.asarray(sum(trees(x) for trees in self.folds) / len(self.folds))
        log_odds = np.empty(len(x))
        for k in np.unique(fold):
            rows = fold == k
            log_odds[rows] = self._log_odds(x[rows], None) if k < 0 else self.folds[k](x[rows])
        return log_odds


@dataclass(frozen=True)
class BoostedMean:
    """Margins of large levels, in order of level."""

    margins: tuple[Margin, ...]

    @property
    def levels(self) -> tuple[int, ...]:
        """The level that each margin is of."""
        return tuple(margin.level for margin in self.margins)

    def __call__(self, x: Array, folds: Sequence[Indices] | None = None) -> Array:
        """All margins of rows, (n, n_margins): new ones, or with the fold of each per margin."""
        values: list[Array] = []
        below = None  # log-odds of the last level
        for i, margin in enumerate(self.margins):
            value = margin(x, None if folds is None else folds[i], below)
            values.append(value)
            below = value + below if margin.corrects and below is not None else value
        return np.column_stack(values)

    def log_odds(self, x: Array, folds: Sequence[Indices] | None = None) -> Array:
        """Log-odds of the labels of the last level with trees, by these alone (n,)."""
        margins = self(x, folds)
        first = max(i for i, margin in enumerate(self.margins) if not margin.corrects)
        return np.asarray(margins[:, first:].sum(axis=1))

    def check(self, n_levels: int, n_columns: int) -> None:
        """Raise ValueError where margins are none of so many levels and columns."""
        levels = self.levels
        if not levels or list(levels) != sorted({*levels}):
            raise ValueError("margins must be in order of level")
        if levels[0] < 0 or levels[-1] >= n_levels:
            raise ValueError(f"margins must be of {n_levels} levels")
        if self.margins[0].corrects:
            raise ValueError("the first margin has none below it to correct")
        for margin in self.margins:
            if not 0 < len(margin.folds) <= margin.parts:
                raise ValueError("a margin must have trees, of one to all parts of the rows")
            for trees in margin.folds:
                trees.check(n_columns + margin.corrects)
