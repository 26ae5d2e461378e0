"""Predictions in the format that Label Studio imports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid._version import __version__
from polyfid.atomic import replacing
from polyfid.labelstudio.export import LabelStudioError, check_ids, naming, read_tasks
from polyfid.tables import read_table
from polyfid.tables.column import cell_texts, read_ids
from polyfid.text import name_few
from polyfid.values import is_frame, to_python

PREFIX = "p_"  # of columns of probabilities in tables of predictions
DECISION = "label"  # column of what was decided
SLACK = 1e-6  # allowed difference of a sum of probabilities from 1


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
    """Write a label for each task, with its probability as the score.

    That is the most probable one, or the decision that a table of predictions has in ``label``. A
    task about which a model abstains gets no label, and its highest probability as the score.

    Label Studio can then sort tasks by prediction score, so that the least certain come first.

    Parameters
    ----------
    tasks : path, list of tasks, or sequence of ids
        With tasks (an export of the project, or a file to import), importing the file makes new
        tasks of them. With ids of tasks that a project has already, the file holds predictions
        alone, to be posted to ``/api/projects/<project>/import/predictions``.
    proba : pandas or polars DataFrame
        One row per task: probabilities in columns "p_<label>" and maybe decisions in ``label``, as
        `TableModel.predict` gives them, or, without such columns, probabilities in all columns but
        ``item_id``, named by label. Rows are matched by ``item_id`` if there is such a
        column, else by order.
    path : path
        The file; it is replaced only when the new one is complete.
    from_name, to_name : str
        Names of the ``Choices`` control and of the object that it labels.
    model_version : str, optional
        The name under which Label Studio lists the predictions.
    item_id : str
        Column of ``proba`` with ids of tasks.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import pandas as pd
    >>> from polyfid.labelstudio import write_predictions
    >>> proba = pd.DataFrame({"id": [7], "p_pop": [0.25], "p_rock": [0.75]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "predictions.json")
    ...     write_predictions([7], proba, file, from_name="genre", to_name="song")
    ...     prediction = json.loads(file.read_text())[0]
    >>> prediction["task"], prediction["score"], prediction["result"][0]["value"]
    (7, 0.75, {'choices': ['rock']})
    """
    names = {"from_name": from_name, "to_name": to_name, "model_version": model_version}
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise LabelStudioError(f"{name} must be text that is not empty, got {value!r}")
    with naming(tasks):
        ids, heads = _identify(tasks)
    labels, values, decided = read_probabilities(proba, ids, item_id)
    written = []
    for head, row, k in zip(heads, values, decided.tolist(), strict=True):
        result = [result_of(from_name, to_name, labels[k])] if k >= 0 else []
        score = float(row[k] if k >= 0 else row.max())
        scored = {"model_version": model_version, "score": score, "result": result}
        written.append({**head, **({"predictions": [scored]} if "data" in head else scored)})
    try:
        content = json.dumps(written, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the tasks hold something that JSON cannot ({str(error)[:100]})"
        raise LabelStudioError(message) from error
    with replacing(path) as file:
        file.write(f"{content}\n".encode())


def result_of(from_name: str, to_name: str, label: str) -> dict[str, Any]:
    """A choice, as predictions and annotations have it."""
    control = {"from_name": from_name, "to_name": to_name, "type": "choices"}
    return {**control, "value": {"choices": [label]}}


def _identify(tasks: Any) -> tuple[list[int | str], list[dict[str, Any]]]:
    """Ids of tasks, and what a file says of each task besides its prediction."""
    if isinstance(tasks, str | os.PathLike | Mapping) or (
        isinstance(tasks, list | tuple) and any(isinstance(t, Mapping) for t in tasks)
    ):
        read = read_tasks(tasks)
        return list(read), [{"id": i, "data": task["data"]} for i, task in read.items()]
    if isinstance(tasks, Iterable):
        ids = check_ids(map(to_python, tasks))
        return ids, [{"task": i} for i in ids]
    kind = type(tasks).__name__
    raise LabelStudioError(f"tasks must be a file, a list of tasks or ids, got {kind}")


def read_probabilities(
    proba: Any, ids: list[int | str], item_id: str
) -> tuple[list[str], NDArray[np.float64], NDArray[np.intp]]:
    """Labels, and in the order of the tasks probabilities (tasks, labels) and decisions.

    A decision is the place of a label, -1 for none.
    """
    if not is_frame(proba):
        raise LabelStudioError(f"proba must be a data frame, got {type(proba).__name__}")
    frame = read_table(proba)
    columns = [name for name in frame.columns if name.startswith(PREFIX)]
    columns = columns or [name for name in frame.columns if name != item_id]
    try:
        values = frame[columns].to_numpy(dtype=float)
    except (TypeError, ValueError):
        columns = []
    if not columns:
        raise LabelStudioError(
            "proba must have columns of probabilities, numbers, called 'p_<label>'; it has columns "
            f"{name_few(frame.columns)}"
        )
    wanted = pd.Index([str(i) for i in ids], dtype=object)
    given = pd.Index(read_ids(frame, item_id), dtype=object) if item_id in frame else wanted
    wrong = wanted[~wanted.isin(given) | wanted.isin(given[given.duplicated()])]
    if len(wrong) or len(given) != len(values):
        raise LabelStudioError(
            f"proba must have one row per task; there are {len(ids)} tasks and {len(values)} rows "
            f"of proba, and tasks with none or several in column {item_id!r}: {name_few(wrong)}"
        )
    labels = [name.removeprefix(PREFIX) for name in columns]
    decided = values.argmax(axis=1)
    if DECISION in frame and DECISION not in columns:
        texts = cell_texts(frame[DECISION])
        decided = pd.Index(labels).get_indexer(pd.Index(texts))
        if (unknown := ~pd.isna(texts) & (decided < 0)).any():
            raise LabelStudioError(
                f"proba: column {DECISION!r} has {texts[unknown.argmax()]!r}, of which there is no "
                f"probability; they are those of {name_few(labels)}"
            )
    order = given.get_indexer_for(wanted)
    values, decided = values[order], decided[order]
    valid = (values >= 0.0).all(axis=1) & (np.abs(values.sum(axis=1) - 1.0) <= SLACK)
    if not valid.all():
        raise LabelStudioError(
            f"proba: the probabilities of task {ids[int(np.argmin(valid))]!r} must not be negative "
            "and must add up to 1"
        )
    return labels, values, decided
