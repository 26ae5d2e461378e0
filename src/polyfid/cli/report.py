"""``polyfid evaluate`` and ``report``: whether cheap labels help; ``demo``: every step."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyfid.cli.buying import pool_of, read_prices, suggest_of_table
from polyfid.cli.config import write_config
from polyfid.cli.console import Console
from polyfid.cli.models import fit_table, make_classifier, n_jobs
from polyfid.cli.options import Fitting, Sources, out_option
from polyfid.cli.sources import (
    check_out,
    inputs_of,
    load_study,
    load_table_model,
    read_sources,
)
from polyfid.text import by_trust

#: Labels that a report proposes where no budget is given.
N_NEXT = 20

if TYPE_CHECKING:
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.evaluation import Evaluation
    from polyfid.suggest import Study
    from polyfid.tables import LabelledTable, TableEncoder, TableModel


def evaluate(
    sources: Sources,
    fitting: Fitting,
    console: Console,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds of the trusted rows.")] = 5,
) -> None:
    """Cross-validate on the trusted rows, beside baselines, and say whether cheap labels help."""
    from polyfid.tables import TableEncoder

    with console.warnings() as notes:
        table = read_sources(sources, fitting.seed)
        encoder = TableEncoder(**table.roles.of_features, missing=sources.missing)
        encoder.fit(table.features)  # reports bad cells before models are fitted
        model = make_classifier(fitting)
        result = evaluate_table(table, encoder, model, fitting, folds, console)
    console.say(str(result))
    console.result({**result.to_dict(), "warnings": notes})


def evaluate_table(
    table: LabelledTable,
    encoder: TableEncoder,
    model: MultiFidelityClassifier,
    fitting: Fitting,
    folds: int,
    console: Console,
) -> Evaluation:
    """How well a model and its baselines predict held-out trusted rows of a table.

    The encoder, which is fitted to all rows, says which columns are categories; what it learns from
    rows is learnt anew from the training rows of each fold.
    """
    from polyfid.evaluation import METHODS
    from polyfid.evaluation import evaluate as compare

    model.set_params(numeric_levels=table.numeric_levels or None)
    with console.progress("Evaluating") as bar:
        return compare(
            table.features,
            table.label,
            table.fidelity,
            levels=table.levels,
            sample_weight=table.weight,
            model=model,
            encoder=encoder.unfitted(),
            n_splits=folds,
            random_state=fitting.seed,
            n_jobs=n_jobs(fitting, model, table, fits=len(METHODS) * folds),
            progress=bar.count,
            audit=table.audit,
        )


def report(
    context: typer.Context,
    sources: Sources,
    fitting: Fitting,
    console: Console,
    out: Annotated[str, out_option("The page to write.")] = "report.html",
    folds: Annotated[
        int, typer.Option(min=0, help="Number of folds of the evaluation; 0 leaves it out.")
    ] = 5,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Rows that may be labelled: adds what to label next."),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="STUDY",
            help="A study: adds its progress and what to label next. Without FILES, the report is "
            "on its labels.",
        ),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL=COST,…",
            help="With --pool, what a label of each level costs: crowd=1,expert=8.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="MONEY",
            help="With --pool or --study, the money for the next labels; adds how to split it.",
            show_default="20 labels",
        ),
    ] = None,
) -> None:
    """Write a self-contained HTML report on labelled tables, or on a fitted model.

    FILES can be one model file: the report then has the rows and settings of the model. With a pool
    or a study, it also says what to label next.
    """
    from polyfid.report import annotators_of, write_report

    if folds == 1:
        raise typer.BadParameter("must be 0, or 2 or more", param_hint="--folds")
    if pool is not None and study is not None:
        raise typer.BadParameter("give --pool or --study; a study has a pool")
    if (pool is None) != (costs is None):
        raise typer.BadParameter("--pool and --costs go together; a study knows its costs")
    opened = None if study is None else load_study(study)
    alone = study is not None and not (sources.files or sources.level or sources.answers)
    check_out(out, [*([] if alone else inputs_of(sources)), *filter(None, [pool, study])])
    reason = "no evaluation was asked for (--folds 0)"
    evaluation = None
    with console.warnings() as notes:
        if alone and opened is not None:
            model, table = _of_study(opened, fitting, console)
        else:
            model, table = _model_and_table(context, sources, fitting, console)
        if folds:
            try:
                evaluation = evaluate_table(
                    table, model.encoder, model.unfitted(), fitting, folds, console
                )
            except ValueError as error:  # one level, or too few rows: the rest is still of use
                reason = f"there is no evaluation: {error}"
        people = annotators_of(table)
        limits: dict[str, Any] = {"budget": budget, "n": N_NEXT if budget is None else None}
        batch, history, advice = None, [], None
        if opened is not None:
            batch, history = opened.preview(**limits), opened.history_
            advice = opened.advise(budget) if budget is not None and history else None
        if pool is not None and costs is not None:
            frame, prices = pool_of(model, pool, sources.csv), read_prices(costs)
            seed = {"random_state": fitting.seed}
            batch = suggest_of_table(model, frame, prices, **limits, **seed)
            if budget is not None:
                advice = model.advise(frame, prices, budget, **seed)
    notes = notes if evaluation else [*notes, reason]
    page = {"title": title, "warnings": notes, "annotators": people, **_origin(fitting)}
    page |= {"batch": batch, "history": history, "advice": advice}
    write_report(out, model=model, table=table, evaluation=evaluation, **page)
    console.wrap(str(evaluation.judgement) if evaluation else f"Note: {reason}")
    console.wrap(f"Levels: {by_trust(table.levels)}.")
    outcome = evaluation.to_dict() if evaluation else None
    result = {"trusted_level": table.levels[-1], "evaluation": outcome, "warnings": notes}
    console.written(context, out, report=out, **result)


def _of_study(study: Study, fitting: Fitting, console: Console) -> tuple[TableModel, LabelledTable]:
    """A model of the labels that a study was told, and those labels as a table."""
    from polyfid.tables import Roles, read_labelled

    kinds = study.kinds
    roles = Roles(
        levels=tuple(map(str, study.levels)),
        features=tuple(study.features),
        categorical=tuple(name for name, kind in kinds.items() if kind == "category"),
        text=tuple(name for name, kind in kinds.items() if kind == "text"),
        audit="audit",
        value=study.value_columns,
    )
    table = read_labelled([study.labelled()], roles)
    return fit_table(table, make_classifier(fitting), fitting, study.missing, console), table


def _origin(fitting: Fitting) -> dict[str, Any]:
    """What a page says about how it was made."""
    return {"seed": fitting.seed, "command": shlex.join(["polyfid", *sys.argv[1:]])}


def _model_and_table(
    context: typer.Context, sources: Sources, fitting: Fitting, console: Console
) -> tuple[TableModel, LabelledTable]:
    """A model and its training rows, from a model file or from tables."""
    from polyfid.model_files import is_model

    files = sources.files or []
    if not any(Path(file).is_file() and is_model(file) for file in files):
        table = read_sources(sources, fitting.seed)
        plain = make_classifier(fitting)
        return fit_table(table, plain, fitting, sources.missing, console), table
    if len(files) > 1:
        raise typer.BadParameter("a model file must be the only file")
    fixed = {f.name for f in fields(sources)} - {"files"}
    fixed |= {f.name for f in fields(fitting)} - {"seed", "jobs"}
    for name in sorted(fixed):
        origin = context.get_parameter_source(name)
        if origin is not None and origin.name == "COMMANDLINE":
            raise typer.BadParameter(
                "a model file has its own rows and settings: leave out "
                f"--{name.replace('_', '-')}, or give the tables"
            )
    model = load_table_model(files[0])
    if model.table is None:
        raise ValueError(
            f"{files[0]} has no rows (it was fitted in blocks, or saved with --no-rows), and a "
            "report needs them; give the tables instead: polyfid report TABLES, with the options "
            "of the fit"
        )
    return model, model.table


def demo(
    context: typer.Context,
    fitting: Fitting,
    console: Console,
    out: Annotated[
        Path, typer.Option("--out", "-o", file_okay=False, help="The folder to write to.")
    ] = Path("polyfid-demo"),
) -> None:
    """Make tables, a model, predictions and a report from built-in data, in one folder."""
    from sklearn.metrics import log_loss, roc_auc_score

    from polyfid.datasets import N_EXPERIMENTS, N_SIMULATIONS, make_welding
    from polyfid.report import write_report
    from polyfid.tables import Roles, read_labelled, write_table

    console.wrap(
        f"Which seams of a welding process are sound? There are {N_EXPERIMENTS} experiments, and "
        f"{N_SIMULATIONS} simulations that are sometimes wrong."
    )
    made = make_welding(fitting.seed)
    out.mkdir(parents=True, exist_ok=True)
    levels = {name: str(out / f"{name}.csv") for name in ("simulation", "experiment")}
    for name, file in {**levels, "new": str(out / "new.csv")}.items():
        write_table(getattr(made, name), file)
    with console.warnings() as notes:
        table = read_labelled([], Roles(), level_files=levels)
        model = fit_table(table, make_classifier(fitting), fitting, "error", console)
        model.save(out / "model.polyfid")
        for text in ("", model.classifier.report_, ""):
            console.say(text)

        predicted = model.predict(made.new)
        write_table(predicted, out / "predictions.csv")
        sound = (made.truth == "sound").to_numpy()
        auc = roc_auc_score(sound, predicted["p_sound"])
        loss = log_loss(sound, predicted["p_sound"])
        console.say(
            f"Predictions of {len(sound)} new rows: ROC AUC {auc:.3f}, log-loss {loss:.3f}.\n"
        )
        result = evaluate_table(table, model.encoder, model.unfitted(), fitting, 5, console)
    console.say(f"{result}\n")
    title = "A demonstration: which seams are sound?"
    contents = {"title": title, "warnings": notes, **_origin(fitting)}
    write_report(out / "report.html", model=model, table=table, evaluation=result, **contents)
    write_config(context, out / "report.html")
    console.wrap(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    console.say("\nThe same steps by hand:")
    rows = " ".join(shlex.quote(f"--level={name}={file}") for name, file in levels.items())
    names = ("model.polyfid", "new.csv", "predictions.csv", "report.html")
    saved, new, predictions, html = (shlex.quote(str(out / name)) for name in names)
    console.say(f"  polyfid fit {rows} -o {saved}")
    console.say(f"  polyfid predict {saved} {new} -o {predictions}")
    console.say(f"  polyfid report {saved} -o {html}")
    page = (out / "report.html").resolve()
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    console.say(f"\nThe report is {page.as_uri()} ({opener} {html})")
    figures = {"roc_auc": auc, "log_loss": loss, "evaluation": result.to_dict()}
    console.result({"folder": str(out), **figures, "warnings": notes})
