"""From columns of a table to numbers that a classifier takes, the same for new rows as for old."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd

from polyfid.arrays import Array
from polyfid.tables.column import Column, Missing, fill_indicators, fill_numbers
from polyfid.tables.errors import TableError, listed, no_column, raise_all
from polyfid.tables.learning import RecipeLook, texts_among
from polyfid.tables.origin import Origin, columns_behind

#: More columns than this that are not there are told of together.
MOST_ABSENT = 3


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
        check_missing(missing)
        names = list(frame.columns) if features is None else list(features)
        for name in (*names, *categorical):
            if name not in frame.columns:
                raise no_column(name, frame.columns, Origin.of(frame).name)
        if not names:
            raise TableError("there are no columns of features", path=Origin.of(frame).name)
        if not len(frame):
            raise TableError("there are no rows", path=Origin.of(frame).name)
        text = texts_among([frame], names)
        look = RecipeLook(names, text, categorical, missing, bounded=False)
        look.see(frame)
        return cls(look.columns(Origin.of(frame).name), missing)

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
                fill_numbers(part, frame, column)
            elif new := fill_indicators(part, frame, column):
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


def check_missing(given: str) -> None:
    """Complain of a way to treat missing values that there is not."""
    if given not in get_args(Missing):
        raise ValueError(f"missing must be one of {list(get_args(Missing))}, got {given!r}")


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
