"""Sections of the page: the data, what an evaluation shows, and who gave the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from polyfid.arrays import Array, Indices
from polyfid.evaluation import METHODS, SCORES, Estimate, Evaluation
from polyfid.evaluation.verdict import PRIMARY
from polyfid.model.calibration import bins
from polyfid.plots.style import CLASS_COLOURS
from polyfid.report import charts
from polyfid.report.page import (
    Cell,
    Download,
    Figure,
    Head,
    Table,
    clean,
    shorten,
    shorten_all,
    signed,
    typeset,
)
from polyfid.tables import LabelledTable
from polyfid.tables.labelled import NumberSummary

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
    "hurt": ("hurt", "The cheaper labels hurt"),
    "no clear difference": ("none", "No clear difference"),
    "too few trusted rows to tell": ("few", "Too few trusted rows to tell"),
}
#: Most classes with a reliability curve, and with a table of confusion.
MOST_CURVES, MOST_CONFUSED = 6, 12
#: Ends of the names of two columns that hold the interval of the column named before them.
_INTERVAL = "_low", "_high"


def data(table: LabelledTable) -> dict[str, Any]:
    """How many labels of each class there are at each level, and which numbers."""
    numbers, n_features = table.numbers(), table.features.shape[1]
    by_class = table.counts().drop(index=list(table.numeric_levels))
    classes, counts = list(by_class.columns), by_class.to_numpy()
    levels, labelled = shorten_all(table.levels, 30), shorten_all(by_class.index, 30)
    shares = None
    if len(classes) <= len(CLASS_COLOURS):
        names = shorten_all(by_class.index, 120), shorten_all(classes, 120)
        shares = charts.shares_chart(*names, counts, "Shares of the classes at each level")
    what = "label" if not numbers else "row"
    measured = [(f"{sum(own.rows for own in numbers):,}", "rows with numbers")] if numbers else []
    return {
        "lead": f"{_count(len(table.label), what)} at {_count(len(levels), 'level')} "
        f"({', '.join(levels)}), {_count(n_features, 'feature')}.",
        "facts": [
            *measured,
            (f"{counts.sum():,}", "labels in all"),
            (f"{counts[-1].sum():,}", f"of them trusted (level “{levels[-1]}”)"),
            (f"{len(classes)}", "classes"),
            tuple(_count(n_features, "feature").split()),
        ],
        "levels": Table(
            [Head("Level"), Head("Labels"), *map(Head, shorten_all(classes, 30))],
            [
                [Cell(level), *map(Cell.count, (row.sum(), *row))]
                for level, row in zip(labelled, counts, strict=True)
            ],
        ),
        "numbers": _numbers(numbers) if numbers else None,
        "shares": shares,
    }


def _numbers(numbers: Sequence[NumberSummary]) -> Table:
    """What is said at each level that has numbers."""
    rows = [
        [
            Cell.word(own.level),
            Cell.count(own.rows),
            *(Cell(f"{v:.4g}".replace("-", "−"), v) for v in (own.mean, own.sd, own.low, own.high)),
        ]
        for own in numbers
    ]
    return Table([Head(h) for h in ("Level", "Rows", "Mean", "sd", "From", "To")], rows)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def verdict(evaluation: Evaluation) -> dict[str, Any]:
    """Whether the cheaper labels help, with the difference that decides it."""
    judged = evaluation.judgement
    effect, badge = _EFFECTS[judged.effect]
    gap, score = evaluation.differences[ALONE][PRIMARY], SCORES[PRIMARY]
    words = f"{score.words}, {OURS} minus {ALONE}; 95\u00a0% interval {_span(gap)}"
    sides = ("worse", "better") if score.more_is_better else ("better", "worse")
    return {
        "effect": effect,
        "badge": badge,
        "sentence": typeset(judged.sentence),
        "more": [typeset(judged.rivals), typeset(judged.advice)],
        "caveats": [typeset(text) for text in judged.caveats],
        "value": signed(gap.value),
        "words": words,
        "drawing": charts.difference_chart(gap, f"{signed(gap.value)} {words}", sides),
    }


def _span(gap: Estimate) -> str:
    return f"{signed(gap.low)} to {signed(gap.high)}"


def comparison(evaluation: Evaluation) -> dict[str, Any]:
    """Scores of all methods and paired differences, as tables and as charts."""
    scores = [[Cell(method)] for method in evaluation.scores]
    differences = [[Cell(f"{OURS} − {method}")] for method in evaluation.differences]
    heads, figures = [], []
    for name in sorted(SCORES, key=lambda name: name != PRIMARY):  # what decides comes first
        score = SCORES[name]
        title = score.words[:1].upper() + score.words[1:]
        direction = "higher is better" if score.more_is_better else "lower is better"
        estimates = {method: values[name] for method, values in evaluation.scores.items()}
        label = ", ".join(f"{method} {e.value:.3f}" for method, e in estimates.items())
        drawing = charts.estimates_chart(estimates, f"score-{name}", f"{title}: {label}")
        heads.append(Head(title, direction))
        figures.append(Figure(title, drawing, note=direction))
        values = [e.value for e in estimates.values()]
        best = int((np.argmax if score.more_is_better else np.argmin)(values))
        for i, (row, e) in enumerate(zip(scores, estimates.values(), strict=True)):
            row.append(Cell(f"{e.value:.3f}", e.value, f"{e.low:.2f}–{e.high:.2f}", i == best))
        for row, by_score in zip(differences, evaluation.differences.values(), strict=True):
            gap = by_score[name]
            row.append(Cell(signed(gap.value), gap.value, _span(gap), gap.low * gap.high > 0.0))
    most = max(e.value for e in evaluation.accuracy.values())
    for row, e in zip(scores, evaluation.accuracy.values(), strict=True):
        ends = f"{e.low:.2f}–{e.high:.2f}"
        row.append(Cell(f"{e.value:.3f}", e.value, ends, e.value == most))
        row.append(Cell(_LEARNS_FROM[row[0].text]))
    return {
        "folds": f"{evaluation.n_splits} folds of the {len(evaluation.rows)} rows",
        "ways": "four" if "pooled" in evaluation.scores else "three",
        "top_level": shorten(evaluation.levels[-1]),
        "n_bootstrap": evaluation.n_bootstrap,
        "scores": Table(
            [Head("Method"), *heads, Head("Accuracy", "higher is better"), Head("Learns from")],
            scores,
        ),
        "figures": figures,
        "differences": Table([Head("Difference"), *heads], differences),
        "confusion": _confusion(evaluation),
        "agreement": _agreement(evaluation),
        "notes": [typeset(note) for note in evaluation.notes],
    }


def _confusion(evaluation: Evaluation) -> Table | None:
    """What the model predicts for the trusted rows of each class."""
    if len(evaluation.classes) > MOST_CONFUSED:
        return None
    names, counts = shorten_all(evaluation.classes, 30), evaluation.confusion
    return Table(
        [Head("Trusted label", "predicted as →"), *map(Head, names)],
        [
            [
                Cell(name),
                *(Cell(f"{n:,}", float(n), strong=j == k) for j, n in enumerate(row.tolist())),
            ]
            for k, (name, row) in enumerate(zip(names, counts, strict=True))
        ],
    )


def _agreement(evaluation: Evaluation) -> Table | None:
    """How often each level gives the trusted label, where a point has both."""
    if not evaluation.agreement:
        return None
    return Table(
        [Head("Level"), Head("Points with both"), Head("Same label")],
        [
            [Cell.word(one.level), Cell.count(one.points), Cell.share(one.share)]
            for one in evaluation.agreement
        ],
    )


def annotators(frame: pd.DataFrame) -> Table:
    """Any table about the people who gave labels, one row each; the first column names them.

    Columns ``x_low`` and ``x_high`` are the interval of column ``x``, and are shown beside it.
    """
    names = [str(name) for name in frame.columns]
    folded = {name for name in names if all(name + end in names for end in _INTERVAL)}
    hidden = {name + end for name in folded for end in _INTERVAL}
    columns = {name: frame.iloc[:, names.index(name)].tolist() for name in names}
    shown = [name for name in names if name not in hidden]
    cells = []
    for name in shown:
        ends = [columns[name + end] for end in _INTERVAL] if name in folded else []
        spreads = zip(*ends, strict=True) if ends else [()] * len(frame)
        cells.append(
            [
                _any_cell(value, *spread) if name != shown[0] else Cell.word(value)
                for value, spread in zip(columns[name], spreads, strict=True)
            ]
        )
    heads = [Head(clean(name.replace("_", " ")), whole=clean(name)) for name in shown]
    rows = list(zip(*cells, strict=True))
    return Table(heads, rows, Download.of(frame, "annotators.csv"))


def _any_cell(value: Any, *ends: Any) -> Cell:
    """A value of any kind, with the ends of its interval where there are some."""
    if value is None or value != value:
        return Cell("")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell.word(value)
    if isinstance(value, int):
        return Cell.count(value)
    spread = "–".join(f"{end:.2f}" for end in ends if end == end)
    return Cell(f"{value:.2f}".replace("-", "−"), value, spread.replace("-", "−"))


def calibration(evaluation: Evaluation) -> dict[str, Any]:
    """Reliability curves of the out-of-fold probabilities."""
    code, classes = evaluation.codes, evaluation.classes
    figures = []
    for k in most_frequent(np.bincount(code, minlength=len(classes)), MOST_CURVES):
        predicted = {method: evaluation.out_of_fold[method][:, k] for method in (OURS, ALONE)}
        curves = {method: _reliability_curve(p, code == k) for method, p in predicted.items()}
        label = f"Reliability curve of class {shorten(classes[k])}"
        drawing = charts.reliability_chart(curves, predicted[OURS], f"reliability-{k}", label)
        figures.append(Figure(f"Probability of “{shorten(classes[k], 40)}”", drawing))
    errors = [f"{evaluation.scores[m]['calibration_error'].value:.3f} ({m})" for m in (OURS, ALONE)]
    return {
        "errors": " and ".join(errors),
        "figures": figures,
        "omitted": max(len(classes) - MOST_CURVES, 0),
    }


def most_frequent(counts: Indices, most: int) -> list[int]:
    """The classes to show, in their order: of two the second, which says all."""
    return [1] if len(counts) == 2 else sorted(np.argsort(-counts, kind="stable")[:most].tolist())


def _reliability_curve(p: Array, hit: Array) -> Array:
    """Mean prediction, observed frequency and its 95 % interval (Wilson), in bins of equal mass."""
    bin_of = bins(p)
    curve = []
    for members in (bin_of == k for k in np.unique(bin_of)):
        tested = binomtest(int(hit[members].sum()), int(members.sum()))
        interval = tested.proportion_ci(0.95, method="wilson")
        curve.append((p[members].mean(), tested.statistic, interval.low, interval.high))
    return np.array(curve)
