"""Which column of a table is what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from polyfid.tables.column import USABLE, holds_addresses
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
        index that was saved with the table), those that say who gave a label (``worker``,
        ``annotator``) and addresses of images or other files are features only if they are named
        here.
    categorical : sequence of str
        Features to be taken as categories though they look like numbers.
    text : sequence of str
        Features of free text; see `TableEncoder`.
    levels : sequence of str, optional
        Names of the levels, least trusted first.
    worker : str, optional
        Who gave the label; ``worker`` or ``annotator`` if there is such a column.

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
    text: tuple[str, ...] = ()
    worker: str | None = None

    def __post_init__(self) -> None:
        for name in ("features", "categorical", "text", "levels"):
            value: Any = getattr(self, name)
            if value is not None:
                names = tuple(map(str, value))
                if isinstance(value, str) or len({*names}) < len(names):
                    raise ValueError(f"{name} must be a list of distinct names; got {value!r}")
                object.__setattr__(self, name, names)
        if self.features == ():
            raise ValueError("features must be at least one name, or None for all columns; got []")
        taken: dict[str | None, str] = {}
        for role in ("target", "fidelity", "id", "weight", "worker"):
            column = getattr(self, role)
            if column is not None and taken.setdefault(column, role) != role:
                raise ValueError(f"{role} and {taken[column]} are both column {column!r}")
        if both := {*self.categorical} & {*self.text}:
            raise ValueError(f"column {min(both)!r} is categorical and text; it can be one of them")
        for name in ("features", "categorical", "text"):
            for column in getattr(self, name) or ():
                if column in taken:
                    raise ValueError(f"column {column!r} is the {taken[column]}; it is no feature")
                if self.features is not None and column not in self.features:
                    raise ValueError(f"{name} names {column!r}, which is not among features")

    @property
    def of_features(self) -> dict[str, tuple[str, ...]]:
        """What is said about features, as arguments of `TableEncoder`."""
        return {"categorical": self.categorical, "text": self.text}


def find_columns(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[Roles, list[str], tuple[str, ...]]:
    """The roles with those that were detected, the features, and the columns left out."""
    asked = {*(roles.features or ()), *roles.categorical, *roles.text}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        free = role not in {roles.target, roles.fidelity, *asked}
        if getattr(roles, role) is None and everywhere and free:
            roles = replace(roles, **{role: role})  # type: ignore[arg-type]
    if roles.worker is None:
        there = {name for frame in frames for name in frame.columns}
        taken = {roles.target, roles.fidelity, roles.id, roles.weight, *asked}
        worker = next((n for n in ANNOTATORS if n in there and n not in taken), None)
        roles = replace(roles, worker=worker)
    elif not any(roles.worker in frame.columns for frame in frames):
        names_there = dict.fromkeys(name for frame in frames for name in frame.columns)
        raise no_column(roles.worker, names_there, file_of(frames[0]), " of annotators")
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
    every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    others = {roles.target, roles.fidelity, roles.id, roles.weight, roles.worker}
    if roles.features is not None:
        features = list(roles.features)
    else:
        # An id or a weight that only some of the tables have is no feature either.
        others |= {"id", "weight"} - asked
        spare = {n for n in every if n.startswith("unnamed_") or n in ANNOTATORS}
        spare |= {n for n in every if n not in asked and _hold_addresses(frames, n)}
        features = [n for n in every if n not in others | (spare - asked)]
        advice = "name the features that all tables have (--features)"
        holders = {n: file_of(frame) for frame in reversed(frames) for n in frame.columns}
        _require(frames, {n: (f", which {holders[n]} has", advice) for n in features})
    if not features:
        problem = f"there is no column to learn from, only {name_few(frames[0].columns)}; {USABLE}"
        raise TableError(problem, path=file_of(frames[0]))
    roles = replace(roles, levels=_declared_order(frames, roles, names))
    return roles, features, tuple(n for n in every if n not in others and n not in features)


def _hold_addresses(frames: Sequence[pd.DataFrame], name: str) -> bool:
    """Whether a column that is there in all tables has nothing but addresses of files."""
    return all(name in frame.columns and holds_addresses(frame[name]) for frame in frames)


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
