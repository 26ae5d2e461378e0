"""``polyfid fit``: from tables to a saved model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.importing import importing
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Fitting, Talk
from polyfid.cli.scale import Scale


def fit(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    scale: Scale,
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
    """Fit a model to labelled tables of any size and save it.

    Models of tables that were read in blocks hold no rows: a report then needs the tables.
    """
    with importing():
        from polyfid.cli.fitting import fit_sources
        from polyfid.cli.sources import file_path, inputs_of
        from polyfid.cli.talk import Speaker, complain

    speaker = Speaker(talk)
    path = file_path(out, "a model", inputs_of(sources))
    try:
        with speaker.warnings() as notes:
            fitted, in_blocks = fit_sources(sources, fitting, scale, speaker)
    except KeyboardInterrupt:
        if scale.checkpoint is not None and Path(scale.checkpoint).exists():
            complain(f"{scale.checkpoint} has what was done; the same command goes on from there")
        raise
    (replace(fitted, table=None) if no_rows else fitted).save(path)
    written = write_config(context, path)
    speaker.say(f"{fitted.classifier.report_}\n")
    speaker.say(f"Written: {path} and {written}")
    speaker.result(
        {
            "model": str(path),
            "config": str(written),
            "summary": fitted.summary(),
            "in_blocks": in_blocks,
            "warnings": notes,
        }
    )
