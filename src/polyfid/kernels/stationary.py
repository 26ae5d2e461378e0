"""Stationary kernels: functions h(s) of the scaled squared distance.

s = sum_c ((x_c - z_c) / l_c)^2, with one length-scale l for all columns or one for each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.base import DEFAULT_BOUNDS, Bounds, Columnwise, Pullback
from polyfid.kernels.pairs import Pairs


@dataclass(frozen=True, repr=False)
class Stationary(Columnwise):
    """Base of the stationary kernels; a subclass gives h(s) and h'(s)."""

    _words: ClassVar[str] = ""

    @abstractmethod
    def profile(self, s: Array) -> tuple[Array, Array]:
        """h(s) and dh/ds, the latter finite at zero."""

    def _distance(self, pairs: Pairs) -> Array:
        """Scaled squared distances of the pairs, in an array of their own."""
        if np.ndim(self.length_scale) == 0:
            return pairs.squared_distances(self.columns) / np.square(self.length_scale)
        return pairs.scaled_squared_distances(self.columns, np.asarray(self.length_scale))

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        s = self._distance(pairs)
        K, slope = self.profile(s)

        def pullback(K_bar: Array) -> Array:
            return self._length_pullback(pairs, s, K_bar * slope)

        return K, pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        K, slope = self.profile(self._distance(pairs))

        def pullback(K_bar: Array) -> Array:
            # ds_ij = -2 sum_c (x_ic - z_jc) / l_c^2 dz_jc
            G = K_bar * slope
            x, z = pairs.select(self.columns)
            z_bar = 2.0 * (G.sum(axis=0)[:, None] * z - G.T @ x) / np.square(self.length_scale)
            return self._at_columns(z_bar, pairs)

        return K, pullback

    def evaluate(self, pairs: Pairs) -> Array:
        return self.profile(self._distance(pairs))[0]

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        return self.diagonal(x), lambda k_bar: np.zeros(self.n_theta)

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"{self._words}{self._where(feature_names)}, {self._lengths()}"


@dataclass(frozen=True, repr=False)
class RBF(Stationary):
    """Squared exponential: k = exp(-s/2), s = sum_c ((x_c - z_c) / length_scale_c)^2.

    Parameters
    ----------
    length_scale : float or sequence of float
        One number for all columns, or one a column (ARD).
    length_scale_bounds : (low, high) or "fixed"
    ard : bool or "free"
        One length-scale a column, all starting at ``length_scale``; the number of columns is
        taken from the data. The weak prior of the estimator ties them softly together, or leaves
        them "free" to part.
    columns : sequence of int, optional
        The columns the kernel looks at; all by default.

    Examples
    --------
    >>> from polyfid.kernels import RBF
    >>> RBF(2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.6065]])
    """

    _words: ClassVar[str] = "smooth (RBF)"

    def profile(self, s: Array) -> tuple[Array, Array]:
        K = np.exp(s * -0.5)
        return K, K * -0.5

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        # As the base class, with one array less: h' is -h/2.
        s = self._distance(pairs)
        K = self._of_exponent(s * -0.5)

        def pullback(K_bar: Array) -> Array:
            return -0.5 * self._length_pullback(pairs, s, K_bar * K)

        return K, pullback

    def evaluate(self, pairs: Pairs) -> Array:
        s = self._distance(pairs)
        return self._of_exponent(np.multiply(s, -0.5, out=s))

    @staticmethod
    def _of_exponent(exponent: Array) -> Array:
        return np.asarray(np.exp(exponent, out=exponent))


@dataclass(frozen=True, repr=False)
class Matern12(Stationary):
    """Exponential kernel (Matern 1/2): k = exp(-r), r = sqrt(s); rough functions.

    Examples
    --------
    >>> from polyfid.kernels import Matern12
    >>> Matern12(2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.3679]])
    """

    _words: ClassVar[str] = "rough (Matern 1/2)"

    def profile(self, s: Array) -> tuple[Array, Array]:
        r = np.sqrt(s)
        K = np.exp(-r)
        # At r = 0 the slope is infinite, but it only ever meets differences that are zero there.
        return K, np.divide(-0.5 * K, r, out=np.zeros_like(K), where=r > 0.0)


