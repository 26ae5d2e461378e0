"""Where a class is feasible: its probability over one or two features, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.inspection import find_class
from polyfid.model.logistic import expected_sigmoid
from polyfid.plots import style
from polyfid.plots.slices import FeatureGrid, FeatureTable, LabelledPoints
from polyfid.plots.style import HATCH, INK, LEGEND_LETTERS, PAPER, SHADE

#: A 95 % band reaches so many standard deviations of the latent function to either side.
Z = 1.96


@dataclass(kw_only=True, eq=False, repr=False)
class FeasibilityDisplay:
    """Probability of a class over one or two features, with the band where it is uncertain.

    The boundary is where the probability is one half. It is uncertain where one half lies between
    ``low`` and ``high``, the probabilities at the latent mean minus and plus 1.96 posterior
    standard deviations (with more than two classes the class shown varies and the others are
    fixed). Where other features are averaged over, so are the three probabilities.

    Parameters
    ----------
    values : tuple of one or two arrays
        The grid along each feature.
    probability : array of shape (n_0,) or (n_1, n_0)
    low, high : arrays of the same shape, or None
        None for models without a latent function.
    feature_names : tuple of str
    target : class label
    points : LabelledPoints, optional
        Rows to draw.
    other : object
        Name of the rows that are not of the class: the other class, or "others".

    Attributes
    ----------
    ax_, figure_ : Axes and Figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import FeasibilityDisplay
    >>> X = np.random.RandomState(0).uniform(-1, 1, (40, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = MultiFidelityClassifier(kernel=1.0 * RBF()).fit(X, y)
    >>> display = FeasibilityDisplay.from_estimator(model, X, y, grid_resolution=20)
    >>> display.probability.shape, display.target
    ((20, 20), np.True_)
    """

    values: tuple[Array, ...]
    probability: Array
    low: Array | None
    high: Array | None
    feature_names: tuple[str, ...]
    target: Any
    points: LabelledPoints | None = None
    other: Any = "others"
    ax_: Axes = field(init=False)
    figure_: Figure = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None = None,
        fidelity: Any = None,
        *,
        features: Any = None,
        target: Any = None,
        level: Any = None,
        others: Any = "median",
        grid_resolution: int | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the map of a fitted model and draw it.

        Parameters
        ----------
        model : fitted classifier
            Only MultiFidelityClassifier has a band.
        X : array or data frame of shape (n, d)
            The map covers the range of these rows.
        y, fidelity : array-like of shape (n,), optional
            Labels and levels of these rows; with ``y`` they are drawn.
        features : int, str, or two of them, optional
            Indices or names; by default the first two.
        target : class label, optional
            The class; by default the last, the positive one of two.
        level : level name, optional
            The level whose label is predicted; the top level by default.
        others : "median", "average" or array-like of shape (d,)
            Other features are fixed at their median or at these values, or averaged over rows.
        grid_resolution : int, optional
            Nodes along a feature; by default from 30 to 80, by cost, and 200 for one feature.
        feature_names : sequence of str, optional
            By default those of the model or of X.
        ax : Axes, optional
            By default those of a new figure, 3.4 inches wide.
        """
        check_is_fitted(model)
        table = FeatureTable.read(model, X, feature_names)
        k = find_class(model, target)
        grid = FeatureGrid.over(model, table, features, others, grid_resolution)
        columns = grid.average(
            lambda rows: _probability_and_band(model, table.like_given(rows), k, level)
        )
        has_band = columns.shape[-1] == 3
        points = None
        if y is not None:
            points = LabelledPoints.read(model, table, y, fidelity, model.classes_[k])
            points = replace(points, x=points.x[:, grid.index])
        display = cls(
            values=grid.values,
            probability=columns[..., 0],
            low=columns[..., 1] if has_band else None,
            high=columns[..., 2] if has_band else None,
            feature_names=tuple(table.names[j] for j in grid.index),
            target=model.classes_[k],
            points=points,
            other="others" if len(model.classes_) > 2 else model.classes_[1 - k],
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, on the axes given or in a new figure."""
        with style.styled():
            (self.ax_,) = style.take_axes(ax, 1, 3.3 if len(self.values) == 2 else 2.6)
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            entries = self._draw_curve() if len(self.values) == 1 else self._draw_map()
            self.ax_.set_xlabel(style.label_all(self.feature_names)[0])
            style.small_text(self.ax_)
            style.legend_above(self.ax_, entries, whole=ax is None)
        return self

    @property
    def _margin(self) -> Array | None:
        """Positive where the boundary is uncertain."""
        if self.low is None or self.high is None:
            return None
        return np.minimum(0.5 - self.low, self.high - 0.5)

    @property
    def _label(self) -> str:
        return f"P({style.label(self.target, LEGEND_LETTERS)})"

    def _draw_map(self) -> list[Artist]:
        ax, (x, y), p, margin = self.ax_, self.values, self.probability, self._margin
        bar = style.draw_map(ax, x, y, p, np.linspace(0.0, 1.0, 11), self._label)
        entries: list[Artist] = []
        if p.min() < 0.5 < p.max():
            ax.contour(x, y, p, levels=[0.5], colors=INK, linewidths=1.6)
            bar.ax.axhline(0.5, color=INK, linewidth=1.6)
            entries.append(style.line_entry(f"{self._label} = 0.5", width=1.6))
        if margin is not None and margin.max() > 0.0:
            style.hatch_where(ax, x, y, margin)
            entries.append(style.hatch_entry("uncertain boundary"))
        if self.points is not None:
            entries += self.points.draw(ax, self.points.x, self.target, self.other)
        ax.set_ylabel(style.label_all(self.feature_names)[1])
        return entries

    def _draw_curve(self) -> list[Artist]:
        ax, (x,), margin = self.ax_, self.values, self._margin
        entries: list[Artist] = list(ax.plot(x, self.probability, color=INK, label=self._label))
        ax.axhline(0.5, color=INK, linestyle=":", linewidth=0.8)
        if margin is not None:
            band: Any = (self.low, self.high)
            entries.append(ax.fill_between(x, *band, color=SHADE, lw=0, label="95 % band"))
        if margin is not None and margin.max() > 0.0:
            props: dict[str, Any] = {"facecolor": PAPER, "edgecolor": INK, "lw": 0.5}
            where = (margin > 0.0).tolist()
            ax.fill_between(x, 0.47, 0.53, where=where, hatch=HATCH, zorder=1.5, **props)
            entries.append(style.hatch_entry("uncertain boundary"))
        room = 0.0
        if self.points is not None:
            # Above and below the curve, one line per level, the most trusted nearest to it.
            points, gap = self.points, 0.07
            away = gap * (len(points.levels) - points.level)
            height = np.where(points.inside, 1.0 + away, -away)
            places = np.stack([points.x[:, 0], height], axis=1)
            entries += points.draw(ax, places, self.target, self.other)
            room = gap * (len(points.levels) + 1)
        ax.set(xlim=(x[0], x[-1]), ylim=(-room, 1.0 + room), ylabel=self._label)
        ax.set_yticks(np.linspace(0.0, 1.0, 5))
        return entries


def _probability_and_band(model: Any, X: Any, k: int, level: Any) -> Array:
    """Probability of class k, (m, 1), and with a latent function the ends of its band, (m, 3)."""
    at_level = {} if level is None else {"fidelity": level}
    p = model.predict_proba(X, **at_level)[:, k]
    if not hasattr(model, "latent_mean_and_variance"):
        return np.asarray(p[:, None])
    mean, variance = model.latent_mean_and_variance(X, **at_level)
    binary = mean.ndim == 1
    if binary:
        mean = -mean if k == 0 else mean
    else:
        mean, variance = mean[:, k], variance[:, k]
    reach = Z * np.sqrt(variance)
    ends = [expit(mean - reach), expit(mean + reach)]
    if not binary:
        # Probabilities of the classes are divided by their sum, to which the others add this.
        tiny = np.finfo(float).tiny
        rest = expected_sigmoid(mean, variance) * (1.0 - p) / np.maximum(p, tiny)
        ends = [np.divide(e, e + rest, out=np.zeros_like(e), where=e + rest > 0.0) for e in ends]
    return np.stack([p, *ends], axis=1)
