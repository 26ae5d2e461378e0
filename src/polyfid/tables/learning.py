"""How columns become numbers, found out from rows that come whole or block after block."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from polyfid.tables.cells import to_numbers
from polyfid.tables.column import (
    EMPTY,
    MOST_CATEGORIES,
    Array,
    Column,
    gap_error,
    infinity_error,
    is_text,
    raw_numbers,
    texts_of,
)
from polyfid.tables.errors import TableError, listed, raise_all, shown
from polyfid.tables.origin import Origin, Wrong

#: Categories of a column that is read in blocks, at most: more would not fit as columns of numbers.
MOST_KNOWN = 10_000
#: Numbers of all columns together that medians are taken of; if there are more, a sample of them.
MEDIAN_CELLS = 4_000_000


class RecipeLook:
    """What is found out about columns, for `Recipe`.

    Parameters
    ----------
    names : sequence of str
        Columns to take.
    text : collection of str
        Those that hold text in some table.
    categorical : collection of str
        Those that are categories whatever they look like.
    missing : {"error", "median", "indicator"}
    bounded : bool
        Keep to a bounded memory: medians of very many numbers are those of a sample, and there are
        `MOST_KNOWN` categories at most.
    """

    def __init__(
        self,
        names: Sequence[str],
        text: Collection[str],
        categorical: Collection[str],
        missing: str,
        bounded: bool = True,
    ) -> None:
        self._errors: dict[str, TableError] = {}
        self._columns: dict[str, _CategoryLook | _NumberLook] = {}
        self._rng = np.random.default_rng(0)  # whose rows make a sample for medians
        room = MEDIAN_CELLS // max(len(names), 1) if bounded else None
        for name in names:
            if name in text or name in categorical:
                most = MOST_KNOWN if bounded else None
                self._columns[name] = _CategoryLook(name, name in categorical, missing, most)
            else:
                self._columns[name] = _NumberLook(name, missing, room)

    def see(self, block: pd.DataFrame) -> None:
        """Look at some rows. A column that cannot be used is not looked at again."""
        key = self._rng.uniform(size=len(block))
        for name, look in self._columns.items():
            if name not in self._errors:
                try:
                    look.see(block, key)
                except TableError as error:
                    self._errors[name] = error

    def columns(self, path: str | None) -> tuple[Column, ...]:
        """What was found out; complains of all columns that cannot be used."""
        made = []
        for name, look in self._columns.items():
            if name not in self._errors:
                try:
                    made.append(look.column(path))
                except TableError as error:
                    self._errors[name] = error
        raise_all([self._errors[name] for name in self._columns if name in self._errors])
        return tuple(made)


class _NumberLook:
    """A column of numbers: where cells are empty or infinite, and the median."""

    def __init__(self, name: str, missing: str, room: int | None) -> None:
        self._name, self._missing = name, missing
        self._gaps, self._infinite, self._wrong = Wrong(), Wrong(), Wrong()
        self._some = False
        self._kept = _Kept(room)

    def see(self, block: pd.DataFrame, key: Array) -> None:
        numbers, wrong = raw_numbers(block, self._name)
        self._wrong.see(block, wrong)
        self._infinite.see(block, np.isinf(numbers))
        there = ~np.isnan(numbers)
        self._gaps.see(block, ~there)
        self._some = self._some or bool(block[self._name].notna().any())
        if self._missing != "error":
            self._kept.add(numbers[there], key[there])

    def column(self, path: str | None) -> Column:
        name = self._name
        if not self._some:
            raise _empty(path, name)
        if self._wrong:
            cell = self._wrong.cells(name).iloc[0]
            raise self._wrong.error(name, f"{shown(cell)} is not a number")
        if self._infinite:
            raise infinity_error(self._infinite, name)
        if self._missing == "error":
            if self._gaps:
                raise gap_error(self._gaps, name)
            return Column(name)
        flagged = self._missing == "indicator" and bool(self._gaps)
        return Column(name, None, self._kept.median(), flagged)


class _Kept:
    """Numbers for a median: all, or those with the smallest keys if there is no room for all."""

    def __init__(self, room: int | None) -> None:
        self._room = room
        self._parts: list[tuple[Array, Array]] = []
        self._count = 0

    def add(self, numbers: Array, key: Array) -> None:
        self._parts.append((numbers, key))
        self._count += len(numbers)
        if self._room is not None and self._count > 2 * self._room:
            self._cut(self._room)

    def _cut(self, room: int) -> None:
        numbers, key = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        keep = np.argpartition(key, room)[:room]
        self._parts, self._count = [(numbers[keep], key[keep])], room

    def median(self) -> float:
        if self._room is not None and self._count > self._room:
            self._cut(self._room)
        return float(np.median(np.concatenate([numbers for numbers, _ in self._parts])))


class _CategoryLook:
    """A column of categories: which there are and how many cells of each."""

    def __init__(self, name: str, sure: bool, missing: str, most: int | None) -> None:
        self._name, self._sure, self._missing, self._most = name, sure, missing, most
        self._gaps, self._typos = Wrong(), Wrong()
        self._n_numbers = 0
        self._counts: dict[str, int] = {}

    def see(self, block: pd.DataFrame, key: Array) -> None:
        values = block[self._name]
        codes, texts = texts_of(values)
        self._gaps.see(block, codes < 0)
        counts = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
        for text, count in zip(texts, counts, strict=True):
            self._counts[text] = self._counts.get(text, 0) + count
        if not self._sure and not _is_declared(values):
            self._look_for_typos(block, values)
        if self._most is not None and len(self._counts) > self._most:
            raise self._too_many(block)

    def _look_for_typos(self, block: pd.DataFrame, values: pd.Series) -> None:
        codes, uniques = pd.factorize(values)
        numbers, wrong = to_numbers(pd.Series(uniques))
        self._n_numbers += int(np.append(~np.isnan(numbers), False)[codes].sum())
        self._typos.see(block, np.append(wrong, False)[codes])

    def _too_many(self, block: pd.DataFrame) -> TableError:
        advice = "leave it out of the features"
        what = f"there are more than {self._most:,} different texts ({listed([*self._counts][:3])}"
        return TableError(
            f"{what}, ...), more than rows in blocks can have as categories; {advice}",
            path=Origin.of(block).name,
            column=self._name,
        )

    def column(self, path: str | None) -> Column:
        name, texts = self._name, [*self._counts]
        found = sum(self._counts.values())
        if not found:
            raise _empty(path, name)
        if 0 < self._typos.count < self._n_numbers:
            raise self._typo_error()
        if len(texts) > max(MOST_CATEGORIES, found / 2) and not self._sure:
            raise TableError(
                f"there are {len(texts)} different texts in {found} rows, so that it looks like "
                f"names or free text ({listed(texts[:3])}, ...), not like categories; leave it out "
                "of the features, or name it as categorical",
                path=path,
                column=name,
            )
        if self._missing == "error":
            if self._gaps:
                raise gap_error(self._gaps, name)
            return Column(name, tuple(sorted(texts)))
        if self._missing == "indicator" and self._gaps:
            return Column(name, tuple(sorted({*texts, EMPTY})), EMPTY)
        return Column(name, tuple(sorted(texts)), max(texts, key=self._counts.__getitem__))

    def _typo_error(self) -> TableError:
        """A column of text most of which is numbers: it is a slip, not a category."""
        cell = self._typos.cells(self._name).iloc[0]
        others = f" (nor are {self._typos.count - 1} cells after it)"
        return self._typos.error(
            self._name,
            f"{shown(cell)} is not a number{others * (self._typos.count > 1)}, as the other "
            f"{self._n_numbers} cells of the column are; correct it, empty the cell if the value "
            "is not known, or name the column as categorical",
        )


def texts_among(frames: Sequence[pd.DataFrame], names: Sequence[str]) -> set[str]:
    """Columns that hold text in some of the tables."""
    return {name for name in names if any(is_text(frame[name]) for frame in frames)}


def _is_declared(values: pd.Series) -> bool:
    """Whether the type of a column says that it is of categories."""
    kind = values.dtype
    return kind.kind == "b" or isinstance(kind, pd.CategoricalDtype | pd.BooleanDtype)


def _empty(path: str | None, name: str) -> TableError:
    return TableError("the column is empty; leave it out of the features", path=path, column=name)
