"""Kernels with parameters of their own: what they share, and the two simplest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from polyfid.arrays import Array, Scale, root_mean_square, varies
from polyfid.kernels.contract import Adjoints, Kernel, Linearised
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import Parameters

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
    _by_column: ClassVar[tuple[str, ...]] = ()  # those of _hyper that may be one number per column
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {}  # mean and sd of their logarithms

    def __post_init__(self) -> None:
        for name in self._hyper:
            what = f"{type(self).__name__}({name}=)"
            value = _as_parameter(getattr(self, name), what, name in self._by_column)
            what = f"{type(self).__name__}({name}_bounds=)"
            bounds = _as_bounds(getattr(self, f"{name}_bounds"), what)
            if np.ndim(bounds) == 2 and len(bounds) != np.size(value):
                raise ValueError(
                    f"{what} has {len(bounds)} pairs for {np.size(value)} value(s) of {name}; "
                    "give one pair, or one pair per value"
                )
            object.__setattr__(self, name, value)
            object.__setattr__(self, f"{name}_bounds", bounds)

    def _is_free(self, name: str) -> bool:
        return bool(getattr(self, f"{name}_bounds") != "fixed")

    @property
    def parameters(self) -> Parameters:
        kind = type(self).__name__.lower()
        return Parameters.join(
            Parameters.positive(f"{kind}.{n}", getattr(self, n), getattr(self, f"{n}_bounds"))
            for n in self._hyper
        )

    def with_theta(self, theta: Array) -> Self:
        changes: dict[str, Any] = {}
        start = 0
        for name in filter(self._is_free, self._hyper):
            old = getattr(self, name)
            new = np.exp(theta[start : start + np.size(old)])
            start += np.size(old)
            changes[name] = float(new[0]) if np.ndim(old) == 0 else tuple(new.tolist())
        return replace(self, **changes) if changes else self

    def for_features(self, n_features: int) -> Self:
        return self

    def weak_prior(self, x: Array) -> HyperPrior:
        free = filter(self._is_free, self._hyper)
        return HyperPrior.join([self._weak_prior_of(name, x) for name in free])

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        return HyperPrior.independent(*([v] for v in self._plausible[name]))

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={_short(getattr(self, f.name))}"
            for f in fields(self)
            if f.name in self._hyper or getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Columnwise(Leaf):
    """A leaf whose length-scale is shared by the chosen columns, or one for each (ARD)."""

    length_scale: float | tuple[float, ...] = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS
    ard: bool | Literal["free"] = False
    columns: tuple[int, ...] | None = None

    _hyper: ClassVar[tuple[str, ...]] = ("length_scale",)
    _by_column: ClassVar[tuple[str, ...]] = ("length_scale",)
    _length_sd: ClassVar[float] = 1.0  # how much wider than usual length-scales spread
    _words: ClassVar[str] = ""

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
            if not self._shared and np.size(self.length_scale) != len(columns):
                raise ValueError(
                    f"{kind} has {len(columns)} columns and {np.size(self.length_scale)} "
                    "length-scales; give one per column, or one number"
                )
        if self.ard not in (False, True, "free"):
            raise ValueError(f'{kind}(ard=) must be False, True or "free"; got {self.ard!r}')
        if self.ard != "free":
            object.__setattr__(self, "ard", bool(self.ard or not self._shared))

    @property
    def _shared(self) -> bool:
        """Whether there is one length-scale for all columns."""
        return np.ndim(self.length_scale) == 0

    def for_features(self, n_features: int) -> Self:
        count = n_features if self.columns is None else len(self.columns)
        if self.columns is not None and max(self.columns) >= n_features:
            raise ValueError(
                f"{type(self).__name__} asks for column {max(self.columns)}, but there are "
                f"{n_features} features (columns count from 0)"
            )
        if not self.ard:
            return self
        if self._shared:
            return replace(self, length_scale=(float(np.asarray(self.length_scale)),) * count)
        if np.size(self.length_scale) != count:
            raise ValueError(
                f"{type(self).__name__} has {np.size(self.length_scale)} length-scales for "
                f"{count} features; give one per feature, or one number"
            )
        return self

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
        wide, own = self._length_sd * SHARED_SD, self._length_sd * OWN_SD
        if self._shared:
            # The widest columns decide distances, and constant ones add nothing.
            moving = np.where(varies(chosen), spread, 0.0)
            common = root_mean_square(moving if moving.any() else spread)
            return HyperPrior.independent([float(typical + np.log(common))], [wide])
        if self.ard == "free":
            own = self._length_sd * FREE_SD
        return HyperPrior.tied(typical + np.log(spread), wide, own)

    def _typical_length(self, n_columns: int) -> float:
        """A plausible length-scale, in standard deviations of the columns."""
        return float(np.sqrt(n_columns))

    def _chosen(self, x: Array) -> Array:
        return x if self.columns is None else x[:, self.columns]

    def _places(self, z_bar: Array, pairs: Pairs) -> Array:
        """An adjoint of the chosen columns of z as one of all of them."""
        if self.columns is None:
            return z_bar
        wide = np.zeros((len(z_bar), pairs.z.shape[1]))
        wide[:, self.columns] = z_bar
        return wide

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"{self._words}{self._where(feature_names)}, {self._lengths()}"

    def _where(self, feature_names: Sequence[str] | None) -> str:
        if self.columns is None:
            return ""
        names = [feature_names[c] if feature_names is not None else str(c) for c in self.columns]
        return " on " + (", ".join(names) if len(names) <= 6 else f"{len(names)} features")

    def _lengths(self) -> str:
        low, high = np.min(self.length_scale), np.max(self.length_scale)
        return (
            f"length-scale {low:.3g}" if self._shared else f"length-scales {low:.3g} to {high:.3g}"
        )


@dataclass(frozen=True, repr=False)
class Level(Leaf):
    """A kernel of one parameter, which every entry that is not zero is equal to."""

    @property
    def _level(self) -> float:
        return float(getattr(self, self._hyper[0]))

    def diagonal(self, x: Array) -> Array:
        return np.full(len(x), self._level)

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        return np.full(int(self._is_free(self._hyper[0])), self._level * k_bar.sum())


@dataclass(frozen=True, repr=False)
class Constant(Level):
    """The constant kernel, k(x, z) = value: an amplitude in products, a bias in sums.

    Examples
    --------
    >>> from polyfid.kernels import RBF, Constant
    >>> Constant(4.0) * RBF(0.5)
    Constant(value=4) * RBF(length_scale=0.5)
    """

    value: float = 1.0
    value_bounds: Bounds = DEFAULT_BOUNDS

    _hyper: ClassVar[tuple[str, ...]] = ("value",)
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {"value": (1.5, 1.5)}

    def evaluate(self, pairs: Pairs) -> Array:
        return np.broadcast_to(self.value, pairs.shape)

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        return Adjoints.of_theta(self.pull_diagonal(at.pairs.x, K_bar), at.pairs, places)

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"constant {self.value:.3g}"


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

    def evaluate(self, pairs: Pairs) -> Array:
        K = np.zeros(pairs.shape)
        K[pairs.same_rows()] = self.noise_level
        return K

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        theta_bar = self.pull_diagonal(at.pairs.x, K_bar[at.pairs.same_rows()])
        return Adjoints.of_theta(theta_bar, at.pairs, places)

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"independent noise of variance {self.noise_level:.3g} per row"


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


def _as_bounds(value: object, what: str) -> Bounds:
    if isinstance(value, str) and value == "fixed":
        return "fixed"
    array = _as_floats(value)
    good = array.ndim in (1, 2) and array.size and array.shape[-1] == 2
    if good:
        low, high = array.T
        good = ((low > 0.0) & (low <= high) & (high < np.inf)).all()
    if not good:
        raise ValueError(
            f"{what} must be (low, high) with 0 < low <= high < inf, one such pair per column, "
            f'or "fixed"; got {value!r}'
        )
    pairs = tuple((float(low), float(high)) for low, high in np.atleast_2d(array))
    return pairs if len(pairs) > 1 else pairs[0]


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_short(v) for v in value) + ")"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
