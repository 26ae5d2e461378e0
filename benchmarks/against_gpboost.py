"""Fits against GPBoost's exact Laplace inference: one level, and its two-level covariance."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from benchmarks.against_sklearn import against_peer
from benchmarks.artificial import Artificial, Rows, Split
from benchmarks.figures import Context, Figure, Skip, Table, at_least, info, no_worse, peer
from benchmarks.synthetic import Problem, make_problem
from benchmarks.timing import Score, cpu, score
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Constant

Array = NDArray[np.float64]


def run(context: Context) -> list[Figure]:
    gpboost, n = peer("gpboost"), 300 if context.quick else 1000
    fit = partial(_fit_one_level, gpboost)
    fit(make_problem(50))  # whatever is loaded at first use
    figures = against_peer(
        context,
        fit,
        lambda model: -model.get_current_neg_log_likelihood(),
        "gpboost: one level",
        n,
        1 if context.quick else 3,
        5.0,
    )
    try:
        figures += _two_levels(context, gpboost, context.artificial())
    except Skip as reason:
        figures.append(Figure("gpboost: two levels", None, note=f"skipped: {reason}"))
    return figures


def _fit_one_level(gpboost: Any, problem: Problem) -> Any:
    return _model(gpboost, problem.x, "gaussian").fit(y=problem.y.astype(float))


def _model(gpboost: Any, coordinates: Array, covariance: str) -> Any:
    return gpboost.GPModel(
        gp_coords=coordinates,
        cov_function=covariance,
        likelihood="bernoulli_logit",
        gp_approx="none",
        num_parallel_threads=1,
    )


def _two_levels(context: Context, gpboost: Any, sets: Artificial) -> list[Figure]:
    splits = sets.splits()
    if not context.full:
        splits = sets.some(splits, lambda split: split, 1 if context.quick else 2)
    seconds: dict[str, list[float]] = {"one": [], "paper": [], "default": [], "gpboost": []}
    structure = Constant(np.exp(1.5)) * RBF(ard=True)
    scores: dict[str, list[Score]] = {name: [] for name in seconds}
    for split in splits:
        context.progress(f"gpboost: two levels, {_words(split)}")
        rows = sets.rows(split)
        fits = {
            "one": partial(_fit_ours, MultiFidelityClassifier(structure, random_state=0), rows),
            "paper": partial(_fit_ours, MultiFidelityClassifier.paper(random_state=0), rows),
            "default": partial(_fit_ours, MultiFidelityClassifier(random_state=0), rows),
            "gpboost": partial(_fit_two_levels, gpboost, rows),
        }
        for name, fit in fits.items():
            taken, predict = cpu(fit)
            seconds[name].append(taken)
            scores[name].append(score(rows.y_test, predict(rows.X_test)))
    context.tables.append(
        Table(
            "gpboost: two levels, ROC AUC, log-loss and seconds",
            ["", *seconds],
            [
                [_words(split), *(_cell(scores[name][i], seconds[name][i]) for name in seconds)]
                for i, split in enumerate(splits)
            ],
        )
    )
    mean = {name: Score(*np.mean(values, axis=0)) for name, values in scores.items()}
    total = {name: float(np.sum(taken)) for name, taken in seconds.items()}
    note, figures = f"{len(splits)} splits", []
    named = {"one": "one structure", "paper": "paper preset", "default": "default estimator"}
    for name, words in named.items():
        prefix = f"gpboost: two levels, {words}"
        each = [total[who] / len(splits) for who in (name, "gpboost")]
        times = f"{each[0]:.3g} s a fit, theirs {each[1]:.3g} s"
        figures += [
            # The default averages a dozen structures; the others fit one, as the peer does.
            (info if name == "default" else partial(at_least, bound=3.0))(
                prefix, total["gpboost"] / total[name], unit="x faster", note=f"{note}, {times}"
            ),
            *no_worse(prefix, mean[name], mean["gpboost"], "theirs"),
        ]
    return figures


def _words(split: Split) -> str:
    return f"set {split.set}, noise {split.noise}, seed {split.seed}"


def _cell(reached: Score, seconds: float) -> str:
    return f"{reached.roc_auc:.4f}  {reached.log_loss:.4f}  {seconds:.2f}"


def _fit_ours(model: MultiFidelityClassifier, rows: Rows) -> Any:
    model.fit(rows.X, rows.y, fidelity=rows.fidelity)
    return lambda X: model.predict_proba(X)[:, 1]


def _fit_two_levels(gpboost: Any, rows: Rows) -> Any:
    scaler = StandardScaler().fit(rows.X)

    def coordinates(X: Array, level: Any) -> Array:
        return np.column_stack([scaler.transform(X), np.broadcast_to(level, len(X))])

    model = _model(gpboost, coordinates(rows.X, rows.fidelity), "ar1_mf_gaussian")
    model.fit(y=rows.y.astype(float))
    return lambda X: model.predict(gp_coords_pred=coordinates(X, 1.0), predict_response=True)["mu"]
