"""From columns of a table to numbers that a classifier takes, the same for new rows as for old."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError

from polyfid.arrays import Array
from polyfid.atomic import set_attributes
from polyfid.tables.column import CategoryLearner, ColumnEncoding, Missing, NumberLearner, is_text
from polyfid.tables.embeddings import is_embedding
from polyfid.tables.places import TableError, columns_of_file, file_of, no_column, raise_all
from polyfid.tables.text_column import MOST_TEXTS_IN_BLOCKS, TextEncoding, TextLearner
from polyfid.text import name_few
from polyfid.values import is_frame, to_pandas

Encoding = ColumnEncoding | TextEncoding
#: Rows by column and category, of categories that were not there when an encoder was fitted.
Unknown = Counter[tuple[str, str]]

#: Categories of a column that is read in blocks, at most: more would not fit as columns of numbers.
MOST_CATEGORIES_IN_BLOCKS = 10_000
#: Missing columns up to this number are reported one by one, with similar names.
MOST_ABSENT = 3
#: Numbers of all columns together that medians are taken of; if there are more, a sample of them.
MEDIAN_CELLS = 4_000_000


class TableLearner:
    """Learns the encodings of columns, block after block of a table."""

    def __init__(self, learners: dict[str, CategoryLearner | NumberLearner | TextLearner]) -> None:
        self._learners = learners
        self._errors: dict[str, TableError] = {}
        self._files: set[str | None] = set()
        self._rng = np.random.default_rng(0)  # for the samples behind medians

    def check(self, block: pd.DataFrame) -> None:
        """Refuse a block that lacks columns, and name them."""
        absent = [name for name in self._learners if name not in block.columns]
        role = ", which earlier blocks have"
        raise_all([no_column(name, block.columns, file_of(block), role) for name in absent])

    def add(self, block: pd.DataFrame) -> None:
        """Take rows into account. A column that cannot be used is left alone from then on."""
        self._files.add(file_of(block))
        key = self._rng.uniform(size=len(block))
        for name, learner in self._learners.items():
            if name not in self._errors:
                try:
                    learner.add(block, key)
                except TableError as error:
                    self._errors[name] = error

    def columns(self) -> tuple[Encoding, ...]:
        """What was learnt; an error lists all columns that cannot be used."""
        made: list[Encoding] = []
        errors = dict(self._errors)
        path = next(iter(self._files)) if len(self._files) == 1 else None
        for name, learner in self._learners.items():
            if name not in errors:
                try:
                    made.append(learner.encoding(path))
                except TableError as error:
                    errors[name] = error
        raise_all([errors[name] for name in self._learners if name in errors])
        return tuple(made)

    def copy(self) -> TableLearner:
        """One that goes on from here and leaves this one alone."""
        # Samples and errors are never changed, only replaced: both may have them.
        shared = [part for learner in self._learners.values() for part in learner.samples]
        return deepcopy(self, {id(part): part for part in [*shared, *self._errors.values()]})


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns a table into numbers: numbers stay, a category becomes one column per value.

    A text becomes up to 100 numbers, fewer where there are few texts: words and pairs of words that
    are in two texts at least, weighed by TF-IDF and compressed by a truncated singular value
    decomposition. An empty text becomes zeros.

    It is a transformer of scikit-learn: in a pipeline, it is learnt anew in each fold of a
    cross-validation.

    Parameters
    ----------
    features : sequence of str, optional
        Columns to take; all by default.
    categorical : collection of str
        Columns of categories that look like numbers. Those of text, truth values and pandas'
        categories are taken for categories anyway.
    text : collection of str
        Columns of free text.
    missing : {"error", "median", "indicator"}
        What to do about missing values: refuse them; replace them by the median or the most
        frequent category; or do so and also add a column that says where they were missing, which
        for categories is a category of its own.

    Attributes
    ----------
    columns_ : tuple
        How each column becomes numbers.
    names_ : tuple of str
        Names of the columns of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import TableEncoder
    >>> frame = pd.DataFrame({"x": [0.5, 1.5], "colour": ["red", "blue"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.names_
    ('x', 'colour=blue', 'colour=red')
    >>> encoder.transform(frame)
    array([[0.5, 0. , 1. ],
           [1.5, 1. , 0. ]])
    >>> reviews = pd.DataFrame({"review": ["so dull", "so good", "dull", "good", "dull, good"]})
    >>> TableEncoder(text=["review"]).fit(reviews).names_
    ('review[0]',)
    """

    def __init__(
        self,
        *,
        features: Sequence[str] | None = None,
        categorical: Collection[str] = (),
        text: Collection[str] = (),
        missing: Missing = "error",
    ) -> None:
        self.features = features
        self.categorical = categorical
        self.text = text
        self.missing = missing

    _columns: tuple[Encoding, ...] | None
    _learner: TableLearner

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns of a data frame of pandas or polars; ``y`` is ignored.

        Raises
        ------
        TableError
            For each column that cannot be used, with the row that is the reason.
        """
        frame = _as_frame(X)
        learner = self.learner(*self._names_and_text(frame), bounded=False)
        if not len(frame):
            raise TableError("there are no rows", path=file_of(frame))
        learner.add(frame)
        set_attributes(self, {"_columns": learner.columns()}, drop=["_learner"])
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more block of rows; `transform` raises an error for unusable columns.

        Medians of very many numbers are those of a random sample, and so are the words of more than
        20 000 different texts. Where this raises or is
        interrupted, nothing of the block was learnt.

        Examples
        --------
        >>> import pandas as pd
        >>> from polyfid.tables import TableEncoder
        >>> encoder = TableEncoder()
        >>> for colours in (["red", "blue"], ["red", "grey"]):
        ...     encoder = encoder.partial_fit(pd.DataFrame({"colour": colours}))
        >>> encoder.names_
        ('colour=blue', 'colour=grey', 'colour=red')
        """
        frame = _as_frame(X)
        before = getattr(self, "_learner", None)
        if before is None and self.__sklearn_is_fitted__():
            raise ValueError(
                "fit has learnt all of its rows and kept none; call partial_fit for every "
                "block, the first one included"
            )
        learner = self.learner(*self._names_and_text(frame)) if before is None else before.copy()
        learner.check(frame)
        learner.add(frame)
        set_attributes(self, {"_columns": None, "_learner": learner})
        return self

    def _names_and_text(self, frame: pd.DataFrame) -> tuple[list[str], set[str]]:
        """Columns to take, and those of them that hold text."""
        names = list(frame.columns) if self.features is None else list(self.features)
        for name in (*names, *self.categorical, *self.text):
            if name not in frame.columns:
                raise no_column(name, frame.columns, file_of(frame))
        if not names:
            raise TableError("there are no columns of features", path=file_of(frame))
        return names, {name for name in names if is_text(frame[name])}

    def learner(
        self, names: Sequence[str], text: Collection[str], bounded: bool = True
    ) -> TableLearner:
        """What learns these columns, some of which hold ``text``, as categories or as free text.

        ``bounded`` limits the memory for medians, categories and texts.
        """
        if self.missing not in get_args(Missing):
            choices = list(get_args(Missing))
            raise ValueError(f"missing must be one of {choices}, got {self.missing!r}")
        room = MEDIAN_CELLS // max(len(names), 1) if bounded else None
        most = MOST_CATEGORIES_IN_BLOCKS if bounded else None
        learners: dict[str, CategoryLearner | NumberLearner | TextLearner] = {}
        for name in names:
            if name in self.text:
                learners[name] = TextLearner(name, MOST_TEXTS_IN_BLOCKS if bounded else None)
            elif name in text or name in self.categorical:
                declared = name in self.categorical
                learners[name] = CategoryLearner(name, self.missing, declared=declared, most=most)
            else:
                learners[name] = NumberLearner(name, self.missing, room=room)
        return TableLearner(learners)

    @classmethod
    def of(cls, columns: Sequence[Encoding], missing: Missing) -> TableEncoder:
        """The fitted encoder of columns whose encodings exist already."""
        categorical = [c.name for c in columns if c.kind == "category"]
        text = [c.name for c in columns if c.kind == "text"]
        features = [c.name for c in columns]
        made = cls(features=features, categorical=categorical, text=text, missing=missing)
        made._columns = tuple(columns)
        return made

    def unfitted(self) -> TableEncoder:
        """An encoder to fit to rows of a fold: kinds of columns stay, their values are learnt."""
        return clone(TableEncoder.of(self.columns_, self.missing))

    @property
    def columns_(self) -> tuple[Encoding, ...]:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this TableEncoder is not fitted yet; call fit first")
        if self._columns is None:
            self._columns = self._learner.columns()
        return self._columns

    @property
    def names_(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns_ for name in column.names)

    @property
    def kinds_(self) -> dict[str, str]:
        """Whether a column is a "number", a "category" or a "text"."""
        return {c.name: c.kind for c in self.columns_}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of numbers, as scikit-learn asks for them."""
        return np.array(self.names_, dtype=object)

    def transform(self, X: Any) -> Array:
        """The numbers (n, d) of a data frame; other columns and another order do not matter.

        A warning names categories that are new.
        """
        x, unknown = self.encode(_as_frame(X))
        warn_of_unknown(unknown)
        return x

    def encode(self, frame: pd.DataFrame) -> tuple[Array, Unknown]:
        """The numbers (n, d), and the categories that were not there at `fit`."""
        self.check(frame)
        x = np.empty((len(frame), len(self.names_)), order="F")
        unknown: Unknown = Counter()
        start = 0
        for column in self.columns_:
            stop = start + len(column.names)
            new = column.encode(frame, x[:, start:stop])
            unknown.update({(column.name, category): n for category, n in new.items()})
            start = stop
        return x, unknown

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse rows that lack columns, and name them."""
        names = [c.name for c in self.columns_]
        absent = [name for name in names if name not in frame.columns]
        if not absent:
            return
        path, there = file_of(frame), columns_of_file(frame)
        if all(map(is_embedding, absent)):
            raise TableError(
                f"the model was fitted to embeddings too, {name_few(absent, 2)}, which these rows "
                "lack; give theirs (--embeddings FILE, in Python Embeddings)",
                path=path,
            )
        if len(absent) > MOST_ABSENT:
            raise TableError(
                f"there are no columns {name_few(absent)}, which the model was fitted to; the "
                f"columns are {name_few(there)}",
                path=path,
            )
        role = ", which the model was fitted to"
        raise_all([no_column(name, there, path, role, taken=names) for name in absent])


def _as_frame(X: Any) -> pd.DataFrame:
    if not is_frame(X):
        raise TypeError(f"X must be a data frame of pandas or polars; got {type(X).__name__}")
    return to_pandas(X)


def warn_of_unknown(unknown: Unknown) -> None:
    """Warn of categories that were not there when an encoder was fitted, if there are any."""
    texts = []
    for column in dict.fromkeys(column for column, _ in unknown):
        rows = {category: n for (name, category), n in unknown.items() if name == column}
        n = sum(rows.values())
        texts.append(
            f"column {column!r}: {n:,} {'row is' if n == 1 else 'rows are'} in no category that "
            f"the model was fitted to ({name_few(rows)}); probabilities there come from the other "
            "columns"
        )
    if texts:
        warnings.warn("; ".join(texts), UserWarning, stacklevel=3)
