"""The charts: means beside the paper's, differences from it, profiles, and the further studies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from experiments.paper import CLOSE, OURS, SCHEMES, THEIRS, Column, Method, label, published
from experiments.results import Mean, Results

# Colours that a page replaces by those of its light or dark scheme, as page.mplstyle has.
INK, MUTED, GRID, FIELD = "#1b1b1f", "#6a6d75", "#d8dade", "#fefefe"
RED = "#cf222e"

#: By family, after Okabe and Ito: safe for the colour-blind, on white and on black.
COLOURS = {
    "polyfid": "#8b3fd9",
    "mfgpc": INK,
    "gpc": "#d55e00",
    "logit": "#009e73",
    "xgb": "#1f83c4",
    "hetmogp": "#dd9700",
    "gp-ma": "#d166a0",
    "majority": "#8a8f98",
}
#: By mode, as in the paper.
DASHES = {"trusted": ":", "concatenated": "-.", "stacked": "--"}
#: By family, so that lines of one mode differ in black and white too.
MARKERS = {"gpc": "o", "logit": "s", "xgb": "^", "hetmogp": "D", "gp-ma": "v"}

WIDTH = 7.2  # inches; the full width of a column of text

#: Methods that may lie far below the rest and do not widen an axis.
_FAR = {("majority", "trusted"), ("hetmogp", "published")}


def colour(method: Method) -> str:
    """The colour of the family; grey for an unknown one."""
    return COLOURS.get(method[0], MUTED)


def grid_of(n_rows: int, n_columns: int, height: float, **how: Any) -> tuple[Figure, list[Axes]]:
    """A figure of full width and its panels, row by row."""
    figure = Figure(figsize=(WIDTH, height))
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False, **how).ravel())


def legend_below(
    figure: Figure, handles: Mapping[str, Artist], n: int, *, handlelength: float = 3.2
) -> None:
    """A legend below all panels, in ``n`` columns."""
    how: Any = {"loc": "outside lower center", "ncols": n, "handlelength": handlelength}
    how |= {"columnspacing": 1.6, "labelspacing": 0.35}
    figure.legend(list(handles.values()), list(handles), **how)


def dots(results: Results, group: str, noise: float | None = None) -> Figure | None:
    """ROC AUC of every method, ours and the paper's; one panel per column."""
    columns = [c for c in results.columns if c.group == group and noise in (None, c.noise)]
    means = {c: {m: v for m, v in results.means("roc_auc")[c].items() if v.n} for c in columns}
    methods = [m for m in results.methods if m[0] != "majority"]
    methods = [m for m in methods if any(m in means[c] for c in columns)]
    if not methods:
        return None
    # One line of panels per noise, as far as they fit.
    n_columns = min(4, max(Counter(column.noise for column in columns).values()))
    n_rows = math.ceil(len(columns) / n_columns)
    height = n_rows * (0.165 * len(methods) + 0.55) + 0.35
    figure, axes = grid_of(n_rows, n_columns, height, sharey=True)
    clipped = False
    for ax, column in zip(axes, columns, strict=False):
        clipped |= _dots(ax, column, means[column], methods)
        ax.set_title(str(column) if noise is None else column.label)
    for ax in axes[len(columns) :]:
        ax.set_axis_off()
    axes[0].set_yticks(range(len(methods)), [label(m) for m in methods])
    axes[0].set_ylim(len(methods) - 0.4, -0.6)
    for ax in axes[: len(columns)][-n_columns:]:
        ax.set_xlabel("ROC AUC")
    bars = any(math.isfinite(mean.half) for some in means.values() for mean in some.values())
    ours, ls = ("ours, 95 % interval", "-") if bars else ("ours", "")
    handles = {
        ours: Line2D([], [], marker="o", ls=ls, color=MUTED, markersize=4),
        "the paper": Line2D([], [], marker="D", ls="", color=INK, mfc="none", ms=4.5, mew=0.8),
        f"within {CLOSE} of our best": Line2D([], [], lw=6, color=GRID),
    }
    if clipped:
        handles["further left"] = Line2D([], [], marker="<", ls="", color=MUTED, markersize=4)
    legend_below(figure, handles, 4)
    return figure


