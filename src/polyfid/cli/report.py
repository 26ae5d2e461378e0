"""``polyfid report``: a page to show to colleagues."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.console import Console
from polyfid.cli.evaluate import evaluate_table
from polyfid.cli.fit import fit_table
from polyfid.cli.options import Fitting, Output, Sources
from polyfid.cli.sources import file_path, inputs_of, load_table_model, read_sources

if TYPE_CHECKING:
    from polyfid.tables import LabelledTable, TableModel


def report(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    output: Output,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")
    ] = "report.html",
    folds: Annotated[
        int, typer.Option(min=0, help="Number of folds of the evaluation; 0 leaves it out.")
    ] = 5,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write a self-contained HTML report on labelled tables, or on a fitted model.

    FILES can be one model file: the report then has the rows and settings of the model.
    """
    from polyfid.report import write_report

    console = Console(output)
    if folds == 1:
        raise typer.BadParameter("must be 0, or 2 or more", param_hint="--folds")
    path = file_path(out, "a report", inputs_of(sources))
    reason = "no evaluation was asked for (--folds 0)"
    evaluation = None
    with console.warnings() as notes:
        model, table = _model_and_table(context, sources, fitting, console)
        if folds:
            try:
                with console.progress("Evaluating") as bar:
                    evaluation = evaluate_table(
                        table, model.encoder, model.unfitted(), fitting, folds, bar
                    )
            except ValueError as error:  # one level, or too few rows: the rest is still of use
                reason = f"there is no evaluation: {error}"
    lines = notes if evaluation else [*notes, reason]
    write_report(
        path,
        model=model,
        table=table,
        evaluation=evaluation,
        command=shlex.join(["polyfid", *sys.argv[1:]]),
        seed=fitting.seed,
        title=title,
        warnings=lines,
    )
    config = write_config(context, path)
    console.wrap(evaluation.sentence if evaluation else f"Note: {reason}")
    console.say(f"Written: {path} and {config}")
    console.result(
        {
            "report": str(path),
            "config": str(config),
            "evaluation": evaluation.to_dict() if evaluation else None,
            "warnings": lines,
        }
    )


def _model_and_table(
    context: typer.Context, sources: Sources, fitting: Fitting, console: Console
) -> tuple[TableModel, LabelledTable]:
    """A model and its training rows, from a model file or from tables."""
    files = sources.files or []
    if not any(map(_is_model, files)):
        table = read_sources(sources, fitting.seed)
        with console.progress("Fitting") as bar:
            return fit_table(table, fitting, sources.missing, bar), table
    if len(files) > 1:
        raise typer.BadParameter("a model file must be the only file")
    fixed = {f.name for f in fields(sources)} - {"files"} | {"kernel", "inference"}
    given = sorted(
        name
        for name in fixed
        if (origin := context.get_parameter_source(name)) and origin.name == "COMMANDLINE"
    )
    if given:
        raise typer.BadParameter(
            "a model file has its own rows and settings: leave out "
            f"--{given[0].replace('_', '-')}, or give the tables"
        )
    model = load_table_model(files[0])
    if model.table is None:
        raise ValueError(
            f"{files[0]} has no rows (it was fitted in blocks, or saved with --no-rows), and a "
            "report needs them; give the tables instead: polyfid report TABLES, with the options "
            "of the fit"
        )
    return model, model.table


def _is_model(file: str) -> bool:
    from polyfid.model_files import is_model

    try:
        return is_model(file)
    except OSError:  # reported where the file is read
        return False
