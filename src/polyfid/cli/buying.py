"""``polyfid suggest``: what to label next; and what verbs share that ask for labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyfid.cli.config import split
from polyfid.cli.console import Console
from polyfid.cli.options import TextFormat, out_option
from polyfid.cli.sources import ENDINGS, check_out, load_table_model, rows_of
from polyfid.text import aligned

if TYPE_CHECKING:
    import pandas as pd

    from polyfid.tables import TableModel

Strategy = Annotated[
    Literal["epig", "brier", "error", "boundary", "margin", "bald", "random"],
    typer.Option(help="What a label is worth by; see docs/howto/what_to_label.md."),
]
Audit = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Share of trusted labels that are of random rows."),
]
Budget = Annotated[
    float | None,
    typer.Option(min=0.0, help="The money to spend.", show_default="as --n says", metavar="MONEY"),
]
Count = Annotated[
    int | None, typer.Option("--n", min=1, help="The most labels.", show_default="as --budget says")
]
Prices = Annotated[
    str,
    typer.Option(
        "--costs",
        metavar="LEVEL=COST,…",
        help="What a label of each level costs: crowd=1,expert=8. Levels that are not named are "
        "not asked for.",
    ),
]
LeastGain = Annotated[
    float, typer.Option(min=0.0, help="A fall of the log-loss that is worth the budget.")
]
Repeat = Annotated[
    bool, typer.Option("--repeat", help="Also ask for labels that are there, as repetitions.")
]
#: Rows of a batch that are printed.
MOST_SHOWN = 10


def suggest(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that polyfid fit wrote.")],
    pool: Annotated[
        str, typer.Argument(metavar="POOL", help="A table of rows that may be labelled, or -.")
    ],
    costs: Prices,
    console: Console,
    text: TextFormat,
    budget: Budget = None,
    n: Count = None,
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows that predictions are wanted for.",
            show_default="the pool",
        ),
    ] = None,
    strategy: Strategy = "epig",
    audit: Audit = 0.2,
    repeat: Repeat = False,
    out: Annotated[str, out_option("The table to fill in, or -.")] = "-",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
) -> None:
    """Say which rows to label next, at which level, for which money.

    The table has the rows in order of their worth with the columns of the pool, and an empty
    column label: fill it in, and polyfid study tell reads it.
    """
    from polyfid.tables import read_table, write_table

    check_out(out, [model, pool, *filter(None, [targets])], ENDINGS, console)
    check_limits(budget, n)
    prices = read_prices(costs)
    loaded = load_table_model(model)
    with console.warnings() as notes:
        wanted = None
        if targets is not None:
            texts = loaded.text_columns()
            wanted = read_table(rows_of(targets), text=texts, **text.csv)
        batch = suggest_of_table(
            loaded,
            pool_of(loaded, pool, text.csv),
            prices,
            budget=budget,
            n=n,
            targets=wanted,
            strategy=strategy,
            audit=audit,
            repeat=repeat,
            random_state=seed,
        )
        write_table([batch], out)
    say_batch(batch, console, err=out == "-")
    if out != "-":
        console.written(context, out, **about_batch(batch), out=out, warnings=notes)


def pool_of(model: TableModel, pool: str, csv: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a file that may be labelled."""
    from polyfid.tables import read_table

    return read_table(rows_of(pool), text=model.text_columns(), **csv)


def suggest_of_table(
    model: TableModel, frame: pd.DataFrame, prices: Mapping[str, float], **how: Any
) -> pd.DataFrame:
    """Suggestions with the columns of their rows, and an empty column of labels."""
    batch = model.suggest(frame, prices, **how)
    rows, taken = frame.iloc[batch["row"].to_numpy()], {*batch.columns, "label"}
    for name in frame.columns:
        batch[f"{name}_given" if name in taken else name] = rows[name].to_numpy()
    batch["label"] = None
    return batch


def read_prices(costs: str) -> dict[str, float]:
    """The costs of levels that ``--costs`` gives."""
    prices: dict[str, float] = {}
    for pair in split(costs):
        name, equals, text = pair.rpartition("=")
        try:
            price = float(text)
        except ValueError:
            equals = ""
        if not equals or not name.strip() or name.strip() in prices or not 0.0 < price < math.inf:
            raise typer.BadParameter(
                "must be LEVEL=COST,… with costs above 0, each level once; got "
                f"{pair!r} in {costs!r}",
                param_hint="--costs",
            )
        prices[name.strip()] = price
    return prices


def check_limits(budget: float | None, n: int | None) -> None:
    """Refuse calls that do not say how much to buy."""
    if budget is None and n is None:
        raise typer.BadParameter("give --budget, the money to spend, or --n, the number of labels")


def about_batch(batch: Any) -> dict[str, Any]:
    """A batch in a few figures."""
    gain = float(batch["gain"].sum(skipna=False))
    return {
        "labels": {str(k): int(v) for k, v in batch["level"].value_counts(sort=False).items()},
        "audit": int(batch["audit"].sum()),
        "cost": float(batch["cost"].sum()),
        "gain": None if math.isnan(gain) else gain,
    }


def say_batch(batch: Any, console: Console, err: bool = False) -> None:
    """Print a batch: its first rows, and what it costs and promises."""
    about = about_batch(batch)
    heads = ["row", "level", "gain", "per cost", "cost"]
    lines = [
        [str(b.row), str(b.level), _figure(b.gain), _figure(b.gain_per_cost), f"{b.cost:g}"]
        for b in batch.head(MOST_SHOWN).itertuples()
    ]
    if len(batch):
        console.say("\n".join(aligned([heads, *lines], indent=0)), err=err)
    more = len(batch) - MOST_SHOWN
    if more > 0:
        console.say(f"and {more} more", err=err)
    counts = ", ".join(f"{n} of {level}" for level, n in about["labels"].items())
    promised = "" if about["gain"] is None else f"; expected gain {about['gain']:.4f} per target"
    random = f"; {about['audit']} of random rows, for scores" if about["audit"] else ""
    console.say(f"{len(batch)} labels ({counts}) for {about['cost']:g}{promised}{random}", err=err)


def _figure(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
