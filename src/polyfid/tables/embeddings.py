"""Embeddings: numbers that another program made of images, sound or texts, as further features."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.column import read_ids, to_numbers
from polyfid.tables.places import TableError, no_column
from polyfid.tables.read import read_table
from polyfid.text import name_few

_NPY = b"\x93NUMPY"


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Numbers for each row of a table, which become its columns ``emb0``, ``emb1`` and so on.

    Parameters
    ----------
    title : str
        What messages call them.
    values : array of shape (n, d)
    ids : array of str, optional
        The rows they belong to, by id; without them, the rows of a table in its order.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import Embeddings
    >>> made = pd.DataFrame({"id": ["b", "a"], "first": [0.5, 0.25], "second": [1.0, 2.0]})
    >>> Embeddings.read(made).add_to(pd.DataFrame({"id": ["a", "b"], "x": [7, 8]}))
      id  x  emb0  emb1
    0  a  7  0.25   2.0
    1  b  8  0.50   1.0
    """

    title: str
    values: NDArray[Any]
    ids: NDArray[np.str_] | None = None

    @classmethod
    def read(cls, source: Any, id: str | None = None, **csv: Any) -> Self:
        """Embeddings from an array of numpy or a table with ids.

        Parameters
        ----------
        source : path or data frame
            A file ``.npy`` with one row per row of the table, or a table (CSV, Parquet) with a
            column of ids and further columns of numbers.
        id : str, optional
            The column of ids; by default ``id``, or the only column that holds no numbers.
        **csv
            ``delimiter``, ``decimal`` and ``encoding`` of `read_table`.
        """
        title = "embeddings"
        if isinstance(source, str | os.PathLike):
            title = f"embeddings ({Path(source).name})"
            if _is_npy(source):
                return cls(title, _read_npy(source, title))
        wanted = [name for name in (id, "id") if name is not None]
        frame = read_table(source, text=wanted, **csv)
        others = [name for name in frame.columns if to_numbers(frame[name])[1].any()]
        column = next((name for name in wanted if name in frame.columns), None)
        if column is None:
            if len(others) != 1:
                advice = "name it by --id (in Python id=...)"
                raise no_column(wanted[0], frame.columns, title, " of ids", advice)
            (column,) = others
        ids = pd.Series(read_ids(frame, column))
        if ids.duplicated().any():
            problem = (
                f"several rows have the id {ids[ids.duplicated()].iloc[0]!r}; keep one of them"
            )
            raise TableError(problem, path=title, column=column)
        values = []
        for name in frame.columns.drop(column):
            numbers, wrong = to_numbers(frame[name])
            if wrong.any():
                problem = "the column must hold numbers only; leave it out of the file"
                raise TableError(problem, path=title, column=name)
            values.append(numbers)
        if not values:
            problem = f"there are no columns of numbers beside {column!r}"
            raise TableError(problem, path=title)
        return cls(title, np.column_stack(values), ids.to_numpy(dtype=str))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that they become."""
        return tuple(f"emb{k}" for k in range(self.values.shape[1]))

    def with_ids(self, ids: NDArray[Any]) -> Self:
        """Embeddings in the order of these ids as embeddings by id; others as they are."""
        if self.ids is not None:
            return self
        self._check_count(len(ids))
        return replace(self, ids=np.asarray(ids, dtype=str))

    def add_to(self, frame: pd.DataFrame, ids: Sequence[str] = ("id",)) -> pd.DataFrame:
        """A table with the embeddings of its rows; ``ids`` are columns that may have their ids."""
        if self.ids is None:
            self._check_count(len(frame))
        return self._joined(frame, ids, 0)

    def add_to_blocks(
        self, blocks: Iterable[pd.DataFrame], ids: Sequence[str]
    ) -> Iterator[pd.DataFrame]:
        """Blocks of a table with the embeddings of their rows, one after the other."""
        start = 0
        for block in blocks:
            yield self._joined(block, ids, start)
            start += len(block)
        if self.ids is None:
            self._check_count(start)

    def _check_count(self, rows: int) -> None:
        if len(self.values) != rows:
            raise TableError(
                f"there are {len(self.values):,} rows of embeddings, and the table has {rows:,}; "
                "give one per row, in the order of the table, or a table with a column of ids",
                path=self.title,
            )

    def _joined(self, frame: pd.DataFrame, ids: Sequence[str], start: int) -> pd.DataFrame:
        if taken := [name for name in self.names if name in frame.columns]:
            problem = f"the table has columns {name_few(taken, 3)} already; rename them there"
            raise TableError(problem, path=self.title)
        if self.ids is None:
            places = np.arange(start, start + len(frame))
            if start + len(frame) > len(self.values):
                raise TableError(
                    f"there are {len(self.values):,} rows of embeddings, and the table has more; "
                    "give one per row, in the order of the table, or a table with a column of ids",
                    path=self.title,
                )
        else:
            places = self._places(frame, ids, self.ids)
        values = np.asarray(self.values[places], dtype=float)
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
            whose = "" if self.ids is None else f", that of {str(self.ids[places[row]])!r},"
            problem = f"row {places[row] + 1}{whose} has numbers that are missing or not finite"
            raise TableError(f"{problem}; make it again, or leave it out", path=self.title)
        added = pd.DataFrame(values, columns=list(self.names), index=frame.index)
        made = pd.concat([frame, added], axis=1)
        made.attrs = frame.attrs
        return made

    def _places(
        self, frame: pd.DataFrame, ids: Sequence[str], own: NDArray[np.str_]
    ) -> NDArray[np.intp]:
        """Rows of the embeddings, which have their ``own`` ids, by rows of a table."""
        column = next((name for name in ids if name in frame.columns), None)
        if column is None:
            advice = "name it by --id (in Python id=...), or give embeddings as .npy in its order"
            wanted = ids[0] if ids else "id"
            role = " of ids in the table to join them by"
            raise no_column(wanted, frame.columns, self.title, role, advice)
        wanted_ids = read_ids(frame, column)
        places = pd.Index(own.tolist()).get_indexer(wanted_ids.tolist())
        lost = [*dict.fromkeys(wanted_ids[places < 0].tolist())]
        if lost:
            n = len({*wanted_ids.tolist()})
            raise TableError(
                f"{len(lost):,} of {n:,} ids of column {column!r} have no embedding: "
                f"{name_few(lost, 5)}; ids of embeddings are such as {name_few(own[:2])}. "
                "Add theirs, or leave these rows out",
                path=self.title,
            )
        return np.asarray(places, dtype=np.intp)


def is_embedding(column: str) -> bool:
    """Whether a column has the name of one that embeddings become."""
    return re.fullmatch(r"emb[0-9]+", column) is not None


def _is_npy(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_NPY)) == _NPY


def _read_npy(path: str | os.PathLike[str], title: str) -> NDArray[Any]:
    """The array of a file, which stays on disk until its rows are needed."""
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise TableError(f"the file cannot be read ({error}); write it again", path=title) from None
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not values.shape[1]:
        raise TableError(
            "the array must hold numbers, one row per row of the table and one column at least; "
            f"its shape is {values.shape} and its type {values.dtype}",
            path=title,
        )
    return values
