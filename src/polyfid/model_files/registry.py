"""The classes that a model file may hold, by name; imported when a file has one."""

from __future__ import annotations

import dataclasses
import inspect
import numbers
import reprlib
import types
import typing
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

Fields = dict[str, Any]
Registered = TypeVar("Registered", bound=type)

_SKLEARN_KERNELS = (
    *("ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern"),
    *("PairwiseKernel", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
)
#: The name in files, which must never change, and the module and class, which may.
CLASSES = {
    # kernels
    "RBF": "polyfid.kernels.stationary:RBF",
    "Matern12": "polyfid.kernels.stationary:Matern12",
    "Matern32": "polyfid.kernels.stationary:Matern32",
    "Matern52": "polyfid.kernels.stationary:Matern52",
    "RationalQuadratic": "polyfid.kernels.stationary:RationalQuadratic",
    "Linear": "polyfid.kernels.columnwise:Linear",
    "Categorical": "polyfid.kernels.columnwise:Categorical",
    "Constant": "polyfid.kernels.leaf:Constant",
    "White": "polyfid.kernels.leaf:White",
    "Sum": "polyfid.kernels.combine:Sum",
    "Product": "polyfid.kernels.combine:Product",
    # kernels of scikit-learn, and what makes one of them a kernel of polyfid
    "SklearnKernel": "polyfid.kernels.sklearn:SklearnKernel",
    **{f"sklearn.{name}": f"sklearn.gaussian_process.kernels:{name}" for name in _SKLEARN_KERNELS},
    # the model
    "AsGiven": "polyfid.model.features:AsGiven",
    "Coded": "polyfid.model.features:Coded",
    "Ranked": "polyfid.model.features:Ranked",
    "SharedUnit": "polyfid.model.features:SharedUnit",
    "Standardised": "polyfid.model.features:Standardised",
    "UnitRows": "polyfid.model.features:UnitRows",
    "Scale": "polyfid.arrays:Scale",
    "Autoregressive": "polyfid.model.prior:Autoregressive",
    "Coregional": "polyfid.model.prior:Coregional",
    "Logit": "polyfid.model.likelihoods:Logit",
    "NoisyLogit": "polyfid.model.likelihoods:NoisyLogit",
    # inference
    "Points": "polyfid.rows.rows:Points",
    "Sites": "polyfid.inference.exact:Sites",
    "Report": "polyfid.inference.loop:Report",
    "Posterior": "polyfid.inference.posterior:Posterior",
    "Cholesky": "polyfid.inference.linalg:Cholesky",
    "Indefinite": "polyfid.inference.linalg:Indefinite",
    "Inducing": "polyfid.inference.inducing:Inducing",
    "SparseBelief": "polyfid.inference.inducing:SparseBelief",
    "SparsePosterior": "polyfid.inference.posterior:SparsePosterior",
    # learning
    "Climb": "polyfid.learning.climb:Climb",
    "Optimum": "polyfid.learning.climb:Optimum",
    "BinaryFit": "polyfid.learning.mixture:BinaryFit",
    "Member": "polyfid.learning.mixture:Member",
    "Mixture": "polyfid.learning.mixture:Mixture",
    # the estimator and tables
    "FidelityColumn": "polyfid.estimator.inputs:FidelityColumn",
    "FitInfo": "polyfid.estimator.inputs:FitInfo",
    "ClassifierState": "polyfid.estimator.summary:ClassifierState",
    "Column": "polyfid.tables.column:ColumnEncoding",
    "Roles": "polyfid.tables.labelled:Roles",
}
#: The kinds of models, and the classes whose ``_restore`` rebuilds one from its state.
KINDS = {
    "classifier": "polyfid.estimator.classifier:MultiFidelityClassifier",
    "table": "polyfid.tables.model:TableModel",
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


def fields_of(value: Any) -> Fields:
    """What is stored of an instance of a registered class."""
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(cls) if f.init}
        _check_types(cls, fields)
        return fields
    if hasattr(cls, "get_params"):  # a kernel of scikit-learn
        return dict(value.get_params(deep=False))
    return dict(value.__getstate__())


def make_instance(name: str, fields: Fields) -> Any:
    """An instance of a registered class from what was stored of it."""
    if name not in _REGISTERED and name not in CLASSES:
        raise ValueError(
            f"it holds a {name[:60]!r}, which this version of polyfid does not have; update "
            "polyfid, or import the module that registers the class"
        )
    cls: Any = _REGISTERED[name] if name in _REGISTERED else find(CLASSES[name])
    if dataclasses.is_dataclass(cls) or hasattr(cls, "get_params"):
        _check_types(cls, fields)
        return cls(**fields)
    made = cls.__new__(cls)
    made.__setstate__(fields)
    return made


@cache
def _annotations(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # types that are imported for type checkers only
        return {}


def _check_types(cls: Any, fields: Fields) -> None:
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
