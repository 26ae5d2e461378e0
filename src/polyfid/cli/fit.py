"""``polyfid fit``: from tables to a saved model."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.importing import importing
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Fitting, Talk


def fit(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    talk: Talk,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The model file.")
    ] = "model.polyfid",
    no_rows: Annotated[
        bool,
        typer.Option(
            "--no-rows",
            help="Leave the table of training rows out of the file, with ids and names of files; "
            "a report then needs the tables. The model keeps the points it learnt from.",
        ),
    ] = False,
) -> None:
    """Fit a model to labelled tables and save it."""
    with importing():
        from polyfid.cli.fitting import fit_table
        from polyfid.cli.sources import file_path, inputs_of, read_sources
        from polyfid.cli.talk import Speaker

    speaker = Speaker(talk)
    path = file_path(out, "a model", inputs_of(sources))
    with speaker.warnings() as notes:
        table = read_sources(sources, fitting.seed)
        with speaker.progress("Fitting"):
            fitted = fit_table(table, fitting, sources.missing)
    (replace(fitted, table=None) if no_rows else fitted).save(path)
    written = write_config(context, path)
    speaker.say(f"{fitted.classifier.report_}\n")
    speaker.say(f"Written: {path} and {written}")
    speaker.result(
        {
            "model": str(path),
            "config": str(written),
            "summary": fitted.summary(),
            "warnings": notes,
        }
    )
