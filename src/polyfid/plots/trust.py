"""How far each level can be trusted: the link to the level below, and what its labels explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.inspection import Link, level_contributions, level_links
from polyfid.plots import style
from polyfid.plots.slices import FeatureTable
from polyfid.plots.style import INK, MUTED, PAPER, SHADE

_TICK_LETTERS = 14  # of a name beside the axes


def trust_axes(figure: Figure, n_models: int, n_levels: int) -> list[Axes]:
    """The three axes of an empty figure, whose height is set to what they need."""
    heights = [0.75 + 0.32 * n_models * (n_levels - 1), 0.85 + 0.27 * n_models]
    figure.set_figheight(sum(heights))
    grid = figure.add_gridspec(2, 2, height_ratios=heights)
    return [figure.add_subplot(cell) for cell in (grid[0, 0], grid[0, 1], grid[1, :])]


@dataclass(kw_only=True, eq=False, repr=False)
class TrustDisplay(style.Display):
    """The links between levels and what the labels of each level contribute.

    rho is the slope with which the latent function of a level follows the one below it, and the
    correlation is that of the two functions under the prior with tuned hyper-parameters: 1 where
    the lower level says all that the upper one does, 0 where it says nothing, negative where it
    says the opposite. Points are averages over structures by weight. Intervals (95 %) cover the
    spread over structures and the uncertainty of the hyper-parameters (normal with the curvature
    of their posterior), the latter as far as some ten seconds allow, heaviest structures first.
    ``model.report_`` and the HTML report show the same figures.

    The contribution of a level is the share of the prior variance of the top latent function by
    which its posterior variance falls, averaged over rows, when the labels of the level are added
    to those of all more trusted levels. Shares and the unexplained rest sum to one.

    ``links`` has one list of `Link` per binary model (one, or one per class, named by
    ``classes``), from the lowest of the ``levels``; ``contributions`` is an array of shape
    (n_models, n_levels + 1): shares by level, least trusted first, and the rest.

    Examples
    --------
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.datasets import make_cokriging
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import TrustDisplay
    >>> made = make_cokriging(40, 20, n_features=2, random_state=0)
    >>> model = MultiFidelityClassifier(1.0 * RBF())
    >>> model = model.fit(made.data, made.target, fidelity=made.fidelity)
    >>> display = TrustDisplay.from_estimator(model)
    >>> display.links[0][0].correlation > 0.5, display.contributions.shape
    (True, (1, 3))
    """

    levels: tuple[Any, ...]
    links: list[list[Link]]
    contributions: Array
    classes: tuple[Any, ...] = ()

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
        with matplotlib.rc_context(style.RC):
            whole = ax is None
            if ax is None:
                figure = plt.figure(figsize=(style.WIDTH, 1.0), layout="constrained")
                ax = trust_axes(figure, len(self.links), len(self.levels))
            left, right, below = self._take_axes(ax, 3)
            self._draw_links(left, right, whole)
            self._draw_contributions(below)
            for one in (left, right, below):
                style.small_text(one)
        return self

    def _draw_links(self, left: Axes, right: Axes, whole: bool) -> None:
        """One line per step between levels and binary model, from the top."""
        levels, classes = (style.label_all(n, _TICK_LETTERS) for n in (self.levels, self.classes))
        names = [
            "\n".join([*classes[k : k + 1], *([upper] if len(levels) > 2 else [])])
            if classes
            else f"{upper}\non {lower}"
            for lower, upper in pairwise(levels)
            for k in range(len(self.links))
        ]
        links = [link for step in zip(*self.links, strict=True) for link in step]
        for ax, quantity in ((left, "rho"), (right, "correlation")):
            for place, link in enumerate(links):
                each = getattr(link, f"{quantity}_each")
                ax.plot(getattr(link, f"{quantity}_interval"), [place, place], color=INK, lw=1.2)
                if len(each) > 1:
                    props: dict[str, Any] = {"c": SHADE, "edgecolors": INK, "lw": 0.5}
                    ax.scatter(each, np.full(len(each), place), s=40.0 * link.weights, **props)
                ax.plot(getattr(link, quantity), place, "D", ms=4.5, color=INK, mec=PAPER, mew=0.5)
            ax.set(ylim=(len(links) - 0.4, -0.6), xlabel=quantity)
            ax.set_yticks(range(len(links)), names if ax is left else [""] * len(links))
            ax.grid(axis="x", lw=0.4, color=SHADE)
        right.tick_params(left=False)
        right.set(xlim=(-1.08, 1.08), xticks=[-1, 0, 1])
        low, high = left.get_xlim()
        left.set_xlim(min(low, -0.1), max(high, 1.1))
        if any(len(link.weights) > 1 for link in links):
            mark: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.5, "mec": INK, "mew": 0.5}
            entries = [
                Line2D([], [], color=INK, marker="D", ms=4, lw=1.2, label="average, 95 %"),
                Line2D([], [], **mark, mfc=SHADE, label="structures, by weight"),
            ]
            style.legend_above(left, entries, whole)

    def _draw_contributions(self, ax: Axes) -> None:
        n, places = len(self.levels), np.arange(len(self.contributions))
        start = np.zeros(len(places))
        names = [*style.label_all(self.levels, style.LEGEND_LETTERS), "unexplained"]
        box = {"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none"}
        entries, shades = [], style.ramp(style.LEVEL)
        for k in (*range(n - 1, -1, -1), n):  # most trusted first, as shares are counted
            props: dict[str, Any] = {"facecolor": PAPER, "edgecolor": MUTED, "linewidth": 0.6}
            if k < n:
                # The more trusted, the darker.
                props["facecolor"] = shades[(k + 1) * (len(shades) - 1) // n]
            share = self.contributions[:, k]
            bars = ax.barh(places, share, 0.62, start, **props)
            texts = [f"{width:.0%}" if width >= 0.1 else "" for width in share]
            ax.bar_label(bars, texts, label_type="center", fontsize=7.0, bbox=box)
            entries.append(Patch(**props, label=names[k]))
            start = start + share
        ax.set(xlim=(0.0, 1.0), ylim=(len(places) - 0.5, -0.5))
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100 %"])
        ax.set_yticks(places if self.classes else [], style.label_all(self.classes, _TICK_LETTERS))
        ax.set_xlabel("explained by the labels of each level")
        style.legend_above(ax, entries, ncols=3)
