"""Arrays of numbers: their types, their spread, the order of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Numbers from here on may have differences that overflow.
_HUGE = 1e307
#: Values of a column, at about this many ranks, that tell it from others.
_ORDER_STATISTICS = 100


@dataclass(frozen=True)
class Scale:
    """Brings features to mean 0 and standard deviation 1; constant ones keep their spread."""

    centre: Array
    spread: Array

    @classmethod
    def of(cls, x: Array, weight: Array) -> Scale:
        """The scale of points (n, d), weights (n,) counting as repetitions."""
        share = weight / weight.sum()
        centre = share @ x
        # Relative to the largest deviation, so that squares neither overflow nor vanish.
        # Differences of the largest numbers overflow, and halves of the smallest lose digits.
        part = np.where(np.abs(x).max(axis=0) > _HUGE, 0.5, 1.0)
        gap = part * x - part * centre
        reach = np.where(varies(x), np.abs(gap).max(axis=0), 0.0)
        shape = np.divide(gap, reach, out=np.ones_like(x), where=reach > 0.0)
        spread = np.where(reach > 0.0, reach, part) * np.sqrt(share @ np.square(shape)) / part
        spread = np.maximum(spread, np.finfo(float).smallest_subnormal)
        return cls(np.where(reach > 0.0, centre, x[0]), spread)  # constants become exactly zero

    def __call__(self, x: Array) -> Array:
        with np.errstate(over="ignore"):  # far away from all that was seen
            shifted = x - self.centre
            if not np.isfinite(shifted).all():  # differences of the largest numbers
                return (0.5 * x - 0.5 * self.centre) / (0.5 * self.spread)
            return shifted / self.spread


def varies(x: Array) -> NDArray[np.bool_]:
    """Which columns vary, and by more than rounding errors, (d,)."""
    with np.errstate(over="ignore"):  # an infinite range is a range
        return np.asarray(np.ptp(x, axis=0) > 1e-13 * np.abs(x).max(axis=0))


def settled(x: Array) -> Array:
    """Columns that vary by rounding errors only made constant, the others as they are."""
    return np.where(varies(x), x, x.min(axis=0))


def root_mean_square(values: Array) -> float:
    """Of numbers that are not all zero; their squares may overflow or vanish."""
    largest = np.abs(values).max()
    return float(largest * np.sqrt(np.mean(np.square(values / largest))))


def own_order(x: Array) -> Indices:
    """An order of the columns that depends on what is in them, not on how they come."""
    if not x.size:
        return np.arange(x.shape[1])
    scaled = x / max(float(np.abs(x).max()), np.finfo(float).tiny)
    values = np.sort(scaled, axis=0)[:: max(1, len(x) // _ORDER_STATISTICS)].round(9)
    # Ranks have the same values in all columns, but not the large ones in the same rows.
    return np.lexsort([np.square(scaled).sum(axis=1) @ scaled, *values[::-1]])


def hash_rows(x: Array) -> NDArray[np.uint64]:
    """A number per row (n,), the same for equal rows; others share it by chance only, and hardly.

    Sorting rows by it is many times as fast as sorting them by all columns.
    """
    total = np.full(len(x), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in x.T:
        total ^= (column + 0.0).view(np.uint64)  # zero has two signs
        total *= np.uint64(0xBF58476D1CE4E5B9)
        total ^= total >> np.uint64(29)
    total *= np.uint64(0x94D049BB133111EB)
    return total ^ (total >> np.uint64(32))


def sort_rows(*columns: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order of rows by their columns, the first one first, and where runs of equal rows start.

    The same rows come out in the same order, however they come in.
    """
    order = np.lexsort(columns[::-1])
    return order, starts_of_runs(order, columns)


def starts_of_runs(order: Indices, columns: Sequence[NDArray[Any]]) -> Indices:
    """Where runs of equal rows start among rows in an order that puts equal ones together."""
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    return np.flatnonzero(new)
