"""Elements of drawings, which escape what they write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from polyfid.arrays import Array
from polyfid.evaluation import Estimate

WIDTH = 340
#: Colours of classes that the page defines; more classes are not told apart by colour.
N_COLOURS = 8
LETTER = 7.0  # the width of a typical letter of 12 units
LONGEST = 16  # letters of a name


class Scale:
    """A linear map of values to coordinates."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self._low, self._start = low, start
        self._slope = (stop - start) / (high - low)

    def __call__(self, value: float) -> float:
        return self._start + (value - self._low) * self._slope


def scale(ticks: Sequence[float], start: float, stop: float) -> Scale:
    """The map that takes the first and last of some ticks to the ends of an axis."""
    return Scale(ticks[0], ticks[-1], start, stop)


def document(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    """A whole drawing, with words for those who cannot see it."""
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, rounded(height), label, Markup("").join(parts)
    )


def text(
    x: float,
    y: float,
    words: str,
    anchor: str = "start",
    *,
    colour: str = "var(--ink)",
    weight: int = 400,
    size: float = 12,
    title: str = "",
    kind: int | None = None,
) -> Markup:
    """Words; on the colour of a class (``kind``) they are black or white whatever the page is."""
    fill = colour if kind is None else ("#fff" if kind % N_COLOURS == 0 else "#111")
    return Markup(
        '<text x="{}" y="{}" text-anchor="{}" fill="{}" font-weight="{}" font-size="{}">{}{}</text>'
    ).format(rounded(x), rounded(y), anchor, fill, weight, size, _title(title), words)


def tick(x: float, y: float, words: str) -> Markup:
    """The words of a tick, centred."""
    return text(x, y, words, "middle", colour="var(--muted)", size=11)


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    colour: str = "var(--grid)",
    width: float = 1,
    dash: str = "",
) -> Markup:
    """A straight line."""
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{}"{}/>').format(
        *map(rounded, (x1, y1, x2, y2)),
        colour,
        width,
        Markup(' stroke-dasharray="{}"').format(dash) if dash else "",
    )


def vertical(x: float, top: float, bottom: float) -> Markup:
    """A line of the grid."""
    return line(x, top, x, bottom)


def dot(x: float, y: float, r: float, colour: str, filled: bool, title: str) -> Markup:
    """A filled or an open circle, with a title that a pointer shows."""
    return Markup(
        '<circle cx="{}" cy="{}" r="{}" fill="{}" stroke="{}" stroke-width="1.6">{}</circle>'
    ).format(rounded(x), rounded(y), r, colour if filled else "var(--field)", colour, _title(title))


def interval(
    x: Scale,
    estimate: Estimate,
    y: float,
    colour: str,
    *,
    filled: bool,
    name: str,
    radius: float = 4.5,
) -> Markup:
    """An estimate as a dot on a bar."""
    title = f"{name}: {estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f})"
    bar = line(x(estimate.low), y, x(estimate.high), y, colour, 2.4 if filled else 1.8)
    return bar + dot(x(estimate.value), y, radius, colour, filled, title)


def box(
    x: float, y: float, width: float, height: float, colour: str, title: str, opacity: float = 1.0
) -> Markup:
    """A rectangle, with a title that a pointer shows."""
    return Markup(
        '<rect x="{}" y="{}" width="{}" height="{}" fill="{}" fill-opacity="{}" rx="1.5">{}</rect>'
    ).format(*map(rounded, (x, y, width, height)), colour, opacity, _title(title))


def _title(words: str) -> Markup:
    return Markup("<title>{}</title>").format(words) if words else Markup("")


def class_colour(k: int) -> str:
    """The colour of a class, by its place."""
    return f"var(--class-{k % N_COLOURS})"


def percent(share: float) -> str:
    """A share in words: 12 %."""
    return f"{100 * share:.0f}\u00a0%"


def rounded(value: float) -> str:
    """A coordinate in a few digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def number(value: float) -> str:
    """A score in words."""
    return f"{value:.3f}" if np.isfinite(value) else "–"


def gutter(names: Sequence[str]) -> float:
    """The room that names on the left take."""
    return LETTER * min(max(len(name) for name in names), LONGEST) + 4


def finite(values: Sequence[float]) -> Array:
    """The finite ones among values, 0 and 1 if there are none."""
    array = np.asarray(values, dtype=float)
    array = array[np.isfinite(array)]
    return array if len(array) else np.array([0.0, 1.0])


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers, two or more, that enclose a range."""
    span = max(high - low, 1e-3, 1e-6 * abs(high))
    for step in (
        m * 10.0**e for e in range(int(np.floor(np.log10(span))) - 1, 99) for m in (1, 2, 5)
    ):
        first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
        if last - first < most:
            return [float(step * k) for k in np.arange(first, max(last, first + 1) + 1)]
    raise AssertionError("unreachable: some step is wide enough")


def tick_label(value: float, ticks: Sequence[float]) -> str:
    """A tick with as many decimals as its neighbours need."""
    decimals = max(0, -int(np.floor(np.log10(ticks[1] - ticks[0]) + 1e-9)))
    return f"{value:.{decimals}f}".replace("-", "−")
