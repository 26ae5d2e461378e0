"""Exports of Label Studio as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from polyfid.labelstudio.tasks import LabelStudioError, checked, field, make_items, read_tasks
from polyfid.text import name_few

GROUND_TRUTH = "the ground truth"  # in place of the name of an annotator
CROWD = float("inf")  # rank of annotators who are not trusted


class Export(NamedTuple):
    """An export as tables, ready for `polyfid.crowd.to_rows`.

    ``items`` have ``id`` and the fields of the tasks' data, ``answers`` of annotators have
    ``task``, ``worker`` and ``label``, trusted labels in ``gold`` have ``task`` and ``label``.
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
        Tables ``items``, ``answers`` and ``gold``, which is None if nothing is trusted.

    Notes
    -----
    Skipped annotations, drafts and predictions are left out. An annotator goes by e-mail address
    if the export has it, else by id. Of several annotations of a task by the same annotator, the
    last one updated counts. Fields of data named like a column of the tables to come ("id",
    "label", "fidelity", "weight", "worker") are called "data.id" and so on.

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
    annotations = [a for i, task in tasks.items() for a in _read_annotations(i, task)]
    control = _find_control([e for a in annotations for e in a.result], from_name)
    ranks = {str(who): rank for rank, who in enumerate(trusted or ())}
    if absent := ranks.keys() - {name for a in annotations for name in a.names}:
        raise LabelStudioError(
            f"trusted: nobody called {name_few(sorted(absent))} annotated anything; there is "
            f"{name_few(sorted({a.names[0] for a in annotations}))}"
        )
    rows = [(a.task, *a.trust(ranks), a.choice(control)) for a in annotations]
    every = pd.DataFrame(rows, columns=["task", "worker", "time", "rank", "label"])
    labels = every.dropna(subset="label")
    if labels.empty:
        raise LabelStudioError(f"no annotation makes a choice for {control!r}; choose another one")
    if len(labels) < len(every):
        warnings.warn(
            f"{len(every) - len(labels)} of {len(every)} annotations make no choice for "
            f"{control!r} and are left out",
            UserWarning,
            stacklevel=2,
        )
    latest = _latest(labels)
    is_crowd = latest["rank"] == CROWD
    gold = latest[~is_crowd].sort_values("rank", kind="stable").drop_duplicates("task")
    return Export(
        make_items(tasks, features),
        latest.loc[is_crowd, ["task", "worker", "label"]].reset_index(drop=True),
        gold[["task", "label"]].reset_index(drop=True) if len(gold) else None,
    )


class Annotation(NamedTuple):
    """What somebody, by e-mail address or id, said about a task; times sort as text."""

    task: int | str
    names: list[str]
    is_truth: bool
    time: str
    result: Sequence[Mapping[str, Any]]

    def trust(self, ranks: Mapping[str, int]) -> tuple[str, str, float]:
        """Annotator, time and rank, which is the smaller the more trusted; truth is nobody's."""
        if self.is_truth:
            return GROUND_TRUTH, "", -1.0
        return self.names[0], self.time, min(ranks.get(name, CROWD) for name in self.names)

    def choice(self, control: str) -> str | None:
        """The one choice of a control; None if there is none."""
        where = f"task {self.task!r}, annotation of {self.names[0]!r}"
        entries = [
            field(entry, "value", where, "an object", {})
            for entry in self.result
            if entry.get("type") == "choices" and entry.get("from_name") == control
        ]
        if not entries:
            return None
        chosen = field(entries[0], "choices", where, "a list", [])
        if len(entries) > 1 or set(entries[0]) != {"choices"} or len(chosen) > 1:
            raise LabelStudioError(
                f"{where}: {control!r} must hold one choice about the whole task, got "
                f"{str(entries)[:200]}; other annotations cannot be read"
            )
        return checked(chosen[0], f"{where}: a choice", "text") if chosen else None


def _read_annotations(task: int | str, content: Mapping[str, Any]) -> Iterator[Annotation]:
    """The annotations of a task that were not skipped."""
    where = f"task {task!r}"
    for one in field(content, "annotations", where, "a list", []):
        checked(one, f"{where}: an annotation", "an object")
        result = field(one, "result", where, "a list", [])
        for entry in result:
            checked(entry, f'{where}: an entry of "result"', "an object")
        who = one.get("completed_by")
        given = [who.get("email"), who.get("id")] if isinstance(who, Mapping) else [who]
        what = f'{where}: an annotator ("completed_by")'
        names = [str(checked(v, what, "an integer", "text")) for v in given if v not in (None, "")]
        created = field(one, "created_at", where, "text", "")
        time = field(one, "updated_at", where, "text", created)
        if field(one, "was_cancelled", where, "true or false"):
            continue
        is_truth = field(one, "ground_truth", where, "true or false", False)
        if not names and not is_truth:
            raise LabelStudioError(
                f'{where}: an annotation has no "completed_by"; export the project with the '
                "details of users, or mark it as ground truth"
            )
        yield Annotation(task, names or [GROUND_TRUTH], is_truth, time, result)


def _find_control(entries: list[Mapping[str, Any]], from_name: str | None) -> str:
    """The control whose choices are the labels."""
    controls = sorted({str(e.get("from_name")) for e in entries if e.get("type") == "choices"})
    if not controls:
        kinds = name_few(sorted({str(entry.get("type")) for entry in entries}))
        raise LabelStudioError(
            f"the export holds no annotations by a Choices control, only {kinds or 'empty ones'}; "
            "nothing else can be read"
        )
    name = controls[0] if from_name is None and len(controls) == 1 else from_name
    if name not in controls:
        raise LabelStudioError(
            "from_name (--from-name) must be a Choices control with annotations, "
            f"{name_few(controls)}; got {from_name!r}"
        )
    return str(checked(name, "from_name", "text"))


def _latest(labels: pd.DataFrame) -> pd.DataFrame:
    """The last label of each task by each annotator, and the one that is its ground truth."""
    key = ["task", "worker"]
    last = labels[labels["time"] == labels.groupby(key, sort=False)["time"].transform("max")]
    distinct = last.drop_duplicates([*key, "label"])
    clash = distinct[distinct.duplicated(key, keep=False)]
    for (task, worker), names in clash.groupby(key, sort=False)["label"]:
        raise LabelStudioError(
            f"task {task}: {worker} says {name_few(names)}, and the export does not say which came "
            "last; keep one"
        )
    return distinct
