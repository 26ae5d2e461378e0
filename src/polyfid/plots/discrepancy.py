"""Where two levels differ: the probability of it, and what the upper one adds to the lower one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.inspection import find_class, find_levels, level_difference
from polyfid.plots import style
from polyfid.plots.feasibility import Z
from polyfid.plots.slices import FeatureGrid, FeatureTable
from polyfid.plots.style import INK, LEGEND_LETTERS, MAP, SHADE

_QUANTITIES = ("probability", "mean", "sd")
_LONGEST_LABEL = 30  # letters that fit beside a panel


@dataclass(kw_only=True, eq=False, repr=False)
class DiscrepancyDisplay:
    """Where the labels of two levels would differ.

    ``probability`` is that of the two levels having different classes at a point: that their
    latent functions, under their joint posterior, have different signs (with more than two
    classes: that the largest of the functions belong to different classes). It counts systematic
    errors of a level only, not labels that are wrong at random. ``delta`` is what the upper level
    adds to the lower one, delta = f_upper - rho f_lower, in units of the latent function
    (log-odds). Both are averaged over structures by weight.

    Parameters
    ----------
    values : tuple of one or two arrays
        The grid along each feature, or with ``scattered`` the coordinates of the points.
    probability, delta_mean, delta_sd : arrays
        Of shape (n_0,), (n_1, n_0), or (n_points,) if ``scattered``.
    axis_names : tuple of str
    levels : (lower, upper)
    target : class label
        The class that delta is about.
    scattered : bool
        Whether the values are points, not a grid.

    Attributes
    ----------
    axes_ : array of Axes
    ax_, figure_ : the first of the axes, and the Figure
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, stack_levels
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import DiscrepancyDisplay
    >>> X = np.random.RandomState(0).uniform(-1, 1, (60, 2))
    >>> X, y, fidelity = stack_levels(
    ...     {"crowd": (X[:40], X[:40, 0] > 0.5), "gold": (X[40:], X[40:, 0] > 0)}
    ... )
    >>> model = MultiFidelityClassifier(kernel=1.0 * RBF()).fit(X, y, fidelity=fidelity)
    >>> display = DiscrepancyDisplay.from_estimator(model, X, grid_resolution=20)
    >>> display.probability.shape, display.levels
    ((20, 20), ('crowd', 'gold'))
    """

    values: tuple[Array, ...]
    probability: Array
    delta_mean: Array
    delta_sd: Array
    axis_names: tuple[str, ...]
    levels: tuple[Any, Any]
    target: Any
    scattered: bool = False
    ax_: Axes = field(init=False)
    axes_: NDArray[Any] = field(init=False)
    figure_: Figure = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        model: MultiFidelityClassifier,
        X: Any,
        *,
        features: Any = None,
        lower: Any = None,
        upper: Any = None,
        target: Any = None,
        others: Any = "median",
        grid_resolution: int | None = None,
        feature_names: Sequence[str] | None = None,
        show: str | Sequence[str] = ("probability", "mean"),
        ax: Any = None,
    ) -> Self:
        """Compare two levels of a fitted model and draw where they differ.

        Parameters
        ----------
        model : fitted MultiFidelityClassifier
            With two levels or more.
        X : array or data frame of shape (n, d)
            The map covers the range of these rows; with ``features="pca"``, these rows are drawn.
        features : int, str, two of them, or "pca", optional
            Indices or names, by default the first two. "pca": the rows of X along their first two
            principal components (of standardised features).
        lower, upper : level name, optional
            By default the top level and the one below it.
        target : class label, optional
            The class that delta is about; by default the last.
        others, grid_resolution, feature_names
            As in `FeasibilityDisplay.from_estimator`.
        show, ax
            As in `plot`.
        """
        low, up = find_levels(model, lower, upper)
        table = FeatureTable.read(model, X, feature_names)
        k = find_class(model, target)

        def difference(rows: Array) -> Array:
            result = level_difference(model, rows, low, up, k)
            # An average over rows is one of variances, not of standard deviations.
            return np.stack([result.probability, result.delta_mean, result.delta_sd**2], axis=1)

        scattered = isinstance(features, str) and features == "pca" and "pca" not in table.names
        if scattered:
            values, names = table.principal_components()
            columns = difference(table.x)
        else:
            grid = FeatureGrid.over(model, table, features, others, grid_resolution)
            values, names = grid.values, tuple(table.names[j] for j in grid.index)
            columns = grid.average(difference)
        display = cls(
            values=values,
            probability=columns[..., 0],
            delta_mean=columns[..., 1],
            delta_sd=np.sqrt(columns[..., 2]),
            axis_names=names,
            levels=(model.levels_[low], model.levels_[up]),
            target=model.classes_[k],
            scattered=scattered,
        )
        return display.plot(ax, show=show)

    def plot(self, ax: Any = None, *, show: str | Sequence[str] = ("probability", "mean")) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, or a list of them, one per quantity, optional
            By default those of a new figure, 3.4 inches wide.
        show : str or sequence of str
            Of "probability" (that the levels differ), "mean" and "sd" (of delta).
        """
        quantities = [show] if isinstance(show, str) else list(show)
        if not quantities or not set(quantities) <= set(_QUANTITIES):
            raise ValueError(f"show must be among {list(_QUANTITIES)}, got {show!r}")
        with style.styled():
            axes = style.take_axes(ax, len(quantities), 2.2 if len(self.values) == 1 else 2.7)
            self.axes_, self.ax_ = np.array(axes, dtype=object), axes[0]
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            for one, quantity in zip(axes, quantities, strict=True):
                self._draw_panel(one, quantity)
        return self

    def _draw_panel(self, ax: Axes, quantity: str) -> None:
        by_name = zip(_QUANTITIES, (self.probability, self.delta_mean, self.delta_sd), strict=True)
        values = dict(by_name)[quantity]
        steps, text = self._steps(quantity), self._label(quantity)
        names = style.label_all(self.axis_names)
        if len(self.values) == 1:
            entries = self._draw_curve(ax, quantity, values, steps)
            names.append(text)
        elif self.scattered:
            entries = self._draw_points(ax, quantity, values, steps, text)
        else:
            entries = self._draw_map(ax, quantity, values, steps, text)
        ax.set(xlabel=names[0], ylabel=names[1])
        style.small_text(ax)
        style.legend_above(ax, entries)

    def _label(self, quantity: str) -> str:
        if quantity != "probability":
            return f"{quantity} of delta ({style.label(self.target, LEGEND_LETTERS)})"
        lower, upper = style.label_all(self.levels)
        text = f"P({upper} differs from {lower})"
        return text if len(text) <= _LONGEST_LABEL else "P(levels differ)"

    def _steps(self, quantity: str) -> Array:
        """The values at which colours change."""
        if quantity == "probability":
            return np.linspace(0.0, 1.0, 11)
        if quantity == "sd":
            return style.round_steps(0.0, float(self.delta_sd.max()) or 1.0)
        reach = float(np.abs(self.delta_mean).max()) or 1.0
        return style.round_steps(-reach, reach)

    @property
    def _zero_margin(self) -> Array:
        """Positive where zero is within the 95 % band of delta."""
        return Z * self.delta_sd - np.abs(self.delta_mean)

    def _draw_map(
        self, ax: Axes, quantity: str, values: Array, steps: Array, text: str
    ) -> list[Artist]:
        x, y = self.values
        style.draw_map(ax, x, y, values, steps, text)
        entries: list[Artist] = []
        contour = {"probability": (0.5, "P = 0.5"), "mean": (0.0, "delta = 0")}.get(quantity)
        if contour is not None and values.min() < contour[0] < values.max():
            ax.contour(x, y, values, levels=[contour[0]], colors=INK, linewidths=1.4)
            entries.append(style.line_entry(contour[1]))
        if quantity == "mean" and self._zero_margin.max() > 0.0:
            style.hatch_where(ax, x, y, self._zero_margin)
            entries.append(style.hatch_entry("may be zero (95 %)"))
        return entries

    def _draw_points(
        self, ax: Axes, quantity: str, values: Array, steps: Array, text: str
    ) -> list[Artist]:
        groups = [(np.ones(len(values), dtype=bool), "o", 16.0, "")]
        if quantity == "mean":
            unclear = self._zero_margin > 0.0
            groups = [
                (unclear, "o", 16.0, "may be zero (95 %)"),
                (~unclear, "s", 24.0, "not zero (95 %)"),
            ]
        order = np.argsort(np.abs(values), kind="stable")  # large values are drawn on top
        props: dict[str, Any] = {"edgecolors": INK, "linewidths": 0.4}
        props |= {"cmap": MAP, "norm": BoundaryNorm(steps, MAP.N)}
        entries: list[Artist] = []
        for members, marker, size, name in groups:
            at = order[members[order]]
            x, y = (v[at] for v in self.values)
            marks = ax.scatter(x, y, s=size, c=values[at], marker=marker, label=name, **props)
            if name and len(at):
                entries.append(marks)
        style.draw_colorbar(ax, marks, text)
        return entries

    def _draw_curve(self, ax: Axes, quantity: str, values: Array, steps: Array) -> list[Artist]:
        (x,) = self.values
        ax.plot(x, values, color=INK)
        ax.set_xlim(x[0], x[-1])
        if quantity != "mean":
            ax.set_ylim(steps[0], 1.05 * steps[-1])
            return []
        reach = Z * self.delta_sd
        band = ax.fill_between(
            x, values - reach, values + reach, color=SHADE, lw=0, label="95 % band"
        )
        ax.axhline(0.0, color=INK, linestyle=":", linewidth=0.8)
        return [style.line_entry("mean", width=1.3), band]
