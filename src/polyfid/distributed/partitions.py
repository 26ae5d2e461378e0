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
    if not isinstance(X, da.Array) or X.ndim != 2 or np.isnan(X.shape[1]):
        shape = f" of shape {X.shape}" if isinstance(X, da.Array) else ""
        raise TypeError(
            "X must be a dask data frame, or a dask array of two dimensions with a known number of "
            f"features, got {type(X).__name__}{shape}; use dask.array.from_array or "
            "dask.dataframe.from_pandas, or the method of the model"
        )
    return False


def whole_rows(X: Any) -> Any:
    """X with all features of a row in the same partition."""
    return X if is_frame(X) or X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned(name: str, values: Any, X: Any) -> Any:
    """A dask array or series (n,) in as many partitions as X, of as many rows where it is known."""
    if not isinstance(values, da.Array | dd.Series) or values.ndim != 1:
        raise TypeError(
            f"{name} must be a dask array of one dimension or a dask series, one entry per row of "
            f"X, or the name of a column of X; got {type(values).__name__}"
        )
    if isinstance(values, da.Array) and isinstance(X, da.Array):
        ours, theirs = values.chunks[0], X.chunks[0]
        if sum(ours) == sum(theirs):  # not if sizes are unknown, which are NaN
            return values.rechunk((theirs,))
        if not np.isnan(ours + theirs).any():
            raise ValueError(
                f"{name} has {sum(ours)} entries and X has {sum(theirs)} rows; they must have "
                "equal length"
            )
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
    """A Block, or None, for each partition, still to be computed; sets the features of X."""
    if y is None:
        raise ValueError("y must be given: one class per row of X")
    X = whole_rows(X)
    columns: list[str | None] = []
    pieces = [X.to_delayed()]
    given = {"y": y, "fidelity": fidelity, "sample_weight": sample_weight}
    for name, values in given.items():
        is_column = isinstance(values, str)
        if is_column and values not in getattr(X, "columns", ()):
            raise ValueError(
                f"{name} must be a dask array or series, or the name of a column of X; got "
                f"{values!r}, and X has columns {list(getattr(X, 'columns', ()))}"
            )
        columns.append(values if is_column else None)
        absent = values is None or is_column
        pieces.append([None] * X.npartitions if absent else aligned(name, values, X).to_delayed())
    example: Any = np.zeros((1, X.shape[1]))
    if is_frame(X):
        example = meta_nonempty(X.drop(columns=[c for c in columns if c is not None])._meta)
    read_features(features, example, reset=True)
    return [
        delayed(_read_partition)(features, levels, columns, number, *parts)
        for number, parts in enumerate(zip(*map(np.ravel, pieces), strict=True))
    ]


def _read_partition(
    features: Columns,
    levels: Levels | None,
    columns: list[str | None],
    number: int,
    X: Any,
    *others: Any,
) -> Block | None:
    """A partition, checked; ``others`` are labels and more that are no ``columns`` of X."""
    values = [
        other if column is None else X[column]
        for column, other in zip(columns, others, strict=True)
    ]
    named = [column for column in columns if column is not None]
    return read_block(features, levels, number, (X.drop(columns=named) if named else X, *values))
