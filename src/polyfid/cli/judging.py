"""Cross-validation of the rows of a table, for the verbs that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyfid.cli.effort import processes
from polyfid.cli.parameters import Fitting
from polyfid.cli.talk import Step

if TYPE_CHECKING:
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.evaluation import Evaluation
    from polyfid.tables import LabelledTable, TableEncoder

#: Ours and the baselines.
METHODS = 4


def judge(
    table: LabelledTable,
    encoder: TableEncoder,
    model: MultiFidelityClassifier,
    fitting: Fitting,
    folds: int,
    step: Step,
) -> Evaluation:
    """How a model and its baselines do on trusted rows that they have not seen."""
    from polyfid.evaluation import evaluate

    kernel = "auto" if isinstance(model.kernel, str) else "given"
    return evaluate(
        encoder.transform(table.features),
        table.label,
        table.fidelity,
        levels=table.levels,
        sample_weight=table.weight,
        model=model,
        n_splits=folds,
        random_state=fitting.seed,
        n_jobs=processes(
            fitting.jobs, len(table), len(set(table.label.tolist())), kernel, fits=METHODS * folds
        ),
        progress=step,
    )
