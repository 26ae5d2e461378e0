"""Tables of answers: long or wide as they come, as positions in lists as they are used."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.tables import RowPlaces, TableError, read_table
from polyfid.tables.column import cell_texts, read_ids, sorted_names
from polyfid.tables.places import no_column
from polyfid.text import name_few

Form = Literal["long", "wide"]

#: Arguments that name columns, and the options of the command line that set them.
OPTIONS = {"item_id": "--id", "task": "--task", "worker": "--worker", "label": "--target"}
#: Names by which columns are recognised where nothing is said; the first one counts before others.
COMMON_NAMES = {
    "item_id": ("id", "item_id", "task_id", "item", "task", "question"),
    "task": ("task", "task_id", "item", "item_id", "id", "question"),
    "worker": (
        "worker",
        "worker_id",
        "annotator",
        "annotator_id",
        "user",
        "user_id",
        "labeler",
    ),
    "label": ("label", "answer", "response", "rating"),
}
#: What pandas calls values that may be labels, apart from text.
NUMBER_TYPES = {"integer", "floating", "mixed-integer-float", "boolean"}


def to_long(
    answers: Any,
    *,
    form: Form | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
) -> pd.DataFrame:
    """Bring answers into long form: one row per answer.

    Parameters
    ----------
    answers : path, or pandas or polars DataFrame
        Long, with columns for task, annotator and label, or wide: the ids of the tasks in the
        first column and one column per annotator, where an empty cell is no answer. Files are read
        by `polyfid.tables.read_table`.
    form : {"long", "wide"}, optional
        By default, a table that has columns for task, annotator and label is long, and one that
        has neither annotator nor label and whose first column never repeats is wide.
    task, worker, label : str, optional
        Names of the columns, of a long table and of the result. By default these are recognised
        by common names, whatever their case: ``task``, ``item``, ``id``, ``task_id``, ``item_id``
        or ``question``; ``worker``, ``annotator``, ``user``, the same with ``_id``, or
        ``labeler``; ``label``, ``answer``, ``response`` or ``rating``. ``task``, ``worker`` and
        ``label`` count before the others; two others are an error.

    Returns
    -------
    DataFrame
        Columns ``task``, ``worker``, ``label``, without missing answers, in the order of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import to_long
    >>> to_long(pd.DataFrame({"song": [1, 2], "ann": ["rock", None], "bob": ["pop", "jazz"]}))
       task worker label
    0     1    ann  rock
    1     1    bob   pop
    2     2    bob  jazz
    """
    given = {"task": task, "worker": worker, "label": label}
    cells, columns = long_form(SourceTable.read(answers, "answers"), form, given)
    names = {column: given[role] or role for role, column in columns.items()}
    return cells.rename(columns=names).reset_index(drop=True)


@dataclass(frozen=True)
class SourceTable:
    """A table with numbered rows, what messages call it, and where its rows are."""

    title: str
    frame: pd.DataFrame
    places: RowPlaces

    @classmethod
    def read(cls, source: Any, argument: str) -> Self:
        """Read a file, or a data frame of pandas or polars; there must be at least one row."""
        try:
            frame = read_table(source)
        except (TypeError, TableError) as error:
            raise type(error)(f"{argument}: {error}") from error
        places, title = RowPlaces.of(frame), argument
        if places.file is not None:
            places, title = places.taken(frame.index), f"{argument} ({places.file})"
        if frame.empty:
            advice = " (leave gold out if there are no trusted labels)" * (argument == "gold")
            raise TableError(f"there must be at least one row{advice}", path=title)
        return cls(title, frame.reset_index(drop=True), places)

    def error(self, problem: str, row: int | None = None, column: Any = None) -> TableError:
        """The error of a row, counted from 0, or of the whole table."""
        number = None if row is None else self.places.place(row)[1]
        return TableError(problem, path=self.title, row=number, column=column)

    def find(self, role: str, given: str | None) -> str | None:
        """The column of a role: the one that was given, or the one with a common name, if any."""
        if given is not None:
            return given
        names = COMMON_NAMES[role]
        every = map(str, self.frame.columns)
        found = [name for name in every if re.sub(r"[ -]", "_", name.lower()) in names]
        exact = [name for name in found if name == names[0]]
        if len(exact or found) > 1:
            raise self.error(
                f"columns {name_few(found)} could each be the {role}; say which it is by {role}= "
                f"({OPTIONS[role]})"
            )
        return next(iter(exact or found), None)

    def cells(self, columns: Mapping[str, str]) -> pd.DataFrame:
        """The columns that arguments name, which must be there; ``columns`` has the names."""
        for argument, column in columns.items():
            if column not in self.frame:
                advice = f"rename one, or say which it is by {argument}= ({OPTIONS[argument]})"
                raise no_column(column, self.frame.columns, self.title, advice=advice)
        return self.frame[list(columns.values())]

    def refuse_gaps(self, values: pd.Series) -> None:
        """Raise an error if there are empty cells among some cells of a column of the frame."""
        gaps = values.index[pd.isna(cell_texts(values))]
        if len(gaps):
            problem = f"the cell is empty ({len(gaps)} in all); fill them in, or drop the rows"
            raise self.error(problem, gaps[0], values.name)

    def read_labels(self, values: pd.Series) -> NDArray[Any]:
        """Cells of a column of labels, without empty ones; whole numbers become integers."""
        cells = values.tolist()
        kind = pd.api.types.infer_dtype(cells)
        if kind == "string":
            return np.array([cell.strip() for cell in cells], dtype=object)
        if kind not in NUMBER_TYPES or not np.isfinite(cells).all():
            types = " and ".join(sorted({type(cell).__name__ for cell in cells}))
            problem = "labels must be text, finite numbers or truth values, and only one of these"
            raise self.error(f"{problem}; they are {types}", column=values.name)
        labels = np.array(cells)
        whole = labels.dtype.kind == "f" and (labels == np.floor(labels)).all()
        return labels.astype(np.int64) if whole else labels


def long_form(
    table: SourceTable, form: Form | None, given: Mapping[str, str | None]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """As `to_long`, but the index holds the position of each answer's row in the table.

    Columns have the names of the table; the names of task, worker and label come with it.
    """
    columns = {role: name or role for role, name in given.items()}
    is_wide = form == "wide"
    if form in (None, "long"):
        found = {role: table.find(role, name) for role, name in given.items()}
        in_long = {role: name or role for role, name in found.items()}
        is_wide = (form or _detect_form(table, in_long)) == "wide"
        columns = columns if is_wide else in_long
    if form not in (None, "long", "wide") or len({*columns.values()}) < len(columns):
        raise ValueError(
            'form must be "long", "wide" or None, and task, worker and label different columns; '
            f"got {form!r} and {columns}"
        )
    cells = _from_wide(table, columns) if is_wide else table.cells(columns)
    task, worker, label = columns.values()
    missing = pd.isna(cell_texts(cells[label]))
    if missing.all():
        raise table.error("there are no answers: no cell has a label")
    if missing.any() and not is_wide:
        warnings.warn(
            f"{table.title}, column {label!r}: {missing.sum()} of {len(cells)} rows have no label "
            "and are left out",
            UserWarning,
            stacklevel=3,
        )
    long = cells[~missing].infer_objects()
    table.refuse_gaps(long[task].rename(table.frame.columns[0] if is_wide else task))
    table.refuse_gaps(long[worker])
    return long, columns


def _detect_form(table: SourceTable, columns: Mapping[str, str]) -> Form:
    frame = table.frame
    present = [role for role, name in columns.items() if name in frame]
    if len(present) == len(columns):
        return "long"
    if present in ([], ["task"]) and frame.shape[1] > 1 and frame.iloc[:, 0].is_unique:
        return "wide"
    raise table.error(
        f"the table must be long, with columns {name_few(columns.values())} (or others with common "
        "names, or named by task=, worker= and label=: --task, --worker and --target), or wide, "
        "with the task in a first column that never repeats and one further column per annotator; "
        f"the columns are {name_few(frame.columns)}. "
        'Rename them, or say form="long" or "wide" (--form)'
    )


def _from_wide(table: SourceTable, columns: Mapping[str, str]) -> pd.DataFrame:
    """One row per cell, empty or not, in the order of the rows of the table."""
    tasks, cells = table.frame.iloc[:, 0], table.frame.iloc[:, 1:]
    task, worker, label = columns.values()
    long = {
        task: np.repeat(tasks.to_numpy(), cells.shape[1]),
        worker: np.tile(cells.columns.to_numpy(dtype=object), len(cells)),
        # As objects: a column of labels with gaps holds other types than one without.
        label: cells.to_numpy(dtype=object).ravel(),
    }
    return pd.DataFrame(long, index=np.repeat(tasks.index, cells.shape[1]))


@dataclass(frozen=True)
class Answers:
    """Answers sorted by task and annotator, and trusted labels.

    ``task``, ``worker`` and ``label`` (n_answers,) are positions in the sorted lists ``tasks``,
    ``workers`` and ``classes``; ``gold`` (n_tasks,) are those of trusted labels, -1 for none.
    """

    task: Indices
    worker: Indices
    label: Indices
    gold: Indices
    tasks: tuple[str, ...]
    workers: tuple[str, ...]
    classes: NDArray[Any]

    def votes(self) -> Array:
        """How often each task was given each label, (n_tasks, n_classes)."""
        votes = np.zeros((len(self.tasks), len(self.classes)))
        np.add.at(votes, (self.task, self.label), 1.0)
        return votes

    def take(self, chosen: NDArray[np.bool_]) -> Self:
        """Some of the answers, with the same lists."""
        return replace(
            self, task=self.task[chosen], worker=self.worker[chosen], label=self.label[chosen]
        )


def read_answers(
    answers: Any,
    gold: Any,
    form: Form | None,
    given: Mapping[str, str | None],
    items: tuple[str, ...] | None = None,
) -> Answers:
    """Read tables of answers and of trusted labels; tasks must be among the ids of ``items``."""
    source = SourceTable.read(answers, "answers")
    said = _read_rows(source, *long_form(source, form, given), items)
    truth = said[:0]
    if gold is not None:
        trusted = SourceTable.read(gold, "gold")
        columns = {role: trusted.find(role, given[role]) or role for role in ("task", "label")}
        cells = trusted.cells(columns)
        for name in cells:
            trusted.refuse_gaps(cells[name])
        truth = _read_rows(trusted, cells, columns, items)
        _check_spelling(said["label"], truth["label"], source.title, trusted.title)
    tasks = items or sorted_names(np.concatenate([said["task"], truth["task"]]))
    workers = sorted_names(said["worker"].to_numpy())
    classes = np.unique(np.concatenate([said["label"], truth["label"]]))
    task, worker = positions(said["task"], tasks), positions(said["worker"], workers)
    order = np.lexsort((worker, task))
    label = positions(said["label"], classes)
    gold_label = np.full(len(tasks), -1)
    gold_label[positions(truth["task"], tasks)] = positions(truth["label"], classes)
    return Answers(task[order], worker[order], label[order], gold_label, tasks, workers, classes)


def positions(names: Any, among: Any) -> Indices:
    """Where names are in a list of distinct ones, -1 for those that are not."""
    where = pd.Index(among, dtype=object).get_indexer(pd.Index(names, dtype=object))
    return np.asarray(where, dtype=np.intp)


def _read_rows(
    source: SourceTable,
    cells: pd.DataFrame,
    columns: Mapping[str, str],
    items: tuple[str, ...] | None,
) -> pd.DataFrame:
    """Distinct rows with ids as text in columns "task", "worker" if there is one, and "label"."""
    key = [role for role in ("task", "worker") if role in columns]
    ids = {name: read_ids(cells, columns[name]) for name in key}
    rows = pd.DataFrame(ids, index=cells.index)
    rows["label"] = source.read_labels(cells[columns["label"]])
    if items is not None and len(others := rows.loc[~rows["task"].isin(items), "task"]):
        names = sorted_names(others)
        raise source.error(
            f"{len(names)} of {rows['task'].nunique()} tasks are no items: {name_few(names)}. Ids "
            f"of items are such as {name_few(items[:2])}; add them to items, or drop their rows",
            others.index[others == names[0]][0],
        )
    distinct = rows.drop_duplicates()
    clash = distinct.loc[distinct.duplicated(key), key].drop_duplicates().sort_values(key)
    if len(clash):
        raise source.error(
            f"task {name_few(map(' by '.join, clash.to_numpy()))} has several labels that differ; "
            "keep one row each"
        )
    if len(distinct) < len(rows):
        warnings.warn(
            f"{source.title}: {len(rows) - len(distinct)} rows repeat another one and are left out",
            UserWarning,
            stacklevel=4,
        )
    return distinct


def _check_spelling(answers: pd.Series, gold: pd.Series, said_in: str, trusted_in: str) -> None:
    """Warn if labels of gold do not occur among the answers; if none does, raise an error.

    ``said_in`` and ``trusted_in`` are what messages call the tables.
    """
    given, trusted = np.unique(answers).tolist(), np.unique(gold).tolist()
    never_given = [label for label in trusted if label not in given]
    message = (
        f"{trusted_in} has labels that nobody in {said_in} gave: {name_few(never_given)}; answers "
        f"have {name_few(given)}. Write them alike"
    )
    if never_given == trusted:
        raise ValueError(message)
    if never_given:
        warnings.warn(message, UserWarning, stacklevel=4)
