"""The figures, declared as data: a name, the section it belongs to, what it shows, who draws it.

Drawing reads rows only and changes no global state: neither pyplot nor a backend is used.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from experiments.figures import charts
from experiments.figures.charts import FIELD, GRID, INK, MUTED, sensitivity_noises
from experiments.paper import CLOSE
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


#: Figures of the groups: name, group, sets, noise.
_GROUPS: tuple[tuple[str, str, str, float | None], ...] = (
    ("artificial_roc_auc", "artificial", "artificial sets", None),
    ("pmlb_roc_auc_0.2", "pmlb", "PMLB tasks, noise 0.2", 0.2),
    ("pmlb_roc_auc_0.4", "pmlb", "PMLB tasks, noise 0.4", 0.4),
    ("crowd_roc_auc", "crowd", "crowdsourced sets", None),
)
_mcmc_title = "Probabilities by approximate inference and by MCMC"
_budget_title = "ROC AUC by share of the budget, one line per"
_by_cost = partial(charts.budget, panel="noise", line="cost")
_by_noise = partial(charts.budget, panel="cost", line="noise")
FIGURES = (
    Drawing("agreement", "summary", "Our ROC AUC minus the paper's", _AGREEMENT, charts.agreement),
    *(
        Drawing(
            name,
            group,
            f"ROC AUC on the {sets}",
            _DOTS,
            partial(charts.dots, group=group, noise=noise),
        )
        for name, group, sets, noise in _GROUPS
    ),
    Drawing("profiles", "profiles", "ROC AUC profiles", _PROFILES, charts.profiles),
    Drawing("mcmc_scatter", "mcmc", _mcmc_title, _MCMC, charts.mcmc_scatter),
    Drawing("budget_by_cost", "budget", f"{_budget_title} cost of a cheap row", _BUDGET, _by_cost),
    Drawing("budget_by_noise", "budget", f"{_budget_title} noise", _BUDGET, _by_noise),
    *(
        Drawing(
            f"sensitivity_{case}",
            "sensitivity",
            f"Sensitivity to hyper-parameters, {case} noise",
            _SENSITIVITY,
            partial(charts.sensitivity, case=case),
        )
        for case in ("low", "high")
    ),
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


@contextmanager
def styled(name: str) -> Iterator[None]:
    """The style of the figures within a block; ``name`` makes SVG identifiers repeatable."""
    # From the defaults, so that a user's own settings have no effect.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        style.use([Path(__file__).parent / "page.mplstyle", {"svg.hashsalt": name}])
        yield


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write NAME.png and NAME.svg; return the text of the latter."""
    for ax in figure.axes:
        for artist in (*ax.lines, *ax.collections, *ax.patches):
            artist.set_in_layout(False)  # data lie within their axes and need not be measured
    figure.set_dpi(200)
    engine = figure.get_layout_engine()
    if engine is not None:  # `savefig` would lay it out again for each file
        FigureCanvasAgg(figure)
        engine.execute(figure)
        figure.set_layout_engine("none")
    FigureCanvasAgg(figure).print_png(folder / f"{name}.png")
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text, metadata={"Date": None, "Creator": None})
    (folder / f"{name}.svg").write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()


def inline(svg: str, name: str, title: str) -> str:
    """An SVG for a page: with unique identifiers, a title, and the colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, role in ((INK, "ink"), (MUTED, "muted"), (GRID, "grid"), (FIELD, "field")):
        svg = svg.replace(colour, f"var(--{role})")
    # The size comes from the page, the proportions from the view box.
    head, body = svg.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(title)}">{body}'
