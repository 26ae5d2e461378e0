"""Kernels of columns: stationary ones, lines, categories and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from scipy.spatial.distance import cdist

from polyfid.arrays import Array
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.leaf import DEFAULT_BOUNDS, Bounds, Columnwise
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import HyperPrior

#: Largest exponent of fixed points: products of two exponentials must not overflow.
_EXPONENT = 300.0


def _by_column(left: tuple[Array, Array], right: tuple[Array, Array]) -> Iterator[Array]:
    """a_c b_c^T + a'_c b'_c^T by column c, in one array, of a and a' (n, d), b and b' (m, d).

    A product of matrices is several times as fast as broadcasting.
    """
    a, b = np.stack(left, axis=-1), np.stack(right)
    K = np.empty((a.shape[0], b.shape[1]))
    a, b = np.ascontiguousarray(a.transpose(1, 0, 2)), np.ascontiguousarray(b.transpose(2, 0, 1))
    return (np.matmul(a_c, b_c, out=K) for a_c, b_c in zip(a, b, strict=True))


@dataclass(frozen=True, repr=False)
class Stationary(Columnwise):
    """Functions h(s) of s = sum_c ((x_c - z_c) / length_scale_c)^2; a subclass gives h and h'."""

    def scaled_sum(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.squared_distances(self.columns) / np.square(self.length_scale)
        return pairs.scaled_squared_distances(self.columns, np.asarray(self.length_scale))

    def pull_sum(self, pairs: Pairs, G: Array, places: bool) -> tuple[Array, Array]:
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

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        K = pairs.weighted_gaussians(self.columns, np.asarray(self.length_scale), weight)
        return super().weighted(pairs, weight) if K is None else K

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


@dataclass(frozen=True, repr=False)
class Linear(Columnwise):
    """Linear functions through zero: k = sum_c x_c z_c / length_scale_c^2.

    A line that need not go through zero is ``Linear() + Intercept()``.

    Examples
    --------
    >>> from polyfid.kernels import Linear
    >>> Linear(2.0)([[2.0]], [[6.0]])
    array([[3.]])
    """

    _words: ClassVar[str] = "linear"

    def scaled_sum(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.inner(self.columns) / np.square(self.length_scale)
        x, z = pairs.raw(self.columns)
        return np.asarray((x / np.square(self.length_scale)) @ z.T)

    def weighted(self, pairs: Pairs, weight: Array) -> Array:
        x, z = pairs.raw(self.columns)
        return np.asarray(x @ (z / np.square(self.length_scale) * weight[:, None]).T)

    def pull_sum(self, pairs: Pairs, G: Array, places: bool) -> tuple[Array, Array]:
        x, z = pairs.raw(self.columns)
        P = (G.T @ x) / np.square(self.length_scale)
        return -2.0 * np.einsum("ij,ij->j", z, P), P

    def profile(self, s: Array) -> Array:
        return s

    def slope(self, s: Array, K: Array) -> float:
        return 1.0

    def diagonal(self, x: Array) -> Array:
        return np.asarray(self._squares(x).sum(axis=1))

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        return self._lengths_bar(-2.0 * (k_bar @ self._squares(x)))

    def _squares(self, x: Array) -> Array:
        """Terms of the diagonal by column, (n, columns)."""
        return np.square(self._chosen(x) / np.asarray(self.length_scale))


@dataclass(frozen=True, repr=False)
class Categorical(Columnwise):
    """Hamming kernel of coded categories: k = exp(-sum_c [x_c != z_c] / length_scale_c).

    A long length-scale means that the column matters little. Codes are compared for equality
    only, so any distinct numbers do.

    Examples
    --------
    >>> from polyfid.kernels import Categorical
    >>> Categorical(1.0)([[0, 1]], [[0, 2], [3, 2]]).round(4)
    array([[0.3679, 0.1353]])
    """

    _power: ClassVar[int] = 1
    _length_sd: ClassVar[float] = 1.5  # wider, as distances go by the length-scale, not its square
    _words: ClassVar[str] = "categorical (Hamming)"

    def scaled_sum(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.mismatches(self.columns) / self.length_scale
        # Weight of the columns that differ = weight of all - weight of those that agree.
        weight = 1.0 / np.asarray(self.length_scale)
        x, z, column = pairs.one_hot(self.columns)
        return np.asarray(weight.sum() - (x * weight[column]) @ z.T.astype(float))

    def pull_sum(self, pairs: Pairs, G: Array, places: bool) -> tuple[Array, Array]:
        x, z, column = pairs.one_hot(self.columns)
        codes = self._chosen(pairs.z)
        agree = np.einsum("ij,ij->j", x, G @ z.astype(float))
        differ = G.sum() - np.bincount(column, agree, minlength=codes.shape[1])
        return -differ / np.asarray(self.length_scale), np.zeros_like(codes)

    def profile(self, s: Array) -> Array:
        return np.asarray(np.exp(-s))

    def slope(self, s: Array, K: Array) -> Array:
        return -K

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        # Codes have no scale: the spread of the columns says nothing.
        return super()._weak_prior_of(name, np.zeros((1, x.shape[1])))


@dataclass(frozen=True, repr=False)
class _Steps(Columnwise):
    """Kernels of a_c = |x_c - z_c| / length_scale_c: steps, as trees make them."""

    _power: ClassVar[int] = 1
    _length_sd: ClassVar[float] = 1.5

    def _gaps(self, pairs: Pairs) -> Iterator[Array]:
        """(x_c - z_c) / length_scale_c, (n, m), by column, in an array that is used again."""
        x, z = self._scaled(pairs)
        return _by_column((x, np.ones_like(x)), (np.ones_like(z), -z))

    def _decays(self, pairs: Pairs) -> Iterator[Array]:
        """exp(-a_c), (n, m), by column, in an array that is used again.

        The smaller one of e^x e^-z and e^-x e^z: products instead of an exponential per pair.
        """
        x, z = self._scaled(pairs)
        if np.abs(z).max(initial=0.0) > _EXPONENT:
            return (np.exp(-np.abs(gap)) for gap in self._gaps(pairs))
        x = np.clip(x, -_EXPONENT - 100.0, _EXPONENT + 100.0)  # beyond, exp(-a) is nothing anyway
        nothing = np.zeros_like(x), np.zeros_like(z)
        up = _by_column((np.exp(x), nothing[0]), (np.exp(-z), nothing[1]))
        down = _by_column((np.exp(-x), nothing[0]), (np.exp(z), nothing[1]))
        return (np.minimum(p, q, out=p) for p, q in zip(up, down, strict=True))

    def _scaled(self, pairs: Pairs) -> tuple[Array, Array]:
        x, z = pairs.centred(self.columns)
        return x / np.asarray(self.length_scale), z / np.asarray(self.length_scale)

    def _pull_gaps(
        self, pairs: Pairs, places: bool, adjoint: Callable[[Array], Array]
    ) -> tuple[Array, Array]:
        """`pull_sum`, given the adjoint of a_c as a function of a_c."""
        z_bar = np.zeros_like(self._chosen(pairs.z))
        by_column = np.empty(z_bar.shape[1])
        for c, gap in enumerate(self._gaps(pairs)):
            sign = np.sign(gap) if places else None
            a = np.abs(gap, out=gap)
            G = adjoint(a)
            by_column[c] = -np.vdot(G, a)
            if sign is not None:
                z_bar[:, c] = -np.einsum("ij,ij->j", G, sign)
        return by_column, z_bar / np.asarray(self.length_scale)


@dataclass(frozen=True, repr=False)
class Laplacian(_Steps):
    """Steps in all columns at once: ``k = exp(-sum_c |x_c - z_c| / length_scale_c)``.

    The limit of very many random trees (a Mondrian forest): columns may interact.

    Examples
    --------
    >>> from polyfid.kernels import Laplacian
    >>> Laplacian(2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    _words: ClassVar[str] = "steps (Laplacian)"

    def scaled_sum(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.city_distances(self.columns) / self.length_scale
        x, z = (side / np.asarray(self.length_scale) for side in pairs.raw(self.columns))
        return cdist(x, z, "cityblock")

    def pull_sum(self, pairs: Pairs, G: Array, places: bool) -> tuple[Array, Array]:
        return self._pull_gaps(pairs, places, lambda a: G)

    def profile(self, s: Array) -> Array:
        return np.asarray(np.exp(-s))

    def slope(self, s: Array, K: Array) -> Array:
        return -K


@dataclass(frozen=True, repr=False)
class Additive(_Steps):
    """Steps in one column at a time, averaged: ``k = mean_c exp(-|x_c - z_c| / length_scale_c)``.

    The counterpart of boosted stumps: columns do not interact.

    Examples
    --------
    >>> from polyfid.kernels import Additive
    >>> Additive(2.0)([[0.0, 0.0]], [[2.0, 0.0]]).round(4)
    array([[0.6839]])
    """

    _words: ClassVar[str] = "steps by column (additive)"

    def scaled_sum(self, pairs: Pairs) -> Array:
        K = np.zeros(pairs.shape)
        for e in self._decays(pairs):
            K += e
        return K / self._chosen(pairs.x).shape[1]

    def linearise(self, pairs: Pairs) -> Linearised:
        K, slope = np.zeros((2, *pairs.shape))  # and the derivative by a shared log length-scale
        for gap, e in zip(self._gaps(pairs), self._decays(pairs), strict=True):
            K += e
            e *= np.abs(gap, out=gap)
            slope += e
        n_columns = self._chosen(pairs.x).shape[1]
        return Linearised(K / n_columns, self, pairs, slope / n_columns)

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        if self._shared and not places:
            by_column = np.array([np.vdot(K_bar, at.saved)])
            return Adjoints.of_theta(self._lengths_bar(by_column), at.pairs, places)
        return super()._pull(at, K_bar, places)

    def pull_sum(self, pairs: Pairs, G: Array, places: bool) -> tuple[Array, Array]:
        n_columns = self._chosen(pairs.x).shape[1]
        return self._pull_gaps(pairs, places, lambda a: G * (np.exp(-a) / -n_columns))

    def profile(self, s: Array) -> Array:
        return s

    def slope(self, s: Array, K: Array) -> float:
        return 1.0

    def _typical_length(self, n_columns: int) -> float:
        return 2.0
