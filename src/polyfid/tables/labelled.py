"""Labelled rows of several levels of trust: which columns they are in, and what they hold."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

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
from polyfid.tables.embeddings import Embeddings
from polyfid.tables.places import RowPlaces, TableError, WrongCells, file_of, raise_all
from polyfid.tables.read import CsvTable, TypedTable, open_table, read_table
from polyfid.tables.roles import (
    Roles,
    check_value,
    find_columns,
    leave_out_addresses,
    leave_out_marks,
    read_marks,
)
from polyfid.text import join_names, name_few
from polyfid.values import is_frame, order_of_trust, to_text

#: More different labels than this, if they have decimals, are measurements and not classes.
MOST_FRACTIONS = 20

NO_ROWS = "there are no rows below the header"
_STORED = ("label", "fidelity", "levels", "weight", "ids", "left_out")
_CONFLICT = (
    "{cell} is not a number, and in {file} the column is of numbers; correct it, or name the "
    "column as categorical (--categorical)"
)
NO_LABEL = "the row has no label{others}; fill it in, or leave the row out"
_NEITHER = NO_LABEL + "; if its level has numbers, name their column (--value LEVEL=COLUMN)"
_NO_NUMBER = (
    "the row has no number{others}, but {cell}; all rows of level {numeric} need one: correct it, "
    "or leave the row out"
)
_NO_LEVEL = "the row has no level of trust{others}; fill it in, or leave the row out"
_UNKNOWN_LEVEL = (
    "the level {cell} is not among {levels}; correct it, or name all levels, least trusted first "
    "(--levels)"
)
_OTHER_LEVEL = "the level is {cell}, and the table is that of level {level}"
NO_MARK = "{cell} is not an audit mark{others}; marks are 1 or true, and 0, false or nothing"
NO_WEIGHT = "{cell} is not a weight; weights are numbers from 0, which leaves a row out"


@dataclass(frozen=True)
class NumberSummary:
    """The numbers of a level that has no classes."""

    level: str
    rows: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with labels, and how far each is trusted.

    Attributes
    ----------
    features : DataFrame
    label : array of int or str
        Classes. Rows of levels that have numbers have theirs here, in an array of objects.
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
    worker : array of str, or None
        Who gave each label, empty where that is not known. Model files do not hold it.
    audit : array of bool, or None
        Which rows were drawn at random; see `polyfid.evaluate`.
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
    worker: NDArray[np.str_] | None = None
    audit: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def numeric_levels(self) -> tuple[str, ...]:
        """The levels that have numbers, least trusted first."""
        return tuple(level for level in self.levels if level in self.roles.value)

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """Which rows have a number and no class."""
        return np.isin(self.fidelity, self.numeric_levels)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes of the other rows, of the type of the classes."""
        own = self.label[~self.is_number]
        return np.array(own.tolist()) if own.dtype.kind == "O" else own

    def counts(self) -> pd.DataFrame:
        """Rows by level (least trusted first) and class; rows with numbers are not counted."""
        has_class = ~self.is_number
        counts = pd.crosstab(pd.Series(self.fidelity[has_class]), pd.Series(self.classes))
        counts = counts.reindex(list(self.levels), fill_value=0)
        counts.index.name, counts.columns.name = "level", "class"
        return counts

    def numbers(self) -> tuple[NumberSummary, ...]:
        """The numbers of each level that has no classes, as far as there are any."""
        summaries = []
        for level in self.numeric_levels:
            own = self.label[self.fidelity == level].astype(float)
            if len(own):
                figures = own.mean(), own.std(), own.min(), own.max()
                summaries.append(NumberSummary(level, len(own), *map(float, figures)))
        return tuple(summaries)

    def to_frame(self) -> pd.DataFrame:
        """All of it as one tidy table; the levels are ordered categories.

        Numbers are in their own columns, beside labels, as `Roles.value` names them.
        """
        roles, columns = self.roles, dict(self.features.items())
        if self.ids is not None:
            columns = {roles.id or "id": pd.Series(self.ids), **columns}
        is_number = self.is_number
        label = pd.Series(self.label)
        columns[roles.target] = label.mask(is_number, None) if is_number.any() else label
        for column in dict.fromkeys(roles.value.values()):
            own = np.isin(self.fidelity, [k for k, v in roles.value.items() if v == column])
            if column == roles.target:  # text, as a column of a file has one type
                columns[column] = label.map(to_text).where(own | ~is_number, None)
            else:
                columns[column] = label.where(own).astype(float)
        levels = pd.Categorical(self.fidelity, categories=list(self.levels), ordered=True)
        columns[roles.fidelity] = pd.Series(levels)
        if self.weight is not None:
            columns[roles.weight or "weight"] = pd.Series(self.weight)
        if self.worker is not None:
            columns[roles.worker or "worker"] = pd.Series(self.worker)
        if self.audit is not None:
            columns[roles.audit or "audit"] = pd.Series(self.audit)
        return pd.DataFrame(columns)

    def _state(self) -> dict[str, Any]:
        """What a model file stores of the rows."""
        features = {name: _stored(values) for name, values in self.features.items()}
        others = {name: getattr(self, name) for name in _STORED}
        if self.roles.value:  # arrays of one type each
            numbers = self.is_number
            others["label"], others["value"] = self.classes, self.label[numbers].astype(float)
        if self.audit is not None:  # files of earlier versions do not have it
            others["audit"] = self.audit
        return {"features": features, "places": self.places.to_json(), **others}

    @classmethod
    def _restore(cls, state: Mapping[str, Any], roles: Roles) -> LabelledTable:
        """The rows of what was stored."""
        places = RowPlaces.from_json(state["places"])
        features = places.attached_to(pd.DataFrame(state["features"]))
        others = {name: state[name] for name in _STORED}
        others["audit"] = state.get("audit")
        if roles.value:
            is_number = np.isin(others["fidelity"], list(roles.value))
            label = np.empty(len(is_number), dtype=object)
            label[~is_number], label[is_number] = others["label"], state["value"]
            others["label"] = label
        table = cls(features, places=places, roles=roles, **others)
        columns = (table.label, table.fidelity, table.weight, table.ids, table.audit)
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
    *,
    embeddings: Any = None,
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
    embeddings : Embeddings or path, optional
        Further features of the rows: joined by id, or in the order of all rows of all tables.
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
    marks = roles.audit
    if embeddings is not None and not isinstance(embeddings, Embeddings):
        embeddings = Embeddings.read(embeddings, roles.id, **csv)
    with open_tables(sources, **csv) as tables:
        heads = [table.head for table in tables]
        if embeddings is not None:
            roles, heads = _with_embeddings(embeddings, roles, heads)
        roles, features, left_out = find_columns(heads, roles, names)
        frames = [
            table.read({roles.id or "id", *roles.text_columns(name)})
            for table, name in zip(tables, names, strict=True)
        ]
    if embeddings is not None:
        ids = [name for name in (roles.id, "id") if name is not None]
        frames = [*embeddings.add_to_blocks(frames, ids)]
    roles, features = leave_out_marks(frames, roles, marks, features)
    features, left_out = leave_out_addresses(frames, roles, features, left_out)
    scan = LabelScan(roles, names, {*features} - {*roles.categorical, *roles.text})
    columns = [scan.read(frame, table) for table, frame in enumerate(frames)]
    text, value, fidelity, weight = map(np.concatenate, zip(*columns, strict=True))
    by_level = pd.Series(text).groupby(fidelity, sort=False).unique()
    scan.check({str(level): texts for level, texts in by_level.items()}, file_of(frames[0]))
    label = with_numbers(text, value)
    joined = pd.concat([frame[features] for frame in frames], ignore_index=True)
    joined.attrs = {}
    every = [RowPlaces.of(frame).taken(frame.index) for frame in frames]
    places = RowPlaces(tuple(file for places in every for file in places.files))
    return LabelledTable(
        places.attached_to(joined),
        label,
        fidelity.astype(str),
        order_levels(Counter(fidelity), roles, file_of(frames[0])),
        None if roles.weight is None else weight,
        None if roles.id is None else np.concatenate([read_ids(f, roles.id) for f in frames]),
        places,
        roles,
        left_out,
        None if roles.worker is None else np.concatenate([_workers(f, roles) for f in frames]),
        None if roles.audit is None else _marks(frames, roles.audit),
    )


