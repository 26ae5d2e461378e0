"""Figures of the three groups: means beside the paper's, differences from it, profiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from polyfid.experiments.figures.style import (
    COLOURS,
    DASHES,
    FIELD,
    GRID,
    INK,
    MARKERS,
    MUTED,
    grid_of,
    legend_below,
)
from polyfid.experiments.paper import CLOSE, Column, Method
from polyfid.experiments.results import Results

#: Methods that may lie far below the rest: they do not widen an axis.
_FAR = {("majority", "trusted"), ("hetmogp", "published")}


def colour(method: Method) -> str:
    """The colour of the family; grey for an unknown one."""
    return COLOURS.get(method.name, MUTED)


def dots(results: Results, group: str, noise: float | None = None) -> Figure | None:
    """ROC AUC of every method in a panel for each column, ours and the paper's."""
    columns = [c for c in results.columns if c.group == group and noise in (None, c.noise)]
    methods = [m for m in results.methods if m.name != "majority"]
    means = results.means("roc_auc")
    methods = [m for m in methods if any(_known(results, c, m) for c in columns)]
    if not columns or not methods:
        return None
    # A line of panels for each noise, as far as that is a line.
    n_columns = min(4, max(Counter(column.noise for column in columns).values()))
    n_rows = math.ceil(len(columns) / n_columns)
    height = n_rows * (0.165 * len(methods) + 0.55) + 0.35
    figure, axes = grid_of(n_rows, n_columns, height, sharey=True)
    beyond = False
    for ax, column in zip(axes, columns, strict=False):
        title = str(column) if noise is None else column.label
        beyond |= _dots_of(ax, results, column, methods, title)
    for ax in axes[len(columns) :]:
        ax.set_axis_off()
    axes[0].set_yticks(range(len(methods)), [m.label for m in methods])
    axes[0].set_ylim(len(methods) - 0.4, -0.6)
    for ax in axes[: len(columns)][-n_columns:]:
        ax.set_xlabel("ROC AUC")
    bars = any(math.isfinite(m.half) for c in columns for m in means[c].values())
    handles = [
        Line2D([], [], marker="o", ls="-" if bars else "", color=MUTED, markersize=4),
        Line2D([], [], marker="D", ls="", color=INK, mfc="none", markersize=4.5, mew=0.8),
        Line2D([], [], lw=6, color=GRID),
    ]
    labels = ["ours, 95 % interval" if bars else "ours", "the paper", f"within {CLOSE} of our best"]
    if beyond:
        handles.append(Line2D([], [], marker="<", ls="", color=MUTED, markersize=4))
        labels.append("further left")
    legend_below(figure, handles, labels, 4)
    return figure


def _known(results: Results, column: Column, method: Method) -> bool:
    mean = results.means("roc_auc")[column].get(method.key)
    return mean is not None and mean.n > 0


def _dots_of(
    ax: Axes, results: Results, column: Column, methods: Sequence[Method], title: str
) -> bool:
    """Whether a method is further left than the panel reaches."""
    means = results.means("roc_auc")[column]
    ours = {m.key: means[m.key].mean for m in methods if _known(results, column, m)}
    theirs = {m.key: results.paper(column, m.key) for m in methods}
    low, high = _range(results, column, methods)
    if ours:
        best = max(ours.values())
        ax.axvspan(best - CLOSE, best, color=GRID, alpha=0.55, lw=0, zorder=0)
    style: dict[str, Any] = {"zorder": 3, "clip_on": False}
    at = np.arange(len(methods))
    mean = np.array([ours.get(m.key, math.nan) for m in methods])
    paper = np.array([theirs[m.key] for m in methods])
    size = np.where([m.name == "polyfid" for m in methods], 25, 16)
    shade = np.array([colour(m) for m in methods])
    here = paper >= low
    ax.scatter(paper[here], at[here], s=18, marker="D", fc="none", ec=INK, lw=0.7, **style)
    for marker, some in (("o", mean >= low), ("<", mean < low)):
        x = np.maximum(mean[some], low)
        ax.scatter(x, at[some], s=size[some], marker=marker, c=shade[some], lw=0, **style)
    for y, method in enumerate(methods):
        value = ours.get(method.key, math.nan)
        if value >= low and math.isfinite(half := means[method.key].half):
            ends = max(value - half, low), min(value + half, high)
            ax.hlines(y, *ends, color=colour(method), lw=1.3, zorder=2)
    ax.set_xlim(low, high)
    ax.set_title(title)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10], min_n_ticks=2))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return bool((mean < low).any())


def _range(results: Results, column: Column, methods: Sequence[Method]) -> tuple[float, float]:
    """What an axis shows: the figures of all methods but the far ones, and their intervals."""
    near = [m for m in methods if m.key not in _FAR] or list(methods)
    means = [results.means("roc_auc")[column][m.key] for m in near if _known(results, column, m)]
    figures = [m.mean for m in means] + [results.paper(column, m.key) for m in near]
    figures = [x for x in figures if math.isfinite(x)]
    low, high = min(figures), max(figures)
    # An interval of two values may be wider than all the rest: it is cut then.
    room = 0.5 * (high - low)
    ends = [x for m in means if math.isfinite(m.half) for x in (m.mean - m.half, m.mean + m.half)]
    bottom, top = max(min([*ends, low]), low - room), min(max([*ends, high]), high + room)
    margin = max(0.05 * (top - bottom), 0.002)
    return bottom - margin, min(top + margin, 1.002)


