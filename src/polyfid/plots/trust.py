"""How far each level can be trusted: the link to the level below, and what its labels explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.inspection import Link, level_contributions, level_links
from polyfid.plots import style
from polyfid.plots.slices import FeatureTable
from polyfid.plots.style import INK, LEGEND_LETTERS, MAP, PAPER, SHADE, WIDTH

#: Hatches of the bars of levels, most trusted first.
_HATCHES = ("", "////", "----", "xxxx", "||||")
_TICK_LETTERS = 14  # of a name beside the axes


def trust_axes(figure: Figure, n_models: int, n_levels: int) -> list[Axes]:
    """The three axes of an empty figure, whose height is set to what they need."""
    heights = [0.75 + 0.32 * n_models * (n_levels - 1), 0.85 + 0.27 * n_models]
    figure.set_figheight(sum(heights))
    grid = figure.add_gridspec(2, 2, height_ratios=heights)
    return [figure.add_subplot(cell) for cell in (grid[0, 0], grid[0, 1], grid[1, :])]


@dataclass(kw_only=True, eq=False, repr=False)
class TrustDisplay:
    """The links between levels and what the labels of each level contribute.

    rho is the slope with which the latent function of a level follows the one below it, and the
    correlation is that of the two functions under the prior with tuned hyper-parameters: 1 where
    the lower level says all that the upper one does, 0 where it says nothing, negative where it
    says the opposite. Points are averages over structures by weight. Intervals (95 %) cover the
    spread over structures and, for fits of up to 1000 rows and 30 hyper-parameters, the
    uncertainty of the hyper-parameters (normal with the curvature of their posterior).

    The contribution of a level is the share of the prior variance of the top latent function by
    which its posterior variance falls, averaged over rows, when the labels of the level are added
    to those of all more trusted levels. Shares and the unexplained rest sum to one.

    Parameters
    ----------
    levels : tuple
        Least trusted first.
    links : list of lists of Link
        One list per binary model (one, or one per class), one entry per step between levels.
    contributions : array of shape (n_models, n_levels + 1)
        Shares by level, least trusted first, and the unexplained rest.
    classes : tuple
        Names of the models, empty if there is one.

    Attributes
    ----------
    axes_ : array of three Axes: rho, correlation, contributions
    ax_, figure_ : the first of the axes, and the Figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, stack_levels
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import TrustDisplay
    >>> X = np.random.RandomState(0).uniform(-1, 1, (60, 2))
    >>> X, y, fidelity = stack_levels(
    ...     {"crowd": (X[:40], X[:40, 0] > 0.1), "gold": (X[40:], X[40:, 0] > 0)}
    ... )
    >>> model = MultiFidelityClassifier(kernel=1.0 * RBF()).fit(X, y, fidelity=fidelity)
    >>> display = TrustDisplay.from_estimator(model)
    >>> display.links[0][0].correlation > 0.5, display.contributions.shape
    (True, (1, 3))
    """

    levels: tuple[Any, ...]
    links: list[list[Link]]
    contributions: Array
    classes: tuple[Any, ...] = ()
    ax_: Axes = field(init=False)
    axes_: NDArray[Any] = field(init=False)
    figure_: Figure = field(init=False)

    @classmethod
    def from_estimator(
        cls, model: MultiFidelityClassifier, X: Any = None, *, ax: Sequence[Axes] | None = None
    ) -> Self:
        """Compute the links of a fitted model and draw them.

        Parameters
        ----------
        model : fitted MultiFidelityClassifier
            With two levels or more.
        X : array or data frame of shape (n, d), optional
            Where contributions are measured (on a sample of up to 300); by default the rows that
            the model was fitted to.
        ax : three Axes, optional
            For rho, correlation and contributions; by default those of a new figure, 3.4 inches
            wide.
        """
        links = level_links(model)
        x = None if X is None else FeatureTable.read(model, X).x
        display = cls(
            levels=model.levels_,
            links=links,
            contributions=level_contributions(model, x),
            classes=tuple(model.classes_.tolist()) if len(model.classes_) > 2 else (),
        )
        return display.plot(ax)

    def plot(self, ax: Sequence[Axes] | None = None) -> Self:
        """Draw it, on three axes given or in a new figure."""
        with style.styled():
            if ax is None:
                figure = plt.figure(figsize=(WIDTH, 1.0), layout="constrained")
                axes = trust_axes(figure, len(self.links), len(self.levels))
            else:
                axes = style.take_axes(ax, 3, 0.0)
            self.axes_, self.ax_ = np.array(axes, dtype=object), axes[0]
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            self._draw_links(axes[0], axes[1], whole=ax is None)
            self._draw_contributions(axes[2])
            for one in axes:
                style.small_text(one)
        return self

    def _named_links(self) -> list[tuple[str, Link]]:
        """Rows of the upper panels from the top: one per step between levels and binary model."""
        levels, classes = (style.label_all(n, _TICK_LETTERS) for n in (self.levels, self.classes))
        named = []
        for t, (lower, upper) in enumerate(pairwise(levels)):
            for k, links in enumerate(self.links):
                name = f"{upper}\non {lower}"
                if classes:
                    name = f"{classes[k]}\n{upper}" if len(levels) > 2 else classes[k]
                named.append((name, links[t]))
        return named

    def _draw_links(self, left: Axes, right: Axes, whole: bool) -> None:
        named = self._named_links()
        places = -np.arange(len(named), dtype=float)
        for ax, quantity in ((left, "rho"), (right, "correlation")):
            for place, (_, link) in zip(places, named, strict=True):
                each = getattr(link, f"{quantity}_each")
                ax.plot(getattr(link, f"{quantity}_interval"), [place, place], color=INK, lw=1.2)
                if len(each) > 1:
                    props: dict[str, Any] = {"c": SHADE, "edgecolors": INK, "lw": 0.5}
                    ax.scatter(each, np.full(len(each), place), s=40.0 * link.weights, **props)
                ax.plot(getattr(link, quantity), place, "D", ms=4.5, color=INK, mec=PAPER, mew=0.5)
            ax.set(ylim=(places[-1] - 0.6, 0.6), xlabel=quantity)
            ax.set_yticks(places, [name for name, _ in named] if ax is left else [])
            ax.grid(axis="x", lw=0.4, color=SHADE)
        right.tick_params(left=False)
        right.set_xlim(-1.08, 1.08)
        right.set_xticks([-1, 0, 1])
        low, high = left.get_xlim()
        left.set_xlim(min(low, -0.1), max(high, 1.1))
        if any(len(link.weights) > 1 for _, link in named):
            mark: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.5, "mec": INK, "mew": 0.5}
            entries = [
                Line2D([], [], color=INK, marker="D", ms=4, lw=1.2, label="average, 95 %"),
                Line2D([], [], **mark, mfc=SHADE, label="structures, by weight"),
            ]
            style.legend_above(left, entries, whole)

    def _draw_contributions(self, ax: Axes) -> None:
        n = len(self.levels)
        places = -np.arange(len(self.contributions), dtype=float)
        start = np.zeros(len(places))
        names = [*style.label_all(self.levels, LEGEND_LETTERS), "unexplained"]
        entries = []
        for k in (*range(n - 1, -1, -1), n):  # most trusted first, as shares are counted
            share = self.contributions[:, k]
            props: dict[str, Any] = {"facecolor": PAPER, "edgecolor": INK, "linewidth": 0.6}
            if k < n:
                props["facecolor"] = MAP(k / (n - 1))
                props["hatch"] = _HATCHES[(n - 1 - k) % len(_HATCHES)]
            ax.barh(places, share, 0.62, start, **props)
            entries.append(Patch(**props, label=names[k]))
            for place, middle, width in zip(places, start + share / 2, share, strict=True):
                if width >= 0.1:
                    box = {"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none"}
                    text: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.0}
                    ax.text(middle, place, f"{width:.0%}", **text, bbox=box)
            start = start + share
        ax.set(xlim=(0.0, 1.0), ylim=(places[-1] - 0.5, 0.5))
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100 %"])
        ax.set_yticks(places if self.classes else [], style.label_all(self.classes, _TICK_LETTERS))
        ax.set_xlabel("explained by the labels of each level")
        style.legend_above(ax, entries, ncols=3)
