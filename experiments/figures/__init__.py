"""The figures, declared as data: a name, the section it belongs to, what it shows, who draws it.

Drawing reads rows only and changes no global state: neither pyplot nor a backend is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from experiments.figures import charts
from experiments.figures.charts import sensitivity_noises
from experiments.figures.style import inline, save, styled
from experiments.paper import CLOSE, NOISES
from experiments.results import Results

__all__ = ["FIGURES", "Drawing", "draw", "sensitivity_noises"]


class Drawing(NamedTuple):
    """A figure as it is declared; ``make`` returns None if there are no rows for it."""

    name: str
    section: str
    title: str
    caption: str
    make: Callable[[Results], Figure | None]


_DOTS = (
    "Filled: our mean, with its 95 % interval where there are enough splits; open: the paper's "
    f"figure; the band extends {CLOSE} below our best. Each panel has its own axis."
)
_BUDGET = (
    "The budget is 800, a trusted row costs X = 8. At share 0 a model of one level is trained on "
    "cheap rows only, at share 1 on trusted rows only: the horizontal line."
)
_SENSITIVITY = (
    "ROC AUC on the test rows when some hyper-parameters of the tuned model are changed and the "
    "rest kept: ρ alone; s and σ of the kernel of the cheap level, k = exp(s) exp(−½ r²/σ²); those "
    "of the kernel of the difference. Colours are values of s. The cross is the tuned model."
)
_AGREEMENT = (
    "Every mean that the paper has too: our mean ROC AUC minus the paper's, with our 95 % "
    "interval, against the paper's. On the line, both are equal."
)
_PROFILES = (
    "Share of tests (a data set and a split) in which a method has a ROC AUC above the threshold: "
    "the higher the line, the better. Lines as in the paper: dotted for trusted rows only, "
    "dash-dotted for concatenated (C), dashed for stacked (S), solid for the rest."
)
_MCMC = (
    "Probability of the positive class at up to 400 test rows of each task, by MCMC (horizontal) "
    "and by an approximation (vertical), with the same hyper-parameters."
)


def _group(section: str, sets: str, noise: float | None = None) -> Drawing:
    name, title = f"{section}_roc_auc", f"ROC AUC on the {sets}"
    if noise is not None:
        name, title = f"{name}_{noise}", f"{title}, noise {noise}"
    return Drawing(name, section, title, _DOTS, partial(charts.dots, group=section, noise=noise))


def _budget(panel: str, line: str, lines: str) -> Drawing:
    title = f"ROC AUC by share of the budget, one line per {lines}"
    make = partial(charts.budget, panel=panel, line=line)
    return Drawing(f"budget_by_{line}", "budget", title, _BUDGET, make)


def _sensitivity(case: str) -> Drawing:
    title = f"Sensitivity to hyper-parameters, {case} noise"
    make = partial(charts.sensitivity, case=case)
    return Drawing(f"sensitivity_{case}", "sensitivity", title, _SENSITIVITY, make)


_mcmc_title = "Probabilities by approximate inference and by MCMC"
FIGURES = (
    Drawing("agreement", "summary", "Our ROC AUC minus the paper's", _AGREEMENT, charts.agreement),
    _group("artificial", "artificial sets"),
    *(_group("pmlb", "PMLB tasks", noise) for noise in NOISES),
    _group("crowd", "crowdsourced sets"),
    Drawing("profiles", "profiles", "ROC AUC profiles", _PROFILES, charts.profiles),
    Drawing("mcmc_scatter", "mcmc", _mcmc_title, _MCMC, charts.mcmc_scatter),
    _budget("noise", "cost", "cost of a cheap row"),
    _budget("cost", "noise", "noise"),
    _sensitivity("low"),
    _sensitivity("high"),
)


def draw(results: Results, folder: Path) -> tuple[defaultdict[str, list[str]], dict[str, str]]:
    """Draw the figures that have rows into a folder.

    Returns the Markdown of the figures of each section, and the SVG of each figure for the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blocks: defaultdict[str, list[str]] = defaultdict(list)
    svgs = {}
    for name, section, title, caption, make in FIGURES:
        with styled(name):
            figure = make(results)
            if figure is None:
                for kind in ("png", "svg"):  # drawn from earlier rows
                    (folder / f"{name}.{kind}").unlink(missing_ok=True)
                continue
            svgs[name] = inline(save(figure, folder, name), name, title)
        blocks[section].append(f"![{title}](figures/{name}.png)\n\n*{title}.* {caption}")
    return blocks, svgs