def _with_embeddings(
    embeddings: Embeddings, roles: Roles, heads: Sequence[pd.DataFrame]
) -> tuple[Roles, list[pd.DataFrame]]:
    """Roles and heads of tables with the columns of embeddings as features."""
    if roles.features is not None:
        roles = replace(roles, features=(*roles.features, *embeddings.names))
    columns = [dict.fromkeys([*head.columns, *embeddings.names]) for head in heads]
    return roles, [h.reindex(columns=[*names]) for h, names in zip(heads, columns, strict=True)]


def _workers(frame: pd.DataFrame, roles: Roles) -> NDArray[np.str_]:
    """Who gave the labels of a table, which need not say so."""
    if roles.worker is None or roles.worker not in frame.columns:
        return np.full(len(frame), "")
    return read_ids(frame, roles.worker)


def _marks(frames: Sequence[pd.DataFrame], column: str) -> NDArray[np.bool_]:
    """Which rows of the tables are marked, or an error that lists the cells that are no marks."""
    marked, errors = [], []
    for frame in frames:
        marks, wrong = read_marks(frame, column)
        marked.append(marks)
        cells = WrongCells(column, NO_MARK, ", nor is one after it", ", nor are {} after it")
        cells.add(frame, wrong)
        errors += [cells.error()] if cells else []
    raise_all(errors)
    return np.concatenate(marked)


