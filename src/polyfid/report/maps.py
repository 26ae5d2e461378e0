"""Figures of the fitted model: how far levels can be trusted, and where a class is feasible."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyfid.plots import DiscrepancyDisplay, FeasibilityDisplay, TrustDisplay
from polyfid.plots.trust import trust_axes
from polyfid.report.charts import inline, new_figure
from polyfid.report.fitted_table import FittedTable
from polyfid.report.page import Cell, Figure, Head, Table, shorten, shorten_all, signed

#: Classes that have a map of their own, the most frequent ones, and steps between levels that do.
MOST_MAPS, MOST_STEPS = 4, 3
#: Nodes of a map along each of two features.
RESOLUTION = 50
#: Rows drawn along principal components.
MOST_POINTS = 300
_HEIGHTS = {0: 2.9, 1: 2.4, 2: 3.0}  # inches, by the number of columns of a map


def trust(fitted: FittedTable) -> dict[str, Any]:
    """How far each level can be trusted, and where it is wrong."""
    model = fitted.classifier
    figure = new_figure(1.0)
    n_models = len(model.classes_) if len(model.classes_) > 2 else 1
    axes = trust_axes(figure, n_models, len(model.levels_))
    display = TrustDisplay.from_estimator(model, ax=axes)
    levels = shorten_all(model.levels_, 30)
    has_maps = fitted.map_columns or fitted.x.shape[1] > 1
    return {
        "whom": f"“{levels[0]}”" if len(levels) == 2 else "each level",
        "links": _links(display),
        "overview": inline(figure, "trust", "Links between levels and what each contributes"),
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
    levels, columns, x = fitted.classifier.levels_, fitted.map_columns, fitted.x
    if not columns and len(x) > MOST_POINTS:
        x = x.iloc[np.linspace(0, len(x) - 1, MOST_POINTS).astype(int)]
    figures = []
    for step in range(len(levels) - 1, max(len(levels) - 1 - MOST_STEPS, 0), -1):
        lower, upper = shorten_all(levels[step - 1 : step + 1], 30)
        titles = f"Where “{lower}” and “{upper}” differ", f"What “{upper}” adds to “{lower}”"
        captions = "Probability that the two differ", "Posterior mean of the correction delta"
        drawn = [new_figure(_HEIGHTS[len(columns)]) for _ in titles]
        display = DiscrepancyDisplay.from_estimator(
            fitted.classifier,
            x,
            features=columns or "pca",
            lower=levels[step - 1],
            upper=levels[step],
            others=fitted.typical,
            grid_resolution=RESOLUTION if len(columns) == 2 else None,
            show="probability",
            ax=drawn[0].subplots(),
        )
        display.plot(drawn[1].subplots(), show="mean")
        for k, (title, caption) in enumerate(zip(titles, captions, strict=True)):
            drawing = inline(drawn[k], f"levels-{step}-{k}", title)
            figures.append(Figure(title, drawing, caption=f"{caption}{fitted.over}."))
    return figures


def feasibility(fitted: FittedTable) -> list[Figure]:
    """Maps of the classes over the most relevant columns of numbers."""
    if not fitted.map_columns:
        return []
    classes, columns = fitted.classifier.classes_, fitted.map_columns
    frequency = [-np.sum(fitted.table.label == label) for label in classes]
    shown = sorted(np.argsort(frequency, kind="stable")[:MOST_MAPS].tolist())
    figures = []
    for k in [1] if len(classes) == 2 else shown:
        title = f"Probability of “{shorten(classes[k], 40)}”"
        figure = new_figure(_HEIGHTS[len(columns)])
        FeasibilityDisplay.from_estimator(
            fitted.classifier,
            fitted.x,
            fitted.table.label,
            fitted.table.fidelity,
            features=columns,
            target=classes[k],
            others=fitted.typical,
            grid_resolution=RESOLUTION if len(columns) == 2 else None,
            ax=figure.subplots(),
        )
        drawing = inline(figure, f"map-{k}", title)
        figures.append(Figure(title, drawing, caption=f"At the most trusted level{fitted.over}."))
    return figures
