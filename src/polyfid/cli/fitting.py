"""The estimator that options describe, and its fit to a table."""

from __future__ import annotations

import math
from typing import Any

from polyfid.cli.effort import processes
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Fitting
from polyfid.cli.scale import Scale, cluster
from polyfid.cli.sizes import decide
from polyfid.cli.sources import check_sources, csv_options, read_sources, tables_of
from polyfid.cli.talk import Bar, Speaker
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.kernels import RBF, Constant, Matern52
from polyfid.learning.progress import Callback, Progress
from polyfid.tables import LabelledTable, TableModel


def classifier(fitting: Fitting, scale: Scale | None = None) -> MultiFidelityClassifier:
    """The estimator that the options describe, for one process."""
    scale = scale or Scale()
    kernels: dict[str, Any] = {
        "auto": "auto",
        "rbf": Constant() * RBF(),
        "ard": Constant() * RBF(ard=True),
        "matern": Constant() * Matern52(),
    }
    return MultiFidelityClassifier(
        kernels[fitting.kernel],
        inference=fitting.inference,
        n_inducing=scale.n_inducing,
        refine_inducing=scale.refine,
        n_tuning=scale.n_tuning,
        random_state=fitting.seed,
    )


def fit_sources(
    sources: Sources, fitting: Fitting, scale: Scale, speaker: Speaker
) -> tuple[TableModel, bool]:
    """The model of tables of any size, and whether they were read in blocks."""
    check_sources(sources)
    model = classifier(fitting, scale)
    csv = csv_options(sources.delimiter, sources.decimal, sources.encoding)
    in_blocks, why = decide(sources, scale, csv)
    if not in_blocks:
        table = read_sources(sources, fitting.seed)
        speaker.say(f"{len(table):,} rows were read into memory")
        with speaker.progress("Fitting") as bar:
            return fit_table(table, fitting, sources.missing, model, _teller(bar)), False
    speaker.say(f"Tables are read in blocks ({why})")
    files, roles, levels = tables_of(sources)
    with cluster(scale.dask) as client, speaker.progress("Reading") as bar:
        fitted = TableModel.fit_files(
            files,
            roles,
            levels,
            model.set_params(n_jobs=-1 if fitting.jobs is None else fitting.jobs),
            sources.missing,
            rows=scale.block,
            checkpoint=scale.checkpoint,
            spool=scale.spool,
            client=client,
            say=speaker.say,
            callback=_teller(bar),
            **csv,
        )
    fitted.classifier.set_params(n_jobs=None)
    return fitted, True


STAGES = {
    "reading": "Reading",
    "encoding": "Writing numbers",
    "tuning": "Tuning on a sample",
}


def _teller(bar: Bar) -> Callback:
    """Shows blocks of rows and passes of inference."""

    def tell(step: Progress) -> None:
        what = STAGES.get(step.stage, "Fitting")
        if step.stage in {"reading", "encoding"}:
            bar.stage(what, step.done, step.total)
            return
        who = f"class {step.class_index + 1} of {step.n_classes}, " if step.n_classes > 1 else ""
        bound = "" if math.isnan(step.value) else f", bound {step.value:,.1f}"
        bar.words(f"{what}: {who}pass {step.done}{bound}")

    return tell


def fit_table(
    table: LabelledTable,
    fitting: Fitting,
    missing: Any = "error",
    model: MultiFidelityClassifier | None = None,
    callback: Callback | None = None,
) -> TableModel:
    """The model of a table, fitted by as many processes as pay."""
    classes = len(set(table.label.tolist()))
    jobs = processes(fitting.jobs, len(table), classes, fitting.kernel)
    model = (classifier(fitting) if model is None else model).set_params(n_jobs=jobs)
    fitted = TableModel.fit(table, model, missing=missing, callback=callback)
    fitted.classifier.set_params(n_jobs=None)  # a matter of this machine, not of the model
    return fitted
