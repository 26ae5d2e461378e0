"""Sums and products of kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.contract import Adjoints, Kernel, Linearised
from polyfid.kernels.leaf import Constant
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import HyperPrior, Parameters


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels and an operation; hyper-parameters of the left one come first."""

    left: Kernel
    right: Kernel

    _operation: ClassVar[np.ufunc]

    @abstractmethod
    def _share(self, bar: Array, other: Array) -> Array:
        """The adjoint of one side, from that of the result and the value of the other side."""

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
        left, right = self.left.evaluate(pairs), self.right.evaluate(pairs)
        writable = next((K for K in (left, right) if K.flags.writeable), None)
        return np.asarray(self._operation(left, right, out=writable))

    def linearise(self, pairs: Pairs) -> Linearised:
        left, right = self.left.linearise(pairs), self.right.linearise(pairs)
        K = np.asarray(self._operation(left.K, right.K))
        return Linearised(K, self, pairs, (left, right))

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        left, right = at.saved
        a = left.pull(self._share(K_bar, right.K), places)
        b = right.pull(self._share(K_bar, left.K), places)
        return Adjoints(np.concatenate([a.theta, b.theta]), a.places + b.places)

    def diagonal(self, x: Array) -> Array:
        return np.asarray(self._operation(self.left.diagonal(x), self.right.diagonal(x)))

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        left = self._share(k_bar, self.right.diagonal(x))
        right = self._share(k_bar, self.left.diagonal(x))
        return np.concatenate(
            [self.left.pull_diagonal(x, left), self.right.pull_diagonal(x, right)]
        )

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

    def _share(self, bar: Array, other: Array) -> Array:
        return bar * other

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
