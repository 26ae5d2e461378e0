"""Labelled rows of several levels of trust: which columns they are in, and what they hold."""

from __future__ import annotations

import csv as csv_module
import io
import os
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.column import (
    as_classes,
    cell_texts,
    level_names,
    read_ids,
    to_numbers,
)
from polyfid.tables.places import RowPlaces, TableError, WrongCells, file_of, no_column, raise_all
from polyfid.tables.read import read_table
from polyfid.text import name_few
from polyfid.values import is_frame, order_of_trust, to_text

#: Columns of these names say who gave a label; they are features only if asked for.
ANNOTATORS = ("worker", "annotator")
#: More different labels than this, if they have decimals, are measurements and not classes.
MOST_FRACTIONS = 20

NO_ROWS = "there are no rows below the header"
_STORED = ("label", "fidelity", "levels", "weight", "ids", "left_out")
_CONFLICT = (
    "{cell} is not a number, and in {file} the column is of numbers; correct it, or name the "
    "column as categorical (--categorical)"
)
_NO_LABEL = "the row has no label{others}; fill it in, or leave the row out"
_NO_LEVEL = "the row has no level of trust{others}; fill it in, or leave the row out"
_UNKNOWN_LEVEL = (
    "the level {cell} is not among {levels}; correct it, or name all levels, least trusted first "
    "(--levels)"
)
_OTHER_LEVEL = "the level is {cell}, and the table is that of level {level}"
_NO_WEIGHT = "{cell} is not a weight; weights are numbers from 0, which leaves a row out"


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
        for column in (*(self.features or ()), *self.categorical):
            if column in taken:
                raise ValueError(f"column {column!r} is the {taken[column]}; it is no feature")
            if self.features is not None and column not in self.features:
                raise ValueError(f"categorical names {column!r}, which is not among features")


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with labels, and how far each is trusted.

    Attributes
    ----------
    features : DataFrame
    label : array of int or str
    fidelity : array of str
        The level of each row.
    levels : tuple of str
        Least trusted first.
    weight, ids : array of float and of str, or None
    places : RowPlaces
        File and row number of each row.
    roles : Roles
        With the columns of ids and weights that were detected.
    left_out : tuple of str
        Columns without a role.
    """

    features: pd.DataFrame
    label: NDArray[Any]
    fidelity: NDArray[np.str_]
    levels: tuple[str, ...]
    weight: NDArray[np.float64] | None
    ids: NDArray[np.str_] | None
    places: RowPlaces
    roles: Roles
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    def counts(self) -> pd.DataFrame:
        """Rows by level (least trusted first) and class."""
        counts = pd.crosstab(pd.Series(self.fidelity), pd.Series(self.label))
        counts = counts.reindex(list(self.levels), fill_value=0)
        counts.index.name, counts.columns.name = "level", "class"
        return counts

    def to_frame(self) -> pd.DataFrame:
        """All of it as one tidy table; the levels are ordered categories."""
        roles, columns = self.roles, dict(self.features.items())
        if self.ids is not None:
            columns = {roles.id or "id": pd.Series(self.ids), **columns}
        columns[roles.target] = pd.Series(self.label)
        levels = pd.Categorical(self.fidelity, categories=list(self.levels), ordered=True)
        columns[roles.fidelity] = pd.Series(levels)
        if self.weight is not None:
            columns[roles.weight or "weight"] = pd.Series(self.weight)
        return pd.DataFrame(columns)

    def _state(self) -> dict[str, Any]:
        """What a model file stores of the rows."""
        features = {name: _stored(values) for name, values in self.features.items()}
        others = {name: getattr(self, name) for name in _STORED}
        return {"features": features, "places": self.places.to_json(), **others}

    @classmethod
    def _restore(cls, state: Mapping[str, Any], roles: Roles) -> LabelledTable:
        """The rows of what was stored."""
        places = RowPlaces.from_json(state["places"])
        features = places.attached_to(pd.DataFrame(state["features"]))
        table = cls(features, places=places, roles=roles, **{n: state[n] for n in _STORED})
        columns = (table.label, table.fidelity, table.weight, table.ids)
        same = all(c is None or np.shape(c) == (len(features),) for c in columns)
        if not same or len(places) != len(features):
            raise ValueError("columns of the training table differ in length")
        return table


def _stored(values: pd.Series) -> NDArray[Any]:
    if values.dtype.kind in "biuf" and isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    cells = values.astype(object)
    return cells.where(cells.notna(), None).to_numpy(dtype=object)


def read_labelled(
    files: Sequence[Any],
    roles: Roles | None = None,
    level_files: Mapping[str, Any] | None = None,
    **csv: Any,
) -> LabelledTable:
    """Labelled rows from tidy tables, or from one table per level.

    Parameters
    ----------
    files : sequence of sources
        Tables with features, label and fidelity, which are put one below the other; paths, "-" or
        data frames, as in `read_table`.
    roles : Roles, optional
        What the columns mean.
    level_files : mapping of level to source, optional
        Instead of ``files``: one table per level, least trusted first.
    **csv
        ``delimiter``, ``decimal`` and ``encoding`` of `read_table`.

    Returns
    -------
    LabelledTable

    Raises
    ------
    TableError
        If the tables do not make sense; ``problems`` lists everything that is wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import read_labelled
    >>> crowd = pd.DataFrame({"x": [0.1, 0.9, 0.8], "label": ["no", "yes", "no"]})
    >>> expert = pd.DataFrame({"x": [0.2, 0.7], "label": ["no", "yes"]})
    >>> table = read_labelled([], level_files={"crowd": crowd, "expert": expert})
    >>> table.levels, len(table)
    (('crowd', 'expert'), 5)
    """
    sources, names = check_sources(files, level_files)
    roles = roles or Roles()
    text = {roles.target, roles.fidelity, roles.id or "id", *roles.categorical}
    frames = [named(read_table(s, text=text, **csv), k) for k, s in enumerate(sources)]
    roles, features, left_out = find_columns(frames, roles, names)
    scan = LabelScan(roles, names, {*features} - {*roles.categorical})
    columns = [scan.read(frame, table) for table, frame in enumerate(frames)]
    labels, fidelities, weights = zip(*columns, strict=True)
    label, fidelity = as_classes(np.concatenate(labels)), np.concatenate(fidelities)
    scan.check(label, file_of(frames[0]))
    joined = pd.concat([frame[features] for frame in frames], ignore_index=True)
    joined.attrs = {}
    every = [RowPlaces.of(frame).taken(frame.index) for frame in frames]
    places = RowPlaces(tuple(file for places in every for file in places.files))
    return LabelledTable(
        places.attached_to(joined),
        label,
        fidelity.astype(str),
        roles.levels or order_levels(Counter(fidelity), roles, file_of(frames[0])),
        None if roles.weight is None else np.concatenate(weights),
        None if roles.id is None else np.concatenate([read_ids(f, roles.id) for f in frames]),
        places,
        roles,
        left_out,
    )


def order_levels(counts: Mapping[str, int], roles: Roles, path: str | None) -> tuple[str, ...]:
    """Levels, least trusted first, if they are numbers; ``counts`` are rows."""

    def remedy(names: list[str]) -> str:
        line = io.StringIO()
        csv_module.writer(line, lineterminator="").writerow(names)
        return f"--levels {shlex.quote(line.getvalue())} (in Python Roles(levels={names}))"

    try:
        return order_of_trust(counts, remedy, "the column")
    except ValueError as error:
        raise TableError(str(error), path=path, column=roles.fidelity) from None


def check_sources(
    files: Sequence[Any], level_files: Mapping[str, Any] | None
) -> tuple[list[Any], list[str | None]]:
    """The tables, and the level of each if it is that of one."""
    if isinstance(files, str | os.PathLike) or is_frame(files):
        raise ValueError("files must be a list of tables; put the one into a list")
    if bool(files) == bool(level_files):
        raise ValueError("give either files or level_files, and at least one table")
    if level_files:
        return list(level_files.values()), [str(name) for name in level_files]
    return list(files), [None] * len(files)


def named(frame: pd.DataFrame, place: int) -> pd.DataFrame:
    """The frame, which must have rows; if it comes from no file it is named by its place."""
    if not len(frame):
        raise TableError(NO_ROWS, path=file_of(frame) or f"table {place + 1}")
    if RowPlaces.of(frame).files[0].name:
        return frame
    places = RowPlaces.of_file(f"table {place + 1}", len(frame))
    return places.attached_to(frame.reset_index(drop=True))


def find_columns(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[Roles, list[str], tuple[str, ...]]:
    """The roles with those that were detected, the features, and the columns left out."""
    asked = {*(roles.features or ()), *roles.categorical}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        free = role not in {roles.target, roles.fidelity, *asked}
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
    every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    others = {roles.target, roles.fidelity, roles.id, roles.weight}
    if roles.features is not None:
        features = list(roles.features)
    else:
        # An id or a weight that only some of the tables have is no feature either.
        others |= {name for name in ("id", "weight") if name not in roles.categorical}
        spare = {n for n in every if n.startswith("unnamed_") or n in ANNOTATORS}
        features = [n for n in every if n not in others | (spare - {*roles.categorical})]
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


class LabelScan:
    """Reads labels, levels and weights of tables, whole or in blocks; notes what is wrong.

    ``names`` are the levels of the tables. ``compared`` features may not be numbers in one table
    and text in another.
    """

    def __init__(
        self, roles: Roles, names: Sequence[str | None], compared: Collection[str] = ()
    ) -> None:
        self._roles, self._names, self._compared = roles, names, sorted(compared)
        self._wrong: dict[tuple[int, str], WrongCells] = {}
        self._texts: dict[str, WrongCells] = {}
        self._with_numbers: dict[str, str | None] = {}  # the first file by feature

    def read(
        self, frame: pd.DataFrame, table: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Labels and levels as text, None where they are missing, and weights."""
        roles, level = self._roles, self._names[table]
        label = cell_texts(frame[roles.target])
        self._note(table, frame, roles.target, pd.isna(label), _NO_LABEL)
        fidelity = np.full(len(frame), level, dtype=object)
        if roles.fidelity in frame.columns:
            cells = level_names(frame[roles.fidelity])
            missing = pd.isna(cells)
            if level is not None:
                other = ~missing & (cells != level)
                self._note(table, frame, roles.fidelity, other, _OTHER_LEVEL)
            else:
                fidelity = cells
                self._note(table, frame, roles.fidelity, missing, _NO_LEVEL)
                if roles.levels is not None:
                    unknown = ~missing & ~np.isin(cells.astype(str), roles.levels)
                    self._note(table, frame, roles.fidelity, unknown, _UNKNOWN_LEVEL)
        weight = np.ones(len(frame))
        if roles.weight is not None:
            weight, _ = to_numbers(frame[roles.weight])
            wrong = ~(np.isfinite(weight) & (weight >= 0.0))
            self._note(table, frame, roles.weight, wrong, _NO_WEIGHT)
        for name in self._compared:
            self._compare(frame, name)
        return label, fidelity, weight

    def _note(self, table: int, frame: pd.DataFrame, column: str, wrong: Any, problem: str) -> None:
        others = (", nor has one after it", ", nor have {} rows after it")
        cells = self._wrong.setdefault((table, problem), WrongCells(column, problem, *others))
        cells.add(frame, wrong)

    def _compare(self, frame: pd.DataFrame, name: str) -> None:
        values = frame[name]
        if values.dtype.kind in "fiu":
            if name not in self._with_numbers and values.notna().any():
                self._with_numbers[name] = file_of(frame)
            return
        text = self._texts.setdefault(name, WrongCells(name, _CONFLICT))
        if not text:  # the first one is named
            text.add(frame, to_numbers(values)[1])

    def check(self, labels: NDArray[Any], path: str | None) -> None:
        """Raise an error that lists what is wrong with the rows, of which ``labels`` are all."""
        levels = name_few(self._roles.levels or ())
        errors = [
            cells.error(level=repr(self._names[table]), levels=levels)
            for (table, _), cells in self._wrong.items()
            if cells
        ]
        raise_all(errors)
        _refuse_measurements(labels, path, self._roles)
        for name, file in self._with_numbers.items():
            if self._texts.get(name):
                raise self._texts[name].error(file=file)


def _refuse_measurements(labels: NDArray[Any], path: str | None, roles: Roles) -> None:
    """Raise an error if labels are measurements rather than classes."""
    distinct = pd.unique(pd.Series(labels)).tolist()
    if len(distinct) > MOST_FRACTIONS and isinstance(distinct[0], str):
        numbers, wrong = to_numbers(pd.Series(distinct))
        if not wrong.any() and (numbers != np.round(numbers)).any():
            text = (
                f"there are {len(distinct)} different labels, such as {name_few(distinct[:3])}: "
                "measurements, not classes; put classes in, such as above and below a limit"
            )
            raise TableError(text, path=path, column=roles.target)


def one_class_error(classes: Sequence[Any], path: str | None, roles: Roles) -> TableError:
    """The error of rows that have one class only, or no weight."""
    what = f"all labels are {classes[0]!r}" if classes else "all rows have weight 0"
    return TableError(
        f"{what}, and there must be two classes at least", path=path, column=roles.target
    )
