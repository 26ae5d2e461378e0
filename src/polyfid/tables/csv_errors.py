"""Why a text file could not be read: Python reads it again, cell by cell, to find the place."""

from __future__ import annotations

import csv
from collections.abc import Mapping

import pyarrow as pa

from polyfid.tables.cells import MISSING
from polyfid.tables.csv_files import (
    DAMAGE,
    Dialect,
    TableFile,
    damaged,
    rows_with_lines,
    undecodable,
)
from polyfid.tables.errors import TableError, shown


def explained(
    file: TableFile, dialect: Dialect, types: Mapping[str, pa.DataType], error: BaseException
) -> TableError:
    """The error of a file that could not be read, with the first row that is wrong."""
    numbers = {
        k: _is_whole if types[name] == pa.int64() else _is_number
        for k, name in enumerate(dialect.names)
        if types.get(name, pa.string()) != pa.string()
    }
    width, line = len(dialect.names), 1
    try:
        rows = rows_with_lines(file, dialect.encoding, dialect.delimiter)
        next(rows)
        for line, cells, end in rows:
            if len(cells) != width:
                return _ragged(file, dialect, line, cells, end)
            for k, is_one in numbers.items():
                if not is_one(cells[k], dialect.decimal):
                    return _no_number(file, dialect, line, k, cells[k])
    except UnicodeDecodeError:
        return undecodable(file, dialect.encoding, dialect.delimiter)
    except csv.Error as problem:
        return TableError(
            f"a cell after this row cannot be read ({problem}); is a quote not closed?",
            path=file.name,
            row=line,
        )
    except (OSError, UnicodeError, *DAMAGE) as problem:
        return damaged(file, problem)
    return TableError(f"the file cannot be read: {error}", path=file.name)


def _ragged(file: TableFile, dialect: Dialect, line: int, cells: list[str], end: int) -> TableError:
    width = len(dialect.names)
    cell = max(cells, key=len)
    if end > line and "\n" in cell and len(cells) < width:
        return TableError(
            f"a quote is opened here and not closed before row {end}: the cell begins with "
            f"{shown(cell.splitlines()[0])}; close the quote, or double it if it is part of the "
            "text",
            path=file.name,
            row=line,
            column=dialect.names[len(cells) - 1],
        )
    text = f"the row has {len(cells)} cell{'s' * (len(cells) != 1)}, the header {width}"
    if len(cells) < width:
        text += f": from {dialect.names[len(cells)]!r} on there is nothing"
    else:
        text += (
            f": {shown(cells[width])} is beyond the last column, {dialect.names[-1]!r}; a cell "
            f"with the delimiter {dialect.delimiter!r} in it must be in quotes"
        )
    return TableError(text, path=file.name, row=line)


def _no_number(file: TableFile, dialect: Dialect, line: int, k: int, cell: str) -> TableError:
    advice = ""
    other = {",": ".", ".": ","}[dialect.decimal]
    if _is_number(cell, other):
        advice = f"; if {other!r} is the decimal mark, say decimal={other!r} (--decimal {other})"
    return TableError(
        f"{shown(cell)} is not a number{advice}",
        path=file.name,
        row=line,
        column=dialect.names[k],
    )


def _is_number(cell: str, decimal: str) -> bool:
    cell = cell.strip()
    if cell in MISSING:
        return True
    if decimal == ",":
        cell = "?" if "." in cell else cell.replace(",", ".")
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()


def _is_whole(cell: str, decimal: str) -> bool:
    return cell.strip() in MISSING or cell.strip().lstrip("+-").isdecimal()


def raise_if_quote_open(file: TableFile, dialect: Dialect) -> None:
    """Refuse a file whose last cell begins with a quote that is never closed."""
    end = 0
    try:
        for row in rows_with_lines(file, dialect.encoding, dialect.delimiter, strict=True):
            end = row[-1]
    except csv.Error as error:
        if "end of data" in str(error):
            raise TableError(
                "a quote is opened here and never closed, so that all that follows is one cell; "
                "close the quote, or double it if it is part of the text",
                path=file.name,
                row=end + 1,
                column=dialect.names[-1],
            ) from None
