"""The command as a process, in a folder of its own with tables and a model."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from polyfid import load

#: Seconds within which a small command must end, whatever is done to it.
TIMEOUT = 120.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def make_tables(folder: Path) -> None:
    """Small labelled tables, new rows, and the model of the tables."""
    rng = np.random.RandomState(0)
    for name, n in {"tidy": 60, "long": 3000, "new": 4000}.items():
        x = rng.uniform(-2, 2, (n, 2)).round(3)
        level = np.where(rng.uniform(size=n) < 0.3, 2, 1)  # numbers have an order of trust
        wrong = (level == 1) & (rng.uniform(size=n) < 0.2)
        label = np.where((x.sum(axis=1) > 0) ^ wrong, "good", "bad")
        frame = pd.DataFrame({"id": np.arange(n), "heat": x[:, 0], "flow": x[:, 1]})
        if name != "new":
            frame = frame.assign(label=label, fidelity=level)
        frame.to_csv(folder / f"{name}.csv", index=False)
    Call("fit tidy.csv --kernel rbf -o model.polyfid").run(folder, folder)
    (folder / "model.polyfid.toml").unlink()


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    code: int
    stdout: bytes
    stderr: str
    seconds: float

    @property
    def crash(self) -> str | None:
        """What on standard error no user should see, if there is anything.

        Ctrl-C in a terminal reaches the worker processes of joblib too, and one that is just being
        started says so: that is not in polyfid's hands.
        """
        if "popen_loky_posix" in self.stderr and "KeyboardInterrupt" in self.stderr:
            return None
        for mark in ("Traceback", "Exception ignored", "Error in sys", "Fatal Python"):
            if mark in self.stderr:
                return f"{mark}: ...{self.stderr.strip()[-150:]}"
        return None


@dataclass(frozen=True)
class Call:
    """Arguments of the command, the file that is its standard input, and the files it writes."""

    words: str | Sequence[str]
    outputs: tuple[str, ...] = ()
    stdin: str | None = None

    def __str__(self) -> str:
        return self.words if isinstance(self.words, str) else " ".join(self.words)

    def start(self, folder: Path, scratch: Path, **options: Any) -> subprocess.Popen[bytes]:
        """Start it in a session of its own, with temporary files in ``scratch``."""
        words = self.words.split() if isinstance(self.words, str) else self.words
        source = subprocess.DEVNULL if self.stdin is None else (folder / self.stdin).open("rb")
        try:
            return subprocess.Popen(
                [sys.executable, "-m", "polyfid.cli", *words],
                cwd=folder,
                env={**os.environ, **ONE_THREAD, "TMPDIR": str(scratch), "NO_COLOR": "1"},
                stdin=source,
                start_new_session=True,
                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
            )
        finally:
            if not isinstance(source, int):
                source.close()

    def run(self, folder: Path, scratch: Path, **options: Any) -> Outcome:
        """Run it to its end."""
        started = time.monotonic()
        return finish(self.start(folder, scratch, **options), started)


def finish(process: subprocess.Popen[bytes], started: float) -> Outcome:
    """Wait for a process; one that hangs is killed, with all that it has started."""
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        kill_session(process.pid)
        process.communicate()
        raise RuntimeError(f"it hangs for more than {TIMEOUT:g} s") from None
    seconds = time.monotonic() - started
    text = (err or b"").decode(errors="replace")
    return Outcome(process.returncode, out or b"", text, seconds)


def kill_session(leader: int) -> None:
    """Kill the processes that a command has started, which may outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def handles_signals(pid: int) -> bool:
    """Whether a process has come to where it handles SIGTERM; Python's start is before that."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) & 1 << (signal.SIGTERM - 1))
    return False


def relatives(session: int) -> Iterator[str]:
    """The processes of a session that run."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                state, *fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == session and state != "Z":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    yield f"process {command[:80]}"


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _page(path: Path) -> None:
    if not path.read_text("utf-8").rstrip().endswith("</html>"):
        raise ValueError("the page is cut")


def _csv(path: Path) -> None:
    if not path.read_bytes().endswith(b"\n"):
        raise ValueError("the last line is cut")
    pd.read_csv(path)


#: What reads a file of each kind, and raises if it is not whole.
READERS: Mapping[str, Callable[[Path], Any]] = {
    ".csv": _csv,
    ".html": _page,
    ".parquet": pq.read_table,
    ".polyfid": load,
    ".toml": lambda path: tomllib.loads(path.read_text("utf-8")),
}


def is_whole(path: Path) -> bool:
    """Whether an output is complete."""
    try:
        READERS[path.suffix](path)
    except Exception:
        return False
    return True


def fresh(store: Path, folder: Path) -> Path:
    """A new folder with what is in ``store``."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(store, folder)
    return folder
