"""What annotators said about tasks, and which choice that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from polyfid.labelstudio.tasks import LabelStudioError, Task, text, type_of

CHOICES = "choices"


class Annotation(NamedTuple):
    """What somebody said about a task; ``worker`` are all names that the annotator goes by."""

    task: int | str
    name: str
    worker: frozenset[str]
    is_truth: bool
    when: str
    result: list[Mapping[str, Any]]

    @property
    def where(self) -> str:
        return f"task {self.task!r}, annotation of {self.name!r}"


def annotations_of(task: int | str, content: Task) -> list[Annotation]:
    """The annotations of a task that were not skipped."""
    listed = [] if content.get("annotations") is None else content["annotations"]
    if not isinstance(listed, list):
        raise LabelStudioError(
            f'task {task!r}: "annotations" must be a list, got {type_of(listed)}'
        )
    found = []
    for one in listed:
        if not isinstance(one, Mapping):
            raise LabelStudioError(
                f"task {task!r}: an annotation must be an object, got {type_of(one)}; export them "
                "completely"
            )
        for flag in ("was_cancelled", "ground_truth"):
            if not isinstance(one.get(flag), bool | None):
                raise LabelStudioError(f'task {task!r}: "{flag}" must be true or false')
        if one.get("was_cancelled"):
            continue
        is_truth = bool(one.get("ground_truth"))
        name, names = _annotator(task, one.get("completed_by"), is_truth)
        when = one.get("updated_at") or one.get("created_at")
        result = [] if one.get("result") is None else one["result"]
        if not isinstance(result, list) or not all(isinstance(r, Mapping) for r in result):
            raise LabelStudioError(f'task {task!r}: "result" must be a list of objects')
        moment = when if isinstance(when, str) else ""
        found.append(Annotation(task, name, names, is_truth, moment, result))
    return found


def _annotator(task: int | str, who: Any, is_truth: bool) -> tuple[str, frozenset[str]]:
    """What to call an annotator, and all names that one goes by."""
    given = [who.get("email"), who.get("id")] if isinstance(who, Mapping) else [who]
    names = []
    for value in given:
        if isinstance(value, int) and not isinstance(value, bool):
            names.append(str(value))
        elif value is not None:
            names.append(text(value, f"task {task!r}: an annotator"))
    names = [name for name in names if name]
    if not names and not is_truth:
        raise LabelStudioError(
            f'task {task!r}: an annotation has no "completed_by"; export the project with the '
            "details of users, or mark it as ground truth"
        )
    return names[0] if names else "", frozenset(names)


class Label(NamedTuple):
    """What somebody chose."""

    task: int | str
    name: str
    worker: frozenset[str]
    is_truth: bool
    when: str
    label: str

    @classmethod
    def of(cls, a: Annotation, from_name: str) -> Label | None:
        """The choice of an annotation; None if it makes none."""
        entries = [
            e for e in a.result if e.get("type") == CHOICES and e.get("from_name") == from_name
        ]
        if not entries:
            return None
        value = entries[0].get("value")
        if not isinstance(value, Mapping) or not isinstance(value.get(CHOICES), list):
            raise LabelStudioError(f'{a.where}: "value" must have a list of "choices"')
        if len(entries) > 1 or set(value) != {CHOICES}:
            raise LabelStudioError(
                f"{a.where}: choices of {from_name!r} are about parts of the task; only choices "
                "about whole tasks can be read"
            )
        chosen = value[CHOICES]
        if len(chosen) > 1:
            raise LabelStudioError(
                f"{a.where}: {len(chosen)} choices of {from_name!r}; only single choices can be "
                "read"
            )
        if not chosen:
            return None
        label = text(chosen[0], f"{a.where}: a choice")
        return cls(a.task, a.name, a.worker, a.is_truth, a.when, label)
