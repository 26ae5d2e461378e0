"""Figures of matplotlib as part of a page."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

__all__ = ["inline", "new_figure", "styled"]

WIDTH = 3.4  # inches; on a page that is about the width of a telephone
#: An SVG of more characters than this becomes a picture of dots.
MOST_CHARACTERS = 250_000

_INK, _MUTED = "#1b1b1f", "#5f636b"
_RC: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.edgecolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    # The page shows through, light or dark.
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
}


@contextmanager
def styled(name: str) -> Iterator[None]:
    """The look of the figures, for as long as it lasts; ``name`` makes identifiers repeatable."""
    # From the defaults, so that a user's own settings do not shine through. Letters that
    # matplotlib's font lacks do no harm: the browser writes them.
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_RC, "svg.hashsalt": name})
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure that no window ever shows."""
    return Figure(figsize=(width, height), layout="constrained")


def inline(figure: Figure, name: str, label: str, *, map_: bool = False) -> Markup:
    """A figure as SVG, or as PNG where that would be long; ``name`` is that of no other one.

    On a dark page light and dark change places. A map, though, has lines and points that were
    chosen for its colours: it stays on white paper.

    Examples
    --------
    >>> from polyfid.report.figures import inline, new_figure, styled
    >>> with styled("a"):
    ...     figure = new_figure(2.0)
    ...     _ = figure.subplots().set_title("<b>")
    ...     drawing = inline(figure, "a", "Nothing")
    >>> drawing.startswith("<svg"), "&lt;b&gt;" in drawing
    (True, True)
    """
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text, metadata=dict.fromkeys(("Date", "Creator")))
    kind = "plot map" if map_ else "plot plain"
    if len(text.getvalue()) <= MOST_CHARACTERS:
        return _as_part(text.getvalue(), name, kind, label)
    picture = io.BytesIO()
    figure.set_dpi(220)
    FigureCanvasAgg(figure).print_png(picture)
    data = base64.b64encode(picture.getvalue()).decode()
    return Markup('<img class="{}" alt="{}" src="data:image/png;base64,{}">').format(
        kind, label, data
    )


def _as_part(svg: str, name: str, kind: str, label: str) -> Markup:
    """An SVG without what belongs to a file: identifiers its own, size the page's."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    head, body = svg.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return Markup('{} class="{}" role="img" aria-label="{}">{}').format(
        Markup(head), kind, label, Markup(body)
    )
