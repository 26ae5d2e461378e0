"""Options that verbs share, written once: a verb takes a dataclass, the command line its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from polyfid.cli.config import read_config

MODEL, RUNNING = "Model", "Running"


@dataclass(frozen=True)
class Fitting:
    """How to fit."""

    kernel: Annotated[
        Literal["auto", "rbf", "ard", "matern"],
        typer.Option(
            help="auto learns the structure; the others are one kernel, many times as fast.",
            rich_help_panel=MODEL,
        ),
    ] = "auto"
    inference: Annotated[
        Literal["auto", "laplace", "ep", "variational"],
        typer.Option(
            help="Laplace is fastest; EP and variational give better probabilities.",
            rich_help_panel=MODEL,
        ),
    ] = "auto"
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**32 - 1, help="Of all that is random.", rich_help_panel=RUNNING),
    ] = 0
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes.",
            show_default="all cores, one if the work is small",
            rich_help_panel=RUNNING,
        ),
    ] = None


@dataclass(frozen=True)
class Talk:
    """What is said, and where options come from."""

    json: Annotated[
        bool,
        typer.Option(
            "--json", help="The result as JSON, and nothing else.", rich_help_panel=RUNNING
        ),
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=RUNNING)
    ] = False
    config: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            is_eager=True,
            callback=read_config,
            metavar="FILE.toml",
            help="Options from a file, under their long names; those of the command line come "
            r"first. Tables \[fit], \[report] … are for one verb.",
            rich_help_panel=RUNNING,
        ),
    ] = None


def flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose parameters that are dataclasses became their fields.

    Examples
    --------
    >>> import inspect
    >>> from polyfid.cli.parameters import Talk, flat
    >>> def verb(name: str, talk: Talk) -> str:
    ...     return f"{name} {talk.quiet}"
    >>> command = flat(verb)
    >>> list(inspect.signature(command).parameters)
    ['name', 'json', 'quiet', 'config']
    >>> command(name="a", json=False, quiet=True, config=None)
    'a True'
    """
    own = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {}
    flattened: list[inspect.Parameter] = []
    for parameter in own:
        kind = parameter.annotation
        if not is_dataclass(kind):
            flattened.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        flattened += [
            inspect.Parameter(
                f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name]
            )
            for f in fields(kind)
        ]

    @functools.wraps(function)
    def command(**values: Any) -> Any:
        for name, kind in groups.items():
            values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
        return function(**values)

    command.__signature__ = inspect.Signature(flattened)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in flattened}
    return command
