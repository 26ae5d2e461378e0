"""Tasks in Label Studio's JSON, and typed access to their fields."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

Task = Mapping[str, Any]
TaskId = int | str

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


def read_tasks(source: Any) -> list[Task]:
    """The tasks of an export, which is a file or the content of one."""
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
    tasks = list(checked(content, "an export of Label Studio", "a list"))
    if not tasks:
        raise LabelStudioError("the export holds no tasks; there must be at least one")
    for number, task in enumerate(tasks, 1):
        where = f"task {number} of the list"
        checked(task, where, "an object")
        if field(task, "data", where, "an object") is None:
            raise LabelStudioError(
                f'{where} has no "data"; export the project in the format JSON, not JSON-MIN or CSV'
            )
        if "completions" in task:
            raise LabelStudioError(
                f'{where} has "completions", the format of Label Studio before 1.0; export it with '
                "a newer one"
            )
    return tasks


def check_ids(values: Iterable[Any]) -> list[TaskId]:
    """Ids of tasks, which must differ as text."""
    ids = [
        checked(value, f'task {number} of the list: "id"', "an integer", "text")
        for number, value in enumerate(values, 1)
    ]
    names = pd.Series(map(str, ids), dtype=object)
    if names.duplicated().any():
        repeated = names[names.duplicated()].iloc[0]
        raise LabelStudioError(f"several tasks have the id {repeated!r}; export one project")
    return ids
