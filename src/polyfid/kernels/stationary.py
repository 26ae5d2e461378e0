"""Stationary kernels: functions h(s) of the scaled squared distance.

s = sum_c ((x_c - z_c) / l_c)^2, with one length-scale l for all columns or one for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.columnwise import Columnwise
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.leaf import DEFAULT_BOUNDS, Bounds
from polyfid.kernels.pairs import Pairs


@dataclass(frozen=True, repr=False)
class Stationary(Columnwise):
    """Base of the stationary kernels; a subclass gives h(s) and h'(s)."""

    def scaled_sum(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.squared_distances(self.columns) / np.square(self.length_scale)
        return pairs.scaled_squared_distances(self.columns, np.asarray(self.length_scale))

    def pull_sum(self, pairs: Pairs, G: Array) -> tuple[Array, Array]:
        # ds_ij = -2 sum_c (x_ic - z_jc) (dz_jc + (x_ic - z_jc) d log l_c) / l_c^2
        x, z = pairs.centred(self.columns)
        P, g = G.T @ x, G.sum(axis=0)
        inverse_square = 1.0 / np.square(self.length_scale)
        total = G.sum(axis=1) @ x**2 + g @ z**2 - 2.0 * np.einsum("ij,ij->j", z, P)
        return -2.0 * total * inverse_square, 2.0 * (g[:, None] * z - P) * inverse_square


@dataclass(frozen=True, repr=False)
class RBF(Stationary):
    """Squared exponential: k = exp(-s/2), s = sum_c ((x_c - z_c) / length_scale_c)^2.

    Parameters
    ----------
    length_scale : float or sequence of float
        One number for all columns, or one per column (ARD).
    length_scale_bounds : (low, high) or "fixed"
    ard : bool or "free"
        One length-scale per column, all starting at ``length_scale``; the number of columns is
        taken from the data. The estimator's weak prior keeps them close to each other, or lets
        them differ if "free".
    columns : sequence of int, optional
        The columns that the kernel compares; all by default.

    Examples
    --------
    >>> from polyfid.kernels import RBF
    >>> RBF(2.0)([[0.0]], [[2.0]]).round(4)
    array([[0.6065]])
    """

    _words: ClassVar[str] = "smooth (RBF)"

    def profile(self, s: Array) -> Array:
        K = s * -0.5
        return np.asarray(np.exp(K, out=K))

    def slope(self, s: Array, K: Array) -> Array:
        return K * -0.5


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

    def profile(self, s: Array) -> Array:
        return np.asarray(np.exp(-np.sqrt(s)))

    def slope(self, s: Array, K: Array) -> Array:
        # Infinite at r = 0, but there it only ever meets differences that are zero.
        r = np.sqrt(s)
        return np.divide(-0.5 * K, r, out=np.zeros_like(K), where=r > 0.0)


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

    def profile(self, s: Array) -> Array:
        r = np.sqrt(3.0 * s)
        return np.asarray((1.0 + r) * np.exp(-r))

    def slope(self, s: Array, K: Array) -> Array:
        return -1.5 * K / (1.0 + np.sqrt(3.0 * s))


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

    def profile(self, s: Array) -> Array:
        r = np.sqrt(5.0 * s)
        return np.asarray((1.0 + r + r * r / 3.0) * np.exp(-r))

    def slope(self, s: Array, K: Array) -> Array:
        r = np.sqrt(5.0 * s)
        return (-5.0 / 6.0) * (1.0 + r) * K / (1.0 + r + r * r / 3.0)


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
    kinds: dict[float, type[Stationary]] = {
        0.5: Matern12,
        1.5: Matern32,
        2.5: Matern52,
        np.inf: RBF,
    }
    if nu not in kinds:
        raise ValueError(f"Matern(nu=) must be 0.5, 1.5, 2.5 or inf, got {nu!r}")
    return kinds[nu](length_scale, length_scale_bounds, ard, columns)  # type: ignore[arg-type]


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

    def profile(self, s: Array) -> Array:
        return np.asarray(np.exp(-self.alpha * np.log1p(s / (2.0 * self.alpha))))

    def slope(self, s: Array, K: Array) -> Array:
        return -0.5 * K / (1.0 + s / (2.0 * self.alpha))

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        bars = super()._pull(at, K_bar, places)
        if not self._is_free("alpha"):
            return bars
        q = at.saved / (2.0 * self.alpha)
        alpha_bar = self.alpha * np.vdot(K_bar, at.K * (q / (1.0 + q) - np.log1p(q)))
        return bars._replace(theta=np.append(alpha_bar, bars.theta))

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"{super().describe(feature_names)}, alpha {self.alpha:.3g}"
