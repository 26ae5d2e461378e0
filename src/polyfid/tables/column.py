"""Columns: which hold numbers, what is wrong with their cells, and how they become numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.tables.places import TableError, WrongCells, file_of, shortened
from polyfid.text import name_few
from polyfid.values import to_text, whole_numbers

Missing = Literal["error", "median", "indicator"]

#: Missing values among numbers; in columns of text only the empty cell is missing.
MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "-nan", "null", "NULL", "None", "?"]
#: The category of empty cells.
EMPTY = "(empty)"
#: A column of text with more different cells than this is no category if they are more than half
#: of its rows, or if most of them have as many words as PROSE: rows of a crowd repeat their items.
MOST_CATEGORIES, PROSE = 20, 5

#: What polyfid learns from, for messages on tables that have something else only.
USABLE = (
    "polyfid does not open files: it learns from numbers, categories, texts (--text COLUMN) and "
    "embeddings (--embeddings FILE), numbers that another program makes of images, sound or texts"
)

_ADDRESS = re.compile(
    r"(?i)\s*(?:(?:https?|s3|gs|ftp|file|azure-blob)://|/?data/|data:(?:image|audio|video)/)\S*\s*$"
    r"|\S*\.(?:jpe?g|png|gif|bmp|webp|svg|tiff?|wav|mp3|flac|ogg|m4a|mp4|avi|mov|webm|pdf)\s*$"
)
_NO_CELLS = "the column is empty; leave it out of the features"
_NONE = pa.array(MISSING)
#: Whole numbers below this are exact as floats.
_EXACT = 2**53
_ORDER = ["", "int64", "float64", "str"]


def infer_types(
    batches: Iterable[Any], names: Iterable[str], decimals: str, text: Collection[str] = ()
) -> tuple[dict[str, str], str]:
    """Types that hold for all cells of columns of text, and their decimal mark.

    ``decimals`` are the marks to choose from: ".", "," or both. It is a comma if some column is of
    numbers only with it, and none only with a point. Columns in ``text`` stay text.
    """
    start = {name: "str" if name in text else "" for name in names}
    by_mark = {mark: dict(start) for mark in decimals}
    for batch in batches:
        for mark, types in by_mark.items():
            for name, kind in types.items():
                if kind != "str":
                    types[name] = max(kind, _type_of(batch[name], mark), key=_ORDER.index)
    decimal = decimals
    if len(decimals) > 1:
        pairs = [(kind, by_mark[","][name]) for name, kind in by_mark["."].items()]
        with_comma = any(point == "str" != comma for point, comma in pairs)
        with_point = any(comma == "str" != point for point, comma in pairs)
        decimal = "," if with_comma and not with_point else "."
    return {name: kind or "float64" for name, kind in by_mark[decimal].items()}, decimal


def _type_of(column: Any, decimal: str) -> str:
    """The type that all cells of a column of text allow, "" if all are missing.

    A column of whole numbers and missing cells is "float64", as there is no missing integer.
    """
    numbers = converted(column, "float64", decimal)
    if numbers is None:
        return "str"
    if numbers.null_count == len(numbers):
        return ""
    if not pc.all(pc.equal(pc.floor(numbers), numbers)).as_py():
        return "float64"
    cells = _cleaned(column, decimal)
    if not pc.all(pc.match_substring_regex(cells, "^[+-]?[0-9]+$")).as_py():
        return "float64"  # such as 1.0 and 1e3
    if pc.any(pc.match_substring_regex(cells, "^[+-]?0[0-9]")).as_py():
        return "str"  # a name
    whole = _cast(cells, "int64")
    if whole is not None and not whole.null_count:
        return "int64"
    # Missing cells, a plus sign or too many digits; these would be lost.
    return "str" if pc.max(pc.abs(numbers)).as_py() >= _EXACT else "float64"


def converted(column: Any, kind: str, decimal: str) -> Any:
    """A column of text in a given type; None if a cell is not a number and should be."""
    if kind == "str":
        return column
    numbers = _cast(column, kind) if decimal == "." else None  # which is fast
    return _cast(_cleaned(column, decimal), kind) if numbers is None else numbers


def _cleaned(column: Any, decimal: str) -> Any:
    """Cells without blanks around them and with a decimal point; null where they are missing."""
    cells = pc.utf8_trim_whitespace(column)
    cells = pc.if_else(pc.is_in(cells, _NONE), pa.scalar(None, pa.string()), cells)
    if decimal == ".":
        return cells
    return pc.if_else(pc.match_substring(cells, "."), "?", pc.replace_substring(cells, ",", "."))


def _cast(cells: Any, kind: str) -> Any:
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


def holds_addresses(values: pd.Series) -> bool:
    """Whether a column holds addresses of images, sound or other files, not all the same."""
    if values.dtype.kind not in "OSU":
        return False
    texts = [str(text) for text in pd.unique(values.dropna()).tolist()]
    return len(texts) > 1 and all(map(_ADDRESS.match, texts))


def _is_prose(texts: Sequence[str]) -> bool:
    return 2 * sum(len(text.split()) >= PROSE for text in texts) > len(texts)


def is_text(values: pd.Series) -> bool:
    """Whether a column holds text or truth values rather than numbers."""
    return values.dtype.kind in "bOSU"


def to_numbers(values: pd.Series) -> tuple[np.ndarray[Any, np.dtype[np.float64]], Any]:
    """Cells as numbers, NaN where they are missing or none, and which are none (bool, n)."""
    if values.dtype.kind in "fiub":
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers, np.zeros(len(numbers), dtype=bool)
    if isinstance(values.dtype, pd.CategoricalDtype):
        return to_numbers(values.astype(values.cat.categories.dtype))
    if values.dtype.kind in "mMc":
        return np.full(len(values), np.nan), values.notna().to_numpy()
    cells = values.where(~values.isin(MISSING), None)
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers, (np.isnan(numbers) & cells.notna().to_numpy())


def level_names(cells: pd.Series) -> NDArray[Any]:
    """Names of levels: 1 and 1.0 are one, also as text."""
    codes, present = pd.factorize(cell_texts(cells))
    names = [t.removesuffix(".0") if whole_numbers([t]) else t for t in present]
    return np.array([*names, None], dtype=object)[codes]


def read_ids(frame: pd.DataFrame, name: str) -> NDArray[np.str_]:
    """Names of rows, empty where they have none."""
    return np.array(["" if t is None else t for t in cell_texts(frame[name])], dtype=str)


def cell_texts(values: pd.Series) -> NDArray[Any]:
    """Cells as text without blanks around it, None where they are missing."""
    codes, uniques = pd.factorize(values)
    texts = [to_text(u) for u in uniques.tolist()]
    return np.array([*(t or None for t in texts), None], dtype=object)[codes]


def as_classes(texts: NDArray[Any]) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as text."""
    codes, distinct = pd.factorize(texts)
    numbers = whole_numbers(distinct)
    if not numbers:
        return np.array([*distinct, ""], dtype=str)[codes]
    return np.array([*numbers, 0], dtype=np.int64)[codes]


