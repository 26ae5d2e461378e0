"""Figures of the further studies: budget, sensitivity, and approximate inference against MCMC."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from experiments.data import PMLB
from experiments.figures.style import INK, MUTED, RED, grid_of, legend_below
from experiments.paper import OURS, SCHEMES, THEIRS, label
from experiments.results import Results

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
    panels = ("rho", "low", "delta")
    names = ("rho", "length_scale_low", "length_scale_delta")
    for ax, panel, name in zip(axes, panels, names, strict=True):
        curves = points[points["panel"] == panel]
        if panel == "rho":
            curves = curves.sort_values("rho")
            ax.plot(curves["rho"], curves["roc_auc"], color=INK)
        else:
            _shaded(figure, ax, curves)
        ax.plot(tuned["fitted"][name], tuned["roc_auc"], zorder=5, **_TUNED)
    axes[0].set(xlabel="ρ", ylabel="ROC AUC", title="ρ alone")
    for ax, title in zip(
        axes[1:], ("kernel of the cheap level", "kernel of the difference"), strict=True
    ):
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
    rows = results.of("mcmc")
    if rows.empty:
        return None
    by_task = dict(zip(rows["problem"], rows["schemes"], strict=True))
    tasks = [name for name in PMLB if name in by_task]
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
