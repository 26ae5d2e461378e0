"""Tables that are passed as arguments, and answers in long form: one row per answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables import RowPlaces, TableError, read_table
from polyfid.text import name_few

Form = Literal["long", "wide"]

#: Arguments that name columns, and the options of the command line that set them.
OPTIONS = {"item_id": "--id", "task": "--task", "worker": "--worker", "label": "--target"}
#: What pandas calls values that may be labels, apart from text.
NUMBER_TYPES = {"integer", "floating", "mixed-integer-float", "boolean"}


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


@dataclass(frozen=True)
class SourceTable:
    """A table with numbered rows, its own index, and what messages call it."""

    title: str
    frame: pd.DataFrame
    index: pd.Index

    @classmethod
    def read(cls, source: Any, argument: str) -> Self:
        """Read a file, or a data frame of pandas or polars; there must be at least one row."""
        try:
            frame = read_table(source)
        except (TypeError, TableError) as error:
            raise type(error)(f"{argument}: {error}") from error
        file = RowPlaces.of(frame).file
        title = f"{argument} ({file})" if file else argument
        if frame.empty:
            advice = " (leave gold out if there are no trusted labels)" * (argument == "gold")
            raise ValueError(f"{title} is empty; there must be at least one row{advice}")
        return cls(title, frame.reset_index(drop=True), frame.index)

    def row(self, position: int) -> str:
        """What messages call a row: its line in the file, or its number in the data frame."""
        places, label = RowPlaces.of(self.frame), self.index[position]
        if places.file is None or not isinstance(label, Integral):
            return f"row {position + 1} (the first is row 1)"
        return f"row {places.place(int(label))[1]}"

    def cells(self, columns: Mapping[str, str]) -> pd.DataFrame:
        """The columns that arguments name, which must be there; ``columns`` has the names."""
        names = list(self.frame.columns)
        for argument, column in columns.items():
            if column not in names:
                near = get_close_matches(column, names, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                raise ValueError(
                    f"{self.title} has no column {column!r}{hint}; it has {name_few(names)}. "
                    f"Rename one, or say which it is by {argument}= ({OPTIONS[argument]})"
                )
        return self.frame[list(columns.values())]

    def refuse_gaps(self, values: pd.Series) -> None:
        """Raise an error if there are empty cells among some cells of a column of the frame."""
        gaps = values.index[is_missing(values)]
        if len(gaps):
            raise ValueError(
                f"{self.title}, column {values.name!r}: no value in {self.row(gaps[0])}, "
                f"{len(gaps)} in all; fill them in or drop the rows"
            )

    def read_labels(self, values: pd.Series) -> NDArray[Any]:
        """Cells of a column of labels, without empty ones; whole numbers become integers."""
        cells = values.tolist()
        kind = pd.api.types.infer_dtype(cells)
        if kind == "string":
            return np.array([cell.strip() for cell in cells], dtype=object)
        if kind not in NUMBER_TYPES or not np.isfinite(cells).all():
            types = " and ".join(sorted({type(cell).__name__ for cell in cells}))
            raise ValueError(
                f"{self.title}, column {values.name!r} must hold text, finite numbers or truth "
                f"values, and only one of these; it holds {types}"
            )
        labels = np.array(cells)
        whole = labels.dtype.kind == "f" and (labels == np.floor(labels)).all()
        return labels.astype(np.int64) if whole else labels


def is_missing(values: pd.Series) -> NDArray[np.bool_]:
    """Which cells are missing; blank text is."""
    blank = values.astype(str).str.strip().eq("")
    return (values.isna() | blank).to_numpy(dtype=bool)


def long_form(table: SourceTable, form: Form | None, columns: Mapping[str, str]) -> pd.DataFrame:
    """As `to_long`, but the index holds the position of each answer's row in the table."""
    if form not in (None, "long", "wide"):
        raise ValueError(f'form must be "long", "wide" or None, got {form!r}')
    task, worker, label = columns.values()
    if len({task, worker, label}) < 3:
        raise ValueError(f"task, worker and label must be different columns, got {dict(columns)}")
    is_wide = (form or _detect_form(table, columns)) == "wide"
    cells = _from_wide(table, columns) if is_wide else table.cells(columns)
    missing = is_missing(cells[label])
    if missing.all():
        raise ValueError(f"{table.title} has no answers: there is no cell with a label")
    if missing.any() and not is_wide:
        warnings.warn(
            f"{table.title}, column {label!r}: {missing.sum()} of {len(cells)} rows have no label "
            "and are left out",
            UserWarning,
            stacklevel=3,
        )
    long = cells[~missing].infer_objects()
    table.refuse_gaps(long[task].rename(table.frame.columns[0] if is_wide else task))
    table.refuse_gaps(long[worker])
    return long


def _detect_form(table: SourceTable, columns: Mapping[str, str]) -> Form:
    frame = table.frame
    present = [name for name in columns.values() if name in frame.columns]
    if len(present) == len(columns):
        return "long"
    if present in ([], [columns["task"]]) and frame.shape[1] > 1 and frame.iloc[:, 0].is_unique:
        return "wide"
    raise ValueError(
        f"{table.title} must be long, with columns {name_few(columns.values())} (or others, named "
        "by task=, worker= and label=: --task, --worker and --target), or wide, with the task in a "
        "first column that never repeats and one further column per annotator; got columns "
        f'{name_few(frame.columns)}. Rename them, or say form="long" or "wide" (--form)'
    )


def _from_wide(table: SourceTable, columns: Mapping[str, str]) -> pd.DataFrame:
    """One row per cell, empty or not, in the order of the rows of the table."""
    tasks, cells = table.frame.iloc[:, 0], table.frame.iloc[:, 1:]
    n_rows, n_workers = cells.shape
    task, worker, label = columns.values()
    long = {
        task: np.repeat(tasks.to_numpy(), n_workers),
        worker: np.tile(cells.columns.to_numpy(dtype=object), n_rows),
        # As objects: a column of labels with gaps holds other types than one without.
        label: cells.to_numpy(dtype=object).ravel(),
    }
    return pd.DataFrame(long, index=np.repeat(tasks.index, n_workers))
