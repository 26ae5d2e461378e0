"""The classes that a model file may hold, by name; imported when a file has one."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

Fields = dict[str, Any]
Registered = TypeVar("Registered", bound=type)

#: The name in files, which must never change, and the module and class, which may.
CLASSES = {
    # kernels
    "RBF": "polyfid.kernels.stationary:RBF",
    "Matern12": "polyfid.kernels.stationary:Matern12",
    "Matern32": "polyfid.kernels.stationary:Matern32",
    "Matern52": "polyfid.kernels.stationary:Matern52",
    "RationalQuadratic": "polyfid.kernels.stationary:RationalQuadratic",
    "Linear": "polyfid.kernels.linear:Linear",
    "Categorical": "polyfid.kernels.categorical:Categorical",
    "Constant": "polyfid.kernels.leaf:Constant",
    "White": "polyfid.kernels.leaf:White",
    "Sum": "polyfid.kernels.combine:Sum",
    "Product": "polyfid.kernels.combine:Product",
    # kernels of scikit-learn, and what makes one of them a kernel of polyfid
    "SklearnKernel": "polyfid.kernels.sklearn:SklearnKernel",
    "sklearn.ConstantKernel": "sklearn.gaussian_process.kernels:ConstantKernel",
    "sklearn.DotProduct": "sklearn.gaussian_process.kernels:DotProduct",
    "sklearn.ExpSineSquared": "sklearn.gaussian_process.kernels:ExpSineSquared",
    "sklearn.Exponentiation": "sklearn.gaussian_process.kernels:Exponentiation",
    "sklearn.Matern": "sklearn.gaussian_process.kernels:Matern",
    "sklearn.PairwiseKernel": "sklearn.gaussian_process.kernels:PairwiseKernel",
    "sklearn.Product": "sklearn.gaussian_process.kernels:Product",
    "sklearn.RBF": "sklearn.gaussian_process.kernels:RBF",
    "sklearn.RationalQuadratic": "sklearn.gaussian_process.kernels:RationalQuadratic",
    "sklearn.Sum": "sklearn.gaussian_process.kernels:Sum",
    "sklearn.WhiteKernel": "sklearn.gaussian_process.kernels:WhiteKernel",
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
    "Sites": "polyfid.inference.sites:Sites",
    "Report": "polyfid.inference.loop:Report",
    "Posterior": "polyfid.inference.posterior:Posterior",
    "Cholesky": "polyfid.inference.linalg:Cholesky",
    "Indefinite": "polyfid.inference.linalg:Indefinite",
    "Inducing": "polyfid.inference.inducing:Inducing",
    "SparseBelief": "polyfid.inference.sparse_belief:SparseBelief",
    "SparsePosterior": "polyfid.inference.sparse_posterior:SparsePosterior",
    # learning
    "Climb": "polyfid.learning.climb:Climb",
    "Optimum": "polyfid.learning.climb:Optimum",
    "BinaryFit": "polyfid.learning.mixture:BinaryFit",
    "Member": "polyfid.learning.mixture:Member",
    "Mixture": "polyfid.learning.mixture:Mixture",
    # the estimator and tables
    "FidelityColumn": "polyfid.estimator.inputs:FidelityColumn",
    "ClassifierState": "polyfid.estimator.state:ClassifierState",
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
        fields = {field.name: getattr(value, field.name) for field in _init_fields(cls)}
        _check_fields(cls, fields)
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
    if not dataclasses.is_dataclass(cls) and not hasattr(cls, "get_params"):
        made = cls.__new__(cls)
        made.__setstate__(fields)
        return made
    check = _check_fields if dataclasses.is_dataclass(cls) else _check_parameters
    check(cls, fields)
    return cls(**fields)


def _check_parameters(cls: Any, given: Fields) -> None:
    """Refuse what is not a parameter of a kernel of scikit-learn."""
    if not set(given) <= set(inspect.signature(cls).parameters):
        raise ValueError(f"scikit-learn's {cls.__name__} has other parameters")
    # A metric that is not a string would be a function, which a file never holds.
    if not isinstance(given.get("metric", ""), str):
        raise TypeError(f"the metric of scikit-learn's {cls.__name__} must be a string")


# ------------------------------------------------------------ types of fields


def _init_fields(cls: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.init]


@cache
def _annotations(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # types that are imported for type checkers only
        return {}


def _check_fields(cls: Any, given: Fields) -> None:
    """Refuse missing and unknown fields of a dataclass, and values of other types."""
    fields = {field.name: field for field in _init_fields(cls)}
    if unknown := sorted(set(given) - set(fields)):
        raise ValueError(f"{cls.__name__} has no field {unknown[0][:60]!r}")
    for name, field in fields.items():
        if name not in given:
            if field.default is field.default_factory is dataclasses.MISSING:
                raise ValueError(f"{cls.__name__} lacks its field {name!r}")
        elif not fits(given[name], _annotations(cls).get(name, Any)):
            raise TypeError(
                f"{cls.__name__}.{name} must be {field.type}, not {_short(given[name])}"
            )


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    shown = repr(value) if isinstance(value, int | float | str | None) else type(value).__name__
    return shown if len(shown) < 60 else f"{shown[:60]}..."


#: Types whose values may be other types' as well: an integer is a float, numpy's are Python's.
_NUMBERS: dict[Any, tuple[type, ...]] = {
    float: (float, int, np.floating, np.integer),
    int: (int, np.integer),
    bool: (bool, np.bool_),
}


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type, as far as the annotation says.

    Examples
    --------
    >>> from polyfid.model_files.registry import fits
    >>> fits((1.0, 2.0), tuple[float, ...]), fits((1.0, "2"), tuple[float, ...])
    (True, False)
    """
    if annotation is None:
        return value is None
    if annotation in _NUMBERS:
        boolean = isinstance(value, bool | np.bool_)
        return isinstance(value, _NUMBERS[annotation]) and boolean == (annotation is bool)
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
