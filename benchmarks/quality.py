"""The default estimator against the paper's model and Gaussian processes with one level."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.artificial import Artificial, Split, by_cell
from benchmarks.figures import Context, Figure, Skip, Table, at_least, at_most
from benchmarks.timing import Score, score
from polyfid import MultiFidelityClassifier, Pooled, TrustedOnly

OURS = "default"


def run(context: Context) -> list[Figure]:
    sets = context.artificial()
    try:
        splits = [g.split for g in context.golden_rows(sets)]
    except Skip:
        splits = sets.splits()
    if context.quick:
        splits = sets.some(splits, lambda split: split, 1)
    context.progress(f"quality: {len(splits)} splits, {len(_methods())} methods")
    pool = Parallel(n_jobs=2, verbose=0, return_as="generator")
    results: list[dict[str, Score]] = []
    for i, result in enumerate(pool(delayed(_scores)(sets, split) for split in splits)):
        results.append(result)
        if (i + 1) % 10 == 0:
            context.progress(f"quality: split {i + 1} of {len(splits)}")

    cells = [sets.cell(split) for split in splits]
    figures = []
    for index, measure in enumerate(("ROC AUC", "log-loss")):
        sign = 1.0 if index == 0 else -1.0
        table = {
            name: by_cell(cells, [result[name][index] for result in results]) for name in _methods()
        }
        best = 0
        body = []
        for cell in table[OURS]:
            row = {name: means[cell] for name, means in table.items()}
            leader = max(row, key=lambda name: sign * row[name])
            best += leader == OURS
            body.append([str(cell), *(f"{value:.4f}" for value in row.values()), leader])
        mean = {name: float(np.mean(list(means.values()))) for name, means in table.items()}
        leader = max(mean, key=lambda name: sign * mean[name])
        body.append(["mean", *(f"{value:.4f}" for value in mean.values()), leader])
        context.tables.append(Table(f"quality: {measure}", ["", *table, "best"], body))
        other = max(sign * value for name, value in mean.items() if name != OURS) * sign
        bound = at_least if index == 0 else at_most
        n_cells = len(table[OURS])
        figures += [
            at_least(
                f"quality: cells where the default has the best {measure}",
                best,
                n_cells,
                f"of {n_cells}",
                f"{len(splits)} splits",
            ),
            bound(
                f"quality: {measure} of the default less the best other",
                mean[OURS] - other,
                0.0,
                note=f"{mean[OURS]:.4f} and {other:.4f}",
            ),
        ]
    return figures


def _methods() -> dict[str, Any]:
    ours = MultiFidelityClassifier(random_state=0)
    theirs = make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(1.0)))
    return {
        OURS: ours,
        "paper": MultiFidelityClassifier.paper(random_state=0),
        "trusted": TrustedOnly(ours),
        "pooled": Pooled(ours),
        "trusted sklearn": TrustedOnly(theirs),
        "pooled sklearn": Pooled(theirs),
    }


def _scores(sets: Artificial, split: Split) -> dict[str, Score]:
    """Scores of all methods on a split."""
    rows = sets.rows(split)
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in _methods().items():
            model.fit(rows.X, rows.y, fidelity=rows.fidelity)
            scores[name] = score(rows.y_test, model.predict_proba(rows.X_test)[:, 1])
    return scores
