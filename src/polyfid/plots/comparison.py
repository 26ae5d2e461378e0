"""What the cheap labels add: labels, a model of the trusted ones alone, and the model of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.estimator.baselines import TrustedOnly, for_one_level
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import check_rows, read_levels
from polyfid.inspection import class_codes, find_class
from polyfid.plots import style
from polyfid.plots.slices import DrawnPoints, FeatureGrid, FeatureTable

_PANEL = 2.9, 3.1  # inches, each
_TITLES = "the labels", "trusted labels alone", "all labels together"


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(style.Display):
    """The labels, what the trusted ones say alone, and what all of them say together.

    Three maps over two features: the rows of all levels, the probability of a class by a model of
    the trusted rows alone, and by the model of all rows. Both maps have the same colours, the line
    where the probability is one half, and the trusted rows.

    ``values`` has the grid along each feature; ``alone`` and ``together`` are probabilities over
    it, (n_1, n_0). ``target`` is the class, one of ``classes``, and ``points`` are the rows.

    Examples
    --------
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.datasets import make_cokriging
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import ComparisonDisplay
    >>> made = make_cokriging(40, 20, n_features=2, random_state=0)
    >>> model = MultiFidelityClassifier(1.0 * RBF())
    >>> model = model.fit(made.data, made.target, fidelity=made.fidelity)
    >>> display = ComparisonDisplay.from_estimator(
    ...     model, made.data, made.target, made.fidelity, grid_resolution=20
    ... )
    >>> display.alone.shape, [ax.get_title() for ax in display.axes_]
    ((20, 20), ['the labels', 'trusted labels alone', 'all labels together'])
    """

    values: tuple[Array, ...]
    alone: Array
    together: Array
    feature_names: tuple[str, ...]
    target: Any
    classes: tuple[Any, ...]
    points: DrawnPoints

    @classmethod
    def from_estimator(
        cls,
        model: MultiFidelityClassifier,
        X: Any,
        y: ArrayLike,
        fidelity: Any = None,
        *,
        alone: Any = None,
        features: Any = None,
        target: Any = None,
        others: Any = "median",
        grid_resolution: int | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Sequence[Axes] | None = None,
    ) -> Self:
        """Compute both maps and draw them.

        Parameters
        ----------
        model : fitted MultiFidelityClassifier
        X, y, fidelity
            The rows that it was fitted to; ``fidelity`` may be a column of X.
        alone : fitted classifier, optional
            The model of the trusted rows; by default one with the parameters of ``model`` (of a
            list of kernels the first) is fitted to them.
        features : two int or str, optional
            Indices or names; by default the first two.
        target, others, grid_resolution, feature_names
            As in `FeasibilityDisplay.from_estimator`.
        ax : three Axes, optional
            By default those of a new figure, 9 inches wide.
        """
        check_is_fitted(model, "report_")
        table = FeatureTable.read(model, X, feature_names)
        check_rows("y", np.asarray(y), len(table.x))
        fidelity = table.fidelity if fidelity is None else fidelity
        levels, level = read_levels(model.levels_, fidelity, len(table.x))
        if alone is None:
            # The rows come without the column of the fidelity here.
            one = for_one_level(model).set_params(fidelity_feature=None)
            alone = TrustedOnly(one, levels=levels)
            alone.fit(table.like_given(table.x), y, fidelity=[levels[t] for t in level])
        grid = FeatureGrid.over(model, table, features, others, grid_resolution)
        if len(grid.index) != 2:
            raise ValueError(
                f"features must be two features, got {features!r}; FeasibilityDisplay draws one"
            )

        def probability(of: Any) -> Array:
            k = find_class(of, model.classes_[target_code])
            return grid.average(lambda rows: of.predict_proba(table.like_given(rows))[:, [k]])[0]

        target_code = find_class(model, target)
        classes = tuple(model.classes_)
        display = cls(
            values=grid.values,
            alone=probability(alone),
            together=probability(model),
            feature_names=grid.names,
            target=classes[target_code],
            classes=classes,
            points=DrawnPoints(
                table.x[:, grid.index], class_codes(model, y, level), classes, level, levels
            ),
        )
        return display.plot(ax)

    def plot(self, ax: Sequence[Axes] | None = None) -> Self:
        """Draw it, on three axes given or in a new figure."""
        with matplotlib.rc_context(style.RC):
            whole = ax is None
            axes = self._take_axes(ax, 3, _PANEL[1], width=_PANEL[0], in_a_row=True)
            text = f"P({style.label(self.target)})"
            entries = self._draw_maps(axes[1:], text)
            trusted, code = self.points.at_top, self.classes.index(self.target)
            entries = [*self.points.draw(axes[0], self.points.x, code), *entries]
            for one in axes[1:]:
                trusted.draw(one, trusted.x, code)
            x, y = self.values
            xlabel, ylabel = style.label_all(self.feature_names)
            for one, title in zip(axes, _TITLES, strict=True):
                one.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=xlabel, title=title)
                style.small_text(one)
            axes[0].set_ylabel(ylabel)
            style.legend_above(axes[0], entries, whole=whole, ncols=len(entries) if whole else 1)
        return self

    def _draw_maps(self, axes: Sequence[Axes], text: str) -> list[Artist]:
        """Both maps in the same colours, with one colour bar; return the entry of the boundary."""
        maps = self.alone, self.together
        reach = max(float(np.abs(p - 0.5).max()) for p in maps)
        how = (
            style.even_steps(0.5, reach, most=0.5),
            style.map_of_class(self.classes.index(self.target), len(self.classes)),
        )
        entries: dict[str, Artist] = {}
        for one, p in zip(axes, maps, strict=True):
            bar = text if one is axes[-1] else None
            drawn = style.draw_map(one, self.values, p, *how, bar, (0.5, f"{text} = 0.5"), None)
            entries |= {str(entry.get_label()): entry for entry in drawn}
        return list(entries.values())
