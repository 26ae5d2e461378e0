"""Exports of Label Studio as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from polyfid.labelstudio.annotations import CHOICES, Annotation, read_annotations
from polyfid.labelstudio.items import make_items, task_ids
from polyfid.labelstudio.tasks import LabelStudioError, checked, read_tasks
from polyfid.text import name_few

#: Ranks of labels: trusted annotators come between, the first of them with 0.
TRUTH, CROWD = -1.0, float("inf")


class Export(NamedTuple):
    """An export as tables, ready for `polyfid.crowd.to_rows`.

    Attributes
    ----------
    items : DataFrame
        ``id`` and the fields of the tasks' data.
    answers : DataFrame
        ``task``, ``worker``, ``label``: what annotators chose.
    gold : DataFrame or None
        ``task``, ``label``: what is trusted; None if nothing is.
    """

    items: pd.DataFrame
    answers: pd.DataFrame
    gold: pd.DataFrame | None


def read_export(
    source: Any,
    *,
    from_name: str | None = None,
    features: Sequence[str] | None = None,
    trusted: Iterable[int | str] | None = None,
) -> Export:
    """Read a project that Label Studio exported in the format JSON.

    Parameters
    ----------
    source : path, or list of tasks
        The file, or what is read from it.
    from_name : str, optional
        Name of the ``Choices`` control whose choices are the labels; needed if there are several.
        It must be one for a single choice about the whole task.
    features : sequence of str, optional
        Fields of the tasks' data to take. Default: all that hold numbers, text or truth values.
    trusted : iterable of int or str, optional
        Annotators, by id or e-mail address, whose labels are trusted like those marked as ground
        truth. Where they differ on a task, the one listed first counts.

    Returns
    -------
    Export
        Tables of items, answers and trusted labels.

    Notes
    -----
    Annotations that were skipped are left out, so are drafts and predictions. An annotator goes by
    e-mail address if the export has it, else by id. Of several annotations of a task by the same
    annotator, the last one updated counts. Fields of data named like a column of the tables to
    come ("id", "label", "fidelity", "weight", "worker") are called "data.id" and so on.

    Examples
    --------
    >>> from polyfid.labelstudio import read_export
    >>> chosen = {"type": "choices", "from_name": "genre", "to_name": "song"}
    >>> task = {
    ...     "id": 7,
    ...     "data": {"tempo": 120.0},
    ...     "annotations": [
    ...         {"completed_by": 1, "result": [chosen | {"value": {"choices": ["rock"]}}]},
    ...         {"completed_by": 2, "result": [chosen | {"value": {"choices": ["pop"]}}]},
    ...     ],
    ... }
    >>> export = read_export([task], trusted=[2])
    >>> export.answers
       task worker label
    0     7      1  rock
    >>> export.gold
       task label
    0     7   pop
    """
    if isinstance(trusted, str) or isinstance(features, str):
        raise LabelStudioError("features and trusted must be lists, got text; put it in a list")
    tasks = read_tasks(source)
    ids = task_ids(tasks)
    annotations = [a for i, task in zip(ids, tasks, strict=True) for a in read_annotations(i, task)]
    control = _find_control(annotations, from_name)
    ranks = _rank_experts(annotations, trusted)
    choices = [(a, a.choice(control)) for a in annotations]
    labels = [(a.task, *_trust(a, ranks), label) for a, label in choices if label is not None]
    if not labels:
        raise LabelStudioError(f"no annotation makes a choice for {control!r}; choose another one")
    if len(labels) < len(choices):
        warnings.warn(
            f"{len(choices) - len(labels)} of {len(choices)} annotations make no choice for "
            f"{control!r} and are left out",
            UserWarning,
            stacklevel=2,
        )
    latest = _latest(pd.DataFrame(labels, columns=["task", "worker", "time", "rank", "label"]))
    is_crowd = latest["rank"] == CROWD
    gold = latest[~is_crowd].sort_values("rank", kind="stable").drop_duplicates("task")
    return Export(
        make_items(ids, tasks, features),
        latest.loc[is_crowd, ["task", "worker", "label"]].reset_index(drop=True),
        gold[["task", "label"]].reset_index(drop=True) if len(gold) else None,
    )


def _find_control(annotations: list[Annotation], from_name: str | None) -> str:
    """The control whose choices are the labels."""
    entries = [entry for a in annotations for entry in a.result]
    controls = sorted({str(e.get("from_name")) for e in entries if e.get("type") == CHOICES})
    if not controls:
        kinds = name_few(sorted({str(entry.get("type")) for entry in entries}))
        raise LabelStudioError(
            f"the export holds no annotations by a Choices control, only {kinds or 'empty ones'}; "
            "nothing else can be read"
        )
    if from_name is None and len(controls) == 1:
        return str(checked(controls[0], "from_name", "text"))
    if from_name not in controls:
        raise LabelStudioError(
            "from_name (--from-name) must be a Choices control with annotations, "
            f"{name_few(controls)}; got {from_name!r}"
        )
    return from_name


def _rank_experts(
    annotations: list[Annotation], trusted: Iterable[int | str] | None
) -> dict[str, int]:
    """Names of trusted annotators, and their ranks: 0 for the most trusted one."""
    ranks = {str(who): rank for rank, who in enumerate(trusted or ())}
    absent = ranks.keys() - {name for a in annotations for name in a.names}
    if absent:
        raise LabelStudioError(
            f"trusted: nobody called {name_few(sorted(absent))} annotated anything; there is "
            f"{name_few(sorted({a.annotator for a in annotations}))}"
        )
    return ranks


def _trust(annotation: Annotation, ranks: dict[str, int]) -> tuple[str, str, float]:
    """The annotator, the time and the rank of an annotation; ground truth is nobody's."""
    if annotation.is_truth:
        return "the ground truth", "", TRUTH
    rank = min((ranks[name] for name in annotation.names & ranks.keys()), default=CROWD)
    return annotation.annotator, annotation.time, rank


def _latest(labels: pd.DataFrame) -> pd.DataFrame:
    """The last label of each task by each annotator, and the one that is its ground truth."""
    key = ["task", "worker", "rank"]
    last = labels[labels["time"] == labels.groupby(key, sort=False)["time"].transform("max")]
    distinct = last.drop_duplicates([*key, "label"])
    clash = distinct[distinct.duplicated(key, keep=False)]
    for (task, worker, _), names in clash.groupby(key, sort=False)["label"]:
        raise LabelStudioError(
            f"task {task}: {worker} says {name_few(names)}, and the export does not say which came "
            "last; keep one"
        )
    return distinct
