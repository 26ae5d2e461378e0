"""The small charts of the page: numbers in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.evaluation import Estimate
from polyfid.plots.style import GRID, MUTED, PAPER, label_all, legend_above
from polyfid.report.figures import ACCENT, TONE, add_tip, inline, new_figure

#: Colours of classes, the same on light and dark pages; more classes have no chart.
CLASS_COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7"),
    *("#56b4e9", "#d55e00", "#f0e442", "#8a8f98"),
)
_LIGHT_TEXT, _DARK_TEXT = "#fefefe", "#111111"  # on the first of them, and on the others
_LETTERS = 16  # of a name beside a chart
_QUARTERS = np.linspace(0.0, 1.0, 5)


@dataclass(frozen=True)
class ReliabilityCurve:
    """Predicted probability and observed frequency of groups of rows, with 95 % intervals."""

    name: str
    predicted: Array
    observed: Array
    low: Array
    high: Array


def estimates_chart(estimates: dict[str, Estimate], name: str, label: str) -> Markup:
    """Estimates with their intervals below each other; the first one stands out."""
    figure = new_figure(0.32 + 0.2 * len(estimates))
    ax = figure.subplots()
    _name_rows(ax, list(estimates))
    ax.get_yticklabels()[0].set_fontweight("bold")
    for i, (method, estimate) in enumerate(estimates.items()):
        first = i == 0
        text = f"{estimate.value:.3f}" if np.isfinite(estimate.value) else "–"
        weight = "bold" if first else "normal"
        beside = ax.get_yaxis_transform()
        ax.text(1.03, i, text, transform=beside, va="center", fontsize=7, fontweight=weight)
        if np.isfinite([estimate.value, estimate.low, estimate.high]).all():
            _draw_interval(ax, estimate, i, ACCENT if first else MUTED, first, method)
            if first:
                ax.axvline(estimate.value, color=ACCENT, lw=0.6, ls=":", zorder=1)
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.grid(axis="x", color=GRID, lw=0.6)
    return inline(figure, name, label)


def difference_chart(estimate: Estimate, label: str, sides: tuple[str, str]) -> Markup:
    """A difference on an axis with zero in the middle, and what either side means."""
    figure = new_figure(0.45)
    ax = figure.subplots()
    ax.set_axis_off()
    reach = 1.05 * max(abs(estimate.low), abs(estimate.high)) or 1.0
    ax.set(xlim=(-reach, reach), ylim=(-2.2, 1.0))
    ax.axhline(0.0, color=GRID, lw=0.8)
    ax.plot([0.0, 0.0], [-0.8, 0.8], color=MUTED, lw=0.8)
    _draw_interval(ax, estimate, 0.0, TONE, True, label)
    text: dict[str, Any] = {"va": "top", "color": MUTED, "fontsize": 8}
    ax.text(-reach, -1.1, f"← {sides[0]}", ha="left", **text)
    ax.text(reach, -1.1, f"{sides[1]} →", ha="right", **text)
    return inline(figure, "difference", label)


def reliability_chart(
    curves: Sequence[ReliabilityCurve], probabilities: Array, name: str, label: str
) -> Markup:
    """Observed frequency against predicted probability, and a histogram of the predictions.

    The first curve stands out. ``probabilities`` are its predictions.
    """
    figure = new_figure(3.2)
    ax, below = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
    ax.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls="--")
    entries = []
    for i, curve in reversed(list(enumerate(curves))):
        colour, style = (ACCENT, "-") if i == 0 else (MUTED, ":")
        props: dict[str, Any] = {"color": colour, "ms": 4, "mfc": colour if i == 0 else PAPER}
        ax.plot(curve.predicted, curve.observed, color=colour, ls=style, zorder=3)
        entries += ax.plot([], [], "o", ls=style, **props, label=curve.name)
        for p, o, low, high in zip(
            curve.predicted, curve.observed, curve.low, curve.high, strict=True
        ):
            if i == 0:
                ax.plot([p, p], [low, high], color=colour, lw=0.8)
            (dot,) = ax.plot(p, o, "o", **props, zorder=4)
            tip = f"predicted {p:.2f}, observed {o:.2f} ({low:.2f} to {high:.2f})"
            add_tip(dot, f"{curve.name}: {tip}")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed frequency")
    ax.set_yticks(_QUARTERS)
    ax.grid(color=GRID, lw=0.6)
    ax.tick_params(bottom=False)
    legend_above(ax, entries[::-1])
    counts, edges = np.histogram(probabilities, bins=20, range=(0.0, 1.0))
    bars = below.bar(edges[:-1], counts, 0.05, align="edge", color=ACCENT, ec=PAPER, lw=0.5)
    for bar, n, start in zip(bars, counts, edges, strict=False):
        add_tip(bar, f"{n} rows from {start:.2f} to {start + 0.05:.2f}")
    below.set(xlabel="predicted probability", ylabel="rows")
    below.set_xticks(_QUARTERS)
    below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    below.spines[["top", "right"]].set_visible(False)
    return inline(figure, name, label)


def shares_chart(
    levels: Sequence[str], classes: Sequence[str], counts: NDArray[np.intp], label: str
) -> Markup:
    """The classes of each level as parts of a bar, the most trusted level first."""
    figure = new_figure(0.4 + 0.24 * len(levels) + 0.17 * -(-len(classes) // 2))
    ax = figure.subplots()
    _name_rows(ax, levels[::-1])
    ax.spines[:].set_visible(False)
    shares = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[::-1]
    start = np.zeros(len(levels))
    for k, colour in zip(range(len(classes)), CLASS_COLOURS, strict=False):
        bars = ax.barh(range(len(levels)), shares[:, k], 0.8, start, color=colour, ec=PAPER)
        for i, (bar, share) in enumerate(zip(bars, shares[:, k], strict=True)):
            n = counts[::-1][i, k]
            add_tip(bar, f"{levels[::-1][i]}, {classes[k]}: {n} rows, {share:.0%}")
            if share > 0.14:
                middle = start[i] + share / 2
                props: dict[str, Any] = {
                    "color": _LIGHT_TEXT if k == 0 else _DARK_TEXT,
                    "fontsize": 7,
                }
                ax.text(middle, i, f"{share:.0%}", ha="center", va="center", **props)
        start += shares[:, k]
    ax.set(xlim=(0.0, 1.0), xticks=[])
    names = label_all(classes, 22)
    entries = [Patch(fc=c, label=n) for c, n in zip(CLASS_COLOURS, names, strict=False)]
    legend_above(ax, entries, ncols=3)
    return inline(figure, "shares", label)


def bars_chart(values: dict[str, float], label: str) -> Markup:
    """Positive values as bars from zero, with the values beside them."""
    figure = new_figure(0.12 + 0.19 * len(values))
    ax = figure.subplots()
    _name_rows(ax, list(values))
    bars = ax.barh(range(len(values)), list(values.values()), 0.7, color=ACCENT)
    for bar, (key, value) in zip(bars, values.items(), strict=True):
        add_tip(bar, f"{key}: {value:.3f}")
    ax.bar_label(bars, fmt="{:.3f}", padding=3, fontsize=7)
    ax.set(xlim=(0.0, 1.2 * max(values.values()) or 1.0), xticks=[])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return inline(figure, "relevance", label)


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Names beside the axes, the first at the top."""
    ax.set_yticks(range(len(names)), label_all(names, _LETTERS))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.spines[["left", "right", "top"]].set_visible(False)


def _draw_interval(
    ax: Axes, estimate: Estimate, y: float, colour: str, filled: bool, name: str
) -> None:
    """An estimate as a dot on its interval."""
    ax.plot([estimate.low, estimate.high], [y, y], color=colour, lw=1.6 if filled else 1.2)
    (dot,) = ax.plot(estimate.value, y, "o", ms=5, color=colour, mfc=colour if filled else PAPER)
    dot.set_zorder(3)
    add_tip(dot, f"{name}: {estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f})")
