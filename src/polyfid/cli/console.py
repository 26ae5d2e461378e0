"""What a command prints: text for people, JSON for programs, progress, and errors as exit codes.

Exit codes: 0 done; 1 a problem with the data; 2 a problem with the call; 130 stopped by
Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

# ruff: noqa: RUF009  (the calls in the dataclass make fields)

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyfid.cli.config import read_config, write_config
from polyfid.cli.options import running
from polyfid.cli.signals import STOPPED, stoppable
from polyfid.text import nearest, time_in_words, visible

if TYPE_CHECKING:
    from polyfid.learning.progress import Progress

DATA, CALL, INTERRUPTED = 1, 2, 130
#: Columns of text where there is no terminal, and upper bound where there is one.
WIDTH, MAX_WIDTH = 80, 100
#: The optional modules that the extras of polyfid install.
EXTRAS = {
    **dict.fromkeys(("pandas", "pyarrow"), "cli"),
    **dict.fromkeys(("matplotlib", "jinja2"), "report"),
    **dict.fromkeys(("dask", "distributed"), "dask"),
}
#: The stages of a fit in words; all others are "Fitting".
STAGES = {
    "reading": "Reading",
    "encoding": "Writing numbers",
    "trees": "Growing trees",
    "tuning": "Tuning on a sample",
}


class ProgressBar:
    """Shows the progress of some work, and is a ``callback`` of fits; ``update`` draws it."""

    def __init__(self, update: Callable[..., None]) -> None:
        self._update = update
        self.done = 0
        self._stage, self._started = "", time.monotonic()  # of that stage

    def __call__(self, step: Progress) -> None:
        """Show a step of a fit."""
        stage = STAGES.get(step.stage, "Fitting")
        if step.n_classes > 1:
            stage += f", class {step.class_index + 1} of {step.n_classes}"
        if stage != self._stage:
            self._stage, self._started = stage, time.monotonic()
        what = "structure " if step.stage == "structures" else ""
        value = "" if math.isnan(step.value) else f", log evidence {step.value:,.1f}"
        # Passes end when they change nothing any more, mostly long before the last possible one.
        left = "" if step.stage == "passes" else self._time_left(step.done, step.total)
        self._show(step.done, step.total, what, value + left, description=stage)

    def count(self, done: int, total: int | None) -> None:
        """Show how much is done."""
        self._show(done, total, "", self._time_left(done, total))

    def _show(self, done: int, total: int | None, what: str, more: str, **fields: Any) -> None:
        self.done = done
        text = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        self._update(completed=done, total=total, count=what + text + more, **fields)

    def _time_left(self, done: int, total: int | None) -> str:
        """How long the rest of the stage takes if it goes on as so far."""
        if not done or total is None or done >= total:
            return ""
        seconds = (time.monotonic() - self._started) * (total - done) / done
        return f", about {time_in_words(seconds)} left"

    def over(self, frames: Iterable[Any]) -> Iterator[Any]:
        """The same frames, while their rows are counted."""
        for frame in frames:
            self.count(self.done + len(frame), None)
            yield frame


@dataclass(frozen=True)
class Console:
    """Prints as its options ask."""

    json: bool = running("Print the result as JSON, and nothing else.", "--json", default=False)
    quiet: bool = running("Print errors only.", "--quiet", "-q", default=False)
    config: Path | None = running(
        "File with options under their long names; the command line overrides them. "
        r"A table \[fit], \[report] … holds options of one verb.",
        exists=True,
        dir_okay=False,
        is_eager=True,
        callback=read_config,
        metavar="FILE.toml",
    )

    def say(self, text: object, err: bool = False) -> None:
        """Print lines for people; what takes long to become text does so only if it is printed."""
        if not (self.json or self.quiet):
            _print(str(text), err=err)

    def wrap(self, text: str) -> None:
        """Print a long sentence for people, in lines as wide as the terminal."""
        self.say(textwrap.fill(text, width(), break_long_words=False, break_on_hyphens=False))

    def result(self, values: Mapping[str, Any]) -> None:
        """Print the result as JSON, if asked for."""
        if self.json:
            from polyfid.values import to_json

            _print(json.dumps(to_json(values), indent=2))

    def written(self, context: typer.Context, *files: str, **result: Any) -> None:
        """Write the options beside the first file, and print the names of files and the result."""
        config = None if files[0] == "-" else write_config(context, Path(files[0]))
        names = ", ".join(map(str, filter(None, [*files, config])))
        self.say(f"Written: {names}", err=files[0] == "-")
        self.result({**result, "config": None if config is None else str(config)})

    @contextmanager
    def progress(self, stage: str) -> Iterator[ProgressBar]:
        """A progress bar on a terminal; elsewhere nothing is shown."""
        from rich import console, progress

        bars, clock = progress.BarColumn(), progress.TimeElapsedColumn()
        columns = ("{task.description}", bars, "{task.fields[count]}", clock)
        screen = console.Console(stderr=True)
        off = self.json or self.quiet or not sys.stderr.isatty()
        with progress.Progress(*columns, console=screen, transient=True, disable=off) as bar:
            task = bar.add_task(stage, total=None, count="")
            yield ProgressBar(functools.partial(bar.update, task))

    @contextmanager
    def warnings(self) -> Iterator[list[str]]:
        """A list of the warnings in the block, filled and printed at its end, each once."""
        messages: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield messages
        own = (w for w in caught if not issubclass(w.category, DeprecationWarning))
        messages += dict.fromkeys(str(w.message) for w in own)
        for message in messages:
            self.say(f"Note: {message}", err=True)


def width() -> int:
    """Columns for text on standard output."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, MAX_WIDTH)


