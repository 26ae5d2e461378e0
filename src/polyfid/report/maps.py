"""Figures of the fitted model: how far levels can be trusted, and where a class is feasible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from polyfid.arrays import Array
from polyfid.plots import DiscrepancyDisplay, FeasibilityDisplay, TrustDisplay
from polyfid.report.figures import inline, new_figure, styled
from polyfid.report.page import (
    Block,
    Cell,
    Figure,
    Figures,
    Head,
    Section,
    Table,
    Text,
    shorten,
    shorten_all,
)
from polyfid.report.relevance import numbers
from polyfid.tables import LabelledTable, Recipe
from polyfid.tabular import TableModel

__all__ = ["feasibility", "trust"]

#: Classes that have a map of their own, the most frequent ones, and steps between levels that do.
MOST_MAPS, MOST_STEPS = 4, 3
#: Nodes of a map along a feature; None: as many as the displays think right.
RESOLUTION: int | None = None
_HEIGHTS = {1: 2.5, 2: 3.3}  # of a curve and of a map, in inches


def trust(model: TableModel, table: LabelledTable, order: Sequence[str]) -> Section:
    """How far each level can be trusted, and where it is wrong.

    ``order`` has the columns, the most relevant first; discrepancies are shown over two of them.
    """
    levels = shorten_all(model.classifier.levels_, 30)
    with styled("trust"):
        figure = new_figure(1.0)
        found = TrustDisplay.from_estimator(model.classifier, ax=_trust_axes(figure, model))
        drawing = inline(figure, "trust", "Links between levels and what each contributes")
    text = (
        "A level that says the same as the next more trusted one has a correlation of 1 with it, "
        "one that says nothing about it 0, one that says the opposite −1."
    )
    caption = (
        "rho is how far a level's function follows the one below. The bar shows by whose labels "
        "the function of the most trusted level is known: the share of its variance that they "
        "take away, the most trusted first."
    )
    blocks: list[Block] = [
        Text(text),
        _links(found),
        Figures((Figure("Links and contributions", drawing, caption=caption),)),
    ]
    if figures := _discrepancies(model, table, order):
        blocks.append(Figures(tuple(figures)))
    who = f"“{levels[0]}”" if len(levels) == 2 else "each level"
    return Section("trust", "Trust", f"How far to trust {who}, and where not", tuple(blocks))


def _trust_axes(figure: Any, model: TableModel) -> list[Any]:
    """Axes for rho, the correlation and the contributions."""
    n_models = len(model.classifier.classes_) if len(model.classifier.classes_) > 2 else 1
    n_links = n_models * (len(model.classifier.levels_) - 1)
    heights = [0.55 + 0.3 * n_links, 0.85 + 0.25 * n_models]
    figure.set_figheight(sum(heights))
    grid = figure.add_gridspec(2, 2, height_ratios=heights)
    return [figure.add_subplot(part) for part in (grid[0, 0], grid[0, 1], grid[1, :])]


def _links(found: TrustDisplay) -> Table:
    several = bool(found.classes)
    rows = []
    for k, steps in enumerate(found.links):
        for link in steps:
            rho = Cell(_signed(link.rho), link.rho, _span(link.rho_interval))
            same = Cell(
                _signed(link.correlation), link.correlation, _span(link.correlation_interval)
            )
            who = [Cell(shorten(found.classes[k], 40))] if several else []
            rows.append((Cell(shorten(link.upper)), Cell(shorten(link.lower)), *who, rho, same))
    heads = [Head("Level", words=True), Head("on the one below", words=True)]
    heads += [Head("Class", words=True)] if several else []
    heads += [Head("rho"), Head("Correlation")]
    return Table(
        "links", "Links between levels", tuple(heads), tuple(rows), "With 95\u00a0% intervals."
    )


def _discrepancies(model: TableModel, table: LabelledTable, order: Sequence[str]) -> list[Figure]:
    """Where neighbouring levels differ, the uppermost steps first."""
    x = numbers(model, table)
    chosen = _numeric(model.recipe, order)
    if not chosen and x.shape[1] < 2:
        return []
    flat = len(chosen) == 1
    where = _over(model.recipe, chosen)
    figures = []
    levels = model.classifier.levels_
    for step in range(len(levels) - 1, max(len(levels) - 1 - MOST_STEPS, 0), -1):
        lower, upper = shorten_all(levels[step - 1 : step + 1], 30)
        display = None
        for quantity, title, words in (
            (
                "probability",
                f"Where “{lower}” and “{upper}” differ",
                "Probability that the two differ",
            ),
            ("mean", f"What “{upper}” adds to “{lower}”", "Posterior mean of the correction delta"),
        ):
            name = f"{quantity}-{step}"
            with styled(name):
                figure = new_figure(_HEIGHTS[1 if flat else 2])
                ax = figure.subplots()
                if display is None:
                    display = DiscrepancyDisplay.from_estimator(
                        model.classifier,
                        x,
                        features=chosen or "pca",
                        lower=levels[step - 1],
                        upper=levels[step],
                        others=_typical(x, model.recipe),
                        grid_resolution=RESOLUTION,
                        show=quantity,
                        ax=ax,
                    )
                else:
                    display.plot(ax, show=quantity)
                drawing = inline(figure, name, title, map_=not flat)
            figures.append(Figure(title, drawing, caption=f"{words}{where}."))
    return figures


def feasibility(
    model: TableModel, table: LabelledTable, order: Sequence[str]
) -> tuple[Figure, ...]:
    """Maps of the classes over the first two numeric columns of an order, the others typical."""
    chosen = _numeric(model.recipe, order)
    if not chosen:
        return ()
    x = numbers(model, table)
    labels, classes = np.asarray(table.label), model.classifier.classes_
    often = sorted(range(len(classes)), key=lambda k: -np.sum(labels == classes[k]))
    shown = [1] if len(classes) == 2 else sorted(often[:MOST_MAPS])
    caption = f"At the most trusted level{_over(model.recipe, chosen)}."
    figures = []
    for k in shown:
        name, title = f"map-{k}", f"Probability of “{shorten(classes[k], 40)}”"
        with styled(name):
            figure = new_figure(_HEIGHTS[len(chosen)])
            FeasibilityDisplay.from_estimator(
                model.classifier,
                x,
                labels,
                table.fidelity,
                features=chosen,
                target=classes[k],
                others=_typical(x, model.recipe),
                grid_resolution=RESOLUTION,
                ax=figure.subplots(),
            )
            drawing = inline(figure, name, title, map_=len(chosen) == 2)
        figures.append(Figure(title, drawing, caption=caption))
    return tuple(figures)


def _numeric(recipe: Recipe, order: Sequence[str]) -> list[int]:
    """Places, among the numbers a recipe gives, of the first two columns of numbers."""
    numbers = {column.name for column in recipe.columns if column.categories is None}
    return [recipe.names.index(name) for name in order if name in numbers][:2]


def _over(recipe: Recipe, chosen: Sequence[int]) -> str:
    if not chosen:
        return ", at the rows along their first two principal components"
    short = shorten_all((recipe.names[j] for j in chosen), 30)
    names = " and ".join(f"“{name}”" for name in short)
    rest = len(recipe.columns) > len(chosen)
    return f", over {names}" + ("; other columns have typical values" if rest else "")


def _typical(rows: pd.DataFrame, recipe: Recipe) -> Array:
    """One row of numbers: medians, and of categories the most frequent one, which no mean is."""
    x = rows.to_numpy()
    row = np.median(x, axis=0)
    start = 0
    for column in recipe.columns:
        stop = start + len(column.names)
        if column.categories is not None:
            row[start:stop] = np.arange(stop - start) == np.argmax(x[:, start:stop].sum(axis=0))
        start = stop
    return np.asarray(row)


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _span(ends: tuple[float, float]) -> str:
    """An interval; nothing where it was not computed, as for very large fits."""
    return f"{_signed(ends[0])} to {_signed(ends[1])}" if ends[0] < ends[1] else ""
