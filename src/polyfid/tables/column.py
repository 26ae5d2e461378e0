"""How one column of a table becomes numbers: found out from old rows, done to new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.persistence import register
from polyfid.tables.cells import plain_text, to_numbers
from polyfid.tables.errors import TableError, listed, shown
from polyfid.tables.origin import Origin, error_at

Array = NDArray[np.float64]
Missing = Literal["error", "median", "indicator"]

#: What a category of empty cells is called.
EMPTY = "(empty)"
#: More categories than this, in more than every other row, are no categories.
MOST_CATEGORIES = 20


@register
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


# --------------------------------------------------------------------------- learning


def learn_column(frame: pd.DataFrame, name: str, categorical: bool, missing: str) -> Column:
    """How a column of a table becomes numbers; complains if it cannot."""
    values = frame[name]
    if not values.notna().any():
        raise TableError(
            "the column is empty; leave it out of the features",
            path=Origin.of(frame).name,
            column=name,
        )
    if categorical or _is_text(values):
        if not categorical:
            _refuse_typos(frame, name)
        return _learn_categories(frame, name, missing, sure=categorical)
    numbers = _numbers(frame, name)
    gaps = np.isnan(numbers)
    if missing == "error" or not len(numbers):
        _refuse_gaps(frame, name, gaps)
        return Column(name)
    median = float(np.median(numbers[~gaps]))
    return Column(name, None, median, flagged=missing == "indicator" and bool(gaps.any()))


def _learn_categories(frame: pd.DataFrame, name: str, missing: str, sure: bool) -> Column:
    codes, texts = _texts(frame[name])
    found = codes >= 0
    counts = np.bincount(codes[found], minlength=len(texts))
    many = len(texts) > max(MOST_CATEGORIES, found.sum() / 2)
    if many and not sure:
        raise TableError(
            f"there are {len(texts)} different texts in {found.sum()} rows, so that it looks like "
            f"names or free text ({listed(texts[:3])}, ...), not like categories; leave it out of "
            "the features, or name it as categorical",
            path=Origin.of(frame).name,
            column=name,
        )
    if missing == "error":
        _refuse_gaps(frame, name, ~found)
    fill = None if missing == "error" else texts[int(np.argmax(counts))]
    categories = set(texts)
    if missing == "indicator" and not found.all():
        fill = EMPTY
        categories.add(EMPTY)
    return Column(name, tuple(sorted(categories)), fill)


def _refuse_typos(frame: pd.DataFrame, name: str) -> None:
    """Refuse a column of text most of which is numbers: it is a slip, not a category."""
    values = frame[name]
    if values.dtype.kind == "b" or isinstance(values.dtype, pd.CategoricalDtype | pd.BooleanDtype):
        return
    numbers, wrong = to_numbers(values)
    n_numbers, n_wrong = int((~np.isnan(numbers)).sum()), int(wrong.sum())
    if 0 < n_wrong < n_numbers:
        cell = values.iloc[int(np.argmax(wrong))]
        others = f" (nor are {n_wrong - 1} cells after it)" if n_wrong > 1 else ""
        raise error_at(
            frame,
            int(np.argmax(wrong)),
            name,
            f"{shown(cell)} is not a number{others}, as the other {n_numbers} cells of the column "
            "are; correct it, empty the cell if the value is not known, or name the column as "
            "categorical",
        )


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
    codes, texts = _texts(frame[column.name])
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


def _is_text(values: pd.Series) -> bool:
    kind = values.dtype
    return kind.kind in "bOSU" or isinstance(
        kind, pd.CategoricalDtype | pd.StringDtype | pd.BooleanDtype
    )


def _numbers(frame: pd.DataFrame, name: str) -> Array:
    """Finite numbers, NaN where they are missing."""
    values = frame[name]
    if values.dtype.kind in "mM":
        raise TableError(
            "the column holds dates or times; leave it out of the features, or turn it into "
            "numbers, such as days since a date",
            path=Origin.of(frame).name,
            column=name,
        )
    numbers, wrong = to_numbers(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise error_at(frame, row, name, f"{shown(values.iloc[row])} is not a number")
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise error_at(
            frame, row, name, f"{numbers[row]} is not finite; correct the cell, or empty it"
        )
    return numbers


def _refuse_gaps(frame: pd.DataFrame, name: str, gaps: NDArray[np.bool_]) -> None:
    if gaps.any():
        more = int(gaps.sum()) - 1
        others = f", and so are {more} after it" if more > 1 else ", and so is one after it" * more
        raise error_at(
            frame,
            int(np.argmax(gaps)),
            name,
            f"the cell is empty{others}; fill it in, leave the row or the column out, or fit with "
            "missing='median' or missing='indicator' (--missing)",
        )


def _texts(values: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Codes of the rows, -1 where the cell is missing, and the distinct texts they stand for."""
    codes, uniques = pd.factorize(values)
    texts = [plain_text(u) for u in uniques.tolist()]
    if len(set(texts)) < len(texts):  # 1 and 1.0, or blanks around a word
        index = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([*(index[t] for t in texts), -1])[codes]
        texts = list(index)
    return codes, texts
