"""Tables of answers in long form: one row per answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from polyfid.crowd.source_table import SourceTable, is_missing
from polyfid.text import name_few

Form = Literal["long", "wide"]


def to_long(
    answers: Any,
    *,
    form: Form | None = None,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
) -> pd.DataFrame:
    """Bring answers into long form: one row per answer.

    Parameters
    ----------
    answers : path, or pandas or polars DataFrame
        Long, with columns for task, annotator and label, or wide: the ids of the tasks in the
        first column and one column per annotator, where an empty cell is no answer. Files are read
        by `polyfid.tables.read_table`.
    form : {"long", "wide"}, optional
        By default, a table that has columns named ``task``, ``worker`` and ``label`` is long, and
        one that has neither ``worker`` nor ``label`` and whose first column never repeats is wide.
    task, worker, label : str
        Names of the columns, of a long table and of the result.

    Returns
    -------
    DataFrame
        Columns ``task``, ``worker``, ``label``, without missing answers, in the order of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import to_long
    >>> to_long(pd.DataFrame({"song": [1, 2], "ann": ["rock", None], "bob": ["pop", "jazz"]}))
       task worker label
    0     1    ann  rock
    1     1    bob   pop
    2     2    bob  jazz
    """
    columns = {"task": task, "worker": worker, "label": label}
    table = SourceTable.read(answers, "answers")
    return long_form(table, form, columns).reset_index(drop=True)


def long_form(table: SourceTable, form: Form | None, columns: Mapping[str, str]) -> pd.DataFrame:
    """As `to_long`, but the index holds the position of each answer's row in the table.

    ``columns`` are the names of the columns of tasks, annotators and labels.
    """
    if form not in (None, "long", "wide"):
        raise ValueError(f'form must be "long", "wide" or None, got {form!r}')
    if len(set(columns.values())) < len(columns):
        raise ValueError(
            f"task, worker and label must be three different columns, got {dict(columns)}"
        )
    if (form or _detect_form(table, columns)) == "wide":
        return _from_wide(table, columns)
    return _from_long(table, columns)


def _detect_form(table: SourceTable, columns: Mapping[str, str]) -> Form:
    frame = table.frame
    present = [name for name in columns.values() if name in frame.columns]
    if len(present) == len(columns):
        return "long"
    if present in ([], [columns["task"]]) and frame.shape[1] > 1 and frame.iloc[:, 0].is_unique:
        return "wide"
    raise ValueError(
        f"{table.title} must be long, with columns {', '.join(map(repr, columns.values()))} (or "
        "others, named by task=, worker= and label=: --task, --worker and --target), or wide, with "
        "the task in a first column that never repeats and one further column per annotator; got "
        f"columns {name_few(frame.columns)}. Rename them, or "
        'say form="long" or form="wide" (--form)'
    )


def _from_long(table: SourceTable, columns: Mapping[str, str]) -> pd.DataFrame:
    table.require(columns)
    task, worker, label = columns.values()
    cells = table.frame[[task, worker, label]]
    missing = is_missing(cells[label])
    if missing.all():
        raise ValueError(f"{table.title}, column {label!r}: there is no label in any row")
    if missing.any():
        warnings.warn(
            f"{table.title}, column {label!r}: {missing.sum()} of {len(cells)} rows have no label "
            "and are left out",
            UserWarning,
            stacklevel=4,
        )
    long = cells[~missing]
    table.refuse_gaps(long[task])
    table.refuse_gaps(long[worker])
    return long


def _from_wide(table: SourceTable, columns: Mapping[str, str]) -> pd.DataFrame:
    tasks, cells = table.frame.iloc[:, 0], table.frame.iloc[:, 1:]
    if cells.shape[1] == 0:
        raise ValueError(
            f"{table.title} must have one column per annotator after that of the tasks, got "
            f"{tasks.name!r} only"
        )
    row, column = np.nonzero(~np.column_stack([is_missing(cells[name]) for name in cells]))
    if not len(row):
        raise ValueError(f"{table.title}: all cells are empty; there must be at least one answer")
    answered = tasks[np.unique(row)]
    table.refuse_gaps(answered)
    repeated = answered[answered.duplicated()].unique()
    if len(repeated):
        raise ValueError(
            f"{table.title}: tasks {name_few(repeated.tolist())} have several rows; a wide table "
            "has one row per task. Join them, or pass a long table"
        )
    # Through objects: a column of labels with gaps holds other types than one without.
    labels = cells.to_numpy(dtype=object)[row, column].tolist()
    long = [tasks.to_numpy()[row], cells.columns.to_numpy(dtype=object)[column], labels]
    return pd.DataFrame(dict(zip(columns.values(), long, strict=True)), index=row)
