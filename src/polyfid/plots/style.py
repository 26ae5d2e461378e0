"""The style of figures: one column wide, one colour per class, legends beside the data.

The report draws its figures in the same style and replaces these colours by those of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.text import abbreviate

WIDTH = 3.4  # inches, a column of a journal
INK, MUTED, SHADE, GRID, PAPER = "#1b1b1f", "#5f636b", "#b9bcc4", "#d8dade", "#ffffff"
#: Colours of classes, in their order, that people who are colour-blind can tell apart. Of two
#: classes the second, which is the positive one, is blue; more classes than colours are grey.
CLASS_COLOURS = (
    *("#d98200", "#0072b2", "#009e73", "#c2669a"),
    *("#56b4e9", "#c04a00", "#b5a900", "#7d5bb5"),
)
#: The middle of maps: not quite the white of the page, so that the two can be told apart.
MIDDLE, REST, LEVEL = "#fcfcfc", "#9a9ea7", "#7a2fc4"
#: How much of the colour of its end a map has, from the middle outwards: at the end not all of it,
#: so that points of the same colour stand out.
RAMP_SHARES = np.linspace(0.0, 0.8, 64)
#: How opaque the band is that marks where something is uncertain.
BAND_ALPHA = 0.15
#: Longest names, in letters: along an axis and in a legend.
AXIS_LETTERS, LEGEND_LETTERS = 24, 15
#: Standard deviations of the latent function that a 95 % band reaches to either side.
Z = 1.96

#: Sizes in legends, in units of the font size: a handle, the gap between columns.
_HANDLE, _GAP = 1.8, 1.2
_COLORBAR = 0.6  # inches that a colour bar takes
_SMALL = 7.0
_TICKS: dict[str, Any] = {"labelsize": _SMALL, "major.width": 0.6, "major.size": 2.5}
_TICKS |= {"color": MUTED, "labelcolor": INK}

#: Sizes and colours, for `matplotlib.rc_context` around all drawing.
RC: dict[Any, Any] = {
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 8.0),
    **dict.fromkeys(("text.color", "axes.labelcolor"), INK),
    **{f"{axis}tick.{name}": value for axis in "xy" for name, value in _TICKS.items()},
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    # Whatever the background of a notebook or the user's style.
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), PAPER),
    "legend.fontsize": _SMALL,
    "legend.frameon": False,
    "legend.handlelength": _HANDLE,
    "legend.columnspacing": _GAP,
    "legend.labelspacing": 0.3,
    "legend.borderaxespad": 0.2,
    "lines.linewidth": 1.3,
}


class Display:
    """What every display has after `plot`: its axes, the first of them, and the figure."""

    axes_: NDArray[Any]
    ax_: Axes
    figure_: Figure

    def _take_axes(
        self, ax: Any, n: int, height: float = 0.0, width: float = WIDTH, in_a_row: bool = False
    ) -> list[Axes]:
        """Use the axes given, or those of a new figure: each of that size, below each other."""
        if ax is None:
            n_rows, n_columns = (1, n) if in_a_row else (n, 1)
            size = (width * n_columns, height * n_rows)
            figure = plt.figure(figsize=size, layout="constrained")
            ax = figure.subplots(n_rows, n_columns, squeeze=False, sharey=in_a_row)
        axes = np.asarray(ax, dtype=object).ravel()
        if len(axes) != n or not all(isinstance(one, Axes) for one in axes):
            wanted = "a matplotlib Axes" if n == 1 else f"a list of {n} matplotlib Axes"
            raise ValueError(f"ax must be {wanted}, or None for a new figure; got {ax!r}")
        self.axes_, self.ax_ = axes, axes[0]
        self.figure_ = axes[0].get_figure(root=True)
        return list(axes)


def small_text(ax: Axes) -> None:
    """Set the font sizes of axes that were created before, perhaps by the user."""
    ax.tick_params(labelsize=_SMALL)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(RC["axes.labelsize"])


def label_all(names: Iterable[object], longest: int = AXIS_LETTERS) -> list[str]:
    """Names from the data as text of a figure: short, still different, never taken for TeX."""
    lines = (" ".join(str(name).split()) for name in names)
    texts = [text.replace("$", r"\$") for text in abbreviate(lines, longest)]
    # A leading underscore would hide a name from a legend.
    return ["\u2009" + text if text.startswith("_") else text for text in texts]


def label(name: object) -> str:
    """One name as `label_all` has it, for a legend."""
    return label_all([name], LEGEND_LETTERS)[0]


def legend_above(ax: Axes, handles: Sequence[Artist], whole: bool = False, ncols: int = 2) -> None:
    """A legend above the axes or, if ``whole``, above the figure, in as many columns as fit."""
    if not handles:
        return
    figure: Any = ax.get_figure(root=True)
    # A colour bar may stand beside the axes, and the legend is centred on the axes.
    wide = figure.get_figwidth()
    room = wide if whole else min(WIDTH, wide) - _COLORBAR
    while ncols > 1 and _legend_width(handles, ncols) > room:
        ncols -= 1
    if whole:
        # A legend of the axes that is wider than they are would push the colour bar away.
        figure.legend(handles=list(handles), ncols=ncols, loc="outside upper center")
    else:
        above = (0.5, 1.0)
        ax.legend(handles=list(handles), ncols=ncols, loc="lower center", bbox_to_anchor=above)


def _legend_width(handles: Sequence[Artist], ncols: int) -> float:
    """Width of a legend in inches."""
    n_rows = -(-len(handles) // ncols)
    font = FontProperties(size=_SMALL)
    lengths = [
        text_to_path.get_text_width_height_descent(str(handle.get_label()), font, ismath=False)[0]
        for handle in handles
    ]
    columns = [max(lengths[start : start + n_rows]) for start in range(0, len(lengths), n_rows)]
    units = len(columns) * (_HANDLE + 0.8 + _GAP) - _GAP
    return float((sum(columns) + units * _SMALL) / 72.0)


def class_colours(n_classes: int, target: int) -> list[str]:
    """The colours of all classes, the same in all figures; of very many only one stands out."""
    if n_classes <= len(CLASS_COLOURS):
        return list(CLASS_COLOURS[:n_classes])
    return [CLASS_COLOURS[1] if k == target else REST for k in range(n_classes)]


def ramp(end: str) -> list[str]:
    """Colours from the middle of a map to one of its ends, in the shares of `RAMP_SHARES`."""
    middle, deep = np.array(to_rgb(MIDDLE)), np.array(to_rgb(end))
    return [to_hex((1.0 - share) * middle + share * deep) for share in RAMP_SHARES]


def diverging(low: str, high: str) -> ListedColormap:
    """Colours of a map from one end over the middle to the other one."""
    return ListedColormap([*ramp(low)[::-1], *ramp(high)], "polyfid")


def map_of_class(k: int, n_classes: int) -> ListedColormap:
    """Colours of the probability of class k: its own where it is likely, else that of the rest."""
    other = CLASS_COLOURS[1 - k] if n_classes == 2 else REST
    return diverging(other, class_colours(n_classes, k)[k])


def even_steps(middle: float, reach: float, most: float = np.inf) -> Array:
    """Values at which the colours of a map change, as far from its middle on both sides.

    They are round numbers, reach as far as the data do, and no further than ``most``.
    """
    ticks = np.asarray(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, reach or 1.0))
    ends = ticks[(ticks > 0.0) & (ticks <= most)]
    return np.concatenate([middle - ends[::-1], [middle], middle + ends])


def band_entry(text: str) -> Patch:
    """A shaded band in a legend."""
    return Patch(facecolor=INK, alpha=2.0 * BAND_ALPHA, linewidth=0.0, label=text)


def draw_map(
    ax: Axes,
    grid: tuple[Array, ...],
    values: Array,
    steps: Array,
    colours: ListedColormap,
    text: str | None,
    contour: tuple[float, str] | None,
    band: tuple[Array, str] | None,
) -> list[Artist]:
    """Fill the axes with values on a grid (x, y), in steps of colour; return legend entries.

    ``text`` is beside the colour bar; without it there is none. A contour is a value and its name;
    the area where the first of ``band`` is positive is shaded, and has the second as its name.
    """
    x, y = grid
    area = ax.contourf(x, y, values, steps, cmap=colours, vmin=steps[0], vmax=steps[-1])
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    bar = None if text is None else draw_colorbar(ax, area, text)
    entries: list[Artist] = []
    if contour is not None and values.min() < contour[0] < values.max():
        ax.contour(x, y, values, levels=[contour[0]], colors=INK, linewidths=1.6)
        if bar is not None:
            bar.ax.axhline(contour[0], color=INK, linewidth=1.6)
        entries.append(Line2D([], [], color=INK, linewidth=1.6, label=contour[1]))
    if band is not None and band[0].max() > 0.0:
        margin, levels = band[0], [0.0, 2.0 * float(band[0].max())]
        ax.contourf(x, y, margin, levels=levels, colors=[INK], alpha=BAND_ALPHA)
        if margin.min() < 0.0:
            ax.contour(x, y, margin, levels=[0.0], colors=INK, linewidths=0.5, linestyles="--")
        entries.append(band_entry(band[1]))
    return entries


def draw_colorbar(ax: Axes, area: Any, text: str) -> Colorbar:
    """The colour bar of a map or of points, beside the axes."""
    ticks = MaxNLocator(6, steps=[1, 2, 5, 10])
    figure: Any = ax.get_figure(root=True)
    bar: Colorbar = figure.colorbar(area, ax=ax, ticks=ticks, pad=0.02, aspect=25)
    bar.set_label(text)
    small_text(bar.ax)
    return bar
