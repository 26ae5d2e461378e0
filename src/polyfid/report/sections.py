"""Sections of the page: the data, what an evaluation shows, and maps of the fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from polyfid.arrays import Array, Indices
from polyfid.evaluation import METHODS, SCORES, Estimate, Evaluation
from polyfid.evaluation.verdict import PRIMARY
from polyfid.model.calibration import bins
from polyfid.plots import DiscrepancyDisplay, FeasibilityDisplay, TrustDisplay
from polyfid.plots.trust import trust_axes
from polyfid.report import charts
from polyfid.report.fitted_table import FittedTable
from polyfid.report.page import Cell, Figure, Head, Table, shorten, shorten_all, signed, typeset
from polyfid.tables import LabelledTable

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
#: Most classes with a reliability curve, classes with a map, and steps between levels with maps.
MOST_CURVES, MOST_MAPS, MOST_STEPS = 6, 4, 3
#: Nodes of a map along each of two features, and rows drawn along principal components.
RESOLUTION, MOST_POINTS = 50, 300
_HEIGHTS = {0: 2.9, 1: 2.4, 2: 3.0}  # inches, by the number of columns of a map


def data(table: LabelledTable) -> dict[str, Any]:
    """How many labels of each class there are at each level."""
    by_class = table.counts()
    classes, counts = list(by_class.columns), by_class.to_numpy()
    levels, n_features = shorten_all(table.levels, 30), table.features.shape[1]
    shares = None
    if len(classes) <= len(charts.CLASS_COLOURS):
        names = shorten_all(table.levels, 120), shorten_all(classes, 120)
        shares = charts.shares_chart(*names, counts, "Shares of the classes at each level")
    return {
        "lead": f"{_count(len(table.label), 'label')} at {_count(len(levels), 'level')} "
        f"({', '.join(levels)}), {_count(n_features, 'feature')}.",
        "facts": [
            (f"{counts.sum():,}", "labels in all"),
            (f"{counts[-1].sum():,}", f"of them trusted (level “{levels[-1]}”)"),
            (f"{len(classes)}", "classes"),
            tuple(_count(n_features, "feature").split()),
        ],
        "levels": Table(
            [Head("Level"), Head("Labels"), *map(Head, shorten_all(classes, 30))],
            [
                [Cell(level), *(Cell(f"{n:,}", float(n)) for n in (row.sum(), *row))]
                for level, row in zip(levels, counts, strict=True)
            ],
        ),
        "shares": shares,
    }


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
    for name, score in SCORES.items():
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
    code, classes = evaluation.codes, evaluation.classes
    figures = []
    for k in _most_frequent(np.bincount(code, minlength=len(classes)), MOST_CURVES):
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


def _most_frequent(counts: Indices, most: int) -> list[int]:
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


def trust(fitted: FittedTable) -> dict[str, Any]:
    """How far each level can be trusted, and where it is wrong."""
    model = fitted.classifier
    figure = charts.new_figure(1.0)
    axes = trust_axes(figure, len(model._mixtures), len(model.levels_))
    display = TrustDisplay.from_estimator(model, ax=axes)
    levels = shorten_all(model.levels_, 30)
    has_maps = fitted.map_columns or fitted.x.shape[1] > 1
    label = "Links between levels and what each contributes"
    return {
        "whom": f"“{levels[0]}”" if len(levels) == 2 else "each level",
        "links": _links(display),
        "overview": charts.inline(figure, "trust", label),
        "maps": _discrepancies(fitted) if has_maps else [],
    }


def _links(display: TrustDisplay) -> Table:
    rows = []
    for k, links in enumerate(display.links):
        for link in links:
            names = [link.upper, link.lower, *display.classes[k : k + 1]]
            row = [Cell(shorten(name, 40)) for name in names]
            for quantity in ("rho", "correlation"):
                value, ends = getattr(link, quantity), getattr(link, f"{quantity}_interval")
                # Intervals of very large fits are not computed.
                span = " to ".join(signed(e, 2) for e in ends) if ends[0] < ends[1] else ""
                row.append(Cell(signed(value, 2), value, span))
            rows.append(row)
    words = ["Level", "on the one below", *["Class"][: len(display.classes)]]
    return Table([Head(word) for word in (*words, "rho", "Correlation")], rows)


def _discrepancies(fitted: FittedTable) -> list[Figure]:
    """Where neighbouring levels differ, the uppermost steps first."""
    levels, x = fitted.classifier.levels_, fitted.x
    if not fitted.map_columns and len(x) > MOST_POINTS:
        x = x.iloc[np.linspace(0, len(x) - 1, MOST_POINTS).astype(int)]
    figures = []
    for step in range(len(levels) - 1, max(len(levels) - 1 - MOST_STEPS, 0), -1):
        lower, upper = shorten_all(levels[step - 1 : step + 1], 30)
        titles = f"Where “{lower}” and “{upper}” differ", f"What “{upper}” adds to “{lower}”"
        captions = "Probability that the two differ", "Posterior mean of the correction delta"
        drawn = [charts.new_figure(_HEIGHTS[len(fitted.map_columns)]) for _ in titles]
        how = _map_settings(fitted) | {"lower": levels[step - 1], "upper": levels[step]}
        display = DiscrepancyDisplay.from_estimator(
            fitted.classifier, x, **how, show="probability", ax=drawn[0].subplots()
        )
        display.plot(drawn[1].subplots(), show="mean")
        for k, (title, caption) in enumerate(zip(titles, captions, strict=True)):
            drawing = charts.inline(drawn[k], f"levels-{step}-{k}", title)
            figures.append(Figure(title, drawing, caption=f"{caption}{fitted.over}."))
    return figures


def feasibility(fitted: FittedTable) -> list[Figure]:
    """Maps of the classes over the most relevant columns of numbers."""
    if not fitted.map_columns:
        return []
    model, table = fitted.classifier, fitted.table
    counts = np.array([np.sum(table.label == label) for label in model.classes_])
    figures = []
    for k in _most_frequent(counts, MOST_MAPS):
        title = f"Probability of “{shorten(model.classes_[k], 40)}”"
        figure = charts.new_figure(_HEIGHTS[len(fitted.map_columns)])
        how = _map_settings(fitted) | {"target": model.classes_[k], "ax": figure.subplots()}
        FeasibilityDisplay.from_estimator(model, fitted.x, table.label, table.fidelity, **how)
        drawing = charts.inline(figure, f"map-{k}", title)
        figures.append(Figure(title, drawing, caption=f"At the most trusted level{fitted.over}."))
    return figures


def _map_settings(fitted: FittedTable) -> dict[str, Any]:
    """Arguments of the displays, the same for all maps."""
    columns = fitted.map_columns
    resolution = RESOLUTION if len(columns) == 2 else None
    return {"features": columns or "pca", "others": fitted.typical, "grid_resolution": resolution}
