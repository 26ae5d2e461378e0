"""Text files of tables: opening them, finding their dialect, explaining why they cannot be read."""

from __future__ import annotations

import codecs
import csv
import io
import os
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

from polyfid.tables.places import DAMAGE, CsvRow, TableError, TableFile, shown
from polyfid.text import name_few

DELIMITERS = (",", ";", "\t", "|")
#: Wider tables are refused: each column has a cost of its own, and memory would run out.
MOST_COLUMNS = 100_000
#: Bytes from which the delimiter is guessed.
SAMPLE = 1 << 16

_GZIP, _PARQUET, _ZIP, _OLD_EXCEL = b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@contextmanager
def opened(source: Any) -> Iterator[TableFile]:
    """The file of a path or of standard input; tables are read repeatedly, so pipes are copied."""
    if isinstance(source, str) and source == "-":
        with _copied("standard input", sys.stdin.buffer) as file:
            yield file
    elif isinstance(source, str | os.PathLike):
        if Path(source).is_fifo():
            with open(source, "rb") as pipe, _copied(str(source), pipe) as file:
                yield file
        else:
            yield _find_kind(str(source), os.fspath(source))
    else:
        raise TypeError(
            "a table must be a path, '-' for standard input, or a data frame of pandas or polars; "
            f"got {type(source).__name__}"
        )


@contextmanager
def _copied(name: str, stream: IO[bytes]) -> Iterator[TableFile]:
    """A copy on disk of what can be read only once."""
    # Named before it is there, so that nothing can come between making and removing it.
    path = os.path.join(tempfile.gettempdir(), f"polyfid-{secrets.token_hex(8)}.stdin")
    try:
        with open(path, "xb", opener=_for_this_user) as copy:
            shutil.copyfileobj(stream, copy)
        yield _find_kind(name, path)
    finally:
        Path(path).unlink(missing_ok=True)


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _find_kind(name: str, path: str) -> TableFile:
    """The file with its kind, which follows from its first bytes, whatever its name is."""
    with open(path, "rb") as file:
        start = file.read(8)
    short = Path(name).name
    problem = None
    if start.startswith((_ZIP, _OLD_EXCEL)):
        from polyfid.model_files import is_model  # which other tables are read without

        problem = "this is a spreadsheet or a zip archive, not text; save the sheet as CSV"
        if is_model(path):
            problem = "this is a model that polyfid saved, not a table; see polyfid inspect"
    elif short.lower().endswith(".json"):
        problem = (
            "JSON is no table; an export of Label Studio is read where it is the only file, other "
            "tables as CSV or Parquet"
        )
    if problem is not None:
        raise TableError(problem, path=short)
    kind: Literal["csv", "parquet"] = "parquet" if start.startswith(_PARQUET) else "csv"
    return TableFile(short, path, kind, zipped=start.startswith(_GZIP))


def find_dialect(
    file: TableFile,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> TableFile:
    """The file with its dialect, as far as that is not given, and its header."""
    _check_arguments(delimiter, decimal, encoding)
    try:
        with file.open() as stream:
            start = stream.read(SAMPLE)
        marked = (name for mark, name in _MARKS if start.startswith(mark))
        encoding = encoding or next(marked, "utf-8")
        text = _decoded(start, encoding, file)
        delimiter = delimiter or _find_delimiter(text, whole=len(start) < SAMPLE)
        decimals = decimal or ("." if delimiter == "," else ".,")
        file = replace(file, encoding=encoding, delimiter=delimiter, decimals=decimals)
        return _with_header(file)
    except DAMAGE as error:
        raise _damaged(file, error) from error


def _check_arguments(delimiter: str | None, decimal: str | None, encoding: str | None) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be one character, such as ';'; got {delimiter!r}")
    if decimal is not None and decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
    if decimal is not None and decimal == delimiter:
        raise ValueError(f"delimiter and decimal are both {decimal!r}; they must differ")
    if encoding is not None:
        try:
            "".encode(encoding)
        except LookupError:
            raise ValueError(
                f"encoding must be one of text, such as 'utf-8' or 'cp1252'; got {encoding!r}"
            ) from None


def _decoded(start: bytes, encoding: str, file: TableFile) -> str:
    if "utf-16" not in encoding and start[:1024].count(b"\0") > 100:
        raise file.error("this is a binary file, not a table of text or Parquet")
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    except UnicodeError as error:
        raise file.error(f"the file is not {encoding} text: {error}") from error
    if not text.strip("\ufeff\r\n\t ,;|"):
        raise _empty(file)
    return text


def _find_delimiter(text: str, whole: bool) -> str:
    """The one that cuts most rows into as many cells as the header, and the header into most."""
    scores = {",": (0.0, 1)}
    for delimiter in DELIMITERS:
        with suppress(csv.Error):
            rows = [*filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))]
            if not whole and len(rows) > 1:
                rows.pop()  # it may be cut
            width = len(rows[0]) if rows else 0
            if width > 1:
                alike = sum(len(row) == width for row in rows) / len(rows)
                # Rounded: one or two rows more that fit are no reason for a header of fewer cells.
                scores[delimiter] = (round(alike, 1), width)
    return max(scores, key=scores.__getitem__)


