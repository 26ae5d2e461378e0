"""What the columns of a table mean: which hold labels, levels, ids, weights and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, no_column, raise_all, shown
from polyfid.tables.places import RowPlaces, WrongCells
from polyfid.text import name_few

#: Columns of these names say who gave a label; they are features only if asked for.
ANNOTATORS = ("worker", "annotator")


@dataclass(frozen=True)
class Roles:
    """Which column is what.

    Parameters
    ----------
    target : str
        The labels.
    fidelity : str
        The level of trust of each row.
    id : str, optional
        Names of the rows; ``id`` if there is such a column.
    weight : str, optional
        A row of weight 2 counts as two rows; ``weight`` if there is such a column.
    features : sequence of str, optional
        Columns to learn from; by default all without another role. Columns without a name (an
        index that was saved with the table) and those that say who gave a label (``worker``,
        ``annotator``) are features only if they are named here.
    categorical : sequence of str
        Features to be taken as categories though they look like numbers.
    levels : sequence of str, optional
        Names of the levels, least trusted first.

    Examples
    --------
    >>> from polyfid.tables import Roles
    >>> Roles(target="feasible", levels=["simulation", "experiment"]).levels
    ('simulation', 'experiment')
    """

    target: str = "label"
    fidelity: str = "fidelity"
    id: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("features", "categorical", "levels"):
            value: Any = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, str):
                raise ValueError(
                    f"{name} must be a list of names, such as [{value!r}]; got a string"
                )
            names = tuple(str(v) for v in value)
            if len(set(names)) < len(names):
                raise ValueError(f"{name} must be distinct names; got {list(names)}")
            object.__setattr__(self, name, names)
        if self.features is not None and not self.features:
            raise ValueError("features must be at least one name, or None for all columns; got []")
        single = {n: getattr(self, n) for n in ("target", "fidelity", "id", "weight")}
        taken: dict[str, str] = {}
        for role, column in single.items():
            if column is None:
                continue
            if column in taken:
                raise ValueError(f"{role} and {taken[column]} are both column {column!r}")
            taken[column] = role
        for column in (*(self.features or ()), *self.categorical):
            if column in taken:
                raise ValueError(
                    f"column {column!r} is the {taken[column]}; it cannot be a feature"
                )
        if self.features is not None:
            beside = [c for c in self.categorical if c not in self.features]
            if beside:
                raise ValueError(f"categorical names {beside[0]!r}, which is not among features")


def find_columns(frames: Sequence[pd.DataFrame], roles: Roles, tidy: bool) -> Roles:
    """The roles, with id and weight where there are such columns; an error names absent columns.

    Tidy tables have a column of levels.
    """
    features = {*(roles.features or ()), *roles.categorical}
    taken = {roles.target, roles.fidelity, *features}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        if getattr(roles, role) is None and everywhere and role not in taken:
            roles = replace(roles, **{role: role})  # type: ignore[arg-type]
    wanted = {roles.target: (" of labels", "name another one as target (--target)")}
    if tidy:
        wanted[roles.fidelity] = (
            " of levels of trust",
            "name another one as fidelity (--fidelity), or give one table per level "
            "(--level NAME=FILE)",
        )
    if roles.id:
        wanted[roles.id] = (" of ids", "")
    if roles.weight:
        wanted[roles.weight] = (" of weights", "")
    wanted |= dict.fromkeys(sorted(features), (", which is to be a feature", ""))
    raise_all(
        [
            no_column(name, frame.columns, RowPlaces.of(frame).file, *words)
            for frame in frames
            for name, words in wanted.items()
            if name not in frame.columns
        ]
    )
    return roles


def find_features(
    frames: Sequence[pd.DataFrame], roles: Roles
) -> tuple[list[str], tuple[str, ...]]:
    """Columns to learn from, which all tables must have, and columns without any role."""
    every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    others = {roles.target, roles.fidelity, roles.id, roles.weight}
    if roles.features is not None:
        names = list(roles.features)
    else:
        # An id or a weight that only some of the tables have is no feature either.
        others |= {name for name in ("id", "weight") if name not in roles.categorical}
        spare = {n for n in every if n.startswith("unnamed_") or n in ANNOTATORS}
        names = [n for n in every if n not in others and n not in spare - {*roles.categorical}]
        raise_all(
            [
                no_column(
                    name,
                    frame.columns,
                    RowPlaces.of(frame).file,
                    f", which {_holder(frames, name)} has",
                    "name the features that all tables have (--features)",
                )
                for frame in frames
                for name in names
                if name not in frame.columns
            ]
        )
    if not names:
        raise TableError(
            f"there is no column to learn from, only {name_few(frames[0].columns)}",
            path=RowPlaces.of(frames[0]).file,
        )
    return names, tuple(n for n in every if n not in others and n not in names)


def _holder(frames: Sequence[pd.DataFrame], name: str) -> str | None:
    return next(RowPlaces.of(frame).file for frame in frames if name in frame.columns)


class TypeConflict:
    """A column of numbers in one table and of text in another, which is refused."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_numbers = False
        self._file_of_numbers: str | None = None
        self._text = WrongCells()

    def add(self, frame: pd.DataFrame) -> None:
        """Take rows of a table into account."""
        values = frame[self._name]
        if values.dtype.kind in "fiu":
            if not self._has_numbers and values.notna().any():
                self._has_numbers, self._file_of_numbers = True, RowPlaces.of(frame).file
        elif not self._text:  # the first one is named
            self._text.add(frame, to_numbers(values)[1])

    def check(self) -> None:
        """Raise an error if there is a conflict."""
        if self._has_numbers and self._text:
            raise self._text.error(
                self._name,
                f"{shown(self._text.first(self._name).iloc[0])} is not a number, and in "
                f"{self._file_of_numbers} the column is of numbers; correct it, or name the "
                "column as categorical (--categorical)",
            )
