"""Tables of answers, long or wide."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from polyfid.crowd.columns import as_frame, is_missing, listing, pick, refuse_gaps, titled

Form = Literal["long", "wide"]


def read_long(
    source: Any,
    *,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
    **reading: Any,
) -> pd.DataFrame:
    r"""Read a table with one row an answer: the task, who answered, and the answer.

    Parameters
    ----------
    source : path or data frame
        As of `polyfid.tables.read_table`.
    task, worker, label : str
        Names of the columns.
    **reading
        Options of `polyfid.tables.read_table`.

    Returns
    -------
    DataFrame
        As of `to_long`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyfid.crowd import read_long
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answers.csv"
    ...     _ = file.write_text("song,who,label\ns1,ann,rock\ns1,bob,pop\n")
    ...     read_long(file, task="song", worker="who")
      song  who label
    0   s1  ann  rock
    1   s1  bob   pop
    """
    return to_long(_read(source, reading), form="long", task=task, worker=worker, label=label)


def read_wide(
    source: Any,
    *,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
    **reading: Any,
) -> pd.DataFrame:
    r"""Read a table with one row a task and one column an annotator; an empty cell is no answer.

    Parameters
    ----------
    source : path or data frame
        As of `polyfid.tables.read_table`. The first column holds the ids of the tasks.
    task, worker, label : str
        Names of the columns to return.
    **reading
        Options of `polyfid.tables.read_table`.

    Returns
    -------
    DataFrame
        As of `to_long`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyfid.crowd import read_wide
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answers.csv"
    ...     _ = file.write_text("song,ann,bob\ns1,rock,pop\ns2,,jazz\n")
    ...     read_wide(file)
      task worker label
    0   s1    ann  rock
    1   s1    bob   pop
    2   s2    bob  jazz
    """
    return to_long(_read(source, reading), form="wide", task=task, worker=worker, label=label)


def _read(source: Any, reading: dict[str, Any]) -> Any:
    if not isinstance(source, str | Path):
        return source
    from polyfid.tables import read_table

    return read_table(source, **reading)


def to_long(
    answers: Any,
    *,
    form: Form | None = None,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
) -> pd.DataFrame:
    """Bring answers into long form: one row an answer.

    Parameters
    ----------
    answers : pandas or polars DataFrame
        Long, with columns for task, annotator and label, or wide: the ids of the tasks in the
        first column and one column an annotator, empty cells being no answers.
    form : {"long", "wide"}, optional
        Without it, a table that has columns named ``task``, ``worker`` and ``label`` is long, and
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
    frame = as_frame(answers, "answers")
    if form not in (None, "long", "wide"):
        raise ValueError(f'form must be "long", "wide" or None, got {form!r}')
    names = {"task": task, "worker": worker, "label": label}
    if len(set(names.values())) < len(names):
        raise ValueError(f"task, worker and label must be three different columns, got {names}")
    if (form or _form_of(frame, names)) == "wide":
        return _melt(frame, names)
    long = pd.DataFrame(dict(zip(names.values(), pick(frame, "answers", names), strict=True)))
    missing, title = is_missing(long[label]), titled(frame, "answers")
    if missing.all():
        raise ValueError(f"{title}, column {label!r}: there is no label in any row")
    for name in (task, worker):
        gaps = is_missing(long[name]) & ~missing
        refuse_gaps(frame, "answers", name, gaps, "value", "fill them in or drop the rows")
    if missing.any():
        warnings.warn(
            f"{title}, column {label!r}: {missing.sum()} of {len(long)} rows have no label and "
            "are left out",
            UserWarning,
            stacklevel=2,
        )
    return long[~missing].reset_index(drop=True)


def _form_of(frame: pd.DataFrame, names: dict[str, str]) -> Form:
    there = [name for name in names.values() if name in frame.columns]
    first = frame.iloc[:, 0]
    if len(there) == len(names):
        return "long"
    if there in ([], [names["task"]]) and len(frame.columns) > 1 and first.is_unique:
        return "wide"
    raise ValueError(
        f"{titled(frame, 'answers')} must be long, with columns "
        f"{', '.join(map(repr, names.values()))} (or others, named by task=, worker= and label=: "
        "--task, --worker and --target), or wide, with the task in a first column that never "
        f"repeats and one further column an annotator; got columns {listing(frame.columns)}. "
        'Rename them, or say form="long" or form="wide" (--form)'
    )


def _melt(frame: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    if len(frame.columns) < 2:
        raise ValueError(
            f"{titled(frame, 'answers')} must have one column an annotator after that of the "
            f"tasks, got {listing(frame.columns)} only"
        )
    tasks, cells = frame.iloc[:, 0], frame.iloc[:, 1:]
    given = ~np.column_stack([is_missing(cells.iloc[:, j]) for j in range(cells.shape[1])])
    gaps = is_missing(tasks) & given.any(axis=1)
    refuse_gaps(frame, "answers", str(tasks.name), gaps, "value", "fill them in or drop the rows")
    repeated = tasks[tasks.duplicated()].unique()
    if len(repeated):
        raise ValueError(
            f"{titled(frame, 'answers')}: tasks {listing(repeated)} have several rows; a wide "
            "table has one row a task. Join them, or pass a long table"
        )
    if not given.any():
        raise ValueError(
            f"{titled(frame, 'answers')}: all cells are empty; there must be at least one answer"
        )
    row, column = np.nonzero(given)
    # Through objects: a column of labels with gaps holds other types than one without.
    values = cells.to_numpy(dtype=object)[row, column]
    long = {
        names["task"]: tasks.to_numpy()[row],
        names["worker"]: np.asarray(cells.columns, dtype=object)[column],
        names["label"]: pd.Series(values.tolist()),
    }
    return pd.DataFrame(long)
