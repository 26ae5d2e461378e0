"""How figures look: small, readable in black and white, legends outside of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from polyfid.plots.slices import Labelled
from polyfid.text import abbreviate

WIDTH = 3.4  # inches, a column of a journal
INK, SHADE = "#1b1b1f", "#b9bcc4"
HATCH = "/////"
#: Light enough for black lines and points on all of it, and its lightness grows throughout.
MAP = ListedColormap(matplotlib.colormaps["cividis"](np.linspace(0.38, 1.0, 256)), "polyfid")
#: Of levels, least trusted first; the top level has the last one and is drawn larger.
MARKERS = ("o", "^", "s", "v", "P")
TOP_MARKER = "D"
#: Points of a level that are drawn; of more, a sample.
MOST_POINTS = 300
#: The longest name that is shown whole, of a feature along an axis and of others in a legend.
_LONGEST, IN_LEGEND = 24, 15

#: Of legends, in units of their letters' height: a letter, a handle, what is between columns.
_LETTER, _HANDLE, _BETWEEN = 0.6, 1.8, 1.2
_BAR = 0.6  # inches that a colour bar takes

_RC: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7.0,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.3,
}


@contextmanager
def styled() -> Iterator[None]:
    """Sizes that suit a narrow figure, for the artists made meanwhile."""
    with matplotlib.rc_context(_RC):
        yield


def take_axes(ax: Any, n: int, height: float) -> list[Axes]:
    """The axes given, or those of a new figure of one column, ``height`` inches each."""
    if ax is None:
        figure = plt.figure(figsize=(WIDTH, height * n), layout="constrained")
        return list(figure.subplots(n, 1, squeeze=False).ravel())
    given = list(np.asarray(ax, dtype=object).ravel())
    if len(given) != n or not all(isinstance(a, Axes) for a in given):
        wanted = "a matplotlib Axes" if n == 1 else f"a list of {n} matplotlib Axes"
        raise ValueError(f"ax must be {wanted}, or None for a new figure; got {ax!r}")
    return given


def small_text(ax: Axes) -> None:
    """Labels and ticks of axes that were made before, perhaps by the user, in our sizes."""
    ax.tick_params(labelsize=_RC["xtick.labelsize"])
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(_RC["axes.labelsize"])


def shown(name: object, longest: int = _LONGEST) -> str:
    """A name from the data as text of a figure: cut if long, on one line, never taken for TeX."""
    (text,) = shown_all([name], longest)
    return text


def shown_all(names: Iterable[object], longest: int = _LONGEST) -> list[str]:
    """Names that stand in the same figure: the same, and those that differ look different."""
    lines = (" ".join(str(name).split()) for name in names)
    texts = [text.replace("$", r"\$") for text in abbreviate(lines, longest)]
    # A leading underscore would hide it from a legend.
    return ["\u2009" + text if text.startswith("_") else text for text in texts]


def legend_above(ax: Axes, handles: Sequence[Artist], whole: bool, ncols: int = 2) -> None:
    """A legend over the axes or, if ``whole``, over the figure, where no data are."""
    if not handles:
        return
    handles = list(handles)
    # Beside the axes there may be a colour bar, and the legend is in the middle of the axes.
    room = WIDTH if whole else WIDTH - _BAR
    while ncols > 1 and _legend_width(handles, ncols) > room:
        ncols -= 1
    look: dict[str, Any] = {
        "handles": handles,
        "ncols": ncols,
        "frameon": False,
        "handlelength": _HANDLE,
        "columnspacing": _BETWEEN,
        "labelspacing": 0.3,
        "borderaxespad": 0.2,
    }
    if whole:
        # Wider than the axes, it would push a colour bar away.
        ax.get_figure(root=True).legend(loc="outside upper center", **look)  # type: ignore[union-attr]
    else:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), **look)


def _legend_width(handles: Sequence[Artist], ncols: int) -> float:
    """About how wide a legend is, in inches."""
    rows = -(-len(handles) // ncols)
    columns = [handles[start : start + rows] for start in range(0, len(handles), rows)]
    letters = sum(max(len(str(h.get_label())) for h in column) for column in columns)
    around = len(columns) * (_HANDLE + 0.8) + (len(columns) - 1) * _BETWEEN
    return float((_LETTER * letters + around) * _RC["legend.fontsize"] / 72.0)


def nice_steps(low: float, high: float) -> NDArray[Any]:
    """Round numbers that cover a range, for the steps of a map."""
    return np.asarray(MaxNLocator(10, steps=[1, 2, 5, 10]).tick_values(low, high))


def line_entry(label: str, width: float = 1.4) -> Line2D:
    """A line of a legend."""
    return Line2D([], [], color=INK, linewidth=width, label=label)


def hatch_entry(label: str) -> Patch:
    """A hatched area of a legend."""
    return Patch(facecolor="none", edgecolor=INK, hatch=HATCH, linewidth=0.5, label=label)


def hatch_where(ax: Axes, x: Any, y: Any, positive: NDArray[Any]) -> None:
    """Hatch the area of a map where a smooth function is positive."""
    top = float(positive.max())
    if top <= 0.0:
        return
    area = ax.contourf(x, y, positive, levels=[0.0, 2.0 * top], colors="none", hatches=[HATCH])
    area.set_edgecolor(INK)
    area.set_linewidth(0.0)
    if positive.min() < 0.0:
        ax.contour(x, y, positive, levels=[0.0], colors=INK, linewidths=0.6, linestyles="--")


def marker_of(level: int, n_levels: int) -> tuple[str, float]:
    """Shape and size (in points) of the marks of a level."""
    if level == n_levels - 1:
        return TOP_MARKER, 4.2
    return MARKERS[level % len(MARKERS)], 3.2


def draw_points(ax: Axes, points: Labelled, places: NDArray[Any]) -> list[Artist]:
    """Labelled points at places (n, 2): shape by level, filled if of the class; legend entries."""
    n_levels = len(points.levels)
    entries: list[Artist] = []
    names = shown_all(points.levels, IN_LEGEND)
    for t, name in enumerate(names):
        members = np.flatnonzero(points.level == t)
        drawn = members
        if len(members) > MOST_POINTS:
            drawn = np.sort(np.random.RandomState(0).permutation(members)[:MOST_POINTS])
        marker, size = marker_of(t, n_levels)
        if t < n_levels - 1 and len(drawn) > 100:
            size *= 0.75
        look: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": size}
        for inside, fill in ((True, INK), (False, "white")):
            chosen = drawn[points.inside[drawn] == inside]
            edge = "white" if inside else INK
            ax.plot(*places[chosen].T, **look, mfc=fill, mec=edge, mew=0.4, zorder=4 + t)
        some = f" ({len(drawn)} of {len(members)})" if len(drawn) < len(members) else ""
        if len(members) and n_levels > 1:
            entries.append(
                Line2D([], [], **look, mfc=SHADE, mec=INK, mew=0.5, label=f"{name}{some}")
            )
    return entries


def class_entries(target: object, other: object) -> list[Artist]:
    """Legend entries for filled and open marks."""
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.0, "mec": INK}
    filled, open_ = shown_all([target, other], IN_LEGEND)
    return [
        Line2D([], [], **look, mfc=INK, label=f"filled: {filled}"),
        Line2D([], [], **look, mfc="white", label=f"open: {open_}"),
    ]
