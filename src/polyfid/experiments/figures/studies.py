"""Figures of the further studies: budget, sensitivity, and approximate inference against MCMC."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from polyfid.experiments.figures.style import INK, MUTED, RED, grid_of, legend_below
from polyfid.experiments.paper import GROUPS, METHODS, SCHEMES
from polyfid.experiments.results import Results, budget_means, numbers

_LABELS = {method.name: method.label for method in METHODS if method.mode == "multi"}

#: Cheap cost as a fraction of the trusted one, in the paper's line styles.
_COST_NAMES = {1: "X/8", 2: "X/4", 4: "X/2"}
_COST_DASHES = {1: "-", 2: "--", 4: ":"}
_NOISE_STYLES = {
    0.0: ("#1f83c4", "o"),
    0.2: ("#dd9700", "s"),
    0.3: ("#009e73", "^"),
    0.4: ("#b0306a", "D"),
}


def budget_by_cost(results: Results) -> Figure | None:
    """A panel for each noise, a line for each cost."""

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        for cost in costs:
            line, style = rows[rows["cost"] == cost], _COST_DASHES.get(int(cost), "-")
            ax.plot(line["share"], line["roc_auc"], color=INK, ls=style, marker="o", ms=2.6)

    costs = sorted(budget_means(results)["cost"].unique())
    handles = [
        Line2D([], [], color=INK, ls=_COST_DASHES.get(int(c), "-"), marker="o", ms=2.6)
        for c in costs
    ]
    labels = [f"cheap row costs {_COST_NAMES.get(int(c), f'{c:g}')}" for c in costs]
    return _budget(results, "noise", lambda noise: f"noise {noise:.1f}", draw, handles, labels)


def budget_by_noise(results: Results) -> Figure | None:
    """A panel for each cost, a line for each noise."""

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        for noise in noises:
            line = rows[rows["noise"] == noise]
            colour, marker = _NOISE_STYLES.get(float(noise), (MUTED, "o"))
            ax.plot(line["share"], line["roc_auc"], color=colour, marker=marker)

    noises = sorted(budget_means(results)["noise"].unique())
    styles = [_NOISE_STYLES.get(float(noise), (MUTED, "o")) for noise in noises]
    handles = [Line2D([], [], color=colour, marker=marker) for colour, marker in styles]
    labels = [f"noise {noise:.1f}" for noise in noises]

    def title(cost: float) -> str:
        return f"cheap row costs {_COST_NAMES.get(int(cost), f'{cost:g}')}"

    return _budget(results, "cost", title, draw, handles, labels)


def _budget(
    results: Results,
    panel: str,
    title: Callable[[float], str],
    draw: Callable[[Axes, pd.DataFrame], None],
    handles: list[Line2D],
    labels: list[str],
) -> Figure | None:
    """Lines of panels, one a method."""
    rows = budget_means(results)
    if rows.empty:
        return None
    methods = [name for name in _LABELS if name in set(rows["method"])][::-1]  # the paper's first
    values = sorted(rows[panel].unique())
    figure, axes = grid_of(
        len(methods), len(values), 1.75 * len(methods) + 0.75, sharex=True, sharey=True
    )
    for i, ax in enumerate(axes):
        method, value = methods[i // len(values)], values[i % len(values)]
        chosen = rows[(rows["method"] == method) & (rows[panel] == value)]
        trusted = chosen.loc[chosen["share"] == 1.0, "roc_auc"]
        if len(trusted):
            ax.axhline(float(trusted.iloc[0]), color=RED, lw=1.1, zorder=1)
        draw(ax, chosen)
        ax.set(xlim=(-0.04, 1.04), xticks=[0, 0.2, 0.4, 0.6, 0.8, 1.0])
        ax.set_xticklabels(["0", ".2", ".4", ".6", ".8", "1"])
        if i < len(values):
            ax.set_title(title(value))
        if i % len(values) == 0:
            ax.set_ylabel(f"{_LABELS[method]}\nROC AUC")
        if i // len(values) == len(methods) - 1:
            ax.set_xlabel("share for trusted rows")
    handles.append(Line2D([], [], color=RED, lw=1.1))
    legend_below(figure, handles, [*labels, "trusted rows only"], 5)
    return figure


def sensitivity_noises(results: Results) -> dict[str, float]:
    """The noise of the case "low" and of the case "high", as far as there are rows."""
    noises = sorted(results.of("sensitivity")["noise"].dropna().unique())
    cases = {"low": [x for x in noises if x < 0.3], "high": [x for x in noises if x >= 0.3]}
    return {case: float(found[0]) for case, found in cases.items() if found}


def sensitivity(results: Results, case: str) -> Figure | None:
    """ROC AUC against rho, the length-scale of the low level, and that of the difference."""
    noise = sensitivity_noises(results).get(case)
    rows = results.settings("sensitivity")
    if noise is None or "panel" not in rows:
        return None
    rows = rows[rows["noise"] == noise]
    rows = rows[rows["problem"] == rows["problem"].iloc[0]]
    fitted = rows[rows["panel"] == "fitted"]
    figure, axes = grid_of(1, 3, 2.75, sharey=True)
    alone = rows[rows["panel"] == "rho"].sort_values("rho")
    if len(alone):
        axes[0].plot(alone["rho"], alone["roc_auc"], color=INK)
    axes[0].set(xlabel="ρ", ylabel="ROC AUC", title="ρ alone")
    _mark_fitted(axes[0], fitted, "rho")
    kernels = {"low": "kernel of the cheap level", "delta": "kernel of the difference"}
    for ax, (panel, title) in zip(axes[1:], kernels.items(), strict=True):
        curves = rows[rows["panel"] == panel]
        name = f"length_scale_{panel}"
        if len(curves):
            _shaded(figure, ax, curves)
        ax.set(xlabel="length-scale σ", xscale="log", title=title)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        ax.xaxis.set_minor_locator(NullLocator())
        _mark_fitted(ax, fitted, name)
    handles = [Line2D([], [], color=RED, marker="X", ms=7, ls="", mec="white", mew=0.6)]
    legend_below(figure, handles, ["the tuned model"], 1)
    return figure


def _shaded(figure: Figure, ax: Axes, rows: pd.DataFrame) -> None:
    """A curve for each log-scale, from dark to light."""
    scales = sorted(rows["log_scale"].unique())
    shades = _part_of(colormaps["viridis"], 0.18, 0.88)  # seen on white and on black
    norm = Normalize(min(scales), max(scales) if len(scales) > 1 else min(scales) + 1.0)
    for scale in scales:
        curve = rows[rows["log_scale"] == scale].sort_values("length_scale")
        ax.plot(curve["length_scale"], curve["roc_auc"], color=shades(norm(scale)), lw=1.1)
    bar = figure.colorbar(ScalarMappable(norm, shades), ax=ax, pad=0.02, aspect=28)
    bar.ax.set_title("s", fontsize=8, fontweight="normal")
    bar.outline.set_visible(False)


def _part_of(shades: Colormap, start: float, stop: float) -> Colormap:
    return ListedColormap(shades(np.linspace(start, stop, 256)))


def _mark_fitted(ax: Axes, fitted: pd.DataFrame, name: str) -> None:
    if len(fitted) and name in fitted:
        style: dict[str, Any] = {"marker": "X", "ms": 7, "mec": "white", "mew": 0.6, "zorder": 5}
        ax.plot(float(fitted[name].iloc[0]), float(fitted["roc_auc"].iloc[0]), color=RED, **style)


def mcmc_scatter(results: Results) -> Figure | None:
    """Probabilities by each scheme against those by MCMC, a panel for each task and scheme."""
    side = results.side["mcmc_probabilities"]
    if side.empty:
        return None
    side = numbers(side, "row", "probability")
    table = side.pivot_table(index=["problem", "row"], columns="scheme", values="probability")
    tasks = [name for name in GROUPS[1].columns if name in table.index.get_level_values(0)]
    schemes = [scheme for scheme in SCHEMES if scheme != "mcmc" and scheme in table]
    if "mcmc" not in table or not tasks or not schemes:
        return None
    merits = results.side["mcmc"]
    gaps: dict[Any, float] = {}
    if len(merits):
        merits = numbers(merits, "max_difference").dropna(subset="max_difference")
        gaps = merits.set_index(["problem", "scheme"])["max_difference"].to_dict()
    n_columns = min(4, len(tasks))
    blocks = math.ceil(len(tasks) / n_columns)
    n_rows = blocks * len(schemes)
    figure, axes = grid_of(n_rows, n_columns, 1.68 * n_rows + 0.4, sharex=True, sharey=True)
    for i, ax in enumerate(axes):
        row, k = divmod(i, n_columns)
        block, j = divmod(row, len(schemes))
        ax.set_box_aspect(1)
        if block * n_columns + k >= len(tasks):
            ax.set_axis_off()
            continue
        task, scheme = tasks[block * n_columns + k], schemes[j]
        pairs = table.loc[task, ["mcmc", scheme]].dropna()
        ax.axline((0, 0), slope=1, color=MUTED, lw=0.7)
        ax.scatter(
            pairs["mcmc"],
            pairs[scheme],
            s=5,
            color="#1f83c4",
            alpha=0.6,
            lw=0,
            rasterized=True,  # thousands of dots would make the file large
            zorder=3,
        )
        # That of all test rows, if it is known.
        gap = gaps.get((task, scheme), float((pairs["mcmc"] - pairs[scheme]).abs().max()))
        ax.text(0.05, 0.93, f"max Δ {gap:.3f}", transform=ax.transAxes, va="top", fontsize=7)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        if j == 0:
            ax.set_title(task)
        if k == 0:
            ax.set_ylabel(SCHEMES[scheme])
    figure.supxlabel("probability by MCMC", fontsize=8)
    return figure
