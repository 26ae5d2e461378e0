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
from experiments.cells import Row
from experiments.run import RowFile, run

EVERY = 60.0  # seconds between lines of progress where there is no terminal

DESCRIPTION = f"""\
Run experiments of the paper and write a page of tables and figures.

NAME is one or more of {", ".join(EXPERIMENTS)}, all. Without a name nothing is run, and the page
is drawn again from the rows in OUT.

Each finished cell is a line of OUT/rows.jsonl. After an interruption the same command continues."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in (*EXPERIMENTS, "all")]:
        parser.error(f"no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}, all")
    names, out = _choose(options.names), options.out
    try:
        rows = RowFile(out).rows
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    try:
        cells = cells_of(names, options.data, runs=options.runs, quick=options.quick)
        how = {"jobs": options.jobs, "retry_failed": options.retry_failed}
        done = run(cells, out, **how, progress=Progress())
    except KeyboardInterrupt:
        n = len(RowFile(out).rows)
        _say(f"\nStopped. {n} rows are in {out / 'rows.jsonl'}; the same command continues.")
        return 130
    if names:
        _say(f"{done.computed} cells computed, {done.kept} had a row already.")
    if done.failed:
        _say(f"{done.failed} failed and are listed on the page; --retry-failed runs them again.")
    if names or rows:
        from experiments import page  # importing matplotlib takes a while

        page.write(out, names)
        _say(f"Written: {out / 'results.md'}, {out / 'results.html'}")
    else:
        _say(f"There are no rows in {out}; name an experiment to run.")
    return 0


class Progress:
    """Prints how far a run is: one changing line in a terminal, a line per minute elsewhere."""

    failed = 0
    printed = -EVERY

    def __call__(self, row: Row, done: int, total: int, seconds_left: float) -> None:
        """Print that one more cell is finished."""
        self.failed += "error" in row
        failed = f", {self.failed} failed" if self.failed else ""
        text = f"{done} of {total} cells{failed}, {timedelta(seconds=round(seconds_left))} left"
        last = done == total
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
        elif last or time.monotonic() - self.printed >= EVERY:
            self.printed = time.monotonic()
            _say(text)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments", description=DESCRIPTION)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="experiments to run")
    home = os.environ.get("POLYFID_DATA") or None
    data = "directory with data sets; what it lacks is downloaded if it has a public address "
    data += "(default: the environment variable POLYFID_DATA)"
    add("--data", type=_directory, default=home, help=data)
    out = Path("polyfid-results")
    add("--out", type=Path, default=out, help="directory for all results (default: %(default)s)")
    add("--jobs", type=_count, default=joblib.cpu_count(), help="processes (default: all cores)")
    add("--runs", type=_count, help="splits per problem (default: each experiment's own number)")
    add("--quick", action="store_true", help="a small run of every table and figure")
    add("--retry-failed", action="store_true", help="run failed cells again")
    return parser


def _directory(text: str) -> str:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a directory")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text!r}")
    return int(text)


def _choose(names: Sequence[str]) -> list[str]:
    """The experiments to run, all of whose packages are installed."""
    chosen = []
    for name in EXPERIMENTS if "all" in names else dict.fromkeys(names):
        _, needs, extra = EXPERIMENTS[name]
        missing = ", ".join(p for p in needs if importlib.util.find_spec(p) is None)
        if not missing:
            chosen.append(name)
            continue
        sentence = f'{name} needs {missing}. Install with: pip install -e ".[{extra}]"'
        # With "all", an experiment that has an extra of its own is left out.
        if "all" not in names or extra == "experiments":
            sys.exit(sentence)
        _say(f"Left out: {sentence}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
