"""Gaussian priors on hyper-parameters: weak by default, flat for type-II maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array


@dataclass(frozen=True)
class HyperPrior:
    """theta ~ N(mean, precision^-1); a zero row of the precision is a flat prior.

    ``known`` says where the mean is a plausible value, which it may be although the prior is flat.
    """

    mean: Array
    precision: Array
    known: NDArray[np.bool_]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Log density up to a constant, and its gradient."""
        slope = self.precision @ (self.mean - theta)
        return 0.5 * float(slope @ (theta - self.mean)), slope

    @property
    def is_flat(self) -> NDArray[np.bool_]:
        return np.asarray(np.diagonal(self.precision) == 0.0)

    @property
    def sd(self) -> Array:
        """Conditional standard deviations, infinite where flat."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.sqrt(np.diagonal(self.precision)))

    @staticmethod
    def flat(n: int) -> HyperPrior:
        """No opinion on n parameters."""
        return HyperPrior(np.zeros(n), np.zeros((n, n)), np.zeros(n, dtype=bool))

    @staticmethod
    def independent(mean: Sequence[float], sd: Sequence[float]) -> HyperPrior:
        """Independent normal priors."""
        precision = np.diag(np.array(sd, dtype=float) ** -2.0)
        return HyperPrior(np.array(mean, dtype=float), precision, np.ones(len(mean), dtype=bool))

    @staticmethod
    def tied(mean: Array, shared_sd: float, own_sd: float) -> HyperPrior:
        """Parameters that move together (sd ``shared_sd``) more freely than apart (``own_sd``)."""
        n = len(mean)
        # Inverse of shared^2 1 1^T + own^2 I.
        shrink = shared_sd**2 / (own_sd**2 * (own_sd**2 + n * shared_sd**2))
        return HyperPrior(mean, np.eye(n) / own_sd**2 - shrink, np.ones(n, dtype=bool))

    @staticmethod
    def join(parts: Sequence[HyperPrior]) -> HyperPrior:
        """Independent groups of parameters, one after the other."""
        if not parts:
            return HyperPrior.flat(0)
        mean = np.concatenate([p.mean for p in parts])
        precision = np.zeros((len(mean), len(mean)))
        start = 0
        for part in parts:
            stop = start + len(part.mean)
            precision[start:stop, start:stop] = part.precision
            start = stop
        return HyperPrior(mean, precision, np.concatenate([p.known for p in parts]))

    def flattened(self) -> HyperPrior:
        """The same plausible values with no preference for them."""
        return replace(self, precision=np.zeros_like(self.precision))
