"""The data of tasks as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from polyfid.labelstudio.tasks import (
    LabelStudioError,
    Task,
    TaskId,
    check_ids,
    checked,
    kind_of,
    read_tasks,
)
from polyfid.text import name_few

#: Columns that tables of labelled rows have; fields of the same name get another one.
RESERVED = {"id", "label", "fidelity", "weight", "worker"}
NUMBERS = {"an integer", "a number"}
INT64 = 2**63


def read_items(source: Any, *, features: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the tasks of a project as rows to predict, whether they have annotations or not.

    Parameters
    ----------
    source : path, or list of tasks
        As in `read_export`.
    features : sequence of str, optional
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
    tasks = read_tasks(source)
    return make_items(task_ids(tasks), tasks, features)


def task_ids(tasks: list[Task]) -> list[TaskId]:
    """The ids of tasks: integers if all are, else text."""
    ids = check_ids(task.get("id") for task in tasks)
    whole = all(isinstance(i, int) and -INT64 <= i < INT64 for i in ids)
    return ids if whole else [str(i) for i in ids]


def make_items(
    ids: list[TaskId], tasks: list[Task], features: Sequence[str] | None
) -> pd.DataFrame:
    """Ids of tasks and the requested fields of their data; by default all that fit in a column."""
    columns: dict[str, Any] = {"id": ids}
    fields = dict.fromkeys(key for task in tasks for key in task["data"])
    for field in fields if features is None else features:
        if field not in fields:
            raise LabelStudioError(
                f"features: no task has {field!r} in its data; there is {name_few(fields)}"
            )
        values = [task["data"].get(field) for task in tasks]
        kinds = {kind_of(value) for value in values} - {"nothing"}
        if other := kinds - {*NUMBERS, "true or false", "text"}:
            if features is None:
                continue
            raise LabelStudioError(
                f"features: {field!r} holds {other.pop()}; it must hold numbers, text or truth "
                "values"
            )
        name = f"data.{field}" if field in RESERVED else checked(field, "a field of data", "text")
        if name in columns:
            raise LabelStudioError(f"features: there are two fields to be called {name!r}")
        columns[name] = _column(values, kinds, f"data: {field!r}")
    return pd.DataFrame(columns)


def _column(values: list[Any], kinds: set[str], what: str) -> Any:
    """Numbers or truth values if all are, else text."""
    if kinds == {"true or false"}:
        return values
    if not kinds or not kinds <= NUMBERS:
        return [None if v is None else checked(str(v), what, "text") for v in values]
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        numbers = np.array([np.inf])
    if np.isinf(numbers).any():
        raise LabelStudioError(f"{what} holds a number that is too large")
    return numbers
