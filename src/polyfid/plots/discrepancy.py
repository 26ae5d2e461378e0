"""Where two levels differ: the probability of it, and what the upper one adds to the lower one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.levels import encode_levels
from polyfid.plots.feasibility import Z
from polyfid.plots.pairs import difference
from polyfid.plots.slices import Slice, Table, class_place, default_resolution, principal_components
from polyfid.plots.style import (
    IN_LEGEND,
    INK,
    MAP,
    SHADE,
    hatch_entry,
    hatch_where,
    legend_above,
    line_entry,
    nice_steps,
    shown,
    shown_all,
    small_text,
    styled,
    take_axes,
)

#: What may be shown, in the order of the columns that are computed.
QUANTITIES = ("probability", "mean", "sd")
_LONGEST_LABEL = 30  # that fits beside a panel


@dataclass(frozen=True)
class _Panel:
    """How one quantity is drawn."""

    label: str
    steps: Array

    @property
    def low(self) -> float:
        return float(self.steps[0])

    @property
    def high(self) -> float:
        return float(self.steps[-1])


class DiscrepancyDisplay:
    """Where the labels of two levels would differ.

    ``probability`` is that of the two levels having different classes at a point: that their
    latent functions, under their joint posterior, have different signs (with more than two
    classes: that the largest of the functions belong to different classes). Labels that a level
    gets wrong at random do not count, only what it gets wrong for a reason. ``delta`` is what the
    upper level has beyond the lower one, delta = f_upper - rho f_lower, in units of the latent
    function (log-odds). Both are averaged over structures by weight.

    Parameters
    ----------
    values : tuple of one or two arrays
        The grid along each feature, or with ``scattered`` the places of the points.
    probability, delta_mean, delta_sd : arrays
        Of shape (n_0,), (n_1, n_0), or (n_points,) if ``scattered``.
    axis_names : tuple of str
    levels : (lower, upper)
    target : class label
        The class that delta speaks for.
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

    ax_: Axes
    axes_: NDArray[Any]
    figure_: Figure

    def __init__(
        self,
        *,
        values: tuple[Array, ...],
        probability: Array,
        delta_mean: Array,
        delta_sd: Array,
        axis_names: tuple[str, ...],
        levels: tuple[Any, Any],
        target: Any,
        scattered: bool = False,
    ) -> None:
        self.values, self.probability = values, probability
        self.delta_mean, self.delta_sd = delta_mean, delta_sd
        self.axis_names, self.levels = axis_names, levels
        self.target, self.scattered = target, scattered

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
            The range that is covered or, with ``features="pca"``, the points themselves.
        features : int, str, two of them, or "pca", optional
            Places or names, by default the first two. "pca": the rows of X as they are, at their
            first two principal components (of standardised features).
        lower, upper : level name, optional
            By default the top level and the one below it.
        target : class label, optional
            The class that delta speaks for; by default the last.
        others, grid_resolution, feature_names
            As in `FeasibilityDisplay.from_estimator`.
        show, ax
            As in `plot`.
        """
        check_is_fitted(model, "report_")
        if len(model.levels_) < 2:
            raise ValueError(
                f"model has one level only, {model.levels_[0]!r}, and there is nothing to compare; "
                "fit it to labels of two levels or more"
            )
        low, up = _find_levels(model, lower, upper)
        table = Table.read(model, X, feature_names)
        place = class_place(model, target)
        scattered = isinstance(features, str) and features == "pca" and "pca" not in table.names

        def compute(rows: Array) -> Array:
            found = difference(model, rows, low, up, place)
            # Variances, not deviations, are what an average over rows is of.
            return np.stack([found.probability, found.delta_mean, found.delta_sd**2], axis=1)

        if scattered:
            values, names = principal_components(table.x)
            found = compute(table.x)
        else:
            index = table.find(features)
            resolution = grid_resolution or default_resolution(model, others, len(index))
            grid = Slice.of(table.x, index, resolution, others)
            values, names = grid.values, tuple(table.names[j] for j in index)
            found = grid.average(compute)
        display = cls(
            values=values,
            probability=found[..., 0],
            delta_mean=found[..., 1],
            delta_sd=np.sqrt(found[..., 2]),
            axis_names=names,
            levels=(model.levels_[low], model.levels_[up]),
            target=model.classes_[place],
            scattered=scattered,
        )
        return display.plot(ax, show=show)

    def plot(self, ax: Any = None, *, show: str | Sequence[str] = ("probability", "mean")) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, or a list of them, one a quantity, optional
            Else a figure of its own, 3.4 inches wide.
        show : str or sequence of str
            Of "probability" (that the levels differ), "mean" and "sd" (of delta).
        """
        quantities = [show] if isinstance(show, str) else list(show)
        if not quantities or not set(quantities) <= set(QUANTITIES):
            raise ValueError(f"show must be among {list(QUANTITIES)}, got {show!r}")
        flat = len(self.values) == 1
        with styled():
            axes = take_axes(ax, len(quantities), 2.2 if flat else 2.7)
            self.axes_ = np.array(axes, dtype=object)
            self.ax_ = axes[0]
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            for one, quantity in zip(axes, quantities, strict=True):
                self._panel(one, quantity)
        return self

    def _panel(self, ax: Axes, quantity: str) -> None:
        if len(self.values) == 1:
            entries = self._curve(ax, quantity)
        else:
            entries = self._points(ax, quantity) if self.scattered else self._map(ax, quantity)
            ax.set_ylabel(shown_all(self.axis_names)[1])
        ax.set_xlabel(shown_all(self.axis_names)[0])
        small_text(ax)
        legend_above(ax, entries, whole=False)

    def _values(self, quantity: str) -> Array:
        arrays = self.probability, self.delta_mean, self.delta_sd
        return arrays[QUANTITIES.index(quantity)]

    def _how(self, quantity: str) -> _Panel:
        lower, upper = shown_all(self.levels)
        if quantity == "probability":
            words = f"P({upper} differs from {lower})"
            short = len(words) <= _LONGEST_LABEL
            return _Panel(words if short else "P(levels differ)", np.linspace(0.0, 1.0, 11))
        if quantity == "sd":
            steps = nice_steps(0.0, float(self.delta_sd.max()) or 1.0)
        else:
            reach = float(np.abs(self.delta_mean).max()) or 1.0
            steps = nice_steps(-reach, reach)
        return _Panel(f"{quantity} of delta ({shown(self.target, IN_LEGEND)})", steps)

    @property
    def _unclear(self) -> Array:
        """Positive where delta may as well be zero: 0 is within mean -+ 1.96 sd."""
        return Z * self.delta_sd - np.abs(self.delta_mean)

    def _map(self, ax: Axes, quantity: str) -> list[Artist]:
        x, y = self.values
        how, values = self._how(quantity), self._values(quantity)
        area = ax.contourf(x, y, values, how.steps, cmap=MAP, vmin=how.low, vmax=how.high)
        self._colorbar(ax, area, how)
        ax.set_xlim(x[0], x[-1])
        ax.set_ylim(y[0], y[-1])
        middle = {"probability": 0.5, "mean": 0.0}.get(quantity)
        entries: list[Artist] = []
        if middle is not None and values.min() < middle < values.max():
            ax.contour(x, y, values, levels=[middle], colors=INK, linewidths=1.4)
            entries.append(line_entry("as likely as not" if middle else "delta = 0"))
        if quantity == "mean" and self._unclear.max() > 0.0:
            hatch_where(ax, x, y, self._unclear)
            entries.append(hatch_entry("may be zero (95 %)"))
        return entries

    def _points(self, ax: Axes, quantity: str) -> list[Artist]:
        how, values = self._how(quantity), self._values(quantity)
        order = np.argsort(np.abs(values), kind="stable")  # what matters on top
        x, y = (v[order] for v in self.values)
        unclear = (self._unclear > 0.0)[order] & (quantity == "mean")
        entries: list[Artist] = []
        look: dict[str, Any] = {"cmap": MAP, "vmin": how.low, "vmax": how.high, "linewidths": 0.5}
        for chosen, marker, size, words in (
            (unclear, "o", 9.0, "may be zero (95 %)"),
            (~unclear, "s", 18.0, "not zero (95 %)"),
        ):
            marks = ax.scatter(
                x[chosen],
                y[chosen],
                s=size,
                c=values[order][chosen],
                marker=marker if quantity == "mean" else "o",
                edgecolors=INK,
                label=words,
                **look,
            )
            if quantity == "mean" and chosen.any():
                entries.append(marks)
        self._colorbar(ax, marks, how)
        return entries

    def _colorbar(self, ax: Axes, area: Any, how: _Panel) -> None:
        ticks = MaxNLocator(6, steps=[1, 2, 5, 10])
        bar = self.figure_.colorbar(area, ax=ax, ticks=ticks, pad=0.02, aspect=25)
        bar.set_label(how.label)
        small_text(bar.ax)

    def _curve(self, ax: Axes, quantity: str) -> list[Artist]:
        (x,) = self.values
        how, values = self._how(quantity), self._values(quantity)
        ax.plot(x, values, color=INK)
        ax.set_xlim(x[0], x[-1])
        ax.set_ylabel(how.label)
        if quantity != "mean":
            ax.set_ylim(how.low, 1.05 * how.high)
            return []
        reach = Z * self.delta_sd
        band = ax.fill_between(x, values - reach, values + reach, color=SHADE, lw=0)
        band.set_label("95 % band")
        ax.axhline(0.0, color=INK, linestyle=":", linewidth=0.8)
        return [line_entry("mean", width=1.3), band]


def _find_levels(model: MultiFidelityClassifier, lower: Any, upper: Any) -> tuple[int, int]:
    names = model.levels_
    up = len(names) - 1 if upper is None else int(encode_levels([upper], names, "upper")[0])
    low = max(up - 1, 0) if lower is None else int(encode_levels([lower], names, "lower")[0])
    if low >= up:
        raise ValueError(
            f"lower must be a level below upper; got {names[low]!r} and {names[up]!r}, and the "
            f"levels, least trusted first, are {list(names)}"
        )
    return low, up
