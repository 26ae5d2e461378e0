"""What a verb says: words to people, JSON to machines, progress while it lasts, errors as codes.

Exit codes: 0 done; 1 a problem with the data; 2 a problem with the call; 130 interrupted.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from polyfid.cli.parameters import Talk

DATA, CALL, INTERRUPTED = 1, 2, 130


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
        self._out = Console(stderr=taken, highlight=False, soft_wrap=True)
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bars = self._err.is_terminal and not self._silent

    def say(self, text: str = "") -> None:
        """A line for people. What comes from tables is never read as markup."""
        if not self._silent:
            self._out.print(text, markup=False)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table for people; all columns but the first are aligned as numbers."""
        if self._silent:
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for k, name in enumerate(header):
            table.add_column(_plain(name), justify="right" if k else "left")
        for row in rows:
            table.add_row(*(_plain(str(cell)) for cell in row))
        self._out.print(table)

    def result(self, values: dict[str, Any]) -> None:
        """What machines get: the result as JSON, if they asked."""
        if self._json:
            print(json.dumps(values, indent=2, ensure_ascii=False, default=str))

    @contextmanager
    def progress(self, words: str) -> Iterator[Callable[[int, int | None], None]]:
        """A bar in a terminal: call what is given with what is done and how much there is."""
        if not self._bars:
            yield lambda done, total: None
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._err, transient=True) as bar:
            task = bar.add_task(words, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextmanager
    def warnings(self) -> Iterator[list[str]]:
        """Warnings of the library, each once, as lines to be said."""
        said: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        said += dict.fromkeys(str(w.message) for w in caught)
        for line in said:
            if not self._silent:
                self._err.print(f"Note: {line}", markup=False)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def complain(error: BaseException | str) -> None:
    """Say on standard error what went wrong."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"polyfid: {error}", markup=False, style="red"
    )


def verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """A verb whose problems are sentences and exit codes, not tracebacks."""

    @functools.wraps(function)
    def guarded(*args: Any, **values: Any) -> Any:
        try:
            return function(*args, **values)
        except KeyboardInterrupt:
            complain("stopped; nothing was written")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # whoever read our output has seen enough
            sys.stderr.close()
            raise typer.Exit(0) from None
        except ModuleNotFoundError as error:
            extra = EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            complain(f'this needs {error.name}; install it with: pip install "polyfid[{extra}]"')
            raise typer.Exit(CALL) from None
        except FileNotFoundError as error:
            complain(f"there is no file {error.filename}")
            raise typer.Exit(CALL) from None
        except (ValueError, OSError, MemoryError) as error:
            complain(error or type(error).__name__)
            raise typer.Exit(DATA) from None

    return guarded


#: Where modules come from that not everybody has.
EXTRAS = {
    "pandas": "cli",
    "pyarrow": "parquet",
    "matplotlib": "plot",
    "jinja2": "report",
    "crowdkit": "crowd",
    "xgboost": "experiments",
    "pooch": "experiments",
    "numpyro": "mcmc",
}
