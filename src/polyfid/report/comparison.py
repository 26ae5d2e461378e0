"""What an evaluation shows: the verdict, the comparison with baselines, and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from polyfid.arrays import Array
from polyfid.evaluation import METHODS, SCORES, Estimate, Evaluation
from polyfid.report.charts import difference_chart, estimates_chart, reliability_chart
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
    words = f"{score.words}, {OURS} minus {ALONE}; 95\u00a0% interval {_span(gap)}"
    sides = ("worse", "better") if score.more_is_better else ("better", "worse")
    return {
        "effect": effect,
        "badge": badge,
        "sentence": typeset(evaluation.sentence),
        "value": signed(gap.value),
        "words": words,
        "drawing": difference_chart(gap, f"{signed(gap.value)} {words}", sides),
    }


def _span(gap: Estimate) -> str:
    return f"{signed(gap.low)} to {signed(gap.high)}"


def comparison(evaluation: Evaluation) -> dict[str, Any]:
    """Scores of all methods and paired differences, as tables and as charts."""
    scores = [[Cell(method)] for method in evaluation.scores]
    differences = [[Cell(f"{OURS} − {method}")] for method in evaluation.differences]
    heads, figures = [], []
    for name, score in SCORES.items():
        title = score.words[:1].upper() + score.words[1:]
        direction = "higher is better" if score.more_is_better else "lower is better"
        estimates = {method: values[name] for method, values in evaluation.scores.items()}
        label = ", ".join(f"{method} {e.value:.3f}" for method, e in estimates.items())
        drawing = estimates_chart(estimates, f"score-{name}", f"{title}: {label}")
        heads.append(Head(title, direction))
        figures.append(Figure(title, drawing, note=direction))
        values = [e.value for e in estimates.values()]
        best = int((np.argmax if score.more_is_better else np.argmin)(values))
        for i, (row, e) in enumerate(zip(scores, estimates.values(), strict=True)):
            row.append(Cell(f"{e.value:.3f}", e.value, f"{e.low:.2f}–{e.high:.2f}", i == best))
        for row, by_score in zip(differences, evaluation.differences.values(), strict=True):
            gap = by_score[name]
            clear = gap.low * gap.high > 0.0
            row.append(Cell(signed(gap.value), gap.value, _span(gap), clear))
    for row in scores:
        row.append(Cell(_LEARNS_FROM[row[0].text]))
    return {
        "folds": f"{evaluation.n_splits} folds of the {len(evaluation.rows)} rows",
        "top_level": shorten(evaluation.levels[-1]),
        "n_bootstrap": evaluation.n_bootstrap,
        "scores": Table([Head("Method"), *heads, Head("Learns from")], scores),
        "figures": figures,
        "differences": Table([Head("Difference"), *heads], differences),
        "notes": [typeset(note) for note in evaluation.notes],
    }


def calibration(evaluation: Evaluation) -> dict[str, Any]:
    """Reliability curves of the out-of-fold probabilities."""
    code = np.array([evaluation.classes.index(v) for v in evaluation.labels.tolist()])
    counts = np.bincount(code, minlength=len(evaluation.classes))
    shown = [1] if len(counts) == 2 else np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist()
    figures = []
    for k in sorted(shown):
        predicted = {method: evaluation.out_of_fold[method][:, k] for method in (OURS, ALONE)}
        curves = {method: _reliability_curve(p, code == k) for method, p in predicted.items()}
        label = f"Reliability curve of class {shorten(evaluation.classes[k])}"
        drawing = reliability_chart(curves, predicted[OURS], f"reliability-{k}", label)
        figures.append(Figure(f"Probability of “{shorten(evaluation.classes[k], 40)}”", drawing))
    errors = [f"{evaluation.scores[m]['calibration_error'].value:.3f} ({m})" for m in (OURS, ALONE)]
    return {
        "errors": " and ".join(errors),
        "figures": figures,
        "omitted": max(len(counts) - MOST_CLASSES, 0),
    }


def _reliability_curve(p: Array, hit: Array) -> Array:
    """Mean prediction, observed frequency and its 95 % interval (Wilson), in bins of equal mass."""
    n_bins = int(np.clip(len(p) // ROWS_PER_BIN, 1, MOST_BINS))
    edges = np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    bin_of = np.searchsorted(edges, p, side="right")
    curve = []
    for members in (bin_of == k for k in np.unique(bin_of)):
        tested = binomtest(int(hit[members].sum()), int(members.sum()))
        interval = tested.proportion_ci(0.95, method="wilson")
        curve.append((p[members].mean(), tested.statistic, interval.low, interval.high))
    return np.array(curve)
