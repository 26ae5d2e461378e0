"""Where a class is feasible: its probability over one or two features, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.estimator.inputs import check_rows, read_levels
from polyfid.inspection import class_codes, find_class
from polyfid.model.logistic import expected_sigmoid
from polyfid.plots import style
from polyfid.plots.slices import DrawnPoints, FeatureGrid, FeatureTable
from polyfid.plots.style import INK

_UNCERTAIN = "boundary may be here"  # in legends


@dataclass(kw_only=True, eq=False, repr=False)
class FeasibilityDisplay(style.Display):
    """Probability of a class over one or two features, with the band where it is uncertain.

    The boundary is where the probability is one half. It is uncertain where one half lies between
    ``low`` and ``high``, the probabilities at the ends of the 95 % interval of the latent function
    (with more than two classes the class shown varies and the others are fixed). Where other
    features are averaged over, so are the three probabilities.

    ``values`` has the grid along each feature; ``probability``, ``low`` and ``high`` are arrays
    over it, (n_0,) or (n_1, n_0), the last two None for models without a latent function.
    ``target`` is the class, one of ``classes``, and ``points`` the rows drawn. Each class has one
    colour, of points and of where it is likely; white is a probability of one half.

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
    >>> display.probability.shape, bool(display.target)
    ((20, 20), True)
    """

    values: tuple[Array, ...]
    probability: Array
    low: Array | None
    high: Array | None
    feature_names: tuple[str, ...]
    target: Any
    classes: tuple[Any, ...]
    points: DrawnPoints | None = None

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
        points, classes = None, tuple(model.classes_)
        if y is not None:
            check_rows("y", np.asarray(y), len(table.x))
            fidelity = table.fidelity if fidelity is None else fidelity
            names = None if fidelity is None else getattr(model, "levels_", None)
            names, levels = read_levels(names, fidelity, len(table.x), is_part=True)
            points = DrawnPoints(
                table.x[:, grid.index], class_codes(model, y, levels), classes, levels, names
            )
        display = cls(
            values=grid.values,
            probability=columns[0],
            low=columns[1] if len(columns) == 3 else None,
            high=columns[2] if len(columns) == 3 else None,
            feature_names=grid.names,
            target=model.classes_[k],
            classes=classes,
            points=points,
        )
        return display.plot(ax)

    @property
    def _code(self) -> int:
        return self.classes.index(self.target)

    @property
    def is_clear_somewhere(self) -> bool:
        """Whether the band of the probability leaves one half out anywhere."""
        if self.low is None or self.high is None:
            return True
        return bool((_margin(self.low, self.high) < 0.0).any())

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, on the axes given or in a new figure."""
        with matplotlib.rc_context(style.RC):
            self._take_axes(ax, 1, 3.3 if len(self.values) == 2 else 2.6)
            text = f"P({style.label(self.target)})"
            entries = (self._draw_map if len(self.values) == 2 else self._draw_curve)(text)
            xlabel, ylabel, *_ = *style.label_all(self.feature_names), text
            self.ax_.set(xlabel=xlabel, ylabel=ylabel)
            style.small_text(self.ax_)
            style.legend_above(self.ax_, entries, whole=ax is None)
        return self

    def _draw_map(self, text: str) -> list[Artist]:
        ax, contour, band = self.ax_, (0.5, f"{text} = 0.5"), None
        if self.low is not None and self.high is not None:
            band = _margin(self.low, self.high), _UNCERTAIN
        steps = style.even_steps(0.5, float(np.abs(self.probability - 0.5).max()), most=0.5)
        colours = style.map_of_class(self._code, len(self.classes))
        values = self.probability
        entries = style.draw_map(ax, self.values, values, steps, colours, text, contour, band)
        if self.points is not None:
            entries += self.points.draw(ax, self.points.x, self._code)
        return entries

    def _draw_curve(self, text: str) -> list[Artist]:
        ax, (x,) = self.ax_, self.values
        entries: list[Artist] = list(ax.plot(x, self.probability, color=INK, label=text))
        ax.axhline(0.5, color=INK, linestyle=":", linewidth=0.8)
        if self.low is not None and self.high is not None:
            band: dict[str, Any] = {"color": style.SHADE, "lw": 0, "label": "95 % band"}
            entries.append(ax.fill_between(x, self.low, self.high, **band))
            where = _margin(self.low, self.high) > 0.0
            if where.any():
                props: dict[str, Any] = {"color": INK, "alpha": style.BAND_ALPHA, "lw": 0.0}
                props |= {"transform": ax.get_xaxis_transform(), "zorder": 1.5}
                ax.fill_between(x, 0.0, 1.0, where=where.tolist(), **props)
                entries.append(style.band_entry(_UNCERTAIN))
        room = 0.0
        if self.points is not None:
            # Above and below the curve, one line per level, the most trusted nearest to it.
            points, gap = self.points, 0.07
            away = gap * (len(points.levels) - points.level)
            inside = points.code == self._code
            places = np.stack([points.x[:, 0], np.where(inside, 1.0 + away, -away)], axis=1)
            entries += points.draw(ax, places, self._code)
            room = gap * (len(points.levels) + 1)
        ax.set(xlim=(x[0], x[-1]), ylim=(-room, 1.0 + room), yticks=np.linspace(0.0, 1.0, 5))
        return entries


def _margin(low: Array, high: Array) -> Array:
    """Positive where the boundary is uncertain."""
    return np.minimum(0.5 - low, high - 0.5)


def _probability_and_band(model: Any, X: Any, k: int, level: Any) -> Array:
    """Probability of class k, (m, 1), and with a latent function the ends of its band, (m, 3)."""
    at_level = {} if level is None else {"fidelity": level}
    p = model.predict_proba(X, **at_level)[:, k]
    if not hasattr(model, "latent_interval"):
        return np.asarray(p[:, None])
    low, high = model.latent_interval(X, **at_level)
    binary = low.ndim == 1
    if binary:
        low, high = (-high, -low) if k == 0 else (low, high)
    else:
        low, high = low[:, k], high[:, k]
    ends = [expit(low), expit(high)]
    if not binary:
        mean, variance = (at[:, k] for at in model.latent_mean_and_variance(X, **at_level))
        # As if probabilities were divided by their sum, to which the others add this.
        tiny = np.finfo(float).tiny
        rest = expected_sigmoid(mean, variance) * (1.0 - p) / np.maximum(p, tiny)
        ends = [e / np.maximum(e + rest, tiny) for e in ends]
    return np.stack([p, *ends], axis=1)
