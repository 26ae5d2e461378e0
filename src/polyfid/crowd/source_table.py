"""A table that was passed as an argument: its columns, and its name in messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables import RowPlaces, TableError, read_table
from polyfid.text import name_few

#: Arguments that name columns, and the options of the command line that set them.
OPTIONS = {"item_id": "--id", "task": "--task", "worker": "--worker", "label": "--target"}
#: What pandas calls values that may be labels.
LABEL_TYPES = {"string", "integer", "floating", "mixed-integer-float", "boolean"}


@dataclass(frozen=True)
class SourceTable:
    """A table that was passed as an argument.

    Parameters
    ----------
    argument : str
        Name of the argument: "items", "answers" or "gold".
    frame : DataFrame
        With strings as names of the columns, and positions from 0 as index.
    index : Index
        The index that the table had.
    """

    argument: str
    frame: pd.DataFrame
    index: pd.Index

    @classmethod
    def read(cls, source: Any, argument: str) -> Self:
        """Read a file, or a data frame of pandas or polars; there must be at least one row."""
        try:
            frame = read_table(source)
        except (TypeError, TableError) as error:
            raise type(error)(f"{argument}: {error}") from error
        table = cls(argument, frame.reset_index(drop=True), frame.index)
        if frame.empty:
            missing = "rows" if len(frame.columns) else "columns"
            advice = " (leave gold out if there are no trusted labels)" * (argument == "gold")
            raise ValueError(f"{table.title} has no {missing}; there must be at least one{advice}")
        return table

    @property
    def title(self) -> str:
        """What messages call the table: the argument, and the file if it was read from one."""
        file = RowPlaces.of(self.frame).file
        return f"{self.argument} ({file})" if file else self.argument

    def row(self, position: int) -> str:
        """What messages call a row: its line in the file, or its number in the data frame."""
        places, label = RowPlaces.of(self.frame), self.index[position]
        if places.file is None or not isinstance(label, Integral):
            return f"row {position + 1} (the first is row 1)"
        return f"row {places.place(int(label))[1]}"

    def require(self, columns: Mapping[str, str]) -> None:
        """Raise an error if a column is missing; ``columns`` maps arguments to names."""
        names = list(self.frame.columns)
        for argument, column in columns.items():
            if column not in names:
                near = get_close_matches(column, names, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                raise ValueError(
                    f"{self.title} has no column {column!r}{hint}; it has {name_few(names)}. "
                    f"Rename one, or say which it is by {argument}= ({OPTIONS[argument]})"
                )

    def refuse_gaps(
        self,
        values: pd.Series,
        what: str = "value",
        advice: str = "fill them in or drop the rows",
    ) -> None:
        """Raise an error if there are empty cells among some cells of a column of the frame."""
        gaps = values.index[is_missing(values)]
        if len(gaps):
            raise ValueError(
                f"{self.title}, column {values.name!r}: no {what} in {self.row(gaps[0])}, "
                f"{len(gaps)} in all; {advice}"
            )

    def read_labels(self, values: pd.Series) -> NDArray[Any]:
        """Cells of a column of labels, without empty ones; whole numbers become integers."""
        cells = values.tolist()
        if pd.api.types.infer_dtype(cells) not in LABEL_TYPES:
            types = " and ".join(sorted({type(cell).__name__ for cell in cells}))
            raise ValueError(
                f"{self.title}, column {values.name!r} must hold text, numbers or truth values, "
                f"and only one of these; it holds {types}"
            )
        if isinstance(cells[0], str):
            return np.array([cell.strip() for cell in cells], dtype=object)
        labels = np.array(cells)
        if not np.isfinite(labels).all():
            raise ValueError(f"{self.title}, column {values.name!r} holds an infinite label")
        whole = labels.dtype.kind == "f" and (labels == np.floor(labels)).all()
        return labels.astype(np.int64) if whole else labels


def is_missing(values: pd.Series) -> NDArray[np.bool_]:
    """Which cells are missing; blank text is."""
    blank = values.astype(str).str.strip().eq("")
    return (values.isna() | blank).to_numpy(dtype=bool)
