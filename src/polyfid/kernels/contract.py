"""The contract of a kernel, and sums and products of kernels.

A kernel is an immutable value. Its positive hyper-parameters are tuned through ``theta``, the
vector of their logarithms; parameters whose bounds are "fixed" are not in ``theta``.
A prediction only calls `Kernel.evaluate`; a gradient goes back through `Linearised.pull`, and
no array with an axis for the parameters is ever built.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from polyfid.arrays import Array
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import HyperPrior, Parameters, Tunable


class Adjoints(NamedTuple):
    """Adjoints of ``theta``, (p,), and of the second points z, (m, d): no rows if not asked for."""

    theta: Array
    places: Array

    @classmethod
    def of_theta(cls, theta_bar: Array, pairs: Pairs, places: bool) -> Adjoints:
        """With zeros for the places, as of a covariance that the second points do not change."""
        m, d = pairs.z.shape
        return cls(theta_bar, np.zeros((m if places else 0, d)))


@dataclass(frozen=True)
class Linearised:
    """A covariance matrix, and what the kernel needs to pull adjoints back through it."""

    K: Array
    kernel: Kernel
    pairs: Pairs
    saved: Any = None

    def pull(self, K_bar: Array, places: bool = False) -> Adjoints:
        """Adjoints of ``theta`` and, if ``places``, of the second points from that of K, (n, m)."""
        return self.kernel._pull(self, K_bar, places)


class Kernel(Tunable):
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

    @abstractmethod
    def with_theta(self, theta: Array) -> Self:
        """The same kernel with other values of its free hyper-parameters."""

    @abstractmethod
    def evaluate(self, pairs: Pairs) -> Array:
        """Covariance of the pairs, (n, m). It may be read-only where all entries are one number."""

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        """`evaluate` with column j multiplied by weight_j, of which none is zero."""
        K = self.evaluate(pairs)
        return np.multiply(K, weight, out=K if K.flags.writeable else None)

    @property
    def number(self) -> float | None:
        """What all entries of a covariance are equal to, if they are."""
        return None

    def linearise(self, pairs: Pairs) -> Linearised:
        """Covariance of the pairs, with its derivatives."""
        return Linearised(self.evaluate(pairs), self, pairs)

    @abstractmethod
    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        """`Linearised.pull` of this kernel."""

    @abstractmethod
    def diagonal(self, x: Array) -> Array:
        """k(x_i, x_i), (n,)."""

    @abstractmethod
    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        """The adjoint of ``theta``, (p,), from that of `diagonal`, (n,)."""

    def for_features(self, n_features: int) -> Self:
        """The kernel with one length-scale per feature where ``ard`` says so."""
        return self

    @abstractmethod
    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        """The kernel in words."""

    def weak_prior(self, x: Array) -> HyperPrior:
        """What is plausible for ``theta``, given the points; flat by default."""
        return HyperPrior.flat(len(self.theta))

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """Covariance matrix of X with Z, or of X with itself."""
        x = _as_points(X, "X")
        pairs = Pairs(x, x, 0) if Z is None else Pairs(x, _as_points(Z, "Z"))
        return np.require(self.for_features(x.shape[1]).evaluate(pairs), requirements="W")

    def __add__(self, other: object) -> Sum:
        return Sum(self, as_kernel(other))

    def __radd__(self, other: object) -> Sum:
        return as_kernel(other) + self

    def __mul__(self, other: object) -> Product:
        return Product(self, as_kernel(other))

    def __rmul__(self, other: object) -> Product:
        return as_kernel(other) * self


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels and an operation; hyper-parameters of the left one come first."""

    left: Kernel
    right: Kernel

    _operation: ClassVar[np.ufunc]

    @abstractmethod
    def _share(self, bar: Array, other: Array) -> Array:
        """The adjoint of one kernel from that of the pair and the value of the other kernel."""

    @cached_property
    def parameters(self) -> Parameters:
        left, right = self.left.parameters, self.right.parameters
        if set(left.names) & set(right.names):
            left, right = left.prefixed("left"), right.prefixed("right")
        return Parameters.join([left, right])

    def with_theta(self, theta: Array) -> Self:
        cut = len(self.left.theta)
        return type(self)(self.left.with_theta(theta[:cut]), self.right.with_theta(theta[cut:]))

    def evaluate(self, pairs: Pairs) -> Array:
        return self._combine(self.left.evaluate(pairs), self.right.evaluate(pairs))

    def _combine(self, left: Array, right: Array) -> Array:
        """The operation on two arrays, in place of one that is writable."""
        writable = next((K for K in (left, right) if K.flags.writeable), None)
        return np.asarray(self._operation(left, right, out=writable))

    def linearise(self, pairs: Pairs) -> Linearised:
        left, right = self.left.linearise(pairs), self.right.linearise(pairs)
        return Linearised(self._operation(left.K, right.K), self, pairs, (left, right))

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        left, right = at.saved
        a = left.pull(self._share(K_bar, right.K), places)
        b = right.pull(self._share(K_bar, left.K), places)
        return Adjoints(np.append(a.theta, b.theta), a.places + b.places)

    def diagonal(self, x: Array) -> Array:
        return np.asarray(self._operation(self.left.diagonal(x), self.right.diagonal(x)))

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        left = self.left.pull_diagonal(x, self._share(k_bar, self.right.diagonal(x)))
        right = self.right.pull_diagonal(x, self._share(k_bar, self.left.diagonal(x)))
        return np.append(left, right)

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

    _operation: ClassVar[np.ufunc] = np.add

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        left, right = self.left.weighted(pairs, weight), self.right.weighted(pairs, weight)
        return self._combine(left, right)

    def _share(self, bar: Array, other: Array) -> Array:
        return bar

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

    _operation: ClassVar[np.ufunc] = np.multiply

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        for scale, other in ((self.left, self.right), (self.right, self.left)):
            if scale.number is not None:  # one pass through the matrix less
                return other.weighted(pairs, weight * scale.number)
        return super().weighted(pairs, weight)

    def _share(self, bar: Array, other: Array) -> Array:
        return bar * other

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        from polyfid.kernels.leaf import Constant

        for scale, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(scale, Constant):
                words = other.describe(feature_names)
                words = f"({words})" if isinstance(other, Sum) else words
                return f"{words}, scale {scale.value:.3g}"
        return f"({self.left.describe(feature_names)}) times ({self.right.describe(feature_names)})"

    def __repr__(self) -> str:
        sides = (f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right))
        return " * ".join(sides)


