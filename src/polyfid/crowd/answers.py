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
from polyfid.crowd.long_form import Form, SourceTable, long_form
from polyfid.tables.column import read_ids, sorted_levels
from polyfid.text import name_few


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
    columns: Mapping[str, str],
    items: tuple[str, ...] | None = None,
) -> Answers:
    """Read tables of answers and of trusted labels; tasks must be among the ids of ``items``."""
    source = SourceTable.read(answers, "answers")
    said = _read_rows(source, long_form(source, form, columns), columns, items)
    truth = said[:0]
    if gold is not None:
        source = SourceTable.read(gold, "gold")
        cells = source.cells({name: columns[name] for name in ("task", "label")})
        for name in cells:
            source.refuse_gaps(cells[name])
        truth = _read_rows(source, cells, columns, items)
        _check_spelling(said["label"], truth["label"])
    tasks = items or sorted_levels(np.concatenate([said["task"], truth["task"]]))
    workers = sorted_levels(said["worker"].to_numpy())
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
    key = [name for name in ("task", "worker") if columns[name] in cells]
    ids = {name: read_ids(cells, columns[name]) for name in key}
    rows = pd.DataFrame(ids, index=cells.index)
    rows["label"] = source.read_labels(cells[columns["label"]])
    unknown = () if items is None else sorted_levels(np.setdiff1d(rows["task"], items))
    if items and unknown:
        place = source.row(rows.index[rows["task"] == unknown[0]][0])
        is_long = columns["task"] in source.frame
        raise ValueError(
            f"{source.title} has {len(unknown)} of {rows['task'].nunique()} tasks that are no "
            f"items: {name_few(unknown)}; see column "
            f"{columns['task'] if is_long else source.frame.columns[0]!r}, {place}. Ids of items "
            f"are such as {name_few(items[:2])}; add them to items, or drop their rows"
        )
    distinct = rows.drop_duplicates()
    clash = distinct.loc[distinct.duplicated(key), key].drop_duplicates().sort_values(key)
    if len(clash):
        raise ValueError(
            f"{source.title}: task {name_few(map(' by '.join, clash.to_numpy()))} has several "
            "labels that differ; keep one row each"
        )
    if len(distinct) < len(rows):
        warnings.warn(
            f"{source.title}: {len(rows) - len(distinct)} rows repeat another one and are left out",
            UserWarning,
            stacklevel=4,
        )
    return distinct


def _check_spelling(answers: pd.Series, gold: pd.Series) -> None:
    """Warn if labels of gold do not occur among the answers; if none does, raise an error."""
    given, trusted = np.unique(answers).tolist(), np.unique(gold).tolist()
    never_given = [label for label in trusted if label not in given]
    message = (
        f"gold has labels that nobody in answers gave: {name_few(never_given)}; answers have "
        f"{name_few(given)}. Write them alike"
    )
    if never_given == trusted:
        raise ValueError(message)
    if never_given:
        warnings.warn(message, UserWarning, stacklevel=4)
