"""The figures of the page as SVG in its style and colours, and its small charts."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.evaluation import Estimate
from polyfid.plots.style import (
    CLASS_COLOURS,
    GRID,
    INK,
    LEVEL,
    MIDDLE,
    MUTED,
    PAPER,
    RAMP_SHARES,
    RC,
    REST,
    SHADE,
    label_all,
    legend_above,
    ramp,
)
from polyfid.report.page import clean

WIDTH = 3.2  # inches; as wide as a phone, the text in figures has the size of small text
#: Stand for the page's accent and for the colour of the verdict.
ACCENT, TONE = LEVEL, "#5f636c"
_VARIABLES = {"ink": INK, "muted": MUTED, "bar": SHADE, "grid": GRID, "field": PAPER}
_VARIABLES |= {"accent": ACCENT, "tone": TONE, "rest": REST, "middle": MIDDLE}


def _ramp_css(end: str, css: str) -> dict[str, str]:
    """The colours of a map from its middle, which is dark on dark pages, to an end."""
    return {
        colour: f"color-mix(in srgb, {css} {100.0 * share:.0f}%, var(--middle))"
        for colour, share in zip(ramp(end), RAMP_SHARES, strict=True)
    }


#: Every colour of the page that is drawn, as CSS: dark pages have other values for the variables.
#: Colours of classes are the same on both.
_CSS = {k: v for colour in CLASS_COLOURS for k, v in _ramp_css(colour, colour).items()}
_CSS |= _ramp_css(REST, "var(--rest)") | _ramp_css(LEVEL, "var(--accent)")
_CSS |= {colour: f"var(--{name})" for name, colour in _VARIABLES.items()}
_LIGHT_TEXT, _DARK_TEXT = "#fefefe", "#111111"  # on dark and on light colours
_MOST_DARK = 0.2  # luminance of the former
_LETTERS = 24  # of a name beside a chart
_QUARTERS = np.linspace(0.0, 1.0, 5)


@contextmanager
def page_style() -> Iterator[None]:
    """The style of the page's figures, whatever the user's own settings are."""
    # Letters that matplotlib's font lacks do no harm: the browser has them.
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC | {"figure.facecolor": "none", "axes.facecolor": "none"})
        yield


def new_figure(height: float) -> Figure:
    """An empty figure that no window ever shows."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def inline(figure: Figure, name: str, label: str) -> Markup:
    """A figure as an SVG element; ``name`` is unique on the page, ``label`` describes it."""
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_svg(file, metadata=dict.fromkeys(("Date", "Creator")))
    body = clean(file.getvalue()).split("</metadata>")[1]
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    tip = r"""<g id=(["'])tip:(.*?)\1>"""
    body = re.sub(tip, r"<g><title>\2</title>", body, flags=re.DOTALL)
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


def estimates_chart(estimates: Mapping[str, Estimate], name: str, label: str) -> Markup:
    """Estimates with their intervals below each other; the first one stands out."""
    figure, ax = _named_rows(0.32 + 0.2 * len(estimates), list(estimates))
    ax.get_yticklabels()[0].set_fontweight("bold")
    for i, (method, estimate) in enumerate(estimates.items()):
        colour, weight = (MUTED, "normal") if i else (ACCENT, "bold")
        text = f"{estimate.value:.3f}" if np.isfinite(estimate.value) else "–"
        beside = ax.get_yaxis_transform()
        ax.text(1.03, i, text, transform=beside, va="center", fontsize=7, fontweight=weight)
        if np.isfinite([estimate.value, estimate.low, estimate.high]).all():
            _draw_interval(ax, estimate, i, colour, i == 0, method)
            if i == 0:
                ax.axvline(estimate.value, color=colour, lw=0.6, ls=":", zorder=1)
    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.grid(axis="x", color=GRID, lw=0.6)
    return inline(figure, name, label)


def difference_chart(estimate: Estimate, label: str, sides: tuple[str, str]) -> Markup:
    """A difference on an axis with zero in the middle, and what either side means."""
    figure = new_figure(0.45)
    ax = figure.subplots()
    ax.set_axis_off()
    reach = 1.05 * max(abs(estimate.low), abs(estimate.high)) or 1.0
    ax.set(xlim=(-reach, reach), ylim=(-2.2, 1.0))
    ax.axhline(0.0, color=GRID, lw=0.8)
    ax.plot([0.0, 0.0], [-0.8, 0.8], color=MUTED, lw=0.8)
    _draw_interval(ax, estimate, 0.0, TONE, True, label)
    text: dict[str, Any] = {"va": "top", "color": MUTED, "fontsize": 8}
    ax.text(-reach, -1.1, f"← {sides[0]}", ha="left", **text)
    ax.text(reach, -1.1, f"{sides[1]} →", ha="right", **text)
    return inline(figure, "difference", label)


