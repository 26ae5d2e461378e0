"""How figures look, and how they become files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import matplotlib
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# Colours that a page replaces by those of its light or dark scheme, see `inline`; page.mplstyle
# has the same.
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
