"""Small drawings as SVG: numbers in, markup out.

They are drawn 340 units wide, about the width of a telephone, so that their text has the size of
the text around them, and with the colours of the page, so that they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.evaluation import Estimate
from polyfid.report import svg
from polyfid.text import abbreviate

__all__ = ["Curve", "bar_plot", "difference", "dot_plot", "reliability", "share_plot"]


class Curve(NamedTuple):
    """Points of a reliability curve: predicted, observed with interval, and how many rows each."""

    name: str
    predicted: Array
    observed: Array
    low: Array
    high: Array


def dot_plot(rows: Sequence[tuple[str, Estimate]], label: str) -> Markup:
    """Estimates below each other, each a dot with its interval; the first one stands out.

    Examples
    --------
    >>> from polyfid.evaluation import Estimate
    >>> from polyfid.report.drawing import dot_plot
    >>> drawing = dot_plot(
    ...     [("a", Estimate(0.5, 0.4, 0.6)), ("<b>", Estimate(0.7, 0.6, 0.8))], "AUC"
    ... )
    >>> "&lt;b&gt;" in drawing, drawing.count("<circle")
    (True, 2)
    """
    names = abbreviate((name for name, _ in rows), svg.LONGEST)
    gutter, step, top = svg.gutter(names), 25, 6
    values = svg.finite([v for _, e in rows for v in (e.value, e.low, e.high)])
    ticks = svg.round_ticks(values.min(), values.max())
    left, right = gutter + 8, svg.WIDTH - 52
    x = svg.scale(ticks, left, right)
    bottom = top + step * len(rows)
    parts = [svg.vertical(x(t), top, bottom) for t in ticks]
    parts += [svg.tick(x(t), bottom + 15, svg.tick_label(t, ticks)) for t in ticks]
    if np.isfinite(rows[0][1].value):
        here = x(rows[0][1].value)
        parts.append(svg.line(here, top, here, bottom, "var(--accent)", 1, "2 3"))
    for i, (name, estimate) in enumerate(rows):
        y = top + step * (i + 0.5)
        colour, weight = ("var(--accent)", 650) if i == 0 else ("var(--muted)", 400)
        parts.append(svg.text(gutter, y + 4, names[i], "end", weight=weight))
        parts.append(
            svg.text(svg.WIDTH - 2, y + 4, svg.number(estimate.value), "end", weight=weight)
        )
        if np.isfinite([estimate.value, estimate.low, estimate.high]).all():
            parts.append(svg.interval(x, estimate, y, colour, filled=i == 0, name=name))
    return svg.document(bottom + 22, label, parts)


def difference(estimate: Estimate, label: str, left: str, right: str) -> Markup:
    """A difference on an axis with zero in the middle, and what either side means."""
    reach = max(abs(estimate.low), abs(estimate.high)) or 1.0
    x = svg.scale([-reach, reach], 14, svg.WIDTH - 14)
    parts = [
        svg.line(14, 16, svg.WIDTH - 14, 16, "var(--grid)"),
        svg.line(x(0), 4, x(0), 28, "var(--muted)"),
        svg.interval(x, estimate, 16, "var(--tone)", filled=True, name=label, radius=6),
        svg.text(14, 44, f"← {left}", "start", colour="var(--muted)"),
        svg.text(svg.WIDTH - 14, 44, f"{right} →", "end", colour="var(--muted)"),
    ]
    return svg.document(50, label, parts)


def reliability(curves: Sequence[Curve], probabilities: Array, label: str) -> Markup:
    """Observed frequency against predicted probability, and where the predictions lie.

    The first curve stands out. ``probabilities`` are its predictions, for the histogram below.
    """
    left, right, top, side = 52, svg.WIDTH - 10, 26, 250
    bottom, strip = top + side, 44
    x = svg.scale([0, 1], left, right)
    y = svg.scale([1, 0], top, bottom)
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)
    parts = []
    for t in quarters:
        parts += [svg.line(left, y(t), right, y(t)), svg.vertical(x(t), top, bottom)]
        parts.append(svg.text(left - 6, y(t) + 4, f"{t:g}", "end", colour="var(--muted)", size=11))
    parts.append(svg.line(x(0), y(0), x(1), y(1), "var(--muted)", 1.2, "5 4"))
    start = float(left)
    for i, curve in reversed(list(enumerate(curves))):
        parts += _curve(curve, x, y, strong=i == 0)
    for i, curve in enumerate(curves):
        parts += _sample(start, 10, curve.name, strong=i == 0)
        start += 34 + svg.LETTER * len(curve.name) + 16
    base = bottom + 8 + strip
    counts, edges = np.histogram(probabilities, bins=20, range=(0.0, 1.0))
    for n, start, stop in zip(counts, edges, edges[1:], strict=False):
        if n:
            height = strip * n / counts.max()
            title = f"{n} rows from {start:.2f} to {stop:.2f}"
            box = x(start) + 0.5, base - height, x(stop) - x(start) - 1, height
            parts.append(svg.box(*box, "var(--accent)", title, opacity=0.55))
    parts.append(svg.line(left, base, right, base, "var(--muted)"))
    parts += [svg.tick(x(t), base + 15, f"{t:g}") for t in quarters]
    parts.append(svg.text((left + right) / 2, base + 31, "predicted probability", "middle"))
    middle = (top + bottom) / 2
    parts.append(
        Markup('<g transform="translate(11 {}) rotate(-90)">{}</g>').format(
            svg.rounded(middle), svg.text(0, 0, "observed frequency", "middle")
        )
    )
    return svg.document(base + 37, label, parts)


def _curve(curve: Curve, x: svg.Scale, y: svg.Scale, *, strong: bool) -> list[Markup]:
    colour = "var(--accent)" if strong else "var(--muted)"
    at = [(x(p), y(o)) for p, o in zip(curve.predicted, curve.observed, strict=True)]
    width, dash = (2.0, "") if strong else (1.5, "3 3")
    parts = [svg.line(*a, *b, colour, width, dash) for a, b in pairwise(at)]
    for p, o, low, high in zip(*curve[1:], strict=True):
        title = f"{curve.name}: predicted {p:.2f}, observed {o:.2f} ({low:.2f} to {high:.2f})"
        if strong:
            parts.append(svg.line(x(p), y(low), x(p), y(high), colour, 1.2))
        parts.append(svg.dot(x(p), y(o), 4 if strong else 3.2, colour, strong, title))
    return parts


def _sample(x: float, y: float, name: str, *, strong: bool) -> list[Markup]:
    """A line of the legend."""
    colour = "var(--accent)" if strong else "var(--muted)"
    return [
        svg.line(x, y, x + 26, y, colour, 2.0 if strong else 1.5, "" if strong else "3 3"),
        svg.dot(x + 13, y, 4 if strong else 3.2, colour, strong, ""),
        svg.text(x + 32, y + 4, name),
    ]


def share_plot(
    levels: Sequence[str], classes: Sequence[str], counts: NDArray[np.intp], label: str
) -> Markup:
    """The classes of each level as parts of a bar, the most trusted level first."""
    names = abbreviate(levels, svg.LONGEST)
    gutter, step, top = svg.gutter(names), 30, 4
    left, right = gutter + 8, svg.WIDTH - 2
    parts: list[Markup] = []
    for i, t in enumerate(range(len(levels) - 1, -1, -1)):
        y = top + step * i
        total = max(int(counts[t].sum()), 1)
        parts.append(svg.text(gutter, y + 16, names[t], "end"))
        start = float(left)
        for k, n in enumerate(counts[t]):
            if not n:
                continue
            width = (right - left) * n / total
            title = f"{levels[t]}, {classes[k]}: {n} rows, {svg.percent(n / total)}"
            parts.append(svg.box(start, y, max(width - 1.5, 1), 22, svg.class_colour(k), title))
            if width > 36:
                parts.append(
                    svg.text(
                        start + width / 2, y + 15.5, f"{svg.percent(n / total)}", "middle", kind=k
                    )
                )
            start += width
    below, x = top + step * len(levels) + 6.0, float(left)
    for k, shown in enumerate(abbreviate(classes, 22)):
        width = 22 + svg.LETTER * len(shown)
        if x > left and x + width > right:
            x, below = float(left), below + 20
        parts += [
            svg.box(x, below, 11, 11, svg.class_colour(k), ""),
            svg.text(x + 16, below + 10, shown),
        ]
        x += width + 10
    return svg.document(below + 18, label, parts)


def bar_plot(rows: Sequence[tuple[str, float]], label: str, form: str = "{:.3f}") -> Markup:
    """Positive figures as bars from zero."""
    names = abbreviate((name for name, _ in rows), svg.LONGEST)
    gutter, step = svg.gutter(names), 22
    left, right = gutter + 8, svg.WIDTH - 46
    most = max((value for _, value in rows), default=0.0) or 1.0
    parts = []
    for i, (name, value) in enumerate(rows):
        y = 4 + step * i
        title = f"{name}: {form.format(value)}"
        parts.append(svg.text(gutter, y + 12, names[i], "end", title=title))
        width = max((right - left) * value / most, 1.0)
        parts.append(svg.box(left, y + 1, width, 14, "var(--accent)", title, opacity=0.75))
        parts.append(svg.text(left + width + 6, y + 12.5, form.format(value), size=11))
    return svg.document(4 + step * len(rows), label, parts)
