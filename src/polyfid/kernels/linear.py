"""The linear kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.base import Columnwise, Pullback
from polyfid.kernels.pairs import Pairs


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

    def vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        shared = np.ndim(self.length_scale) == 0
        if shared:
            K = pairs.inner(self.columns) / np.square(self.length_scale)
        else:
            x, z = pairs.raw(self.columns)
            K = (x / np.square(self.length_scale)) @ z.T

        def pullback(K_bar: Array) -> Array:
            if self.length_scale_bounds == "fixed":
                return np.empty(0)
            if shared:
                return np.array([-2.0 * np.vdot(K_bar, K)])
            x, z = pairs.raw(self.columns)
            return -2.0 * np.einsum("ij,ij->j", x, K_bar @ z) / np.square(self.length_scale)

        return K, pullback

    def place_vjp(self, pairs: Pairs) -> tuple[Array, Pullback]:
        def pullback(K_bar: Array) -> Array:
            x, _ = pairs.raw(self.columns)
            return self._at_columns(K_bar.T @ (x / np.square(self.length_scale)), pairs)

        return self.evaluate(pairs), pullback

    def diagonal(self, x: Array) -> Array:
        return np.asarray(self._squares(x).sum(axis=1))

    def diagonal_vjp(self, x: Array) -> tuple[Array, Pullback]:
        squares = self._squares(x)

        def pullback(k_bar: Array) -> Array:
            if self.length_scale_bounds == "fixed":
                return np.empty(0)
            by_column = -2.0 * (k_bar @ squares)
            return by_column if np.ndim(self.length_scale) else np.array([by_column.sum()])

        return np.asarray(squares.sum(axis=1)), pullback

    def _squares(self, x: Array) -> Array:
        """What each column adds to the diagonal, (n, columns)."""
        chosen = x if self.columns is None else x[:, self.columns]
        return np.square(chosen / np.asarray(self.length_scale))

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"linear{self._where(feature_names)}, {self._lengths()}"
