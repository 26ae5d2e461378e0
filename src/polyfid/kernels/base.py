"""The contract of a kernel, and the ways to combine kernels.

A kernel is an immutable value. Its positive hyper-parameters are tuned through ``theta``, the
vector of their logarithms, in the order of ``theta_names``; parameters whose bounds are "fixed" are
not in ``theta``. Gradients travel backwards: `Kernel.vjp` returns the covariance and a
*pullback*, a function that turns an adjoint of the covariance into an adjoint of ``theta``.
No array with an axis for the parameters is ever built. `Kernel.place_vjp` does the same for the
places of the second points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from polyfid.arrays import Array, Scale, root_mean_square, varies
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.kernels.pairs import Pairs

Pullback = Callable[[Array], Array]
Bounds = tuple[float, float] | tuple[tuple[float, float], ...] | Literal["fixed"]

DEFAULT_BOUNDS = (1e-5, 1e5)

#: Rows at a time where a diagonal comes out of a square.
_FEW_ROWS = 32

#: Of differences, relative to coordinates: errors of rounding and of curvature are alike there.
_STEP = 6e-6

#: Weak priors let a kernel's length-scales move together by a factor of about e, and each of them
#: away from the others by a third of that on the logarithmic scale, or as much if they are free.
SHARED_SD, OWN_SD, FREE_SD = 1.0, 0.3, 1.0


class Kernel(ABC):
    """A positive semi-definite function of two points.

    ``a + b`` and ``a * b`` combine kernels; a number stands for a `Constant` kernel, and a kernel
    of scikit-learn for its translation.

    Examples
    --------
    >>> from polyfid.kernels import RBF, Linear
    >>> kernel = 2.0 * RBF(0.5) + Linear()
    >>> kernel.theta_names
    ('constant.value', 'rbf.length_scale', 'linear.length_scale')
    >>> kernel([[0.0], [1.0]]).round(3)
    array([[2.   , 0.271],
           [0.271, 3.   ]])
    """

    __array_ufunc__ = None  # so that np.float64(2.0) * kernel asks the kernel, not numpy

    @property
    @abstractmethod
    def theta(self) -> Array:
        """Logarithms of the free hyper-parameters, (p,)."""

    @abstractmethod
    def with_theta(self, theta: Array) -> Self:
        """The same kernel with other values of its free hyper-parameters."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Bounds of ``theta``, (p, 2)."""

    @property
    @abstractmethod
    def theta_names(self) -> tuple[str, ...]:
        """Names of the entries of ``theta``, such as ``rbf.length_scale[3]``."""

    @abstractmethod
    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        """Covariance of the pairs, and the pullback from its adjoint to that of ``theta``."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """k(x_i, x_i), (n,)."""

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        """`diagonal`, and the pullback from its adjoint to that of ``theta``."""

        def pullback(k_bar: Array) -> Array:
            theta_bar = np.zeros(len(self.theta))
            for start in range(0, len(x), _FEW_ROWS):
                part = slice(start, start + _FEW_ROWS)
                pull = self.vjp(Pairs(x[part], x[part], 0))[1]
                theta_bar += pull(np.diag(k_bar[part]))
            return theta_bar

        return self.diagonal(x), pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        """Covariance of the pairs, and the pullback from its adjoint to that of z, (m, d).

        By central differences, unless a kernel knows better.
        """

        def pullback(K_bar: Array) -> Array:
            z_bar = np.empty_like(pairs.z)
            for c, column in enumerate(pairs.z.T):
                step = _STEP * (1.0 + np.abs(column))
                ends = []
                for end in (column + step, column - step):
                    moved = pairs.z.copy()
                    moved[:, c] = end
                    K = self.evaluate(Pairs(pairs.x, moved))
                    ends.append(np.einsum("ij,ij->j", K_bar, np.broadcast_to(K, K_bar.shape)))
                z_bar[:, c] = (ends[0] - ends[1]) / (2.0 * step)
            return z_bar

        return self.evaluate(pairs), pullback

    @abstractmethod
    def for_features(self, n_features: int) -> Self:
        """The kernel with one length-scale a feature where asked; checks that columns exist."""

    @abstractmethod
    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        """The kernel in words."""

    def weak_prior(self, x: Array) -> HyperPrior:
        """What is plausible for ``theta``, given the points; flat where nothing is known."""
        return HyperPrior.flat(len(self.theta))

    def evaluate(self, pairs: Pairs) -> Array:
        """Covariance of the pairs, which the caller may overwrite; broadcasts to their shape."""
        return self.vjp(pairs)[0]

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """Covariance matrix of X with Z, or of X with itself."""
        x = _as_points(X, "X")
        pairs = Pairs(x, x, 0) if Z is None else Pairs(x, _as_points(Z, "Z"))
        K = self.for_features(x.shape[1]).evaluate(pairs)
        return np.broadcast_to(K, pairs.shape).copy()

    def __add__(self, other: object) -> Sum:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: object) -> Sum:
        return Sum(as_kernel(other), self)

    def __mul__(self, other: object) -> Product:
        return Product(self, as_kernel(other))

    def __rmul__(self, other: object) -> Product:
        return Product(as_kernel(other), self)


def wherever(pairs: Pairs) -> Pullback:
    """The pullback to places of a kernel that does not change when points move a little."""
    return lambda K_bar: np.zeros_like(pairs.z)


def as_kernel(value: object) -> Kernel:
    """The kernel itself, a `Constant` for a positive number, or a translation of scikit-learn's."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)):
        return Constant(float(value))
    from polyfid.kernels.sklearn import from_sklearn

    return from_sklearn(value)


