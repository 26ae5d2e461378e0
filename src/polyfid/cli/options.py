"""Options of labelled tables, which most verbs take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

TABLES, CROWD = "Tables", "Crowd tables and Label Studio"


def _option(panel: str, help: str, default: str | bool = True, **more: Any) -> Any:
    return typer.Option(help=help, show_default=default, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class Tables:
    """Tables, and what their columns mean."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="Tables with features, label and fidelity: CSV (also .gz), Parquet, a JSON export "
            "of Label Studio, or - for standard input.",
            show_default=False,
        ),
    ] = None
    level: Annotated[
        list[str] | None,
        _option(
            TABLES,
            "One table a level, least trusted first: --level crowd=a.csv --level expert=b.csv",
            metavar="NAME=FILE",
        ),
    ] = None
    target: Annotated[str | None, _option(TABLES, "Column of the labels.", "label")] = None
    fidelity: Annotated[
        str | None, _option(TABLES, "Column of the levels of trust.", "fidelity")
    ] = None
    id: Annotated[str | None, _option(TABLES, "Column that names rows.", "id, if there")] = None
    weight: Annotated[
        str | None, _option(TABLES, "Column of weights: 2 counts as two rows.", "weight, if there")
    ] = None
    levels: Annotated[
        str | None,
        _option(
            TABLES,
            "Names of the levels, least trusted first; one with a comma in quotes.",
            "in the order of the tables, or sorted",
            metavar="LOW,…,HIGH",
        ),
    ] = None
    features: Annotated[
        str | None, _option(TABLES, "Columns to learn from.", "all others", metavar="A,B,…")
    ] = None
    categorical: Annotated[
        str | None,
        _option(
            TABLES,
            "Columns of categories that look like numbers.",
            "columns of text",
            metavar="A,B,…",
        ),
    ] = None
    missing: Annotated[
        Literal["error", "median", "indicator"],
        _option(
            TABLES, "Missing values: refuse, take the median, or also say that they were missing."
        ),
    ] = "error"
    delimiter: Annotated[
        str | None, _option(TABLES, "Between cells: a character, or tab.", "found out")
    ] = None
    decimal: Annotated[Literal[".", ","] | None, _option(TABLES, "Decimal mark.", "found out")] = (
        None
    )
    encoding: Annotated[str | None, _option(TABLES, "Of text files.", "UTF-8")] = None


@dataclass(frozen=True)
class Sources(Tables):
    """Where labelled rows come from: tables, or answers of a crowd."""

    items: Annotated[str | None, _option(CROWD, "Items with their features.", metavar="FILE")] = (
        None
    )
    answers: Annotated[
        str | None,
        _option(
            CROWD,
            "Answers, long (task, worker, label) or wide (a column a worker, empty = none).",
            metavar="FILE",
        ),
    ] = None
    gold: Annotated[str | None, _option(CROWD, "Trusted labels (task, label).", metavar="FILE")] = (
        None
    )
    crowd: Annotated[
        Literal["answer", "majority", "skill"] | None,
        _option(
            CROWD,
            "What a row of the crowd is: each answer, the majority of an item, or each answer with "
            "annotators of like skill as levels.",
            "majority",
        ),
    ] = None
    ties: Annotated[
        Literal["draw", "split"],
        _option(CROWD, "Tied majorities: a seeded draw, or a row each with half the weight."),
    ] = "draw"
    groups: Annotated[
        int, _option(CROWD, "Levels of --crowd skill, besides that of gold.", min=1)
    ] = 2
    aggregate: Annotated[
        Literal["majority", "dawid-skene", "one-coin-dawid-skene", "glad", "mace", "m-msr"] | None,
        _option(CROWD, "Make the answers to an item one row; by crowd-kit, but for the majority."),
    ] = None
    task: Annotated[
        str | None, _option(CROWD, "Column of answers and gold that names items.", "task")
    ] = None
    worker: Annotated[
        str | None, _option(CROWD, "Column of answers that names annotators.", "worker")
    ] = None
    form: Annotated[
        Literal["long", "wide"] | None, _option(CROWD, "Of the answers.", "found out")
    ] = None
    trusted: Annotated[
        str | None,
        _option(
            CROWD,
            "Label Studio: annotators, by id or e-mail, who are trusted like ground truth.",
            metavar="A,B,…",
        ),
    ] = None
    from_name: Annotated[
        str | None,
        _option(CROWD, "Label Studio: the Choices control.", "the only one, when it is read"),
    ] = None
