"""Values to JSON and a list of arrays, and back; no code is stored, and none is run.

None, booleans, integers, finite floats, strings, lists and dicts of string keys are JSON already.
Anything else is an object with one key, the tag, which begins with a dollar sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.model_files.registry import fields_of, make_instance, name_of

#: Values are nested no deeper than this; it allows for a sum of as many kernels.
MAX_DEPTH = 100
#: Bytes of arrays that even a small file may refer to more than once.
MAX_REPEATED = 64 << 20
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Encoder:
    """Turns values into JSON; ``arrays`` collects names and arrays, each array once."""

    def __init__(self) -> None:
        # The arrays are kept, so that no other one can have the same id.
        self.arrays: list[tuple[str, NDArray[Any]]] = []
        self._places: dict[int, int] = {}

    def encode(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """The JSON of a value; ``path`` says where it is, for messages and names of arrays."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{path} is nested more than {MAX_DEPTH} deep and cannot be saved")
        if value is None or type(value) in (bool, int, str):
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
            if all(type(key) is str and not key.startswith("$") for key in value):
                return self._fields(value, path, depth)
            return {"$dict": [self._items(pair, path, depth) for pair in value.items()]}
        if isinstance(value, np.generic):
            return {"$scalar": self._array(np.asarray(value), path, depth)}
        if type(value) is np.ndarray:
            return self._array(value, path, depth)
        name = name_of(type(value))
        if name is None:
            raise TypeError(
                f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which a model "
                "file cannot hold; register it with polyfid.model_files.register if it is a "
                "frozen dataclass, or use joblib.dump, which takes anything"
            )
        return {"$class": [name, self._fields(fields_of(value), path, depth)]}

    def _fields(self, values: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        dot = "." if path else ""
        return {k: self.encode(v, f"{path}{dot}{k}", depth + 1) for k, v in values.items()}

    def _items(self, values: Iterable[Any], path: str, depth: int) -> list[Any]:
        return [self.encode(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(values)]

    def _array(self, value: NDArray[Any], path: str, depth: int) -> Any:
        if value.dtype.kind == "O":
            items = self._items(value.ravel().tolist(), path, depth)
            return {"$items": [list(value.shape), items]}
        if id(value) not in self._places:
            self._places[id(value)] = len(self.arrays)
            self.arrays.append((path, value))
        return {"$array": self._places[id(value)]}


class Decoder:
    """Turns JSON into values again."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self._arrays = arrays
        # Classes may copy an array each time that the file refers to it: few repeats are allowed.
        self._used: set[int] = set()
        self._allowance = sum(a.nbytes for a in arrays) + MAX_REPEATED
        self._tags: dict[str, Callable[[Any, int], Any]] = {
            "$tuple": lambda content, depth: tuple(self._list(content, depth)),
            "$dict": lambda content, depth: dict(self._list(content, depth)),
            "$float": lambda content, depth: _NOT_FINITE[content],
            "$bytes": lambda content, depth: content.encode("latin-1"),
            "$scalar": lambda content, depth: self.decode(content, depth + 1).reshape(())[()],
            "$array": lambda content, depth: self._array(content),
            "$items": self._object_array,
            "$class": self._instance,
        }

    def decode(self, tree: Any, depth: int = 0) -> Any:
        """The value of a tree of JSON."""
        if depth > 2 * MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(tree, list):
            return self._list(tree, depth)
        if not isinstance(tree, dict):
            return tree
        tag = next((key for key in tree if key.startswith("$")), None)
        if tag is None:
            return {key: self.decode(value, depth + 1) for key, value in tree.items()}
        if tag not in self._tags or len(tree) > 1:
            raise ValueError(f"it holds an object with the tag {tag[:60]!r}, which has no meaning")
        return self._tags[tag](tree[tag], depth)

    def _list(self, items: Any, depth: int) -> list[Any]:
        if not isinstance(items, list):
            raise TypeError(f"it holds a {type(items).__name__} in place of a list")
        return [self.decode(item, depth + 1) for item in items]

    def _array(self, index: Any) -> NDArray[Any]:
        if type(index) is not int or not 0 <= index < len(self._arrays):
            raise ValueError(f"it refers to an array beyond the {len(self._arrays)} that it has")
        array = self._arrays[index]
        if index in self._used:
            self._allowance -= array.nbytes
        if self._allowance < 0:
            raise ValueError("it refers to large arrays again and again")
        self._used.add(index)
        return array

    def _object_array(self, content: Any, depth: int) -> NDArray[Any]:
        shape, items = content
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(self._list(items, depth + 1)):  # all at once would unpack lists
            array[i] = item
        return array.reshape(shape)

    def _instance(self, content: Any, depth: int) -> Any:
        name, fields = content
        return make_instance(name, {k: self.decode(v, depth + 1) for k, v in fields.items()})