def _print(text: str, err: bool = False, **style: Any) -> None:
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    typer.secho(shown, err=err, **style)


def complain(*lines: str) -> None:
    """Print what went wrong on standard error."""
    for line in lines:
        _print(f"polyfid: {line}", err=True, fg=typer.colors.RED)


def problems_of(error: BaseException) -> Sequence[str]:
    """The problems that an error reports, one line each."""
    if isinstance(error, OSError) and error.filename is not None:
        return [f"{error.filename}: {error.strerror or error}{_similar_files(error)}"]
    extra = EXTRAS.get((getattr(error, "name", None) or "").partition(".")[0])
    if isinstance(error, ImportError) and extra is not None:
        return [f'this needs {error.name}; install it with: pip install "polyfid[{extra}]"']
    problems: Sequence[str] = getattr(error, "problems", ())
    return problems or [str(error) or type(error).__name__]


def _similar_files(error: OSError) -> str:
    """The names of files in the same folder that are like the one that does not exist."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if not isinstance(error, FileNotFoundError) or path is None or not path.parent.is_dir():
        return ""
    with suppress(OSError):
        near = nearest(path.name, sorted(os.listdir(path.parent)))
        names = " or ".join(str(path.with_name(name)) for name in near if name != path.name)
        return f"; did you mean {names}?" if names else ""
    return ""


@contextmanager
def exit_codes() -> Iterator[None]:
    """Errors in the block become sentences and exit codes instead of tracebacks."""
    try:
        with stoppable():
            yield
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        with suppress(OSError):  # the terminal may be closed
            complain(STOPPED)
        raise typer.Exit(getattr(stop, "exit_code", INTERRUPTED)) from None
    except BrokenPipeError:  # whoever reads the output has closed it, as head does
        with suppress(OSError, ValueError):  # or the interpreter complains of what is not written
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (ImportError, ValueError, OSError, MemoryError) as error:
        complain(*problems_of(error))
        call = (
            ImportError,
            FileNotFoundError,
            IsADirectoryError,
            NotADirectoryError,
            PermissionError,
        )
        raise typer.Exit(CALL if isinstance(error, call) else DATA) from None
