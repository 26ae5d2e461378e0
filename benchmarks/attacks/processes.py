"""Signals at random moments of every verb: whatever is written is whole, and nothing is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.attacks.command import (
    Call,
    contents,
    finish,
    fresh,
    handles_signals,
    is_whole,
    kill_session,
    make_tables,
    relatives,
)
from benchmarks.attacks.trial import Trial, attack
from benchmarks.figures import Context

#: Attempts per verb and signal.
N_FULL, N_QUICK = 50, 3
#: Seconds after its end within which a command's helpers must be gone.
PATIENCE = 10.0
#: What an output holds before the command begins.
OLD = b"an older output"
CHECKPOINT = "state.polyfid"

_BLOCKS = "--in-blocks --kernel rbf --inducing 30,20 --tuning 500 --block 500"
CALLS = {
    "demo": Call("demo -o demo --kernel rbf", ("demo/model.polyfid", "demo/report.html")),
    "check": Call("check tidy.csv"),
    "fit": Call("fit tidy.csv --kernel rbf -o out.polyfid", ("out.polyfid",)),
    "fit in processes": Call("fit tidy.csv --jobs 2 -o out.polyfid", ("out.polyfid",)),
    "fit in blocks": Call(
        f"fit - {_BLOCKS} --checkpoint {CHECKPOINT} -o out.polyfid", ("out.polyfid",), "long.csv"
    ),
    "predict": Call("predict model.polyfid new.csv --block 100 -o out.csv", ("out.csv",)),
    "predict -": Call("predict model.polyfid - -o out.parquet", ("out.parquet",), "new.csv"),
    "evaluate": Call("evaluate tidy.csv --kernel rbf --folds 2"),
    "report": Call("report model.polyfid --folds 0 -o out.html", ("out.html",)),
    "inspect": Call("inspect model.polyfid"),
    "convert": Call("convert new.csv --to table -o out.csv", ("out.csv",)),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
EXPECTED = {
    signal.SIGKILL: "outputs whole, or as they were",
    **dict.fromkeys(
        (signal.SIGINT, signal.SIGTERM),
        "exit code 128 + signal or 0, outputs whole or as they were, nothing left, no traceback",
    ),
}


def trials(context: Context) -> Iterator[Trial]:
    n = N_QUICK if context.quick else N_FULL
    verbs = os.environ.get("POLYFID_VERBS", ",".join(CALLS)).split(",")
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "store"
        store.mkdir()
        make_tables(store)
        for verb in verbs:
            scene = Scene(CALLS[verb], store, Path(name))
            seconds = scene.undisturbed()
            for number in SIGNALS:
                what = f"{number.name} in {verb} ({seconds:.1f} s)"
                shots = (Shot(number, k, n) for k in range(n))
                yield attack(what, EXPECTED[number], shots, scene.problem)


@dataclass(frozen=True)
class Shot:
    """One signal; ``place`` of ``n`` moments, each in a part of its own of the run's time."""

    number: signal.Signals
    place: int
    n: int

    @property
    def moment(self) -> float:
        """As a share of the duration."""
        return (self.place + random.Random(self.place).random()) / self.n

    @property
    def to_group(self) -> bool:
        """Whether workers get it too, as they do from a terminal."""
        return self.place % 2 == 1

    def __str__(self) -> str:
        return f"at {self.moment:.2f}{' to all' * self.to_group}"


@dataclass
class Scene:
    """A command in a folder of its own."""

    call: Call
    store: Path
    around: Path
    seconds: float = 0.0

    @property
    def scratch(self) -> Path:
        return self.around / "scratch"

    @property
    def folder(self) -> Path:
        return self.around / "folder"

    def prepare(self, older: bool = False) -> dict[str, bytes]:
        """A new folder, perhaps with older outputs; what is in it."""
        fresh(self.store, self.folder)
        fresh(self.store, self.scratch)
        for path in self.scratch.iterdir():
            path.unlink()
        for name in self.call.outputs if older else ():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_bytes(OLD)
        return contents(self.folder)

    def undisturbed(self) -> float:
        """Seconds from where signals are handled to the end."""
        self.prepare()
        started = time.monotonic()
        process = self.call.start(self.folder, self.scratch)
        self.await_handlers(process.pid)
        ready = time.monotonic() - started
        outcome = finish(process, started)
        if outcome.code or not all(is_whole(self.folder / name) for name in self.call.outputs):
            raise RuntimeError(f"polyfid {self.call} fails undisturbed: {outcome.stderr}")
        self.seconds = outcome.seconds - ready
        return self.seconds

    def await_handlers(self, pid: int) -> None:
        deadline = time.monotonic() + 30.0
        while not handles_signals(pid):
            if time.monotonic() > deadline:
                raise RuntimeError("SIGTERM is never handled")
            time.sleep(0.002)

    def problem(self, shot: Shot) -> str | None:
        """What went wrong in a run that got a signal."""
        before = self.prepare(older=shot.place % 3 == 2)
        started = time.monotonic()
        killed = shot.number == signal.SIGKILL
        # Workers that outlive a killed parent hold its pipes for some minutes.
        quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL) if killed else {}
        process = self.call.start(self.folder, self.scratch, **quiet)
        self.await_handlers(process.pid)
        time.sleep(self.seconds * shot.moment)
        if process.poll() is None:
            (os.killpg if shot.to_group else os.kill)(process.pid, shot.number)
        outcome = finish(process, started)
        if killed:
            kill_session(process.pid)
        codes = {0, -9} if killed else {0, 128 + shot.number}
        if outcome.code not in codes:
            return f"exit code {outcome.code}: {outcome.stderr[-150:]}"
        if outcome.crash:
            return outcome.crash
        problem = self.wrong_files(before, killed)
        if problem is None and not killed:
            problem = running(process.pid) or self.leftovers()
        if problem is not None or outcome.code == 0:
            return problem
        goes_on = CHECKPOINT in str(self.call) or killed
        return self.second_run() if goes_on and shot.place % 5 == 0 else None

    def wrong_files(self, before: dict[str, bytes], killed: bool) -> str | None:
        """Inputs that were changed, outputs that are not whole, other files that are left."""
        after = contents(self.folder)
        for name in sorted({*before, *after}):
            changed = after.get(name) != before.get(name)
            if changed and (self.store / name).exists():
                return f"the input {name} was changed"
            if not changed:
                continue
            temporary = Path(name).name.startswith(".polyfid-")
            if temporary and not killed:
                return f"{name} is left"
            if not temporary and not is_whole(self.folder / name):
                return f"{name} is not whole"
        return None

    def leftovers(self) -> str | None:
        """Temporary files."""
        left = [path.name for path in self.scratch.iterdir()]
        if left:
            return f"{left[0]} is left in the folder for temporary files"
        return None

    def second_run(self) -> str | None:
        """What goes wrong when the same command is run again."""
        outcome = self.call.run(self.folder, self.scratch)
        if outcome.code or not all(is_whole(self.folder / name) for name in self.call.outputs):
            return f"the same command then gives {outcome.code}: {outcome.stderr[-150:]}"
        if (self.folder / CHECKPOINT).exists():
            return "the checkpoint is left when the fit is done"
        return None


def running(session: int) -> str | None:
    """A process of the session that outlives the command."""
    deadline = time.monotonic() + PATIENCE
    while left := [*relatives(session)]:
        if time.monotonic() > deadline:
            return f"{left[0]} goes on"
        time.sleep(0.05)
    return None
