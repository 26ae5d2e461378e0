"""Exports of Label Studio as tables."""

from __future__ import annotations

import json
import os
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from polyfid.text import name_few

Tasks = dict[int | str, Mapping[str, Any]]  # by id

#: What pandas calls numbers.
NUMBERS = {"integer", "floating", "mixed-integer-float"}
#: Columns that tables of labelled rows have; fields of the same name get another one.
RESERVED = {"id", "label", "fidelity", "weight", "worker"}
GROUND_TRUTH = "the ground truth"  # in place of the name of an annotator
CROWD = float("inf")  # rank of annotators who are not trusted
INT64 = 2**63


class LabelStudioError(ValueError):
    """What came is not what Label Studio exports, or cannot be brought into its format."""


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
    with naming(source):
        return _read_export(source, from_name, features, trusted)


def _read_export(
    source: Any,
    from_name: str | None,
    features: Sequence[str] | None,
    trusted: Iterable[int | str] | None,
) -> Export:
    if isinstance(trusted, str) or isinstance(features, str):
        raise LabelStudioError("features and trusted must be lists, got text; put it in a list")
    tasks = read_tasks(source)
    ranks = {str(who): rank for rank, who in enumerate(trusted or ())}
    annotations = [a for i, task in tasks.items() for a in _read_annotations(i, task, ranks)]
    if absent := ranks.keys() - {name for a in annotations for name in a.names}:
        raise LabelStudioError(
            f"trusted: nobody called {name_few(sorted(absent))} annotated anything; there is "
            f"{name_few(sorted({a.names[0] for a in annotations}))}"
        )
    controls = sorted({control for a in annotations for control in a.values})
    control = controls[0] if from_name is None and len(controls) == 1 else from_name
    if control not in controls:
        raise LabelStudioError(
            "from_name (--from-name) must be a Choices control with annotations, "
            f"{name_few(controls) or 'of which there is none'}; got {from_name!r}"
        )
    every = pd.DataFrame(annotations)
    every["label"] = [a.choice(control) for a in annotations]
    labels = every.dropna(subset="label")
    if labels.empty:
        raise LabelStudioError(f"no annotation makes a choice for {control!r}; choose another one")
    if len(labels) < len(every):
        warnings.warn(
            f"{len(every) - len(labels)} of {len(every)} annotations make no choice for "
            f"{control!r} and are left out",
            UserWarning,
            stacklevel=3,
        )
    latest = _latest(labels)
    is_crowd = latest["rank"] == CROWD
    gold = latest[~is_crowd].sort_values("rank", kind="stable").drop_duplicates("task")
    return Export(
        _make_items(tasks, features),
        latest.loc[is_crowd, ["task", "worker", "label"]].reset_index(drop=True),
        gold[["task", "label"]].reset_index(drop=True) if len(gold) else None,
    )


