"""Where rows come from: sources that hand out blocks and add up what is made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, Self, TypeVar

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points

Block = tuple[Points, Likelihood]


class Summable(Protocol):
    """What can be added to its like."""

    def __add__(self, other: Any, /) -> Self: ...


Sum = TypeVar("Sum", bound=Summable)


class Rows(Protocol):
    """A source of labelled rows that can be read again and again.

    ``points`` and ``likelihood`` are all rows or a sample of them, for what only asks for their
    spread. A block's points are sorted by level; its likelihood is of the kind of ``likelihood``,
    with the same parameters.
    """

    @property
    def points(self) -> Points: ...

    @property
    def likelihood(self) -> Likelihood: ...

    def reduce(self, function: Callable[[Points, Likelihood], Sum]) -> Sum:
        """The sum of a function of every block, added in the order of the blocks."""
        ...


@dataclass(frozen=True)
class MemoryRows:
    """Rows in memory, worked on by threads.

    Parameters
    ----------
    points, likelihood : the rows, sorted by level.
    block_size : rows of a block.
    n_threads : blocks in work at a time; None: as many as there are processors.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.model.likelihoods import Logit
    >>> points = Points(np.zeros((5, 1)), np.zeros(5, dtype=int))
    >>> rows = MemoryRows(points, Logit(np.ones(5), np.ones(5)), block_size=2)
    >>> [len(p) for p, _ in rows.blocks()], rows.reduce(lambda points, labels: len(points))
    ([2, 2, 1], 5)
    """

    points: Points
    likelihood: Likelihood
    block_size: int = 8192
    n_threads: int | None = None

    def __post_init__(self) -> None:
        if len(self.points) == 0:
            raise ValueError("points must have at least one row, got none")
        if self.block_size < 1:
            raise ValueError(f"block_size must be at least 1, got {self.block_size}")

    def blocks(self) -> Iterator[Block]:
        for start in range(0, len(self.points), self.block_size):
            part = slice(start, start + self.block_size)
            points = Points(self.points.x[part], self.points.level[part])
            rows = np.arange(start, start + len(points))
            yield points, self.likelihood.take(rows)

    def reduce(self, function: Callable[[Points, Likelihood], Sum]) -> Sum:
        return add_up(self.blocks(), function, self.n_threads)


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes as long as a pass over some thousand rows: done once."""
    return ThreadpoolController()


def add_up(
    blocks: Iterator[tuple[Any, ...]],
    function: Callable[..., Sum],
    n_threads: int | None = None,
) -> Sum:
    """Add a function of all blocks in threads, with no more blocks in memory than there is work.

    Each thread has one thread of BLAS, and terms are added in the order of the blocks, so that
    the sum does not depend on the number of threads.
    """
    n_threads = joblib.cpu_count() if n_threads is None else n_threads
    total: Sum | None = None
    waiting: deque[Future[Sum]] = deque()

    def collect() -> None:
        nonlocal total
        term = waiting.popleft().result()
        total = term if total is None else total + term

    one_each = _controller().limit(limits=1, user_api="blas")
    with one_each, ThreadPoolExecutor(n_threads) as pool:
        for block in blocks:
            waiting.append(pool.submit(function, *block))
            if len(waiting) > n_threads:
                collect()
        while waiting:
            collect()
    if total is None:
        raise ValueError("blocks must hold at least one block of rows, got none")
    return total
