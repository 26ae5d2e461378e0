"""Which column of a table is what: labels, levels, ids, weights, features."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from polyfid.tables.places import TableError, file_of, no_column, raise_all
from polyfid.text import name_few
from polyfid.values import to_text

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
    exclude : sequence of str
        Columns to leave out, whether or not ``features`` are given.
    categorical : sequence of str
        Features to be taken as categories though they look like numbers.
    levels : sequence of str, optional
        Names of the levels, least trusted first.

    Notes
    -----
    Names in ``features``, ``exclude`` and ``categorical`` may be patterns: ``*`` stands for any
    letters, ``?`` for one letter, ``[ab]`` for one of those; capitals matter. A pattern stands for
    the columns it matches that have no other role, and must match at least one. A name that a
    column has is never a pattern.

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
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("features", "categorical", "levels", "exclude"):
            value: Any = getattr(self, name)
            if value is not None:
                names = tuple(map(str, value))
                if isinstance(value, str) or len({*names}) < len(names):
                    raise ValueError(f"{name} must be a list of distinct names; got {value!r}")
                object.__setattr__(self, name, names)
        if self.features == ():
            raise ValueError("features must be at least one name, or None for all columns; got []")
        taken: dict[str | None, str] = {}
        for role in ("target", "fidelity", "id", "weight"):
            column = getattr(self, role)
            if column is not None and taken.setdefault(column, role) != role:
                raise ValueError(f"{role} and {taken[column]} are both column {column!r}")
        features = {*(self.features or ())}
        for column in (*features, *self.categorical):
            if column in taken:
                raise ValueError(f"column {column!r} is the {taken[column]}; it is no feature")
            if column in self.exclude:
                where = "features" if column in features else "categorical"
                raise ValueError(f"column {column!r} is both in {where} and in exclude")
        for column in self.exclude:
            if column in taken:
                raise ValueError(f"column {column!r} is the {taken[column]}; it cannot be excluded")
        if self.features is not None and not any(map(is_pattern, features)):
            for column in self.categorical:
                if column not in features and not is_pattern(column):
                    raise ValueError(f"categorical names {column!r}, which is not among features")


def is_pattern(name: str) -> bool:
    """Whether a name may stand for several columns."""
    return any(mark in name for mark in "*?[")


def match_columns(
    wanted: Iterable[str],
    columns: Iterable[str],
    path: str | None,
    role: str = "",
    candidates: Collection[str] | None = None,
) -> list[str]:
    """The names with each pattern replaced by the columns that it matches, each name once.

    Patterns match ``candidates``, all ``columns`` by default. Names that are no patterns are
    returned whether or not there is such a column.
    """
    every = list(columns)
    found: dict[str, None] = {}
    for name in wanted:
        if name in every or not is_pattern(name):
            found[name] = None
            continue
        matched = [c for c in every if fnmatchcase(c, name)]
        matched = [c for c in matched if candidates is None or c in candidates]
        if not matched:
            raise no_column(name, every, path, role)
        found |= dict.fromkeys(matched)
    return list(found)


def _without_patterns(roles: Roles, every: Sequence[str], path: str | None) -> Roles:
    """The roles with columns in place of patterns, and features without the excluded columns."""
    taken = {roles.target, roles.fidelity, roles.id, roles.weight}
    free = [name for name in every if name not in taken]
    exclude = match_columns(roles.exclude, every, path, " to leave out", free)
    absent = [name for name in exclude if name not in every]
    raise_all([no_column(name, every, path, " to leave out") for name in absent])
    candidates = _feature_names(free, ())
    features, role = roles.features, ", which is to be a feature"
    if features is not None:
        named = match_columns(features, every, path, role, candidates)
        features = tuple(name for name in named if name not in exclude)
        if not features:
            raise TableError("exclude (--exclude) leaves no column to learn from", path=path)
        candidates = list(features)
    candidates = [name for name in candidates if name not in exclude]
    categorical = match_columns(roles.categorical, every, path, role, candidates)
    return replace(roles, features=features, exclude=tuple(exclude), categorical=tuple(categorical))


def _feature_names(columns: Iterable[str], asked: Collection[str]) -> list[str]:
    """Those of the columns without a role that are features unless others are named."""
    return [
        name
        for name in columns
        if name in asked
        or not (name in ("id", "weight", *ANNOTATORS) or name.startswith("unnamed_"))
    ]


def find_columns(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[Roles, list[str], tuple[str, ...]]:
    """The roles with those that were detected, the features, and the columns left out."""
    every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    roles = _without_patterns(roles, every, file_of(frames[0]))
    asked = {*(roles.features or ()), *roles.categorical}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        free = role not in {roles.target, roles.fidelity, *asked, *roles.exclude}
        if getattr(roles, role) is None and everywhere and free:
            roles = replace(roles, **{role: role})  # type: ignore[arg-type]
    wanted = {roles.target: (" of labels", "name another one as target (--target)")}
    if None in names:
        wanted[roles.fidelity] = (
            " of levels of trust",
            "name another one as fidelity (--fidelity), or give one table per level "
            "(--level NAME=FILE)",
        )
    for column, role in ((roles.id, " of ids"), (roles.weight, " of weights")):
        wanted |= {column: (role, "")} if column else {}
    wanted |= dict.fromkeys(sorted(asked), (", which is to be a feature", ""))
    _require(frames, wanted)
    others = {roles.target, roles.fidelity, roles.id, roles.weight}
    if roles.features is not None:
        features = list(roles.features)
    else:
        # An id or a weight that only some of the tables have is no feature either.
        others |= {"id", "weight"} - {*roles.categorical, *roles.exclude}
        left = [n for n in every if n not in others and n not in roles.exclude]
        features = _feature_names(left, roles.categorical)
        advice = "name the features that all tables have (--features)"
        holders = {n: file_of(frame) for frame in reversed(frames) for n in frame.columns}
        _require(frames, {n: (f", which {holders[n]} has", advice) for n in features})
    if not features:
        problem = f"there is no column to learn from, only {name_few(frames[0].columns)}"
        raise TableError(problem, path=file_of(frames[0]))
    roles = replace(roles, levels=_declared_order(frames, roles, names))
    return roles, features, tuple(n for n in every if n not in others and n not in features)


def _require(frames: Sequence[pd.DataFrame], wanted: Mapping[str, tuple[str, str]]) -> None:
    raise_all(
        [
            no_column(name, frame.columns, file_of(frame), *words)
            for frame in frames
            for name, words in wanted.items()
            if name not in frame.columns
        ]
    )


def _declared_order(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[str, ...] | None:
    """Levels, least trusted first, as they were given or as an ordered column has them."""
    given = [name for name in names if name is not None]
    if roles.levels is not None and given and set(given) != set(roles.levels):
        both = f"{list(roles.levels)} and {given}"
        raise ValueError(f"levels and level_files name different levels: {both}")
    if roles.levels is not None or given:
        return roles.levels or tuple(given)
    dtypes: list[Any] = [frame[roles.fidelity].dtype for frame in frames]
    orders = {
        tuple(map(to_text, t.categories)) if getattr(t, "ordered", False) else None for t in dtypes
    }
    return orders.pop() if len(orders) == 1 else None
