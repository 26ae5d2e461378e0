"""The figures, declared: a name, the section it belongs to, what it shows, how it is drawn.

Drawing reads rows only and leaves no state behind: neither pyplot nor a backend is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from polyfid.experiments.figures import scores, studies
from polyfid.experiments.figures.style import inline, save, styled
from polyfid.experiments.paper import CLOSE
from polyfid.experiments.results import Results

__all__ = ["FIGURES", "Drawing", "Picture", "draw"]


class Drawing(NamedTuple):
    """A figure as it is declared.

    Examples
    --------
    >>> from polyfid.experiments.figures import FIGURES
    >>> [drawing.name for drawing in FIGURES if drawing.section == "budget"]
    ['budget_by_cost', 'budget_by_noise']
    """

    name: str
    section: str
    title: str
    caption: str
    make: Callable[[Results], Figure | None]


class Picture(NamedTuple):
    """A figure that was drawn, with its SVG for a page."""

    name: str
    title: str
    caption: str
    svg: str


_DOTS = (
    "Filled: our mean, with its 95 % interval where there are enough splits; open: the paper's "
    f"figure; the band reaches {CLOSE} down from our best. Each panel has an axis of its own."
)
_BUDGET = (
    "A total of 800 is spent, a trusted row costs X = 8. At share 0 a model of one level sees "
    "cheap rows only, at share 1 trusted rows only: the horizontal line."
)
_SENSITIVITY = (
    "ROC AUC on the test rows when some hyper-parameters of the tuned model are changed and the "
    "rest kept: ρ alone; s and σ of the kernel of the cheap level, k = exp(s) exp(−½ r²/σ²); those "
    "of the kernel of the difference. Shades are values of s. The mark is the tuned model."
)

FIGURES = (
    Drawing(
        "agreement",
        "summary",
        "Our ROC AUC less the paper's",
        "Every cell of the tables that the paper has too: our mean ROC AUC less the paper's, with "
        "our 95 % interval, against the paper's. On the line, both are equal.",
        scores.agreement,
    ),
    Drawing(
        "artificial_roc_auc",
        "artificial",
        "ROC AUC on the artificial sets",
        _DOTS,
        partial(scores.dots, group="artificial"),
    ),
    Drawing(
        "pmlb_roc_auc_0.2",
        "pmlb",
        "ROC AUC on the PMLB tasks, noise 0.2",
        _DOTS,
        partial(scores.dots, group="pmlb", noise=0.2),
    ),
    Drawing(
        "pmlb_roc_auc_0.4",
        "pmlb",
        "ROC AUC on the PMLB tasks, noise 0.4",
        _DOTS,
        partial(scores.dots, group="pmlb", noise=0.4),
    ),
    Drawing(
        "crowd_roc_auc",
        "crowd",
        "ROC AUC on the crowdsourced sets",
        _DOTS,
        partial(scores.dots, group="crowd"),
    ),
    Drawing(
        "profiles",
        "profiles",
        "ROC AUC profiles",
        "Share of tests (a data set and a split) in which a method has a ROC AUC above the "
        "threshold: the higher the line, the better. Lines as in the paper: dotted for trusted "
        "rows only, dash-dotted for concatenated (C), dashed for stacked (S), plain for the rest.",
        scores.profiles,
    ),
    Drawing(
        "mcmc_scatter",
        "mcmc",
        "Probabilities by approximate inference and by MCMC",
        "Probability of the positive class at up to 400 test rows of each task, by MCMC (across) "
        "and by an approximation (up), with the same hyper-parameters.",
        studies.mcmc_scatter,
    ),
    Drawing(
        "budget_by_cost",
        "budget",
        "ROC AUC by share of the budget, a line for each cost of a cheap row",
        _BUDGET,
        studies.budget_by_cost,
    ),
    Drawing(
        "budget_by_noise",
        "budget",
        "ROC AUC by share of the budget, a line for each noise",
        _BUDGET,
        studies.budget_by_noise,
    ),
    Drawing(
        "sensitivity_low",
        "sensitivity",
        "Sensitivity to hyper-parameters, low noise",
        _SENSITIVITY,
        partial(studies.sensitivity, case="low"),
    ),
    Drawing(
        "sensitivity_high",
        "sensitivity",
        "Sensitivity to hyper-parameters, high noise",
        _SENSITIVITY,
        partial(studies.sensitivity, case="high"),
    ),
)


def draw(results: Results, folder: Path) -> dict[str, list[Picture]]:
    """Draw what there are rows for into a folder; the pictures of each section.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyfid.experiments.figures import draw
    >>> from polyfid.experiments.results import Results
    >>> from polyfid.experiments.rows import Row, Rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     what = {"experiment": "crowd", "column": "music_genre", "problem": "music_genre:pop"}
    ...     Rows(folder).append([Row(**what, method="gpc", mode="trusted", seed=0, roc_auc=0.8)])
    ...     pictures = draw(Results.read(folder), Path(folder) / "figures")
    >>> [picture.name for picture in pictures["crowd"]]
    ['crowd_roc_auc']
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Picture]] = {}
    for drawing in FIGURES:
        with styled(drawing.name):
            figure = drawing.make(results)
            if figure is None:
                for kind in ("png", "svg"):  # of rows that are gone
                    (folder / f"{drawing.name}.{kind}").unlink(missing_ok=True)
                continue
            svg = inline(save(figure, folder, drawing.name), drawing.name, drawing.title)
        picture = Picture(drawing.name, drawing.title, drawing.caption, svg)
        found.setdefault(drawing.section, []).append(picture)
    return found
