"""The verbs on models: ``polyfid fit``, ``predict`` and ``inspect``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyfid.cli.console import Console, complain
from polyfid.cli.options import Blocks, Fitting, ManyRows, Sources, TextFormat, out_option
from polyfid.cli.sources import (
    ENDINGS,
    check_out,
    choose_blocks,
    cluster,
    inputs_of,
    load_table_model,
    read_embeddings,
    read_sources,
    rows_of,
    tables_of,
)
from polyfid.text import by_trust, first_few

if TYPE_CHECKING:
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.tables import LabelledTable, TableModel

#: Rows times models whose fit takes a few seconds.
SMALL_WORK = 8000
#: Upper bound on the names that are printed of a list.
MAX_NAMES = 40


def fit(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    many: ManyRows,
    console: Console,
    out: Annotated[str, out_option("The model file to write.")] = "model.polyfid",
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
    check_out(out, inputs_of(sources))
    try:
        with console.warnings() as notes:
            model, in_blocks = _fit_sources(sources, fitting, many, console)
    except KeyboardInterrupt:
        if many.checkpoint is not None and Path(many.checkpoint).exists():
            complain(f"{many.checkpoint} has the state so far; the same command resumes from it")
        raise
    (replace(model, table=None) if no_rows else model).save(out)
    console.say(model.classifier.report_)
    console.say("")
    result = {"summary": model.summary(), "trusted_level": model.classifier.levels_[-1]}
    console.written(context, out, model=out, **result, in_blocks=in_blocks, warnings=notes)


def _fit_sources(
    sources: Sources, fitting: Fitting, many: ManyRows, console: Console
) -> tuple[TableModel, bool]:
    """The model of tables of any size, and whether they were read in blocks."""
    from polyfid.tables import TableModel

    model = make_classifier(fitting, many)
    in_blocks, reason = choose_blocks(sources, many)
    if not in_blocks:
        table = read_sources(sources, fitting.seed)
        console.say(f"{len(table):,} rows were read into memory")
        return fit_table(table, model, fitting, sources.missing, console), False
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
        mean=None if fitting.mean == "none" else fitting.mean,
        inference=fitting.inference,
        n_inducing=many.n_inducing,
        refine_inducing=many.refine,
        n_tuning=many.n_tuning,
        random_state=fitting.seed,
    )


def fit_table(
    table: LabelledTable,
    model: MultiFidelityClassifier,
    fitting: Fitting,
    missing: Any,
    console: Console,
) -> TableModel:
    """The model of a table in memory."""
    from polyfid.tables import TableModel

    model.set_params(n_jobs=n_jobs(fitting, model, table.label))
    with console.progress("Fitting") as bar:
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


def predict(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that polyfid fit wrote.")],
    new: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="New rows: CSV (also .gz), Parquet, a JSON export of Label Studio, or -.",
        ),
    ],
    console: Console,
    text: TextFormat,
    many: Blocks,
    out: Annotated[str, out_option("The table of predictions to write, or -.")] = "-",
    fidelity: Annotated[
        str | None,
        typer.Option(
            help="Predict the labels that this level would give.", show_default="the most trusted"
        ),
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="Column of names.", show_default="as in the fit")
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Embeddings of the rows, for a model that was fitted to some: .npy in the order "
            "of the rows, or CSV or Parquet with a column of ids.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of threads.", show_default="all cores")
    ] = None,
) -> None:
    """Predict the labels of new rows, block by block: the file may be larger than memory."""
    from polyfid.tables import write_table

    check_out(out, [model, new, *filter(None, [embeddings])], ENDINGS, console)
    csv = text.csv
    loaded = load_table_model(model)
    levels = [str(level) for level in loaded.classifier.levels_]
    if fidelity not in (None, *levels):
        problem = f"the model has levels {', '.join(levels)}; got {fidelity!r}"
        raise typer.BadParameter(problem, param_hint="--fidelity")
    top = levels[-1]
    is_top = fidelity in (None, top)
    asked = f"{top}, the most trusted" if is_top else f"{fidelity}; the most trusted is {top}"
    console.say(f"Labels are predicted for the level {asked}", err=True)
    with (
        cluster(many.dask) as client,
        console.warnings() as notes,
        console.progress("Predicting") as bar,
    ):
        more = read_embeddings(embeddings, id or loaded.roles.id, csv)
        rows = rows_of(new)
        blocks = loaded.read_blocks(rows, id=id, rows=many.block, embeddings=more, **csv)
        write_table(bar.over(loaded.predict_blocks(blocks, fidelity, id, jobs, client)), out)
    if out != "-":
        console.say(f"{bar.done:,} rows predicted")
        result = {"trusted_level": top, "warnings": notes}
        console.written(context, out, rows=bar.done, out=out, **result)


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")], console: Console
) -> None:
    """Show what a model file holds. Only its header is read, and no code in it is run."""
    from polyfid.model_files import inspect as read_header

    header = read_header(model)
    levels = header.get("levels") or ["unknown"]
    console.result({**header, "trusted_level": levels[-1]})
    arrays = header.get("arrays", [])
    size = sum(array["nbytes"] for array in arrays)
    shown = {**header, "levels": by_trust(levels)}
    # Of averaged structures the header has the heaviest one only; a report has the averages.
    tuned = "hyper_parameters"
    heaviest = f"{tuned} (of the heaviest structure)"
    shown = {heaviest if name == tuned else name: value for name, value in shown.items()}
    shown["arrays"] = f"{len(arrays)} arrays, {size:,} bytes"
    console.say("\n".join(_lines(shown)))


def _lines(values: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            text = first_few(value, MAX_NAMES) if isinstance(value, list) else text
            lines.append(f"{indent}{name}: {text}")
    return lines
