"""Figures of matplotlib as part of a page: drawn in its style, inlined as SVG in its colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from polyfid.plots.style import GRID, INK, MAP, MUTED, PAPER, SHADE, styled
from polyfid.report.page import clean

WIDTH = 3.2  # inches; as wide as a phone, the text in figures has the size of small text
#: Stand for the page's accent and for the colour of the verdict.
ACCENT, TONE = "#7a2fc4", "#5f636c"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    SHADE: "bar",
    GRID: "grid",
    PAPER: "field",
    ACCENT: "accent",
    TONE: "tone",
}
#: Every colour of the page that is drawn, as CSS: dark pages have other values for the variables.
_CSS = {
    to_hex(MAP(share)): f"color-mix(in srgb, var(--map-high) {100 * share:.0f}%, var(--map-low))"
    for share in np.linspace(0.0, 1.0, MAP.N)
} | {colour: f"var(--{name})" for colour, name in _VARIABLES.items()}


@contextmanager
def page_style() -> Iterator[None]:
    """The style of the page's figures, whatever the user's own settings are."""
    # Letters that matplotlib's font lacks do no harm: the browser has them.
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        with styled(**{"figure.facecolor": "none", "axes.facecolor": "none"}):
            yield


def new_figure(height: float) -> Figure:
    """An empty figure that no window ever shows."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def add_tip(artist: Artist, text: str) -> None:
    """Give an artist a text that the browser shows under the pointer."""
    artist.set_gid(f"tip:{text}")


def inline(figure: Figure, name: str, label: str) -> Markup:
    """A figure as an SVG element; ``name`` is unique on the page, ``label`` describes it.

    Examples
    --------
    >>> from polyfid.report.figures import inline, new_figure, page_style
    >>> with page_style():
    ...     figure = new_figure(2.0)
    ...     _ = figure.subplots().set_title("<b>")
    >>> svg = inline(figure, "a", "Nothing")
    >>> svg.startswith("<svg"), "&lt;b&gt;" in svg, "fill: var(--ink)" in svg
    (True, True, True)
    """
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_svg(file, metadata=dict.fromkeys(("Date", "Creator")))
    body = clean(file.getvalue()).split("</metadata>")[1]
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    tip = re.compile(r"""<g id=(["'])tip:(.*?)\1>""", re.DOTALL)
    body = tip.sub(r"<g><title>\2</title>", body)
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', body))
    tags = (_page_tag(tag, name, used) for tag in re.split(r"(<[^>]*>)", body))
    width, height = 72.0 * figure.get_size_inches()
    return Markup('<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}').format(
        width, height, label, Markup("".join(tags))
    )


def _page_tag(tag: str, name: str, used: set[str]) -> str:
    """A tag of an SVG file as one of the page: its identifiers, its colours, fewer digits."""
    if not tag.startswith("<"):
        return tag if tag.strip() else ""
    tag = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", tag)
    tag = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"#[0-9a-f]{6}\b", lambda m: _CSS.get(m[0], m[0]), tag)
    tag = re.sub(r" font-family: [^;\"]*;| transform=\"rotate\(-0 [^\"]*\"|\s*\n", "", tag)
    long_path = len(tag) > 2000
    return re.sub(r"(\.\d)\d+" if long_path else r"(\.\d\d)\d+", r"\1", tag)
