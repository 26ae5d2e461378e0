"""Which column of a table is what: labels, levels, ids, weights, annotators, features."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.column import USABLE, cell_texts, holds_addresses
from polyfid.tables.places import TableError, file_of, no_column, raise_all
from polyfid.text import name_few
from polyfid.values import to_text

#: Columns of these names say who gave a label; they are features only if asked for.
ANNOTATORS = ("worker", "annotator")
#: The usual name of the column that marks rows which were drawn at random.
AUDIT = "audit"
#: Cells that mark a row, and those that do not.
MARKED, UNMARKED = ("1", "1.0", "true", "yes"), ("", "0", "0.0", "false", "no")


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
    exclude : sequence of str
        Columns to leave out, whether or not ``features`` are given.
    categorical : sequence of str
        Features to be taken as categories though they look like numbers.
    text : sequence of str
        Features of free text; see `TableEncoder`.
    levels : sequence of str, optional
        Names of the levels, least trusted first.
    worker : str, optional
        Who gave the label; ``worker`` or ``annotator`` if there is such a column.
    audit : str, optional
        Marks (1 or true, 0 or false; empty is 0) of rows that were drawn at random; ``audit`` if
        there is such a column, and it holds marks only. Of trusted rows, only those with a mark
        are scored, if there are any; see `polyfid.evaluate`.
    value : mapping of level to column
        Levels whose rows have numbers in place of labels, such as what a simulator computes, and
        the column that holds them. Any level but the most trusted one. What these columns hold at
        other levels does not matter, and neither do labels at these.

    Notes
    -----
    Names in ``features``, ``exclude``, ``categorical`` and ``text`` may be patterns: ``*`` stands
    for any letters, ``?`` for one letter, ``[ab]`` for one of those; capitals matter. A pattern
    stands for the columns it matches that have no other role, and must match at least one. A name
    that a column has is never a pattern.

    Examples
    --------
    >>> from polyfid.tables import Roles
    >>> Roles(target="feasible", levels=["simulation", "experiment"]).levels
    ('simulation', 'experiment')
    >>> Roles(value={"simulation": "deflection"}).value
    {'simulation': 'deflection'}
    """

    target: str = "label"
    fidelity: str = "fidelity"
    id: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    worker: str | None = None
    audit: str | None = None
    value: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("features", "exclude", "categorical", "text", "levels"):
            value: Any = getattr(self, name)
            if value is not None:
                names = tuple(map(str, value))
                if isinstance(value, str) or len({*names}) < len(names):
                    raise ValueError(f"{name} must be a list of distinct names; got {value!r}")
                object.__setattr__(self, name, names)
        if self.features == ():
            raise ValueError("features must be at least one name, or None for all columns; got []")
        taken: dict[str | None, str] = {}
        for role in ("target", "fidelity", "id", "weight", "worker", "audit"):
            column = getattr(self, role)
            if column is not None and taken.setdefault(column, role) != role:
                raise ValueError(f"{role} and {taken[column]} are both column {column!r}")
        if not isinstance(self.value, Mapping):
            raise ValueError(
                'value must be a mapping of levels to columns, such as {"simulation": '
                f'"deflection"}}; got {self.value!r}'
            )
        object.__setattr__(self, "value", {str(k): str(v) for k, v in self.value.items()})
        for level, column in self.value.items():  # the labels may be in the same column
            if taken.setdefault(column, "value") not in ("value", "target"):
                raise ValueError(
                    f"value of level {level!r} and {taken[column]} are both column {column!r}"
                )
        if both := {*self.categorical} & {*self.text}:
            raise ValueError(f"column {min(both)!r} is categorical and text; it can be one of them")
        features = self.features or ()
        all_named = self.features is not None and not any(map(is_pattern, features))
        for name in ("features", "categorical", "text"):
            for column in getattr(self, name) or ():
                if column in taken:
                    raise ValueError(f"column {column!r} is the {taken[column]}; it is no feature")
                if column in self.exclude:
                    raise ValueError(f"column {column!r} is both in {name} and in exclude")
                if all_named and column not in features and not is_pattern(column):
                    raise ValueError(f"{name} names {column!r}, which is not among features")
        for column in self.exclude:
            if column in taken:
                raise ValueError(f"column {column!r} is the {taken[column]}; it cannot be excluded")

    @property
    def of_features(self) -> dict[str, tuple[str, ...]]:
        """What is said about features, as arguments of `TableEncoder`."""
        return {"categorical": self.categorical, "text": self.text}

    @property
    def taken(self) -> set[str | None]:
        """Columns that are no features, as they are something else."""
        others = {self.id, self.weight, self.worker, self.audit, *self.value.values()}
        return {self.target, self.fidelity, *others}

    def text_columns(self, level: str | None = None) -> set[str]:
        """Columns that are read as text in a table of a level, or of all levels."""
        names = {self.fidelity, *self.categorical, *self.text}
        return names if level in self.value else {self.target, *names}

    @property
    def asked(self) -> set[str]:
        """Columns that are features because they are named as such."""
        return {*(self.features or ()), *self.categorical, *self.text}


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
    free = [name for name in every if name not in roles.taken]
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
    kinds: dict[str, Any] = {
        name: tuple(match_columns(wanted, every, path, role, candidates))
        for name, wanted in roles.of_features.items()
    }
    return replace(roles, features=features, exclude=tuple(exclude), **kinds)


