"""Running cells, the pieces of work an experiment consists of, and keeping their rows."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from polyfid.experiments.rows import Files, Key, Row, Rows, Scores, as_setting, versions

__all__ = ["Cell", "Files", "Key", "Row", "Rows", "Scores", "as_setting", "interleave", "run"]

T = TypeVar("T")

#: Variables that keep numerical libraries from starting threads of their own.
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1"
)

PATIENCE = 2.0  # seconds that a process may outlive the one that started it


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One piece of work, usually one method on one split: small, picklable, run in any process.

    A kind of cell is a frozen subclass with `compute`. Usually a cell gives one row, with the key
    of the cell; one that gives several (a grid of settings from one fit) says in `n_rows` how
    many, and its rows differ from it in the setting only.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from polyfid.experiments.run import Cell
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Coin(Cell):
    ...     def compute(self):
    ...         return [self.scored([0, 1], [0.5, 0.5], fit_seconds=0.0)]
    >>> cell = Coin(experiment="toy", problem="coin", method="guess", mode="", seed=0)
    >>> cell.compute()[0].roc_auc
    0.5
    """

    experiment: str
    problem: str
    method: str
    mode: str
    noise: float | None = None
    seed: int = 0
    setting: str = ""
    column: str = ""

    @property
    def key(self) -> Key:
        """What the cell is about; a row with this key means that it need not run."""
        return self.row().key

    @property
    def n_rows(self) -> int:
        """How many rows `compute` gives."""
        return 1

    @property
    def cost(self) -> float:
        """Seconds it may take, as a first guess for the time left."""
        return 1.0

    def compute(self) -> list[Row] | tuple[list[Row], Files]:
        """The rows, and lines for side files by the file's name if there are any.

        The first column of a side file names whose lines these are (the problem, say); the lines
        of a cell replace those with the same name.
        """
        raise NotImplementedError

    def row(self, **figures: Any) -> Row:
        """A row of this cell; a setting among the figures takes the place of the cell's own."""
        what = {
            "experiment": self.experiment,
            "column": self.column,
            "problem": self.problem,
            "method": self.method,
            "mode": self.mode,
            "noise": self.noise,
            "seed": self.seed,
            "setting": self.setting,
        }
        return Row(**{**what, "versions": versions(), **figures})

    def scored(self, y: Any, proba: Any, **figures: Any) -> Row:
        """A row with the scores of probabilities of class 1 against true labels 0 and 1."""
        return self.row(**Scores.of(y, proba)._asdict(), **figures)

    def failed(self, error: BaseException) -> Row:
        """The row of a cell that did not get through."""
        return self.row(error=f"{type(error).__name__}: {error}"[:500])


class Step(NamedTuple):
    """News of a run: another cell is finished."""

    cell: Cell
    rows: list[Row]
    done: int
    total: int
    seconds_left: float


class Finished(NamedTuple):
    """How a run went: cells computed now, cells whose rows were there, cells that failed now."""

    computed: int
    kept: int
    failed: int


