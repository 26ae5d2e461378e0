"""How the process of a worker is set while it computes."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from distributed import get_worker
from threadpoolctl import threadpool_limits

#: Parameters of glibc's mallopt, and what they are while sums are computed, in bytes.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM, _MMAP = 1 << 28, 1 << 25
#: What glibc has for the second one if nobody says otherwise.
_USUAL_MMAP = 1 << 17


@contextmanager
def at_work() -> Iterator[None]:
    """Around a task of a worker, whose threads share its processors and its memory."""
    with _shared(one_thread=get_worker().state.nthreads > 1):
        yield


class _Shared:
    """Settings that belong to a process: the first task sets them, the last one sets them back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks = 0
        self._settings = ExitStack()

    @contextmanager
    def __call__(self, one_thread: bool) -> Iterator[None]:
        with self._lock:
            self._tasks += 1
            if self._tasks == 1:
                self._settings.enter_context(_memory_is_kept())
                if one_thread:
                    self._settings.enter_context(_one_blas_thread())
        try:
            yield
        finally:
            with self._lock:
                self._tasks -= 1
                if self._tasks == 0:
                    self._settings.close()


_shared = _Shared()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    # The thread that sets a limit is the only one that can lift it, and which task will be the
    # last one is not known: so it is a thread of its own.
    with ThreadPoolExecutor(1) as keeper:
        limits = keeper.submit(threadpool_limits, 1, user_api="blas").result()
        try:
            yield
        finally:
            keeper.submit(limits.restore_original_limits).result()


@contextmanager
def _memory_is_kept() -> Iterator[None]:
    """Let the memory of arrays serve again for the next ones.

    Dask's nannies have workers give memory back at once (``MALLOC_TRIM_THRESHOLD_``), so that what
    they have in use can be told. Sums are made through many arrays that live for a moment, and
    asking for their memory anew each time doubles the time. In the end it is given back.
    """
    libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
    usual = os.environ.get("MALLOC_TRIM_THRESHOLD_")
    if usual is None or not all(hasattr(libc, name) for name in ("mallopt", "malloc_trim")):
        yield
        return
    libc.mallopt(_M_TRIM_THRESHOLD, _TRIM)
    libc.mallopt(_M_MMAP_THRESHOLD, _MMAP)
    try:
        yield
    finally:
        libc.mallopt(_M_TRIM_THRESHOLD, int(usual))
        libc.mallopt(_M_MMAP_THRESHOLD, int(os.environ.get("MALLOC_MMAP_THRESHOLD_", _USUAL_MMAP)))
        libc.malloc_trim(0)
