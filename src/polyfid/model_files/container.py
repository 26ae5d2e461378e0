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
#: The largest number that is a boolean, and a character, read as a type of unsigned integers.
_LARGEST = {"b": {"u1": 1}, "U": {"<u4": 0x10FFFF}}
_DAMAGED = "was damaged or altered after it was saved ({error}); copy it or save it again"
_CUT = "is truncated, or something was appended to it; copy it or save it again"


class ModelFileError(ValueError):
    """A file that is not a model that this version of polyfid can read.

    It may be another kind of file, truncated, altered, of another schema, or made to do harm.
    """


@contextmanager
def refusing(path: PathLike, reason: str = "does not describe a model: {error}") -> Iterator[None]:
    """A context in which errors caused by the contents of a file become `ModelFileError`."""
    try:
        yield
    except (MemoryError, ModelFileError, OSError, Warning):
        raise
    except Exception as error:
        raise ModelFileError(f"{os.fspath(path)} {reason.format(error=error)}") from error


def is_model(path: PathLike) -> bool:
    """Whether a file begins like a saved model, of whichever schema."""
    with open(path, "rb") as file:
        return _begins_like_model(start := file.read(64)) or start.startswith(_SCHEMA_1)


def _begins_like_model(start: bytes) -> bool:
    return start[:4] == b"PK\x03\x04" and start[30:].startswith(_HEADER.encode())


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
        dtype = array.dtype.newbyteorder("<").str
        if dtype in ("<U0", "|S0"):  # which numpy itself widens
            dtype = f"{dtype[:2]}1"
        if not DTYPE.fullmatch(dtype):
            raise TypeError(f"{name} has the type {array.dtype}, which a model file cannot hold")
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        return cls(name, dtype, array.shape, "F" if fortran else "C")

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


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


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


def read_file(path: PathLike) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The header and the arrays of a file."""
    with opened(path) as (archive, header, entries):
        digest, arrays = hashlib.sha256(), []
        for entry, member in zip(entries, archive.infolist()[1:], strict=True):
            with archive.open(member) as file:
                arrays.append(_read_array(file, entry, digest))
        if digest.hexdigest() != header["sha256"]:
            raise ValueError("the SHA-256 of its arrays is another one")
    return header, arrays


@contextmanager
def opened(path: PathLike) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any], list[ArrayEntry]]]:
    """A file's archive, its header and the entries of its arrays, of which none is read yet."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        with refusing(path, "{error}"):
            _check_ends(file, size)
        with refusing(path, _DAMAGED), zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members, size)
            text = archive.read(members[0])
            with refusing(path, "{error}"):
                header = _parse_header(text)
            entries = [ArrayEntry.from_json(row) for row in header["arrays"]]
            sizes = [len(entry.npy_header) + entry.nbytes for entry in entries]
            if sizes != [member.file_size for member in members[1:]]:
                raise ValueError("its arrays are not of the sizes that its header declares")
            yield archive, header, entries


def _check_ends(file: BinaryIO, size: int) -> None:
    """Refuse a file that does not begin and end as a model, or has too large a directory."""
    start = file.read(64)
    if start.startswith(_SCHEMA_1):
        raise ValueError(
            f"has schema 1, and polyfid {__version__} reads schema {SCHEMA}; fit the model again "
            "and save it, or load it with the version that saved it"
        )
    if not _begins_like_model(start):
        what = "it does not begin like one" if start else "it is empty"
        raise ValueError(f"is not a polyfid model: {what}")
    file.seek(max(0, size - _END.size - _LOCATOR))
    tail = file.read()
    if len(tail) < _END.size + _LOCATOR:
        raise ValueError(_CUT)
    mark, *_, length, offset, comment = _END.unpack(tail[_LOCATOR:])
    if tail.startswith(b"PK\x06\x07"):
        whole = size > zipfile.ZIP64_LIMIT
    else:
        whole = offset + length + _END.size == size
    if mark != b"PK\x05\x06" or comment or not whole:
        raise ValueError(_CUT)
    if length > _MAX_DIRECTORY:
        raise ValueError("declares more arrays than a model can have")


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
    if members[0].file_size > MAX_HEADER:
        raise ValueError(f"its header has {members[0].file_size} bytes, more than {MAX_HEADER}")


def _parse_header(text: bytes) -> dict[str, Any]:
    """The header that JSON stands for; the error messages go on from the name of the file."""
    try:
        header = json.loads(text.decode("ascii"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"has a header that cannot be read: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("is not a polyfid model: its header is something else")
    schema = header.get("schema")
    if type(schema) is int and schema > SCHEMA:
        raise ValueError(
            f"was written by {str(header.get('created_by'))[:60]} with schema {schema}, and this "
            f"is polyfid {__version__}, which reads schema {SCHEMA}; update polyfid"
        )
    types = {"schema": int, "kind": str, "sha256": str, "arrays": list}
    wrong = [key for key, cls in types.items() if type(header.get(key)) is not cls]
    if schema != SCHEMA or wrong or "state" not in header:
        raise ValueError("was damaged or altered: its header lacks what every header has")
    return header


def _read_array(file: Any, entry: ArrayEntry, digest: Any) -> NDArray[Any]:
    if file.read(len(entry.npy_header)) != entry.npy_header:
        raise ValueError(f"the file of the array {entry.name[:60]!r} has another type or shape")
    digest.update(entry.npy_header)
    shape = entry.shape[::-1] if entry.order == "F" else entry.shape
    array = np.empty(shape, dtype=entry.dtype)
    view = _bytes_of(array)
    view[:] = file.read(len(view))
    digest.update(view)
    for code, largest in _LARGEST.get(array.dtype.kind, {}).items():
        if np.frombuffer(view, code).max(initial=0) > largest:
            raise ValueError(f"the array {entry.name[:60]!r} has bytes that are no {entry.dtype}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.T if entry.order == "F" else array
