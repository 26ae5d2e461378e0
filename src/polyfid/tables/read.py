"""Tables from files: whole, or in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from polyfid.tables.column import as_frame, converted, infer_types, is_text
from polyfid.tables.csv_files import (
    clean_names,
    explained,
    find_dialect,
    opened,
    raise_if_quote_open,
)
from polyfid.tables.places import (
    DAMAGE,
    FileRows,
    RowPlaces,
    TableError,
    TableFile,
    error_at,
    shown,
)
from polyfid.values import is_frame, to_pandas

#: Bytes of a text file that are parsed at a time; a row may not be longer than all of them.
CHUNK, LONGEST_CHUNK = 1 << 20, 1 << 26

TYPES = ("float64", "int64", "str")


def read_table(
    source: Any,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    text: Collection[str] = (),
) -> pd.DataFrame:
    r"""A table from a file or a data frame.

    Columns in which every cell is a number become numbers, where ``NA``, ``NaN``, ``null`` and the
    like count as missing; other columns keep their text as it is. So do whole numbers with leading
    zeros or too long for 64 bits, which are names rather than numbers. Empty cells are missing.

    Parameters
    ----------
    source : path, "-", or data frame of pandas or polars
        CSV or another delimited text, compressed with gzip or not, or Parquet; "-" is standard
        input.
    delimiter : str, optional
        Between cells; by default detected among comma, semicolon, tab and bar.
    decimal : {".", ","}, optional
        Decimal mark; by default detected where the delimiter is not a comma.
    encoding : str, optional
        Of text; UTF-8, or UTF-16 where the file begins with its mark.
    text : collection of str
        Columns that keep their text even if it looks like numbers.

    Returns
    -------
    DataFrame
        Later errors name file and row as long as its index is kept.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from polyfid.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "gold.csv")
    ...     _ = path.write_text("id;x;label\n007;1,5;good\n008;;bad\n")
    ...     read_table(path)
        id    x label
    0  007  1.5  good
    1  008  NaN   bad
    """
    with open_table(source, delimiter, decimal, encoding) as table:
        return table.read(text)


def iter_blocks(
    source: Any,
    types: Mapping[str, str] | None = None,
    *,
    rows: int = 50_000,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Iterator[pd.DataFrame]:
    """The rows of a table in blocks, of which one or two are in memory at a time.

    Parameters
    ----------
    source : path, "-", or data frame
        As in `read_table`.
    types : mapping of column to {"float64", "int64", "str"}, optional
        Types of the columns to read; others are left out, and so are columns that the table does
        not have. Without it all columns are read, and a text file is read twice: first to find
        types that hold for all blocks. Parquet and data frames keep their types.
    rows : int
        Rows per block; the last one may have fewer.
    delimiter, decimal, encoding
        As in `read_table`.

    Yields
    ------
    DataFrame
        With an index that continues from block to block. There is at least one, maybe without rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import iter_blocks
    >>> frame = pd.DataFrame({"x": range(5)})
    >>> [len(block) for block in iter_blocks(frame, rows=2)]
    [2, 2, 1]
    """
    check_rows(rows)
    wrong = sorted({*(types or {}).values()} - {*TYPES})
    if wrong:
        raise ValueError(f"types must be among {list(TYPES)}; got {wrong[0]!r}")
    return _iter_blocks(source, types, int(rows), delimiter, decimal, encoding)


def check_rows(rows: Any) -> None:
    """Raise ValueError unless ``rows`` can be a number of rows per block."""
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows must be a whole number from 1, got {rows!r}")


def _iter_blocks(
    source: Any, types: Mapping[str, str] | None, rows: int, *csv: str | None
) -> Iterator[pd.DataFrame]:
    with open_table(source, *csv) as table:
        yield from table.blocks(table.infer(table.head.columns) if types is None else types, rows)


@contextmanager
def open_table(
    source: Any,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Iterator[TypedTable | CsvTable]:
    """A table that can be read again and again, whatever it comes from."""
    if is_frame(source):
        yield FrameTable(to_pandas(source).copy(deep=False))
        return
    with opened(source) as file:
        if file.kind == "parquet":
            yield ParquetTable(file)
        else:
            yield CsvTable(find_dialect(file, delimiter, decimal, encoding))


class TypedTable:
    """A table whose columns have types of their own; it can be read again and again.

    `CsvTable` has the same methods. ``head`` has all columns and no rows. ``read`` gives all rows,
    ``blocks`` those of the columns that have a type.
    """

    head: pd.DataFrame
    has_rows: bool

    read: Callable[[Collection[str]], pd.DataFrame]
    blocks: Callable[[Collection[str], int], Iterator[pd.DataFrame]]

    def infer(self, names: Iterable[str], text: Collection[str] = ()) -> dict[str, str]:
        """Types of columns, "str" or one of numbers; those in ``text`` are to be text."""
        return {n: "str" if n in text or is_text(self.head[n]) else "float64" for n in names}


class FrameTable(TypedTable):
    """A data frame of pandas, whose names of columns it makes clean."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = _renamed(frame, None)
        self.head, self.has_rows = frame.iloc[:0], len(frame) > 0

    def read(self, text: Collection[str]) -> pd.DataFrame:
        return self._frame

    def blocks(self, types: Collection[str], rows: int) -> Iterator[pd.DataFrame]:
        frame = self._frame[[name for name in self._frame.columns if name in types]]
        for start in range(0, max(len(frame), 1), rows):
            yield frame.iloc[start : start + rows]


