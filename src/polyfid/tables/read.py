"""Tables from files: whole, or in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from polyfid.tables.cells import MISSING, Kinds, as_frame, columns_of
from polyfid.tables.dialect import Dialect, clean_names, find_dialect
from polyfid.tables.errors import TableError
from polyfid.tables.explain import explained, raise_if_open
from polyfid.tables.origin import Origin, Part
from polyfid.tables.sources import DAMAGE, File, is_frame, opened

#: Bytes of a text file that are parsed at a time; a row may not be longer than all of them.
CHUNK, LONGEST_CHUNK = 1 << 20, 1 << 26


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
        Between cells; found out among comma, semicolon, tab and bar.
    decimal : {".", ","}, optional
        Decimal mark; found out where the delimiter is not a comma.
    encoding : str, optional
        Of text; UTF-8, or UTF-16 where the file begins with its mark.
    text : collection of str
        Columns that keep their text even if it looks like numbers.

    Returns
    -------
    DataFrame
        Errors that come of it later on tell file and row as long as its index is kept.

    Raises
    ------
    TableError
        If the table is damaged or makes no sense.

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
    if is_frame(source):
        return _own_frame(source)
    with opened(source) as file:
        if file.kind == "parquet":
            with _reading_parquet(file), pq.ParquetFile(file.path) as parquet:
                table = parquet.read()
            frame = _renamed(table.to_pandas(), file.name)
            return Origin((Part(file.name, len(frame)),)).carried_by(frame)
        dialect = find_dialect(file, delimiter, decimal, encoding)
        batches = list(_text_batches(file, dialect, dict.fromkeys(dialect.names, pa.string())))
    table = pa.Table.from_batches(batches)
    mark = dialect.decimal
    if decimal is None and dialect.delimiter != ",":
        mark = _decimal_of(table)
    frame = as_frame(columns_of(table, mark, text))
    return Origin((_part(file, dialect, len(frame)),)).carried_by(frame)


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
        not have. Without it all columns are read, and a text file is gone through once more,
        before, to find types that hold for all blocks. Parquet and data frames keep their types.
    rows : int
        Of a block; the last one may have fewer.
    delimiter, decimal, encoding
        As in `read_table`.

    Yields
    ------
    DataFrame
        With an index that goes on from block to block. At least one, if without rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import iter_blocks
    >>> frame = pd.DataFrame({"x": range(5)})
    >>> [len(block) for block in iter_blocks(frame, rows=2)]
    [2, 2, 1]
    """
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows must be a whole number from 1, got {rows!r}")
    wrong = sorted(set((types or {}).values()) - set(_ARROW))
    if wrong:
        raise ValueError(f"types must be among {list(_ARROW)}; got {wrong[0]!r}")
    return _blocks(source, types, int(rows), delimiter, decimal, encoding)


_ARROW = {"float64": pa.float64(), "int64": pa.int64(), "str": pa.string()}


def _blocks(
    source: Any,
    types: Mapping[str, str] | None,
    rows: int,
    delimiter: str | None,
    decimal: str | None,
    encoding: str | None,
) -> Iterator[pd.DataFrame]:
    if is_frame(source):
        frame = _own_frame(source)
        if types is not None:
            frame = frame[[name for name in frame.columns if name in types]]
        for start in range(0, max(len(frame), 1), rows):
            yield frame.iloc[start : start + rows]
        return
    with opened(source) as file:
        if file.kind == "parquet":
            part, batches = Part(file.name, 0, path=file.path), _parquet_batches(file, types, rows)
        else:
            dialect = find_dialect(file, delimiter, decimal, encoding)
            if types is None:
                types, mark = find_types(file, dialect, dialect.names, sure=decimal is not None)
                dialect = replace(dialect, decimal=mark)
            arrow = {name: _ARROW[types[name]] for name in dialect.names if name in types}
            part, batches = _part(file, dialect, 0), _text_batches(file, dialect, arrow)
        start = 0
        for table in _regrouped(batches, rows):
            frame = as_frame({n: table[n] for n in table.column_names}, len(table))
            frame.index = pd.RangeIndex(start, start + len(frame))
            start += len(frame)
            known = Part(**{**part.__dict__, "rows": start})
            yield Origin((known,)).carried_by(frame)


