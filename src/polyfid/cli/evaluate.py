"""``polyfid evaluate``: whether the cheap labels help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyfid.cli.console import Console, ProgressBar
from polyfid.cli.fit import make_classifier, n_jobs
from polyfid.cli.options import Fitting, Output, Sources
from polyfid.cli.sources import read_sources

if TYPE_CHECKING:
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.evaluation import Evaluation
    from polyfid.tables import LabelledTable, TableEncoder


def evaluate(
    sources: Sources,
    fitting: Fitting,
    output: Output,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds of the trusted rows.")] = 5,
) -> None:
    """Cross-validate on the trusted rows, beside baselines, and say whether cheap labels help."""
    from polyfid.tables import TableEncoder

    console = Console(output)
    with console.warnings() as notes:
        table = read_sources(sources, fitting.seed)
        encoder = TableEncoder(categorical=table.roles.categorical, missing=sources.missing)
        encoder.fit(table.features)  # reports bad cells before models are fitted
        with console.progress("Evaluating") as bar:
            result = evaluate_table(table, encoder, make_classifier(fitting), fitting, folds, bar)
    console.say(str(result))
    console.result({**result.to_dict(), "warnings": notes})


def evaluate_table(
    table: LabelledTable,
    encoder: TableEncoder,
    model: MultiFidelityClassifier,
    fitting: Fitting,
    folds: int,
    bar: ProgressBar,
) -> Evaluation:
    """How well a model and its baselines predict held-out trusted rows of a table.

    The encoder, which is fitted to all rows, says which columns are categories; what it learns from
    rows is learnt anew from the training rows of each fold.
    """
    from polyfid.evaluation import METHODS
    from polyfid.evaluation import evaluate as compare

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
        n_jobs=n_jobs(fitting, model, table.label, fits=len(METHODS) * folds),
        progress=bar.count,
    )
