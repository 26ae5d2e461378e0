"""Where bytes of tables come from: files, compressed or not, and standard input."""

from __future__ import annotations

import gzip
import os
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

from polyfid.model_files import is_model
from polyfid.tables.errors import TableError

#: What reading a damaged compressed file raises, besides OSError.
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)

_GZIP, _PARQUET, _ZIP, _OLD_EXCEL = b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True)
class File:
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


def is_frame(source: Any) -> bool:
    """Whether it is a data frame of pandas or polars."""
    return hasattr(type(source), "columns")


@contextmanager
def opened(source: Any) -> Iterator[File]:
    """The file of a path or of standard input, which is copied to disk first.

    A table is looked at before it is read, and again where something is wrong with it; a pipe
    could not be. A file that is open already stays so.
    """
    if isinstance(source, File):
        yield source
    elif isinstance(source, os.PathLike) or (isinstance(source, str) and source != "-"):
        yield look(str(source), os.fspath(source))
    elif source == "-":
        # Named before it is there, so that nothing can come between making and removing it.
        path = os.path.join(tempfile.gettempdir(), f"polyfid-{secrets.token_hex(8)}.stdin")
        try:
            with open(path, "xb", opener=_for_this_user) as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            yield look("standard input", path)
        finally:
            Path(path).unlink(missing_ok=True)
    else:
        raise TypeError(
            "a table must be a path, '-' for standard input, or a data frame of pandas or polars; "
            f"got {type(source).__name__}"
        )


def _for_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def look(name: str, path: str) -> File:
    """The file and its kind, which its first bytes tell whatever it is called."""
    with open(path, "rb") as file:
        start = file.read(8)
    short = name if name == "standard input" else Path(name).name
    if is_model(path):
        raise TableError(
            "this is a model that polyfid saved, not a table; polyfid inspect says what it holds",
            path=short,
        )
    if start.startswith(_ZIP) or start.startswith(_OLD_EXCEL):
        raise TableError(
            "this is a spreadsheet or a zip archive, not text; save the sheet as CSV", path=short
        )
    if short.lower().endswith(".json"):
        raise TableError(
            "JSON is no table; an export of Label Studio is read where it is the only file, other "
            "tables as CSV or Parquet",
            path=short,
        )
    if start.startswith(_PARQUET):
        return File(short, path, "parquet")
    return File(short, path, "csv", zipped=start.startswith(_GZIP))
