"""What an evaluation shows: the verdict, the comparison with baselines, and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyfid.arrays import Array
from polyfid.evaluation import METHODS, SCORES, Estimate, Evaluation
from polyfid.report.charts import (
    ReliabilityCurve,
    difference_chart,
    estimates_chart,
    reliability_chart,
)
from polyfid.report.page import Cell, Figure, Head, Table, shorten, signed, typeset

OURS, ALONE = METHODS[:2]
#: What each method learns from.
_LEARNS_FROM = {
    "polyfid": "all labels, each level trusted as far as it deserves",
    "trusted only": "the trusted labels alone",
    "pooled": "all labels, trusted alike",
    "stacked": "trusted labels, with predictions from the level below as features",
}
_EFFECTS = {
    "help": ("help", "The cheaper labels help"),
    "harm": ("harm", "The cheaper labels do harm"),
    "no clear difference": ("none", "No clear difference"),
}
#: Bins of a reliability curve: at most so many, each with at least so many rows.
MOST_BINS, ROWS_PER_BIN = 10, 10
#: Classes whose reliability is drawn, the most frequent ones.
MOST_CLASSES = 6


def verdict(evaluation: Evaluation) -> dict[str, Any]:
    """Whether the cheaper labels help, with the difference that decides it."""
    effect, badge = _EFFECTS[evaluation.verdict]
    name = evaluation.deciding_score
    gap, score = evaluation.differences[ALONE][name], SCORES[name]
    words = (
        f"{score.words}, {OURS} minus {ALONE}; 95\u00a0% interval "
        f"{signed(gap.low)} to {signed(gap.high)}"
    )
    sides = ("worse", "better") if score.more_is_better else ("better", "worse")
    return {
        "effect": effect,
        "badge": badge,
        "sentence": typeset(evaluation.sentence),
        "value": signed(gap.value),
        "words": words,
        "drawing": difference_chart(gap, f"{signed(gap.value)} {words}", sides),
    }


def comparison(evaluation: Evaluation) -> dict[str, Any]:
    """Scores of all methods and paired differences, as tables and as charts."""
    heads, figures, best = [], [], {}
    for name, score in SCORES.items():
        title = score.words[:1].upper() + score.words[1:]
        direction = "higher is better" if score.more_is_better else "lower is better"
        estimates = {method: scores[name] for method, scores in evaluation.scores.items()}
        label = ", ".join(f"{method} {e.value:.3f}" for method, e in estimates.items())
        drawing = estimates_chart(estimates, f"score-{name}", f"{title}: {label}")
        heads.append(Head(title, direction))
        figures.append(Figure(title, drawing, note=direction))
        values = {method: e.value for method, e in estimates.items()}
        best[name] = (max if score.more_is_better else min)(values, key=values.__getitem__)
    scores = Table(
        (Head("Method", words=True), *heads, Head("Learns from", words=True)),
        tuple(
            (
                Cell(method),
                *(_score(values[name], strong=method == best[name]) for name in SCORES),
                Cell(_LEARNS_FROM[method]),
            )
            for method, values in evaluation.scores.items()
        ),
    )
    differences = Table(
        (Head("Difference", words=True), *heads),
        tuple(
            (Cell(f"{OURS} − {method}"), *(_difference(values[name]) for name in SCORES))
            for method, values in evaluation.differences.items()
        ),
    )
    return {
        "folds": f"{evaluation.n_splits} folds of the {len(evaluation.rows)} rows",
        "top_level": shorten(evaluation.levels[-1]),
        "n_bootstrap": evaluation.n_bootstrap,
        "scores": scores,
        "figures": figures,
        "differences": differences,
        "notes": [typeset(note) for note in evaluation.notes],
    }


def _score(estimate: Estimate, strong: bool) -> Cell:
    interval = f"{estimate.low:.2f}–{estimate.high:.2f}"
    return Cell(f"{estimate.value:.3f}", estimate.value, interval, strong)


def _difference(gap: Estimate) -> Cell:
    interval = f"{signed(gap.low)} to {signed(gap.high)}"
    return Cell(signed(gap.value), gap.value, interval, gap.low * gap.high > 0.0)


def calibration(evaluation: Evaluation) -> dict[str, Any]:
    """Reliability curves of the out-of-fold probabilities."""
    code = np.array([evaluation.classes.index(v) for v in evaluation.labels.tolist()])
    counts = np.bincount(code, minlength=len(evaluation.classes))
    shown = [1] if len(counts) == 2 else np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist()
    figures = []
    for k in sorted(shown):
        curves = [
            _reliability_curve(method, evaluation.out_of_fold[method][:, k], code == k)
            for method in (OURS, ALONE)
        ]
        label = f"Reliability curve of class {shorten(evaluation.classes[k])}"
        probabilities = evaluation.out_of_fold[OURS][:, k]
        drawing = reliability_chart(curves, probabilities, f"reliability-{k}", label)
        figures.append(Figure(f"Probability of “{shorten(evaluation.classes[k], 40)}”", drawing))
    errors = [f"{evaluation.scores[m]['calibration_error'].value:.3f} ({m})" for m in (OURS, ALONE)]
    return {
        "errors": " and ".join(errors),
        "figures": figures,
        "omitted": max(len(counts) - MOST_CLASSES, 0),
    }


def _reliability_curve(name: str, p: Array, hit: Array) -> ReliabilityCurve:
    """Mean prediction and observed frequency, with Wilson's interval, in bins of equal mass."""
    n_bins = int(np.clip(len(p) // ROWS_PER_BIN, 1, MOST_BINS))
    edges = np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    bin_of = np.searchsorted(edges, p, side="right")
    n = np.bincount(bin_of, minlength=n_bins)
    filled = n > 0  # rows with equal predictions are in the same bin
    n = n[filled]
    predicted = np.bincount(bin_of, p, n_bins)[filled] / n
    observed = np.bincount(bin_of, hit, n_bins)[filled] / n
    z = 1.96
    centre = (observed + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(observed * (1 - observed) / n + z**2 / (4 * n**2))
    low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
    return ReliabilityCurve(name, predicted, observed, low, high)
