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
from dataclasses import asdict, dataclass
from itertools import count, groupby, islice
from numbers import Integral
from operator import itemgetter, methodcaller
from typing import IO, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.text import name_few, nearest

#: Where a data frame keeps its places: pandas hands ``attrs`` on when rows or columns are chosen.
#: They are kept as text, as pandas copies attributes deeply and writes them to Parquet as JSON.
KEY = "polyfid"
#: Columns that a message lists all; of more columns it lists so many of the last ones.
MOST_NAMES, LAST_NAMES = 12, 6
#: What reading a damaged compressed file raises, besides OSError.
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class TableError(ValueError):
    """A table that cannot be used; the message says which file, row and column, and what to do.

    Attributes
    ----------
    problem : str
        What is wrong there and what to do.
    path, column : str or None
        Names of the file and of the column.
    row : int or None
        Line of the file, counted from 1, which is the header's; in tables without lines (Parquet,
        data frames) the row, counted from 1.
    problems : tuple of str
        The messages of this error and of others of the same tables.

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
        in_row = None if row is None else f"row {row}"
        in_column = None if column is None else f"column {column!r}"
        place = ", ".join(filter(None, [path, in_row, in_column]))
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
    """The error of an absent column, or of a pattern that no column matches.

    It proposes the most similar columns that are not ``taken``.
    """
    names = [str(name) for name in there]
    is_pattern = any(mark in wanted for mark in "*?[")
    lower = {name.strip().lower(): name for name in reversed(names) if name not in taken}
    near = nearest(wanted.strip("*? ").lower() if is_pattern else wanted.strip().lower(), lower)
    hint = f"did you mean {' or '.join(repr(lower[name]) for name in near)}? " if near else ""
    listed = f"the columns are {name_few(names)}"
    if len(names) > MOST_NAMES:  # of so many columns, the labels are often among the last
        listed = f"the last of the {len(names):,} columns are {name_few(names[-LAST_NAMES:])}"
    what = f"no column that matches {wanted!r}" if is_pattern else f"no column {wanted!r}"
    text = f"there is {what}{role}; {hint}{'' if near and len(names) > MOST_NAMES else listed}"
    text = text.rstrip()
    if len(names) > 1 and not pd.to_numeric(pd.Series(names), errors="coerce").isna().any():
        text += " (row 1 looks like data: it must hold the names of the columns)"
    if advice:
        text += f" If not, {advice}" if text.endswith("?") else f"; {advice}"
    return TableError(text, path=path)


def shortened(cell: object) -> str:
    """A cell as text of at most 40 letters."""
    text = str(cell)
    return text if len(text) <= 40 else f"{text[:40]}…"


def shown(cell: object) -> str:
    """A cell in quotes, shortened if it is long."""
    return repr(shortened(cell))


#: The number of quotes in a line.
_QUOTES = methodcaller("count", b'"')


class CsvRow(NamedTuple):
    """Cells of a row of a text file, and the lines on which it begins and ends."""

    cells: list[str]
    line: int
    end: int


@dataclass(frozen=True)
class TableFile:
    """A file on disk, and how it writes its table; ``name`` is what messages call it.

    In text files, ``decimals`` are the decimal marks that numbers may have, and the names of the
    columns end on line ``header_lines``.
    """

    name: str
    path: str
    kind: Literal["csv", "parquet"]
    zipped: bool = False
    encoding: str = "utf-8"
    delimiter: str = ","
    decimals: str = "."
    columns: Sequence[str] = ()
    header_lines: int = 1
    has_rows: bool = True

    def open(self) -> IO[bytes]:
        """Its bytes, decompressed."""
        if self.zipped:
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return open(self.path, "rb")

    def count_lines(self) -> int:
        """Lines of a text file, whichever way they end."""
        with io.TextIOWrapper(self.open(), encoding="latin-1") as text:
            return sum(1 for _ in text)

    def read_rows(self, strict: bool = False) -> Iterator[CsvRow]:
        """All rows of a text file, the header's first, read by Python: slow, without any checks."""
        with io.TextIOWrapper(self.open(), encoding=self.encoding, newline="") as text:
            reader = csv.reader(text, delimiter=self.delimiter, strict=strict)
            first = 1
            for cells in reader:
                if cells:  # lines with nothing on them are no rows
                    yield CsvRow(cells, first, reader.line_num)
                first = reader.line_num + 1

    def rows_are_lines(self) -> bool:
        """Whether every line of a text file is a row, judging by its bytes; False if in doubt."""
        if not self.encoding.startswith("utf-8"):
            return False
        with self.open() as file:
            while chunk := file.read(1 << 20):
                chunk = (chunk + file.readline()).replace(b"\r\n", b"\n")
                if b"\r" in chunk or b"\n\n" in chunk or chunk.startswith(b"\n"):
                    return False
                # A line with an odd number of quotes goes on in the next one.
                if b'"' in chunk and any(c % 2 for c in map(_QUOTES, chunk.split(b"\n"))):
                    return False
        return True

    def error(self, problem: str, row: int | None = None, column: str | None = None) -> TableError:
        """The error of a place in the file."""
        return TableError(problem, path=self.name, row=row, column=column)


