"""What a command prints: text for people, JSON for programs, progress, and errors as exit codes.

Exit codes: 0 done; 1 a problem with the data; 2 a problem with the call; 130 interrupted.
"""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer

from polyfid.cli.options import Output
from polyfid.text import visible

if TYPE_CHECKING:
    from polyfid.learning.progress import Progress

DATA, CALL, INTERRUPTED = 1, 2, 130
#: Columns of text where there is no terminal, and upper bound where there is one.
WIDTH, MAX_WIDTH = 80, 100

#: The extra of polyfid that installs an optional module.
EXTRAS = {
    "pandas": "cli",
    "pyarrow": "cli",
    "matplotlib": "report",
    "jinja2": "report",
    "crowdkit": "crowd",
    "xgboost": "experiments",
    "pooch": "experiments",
    "numpyro": "mcmc",
    "dask": "dask",
    "distributed": "dask",
}


#: The stages of a fit in words; all others are "Fitting".
STAGES = {"reading": "Reading", "encoding": "Writing numbers", "tuning": "Tuning on a sample"}


class ProgressBar:
    """Shows the progress of some work, and is a ``callback`` of fits; ``update`` draws it."""

    def __init__(self, update: Callable[..., None]) -> None:
        self._update = update

    def __call__(self, step: Progress) -> None:
        """Show a step of a fit."""
        stage = STAGES.get(step.stage, "Fitting")
        if step.n_classes > 1:
            stage += f", class {step.class_index + 1} of {step.n_classes}"
        value = "" if math.isnan(step.value) else f", log evidence {step.value:,.1f}"
        count = _out_of(step.done, step.total) + value
        self._update(description=stage, completed=step.done, total=step.total, count=count)

    def count(self, done: int, total: int | None) -> None:
        """Show how much is done."""
        self._update(completed=done, total=total, count=_out_of(done, total))


class Console:
    """Prints as ``--json`` and ``--quiet`` ask.

    Parameters
    ----------
    output : Output
    taken : bool
        Whether a table goes to standard output; text then goes to standard error.
    """

    def __init__(self, output: Output, taken: bool = False) -> None:
        self._json, self._silent = output.json, output.json or output.quiet
        self._taken = taken

    def say(self, text: str = "") -> None:
        """Print lines for people."""
        if not self._silent:
            _print(text, err=self._taken)

    def wrap(self, text: str) -> None:
        """Print a long sentence for people, in lines as wide as the terminal."""
        self.say(textwrap.fill(text, width(), break_long_words=False, break_on_hyphens=False))

    def result(self, values: Mapping[str, Any]) -> None:
        """Print the result as JSON, if asked for."""
        if self._json:
            from polyfid.values import to_json

            _print(json.dumps(to_json(values), indent=2))

    @contextmanager
    def progress(self, stage: str) -> Iterator[ProgressBar]:
        """A progress bar on a terminal; elsewhere nothing is shown."""
        if self._silent or not sys.stderr.isatty():
            yield ProgressBar(lambda **fields: None)
            return
        from rich import console, progress

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[count]}"),
            progress.TimeElapsedColumn(),
        )
        screen = console.Console(stderr=True)
        with progress.Progress(*columns, console=screen, transient=True) as bar:
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
            if not self._silent:
                _print(f"Note: {message}", err=True)


def _out_of(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"


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


# ------------------------------------------------------------------------- errors


def complain(*lines: str) -> None:
    """Print what went wrong on standard error."""
    for line in lines:
        _print(f"polyfid: {line}", err=True, fg=typer.colors.RED)


def problems_of(error: BaseException) -> Sequence[str]:
    """The problems that an error reports, one line each."""
    if isinstance(error, OSError) and error.filename is not None:
        return [f"{error.filename}: {error.strerror or error}"]
    problems: Sequence[str] = getattr(error, "problems", ())
    return problems or [str(error) or type(error).__name__]


def verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with errors as sentences and exit codes instead of tracebacks."""

    @functools.wraps(function)
    def guarded(*args: Any, **values: Any) -> Any:
        try:
            result = function(*args, **values)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            complain("stopped; no file is left half written")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever reads the output has closed it, as head does
            _drop_output()
            raise typer.Exit(0) from None
        except ImportError as error:
            complain(_what_to_install(error))
            raise typer.Exit(CALL) from None
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
            complain(*problems_of(error))
            raise typer.Exit(CALL) from None
        except (ValueError, OSError, MemoryError) as error:
            complain(*problems_of(error))
            raise typer.Exit(DATA) from None

    return guarded


def _what_to_install(error: ImportError) -> str:
    """The advice for a missing optional module; other errors of imports are raised again."""
    if error.name is None:
        return str(error)
    extra = EXTRAS.get(error.name.partition(".")[0])
    if extra is None:
        raise error
    return f'this needs {error.name}; install it with: pip install "polyfid[{extra}]"'


def _drop_output() -> None:
    """Send unflushed output to the null device; otherwise the interpreter complains at its end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
