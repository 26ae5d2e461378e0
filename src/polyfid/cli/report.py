"""``polyfid report``: a page to show to colleagues."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from polyfid.cli.config import write_config
from polyfid.cli.parameters import Fitting, Sources, Talk


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
) -> None:
    """Write a self-contained HTML report of labelled tables, or of a model that was fitted to them.

    FILES may be one model file: its rows and settings are taken.
    """
    from polyfid.cli.sources import classifier, out_path, read_sources
    from polyfid.cli.talk import Speaker
    from polyfid.evaluation import evaluate
    from polyfid.report import write_report
    from polyfid.saved import load
    from polyfid.tabular import TableModel

    speaker = Speaker(talk)
    path = out_path(out)
    if path is None:
        raise typer.BadParameter("a report is a file; -o - will not do", param_hint="--out")
    files = sources.files or []
    with speaker.warnings() as notes:
        if len(files) == 1 and files[0].endswith(".polyfid"):
            model = load(files[0])
            rows = model.table if isinstance(model, TableModel) else None
            if not isinstance(model, TableModel) or rows is None:
                raise ValueError(
                    f"{files[0]} was saved without its rows, and a report needs them; "
                    "give the tables instead"
                )
        else:
            estimator = classifier(fitting)
            rows = read_sources(sources, fitting.seed)
            model = TableModel.fit(rows, estimator, missing=sources.missing)
        found = None
        if folds and len(rows.levels) > 1:
            with speaker.progress("Evaluating") as step:
                found = evaluate(
                    *model.training(),
                    levels=rows.levels,
                    sample_weight=rows.weight,
                    model=model.unfitted(),
                    n_splits=folds,
                    random_state=fitting.seed,
                    n_jobs=fitting.jobs or -1,
                    progress=step,
                )
    command = shlex.join(["polyfid", *sys.argv[1:]])
    write_report(
        path,
        model=model,
        table=rows,
        evaluation=found,
        command=command,
        seed=fitting.seed,
        warnings=notes,
    )
    written = write_config(context, path)
    speaker.say(found.sentence if found else "No evaluation was asked for.")
    speaker.say(f"Written: {path} and {written}")
    speaker.result(
        {
            "report": str(path),
            "config": str(written),
            "evaluation": found.to_dict() if found else None,
            "warnings": notes,
        }
    )