@dataclass(frozen=True)
class Leaf(Kernel):
    """A kernel with parameters of its own, each a positive number or one number a column.

    Subclasses are dataclasses; for every name in ``_hyper`` they have the field of that name and
    one named ``<name>_bounds``: one pair, one pair a column, or "fixed".
    """

    _hyper: ClassVar[tuple[str, ...]] = ()
    _by_column: ClassVar[tuple[str, ...]] = ()  # those of _hyper that may be one number a column
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
                    "give one pair, or one pair a value"
                )
            object.__setattr__(self, name, value)
            object.__setattr__(self, f"{name}_bounds", bounds)

    def _free(self) -> list[tuple[str, Any]]:
        free = ((n, getattr(self, n)) for n in self._hyper)
        return [(n, v) for n, v in free if getattr(self, f"{n}_bounds") != "fixed"]

    @property
    def n_theta(self) -> int:
        return sum(np.size(v) for _, v in self._free())

    @property
    def theta(self) -> Array:
        free = self._free()
        return np.log(np.concatenate([np.atleast_1d(v) for _, v in free])) if free else np.empty(0)

    def with_theta(self, theta: Array) -> Self:
        changes: dict[str, Any] = {}
        start = 0
        for name, old in self._free():
            new = np.exp(theta[start : start + np.size(old)])
            start += np.size(old)
            changes[name] = float(new[0]) if np.ndim(old) == 0 else tuple(new.tolist())
        return replace(self, **changes) if changes else self

    @property
    def bounds(self) -> Array:
        rows = [
            np.broadcast_to(np.log(getattr(self, f"{name}_bounds")), (np.size(value), 2))
            for name, value in self._free()
        ]
        return np.concatenate(rows) if rows else np.empty((0, 2))

    @property
    def theta_names(self) -> tuple[str, ...]:
        prefix = type(self).__name__.lower()
        names: list[str] = []
        for name, value in self._free():
            if np.ndim(value) == 0:
                names.append(f"{prefix}.{name}")
            else:
                names += [f"{prefix}.{name}[{j}]" for j in range(len(value))]
        return tuple(names)

    def for_features(self, n_features: int) -> Self:
        return self

    def weak_prior(self, x: Array) -> HyperPrior:
        return HyperPrior.join([self._weak_prior_of(name, x) for name, _ in self._free()])

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        return HyperPrior.independent(*([v] for v in self._plausible[name]))

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={_short(getattr(self, f.name))}"
            for f in fields(self)
            if f.name in self._hyper or _differs(getattr(self, f.name), f.default)
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns is not None:
            columns = tuple(int(c) for c in np.atleast_1d(self.columns))
            if not columns or min(columns) < 0 or len(set(columns)) < len(columns):
                raise ValueError(
                    f"columns of {type(self).__name__} must be distinct indices from 0, "
                    f"got {self.columns!r}"
                )
            object.__setattr__(self, "columns", columns)
            if np.ndim(self.length_scale) and np.size(self.length_scale) != len(columns):
                raise ValueError(
                    f"{type(self).__name__} has {len(columns)} columns and "
                    f"{np.size(self.length_scale)} length-scales; give one a column, or one number"
                )
        if self.ard not in (False, True, "free"):
            raise ValueError(
                f'{type(self).__name__}(ard=) must be False, True or "free"; got {self.ard!r}'
            )
        if self.ard != "free":
            object.__setattr__(self, "ard", bool(self.ard or np.ndim(self.length_scale)))

    def for_features(self, n_features: int) -> Self:
        count = n_features if self.columns is None else len(self.columns)
        if self.columns is not None and max(self.columns) >= n_features:
            raise ValueError(
                f"{type(self).__name__} asks for column {max(self.columns)}, but there are "
                f"{n_features} features (columns count from 0)"
            )
        if not self.ard:
            return self
        if np.ndim(self.length_scale) == 0:
            return replace(self, length_scale=(float(np.asarray(self.length_scale)),) * count)
        if np.size(self.length_scale) != count:
            raise ValueError(
                f"{type(self).__name__} has {np.size(self.length_scale)} length-scales for "
                f"{count} features; give one a feature, or one number"
            )
        return self

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        if name != "length_scale":
            return super()._weak_prior_of(name, x)
        chosen = x if self.columns is None else x[:, self.columns]
        spread = Scale.of(chosen, np.ones(len(chosen))).spread  # 1 of a constant column
        typical = np.log(self._typical_length(len(spread)))
        wide, own = self._length_sd * SHARED_SD, self._length_sd * OWN_SD
        if np.ndim(self.length_scale) == 0:
            # Distances are what the widest columns make of them, and constant ones nothing.
            moving = np.where(varies(chosen), spread, 0.0)
            common = root_mean_square(moving if moving.any() else spread)
            return HyperPrior.independent([float(typical + np.log(common))], [wide])
        if self.ard == "free":
            own = self._length_sd * FREE_SD
        return HyperPrior.tied(typical + np.log(spread), wide, own)

    def _typical_length(self, n_columns: int) -> float:
        """A plausible length-scale, in standard deviations of the columns."""
        return float(np.sqrt(n_columns))

    def _length_pullback(self, pairs: Pairs, s: Array, weighted: Array) -> Array:
        """Adjoint of log length-scale from G_ij, the adjoint of s_ij = sum_c (d_ijc / l_c)^2.

        For ARD, sum_ij G_ij (x_ic - z_jc)^2 is a row sum, a column sum and one (n, m) (m, d)
        product.
        """
        if self.length_scale_bounds == "fixed":
            return np.empty(0)
        if np.ndim(self.length_scale) == 0:
            return np.array([-2.0 * np.vdot(weighted, s)])
        x, z = pairs.select(self.columns)
        total = weighted.sum(axis=1) @ x**2 + weighted.sum(axis=0) @ z**2
        total -= 2.0 * np.einsum("ij,ij->j", x, weighted @ z)
        return -2.0 * total / np.square(self.length_scale)

    def _at_columns(self, z_bar: Array, pairs: Pairs) -> Array:
        """An adjoint of the chosen columns of z as one of all of them."""
        if self.columns is None:
            return z_bar
        wide = np.zeros_like(pairs.z)
        wide[:, self.columns] = z_bar
        return wide

    def _where(self, feature_names: Sequence[str] | None) -> str:
        if self.columns is None:
            return ""
        names = [feature_names[c] if feature_names is not None else str(c) for c in self.columns]
        return " on " + (", ".join(names) if len(names) <= 6 else f"{len(names)} features")

    def _lengths(self) -> str:
        if np.ndim(self.length_scale) == 0:
            return f"length-scale {self.length_scale:.3g}"
        low, high = min(self.length_scale), max(self.length_scale)  # type: ignore[arg-type]
        return f"length-scales {low:.3g} to {high:.3g}"


