"""Labelled rows of several levels of trust."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.frames import is_frame
from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, raise_all, shown
from polyfid.tables.places import RowPlaces, WrongCells
from polyfid.tables.read import read_table
from polyfid.tables.roles import Roles, TypeConflict, find_columns, find_features
from polyfid.text import name_few
from polyfid.values import to_text, whole_numbers

#: More different labels than this, if they have decimals, are measurements and not classes.
MOST_FRACTIONS = 20


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
    weight : array of float, or None
    ids : array of str, or None
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
        return {
            "features": {name: _stored(values) for name, values in self.features.items()},
            "label": self.label,
            "fidelity": self.fidelity,
            "levels": self.levels,
            "weight": self.weight,
            "ids": self.ids,
            "places": self.places.to_list(),
            "left_out": self.left_out,
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Any], roles: Roles) -> LabelledTable:
        """The rows of what was stored."""
        places = RowPlaces.from_list(state["places"])
        features = places.attached_to(pd.DataFrame(state["features"]))
        others = {n: state[n] for n in ("label", "fidelity", "levels", "weight", "ids", "left_out")}
        table = cls(features, places=places, roles=roles, **others)
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
    roles = roles or Roles()
    sources, names = check_sources(files, level_files)
    text = {roles.target, roles.fidelity, roles.id or "id", *roles.categorical}
    frames = [named(read_table(s, text=text, **csv), k) for k, s in enumerate(sources)]
    for frame in frames:
        if not len(frame):
            raise no_rows_error(frame)
    roles = find_columns(frames, roles, tidy=not level_files)
    order = declared_order(frames, roles, names)
    features, left_out = find_features(frames, roles)
    readers = [LabelReader(roles, level, order) for level in names]
    columns = [reader.read(frame) for reader, frame in zip(readers, frames, strict=True)]
    labels, fidelities, weights = zip(*columns, strict=True)
    label, fidelity = as_classes(np.concatenate(labels)), np.concatenate(fidelities)
    errors = [error for reader in readers for error in reader.errors()]
    raise_all(errors or measurement_errors(label, RowPlaces.of(frames[0]).file, roles))
    joined = _joined(frames, features, roles)
    return LabelledTable(
        joined,
        label,
        fidelity.astype(str),
        order or sorted_levels(fidelity),
        None if roles.weight is None else np.concatenate(weights),
        None if roles.id is None else np.concatenate([read_ids(f, roles.id) for f in frames]),
        RowPlaces.of(joined),
        replace(roles, levels=order),
        left_out,
    )


def _joined(frames: Sequence[pd.DataFrame], names: Sequence[str], roles: Roles) -> pd.DataFrame:
    """Features of all tables one below the other."""
    for name in names:
        if name not in roles.categorical:
            conflict = TypeConflict(name)
            for frame in frames:
                conflict.add(frame)
            conflict.check()
    joined = pd.concat([frame[list(names)] for frame in frames], ignore_index=True)
    joined.attrs = {}
    places = [RowPlaces.of(frame).taken(frame.index) for frame in frames]
    return RowPlaces.joined(places).attached_to(joined)


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
    """The frame; one that comes from no file is named by its place, and its rows are counted."""
    if RowPlaces.of(frame).files[0].name:
        return frame
    places = RowPlaces.of_file(f"table {place + 1}", len(frame))
    return places.attached_to(frame.reset_index(drop=True))


def no_rows_error(frame: pd.DataFrame) -> TableError:
    """The error of a table without rows."""
    return TableError("there are no rows below the header", path=RowPlaces.of(frame).file)


# --------------------------------------------------------------- labels and levels


class LabelReader:
    """Reads labels, levels and weights of one table, whole or block after block.

    Parameters
    ----------
    roles : Roles
    level : str, optional
        Of all rows, if the table is that of one level.
    levels : sequence of str, optional
        All levels, if they were named.
    """

    def __init__(self, roles: Roles, level: str | None, levels: Sequence[str] | None) -> None:
        self._roles, self._level, self._levels = roles, level, levels
        self._no_label, self._no_level, self._other_level = (WrongCells() for _ in range(3))
        self._no_weight, self._unknown_level = WrongCells(), WrongCells()

    def read(self, frame: pd.DataFrame) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Labels and levels as text, None where they are missing, and weights."""
        roles, level = self._roles, self._level
        label = _texts(frame[roles.target])
        self._no_label.add(frame, pd.isna(label))
        if level is None:
            fidelity = self._read_levels(frame[roles.fidelity])
            self._no_level.add(frame, pd.isna(fidelity))
            if self._levels is not None:
                named = pd.Series(fidelity).isin([*self._levels, None]).to_numpy()
                self._unknown_level.add(frame, ~named)
        else:
            fidelity = np.full(len(frame), level, dtype=object)
            if roles.fidelity in frame.columns:
                cells = self._read_levels(frame[roles.fidelity])
                self._other_level.add(frame, ~pd.isna(cells) & (cells != level))
        weight = np.ones(len(frame))
        if roles.weight is not None:
            weight, _ = to_numbers(frame[roles.weight])
            with np.errstate(invalid="ignore"):
                self._no_weight.add(frame, ~(np.isfinite(weight) & (weight >= 0.0)))
        return label, fidelity, weight

    @staticmethod
    def _read_levels(cells: pd.Series) -> NDArray[Any]:
        """Names of levels: 1 and 1.0 are one, also as text."""
        codes, present = pd.factorize(_texts(cells))
        names = [t.removesuffix(".0") if whole_numbers([t]) else t for t in present]
        return np.array([*names, None], dtype=object)[codes]

    def errors(self) -> list[TableError]:
        """What is wrong with the cells that were read."""
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
            text = (
                f"the level is {self._first_level(self._other_level)}, and the table is that of "
                f"level {self._level!r}"
            )
            made.append(self._other_level.error(roles.fidelity, text))
        if self._no_weight and roles.weight is not None:
            cell = self._no_weight.first(roles.weight).iloc[0]
            text = "the row has no weight" if pd.isna(cell) else f"{shown(cell)} is not a weight"
            text += "; weights are numbers from 0, which leaves a row out"
            made.append(self._no_weight.error(roles.weight, text))
        if self._unknown_level:
            text = (
                f"the level {self._first_level(self._unknown_level)} is not among "
                f"{name_few(self._levels or ())}; correct it, or name all levels, least trusted "
                "first (--levels)"
            )
            made.append(self._unknown_level.error(roles.fidelity, text))
        return made

    def _first_level(self, wrong: WrongCells) -> str:
        return shown(self._read_levels(wrong.first(self._roles.fidelity))[0])


