"""From columns of a table to numbers that a classifier takes, the same for new rows as for old."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.persistence import register
from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, listed, no_column, raise_all, shown
from polyfid.tables.origin import Origin, columns_behind, error_at

Array = NDArray[np.float64]
Missing = Literal["error", "median", "indicator"]

#: What a category of empty cells is called.
EMPTY = "(empty)"
#: More categories than this, in more than every other row, are no categories.
MOST_CATEGORIES = 20
#: More columns than this that are not there are told of together.
MOST_ABSENT = 3


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


@register
@dataclass(frozen=True)
class Recipe:
    """Columns of numbers as they are, and a block of indicators for every column of categories.

    Parameters
    ----------
    columns : tuple of Column
    missing : {"error", "median", "indicator"}

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import Recipe
    >>> frame = pd.DataFrame({"x": [0.5, 1.5], "colour": ["red", "blue"]})
    >>> recipe = Recipe.learn(frame)
    >>> recipe.names
    ('x', 'colour=blue', 'colour=red')
    >>> recipe(frame)
    array([[0.5, 0. , 1. ],
           [1.5, 1. , 0. ]])
    """

    columns: tuple[Column, ...]
    missing: str = "error"

    @classmethod
    def learn(
        cls,
        frame: pd.DataFrame,
        *,
        categorical: Collection[str] = (),
        features: Sequence[str] | None = None,
        missing: Missing = "error",
    ) -> Recipe:
        """The recipe of a table of features.

        Parameters
        ----------
        frame : DataFrame
        categorical : collection of str
            Columns of categories that look like numbers. Those of text, truth values and pandas'
            categories are taken for categories anyway.
        features : sequence of str, optional
            Columns to take; all by default.
        missing : {"error", "median", "indicator"}
            What to do about missing values: refuse them; take the median or the most frequent
            category instead; or do so and also say where they were missing, which for categories
            is a category of its own.

        Raises
        ------
        TableError
            For each column that cannot be used, with the row that is the reason.
        """
        if missing not in get_args(Missing):
            raise ValueError(f"missing must be one of {list(get_args(Missing))}, got {missing!r}")
        names = list(frame.columns) if features is None else list(features)
        for name in (*names, *categorical):
            if name not in frame.columns:
                raise no_column(name, frame.columns, Origin.of(frame).name)
        if not names:
            raise TableError("there are no columns of features", path=Origin.of(frame).name)
        if not len(frame):
            raise TableError("there are no rows", path=Origin.of(frame).name)
        columns, errors = [], []
        for name in names:
            try:
                columns.append(_learn_column(frame, name, name in categorical, missing))
            except TableError as error:
                errors.append(error)
        raise_all(errors)
        return cls(tuple(columns), missing)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns of numbers that come out."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def types(self) -> dict[str, str]:
        """Types of the columns that go in, for `iter_blocks`."""
        return {c.name: "float64" if c.categories is None else "str" for c in self.columns}

    def __call__(self, frame: pd.DataFrame) -> Array:
        """The numbers of some rows, (n, d); categories that were not there before are warned of.

        Other columns and another order do not matter.
        """
        x, unseen = self.encode(frame)
        unseen.warn()
        return x

    def encode(self, frame: pd.DataFrame) -> tuple[Array, Unseen]:
        """The numbers (n, d), and which categories the recipe does not know."""
        self.check(frame)
        x = np.empty((len(frame), len(self.names)), order="F")
        unseen: dict[str, dict[str, int]] = {}
        start = 0
        for column in self.columns:
            stop = start + len(column.names)
            part = x[:, start:stop]
            if column.categories is None:
                _fill_numbers(part, frame, column)
            elif new := _fill_indicators(part, frame, column):
                unseen[column.name] = new
            start = stop
        return x, Unseen(unseen)

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse rows that lack columns, and name them."""
        absent = [c.name for c in self.columns if c.name not in frame.columns]
        if not absent:
            return
        name, there = Origin.of(frame).name, columns_behind(frame)
        if len(absent) > MOST_ABSENT:
            raise TableError(
                f"there are no columns {listed(absent)}, which the model was fitted to; the "
                f"columns are {listed(there)}",
                path=name,
            )
        known = {c.name for c in self.columns}
        role = ", which the model was fitted to"
        raise_all([no_column(c, there, name, role, taken=known) for c in absent])


@dataclass(frozen=True)
class Unseen:
    """Categories that were not there when a recipe was learnt: rows of each, by column."""

    rows: Mapping[str, Mapping[str, int]]

    @classmethod
    def total(cls, parts: Iterable[Unseen]) -> Unseen:
        """Of several blocks of rows."""
        total: dict[str, dict[str, int]] = {}
        for part in parts:
            for column, new in part.rows.items():
                counts = total.setdefault(column, {})
                for category, count in new.items():
                    counts[category] = counts.get(category, 0) + count
        return cls(total)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __str__(self) -> str:
        return "; ".join(
            f"column {column!r}: {_count_of(sum(new.values()))} in no category that the model was "
            f"fitted to ({listed(new)}); probabilities there come from the other columns"
            for column, new in self.rows.items()
        )

    def warn(self) -> None:
        if self:
            warnings.warn(str(self), UserWarning, stacklevel=3)


def _count_of(rows: int) -> str:
    return "1 row is" if rows == 1 else f"{rows:,} rows are"


# --------------------------------------------------------------------------- learning


def _learn_column(frame: pd.DataFrame, name: str, categorical: bool, missing: str) -> Column:
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


def _fill_numbers(part: Array, frame: pd.DataFrame, column: Column) -> None:
    numbers = _numbers(frame, column.name)
    gaps = np.isnan(numbers)
    if gaps.any():
        if column.fill is None:
            _refuse_gaps(frame, column.name, gaps)
        numbers = np.where(gaps, float(column.fill or 0.0), numbers)
    part[:, 0] = numbers
    if column.flagged:
        part[:, 1] = gaps


def _fill_indicators(part: Array, frame: pd.DataFrame, column: Column) -> dict[str, int]:
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
    texts = [_text(u) for u in uniques.tolist()]
    if len(set(texts)) < len(texts):  # 1 and 1.0, or blanks around a word
        index = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([*(index[t] for t in texts), -1])[codes]
        texts = list(index)
    return codes, texts


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
