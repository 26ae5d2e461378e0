"""Free parameters as one value: their names, values and bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from polyfid.arrays import Array


@dataclass(frozen=True)
class Parameters:
    """Free parameters on the scale on which they are tuned.

    Parameters
    ----------
    names : such as ``rbf.length_scale[3]``, p of them.
    values : (p,); logarithms of the parameters of kernels.
    bounds : (p, 2)

    Examples
    --------
    >>> Parameters.positive("rbf.length_scale", (1.0, 2.0), (0.1, 10.0)).names
    ('rbf.length_scale[0]', 'rbf.length_scale[1]')
    """

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

    @property
    def theta(self) -> Array:
        """Values of the free parameters, logarithms for kernels, (p,)."""
        return self.parameters.values

    @property
    def bounds(self) -> Array:
        """Bounds of ``theta``, (p, 2)."""
        return self.parameters.bounds

    @property
    def theta_names(self) -> tuple[str, ...]:
        """Names of the entries of ``theta``, such as ``rbf.length_scale[3]``."""
        return self.parameters.names
