"""The labelled rows of a comparison, read and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, column_or_1d

from polyfid.arrays import Array
from polyfid.estimator.inputs import as_table, check_rows, read_weights
from polyfid.estimator.levels import FidelityArray, encode_levels, is_missing, order_levels

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """Rows of some weight, with levels and classes as whole numbers."""

    X: Any
    y: NDArray[Any]
    weight: Array
    weighted: bool
    index: Index  # where each was in the input
    level: Index
    levels: tuple[Any, ...]
    code: Index
    classes: NDArray[Any]

    @classmethod
    def read(
        cls, X: Any, y: Any, fidelity: Any, sample_weight: Any, levels: Iterable[Any] | None
    ) -> Rows:
        """Complain of what cannot be compared: no cheaper rows, or no trusted ones."""
        X = as_table(X)
        n = X.shape[0]
        for name, value in (("y", y), ("fidelity", fidelity)):
            if value is None:
                raise ValueError(f"{name} is None; pass one entry a row")
        labels = np.asarray(y)
        if any(map(is_missing, labels.ravel().tolist())):
            raise ValueError("y has missing values; give every row a class, or drop the rows")
        labels = column_or_1d(labels)
        check_rows("y", labels, n)
        names = order_levels(fidelity, levels)
        level = encode_levels(fidelity, names)
        check_rows("fidelity", level, n)
        weight = read_weights(sample_weight, n)
        index = np.flatnonzero(weight > 0.0)
        classes, code = np.unique(labels[index], return_inverse=True)
        rows = cls(
            _safe_indexing(X, index),
            labels[index],
            weight[index],
            sample_weight is not None,
            index,
            level[index],
            names,
            code,
            classes,
        )
        rows._check_levels()
        return rows

    @property
    def trusted(self) -> Index:
        return np.flatnonzero(self.level == len(self.levels) - 1)

    @property
    def fidelity(self) -> FidelityArray:
        return FidelityArray(np.asarray(self.levels)[self.level], self.levels)

    def _check_levels(self) -> None:
        n_trusted = len(self.trusted)
        if n_trusted == len(self.level):
            raise ValueError(
                f"fidelity has rows of one level only, {self.levels[-1]!r}, so there is nothing to "
                "compare; add cheaper labels, or score a single level with scikit-learn's "
                "cross_val_score"
            )
        if n_trusted == 0:
            raise ValueError(
                f"fidelity has no row at the top level {self.levels[-1]!r}, and methods are judged "
                f"on trusted rows; the levels, least trusted first, are {list(self.levels)}: add "
                "trusted labels, or correct the order by levels="
            )

    def trusted_counts(self) -> Index:
        """Trusted rows of each class that has any, at least two each and two classes."""
        present, counts = np.unique(self.code[self.trusted], return_counts=True)
        top = self.levels[-1]
        if len(present) < 2:
            raise ValueError(
                f"the trusted rows (level {top!r}) are all of class "
                f"{self.classes[present[0]]!s}; label rows of other classes at that level"
            )
        if counts.min() < 2:
            rare = [str(self.classes[k]) for k in present[counts < 2]]
            raise ValueError(
                f"class {', '.join(rare)} has one trusted row (level {top!r}), and "
                "cross-validation needs at least two of each class; label more rows of it at that "
                "level"
            )
        return counts
