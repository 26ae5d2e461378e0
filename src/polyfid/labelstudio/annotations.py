"""Annotations of tasks: who made them, and which choice they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyfid.labelstudio.tasks import LabelStudioError, Task, TaskId, checked, field

CHOICES = "choices"


@dataclass(frozen=True)
class Annotation:
    """What an annotator said about a task.

    Parameters
    ----------
    task : int or str
        Id of the task.
    annotator : str
        The annotator's e-mail address, or id if there is none.
    names : frozenset of str
        Both of them.
    is_truth : bool
        Whether it is marked as ground truth.
    time : str
        When it was updated, which sorts as text; empty if that is unknown.
    result : list of dict
        What each control holds.
    """

    task: TaskId
    annotator: str
    names: frozenset[str]
    is_truth: bool
    time: str
    result: list[Mapping[str, Any]]

    def choice(self, control: str) -> str | None:
        """The one choice of a control; None if there is none."""
        where = f"task {self.task!r}, annotation of {self.annotator!r}"
        entries = [
            entry
            for entry in self.result
            if entry.get("type") == CHOICES and entry.get("from_name") == control
        ]
        if not entries:
            return None
        value = field(entries[0], "value", where, "an object", {})
        chosen = field(value, CHOICES, where, "a list")
        if chosen is None:
            raise LabelStudioError(f'{where}: "value" must have a list of "choices"')
        if len(entries) > 1 or set(value) != {CHOICES}:
            raise LabelStudioError(
                f"{where}: choices of {control!r} are about parts of the task; only choices about "
                "whole tasks can be read"
            )
        if len(chosen) > 1:
            raise LabelStudioError(
                f"{where}: {len(chosen)} choices of {control!r}; only single choices can be read"
            )
        return checked(chosen[0], f"{where}: a choice", "text") if chosen else None


def read_annotations(task: TaskId, content: Task) -> list[Annotation]:
    """The annotations of a task that were not skipped."""
    where = f"task {task!r}"
    read = []
    for one in field(content, "annotations", where, "a list", []):
        checked(one, f"{where}: an annotation", "an object")
        if field(one, "was_cancelled", where, "true or false"):
            continue
        is_truth = field(one, "ground_truth", where, "true or false", False)
        names = _annotator_names(one.get("completed_by"), where)
        if not names and not is_truth:
            raise LabelStudioError(
                f'{where}: an annotation has no "completed_by"; export the project with the '
                "details of users, or mark it as ground truth"
            )
        created = field(one, "created_at", where, "text", "")
        time = field(one, "updated_at", where, "text", created)
        result = field(one, "result", where, "a list", [])
        for entry in result:
            checked(entry, f'{where}: an entry of "result"', "an object")
        annotator = names[0] if names else ""
        read.append(Annotation(task, annotator, frozenset(names), is_truth, time, list(result)))
    return read


def _annotator_names(who: Any, where: str) -> list[str]:
    """The e-mail address and the id of an annotator, as far as an export has them."""
    given = [who.get("email"), who.get("id")] if isinstance(who, Mapping) else [who]
    what = f"{where}: an annotator"
    return [str(checked(v, what, "an integer", "text")) for v in given if v not in (None, "")]
