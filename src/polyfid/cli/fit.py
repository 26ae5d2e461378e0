"""``polyfid fit``: from tables to a saved model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyfid.cli.config import write_config
from polyfid.cli.console import Console, ProgressBar, complain
from polyfid.cli.options import Fitting, ManyRows, Output, Sources
from polyfid.cli.sources import (
    check_sources,
    choose_blocks,
    cluster,
    file_path,
    inputs_of,
    read_sources,
    tables_of,
)

if TYPE_CHECKING:
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.tables import LabelledTable, TableModel

#: Rows times models whose fit takes a few seconds.
SMALL_WORK = 8000


def fit(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    many: ManyRows,
    output: Output,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The model file to write.")
    ] = "model.polyfid",
    no_rows: Annotated[
        bool,
        typer.Option(
            "--no-rows",
            help="Do not save the training table, its ids and file names with the model. A report "
            "then needs the tables. The points that the model predicts from are always saved.",
        ),
    ] = False,
) -> None:
    """Fit a model to labelled tables of any size, and save it.

    A model that was fitted in blocks has no training table: its report needs the tables.
    """
    console = Console(output)
    path = file_path(out, "a model", inputs_of(sources))
    try:
        with console.warnings() as notes:
            model, in_blocks = _fit_sources(sources, fitting, many, console)
    except KeyboardInterrupt:
        if many.checkpoint is not None and Path(many.checkpoint).exists():
            complain(f"{many.checkpoint} has the state so far; the same command resumes from it")
        raise
    (replace(model, table=None) if no_rows else model).save(path)
    config = write_config(context, path)
    console.say(f"{model.classifier.report_}\n")
    console.say(f"Written: {path} and {config}")
    console.result(
        {
            "model": str(path),
            "config": str(config),
            "summary": model.summary(),
            "in_blocks": in_blocks,
            "warnings": notes,
        }
    )


def _fit_sources(
    sources: Sources, fitting: Fitting, many: ManyRows, console: Console
) -> tuple[TableModel, bool]:
    """The model of tables of any size, and whether they were read in blocks."""
    check_sources(sources)
    model = make_classifier(fitting, many)
    in_blocks, reason = choose_blocks(sources, many)
    if not in_blocks:
        table = read_sources(sources, fitting.seed)
        console.say(f"{len(table):,} rows were read into memory")
        with console.progress("Fitting") as bar:
            return fit_table(table, fitting, sources.missing, bar, model), False
    from polyfid.tables import TableModel

    console.say(f"Tables are read in blocks ({reason})")
    files, roles, levels = tables_of(sources)
    with cluster(many.dask) as client, console.progress("Reading") as bar:
        fitted = TableModel.fit_files(
            files,
            roles,
            levels,
            model.set_params(n_jobs=-1 if fitting.jobs is None else fitting.jobs),
            sources.missing,
            rows=many.block,
            checkpoint=many.checkpoint,
            spool=many.spool,
            client=client,
            say=console.say,
            callback=bar,
            **sources.csv,
        )
    fitted.classifier.set_params(n_jobs=None)  # depends on this machine, not on the model
    return fitted, True


def make_classifier(fitting: Fitting, many: ManyRows | None = None) -> MultiFidelityClassifier:
    """The unfitted classifier that the options describe."""
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.kernels import RBF, Constant, Matern52

    many = many or ManyRows()
    kernels: dict[str, Any] = {
        "auto": "auto",
        "rbf": Constant() * RBF(),
        "ard": Constant() * RBF(ard=True),
        "matern": Constant() * Matern52(),
    }
    return MultiFidelityClassifier(
        kernels[fitting.kernel],
        inference=fitting.inference,
        n_inducing=many.n_inducing,
        refine_inducing=many.refine,
        n_tuning=many.n_tuning,
        random_state=fitting.seed,
    )


def fit_table(
    table: LabelledTable,
    fitting: Fitting,
    missing: Any,
    bar: ProgressBar,
    model: MultiFidelityClassifier | None = None,
) -> TableModel:
    """The model of a table in memory."""
    from polyfid.tables import TableModel

    model = make_classifier(fitting) if model is None else model
    model.set_params(n_jobs=n_jobs(fitting, model, table.label))
    fitted = TableModel.fit(table, model, missing=missing, callback=bar)
    fitted.classifier.set_params(n_jobs=None)  # depends on this machine, not on the model
    return fitted


def n_jobs(fitting: Fitting, model: MultiFidelityClassifier, labels: Any, fits: int = 1) -> int:
    """The number of processes asked for; else one for little work, and all cores for more.

    A few seconds of work are done before other processes have started.
    """
    if fitting.jobs is not None:
        return fitting.jobs
    kernels = 20 if isinstance(model.kernel, str) else 1  # as many does kernel="auto" try
    classes = len({*labels})
    models = fits * kernels * (classes if classes > 2 else 1)
    return 1 if len(labels) * models < SMALL_WORK else -1
