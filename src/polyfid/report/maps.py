"""Maps of the fitted model: how far to trust the levels, where they differ, where classes are."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyfid.plots import DiscrepancyDisplay, FeasibilityDisplay, TrustDisplay
from polyfid.plots.trust import trust_axes
from polyfid.report import charts
from polyfid.report.fitted_table import FittedTable
from polyfid.report.page import Cell, Figure, Head, Table, shorten, shorten_all, signed, typeset
from polyfid.report.sections import most_frequent
from polyfid.text import percent

#: Most classes with a map, and steps between levels with maps.
MOST_MAPS, MOST_STEPS = 4, 3
#: Nodes of a map along each of two features, and rows drawn along principal components.
RESOLUTION, MOST_POINTS = 50, 300
_HEIGHTS = {0: 2.9, 1: 2.4, 2: 3.0}  # inches, by the number of columns of a map
#: A correlation whose interval reaches beyond this on both sides is hardly known.
_UNKNOWN = 0.8
#: A map of probabilities that differ by less shows nothing.
_FLAT = 0.1


def trust(fitted: FittedTable) -> dict[str, Any]:
    """How far each level can be trusted, and where it is wrong."""
    model = fitted.classifier
    figure = charts.new_figure(1.0)
    axes = trust_axes(figure, len(model._mixtures), len(model.levels_))
    display = TrustDisplay.from_estimator(model, ax=axes)
    levels = shorten_all(model.levels_, 30)
    has_maps = fitted.map_columns or fitted.x.shape[1] > 1
    label = "Links between levels and what each contributes"
    maps, sentences = _discrepancies(fitted) if has_maps else ([], [])
    return {
        "whom": f"“{levels[0]}”" if len(levels) == 2 else "each level",
        "links": _links(display),
        "caveats": _caveats(display),
        "overview": charts.inline(figure, "trust", label),
        "maps": maps,
        "sentences": list(map(typeset, sentences)),
    }


def _caveats(display: TrustDisplay) -> list[str]:
    """Links between levels of which next to nothing is known."""
    caveats = []
    for steps in zip(*display.links, strict=True):
        ends = [link.correlation_interval for link in steps]
        unknown = [(low, high) for low, high in ends if min(-low, high) > _UNKNOWN]
        if unknown:
            names = " and ".join(f"“{shorten(n, 30)}”" for n in (steps[0].lower, steps[0].upper))
            low, high = unknown[0]
            of = " of some classes" if len(ends) > 1 else ""
            caveats.append(
                f"The link between {names} is hardly known: their correlation{of} may be anything "
                f"from {signed(low, 2)} to {signed(high, 2)}."
            )
    return caveats


def _links(display: TrustDisplay) -> Table:
    rows = []
    for k, links in enumerate(display.links):
        for link in links:
            row = [Cell(f"{shorten(link.upper, 30)} on {shorten(link.lower, 30)}")]
            row += map(Cell.word, display.classes[k : k + 1])
            for quantity in ("rho", "correlation"):
                value, ends = getattr(link, quantity), getattr(link, f"{quantity}_interval")
                # Intervals of very large fits are not computed.
                span = " to ".join(signed(e, 2) for e in ends) if ends[0] < ends[1] else ""
                row.append(Cell(signed(value, 2), value, span))
            rows.append(row)
    words = ["Link", *["Class"][: len(display.classes)]]
    return Table([Head(word) for word in (*words, "rho", "Correlation")], rows)


def _discrepancies(fitted: FittedTable) -> tuple[list[Figure], list[str]]:
    """Where neighbouring levels differ, the uppermost steps first; a sentence where nothing is."""
    levels, x = fitted.classifier.levels_, fitted.x
    if not fitted.map_columns and len(x) > MOST_POINTS:
        x = x.iloc[np.linspace(0, len(x) - 1, MOST_POINTS).astype(int)]
    figures, sentences = [], []
    for step in range(len(levels) - 1, max(len(levels) - 1 - MOST_STEPS, 0), -1):
        lower, upper = (f"“{name}”" for name in shorten_all(levels[step - 1 : step + 1], 30))
        drawn = [charts.new_figure(_HEIGHTS[len(fitted.map_columns)]) for _ in range(2)]
        how = _map_settings(fitted) | {"lower": levels[step - 1], "upper": levels[step]}
        display = DiscrepancyDisplay.from_estimator(
            fitted.classifier, x, **how, show="mean", ax=drawn[1].subplots()
        )
        title = f"Where {lower} and {upper} differ"
        if not display.is_numeric and display.differs_somewhere:
            display.plot(drawn[0].subplots(), show="probability")
            drawing = charts.inline(drawn[0], f"levels-{step}-0", title)
            caption = f"Probability that the two differ{fitted.over}."
            figures.append(Figure(title, drawing, caption=caption))
        title = f"What {upper} adds to {lower}"
        if display.corrects_somewhere:
            drawing = charts.inline(drawn[1], f"levels-{step}-1", title)
            caption = f"Posterior mean of the correction delta{fitted.over}."
            figures.append(Figure(title, drawing, caption=caption))
        if not display.is_numeric and not display.differs_somewhere:
            most = float(display.probability.max())
            below = "1 %" if most < 0.01 else percent(np.ceil(100.0 * most) / 100.0)
            sentences.append(
                f"No place was found where {lower} and {upper} differ{fitted.over}: the "
                f"probability that they do is at most {below}."
            )
        if not display.corrects_somewhere:
            sentences.append(
                f"What {upper} adds to {lower} may be nothing, everywhere (95 % interval)."
            )
    return figures, sentences


def feasibility(fitted: FittedTable) -> tuple[list[Figure], list[str]]:
    """Maps of the classes over the most relevant columns, or a sentence where all is open."""
    if not fitted.map_columns:
        return [], []
    model, table = fitted.classifier, fitted.table
    counts = np.array([np.sum(table.label == label) for label in model.classes_])
    figures, sentences = [], []
    for k in most_frequent(counts, MOST_MAPS):
        name = f"“{shorten(model.classes_[k], 40)}”"
        title = f"Probability of {name}"
        figure = charts.new_figure(_HEIGHTS[len(fitted.map_columns)])
        how = _map_settings(fitted) | {"target": model.classes_[k], "ax": figure.subplots()}
        display = FeasibilityDisplay.from_estimator(
            model, fitted.x, table.label, table.fidelity, **how
        )
        low, high = float(display.probability.min()), float(display.probability.max())
        if not display.is_clear_somewhere:
            sentences.append(
                f"Whether a row is {name} is open everywhere{fitted.over}. Its probability goes "
                f"from {low:.2f} to {high:.2f} there, and nowhere does its 95\u00a0% interval "
                "leave one half out."
            )
        elif high - low < _FLAT:
            sentences.append(
                f"The probability of {name} hardly changes{fitted.over}. It goes from {low:.2f} to "
                f"{high:.2f} there."
            )
        else:
            drawing = charts.inline(figure, f"map-{k}", title)
            caption = f"At the most trusted level{fitted.over}."
            figures.append(Figure(title, drawing, caption=caption))
    return figures, sentences


def _map_settings(fitted: FittedTable) -> dict[str, Any]:
    """Arguments of the displays, the same for all maps."""
    columns = fitted.map_columns
    resolution = RESOLUTION if len(columns) == 2 else None
    return {"features": columns or "pca", "others": fitted.typical, "grid_resolution": resolution}
