"""Answers and trusted labels, as positions in lists of tasks, annotators and classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.crowd.long_form import Form, long_form
from polyfid.crowd.source_table import SourceTable
from polyfid.tables.column import read_ids, sorted_levels
from polyfid.text import name_few


@dataclass(frozen=True)
class Answers:
    """Answers sorted by task and annotator, and trusted labels.

    Parameters
    ----------
    task, worker, label : Indices of shape (n_answers,)
        Positions in ``tasks``, ``workers`` and ``classes``.
    gold : Indices of shape (n_tasks,)
        Position of the trusted label of each task in ``classes``, -1 where there is none.
    tasks, workers : tuple of str
        Ids, sorted. Tasks may have neither answers nor a trusted label.
    classes : array of shape (n_classes,)
        The different labels, sorted.
    """

    task: Indices
    worker: Indices
    label: Indices
    gold: Indices
    tasks: tuple[str, ...]
    workers: tuple[str, ...]
    classes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.task)

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
    columns: Mapping[str, str],
    items: tuple[str, ...] | None = None,
) -> Answers:
    """Read tables of answers and of trusted labels.

    Parameters
    ----------
    answers, gold : tables, or None for no gold
    form : of the answers; see `polyfid.crowd.to_long`.
    columns : names of the columns of tasks, annotators and labels.
    items : sorted ids that tasks may have; by default those that they have.
    """
    source = SourceTable.read(answers, "answers")
    tables = [(source, _text_ids(source, long_form(source, form, columns), columns))]
    if gold is not None:
        tables.append(_read_gold(gold, columns))
        _check_spelling(*(rows["label"] for _, rows in tables))
    tasks = sorted_levels(np.concatenate([rows["task"] for _, rows in tables]))
    if items is not None:
        for source, rows in tables:
            _refuse_unknown(source, rows["task"], columns["task"], items)
        tasks = items
    classes = np.unique(np.concatenate([rows["label"] for _, rows in tables]))
    said, *trusted = (_without_repeats(source, rows) for source, rows in tables)
    workers = sorted_levels(said["worker"].to_numpy())
    task, worker = positions(said["task"], tasks), positions(said["worker"], workers)
    order = np.lexsort((worker, task))
    label = np.searchsorted(classes, said["label"].to_numpy())
    gold_label = np.full(len(tasks), -1)
    for rows in trusted:
        code = np.searchsorted(classes, rows["label"].to_numpy())
        gold_label[positions(rows["task"], tasks)] = code
    return Answers(task[order], worker[order], label[order], gold_label, tasks, workers, classes)


def _text_ids(source: SourceTable, cells: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Rows of a table with ids as text, in columns "task", "worker" if there is one, "label"."""
    labels = source.read_labels(cells[columns["label"]])
    present = [name for name in ("task", "worker") if columns[name] in cells]
    ids = {name: read_ids(cells, columns[name]) for name in present}
    return pd.DataFrame({**ids, "label": labels}, index=cells.index)


def _read_gold(gold: Any, columns: Mapping[str, str]) -> tuple[SourceTable, pd.DataFrame]:
    """A table of trusted labels, in which no cell is empty."""
    source = SourceTable.read(gold, "gold")
    task, label = columns["task"], columns["label"]
    source.require({"task": task, "label": label})
    cells = source.frame[[task, label]]
    advice = "drop them, for gold holds trusted labels only"
    source.refuse_gaps(cells[label], "label", advice)
    source.refuse_gaps(cells[task])
    return source, _text_ids(source, cells, columns)


def positions(names: Any, among: Any) -> Indices:
    """Where names are in a list of distinct ones, -1 for those that are not."""
    where = pd.Index(among, dtype=object).get_indexer(pd.Index(names, dtype=object))
    return np.asarray(where, dtype=np.intp)


def _check_spelling(answers: pd.Series, gold: pd.Series) -> None:
    """Raise an error or warn if labels of gold do not occur among the answers."""
    given, trusted = np.unique(answers).tolist(), np.unique(gold).tolist()
    never_given = [label for label in trusted if label not in given]
    if never_given == trusted:
        raise ValueError(
            f"no label of gold ({name_few(trusted)}) occurs in answers ({name_few(given)}); "
            "write them alike"
        )
    if never_given:
        warnings.warn(
            f"gold has labels that nobody in answers gave: {name_few(never_given)}; check their "
            "spelling",
            UserWarning,
            stacklevel=4,
        )


def _refuse_unknown(
    source: SourceTable, tasks: pd.Series, column: str, items: tuple[str, ...]
) -> None:
    """Raise an error if there are tasks that are no items."""
    unknown = sorted_levels(np.setdiff1d(tasks, items))
    if unknown:
        row = source.row(tasks.index[tasks == unknown[0]][0])
        if column not in source.frame:  # a wide table
            column = source.frame.columns[0]
        raise ValueError(
            f"{source.title} has {len(unknown)} of {tasks.nunique()} tasks that are no items: "
            f"{name_few(unknown)}; see column {column!r}, {row}. Ids of items are such as "
            f"{name_few(items[:2])}; add them to items, or drop their rows"
        )


def _without_repeats(source: SourceTable, rows: pd.DataFrame) -> pd.DataFrame:
    """Each task, or task and annotator, once: two labels that differ are an error."""
    key = [name for name in rows.columns if name != "label"]
    distinct = rows.drop_duplicates()
    clash = distinct.loc[distinct.duplicated(key), key].drop_duplicates().sort_values(key)
    if len(clash):
        names = clash[key[0]] if len(key) == 1 else clash.itertuples(index=False, name=None)
        raise ValueError(
            f"{source.title}: {' and '.join(key)} {name_few(names)} "
            f"{'has' if len(clash) == 1 else 'have'} several labels that differ; keep one row each"
        )
    if len(distinct) < len(rows):
        warnings.warn(
            f"{source.title}: {len(rows) - len(distinct)} rows repeat another one and are left out",
            UserWarning,
            stacklevel=5,
        )
    return distinct