def order_levels(counts: Mapping[str, int], roles: Roles, path: str | None) -> tuple[str, ...]:
    """Levels, least trusted first, as they were named, or if they are numbers.

    ``counts`` are rows. Those of `Roles.value` must be among them, and not the last.
    """

    def remedy(names: list[str]) -> str:
        return f"--levels {shlex.quote(join_names(names))} (in Python Roles(levels={names}))"

    try:
        levels = roles.levels or order_of_trust(counts, remedy, "the column")
    except ValueError as error:
        raise TableError(str(error), path=path, column=roles.fidelity) from None
    check_value(roles, levels)
    return levels


def with_numbers(text: NDArray[Any], value: NDArray[np.float64]) -> NDArray[Any]:
    """Labels as `as_classes` has them; numbers in their place where there are any."""
    is_number = ~np.isnan(value)
    if not is_number.any():
        return as_classes(text)
    label = np.empty(len(text), dtype=object)
    label[~is_number], label[is_number] = as_classes(text[~is_number]), value[is_number]
    return label


class Answers(NamedTuple):
    """What rows of a table say.

    Labels as text, None where they are missing or a number is; numbers, NaN elsewhere; levels, None
    where they are missing; weights.
    """

    label: NDArray[Any]
    value: NDArray[np.float64]
    fidelity: NDArray[Any]
    weight: NDArray[np.float64]


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


@contextmanager
def open_tables(sources: Sequence[Any], **csv: Any) -> Iterator[list[TypedTable | CsvTable]]:
    """The tables, which must have rows, to be read again and again."""
    with ExitStack() as stack:
        tables = []
        for place, source in enumerate(sources):
            if is_frame(source):
                source = _named(read_table(source), place)
            tables.append(stack.enter_context(open_table(source, **csv)))
            if not tables[-1].has_rows:
                raise TableError(NO_ROWS, path=file_of(tables[-1].head))
        yield tables


def _named(frame: pd.DataFrame, place: int) -> pd.DataFrame:
    """The frame; if it comes from no file it is named by its place."""
    if RowPlaces.of(frame).files[0].name:
        return frame
    places = RowPlaces.of_file(f"table {place + 1}", len(frame))
    return places.attached_to(frame.reset_index(drop=True))


