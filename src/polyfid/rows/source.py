"""Where the rows of a fit are: in memory or in blocks that every pass reads again.

A source hands out a sample of its rows and adds up a function of all of them. A model of one class
gets its own view of a source: points in place of features, a likelihood in place of labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from operator import add
from threading import RLock
from typing import Any, ClassVar, TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from polyfid.arrays import Array, Indices
from polyfid.rows.rows import Points, Rows

Sum = TypeVar("Sum")  # a value that can be added to another one of its type
#: From features (n, d) to the coordinates of points (n, d').
Features = Callable[[Array], Array]
#: From rows to their likelihood under a model of one class.
Target = Callable[[Rows], Any]


@dataclass(frozen=True)
class View(ABC):
    """The rows of a source as the model of one class needs them; its fields may be of a sample."""

    points: Points
    likelihood: Any

    @abstractmethod
    def reduce(self, function: Callable[[Points, Any], Sum]) -> Sum:
        """The sum of a function of every block, added in the order of the blocks."""


@dataclass(frozen=True)
class Source(ABC):
    """All rows of a fit.

    ``sample`` are rows in memory that stand for all, ``total`` (n_levels,) is the sum of the
    weights of all rows by level.
    """

    sample: Rows
    total: Array

    @property
    def forester(self) -> Any:
        """What grows trees where the rows are (`polyfid.learning.boosted.Forester`), if any."""
        return None

    @abstractmethod
    def reduce(self, function: Callable[[Rows], Sum]) -> Sum:
        """The sum of a function of every block; it may be sent to another process."""

    def view(self, features: Features, target: Target, boosted: bool = False) -> View:
        """The rows as a model with these features of this target needs them.

        Rows have margins, for which ``boosted`` asks, in memory only.
        """
        assert not boosted
        return BlockView(*_label(self.sample, features, target), features, target, self)

    @property
    def in_memory(self) -> Rows:
        """As many of the rows as there are in memory."""
        return self.sample

    @property
    def rows_per_sample_row(self) -> Array:
        """The weight of all rows per weight of the sample, by level; 1 where there is none."""
        here = np.bincount(self.sample.level, self.sample.weight, minlength=len(self.total))
        return np.divide(self.total, here, out=np.ones(len(self.total)), where=here > 0.0)


@dataclass(frozen=True)
class InMemory(Source):
    """Rows in memory; ``n_threads`` work on them, None: one per processor."""

    rows: Rows
    n_threads: int | None = None

    @property
    def in_memory(self) -> Rows:
        return self.rows

    def reduce(self, function: Callable[[Rows], Sum]) -> Sum:
        return function(self.rows)

    def view(self, features: Features, target: Target, boosted: bool = False) -> View:
        return replace(label(self.rows, features, target, boosted), n_threads=self.n_threads)


@dataclass(frozen=True)
class InBlocks(Source):
    """Blocks that are read in every pass: iterating over ``blocks`` reads them again.

    ``coding`` turns a block into rows.
    """

    blocks: Iterable[Any]
    coding: Callable[[Any], Rows]
    n_threads: int | None = None

    def reduce(self, function: Callable[[Rows], Sum]) -> Sum:
        return add_up(((self.coding(block),) for block in self.blocks), function, self.n_threads)


def _label(rows: Rows, features: Features, target: Target) -> tuple[Points, Any]:
    return Points(np.ascontiguousarray(features(rows.x)), rows.level), target(rows)


def label(rows: Rows, features: Features, target: Target, boosted: bool = False) -> LabelledPoints:
    """Rows as the model of one class needs them; ``boosted``: with their margins."""
    points, likelihood = _label(rows, features, target)
    if boosted:
        assert rows.margin is not None
        points = Points(np.column_stack([points.x, rows.margin]), points.level)
    return LabelledPoints(points, likelihood)


@dataclass(frozen=True)
class LabelledPoints(View):
    """Points and their likelihood in memory; ``n_threads`` work on blocks, None: one per core."""

    block_size: int = 2048
    n_threads: int | None = None

    def __post_init__(self) -> None:
        if len(self.points) == 0:
            raise ValueError("points must have at least one row, got none")

    def take(self, rows: Indices) -> LabelledPoints:
        """Some of them."""
        return replace(self, points=self.points.take(rows), likelihood=self.likelihood.take(rows))

    def sample(self, size: int, rng: np.random.RandomState) -> LabelledPoints:
        """At most so many of them, as of `Rows.sample`."""
        points, likelihood, numbers = self.points, self.likelihood, np.arange(len(self.points))
        numbered = Rows.of(points.x, points.level, likelihood.y > 0.0, likelihood.weight, numbers)
        some = numbered.sample(size, rng)
        factor = some.weight / likelihood.weight[some.annotator]
        return LabelledPoints(
            Points(some.x, some.level), likelihood.take(some.annotator).times(factor)
        )

    def blocks(self) -> Iterator[tuple[Points, Any]]:
        for start in range(0, len(self.points), self.block_size):
            points = self.points.take(slice(start, start + self.block_size))
            yield points, self.likelihood.take(np.arange(start, start + len(points)))

    def reduce(self, function: Callable[[Points, Any], Sum]) -> Sum:
        return add_up(self.blocks(), function, self.n_threads)


@dataclass(frozen=True)
class BlockView(View):
    """The view of a source in blocks; ``points`` and ``likelihood`` are those of its sample."""

    features: Features
    target: Target
    source: Source

    def reduce(self, function: Callable[[Points, Any], Sum]) -> Sum:
        return self.source.reduce(partial(_apply, self.features, self.target, function))


def _apply(features: Features, target: Target, function: Callable[..., Sum], rows: Rows) -> Sum:
    """A function of a model's points and likelihood, of rows."""
    return function(*_label(rows, features, target))


