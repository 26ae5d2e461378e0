"""The kernel of categorical columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.base import Columnwise, Pullback, wherever
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.kernels.pairs import Pairs


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

    # The distance goes by 1 / length_scale, not by its square, so that length-scales spread wider.
    _length_sd: ClassVar[float] = 1.5

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        if np.ndim(self.length_scale) == 0:
            return self._shared(pairs)
        # Weight of the columns that differ = weight of all - weight of those that agree.
        weight = 1.0 / np.asarray(self.length_scale)
        x, z, column = pairs.one_hot(self.columns)
        distance = weight.sum() - (x * weight[column]) @ z.T.astype(float)
        K = np.exp(-distance)

        def pullback(K_bar: Array) -> Array:
            if self.length_scale_bounds == "fixed":
                return np.empty(0)
            G = K_bar * K
            agree = np.einsum("ij,ij->j", x, G @ z.astype(float))
            return weight * (G.sum() - np.bincount(column, agree, minlength=len(weight)))

        return K, pullback

    def _shared(self, pairs: Pairs) -> tuple[Array, Pullback]:
        distance = pairs.mismatches(self.columns) / self.length_scale
        K = np.exp(-distance)

        def pullback(K_bar: Array) -> Array:
            if self.length_scale_bounds == "fixed":
                return np.empty(0)
            return np.array([np.vdot(K_bar * K, distance)])

        return K, pullback

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        # Codes have no scale: the spread of the columns says nothing.
        return super()._weak_prior_of(name, np.zeros((1, x.shape[1])))

    def _typical_length(self, n_columns: int) -> float:
        return float(n_columns)

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        return self.evaluate(pairs), wherever(pairs)

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        return self.diagonal(x), lambda k_bar: np.zeros(self.n_theta)

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"categorical (Hamming){self._where(feature_names)}, {self._lengths()}"
