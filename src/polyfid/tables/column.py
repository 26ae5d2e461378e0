"""How one column of a table becomes numbers: what is learnt of it, and how it is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, shown
from polyfid.tables.places import RowPlaces, WrongCells, error_at
from polyfid.text import name_few
from polyfid.values import to_text

Missing = Literal["error", "median", "indicator"]

#: The category of empty cells.
EMPTY = "(empty)"
#: A column of text with more different cells than this, and than half of its rows, is no category.
MOST_CATEGORIES = 20
#: Categories of a column that is read in blocks, at most: more would not fit as columns of numbers.
MOST_CATEGORIES_IN_BLOCKS = 10_000


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column becomes numbers.

    ``categories`` is None for numbers. ``fill`` replaces a missing value: a number, or one of the
    categories; None if a missing value is an error. ``flagged`` numbers have a second column of
    zeros and ones that says where they were missing.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    flagged: bool = False

    def __post_init__(self) -> None:
        fills = (float, int) if self.categories is None else (str,)
        if self.fill is not None and not isinstance(self.fill, fills):
            raise ValueError(f"{self.fill!r} cannot replace a cell of column {self.name!r}")

    @property
    def names(self) -> tuple[str, ...]:
        if self.categories is not None:
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name, f"{self.name} missing") if self.flagged else (self.name,)

    def encode(self, frame: pd.DataFrame, out: Array) -> dict[str, int]:
        """Write the numbers of some rows; returns the rows of each category that is unknown."""
        if self.categories is not None:
            return self._write_indicators(frame, out)
        self._write_numbers(frame, out)
        return {}

    def _write_numbers(self, frame: pd.DataFrame, out: Array) -> None:
        numbers = finite_numbers(frame, self.name)
        gaps = np.isnan(numbers)
        if gaps.any():
            if self.fill is None:
                _refuse_gaps(frame, self.name, gaps)
            numbers = np.where(gaps, float(self.fill or 0.0), numbers)
        out[:, 0] = numbers
        if self.flagged:
            out[:, 1] = gaps

    def _write_indicators(self, frame: pd.DataFrame, out: Array) -> dict[str, int]:
        index = {category: k for k, category in enumerate(self.categories or ())}
        codes, texts = texts_of(frame[self.name])
        gaps = codes < 0
        if self.fill is None:
            _refuse_gaps(frame, self.name, gaps)
        places = [index.get(text, -1) for text in texts]
        at = np.array([*places, index.get(str(self.fill), -1)])[codes]  # gaps are the last one
        out[:] = 0.0
        rows = np.flatnonzero(at >= 0)
        out[rows, at[rows]] = 1.0
        counts = np.bincount(codes[~gaps], minlength=len(texts))
        return {t: int(n) for t, n, k in zip(texts, counts, places, strict=True) if k < 0 and n}


# ---------------------------------------------------------------------------- reading


def raw_numbers(frame: pd.DataFrame, name: str) -> tuple[Array, NDArray[np.bool_]]:
    """Numbers, NaN where there is none, and the cells that are neither; dates are refused."""
    values = frame[name]
    if values.dtype.kind in "mM":
        raise TableError(
            "the column holds dates or times; leave it out of the features, or turn it into "
            "numbers, such as days since a date",
            path=RowPlaces.of(frame).file,
            column=name,
        )
    return to_numbers(values)


def finite_numbers(frame: pd.DataFrame, name: str) -> Array:
    """Finite numbers, NaN where they are missing."""
    numbers, wrong = raw_numbers(frame, name)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise error_at(frame, row, name, f"{shown(frame[name].iloc[row])} is not a number")
    infinite = WrongCells()
    infinite.add(frame, np.isinf(numbers))
    if infinite:
        raise _infinity_error(infinite, name)
    return numbers


def texts_of(values: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Codes of the rows, -1 where the cell is missing, and the distinct texts they stand for."""
    codes, uniques = pd.factorize(values)
    texts = [to_text(u) for u in uniques.tolist()]
    if len(set(texts)) < len(texts):  # 1 and 1.0, or blanks around a word
        index = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([*(index[t] for t in texts), -1])[codes]
        texts = list(index)
    return codes, texts


def _infinity_error(infinite: WrongCells, name: str) -> TableError:
    (number,), _ = to_numbers(infinite.first(name))
    return infinite.error(name, f"{number} is not finite; correct the cell, or empty it")


def _refuse_gaps(frame: pd.DataFrame, name: str, empty: NDArray[np.bool_]) -> None:
    gaps = WrongCells()
    gaps.add(frame, empty)
    if gaps:
        raise _gap_error(gaps, name)


def _gap_error(gaps: WrongCells, name: str) -> TableError:
    others = gaps.more(", and so is one after it", ", and so are {} after it")
    return gaps.error(
        name,
        f"the cell is empty{others}; fill it in, leave the row or the column out, or fit with "
        "missing='median' or missing='indicator' (--missing)",
    )


def _empty_error(path: str | None, name: str) -> TableError:
    return TableError("the column is empty; leave it out of the features", path=path, column=name)


# --------------------------------------------------------------------------- learning