@cache
def _controller() -> ThreadpoolController:
    """Of the BLAS that is loaded; finding it takes milliseconds."""
    return ThreadpoolController()


def _forget_who_set_limits() -> None:
    """Let any thread of Python set limits next.

    From threadpoolctl 3.8 on, limits of OpenBLAS are the right of the thread that first set some,
    and other threads are ignored without a word: also the last one out.
    """
    for library in _controller().lib_controllers:
        if forget := getattr(library, "clear_controlling_thread", None):
            forget(force=True)


class _OneBlasThread:
    """Limits BLAS while any thread of the process is inside; the last one out lifts the limit.

    The limit is one for the whole process. If every thread restored what it had found, a thread
    that entered second and left last would make the limit of the first one permanent. So would an
    interrupt just before `__exit__`; therefore what is deleted is outside as well.
    """

    _lock = RLock()  # the garbage collector may delete one at any moment
    _inside: ClassVar[set[int]] = set()
    _limit: ClassVar[Any] = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside.add(id(self))
            if self._limit is None:
                _forget_who_set_limits()
                _OneBlasThread._limit = _controller().limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        self._leave()

    def __del__(self) -> None:
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._inside.discard(id(self))
            limit = self._limit
            if limit is not None and not self._inside:
                _forget_who_set_limits()
                limit.restore_original_limits()
                _forget_who_set_limits()
                _OneBlasThread._limit = None


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which BLAS has one thread."""
    return _OneBlasThread()


def add_up(
    blocks: Iterable[tuple[Any, ...]], function: Callable[..., Sum], n_threads: int | None = None
) -> Sum:
    """Add a function of all blocks in threads, with few more blocks in memory than threads.

    Terms are added in the order of the blocks, so that the sum does not depend on the number of
    threads: None is one per processor, and negative numbers are as for joblib.
    """
    n_threads = joblib.cpu_count() if n_threads is None else joblib.effective_n_jobs(n_threads)
    terms = _in_threads(blocks, function, n_threads)
    total = next(terms, None)
    if total is None:
        raise ValueError("blocks must hold at least one block of rows, got none")
    return reduce(add, terms, total)


def _in_threads(
    blocks: Iterable[tuple[Any, ...]], function: Callable[..., Sum], n_threads: int
) -> Iterator[Sum]:
    waiting: deque[Future[Sum]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        for block in blocks:
            waiting.append(pool.submit(function, *block))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
