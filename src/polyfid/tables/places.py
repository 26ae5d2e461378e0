"""Where rows came from: the file and the number that each row of a data frame had in it."""

from __future__ import annotations

import csv
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count, groupby, islice
from numbers import Integral
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.csv_files import DAMAGE, Dialect, TableFile, count_lines, rows_with_lines
from polyfid.tables.errors import TableError

#: Where a data frame keeps its places: pandas hands ``attrs`` on when rows or columns are chosen.
#: They are kept as text, as pandas copies attributes deeply and writes them to Parquet as JSON.
KEY = "polyfid"


@dataclass(frozen=True)
class FileRows:
    """Rows of one table, which have the labels from ``first`` on in the index of a data frame.

    ``lines`` are pairs of a row, counted from 0, and its line in the file; rows between two pairs
    are on consecutive lines. Rows that were read in blocks have a ``path`` instead, where their
    lines are found if they are needed. ``columns`` are those of the file, where the data frame has
    some of them only.
    """

    name: str
    rows: int
    first: int = 0
    lines: tuple[tuple[int, int], ...] = ((0, 1),)
    columns: tuple[str, ...] = ()
    path: str = ""
    zipped: bool = False
    delimiter: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        if not self.lines or self.lines[0][0] != 0:
            raise ValueError("lines must begin with that of row 0")

    @classmethod
    def of_csv(cls, file: TableFile, dialect: Dialect, rows: int) -> FileRows:
        """Rows of a text file that is read whole: their lines are found now."""
        in_file = cls.of_block(file, dialect, rows)
        lines: tuple[tuple[int, int], ...] = ((0, dialect.header_lines + 1),)
        if count_lines(file) != dialect.header_lines + rows:
            lines = _runs(islice(in_file._lines(), rows))
        return cls(file.name, rows, lines=lines)

    @classmethod
    def of_block(cls, file: TableFile, dialect: Dialect, rows: int) -> FileRows:
        """Rows of a text file that is read in blocks: their lines are found when asked for."""
        after_header = ((0, dialect.header_lines + 1),)
        how = (file.path, file.zipped, dialect.delimiter, dialect.encoding)
        return cls(file.name, rows, 0, after_header, dialect.names, *how)

    def line(self, row: int) -> int:
        """The number of a row, counted from 0, in the file."""
        if self.path:
            return next(islice(self._lines(), row, None))
        start, line = self.lines[bisect_right(self.lines, row, key=itemgetter(0)) - 1]
        return line + row - start

    def _lines(self) -> Iterator[int]:
        """Lines of all rows, read from the file."""
        line = self.lines[0][1]
        file = TableFile(self.name, self.path, "csv", self.zipped)
        with suppress(OSError, UnicodeError, csv.Error, *DAMAGE):  # it may have changed since
            rows = rows_with_lines(file, self.encoding, self.delimiter)
            for first, _, _ in islice(rows, 1, None):
                yield first
                line += 1
        yield from count(line)


def _runs(lines: Iterator[int]) -> tuple[tuple[int, int], ...]:
    """First row and its line of each run of rows on consecutive lines."""
    runs, expected = [], None
    for row, line in enumerate(lines):
        if line != expected:
            runs.append((row, line))
        expected = line + 1
    return tuple(runs) or ((0, 2),)