def read_ids(frame: pd.DataFrame, name: str) -> NDArray[np.str_]:
    """Names of rows, empty where they have none."""
    return np.array(["" if t is None else t for t in _texts(frame[name])], dtype=str)


def _texts(values: pd.Series) -> NDArray[Any]:
    """Cells as text without blanks around it, None where they are missing."""
    codes, uniques = pd.factorize(values)
    texts = [to_text(u) for u in uniques.tolist()]
    return np.array([*(t or None for t in texts), None], dtype=object)[codes]


def as_classes(texts: NDArray[Any]) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as text."""
    codes, distinct = pd.factorize(texts)
    numbers = whole_numbers(distinct)
    if not numbers:
        return np.array([*distinct, ""], dtype=str)[codes]
    return np.array([*numbers, 0], dtype=np.int64)[codes]


def declared_order(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[str, ...] | None:
    """Levels, least trusted first, as they were given or as an ordered column has them."""
    given = [name for name in names if name is not None]
    if roles.levels is not None:
        if given and set(given) != set(roles.levels):
            raise ValueError(
                f"levels and level_files name different levels: {list(roles.levels)} and {given}"
            )
        return roles.levels
    if given:
        return tuple(given)
    dtypes: list[Any] = [frame[roles.fidelity].dtype for frame in frames]
    orders = {
        tuple(map(to_text, t.categories)) if getattr(t, "ordered", False) else None for t in dtypes
    }
    return orders.pop() if len(orders) == 1 else None


def sorted_levels(fidelity: NDArray[Any]) -> tuple[str, ...]:
    """Levels by number if all are numbers, else by name."""
    names = sorted({name for name in fidelity if name is not None})
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(names)


def measurement_errors(labels: NDArray[Any], path: str | None, roles: Roles) -> list[TableError]:
    """The error of labels that are measurements rather than classes, if they are."""
    distinct = pd.unique(pd.Series(labels)).tolist()
    if len(distinct) > MOST_FRACTIONS and isinstance(distinct[0], str):
        numbers, wrong = to_numbers(pd.Series(distinct))
        if not wrong.any() and (numbers != np.round(numbers)).any():
            text = (
                f"there are {len(distinct)} different labels, such as {name_few(distinct[:3])}: "
                "measurements, not classes; put classes in, such as above and below a limit"
            )
            return [TableError(text, path=path, column=roles.target)]
    return []


def one_class_error(classes: Sequence[Any], path: str | None, roles: Roles) -> TableError:
    """The error of rows that have one class only, or no weight."""
    what = f"all labels are {classes[0]!r}" if classes else "all rows have weight 0"
    return TableError(
        f"{what}, and there must be two classes at least", path=path, column=roles.target
    )
