"""``polyfid report``: a page to show to colleagues."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.importing import importing
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Fitting, Talk

if TYPE_CHECKING:
    from polyfid.cli.talk import Speaker
    from polyfid.tables import LabelledTable, TableModel


def report(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    talk: Talk,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The page.")
    ] = "report.html",
    folds: Annotated[
        int, typer.Option(min=0, help="Parts of the cross-validation; 0 leaves it out.")
    ] = 5,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
) -> None:
    """Write a self-contained HTML report of labelled tables, or of a model that was fitted to them.

    FILES may be one model file: its rows and settings are taken.
    """
    with importing():
        from polyfid.cli.judging import judge
        from polyfid.cli.sources import file_path, inputs_of
        from polyfid.cli.talk import Speaker
        from polyfid.report import write_report

    speaker = Speaker(talk)
    if folds == 1:
        raise typer.BadParameter("must be 0 or from 2", param_hint="--folds")
    path = file_path(out, "a report", inputs_of(sources))
    why = "no evaluation was asked for (--folds 0)"
    found = None
    with speaker.warnings() as notes:
        model, table = _model_and_table(context, sources, fitting, speaker)
        if folds:
            try:
                with speaker.progress("Evaluating") as step:
                    found = judge(table, model.encoder, model.unfitted(), fitting, folds, step)
            except ValueError as error:  # one level, or too few rows: the rest stands
                why = f"there is no evaluation: {error}"
    lines = notes if found else [*notes, why]
    write_report(
        path,
        model=model,
        table=table,
        evaluation=found,
        command=shlex.join(["polyfid", *sys.argv[1:]]),
        seed=fitting.seed,
        title=title,
        warnings=lines,
    )
    written = write_config(context, path)
    speaker.wrapped(found.sentence if found else f"Note: {why}")
    speaker.say(f"Written: {path} and {written}")
    speaker.result(
        {
            "report": str(path),
            "config": str(written),
            "evaluation": found.to_dict() if found else None,
            "warnings": lines,
        }
    )


def _model_and_table(
    context: typer.Context, sources: Sources, fitting: Fitting, speaker: Speaker
) -> tuple[TableModel, LabelledTable]:
    """A model and the rows it was fitted to, from a file or from tables."""
    from polyfid.cli.fitting import fit_table
    from polyfid.cli.predict import load_table_model
    from polyfid.cli.sources import read_sources

    files = sources.files or []
    if not any(map(_is_model, files)):
        table = read_sources(sources, fitting.seed)
        with speaker.progress("Fitting"):
            return fit_table(table, fitting, sources.missing), table
    if len(files) > 1:
        raise typer.BadParameter("a model file must be the only one")
    settled = {f.name for f in fields(sources)} - {"files"} | {"kernel", "inference"}
    given = sorted(
        name
        for name in settled
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    )
    if given:
        raise typer.BadParameter(
            f"a model has its rows and settings: leave out --{given[0].replace('_', '-')}, or give "
            "the tables"
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
    except OSError:  # it is said when it is read
        return False
