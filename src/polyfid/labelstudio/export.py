"""Exports of Label Studio as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from polyfid.labelstudio.annotations import CHOICES, Annotation, Label, annotations_of
from polyfid.labelstudio.items import items_of
from polyfid.labelstudio.tasks import LabelStudioError, few, read_tasks, task_ids, text


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
    found = [a for i, task in zip(ids, tasks, strict=True) for a in annotations_of(i, task)]
    name = _control(found, from_name)
    experts = _experts(found, trusted)
    labels = [a for a in (Label.of(a, name) for a in found) if a is not None]
    if len(labels) < len(found):
        warnings.warn(
            f"{len(found) - len(labels)} of {len(found)} annotations make no choice for {name!r} "
            "and are left out",
            UserWarning,
            stacklevel=2,
        )
    if not labels:
        raise LabelStudioError(f"no annotation makes a choice for {name!r}; is it the right name?")
    crowd = _latest(a for a in labels if not a.is_truth and not a.worker & experts.keys())
    sure = _trusted(labels, experts)
    answers = pd.DataFrame(
        [(a.task, a.name, a.label) for a in crowd], columns=["task", "worker", "label"]
    )
    gold = pd.DataFrame(list(sure.items()), columns=["task", "label"]) if sure else None
    return Export(items_of(ids, tasks, features), answers, gold)


def _control(annotations: list[Annotation], from_name: str | None) -> str:
    """The control whose choices are the labels."""
    entries = [entry for a in annotations for entry in a.result]
    if not entries:
        raise LabelStudioError("the export holds no annotations; there must be at least one")
    kinds = {str(entry.get("type")) for entry in entries}
    there = sorted({str(e.get("from_name")) for e in entries if e.get("type") == CHOICES})
    if not there:
        raise LabelStudioError(
            f"the annotations hold no choices but {few(kinds)}; only classification by one "
            "choice of a Choices control can be read"
        )
    if from_name is None and len(there) > 1:
        raise LabelStudioError(
            f"the annotations hold choices of {few(there)}; say which by from_name= (--from-name)"
        )
    if from_name is not None and from_name not in there:
        raise LabelStudioError(
            f"from_name must be a Choices control with annotations, got {from_name!r}; there is "
            f"{few(there)}"
        )
    return text(there[0] if from_name is None else from_name, "from_name")


def _experts(annotations: list[Annotation], trusted: Iterable[int | str] | None) -> dict[str, int]:
    """Trusted annotators and their ranks."""
    ranks = {str(who): rank for rank, who in enumerate(trusted or ())}
    there = {name for a in annotations for name in a.worker}
    strangers = [who for who in ranks if who not in there]
    if strangers:
        raise LabelStudioError(
            f"trusted: nobody called {few(strangers)} annotated anything; there is "
            f"{few(sorted({a.name for a in annotations}))}"
        )
    return ranks


def _latest(labels: Iterable[Label]) -> list[Label]:
    """The last label of each task by each annotator."""
    kept: dict[tuple[int | str, str], Label] = {}
    for new in labels:
        old = kept.get((new.task, new.name))
        if old is None or new.when > old.when:
            kept[new.task, new.name] = new
        elif new.when == old.when and new.label != old.label:
            raise LabelStudioError(
                f"task {new.task!r}: {new.name!r} chose {old.label!r} and {new.label!r}, and the "
                "export does not say which came last; delete one"
            )
    return list(kept.values())


def _trusted(labels: list[Label], experts: dict[str, int]) -> dict[int | str, str]:
    """The trusted label of each task that has one: ground truth, else that of the first expert."""
    sure: dict[int | str, str] = {}
    for new in (a for a in labels if a.is_truth):
        if sure.setdefault(new.task, new.label) != new.label:
            raise LabelStudioError(
                f"task {new.task!r}: {sure[new.task]!r} and {new.label!r} are both marked as "
                "ground truth; keep one"
            )
    by_experts = [a for a in labels if not a.is_truth and a.worker & experts.keys()]
    ranked = sorted(
        _latest(by_experts), key=lambda a: min(experts[n] for n in a.worker & experts.keys())
    )
    for new in ranked:
        sure.setdefault(new.task, new.label)
    return sure
