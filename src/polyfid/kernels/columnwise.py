"""Kernels of columns: what they share, and those of lines and of categories."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from polyfid.arrays import Array, Scale, root_mean_square, varies
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.leaf import DEFAULT_BOUNDS, Bounds, Leaf
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import HyperPrior

#: Standard deviations of weak priors on log length-scales: of all of them together, and of each
#: one from the others, tied (the default) or free.
SHARED_SD, OWN_SD, FREE_SD = 1.0, 0.3, 1.0


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
    def pull_sum(self, pairs: Pairs, G: Array) -> tuple[Array, Array]:
        """Adjoints of log length-scales by column and of z on the columns, from G, that of s."""

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
        by_column, z_bar = self.pull_sum(at.pairs, G)
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
        typical = np.log(len(spread)) / self._power
        wide = self._length_sd * SHARED_SD
        if self._shared:
            # The widest columns decide distances, and constant ones add nothing.
            moving = np.where(varies(chosen), spread, 0.0)
            common = root_mean_square(moving if moving.any() else spread)
            return HyperPrior.independent([float(typical + np.log(common))], [wide])
        own = self._length_sd * (FREE_SD if self.ard == "free" else OWN_SD)
        return HyperPrior.tied(typical + np.log(spread), wide, own)

    def _chosen(self, x: Array) -> Array:
        return x if self.columns is None else x[:, self.columns]

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        where, low, high = "", np.min(self.length_scale), np.max(self.length_scale)
        if self.columns is not None:
            names = [str(c) if feature_names is None else feature_names[c] for c in self.columns]
            where = " on " + (", ".join(names) if len(names) <= 6 else f"{len(names)} features")
        lengths = f" {low:.3g}" if self._shared else f"s {low:.3g} to {high:.3g}"
        return f"{self._words}{where}, length-scale{lengths}"


@dataclass(frozen=True, repr=False)
class Linear(Columnwise):
    """Linear functions through zero: k = sum_c x_c z_c / length_scale_c^2.

    A bias is ``Linear() + Constant()``.

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

    def pull_sum(self, pairs: Pairs, G: Array) -> tuple[Array, Array]:
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

    def pull_sum(self, pairs: Pairs, G: Array) -> tuple[Array, Array]:
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
