"""Gaussian sites: what stands in for the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array


@dataclass(frozen=True)
class Sites:
    """One factor exp(nu f - w f^2 / 2) per row: precisions ``w``, linear terms ``nu``, (n,)."""

    w: Array
    nu: Array

    @property
    def root(self) -> Array:
        """|w|^(1/2)."""
        return np.sqrt(np.abs(self.w))

    @property
    def signs(self) -> Array:
        """-1 where w is negative, else 1."""
        return np.where(self.w < 0.0, -1.0, 1.0)
