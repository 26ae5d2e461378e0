"""How a long run shows where it is: a bar in a terminal, a line a minute elsewhere."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from polyfid.experiments.run import Step

EVERY = 60.0  # seconds between lines where there is no terminal


class Progress:
    """Call it with each `Step` of a run, inside a ``with`` block.

    Examples
    --------
    >>> import sys
    >>> from rich.console import Console
    >>> from polyfid.cli.progress import Progress
    >>> from polyfid.experiments.run import Cell, Step
    >>> cell = Cell(experiment="toy", problem="coin", method="guess", mode="")
    >>> with Progress(Console(file=sys.stdout)) as progress:
    ...     progress(Step(cell, [], 1, 4, 90.0))
    1 of 4 cells, 0:01:30 left
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._failed = 0
        self._said: float | None = None
        self._bar: Bar | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = Bar(
                BarColumn(),
                TextColumn("{task.completed:.0f} of {task.total:.0f} cells{task.fields[rest]}"),
                console=self._console,
                transient=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: Step) -> None:
        """Show news of a run."""
        self._failed += any(row.error for row in step.rows)
        failed = f", {self._failed} failed" if self._failed else ""
        rest = f"{failed}, {timedelta(seconds=round(step.seconds_left))} left"
        if self._bar is not None:
            if self._task is None:
                self._bar.start()
                self._task = self._bar.add_task("", total=step.total, rest="")
            self._bar.update(self._task, completed=step.done, rest=rest)
            return
        now = time.monotonic()
        if self._said is None or now - self._said >= EVERY or step.done == step.total:
            self._said = now
            self._console.print(f"{step.done} of {step.total} cells{rest}")