def as_kernel(value: object) -> Kernel:
    """The kernel itself, a `Constant` for a positive number, or a translation of scikit-learn's."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)):
        from polyfid.kernels.leaf import Constant

        return Constant(float(value))
    return from_sklearn(value)


def from_sklearn(kernel: Any) -> Kernel:
    """A kernel of scikit-learn as one of polyfid's, with its values, bounds and fixed parameters.

    Kernels without a native counterpart are wrapped. They work, but scikit-learn builds
    their gradients as arrays of shape (n, n, p); a warning says so.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel

    Examples
    --------
    >>> from sklearn.gaussian_process import kernels as sk
    >>> from polyfid.kernels import from_sklearn
    >>> from_sklearn(4.0 * sk.Matern([1.0, 2.0], nu=2.5) + sk.WhiteKernel(0.1))
    Constant(value=4) * Matern52(length_scale=(1, 2), ard=True) + White(noise_level=0.1)
    """
    # Imported when it is asked for: scikit-learn's kernels bring its metrics and preprocessing.
    from polyfid.kernels.sklearn import translate

    return translate(kernel)


def _as_points(value: ArrayLike, name: str) -> Array:
    points = np.asarray(value, dtype=float)
    if points.ndim != 2:
        raise ValueError(
            f"{name} must have the shape (rows, features), got {points.shape}; "
            f"one feature is {name}[:, None]"
        )
    return points