def reliability_chart(
    curves: Mapping[str, Array], probabilities: Array, name: str, label: str
) -> Markup:
    """Observed frequency against predicted probability, and a histogram of the predictions.

    A curve has rows of predicted, observed, and the ends of an interval of the latter. The first
    curve stands out; ``probabilities`` are its predictions.
    """
    figure = new_figure(3.2)
    ax, below = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
    ax.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls="--")
    entries = []
    for i, (method, curve) in reversed(list(enumerate(curves.items()))):
        colour, style, fill = (MUTED, ":", PAPER) if i else (ACCENT, "-", ACCENT)
        props: dict[str, Any] = {"color": colour, "ms": 4, "mfc": fill}
        ax.plot(curve[:, 0], curve[:, 1], color=colour, ls=style, zorder=3)
        entries += ax.plot([], [], "o", ls=style, **props, label=method)
        for p, o, low, high in curve:
            if i == 0:
                ax.plot([p, p], [low, high], color=colour, lw=0.8)
            (dot,) = ax.plot(p, o, "o", **props, zorder=4)
            tip = f"predicted {p:.2f}, observed {o:.2f} ({low:.2f} to {high:.2f})"
            _add_tip(dot, f"{method}: {tip}")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed frequency", yticks=_QUARTERS)
    ax.grid(color=GRID, lw=0.6)
    ax.tick_params(bottom=False)
    legend_above(ax, entries[::-1])
    counts, edges = np.histogram(probabilities, bins=20, range=(0.0, 1.0))
    bars = below.bar(edges[:-1], counts, 0.05, align="edge", color=ACCENT, ec=PAPER, lw=0.5)
    for bar, n, start in zip(bars, counts, edges, strict=False):
        _add_tip(bar, f"{n} rows from {start:.2f} to {start + 0.05:.2f}")
    below.set(xlabel="predicted probability", ylabel="rows", xticks=_QUARTERS)
    below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    below.spines[["top", "right"]].set_visible(False)
    return inline(figure, name, label)


def shares_chart(
    levels: Sequence[str], classes: Sequence[str], counts: NDArray[np.intp], label: str
) -> Markup:
    """The classes of each level as shares of a bar, the most trusted level first."""
    levels, counts = levels[::-1], counts[::-1]
    figure, ax = _named_rows(0.4 + 0.24 * len(levels) + 0.17 * -(-len(classes) // 2), levels)
    ax.spines[:].set_visible(False)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    start = np.zeros(len(levels))
    entries = []
    for k, name in enumerate(label_all(classes, 22)):
        colour, share = CLASS_COLOURS[k], shares[:, k]
        props: dict[str, Any] = {"color": _text_on(colour), "fontsize": 7}
        bars = ax.barh(range(len(levels)), share, 0.8, start, color=colour, ec=PAPER)
        texts = [f"{s:.0%}" if s > 0.14 else "" for s in share]
        ax.bar_label(bars, texts, label_type="center", **props)
        for bar, level, n, s in zip(bars, levels, counts[:, k], share, strict=True):
            _add_tip(bar, f"{level}, {classes[k]}: {n} rows, {s:.0%}")
        entries.append(Patch(fc=colour, label=name))
        start += share
    ax.set(xlim=(0.0, 1.0), xticks=[])
    legend_above(ax, entries, ncols=3)
    return inline(figure, "shares", label)


def _text_on(colour: str) -> str:
    """The colour of text that can be read on a colour."""
    luminance = np.power(to_rgb(colour), 2.2) @ [0.2126, 0.7152, 0.0722]
    return _LIGHT_TEXT if luminance < _MOST_DARK else _DARK_TEXT


def bars_chart(values: Mapping[str, Estimate], label: str) -> Markup:
    """Positive values as bars from zero with their intervals, and with the values beside them."""
    figure, ax = _named_rows(0.12 + 0.21 * len(values), list(values))
    each, places = list(values.values()), range(len(values))
    bars = ax.barh(places, [e.value for e in each], 0.62, color=ACCENT)
    for bar, place, (key, e) in zip(bars, places, values.items(), strict=True):
        _add_tip(bar, f"{key}: {e.value:.3f} ({e.low:.3f} to {e.high:.3f})")
        ax.plot([e.low, e.high], [place, place], color=INK, lw=1.0)
        beside = ax.get_yaxis_transform()
        ax.text(1.02, place, f"{e.value:.3f}", transform=beside, va="center", fontsize=7)
    ax.set(xlim=(0.0, max(e.high for e in each) or 1.0), xticks=[])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return inline(figure, "relevance", label)


def _add_tip(artist: Artist, text: str) -> None:
    """Give an artist a text that the browser shows under the pointer."""
    artist.set_gid(f"tip:{text}")


def _named_rows(height: float, names: Sequence[str]) -> tuple[Figure, Axes]:
    """A new figure, and its axes with names beside them, the first at the top."""
    figure = new_figure(height)
    ax = figure.subplots()
    ax.set_yticks(range(len(names)), label_all(names, _LETTERS))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.spines[["left", "right", "top"]].set_visible(False)
    return figure, ax


def _draw_interval(
    ax: Axes, estimate: Estimate, y: float, colour: str, filled: bool, name: str
) -> None:
    """An estimate as a dot on its interval."""
    ax.plot([estimate.low, estimate.high], [y, y], color=colour, lw=1.6 if filled else 1.2)
    (dot,) = ax.plot(estimate.value, y, "o", ms=5, color=colour, mfc=colour if filled else PAPER)
    dot.set_zorder(3)
    _add_tip(dot, f"{name}: {estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f})")
