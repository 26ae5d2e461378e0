"""Kernels with parameters of their own: what they share, and the two simplest ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from polyfid.arrays import Array, Scale, root_mean_square, varies
from polyfid.kernels.contract import Adjoints, Kernel, Linearised
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import HyperPrior, Parameters

Bounds = tuple[float, float] | tuple[tuple[float, float], ...] | Literal["fixed"]

DEFAULT_BOUNDS = (1e-5, 1e5)
#: Standard deviations of weak priors on log length-scales: of all of them together, and of each
#: one from the others, tied (the default) or free.
SHARED_SD, OWN_SD, FREE_SD = 1.0, 0.3, 1.0


@dataclass(frozen=True)
class Leaf(Kernel):
    """A kernel with parameters of its own, each a positive number or one number per column.

    Subclasses are dataclasses; for every name in ``_hyper`` they have the field of that name and
    one named ``<name>_bounds``: one pair, one pair per column, or "fixed".
    """

    _hyper: ClassVar[tuple[str, ...]] = ()
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {}  # mean and sd of their logarithms

    def __post_init__(self) -> None:
        for name in self._hyper:
            kind, limits = type(self).__name__, f"{name}_bounds"
            value = _as_parameter(getattr(self, name), f"{kind}({name}=)", name == "length_scale")
            bounds = _as_bounds(getattr(self, limits), f"{kind}({limits}=)", np.size(value))
            object.__setattr__(self, name, value)
            object.__setattr__(self, limits, bounds)

    def _is_free(self, name: str) -> bool:
        return bool(getattr(self, f"{name}_bounds") != "fixed")

    @cached_property
    def parameters(self) -> Parameters:
        kind = type(self).__name__.lower()
        return Parameters.join(
            Parameters.positive(f"{kind}.{n}", getattr(self, n), getattr(self, f"{n}_bounds"))
            for n in self._hyper
        )

    def with_theta(self, theta: Array) -> Self:
        changes: dict[str, Any] = {}
        values = np.exp(theta).tolist()
        for name in filter(self._is_free, self._hyper):
            old = getattr(self, name)
            new, values = values[: np.size(old)], values[np.size(old) :]
            changes[name] = new[0] if np.ndim(old) == 0 else tuple(new)
        return replace(self, **changes) if changes else self

    def weak_prior(self, x: Array) -> HyperPrior:
        free = filter(self._is_free, self._hyper)
        return HyperPrior.join([self._weak_prior_of(name, x) for name in free])

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        mean, sd = self._plausible[name]
        return HyperPrior.independent([mean], [sd])

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={_short(getattr(self, f.name))}"
            for f in fields(self)
            if f.name in self._hyper or getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Level(Leaf):
    """A kernel of one parameter, which every entry that is not zero is equal to."""

    @property
    def _level(self) -> float:
        return float(getattr(self, self._hyper[0]))

    @property
    def number(self) -> float | None:
        return self._level

    def evaluate(self, pairs: Pairs) -> Array:
        return np.broadcast_to(self._level, pairs.shape)

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        return np.broadcast_to(weight * self._level, pairs.shape)

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        return Adjoints.of_theta(self.pull_diagonal(at.pairs.x, K_bar), at.pairs, places)

    def diagonal(self, x: Array) -> Array:
        return np.full(len(x), self._level)

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        return np.full(int(self._is_free(self._hyper[0])), self._level * k_bar.sum())


@dataclass(frozen=True, repr=False)
class Constant(Level):
    """The constant kernel, k(x, z) = value: an amplitude in products; for sums see `Intercept`.

    Examples
    --------
    >>> from polyfid.kernels import RBF, Constant
    >>> Constant(4.0) * RBF(0.5)
    Constant(value=4) * RBF(length_scale=0.5)
    """

    value: float = 1.0
    value_bounds: Bounds = DEFAULT_BOUNDS

    _hyper: ClassVar[tuple[str, ...]] = ("value",)
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {"value": (1.5, 2.5)}

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"constant {self.value:.3g}"


@dataclass(frozen=True, repr=False)
class Intercept(Level):
    """A constant of unknown height in a sum of kernels, k(x, z) = variance.

    Examples
    --------
    >>> from polyfid.kernels import RBF, Intercept
    >>> 2.0 * RBF(0.5) + Intercept()
    Constant(value=2) * RBF(length_scale=0.5) + Intercept(variance=1)
    """

    variance: float = 1.0
    variance_bounds: Bounds = DEFAULT_BOUNDS

    _hyper: ClassVar[tuple[str, ...]] = ("variance",)
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {"variance": (0.0, 1.5)}

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"an intercept of variance {self.variance:.3g}"


@dataclass(frozen=True, repr=False)
class White(Level):
    """Independent noise per row, k = noise_level where both arguments are the same row of data.

    Rows that repeat a point may then have different latent values, so that contradicting labels
    need not bend the smooth part.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import White
    >>> White(0.5)(np.zeros((2, 1)))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    noise_level: float = 1.0
    noise_level_bounds: Bounds = DEFAULT_BOUNDS

    _hyper: ClassVar[tuple[str, ...]] = ("noise_level",)
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {"noise_level": (-1.5, 1.5)}

    @property
    def number(self) -> None:
        return None

    def evaluate(self, pairs: Pairs) -> Array:
        K = np.zeros(pairs.shape)
        K[pairs.same_rows()] = self.noise_level
        return K

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        return self.evaluate(pairs) * weight

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        theta_bar = self.pull_diagonal(at.pairs.x, K_bar[at.pairs.same_rows()])
        return Adjoints.of_theta(theta_bar, at.pairs, places)

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"independent noise of variance {self.noise_level:.3g} per row"