def read_items(source: Any, *, features: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the tasks of a project as rows to predict, whether they have annotations or not.

    Parameters
    ----------
    source, features
        As in `read_export`.

    Returns
    -------
    DataFrame
        ``id`` and the fields of the tasks' data, as in the items of `read_export`.

    Examples
    --------
    >>> from polyfid.labelstudio import read_items
    >>> read_items([{"id": 7, "data": {"tempo": 120.0}}])
       id  tempo
    0   7  120.0
    """
    with naming(source):
        return _make_items(read_tasks(source), features)


@contextmanager
def naming(source: Any) -> Iterator[None]:
    """A block whose errors name the file that was read, if it is one."""
    try:
        yield
    except LabelStudioError as error:
        if not isinstance(source, str | os.PathLike) or str(error).startswith(str(source)):
            raise
        raise LabelStudioError(f"{os.fspath(source)}: {error}") from error


def read_tasks(source: Any) -> Tasks:
    """The tasks of an export, which is a file or the content of one, by their ids."""
    content, name = source, "an export of Label Studio"
    if isinstance(source, str | os.PathLike):
        name = str(source)
        try:
            content = json.loads(Path(source).read_bytes().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise LabelStudioError(
                f"{name} is not JSON ({str(error)[:100]}); export the project in the format JSON"
            ) from error
    if isinstance(content, Mapping) and "data" in content:
        content = [content]  # one task, as Label Studio leaves it in a cloud storage
    if not isinstance(content, list | tuple) or not content:
        raise LabelStudioError(f"{name} must be a list of tasks, got {str(content)[:100]}")
    for number, task in enumerate(content, 1):
        is_task = isinstance(task, Mapping) and isinstance(task.get("data"), Mapping)
        if not is_task or "completions" in task:
            raise LabelStudioError(
                f'task {number} of the list must be an object with "data" and no "completions"; '
                "export the project in the format JSON, not JSON-MIN or CSV, by Label Studio 1.0 "
                "or later"
            )
    return dict(zip(check_ids(task.get("id") for task in content), content, strict=True))


def check_ids(values: Iterable[Any]) -> list[int | str]:
    """Ids of tasks, which must differ as text: integers if all are, else text."""
    ids = list(values)
    for number, value in enumerate(ids, 1):
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise LabelStudioError(
                f'task {number} of the list: "id" must be an integer or text, got {value!r}'
            )
    names = pd.Series(map(str, ids), dtype=object)
    if names.duplicated().any():
        repeated = names[names.duplicated()].iloc[0]
        raise LabelStudioError(f"several tasks have the id {repeated!r}; export one project")
    return ids if all(isinstance(i, int) and -INT64 <= i < INT64 for i in ids) else names.tolist()


class Annotation(NamedTuple):
    """What somebody, by e-mail address or id, said about a task.

    Times sort as text. The rank is the smaller the more trusted. The ground truth is nobody's.
    ``values`` are what was entered in each Choices control.
    """

    task: int | str
    worker: str
    time: str
    rank: float
    names: list[str]
    values: Mapping[str, list[Any]]

    def choice(self, control: str) -> str | None:
        """The one choice of a control; None if there is none."""
        values = self.values.get(control, [])
        match values:
            case [] | [{"choices": []}]:
                return None
            case [{"choices": [str(choice)], **others}] if not others:
                return choice
        raise LabelStudioError(
            f"task {self.task!r}, annotation of {self.names[0]!r}: {control!r} must hold one "
            f"choice about the whole task, got {str(values)[:200]}; other annotations cannot be "
            "read"
        )


def _read_annotations(
    task: int | str, content: Mapping[str, Any], ranks: Mapping[str, int]
) -> Iterator[Annotation]:
    """The annotations of a task that were not skipped; ``ranks`` are those of trusted people."""
    try:
        for one in content.get("annotations") or ():
            who, values = one.get("completed_by"), defaultdict(list)
            ids = [who.get("email"), who.get("id")] if isinstance(who, Mapping) else [who]
            names = [str(name) for name in ids if name not in (None, "")]
            time = one.get("updated_at") or one.get("created_at") or ""
            for entry in one.get("result") or ():
                if entry.get("type") == "choices":
                    values[str(entry.get("from_name"))].append(entry.get("value"))
            if one.get("was_cancelled"):
                continue
            if one.get("ground_truth"):
                yield Annotation(task, GROUND_TRUTH, "", -1.0, names or [GROUND_TRUTH], values)
                continue
            if not names:
                raise LabelStudioError(
                    f'task {task!r}: an annotation has no "completed_by"; export the project with '
                    "the details of users, or mark it as ground truth"
                )
            rank = min(ranks.get(name, CROWD) for name in names)
            yield Annotation(task, names[0], str(time), rank, names, values)
    except (AttributeError, TypeError) as error:
        raise LabelStudioError(
            f"task {task!r} has annotations that are not as Label Studio exports them ({error}); "
            "export the project in the format JSON"
        ) from error


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


def _make_items(tasks: Tasks, features: Sequence[str] | None) -> pd.DataFrame:
    """Ids of tasks and the requested fields of their data; by default all that fit in a column."""
    columns: dict[str, Any] = {"id": list(tasks)}
    fields = dict.fromkeys(key for task in tasks.values() for key in task["data"])
    for name in fields if features is None else features:
        values = [task["data"].get(name) for task in tasks.values()]
        is_nested = any(isinstance(value, list | tuple | Mapping) for value in values)
        if is_nested and features is None:
            continue
        column = f"data.{name}" if name in RESERVED else name
        if name not in fields or is_nested or column in columns:
            raise LabelStudioError(
                f"features: {name!r} must be a field of data that holds numbers, text or truth "
                f"values, and no two columns may be called {column!r}; there is {name_few(fields)}"
            )
        columns[column] = _column(values, name)
    return pd.DataFrame(columns)


def _column(values: list[Any], name: str) -> Any:
    """Numbers or truth values if all are, else text."""
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind == "boolean":
        return values
    if kind not in NUMBERS:
        return [None if value is None else str(value) for value in values]
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        numbers = np.array([np.inf])
    if np.isinf(numbers).any():
        raise LabelStudioError(f"data: {name!r} holds a number that is too large")
    return numbers
