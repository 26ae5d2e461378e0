"""Cells that take no time, in a module that worker processes can import."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from experiments.cells import Cell, scores


@dataclass(frozen=True, kw_only=True)
class Small(Cell):
    """Leaves a file behind for each time it is computed."""

    experiment: str = "small"
    problem: str = "coin"
    method: str = "guess"
    mode: str = "trusted"
    folder: str

    def trace(self):
        times = len(list(Path(self.folder).glob(f"{self.problem}-{self.seed}-*")))
        Path(self.folder, f"{self.problem}-{self.seed}-{times}").touch()
        return times

    def compute(self):
        self.trace()
        return {**scores([0, 1, 1], [0.5, 0.5, 0.75]), "n_trusted": 3, "fit_seconds": 0.1}


class FailsOnce(Small):
    def compute(self):
        if self.trace() == 0:
            raise RuntimeError("out of luck,\nas they say")
        return scores([0, 1], [0.1, 0.9])


class Killed(Small):
    """Takes its process with it."""

    def compute(self):
        self.trace()
        os.kill(os.getpid(), signal.SIGKILL)


class Threads(Small):
    """Gives its process, and in ``n_cheap`` how many threads linear algebra may have."""

    def compute(self):
        import numpy as np
        from threadpoolctl import threadpool_info

        np.ones((50, 50)) @ np.ones((50, 50))
        n = max(pool["num_threads"] for pool in threadpool_info())
        return {"n_cheap": n, "process": os.getpid()}


class Slow(Small):
    """Writes down its process and sleeps."""

    def compute(self):
        Path(self.folder, f"pid-{os.getpid()}").touch()
        time.sleep(600)
