"""Gaussian sites: what stands in for the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array


@dataclass(frozen=True)
class Sites:
    """One factor exp(nu f - w f^2 / 2) a row: precisions ``w``, linear terms ``nu``, (n,)."""

    w: Array
    nu: Array

    @property
    def root(self) -> Array:
        """|w|^(1/2)."""
        return np.sqrt(np.abs(self.w))

    def mix(self, other: Sites, step: float) -> Sites:
        """A step from these sites towards others; 1 is all the way."""
        if step == 1.0:
            return other
        return Sites(self.w + step * (other.w - self.w), self.nu + step * (other.nu - self.nu))
