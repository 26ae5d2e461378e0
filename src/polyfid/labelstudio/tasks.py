"""Tasks in JSON: read with suspicion, written all or nothing."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polyfid.atomic import replacing

Task = Mapping[str, Any]
INT64 = 2**63


class LabelStudioError(ValueError):
    """What came is not what Label Studio exports, or cannot be brought into its format."""


def read_tasks(source: Any) -> list[Task]:
    """The tasks of an export: a file, or what is read from one."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        try:
            content = json.loads(path.read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise LabelStudioError(
                f"{path}: byte {error.start} is not UTF-8; Label Studio's JSON export is"
            ) from error
        except RecursionError as error:
            raise LabelStudioError(
                f"{path} is nested too deeply to be an export of Label Studio"
            ) from error
        except ValueError as error:
            raise LabelStudioError(
                f"{path} is not JSON ({_short(error)}); export the project in the format JSON"
            ) from error
    else:
        content = source
    if isinstance(content, Mapping) and "data" in content:
        content = [content]  # one task, as Label Studio leaves it in a cloud storage
    if not isinstance(content, list | tuple):
        raise LabelStudioError(
            f"an export of Label Studio is a list of tasks, got {type_of(content)}"
        )
    if not content:
        raise LabelStudioError("the export holds no tasks; there must be at least one")
    for place, task in enumerate(content):
        _check_task(place, task)
    return list(content)


def _check_task(place: int, task: Any) -> None:
    where = f"task {place + 1} of the list"
    if not isinstance(task, Mapping):
        raise LabelStudioError(f"{where} must be an object, got {type_of(task)}")
    if "data" not in task:
        raise LabelStudioError(
            f'{where} has no "data"; export the project in the format JSON, not JSON-MIN or CSV'
        )
    if not isinstance(task["data"], Mapping):
        raise LabelStudioError(f'{where}: "data" must be an object, got {type_of(task["data"])}')
    if "completions" in task:
        raise LabelStudioError(
            f'{where} has "completions", the format of Label Studio before 1.0; export it with a '
            "newer one"
        )


def task_id(place: int, task: Task) -> int | str:
    """The id of a task."""
    value = task.get("id")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise LabelStudioError(
            f'task {place + 1} of the list: "id" must be an integer or text, got {type_of(value)}'
        )
    return text(value, "an id") if isinstance(value, str) else value


def task_ids(tasks: list[Task]) -> list[int | str]:
    """The ids of tasks, which must differ: whole numbers if all are, else text."""
    ids = [task_id(place, task) for place, task in enumerate(tasks)]
    names = [str(i) for i in ids]
    if len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise LabelStudioError(f"several tasks have the id {repeated!r}; export one project")
    return ids if all(isinstance(i, int) and -INT64 <= i < INT64 for i in ids) else list(names)


def text(value: Any, what: str) -> str:
    """Text that can be written to a file."""
    if not isinstance(value, str):
        raise LabelStudioError(f"{what} must be text, got {type_of(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise LabelStudioError(f"{what} holds half a character: {value!r}") from error
    return value


def type_of(value: Any) -> str:
    """The type of a value in the words of JSON."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def few(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    shown = list(names)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return ", ".join(repr(name) for name in shown[:5]) + more


def write_json(content: Any, path: str | os.PathLike[str]) -> None:
    """Write a file all or nothing: it appears under its name when it is complete."""
    try:
        written = json.dumps(content, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise LabelStudioError(
            f"the tasks hold something that JSON cannot ({_short(error)})"
        ) from error
    with replacing(path) as file:
        file.write(f"{written}\n".encode())


def _short(error: Exception) -> str:
    return str(error)[:100]
