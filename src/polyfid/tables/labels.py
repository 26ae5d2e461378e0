"""Labels, levels, weights and ids: the columns of a table that are no features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.cells import plain_text, to_numbers
from polyfid.tables.errors import TableError, listed, shown
from polyfid.tables.origin import Origin, error_at
from polyfid.tables.roles import Roles

#: More different labels than this, if they have decimals, are measurements and not classes.
MOST_FRACTIONS = 20


def read_part(
    frame: pd.DataFrame, roles: Roles, level: str | None, errors: list[TableError]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], NDArray[np.str_]]:
    """Labels, levels, weights and ids of one table, as text."""
    label = _filled(frame, roles.target, "no label", errors)
    if level is None:
        fidelity = _filled(frame, roles.fidelity, "no level of trust", errors)
    else:
        fidelity = np.full(len(frame), level, dtype=object)
        if roles.fidelity in frame.columns:
            said = as_names(_texts(frame[roles.fidelity]))
            other = np.array([s is not None and s != level for s in said], dtype=bool)
            if other.any():
                row = int(np.argmax(other))
                text = f"the level is {shown(said[row])}, and the table is that of level {level!r}"
                errors.append(error_at(frame, row, roles.fidelity, text))
    weight = np.ones(len(frame))
    if roles.weight is not None:
        weight = _read_weight(frame, roles.weight, errors)
    ids = np.full(len(frame), "")
    if roles.id is not None:
        ids = np.array(["" if t is None else t for t in _texts(frame[roles.id])], dtype=str)
    return label, fidelity, weight, ids


def _texts(values: pd.Series) -> NDArray[Any]:
    """Cells as text without blanks around it, None where they are missing."""
    codes, uniques = pd.factorize(values)
    texts = [plain_text(u) for u in uniques.tolist()]
    return np.array([*(t or None for t in texts), None], dtype=object)[codes]


def _filled(frame: pd.DataFrame, name: str, what: str, errors: list[TableError]) -> NDArray[Any]:
    texts = _texts(frame[name])
    empty = np.array([t is None for t in texts], dtype=bool)
    if empty.any():
        more = int(empty.sum()) - 1
        others = f", nor have {more} rows after it" if more > 1 else ", nor has one after it" * more
        text = f"the row has {what}{others}; fill it in, or leave the row out"
        errors.append(error_at(frame, int(np.argmax(empty)), name, text))
    return texts


def _read_weight(frame: pd.DataFrame, name: str, errors: list[TableError]) -> NDArray[np.float64]:
    weight, _ = to_numbers(frame[name])
    with np.errstate(invalid="ignore"):
        wrong = ~(np.isfinite(weight) & (weight >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        cell = frame[name].iloc[row]
        text = "the row has no weight" if pd.isna(cell) else f"{shown(cell)} is not a weight"
        text += "; weights are numbers from 0, which leaves a row out"
        errors.append(error_at(frame, row, name, text))
    return weight


def _whole(texts: NDArray[Any]) -> list[int] | None:
    """Whole numbers, if all texts are, written as numbers are."""
    numbers = []
    for text in texts:
        digits = text.removesuffix(".0").removeprefix("-") if text is not None else ""
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            return None
        if digits != str(int(digits)):  # a leading zero: a name
            return None
        numbers.append(int(text.removesuffix(".0")))
    return numbers


def as_names(texts: NDArray[Any]) -> NDArray[Any]:
    """Names of levels: 1 and 1.0 are one."""
    present = {t for t in texts if t is not None}
    plain = {t: t.removesuffix(".0") if _whole(np.array([t], dtype=object)) else t for t in present}
    return np.array([None if t is None else plain[t] for t in texts], dtype=object)


def as_classes(texts: NDArray[Any]) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as text."""
    distinct = np.array([t for t in dict.fromkeys(texts) if t is not None], dtype=object)
    numbers = _whole(distinct)
    if numbers is None or not len(distinct):
        return np.array(["" if t is None else t for t in texts], dtype=str)
    value = {None: 0, **dict(zip(distinct, numbers, strict=True))}
    return np.array([value[t] for t in texts], dtype=np.int64)


def declared_order(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[str, ...] | None:
    """Levels, least trusted first, as they were given or as an ordered column says."""
    given = [name for name in names if name is not None]
    if roles.levels is not None:
        if given and set(given) != set(roles.levels):
            raise ValueError(
                f"levels and level_files name different levels: {list(roles.levels)} and {given}"
            )
        return roles.levels
    if given:
        return tuple(given)
    dtypes = [frame[roles.fidelity].dtype for frame in frames]
    orders = {
        tuple(map(plain_text, t.categories)) if getattr(t, "ordered", False) else None  # type: ignore[union-attr]
        for t in dtypes
    }
    return orders.pop() if len(orders) == 1 else None


def sorted_levels(fidelity: NDArray[Any]) -> tuple[str, ...]:
    """By number if all are numbers, else by name."""
    names = sorted({name for name in fidelity if name is not None})
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(names)


def check_levels(
    frames: Sequence[pd.DataFrame],
    fidelity: NDArray[Any],
    levels: tuple[str, ...],
    roles: Roles,
    errors: list[TableError],
) -> None:
    """Complain about levels of rows that are not among those there are."""
    unknown = ~pd.Series(fidelity).isin([*levels, None]).to_numpy()
    for start, frame in _starts(frames):
        wrong = unknown[start : start + len(frame)]
        if wrong.any():
            row = int(np.argmax(wrong))
            text = f"the level {shown(fidelity[start + row])} is not among {listed(levels)}"
            text += "; correct it, or name all levels, least trusted first (--levels)"
            errors.append(error_at(frame, row, roles.fidelity, text))


def check_classes(
    frames: Sequence[pd.DataFrame], label: NDArray[Any], roles: Roles, errors: list[TableError]
) -> None:
    """Complain about labels that are measurements."""
    distinct = pd.unique(pd.Series(label)).tolist()
    if label.dtype.kind == "U" and len(distinct) > MOST_FRACTIONS:
        numbers, wrong = to_numbers(pd.Series(distinct))
        if not wrong.any() and (numbers != np.round(numbers)).any():
            errors.append(
                TableError(
                    f"there are {len(distinct)} different labels, such as {listed(distinct[:3])}: "
                    "measurements, not classes; put classes in, such as above and below a limit",
                    path=Origin.of(frames[0]).name,
                    column=roles.target,
                )
            )


def _starts(frames: Sequence[pd.DataFrame]) -> list[tuple[int, pd.DataFrame]]:
    starts = np.cumsum([0, *(len(frame) for frame in frames[:-1])])
    return list(zip(starts.tolist(), frames, strict=True))