@dataclass(frozen=True)
class RowPlaces:
    """File and row number of each row of a data frame, for messages.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import RowPlaces
    >>> frame = RowPlaces.of_file("tasks.json", 2).attached_to(pd.DataFrame({"x": [1.0, 2.0]}))
    >>> RowPlaces.of(frame)[1]
    'tasks.json, row 2'
    """

    files: tuple[FileRows, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> RowPlaces:
        """The places that are attached to a data frame; those in the frame itself if none are."""
        attached = frame.attrs.get(KEY)
        if attached is None:
            return cls.of_file("", len(frame))
        return cls.from_list(json.loads(attached))

    @classmethod
    def of_file(cls, name: str, rows: int) -> RowPlaces:
        """The places of so many rows of a file without lines, counted from 1."""
        return cls((FileRows(name, rows),))

    @classmethod
    def joined(cls, several: Sequence[RowPlaces]) -> RowPlaces:
        """The places of tables one below the other."""
        files: list[FileRows] = []
        for part in (part for places in several for part in places.files):
            files.append(replace(part, first=sum(before.rows for before in files)))
        return cls(tuple(files))

    @classmethod
    def from_list(cls, files: Sequence[Mapping[str, Any]]) -> RowPlaces:
        """The places that `to_list` gave."""
        return cls(
            tuple(
                FileRows(
                    **{
                        **part,
                        "lines": tuple((int(row), int(line)) for row, line in part["lines"]),
                        "columns": tuple(part["columns"]),
                    }
                )
                for part in files
            )
        )

    def taken(self, labels: pd.Index) -> RowPlaces:
        """The places of the rows with these labels, counted from 0 in their new order."""
        if labels.equals(pd.RangeIndex(len(self))):
            return self
        if not pd.api.types.is_integer_dtype(labels):
            return RowPlaces.of_file(self.file or "", len(labels))
        files: list[FileRows] = []
        chosen = enumerate(map(self.place, labels.tolist()))
        for name, run in groupby(chosen, key=lambda item: item[1][0]):
            lines = [(row, line) for row, (_, line) in run]
            runs = _runs(iter([line for _, line in lines]))
            files.append(FileRows(name or "", len(lines), lines[0][0], runs))
        return RowPlaces(tuple(files))

    def to_list(self) -> list[dict[str, Any]]:
        """All of it in plain values and arrays, to be stored; files without their folders."""
        return [
            {**asdict(replace(part, path="")), "lines": np.array(part.lines, dtype=np.int64)}
            for part in self.files
        ]

    def attached_to(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame, with these places from now on."""
        frame.attrs[KEY] = json.dumps([asdict(part) for part in self.files])
        return frame

    def __len__(self) -> int:
        return sum(part.rows for part in self.files)

    def __getitem__(self, row: int) -> str:
        if not 0 <= row < len(self):
            raise IndexError(f"there are {len(self)} rows, counted from 0; got {row}")
        name, number = self.place(row)
        return f"{name or 'data frame'}, row {number}"

    @property
    def file(self) -> str | None:
        """The name of the file, if it is one."""
        return self.files[0].name or None if len(self.files) == 1 else None

    def place(self, label: int) -> tuple[str | None, int]:
        """The file, None for a data frame, and the row number of a label of the index."""
        for part in self.files:
            if part.first <= label < part.first + part.rows:
                return part.name or None, part.line(label - part.first)
        return None, label + 1


def columns_of_file(frame: pd.DataFrame) -> list[str]:
    """Columns of the file that a frame was read from, which may hold some of them only."""
    names = [name for part in RowPlaces.of(frame).files for name in part.columns]
    return names or [str(name) for name in frame.columns]


def error_at(frame: pd.DataFrame, position: int, column: str | None, problem: str) -> TableError:
    """The error of a cell of a data frame, with its place in the file if there is one."""
    return _error(frame, position, frame.index[position], column, problem)


def _error(
    frame: pd.DataFrame, position: int, label: object, column: str | None, problem: str
) -> TableError:
    name, row = None, position + 1
    if KEY in frame.attrs and isinstance(label, Integral):
        name, row = RowPlaces.of(frame).place(int(label))
    return TableError(problem, path=name or "data frame", row=row, column=column)


class WrongCells:
    """Cells that are wrong in the same way: how many, and the first, over blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyfid.tables.places import WrongCells
    >>> wrong = WrongCells()
    >>> wrong.add(pd.DataFrame({"x": [1, -1, -2]}), np.array([False, True, True]))
    >>> print(wrong.error("x", f"negative{wrong.more(' (one more)', ' ({} more)')}"))
    data frame, row 2, column 'x': negative (one more)
    """

    def __init__(self) -> None:
        self.count, self._position = 0, 0
        self._row: pd.DataFrame | None = None

    def add(self, frame: pd.DataFrame, wrong: NDArray[np.bool_]) -> None:
        """Count the wrong ones among some rows."""
        count = int(wrong.sum())
        if count and self._row is None:
            self._position = int(np.argmax(wrong))
            # A copy: a view would keep all of the block in memory.
            self._row = frame.iloc[[self._position]]
        self.count += count

    def __bool__(self) -> bool:
        return self.count > 0

    def first(self, column: str) -> pd.Series:
        """The first of the cells, as a column of one."""
        assert self._row is not None
        return self._row[column]

    def more(self, one: str, many: str) -> str:
        """Words about the others, none if there are none."""
        others = self.count - 1
        return many.format(others) if others > 1 else one * others

    def error(self, column: str, problem: str) -> TableError:
        """The error of the first one."""
        assert self._row is not None
        return _error(self._row, self._position, self._row.index[0], column, problem)
