"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.leaf import Columnwise
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

    _words: ClassVar[str] = "linear"

    def evaluate(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.inner(self.columns) / np.square(self.length_scale)
        x, z = pairs.raw(self.columns)
        return np.asarray((x / np.square(self.length_scale)) @ z.T)

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        free = self._is_free("length_scale")
        if self._shared and not places:
            theta_bar = np.array([-2.0 * np.vdot(K_bar, at.K)] if free else [])
            return Adjoints.of_theta(theta_bar, at.pairs, places)
        x, z = at.pairs.raw(self.columns)
        P = (K_bar.T @ x) / np.square(self.length_scale)
        by_column = -2.0 * np.einsum("ij,ij->j", z, P)
        theta_bar = (by_column.sum(keepdims=True) if self._shared else by_column)[
            : None if free else 0
        ]
        return Adjoints(theta_bar, self._places(P if places else P[:0], at.pairs))

    def diagonal(self, x: Array) -> Array:
        return np.asarray(self._squares(x).sum(axis=1))

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        if not self._is_free("length_scale"):
            return np.empty(0)
        by_column = -2.0 * (k_bar @ self._squares(x))
        return by_column.sum(keepdims=True) if self._shared else by_column

    def _squares(self, x: Array) -> Array:
        """Terms of the diagonal by column, (n, columns)."""
        return np.square(self._chosen(x) / np.asarray(self.length_scale))
