"""``polyfid fit``: from tables to a saved model."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.parameters import Fitting, Sources, Talk


def fit(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    talk: Talk,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The model file.")
    ] = "model.polyfid",
) -> None:
    """Fit a model to labelled tables and save it."""
    from polyfid.cli.sources import classifier, out_path, read_sources
    from polyfid.cli.talk import Speaker
    from polyfid.tabular import TableModel

    speaker = Speaker(talk)
    path = out_path(out)
    if path is None:
        raise typer.BadParameter("a model is a file; -o - will not do", param_hint="--out")
    model = classifier(fitting)
    table = read_sources(sources, fitting.seed)
    with speaker.warnings() as notes:
        fitted = TableModel.fit(table, model, missing=sources.missing)
    fitted.save(path)
    written = write_config(context, path)
    report = fitted.classifier.report_
    speaker.say(str(report))
    speaker.say(f"\nWritten: {path} and {written}")
    speaker.result(
        {
            "model": str(path),
            "config": str(written),
            "summary": fitted.summary(),
            "warnings": notes,
        }
    )