class NumberLearner:
    """Learns the encoding of a column of numbers, block after block.

    Parameters
    ----------
    name : str
    missing : {"error", "median", "indicator"}
    room : int, optional
        Numbers that are kept for the median: beyond, it is that of a random sample.
    """

    def __init__(self, name: str, missing: str, room: int | None) -> None:
        self._name, self._missing, self._room = name, missing, room
        self._gaps, self._infinite, self._wrong = WrongCells(), WrongCells(), WrongCells()
        self._has_values = False
        self._sample: list[tuple[Array, Array]] = []  # numbers and their random keys
        self._count = 0

    def add(self, block: pd.DataFrame, key: Array) -> None:
        """Take some rows into account; each has a random key."""
        numbers, wrong = raw_numbers(block, self._name)
        self._wrong.add(block, wrong)
        self._infinite.add(block, np.isinf(numbers))
        there = ~np.isnan(numbers)
        self._gaps.add(block, ~there)
        self._has_values = self._has_values or bool(block[self._name].notna().any())
        if self._missing != "error":
            self._sample.append((numbers[there], key[there]))
            self._count += int(there.sum())
            if self._room is not None and self._count > 2 * self._room:
                self._shrink(self._room)

    def _shrink(self, room: int) -> None:
        numbers, key = (np.concatenate(parts) for parts in zip(*self._sample, strict=True))
        keep = np.argpartition(key, room)[:room]
        self._sample, self._count = [(numbers[keep], key[keep])], room

    def _median(self) -> float:
        if self._room is not None and self._count > self._room:
            self._shrink(self._room)
        return float(np.median(np.concatenate([numbers for numbers, _ in self._sample])))

    def encoding(self, path: str | None) -> ColumnEncoding:
        """What was learnt; raises an error if the column cannot be used."""
        name = self._name
        if not self._has_values:
            raise _empty_error(path, name)
        if self._wrong:
            cell = self._wrong.first(name).iloc[0]
            raise self._wrong.error(name, f"{shown(cell)} is not a number")
        if self._infinite:
            raise _infinity_error(self._infinite, name)
        if self._missing != "error":
            flagged = self._missing == "indicator" and bool(self._gaps)
            return ColumnEncoding(name, None, self._median(), flagged)
        if self._gaps:
            raise _gap_error(self._gaps, name)
        return ColumnEncoding(name)


class CategoryLearner:
    """Learns the encoding of a column of categories, block after block.

    Parameters
    ----------
    name : str
    missing : {"error", "median", "indicator"}
    declared : bool
        The user has named the column as categorical: any text will do.
    most : int, optional
        Categories at most.
    """

    def __init__(self, name: str, missing: str, declared: bool, most: int | None) -> None:
        self._name, self._missing, self._declared, self._most = name, missing, declared, most
        self._gaps, self._typos = WrongCells(), WrongCells()
        self._n_numbers = 0
        self._counts: dict[str, int] = {}

    def add(self, block: pd.DataFrame, key: Array) -> None:
        """Take some rows into account."""
        values = block[self._name]
        codes, texts = texts_of(values)
        self._gaps.add(block, codes < 0)
        counts = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
        for text, count in zip(texts, counts, strict=True):
            self._counts[text] = self._counts.get(text, 0) + count
        if not self._declared and not _has_category_type(values):
            codes, uniques = pd.factorize(values)
            numbers, wrong = to_numbers(pd.Series(uniques))
            self._n_numbers += int(np.append(~np.isnan(numbers), False)[codes].sum())
            self._typos.add(block, np.append(wrong, False)[codes])
        if self._most is not None and len(self._counts) > self._most:
            raise TableError(
                f"there are more than {self._most:,} different texts "
                f"({name_few([*self._counts][:3])}, ...), more than rows in blocks can have as "
                "categories; leave it out of the features",
                path=RowPlaces.of(block).file,
                column=self._name,
            )

    def encoding(self, path: str | None) -> ColumnEncoding:
        """What was learnt; raises an error if the column cannot be used."""
        name, texts = self._name, [*self._counts]
        n_cells = sum(self._counts.values())
        if not n_cells:
            raise _empty_error(path, name)
        if 0 < self._typos.count < self._n_numbers:
            raise self._typo_error()
        if len(texts) > max(MOST_CATEGORIES, n_cells / 2) and not self._declared:
            raise TableError(
                f"there are {len(texts)} different texts in {n_cells} rows, so that it looks like "
                f"names or free text ({name_few(texts[:3])}, ...), not like categories; leave it "
                "out of the features, or name it as categorical",
                path=path,
                column=name,
            )
        if self._missing == "error":
            if self._gaps:
                raise _gap_error(self._gaps, name)
            return ColumnEncoding(name, tuple(sorted(texts)))
        if self._missing == "indicator" and self._gaps:
            return ColumnEncoding(name, tuple(sorted({*texts, EMPTY})), EMPTY)
        return ColumnEncoding(name, tuple(sorted(texts)), max(texts, key=self._counts.__getitem__))

    def _typo_error(self) -> TableError:
        """A column of text most of which is numbers: it is a slip, not a category."""
        cell = self._typos.first(self._name).iloc[0]
        others = f" (nor are {self._typos.count - 1} cells after it)" * (self._typos.count > 1)
        return self._typos.error(
            self._name,
            f"{shown(cell)} is not a number{others}, as the other {self._n_numbers} cells of the "
            "column are; correct it, empty the cell if the value is not known, or name the column "
            "as categorical",
        )


def _has_category_type(values: pd.Series) -> bool:
    kind = values.dtype
    return kind.kind == "b" or isinstance(kind, pd.CategoricalDtype | pd.BooleanDtype)
