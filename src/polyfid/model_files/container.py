"""The file of a model: a prelude of fixed size, a header of JSON, and the bytes of arrays.

The prelude is a magic number, the length of the header and its SHA-256; the header has the SHA-256
of all that follows. Sizes are compared with that of the file before anything is read or allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from polyfid._version import __version__
from polyfid.atomic import replacing
from polyfid.model_files.codec import (
    DTYPE,
    Decoder,
    Encoder,
    as_stored,
    check_contents,
    in_fortran_order,
)
from polyfid.model_files.errors import ModelFileError, refusing

PathLike = str | os.PathLike[str]

MAGIC = b"\x89polyfid"
#: What `schema` says; it grows when older versions could not read what is written.
SCHEMA = 1
#: Bytes; a header is a few thousand of them, and some millions with thousands of columns.
MAX_HEADER = 64 << 20
_PRELUDE = struct.Struct("<8sQ32s")
_CHUNK = 1 << 24
_OWN_KEYS = ("format", "schema", "kind", "created_by", "versions", "arrays", "sha256", "state")


def write(path: PathLike, kind: str, state: Any, about: Mapping[str, Any] | None = None) -> None:
    """Write a state to a file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        An existing file is replaced.
    kind : str
        What the state is of; `polyfid.load` looks it up.
    state : object
        Of None, truth values, numbers, strings, bytes, lists, tuples, dicts, arrays and instances
        of registered classes.
    about : mapping, optional
        What `inspect` is to tell, besides kind and versions; made ready for JSON.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from polyfid.model_files import read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "thing.polyfid")
    ...     write(path, "thing", {"x": np.arange(3), "pair": (1, None)})
    ...     read(path)
    ('thing', {'x': array([0, 1, 2]), 'pair': (1, None)})
    """
    about = dict(about or {})
    if taken := sorted(set(about) & set(_OWN_KEYS)):
        raise ValueError(f"about may not have the key {taken[0]!r}, which the header has itself")
    encoder = Encoder()
    tree = encoder.encode(state, "")
    table, stored, digest = [], [], hashlib.sha256()
    offset = 0
    for name, array in encoder.arrays:
        part = as_stored(array)
        entry: dict[str, Any] = {"name": name, "dtype": part.dtype.str, "shape": list(array.shape)}
        entry |= {"offset": offset, "nbytes": part.nbytes}
        table.append(entry | ({"order": "F"} if in_fortran_order(array) else {}))
        stored.append(part)
        digest.update(_bytes_of(part))
        offset += part.nbytes
    header = {
        "format": "polyfid model",
        "schema": SCHEMA,
        "kind": kind,
        "created_by": f"polyfid {__version__}",
        "versions": _versions(),
        **{key: plain(value) for key, value in about.items()},
        "sha256": digest.hexdigest(),
        "arrays": table,
        "state": tree,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"the model has too many parts for a file: its header would have {len(text)} bytes, "
            f"and {MAX_HEADER} are the limit; joblib.dump has none"
        )
    with replacing(path) as file:
        file.write(_PRELUDE.pack(MAGIC, len(text), hashlib.sha256(text).digest()))
        file.write(text)
        for part in stored:
            file.write(_bytes_of(part))


def read(path: PathLike) -> tuple[str, Any]:
    """The kind and the state in a file; see `write`.

    Raises
    ------
    ModelFileError
        If the file is no model, or not whole, or altered, or of a later schema.
    OSError
        If the file cannot be read.
    """
    with open(path, "rb") as file:
        header = _read_header(file, os.fspath(path))
        arrays = _read_arrays(file, header, os.fspath(path))
    with refusing(path):
        for array in arrays:
            check_contents(array)
        return header["kind"], Decoder(arrays).decode(header["state"])


def inspect(path: PathLike) -> dict[str, Any]:
    """What the header of a file tells; nothing is built, and arrays are not read.

    Returns
    -------
    dict
        ``kind``, ``schema``, ``created_by``, ``versions``, ``arrays`` (name, dtype, shape, offset
        from the end of the header, nbytes), ``sha256`` of the arrays and what was said about the
        model, which is ready for JSON.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from polyfid.model_files import inspect, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "thing.polyfid")
    ...     write(path, "thing", [1, 2], about={"colour": "green"})
    ...     header = inspect(path)
    >>> header["kind"], header["schema"], header["colour"]
    ('thing', 1, 'green')
    """
    with open(path, "rb") as file:
        header = _read_header(file, os.fspath(path))
    del header["state"]
    return header


def plain(value: Any) -> Any:
    """A value made ready for JSON: numbers of numpy as Python's, NaN as None, the rest as text.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.model_files import plain
    >>> plain({"a": (np.float64(0.5), float("nan")), 2: np.array(["x"])})
    {'a': [0.5, None], '2': ['x']}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _versions() -> dict[str, str]:
    return {
        "polyfid": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _read_header(file: BinaryIO, path: str) -> dict[str, Any]:
    """The header, once it is known to be whole and to describe a file of this size."""
    size = os.fstat(file.fileno()).st_size
    prelude = file.read(_PRELUDE.size)
    if not prelude.startswith(MAGIC):
        empty = "it is empty" if not prelude else "it does not begin like one"
        raise ModelFileError(f"{path} is not a polyfid model: {empty}")
    if len(prelude) < _PRELUDE.size:
        raise _truncated(path)
    _, length, digest = _PRELUDE.unpack(prelude)
    if length > MAX_HEADER:
        raise ModelFileError(f"{path} declares a header of {length} bytes, more than there can be")
    if length > size - _PRELUDE.size:
        raise _truncated(path)
    text = file.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise _altered(path)
    try:
        header = json.loads(text.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} has a header that cannot be read: {error}") from error
    _check_header(header, path)
    declared = sum(entry["nbytes"] for entry in header["arrays"])
    there = size - _PRELUDE.size - length
    if declared > there:
        raise _truncated(path)
    if declared < there:
        raise ModelFileError(f"{path} has {there - declared} bytes that belong to no model")
    return dict(header)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _truncated(path: str) -> ModelFileError:
    return ModelFileError(f"{path} is truncated: its end is missing; copy or save it again")


def _altered(path: str) -> ModelFileError:
    return ModelFileError(
        f"{path} has been altered since it was saved (its SHA-256 differs); copy or save it again"
    )


def _check_header(header: Any, path: str) -> None:
    if not isinstance(header, dict) or header.get("format") != "polyfid model":
        raise ModelFileError(f"{path} is not a polyfid model: its header is of something else")
    schema = header.get("schema")
    if type(schema) is int and schema > SCHEMA:
        raise ModelFileError(
            f"{path} was written by {str(header.get('created_by'))[:60]} with schema {schema}, and "
            f"this is polyfid {__version__}, which reads schemas up to {SCHEMA}; update polyfid"
        )
    good = type(schema) is int and schema >= 1 and isinstance(header.get("kind"), str)
    good = good and isinstance(header.get("arrays"), list) and "state" in header
    if not good or not isinstance(header.get("sha256"), str):
        raise ModelFileError(f"{path} has a header that lacks what every header has")
    end = 0
    for entry in header["arrays"]:
        if not _is_entry(entry) or entry["offset"] != end:
            raise ModelFileError(f"{path} has a table of arrays that contradicts itself")
        end += entry["nbytes"]


def _is_entry(entry: Any) -> bool:
    """Whether a row of the table of arrays makes sense: its size follows from type and shape."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        return False
    shape = entry.get("shape")
    good = isinstance(shape, list) and len(shape) <= 8
    good = good and all(type(n) is int and 0 <= n < 1 << 62 for n in shape)  # type: ignore[union-attr]
    if not good or not DTYPE.fullmatch(entry["dtype"]):
        return False
    if type(entry.get("offset")) is not int or type(entry.get("nbytes")) is not int:
        return False
    nbytes = math.prod(shape) * np.dtype(entry["dtype"]).itemsize  # type: ignore[arg-type]
    return bool(entry["nbytes"] == nbytes and entry.get("order", "C") in ("C", "F"))


def _read_arrays(file: BinaryIO, header: Mapping[str, Any], path: str) -> list[NDArray[Any]]:
    arrays, digest = [], hashlib.sha256()
    for entry in header["arrays"]:
        fortran = entry.get("order") == "F"
        shape = entry["shape"][::-1] if fortran else entry["shape"]
        with refusing(path):  # numpy has limits of its own for shapes of nothing
            array = np.empty(shape, dtype=entry["dtype"])
        view = _bytes_of(array)
        for start in range(0, len(view), _CHUNK):
            chunk = view[start : start + _CHUNK]
            if file.readinto(chunk) != len(chunk):  # type: ignore[attr-defined]
                raise _truncated(path)
            digest.update(chunk)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        arrays.append(array.T if fortran else array)
    if digest.hexdigest() != header["sha256"]:
        raise _altered(path)
    return arrays