def _regrouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Tables of so many rows, of batches of any size; one at least."""
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


# ---------------------------------------------------------------------------- text


def _text_batches(
    file: File, dialect: Dialect, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """Batches of the columns that have a type; one at least."""
    schema = pa.schema(list(types.items()))
    if dialect.ends:
        yield pa.RecordBatch.from_pylist([], schema=schema)
        return
    # The last column is always read: a quote that is not closed swallows the rows after it there.
    last = dialect.names[-1]
    wanted = {**types, last: types.get(last, pa.string())}
    header = sum(len(name) + 3 for name in dialect.names)
    chunk = min(max(CHUNK, 16 * header), LONGEST_CHUNK)
    some = False
    try:
        reader = pacsv.open_csv(
            pa.input_stream(file.path, compression="gzip" if file.zipped else None),
            read_options=pacsv.ReadOptions(
                block_size=chunk,
                use_threads=True,
                skip_rows=dialect.skip,
                column_names=list(dialect.names),
                encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
            ),
            parse_options=pacsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(wanted),
                column_types=wanted,
                null_values=MISSING,
                strings_can_be_null=False,
                decimal_point=dialect.decimal,
            ),
        )
        batch = None
        for batch in reader:
            yield pa.RecordBatch.from_arrays([batch[name] for name in types], schema=schema)
            some = True
        if batch is not None and len(batch):
            end = batch[last][len(batch) - 1].as_py()
            if isinstance(end, str) and ("\n" in end or "\r" in end):
                raise_if_open(file, dialect)
        if not some:
            yield pa.RecordBatch.from_pylist([], schema=schema)
    except (pa.ArrowException, UnicodeError, OSError, *DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None and not file.zipped:
            raise
        raise explained(file, dialect, types, error) from error


def _part(file: File, dialect: Dialect, rows: int) -> Part:
    return Part(file.name, rows, 0, file.path, file.zipped, dialect.delimiter, dialect.encoding)


def _decimal_of(table: pa.Table) -> str:
    """The decimal mark of a table of text."""
    look = Kinds(table.column_names, ".,")
    look.see(table)
    return look.decimal()


def find_types(
    file: File, dialect: Dialect, names: Collection[str], sure: bool = False
) -> tuple[dict[str, str], str]:
    """Types of columns of a text file that hold for all rows, and the decimal mark.

    The mark of the dialect, which was found out from the beginning of the file, is taken if it is
    ``sure``.
    """
    marks = dialect.decimal if sure or dialect.delimiter == "," else ".,"
    # The mark is that of all columns, whichever are wanted.
    every = list(dialect.names) if len(marks) > 1 else [n for n in dialect.names if n in names]
    look = Kinds(every, marks)
    for batch in _text_batches(file, dialect, dict.fromkeys(every, pa.string())):
        look.see(batch)
    return {n: kind for n, kind in look.types().items() if n in names}, look.decimal()


# -------------------------------------------------------------------------- Parquet


@contextmanager
def _reading_parquet(file: File) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TableError(
            f"the Parquet file is damaged or cut off ({error}); write it again", path=file.name
        ) from error


def _parquet_batches(
    file: File, types: Mapping[str, str] | None, rows: int
) -> Iterator[pa.RecordBatch]:
    with _reading_parquet(file), pq.ParquetFile(file.path) as parquet:
        raw = parquet.schema_arrow.names
        named = zip(raw, clean_names(raw, file.name), strict=True)
        chosen = {n: clean for n, clean in named if types is None or clean in types}
        schema = pa.schema([parquet.schema_arrow.field(n) for n in chosen])
        yield _named(pa.RecordBatch.from_pylist([], schema=schema), chosen)
        for batch in parquet.iter_batches(batch_size=rows, columns=list(chosen)):
            yield _named(batch, chosen)


def _named(batch: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    return batch.rename_columns([names[n] for n in batch.schema.names])


# ------------------------------------------------------------------------ data frames


def _own_frame(source: Any) -> pd.DataFrame:
    """A data frame of pandas, with strings for names, that is not the user's."""
    if not isinstance(source, pd.DataFrame):
        if hasattr(source, "collect_schema") and hasattr(source, "collect"):
            source = source.collect()
        source = source.to_pandas()
    return _renamed(source.copy(deep=False), None)


def _renamed(frame: pd.DataFrame, path: str | None) -> pd.DataFrame:
    frame.columns = pd.Index(clean_names([str(name) for name in frame.columns], path))
    return frame