def agreement(results: Results) -> Figure | None:
    """Our ROC AUC less the paper's, for every cell that both have."""
    cells = [
        (column, method, results.means("roc_auc")[column][method.key], paper)
        for column in results.columns
        for method in results.methods
        if _known(results, column, method)
        and math.isfinite(paper := results.paper(column, method.key))
    ]
    if not cells:
        return None
    groups = list(dict.fromkeys(column.group for column, *_ in cells))
    figure, axes = grid_of(1, len(groups), 3.0, sharey=True)
    shapes = {"trusted": "o", "concatenated": "s", "stacked": "^"}
    for ax, group in zip(axes, groups, strict=True):
        ax.axhline(0, color=INK, lw=0.8)
        own = [cell for cell in cells if cell[0].group == group]
        for method in dict.fromkeys(method for _, method, *_ in own):
            there = [(paper, m.mean - paper, m.half) for _, by, m, paper in own if by == method]
            x, y, half = np.array(there).T
            shade = colour(method)
            ax.vlines(x, y - half, y + half, color=shade, lw=0.8, alpha=0.45, zorder=1)
            marker = shapes.get(method.mode, "D")
            ax.scatter(x, y, 20, marker=marker, color=shade, ec=FIELD, lw=0.4, zorder=2)
        ax.set_title(group)
        ax.set_xlabel("the paper's ROC AUC")
    axes[0].set_ylabel("ours less the paper's")
    # An interval from two values may reach far beyond all figures: it is cut then.
    gaps = np.abs([mean.mean - paper for *_, mean, paper in cells])
    ends = gaps + np.nan_to_num([mean.half for *_, mean, _ in cells])
    limit = 1.05 * max(min(ends.max(), 2.0 * gaps.max()), 0.01)
    axes[0].set_ylim(-limit, limit)
    families = list(dict.fromkeys(method.name for _, method, *_ in cells))
    names = ["MF gpc" if name == "mfgpc" else name for name in families]
    handles = [Line2D([], [], lw=4, color=COLOURS.get(name, MUTED)) for name in families]
    marks = {"o": "trusted only", "s": "concatenated", "^": "stacked", "D": "other"}
    handles += [Line2D([], [], ls="", marker=mark, color=MUTED) for mark in marks]
    legend_below(figure, handles, [*names, *marks.values()], 5, handlelength=1.6)
    return figure


#: Panels of the profiles: title, group, noise, column.
_PANELS: tuple[tuple[str, str, float | None, str], ...] = (
    ("artificial, noise 0.2", "artificial", 0.2, ""),
    ("artificial, noise 0.4", "artificial", 0.4, ""),
    ("music genre", "crowd", None, "music_genre"),
    ("PMLB, noise 0.2", "pmlb", 0.2, ""),
    ("PMLB, noise 0.4", "pmlb", 0.4, ""),
    ("sentiment polarity", "crowd", None, "sentiment_polarity"),
)


def profiles(results: Results) -> Figure | None:
    """Share of tests with a ROC AUC above a threshold, in the paper's line styles."""
    panels = []
    for title, group, noise, column in _PANELS:
        rows = results.of(group)
        chosen = rows[rows["noise"].eq(noise) if noise else rows["column"].eq(column)]
        if len(chosen):
            panels.append((title, chosen))
    if not panels:
        return None
    n_columns = min(3, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    figure, axes = grid_of(n_rows, n_columns, 2.25 * n_rows + 1.0, sharey=True)
    lines: dict[Method, Line2D] = {}
    for i, (ax, (title, rows)) in enumerate(zip(axes, panels, strict=False)):
        far = [key in _FAR for key in zip(rows["method"], rows["mode"], strict=True)]
        shown = rows["roc_auc"] if all(far) else rows.loc[~np.array(far), "roc_auc"]
        low, high = np.floor(shown.min() * 20) / 20, np.ceil(shown.max() * 20) / 20
        high = max(high, low + 0.05)
        grid = np.linspace(low, high, 301)
        n_tests = 0
        for k, method in enumerate(results.methods):
            own = rows[(rows["method"] == method.name) & (rows["mode"] == method.mode)]
            if own.empty:
                continue
            n_tests = max(n_tests, len(own))
            values = np.sort(own["roc_auc"].to_numpy())
            share = 1.0 - np.searchsorted(values, grid, side="right") / len(values)
            (line,) = ax.plot(grid, share, **_line_style(method, k))
            lines.setdefault(method, line)
        tests = f"{n_tests} test" + "s" * (n_tests != 1)
        ax.set_title(f"{title} ({tests})")
        ax.set(xlim=(low, high), ylim=(-0.02, 1.03))
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        if i + n_columns >= len(panels):
            ax.set_xlabel("threshold")
        if i % n_columns == 0:
            ax.set_ylabel("share of tests above")
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    ordered = [method for method in results.methods if method in lines]
    legend_below(figure, [lines[m] for m in ordered], [m.label for m in ordered], 5)
    return figure


def _line_style(method: Method, k: int) -> dict[str, Any]:
    strong = method.name == "polyfid"
    return {
        "color": colour(method),
        "ls": "-" if method.name == "majority" else DASHES.get(method.mode, "-"),
        "lw": 2.6 if strong else 1.6 if method.name == "mfgpc" else 1.1,
        "marker": MARKERS.get(method.name, ""),
        "markevery": (11 * k % 60, 60),  # apart from those of the other lines
        "ms": 3.2,
        "mfc": FIELD if method.mode == "tuned" else colour(method),
        "zorder": 4 if strong else 3 if method.name == "mfgpc" else 2,
    }