@dataclass(frozen=True, repr=False)
class Matern32(Stationary):
    """Matern 3/2: k = (1 + r) exp(-r), r = sqrt(3 s); once differentiable functions.

    Examples
    --------
    >>> from polyfid.kernels import Matern32
    >>> Matern32(2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.4834]])
    """

    _words: ClassVar[str] = "once smooth (Matern 3/2)"

    def profile(self, s: Array) -> tuple[Array, Array]:
        r = np.sqrt(3.0 * s)
        decay = np.exp(-r)
        return (1.0 + r) * decay, -1.5 * decay


@dataclass(frozen=True, repr=False)
class Matern52(Stationary):
    """Matern 5/2: k = (1 + r + r^2/3) exp(-r), r = sqrt(5 s); twice differentiable functions.

    Examples
    --------
    >>> from polyfid.kernels import Matern52
    >>> Matern52(2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.524]])
    """

    _words: ClassVar[str] = "twice smooth (Matern 5/2)"

    def profile(self, s: Array) -> tuple[Array, Array]:
        r = np.sqrt(5.0 * s)
        decay = np.exp(-r)
        return (1.0 + r + r * r / 3.0) * decay, (-5.0 / 6.0) * (1.0 + r) * decay


def Matern(
    length_scale: float | Sequence[float] = 1.0,
    nu: float = 1.5,
    *,
    length_scale_bounds: Bounds = DEFAULT_BOUNDS,
    ard: bool | Literal["free"] = False,
    columns: Sequence[int] | None = None,
) -> Stationary:
    """The Matern kernel of smoothness ``nu``: 0.5, 1.5, 2.5 or inf (the RBF).

    Examples
    --------
    >>> from polyfid.kernels import Matern
    >>> Matern(2.0, nu=2.5)
    Matern52(length_scale=2)
    """
    smoothness: dict[float, type[Stationary]] = {
        0.5: Matern12,
        1.5: Matern32,
        2.5: Matern52,
        np.inf: RBF,
    }
    if nu not in smoothness:
        raise ValueError(f"Matern(nu=) must be 0.5, 1.5, 2.5 or inf, got {nu!r}")
    return smoothness[nu](length_scale, length_scale_bounds, ard, columns)  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Stationary):
    """Rational quadratic: k = (1 + s / (2 alpha))^-alpha, a mixture of RBFs of many lengths.

    Examples
    --------
    >>> from polyfid.kernels import RationalQuadratic
    >>> RationalQuadratic(2.0, alpha=1.0)([[0.0]], [[2.0]]).round(4)
    array([[0.6667]])
    """

    alpha: float = field(default=1.0, kw_only=True)
    alpha_bounds: Bounds = field(default=DEFAULT_BOUNDS, kw_only=True)

    _hyper: ClassVar[tuple[str, ...]] = ("alpha", "length_scale")  # as scikit-learn orders them
    _plausible: ClassVar[dict[str, tuple[float, float]]] = {"alpha": (0.0, 1.0)}
    _words: ClassVar[str] = "smooth at several lengths (rational quadratic)"

    def profile(self, s: Array) -> tuple[Array, Array]:
        q = s / (2.0 * self.alpha)
        K = np.exp(-self.alpha * np.log1p(q))
        return K, -0.5 * K / (1.0 + q)

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        s = self._distance(pairs)
        K, slope = self.profile(s)

        def pullback(K_bar: Array) -> Array:
            length_bar = self._length_pullback(pairs, s, K_bar * slope)
            if self.alpha_bounds == "fixed":
                return length_bar
            q = s / (2.0 * self.alpha)
            alpha_bar = self.alpha * np.vdot(K_bar, K * (q / (1.0 + q) - np.log1p(q)))
            return np.append(alpha_bar, length_bar)

        return K, pullback

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"{super().describe(feature_names)}, alpha {self.alpha:.3g}"