def _dots(ax: Axes, column: Column, means: dict[Method, Mean], methods: Sequence[Method]) -> bool:
    """Draw a panel; whether a method is further left than the panel reaches."""
    shown = [means.get(m, Mean()) for m in methods]
    ours, half = np.array([(mean.mean, mean.half) for mean in shown]).T
    theirs = np.array([published(column, m) for m in methods])
    near = np.array([m not in _FAR for m in methods])
    near = near if near.any() else ~near
    low, high = _range(ours[near], theirs[near], half[near])
    best = np.nanmax(ours)
    ax.axvspan(best - CLOSE, best, color=GRID, alpha=0.55, lw=0, zorder=0)
    style: dict[str, Any] = {"zorder": 3, "clip_on": False}
    at = np.arange(len(methods))
    size = np.where([m[0] == "polyfid" for m in methods], 25, 16)
    shade = np.array([colour(m) for m in methods])
    here = theirs >= low
    ax.scatter(theirs[here], at[here], s=18, marker="D", fc="none", ec=INK, lw=0.7, **style)
    for marker, some in (("o", ours >= low), ("<", ours < low)):
        x = np.maximum(ours[some], low)
        ax.scatter(x, at[some], s=size[some], marker=marker, c=shade[some], lw=0, **style)
    bars = (ours >= low) & np.isfinite(half)
    ends = np.clip([ours - half, ours + half], low, high)[:, bars]
    ax.hlines(at[bars], *ends, color=shade[bars], lw=1.3, zorder=2)
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10], min_n_ticks=2))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return bool((ours < low).any())


def _range(ours: Any, theirs: Any, half: Any) -> tuple[float, float]:
    """What an axis shows: all figures and their intervals."""
    figures = np.concatenate([ours, theirs])
    low, high = np.nanmin(figures), np.nanmax(figures)
    # The interval of two values may be wider than all the rest: it is cut then.
    room = 0.5 * (high - low)
    ends = np.concatenate([ours - half, ours + half, figures])
    bottom, top = max(np.nanmin(ends), low - room), min(np.nanmax(ends), high + room)
    margin = max(0.05 * (top - bottom), 0.002)
    return bottom - margin, min(top + margin, 1.002)


