"""The paper's model on the paper's artificial sets: evidence, accuracy and time of the preset."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.artificial import by_cell
from benchmarks.figures import Context, Figure, at_least, at_most, info
from benchmarks.timing import Score, cpu, score
from polyfid import MultiFidelityClassifier

#: The preset has three starts for two levels: the values given, typical ones, rho's other sign.
N_DEFAULT_STARTS, N_MANY_STARTS = 3, 11


def run(context: Context) -> list[Figure]:
    sets = context.artificial()
    golden = context.golden_rows(sets)
    if context.quick:
        per_cell = max(1, len(golden) // (10 * len({sets.cell(g.split) for g in golden})))
        golden = sets.some(golden, lambda g: g.split, per_cell)
    models = {
        "default starts": MultiFidelityClassifier.paper(random_state=0),
        "eleven starts": MultiFidelityClassifier.paper(
            n_restarts=N_MANY_STARTS - N_DEFAULT_STARTS, random_state=0
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    evidence: dict[str, list[float]] = {name: [] for name in models}
    scores: dict[str, list[Score]] = {name: [] for name in models}
    converged = []
    for i, row in enumerate(golden):
        if i % 10 == 0:
            context.progress(f"paper: row {i + 1} of {len(golden)}")
        rows = sets.rows(row.split)
        for name, model in models.items():
            taken, _ = cpu(partial(model.fit, rows.X, rows.y, fidelity=rows.fidelity))
            seconds[name].append(taken)
            evidence[name].append(model.log_marginal_likelihood_value_)
            scores[name].append(score(rows.y_test, model.predict_proba(rows.X_test)[:, 1]))
        converged.append(models["default starts"].converged_)

    figures = []
    wanted = np.array([g.log_marginal_likelihood for g in golden])
    auc = np.array([g.roc_auc for g in golden])
    loss = np.array([g.log_loss for g in golden])
    for name, limit in (("default starts", 0.5), ("eleven starts", 1.5)):
        gap = np.array(evidence[name]) - wanted
        worst = golden[int(gap.argmin())].split
        figures += [
            at_most(f"paper: CPU per fit, {name}", float(np.mean(seconds[name])), limit, "s"),
            at_least(
                f"paper: share of rows at the reference evidence, {name}",
                float(np.mean(gap >= -0.01)),
                0.95,
                note=f"{len(golden)} rows, worst {gap.min():.3g} ({worst}), best {gap.max():.3g}",
            ),
            at_most(
                f"paper: ROC AUC off the reference, {name}",
                abs(float(np.mean([s.roc_auc for s in scores[name]]) - auc.mean())),
                0.001,
            ),
            info(
                f"paper: log-loss less the reference, {name}",
                float(np.mean([s.log_loss for s in scores[name]]) - loss.mean()),
            ),
        ]
    figures.append(info("paper: share of fits that converged", float(np.mean(converged))))
    cells = [sets.cell(g.split) for g in golden]
    ours = by_cell(cells, [s.roc_auc for s in scores["default starts"]])
    for cell, reference in by_cell(cells, [g.roc_auc for g in golden]).items():
        figures.append(
            at_most(
                f"paper: ROC AUC off the reference, {cell}",
                abs(ours[cell] - reference),
                0.002,
                note=f"{ours[cell]:.4f} and {reference:.4f}",
            )
        )
    return figures
