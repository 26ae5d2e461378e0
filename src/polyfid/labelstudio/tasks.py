"""Tasks in Label Studio's JSON, and their data as a table."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polyfid.text import name_few

Tasks = dict[int | str, Mapping[str, Any]]  # by id

#: Types of JSON, in the words of messages. The first that fits counts: True is also an int.
KINDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a list",
    Mapping: "an object",
    type(None): "nothing",
}
NUMBERS = {"an integer", "a number"}
#: Columns that tables of labelled rows have; fields of the same name get another one.
RESERVED = {"id", "label", "fidelity", "weight", "worker"}
INT64 = 2**63


class LabelStudioError(ValueError):
    """What came is not what Label Studio exports, or cannot be brought into its format."""


def kind_of(value: Any) -> str:
    """The type of a value, one of `KINDS` if JSON has it."""
    return next((k for t, k in KINDS.items() if isinstance(value, t)), f"a {type(value).__name__}")


def checked(value: Any, what: str, *kinds: str) -> Any:
    """A value that must be of one of some kinds; messages call it ``what``."""
    if kind_of(value) not in kinds:
        raise LabelStudioError(f"{what} must be {' or '.join(kinds)}, got {kind_of(value)}")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise LabelStudioError(f"{what} holds half a character: {value!r}") from error
    return value


def field(holder: Mapping[str, Any], name: str, where: str, kind: str, default: Any = None) -> Any:
    """A field that must be of a kind; ``default`` if it is absent or null."""
    value = holder.get(name)
    return default if value is None else checked(value, f'{where}: "{name}"', kind)


def read_tasks(source: Any) -> Tasks:
    """The tasks of an export, which is a file or the content of one, by their ids."""
    content = source
    if isinstance(source, str | os.PathLike):
        try:
            content = json.loads(Path(source).read_bytes().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise LabelStudioError(
                f"{source} is not JSON ({str(error)[:100]}); export the project in the format JSON"
            ) from error
    if isinstance(content, Mapping) and "data" in content:
        content = [content]  # one task, as Label Studio leaves it in a cloud storage
    tasks = checked(content, "an export of Label Studio", "a list")
    if not tasks:
        raise LabelStudioError("the export holds no tasks; there must be at least one")
    for number, task in enumerate(tasks, 1):
        where = f"task {number} of the list"
        checked(task, where, "an object")
        if field(task, "data", where, "an object") is None or "completions" in task:
            raise LabelStudioError(
                f'{where} must have "data" and no "completions"; export the project in the format '
                "JSON, not JSON-MIN or CSV, by Label Studio 1.0 or later"
            )
    return dict(zip(check_ids(task.get("id") for task in tasks), tasks, strict=True))


def check_ids(values: Iterable[Any]) -> list[int | str]:
    """Ids of tasks, which must differ as text: integers if all are, else text."""
    ids = [
        checked(value, f'task {number} of the list: "id"', "an integer", "text")
        for number, value in enumerate(values, 1)
    ]
    names = pd.Series(map(str, ids), dtype=object)
    if names.duplicated().any():
        repeated = names[names.duplicated()].iloc[0]
        raise LabelStudioError(f"several tasks have the id {repeated!r}; export one project")
    return ids if all(isinstance(i, int) and -INT64 <= i < INT64 for i in ids) else names.tolist()


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
    return make_items(read_tasks(source), features)


def make_items(tasks: Tasks, features: Sequence[str] | None) -> pd.DataFrame:
    """Ids of tasks and the requested fields of their data; by default all that fit in a column."""
    columns: dict[str, Any] = {"id": list(tasks)}
    fields = dict.fromkeys(key for task in tasks.values() for key in task["data"])
    for name in fields if features is None else features:
        if name not in fields:
            raise LabelStudioError(
                f"features: no task has {name!r} in its data; there is {name_few(fields)}"
            )
        values = [task["data"].get(name) for task in tasks.values()]
        kinds = {kind_of(value) for value in values} - {"nothing"}
        if other := kinds - {*NUMBERS, "true or false", "text"}:
            if features is None:
                continue
            raise LabelStudioError(
                f"features: {name!r} holds {other.pop()}; it must hold numbers, text or truth "
                "values"
            )
        column = f"data.{name}" if name in RESERVED else checked(name, "a field of data", "text")
        if column in columns:
            raise LabelStudioError(f"features: there are two fields to be called {column!r}")
        columns[column] = _column(values, kinds, f"data: {name!r}")
    return pd.DataFrame(columns)


def _column(values: list[Any], kinds: set[str], what: str) -> Any:
    """Numbers or truth values if all are, else text."""
    if kinds == {"true or false"}:
        return values
    if not kinds or not kinds <= NUMBERS:
        return [None if v is None else checked(str(v), what, "text") for v in values]
    if any(v is not None and abs(v) > sys.float_info.max for v in values):
        raise LabelStudioError(f"{what} holds a number that is too large")
    return np.array(values, dtype=float)
