"""The verbs on tables: ``polyfid check`` and ``convert``."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from polyfid.cli.console import DATA, Console, complain, problems_of, width
from polyfid.cli.options import Seed, Sources, out_option
from polyfid.cli.sources import ENDINGS, check_out, inputs_of, read_sources, rows_of
from polyfid.text import by_trust, join_names

#: Columns of printed tables, where what they hold allows it.
NARROW = 60


def check(sources: Sources, console: Console, seed: Seed = 0) -> None:
    """Read tables and report what they hold and what is wrong; nothing is fitted."""
    from polyfid.tables import diagnose

    try:
        with console.warnings() as notes:
            table = read_sources(sources, seed)
    except ValueError as error:  # tables that cannot be read are a result too
        problems = problems_of(error)
        console.result({"problems": problems})
        complain(*problems)
        raise typer.Exit(DATA) from None
    findings = diagnose(table, missing=sources.missing)
    console.result({**findings.to_dict(), "warnings": notes})
    console.say(findings.describe(min(width(), NARROW)))
    if findings.problems:
        if console.quiet:
            complain(*findings.problems)
        raise typer.Exit(DATA)


def convert(
    context: typer.Context,
    sources: Sources,
    console: Console,
    out: Annotated[
        str,
        out_option(
            "The file to write, or -. Its ending says the format: .csv, .csv.gz, .parquet, .json."
        ),
    ],
    to: Annotated[
        Literal["tidy", "levels", "table", "labelstudio"],
        typer.Option(
            help="tidy: all labelled rows. levels: one file per level, FILE-NAME.csv. table: the "
            "same in another format; for an export of Label Studio, its tasks. labelstudio: "
            "predictions to import there, from a table that polyfid predict wrote."
        ),
    ] = "tidy",
    seed: Seed = 0,
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="EXPORT.json",
            help="Label Studio: write these tasks too, to import as new ones. Without it "
            "predictions only, for tasks that are in a project already.",
        ),
    ] = None,
    to_name: Annotated[
        str | None, typer.Option(help="Label Studio: name of the tag that the Choices are about.")
    ] = None,
) -> None:
    """Convert tables, for instance crowd tables to a tidy table, or CSV to Parquet."""
    from polyfid.tables import iter_blocks, write_table

    inputs = [*inputs_of(sources), *([] if tasks is None else [tasks])]
    endings = (".json",) if to == "labelstudio" else ENDINGS
    check_out(out, inputs, endings, console if to in {"tidy", "table"} else None)
    written, files, result = [out], sources.files or [], {}
    if to in {"tidy", "levels"}:
        written, top = _to_rows(sources, seed, out, to == "levels", console)
        result = {"trusted_level": top}
    elif len(files) != 1:
        raise typer.BadParameter(f"--to {to} takes one file", param_hint="FILES")
    elif to == "table":
        write_table(iter_blocks(rows_of(files[0]), **sources.csv), out)
    else:
        _to_label_studio(files[0], sources, tasks, to_name, out)
    console.written(context, *written, written=written, **result)


def _to_label_studio(
    file: str, sources: Sources, tasks: str | None, to_name: str | None, out: str
) -> None:
    """Write predictions to import in Label Studio."""
    from polyfid.labelstudio import write_predictions
    from polyfid.tables import read_table
    from polyfid.tables.places import error_at, no_column

    name = sources.id or "id"
    if sources.from_name is None or to_name is None:
        raise typer.BadParameter(
            "give the names in the project's labelling interface: --from-name is the name of the "
            'Choices tag and --to-name its toName, as in <Choices name="genre" toName="song">'
        )
    frame = read_table(file, **sources.csv)
    if name not in frame:
        raise no_column(name, frame.columns, file, " with ids of tasks", "name it by --id")
    repeated = frame[name].duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        problem = f"task {frame[name].iloc[row]!s} has an earlier row too; keep one row per task"
        raise error_at(frame, row, name, problem)
    names = {"from_name": sources.from_name, "to_name": to_name, "item_id": name}
    write_predictions(frame[name] if tasks is None else tasks, frame, out, **names)


def _to_rows(
    sources: Sources, seed: int, out: str, per_level: bool, console: Console
) -> tuple[list[str], str]:
    """Write labelled rows to one file, or to one per level; names of files, most trusted level."""
    from polyfid.tables import write_table

    with console.warnings():
        table = read_sources(sources, seed)
    frame, column = table.to_frame(), table.roles.fidelity
    levels, value = [str(level) for level in table.levels], table.roles.value
    console.say(f"Levels: {by_trust(levels)}", err=out == "-")
    if not per_level:
        write_table(frame, out)
        # Parquet keeps the order.
        if not (out.lower().endswith((".parquet", ".pq")) or _order_is_known(levels)):
            names = quote(join_names(levels))
            order = f"To read it with this order of trust, add --levels {names}"
            console.say(order, err=out == "-")
        if value:
            named = " ".join(f"--value {quote(f'{k}={v}')}" for k, v in value.items())
            console.say(f"To read its numbers, add {named}", err=out == "-")
        return [out], levels[-1]
    stem, dot, ending = Path(out).name.partition(".")
    files: list[str] = []
    for level in levels:
        name = re.sub(r"[^\w-]", "_", level)[:80]
        while (file := str(Path(out).with_name(f"{stem}-{name}{dot}{ending}"))) in files:
            name += "_"
        files.append(file)
        answers = {table.roles.target, *value.values()} - {value.get(level, table.roles.target)}
        write_table(frame[frame[column] == level].drop(columns=[column, *answers]), file)
    return files, levels[-1]


def _order_is_known(levels: list[str]) -> bool:
    """Whether a table of these levels is read with this order of trust without any option."""
    from polyfid.values import order_of_trust

    try:
        return list(order_of_trust(dict.fromkeys(levels, 1), str)) == levels
    except ValueError:
        return False
