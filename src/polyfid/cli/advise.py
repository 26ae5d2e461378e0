"""``polyfid advise``: how to split a budget between levels."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.buying import LeastGain, Prices, read_prices
from polyfid.cli.config import split
from polyfid.cli.console import Console
from polyfid.cli.options import TextFormat
from polyfid.cli.sources import load_table_model, rows_of


def advise(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that polyfid fit wrote.")],
    pool: Annotated[
        str,
        typer.Argument(metavar="POOL", help="Rows that may be labelled: CSV (also .gz), Parquet."),
    ],
    console: Console,
    text: TextFormat,
    costs: Prices,
    budget: Annotated[float, typer.Option(help="The money that a plan may cost.")],
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--promise",
            metavar="COST,EXPECTED,DELIVERED",
            help="An earlier plan: its cost, the fall of the log-loss that was promised, and that "
            "was measured on rows drawn at random. May be repeated; gains are rescaled by it.",
        ),
    ] = None,
    least_gain: LeastGain = 0.005,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rows that stand for others.")] = 0,
) -> None:
    """Say how to split a budget between levels, and whether to spend it.

    Plans of equal cost, from all money on the cheapest level to all on the most trusted, with the
    log-loss, accuracy and ROC AUC that are expected once the labels are there, before any is
    bought. Rows are taken to be drawn at random from the pool.
    """
    from polyfid.tables import read_table

    loaded = load_table_model(model)
    frame = read_table(rows_of(pool), text={*loaded.text_columns()}, **text.csv)
    with console.warnings() as notes:
        advice = loaded.advise(
            frame,
            read_prices(costs),
            budget,
            history=[_promise(one) for one in history or ()],
            least_gain=least_gain,
            random_state=seed,
        )
    console.say(str(advice))
    console.result({**advice.to_dict(), "warnings": notes})


def _promise(text: str) -> tuple[float, ...]:
    """Numbers of an earlier plan."""
    try:
        numbers = tuple(float(part) for part in split(text))
    except ValueError:
        numbers = ()
    if len(numbers) not in (3, 4):
        raise typer.BadParameter(
            f"must be COST,EXPECTED,DELIVERED, perhaps with the standard error of the last; got "
            f"{text!r}",
            param_hint="--promise",
        )
    return numbers
