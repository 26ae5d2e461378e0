"""Cells of text as numbers, where all of a column are, and cells of all kinds as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

#: What stands for a missing value among numbers; in columns of text only the empty cell does.
MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "None", "?"]
_NONE = pa.array(MISSING)
#: Whole numbers below this are exact as floats.
_EXACT = 2**53
_ORDER = ["", "int64", "float64", "str"]


def kind_of(column: Any, decimal: str) -> str:
    """The type that all cells of a column of text allow; "" if all are missing.

    A column of whole numbers and missing cells is "float64", as there is no missing integer.
    """
    return _read(column, decimal)[0]


def widest(one: str, other: str) -> str:
    """The type that holds cells of both."""
    return max(one, other, key=_ORDER.index)


class Kinds:
    """Types that columns of text allow, for each decimal mark there may be."""

    def __init__(self, names: Iterable[str], marks: str) -> None:
        self._found = {mark: dict.fromkeys(names, "") for mark in marks}
        self._points: set[str] = set()  # columns that have cells with a point

    def see(self, table: Any) -> None:
        """Look at rows of a table, or of a batch of one."""
        for mark, found in self._found.items():
            for name in found:
                if found[name] != "str":
                    found[name] = widest(found[name], kind_of(table[name], mark))
        if "," in self._found:
            for name in self._found[","]:
                if (
                    name not in self._points
                    and pc.any(pc.match_substring(table[name], ".")).as_py()
                ):
                    self._points.add(name)

    def decimal(self) -> str:
        """A comma, if some column is of numbers with it only, and none of numbers with a point."""
        if len(self._found) == 1:
            return next(iter(self._found))
        point, comma = self._found["."], self._found[","]
        fractions = any(kind == "float64" and n in self._points for n, kind in point.items())
        gained = any(kind == "str" != comma[name] for name, kind in point.items())
        return "," if gained and not fractions else "."

    def types(self) -> dict[str, str]:
        """Of columns, under the decimal mark."""
        return {name: kind or "float64" for name, kind in self._found[self.decimal()].items()}


def columns_of(table: pa.Table, decimal: str, text: Collection[str]) -> dict[str, Any]:
    """Columns of text as numbers where all cells are, except those that shall stay."""
    return {
        name: table[name] if name in text else _read(table[name], decimal)[1]
        for name in table.column_names
    }


def _read(column: Any, decimal: str) -> tuple[str, Any]:
    """Kind of a column of text, and the column as that."""
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


def plain_text(value: Any) -> str:
    """A cell as text without blanks around it; 1 and 1.0 are the same."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