@dataclass(frozen=True, repr=False)
class Columnwise(Leaf):
    """A function h(s) of a sum over columns, s = sum_c d(x_c, z_c) / length_scale_c^power.

    One length-scale is shared by the chosen columns, or each has its own (ARD). A subclass gives
    the sum and its pullback, h(s) and h'(s), and the power if it is not 2.
    """

    length_scale: float | tuple[float, ...] = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS
    ard: bool | Literal["free"] = False
    columns: tuple[int, ...] | None = None

    _hyper: ClassVar[tuple[str, ...]] = ("length_scale",)
    _power: ClassVar[int] = 2
    _length_sd: ClassVar[float] = 1.0  # factor on the standard deviations of the weak prior
    _words: ClassVar[str] = ""

    @abstractmethod
    def scaled_sum(self, pairs: Pairs) -> Array:
        """The sums s of the pairs, (n, m), in an array of their own."""

    @abstractmethod
    def pull_sum(self, pairs: Pairs, G: Array, places: bool) -> tuple[Array, Array]:
        """Adjoints of log length-scales by column and of z on the columns, from G, that of s.

        The second one is used only if ``places``.
        """

    @abstractmethod
    def profile(self, s: Array) -> Array:
        """h(s); s stays as it is."""

    @abstractmethod
    def slope(self, s: Array, K: Array) -> Array | float:
        """h'(s), finite at zero, given K = h(s)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = type(self).__name__
        if self.columns is not None:
            columns = tuple(int(c) for c in np.atleast_1d(self.columns))
            if not columns or min(columns) < 0 or len(set(columns)) < len(columns):
                raise ValueError(
                    f"columns of {kind} must be distinct indices from 0, got {self.columns!r}"
                )
            object.__setattr__(self, "columns", columns)
            self._check_lengths(len(columns))
        if self.ard not in (False, True, "free"):
            raise ValueError(f'{kind}(ard=) must be False, True or "free"; got {self.ard!r}')
        if self.ard != "free":
            object.__setattr__(self, "ard", bool(self.ard or not self._shared))

    @property
    def _shared(self) -> bool:
        """Whether there is one length-scale for all columns."""
        return np.ndim(self.length_scale) == 0

    def _check_lengths(self, n_columns: int) -> None:
        if not self._shared and np.size(self.length_scale) != n_columns:
            raise ValueError(
                f"{type(self).__name__} has {np.size(self.length_scale)} length-scales for "
                f"{n_columns} features; give one per feature, or one number"
            )

    def for_features(self, n_features: int) -> Self:
        columns = range(n_features) if self.columns is None else self.columns
        if self.columns is not None and max(columns) >= n_features:
            raise ValueError(
                f"{type(self).__name__} asks for column {max(columns)}, but there are "
                f"{n_features} features (columns count from 0)"
            )
        self._check_lengths(len(columns))
        if not self.ard or not self._shared:
            return self
        return replace(self, length_scale=(self.length_scale,) * len(columns))  # type: ignore[arg-type]

    def evaluate(self, pairs: Pairs) -> Array:
        return self.profile(self.scaled_sum(pairs))

    def linearise(self, pairs: Pairs) -> Linearised:
        s = self.scaled_sum(pairs)
        return Linearised(self.profile(s), self, pairs, s)

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        G = K_bar * self.slope(at.saved, at.K)
        if self._shared and not places:
            by_column = np.array([-self._power * np.vdot(G, at.saved)])
            return Adjoints.of_theta(self._lengths_bar(by_column), at.pairs, places)
        by_column, z_bar = self.pull_sum(at.pairs, G, places)
        bars = Adjoints.of_theta(self._lengths_bar(by_column), at.pairs, places)
        if places:
            bars.places[:, slice(None) if self.columns is None else self.columns] = z_bar
        return bars

    def _lengths_bar(self, by_column: Array) -> Array:
        """The adjoint of the logarithms of length-scales from their effect by column."""
        if not self._is_free("length_scale"):
            return np.empty(0)
        return by_column.sum(keepdims=True) if self._shared else by_column

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        return np.zeros(len(self.theta))

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        if name != "length_scale":
            return super()._weak_prior_of(name, x)
        chosen = self._chosen(x)
        spread = Scale.of(chosen, np.ones(len(chosen))).spread  # 1 of a constant column
        typical = np.log(self._typical_length(len(spread)))
        wide = self._length_sd * SHARED_SD
        if self._shared:
            # The widest columns decide distances, and constant ones add nothing.
            moving = np.where(varies(chosen), spread, 0.0)
            common = root_mean_square(moving if moving.any() else spread)
            return HyperPrior.independent([float(typical + np.log(common))], [wide])
        own = self._length_sd * (FREE_SD if self.ard == "free" else OWN_SD)
        return HyperPrior.tied(typical + np.log(spread), wide, own)

    def _typical_length(self, n_columns: int) -> float:
        """A plausible length-scale, in standard deviations of the columns."""
        return float(n_columns ** (1.0 / self._power))

    def _chosen(self, x: Array) -> Array:
        return x if self.columns is None else x[:, self.columns]

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        where, low, high = "", np.min(self.length_scale), np.max(self.length_scale)
        if self.columns is not None:
            names = [str(c) if feature_names is None else feature_names[c] for c in self.columns]
            where = " on " + (", ".join(names) if len(names) <= 6 else f"{len(names)} features")
        lengths = f" {low:.3g}" if self._shared else f"s {low:.3g} to {high:.3g}"
        return f"{self._words}{where}, length-scale{lengths}"


def _as_floats(value: object) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.full(1, np.nan)  # no number passes no check


def _as_parameter(value: object, what: str, by_column: bool) -> float | tuple[float, ...]:
    array = _as_floats(value)
    good = array.ndim <= by_column and array.size and (np.isfinite(array) & (array > 0)).all()
    if not good:
        kind = "a number, or one per column" if by_column else "a number"
        raise ValueError(f"{what} must be {kind}, positive and finite; got {value!r}")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


def _as_bounds(value: object, what: str, n_values: int) -> Bounds:
    if isinstance(value, str) and value == "fixed":
        return "fixed"
    array = _as_floats(value)
    if array.shape in ((2,), (1, 2), (n_values, 2)):
        low, high = array.T
        if ((low > 0.0) & (low <= high) & (high < np.inf)).all():
            pairs = tuple((float(a), float(b)) for a, b in np.atleast_2d(array))
            return pairs if len(pairs) > 1 else pairs[0]
    raise ValueError(
        f"{what} must be (low, high) with 0 < low <= high < inf, one such pair per value "
        f'({n_values} in all), or "fixed"; got {value!r}'
    )


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_short(v) for v in value) + ")"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
