"""Tables to files; a file appears complete or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from polyfid.atomic import replacing
from polyfid.tables.read import read_table
from polyfid.values import is_frame

_RUNS = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_LEVEL = 6  # of gzip: half the time of the default for files as large


def write_table(frames: Any, path: str | os.PathLike[str], *, delimiter: str | None = None) -> None:
    """Write a table to a file, whole or in blocks.

    Cells of text that a spreadsheet would run as a formula, because they begin with ``=``, ``+``,
    ``-``, ``@``, a tab or a carriage return and are no numbers, get an apostrophe in front. Parquet
    keeps them as they are.

    Parameters
    ----------
    frames : data frame, or iterable of data frames with the same columns
    path : str or path
        By its ending CSV, tab-separated (.tsv), either compressed (.gz), or Parquet (.parquet);
        "-" is standard output, as CSV. A file is replaced when all rows are written, and stays as
        it was if something goes wrong before.
    delimiter : str, optional
        Between cells; a tab for .tsv, else a comma.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import write_table
    >>> write_table(pd.DataFrame({"label": ["good", "=1+1"], "p": [0.5, 1]}), "-")
    label,p
    good,0.5
    '=1+1,1
    """
    blocks = _alike([frames] if is_frame(frames) else frames)
    name = os.fspath(path)
    stem = name.lower().removesuffix(".gz")
    if stem.endswith((".parquet", ".pq")):
        with replacing(name) as file:
            _write_parquet(blocks, file)
        return
    mark = delimiter or ("\t" if stem.endswith(".tsv") else ",")
    if name == "-":
        _write_to_stdout(blocks, mark)
        return
    with replacing(name) as file:
        if name.lower().endswith(".gz"):
            with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as zipped:
                _write_text(blocks, cast(IO[bytes], zipped), mark)
        else:
            _write_text(blocks, file, mark)


def to_csv(frame: Any) -> bytes:
    r"""A table as the bytes of a CSV file, with formulas escaped as `write_table` does.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import to_csv
    >>> to_csv(pd.DataFrame({"label": ["=1+1"], "p": [0.5]}))
    b"label,p\n'=1+1,0.5\n"
    """
    file = io.BytesIO()
    _write_text(_alike([frame]), file, ",")
    return file.getvalue()


def _alike(frames: Iterable[Any]) -> Iterator[pd.DataFrame]:
    """Data frames of pandas, which must have the same columns."""
    names: list[str] | None = None
    for frame in map(read_table, frames):
        names, before = list(frame.columns), names
        if before not in (None, names):
            raise ValueError(f"all frames must have the same columns; got {before} and {names}")
        yield frame


def _write_text(blocks: Iterable[pd.DataFrame], file: IO[bytes], delimiter: str) -> None:
    for place, frame in enumerate(blocks):
        names = list(frame.columns)
        if not place:
            file.write(_header(names, delimiter))
        if not names:
            file.write(b"\n" * len(frame))
            continue
        table = pa.table({n: _printable(_to_arrow(frame[n])) for n in names})
        special = f'["\r\n{re.escape(delimiter)}]'
        quoted = any(
            pc.any(pc.match_substring_regex(column, special)).as_py()
            for column in table.columns
            if pa.types.is_string(column.type)
        )
        # Otherwise every cell of text would be in quotes, needed or not.
        style = "needed" if quoted else "none"
        options = pacsv.WriteOptions(
            include_header=False, delimiter=delimiter, quoting_style=style, batch_size=1 << 14
        )
        pacsv.write_csv(table, file, options)


def _write_to_stdout(blocks: Iterable[pd.DataFrame], delimiter: str) -> None:
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    file = io.BytesIO() if binary is None else binary
    _write_text(blocks, file, delimiter)
    if binary is None:  # something that takes text stands in for standard output
        sys.stdout.write(file.getvalue().decode("utf-8"))
    sys.stdout.flush()


def _write_parquet(blocks: Iterable[pd.DataFrame], file: IO[bytes]) -> None:
    tables = (
        pa.table({name: _to_arrow(frame[name]) for name in frame.columns}) for frame in blocks
    )
    first = next(tables, pa.table({}))
    with pq.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table.cast(first.schema))


def _to_arrow(column: pd.Series) -> Any:
    """Of numbers, strings or dates; NaN is missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if column.dtype == object or pd.api.types.is_bool_dtype(column.dtype):
        text = column.map(str).astype(object).where(column.notna(), None)
        return pa.array(text, type=pa.string(), from_pandas=True)
    array = pa.Array.from_pandas(column)
    return pc.cast(array, pa.string()) if pa.types.is_large_string(array.type) else array


def _printable(column: Any) -> Any:
    """Text that no spreadsheet takes for a formula, and numbers as they are."""
    if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        column = pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
    if not pa.types.is_string(column.type):
        return column
    runs = pc.match_substring_regex(column, _RUNS)
    if not pc.any(runs).as_py():
        return column
    runs = pc.and_not(runs, pc.match_substring_regex(column, _NUMBER))
    return pc.if_else(runs, pc.binary_join_element_wise("'", column, ""), column)


def _header(names: list[str], delimiter: str) -> bytes:
    safe = _printable(pa.array(names, pa.string())).to_pylist()
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(safe)
    return text.getvalue().encode("utf-8")
