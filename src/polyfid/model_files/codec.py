"""Values to JSON and a list of arrays, and back; no code is stored, and none is run.

None, booleans, integers, finite floats, strings, lists and dicts of string keys are JSON already.
Anything else is an object with one key, the tag, which begins with a dollar sign.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

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
        return {"$class": [name, self._fields(_fields_of(value), path, depth)]}

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
        return array.reshape(tuple(shape))

    def _instance(self, content: Any, depth: int) -> Any:
        name, fields = content
        if name not in _REGISTERED and name not in CLASSES:
            raise ValueError(
                f"it holds a {name[:60]!r}, which this version of polyfid does not have; update "
                "polyfid, or import the module that registers the class"
            )
        cls: Any = _REGISTERED[name] if name in _REGISTERED else find(CLASSES[name])
        values = {k: self.decode(v, depth + 1) for k, v in fields.items()}
        if dataclasses.is_dataclass(cls) or hasattr(cls, "get_params"):
            _check_types(cls, values)
            return cls(**values)
        made = cls.__new__(cls)
        made.__setstate__(values)
        return made


# ------------------------------------------------------------- registered classes

Registered = TypeVar("Registered", bound=type)

#: Where the classes are. A class that moves to another module is still the same in files; one that
#: gets another name needs an entry of its own in CLASSES.
_MODULES = {
    "polyfid.arrays": "Scale",
    "polyfid.kernels.columnwise": (
        "Additive Categorical Laplacian Linear Matern12 Matern32 Matern52 RBF RationalQuadratic"
    ),
    "polyfid.kernels.contract": "Product Sum",
    "polyfid.kernels.leaf": "Constant Intercept White",
    "polyfid.kernels.sklearn": "SklearnKernel",
    "polyfid.model.features": "AsGiven Coded Ranked SharedUnit Standardised UnitRows",
    "polyfid.model.likelihoods": "Logit NoisyLogit Parts",
    "polyfid.model.numbers": "Gaussian NumberScale Student",
    "polyfid.model.prior": "Autoregressive Coregional Deviating",
    "polyfid.model.trees": "BoostedMean Margin Trees Turn",
    "polyfid.rows.rows": "Points",
    "polyfid.inference.exact": "Sites",
    "polyfid.inference.inducing": "Inducing SparseBelief",
    "polyfid.inference.linalg": "Cholesky Indefinite",
    "polyfid.inference.loop": "Report",
    "polyfid.inference.posterior": "Posterior SparsePosterior",
    "polyfid.learning.climb": "Climb Optimum",
    "polyfid.learning.mixture": "BinaryFit Calibration Member Mixture",
    "polyfid.learning.spread": "Spread",
    "polyfid.estimator.decisions": "DecisionRule",
    "polyfid.estimator.inputs": "FidelityColumn FitInfo",
    "polyfid.estimator.summary": "ClassifierState",
    "polyfid.tables.roles": "Roles",
    "polyfid.tables.text_column": "TextEncoding",
}
_SKLEARN = "sklearn.gaussian_process.kernels"
_SKLEARN_KERNELS = (
    "ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel Product RBF "
    "RationalQuadratic Sum WhiteKernel"
)
#: The name in files, which must never change, and the module and class, which may.
CLASSES = {
    **{name: f"{place}:{name}" for place, names in _MODULES.items() for name in names.split()},
    **{f"sklearn.{name}": f"{_SKLEARN}:{name}" for name in _SKLEARN_KERNELS.split()},
    "Column": "polyfid.tables.column:ColumnEncoding",
}
#: The kinds of models, and the classes whose ``_restore`` rebuilds one from its state.
KINDS = {
    "classifier": "polyfid.estimator.classifier:MultiFidelityClassifier",
    "table": "polyfid.tables.model:TableModel",
    "study": "polyfid.suggest.study:Study",
}
_NAMES = {place: name for name, place in CLASSES.items()}
_REGISTERED: dict[str, type] = {}


def register(cls: Registered) -> Registered:
    """Let a frozen dataclass be in model files, such as a kernel of your own; a decorator.

    The class is stored under its bare name, with the fields of its ``__init__``, which are checked
    against their annotations when a file is written and read. A field that you add later needs a
    default, so that older files can be read.

    Parameters
    ----------
    cls : type
        A frozen dataclass. Its fields hold None, booleans, numbers, strings, bytes, lists, tuples,
        dicts, arrays and instances of registered classes.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from polyfid.model_files import register
    >>> @register
    ... @dataclass(frozen=True)
    ... class Interval:
    ...     low: float
    ...     high: float = 1.0
    """
    if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(f"register takes a frozen dataclass, got {cls!r}; decorate it as one first")
    name, place = cls.__name__, _place(cls)
    taken = _place(_REGISTERED[name]) if name in _REGISTERED else CLASSES.get(name, place)
    if taken != place:
        raise ValueError(
            f"the name {name!r} belongs to {taken}, and files with {place} would be read as that; "
            "rename the class"
        )
    _REGISTERED[name], _NAMES[place] = cls, name
    return cls


def find(place: str) -> Any:
    """What ``module:name`` says; the module is imported."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def name_of(cls: type) -> str | None:
    """The name of a class in files; None if it has none. Subclasses do not inherit it."""
    return _NAMES.get(_place(cls))


def _fields_of(value: Any) -> dict[str, Any]:
    """What is stored of an instance of a registered class."""
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(cls) if f.init}
        _check_types(cls, fields)
        return fields
    if hasattr(cls, "get_params"):  # a kernel of scikit-learn
        return dict(value.get_params(deep=False))
    return dict(value.__getstate__())


@cache
def _annotations(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # types that are imported for type checkers only
        return {}


def _check_types(cls: Any, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        annotation = _annotations(cls).get(name, Any)
        if not fits(value, annotation):
            shown = inspect.formatannotation(annotation)
            raise TypeError(f"{cls.__name__}.{name} must be {shown}, not {reprlib.repr(value)}")


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type: an integer is a float, numpy's are Python's."""
    if annotation in (float, int):
        number = numbers.Real if annotation is float else numbers.Integral
        return isinstance(value, number) and not isinstance(value, bool)
    if annotation is bool:
        return isinstance(value, bool | np.bool_)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is typing.Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    cls = origin or annotation
    if not isinstance(cls, type) or cls is Any:
        return True
    return isinstance(value, cls) and (not args or _contents_fit(value, cls, args))


def _contents_fit(value: Any, cls: type, args: tuple[Any, ...]) -> bool:
    if issubclass(cls, np.ndarray):
        (kind,) = typing.get_args(args[-1]) or (Any,)  # the argument of dtype[...]
        if kind is Any or not isinstance(kind, type):
            return True
        # Integers of any size fit each other: that of an index depends on the machine.
        return np.issubdtype(value.dtype, np.integer if issubclass(kind, np.integer) else kind)
    if issubclass(cls, tuple) and args[-1] is not ...:
        return len(value) == len(args) and all(map(fits, value, args))
    if issubclass(cls, Mapping):
        return all(fits(k, args[0]) and fits(v, args[1]) for k, v in value.items())
    return not isinstance(value, list | tuple) or all(fits(item, args[0]) for item in value)
