"""Several tables as one: which columns they must have, and their features below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, listed, no_column, raise_all, shown
from polyfid.tables.origin import Origin, error_at
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


def join_features(
    frames: Sequence[pd.DataFrame], roles: Roles, errors: list[TableError]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Features of all tables one below the other, and the columns that are nothing."""
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
    _check_types(frames, names, roles)
    joined = pd.concat([frame[names] for frame in frames], ignore_index=True)
    joined.attrs = {}
    origin = Origin.joined([Origin.of(frame) for frame in frames])
    seen = {name: None for frame in frames for name in frame.columns}
    left_out = tuple(n for n in seen if n not in others and n not in names)
    return origin.carried_by(joined), left_out


def _holder(frames: Sequence[pd.DataFrame], name: str) -> str | None:
    return next(Origin.of(frame).name for frame in frames if name in frame.columns)


def _check_types(frames: Sequence[pd.DataFrame], names: Sequence[str], roles: Roles) -> None:
    """Refuse a column of numbers in one table and of text in another."""
    for name in names:
        if name in roles.categorical:
            continue
        numeric = [f for f in frames if f[name].dtype.kind in "fiu" and f[name].notna().any()]
        for frame in frames:
            wrong = to_numbers(frame[name])[1] if numeric else np.zeros(1, dtype=bool)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise error_at(
                    frame,
                    row,
                    name,
                    f"{shown(frame[name].iloc[row])} is not a number, and in "
                    f"{Origin.of(numeric[0]).name} the column is of numbers; correct it, or name "
                    "the column as categorical (--categorical)",
                )