@dataclass(frozen=True, repr=False)
class Constant(Leaf):
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

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        def pullback(K_bar: Array) -> Array:
            return np.full(self.n_theta, self.value * K_bar.sum())

        return np.full((1, 1), self.value), pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        return self.evaluate(pairs), wherever(pairs)

    def diagonal(self, x: Array) -> Array:
        return np.full(len(x), self.value)

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        def pullback(k_bar: Array) -> Array:
            return np.full(self.n_theta, self.value * k_bar.sum())

        return self.diagonal(x), pullback

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"constant {self.value:.3g}"


@dataclass(frozen=True, repr=False)
class White(Leaf):
    """Independent noise a row, k = noise_level where both arguments are the same row of data.

    It lets rows that repeat a point carry different latent values, so that contradicting labels
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

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        same = pairs.same_rows()
        K = np.zeros(pairs.shape)
        K[same] = self.noise_level

        def pullback(K_bar: Array) -> Array:
            return np.full(self.n_theta, self.noise_level * K_bar[same].sum())

        return K, pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        return self.evaluate(pairs), wherever(pairs)

    def diagonal(self, x: Array) -> Array:
        return np.full(len(x), self.noise_level)

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        def pullback(k_bar: Array) -> Array:
            return np.full(self.n_theta, self.noise_level * k_bar.sum())

        return self.diagonal(x), pullback

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"independent noise of variance {self.noise_level:.3g} a row"


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels and an operation; hyper-parameters of the left one come first."""

    left: Kernel
    right: Kernel

    @property
    def theta(self) -> Array:
        return np.concatenate([self.left.theta, self.right.theta])

    def with_theta(self, theta: Array) -> Self:
        cut = len(self.left.theta)
        return type(self)(self.left.with_theta(theta[:cut]), self.right.with_theta(theta[cut:]))

    @property
    def bounds(self) -> Array:
        return np.concatenate([self.left.bounds, self.right.bounds])

    @property
    def theta_names(self) -> tuple[str, ...]:
        left, right = self.left.theta_names, self.right.theta_names
        if set(left) & set(right):
            left, right = tuple(f"left.{n}" for n in left), tuple(f"right.{n}" for n in right)
        return left + right

    def for_features(self, n_features: int) -> Self:
        return type(self)(self.left.for_features(n_features), self.right.for_features(n_features))

    def weak_prior(self, x: Array) -> HyperPrior:
        return HyperPrior.join([self.left.weak_prior(x), self.right.weak_prior(x)])


