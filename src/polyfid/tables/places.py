"""What is wrong with a table, and where: the file, row and column that messages name."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from itertools import count, groupby, islice
from numbers import Integral
from operator import itemgetter
from typing import IO, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.text import name_few

#: Where a data frame keeps its places: pandas hands ``attrs`` on when rows or columns are chosen.
#: They are kept as text, as pandas copies attributes deeply and writes them to Parquet as JSON.
KEY = "polyfid"
#: What reading a damaged compressed file raises, besides OSError.
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class TableError(ValueError):
    """A table that cannot be used; the message says which file, row and column, and what to do.

    Parameters
    ----------
    problem : str
        What is wrong there and what to do.
    path : str, optional
        Name of the file.
    row : int, optional
        Line of the file, counted from 1, which is the header's; in tables without lines (Parquet,
        data frames) the row, counted from 1.
    column : str, optional
        Name of the column.
    others : sequence of TableError
        Other errors of the same tables.

    Attributes
    ----------
    problems : tuple of str
        The message of this error and of the others.

    Examples
    --------
    >>> from polyfid.tables import TableError
    >>> print(TableError("'abc' is not a number", path="gold.csv", row=3, column="x1"))
    gold.csv, row 3, column 'x1': 'abc' is not a number
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | None = None,
        row: int | None = None,
        column: str | None = None,
        others: Sequence[TableError] = (),
    ) -> None:
        self.problem, self.path, self.row, self.column = problem, path, row, column
        where = (
            path,
            None if row is None else f"row {row}",
            None if column is None else f"column {column!r}",
        )
        place = ", ".join(filter(None, where))
        message = f"{place}: {problem}" if place else problem
        self.problems: tuple[str, ...] = (message, *(p for other in others for p in other.problems))
        more = len(self.problems) - 1
        if more:
            message += f" (and {more} more problem{'s' * (more > 1)})"
        super().__init__(message)


def raise_all(errors: Sequence[TableError]) -> None:
    """Raise the first error, if any; it lists the others."""
    if errors:
        first, *others = errors
        raise TableError(
            first.problem, path=first.path, row=first.row, column=first.column, others=others
        )


def no_column(
    wanted: str,
    there: Iterable[str],
    path: str | None,
    role: str = "",
    advice: str = "",
    taken: Collection[str] = (),
) -> TableError:
    """The error of an absent column; it proposes the most similar one that is not ``taken``."""
    names = [str(name) for name in there]
    lower = {name.strip().lower(): name for name in reversed(names) if name not in taken}
    close = get_close_matches(wanted.strip().lower(), list(lower), n=1, cutoff=0.6)
    hint = f"did you mean {lower[close[0]]!r}? " if close else ""
    text = f"there is no column {wanted!r}{role}; {hint}the columns are {name_few(names)}"
    if len(names) > 1 and not pd.to_numeric(pd.Series(names), errors="coerce").isna().any():
        text += " (row 1 looks like data: it must hold the names of the columns)"
    return TableError(text + (f"; {advice}" if advice else ""), path=path)


def shown(cell: object) -> str:
    """A cell in quotes, shortened if it is long."""
    text = str(cell)
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


# ------------------------------------------------------------------------------ files


@dataclass(frozen=True)
class TableFile:
    """A file on disk: ``name`` is what messages call it, ``path`` where it is."""

    name: str
    path: str
    kind: Literal["csv", "parquet"]
    zipped: bool = False

    def open(self) -> IO[bytes]:
        """Its bytes, decompressed."""
        if self.zipped:
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return open(self.path, "rb")

    def count_lines(self) -> int:
        """Lines of a text file, whichever way they end."""
        with io.TextIOWrapper(self.open(), encoding="latin-1") as text:
            return sum(1 for _ in text)


class CsvRow(NamedTuple):
    """Cells of a row of a text file, and the lines on which it begins and ends."""

    cells: list[str]
    line: int
    end: int


def csv_rows(
    stream: IO[bytes], encoding: str, delimiter: str, strict: bool = False
) -> Iterator[CsvRow]:
    """All rows, the header's first, read by Python: slow, without any checks."""
    with io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=strict)
        first = 1
        for cells in reader:
            if cells:  # lines with nothing on them are no rows
                yield CsvRow(cells, first, reader.line_num)
            first = reader.line_num + 1


@dataclass(frozen=True)
class Dialect:
    """How a text file writes its table; the names of the columns end on line ``header_lines``.

    ``decimals`` are the decimal marks that its numbers may have.
    """

    encoding: str
    delimiter: str
    decimals: str
    names: tuple[str, ...]
    header_lines: int
    has_rows: bool


# ----------------------------------------------------------------------- places of rows


