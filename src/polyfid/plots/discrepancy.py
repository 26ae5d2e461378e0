"""Where two levels differ: the probability of it, and what the upper one adds to the lower one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.ticker import MaxNLocator

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.inspection import find_class, find_levels, level_difference
from polyfid.plots import style
from polyfid.plots.slices import FeatureGrid, FeatureTable
from polyfid.plots.style import INK

_LONGEST_LABEL = 30  # letters that fit beside a panel
#: Lines drawn on maps, and their names.
_CONTOURS = {"probability": (0.5, "P = 0.5"), "mean": (0.0, "delta = 0")}
_MAY_BE_ZERO = "may be zero (95 %)"  # in legends


@dataclass(kw_only=True, eq=False, repr=False)
class DiscrepancyDisplay(style.Display):
    """Where the labels of two levels would differ.

    ``probability`` is that of the two levels having different classes at a point: that their
    latent functions, under their joint posterior, have different signs (with more than two
    classes: that the largest of the functions belong to different classes). It counts systematic
    errors of a level only, not labels that are wrong at random. ``delta`` is what the upper level
    adds to the lower one, delta = f_upper - rho f_lower, in units of the latent function
    (log-odds). Both are averaged over structures by weight.

    ``values`` has the grid along each feature or, if ``scattered``, the coordinates of points.
    ``probability``, ``delta_mean`` and ``delta_sd`` are arrays over it: (n_0,), (n_1, n_0) or
    (n_points,). ``target`` is the class that delta is about, ``levels`` are (lower, upper). White
    is a probability of one half and a correction of zero; where delta is positive, the upper level
    finds the class more likely.

    Examples
    --------
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.datasets import make_cokriging
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import DiscrepancyDisplay
    >>> made = make_cokriging(40, 20, n_features=2, random_state=0)
    >>> model = MultiFidelityClassifier(1.0 * RBF())
    >>> model = model.fit(made.data, made.target, fidelity=made.fidelity)
    >>> display = DiscrepancyDisplay.from_estimator(model, made.data, grid_resolution=20)
    >>> display.probability.shape, display.levels
    ((20, 20), (0, 1))
    """

    values: tuple[Array, ...]
    probability: Array
    delta_mean: Array
    delta_sd: Array
    axis_names: tuple[str, ...]
    levels: tuple[Any, Any]
    target: Any
    classes: tuple[Any, ...] = ()
    scattered: bool = False

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
        show: str | Sequence[str] | None = None,
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
            columns = difference(table.x).T
        else:
            grid = FeatureGrid.over(model, table, features, others, grid_resolution)
            values, names = grid.values, grid.names
            columns = grid.average(difference)
        display = cls(
            values=values,
            probability=columns[0],
            delta_mean=columns[1],
            delta_sd=np.sqrt(columns[2]),
            axis_names=names,
            levels=(model.levels_[low], model.levels_[up]),
            target=model.classes_[k],
            classes=tuple(model.classes_),
            scattered=scattered,
        )
        return display.plot(ax, show=show)

    @property
    def is_numeric(self) -> bool:
        """Whether one of the levels holds numbers, so that no classes can differ."""
        return bool(np.isnan(self.probability).all())

    def plot(self, ax: Any = None, *, show: str | Sequence[str] | None = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, or a list of them, one per quantity, optional
            By default those of a new figure, 3.4 inches wide.
        show : str or sequence of str, optional
            Of "probability" (that the levels differ), "mean" and "sd" (of delta); by default the
            first two, or the mean where a level holds numbers.
        """
        if show is None:
            show = ("mean",) if self.is_numeric else ("probability", "mean")
        quantities = [show] if isinstance(show, str) else list(show)
        arrays = {"probability": self.probability, "mean": self.delta_mean, "sd": self.delta_sd}
        if not quantities or not set(quantities) <= set(arrays):
            raise ValueError(f"show must be among {list(arrays)}, got {show!r}")
        if self.is_numeric and "probability" in quantities:
            raise ValueError(
                f'show has "probability", and of the levels {list(self.levels)} one holds numbers, '
                'which are not the same as a class or another one; use "mean" or "sd"'
            )
        with matplotlib.rc_context(style.RC):
            axes = self._take_axes(ax, len(quantities), 2.2 if len(self.values) == 1 else 2.7)
            for one, quantity in zip(axes, quantities, strict=True):
                values = arrays[quantity]
                text, steps = self._scale(quantity, values)
                if len(self.values) == 1:
                    entries = self._draw_curve(one, quantity, values, steps)
                elif self.scattered:
                    entries = self._draw_points(one, quantity, values, steps, text)
                else:
                    band = (self._zero_margin, _MAY_BE_ZERO) if quantity == "mean" else None
                    how = steps, self._colours(quantity), text, _CONTOURS.get(quantity), band
                    entries = style.draw_map(one, self.values, values, *how)
                xlabel, ylabel, *_ = *style.label_all(self.axis_names), text
                one.set(xlabel=xlabel, ylabel=ylabel)
                style.small_text(one)
                style.legend_above(one, entries)
        return self

    def _scale(self, quantity: str, values: Array) -> tuple[str, Array]:
        """The name of a quantity in the figure, and the values at which colours change."""
        if quantity == "probability":
            lower, upper = style.label_all(self.levels)
            text = f"P({upper} differs from {lower})"
            text = text if len(text) <= _LONGEST_LABEL else "P(levels differ)"
            return text, style.even_steps(0.5, float(np.abs(values - 0.5).max()), most=0.5)
        text = f"{quantity} of delta ({style.label(self.target)})"
        if quantity == "mean":
            return text, style.even_steps(0.0, float(np.abs(values).max()))
        ticks = MaxNLocator(8, steps=[1, 2, 2.5, 5, 10])
        return text, np.asarray(ticks.tick_values(values.min(), values.max()))

    def _colours(self, quantity: str) -> ListedColormap:
        orange, blue = style.CLASS_COLOURS[:2]
        if quantity == "mean":
            k, n_classes = self.classes.index(self.target), len(self.classes)
            return style.map_of_class(k, n_classes)
        if quantity == "sd":
            return ListedColormap(style.ramp(style.INK), "polyfid")
        return style.diverging(blue, orange)

    @property
    def differs_somewhere(self) -> bool:
        """Whether the levels differ with a probability above one half anywhere."""
        return bool((self.probability > 0.5).any())

    @property
    def corrects_somewhere(self) -> bool:
        """Whether the 95 % interval of delta leaves zero out anywhere."""
        return bool((self._zero_margin < 0.0).any())

    @property
    def _zero_margin(self) -> Array:
        """Positive where zero is within the 95 % band of delta."""
        return style.Z * self.delta_sd - np.abs(self.delta_mean)

    def _draw_points(
        self, ax: Axes, quantity: str, values: Array, steps: Array, text: str
    ) -> list[Artist]:
        is_mean = quantity == "mean"
        plain = self._zero_margin > 0.0 if is_mean else np.ones(len(values), dtype=bool)
        order = np.argsort(np.abs(values), kind="stable")  # large values are drawn on top
        props: dict[str, Any] = {"edgecolors": INK, "linewidths": 0.4}
        colours = self._colours(quantity)
        props |= {"cmap": colours, "norm": BoundaryNorm(steps, colours.N)}
        marks = []
        for members, marker, size, name in (
            (order[plain[order]], "o", 16.0, _MAY_BE_ZERO),
            (order[~plain[order]], "s", 24.0, "not zero (95 %)"),
        ):
            if len(members):
                props |= {"s": size, "c": values[members], "marker": marker, "label": name}
                marks.append(ax.scatter(*(v[members] for v in self.values), **props))
        style.draw_colorbar(ax, marks[0], text)
        return [*marks] if is_mean else []

    def _draw_curve(self, ax: Axes, quantity: str, values: Array, steps: Array) -> list[Artist]:
        (x,) = self.values
        (line,) = ax.plot(x, values, color=INK, label="mean")
        ax.set_xlim(x[0], x[-1])
        if quantity != "mean":
            ax.set_ylim(0.0, 1.05 * steps[-1])
            return []
        reach = style.Z * self.delta_sd
        props: dict[str, Any] = {"color": style.SHADE, "lw": 0, "label": "95 % band"}
        band = ax.fill_between(x, values - reach, values + reach, **props)
        ax.axhline(0.0, color=INK, linestyle=":", linewidth=0.8)
        return [line, band]