def agreement(results: Results) -> Figure | None:
    """Our ROC AUC minus the paper's, for every mean that both have."""
    cells = [cell[:-1] for cell in results.compare()]
    if not cells:
        return None
    groups = list(dict.fromkeys(column.group for column, *_ in cells))
    figure, axes = grid_of(1, len(groups), 3.0, sharey=True)
    shapes = {"trusted": "o", "concatenated": "s", "stacked": "^"}
    for ax, group in zip(axes, groups, strict=True):
        ax.axhline(0, color=INK, lw=0.8)
        for column, method, mean, theirs in cells:
            if column.group == group:
                gap, shade = mean.mean - theirs, colour(method)
                ends = gap - mean.half, gap + mean.half
                ax.vlines(theirs, *ends, color=shade, lw=0.8, alpha=0.45, zorder=1)
                marker = shapes.get(method[1], "D")
                ax.scatter(theirs, gap, 20, marker=marker, color=shade, ec=FIELD, lw=0.4, zorder=2)
        ax.set_title(group)
        ax.set_xlabel("the paper's ROC AUC")
    axes[0].set_ylabel("ours minus the paper's")
    # The interval of two values may reach far beyond all figures: it is cut then.
    gaps = np.abs([mean.mean - theirs for *_, mean, theirs in cells])
    ends = gaps + np.nan_to_num([mean.half for *_, mean, _ in cells])
    limit = 1.05 * max(min(ends.max(), 2.0 * gaps.max()), 0.01)
    axes[0].set_ylim(-limit, limit)
    families = {("MF gpc" if m == THEIRS else m[0]): colour(m) for _, m, *_ in cells}
    handles = {name: Line2D([], [], lw=4, color=shade) for name, shade in families.items()}
    marks = {"o": "trusted only", "s": "concatenated", "^": "stacked", "D": "other"}
    handles |= {t: Line2D([], [], ls="", marker=mark, color=MUTED) for mark, t in marks.items()}
    legend_below(figure, handles, 5, handlelength=1.6)
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
    panels = {}
    for title, group, noise, column in _PANELS:
        rows = results.of(group)
        rows = rows[rows["noise"].eq(noise) if noise else rows["column"].eq(column)]
        if len(rows):
            by_method = rows.groupby(["method", "mode"])["roc_auc"]
            panels[title] = {key: np.sort(values) for key, values in by_method}
    if not panels:
        return None
    n_columns = min(3, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    figure, axes = grid_of(n_rows, n_columns, 2.25 * n_rows + 1.0, sharey=True)
    lines: dict[str, Line2D] = {}
    for i, (ax, (title, values)) in enumerate(zip(axes, panels.items(), strict=False)):
        near = [v for method, v in values.items() if method not in _FAR] or list(values.values())
        shown = np.concatenate(near)
        low, high = np.floor(shown.min() * 20) / 20, np.ceil(shown.max() * 20) / 20
        grid = np.linspace(low, max(high, low + 0.05), 301)
        for k, method in enumerate(results.methods):
            if method in values:
                own = values[method]
                share = 1.0 - np.searchsorted(own, grid, side="right") / len(own)
                (line,) = ax.plot(grid, share, **_line_style(method, k))
                lines.setdefault(label(method), line)
        n = max(map(len, values.values()))
        ax.set_title(f"{title} ({n} test{'s' * (n != 1)})")
        ax.set(xlim=(grid[0], grid[-1]), ylim=(-0.02, 1.03))
        ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        if i + n_columns >= len(panels):
            ax.set_xlabel("threshold")
        if i % n_columns == 0:
            ax.set_ylabel("share of tests above")
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    order = [label(method) for method in results.methods if label(method) in lines]
    legend_below(figure, {name: lines[name] for name in order}, 5)
    return figure


def _line_style(method: Method, k: int) -> dict[str, Any]:
    name, mode = method
    strength = {"polyfid": 2, "mfgpc": 1}.get(name, 0)
    return {
        "color": colour(method),
        "ls": "-" if name == "majority" else DASHES.get(mode, "-"),
        "lw": (1.1, 1.6, 2.6)[strength],
        "marker": MARKERS.get(name, ""),
        "markevery": (11 * k % 60, 60),  # not where other lines have theirs
        "ms": 3.2,
        "mfc": FIELD if mode == "tuned" else colour(method),
        "zorder": 2 + strength,
    }


#: Line styles by noise, and by cost as in the paper.
_BUDGET_STYLES: dict[str, dict[float, dict[str, Any]]] = {
    "cost": {
        cost: {"color": INK, "ls": ls, "marker": "o", "ms": 2.6}
        for cost, ls in {1: "-", 2: "--", 4: ":"}.items()
    },
    "noise": {
        0.0: {"color": "#1f83c4", "marker": "o"},
        0.2: {"color": "#dd9700", "marker": "s"},
        0.3: {"color": "#009e73", "marker": "^"},
        0.4: {"color": "#b0306a", "marker": "D"},
    },
}


def _name(coordinate: str, value: float) -> str:
    """A cost, as a fraction of the cost X of a trusted row, or a noise."""
    if coordinate == "noise":
        return f"noise {value:.1f}"
    return f"cheap row costs X/{8 / value:g}"


def budget(results: Results, panel: str, line: str) -> Figure | None:
    """ROC AUC by share of the budget; one row of panels per method."""
    rows = results.budget_means()
    if rows.empty:
        return None
    methods = [m for m in (THEIRS, OURS) if m[0] in set(rows["method"])]
    panels, lines = sorted(rows[panel].unique()), sorted(rows[line].unique())
    styles = {v: _BUDGET_STYLES[line].get(v, {"color": MUTED, "marker": "o"}) for v in lines}
    height = 1.75 * len(methods) + 0.75
    figure, axes = grid_of(len(methods), len(panels), height, sharex=True, sharey=True)
    for i, ax in enumerate(axes):
        row, k = divmod(i, len(panels))
        chosen = rows[(rows["method"] == methods[row][0]) & (rows[panel] == panels[k])]
        trusted = chosen.loc[chosen["share"] == 1.0, "roc_auc"]
        if len(trusted):
            ax.axhline(float(trusted.iloc[0]), color=RED, lw=1.1, zorder=1)
        for value in lines:
            curve = chosen[chosen[line] == value]
            ax.plot(curve["share"], curve["roc_auc"], **styles[value])
        ax.set(xlim=(-0.04, 1.04), xticks=[0, 0.2, 0.4, 0.6, 0.8, 1.0])
        ax.set_xticklabels(["0", ".2", ".4", ".6", ".8", "1"])
        if row == 0:
            ax.set_title(_name(panel, panels[k]))
        if k == 0:
            ax.set_ylabel(f"{label(methods[row])}\nROC AUC")
        if row == len(methods) - 1:
            ax.set_xlabel("share for trusted rows")
    handles = {_name(line, value): Line2D([], [], **style) for value, style in styles.items()}
    handles["trusted rows only"] = Line2D([], [], color=RED, lw=1.1)
    legend_below(figure, handles, 5)
    return figure


def sensitivity_noises(results: Results) -> dict[str, float]:
    """The noise of the case "low" and of the case "high", as far as there are rows."""
    noises = sorted(results.of("sensitivity")["noise"].dropna().unique())
    cases = {"low": [x for x in noises if x < 0.3], "high": [x for x in noises if x >= 0.3]}
    return {case: float(some[0]) for case, some in cases.items() if some}


_TUNED: dict[str, Any] = {"color": RED, "marker": "X", "ms": 7, "mec": "white", "mew": 0.6}


def sensitivity(results: Results, case: str) -> Figure | None:
    """ROC AUC against rho and the length-scales of the kernels of the cheap level and the rest."""
    noise = sensitivity_noises(results).get(case)
    if noise is None:
        return None
    rows = results.of("sensitivity")
    tuned = rows[rows["noise"] == noise].iloc[0]
    points = pd.DataFrame(tuned["points"])
    figure, axes = grid_of(1, 3, 2.75, sharey=True)
    panels = {"rho": "rho", "low": "length_scale_low", "delta": "length_scale_delta"}
    for ax, (panel, name) in zip(axes, panels.items(), strict=True):
        curves = points[points["panel"] == panel]
        if panel == "rho":
            curves = curves.sort_values("rho")
            ax.plot(curves["rho"], curves["roc_auc"], color=INK)
        else:
            _shaded(figure, ax, curves)
        ax.plot(tuned["fitted"][name], tuned["roc_auc"], zorder=5, **_TUNED)
    axes[0].set(xlabel="ρ", ylabel="ROC AUC", title="ρ alone")
    titles = "kernel of the cheap level", "kernel of the difference"
    for ax, title in zip(axes[1:], titles, strict=True):
        ax.set(xlabel="length-scale σ", xscale="log", title=title)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    legend_below(figure, {"the tuned model": Line2D([], [], ls="", **_TUNED)}, 1)
    return figure


def _shaded(figure: Figure, ax: Axes, points: pd.DataFrame) -> None:
    """One curve per log-scale, from dark to light."""
    scales = sorted(points["log_scale"].unique())
    # The middle of the colour map, which is visible on white and on black.
    shades = ListedColormap(colormaps["viridis"](np.linspace(0.18, 0.88, 256)))
    norm = Normalize(scales[0], max(scales[-1], scales[0] + 1.0))
    for scale in scales:
        curve = points[points["log_scale"] == scale].sort_values("length_scale")
        ax.plot(curve["length_scale"], curve["roc_auc"], color=shades(norm(scale)), lw=1.1)
    bar = figure.colorbar(ScalarMappable(norm, shades), ax=ax, pad=0.02, aspect=28)
    bar.ax.set_title("s", fontsize=8, fontweight="normal")
    bar.outline.set_visible(False)


def mcmc_scatter(results: Results) -> Figure | None:
    """Probabilities by each scheme against those by MCMC, one panel per task and scheme."""
    by_task = results.by_task()
    tasks = list(by_task)
    if not tasks:
        return None
    schemes = [scheme for scheme in SCHEMES if scheme != "mcmc"]
    n_columns = min(4, len(tasks))
    n_rows = math.ceil(len(tasks) / n_columns) * len(schemes)
    figure, axes = grid_of(n_rows, n_columns, 1.68 * n_rows + 0.4, sharex=True, sharey=True)
    for i, ax in enumerate(axes):
        row, k = divmod(i, n_columns)
        block, j = divmod(row, len(schemes))
        ax.set_box_aspect(1)
        if block * n_columns + k >= len(tasks):
            ax.set_axis_off()
            continue
        task, scheme = tasks[block * n_columns + k], schemes[j]
        exact, facts = by_task[task]["mcmc"]["probabilities"], by_task[task][scheme]
        ax.axline((0, 0), slope=1, color=MUTED, lw=0.7)
        # Thousands of vector dots would make the file large.
        style: Any = {"color": "#1f83c4", "alpha": 0.6, "lw": 0, "rasterized": True, "zorder": 3}
        ax.scatter(exact, facts["probabilities"], s=5, **style)
        text = f"max Δ {facts['max_difference']:.3f}"
        ax.text(0.05, 0.93, text, transform=ax.transAxes, va="top", fontsize=7)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        if j == 0:
            ax.set_title(task)
        if k == 0:
            ax.set_ylabel(SCHEMES[scheme])
    figure.supxlabel("probability by MCMC", fontsize=8)
    return figure
