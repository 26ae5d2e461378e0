"""The classes that a file may hold: an explicit list, each rebuilt from its named fields only."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

Fields = dict[str, Any]
Registered = TypeVar("Registered", bound=type)


@dataclass(frozen=True)
class Entry:
    """How instances of a class come apart into fields, and together again."""

    cls: type
    take: Callable[[Any], Fields]
    make: Callable[[Fields], Any]


_BY_NAME: dict[str, Entry] = {}
_BY_CLASS: dict[type, str] = {}
#: Places of classes that are not imported yet, by name, and the modules that enter them.
_LATE: dict[str, str] = {}
_HOMES: dict[str, str] = {}


def register(cls: Registered) -> Registered:
    """Let a frozen dataclass be part of a saved model; use it as a decorator.

    The class is stored under its bare name, with the fields of its ``__init__``. Fields are checked
    against their annotations on the way in and out. A field that is added later needs a default,
    so that older files can be read.

    Parameters
    ----------
    cls : type
        A frozen dataclass whose fields hold what can be saved: None, truth values, numbers,
        strings, bytes, lists, tuples, dicts, arrays and instances of registered classes.

    Returns
    -------
    cls

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
    frozen = dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not frozen:
        raise TypeError(f"register takes a frozen dataclass, got {cls!r}; decorate it as one first")

    def take(value: Any) -> Fields:
        return {f.name: getattr(value, f.name) for f in _init_fields(cls)}

    def make(given: Fields) -> Any:
        return cls(**given)

    enter(cls.__name__, Entry(cls, take, make))
    return cls


def enter(name: str, entry: Entry) -> None:
    """Put a class on the list, under a name that no other class has."""
    known = _BY_NAME.get(name)
    place = _LATE.get(name) if known is None else _place(known.cls)
    if place not in (None, _place(entry.cls)):
        raise ValueError(
            f"the name {name!r} is taken by {place}, and {_place(entry.cls)} would be "
            "read as it; rename the class"
        )
    _BY_NAME[name] = entry
    _BY_CLASS[entry.cls] = name


def enter_late(name: str, place: str, home: str) -> None:
    """Put a class on the list that the module ``home`` enters; imported when one is met."""
    _LATE[name], _HOMES[place] = place, home


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def take_apart(value: Any) -> tuple[str, Fields] | None:
    """The registered name and the fields of an instance; None if its class is not on the list."""
    cls = type(value)
    if cls not in _BY_CLASS and _place(cls) in _HOMES:
        import_module(_HOMES[_place(cls)])
    name = _BY_CLASS.get(cls)  # by exact type: a subclass may hold more
    if name is None:
        return None
    entry = _BY_NAME[name]
    given = entry.take(value)
    _check_fields(name, entry.cls, given)
    return name, given


def put_together(name: str, given: Fields) -> Any:
    """An instance of the class of that name from its fields."""
    if name not in _BY_NAME and name in _LATE:
        import_module(_HOMES[_LATE[name]])
    entry = _BY_NAME.get(name)
    if entry is None:
        raise ValueError(
            f"it holds a {name!r}, which this version of polyfid does not know; update polyfid, or "
            "import the module that registers the class"
        )
    _check_fields(name, entry.cls, given)
    return entry.make(given)


def _init_fields(cls: type) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(cls) if f.init]


@cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # types that are imported for type checkers only
        return {}


def _check_fields(name: str, cls: type, given: Fields) -> None:
    """Names and types of the fields of a dataclass; other classes look at theirs themselves."""
    if not dataclasses.is_dataclass(cls):
        return
    known = {f.name: f for f in _init_fields(cls)}
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"{name} has no field {unknown[0]!r}")
    hints = _hints(cls)
    for field in known.values():
        if field.name not in given:
            if field.default is field.default_factory is dataclasses.MISSING:
                raise ValueError(f"{name} lacks its field {field.name!r}")
        elif not fits(given[field.name], hints.get(field.name, Any)):
            raise TypeError(
                f"{name}.{field.name} is to be {field.type}, not {_short(given[field.name])}"
            )


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    shown = repr(value) if isinstance(value, int | float | str | None) else type(value).__name__
    return shown if len(shown) < 60 else f"{shown[:60]}..."


#: Numbers of numpy stand for those of Python, and whole ones for any.
_NUMBERS: dict[type, tuple[type, ...]] = {
    float: (float, int, np.floating, np.integer),
    int: (int, np.integer),
    bool: (bool, np.bool_),
}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; what the annotation leaves open fits.

    Examples
    --------
    >>> from polyfid.model_files.registry import fits
    >>> fits((1.0, 2.0), tuple[float, ...]), fits((1.0, "2"), tuple[float, ...])
    (True, False)
    """
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint in _NUMBERS:
        truth = isinstance(value, bool | np.bool_)
        return isinstance(value, _NUMBERS[hint]) and truth == (hint is bool)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return isinstance(value, hint) if isinstance(hint, type) else True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is typing.Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if not isinstance(origin, type):
        return True
    return isinstance(value, origin) and _contents_fit(value, origin, args)


def _contents_fit(value: Any, origin: type, args: tuple[Any, ...]) -> bool:
    if issubclass(origin, np.ndarray):
        (kind,) = typing.get_args(args[-1]) or (Any,)  # of dtype[kind]
        if kind is Any or not isinstance(kind, type):
            return True
        # Whole numbers of any size: that of an index depends on the machine.
        kind = np.integer if issubclass(kind, np.integer) else kind
        return np.issubdtype(value.dtype, kind)
    if issubclass(origin, tuple) and args[-1:] != (...,):
        return len(value) == len(args) and all(map(fits, value, args))
    if issubclass(origin, Mapping):
        return all(fits(k, args[0]) and fits(v, args[1]) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(fits(item, args[0]) for item in value)
    return True