def _feature_names(columns: Iterable[str], asked: Collection[str]) -> list[str]:
    """Those of the columns without a role that are features unless others are named."""
    return [
        name
        for name in columns
        if name in asked
        or not (name in ("id", "weight", AUDIT, *ANNOTATORS) or name.startswith("unnamed_"))
    ]


def find_columns(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[Roles, list[str], tuple[str, ...]]:
    """The roles with those that were detected, the features, and the columns left out.

    Rows are not looked at: ``frames`` may be heads of tables. See `leave_out_addresses`.
    """
    every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    path = file_of(frames[0])
    roles = _without_patterns(roles, every, path)
    roles = _with_detected(roles, frames)
    if roles.worker is not None and roles.worker not in every:
        raise no_column(roles.worker, every, path, " of annotators")
    if roles.audit is not None and roles.audit not in every:
        raise no_column(roles.audit, every, path, " of audit marks")
    known = roles.levels or tuple(name for name in names if name is not None)
    if known:
        check_value(roles, known)
    wanted = {}
    if None in names:
        wanted[roles.fidelity] = (
            " of levels of trust",
            "name another one as fidelity (--fidelity), or give one table per level "
            "(--level NAME=FILE)",
        )
    for column, role in ((roles.id, " of ids"), (roles.weight, " of weights")):
        wanted |= {column: (role, "")} if column else {}
    wanted |= dict.fromkeys(sorted(roles.asked), (", which is to be a feature", ""))
    _require(frames, [{**_answers(roles, name), **wanted} for name in names])
    others = roles.taken
    if roles.features is not None:
        features = list(roles.features)
    else:
        # An id or a weight that only some of the tables have is no feature either.
        others |= {"id", "weight"} - {*roles.asked, *roles.exclude}
        left = [n for n in every if n not in others and n not in roles.exclude]
        features = _feature_names(left, roles.asked)
        advice = "name the features that all tables have (--features)"
        holders = {n: file_of(frame) for frame in reversed(frames) for n in frame.columns}
        _require(
            frames, [{n: (f", which {holders[n]} has", advice) for n in features}] * len(frames)
        )
    _refuse_none(features, frames)
    roles = replace(roles, levels=_declared_order(frames, roles, names))
    return roles, features, tuple(n for n in every if n not in others and n not in features)


def _with_detected(roles: Roles, frames: Sequence[pd.DataFrame]) -> Roles:
    """The roles with columns that have the usual names of ids, weights and annotators."""
    named = {roles.target, roles.fidelity, roles.id, roles.weight, *roles.value.values()}
    taken = {*roles.asked, *roles.exclude, *named}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        if getattr(roles, role) is None and everywhere and role not in taken:
            roles = replace(roles, **{role: role})  # type: ignore[arg-type]
    if roles.worker is None:
        there = {name for frame in frames for name in frame.columns} - taken
        roles = replace(roles, worker=next((n for n in ANNOTATORS if n in there), None))
    if roles.audit is None and roles.worker != AUDIT and AUDIT not in taken:
        there = {name for frame in frames for name in frame.columns}
        roles = replace(roles, audit=AUDIT if AUDIT in there else None)
    return roles


def read_marks(frame: pd.DataFrame, name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows a column marks, and which of its cells are no marks; a table may lack it."""
    if name not in frame.columns:
        return np.zeros(len(frame), dtype=bool), np.zeros(len(frame), dtype=bool)
    cells = frame[name]
    text = np.array(["" if c is None else str(c).lower() for c in cell_texts(cells)], dtype=object)
    marked = np.isin(text, MARKED)
    return marked, ~(marked | np.isin(text, UNMARKED))


def leave_out_marks(
    frames: Sequence[pd.DataFrame], roles: Roles, asked: str | None, features: list[str]
) -> tuple[Roles, list[str]]:
    """Roles and features, of which a column named ``audit`` is one if it holds no marks.

    ``asked`` is the column of marks that the user named, in which other cells are mistakes.
    """
    if roles.audit is None or asked is not None:
        return roles, features
    if not any(read_marks(frame, roles.audit)[1].any() for frame in frames):
        return roles, features
    if roles.features is None and all(roles.audit in frame.columns for frame in frames):
        order = list(frames[0].columns)
        features = sorted([*features, roles.audit], key=order.index)
    return replace(roles, audit=None), features


def leave_out_addresses(
    frames: Sequence[pd.DataFrame], roles: Roles, features: list[str], left_out: tuple[str, ...]
) -> tuple[list[str], tuple[str, ...]]:
    """Features and columns left out, of which columns of addresses of files are the latter.

    Those that are named as features stay features.
    """
    kept = [
        name
        for name in features
        if name in roles.asked or not all(holds_addresses(frame[name]) for frame in frames)
    ]
    _refuse_none(kept, frames)
    every = dict.fromkeys(name for frame in frames for name in frame.columns)
    lost = {*left_out, *features} - {*kept}
    return kept, tuple(name for name in every if name in lost)


def _refuse_none(features: Sequence[str], frames: Sequence[pd.DataFrame]) -> None:
    if not features:
        problem = f"there is no column to learn from, only {name_few(frames[0].columns)}; {USABLE}"
        raise TableError(problem, path=file_of(frames[0]))


def _answers(roles: Roles, level: str | None) -> dict[str, tuple[str, str]]:
    """Columns of labels and numbers that a table of a level, or of all levels, must have."""
    numbers = {
        column: (f" of the numbers of level {name!r}", "name another one (--value LEVEL=COLUMN)")
        for name, column in roles.value.items()
        if level in (None, name)
    }
    if level in roles.value:
        return numbers
    remedy = "name another one as target (--target)"
    if level is not None:
        remedy += f", or, if the level has numbers, theirs (--value {level}=COLUMN)"
    return {roles.target: (" of labels", remedy), **numbers}


def check_value(roles: Roles, levels: Sequence[str]) -> None:
    """Refuse numbers of a level that is not there, or of the most trusted one."""
    listed = f"the levels are {list(levels)}, least trusted first"
    if unknown := [level for level in roles.value if level not in levels]:
        raise ValueError(f"value (--value) names level {unknown[0]!r}; {listed}")
    if levels[-1] in roles.value:
        raise ValueError(
            f"value (--value) names {levels[-1]!r}, the most trusted level, which must have labels "
            f"of classes; {listed}: if another one is to be trusted most, name them in that order"
        )


def _require(
    frames: Sequence[pd.DataFrame], wanted: Sequence[Mapping[str, tuple[str, str]]]
) -> None:
    """Raise an error that lists the columns that tables lack; each has its own ``wanted``."""
    raise_all(
        [
            no_column(name, frame.columns, file_of(frame), *words)
            for frame, own in zip(frames, wanted, strict=True)
            for name, words in own.items()
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
