"""What is believed of the whitened inducing variables: q(v) = N(mu, S), by natural parameters.

Relative to the prior N(0, I) these are sums over the rows, and steps mix them linearly:

    S^-1 = I + sum_i w_i phi_i phi_i^T,  S^-1 mu = sum_i nu_i phi_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.linalg import Cholesky, NotPositiveDefinite, lower_root, mirror


class Moments(NamedTuple):
    """Mean mu, covariance S, and log|S^-1|."""

    mean: Array
    covariance: Array
    log_det: float


@dataclass(frozen=True)
class SparseBelief:
    """q(v) of m inducing variables.

    Parameters
    ----------
    gram : S^-1 - I, (m, m)
    linear : S^-1 mu, (m,)

    Examples
    --------
    >>> import numpy as np
    >>> belief = SparseBelief(np.eye(2), np.array([2.0, 0.0]))
    >>> belief.mean, belief.covariance.diagonal()
    (array([1., 0.]), array([0.5, 0.5]))
    """

    gram: Array
    linear: Array

    @classmethod
    def prior(cls, m: int) -> SparseBelief:
        """What is believed with no labels."""
        return cls(np.zeros((m, m)), np.zeros(m))

    @cached_property
    def _moments(self) -> Moments:
        precision = self.gram.copy()
        precision.flat[:: len(precision) + 1] += 1.0
        factor = Cholesky(precision)
        mean, inverse = factor.solve(self.linear), factor.into_inverse()
        return Moments(mean, mirror(inverse.matrix), inverse.log_det)

    @property
    def mean(self) -> Array:
        return self._moments.mean

    @property
    def covariance(self) -> Array:
        return self._moments.covariance

    @property
    def is_proper(self) -> bool:
        """Whether there is such a distribution: negative sites may outweigh the prior."""
        try:
            return bool(np.isfinite(self.mean).all())
        except NotPositiveDefinite:
            return False

    @property
    def divergence(self) -> float:
        """KL(q || N(0, I))."""
        mean, S, log_det = self._moments
        return 0.5 * float(np.trace(S) - len(S) + mean @ mean + log_det)

    def whitened(self, gram: Array, linear: Array) -> Array:
        """A change of the natural parameters in units of this belief's standard deviations.

        To second order the sum of squares, (m + m^2,), is twice the divergence that the change
        makes, and twice what such a step gains in the bound if it goes to the rows' own sums.
        """
        shift = self._root.T @ (linear - gram @ self.mean)
        turn = self._root.T @ gram @ self._root
        return np.concatenate([shift, np.sqrt(0.5) * turn.ravel()])

    @cached_property
    def _root(self) -> Array:
        return lower_root(self.covariance)

    def __getstate__(self) -> dict[str, Any]:
        # Moments are of the size of the belief, and a copy computes its own.
        return {"gram": self.gram, "linear": self.linear}
