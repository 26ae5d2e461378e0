"""What a verb says: words to people, JSON to machines, progress while it lasts, errors as codes.

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
from typing import Any

import typer

from polyfid.cli.parameters import Talk
from polyfid.text import visible

DATA, CALL, INTERRUPTED = 1, 2, 130
#: Columns that text is made for where there is no terminal, and at most.
WIDTH = 80

#: Where modules come from that not everybody has.
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

Step = Callable[[int, int | None], None]


class Bar:
    """Where some work is, for whoever looks at the terminal; ``show`` shows it."""

    def __init__(self, show: Callable[..., None]) -> None:
        self._show = show

    def __call__(self, done: int, total: int | None) -> None:
        """So much is done, of so much if that is known."""
        self._show(completed=done, total=total, count=_out_of(done, total))

    def stage(self, words: str, done: int, total: int | None) -> None:
        """The same of a stage of the work."""
        self._show(description=words, completed=done, total=total, count=_out_of(done, total))

    def words(self, words: str) -> None:
        """What goes on, if it cannot be counted."""
        self._show(description=words, total=None, count="")


class Speaker:
    """Says things as ``--json`` and ``--quiet`` ask.

    Parameters
    ----------
    talk : Talk
    taken : bool
        Standard output is where the result goes: words go to standard error.
    """

    def __init__(self, talk: Talk, taken: bool = False) -> None:
        self._json, self._silent = talk.json, talk.json or talk.quiet
        self._taken = taken

    def say(self, text: str = "") -> None:
        """Lines for people."""
        if not self._silent:
            _print(text, err=self._taken)

    def wrapped(self, text: str) -> None:
        """A long sentence for people, in lines as wide as the terminal."""
        self.say(textwrap.fill(text, width(), break_long_words=False, break_on_hyphens=False))

    def result(self, values: Mapping[str, Any]) -> None:
        """What machines get: the result as JSON, if they asked."""
        if self._json:
            _print(json.dumps(_plain(values), indent=2))

    @contextmanager
    def progress(self, words: str) -> Iterator[Bar]:
        """A bar in a terminal: call what is given with what is done and how much there is.

        Work that cannot tell how far it is does not call; the bar then shows that it goes on.
        """
        if self._silent or not _error_is_terminal():
            yield Bar(lambda **news: None)
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(words, total=None, count="")
            yield Bar(functools.partial(bar.update, task))

    @contextmanager
    def warnings(self) -> Iterator[list[str]]:
        """Warnings of the library, each once, as lines to be said."""
        said: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        ours = (w for w in caught if not issubclass(w.category, DeprecationWarning))
        said += dict.fromkeys(str(w.message) for w in ours)
        for line in said:
            if not self._silent:
                _print(f"Note: {line}", err=True)


def _out_of(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"


def width() -> int:
    """Columns for text."""
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, 100) if _is_terminal() else WIDTH


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _error_is_terminal() -> bool:
    return sys.stderr.isatty()


def _print(text: str, err: bool = False, **style: Any) -> None:
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    typer.secho(shown, err=err, **style)


def _plain(value: Any) -> Any:
    """Values that JSON has: it has no NaN, and no keys but text."""
    if hasattr(value, "item") and hasattr(value, "dtype") and not getattr(value, "ndim", 0):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) or hasattr(value, "tolist"):
        return [_plain(v) for v in value]
    return str(value)


def problems_of(error: BaseException) -> Sequence[str]:
    """What an error tells of, a line each."""
    if isinstance(error, OSError) and error.filename is not None:
        return [f"{error.filename}: {error.strerror or error}"]
    listed: Sequence[str] = getattr(error, "problems", ())
    return listed or [str(error) or type(error).__name__]


def complain(*lines: str) -> None:
    """Say on standard error what went wrong."""
    for line in lines:
        _print(f"polyfid: {line}", err=True, fg=typer.colors.RED)


def verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """A verb whose problems are sentences and exit codes, not tracebacks."""

    @functools.wraps(function)
    def guarded(*args: Any, **values: Any) -> Any:
        try:
            made = function(*args, **values)
            sys.stdout.flush()
            return made
        except KeyboardInterrupt:
            complain("stopped; no file is left half written")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read our output has seen enough
            _drop_output()
            raise typer.Exit(0) from None
        except ImportError as error:
            complain(_what_to_install(error))
            raise typer.Exit(CALL) from None
        except (ValueError, OSError, MemoryError) as error:
            complain(*problems_of(error))
            raise typer.Exit(_code(error)) from None

    return guarded


def _code(error: Exception) -> int:
    """Files that are not there, or that nobody may read, are a matter of the call."""
    wrong = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
    return CALL if isinstance(error, wrong) else DATA


def _what_to_install(error: ImportError) -> str:
    """What to do about a module that is not there; other errors of imports are not ours."""
    if error.name is None:
        return str(error)
    extra = EXTRAS.get(error.name.partition(".")[0])
    if extra is None:
        raise error
    return f'this needs {error.name}; install it with: pip install "polyfid[{extra}]"'


def _drop_output() -> None:
    """Send what is still to be flushed nowhere, or the interpreter complains when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