@dataclass(frozen=True)
class Sum(_Pair):
    """The sum of two kernels, written ``left + right``.

    Examples
    --------
    >>> from polyfid.kernels import RBF, Linear
    >>> RBF() + Linear()
    RBF(length_scale=1) + Linear(length_scale=1)
    """

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        K_left, pull_left = self.left.vjp(pairs)
        K_right, pull_right = self.right.vjp(pairs)

        def pullback(K_bar: Array) -> Array:
            return np.concatenate([pull_left(K_bar), pull_right(K_bar)])

        return K_left + K_right, pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        K_left, pull_left = self.left.place_vjp(pairs)
        K_right, pull_right = self.right.place_vjp(pairs)

        def pullback(K_bar: Array) -> Array:
            return pull_left(K_bar) + pull_right(K_bar)

        return K_left + K_right, pullback

    def evaluate(self, pairs: Pairs) -> Array:
        return _in_place(np.add, self.left.evaluate(pairs), self.right.evaluate(pairs))

    def diagonal(self, x: Array) -> Array:
        return self.left.diagonal(x) + self.right.diagonal(x)

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        left, pull_left = self.left.diagonal_vjp(x)
        right, pull_right = self.right.diagonal_vjp(x)

        def pullback(k_bar: Array) -> Array:
            return np.concatenate([pull_left(k_bar), pull_right(k_bar)])

        return left + right, pullback

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"{self.left.describe(feature_names)} plus {self.right.describe(feature_names)}"

    def __repr__(self) -> str:
        return f"{self.left!r} + {self.right!r}"


