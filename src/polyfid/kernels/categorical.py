"""The kernel of categorical columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels.contract import Adjoints, Linearised
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.kernels.leaf import Columnwise
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
    _words: ClassVar[str] = "categorical (Hamming)"

    def evaluate(self, pairs: Pairs) -> Array:
        return np.asarray(np.exp(-self._distance(pairs)))

    def _distance(self, pairs: Pairs) -> Array:
        if self._shared:
            return pairs.mismatches(self.columns) / self.length_scale
        # Weight of the columns that differ = weight of all - weight of those that agree.
        weight = 1.0 / np.asarray(self.length_scale)
        x, z, column = pairs.one_hot(self.columns)
        return np.asarray(weight.sum() - (x * weight[column]) @ z.T.astype(float))

    def linearise(self, pairs: Pairs) -> Linearised:
        distance = self._distance(pairs)
        return Linearised(np.exp(-distance), self, pairs, distance)

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        theta_bar = np.empty(0)
        if self._is_free("length_scale"):
            G = K_bar * at.K
            theta_bar = (
                np.array([np.vdot(G, at.saved)]) if self._shared else self._by_column_bar(at, G)
            )
        return Adjoints.of_theta(theta_bar, at.pairs, places)

    def _by_column_bar(self, at: Linearised, G: Array) -> Array:
        x, z, column = at.pairs.one_hot(self.columns)
        agree = np.einsum("ij,ij->j", x, G @ z.astype(float))
        n_columns = np.size(self.length_scale)
        differ = G.sum() - np.bincount(column, agree, minlength=n_columns)
        return np.asarray(differ / np.asarray(self.length_scale))

    def _weak_prior_of(self, name: str, x: Array) -> HyperPrior:
        # Codes have no scale: the spread of the columns says nothing.
        return super()._weak_prior_of(name, np.zeros((1, x.shape[1])))

    def _typical_length(self, n_columns: int) -> float:
        return float(n_columns)
