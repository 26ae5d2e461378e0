"""``polyfid study init``, ``ask``, ``tell`` and so on: labels bought batch after batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyfid.cli.buying import (
    Audit,
    Budget,
    Count,
    LeastGain,
    Prices,
    Repeat,
    Strategy,
    about_batch,
    check_limits,
    read_prices,
    say_batch,
)
from polyfid.cli.config import split
from polyfid.cli.console import Console
from polyfid.cli.models import make_classifier
from polyfid.cli.options import Fitting, TextFormat, out_option
from polyfid.cli.sources import ENDINGS, check_out, load_study, rows_of
from polyfid.text import aligned

if TYPE_CHECKING:
    from polyfid.suggest import Study
    from polyfid.tables import TableEncoder

File = Annotated[str, typer.Argument(metavar="STUDY", help="The file of the study.")]


def init(
    study: File,
    costs: Prices,
    fitting: Fitting,
    console: Console,
    text: TextFormat,
    pool: Annotated[
        str | None, typer.Option(metavar="FILE", help="Table of rows that may be labelled.")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=LOW:HIGH,…",
            help="Instead of a pool, the bounds of each feature: speed=10:60,load=0:5.",
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,…,HIGH",
            help="Names of the levels, least trusted first.",
            show_default="those of --costs",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows that predictions are wanted for.",
            show_default="the pool, or all of the space",
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of the pool to learn from; * stands for any letters.",
            show_default="all but names of rows and of annotators",
        ),
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Columns to leave out.", show_default="none")
    ] = None,
    categorical: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Columns of numbers that are categories."),
    ] = None,
    free_text: Annotated[
        str | None, typer.Option("--text", metavar="A,B,…", help="Columns of free text.")
    ] = None,
    missing: Annotated[
        Literal["error", "median", "indicator"], typer.Option(help="What missing values become.")
    ] = "error",
    numeric: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Levels whose answers are numbers, such as those of a simulation.",
            show_default="none",
        ),
    ] = None,
    strategy: Strategy = "epig",
    audit: Audit = 0.2,
) -> None:
    """Begin a study: rows that may be labelled, levels and what their labels cost."""
    from polyfid.suggest import Study
    from polyfid.tables import read_table

    if (pool is None) == (space is None):
        raise typer.BadParameter("give --pool, a table, or --space, the bounds of features")
    if Path(study).exists():
        raise typer.BadParameter(f"there is a file {study} already; name another one")
    check_out(study, [*filter(None, [pool, target])])
    named = [*_names(categorical), *_names(free_text), "id"]
    frame = encoder = wanted = None
    with console.warnings() as notes:
        if pool is not None:
            frame = read_table(rows_of(pool), text=named, **text.csv)
            columns = _columns(list(frame.columns), features, exclude)
            encoder = _encoder(columns, categorical, free_text, missing)
        if target is not None:
            wanted = read_table(rows_of(target), text=named, **text.csv)
        made = Study(
            frame,
            None if levels is None else list(split(levels)),
            read_prices(costs),
            target=wanted,
            space=None if space is None else _bounds(space),
            path=study,
            model=make_classifier(fitting).set_params(numeric_levels=list(_names(numeric)) or None),
            encoder=encoder,
            strategy=strategy,
            audit=audit,
            random_state=fitting.seed,
        )
    console.say(f"Written: {study}")
    console.result({"study": study, "levels": made.levels, "costs": made.costs, "warnings": notes})


def ask(
    study: File,
    console: Console,
    budget: Budget = None,
    n: Count = None,
    repeat: Repeat = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Withdraw first what was asked and not answered.")
    ] = False,
    out: Annotated[str, out_option("The table to fill in, or -.")] = "-",
) -> None:
    """Ask which rows to label next, as a table to fill in.

    Before labels of two classes are told, rows are spread out. The study remembers what it asked.
    """
    from polyfid.tables import write_table

    check_out(out, [study], ENDINGS, console)
    check_limits(budget, n)
    with console.warnings() as notes:
        opened = load_study(study)
        withdrawn = opened.forget() if forget else 0
        batch = opened.ask(budget, n=n, repeat=repeat)
        write_table([batch], out)
    say_batch(batch, console, err=out == "-")
    if out != "-":
        console.say(f"Written: {out}")
        about = about_batch(batch)
        console.result({**about, "out": out, "withdrawn": withdrawn, "warnings": notes})


def tell(
    study: File,
    answers: Annotated[
        list[str], typer.Argument(metavar="FILES", help="Tables with the labels filled in, or -.")
    ],
    console: Console,
    text: TextFormat,
    label: Annotated[str, typer.Option(help="Column of the labels.")] = "label",
    level: Annotated[
        str | None,
        typer.Option(
            help="The level of all labels.", show_default="column level, or else fidelity"
        ),
    ] = None,
) -> None:
    """Tell the study labels, and numbers of numeric levels: those that it asked for, and others.

    Tables may be filled in partly, and told again when more is there. Rows are recognised by the
    column suggestion, by their features, or by the column row.
    """
    from polyfid.tables import read_table
    from polyfid.tables.column import cell_texts
    from polyfid.tables.places import file_of, no_column

    opened = load_study(study)
    results = {}
    texts = {
        label,
        "level",
        "fidelity",
        "id",
        *(name for name, kind in opened.kinds.items() if kind != "number"),
    }
    for file in answers:
        frame = read_table(rows_of(file), text=texts, **text.csv)
        if label not in frame.columns:
            raise no_column(label, frame.columns, file_of(frame), " of labels", "--label")
        if "level" not in frame.columns and "fidelity" in frame.columns:
            frame = frame.rename(columns={"fidelity": "level"})
        told = opened.tell(frame, cell_texts(frame[label]), level)
        results[file] = vars(told)
        console.say(f"{file}: {told}")
    console.say(_state_in_words(opened))
    state = {"labels": opened.counts, "spent": opened.spent, "pending": opened.n_pending}
    console.result({"told": results, **state})


def status(
    study: File,
    console: Console,
    value: Annotated[
        float | None,
        typer.Option(
            help="What one nat of log-loss less on one row is worth, in the unit of the costs: "
            "says whether the next batch is worth its price.",
            show_default="not asked",
        ),
    ] = None,
    budget: Budget = None,
    n: Count = None,
    n_targets: Annotated[
        int | None,
        typer.Option(min=1, help="Rows to be predicted.", show_default="those of the target"),
    ] = None,
    labelled: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write all labels as a table that polyfid fit and report read."
        ),
    ] = None,
) -> None:
    """Say how a study goes: labels, money, losses, and what batches promised and delivered."""
    from polyfid.tables import write_table

    if labelled is not None:
        check_out(labelled, [study], ENDINGS)
    if value is not None:
        check_limits(budget, n)
    with console.warnings() as notes:
        opened = load_study(study)
        history = opened.history_
        stop = None
        if value is not None:
            stop = opened.should_stop(value, budget=budget, n=n, n_targets=n_targets)
    console.say(_state_in_words(opened))
    if history:
        console.say("\n".join(["", *aligned(_history_table(history), indent=0)]))
        console.wrap(
            "\nLosses are log-losses: expected at the targets, and held out, of "
            f"{history[-1]['held_out_by'] or 'too few trusted rows'}, each without its own label. "
            "Gains are falls of the loss."
        )
    if stop is not None:
        said = "gains less than its price: stop" if stop else "is worth its price: go on"
        console.say(f"\nThe next batch {said}.")
    if labelled is not None:
        write_table([opened.labelled()], labelled)
        console.say(f"Written: {labelled}")
    state = {"labels": opened.counts, "spent": opened.spent, "pending": opened.n_pending}
    console.result({**state, "history": history, "stop": stop, "warnings": notes})


def advise(
    study: File,
    console: Console,
    budget: Annotated[float, typer.Option(help="The money that a plan may cost.")],
    least_gain: LeastGain = 0.005,
) -> None:
    """Say how to split a budget between levels, from what batches promised and delivered so far."""
    with console.warnings() as notes:
        advice = load_study(study).advise(budget, least_gain=least_gain)
    console.say(str(advice))
    console.result({**advice.to_dict(), "warnings": notes})


def _state_in_words(study: Study) -> str:
    counts = ", ".join(f"{n} of {level}" for level, n in study.counts.items())
    return (
        f"Labels: {counts}. Spent: {study.spent:g}. Waiting for an answer: {study.n_pending} "
        "suggestions."
    )


def _history_table(history: list[dict[str, Any]]) -> list[list[str]]:
    heads = ["batch", "spent", "expected", "held out", "asked", "told", "promised", "delivered"]
    names = ("expected", "held_out", "promised", "delivered")
    rows = []
    for h in history:
        figures = {name: "" if h[name] is None else f"{h[name]:.3f}" for name in names}
        batch = "now" if h["batch"] is None else str(h["batch"] + 1)
        asked = ("", "") if h["batch"] is None else (str(h["asked"]), str(h["answered"]))
        own = [batch, f"{h['spent']:g}", figures["expected"], figures["held_out"], *asked]
        rows.append([*own, figures["promised"], figures["delivered"]])
    return [heads, *rows]


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else split(text)


def _columns(every: list[str], features: str | None, exclude: str | None) -> list[str]:
    """The columns to learn from, with patterns in the place of names."""
    from polyfid.suggest.study_rows import NO_FEATURES
    from polyfid.tables.roles import match_columns

    left_out = match_columns(_names(exclude), every, None, " to leave out")
    chosen = [name for name in every if name not in NO_FEATURES]
    if features is not None:
        chosen = match_columns(_names(features), every, None, ", which is to be a feature")
    return [name for name in chosen if name not in left_out]


def _encoder(
    columns: list[str], categorical: str | None, free_text: str | None, missing: Any
) -> TableEncoder:
    from polyfid.tables import TableEncoder
    from polyfid.tables.roles import match_columns

    kinds = {
        "categorical": match_columns(_names(categorical), columns, None),
        "text": match_columns(_names(free_text), columns, None),
    }
    return TableEncoder(features=columns, missing=missing, **kinds)


def _bounds(space: str) -> dict[str, tuple[float, float]]:
    """The box that ``--space`` describes."""
    bounds: dict[str, tuple[float, float]] = {}
    for pair in split(space):
        name, _, ends = pair.rpartition("=")
        low, colon, high = ends.partition(":")
        try:
            both = float(low), float(high)
        except ValueError:
            colon = ""
        if not name.strip() or not colon or name.strip() in bounds:
            raise typer.BadParameter(
                f"must be NAME=LOW:HIGH,…, each name once; got {pair!r} in {space!r}",
                param_hint="--space",
            )
        bounds[name.strip()] = both
    return bounds
