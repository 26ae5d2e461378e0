"""``polyfid score``: how good a fitted model is on other labelled rows, and what it costs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from polyfid.cli.config import split
from polyfid.cli.console import Console
from polyfid.cli.options import Deciding, EmbeddingsOfRows, TextFormat, out_option
from polyfid.cli.sources import ENDINGS, check_out, load_table_model, read_embeddings

#: Options that need others.
NO_COSTS = "goes with --costs, which says what mistakes cost; give both"


def score(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that polyfid fit wrote.")],
    labelled: Annotated[
        str,
        typer.Argument(
            metavar="LABELLED", help="A table with labels, which the model was not fitted to, or -."
        ),
    ],
    console: Console,
    text: TextFormat,
    deciding: Deciding,
    target: Annotated[
        str | None, typer.Option(help="Column of the labels.", show_default="as in the fit")
    ] = None,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all-rows",
            help="Score the rows of all levels. Without it those of the most trusted level, if "
            "there is a column of levels.",
        ),
    ] = False,
    embeddings: EmbeddingsOfRows = None,
    out: Annotated[
        str | None, out_option("Write the model with these costs, by which it then decides.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
) -> None:
    """Score a model on labelled rows, with 95 % intervals; with costs, by what decisions cost."""
    from polyfid.evaluation import score_model
    from polyfid.tables import read_held_out

    if out is not None:
        tables = [deciding.costs] if deciding.costs and is_table(deciding.costs) else []
        check_out(out, [model, labelled, *filter(None, [embeddings]), *tables])
        if deciding.costs is None:
            raise typer.BadParameter(NO_COSTS, param_hint="--out")
    costs = read_costs(deciding)
    loaded = load_table_model(model)
    if costs is not None:
        loaded = loaded.with_costs(costs, deciding.cost_abstain)
    rule, classes = loaded.rule, loaded.classifier.classes_
    with console.warnings() as notes:
        more = read_embeddings(embeddings, loaded.roles.id, text.csv)
        rows = read_held_out(
            loaded, labelled, target=target, all_rows=all_rows, embeddings=more, **text.csv
        )
        result = score_model(
            loaded.classifier,
            rows.x,
            rows.label,
            sample_weight=rows.weight,
            costs=None if rule is None else rule.pairs(classes),
            cost_abstain=None if rule is None else rule.cost_abstain,
            random_state=seed,
        )
    if rows.n_known:
        known = (
            f"{rows.n_known:,} of the {len(rows.label):,} rows have the features and the label of "
            "a row that the model was fitted to; scores on such rows are too good"
        )
        notes.append(known)
        console.say(f"Note: {known}", err=True)
    if rows.level is not None:
        others = f"; {rows.n_other:,} rows of other levels are left out" if rows.n_other else ""
        console.wrap(f"Rows of the most trusted level, {rows.level}{others}.\n")
    elif rows.n_other:
        console.wrap(f"{rows.n_other:,} rows have numbers, and are left out.\n")
    console.say(str(result))
    outcome: dict[str, Any] = {**result.to_dict(), "n_known": rows.n_known, "warnings": notes}
    if out is None:
        console.result(outcome)
        return
    loaded.save(out)
    console.say("")
    console.written(context, out, model=out, **outcome)


def read_costs(deciding: Deciding) -> dict[Any, float] | None:
    """The costs that the options give; None without."""
    if deciding.costs is None:
        if deciding.cost_abstain is not None:
            raise typer.BadParameter(NO_COSTS, param_hint="--cost-abstain")
        return None
    if is_table(deciding.costs):
        return _costs_of_table(deciding.costs)
    costs: dict[Any, float] = {}
    for pair in split(deciding.costs):
        key, equals, text = pair.rpartition("=")
        classes = tuple(name.strip() for name in key.split(">"))
        named = classes if len(classes) == 2 else key.strip()
        try:
            number = float(text)
        except ValueError:
            equals = ""
        if not equals or len(classes) > 2 or named in costs:
            raise typer.BadParameter(
                "must be fp=COST,fn=COST, or pairs 'TRUE>PREDICTED=COST,…', each once, or a table "
                f"({', '.join(ENDINGS[:2])}, …); got {pair!r} in {deciding.costs!r}",
                param_hint="--costs",
            )
        costs[named] = number
    return costs


def is_table(costs: str) -> bool:
    """Whether the option names a table."""
    return costs.lower().endswith(ENDINGS)


def _costs_of_table(file: str) -> dict[Any, float]:
    """The costs in a table: true classes in the first column, decisions in its header."""
    from polyfid.tables import read_table
    from polyfid.tables.column import to_numbers
    from polyfid.tables.places import error_at
    from polyfid.values import to_text

    frame = read_table(file)
    first, *others = frame.columns
    costs = {}
    for name in others:
        numbers, _ = to_numbers(frame[name])
        for row, (true, cost) in enumerate(zip(frame[first], numbers.tolist(), strict=True)):
            if not cost >= 0.0:
                raise error_at(frame, row, name, "a cost must be a number from 0")
            costs[to_text(true), name] = cost
    return costs
