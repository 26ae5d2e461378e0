"""Running cells and keeping their rows."""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from experiments.cells import Cell, Key, Row, key_of, versions

PATIENCE = 2.0  # seconds that a worker process may outlive the process that started it
_FIRST = b'{"experiment": "'  # how lines of rows begin


class RowFile:
    """The rows in ``rows.jsonl`` of a directory; of lines with the same key the last one counts.

    A process that is killed while it writes leaves a line that is cut short, with the next row
    behind it if another process goes on. Such lines are skipped: their rows are not there.
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.path = Path(directory) / "rows.jsonl"
        self.rows: dict[Key, Row] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            return
        *lines, rest = self.path.read_bytes().split(b"\n")
        cut = [(len(lines) + 1, rest)] if rest else []
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                cut.append((number, line))
                continue
            if not _is_row(row):
                raise self._error(number)
            self._set(row)
        for number, line in cut:
            if not self.rows and not _begins_like_a_row(line):
                raise self._error(number)

    def _error(self, number: int) -> ValueError:
        return ValueError(
            f"line {number} of {self.path} is not a row of results; name another directory with "
            "--out"
        )

    def append(self, row: Row) -> None:
        """Write a row, in place of a last line that is cut short."""
        self._set(row)
        text = json.dumps(_plain(row), ensure_ascii=False, allow_nan=False)
        with self.path.open("a+b") as file:
            _drop_last_line_if_cut(file)
            file.write(text.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _set(self, row: Row) -> None:
        """A row takes the place of an earlier one with its key, and comes last."""
        self.rows.pop(key_of(row), None)
        self.rows[key_of(row)] = row


def _is_row(value: Any) -> bool:
    if not isinstance(value, dict) or not {"experiment", "problem"} <= {*value}:
        return False
    return not any(isinstance(part, list | dict) for part in key_of(value))


def _begins_like_a_row(line: bytes) -> bool:
    """Whether text, perhaps cut short, begins as rows that were written here do."""
    return line.startswith(_FIRST) or _FIRST.startswith(line)


def _drop_last_line_if_cut(file: IO[bytes]) -> None:
    """Remove what is behind the last end of line; a row must not be glued to it."""
    if file.seek(0, os.SEEK_END) == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _plain(value: Any) -> Any:
    """A value for JSON: eight digits of a number are enough, and NaN becomes null."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(v) for v in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.8g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


class RunSummary(NamedTuple):
    """Numbers of cells: computed in this run, computed earlier, failed in this run."""

    computed: int
    kept: int
    failed: int


def run(
    cells: Iterable[Cell],
    out: str | PathLike[str],
    *,
    jobs: int | None = None,
    retry_failed: bool = False,
    progress: Callable[[Row, int, int, float], None] | None = None,
) -> RunSummary:
    """Compute the cells that have no row in ``out`` yet, and append each row when it is finished.

    ``jobs`` is the number of worker processes, 1 this process. Without it joblib's configuration
    decides, so that ``joblib.parallel_config(backend="dask")`` uses a cluster. ``retry_failed``
    runs cells again whose row has an error. ``progress`` is called with each row, the number of
    cells done and of all, and an estimate of the seconds left.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be a number of processes from 1; got {jobs!r}")
    file = RowFile(out)
    unique = {key_of(cell.row()): cell for cell in cells}
    todo = {
        key: cell
        for key, cell in unique.items()
        if key not in file.rows or (retry_failed and "error" in file.rows[key])
    }
    total, failed, started = len(todo), 0, time.perf_counter()
    left = work = sum(cell.seconds for cell in todo.values())
    with closing(_rows(todo, jobs)) as rows:
        for done, row in enumerate(rows, start=1):
            file.append(row)
            failed += "error" in row
            left -= unique[key_of(row)].seconds
            if progress is not None:
                pace = (time.perf_counter() - started) / (work - left)
                progress(row, done, total, pace * left * (done < total))
    return RunSummary(total, len(unique) - total, failed)


def _rows(todo: dict[Key, Cell], jobs: int | None) -> Generator[Row, None, None]:
    """The rows of cells, in the order in which they are finished."""
    waiting = dict(todo)
    while waiting:
        # No more cells than processes are handed out at once, so that few are lost with a process.
        parallel = Parallel(
            n_jobs=jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered"
        )
        rows = parallel([delayed(_compute)(cell, os.getpid()) for cell in waiting.values()])
        try:
            for row in rows:
                del waiting[key_of(row)]
                yield row
        except BrokenProcessPool:
            # A process was killed, and one of the cells in work may have caused it. They are among
            # the first that have no row; each in a process of its own shows which.
            for key in list(waiting)[: 2 * (jobs or 1)]:
                yield _compute_apart(waiting.pop(key))
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about cells that are given up
                rows.close()


def _compute_apart(cell: Cell) -> Row:
    """The row of a cell, computed in a process of its own."""
    with ProcessPoolExecutor(1) as executor:
        try:
            return executor.submit(_compute, cell, os.getpid()).result()
        except BrokenProcessPool:
            return cell.row(error="the process was killed; perhaps memory ran out")


def _compute(cell: Cell, parent: int) -> Row:
    """The row of a cell, with an error if it fails."""
    if os.getpid() != parent:
        _watch(parent)
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the row says whether a fit converged
            return cell.row(**cell.compute(), versions=versions())
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return cell.row(error=text[:500], versions=versions())


@functools.cache
def _watch(parent: int) -> None:
    """End this worker process soon after its parent, even if that was killed."""
    # Workers of a cluster compute in other threads, or are not children of this process.
    if os.getppid() != parent or threading.current_thread() is not threading.main_thread():
        return
    # Ctrl-C reaches every process of the terminal; the parent is the one to act on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(PATIENCE)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