def sorted_names(given: Iterable[Any]) -> tuple[str, ...]:
    """Different names by number if all are numbers, else by text."""
    names = sorted({name for name in given if name is not None})
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(names)


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
        is_number = isinstance(self.fill, float | int)
        fits = is_number if self.categories is None else self.fill in self.categories
        if self.fill is not None and not fits:
            raise ValueError(f"{self.fill!r} cannot replace a cell of column {self.name!r}")

    @property
    def kind(self) -> str:
        """What the column holds: "number" or "category"."""
        return "number" if self.categories is None else "category"

    @property
    def names(self) -> tuple[str, ...]:
        if self.categories is not None:
            return tuple(f"{self.name}={category}" for category in self.categories)
        return (self.name, f"{self.name} missing") if self.flagged else (self.name,)

    def encode(self, frame: pd.DataFrame, out: Array) -> Counter[str]:
        """Write the numbers of some rows; returns the rows of each category that is unknown."""
        if self.categories is None:
            column = NumberLearner(self.name)
            numbers = column.read(frame)
            column.check(gaps=self.fill is not None)
            out[:, 0] = np.where(np.isnan(numbers), float(self.fill or 0.0), numbers)
            if self.flagged:
                out[:, 1] = np.isnan(numbers)
            return Counter()
        learner = CategoryLearner(self.name)
        texts, codes = learner.read(frame)
        learner.check(gaps=self.fill is not None)
        categories = pd.Index(self.categories, dtype=object)
        at = categories.get_indexer(pd.Index([*texts, self.fill], dtype=object))
        at = at[codes]  # -1 where a cell is missing, which is the last one
        out[:] = at[:, None] == np.arange(len(categories))
        return Counter(texts[k] for k in codes[at < 0])


@dataclass
class _Learner:
    """Learns the encoding of a column, block after block, and notes cells that are wrong.

    A column that the user has ``declared`` categorical may hold any text. Medians are exact for up
    to ``room`` numbers, and beyond that of a random sample; there may be ``most`` categories.
    """

    name: str
    missing: Missing = "error"
    declared: bool = False
    room: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        self.gaps = WrongCells(
            self.name,
            "the cell is empty{others}; fill it in, leave the row or the column out, or fit with "
            "missing='median' or missing='indicator' (--missing)",
            one=", and so is one after it",
            many=", and so are {} after it",
        )
        self.wrong: list[WrongCells] = []

    @property
    def samples(self) -> list[Array]:
        """Arrays that the learner keeps; they are replaced, never changed."""
        return []

    def check(self, gaps: bool) -> None:
        """Raise an error of the first wrong cell; ``gaps`` are allowed or not."""
        for cells in self.wrong if gaps else [*self.wrong, self.gaps]:
            if cells:
                raise cells.error()

    def error(self, problem: str, path: str | None) -> TableError:
        return TableError(problem, path=path, column=self.name)


