"""The data of tasks as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from polyfid.labelstudio.tasks import (
    LabelStudioError,
    Task,
    few,
    read_tasks,
    task_ids,
    text,
    type_of,
)

# Columns that tables of rows have for themselves.
RESERVED = {"id", "label", "fidelity", "weight", "worker"}


def read_items(source: Any, *, features: Sequence[str] | None = None) -> pd.DataFrame:
    """The tasks of a project as rows to predict, whether they have annotations or not.

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
    return items_of(task_ids(tasks), tasks, features)


def items_of(
    ids: list[int | str], tasks: list[Task], features: Sequence[str] | None
) -> pd.DataFrame:
    """The ids of tasks and fields of their data; all that make columns, or those asked for."""
    columns: dict[str, Any] = {"id": ids}
    fields: dict[str, None] = dict.fromkeys(key for task in tasks for key in task["data"])
    for field in fields if features is None else features:
        if field not in fields:
            raise LabelStudioError(
                f"features: no task has {field!r} in its data; there is {few(fields)}"
            )
        values = [task["data"].get(field) for task in tasks]
        odd = next((v for v in values if not isinstance(v, bool | int | float | str | None)), None)
        if odd is not None:
            if features is None:
                continue
            raise LabelStudioError(
                f"features: {field!r} holds {type_of(odd)}; it must hold numbers, text or truth "
                "values"
            )
        name = f"data.{field}" if field in RESERVED else text(field, "a field of data")
        if name in columns:
            raise LabelStudioError(f"features: there are two fields to be called {name!r}")
        columns[name] = _column(values, field)
    return pd.DataFrame(columns)


def _column(values: list[Any], field: str) -> Any:
    """Numbers where all are, truth values where all are, else text."""
    present = [v for v in values if v is not None]
    if present and all(isinstance(v, bool) for v in present):
        return values
    if present and all(isinstance(v, int | float) and not isinstance(v, bool) for v in present):
        try:
            numbers = [math.nan if v is None else float(v) for v in values]
        except OverflowError:
            numbers = [math.inf]
        if any(math.isinf(v) for v in numbers):
            raise LabelStudioError(f"data: {field!r} holds a number that is too large")
        return numbers
    return [None if v is None else text(str(v), f"data: {field!r}") for v in values]
