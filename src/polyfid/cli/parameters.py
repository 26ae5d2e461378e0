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

TABLES, MODEL, RUNNING = "Tables", "Model", "Running"


@dataclass(frozen=True)
class Sources:
    """Where labelled rows come from, and what their columns mean."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES]…",
            help="Tables with features, label and fidelity: CSV (also .gz), Parquet, a JSON export "
            "of Label Studio, or - for standard input.",
            show_default=False,
        ),
    ] = None
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="One table a level, least trusted first: --level crowd=a.csv --level expert=b.csv",
            rich_help_panel=TABLES,
        ),
    ] = None
    items: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Crowd tables: items with their features.", rich_help_panel=TABLES
        ),
    ] = None
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Crowd tables: answers, long (task, worker, label) or wide (a column a worker).",
            rich_help_panel=TABLES,
        ),
    ] = None
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Crowd tables: trusted labels (task, label).",
            rich_help_panel=TABLES,
        ),
    ] = None
    crowd: Annotated[
        Literal["answer", "majority", "skill"],
        typer.Option(
            help="What a row of the crowd is: each answer, the majority, or answers by groups of "
            "annotators of like skill.",
            rich_help_panel=TABLES,
        ),
    ] = "majority"
    ties: Annotated[
        Literal["draw", "split"],
        typer.Option(
            help="Tied majorities: a seeded draw, or a row each with half the weight.",
            rich_help_panel=TABLES,
        ),
    ] = "draw"
    target: Annotated[
        str | None,
        typer.Option(help="Column of the labels.", show_default="label", rich_help_panel=TABLES),
    ] = None
    fidelity: Annotated[
        str | None,
        typer.Option(
            help="Column of the levels of trust.", show_default="fidelity", rich_help_panel=TABLES
        ),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column that names rows.",
            show_default="id, if there",
            rich_help_panel=TABLES,
        ),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(
            help="Column of weights: 2 counts as two rows.",
            show_default="weight, if there",
            rich_help_panel=TABLES,
        ),
    ] = None
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,…,HIGH",
            help="Names of the levels, least trusted first.",
            show_default="in the order of the tables, or sorted",
            rich_help_panel=TABLES,
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to learn from.",
            show_default="all others",
            rich_help_panel=TABLES,
        ),
    ] = None
    categorical: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of categories that look like numbers.",
            show_default="columns of text",
            rich_help_panel=TABLES,
        ),
    ] = None
    missing: Annotated[
        Literal["error", "median", "indicator"],
        typer.Option(
            help="Missing values: refuse, take the median, or also say that they were missing.",
            rich_help_panel=TABLES,
        ),
    ] = "error"
    delimiter: Annotated[
        str | None,
        typer.Option(help="Between cells.", show_default="found out", rich_help_panel=TABLES),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(help="Decimal mark, . or ,", show_default="found out", rich_help_panel=TABLES),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Of text files.", show_default="UTF-8", rich_help_panel=TABLES),
    ] = None


@dataclass(frozen=True)
class Fitting:
    """How to fit."""

    kernel: Annotated[
        Literal["auto", "rbf", "ard", "matern"],
        typer.Option(
            help="auto learns the structure; the others are one kernel, twenty times as fast.",
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
    seed: Annotated[int, typer.Option(help="Of all that is random.", rich_help_panel=RUNNING)] = 0
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes.", show_default="all cores", rich_help_panel=RUNNING),
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
            help="Options from a file; those of the command line come first.",
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
