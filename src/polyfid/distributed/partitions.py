"""Dask's arrays and data frames as partitions, each of which a worker reads."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.dataframe.dispatch import meta_nonempty
from dask.delayed import Delayed, delayed

from polyfid.estimator.inputs import Columns, read_block, read_features
from polyfid.rows.survey import Block, Levels


def is_frame(X: Any) -> bool:
    """Whether X is a dask data frame; if not, it must be a dask array of shape (n, d)."""
    if isinstance(X, dd.DataFrame):
        return True
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a dask array or data frame, got {type(X).__name__}; use "
            "dask.array.from_array or dask.dataframe.from_pandas, or the method of the model"
        )
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise ValueError(
            "X must have two dimensions, rows and features, and a known number of features; got "
            f"shape {X.shape}"
        )
    return False


def whole_rows(X: Any) -> Any:
    """X with all features of a row in the same partition."""
    return X if is_frame(X) or X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned(name: str, values: Any, X: Any) -> Any:
    """A dask array or series (n,) in as many partitions as X, of as many rows where it is known."""
    if not isinstance(values, da.Array | dd.Series) or values.ndim != 1:
        column = ", or the name of a column of it" if isinstance(X, dd.DataFrame) else ""
        raise TypeError(
            f"{name} must be a dask array of one dimension or a dask series, one entry per row of "
            f"X{column}; got {type(values).__name__}"
        )
    if isinstance(values, da.Array) and isinstance(X, da.Array):
        ours, theirs = values.chunks[0], X.chunks[0]
        if ours != theirs and not np.isnan(ours + theirs).any():
            if sum(ours) != sum(theirs):
                raise ValueError(
                    f"{name} has {sum(ours)} entries and X has {sum(theirs)} rows; they must have "
                    "equal length"
                )
            return values.rechunk((theirs,))
    n_partitions = X.npartitions if isinstance(X, dd.DataFrame) else X.numblocks[0]
    if values.npartitions != n_partitions:
        raise ValueError(
            f"{name} has {values.npartitions} partitions and X has {n_partitions}; they must be "
            "cut at the same rows: repartition or rechunk one of them"
        )
    return values


def read_partitions(
    features: Columns, levels: Levels | None, X: Any, y: Any, fidelity: Any, sample_weight: Any
) -> list[Delayed]:
    """A Block, or None, for each partition, still to be computed.

    Parameters
    ----------
    features : are set to those of X.
    levels : names of the levels in order, if the user gave them.
    X : dask array or data frame
    y, fidelity, sample_weight : dask array, dask series or name of a column of X
    """
    X = whole_rows(X)
    given = {"y": y, "fidelity": fidelity, "sample_weight": sample_weight}
    if y is None:
        raise ValueError("y must be given: one class per row of X")
    columns = [_column(name, values, X) for name, values in given.items()]
    example: Any = np.zeros((1, X.shape[1]))
    if is_frame(X):
        example = meta_nonempty(X.drop(columns=[c for c in columns if c is not None])._meta)
    read_features(features, example, reset=True)
    pieces = [X.to_delayed()]
    for (name, values), column in zip(given.items(), columns, strict=True):
        absent = values is None or column is not None
        pieces.append([None] * X.npartitions if absent else aligned(name, values, X).to_delayed())
    return [
        delayed(_read_partition)(features, levels, columns, number, *parts)
        for number, parts in enumerate(zip(*map(np.ravel, pieces), strict=True))
    ]


def _column(name: str, values: Any, X: Any) -> str | None:
    """The column of X that an argument names; None if it is no name."""
    if not isinstance(values, str):
        return None
    if not is_frame(X) or values not in X.columns:
        there = f"columns {list(X.columns)}" if is_frame(X) else "no named columns"
        raise ValueError(
            f"{name} must be a dask array or series, or the name of a column of X; got {values!r}, "
            f"and X has {there}"
        )
    return values


def _read_partition(
    features: Columns,
    levels: Levels | None,
    columns: list[str | None],
    number: int,
    X: Any,
    *others: Any,
) -> Block | None:
    """A partition, checked; None if it has no rows.

    ``columns`` of X hold classes, fidelity and weights; where one is None, ``others`` do.
    """
    values = [
        other if column is None else X[column]
        for column, other in zip(columns, others, strict=True)
    ]
    named = [column for column in columns if column is not None]
    return read_block(features, levels, number, (X.drop(columns=named) if named else X, *values))
