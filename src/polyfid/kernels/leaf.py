"""Kernels with parameters of their own: what they share, and the two simplest ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.contract import Adjoints, Kernel, Linearised
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import HyperPrior, Parameters

Bounds = tuple[float, float] | tuple[tuple[float, float], ...] | Literal["fixed"]

DEFAULT_BOUNDS = (1e-5, 1e5)


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

    def for_features(self, n_features: int) -> Self:
        return self

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
