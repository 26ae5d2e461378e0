"""Files of others, and places to write to: no traceback, no half output, no harm to inputs."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.attacks.command import (
    ONE_THREAD,
    Call,
    Outcome,
    contents,
    finish,
    fresh,
    is_whole,
    make_tables,
)
from benchmarks.attacks.trial import Trial, attack
from benchmarks.figures import Context

#: Seconds of the fuzz of model files.
FUZZ_FULL, FUZZ_QUICK = 1800.0, 20.0
#: Bytes of address space for a command; what it maps of libraries is in it.
MEMORY = 6 << 30
MODELS = Path(__file__).parents[2] / "tests" / "models"


def trials(context: Context) -> Iterator[Trial]:
    with tempfile.TemporaryDirectory() as name:
        around = Path(name)
        store = around / "store"
        store.mkdir()
        make_tables(store)
        yield from fuzz(around, store, FUZZ_QUICK if context.quick else FUZZ_FULL)
        yield from hostile_tables(around, store, context.quick)
        yield from outputs(around, store, context.quick)


# ------------------------------------------------------------------- model files


def fuzz(around: Path, store: Path, seconds: float) -> Iterator[Trial]:
    """Damaged and forged model files, read in a process of its own."""
    folder = around / "fuzz"
    folder.mkdir()
    for path in (store / "model.polyfid", *MODELS.glob("*.polyfid")):
        shutil.copy(path, folder)
    seed = int(os.environ.get("POLYFID_SEED", "0"))
    words = ["-m", "benchmarks.attacks.model_fuzz", str(folder), str(seconds), str(seed)]
    run = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        timeout=2 * seconds + 120.0,
        check=False,
    )
    if run.returncode:
        trial = Trial("fuzz of model files", "the documented error")
        trial.count(f"the process died: {run.stderr.decode()[-150:]}")
        yield trial
        return
    counted = json.loads(run.stdout)
    for way, tried in counted["tried"].items():
        failures = Counter(counted["failures"][way])
        what = f"model files, {way.replace('_', ' ')}"
        expected = "a model or ModelFileError, within 10 s and 200 MB"
        yield Trial(what, expected, tried, tried - failures.total(), failures)


# ------------------------------------------------------------------------ tables


def _wide(path: Path) -> None:
    names = ",".join(f"c{k}" for k in range(1_000_000))
    path.write_text(f"{names},label,fidelity\n" + "1," * 1_000_000 + "good,crowd\n")


def _bomb(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"heat,flow,label,fidelity\n")
        for _ in range(300):
            file.write(bytes(1 << 20))


def _parquet(path: Path, share: float) -> None:
    pd.read_csv(path.with_name("tidy.csv")).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])


def _text(change: Callable[[str], str | bytes]) -> Callable[[Path], None]:
    """A table made from the tidy one."""

    def make(path: Path) -> None:
        made = change(path.with_name("tidy.csv").read_text())
        path.write_bytes(made.encode() if isinstance(made, str) else made)

    return make


def _in_row(text: str, cell: str) -> str:
    """The table with a cell of the third row replaced."""
    lines = text.splitlines(keepends=True)
    first, _, *rest = lines[3].split(",")
    lines[3] = ",".join([first, cell, *rest])
    return "".join(lines)


#: Tables that are odd, and whether they can be read all the same.
TABLES: dict[str, tuple[Callable[[Path], None], bool | None]] = {
    "UTF-16 with a mark": (_text(lambda t: t.encode("utf-16")), True),
    "UTF-16 without a mark": (_text(lambda t: t.encode("utf-16-le")), None),
    "NUL bytes": (_text(lambda t: _in_row(t, "1\0.5")), None),
    "invalid UTF-8": (_text(lambda t: _in_row(t, "x").encode().replace(b"x", b"\xff\xfe")), False),
    "a quote that is not closed": (_text(lambda t: _in_row(t, '"1')), False),
    "empty": (_text(lambda t: ""), False),
    "blank lines": (_text(lambda t: "\n\n\n"), False),
    "a header only": (_text(lambda t: t.partition("\n")[0]), False),
    "a line of 50 MB": (_text(lambda t: _in_row(t, "1" * 50_000_000)), False),
    "a name of 50 MB": (_text(lambda t: "x" * 50_000_000 + "," + t), None),
    "a million columns": (_wide, False),
    "a gzip bomb": (_bomb, False),
    "gzip that is cut": (_text(lambda t: gzip.compress(t.encode())[:-20]), False),
    "gzip with bytes changed": (_text(lambda t: gzip.compress(t.encode())[:40] + bytes(99)), False),
    "Parquet that is cut": (lambda path: _parquet(path, 0.7), False),
    "Parquet without an end": (lambda path: path.write_bytes(b"PAR1") and None, False),
    "random bytes": (lambda path: path.write_bytes(os.urandom(100_000)) and None, False),
    "a folder": (lambda path: path.mkdir(), False),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), False),
    "a link to itself": (lambda path: path.symlink_to(path.name), False),
    "carriage returns": (_text(lambda t: t.replace("\n", "\r")), None),
}
#: Verbs with ``{}`` in place of the table.
VERBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "check": ("check {}", ()),
    "predict": ("predict model.polyfid {} -o out.csv", ("out.csv",)),
    "fit": ("fit {} --kernel rbf -o out.polyfid", ("out.polyfid",)),
    "fit in blocks": ("fit {} --kernel rbf --in-blocks -o out.polyfid", ("out.polyfid",)),
    "convert": ("convert {} --to table -o out.csv", ("out.csv",)),
    "report": ("report {} --kernel rbf --folds 0 -o out.html", ("out.html",)),
    "evaluate": ("evaluate {} --kernel rbf --folds 2", ()),
    "inspect": ("inspect {}", ()),
    "predict with it as the model": ("predict {} new.csv -o out.csv", ("out.csv",)),
}


def hostile_tables(around: Path, store: Path, quick: bool) -> Iterator[Trial]:
    verbs = ["check", "predict"] if quick else [*VERBS]
    for verb in verbs:
        words, outs = VERBS[verb]
        readable = verb not in ("inspect", "predict with it as the model")
        place = Place(around, store)

        def problem(name: str, words=words, outs=outs, readable=readable, place=place) -> Any:
            make, good = TABLES[name]
            place.prepare()
            make(place.folder / "odd.csv")
            before = contents(place.folder)
            wanted = good if readable else False
            # A table of rows to predict, or to convert, may be what is no labelled table.
            if good is False and words.startswith(("predict model", "convert")):
                wanted = None
            call = Call(words.format("odd.csv"), outs)
            return place.judge(
                call.run(place.folder, place.scratch, **LIMITS), before, call, wanted
            )

        names = [*TABLES][:6] if quick else [*TABLES]
        yield attack(f"odd tables to {verb}", "the right output or a sentence", names, problem)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


LIMITS: dict[str, Any] = {"preexec_fn": _limit_memory}


# ----------------------------------------------------------------------- outputs


@dataclass(frozen=True)
class Place:
    """A folder to run a command in, and one for its temporary files."""

    around: Path
    store: Path

    @property
    def folder(self) -> Path:
        return self.around / "folder"

    @property
    def scratch(self) -> Path:
        return self.around / "scratch"

    def prepare(self) -> None:
        fresh(self.store, self.folder)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()

    def judge(
        self, outcome: Outcome, before: dict[str, bytes], call: Call, good: bool | None = None
    ) -> str | None:
        """What is wrong with how a command ended; ``good`` says if it should have succeeded."""
        if outcome.crash:
            return outcome.crash
        if outcome.code not in (0, 1, 2):
            return f"exit code {outcome.code}: {outcome.stderr[-100:]}"
        if good is not None and good != (outcome.code == 0):
            return f"exit code {outcome.code}: {outcome.stderr[-100:]}"
        if outcome.code and not (outcome.stderr.strip() or outcome.stdout.strip()):
            return "no sentence says what is wrong"
        if len(outcome.stderr) > 20_000:
            return f"the sentence has {len(outcome.stderr)} characters"
        after = contents(self.folder)
        for name in sorted({*before, *after}):
            known = name in call.outputs or name.removesuffix(".toml") in call.outputs
            if after.get(name) == before.get(name):
                continue
            if not known:
                return f"{name} was changed or made"
            if outcome.code or not is_whole(self.folder / name):
                return f"exit code {outcome.code}, and {name} was changed or is not whole"
        left = [path.name for path in self.scratch.iterdir()]
        return f"{left[0]} is left in the folder for temporary files" if left else None


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


WRITERS = {
    "fit": ("fit tidy.csv --kernel rbf -o", "out.polyfid"),
    "fit in blocks": ("fit - --kernel rbf --in-blocks --inducing 9 -o", "out.polyfid"),
    "predict": ("predict model.polyfid new.csv -o", "out.csv"),
    "predict to Parquet": ("predict model.polyfid new.csv -o", "out.parquet"),
    "predict from a pipe": ("predict model.polyfid - -o", "out.csv"),
    "convert": ("convert new.csv --to table -o", "out.csv"),
    "report": ("report model.polyfid --folds 0 -o", "out.html"),
}


def outputs(around: Path, store: Path, quick: bool) -> Iterator[Trial]:
    names = ["predict", "convert"] if quick else [*WRITERS]
    place = Place(around, store)

    def start(name: str, out: str | None = None, **options: Any) -> tuple[Call, Outcome, Any]:
        words, usual = WRITERS[name]
        stdin = ("long.csv" if "fit" in name else "new.csv") if " - " in words else None
        call = Call(f"{words} {out or usual}", (usual,), stdin)
        before = contents(place.folder)
        return call, call.run(place.folder, place.scratch, **options), before

    def full_disk(name: str) -> str | None:
        place.prepare()
        (place.folder / WRITERS[name][1]).write_bytes(b"old")
        call, outcome, before = start(name, preexec_fn=_small_files)
        return place.judge(outcome, before, call, good=False)

    def full_device(name: str) -> str | None:
        place.prepare()
        if name in ("predict to Parquet",):
            return None  # what goes to a device has no ending
        call, outcome, before = start(name, "/dev/full")
        return place.judge(outcome, before, call, good=False)

    def through_link(name: str) -> str | None:
        place.prepare()
        usual = WRITERS[name][1]
        target = place.folder / f"target{Path(usual).suffix}"
        target.write_bytes(b"old")
        (place.folder / usual).symlink_to(target.name)
        call, outcome, before = start(name)
        if not (place.folder / usual).is_symlink():
            return "the link was replaced"
        if not is_whole(target):
            return "the target is not whole"
        linked = Call(call.words, (usual, target.name))
        return place.judge(outcome, before, linked, good=True)

    def dangling(name: str) -> str | None:
        place.prepare()
        (place.folder / WRITERS[name][1]).symlink_to("none/there")
        call, outcome, before = start(name)
        return place.judge(outcome, before, call, good=False)

    def itself(link: str) -> str | None:
        place.prepare()
        name, _, how = link.partition(" by ")
        words, inputs = INPUTS[name]
        for given in inputs:
            out = place.folder / f"out{Path(given).suffix}"
            out.unlink(missing_ok=True)
            if how == "a symbolic link":
                out.symlink_to(given)
            elif how == "a hard link":
                os.link(place.folder / given, out)
            elif how == "another path":
                out = place.folder / ".." / place.folder.name / given
            else:
                out = Path(given)
            before = contents(place.folder)
            call = Call([*words.split(), str(out)])
            problem = place.judge(call.run(place.folder, place.scratch), before, call, good=False)
            if problem:
                return f"{given}: {problem}"
        return None

    def two_writers(name: str) -> str | None:
        place.prepare()
        words, usual = WRITERS[name]
        stdin = ("long.csv" if "fit" in name else "new.csv") if " - " in words else None
        call = Call(f"{words} {usual}", (usual,), stdin)
        before, started = contents(place.folder), time.monotonic()
        both = [call.start(place.folder, place.scratch) for _ in range(2)]
        problems = [place.judge(finish(p, started), before, call, good=True) for p in both]
        return next(filter(None, problems), None)

    def from_fifo(name: str) -> str | None:
        place.prepare()
        fifo = place.folder / "pipe"
        os.mkfifo(fifo)
        words = WRITERS[name][0].replace("tidy.csv", "pipe").replace("new.csv", "pipe")
        words = words.replace("model.polyfid --folds", "pipe --folds")
        if "pipe" not in words:
            return None
        data = (place.folder / ("tidy.csv" if "fit" in name else "new.csv")).read_bytes()
        feeder = threading.Thread(target=_feed, args=(fifo, data), daemon=True)
        feeder.start()
        before = contents(place.folder)
        call = Call(f"{words} {WRITERS[name][1]}", (WRITERS[name][1],))
        return place.judge(call.run(place.folder, place.scratch), before, call)

    sentence = "a sentence, the older output as it was, nothing left"
    yield attack("output on a full disk", sentence, names, full_disk)
    yield attack("output to /dev/full", sentence, names, full_device)
    yield attack("output through a symbolic link", "the target is replaced", names, through_link)
    yield attack("output to a dangling link", sentence, names, dangling)
    yield attack("two writers of one output", "both succeed, it is whole", names, two_writers)
    yield attack("input from a named pipe", "the output or a sentence", names, from_fifo)
    ways = ("the same name", "another path", "a symbolic link", "a hard link")
    cases = [f"{name} by {way}" for name in INPUTS for way in ways]
    yield attack(
        "output equal to an input",
        "refused, the input as it was",
        cases[:: 5 if quick else 1],
        itself,
    )


#: Verbs and the inputs that must not become their output.
INPUTS = {
    "fit": ("fit tidy.csv --kernel rbf -o", ["tidy.csv"]),
    "predict": ("predict model.polyfid new.csv -o", ["new.csv"]),
    "convert": ("convert tidy.csv --to table -o", ["tidy.csv"]),
    "report": ("report tidy.csv --kernel rbf --folds 0 -o", ["tidy.csv"]),
    "report of a model": ("report model.polyfid --folds 0 -o", ["model.polyfid"]),
}


def _feed(fifo: Path, data: bytes) -> None:
    """Write to a pipe once; whoever does not read it to the end breaks it."""
    try:
        with fifo.open("wb") as file:
            file.write(data)
    except OSError:
        pass
