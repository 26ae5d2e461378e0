"""Work on blocks by several threads, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits


def in_order(work: Any, items: Iterable[Any], jobs: int) -> Iterator[Any]:
    """What ``work`` makes of the items, one after the other, by so many threads.

    Examples
    --------
    >>> from polyfid.tabular.ordered import in_order
    >>> list(in_order(abs, [-1, -2, -3], jobs=2))
    [1, 2, 3]
    """
    if jobs == 1:
        with threadpool_limits(1):
            yield from map(work, items)
        return
    waiting: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(jobs)
    try:
        with threadpool_limits(1):  # of BLAS, or threads would start threads
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