@dataclass(frozen=True)
class FileRows:
    """Rows of one table.

    ``lines`` are pairs of a row, counted from 0, and its line in the file; rows between two pairs
    are on consecutive lines. Rows that were read in blocks have a ``file`` instead, where their
    lines are found if they are needed.
    """

    name: str
    rows: int
    lines: Sequence[Sequence[int]] = ((0, 1),)
    file: TableFile | None = None

    @classmethod
    def of_csv(cls, file: TableFile, rows: int) -> FileRows:
        """Rows of a text file that is read whole: their lines are found now."""
        if file.count_lines() == file.header_lines + rows:
            return cls(file.name, rows, ((0, file.header_lines + 1),))
        return cls(file.name, rows, file=file).resolved()

    def resolved(self) -> FileRows:
        """The same rows with their lines, for which the file is not needed any more."""
        lines = _runs(islice(self.read_lines(), self.rows)) if self._in_text else self.lines
        return FileRows(self.name, self.rows, lines)

    def line(self, row: int) -> int:
        """The number of a row, counted from 0, in the file."""
        if self._in_text:
            return next(islice(self.read_lines(), row, None))
        start, line = self.lines[bisect_right(self.lines, row, key=itemgetter(0)) - 1]
        return line + row - start

    @property
    def _in_text(self) -> bool:
        return self.file is not None and self.file.kind == "csv"

    def read_lines(self) -> Iterator[int]:
        """Lines of all rows, read from the file."""
        assert self.file is not None
        line = self.file.header_lines + 1
        if self.file.rows_are_lines():
            yield from count(line)
        with suppress(OSError, UnicodeError, csv.Error, *DAMAGE):  # it may have changed since
            for row in islice(self.file.read_rows(), 1, None):
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
        files = []
        for rows in json.loads(text):
            file = rows.pop("file")
            files.append(FileRows(**rows, file=None if file is None else TableFile(**file)))
        return cls(tuple(files))

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

    def numbers(self, labels: pd.Index) -> NDArray[np.intp]:
        """The row number of each label, as `place` gives it."""
        rows = labels.to_numpy(dtype=np.intp)
        numbers, start = rows + 1, 0
        for file in self.files:
            own = (start <= rows) & (rows < start + file.rows)
            first, line = np.array(file.resolved().lines).T
            run = np.searchsorted(first, rows[own] - start, side="right") - 1
            numbers[own] = line[run] + rows[own] - start - first[run]
            start += file.rows
        return numbers

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


def row_numbers(frame: pd.DataFrame) -> NDArray[np.intp]:
    """The numbers of the rows of a data frame, as messages have them."""
    if KEY in frame.attrs and pd.api.types.is_integer_dtype(frame.index):
        return RowPlaces.of(frame).numbers(frame.index)
    return np.arange(1, len(frame) + 1)


def with_row_numbers(blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Blocks of a table, each with places of its own, for which the file is read once."""
    lines: Iterator[int] | None = None
    for block in blocks:
        (first, *others) = RowPlaces.of(block).files
        if KEY not in block.attrs:
            lines = lines or count(1)
        elif first.file is not None and first.file.kind == "csv" and not others:
            lines = lines or first.read_lines()
        if lines is not None:
            places = FileRows(first.name, len(block), _runs(islice(lines, len(block))))
            block = RowPlaces((places,)).attached_to(block.reset_index(drop=True))
        yield block


def columns_of_file(frame: pd.DataFrame) -> list[str]:
    """Columns of the file that a frame was read from, which may hold some of them only."""
    files = [rows.file for rows in RowPlaces.of(frame).files if rows.file is not None]
    names = [name for file in files for name in file.columns]
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
