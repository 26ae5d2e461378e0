"""Cells that take no time, in a module that worker processes can import."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from polyfid.experiments.run import Cell, as_setting


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
        return [self.scored([0, 1, 1], [0.5, 0.5, 0.75], n_trusted=3, fit_seconds=0.1)]


class FirstTimeUnlucky(Small):
    """Fails the first time."""

    def compute(self):
        if self.trace() == 0:
            raise RuntimeError("out of luck,\nas they say")
        return [self.scored([0, 1], [0.1, 0.9])]


class Killed(Small):
    """Takes its process with it."""

    def compute(self):
        self.trace()
        os.kill(os.getpid(), signal.SIGKILL)


class Grid(Small):
    """Three rows and a side file; the first time it fails if the problem is called so."""

    @property
    def n_rows(self):
        return 3

    def compute(self):
        if self.trace() == 0 and self.problem == "unlucky":
            raise RuntimeError("out of luck")
        rows = [self.scored([0, 1], [0.1, 0.9], setting=as_setting(x=x)) for x in range(3)]
        return rows, {"side.csv": [{"problem": self.problem, "x": x} for x in range(3)]}


class Threads(Small):
    """Says in ``n_cheap`` how many threads linear algebra may have."""

    def compute(self):
        import numpy as np
        from threadpoolctl import threadpool_info

        np.ones((50, 50)) @ np.ones((50, 50))
        most = max(pool["num_threads"] for pool in threadpool_info())
        return [self.row(n_cheap=most)]


class Slow(Small):
    """Writes down its process and sleeps."""

    def compute(self):
        import time

        Path(self.folder, f"pid-{os.getpid()}").touch()
        time.sleep(600)
