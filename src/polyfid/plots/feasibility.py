"""Where a class is feasible: its probability over one or two features, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.model.logistic import expected_sigmoid
from polyfid.plots.slices import Labelled, Slice, Table, class_place, default_resolution
from polyfid.plots.style import (
    HATCH,
    IN_LEGEND,
    INK,
    MAP,
    SHADE,
    class_entries,
    draw_points,
    hatch_entry,
    hatch_where,
    legend_above,
    line_entry,
    shown,
    shown_all,
    small_text,
    styled,
    take_axes,
)

#: Standard deviations of the latent function on either side of its mean: 95 %.
Z = 1.96


class FeasibilityDisplay:
    """Probability of a class over one or two features, with the band where it is uncertain.

    The boundary is where the probability is one half. It is uncertain where one half lies between
    ``low`` and ``high``, the probabilities at the latent mean minus and plus 1.96 posterior
    standard deviations (with more than two classes those of the class shown move, the others
    stay). Where other features are averaged over, so are the three probabilities.

    Parameters
    ----------
    values : tuple of one or two arrays
        The grid along each feature.
    probability : array of shape (n_0,) or (n_1, n_0)
    low, high : arrays of the same shape, or None
        None for models without a latent function.
    feature_names : tuple of str
    target : class label
    points : Labelled, optional
        Rows to draw.
    other : object
        What rows of no other mark are called: the other class, or "others".

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

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        values: tuple[Array, ...],
        probability: Array,
        low: Array | None,
        high: Array | None,
        feature_names: tuple[str, ...],
        target: Any,
        points: Labelled | None = None,
        other: Any = "others",
    ) -> None:
        self.values, self.probability, self.low, self.high = values, probability, low, high
        self.feature_names, self.target = feature_names, target
        self.points, self.other = points, other

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
            Others than MultiFidelityClassifier have no band.
        X : array or data frame of shape (n, d)
            The map covers their range.
        y, fidelity : array-like of shape (n,), optional
            Labels and levels of these rows; with ``y`` they are drawn.
        features : int, str, or two of them, optional
            Places or names; by default the first two.
        target : class label, optional
            The class; by default the last, which of two is the positive one.
        level : level name, optional
            Whose label is predicted; the top level by default.
        others : "median", "average" or array-like of shape (d,)
            Other features are fixed at their median or at these values, or averaged over rows.
        grid_resolution : int, optional
            Nodes along a feature; by default from 30 to 80, by cost, and 200 for one feature.
        feature_names : sequence of str, optional
            Else those of the model or of X.
        ax : Axes, optional
            Else a figure of its own, 3.4 inches wide.
        """
        check_is_fitted(model)
        table = Table.read(model, X, feature_names)
        index = table.find(features)
        place = class_place(model, target)
        resolution = grid_resolution or default_resolution(model, others, len(index))
        grid = Slice.of(table.x, index, resolution, others)
        found = grid.average(lambda rows: _probabilities(model, table.wrap(rows), place, level))
        label = model.classes_[place]
        has_band = found.shape[-1] == 3
        points = None if y is None else Labelled.read(model, table, y, fidelity, label)
        if points is not None:
            points = Labelled(points.x[:, index], points.inside, points.level, points.levels)
        display = cls(
            values=grid.values,
            probability=found[..., 0],
            low=found[..., 1] if has_band else None,
            high=found[..., 2] if has_band else None,
            feature_names=tuple(table.names[j] for j in index),
            target=label,
            points=points,
            other="others" if len(model.classes_) > 2 else model.classes_[1 - place],
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, on the axes given or in a figure of its own."""
        with styled():
            (self.ax_,) = take_axes(ax, 1, 3.3 if len(self.values) == 2 else 2.6)
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            entries = self._curve() if len(self.values) == 1 else self._map()
            self.ax_.set_xlabel(shown_all(self.feature_names)[0])
            small_text(self.ax_)
            legend_above(self.ax_, entries, whole=ax is None)
        return self

    @property
    def _margin(self) -> Array | None:
        """Positive where the boundary is uncertain."""
        if self.low is None or self.high is None:
            return None
        return np.minimum(0.5 - self.low, self.high - 0.5)

    @property
    def _label(self) -> str:
        return f"P({shown(self.target, IN_LEGEND)})"

    def _map(self) -> list[Artist]:
        ax, (x, y) = self.ax_, self.values
        steps = np.linspace(0.0, 1.0, 11)
        area = ax.contourf(x, y, self.probability, steps, cmap=MAP, vmin=0.0, vmax=1.0)
        bar = self.figure_.colorbar(area, ax=ax, ticks=steps[::2], pad=0.02, aspect=25)
        bar.set_label(self._label)
        small_text(bar.ax)
        entries: list[Artist] = []
        if self.probability.min() < 0.5 < self.probability.max():
            ax.contour(x, y, self.probability, levels=[0.5], colors=INK, linewidths=1.6)
            bar.ax.axhline(0.5, color=INK, linewidth=1.6)
            entries.append(line_entry(f"{self._label} = 0.5", width=1.6))
        if self._margin is not None and self._margin.max() > 0.0:
            hatch_where(ax, x, y, self._margin)
            entries.append(hatch_entry("boundary may be here"))
        if self.points is not None:
            entries += draw_points(ax, self.points, self.points.x)
            entries += self._classes()
        ax.set_xlim(x[0], x[-1])
        ax.set_ylim(y[0], y[-1])
        ax.set_ylabel(shown_all(self.feature_names)[1])
        return entries

    def _curve(self) -> list[Artist]:
        ax, (x,) = self.ax_, self.values
        entries: list[Artist] = []
        if self.low is not None and self.high is not None and self._margin is not None:
            band = ax.fill_between(x, self.low, self.high, color=SHADE, lw=0, label="95 % band")
            entries.append(band)
        (line,) = ax.plot(x, self.probability, color=INK, label=self._label)
        entries.insert(0, line)
        ax.axhline(0.5, color=INK, linestyle=":", linewidth=0.8)
        if self._margin is not None and self._margin.max() > 0.0:
            look: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "lw": 0.5}
            where = (self._margin > 0.0).tolist()
            ax.fill_between(x, 0.47, 0.53, where=where, hatch=HATCH, zorder=1.5, **look)
            entries.append(hatch_entry("boundary may be here"))
        low, high = 0.0, 1.0
        if self.points is not None:
            # Beside the curve, a line a level, the most trusted nearest to it.
            away = 0.07 * (len(self.points.levels) - self.points.level)
            height = np.where(self.points.inside, 1.0 + away, -away)
            entries += draw_points(ax, self.points, np.stack([self.points.x[:, 0], height], 1))
            entries += self._classes()
            room = 0.07 * (len(self.points.levels) + 1)
            low, high = -room, 1.0 + room
        ax.set_xlim(x[0], x[-1])
        ax.set_ylim(low, high)
        ax.set_yticks(np.linspace(0.0, 1.0, 5))
        ax.set_ylabel(self._label)
        return entries

    def _classes(self) -> list[Artist]:
        return class_entries(self.target, self.other)


def _probabilities(model: Any, X: Any, place: int, level: Any) -> Array:
    """Probability of the class, (m, 1), and with a latent function the ends of its band, (m, 3)."""
    how = {} if level is None else {"fidelity": level}
    p = model.predict_proba(X, **how)[:, place]
    if not hasattr(model, "latent_mean_and_variance"):
        return np.asarray(p[:, None])
    mean, variance = model.latent_mean_and_variance(X, **how)
    if mean.ndim == 2:
        mean, variance = mean[:, place], variance[:, place]
        # Probabilities of the classes are brought to the sum one: what the others weigh.
        tiny = np.finfo(float).tiny
        rest = expected_sigmoid(mean, variance) * (1.0 - p) / np.maximum(p, tiny)
    else:
        if place == 0:
            mean = -mean
        rest = None
    reach = Z * np.sqrt(variance)
    ends = [expit(mean - reach), expit(mean + reach)]
    if rest is not None:
        ends = [np.divide(e, e + rest, out=np.zeros_like(e), where=e + rest > 0.0) for e in ends]
    return np.stack([p, *ends], axis=1)