@dataclass(frozen=True)
class FileRows:
    """Rows of one table.

    ``lines`` are pairs of a row, counted from 0, and its line in the file; rows between two pairs
    are on consecutive lines. Rows that were read in blocks have a ``path`` instead, where their
    lines are found if they are needed. ``columns`` are all columns of the file.
    """

    name: str
    rows: int
    lines: Sequence[Sequence[int]] = ((0, 1),)
    columns: Sequence[str] = ()
    path: str = ""
    zipped: bool = False
    delimiter: str = ""
    encoding: str = ""

    @classmethod
    def of_csv(cls, file: TableFile, dialect: Dialect, rows: int) -> FileRows:
        """Rows of a text file that is read whole: their lines are found now."""
        made = cls.of_block(file, dialect, rows)
        one_per_line = file.count_lines() == dialect.header_lines + rows
        return replace(made, path="", columns=()) if one_per_line else made.resolved()

    @classmethod
    def of_block(cls, file: TableFile, dialect: Dialect, rows: int) -> FileRows:
        """Rows of a text file that is read in blocks: their lines are found when asked for."""
        after_header = ((0, dialect.header_lines + 1),)
        how = (file.path, file.zipped, dialect.delimiter, dialect.encoding)
        return cls(file.name, rows, after_header, dialect.names, *how)

    def resolved(self) -> FileRows:
        """The same rows with their lines, for which the file is not needed any more."""
        lines = _runs(islice(self._lines(), self.rows)) if self.path else self.lines
        return FileRows(self.name, self.rows, lines)

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
        with (
            suppress(OSError, UnicodeError, csv.Error, *DAMAGE),  # it may have changed since
            file.open() as stream,
        ):
            for row in islice(csv_rows(stream, self.encoding, self.delimiter), 1, None):
                yield row.line
                line += 1
        yield from count(line)


def _runs(lines: Iterable[int]) -> tuple[tuple[int, int], ...]:
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
        return cls.of_file("", len(frame)) if attached is None else cls.from_json(attached)

    @classmethod
    def of_file(cls, name: str, rows: int) -> RowPlaces:
        """The places of so many rows of a file without lines, counted from 1."""
        return cls((FileRows(name, rows),))

    @classmethod
    def from_json(cls, text: str) -> RowPlaces:
        """The places that `to_json` gave."""
        return cls(tuple(FileRows(**file) for file in json.loads(text)))

    def to_json(self) -> str:
        """All of it as text."""
        return json.dumps([asdict(file) for file in self.files])

    def attached_to(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame, with these places from now on."""
        frame.attrs[KEY] = self.to_json()
        return frame

    def taken(self, labels: pd.Index) -> RowPlaces:
        """The places of the rows with these labels, in the order of the labels."""
        if not pd.api.types.is_integer_dtype(labels):
            return RowPlaces.of_file(self.file or "", len(labels))
        files = self.files
        if not labels.equals(pd.RangeIndex(len(self))):
            by_file = groupby(map(self.place, labels.tolist()), key=itemgetter(0))
            runs = [(name or "", [line for _, line in places]) for name, places in by_file]
            files = tuple(FileRows(name, len(lines), _runs(lines)) for name, lines in runs)
        return RowPlaces(tuple(file.resolved() for file in files))

    def __len__(self) -> int:
        return sum(file.rows for file in self.files)

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
        row = label
        for file in self.files:
            if 0 <= row < file.rows:
                return file.name or None, file.line(row)
            row -= file.rows
        return None, label + 1


def file_of(frame: pd.DataFrame) -> str | None:
    """The name of the file that a frame was read from, if it is one."""
    return RowPlaces.of(frame).file


def columns_of_file(frame: pd.DataFrame) -> list[str]:
    """Columns of the file that a frame was read from, which may hold some of them only."""
    names = [name for file in RowPlaces.of(frame).files for name in file.columns]
    return names or [str(name) for name in frame.columns]


def error_at(frame: pd.DataFrame, position: int, column: str, problem: str) -> TableError:
    """The error of a cell of a data frame, with its place in the file if there is one."""
    wrong = WrongCells(column, "{problem}")
    wrong.add(frame, np.arange(len(frame)) == position)
    return wrong.error(problem=problem)


class WrongCells:
    """Cells of a column that are wrong in one way: how many, and the first, over blocks of rows.

    In ``problem``, {cell} stands for the first one, and {others} for the words ``one`` or ``many``
    about the other ones, whose number is the {} in ``many``.
    """

    def __init__(self, column: str, problem: str, one: str = "", many: str = "") -> None:
        self._column, self._problem, self._words = column, problem, ("", one, many)
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

    def error(self, **words: object) -> TableError:
        """The error of the first one."""
        row = self._row
        assert row is not None
        cells, label = row[self._column], row.index[0]
        others = self._words[min(self.count - 1, 2)].format(self.count - 1)
        cell = "an empty cell" if cells.isna().iloc[0] else shown(cells.iloc[0])
        name, number = None, self._position + 1
        if KEY in row.attrs and isinstance(label, Integral):
            name, number = RowPlaces.of(row).place(int(label))
        problem = self._problem.format(cell=cell, others=others, **words)
        return TableError(problem, path=name or "data frame", row=number, column=self._column)
