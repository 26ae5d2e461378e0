"""What is measured: time of calls that take turns, scores of probabilities, other processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

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


class Timed(NamedTuple):
    """What a call returned, and its seconds of the clock and of the processor."""

    result: Any
    wall: float
    cpu: float


def timed(call: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    return Timed(call(), time.perf_counter() - wall, time.process_time() - cpu)


class Score(NamedTuple):
    """ROC AUC and log-loss."""

    roc_auc: float
    log_loss: float


def score(y: NDArray[np.intp], probability: NDArray[np.float64]) -> Score:
    """Score the probabilities of class 1."""
    return Score(
        float(roc_auc_score(y, probability)), float(log_loss(y, probability, labels=[0, 1]))
    )


def run_python(*arguments: str, n_threads: int = 1) -> str:
    """What Python prints, called with these arguments in a process of its own.

    BLAS and OpenMP have ``n_threads`` threads there, if it runs a module of the benchmarks.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "POLYFID_BENCHMARK_THREADS": str(n_threads)},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed")
    return done.stdout
