"""The file of a model: a zip with ``header.json`` and one ``.npy`` file per array, uncompressed.

All sizes are compared with the size of the file before anything is read or allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from polyfid._version import __version__
from polyfid.atomic import replacing

PathLike = str | os.PathLike[str]

FORMAT = "polyfid model"
#: Of the files that are written, and of the only ones that are read.
SCHEMA = 2
#: Bytes; most headers have a few thousand, those of tables with many columns some millions.
MAX_HEADER = 64 << 20
#: A zip counts its members in two bytes.
MAX_ARRAYS = 65_000
#: Types of stored arrays: integers, floats, booleans, strings, bytes, dates and time spans.
DTYPE = re.compile(
    r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,6}|\|S[1-9][0-9]{0,6}"
    r"|<[Mm]8(\[[0-9]{0,6}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_HEADER = "header.json"
_SCHEMA_1 = b"\x89polyfid"
_MAX_DIRECTORY = 16 << 20
_END = struct.Struct("<4s4H2IH")  # the last record of a zip
_LOCATOR = 20  # bytes of a record in front of it, in archives of more than 2 GB
_ENCRYPTED = 0x41
_CHUNK = 1 << 24
_DAMAGED = "was damaged or altered after it was saved ({error}); copy it or save it again"
_CUT = "is truncated, or something was appended to it; copy it or save it again"


class ModelFileError(ValueError):
    r"""A file that is not a model that this version of polyfid can read.

    It may be another kind of file, truncated, altered, of another schema, or made to do harm.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from polyfid.model_files import ModelFileError, inspect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "table.csv")
    ...     _ = path.write_text("x,y\n" + "1,2\n" * 100)
    ...     try:
    ...         inspect(path)
    ...     except ModelFileError as error:
    ...         print(str(error).replace(str(path), path.name))
    table.csv is not a polyfid model: it does not begin like one
    """


@contextmanager
def refusing(path: PathLike, reason: str = "does not describe a model: {error}") -> Iterator[None]:
    """A context in which errors caused by the contents of a file become `ModelFileError`.

    Lack of memory and errors of the operating system stay as they are.
    """
    try:
        yield
    except ModelFileError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
        zipfile.BadZipFile,
    ) as error:
        raise ModelFileError(f"{os.fspath(path)} {reason.format(error=error)}") from error


def is_model(path: PathLike) -> bool:
    """Whether a file begins like a saved model, of whichever schema."""
    with open(path, "rb") as file:
        return _begins_like_model(start := file.read(64)) or start.startswith(_SCHEMA_1)


def _begins_like_model(start: bytes) -> bool:
    return start[:4] == b"PK\x03\x04" and start[30:].startswith(_HEADER.encode())


# ---------------------------------------------------------------------- arrays


@dataclass(frozen=True)
class ArrayEntry:
    """What the header says about one array; its ``.npy`` file must agree."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    order: str

    @classmethod
    def of(cls, name: str, array: NDArray[Any]) -> ArrayEntry:
        """The entry of an array. Its order in memory is kept, as products round by it."""
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        return cls(name, stored_dtype(array.dtype), array.shape, "F" if fortran else "C")

    @classmethod
    def from_json(cls, given: Any) -> ArrayEntry:
        """The entry of a row of the header's table, if the row is consistent."""
        shape = given["shape"]
        entry = cls(given["name"], given["dtype"], tuple(shape), given["order"])
        good = len(shape) <= 8 and all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
        good = good and DTYPE.fullmatch(entry.dtype) is not None and entry.order in ("C", "F")
        if not good or entry.to_json() != given:
            raise ValueError("the table of arrays contradicts itself")
        return entry

    def to_json(self) -> dict[str, Any]:
        """The row of the header's table."""
        return {**vars(self), "shape": list(self.shape), "nbytes": self.nbytes}

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def npy_header(self) -> bytes:
        """The first bytes of the ``.npy`` file; the same with every version of numpy."""
        fortran = self.order == "F"
        text = f"{{'descr': '{self.dtype}', 'fortran_order': {fortran}, 'shape': {self.shape}, }}"
        length = -(-(len(text) + 11) // 64) * 64 - 10  # numpy aligns the numbers to 64 bytes
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + f"{text:{length - 1}}\n".encode()

    def content(self, array: NDArray[Any]) -> list[Any]:
        """The ``.npy`` file of the array, in two pieces of bytes."""
        array = array.T if self.order == "F" else array
        return [self.npy_header, _bytes_of(np.ascontiguousarray(array, dtype=self.dtype))]


def stored_dtype(dtype: np.dtype[Any]) -> str:
    """The name of a type in a file: TypeError if a file cannot hold it, such as objects."""
    name = dtype.newbyteorder("<").str
    if name in ("<U0", "|S0"):  # which numpy itself widens
        name = f"{name[:2]}1"
    if not DTYPE.fullmatch(name):
        raise TypeError(f"values of type {dtype} cannot be in a model file")
    return name


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _check_contents(array: NDArray[Any]) -> None:
    """Refuse bytes that are not values of the array's type."""
    if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array of booleans holds other values")
    codes = array.tobytes() if array.dtype.kind == "U" else b""
    if np.frombuffer(codes, dtype="<u4").max(initial=0) > 0x10FFFF:
        raise ValueError("an array of strings holds numbers that are not characters")


# --------------------------------------------------------------------- writing


def write_file(
    path: PathLike, header: Mapping[str, Any], arrays: Sequence[tuple[str, NDArray[Any]]]
) -> None:
    """Write a header and named arrays; the same ones always give the same bytes."""
    entries = [ArrayEntry.of(name, array) for name, array in arrays]
    contents = [entry.content(array) for entry, (_, array) in zip(entries, arrays, strict=True)]
    digest = hashlib.sha256()
    for piece in chain.from_iterable(contents):
        digest.update(piece)
    table = [entry.to_json() for entry in entries]
    full = {"format": FORMAT, "schema": SCHEMA, **header, "sha256": digest.hexdigest()}
    text = json.dumps({**full, "arrays": table}, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MAX_HEADER or len(entries) > MAX_ARRAYS:
        raise ValueError(
            f"the model is too large for a file: its header would have {len(text)} bytes and "
            f"{len(entries)} arrays, and the limits are {MAX_HEADER} and {MAX_ARRAYS}; use "
            "joblib.dump, which has none"
        )
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        _write_member(archive, _HEADER, [text])
        for place, content in enumerate(contents):
            _write_member(archive, _npy_name(place), content)


def _write_member(archive: zipfile.ZipFile, name: str, content: list[Any]) -> None:
    info = zipfile.ZipInfo(name)  # with a fixed date
    info.create_system = 3  # the same bytes on every system
    info.file_size = sum(map(len, content))
    with archive.open(info, "w") as member:
        for piece in content:
            member.write(piece)


def _npy_name(place: int) -> str:
    return f"{place:05d}.npy"


# --------------------------------------------------------------------- reading


def read_header(path: PathLike) -> dict[str, Any]:
    """The header of a file, whose table of arrays is that of the file; no array is read."""
    with _opened(path) as (archive, members):
        return _read_header(archive, members, path)


def read_file(path: PathLike) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The header and the arrays of a file."""
    with _opened(path) as (archive, members):
        header = _read_header(archive, members, path)
        digest, arrays = hashlib.sha256(), []
        for row, member in zip(header["arrays"], members[1:], strict=True):
            with archive.open(member) as file:
                arrays.append(_read_array(file, ArrayEntry.from_json(row), digest))
        if digest.hexdigest() != header["sha256"]:
            raise ValueError("the SHA-256 of its arrays is another one")
    return header, arrays


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """The archive and its members, none of which is larger than the file has room for."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _check_start(file.read(64), path)
        _check_end(file, size, path)
        with refusing(path, _DAMAGED), zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members, size)
            yield archive, members


def _check_start(start: bytes, path: PathLike) -> None:
    if start.startswith(_SCHEMA_1):
        raise ModelFileError(
            f"{os.fspath(path)} has schema 1, which polyfid {__version__} does not read (it reads "
            f"schema {SCHEMA}); fit the model again and save it, or load it with the version of "
            "polyfid that saved it"
        )
    if not _begins_like_model(start):
        what = "it does not begin like one" if start else "it is empty"
        raise ModelFileError(f"{os.fspath(path)} is not a polyfid model: {what}")


def _check_end(file: BinaryIO, size: int, path: PathLike) -> None:
    """Refuse a file without the end of a zip, or with a directory too large to read."""
    file.seek(max(0, size - _END.size - _LOCATOR))
    tail = file.read()
    if len(tail) < _END.size + _LOCATOR:
        raise ModelFileError(f"{os.fspath(path)} {_CUT}")
    mark, *_, length, start, comment = _END.unpack(tail[_LOCATOR:])
    if tail.startswith(b"PK\x06\x07"):
        whole = size > zipfile.ZIP64_LIMIT
    else:
        whole = start + length + _END.size == size
    if mark != b"PK\x05\x06" or comment or not whole:
        raise ModelFileError(f"{os.fspath(path)} {_CUT}")
    if length > _MAX_DIRECTORY:
        raise ModelFileError(f"{os.fspath(path)} declares more arrays than a model can have")


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    names = [member.filename for member in members]
    if names != [_HEADER, *map(_npy_name, range(len(names) - 1))]:
        shown = ", ".join(repr(name[:60]) for name in names[:5])
        raise ValueError(
            f"it must hold {_HEADER}, {_npy_name(0)}, {_npy_name(1)} and so on, and holds {shown}"
        )
    end = 0
    for member in members:
        packed = member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED
        if packed or member.compress_size != member.file_size:
            raise ValueError(
                f"{member.filename} is compressed or encrypted, and a model must be stored (zip -0)"
            )
        if member.header_offset < end:
            raise ValueError(f"{member.filename} overlaps with what is before it")
        end = member.header_offset + member.file_size
    if end > size:
        raise ValueError(f"its members would need {end} bytes, and it has {size}")


def _read_header(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], path: PathLike
) -> dict[str, Any]:
    if members[0].file_size > MAX_HEADER:
        raise ValueError(f"its header has {members[0].file_size} bytes, more than {MAX_HEADER}")
    text = archive.read(members[0])
    with refusing(path, "has a header that cannot be read: {error}"):
        header = json.loads(text.decode("ascii"), parse_constant=_refuse_constant)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)} is not a polyfid model: its header is something else"
        )
    schema = header.get("schema")
    if type(schema) is int and schema > SCHEMA:
        raise ModelFileError(
            f"{os.fspath(path)} was written by {str(header.get('created_by'))[:60]} with schema "
            f"{schema}, and this is polyfid {__version__}, which reads schema {SCHEMA}; update "
            "polyfid"
        )
    types = {"schema": int, "kind": str, "sha256": str, "arrays": list}
    wrong = [key for key, cls in types.items() if type(header.get(key)) is not cls]
    if schema != SCHEMA or wrong or "state" not in header:
        raise ValueError("its header lacks what every header has")
    entries = [ArrayEntry.from_json(row) for row in header["arrays"]]
    sizes = [len(entry.npy_header) + entry.nbytes for entry in entries]
    if sizes != [member.file_size for member in members[1:]]:
        raise ValueError("its arrays are not of the sizes that its header declares")
    return header


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _read_array(file: Any, entry: ArrayEntry, digest: Any) -> NDArray[Any]:
    if file.read(len(entry.npy_header)) != entry.npy_header:
        raise ValueError(f"the file of the array {entry.name[:60]!r} has another type or shape")
    digest.update(entry.npy_header)
    shape = entry.shape[::-1] if entry.order == "F" else entry.shape
    array = np.empty(shape, dtype=entry.dtype)
    view = _bytes_of(array)
    for start in range(0, len(view), _CHUNK):
        chunk = file.read(min(_CHUNK, len(view) - start))
        view[start : start + len(chunk)] = chunk
        digest.update(chunk)
    _check_contents(array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.T if entry.order == "F" else array
