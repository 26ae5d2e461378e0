"""Labels, levels, weights and ids: the columns of a table that are no features."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.cells import plain_text, to_numbers
from polyfid.tables.errors import TableError, listed, shown
from polyfid.tables.origin import Wrong
from polyfid.tables.roles import Roles

#: More different labels than this, if they have decimals, are measurements and not classes.
MOST_FRACTIONS = 20


class PartReader:
    """Labels, levels and weights of one table, read whole or block after block.

    Parameters
    ----------
    roles : Roles
    level : str, optional
        Of all rows, if the table is that of one level.
    """

    def __init__(self, roles: Roles, level: str | None) -> None:
        self._roles, self._level = roles, level
        self._no_label, self._no_level, self._other_level = Wrong(), Wrong(), Wrong()
        self._no_weight, self._unknown = Wrong(), Wrong()

    def __call__(
        self, frame: pd.DataFrame
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Labels and levels as text, None where they are missing, and weights."""
        roles, level = self._roles, self._level
        label = _texts(frame[roles.target])
        self._no_label.see(frame, _is_none(label))
        if level is None:
            fidelity = as_names(_texts(frame[roles.fidelity]))
            self._no_level.see(frame, _is_none(fidelity))
        else:
            fidelity = np.full(len(frame), level, dtype=object)
            if roles.fidelity in frame.columns:
                said = as_names(_texts(frame[roles.fidelity]))
                self._other_level.see(frame, ~_is_none(said) & (said != level))
        weight = np.ones(len(frame))
        if roles.weight is not None:
            weight, _ = to_numbers(frame[roles.weight])
            with np.errstate(invalid="ignore"):
                self._no_weight.see(frame, ~(np.isfinite(weight) & (weight >= 0.0)))
        return label, fidelity, weight

    def check_levels(
        self, frame: pd.DataFrame, fidelity: NDArray[Any], levels: Collection[str]
    ) -> None:
        """Remember levels of rows that are not among those there are."""
        self._unknown.see(frame, ~pd.Series(fidelity).isin([*levels, None]).to_numpy())

    def errors(self) -> list[TableError]:
        """What is wrong with the cells."""
        roles, made = self._roles, []
        for wrong, column, what in (
            (self._no_label, roles.target, "no label"),
            (self._no_level, roles.fidelity, "no level of trust"),
        ):
            if wrong:
                others = wrong.more(", nor has one after it", ", nor have {} rows after it")
                advice = "fill it in, or leave the row out"
                made.append(wrong.error(column, f"the row has {what}{others}; {advice}"))
        if self._other_level:
            said = as_names(_texts(self._other_level.cells(roles.fidelity)))[0]
            text = f"the level is {shown(said)}, and the table is that of level {self._level!r}"
            made.append(self._other_level.error(roles.fidelity, text))
        if self._no_weight and roles.weight is not None:
            cell = self._no_weight.cells(roles.weight).iloc[0]
            text = "the row has no weight" if pd.isna(cell) else f"{shown(cell)} is not a weight"
            text += "; weights are numbers from 0, which leaves a row out"
            made.append(self._no_weight.error(roles.weight, text))
        return made

    def level_errors(self, levels: Collection[str]) -> list[TableError]:
        """Complaints of levels that are not among those there are."""
        if not self._unknown:
            return []
        fidelity = self._roles.fidelity
        said = as_names(_texts(self._unknown.cells(fidelity)))[0]
        text = f"the level {shown(said)} is not among {listed(levels)}"
        text += "; correct it, or name all levels, least trusted first (--levels)"
        return [self._unknown.error(fidelity, text)]


def read_ids(frame: pd.DataFrame, name: str) -> NDArray[np.str_]:
    """Names of rows, empty where they have none."""
    return np.array(["" if t is None else t for t in _texts(frame[name])], dtype=str)


def _is_none(texts: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(pd.isna(texts))


def _texts(values: pd.Series) -> NDArray[Any]:
    """Cells as text without blanks around it, None where they are missing."""
    codes, uniques = pd.factorize(values)
    texts = [plain_text(u) for u in uniques.tolist()]
    return np.array([*(t or None for t in texts), None], dtype=object)[codes]


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
    codes, present = pd.factorize(texts)
    plain = [t.removesuffix(".0") if _whole(np.array([t], dtype=object)) else t for t in present]
    return np.array([*plain, None], dtype=object)[codes]


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


def check_classes(
    distinct: Sequence[Any], path: str | None, roles: Roles, errors: list[TableError]
) -> None:
    """Complain about labels that are measurements."""
    if len(distinct) > MOST_FRACTIONS and isinstance(distinct[0], str):
        numbers, wrong = to_numbers(pd.Series(distinct))
        if not wrong.any() and (numbers != np.round(numbers)).any():
            errors.append(
                TableError(
                    f"there are {len(distinct)} different labels, such as {listed(distinct[:3])}: "
                    "measurements, not classes; put classes in, such as above and below a limit",
                    path=path,
                    column=roles.target,
                )
            )
