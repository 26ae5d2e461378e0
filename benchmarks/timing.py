"""CPU time of calls that take turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def cpu(call: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of one call, and what it returned."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        result = call()
        return time.process_time() - start, result
    finally:
        gc.enable()


def take_turns(
    calls: Mapping[str, Callable[[], Any]], repetitions: int
) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
    """CPU seconds (repetitions,) of each call, interleaved, and what each returned last."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    for _ in range(repetitions):
        for name, call in calls.items():
            taken, results[name] = cpu(call)
            seconds[name].append(taken)
    return {name: np.array(taken) for name, taken in seconds.items()}, results
