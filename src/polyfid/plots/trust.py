"""How far each level can be trusted: the link to the level below, and what its labels bring."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.plots.links import Link, contributions, links
from polyfid.plots.slices import Table
from polyfid.plots.style import (
    IN_LEGEND,
    INK,
    MAP,
    SHADE,
    WIDTH,
    legend_above,
    shown_all,
    small_text,
    styled,
    take_axes,
)

#: Of the bars of levels, least trusted first; what is left has none.
_HATCHES = ("", "////", "....", "xxxx", "||||")
_SHORT = 14  # letters of a name beside the axes


class TrustDisplay:
    """The links between levels and what the labels of each level contribute.

    rho is how the latent function of a level follows the one below it, and the correlation is that
    of the two functions under the prior with tuned hyper-parameters: 1 where the lower level says
    all that the upper one does, 0 where it says nothing, negative where it says the opposite.
    Points are averages over structures by weight. Intervals (95 %) cover the spread over structures
    and, for fits of up to 1000 rows and 30 hyper-parameters, the uncertainty of the
    hyper-parameters (normal with the curvature of their posterior).

    The contribution of a level is the share of the prior variance of the top latent function by
    which its posterior variance falls, averaged over rows, when the labels of the level are added
    to those of all more trusted levels. Shares and what stays unknown sum to one.

    Parameters
    ----------
    levels : tuple
        Least trusted first.
    links : list of lists of Link
        A list a binary model (one, or one a class), an entry a step between levels.
    contributions : array of shape (n_models, n_levels + 1)
        Shares by level, least trusted first, and what is left.
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

    ax_: Axes
    axes_: NDArray[Any]
    figure_: Figure

    def __init__(
        self,
        *,
        levels: tuple[Any, ...],
        links: list[list[Link]],
        contributions: Array,
        classes: tuple[Any, ...] = (),
    ) -> None:
        self.levels, self.links, self.contributions = levels, links, contributions
        self.classes = classes

    @classmethod
    def from_estimator(
        cls, model: MultiFidelityClassifier, X: Any = None, *, ax: Sequence[Axes] | None = None
    ) -> Self:
        """Read the links of a fitted model and draw them.

        Parameters
        ----------
        model : fitted MultiFidelityClassifier
            With two levels or more.
        X : array or data frame of shape (n, d), optional
            Where contributions are measured (on a sample of up to 300); by default the rows that
            the model was fitted to.
        ax : three Axes, optional
            For rho, correlation and contributions; else a figure of its own, 3.4 inches wide.
        """
        check_is_fitted(model, "report_")
        if len(model.levels_) < 2:
            raise ValueError(
                f"model has one level only, {model.levels_[0]!r}, and there is no link to show; "
                "fit it to labels of two levels or more"
            )
        x = None if X is None else Table.read(model, X).x
        weak = model.prior == "weak"
        mixtures = model._mixtures
        display = cls(
            levels=model.levels_,
            links=[links(m, model.levels_, weak) for m in mixtures],
            contributions=np.stack([contributions(m, model.levels_, x) for m in mixtures]),
            classes=() if len(mixtures) == 1 else tuple(model.classes_.tolist()),
        )
        return display.plot(ax)

    def plot(self, ax: Sequence[Axes] | None = None) -> Self:
        """Draw it, on three axes given or in a figure of its own."""
        with styled():
            axes = self._new_axes() if ax is None else take_axes(ax, 3, 0.0)
            self.axes_ = np.array(axes, dtype=object)
            self.ax_ = axes[0]
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            self._draw_links(axes[0], axes[1], whole=ax is None)
            self._draw_bars(axes[2])
            for one in axes:
                small_text(one)
        return self

    def _new_axes(self) -> list[Axes]:
        n_rows, n_bars = len(self._rows()), len(self.contributions)
        heights = [0.75 + 0.32 * n_rows, 0.85 + 0.27 * n_bars]
        figure = plt.figure(figsize=(WIDTH, sum(heights)), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=heights)
        return [figure.add_subplot(part) for part in (grid[0, 0], grid[0, 1], grid[1, :])]

    def _rows(self) -> list[tuple[str, Link]]:
        """Lines of the upper panels from the top: a step, or a step of a class."""
        rows = []
        levels, classes = (shown_all(names, _SHORT) for names in (self.levels, self.classes))
        for t, (lower, upper) in enumerate(pairwise(levels)):
            for k, steps in enumerate(self.links):
                link = steps[t]
                name = f"{upper}\non {lower}"
                if classes:
                    name = classes[k]
                    name += f"\n{upper}" if len(levels) > 2 else ""
                rows.append((name, link))
        return rows

    def _draw_links(self, left: Axes, right: Axes, whole: bool) -> None:
        rows = self._rows()
        places = -np.arange(len(rows), dtype=float)
        for ax, label in ((left, "rho"), (right, "correlation")):
            for place, (_, link) in zip(places, rows, strict=True):
                each = getattr(link, f"{label}_each")
                ax.plot(getattr(link, f"{label}_interval"), [place, place], color=INK, lw=1.2)
                if len(each) > 1:  # by weight
                    size = 40.0 * link.weights
                    ax.scatter(
                        each, np.full(len(each), place), s=size, c=SHADE, edgecolors=INK, lw=0.5
                    )
                ax.plot(getattr(link, label), place, "D", ms=4.5, color=INK, mec="white", mew=0.5)
            ax.set_ylim(places[-1] - 0.6, 0.6)
            ax.set_yticks(places, [name for name, _ in rows] if ax is left else [])
            ax.set_xlabel(label)
            ax.grid(axis="x", lw=0.4, color=SHADE)
        right.tick_params(left=False)
        right.set_xlim(-1.08, 1.08)
        right.set_xticks([-1, 0, 1])
        low, high = left.get_xlim()
        left.set_xlim(min(low, -0.1), max(high, 1.1))
        if any(len(link.weights) > 1 for _, link in rows):
            mark: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.5, "mec": INK}
            entries = [
                Line2D([], [], color=INK, marker="D", ms=4, lw=1.2, label="average, 95 %"),
                Line2D([], [], **mark, mfc=SHADE, mew=0.5, label="structures, by weight"),
            ]
            legend_above(left, entries, whole)

    def _draw_bars(self, ax: Axes) -> None:
        n = len(self.levels)
        places = -np.arange(len(self.contributions), dtype=float)
        # From the most trusted level on, as shares are counted.
        order = [*range(n - 1, -1, -1), n]
        left = np.zeros(len(places))
        entries = []
        names = shown_all(self.levels, IN_LEGEND)
        for k in order:
            share = self.contributions[:, k]
            name = names[k] if k < n else "unknown"
            look: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
            if k < n:
                look["facecolor"] = MAP(k / max(n - 1, 1))
                look["hatch"] = _HATCHES[(n - 1 - k) % len(_HATCHES)]
            ax.barh(places, share, 0.62, left, **look)
            for place, start, width in zip(places, left, share, strict=True):
                if width >= 0.1:
                    ax.text(
                        start + width / 2,
                        place,
                        f"{width:.0%}",
                        ha="center",
                        va="center",
                        fontsize=7.0,
                        bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"},
                    )
            entries.append(Patch(**look, label=name))
            left = left + share
        ax.set_xlim(0.0, 1.0)
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100 %"])
        ax.set_ylim(places[-1] - 0.5, 0.5)
        ax.set_yticks(places if self.classes else [], shown_all(self.classes, _SHORT))
        ax.set_xlabel("known by labels of each level")
        n_columns = 3 if sum(map(len, names)) < 25 else 2
        legend_above(ax, entries, False, n_columns)
