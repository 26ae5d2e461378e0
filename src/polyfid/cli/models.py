"""The verbs on models: ``polyfid fit``, ``predict`` and ``inspect``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyfid.cli.config import split
from polyfid.cli.console import Console, complain
from polyfid.cli.options import (
    Blocks,
    Deciding,
    EmbeddingsOfRows,
    Fitting,
    ManyRows,
    Sources,
    TextFormat,
    out_option,
)
from polyfid.cli.score import read_costs
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
#: Significant digits of probabilities and latent values in text.
DIGITS = 6
#: Upper bound on the names that are printed of a list.
MAX_NAMES = 40


def fit(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    many: ManyRows,
    deciding: Deciding,
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
            model, in_blocks = _fit_sources(sources, fitting, many, deciding, console)
    except KeyboardInterrupt:
        if many.checkpoint is not None and Path(many.checkpoint).exists():
            complain(f"{many.checkpoint} has the state so far; the same command resumes from it")
        raise
    (replace(model, table=None) if no_rows else model).save(out)
    console.say(f"{model.classifier.report_}\n")
    say_rule(model, console)
    result = {"summary": model.summary(), "trusted_level": model.classifier.levels_[-1]}
    console.written(context, out, model=out, **result, in_blocks=in_blocks, warnings=notes)


def _fit_sources(
    sources: Sources, fitting: Fitting, many: ManyRows, deciding: Deciding, console: Console
) -> tuple[TableModel, bool]:
    """The model of tables of any size, and whether they were read in blocks."""
    from polyfid.tables import TableModel

    model = make_classifier(fitting, many)
    costs: dict[str, Any] = {"costs": read_costs(deciding), "cost_abstain": deciding.cost_abstain}
    in_blocks, reason = choose_blocks(sources, many)
    if not in_blocks:
        table = read_sources(sources, fitting.seed)
        console.say(f"{len(table):,} rows were read into memory")
        return fit_table(table, model, fitting, sources.missing, console, **costs), False
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
            **costs,
            **sources.csv,
        )
    fitted.classifier.set_params(n_jobs=None)  # depends on this machine, not on the model
    return fitted, True


def make_classifier(fitting: Fitting, many: ManyRows | None = None) -> MultiFidelityClassifier:
    """The unfitted classifier that the options describe."""
    from polyfid.estimator.classifier import MultiFidelityClassifier

    many = many or ManyRows()
    return MultiFidelityClassifier(
        fitting.kernel,
        mean=None if fitting.mean == "none" else fitting.mean,
        inference=fitting.inference,
        noise=fitting.variances,
        warp=fitting.warp,
        outliers=fitting.outliers,
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
    **costs: Any,
) -> TableModel:
    """The model of a table in memory, which may decide by costs."""
    from polyfid.tables import TableModel

    model.set_params(n_jobs=n_jobs(fitting, model, table))
    with console.progress("Fitting") as bar:
        fitted = TableModel.fit(table, model, missing, callback=bar, **costs)
    fitted.classifier.set_params(n_jobs=None)  # depends on this machine, not on the model
    return fitted


def n_jobs(
    fitting: Fitting, model: MultiFidelityClassifier, table: LabelledTable, fits: int = 1
) -> int:
    """The number of processes asked for; else one for little work, and all cores for more.

    A few seconds of work are done before other processes have started.
    """
    if fitting.jobs is not None:
        return fitting.jobs
    kernels = 20 if str(model.kernel) == "auto" else 1  # as many are tried
    classes = len({*table.classes.tolist()})
    models = fits * kernels * (classes if classes > 2 else 1)
    return 1 if len(table) * models < SMALL_WORK else -1


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
        str | None,
        typer.Option("--id", help="Column of names.", show_default="as in the fit, or row numbers"),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns of the new rows to copy. * stands for any letters: 'lsa*'.",
            show_default="none",
        ),
    ] = None,
    embeddings: EmbeddingsOfRows = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of threads.", show_default="all cores")
    ] = None,
) -> None:
    """Predict the labels of new rows, block by block: the file may be larger than memory.

    The table has the ids of the rows, or else their row numbers; the label, the most probable one
    or a decision by the model's costs; p_CLASS, its probability; latent_mean and latent_sd, the
    mean and standard deviation of the latent function, which is above 0 where the second class is
    more probable, and uncertain where there are few labels nearby. For each level of numbers it has
    value_LEVEL, the number that the level would give, and value_LEVEL_sd, its standard deviation;
    --fidelity LEVEL asks for these alone.
    """
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
    numeric = fidelity in loaded.numeric_levels
    what = "Numbers" if numeric else "Labels"
    console.say(f"{what} are predicted for the level {asked}", err=True)
    with (
        cluster(many.dask) as client,
        console.warnings() as notes,
        console.progress("Predicting") as bar,
    ):
        more = read_embeddings(embeddings, id or loaded.roles.id, csv)
        kept = () if keep is None else split(keep)
        blocks = loaded.read_blocks(
            rows_of(new), id=id, keep=kept, rows=many.block, embeddings=more, **csv
        )
        # Parquet holds all digits in eight bytes; text would take twice as many, to no use.
        digits = None if out.lower().endswith((".parquet", ".pq")) else DIGITS
        made = loaded.predict_blocks(blocks, fidelity, id, jobs, client, kept, digits)
        write_table(bar.over(made), out)
    if not numeric:
        say_rule(loaded, console, err=out == "-")
    if out != "-":
        console.say(f"{bar.done:,} rows predicted")
        result = {"trusted_level": top, "warnings": notes}
        console.written(context, out, rows=bar.done, out=out, **result)


def say_rule(model: TableModel, console: Console, err: bool = False) -> None:
    """Print by which costs a model decides, if by any."""
    if model.rule is not None:
        lines = model.rule.describe(model.classifier.classes_)
        console.say("\n".join(["Labels are decisions by costs.", *lines]), err=err)


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")], console: Console
) -> None:
    """Show what a model file holds. Only its header is read, and no code in it is run."""
    from polyfid.model_files import inspect as read_header

    header = read_header(model)
    levels = header.get("levels") or ["unknown"]
    if (given := header.get("hyper_parameters")) is not None:
        header["hyper_parameters"] = _as_values(given)
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


def _as_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Hyper-parameters, of one model or of one per class, as values and not as logarithms."""
    from polyfid.estimator.summary import value_of

    return {
        name: _as_values(theta) if isinstance(theta, Mapping) else value_of(name, theta)
        for name, theta in given.items()
    }


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
