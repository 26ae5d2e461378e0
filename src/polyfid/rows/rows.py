"""Rows: points at levels of fidelity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array


@dataclass(frozen=True)
class Points:
    """Points sorted by level: ``x`` (n, d) and ``level`` (n,) from 0, the least trusted."""

    x: Array
    level: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.x)

    def segments(self) -> list[tuple[int, slice]]:
        """The rows of each level that occurs, as slices."""
        present, start = np.unique(self.level, return_index=True)
        stops = [*start[1:], len(self.level)][: len(start)]  # no rows, no segments
        return [
            (int(t), slice(int(a), int(b))) for t, a, b in zip(present, start, stops, strict=True)
        ]

    @staticmethod
    def sort(x: Array, level: NDArray[np.intp]) -> tuple[Points, NDArray[np.intp]]:
        """Points in order of level, and the order (rows of the same level keep theirs)."""
        order = np.argsort(level, kind="stable")
        return Points(np.ascontiguousarray(x[order]), level[order]), order
