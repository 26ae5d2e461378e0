"""The estimator that options describe, and its fit to a table."""

from __future__ import annotations

from typing import Any

from polyfid.classifier import MultiFidelityClassifier
from polyfid.cli.effort import processes
from polyfid.cli.parameters import Fitting
from polyfid.kernels import RBF, Constant, Matern52
from polyfid.tables import LabelledTable
from polyfid.tabular import TableModel


def classifier(fitting: Fitting) -> MultiFidelityClassifier:
    """The estimator that the options describe, for one process."""
    kernels: dict[str, Any] = {
        "auto": "auto",
        "rbf": Constant() * RBF(),
        "ard": Constant() * RBF(ard=True),
        "matern": Constant() * Matern52(),
    }
    return MultiFidelityClassifier(
        kernels[fitting.kernel], inference=fitting.inference, random_state=fitting.seed
    )


def fit_table(table: LabelledTable, fitting: Fitting, missing: Any = "error") -> TableModel:
    """The model of a table, fitted by as many processes as pay."""
    classes = len(set(table.label.tolist()))
    jobs = processes(fitting.jobs, len(table), classes, fitting.kernel)
    model = classifier(fitting).set_params(n_jobs=jobs)
    fitted = TableModel.fit(table, model, missing=missing)
    fitted.classifier.set_params(n_jobs=None)  # a matter of this machine, not of the model
    return fitted
