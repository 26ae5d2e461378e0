"""Tables and their columns: arrays and data frames alike, with one column set apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing


def as_table(X: Any) -> Any:
    """X with a shape of two dimensions and rows that can be selected."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features; got shape {tuple(X.shape)}. Reshape "
            "your data: array.reshape(-1, 1) if it is one feature, array.reshape(1, -1) if one row"
        )
    return X


def refuse_other_than_numbers(X: Any) -> None:
    """Complain about columns of a table that hold no real numbers, by name."""
    if np.iscomplexobj(X):
        raise ValueError("Complex data not supported: X must hold real numbers; split them")
    dtypes, columns = getattr(X, "dtypes", None), getattr(X, "columns", None)
    if dtypes is not None and columns is not None:
        # All but numbers and truth values of pandas (pyarrow's too) and polars.
        numeric = ("int", "uint", "float", "double", "bool", "decimal", "sparse")
        kinds = {str(c): str(t) for c, t in zip(columns, list(dtypes), strict=True)}
        bad = [f"{c} ({t})" for c, t in kinds.items() if not t.lower().startswith(numeric)]
    else:
        values = np.asarray(X)
        if values.dtype.kind not in "OSU" or values.ndim != 2:
            return
        bad = [str(c) for c in range(values.shape[1]) if any(map(_is_text, values[:, c]))]
    if bad:
        shown = ", ".join(bad[:5]) + f" and {len(bad) - 5} more" * (len(bad) > 5)
        raise ValueError(
            f"X has columns that are not numeric: {shown}. Encode them first, for instance with "
            "sklearn.preprocessing.OneHotEncoder, or with OrdinalEncoder and "
            "polyfid.kernels.Categorical on those columns; if they hold numbers, convert them "
            "with astype(float)"
        )


def _is_text(value: Any) -> bool:
    try:
        float(value) if isinstance(value, str | bytes) else None
    except ValueError:
        return True
    return False


@dataclass(frozen=True)
class FidelityColumn:
    """The column of X that holds the fidelity: its place, and its name in a data frame."""

    place: int
    name: Any

    @classmethod
    def find(cls, X: Any, column: int | str) -> FidelityColumn:
        """Look up a column by place or name."""
        columns = getattr(X, "columns", None)
        names = None if columns is None else list(columns)
        if names is not None and column in names:
            return cls(names.index(column), column)
        n_columns = X.shape[1]
        if isinstance(column, int | np.integer) and -n_columns <= column < n_columns:
            place = int(column) % n_columns
            return cls(place, None if names is None else names[place])
        there = f"columns {names}" if names is not None else f"{n_columns} columns and no names"
        raise ValueError(
            f"fidelity_feature must be a column of X, got {column!r}, and X has {there}; pass the "
            "place or, for a data frame, the name of the column"
        )

    def split(self, X: Any) -> tuple[Any, Any]:
        """X without the column, and the column."""
        return _split(X, self.place)

    def split_if_there(self, X: Any, n_features: int) -> tuple[Any, Any]:
        """As `split` for new rows, which may come without the column: then it is None."""
        columns = getattr(X, "columns", None)
        if self.name is not None and columns is not None:
            names = list(columns)
            return _split(X, names.index(self.name)) if self.name in names else (X, None)
        return _split(X, self.place) if X.shape[1] == n_features + 1 else (X, None)


def _split(X: Any, place: int) -> tuple[Any, Any]:
    others = np.delete(np.arange(X.shape[1]), place)
    rest = _safe_indexing(X, others, axis=1)
    if hasattr(X, "tocsr"):
        return rest, X[:, [place]].toarray()[:, 0]
    return rest, _safe_indexing(X, place, axis=1)
