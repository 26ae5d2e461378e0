"""Columns of text: words and pairs of words, weighed and compressed to a few numbers per row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.rows.source import one_blas_thread
from polyfid.tables.column import cell_texts
from polyfid.tables.places import TableError, file_of

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

#: Numbers per text, at most. There is one for every so many different texts, too: few texts do not
#: tell which directions matter.
MOST_COMPONENTS, TEXTS_PER_COMPONENT = 100, 4
#: Words and pairs of words that are counted, at most; the most frequent ones.
MOST_WORDS = 10_000
#: Different texts to learn from where rows are read in blocks; if there are more, a sample.
MOST_TEXTS_IN_BLOCKS = 20_000


@dataclass(frozen=True, eq=False)
class TextEncoding:
    """How a column of text becomes numbers: TF-IDF and a truncated singular value decomposition.

    ``vocabulary`` has w words and pairs of words, ``idf`` (w,) their weights and ``components``
    (k, w) the directions that are kept. A text becomes k numbers whose squares add up to 1; one
    without any word of the vocabulary becomes zeros.
    """

    name: str
    vocabulary: tuple[str, ...]
    idf: NDArray[np.float64]
    components: NDArray[np.float64]

    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        words, shape = len(self.vocabulary), self.components.shape
        if self.idf.shape != (words,) or len(shape) != 2 or shape[1] != words or not all(shape):
            raise ValueError(
                f"the text column {self.name!r} has {words} words, weights of shape "
                f"{self.idf.shape} and components of shape {shape}, which do not fit each other"
            )
        if len({*self.vocabulary}) < words:
            raise ValueError(f"the text column {self.name!r} has a word twice in its vocabulary")
        if not (np.isfinite(self.idf).all() and np.isfinite(self.components).all()):
            raise ValueError(f"the text column {self.name!r} has numbers that are not finite")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{k}]" for k in range(len(self.components)))

    @cached_property
    def _vectorizer(self) -> TfidfVectorizer:
        vectorizer = _make_vectorizer(vocabulary=list(self.vocabulary))
        vectorizer.idf_ = self.idf
        return vectorizer

    def encode(self, frame: pd.DataFrame, out: Array) -> Counter[str]:
        """Write the numbers of some rows; no text is unknown, so that what is returned is empty."""
        texts, codes = read_texts(frame, self.name)
        if texts:
            numbers = self._vectorizer.transform(texts) @ self.components.T
            length = np.sqrt(np.square(numbers).sum(axis=1, keepdims=True))
            numbers = np.divide(numbers, length, out=np.zeros_like(numbers), where=length > 0.0)
            out[:] = numbers[codes]
        return Counter()


class TextLearner:
    """Learns the encoding of a column of text from its different texts, block after block.

    There are at most ``room`` of them in memory, a random sample if there are more.
    """

    def __init__(self, name: str, room: int | None = None) -> None:
        self.name, self._room = name, room
        self._texts: dict[str, float] = {}  # with random keys: the smallest ones are the sample

    @property
    def samples(self) -> list[Array]:
        """Arrays that the learner keeps, of which there are none."""
        return []

    def add(self, block: pd.DataFrame, key: Array) -> None:
        """Take some rows into account; each has a random key."""
        texts, codes = read_texts(block, self.name)
        first = np.unique(codes, return_index=True)[1]
        for text, k in zip(texts, key[first].tolist(), strict=True):
            if text:
                self._texts.setdefault(text, k)
        if self._room is not None and len(self._texts) > 2 * self._room:
            self._texts = self._sampled()

    def _sampled(self) -> dict[str, float]:
        if self._room is None or len(self._texts) <= self._room:
            return self._texts
        return dict(nsmallest(self._room, self._texts.items(), key=lambda item: item[1]))

    def encoding(self, path: str | None) -> TextEncoding:
        """What was learnt; raises an error if the column cannot be used."""
        from sklearn.decomposition import TruncatedSVD  # which other tables are read without

        texts = [*self._sampled()]
        if not texts:
            raise self._error("the column is empty; leave it out of --text", path)
        vectorizer = _make_vectorizer(min_df=2, max_features=MOST_WORDS)
        try:
            counts = vectorizer.fit_transform(texts)
        except ValueError:  # scikit-learn's way to say that the vocabulary is empty
            raise self._error(
                f"no word is in two of the {len(texts):,} different texts, so that there is "
                "nothing to learn from them; give more rows, or leave it out of --text",
                path,
            ) from None
        wanted = max(min(MOST_COMPONENTS, len(texts) // TEXTS_PER_COMPONENT), 1)
        svd = TruncatedSVD(min(wanted, counts.shape[1]), random_state=0)
        # One thread: the sums, and so the model, do not depend on the threads. Where all texts are
        # alike, shares of variance are divided by zero; nothing here needs them.
        with one_blas_thread(), np.errstate(invalid="ignore"):
            svd.fit(counts)
        # Directions in which texts do not differ at all are rounding errors.
        kept = svd.singular_values_ > 1e-9 * svd.singular_values_.max()
        words = tuple(map(str, vectorizer.get_feature_names_out()))
        return TextEncoding(self.name, words, vectorizer.idf_, svd.components_[kept])

    def _error(self, problem: str, path: str | None) -> TableError:
        return TableError(problem, path=path, column=self.name)


def read_texts(frame: pd.DataFrame, name: str) -> tuple[list[str], Indices]:
    """The different texts of a column, in order of first appearance, and where they are.

    A missing text is an empty one.
    """
    if frame[name].dtype.kind in "mM":
        problem = "the column holds dates or times, not text; leave it out of --text"
        raise TableError(problem, path=file_of(frame), column=name)
    cells = cell_texts(frame[name])
    codes, texts = pd.factorize(np.where(pd.isna(cells), "", cells))
    return texts.tolist(), codes


def _make_vectorizer(**options: Any) -> TfidfVectorizer:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, **options)
