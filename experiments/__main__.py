"""The command line: run experiments of the paper and write a page of tables and figures."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import joblib

from experiments.catalogue import EXPERIMENTS, cells_of
from experiments.run import RowFile, Step, run

ALL = "all"
EVERY = 60.0  # seconds between lines of progress where there is no terminal

DESCRIPTION = f"""\
Run experiments of the paper and write a page of tables and figures.

NAME is one or more of {", ".join([*EXPERIMENTS, ALL])}. Without a name nothing is run, and the page
is drawn again from the rows in OUT.

Each finished cell is a line of OUT/rows.jsonl. After an interruption the same command continues."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in (*EXPERIMENTS, ALL)]:
        parser.error(f"no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}, all")
    names = _choose(options.names)
    try:
        rows = RowFile(options.out).rows
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    try:
        home = None if options.data is None else str(options.data)
        cells = cells_of(names, home, runs=options.runs, quick=options.quick)
        done = run(
            cells,
            options.out,
            jobs=options.jobs,
            retry_failed=options.retry_failed,
            progress=Progress(),
        )
    except KeyboardInterrupt:
        n = len(RowFile(options.out).rows)
        print(
            f"\nStopped. {n} rows are in {options.out / 'rows.jsonl'}; the same command continues.",
            file=sys.stderr,
        )
        return 130
    if names:
        _say(f"{done.computed} cells computed, {done.kept} had a row already.")
    if done.failed:
        _say(f"{done.failed} failed and are listed on the page; --retry-failed runs them again.")
    if names or rows:
        write_page(options.out, names)
        _say(f"Written: {', '.join(str(options.out / n) for n in ('results.md', 'results.html'))}")
    else:
        _say(f"There are no rows in {options.out}; name an experiment to run.")
    return 0


def write_page(out: Path, names: Sequence[str]) -> None:
    """Draw tables and figures from the rows; importing matplotlib takes a while."""
    from experiments import page

    page.write(out, names)


class Progress:
    """Prints how far a run is: one changing line in a terminal, a line per minute elsewhere."""

    def __init__(self) -> None:
        self._failed = 0
        self._printed = -EVERY

    def __call__(self, step: Step) -> None:
        """Print a step of a run."""
        self._failed += "error" in step.row
        failed = f", {self._failed} failed" if self._failed else ""
        left = timedelta(seconds=round(step.seconds_left))
        text = f"{step.done} of {step.total} cells{failed}, {left} left"
        last = step.done == step.total
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
        elif last or time.monotonic() - self._printed >= EVERY:
            self._printed = time.monotonic()
            _say(text)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m experiments",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run")
    parser.add_argument(
        "--data",
        type=_directory,
        default=os.environ.get("POLYFID_DATA") or None,
        help="directory with data sets; what it lacks is downloaded if it has a public address "
        "(default: the environment variable POLYFID_DATA)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("polyfid-results"),
        help="directory for rows, page and figures (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=_count, default=joblib.cpu_count(), help="processes (default: all cores)"
    )
    parser.add_argument(
        "--runs", type=_count, help="splits per problem (default: each experiment's own number)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small run of every table and figure"
    )
    parser.add_argument("--retry-failed", action="store_true", help="run failed cells again")
    return parser


def _directory(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a directory")
    return Path(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text!r}")
    return int(text)


def _choose(names: Sequence[str]) -> list[str]:
    """The experiments to run, all of whose packages are installed."""
    chosen = []
    for name in EXPERIMENTS if ALL in names else dict.fromkeys(names):
        experiment = EXPERIMENTS[name]
        missing = [p for p in experiment.needs if importlib.util.find_spec(p) is None]
        if not missing:
            chosen.append(name)
            continue
        sentence = (
            f"{name} needs {', '.join(missing)}. Install with: "
            f'pip install -e ".[{experiment.extra}]"'
        )
        # With "all", an experiment that has an extra of its own is left out.
        if ALL not in names or experiment.extra == "experiments":
            sys.exit(sentence)
        _say(f"Left out: {sentence}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