class ParquetTable(TypedTable):
    """A Parquet file."""

    def __init__(self, file: TableFile) -> None:
        self._file = file
        with self._opened() as parquet:
            self._names = parquet.schema_arrow.names
            self.has_rows = parquet.metadata.num_rows > 0
            self.head = self._placed(parquet.schema_arrow.empty_table())

    def read(self, text: Collection[str]) -> pd.DataFrame:
        with self._opened() as parquet:
            return self._placed(parquet.read())

    def _placed(self, table: pa.Table) -> pd.DataFrame:
        frame = _renamed(table.to_pandas(), self._file.name)
        return RowPlaces.of_file(self._file.name, len(frame)).attached_to(frame)

    def blocks(self, types: Collection[str], rows: int) -> Iterator[pd.DataFrame]:
        file = replace(self._file, columns=tuple(self.head.columns))
        return _blocks(self._batches(types, rows), rows, file)

    def _batches(self, types: Collection[str], rows: int) -> Iterator[pa.RecordBatch]:
        with self._opened() as parquet:
            named = zip(self._names, self.head.columns, strict=True)
            chosen = {raw: name for raw, name in named if name in types}
            schema = pa.schema([parquet.schema_arrow.field(raw) for raw in chosen])
            yield pa.RecordBatch.from_pylist([], schema=schema).rename_columns([*chosen.values()])
            for batch in parquet.iter_batches(batch_size=rows, columns=list(chosen)):
                yield batch.rename_columns([chosen[raw] for raw in batch.schema.names])

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        try:
            with pq.ParquetFile(self._file.path) as parquet:
                yield parquet
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            problem = f"the Parquet file is damaged or cut off ({error}); write it again"
            raise self._file.error(problem) from error


def _renamed(frame: pd.DataFrame, path: str | None) -> pd.DataFrame:
    frame.columns = pd.Index(clean_names([str(name) for name in frame.columns], path))
    return frame


def _blocks(
    batches: Iterator[pa.RecordBatch],
    rows: int,
    file: TableFile,
    convert: Callable[[pa.Table], Mapping[str, Any]] | None = None,
) -> Iterator[pd.DataFrame]:
    """Data frames of so many rows, with their places, of batches of any size; one at least."""
    start = 0
    for table in _regrouped(batches, rows):
        columns = {n: table[n] for n in table.column_names} if convert is None else convert(table)
        frame = as_frame(columns, len(table))
        frame.index = pd.RangeIndex(start, start + len(frame))
        start += len(frame)
        yield RowPlaces((FileRows(file.name, start, file=file),)).attached_to(frame)


def _regrouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    count, given = 0, False
    for batch in batches:
        waiting.append(batch)
        count += len(batch)
        while count >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows)
            given = True
            waiting, count = table.slice(rows).to_batches(), count - rows
    if waiting and (count or not given):
        yield pa.Table.from_batches(waiting)