class LabelScan:
    """Reads labels or numbers, levels and weights, whole or in blocks; notes what is wrong.

    ``names`` are the levels of the tables. ``compared`` features may not be numbers in one table
    and text in another.
    """

    def __init__(
        self, roles: Roles, names: Sequence[str | None], compared: Collection[str] = ()
    ) -> None:
        self._roles, self._names, self._compared = roles, names, sorted(compared)
        self._wrong: dict[tuple[int, str, str], WrongCells] = {}
        self._texts: dict[str, WrongCells] = {}
        self._with_numbers: dict[str, str | None] = {}  # the first file by feature

    def read(self, frame: pd.DataFrame, table: int) -> Answers:
        """What the rows of a table, or of a block of one, say."""
        roles, level = self._roles, self._names[table]
        own = np.full(len(frame), level, dtype=object)
        named = level_names(frame[roles.fidelity]) if roles.fidelity in frame.columns else own
        fidelity, missing = named if level is None else own, pd.isna(named)
        label, value = self._labels_and_numbers(table, frame, fidelity)
        if level is not None:
            self._note(table, frame, roles.fidelity, ~missing & (named != level), _OTHER_LEVEL)
        else:
            self._note(table, frame, roles.fidelity, missing, _NO_LEVEL)
            if roles.levels is not None:
                unknown = ~missing & ~np.isin(named.astype(str), roles.levels)
                self._note(table, frame, roles.fidelity, unknown, _UNKNOWN_LEVEL)
        weight = np.ones(len(frame))
        if roles.weight is not None:
            weight, _ = to_numbers(frame[roles.weight])
            wrong = ~(np.isfinite(weight) & (weight >= 0.0))
            self._note(table, frame, roles.weight, wrong, NO_WEIGHT)
        for name in self._compared:
            self._compare(frame, name)
        return Answers(label, value, fidelity, weight)

    def _labels_and_numbers(
        self, table: int, frame: pd.DataFrame, fidelity: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        roles, n = self._roles, len(frame)
        label, value = np.full(n, None, dtype=object), np.full(n, np.nan)
        has_label = np.ones(n, dtype=bool)
        for level, column in roles.value.items():
            own = fidelity == level
            if own.any():
                has_label &= ~own
                value[own] = to_numbers(frame[column])[0][own]
                self._note(table, frame, column, own & ~np.isfinite(value), _NO_NUMBER, level)
        if has_label.any():
            label[has_label] = cell_texts(frame[roles.target])[has_label]
            self._note(table, frame, roles.target, has_label & pd.isna(label), _NEITHER)
        return label, value

    def _note(
        self,
        table: int,
        frame: pd.DataFrame,
        column: str,
        wrong: Any,
        problem: str,
        numeric: str = "",
    ) -> None:
        others = (", nor has one after it", ", nor have {} rows after it")
        new = WrongCells(column, problem, *others)
        cells = self._wrong.setdefault((table, problem, numeric), new)
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

    def check(self, labels: Mapping[str, Collection[Any]], path: str | None) -> None:
        """Raise an error that lists what is wrong with the rows.

        ``labels`` are the different ones of each level, as text.
        """
        levels = name_few(self._roles.levels or ())
        errors = [
            cells.error(level=repr(self._names[table]), levels=levels, numeric=repr(numeric))
            for (table, _, numeric), cells in self._wrong.items()
            if cells
        ]
        raise_all(errors)
        _refuse_measurements(labels, path, self._roles)
        for name, file in self._with_numbers.items():
            if self._texts.get(name):
                raise self._texts[name].error(file=file)


def are_measured(labels: Collection[Any]) -> bool:
    """Whether labels, as text, are all numbers and some of them have decimals."""
    numbers, wrong = to_numbers(pd.Series([*labels], dtype=object))
    return not wrong.any() and bool((numbers != np.round(numbers))[~np.isnan(numbers)].any())


def name_value(level: str, column: str) -> str:
    """How to say that a column holds the numbers of a level."""
    option = shlex.quote(f"{level}={column}")
    return f"--value {option} (in Python Roles(value={{{level!r}: {column!r}}}))"


def _refuse_measurements(
    labels: Mapping[str, Collection[Any]], path: str | None, roles: Roles
) -> None:
    """Raise an error if labels of levels are measurements rather than classes."""
    measured = {level: texts for level, texts in labels.items() if are_measured(texts)}
    distinct = [*dict.fromkeys(text for text in chain(*measured.values()) if text is not None)]
    if len(distinct) <= MOST_FRACTIONS:
        return
    text = (
        f"there are {len(distinct)} different labels, such as {name_few(distinct[:3])}: "
        "measurements, not classes; put classes in, such as above and below a limit"
    )
    lower = [level for level in measured if roles.levels is None or level != roles.levels[-1]]
    if lower and len(labels) > 1:
        text += (
            f", or say that level {lower[0]!r} has numbers: {name_value(lower[0], roles.target)}"
        )
    raise TableError(text, path=path, column=roles.target)


def one_class_error(classes: Sequence[Any], path: str | None, roles: Roles) -> TableError:
    """The error of rows that have one class only, or no weight."""
    none = "no row with a weight has a label" if roles.value else "all rows have weight 0"
    what = f"all labels are {classes[0]!r}" if classes else none
    return TableError(
        f"{what}, and there must be two classes at least", path=path, column=roles.target
    )