def run(
    cells: Iterable[Cell],
    out: str | PathLike[str],
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> Finished:
    """Compute the cells whose rows are not in ``out`` yet, and append each as it is finished.

    Parameters
    ----------
    cells : iterable of Cell
        In the order to run them in; of cells with one key the first is run.
    out : path
        The directory of ``rows.csv``.
    jobs : int, default=1
        Processes, each with one thread for linear algebra. One: this process. Within
        ``joblib.parallel_config(backend="dask")`` cells go to that cluster, to all of its workers.
    retry_failed : bool, default=False
        Run those again whose row holds an error.
    progress : callable, optional
        Called with a `Step` after each cell.

    Returns
    -------
    Finished
        How many were computed, kept and failed.

    Examples
    --------
    >>> from polyfid.experiments.run import run
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run([], folder)
    Finished(computed=0, kept=0, failed=0)
    """
    if jobs < 1:
        raise ValueError(f"jobs must be a number of processes from 1; got {jobs!r}")
    rows = Rows(out)
    unique: dict[Key, Cell] = {}
    for cell in cells:
        unique.setdefault(cell.key, cell)
    todo = [cell for cell in unique.values() if not _is_done(cell, rows, retry_failed)]
    clock = _Clock(todo, effective_n_jobs(-1) if _on_a_cluster() else jobs)
    failed = 0
    with closing(_results(todo, min(jobs, len(todo)))) as results:
        for done, (cell, result) in enumerate(results, start=1):
            rows.append(result.rows, result.files, instead_of=cell.key)
            failed += result.failed
            clock.note(cell, result.seconds)
            if progress is not None:
                progress(Step(cell, result.rows, done, len(todo), clock.left()))
    if rows.repeats:
        rows.tidy()
    return Finished(len(todo), len(unique) - len(todo), failed)


def interleave(parts: Iterable[Sequence[T]]) -> list[T]:
    """Items of all parts, each part in its order and at its own even pace.

    Whenever one stops, every part is done to the same degree.

    Examples
    --------
    >>> from polyfid.experiments.run import interleave
    >>> interleave(["abcd", "xy"])
    ['a', 'x', 'b', 'c', 'y', 'd']
    """
    placed = [
        ((i + 0.5) / len(part), k, i, item)
        for k, part in enumerate(parts)
        for i, item in enumerate(part)
    ]
    return [item for *_, item in sorted(placed, key=lambda place: place[:3])]


def _is_done(cell: Cell, rows: Rows, retry_failed: bool) -> bool:
    if cell.key in rows:
        return not (retry_failed and rows.failed(cell.key))
    return cell.n_rows > 1 and rows.count(cell.key) >= cell.n_rows


class _Result(NamedTuple):
    rows: list[Row]
    files: Files
    seconds: float
    failed: bool


def _compute(cell: Cell) -> _Result:
    """The rows of a cell, or one with its error."""
    started = time.perf_counter()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether a fit converged is a figure of its row
            found = cell.compute()
        rows, files = found if isinstance(found, tuple) else (found, {})
        failed = any(row.error for row in rows)
    except Exception as error:
        rows, files, failed = [cell.failed(error)], {}, True
    return _Result(list(rows), files, time.perf_counter() - started, failed)


def _with_result(cell: Cell) -> tuple[Cell, _Result]:
    return cell, _compute(cell)


def _on_a_cluster() -> bool:
    """Whether joblib was told to work elsewhere than on this machine."""
    backend, _ = get_active_backend()
    return type(backend).__name__ == "DaskDistributedBackend"


def _results(cells: Sequence[Cell], jobs: int) -> Generator[tuple[Cell, _Result], None, None]:
    """Each cell with its rows, as they come."""
    if _on_a_cluster():
        pool = Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
        yield from pool(delayed(_with_result)(cell) for cell in cells)
        return
    if jobs <= 1:
        for cell in cells:
            yield cell, _compute(cell)
        return
    waiting = deque(cells)
    while waiting:
        suspects: list[Cell] = []
        with _Pool(jobs) as pool:
            for cell, result in pool.results(waiting):
                if result is None:
                    suspects.append(cell)
                else:
                    yield cell, result
        # A process died, of too little memory say, and one of the cells in work brought it down.
        # Alone they show which.
        for cell in suspects:
            with _Pool(1) as alone:
                for _, result in alone.results(deque([cell])):
                    error = BrokenProcessPool("the process was killed; perhaps memory ran out")
                    yield cell, result or _Result([cell.failed(error)], {}, 0.0, True)


class _Pool:
    """Processes that end with the block, at once if it is left by an exception."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._executor = ProcessPoolExecutor(
            jobs, initializer=_settle, initargs=(os.getpid(),), env=ONE_THREAD
        )

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._executor.shutdown(wait=True, kill_workers=kind is not None)

    def results(self, waiting: deque[Cell]) -> Iterator[tuple[Cell, _Result | None]]:
        """Take cells and give each with its result, with None if a process died meanwhile."""
        running: dict[Any, Cell] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    running[self._executor.submit(_compute, waiting[0])] = waiting[0]
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    yield running.pop(future), result
        except BrokenProcessPool:
            yield from ((cell, None) for cell in running.values())


def _settle(parent: int) -> None:
    """What a process does before its first cell."""
    # Ctrl-C reaches every process of the terminal; the parent is the one to act on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End when the parent has, even if it was killed and could not say so."""
    while os.getppid() == parent:
        time.sleep(PATIENCE)
    os._exit(1)


class _Clock:
    """Time left, from what cells of the same kind have taken."""

    def __init__(self, cells: Iterable[Cell], jobs: int) -> None:
        self._jobs = jobs
        self._left: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
        self._taken: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self._guessed = self._measured = 1e-9
        for cell in cells:
            self._left[_kind(cell)].append(cell)

    def note(self, cell: Cell, seconds: float) -> None:
        self._left[_kind(cell)].pop()
        self._taken[_kind(cell)].append(seconds)
        self._guessed += cell.cost
        self._measured += seconds

    def left(self) -> float:
        pace = self._measured / self._guessed
        total = 0.0
        for kind, cells in self._left.items():
            taken = self._taken[kind]
            one = sum(taken) / len(taken) if taken else pace * cells[0].cost
            total += one * len(cells)
        return total / self._jobs


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.experiment, cell.method, cell.mode
