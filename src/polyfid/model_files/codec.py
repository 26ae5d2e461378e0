"""Values to a tree of JSON and a list of arrays, and back: no code is stored, none is run.

JSON has lists, strings, whole numbers, finite floats, truth values, null and objects; the latter
stand for dicts with string keys. What else there is becomes an object with one key that begins
with a dollar sign, the tag.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.model_files.registry import put_together, take_apart

#: Trees are no deeper than this: a sum of that many kernels.
MAX_DEPTH = 100
#: Types of stored arrays: whole numbers, floats, truth values, strings, bytes, dates and spans.
DTYPE = re.compile(
    r"\|b1|[|<][iu][1]|<[iu][248]|<f[248]|<U[1-9][0-9]{0,6}|\|S[1-9][0-9]{0,6}"
    r"|<[Mm]8(\[[0-9]{0,6}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
#: Bytes of arrays that a small file may mention more than once.
MENTIONS = 64 << 20
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Encoder:
    """Makes a tree of a value; arrays go to ``arrays``, by name, each only once."""

    def __init__(self) -> None:
        self.arrays: list[tuple[str, NDArray[Any]]] = []
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # an id is that of an array as long as the array lives

    def encode(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """The tree of a value; ``path`` names its place, for messages and arrays."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{path} is nested more than {MAX_DEPTH} deep and cannot be saved")
        if isinstance(value, np.generic):
            return self._scalar(value, path)
        if value is None or isinstance(value, bool) or type(value) in (int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if type(value) is bytes:
            return {"$bytes": value.decode("latin-1")}
        if type(value) is list:
            return self._items(value, path, depth)
        if type(value) is tuple:
            return {"$tuple": self._items(value, path, depth)}
        if type(value) is dict:
            return self._dict(value, path, depth)
        if type(value) is np.ndarray:
            return self._array(value, path, depth)
        parts = take_apart(value)
        if parts is None:
            raise TypeError(
                f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which a model "
                "file cannot hold; a frozen dataclass can be registered with "
                "polyfid.model_files.register, and joblib.dump takes anything"
            )
        name, given = parts
        return {"$class": name, "fields": self._fields(given, path, depth)}

    def _fields(self, values: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        dot = "." if path else ""
        return {k: self.encode(v, f"{path}{dot}{k}", depth + 1) for k, v in values.items()}

    def _items(self, values: Sequence[Any], path: str, depth: int) -> list[Any]:
        return [self.encode(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(values)]

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        if all(type(k) is str and not k.startswith("$") for k in value):
            return self._fields(value, path, depth)
        return {"$dict": [self._items(pair, path, depth) for pair in value.items()]}

    def _scalar(self, value: np.generic, path: str) -> Any:
        array = np.asarray(value)
        kind = _little(array.dtype, path)
        if array.dtype.kind in "mM":
            return {"$scalar": kind, "value": int(array.view(np.int64))}
        plain = bytes(value).decode("latin-1") if isinstance(value, np.bytes_) else value.item()
        odd = isinstance(plain, float) and not math.isfinite(plain)
        return {"$scalar": kind, "value": str(plain) if odd else plain}

    def _array(self, value: NDArray[Any], path: str, depth: int) -> Any:
        if value.dtype.kind == "O":
            items = self._items(value.ravel().tolist(), path, depth)
            return {"$items": items, "shape": list(value.shape)}
        if id(value) not in self._seen:
            _little(value.dtype, path)
            self._seen[id(value)] = len(self.arrays)
            self._kept.append(value)
            self.arrays.append((path, value))
        return {"$array": self._seen[id(value)]}


def _little(dtype: np.dtype[Any], path: str) -> str:
    name = dtype.newbyteorder("<").str
    if name in ("<U0", "|S0"):  # which numpy itself widens
        name = f"{name[:2]}1"
    if not DTYPE.fullmatch(name):
        raise TypeError(f"{path} is of the type {dtype}, which a model file cannot hold")
    return name


def as_stored(value: NDArray[Any]) -> NDArray[Any]:
    """An array as it is stored: little-endian, contiguous, transposed if in Fortran's order."""
    value = value.T if in_fortran_order(value) else value
    return np.ascontiguousarray(value, dtype=_little(value.dtype, "an array")).reshape(value.shape)


def in_fortran_order(value: NDArray[Any]) -> bool:
    """Whether the first index runs fastest: products of matrices round by the order in memory."""
    return bool(value.flags.f_contiguous and not value.flags.c_contiguous)


def check_contents(value: NDArray[Any]) -> None:
    """Refuse bytes that are no value of the array's type."""
    if value.dtype.kind == "b" and value.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array of truth values holds something else")
    if value.dtype.kind == "U" and value.size:
        codes = np.frombuffer(value.tobytes(), dtype="<u4")
        if codes.max() > 0x10FFFF:
            raise ValueError("an array of strings holds what is no character")


class Decoder:
    """Makes the value of a tree again.

    What copies an array would do so for every mention of it, so that mentions after the first one
    are limited to as many bytes as there are in all, and some more for small files.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._arrays = arrays
        self._mentioned: set[int] = set()
        self._allowance = sum(a.nbytes for a in arrays) + MENTIONS
        self._tags: dict[str, tuple[set[str], Callable[[dict[str, Any], int], Any]]] = {
            "$tuple": (set(), self._tuple),
            "$dict": (set(), self._dict),
            "$float": (set(), self._float),
            "$bytes": (set(), self._bytes),
            "$scalar": ({"value"}, self._scalar),
            "$array": (set(), self._array),
            "$items": ({"shape"}, self._array_of_items),
            "$class": ({"fields"}, self._instance),
        }

    def decode(self, tree: Any, depth: int = 0) -> Any:
        """The value of a tree."""
        if depth > 2 * MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(tree, list):
            return self._list(tree, depth)
        if not isinstance(tree, dict):
            return tree
        tag = next((k for k in tree if k.startswith("$")), None)
        if tag is None:
            return {k: self.decode(v, depth + 1) for k, v in tree.items()}
        if tag not in self._tags or set(tree) - {tag} != self._tags[tag][0]:
            raise ValueError(f"it holds an object with {tag[:60]!r}, of no known meaning")
        return self._tags[tag][1](tree, depth)

    def _list(self, items: Any, depth: int) -> list[Any]:
        if not isinstance(items, list):
            raise TypeError("it holds something else where a list is to be")
        return [self.decode(item, depth + 1) for item in items]

    def _tuple(self, tree: dict[str, Any], depth: int) -> Any:
        return tuple(self._list(tree["$tuple"], depth))

    def _dict(self, tree: dict[str, Any], depth: int) -> Any:
        return dict(self._list(tree["$dict"], depth))

    def _float(self, tree: dict[str, Any], depth: int) -> Any:
        return _ODD[tree["$float"]]

    def _bytes(self, tree: dict[str, Any], depth: int) -> Any:
        return tree["$bytes"].encode("latin-1")

    def _scalar(self, tree: dict[str, Any], depth: int) -> Any:
        kind, value = tree["$scalar"], tree["value"]
        if not isinstance(kind, str) or not DTYPE.fullmatch(kind):
            raise TypeError("it holds a number of an unknown type")
        dtype = np.dtype(kind).newbyteorder("=")
        if dtype.kind == "f" and isinstance(value, str):
            value = _ODD[value]
        allowed = {"b": bool, "f": float, "U": str, "S": str}.get(dtype.kind, int)
        if type(value) is not allowed:
            raise TypeError(f"it holds a {type(value).__name__} as a number of type {kind}")
        if dtype.kind == "S":
            return np.bytes_(str(value).encode("latin-1"))
        if dtype.kind in "mM":
            return np.array(value, dtype=np.int64).view(dtype)[()]
        return dtype.type(value)

    def _array(self, tree: dict[str, Any], depth: int) -> Any:
        index = tree["$array"]
        if type(index) is not int or not 0 <= index < len(self._arrays):
            raise ValueError(f"it asks for another array than the {len(self._arrays)} there are")
        array = self._arrays[index]
        if index in self._mentioned:
            self._allowance -= array.nbytes
        if self._allowance < 0:
            raise ValueError("it mentions large arrays again and again")
        self._mentioned.add(index)
        return array

    def _array_of_items(self, tree: dict[str, Any], depth: int) -> Any:
        items, shape = self._list(tree["$items"], depth), tree["shape"]
        good = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        if not good or math.prod(shape) != len(items):
            raise ValueError("it holds an array of items that do not fill its shape")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # an assignment of all at once would open lists
            array[i] = item
        return array.reshape(shape)

    def _instance(self, tree: dict[str, Any], depth: int) -> Any:
        name, given = tree["$class"], tree["fields"]
        if not isinstance(name, str) or not isinstance(given, dict):
            raise TypeError("it holds an instance without a class or fields")
        return put_together(name, {k: self.decode(v, depth + 1) for k, v in given.items()})
