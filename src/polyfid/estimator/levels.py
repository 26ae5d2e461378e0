"""Levels of fidelity: their names, and the order of trust."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyfid.rows.survey import Levels as Levels
from polyfid.values import concat, order_of_trust, to_python


class FidelityArray(np.ndarray):
    """An array of level names that remembers their order, least trusted first.

    `stack_levels` returns one; slicing keeps the order, so that ``levels`` need not be repeated.
    """

    levels: Levels | None

    def __new__(cls, values: ArrayLike, levels: Sequence[Any] | None = None) -> FidelityArray:
        array = np.asarray(values).view(cls)
        array.levels = None if levels is None else tuple(levels)
        return array

    def __array_finalize__(self, source: object) -> None:
        levels, names = getattr(source, "levels", None), getattr(source, "dtype", self.dtype)
        # What a comparison gives are no names of levels.
        self.levels = None if self.dtype.kind == "b" != names.kind else levels

    def __reduce__(self) -> Any:
        return FidelityArray, (np.asarray(self), self.levels)


def stack_levels(data: Mapping[Any, tuple[Any, Any]]) -> tuple[Any, NDArray[Any], FidelityArray]:
    """Join one (X, y) per level, the least trusted first, into one X, y and fidelity.

    Parameters
    ----------
    data : mapping of level name to (X, y)
        The order of the mapping is the order of trust, least trusted first. The X are all arrays
        or all data frames with the same columns. The y of a level may be numbers, see
        ``numeric_levels`` of `polyfid.MultiFidelityClassifier`.

    Returns
    -------
    X, y, fidelity
        X is a data frame if data frames came in. ``fidelity`` remembers the order of the levels.
        y is an array of objects where some levels have floats and others text. Booleans beside
        floats become 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import stack_levels
    >>> X, y, fidelity = stack_levels(
    ...     {"simulation": (np.zeros((3, 2)), [0, 1, 1]), "experiment": (np.ones((1, 2)), [1])}
    ... )
    >>> X.shape, fidelity.levels
    ((4, 2), ('simulation', 'experiment'))
    """
    if not isinstance(data, Mapping) or not data:
        raise ValueError(
            "data must be a mapping of level name to (X, y) with at least one level, "
            f"got {type(data).__name__}"
        )
    xs, ys, names = [], [], []
    for name, pair in data.items():
        try:
            x, y = pair
        except (TypeError, ValueError):
            raise ValueError(f"data[{name!r}] must be a pair (X, y)") from None
        if len(x) != len(y):
            raise ValueError(
                f"data[{name!r}]: X has {len(x)} rows and y has {len(y)}; "
                "they must have equal length"
            )
        xs.append(x)
        ys.append(np.asarray(y))
        names.append(np.full(len(y), name))
    as_column(list(data), "data")  # names of one type
    fidelity = FidelityArray(np.concatenate(names), tuple(data))
    return _stack(xs), _stack_targets([y for y in ys if len(y)] or ys), fidelity


def _stack_targets(ys: list[NDArray[Any]]) -> NDArray[Any]:
    """Classes of levels, or numbers of some: objects where they would turn into each other."""
    kinds = {y.dtype.kind for y in ys}
    if "f" in kinds and kinds & set("OUST"):
        return np.concatenate([y.astype(object) for y in ys])
    if len({kind in "OUST" for kind in kinds}) > 1:
        raise ValueError(
            "the y of some levels hold strings and those of others whole numbers; name the classes "
            "alike, or turn what is measured into floats and name its levels with numeric_levels="
        )
    return np.concatenate(ys)


def _stack(xs: list[Any]) -> Any:
    columns = [None if (c := getattr(x, "columns", None)) is None else list(c) for x in xs]
    if any(c != columns[0] for c in columns):
        raise ValueError(f"the levels must have the same columns in the same order, got {columns}")
    if columns[0] is None:
        widths = {np.asarray(x).shape[1:] for x in xs}
        if len(widths) > 1:
            raise ValueError(f"the levels must have the same features, got shapes {sorted(widths)}")
        return np.concatenate([np.asarray(x) for x in xs])
    return concat(xs)


def declared_order(fidelity: object) -> Levels | None:
    """The order a container carries: a `FidelityArray`, or an ordered pandas or polars column."""
    levels = getattr(fidelity, "levels", None)
    if isinstance(levels, tuple):
        return levels
    dtype: Any = getattr(fidelity, "dtype", None)
    ordered = getattr(dtype, "ordered", type(dtype).__name__ == "Enum")
    return tuple(dtype.categories) if ordered else None


def order_levels(
    fidelity: object, levels: Iterable[Any] | None = None, is_part: bool = False
) -> Levels:
    """Names of the levels, least trusted first.

    ``levels`` if given, else the order that ``fidelity`` carries, else sorted numbers. Text has no
    order, which is an error unless this is a part of the rows only (``is_part``).
    """
    if levels is not None:
        return _read_names(levels)
    values, counts = np.unique(as_column(fidelity), return_counts=True)
    declared = declared_order(fidelity)
    if declared is not None:
        return tuple(map(to_python, declared))
    names = [to_python(v) for v in values]
    if is_part:
        return tuple(names)
    return order_of_trust(dict(zip(names, counts.tolist(), strict=True)), levels_argument)


def levels_argument(names: Sequence[Any]) -> str:
    """The argument that gives levels an order."""
    return f"levels={list(names)}"


def _read_names(levels: Iterable[Any]) -> Levels:
    # A string would fall into letters, a set has no order, an iterator is empty at the next fit.
    if isinstance(levels, Iterable) and not isinstance(levels, str | bytes | Set | Iterator):
        try:
            names = tuple(to_python(v) for v in levels)
            if names and len(set(names)) == len(names):
                return names
        except TypeError:
            pass  # names that cannot be hashed
    raise ValueError(
        "levels must be distinct names in a list, least trusted first, such as "
        f'["crowd", "expert"]; got {levels!r}'
    )


def encode_levels(fidelity: object, names: Levels, what: str = "fidelity") -> NDArray[np.intp]:
    """Integers from 0 of the level of each row."""
    index = {name: t for t, name in enumerate(names)}
    values = as_column(fidelity, what)
    present, inverse = np.unique(values, return_inverse=True)
    unknown = [to_python(v) for v in present if to_python(v) not in index]
    if unknown:
        shown = ", ".join(map(repr, unknown[:5])) + ", ..." * (len(unknown) > 5)
        raise ValueError(
            f"{what} has unknown level(s) [{shown}]; the levels are {list(names)} "
            "(least trusted first); name all levels with levels= where some have no rows"
        )
    codes = np.array([index[to_python(v)] for v in present], dtype=np.intp)
    return codes[inverse.reshape(-1)]


def as_column(values: object, what: str = "fidelity") -> NDArray[Any]:
    """A flat array of names, of levels or otherwise, that can be sorted."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(
            f"{what} must be one-dimensional, one entry per row; got shape {column.shape}"
        )
    if not isinstance(values, list | tuple) and column.dtype.kind in "biuUS":
        return column
    # As an array, a list that mixes strings and numbers would be all strings.
    entries = list(values) if isinstance(values, list | tuple) else column.tolist()
    missing = [i for i, v in enumerate(entries) if is_missing(v)]
    if missing:
        raise ValueError(
            f"{what} has missing or infinite values (first in row {missing[0]}); give every row "
            "one, or drop the rows"
        )
    try:
        sorted(set(entries))
    except TypeError:
        kinds = {"number" if isinstance(v, Real) else type(v).__name__ for v in entries}
        raise ValueError(
            f"{what} mixes values of types {sorted(kinds)}, which cannot be ordered; use one "
            "type, such as strings"
        ) from None
    return np.array(entries) if column.dtype.kind == "O" else column


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, infinite or what pandas has for them."""
    if isinstance(value, float | np.floating):
        return not np.isfinite(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")
