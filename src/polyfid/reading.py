"""Rows as users hand them over: features, labels, levels and annotators, checked and encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, validate_data

from polyfid.columns import as_table, refuse_other_than_numbers
from polyfid.data import Levels, as_column, check_rows, encode_levels, is_missing, order_levels

Array = NDArray[np.float64]


def read_features(estimator: Any, X: Any, reset: bool) -> Array:
    """Features as an array of finite numbers; ``reset`` makes their names the estimator's."""
    X = as_table(X)
    refuse_other_than_numbers(X)
    if X.shape[0] == 0:
        raise ValueError("X has no rows (0 samples); at least one is needed")
    x = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    bad = ~np.isfinite(x)
    if bad.any():
        names = getattr(estimator, "feature_names_in_", np.arange(x.shape[1]))
        kind = "NaN" if np.isnan(x).any() else "infinity (inf)"
        columns = [str(c) for c in np.asarray(names)[bad.any(axis=0)][:5]]
        raise ValueError(
            f"Input X contains {kind}, in column(s) {', '.join(columns)}; all features must be "
            "finite. Impute first, for instance with sklearn.impute.SimpleImputer in a "
            "Pipeline, or drop the rows"
        )
    return np.asarray(x)


def read_labels(estimator: Any, y: Any, n: int) -> NDArray[Any]:
    """Classes of n rows."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; "
            "pass one class a row"
        )
    labels = np.asarray(y)
    if labels.dtype.kind == "O" and any(map(is_missing, labels.ravel())):
        raise ValueError("y has missing values; give every row a class, or drop the rows")
    labels = column_or_1d(labels, warn=True)
    check_rows("y", labels, n)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def read_levels(given: Any, fidelity: Any, n: int) -> tuple[Levels, NDArray[np.intp]]:
    """Names of the levels, as given or as they occur, and the level of each of n rows."""
    if fidelity is None:
        names = (0,) if given is None else order_levels((), given)
        return names, np.full(n, len(names) - 1, dtype=np.intp)
    names = order_levels(fidelity, given)
    level = encode_levels(fidelity, names)
    check_rows("fidelity", level, n)
    return names, level


def read_annotators(annotator: Any, n: int) -> tuple[NDArray[Any] | None, NDArray[np.intp]]:
    """Names of the annotators and who labelled each of n rows; -1 if that is not said."""
    if annotator is None:
        return None, np.full(n, -1, dtype=np.intp)
    names, group = np.unique(as_column(annotator, "annotator"), return_inverse=True)
    check_rows("annotator", group, n)
    return names, np.asarray(group, dtype=np.intp)


def look_at_levels(counts: NDArray[np.intp], levels: Levels, classes: NDArray[Any]) -> list[str]:
    """What is unusual about the numbers of rows of each level and class."""
    top = counts[-1]
    if not top.any():
        return [
            f"there are no rows at the top level {levels[-1]!r}: its predictions follow from the "
            "lower levels and from what is assumed about the link between them"
        ]
    if len(levels) > 1 and not top.all():
        missing = [str(c) for c, n in zip(classes, top, strict=True) if not n]
        return [
            f"the top level {levels[-1]!r} has no row of class {', '.join(missing)}; what is known "
            "of it comes from lower levels"
        ]
    return []
