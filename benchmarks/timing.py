"""CPU time, or another one, of calls that take turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def cpu(call: Callable[[], T], clock: Callable[[], float] = time.process_time) -> tuple[float, T]:
    """CPU seconds of one call, or those of another clock, and what it returned."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = call()
        return clock() - start, result
    finally:
        gc.enable()


def take_turns(
    calls: Mapping[str, Callable[[], Any]],
    repetitions: int,
    clock: Callable[[], float] = time.process_time,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
    """CPU seconds (repetitions,) of each call, interleaved, and what each returned last."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    for _ in range(repetitions):
        for name, call in calls.items():
            taken, results[name] = cpu(call, clock)
            seconds[name].append(taken)
    return {name: np.array(taken) for name, taken in seconds.items()}, results
