"""Answers and trusted labels, checked and brought into one order."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.crowd.columns import (
    as_frame,
    as_ids,
    in_order,
    is_missing,
    listing,
    pick,
    places,
    read_ids,
    read_labels,
    refuse_gaps,
    titled,
)

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Answers:
    """Answers sorted by task and annotator, as places in the lists of names."""

    task: Index
    worker: Index
    label: Index
    tasks: tuple[str, ...]
    workers: tuple[str, ...]
    classes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.task)

    def votes(self) -> NDArray[np.float64]:
        """How often each task was given each label, (tasks, classes)."""
        shape = len(self.tasks), len(self.classes)
        place = np.ravel_multi_index((self.task, self.label), shape)
        return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape).astype(float)

    def take(self, chosen: NDArray[np.bool_]) -> Self:
        """Some of the answers, with the same lists of names."""
        return type(self)(
            self.task[chosen],
            self.worker[chosen],
            self.label[chosen],
            self.tasks,
            self.workers,
            self.classes,
        )


@dataclass(frozen=True)
class Gold:
    """Trusted labels: the tasks, and places in the list of classes."""

    tasks: tuple[str, ...]
    label: Index


def read_answers(
    long: pd.DataFrame, gold: Any, names: dict[str, str], title: str = "answers"
) -> tuple[Answers, Gold]:
    """Answers in long form, which messages call ``title``, and trusted labels or None, checked."""
    task, worker, label = (long[name] for name in names.values())
    rows = pd.DataFrame({"task": as_ids(task), "worker": as_ids(worker)})
    given, kind = read_labels(label, title)
    trusted, gold_given = _read_gold(gold, names, kind)
    classes = np.unique(np.concatenate([given, gold_given]) if len(gold_given) else given)
    rows["label"] = np.searchsorted(classes, given)
    rows = _without_repeats(rows, ["task", "worker"], title)
    about, by = rows["task"].tolist(), rows["worker"].tolist()
    tasks, workers = in_order(about), in_order(by)
    of_task, of_worker = places(about, tasks), places(by, workers)
    order = np.lexsort((of_worker, of_task))
    answers = Answers(
        of_task[order],
        of_worker[order],
        rows["label"].to_numpy(dtype=np.intp)[order],
        tuple(tasks),
        tuple(workers),
        classes,
    )
    if not len(gold_given):
        return answers, Gold((), np.zeros(0, dtype=np.intp))
    _warn_of_strangers(classes, given, gold_given)
    trusted["label"] = np.searchsorted(classes, gold_given)
    label_of = _without_repeats(trusted, ["task"], titled(gold, "gold")).set_index("task")["label"]
    ordered = in_order(label_of.index)
    return answers, Gold(tuple(ordered), label_of.loc[ordered].to_numpy(dtype=np.intp))


def _read_gold(gold: Any, names: dict[str, str], kind: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    if gold is None:
        return pd.DataFrame({"task": []}), np.zeros(0)
    frame = as_frame(gold, "gold")
    wanted = {argument: names[argument] for argument in ("task", "label")}
    _, label = pick(frame, "gold", wanted)
    advice = "drop them, for gold holds trusted labels only"
    refuse_gaps(frame, "gold", names["label"], is_missing(label), "label", advice)
    given, gold_kind = read_labels(label, titled(frame, "gold"))
    if gold_kind != kind:
        raise ValueError(
            f"the labels of answers are {kind} and those of gold {gold_kind}; write them alike"
        )
    return pd.DataFrame({"task": read_ids(frame, "gold", names["task"])}), given


def _warn_of_strangers(
    classes: NDArray[Any], given: NDArray[Any], gold_given: NDArray[Any]
) -> None:
    strangers = classes[~np.isin(classes, given)]
    if not np.isin(gold_given, given).any():
        raise ValueError(
            f"no label of gold ({listing(np.unique(gold_given))}) occurs in answers "
            f"({listing(np.unique(given))}); write them alike"
        )
    if len(strangers):
        warnings.warn(
            f"gold has labels that nobody in answers gave: {listing(strangers)}; check their "
            "spelling",
            UserWarning,
            stacklevel=4,
        )


def _without_repeats(rows: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    """Each key once; the same label twice is harmless, two labels are not."""
    distinct = rows.drop_duplicates()
    clash = distinct[distinct.duplicated(by)]
    if len(clash):
        who = sorted({tuple(key) for key in clash[by].to_numpy().tolist()})
        said = listing(key if len(key) > 1 else key[0] for key in who)
        raise ValueError(
            f"{name}: {' and '.join(by)} {said} {'has' if len(who) == 1 else 'have'} several "
            "labels that differ; keep one row each"
        )
    if len(distinct) < len(rows):
        warnings.warn(
            f"{name}: {len(rows) - len(distinct)} rows repeat another one and are left out",
            UserWarning,
            stacklevel=4,
        )
    return distinct
