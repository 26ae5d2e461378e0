"""Columns of ids and labels, read in one way whatever their type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from polyfid.tables import RowPlaces

SHOWN = 5  # names that a message lists
#: Options of the command line that arguments are known as there.
OPTIONS = {"item_id": "--id", "task": "--task", "worker": "--worker", "label": "--target"}


def as_frame(table: Any, name: str) -> pd.DataFrame:
    """A pandas or polars frame as a pandas frame, with rows counted from 0."""
    if isinstance(table, pd.DataFrame):
        frame = table.reset_index(drop=True)
    elif type(table).__module__.partition(".")[0] == "polars" and hasattr(table, "get_columns"):
        # By way of numpy, so that pyarrow need not be installed.
        frame = pd.DataFrame({c.name: c.to_numpy() for c in table.get_columns()})
    else:
        raise ValueError(
            f"{name} must be a pandas or polars data frame, got {type(table).__name__}; read a "
            "file with polyfid.tables.read_table"
        )
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise ValueError(
            f"{titled(frame, name)} has several columns named {listing(repeated)}; rename them"
        )
    if frame.empty:
        raise ValueError(
            f"{titled(frame, name)} has no {'rows' if len(frame.columns) else 'columns'}; there "
            "must be at least one"
            f"{' (leave gold out if there are no trusted labels)' if name == 'gold' else ''}"
        )
    return frame


def titled(table: Any, name: str) -> str:
    """What a message calls a table: the argument, and the file that it was read from, if any."""
    file = None if (origin := _origin(table)) is None else origin.file
    return f"{name} ({file})" if file else name


def row_of(table: Any, position: int) -> str:
    """What a message calls a row of a table: the line of its file, or its place counted from 1."""
    origin = _origin(table)
    if origin is None:
        return f"row {position + 1} (the first is row 1)"
    return f"row {origin.place(position)[1]}"


def _origin(table: Any) -> RowPlaces | None:
    """Where a frame was read from, None if it was made."""
    if not getattr(table, "attrs", None):
        return None
    from polyfid.tables import RowPlaces

    origin = RowPlaces.of(table)
    return origin if origin.file else None


def pick(frame: pd.DataFrame, name: str, columns: Mapping[str, Any]) -> list[pd.Series]:
    """Columns by name, given as argument and name; complain about those that are missing."""
    there = [str(column) for column in frame.columns]
    for argument, column in columns.items():
        if column not in frame.columns:
            near = difflib.get_close_matches(str(column), there, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(
                f"{titled(frame, name)} has no column {column!r}{hint}; it has {listing(there)}. "
                f"Rename one, or say which it is by {argument}= ({OPTIONS[argument]})"
            )
    return [frame[column] for column in columns.values()]


def listing(values: Iterable[Any]) -> str:
    """The first few values, and how many more there are."""
    shown = [v.item() if isinstance(v, np.generic) else v for v in values]
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return ", ".join(repr(v) for v in shown[:SHOWN]) + more


def is_missing(values: pd.Series) -> NDArray[np.bool_]:
    """Which values are missing, blank text included."""
    distinct, place = _factor(values)
    blank = [isinstance(v, str) and not v.strip() for v in distinct]
    return values.isna().to_numpy(dtype=bool) | np.array([*blank, True])[place]


def _factor(values: pd.Series) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct values, and the place of each value among them, -1 if it is missing."""
    if values.dtype == object:  # there, 1 and True are alike, and some cannot be compared
        return values.tolist(), np.arange(len(values))
    place, distinct = pd.factorize(values)
    return distinct.tolist(), place


def refuse_gaps(
    table: Any, name: str, column: str, gaps: NDArray[np.bool_], what: str, advice: str
) -> None:
    """Complain about cells of a column that have nothing in them, with the row of the first."""
    if gaps.any():
        raise ValueError(
            f"{titled(table, name)}, column {column!r}: no {what} in "
            f"{row_of(table, int(np.argmax(gaps)))}, {gaps.sum()} in all; {advice}"
        )


def as_ids(values: pd.Series) -> NDArray[np.object_]:
    """Ids as text, the same for 7, 7.0 and "7", and none where they are missing."""
    distinct, place = _factor(values)
    texts = np.array([*(_text(v) for v in distinct), ""], dtype=object)[place]
    return np.where(is_missing(values), "", texts)


def read_ids(table: Any, name: str, column: str) -> NDArray[np.object_]:
    """The ids of a table as text; none may be missing."""
    missing = is_missing(table[column])
    refuse_gaps(table, name, column, missing, "value", "fill them in or drop the rows")
    return as_ids(table[column])


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def in_order(ids: Iterable[str]) -> list[str]:
    """The distinct ids: by value if all are whole numbers, else as text."""
    distinct = set(ids)
    if all(_is_whole(i) for i in distinct):
        return sorted(distinct, key=lambda i: (int(i), i))
    return sorted(distinct)


def places(ids: Iterable[str], among: Iterable[str]) -> NDArray[np.intp]:
    """Where ids are in a list of distinct ones, -1 for those that are not."""
    where = pd.Index(list(among), dtype=object).get_indexer(pd.Index(list(ids), dtype=object))
    return np.asarray(where, dtype=np.intp)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")


def read_labels(values: pd.Series, name: str) -> tuple[NDArray[Any], str]:
    """Labels without missing ones, whole numbers as such, and what they are, in a word."""
    listed, place = _factor(values)
    kinds = {_kind(v) for v in listed}
    if len(kinds) > 1:
        raise ValueError(
            f"{name}, column {values.name!r} holds {' and '.join(sorted(kinds))}; labels must be "
            "of one kind"
        )
    (kind,) = kinds
    if kind == "numbers":
        numbers = np.array(listed, dtype=float)
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name}, column {values.name!r} holds an infinite label")
        if all(float(v).is_integer() for v in listed):
            return np.array([int(v) for v in listed])[place], kind
        return numbers[place], kind
    if kind == "truth values":
        return np.array(listed, dtype=bool)[place], kind
    if kind == "text":
        return np.array(listed, dtype=object)[place], kind
    raise ValueError(
        f"{name}, column {values.name!r} holds {kind}; labels must be text, numbers or truth values"
    )


def _kind(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "truth values"
    if isinstance(value, int | float | np.integer | np.floating):
        return "numbers"
    return "text" if isinstance(value, str) else f"values of type {type(value).__name__}"
