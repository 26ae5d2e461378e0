"""The figures, declared as data: a name, the section it belongs to, what it shows, who draws it.

Drawing reads rows only and changes no global state: neither pyplot nor a backend is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from experiments.figures import groups, studies
from experiments.figures.studies import sensitivity_noises
from experiments.figures.style import inline, save, styled
from experiments.paper import CLOSE
from experiments.results import Results

__all__ = ["FIGURES", "Drawing", "Picture", "draw", "sensitivity_noises"]


class Drawing(NamedTuple):
    """A figure as it is declared; ``make`` returns None if there are no rows for it."""

    name: str
    section: str
    title: str
    caption: str
    make: Callable[[Results], Figure | None]


class Picture(NamedTuple):
    """A figure that was drawn: its name, its Markdown, and its SVG for the page."""

    name: str
    markdown: str
    svg: str


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

_artificial = partial(groups.dots, group="artificial")
_crowd = partial(groups.dots, group="crowd")
_low_noise = partial(studies.sensitivity, case="low")
_high_noise = partial(studies.sensitivity, case="high")
_shares = "ROC AUC by share of the budget, one line per"

FIGURES = (
    Drawing("agreement", "summary", "Our ROC AUC minus the paper's", _AGREEMENT, groups.agreement),
    Drawing(
        "artificial_roc_auc", "artificial", "ROC AUC on the artificial sets", _DOTS, _artificial
    ),
    *(
        Drawing(
            f"pmlb_roc_auc_{noise}",
            "pmlb",
            f"ROC AUC on the PMLB tasks, noise {noise}",
            _DOTS,
            partial(groups.dots, group="pmlb", noise=noise),
        )
        for noise in (0.2, 0.4)
    ),
    Drawing("crowd_roc_auc", "crowd", "ROC AUC on the crowdsourced sets", _DOTS, _crowd),
    Drawing("profiles", "profiles", "ROC AUC profiles", _PROFILES, groups.profiles),
    Drawing(
        "mcmc_scatter",
        "mcmc",
        "Probabilities by approximate inference and by MCMC",
        _MCMC,
        studies.mcmc_scatter,
    ),
    Drawing(
        "budget_by_cost",
        "budget",
        f"{_shares} cost of a cheap row",
        _BUDGET,
        partial(studies.budget, panel="noise", line="cost"),
    ),
    Drawing(
        "budget_by_noise",
        "budget",
        f"{_shares} noise",
        _BUDGET,
        partial(studies.budget, panel="cost", line="noise"),
    ),
    Drawing(
        "sensitivity_low",
        "sensitivity",
        "Sensitivity to hyper-parameters, low noise",
        _SENSITIVITY,
        _low_noise,
    ),
    Drawing(
        "sensitivity_high",
        "sensitivity",
        "Sensitivity to hyper-parameters, high noise",
        _SENSITIVITY,
        _high_noise,
    ),
)


def draw(results: Results, folder: Path) -> dict[str, list[Picture]]:
    """Draw the figures that have rows into a folder; returns the pictures of each section."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, list[Picture]] = {}
    for name, section, title, caption, make in FIGURES:
        with styled(name):
            figure = make(results)
            if figure is None:
                for kind in ("png", "svg"):  # drawn from earlier rows
                    (folder / f"{name}.{kind}").unlink(missing_ok=True)
                continue
            svg = inline(save(figure, folder, name), name, title)
        markdown = f"![{title}](figures/{name}.png)\n\n*{title}.* {caption}"
        pictures.setdefault(section, []).append(Picture(name, markdown, svg))
    return pictures