class CsvTable:
    """A text file in a dialect; see `TypedTable`. All cells are read as text and then converted."""

    def __init__(self, file: TableFile) -> None:
        self._file, self.has_rows = file, file.has_rows
        self._decimal: str | None = None
        frame = pd.DataFrame(np.empty((0, len(file.columns)), object), columns=[*file.columns])
        self.head = RowPlaces.of_file(file.name, 0).attached_to(frame)

    def read(self, text: Collection[str]) -> pd.DataFrame:
        file = self._file
        table = pa.Table.from_batches(list(self._batches(file.columns)))
        types, decimal = infer_types([table], file.columns, file.decimals, text)
        frame = as_frame({n: converted(table[n], kind, decimal) for n, kind in types.items()})
        return RowPlaces((FileRows.of_csv(file, len(frame)),)).attached_to(frame)

    def infer(self, names: Iterable[str], text: Collection[str] = ()) -> dict[str, str]:
        """Types that hold for all rows, which are read for it."""
        wanted, decimals = list(names), self._file.decimals
        # The decimal mark is that of all columns, whichever are wanted.
        every = wanted if len(decimals) == 1 else self._file.columns
        types, self._decimal = infer_types(self._batches(every), every, decimals, text)
        return {name: types[name] for name in wanted}

    def blocks(self, types: Mapping[str, str], rows: int) -> Iterator[pd.DataFrame]:
        names, decimal = self._file.columns, self._decimal
        types = {name: types[name] for name in names if name in types}
        if decimal is None:  # as far as the first rows tell
            _, decimal = infer_types(islice(self._batches(names), 1), names, self._file.decimals)

        def convert(table: pa.Table) -> dict[str, Any]:
            made = {name: converted(table[name], kind, decimal) for name, kind in types.items()}
            return {n: table[n] if column is None else column for n, column in made.items()}

        for block in _blocks(self._batches(list(types)), rows, self._file, convert):
            for name, kind in types.items():
                if kind != "str" and is_text(block[name]):
                    raise _number_error(block, name, kind, decimal)
            yield block

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of columns of text; one at least."""
        file = self._file
        schema = pa.schema([(name, pa.string()) for name in names])
        if not file.has_rows:
            yield pa.RecordBatch.from_pylist([], schema=schema)
            return
        # The last column is always read: a quote that is never closed swallows rows there.
        last, batch = file.columns[-1], None
        try:
            for batch in self._reader([*dict.fromkeys([*names, last])]):
                yield pa.RecordBatch.from_arrays([batch[name] for name in names], schema=schema)
            if batch is None:
                yield pa.RecordBatch.from_pylist([], schema=schema)
            elif len(batch):
                end = batch[last][len(batch) - 1].as_py()
                if "\n" in end or "\r" in end:
                    raise_if_quote_open(file)
        except (pa.ArrowException, UnicodeError, OSError, *DAMAGE) as error:
            if isinstance(error, OSError) and error.errno is not None and not file.zipped:
                raise
            raise explained(file, error) from error

    def _reader(self, names: list[str]) -> pacsv.CSVStreamingReader:
        file = self._file
        header = sum(len(name) + 3 for name in file.columns)
        return pacsv.open_csv(
            pa.input_stream(file.path, compression="gzip" if file.zipped else None),
            read_options=pacsv.ReadOptions(
                block_size=min(max(CHUNK, 16 * header), LONGEST_CHUNK),
                use_threads=True,
                skip_rows=file.header_lines,
                column_names=list(file.columns),
                encoding="utf8" if file.encoding.startswith("utf-8") else file.encoding,
            ),
            parse_options=pacsv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pa.string())
            ),
        )


def _number_error(frame: pd.DataFrame, name: str, kind: str, decimal: str) -> TableError:
    """The error of the first cell of a column that is not a number under a decimal mark."""

    def is_number(cell: str | None, kind: str, mark: str) -> bool:
        return converted(pa.array([cell], pa.string()), kind, mark) is not None

    cells = [None if pd.isna(cell) else cell for cell in frame[name]]
    row = next(k for k, cell in enumerate(cells) if not is_number(cell, kind, decimal))
    problem, other = f"{shown(cells[row])} is not a number", "," if decimal == "." else "."
    if is_number(cells[row], "float64", other):
        problem += f"; if {other!r} is the decimal mark, say decimal={other!r} (--decimal {other})"
    return error_at(frame, row, name, problem)