def _with_header(file: TableFile) -> TableFile:
    """The file with the names of its columns, the line on which they end, and if rows follow."""
    rows = file.read_rows()
    try:
        header = next(rows)
        try:
            has_rows = next(rows, None) is not None
        except (csv.Error, UnicodeError):
            has_rows = True
    except StopIteration:
        raise _empty(file) from None
    except UnicodeDecodeError as error:
        raise _undecodable(file) from error
    except UnicodeError as error:
        raise file.error(f"the file is not {file.encoding} text: {error}") from error
    except csv.Error as error:
        problem = f"names of columns cannot be read ({error}); is a quote not closed?"
        raise file.error(problem, row=1) from error
    columns = clean_names(header.cells, file.name)
    return replace(file, columns=columns, header_lines=header.end, has_rows=has_rows)


def clean_names(cells: list[str], path: str | None) -> tuple[str, ...]:
    """Names of columns without blanks around them; empty ones become ``unnamed_1`` and so on."""
    if len(cells) > MOST_COLUMNS:
        problem = (
            f"there are {len(cells):,} columns, and a table can have {MOST_COLUMNS:,}; are rows "
            "and columns swapped, or is the delimiter another one?"
        )
        raise TableError(problem, path=path, row=1)
    names = [str(c).strip().lstrip("\ufeff") or f"unnamed_{k}" for k, c in enumerate(cells, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        first, second, *_ = (k for k, name in enumerate(names, 1) if name == twice[0])
        more = f", and {name_few(twice[1:])} come twice too" if len(twice) > 1 else ""
        problem = f"columns {first} and {second} are both called {twice[0]!r}{more}; rename one"
        raise TableError(problem, path=path, row=1)
    return tuple(names)


def explained(file: TableFile, error: BaseException) -> TableError:
    """The error of a file that Arrow cannot read: Python reads it again to find the wrong row."""
    line = 1
    try:
        for row in islice(file.read_rows(), 1, None):
            line = row.line
            if len(row.cells) != len(file.columns):
                return _ragged(file, row)
    except UnicodeDecodeError:
        return _undecodable(file)
    except csv.Error as problem:
        text = f"a cell after this row cannot be read ({problem}); is a quote not closed?"
        return file.error(text, row=line)
    except (OSError, UnicodeError, *DAMAGE) as problem:
        return _damaged(file, problem)
    return file.error(f"the file cannot be read: {error}")


def _ragged(file: TableFile, row: CsvRow) -> TableError:
    cells, width, column = row.cells, len(file.columns), None
    longest = max(cells, key=len)
    text = f"the row has {len(cells)} cell{'s' * (len(cells) != 1)}, the header {width}"
    if row.end > row.line and "\n" in longest and len(cells) < width:
        column = file.columns[len(cells) - 1]
        text = (
            f"a quote is opened here and not closed before row {row.end}: the cell begins with "
            f"{shown(longest.splitlines()[0])}; close the quote, or double it if it is part of the "
            "text"
        )
    elif len(cells) < width:
        text += f": from {file.columns[len(cells)]!r} on there is nothing"
    else:
        text += (
            f": {shown(cells[width])} is beyond the last column, {file.columns[-1]!r}; a cell "
            f"with the delimiter {file.delimiter!r} in it must be in quotes"
        )
    return file.error(text, row.line, column)


def raise_if_quote_open(file: TableFile) -> None:
    """Refuse a file whose last cell begins with a quote that is never closed."""
    end = 0
    try:
        for row in file.read_rows(strict=True):
            end = row.end
    except csv.Error as error:
        if "end of data" in str(error):
            problem = (
                "a quote is opened here and never closed, so that all that follows is one cell; "
                "close the quote, or double it if it is part of the text"
            )
            raise file.error(problem, end + 1, file.columns[-1]) from None


def _empty(file: TableFile) -> TableError:
    return file.error("the file is empty; its first row must hold names of columns")


def _damaged(file: TableFile, error: BaseException) -> TableError:
    return file.error(f"the compressed file is damaged or cut off ({error}); copy it again")


def _undecodable(file: TableFile) -> TableError:
    """The error of a file with bytes that its encoding does not have."""
    label = "UTF-8" if file.encoding.startswith("utf-8") else file.encoding
    advice = (
        "give the encoding, such as encoding='cp1252' (--encoding cp1252) for files of Excel in "
        "western Europe, or save the file as UTF-8"
    )
    names: list[str] = []
    with file.open() as stream:
        for number, line in enumerate(stream, start=1):
            cells = line.decode(file.encoding, "replace").strip().split(file.delimiter)
            names = names or cells
            try:
                line.decode(file.encoding)
            except UnicodeDecodeError as error:
                place = next((i for i, c in enumerate(cells) if "\ufffd" in c), len(names))
                column = names[place].strip('"') if number > 1 and place < len(names) else None
                byte = f"0x{line[error.start]:02x}"
                return file.error(f"the byte {byte} is not {label} text; {advice}", number, column)
    return file.error(f"the file is not {label} text; {advice}")
