"""Free parameters as one value: names, values and bounds; and Gaussian priors on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from polyfid.arrays import Array


@dataclass(frozen=True)
class Parameters:
    """Free parameters on the scale on which they are tuned: (p,), and bounds (p, 2)."""

    names: tuple[str, ...]
    values: Array
    bounds: Array

    @classmethod
    def of(cls, names: Iterable[str], values: Array, bounds: object) -> Parameters:
        """Parameters with one pair of bounds or one per value; none if they are "fixed"."""
        if isinstance(bounds, str):
            return cls.join([])
        limits = np.broadcast_to(np.asarray(bounds, dtype=float), (len(values), 2))
        return cls(tuple(names), values, limits.copy())

    @classmethod
    def positive(cls, name: str, value: object, bounds: object) -> Parameters:
        """A positive number, or one per column, by its logarithm; none if "fixed"."""
        values = np.log(np.atleast_1d(np.asarray(value, dtype=float)))
        names = [name] if np.ndim(value) == 0 else [f"{name}[{j}]" for j in range(len(values))]  # type: ignore[arg-type]
        return cls.of(names, values, bounds if isinstance(bounds, str) else np.log(bounds))  # type: ignore[call-overload]

    @classmethod
    def join(cls, groups: Iterable[Parameters]) -> Parameters:
        """Groups of parameters, one after the other."""
        groups = list(groups)
        return cls(
            tuple(name for group in groups for name in group.names),
            np.concatenate([np.empty(0), *(group.values for group in groups)]),
            np.concatenate([np.empty((0, 2)), *(group.bounds for group in groups)]),
        )

    def prefixed(self, prefix: str) -> Parameters:
        """The same parameters with ``prefix.`` before each name."""
        return replace(self, names=tuple(f"{prefix}.{name}" for name in self.names))


class Tunable(ABC):
    """Something with free parameters: a kernel, a prior, a likelihood, an evidence."""

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """Names, values and bounds of the free parameters."""

    def __getstate__(self) -> dict[str, Any]:
        """Copies and hashes leave out ``parameters``, which some classes cache."""
        return {name: value for name, value in vars(self).items() if name != "parameters"}

    @property
    def theta(self) -> Array:
        """Values of the free parameters, logarithms for kernels, (p,)."""
        return self.parameters.values.copy()

    @property
    def bounds(self) -> Array:
        """Bounds of ``theta``, (p, 2)."""
        return self.parameters.bounds.copy()

    @property
    def theta_names(self) -> tuple[str, ...]:
        """Names of the entries of ``theta``, such as ``rbf.length_scale[3]``."""
        return self.parameters.names


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
    def join(groups: Sequence[HyperPrior]) -> HyperPrior:
        """Independent groups of parameters, one after the other."""
        groups = [HyperPrior.flat(0), *groups]
        mean, known = (np.concatenate([getattr(g, n) for g in groups]) for n in ("mean", "known"))
        return HyperPrior(mean, block_diag(*(g.precision for g in groups)), known)

    def flattened(self) -> HyperPrior:
        """The same plausible values with no preference for them."""
        return replace(self, precision=np.zeros_like(self.precision))