@dataclass(frozen=True)
class Product(_Pair):
    """The product of two kernels, written ``left * right``.

    Examples
    --------
    >>> from polyfid.kernels import RBF
    >>> 2.0 * RBF(0.5)
    Constant(value=2) * RBF(length_scale=0.5)
    """

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        K_left, pull_left = self.left.vjp(pairs)
        K_right, pull_right = self.right.vjp(pairs)

        def pullback(K_bar: Array) -> Array:
            return np.concatenate([pull_left(K_bar * K_right), pull_right(K_bar * K_left)])

        return K_left * K_right, pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        K_left, pull_left = self.left.place_vjp(pairs)
        K_right, pull_right = self.right.place_vjp(pairs)

        def pullback(K_bar: Array) -> Array:
            return pull_left(K_bar * K_right) + pull_right(K_bar * K_left)

        return K_left * K_right, pullback

    def evaluate(self, pairs: Pairs) -> Array:
        return _in_place(np.multiply, self.left.evaluate(pairs), self.right.evaluate(pairs))

    def diagonal(self, x: Array) -> Array:
        return self.left.diagonal(x) * self.right.diagonal(x)

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        left, pull_left = self.left.diagonal_vjp(x)
        right, pull_right = self.right.diagonal_vjp(x)

        def pullback(k_bar: Array) -> Array:
            return np.concatenate([pull_left(k_bar * right), pull_right(k_bar * left)])

        return left * right, pullback

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        for scale, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(scale, Constant):
                words = other.describe(feature_names)
                words = f"({words})" if isinstance(other, Sum) else words
                return f"{words}, scale {scale.value:.3g}"
        return f"({self.left.describe(feature_names)}) times ({self.right.describe(feature_names)})"

    def __repr__(self) -> str:
        sides = (f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right))
        return " * ".join(sides)


def _in_place(operation: np.ufunc, left: Array, right: Array) -> Array:
    """What the operation makes of both, in the memory of the larger one."""
    result: Array = operation(left, right, out=left if left.size >= right.size else right)
    return result


def _as_points(value: ArrayLike, name: str) -> Array:
    points = np.asarray(value, dtype=float)
    if points.ndim != 2:
        raise ValueError(
            f"{name} must have the shape (rows, features), got {points.shape}; "
            f"one feature is {name}[:, None]"
        )
    return points


def _as_floats(value: object) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.full(1, np.nan)  # what is no number passes no check


def _as_parameter(value: object, what: str, by_column: bool) -> float | tuple[float, ...]:
    array = _as_floats(value)
    good = array.ndim <= by_column and array.size and (np.isfinite(array) & (array > 0)).all()
    if not good:
        kind = "a number, or one a column" if by_column else "a number"
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
            f"{what} must be (low, high) with 0 < low <= high < inf, one such pair a column, "
            f'or "fixed"; got {value!r}'
        )
    pairs = tuple((float(low), float(high)) for low, high in np.atleast_2d(array))
    return pairs if len(pairs) > 1 else pairs[0]


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_short(v) for v in value) + ")"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _differs(value: object, default: object) -> bool:
    return bool(value != default)
