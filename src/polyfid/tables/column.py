"""How one column of a table becomes numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.tables.cells import plain_text, to_numbers
from polyfid.tables.errors import TableError, shown
from polyfid.tables.origin import Origin, Wrong, error_at

Missing = Literal["error", "median", "indicator"]

#: What a category of empty cells is called.
EMPTY = "(empty)"
#: More categories than this, in more than every other row, are no categories.
MOST_CATEGORIES = 20


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers.

    ``categories`` is None for numbers. ``fill`` stands for a missing value: a number, or one of the
    categories; None if it is an error. ``flagged`` numbers have a second column of zeros and ones
    that says where they were missing.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    flagged: bool = False

    def __post_init__(self) -> None:
        fills = (float, int) if self.categories is None else (str,)
        if self.fill is not None and not isinstance(self.fill, fills):
            raise ValueError(f"{self.fill!r} cannot stand for a cell of column {self.name!r}")

    @property
    def names(self) -> tuple[str, ...]:
        if self.categories is not None:
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name, f"{self.name} missing") if self.flagged else (self.name,)


# --------------------------------------------------------------------------- applying


def fill_numbers(part: Array, frame: pd.DataFrame, column: Column) -> None:
    """Set the numbers, and where they were missing if the column says so."""
    numbers = _numbers(frame, column.name)
    gaps = np.isnan(numbers)
    if gaps.any():
        if column.fill is None:
            _refuse_gaps(frame, column.name, gaps)
        numbers = np.where(gaps, float(column.fill or 0.0), numbers)
    part[:, 0] = numbers
    if column.flagged:
        part[:, 1] = gaps


def fill_indicators(part: Array, frame: pd.DataFrame, column: Column) -> dict[str, int]:
    """Set the indicators; returns the unknown categories with the number of their rows."""
    known = {category: k for k, category in enumerate(column.categories or ())}
    codes, texts = texts_of(frame[column.name])
    gaps = codes < 0
    if column.fill is None:
        _refuse_gaps(frame, column.name, gaps)
    places = [known.get(text, -1) for text in texts]
    at = np.array([*places, known.get(str(column.fill), -1)])[codes]  # gaps are the last one
    part[:] = 0.0
    rows = np.flatnonzero(at >= 0)
    part[rows, at[rows]] = 1.0
    counts = np.bincount(codes[~gaps], minlength=len(texts))
    return {t: int(n) for t, n, k in zip(texts, counts, places, strict=True) if k < 0 and n}


# --------------------------------------------------------------------------- reading


def is_text(values: pd.Series) -> bool:
    """Whether a column holds text or truth values rather than numbers."""
    kind = values.dtype
    return kind.kind in "bOSU" or isinstance(
        kind, pd.CategoricalDtype | pd.StringDtype | pd.BooleanDtype
    )


def raw_numbers(frame: pd.DataFrame, name: str) -> tuple[Array, NDArray[np.bool_]]:
    """Numbers, NaN where they are missing or none, and which are none; dates are refused."""
    values = frame[name]
    if values.dtype.kind in "mM":
        raise TableError(
            "the column holds dates or times; leave it out of the features, or turn it into "
            "numbers, such as days since a date",
            path=Origin.of(frame).name,
            column=name,
        )
    return to_numbers(values)


def _numbers(frame: pd.DataFrame, name: str) -> Array:
    """Finite numbers, NaN where they are missing."""
    numbers, wrong = raw_numbers(frame, name)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise error_at(frame, row, name, f"{shown(frame[name].iloc[row])} is not a number")
    infinite = Wrong()
    infinite.see(frame, np.isinf(numbers))
    if infinite:
        raise infinity_error(infinite, name)
    return numbers


def infinity_error(infinite: Wrong, name: str) -> TableError:
    """The error of cells that are infinite."""
    (number,), _ = to_numbers(infinite.cells(name))
    return infinite.error(name, f"{number} is not finite; correct the cell, or empty it")


def _refuse_gaps(frame: pd.DataFrame, name: str, empty: NDArray[np.bool_]) -> None:
    gaps = Wrong()
    gaps.see(frame, empty)
    if gaps:
        raise gap_error(gaps, name)


def gap_error(gaps: Wrong, name: str) -> TableError:
    """The error of cells that are empty and must not be."""
    others = gaps.more(", and so is one after it", ", and so are {} after it")
    return gaps.error(
        name,
        f"the cell is empty{others}; fill it in, leave the row or the column out, or fit with "
        "missing='median' or missing='indicator' (--missing)",
    )


def texts_of(values: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Codes of the rows, -1 where the cell is missing, and the distinct texts they stand for."""
    codes, uniques = pd.factorize(values)
    texts = [plain_text(u) for u in uniques.tolist()]
    if len(set(texts)) < len(texts):  # 1 and 1.0, or blanks around a word
        index = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([*(index[t] for t in texts), -1])[codes]
        texts = list(index)
    return codes, texts
