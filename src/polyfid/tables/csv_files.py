"""Text files of tables: opening them, and finding encoding, delimiter, decimal mark and names."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import secrets
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from polyfid.tables.errors import TableError
from polyfid.text import name_few

#: What reading a damaged compressed file raises, besides OSError.
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
DELIMITERS = (",", ";", "\t", "|")
#: Bytes from which delimiter and decimal mark are guessed; decisions about types use all rows.
SAMPLE = 1 << 16

_GZIP, _PARQUET, _ZIP, _OLD_EXCEL = b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")


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


@contextmanager
def opened(source: Any) -> Iterator[TableFile]:
    """The file of a path or of standard input, which is copied to disk first.

    A table is read several times: to find its types, to read it, and to explain an error. A pipe
    cannot be.
    """
    if isinstance(source, TableFile):
        yield source
    elif isinstance(source, os.PathLike) or (isinstance(source, str) and source != "-"):
        yield find_kind(str(source), os.fspath(source))
    elif source == "-":
        # Named before it is there, so that nothing can come between making and removing it.
        path = os.path.join(tempfile.gettempdir(), f"polyfid-{secrets.token_hex(8)}.stdin")
        try:
            with open(path, "xb", opener=_for_this_user) as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            yield find_kind("standard input", path)
        finally:
            Path(path).unlink(missing_ok=True)
    else:
        raise TypeError(
            "a table must be a path, '-' for standard input, or a data frame of pandas or polars; "
            f"got {type(source).__name__}"
        )


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def find_kind(name: str, path: str) -> TableFile:
    """The file with its kind, which follows from its first bytes, whatever its name is."""
    with open(path, "rb") as file:
        start = file.read(8)
    short = name if name == "standard input" else Path(name).name
    problem = None
    if start.startswith(_ZIP) and _is_model(path):
        problem = (
            "this is a model that polyfid saved, not a table; polyfid inspect says what it holds"
        )
    elif start.startswith((_ZIP, _OLD_EXCEL)):
        problem = "this is a spreadsheet or a zip archive, not text; save the sheet as CSV"
    elif short.lower().endswith(".json"):
        problem = (
            "JSON is no table; an export of Label Studio is read where it is the only file, other "
            "tables as CSV or Parquet"
        )
    if problem is not None:
        raise TableError(problem, path=short)
    if start.startswith(_PARQUET):
        return TableFile(short, path, "parquet")
    return TableFile(short, path, "csv", zipped=start.startswith(_GZIP))


def _is_model(path: str) -> bool:
    from polyfid.model_files import is_model  # which tables are read without

    return is_model(path)


# ---------------------------------------------------------------------------- dialect


@dataclass(frozen=True)
class Dialect:
    """How a text file writes its table; the names of the columns end on line ``header_lines``."""

    encoding: str
    delimiter: str
    decimal: str
    names: tuple[str, ...]
    header_lines: int
    has_rows: bool


def find_dialect(
    file: TableFile,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Dialect:
    """The dialect of a file, as far as it is not given; the file is opened once."""
    _check_arguments(delimiter, decimal, encoding)
    try:
        with file.open() as stream:
            start = stream.read(SAMPLE)
            encoding = encoding or _find_encoding(start)
            text = _decoded(start, encoding, file)
            whole = len(start) < SAMPLE
            delimiter = delimiter or _find_delimiter(text, whole)
            decimal = decimal or _find_decimal(text, delimiter, whole)
            stream.seek(0)
            names, header_lines, has_rows = _read_header(file, stream, encoding, delimiter)
    except DAMAGE as error:
        raise damaged(file, error) from error
    return Dialect(encoding, delimiter, decimal, names, header_lines, has_rows)


def _check_arguments(delimiter: str | None, decimal: str | None, encoding: str | None) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be one character, such as ';'; got {delimiter!r}")
    if decimal is not None and decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
    if decimal is not None and decimal == delimiter:
        raise ValueError(f"delimiter and decimal are both {decimal!r}; they must differ")
    if encoding is not None:
        try:
            codec = codecs.lookup(encoding)
        except LookupError:
            raise ValueError(
                f"encoding must be one that Python has, such as 'utf-8' or 'cp1252'; "
                f"got {encoding!r}"
            ) from None
        if not codec._is_text_encoding:
            raise ValueError(f"encoding must be one of text; got {encoding!r}")


def _find_encoding(start: bytes) -> str:
    return next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")


def _decoded(start: bytes, encoding: str, file: TableFile) -> str:
    if "utf-16" not in encoding and start[:1024].count(b"\0") > 100:
        raise TableError("this is a binary file, not a table of text or Parquet", path=file.name)
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    except UnicodeError as error:
        raise TableError(f"the file is not {encoding} text: {error}", path=file.name) from error
    if not text.strip("\ufeff\r\n\t ,;|"):
        raise _empty(file)
    return text


def _sample_rows(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    try:
        rows = [
            row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row
        ]
    except csv.Error:
        return []
    return rows if whole or len(rows) < 2 else rows[:-1]  # the last one may be cut


def _find_delimiter(text: str, whole: bool) -> str:
    """The one that cuts most rows into as many cells as the header, and the header into most."""
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        rows = _sample_rows(text, delimiter, whole)
        width = len(rows[0]) if rows else 0
        if width > 1:
            alike = sum(len(row) == width for row in rows) / len(rows)
            # Rounded: one or two rows more that fit are no reason for a header of fewer cells.
            score = (round(alike, 1), width)
            if score > best_score:
                best, best_score = delimiter, score
    return best


def _find_decimal(text: str, delimiter: str, whole: bool) -> str:
    if delimiter == ",":
        return "."
    cells = [cell for row in _sample_rows(text, delimiter, whole)[1:] for cell in row]
    with_comma = any(_WITH_COMMA.fullmatch(cell) for cell in cells)
    return "," if with_comma and not any(_WITH_POINT.fullmatch(cell) for cell in cells) else "."


def _read_header(
    file: TableFile, stream: IO[bytes], encoding: str, delimiter: str
) -> tuple[tuple[str, ...], int, bool]:
    """Names of the columns, the line on which they end, and whether rows follow."""
    rows = _rows(stream, encoding, delimiter)
    try:
        _, cells, header_lines = next(rows)
        try:
            has_rows = next(rows, None) is not None
        except (csv.Error, UnicodeError):
            has_rows = True
    except StopIteration:
        raise _empty(file) from None
    except UnicodeDecodeError as error:
        raise undecodable(file, encoding, delimiter) from error
    except UnicodeError as error:
        raise TableError(f"the file is not {encoding} text: {error}", path=file.name) from error
    except csv.Error as error:
        raise TableError(
            f"names of columns cannot be read ({error}); is a quote not closed?",
            path=file.name,
            row=1,
        ) from error
    return clean_names(cells, file.name), header_lines, has_rows


def clean_names(cells: list[str], path: str | None) -> tuple[str, ...]:
    """Names of columns without blanks around them; empty ones become ``unnamed_1`` and so on."""
    names = [str(c).strip().lstrip("\ufeff") or f"unnamed_{k}" for k, c in enumerate(cells, 1)]
    places: dict[str, list[int]] = {}
    for k, name in enumerate(names, 1):
        places.setdefault(name, []).append(k)
    twice = {name: at for name, at in places.items() if len(at) > 1}
    if twice:
        name, at = next(iter(twice.items()))
        more = f", and {name_few(list(twice)[1:])} come twice too" if len(twice) > 1 else ""
        raise TableError(
            f"columns {at[0]} and {at[1]} are both called {name!r}{more}; rename one",
            path=path,
            row=1,
        )
    return tuple(names)


def _empty(file: TableFile) -> TableError:
    return TableError("the file is empty; its first row must hold names of columns", path=file.name)


def damaged(file: TableFile, error: BaseException) -> TableError:
    """The error of a compressed file that cannot be read."""
    return TableError(
        f"the compressed file is damaged or cut off ({error}); copy it again", path=file.name
    )


def undecodable(file: TableFile, encoding: str, delimiter: str) -> TableError:
    """The error of a file with bytes that its encoding does not have."""
    label = "UTF-8" if encoding.startswith("utf-8") else encoding
    advice = (
        "give the encoding, such as encoding='cp1252' (--encoding cp1252) for files of Excel in "
        "western Europe, or save the file as UTF-8"
    )
    names: list[str] = []
    with file.open() as stream:
        for number, line in enumerate(stream, start=1):
            names = names or line.decode(encoding, "replace").strip().split(delimiter)
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                cells = line.decode(encoding, "replace").split(delimiter)
                place = next((i for i, c in enumerate(cells) if "\ufffd" in c), len(names))
                return TableError(
                    f"the byte 0x{line[error.start]:02x} is not {label} text; {advice}",
                    path=file.name,
                    row=number,
                    column=names[place].strip('"') if number > 1 and place < len(names) else None,
                )
    return TableError(f"the file is not {label} text; {advice}", path=file.name)


# ------------------------------------------------------------------------------ lines


def rows_with_lines(
    file: TableFile, encoding: str, delimiter: str, strict: bool = False
) -> Iterator[tuple[int, list[str], int]]:
    """First line, cells and last line of each row, the header's first; slow, without any checks."""
    with file.open() as stream:
        yield from _rows(stream, encoding, delimiter, strict)


def _rows(
    stream: IO[bytes], encoding: str, delimiter: str, strict: bool = False
) -> Iterator[tuple[int, list[str], int]]:
    with io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
        reader = csv.reader(text, delimiter=delimiter, strict=strict)
        first = 1
        for cells in reader:
            if cells:  # lines with nothing on them are no rows
                yield first, cells, reader.line_num
            first = reader.line_num + 1


def count_lines(file: TableFile) -> int:
    """Lines of a text file, whichever way they end."""
    count, last = 0, b"\n"
    with file.open() as stream:
        while chunk := stream.read(1 << 20):
            count += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
            count -= last == b"\r" and chunk.startswith(b"\n")
            last = chunk[-1:]
    return count + (last not in b"\r\n")
