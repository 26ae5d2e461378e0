"""One thread of BLAS per task of a worker whose threads share its processors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import threadpool_limits


class BlasLimit:
    """One thread of BLAS in this process while any task is inside; the last one out restores it.

    Examples
    --------
    >>> from polyfid.distributed.blas_limit import BlasLimit
    >>> limit = BlasLimit()
    >>> with limit, limit:  # also from several threads
    ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks = 0

    def __enter__(self) -> None:
        with self._lock:
            self._tasks += 1
            if self._tasks == 1:
                # Only the thread that sets a limit can lift it, and which task will be the last
                # one is not known yet: hence a thread for the limit.
                self._thread = ThreadPoolExecutor(1)
                limits = self._thread.submit(threadpool_limits, 1, user_api="blas")
                self._limits = limits.result()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._tasks -= 1
            if self._tasks == 0:
                self._thread.submit(self._limits.restore_original_limits).result()
                self._thread.shutdown()


#: That of this process.
BLAS_LIMIT = BlasLimit()
