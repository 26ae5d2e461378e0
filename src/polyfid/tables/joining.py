"""Several tables as one: which columns they must have, and their features below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, listed, no_column, raise_all, shown
from polyfid.tables.origin import Origin, Wrong
from polyfid.tables.roles import Roles

#: Columns of these names say who gave a label; nothing is learnt from them unless asked for.
WHO = ("worker", "annotator")


def find_columns(frames: Sequence[pd.DataFrame], roles: Roles, tidy: bool) -> Roles:
    """The roles, with id and weight where such columns are; complains of those that are not."""
    features = {*(roles.features or ()), *roles.categorical}
    taken = {roles.target, roles.fidelity, *features}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        if getattr(roles, role) is None and everywhere and role not in taken:
            roles = replace(roles, **{role: role})  # type: ignore[arg-type]
    errors = []
    for frame in frames:
        path = Origin.of(frame).name
        wanted = {roles.target: (" of labels", "name another one as target (--target)")}
        if tidy:
            wanted[roles.fidelity] = (
                " of levels of trust",
                "name another one as fidelity (--fidelity), or give one table a level "
                "(--level NAME=FILE)",
            )
        if roles.id:
            wanted[roles.id] = (" of ids", "")
        if roles.weight:
            wanted[roles.weight] = (" of weights", "")
        for name in sorted(features):
            wanted[name] = (", which is to be a feature", "")
        errors += [
            no_column(name, frame.columns, path, *words)
            for name, words in wanted.items()
            if name not in frame.columns
        ]
    raise_all(errors)
    return roles


def find_features(
    frames: Sequence[pd.DataFrame], roles: Roles, errors: list[TableError]
) -> tuple[list[str], tuple[str, ...]]:
    """Columns to learn from, which all tables must have, and columns that are nothing."""
    others = {roles.target, roles.fidelity, roles.id, roles.weight}
    if roles.features is not None:
        names = list(roles.features)
    else:
        every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
        # An id or a weight that only some of the tables have is no feature either.
        others |= {name for name in ("id", "weight") if name not in roles.categorical}
        spare = {n for n in every if n.startswith("unnamed_") or n in WHO} - set(roles.categorical)
        names = [n for n in every if n not in others and n not in spare]
        for frame in frames:
            errors += [
                no_column(
                    name,
                    frame.columns,
                    Origin.of(frame).name,
                    f", which {_holder(frames, name)} has",
                    "name the features that all tables have (--features)",
                )
                for name in names
                if name not in frame.columns
            ]
    raise_all(errors)
    if not names:
        raise TableError(
            f"there is no column to learn from, only {listed(frames[0].columns)}",
            path=Origin.of(frames[0]).name,
        )
    seen = {name: None for frame in frames for name in frame.columns}
    return names, tuple(n for n in seen if n not in others and n not in names)


def join_features(
    frames: Sequence[pd.DataFrame], names: Sequence[str], roles: Roles
) -> pd.DataFrame:
    """Features of all tables one below the other."""
    for name in names:
        if name not in roles.categorical:
            types = TypeCheck(name)
            for frame in frames:
                types.see(frame)
            types.check()
    joined = pd.concat([frame[list(names)] for frame in frames], ignore_index=True)
    joined.attrs = {}
    return Origin.joined([Origin.of(frame) for frame in frames]).carried_by(joined)


def _holder(frames: Sequence[pd.DataFrame], name: str) -> str | None:
    return next(Origin.of(frame).name for frame in frames if name in frame.columns)


class TypeCheck:
    """Whether a column is of numbers in one table and of text in another, which is refused."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numeric: str | None = None
        self._some_numeric = False
        self._text = Wrong()

    def see(self, frame: pd.DataFrame) -> None:
        """Look at rows of a table."""
        values = frame[self._name]
        if values.dtype.kind in "fiu":
            if not self._some_numeric and values.notna().any():
                self._some_numeric, self._numeric = True, Origin.of(frame).name
        elif not self._text:  # the first one is told of
            self._text.see(frame, to_numbers(values)[1])

    def check(self) -> None:
        """Complain if it is."""
        if self._some_numeric and self._text:
            raise self._text.error(
                self._name,
                f"{shown(self._text.cells(self._name).iloc[0])} is not a number, and in "
                f"{self._numeric} the column is of numbers; correct it, or name the column as "
                "categorical (--categorical)",
            )
