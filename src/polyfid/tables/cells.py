"""Columns of text as columns of numbers, where all of their cells are numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

#: Missing values among numbers; in columns of text only the empty cell is missing.
MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "None", "?"]
_NONE = pa.array(MISSING)
#: Whole numbers below this are exact as floats.
_EXACT = 2**53
_ORDER = ["", "int64", "float64", "str"]


class ColumnTypes:
    """Types that hold for all cells of columns of text, found block after block.

    Parameters
    ----------
    names : iterable of str
    decimals : str
        The decimal marks to choose from: ".", "," or both.
    text : collection of str
        Columns that stay text whatever they hold.
    """

    def __init__(self, names: Iterable[str], decimals: str, text: Collection[str] = ()) -> None:
        start = {name: "str" if name in text else "" for name in names}
        self._types = {mark: dict(start) for mark in decimals}
        self._with_point: set[str] = set()  # columns that have cells with a point

    def read(self, table: Any) -> dict[str, Any]:
        """Take the cells of a table of Arrow into account; returns its columns as numbers or text.

        A column of numbers is text if there was text in it before.
        """
        columns: dict[str, dict[str, Any]] = {mark: {} for mark in self._types}
        for mark, types in self._types.items():
            for name, before in types.items():
                kind, columns[mark][name] = before, table[name]
                if before != "str":
                    kind, columns[mark][name] = _read(table[name], mark)
                types[name] = max(before, kind, key=_ORDER.index)
        if len(self._types) > 1:
            self._with_point |= {
                name
                for name in self._types["."].keys() - self._with_point
                if pc.any(pc.match_substring(table[name], ".")).as_py()
            }
        return columns[self.decimal]

    @property
    def decimal(self) -> str:
        """A comma, if some column is of numbers with it only, and none of numbers with a point."""
        if len(self._types) == 1:
            return next(iter(self._types))
        point, comma = self._types["."], self._types[","]
        fractions = any(kind == "float64" and n in self._with_point for n, kind in point.items())
        gained = any(kind == "str" != comma[name] for name, kind in point.items())
        return "," if gained and not fractions else "."

    def types(self) -> dict[str, str]:
        """By column "int64", "float64" or "str", under the decimal mark."""
        return {name: kind or "float64" for name, kind in self._types[self.decimal].items()}

    def text_columns(self) -> frozenset[str]:
        """Columns of text."""
        return frozenset(name for name, kind in self.types().items() if kind == "str")


def _read(column: Any, decimal: str) -> tuple[str, Any]:
    """The type that all cells of a column of text allow, "" if all are missing, and the column.

    A column of whole numbers and missing cells is "float64", as there is no missing integer.
    """
    cells, numbers = column, _cast(column, pa.float64()) if decimal == "." else None
    if numbers is None:  # not just numbers: the long way
        cells = pc.utf8_trim_whitespace(column)
        cells = pc.if_else(pc.is_in(cells, _NONE), pa.scalar(None, pa.string()), cells)
        points = cells
        if decimal == ",":
            points = pc.replace_substring(cells, ",", ".")
            if pc.any(pc.match_substring(cells, ".")).as_py():
                return "str", column
        numbers = _cast(points, pa.float64())
    if numbers is None:
        return "str", column
    if numbers.null_count == len(numbers):
        return "", numbers
    if not pc.all(pc.equal(pc.floor(numbers), numbers)).as_py():
        return "float64", numbers
    if not pc.all(pc.match_substring_regex(cells, "^[+-]?[0-9]+$")).as_py():
        return "float64", numbers  # such as 1.0 and 1e3
    if pc.any(pc.match_substring_regex(cells, "^[+-]?0[0-9]")).as_py():
        return "str", column  # a name
    whole = _cast(cells, pa.int64())
    if whole is not None and not whole.null_count:
        return "int64", whole
    # Missing cells, a plus sign or too many digits; these would be lost.
    return ("str", column) if pc.max(pc.abs(numbers)).as_py() >= _EXACT else ("float64", numbers)


def _cast(cells: Any, kind: pa.DataType) -> Any:
    """The cells as numbers, None if one is none."""
    try:
        return pc.cast(cells, kind)
    except pa.ArrowInvalid:
        return None


def as_frame(columns: Mapping[str, Any], rows: int = 0) -> pd.DataFrame:
    """A data frame of columns of Arrow; empty text is missing."""
    if not columns:
        return pd.DataFrame(index=pd.RangeIndex(rows))
    made = {}
    for name, column in columns.items():
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        made[name] = column
    return pa.table(made).to_pandas(split_blocks=True)


def to_numbers(values: pd.Series) -> tuple[np.ndarray[Any, np.dtype[np.float64]], Any]:
    """Cells as numbers, NaN where they are missing or none, and which are none (bool, n)."""
    if values.dtype.kind in "fiub" or isinstance(values.dtype, pd.BooleanDtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers, np.zeros(len(numbers), dtype=bool)
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
        return to_numbers(values)
    if values.dtype.kind in "mMc":
        return np.full(len(values), np.nan), values.notna().to_numpy()
    cells = values.where(~values.isin(MISSING), None)
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers, (np.isnan(numbers) & cells.notna().to_numpy())
