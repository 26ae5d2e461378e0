"""Which file and which line a row of a data frame came from."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from polyfid.tables.dialect import clean_names, rows_with_lines
from polyfid.tables.errors import TableError
from polyfid.tables.sources import DAMAGE, File

#: Where a data frame keeps its origin: pandas hands ``attrs`` on when rows or columns are chosen.
KEY = "polyfid"


@dataclass(frozen=True)
class Part:
    """Rows of one table: those with labels from ``first`` on in the index of a data frame.

    ``delimiter`` and ``encoding`` are empty for tables that have no lines.
    """

    name: str
    rows: int
    first: int = 0
    path: str = ""
    zipped: bool = False
    delimiter: str = ""
    encoding: str = ""

    def lines(self) -> Iterator[int]:
        """Numbers of the rows: first lines in a text file, else counted from 1."""
        known = 0
        if self.delimiter and Path(self.path).is_file():
            file = File(self.name, self.path, "csv", self.zipped)
            try:
                for line, _, _ in islice(
                    rows_with_lines(file, self.encoding, self.delimiter), 1, None
                ):
                    yield line
                    known += 1
            except (OSError, UnicodeError, csv.Error, *DAMAGE):
                pass  # the file has changed since it was read
        while True:  # the reader knew it, or nobody does
            yield known + (2 if self.delimiter else 1)
            known += 1

    def columns(self) -> tuple[str, ...]:
        """Names of all columns of the file, none if it cannot be read again."""
        if not Path(self.path).is_file():
            return ()
        file = File(self.name, self.path, "csv", self.zipped)
        try:
            if not self.delimiter:
                return tuple(pq.read_schema(self.path).names)
            _, cells, _ = next(rows_with_lines(file, self.encoding, self.delimiter))
            return clean_names(cells, self.name)
        except (OSError, ValueError, StopIteration, csv.Error, pa.ArrowException, *DAMAGE):
            return ()  # the file has changed since it was read


@dataclass(frozen=True)
class Origin:
    """Files and row numbers of all rows, for messages.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import Origin
    >>> frame = pd.DataFrame({"x": [1.0, 2.0]})
    >>> Origin.of(frame)[1]
    'data frame, row 2'
    """

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Origin:
        """The origin that a frame carries; the frame itself if it carries none."""
        carried = frame.attrs.get(KEY)
        if carried is None:
            return cls((Part("", len(frame)),))
        return cls(tuple(Part(**part) for part in carried))

    @classmethod
    def joined(cls, origins: Sequence[Origin]) -> Origin:
        """The origin of tables one below the other."""
        parts, first = [], 0
        for origin in origins:
            for part in origin.parts:
                parts.append(Part(**{**asdict(part), "first": first}))
                first += part.rows
        return cls(tuple(parts))

    def carried_by(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame, with this origin from now on."""
        frame.attrs[KEY] = [asdict(part) for part in self.parts]
        return frame

    def __len__(self) -> int:
        return sum(part.rows for part in self.parts)

    def __getitem__(self, label: int) -> str:
        name, row = self.place(label)
        return f"{name or 'data frame'}, row {row}"

    @property
    def name(self) -> str | None:
        """The name of the file, if it is one."""
        return self.parts[0].name or None if len(self.parts) == 1 else None

    def place(self, label: int) -> tuple[str | None, int]:
        """The file, None for a data frame, and the row of a label of the index."""
        for part in self.parts:
            if part.first <= label < part.first + part.rows:
                step = label - part.first
                return part.name or None, next(islice(part.lines(), step, None))
        return None, label + 1

    def places(self) -> list[str]:
        """What `origin[i]` says, of all rows at once."""
        return [
            f"{part.name or 'data frame'}, row {line}"
            for part in self.parts
            for line in islice(part.lines(), part.rows)
        ]


def columns_behind(frame: pd.DataFrame) -> list[str]:
    """Columns of the file that a frame came from, which may hold some of them only."""
    behind = [name for part in Origin.of(frame).parts for name in part.columns()]
    return behind or [str(name) for name in frame.columns]


def error_at(frame: pd.DataFrame, position: int, column: str | None, problem: str) -> TableError:
    """The error of a cell of a data frame, with its place in the file if there is one."""
    return _error(frame, position, frame.index[position], column, problem)


def _error(
    frame: pd.DataFrame, position: int, label: object, column: str | None, problem: str
) -> TableError:
    """Of the row with a label, which is at a position where labels say nothing."""
    name, row = None, position + 1
    if KEY in frame.attrs and isinstance(label, Integral):
        name, row = Origin.of(frame).place(int(label))
    return TableError(problem, path=name or "data frame", row=row, column=column)


class Wrong:
    """Cells that are wrong in one way: how many, and the first, found block after block.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyfid.tables.origin import Wrong
    >>> wrong = Wrong()
    >>> wrong.see(pd.DataFrame({"x": [1, -1, -2]}), np.array([False, True, True]))
    >>> print(wrong.error("x", f"negative{wrong.more(' (one more)', ' ({} more)')}"))
    data frame, row 2, column 'x': negative (one more)
    """

    def __init__(self) -> None:
        self._count, self._position = 0, 0
        self._first: pd.DataFrame | None = None

    def see(self, frame: pd.DataFrame, wrong: NDArray[np.bool_]) -> None:
        """Look at some rows, of which these are wrong."""
        count = int(wrong.sum())
        if count and self._first is None:
            self._position = int(np.argmax(wrong))
            # A copy: a view would keep all of the block in memory.
            self._first = frame.iloc[[self._position]]
        self._count += count

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def count(self) -> int:
        return self._count

    def cells(self, column: str) -> pd.Series:
        """The first of the cells, as a column of one."""
        assert self._first is not None
        return self._first[column]

    def more(self, one: str, many: str) -> str:
        """Words about the others, none if there are none."""
        others = self._count - 1
        return many.format(others) if others > 1 else one * others

    def error(self, column: str, problem: str) -> TableError:
        """The error of the first one."""
        assert self._first is not None
        return _error(self._first, self._position, self._first.index[0], column, problem)
