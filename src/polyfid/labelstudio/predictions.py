"""Predictions in the format that Label Studio imports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid._version import __version__
from polyfid.labelstudio.tasks import LabelStudioError, read_tasks, task_id, text, write_json

PREFIX = "p_"  # of columns of probabilities in tables of predictions
SLACK = 1e-6  # by which probabilities may miss a sum of 1


def write_predictions(
    tasks: Any,
    proba: Any,
    path: str | os.PathLike[str],
    *,
    from_name: str,
    to_name: str,
    model_version: str = f"polyfid {__version__}",
    item_id: str = "id",
) -> None:
    """Write the most probable label of each task, with its probability as the score.

    In Label Studio, tasks sorted by prediction score come with the least certain ones first.

    Parameters
    ----------
    tasks : path, list of tasks, or sequence of ids
        With tasks (an export of the project, or a file to import), the file holds tasks with
        predictions: importing it makes new tasks of them. With ids of tasks that a project has
        already, it holds predictions alone, to be posted to
        ``/api/projects/<project>/import/predictions``.
    proba : pandas or polars DataFrame
        One row a task: probabilities in columns "p_<label>", or, without such columns, in all
        columns but ``item_id``, named by label. Rows are matched by ``item_id`` where there is such
        a column, else they must be in the order of the tasks.
    path : path
        The file, which appears when it is complete.
    from_name, to_name : str
        Names of the ``Choices`` control and of the object that it is about.
    model_version : str, optional
        Under which Label Studio lists the predictions.
    item_id : str
        Column of ``proba`` with ids of tasks.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from polyfid.labelstudio import write_predictions
    >>> proba = pd.DataFrame({"id": [7], "p_pop": [0.25], "p_rock": [0.75]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "predictions.json"
    ...     write_predictions(
    ...         [7], proba, file, from_name="genre", to_name="song", model_version="first"
    ...     )
    ...     prediction = json.loads(file.read_text())[0]
    >>> prediction["task"], prediction["score"], prediction["result"][0]["value"]
    (7, 0.75, {'choices': ['rock']})
    """
    for name, value in (
        ("from_name", from_name),
        ("to_name", to_name),
        ("model_version", model_version),
    ):
        if not text(value, name):
            raise LabelStudioError(f"{name} must not be empty")
    ids, given = _read(tasks)
    labels, values = _probabilities(proba, ids, item_id)
    best = values.argmax(axis=1)
    scores = values[np.arange(len(values)), best]
    predictions = [
        {
            "model_version": model_version,
            "score": float(score),
            "result": [
                {
                    "from_name": from_name,
                    "to_name": to_name,
                    "type": "choices",
                    "value": {"choices": [labels[place]]},
                }
            ],
        }
        for place, score in zip(best, scores, strict=True)
    ]
    written: list[dict[str, Any]]
    if given is None:
        written = [{"task": i, **p} for i, p in zip(ids, predictions, strict=True)]
    else:
        written = [
            {"id": i, "data": task["data"], "predictions": [p]}
            for i, task, p in zip(ids, given, predictions, strict=True)
        ]
    write_json(written, path)


def _read(tasks: Any) -> tuple[list[int | str], list[Mapping[str, Any]] | None]:
    """Ids of tasks, and the tasks if they came."""
    if isinstance(tasks, str | os.PathLike | Mapping) or (
        isinstance(tasks, list | tuple) and any(isinstance(t, Mapping) for t in tasks)
    ):
        read = read_tasks(tasks)
        ids = [task_id(place, task) for place, task in enumerate(read)]
        given: list[Mapping[str, Any]] | None = read
    elif isinstance(tasks, Iterable):
        # Numbers of numpy and pandas have an item() that is plain.
        plain = [t.item() if isinstance(t, np.generic) else t for t in tasks]
        ids = [task_id(place, {"id": i}) for place, i in enumerate(plain)]
        given = None
    else:
        raise LabelStudioError(
            f"tasks must be a file, a list of tasks or ids, got {type(tasks).__name__}"
        )
    names = pd.Series([str(i) for i in ids], dtype=object)
    if names.duplicated().any():
        raise LabelStudioError(f"several tasks have the id {names[names.duplicated()].iloc[0]!r}")
    return ids, given


def _probabilities(
    proba: Any, ids: list[int | str], item_id: str
) -> tuple[list[str], NDArray[np.float64]]:
    """Labels and probabilities (tasks, labels), in the order of the tasks."""
    columns = getattr(proba, "columns", None)
    if columns is None:
        raise LabelStudioError(f"proba must be a data frame, got {type(proba).__name__}")
    names = list(columns)
    chosen = [c for c in names if str(c).startswith(PREFIX)]
    labels = [str(c).removeprefix(PREFIX) for c in chosen]
    if not chosen:
        chosen = [c for c in names if c != item_id]
        labels = [str(c) for c in chosen]
    if not chosen:
        raise LabelStudioError("proba has no columns of probabilities, such as 'p_yes' and 'p_no'")
    try:
        values = np.column_stack([np.asarray(proba[c], dtype=float) for c in chosen])
    except (TypeError, ValueError) as error:
        raise LabelStudioError(
            f"proba: columns {', '.join(map(repr, chosen[:5]))} must hold numbers; name those of "
            "probabilities 'p_<label>'"
        ) from error
    ordered = values[_places(proba[item_id], ids)] if item_id in names else values
    if len(ordered) != len(ids):
        raise LabelStudioError(
            f"there are {len(ids)} tasks and {len(ordered)} rows of proba; pass as many, or a "
            f"column {item_id!r} of proba that says which is which"
        )
    wrong = ~((ordered >= 0.0).all(axis=1) & (np.abs(ordered.sum(axis=1) - 1.0) <= SLACK))
    if wrong.any():
        raise LabelStudioError(
            f"proba: the probabilities of task {ids[int(np.argmax(wrong))]!r} are not such that "
            "none is below 0 and they add up to 1"
        )
    return [text(label, "a label") for label in labels], ordered


def _places(column: Any, ids: list[int | str]) -> NDArray[np.intp]:
    """The rows of a column of ids that tasks have."""
    index = pd.Index([_plain(v) for v in column], dtype=object)
    if not index.is_unique:
        raise LabelStudioError(f"proba has several rows for task {index[index.duplicated()][0]!r}")
    places = index.get_indexer(pd.Index([str(i) for i in ids], dtype=object))
    if (places < 0).any():
        raise LabelStudioError(
            f"proba has no row for {(places < 0).sum()} of {len(ids)} tasks, such as "
            f"{ids[int(np.argmin(places))]!r}"
        )
    return np.asarray(places, dtype=np.intp)


def _plain(value: Any) -> str:
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value)
