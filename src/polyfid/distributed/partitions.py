"""Dask's arrays and data frames as partitions, each of which a worker can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.dataframe.dispatch import meta_nonempty
from dask.delayed import Delayed, delayed

from polyfid.estimator.blocks import read_block
from polyfid.estimator.inputs import Columns, read_features
from polyfid.rows import Rows
from polyfid.rows.survey import Block, Coding, Levels


def is_frame(X: Any) -> bool:
    """Whether X is a data frame; complain if it is no dask array either."""
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


def whole_rows(X: da.Array) -> da.Array:
    """An array that is cut between rows only."""
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned(name: str, values: Any, X: Any) -> Any:
    """A dask array or series (n,) in as many partitions as X, each of as many rows if known."""
    if not isinstance(values, da.Array | dd.Series) or values.ndim != 1:
        kind = type(values).__name__
        raise TypeError(
            f"{name} must be a dask array of one dimension or a dask series, one entry a row of X"
            f"{', or the name of a column of it' if isinstance(X, dd.DataFrame) else ''}; "
            f"got {kind}"
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
    if values.npartitions != n_partitions(X):
        raise ValueError(
            f"{name} has {values.npartitions} partitions and X has {n_partitions(X)}; they must "
            "be cut at the same rows: repartition or rechunk one of them"
        )
    return values


def n_partitions(X: Any) -> int:
    """Pieces between which rows are cut."""
    return int(X.npartitions if isinstance(X, dd.DataFrame) else X.numblocks[0])


@dataclass(frozen=True)
class Reader:
    """Reads a partition on a worker.

    Parameters
    ----------
    known : the features.
    levels : names of the levels in order, if the user gave them.
    columns : those of X that hold classes, fidelity and weights; None where something else does.
    """

    known: Columns
    levels: Levels | None
    columns: tuple[str | None, str | None, str | None]

    def __call__(self, number: int, X: Any, *others: Any) -> Block | None:
        """A partition, checked; None if it has no rows."""
        named = [column for column in self.columns if column is not None]
        y, fidelity, weight = (
            other if column is None else X[column]
            for column, other in zip(self.columns, others, strict=True)
        )
        X = X.drop(columns=named) if named else X
        return read_block(self.known, self.levels, number, (X, y, fidelity, weight))


def read_partitions(
    known: Columns, levels: Levels | None, X: Any, y: Any, fidelity: Any, sample_weight: Any
) -> list[Delayed]:
    """A Block, or None, for each partition, still to be computed.

    Parameters
    ----------
    known : whose features those of X become.
    levels : names of the levels in order, if the user gave them.
    X : dask array or data frame
    y, fidelity, sample_weight : dask array, dask series or name of a column of X
    """
    frame = is_frame(X)
    given = {"y": y, "fidelity": fidelity, "sample_weight": sample_weight}
    if y is None:
        raise ValueError("y must be given: one class a row of X")
    columns = tuple(_column(name, values, X) for name, values in given.items())
    example: Any = np.zeros((1, X.shape[1]))
    if frame:
        features = X.drop(columns=[column for column in columns if column is not None])
        example = meta_nonempty(features._meta)
    read_features(known, example, reset=True)
    pieces = [(X if frame else whole_rows(X)).to_delayed()]
    for (name, values), column in zip(given.items(), columns, strict=True):
        there = values is not None and column is None
        pieces.append(aligned(name, values, X).to_delayed() if there else [None] * n_partitions(X))
    reader = Reader(known, levels, (columns[0], columns[1], columns[2]))
    return [
        delayed(_read)(reader, number, *parts)
        for number, parts in enumerate(zip(*map(np.ravel, pieces), strict=True))
    ]


def _column(name: str, values: Any, X: Any) -> str | None:
    if not isinstance(values, str):
        return None
    if not isinstance(X, dd.DataFrame) or values not in X.columns:
        there = f"columns {list(X.columns)}" if isinstance(X, dd.DataFrame) else "no named columns"
        raise ValueError(
            f"{name} must be a dask array or series, or the name of a column of X; got {values!r}, "
            f"and X has {there}"
        )
    return values


def _read(reader: Reader, number: int, *parts: Any) -> Block | None:
    return reader(number, *parts)


def encode(block: Block | None, coding: Coding) -> Rows | None:
    """A partition in numbers; None if it has no rows."""
    return None if block is None else coding(block)
