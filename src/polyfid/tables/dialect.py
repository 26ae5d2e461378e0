"""How a text file writes its table: encoding, delimiter, decimal mark and names of columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from polyfid.tables.errors import TableError, listed
from polyfid.tables.sources import DAMAGE, File

DELIMITERS = (",", ";", "\t", "|")
#: Bytes that are looked at to find out; decisions about types look at all rows.
SAMPLE = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """What a reader needs to know of a text file; ``skip`` lines hold the names of the columns."""

    encoding: str
    delimiter: str
    decimal: str
    names: tuple[str, ...]
    skip: int
    ends: bool
    """Whether the file ends with its header."""


def find_dialect(
    file: File, delimiter: str | None, decimal: str | None, encoding: str | None
) -> Dialect:
    """The dialect of a file, as far as it is not given."""
    _check_arguments(delimiter, decimal, encoding)
    try:
        with file.open() as stream:
            start = stream.read(SAMPLE)
    except DAMAGE as error:
        raise damaged(file, error) from error
    encoding = encoding or next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    if "utf-16" not in encoding and b"\0" in start[:1024] and start[:1024].count(b"\0") > 100:
        raise TableError("this is a binary file, not a table of text or Parquet", path=file.name)
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    except UnicodeError as error:
        raise TableError(f"the file is not {encoding} text: {error}", path=file.name) from error
    if not text.strip("\ufeff\r\n\t ,;|"):
        raise TableError(
            "the file is empty; its first row must hold names of columns", path=file.name
        )
    delimiter = delimiter or _find_delimiter(text, whole=len(start) < SAMPLE)
    decimal = decimal or _find_decimal(text, delimiter, whole=len(start) < SAMPLE)
    names, skip, ends = _read_header(file, encoding, delimiter)
    return Dialect(encoding, delimiter, decimal, names, skip, ends)


def rows_with_lines(
    file: File, encoding: str, delimiter: str, strict: bool = False
) -> Iterator[tuple[int, list[str], int]]:
    """Rows of cells with the first and the last line of each, slowly and without judgement."""
    with (
        file.open() as stream,
        io.TextIOWrapper(stream, encoding=encoding, newline="") as text,
    ):
        reader = csv.reader(text, delimiter=delimiter, strict=strict)
        first = 1
        for cells in reader:
            if cells:  # lines with nothing on them are no rows
                yield first, cells, reader.line_num
            first = reader.line_num + 1


def damaged(file: File, error: BaseException) -> TableError:
    """The error of a compressed file that cannot be read."""
    return TableError(
        f"the compressed file is damaged or cut off ({error}); copy it again", path=file.name
    )


def undecodable(file: File, encoding: str, delimiter: str) -> TableError:
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


def _check_arguments(delimiter: str | None, decimal: str | None, encoding: str | None) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be one character, such as ';'; got {delimiter!r}")
    if decimal is not None and decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
    if decimal is not None and decimal == delimiter:
        raise ValueError(f"delimiter and decimal are both {decimal!r}; they must differ")
    if encoding is not None:
        try:
            known = codecs.lookup(encoding)
        except LookupError:
            raise ValueError(
                f"encoding must be one that Python knows, such as 'utf-8' or 'cp1252'; "
                f"got {encoding!r}"
            ) from None
        if not known._is_text_encoding:
            raise ValueError(f"encoding must be one of text; got {encoding!r}")


def _sample_rows(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    try:
        rows = [
            row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row
        ]
    except csv.Error:
        return []
    return rows if whole or len(rows) < 2 else rows[:-1]  # the last one may be cut


def _find_delimiter(text: str, whole: bool) -> str:
    """The one that cuts most rows as it cuts the header, and that into most cells."""
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        rows = _sample_rows(text, delimiter, whole)
        width = len(rows[0]) if rows else 0
        if width > 1:
            alike = sum(len(row) == width for row in rows) / len(rows)
            best, best_score = max((best, best_score), (delimiter, (alike, width)), key=_score)
    return best


def _score(candidate: tuple[str, tuple[float, int]]) -> tuple[float, int]:
    # One or two rows more that fit are no reason to cut the header into fewer cells.
    alike, width = candidate[1]
    return round(alike, 1), width


def _find_decimal(text: str, delimiter: str, whole: bool) -> str:
    if delimiter == ",":
        return "."
    cells = [cell for row in _sample_rows(text, delimiter, whole)[1:] for cell in row]
    with_comma = any(_WITH_COMMA.fullmatch(cell) for cell in cells)
    return "," if with_comma and not any(_WITH_POINT.fullmatch(cell) for cell in cells) else "."


def _read_header(file: File, encoding: str, delimiter: str) -> tuple[tuple[str, ...], int, bool]:
    """Names of the columns, the lines they take, and whether nothing follows."""
    rows = rows_with_lines(file, encoding, delimiter)
    try:
        _, cells, skip = next(rows)
        try:
            next(rows)
            ends = False
        except StopIteration:
            ends = True
        except (csv.Error, UnicodeError):
            ends = False
    except StopIteration:
        raise TableError(
            "the file is empty; its first row must hold names of columns", path=file.name
        ) from None
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
    except DAMAGE as error:
        raise damaged(file, error) from error
    return clean_names(cells, file.name), skip, ends


def clean_names(cells: list[str], path: str | None) -> tuple[str, ...]:
    """Names of columns without blanks around them; those that are empty are ``unnamed_1``."""
    names = [str(c).strip().lstrip("\ufeff") or f"unnamed_{k}" for k, c in enumerate(cells, 1)]
    places: dict[str, list[int]] = {}
    for k, name in enumerate(names, 1):
        places.setdefault(name, []).append(k)
    twice = {name: at for name, at in places.items() if len(at) > 1}
    if twice:
        name, at = next(iter(twice.items()))
        more = f", and {listed(list(twice)[1:])} come twice too" if len(twice) > 1 else ""
        raise TableError(
            f"columns {at[0]} and {at[1]} are both called {name!r}{more}; rename one",
            path=path,
            row=1,
        )
    return tuple(names)