class NumberLearner(_Learner):
    """Learns the encoding of a column of numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.wrong = [
            WrongCells(self.name, "{cell} is not a number"),
            WrongCells(self.name, "{cell} is not finite; correct the cell, or empty it"),
        ]
        self._has_values = False
        self._sample: list[Array] = []  # random keys and numbers, (n, 2)

    def read(self, frame: pd.DataFrame) -> Array:
        """Numbers, NaN where they are missing or none; dates are refused."""
        if frame[self.name].dtype.kind in "mM":
            raise self.error(
                "the column holds dates or times; leave it out of the features, or turn it into "
                "numbers, such as days since a date",
                file_of(frame),
            )
        numbers, none = to_numbers(frame[self.name])
        self.wrong[0].add(frame, none)
        self.wrong[1].add(frame, np.isinf(numbers))
        self.gaps.add(frame, np.isnan(numbers))
        return numbers

    def add(self, block: pd.DataFrame, key: Array) -> None:
        """Take some rows into account; each has a random key."""
        numbers = self.read(block)
        self._has_values = self._has_values or bool(block[self.name].notna().any())
        if self.missing != "error":
            self._sample.append(np.column_stack([key, numbers])[~np.isnan(numbers)])
            if self.room is not None and sum(map(len, self._sample)) > 2 * self.room:
                self._sample = [self._sampled()]

    @property
    def samples(self) -> list[Array]:
        return self._sample

    def _sampled(self) -> Array:
        """Those numbers that have the smallest keys, as many as there is room for."""
        sample = np.concatenate(self._sample)
        if self.room is None or len(sample) <= self.room:
            return sample
        return sample[np.argpartition(sample[:, 0], self.room)[: self.room]]

    def encoding(self, path: str | None) -> ColumnEncoding:
        """What was learnt; raises an error if the column cannot be used."""
        if not self._has_values:
            raise self.error(_NO_CELLS, path)
        self.check(gaps=self.missing != "error")
        if self.missing == "error":
            return ColumnEncoding(self.name)
        flagged = self.missing == "indicator" and bool(self.gaps)
        return ColumnEncoding(self.name, None, float(np.median(self._sampled()[:, 1])), flagged)


class CategoryLearner(_Learner):
    """Learns the encoding of a column of categories."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._typos = WrongCells(
            self.name,
            "{cell} is not a number{others}, as the other {n} cells of the column are; correct it, "
            "empty the cell if the value is not known, or name the column as categorical",
            one=" (nor is one cell after it)",
            many=" (nor are {} cells after it)",
        )
        self._n_numbers = 0
        self._counts: Counter[str] = Counter()

    def read(self, frame: pd.DataFrame) -> tuple[list[str], Indices]:
        """The distinct texts, and their places in the rows, -1 where a cell is missing."""
        codes, texts = pd.factorize(cell_texts(frame[self.name]))
        self.gaps.add(frame, codes < 0)
        return texts.tolist(), codes

    def add(self, block: pd.DataFrame, key: Array) -> None:
        """Take some rows into account."""
        texts, codes = self.read(block)
        counts = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
        self._counts.update(dict(zip(texts, counts, strict=True)))
        dtype = block[self.name].dtype
        if not (self.declared or dtype.kind == "b" or isinstance(dtype, pd.CategoricalDtype)):
            numbers, wrong = to_numbers(pd.Series(texts, dtype=object))
            self._n_numbers += int(np.append(~np.isnan(numbers), False)[codes].sum())
            self._typos.add(block, np.append(wrong, False)[codes])
        if self.most is not None and len(self._counts) > self.most:
            raise self.error(
                f"there are more than {self.most:,} different texts "
                f"({name_few(map(shortened, [*self._counts][:3]))}, ...), more than rows in blocks "
                "can have as categories; leave it out of the features, or name it as text (--text)",
                file_of(block),
            )

    def encoding(self, path: str | None) -> ColumnEncoding:
        """What was learnt; raises an error if the column cannot be used."""
        texts, n_cells = [*self._counts], self._counts.total()
        if not n_cells:
            raise self.error(_NO_CELLS, path)
        if 0 < self._typos.count < self._n_numbers:  # a slip, not a category
            raise self._typos.error(n=self._n_numbers)
        many = len(texts) > MOST_CATEGORIES and (len(texts) > n_cells / 2 or _is_prose(texts))
        if many and not self.declared:
            raise self.error(
                f"there are {len(texts)} different texts in {n_cells} rows, so that it looks like "
                f"names or free text ({name_few(map(shortened, texts[:3]))}, ...), not like "
                "categories; leave it out of the features, or name it as text (--text) or as "
                "categorical",
                path,
            )
        self.check(gaps=self.missing != "error")
        if self.missing == "indicator" and self.gaps:
            return ColumnEncoding(self.name, tuple(sorted({*texts, EMPTY})), EMPTY)
        usual = None if self.missing == "error" else max(texts, key=self._counts.__getitem__)
        return ColumnEncoding(self.name, tuple(sorted(texts)), usual)
