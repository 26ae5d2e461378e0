"""Feature maps: how rows become points; learnt from training rows, never from labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from polyfid.arrays import Array, Scale, root_mean_square, varies

#: The largest coordinate of a point. Rows further away are as good as infinitely far from others.
FARTHEST = 1e100


class FeatureMap(ABC):
    """A map of rows (n, d) to points (n, d')."""

    #: What the map does, to complete "features ...".
    words: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(cls, x: Array, weight: Array) -> Self | None:
        """The map learnt from rows (n, d), counted by weight (n,); None where it makes no sense."""

    @abstractmethod
    def _map(self, x: Array) -> Array:
        """The points of some rows, wherever they are."""

    def __call__(self, x: Array) -> Array:
        """The points of some rows, none so far away that squares of its coordinates overflow."""
        points = self._map(x)
        if max(points.max(initial=0.0), -points.min(initial=0.0)) <= FARTHEST:
            return points
        return np.clip(points, -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class AsGiven(FeatureMap):
    """The features as they come."""

    words: ClassVar[str] = "as given"

    @classmethod
    def of(cls, x: Array, weight: Array) -> Self:
        return cls()

    def _map(self, x: Array) -> Array:
        return x


@dataclass(frozen=True)
class _Scaled(FeatureMap):
    """Columns shifted and divided."""

    scale: Scale

    def _map(self, x: Array) -> Array:
        return self.scale(x)


@dataclass(frozen=True)
class Standardised(_Scaled):
    """Every column with mean 0 and standard deviation 1."""

    words: ClassVar[str] = "standardised"

    @classmethod
    def of(cls, x: Array, weight: Array) -> Self:
        return cls(Scale.of(x, weight))


@dataclass(frozen=True)
class Ranked(FeatureMap):
    """Every column replaced by its rank among the training rows, then standardised.

    Between training values it interpolates, beyond them it goes on along a line: one range of the
    values further is one range of the ranks further.
    """

    knots: tuple[tuple[Array, Array], ...]
    scale: Scale
    words: ClassVar[str] = "ranked"

    @classmethod
    def of(cls, x: Array, weight: Array) -> Self | None:
        knots = []
        for column in x.T:
            values, which = np.unique(column, return_inverse=True)
            counts = np.bincount(which, weight)
            # The middle of a value's ranks, as a share: repeats and weights alike.
            knots.append((values, (np.cumsum(counts) - 0.5 * counts) / counts.sum()))
        if all(len(values) <= 2 for values, _ in knots):
            return None  # two values have no shape
        ranks = _interpolate(x, knots)
        return cls(tuple(knots), Scale.of(ranks, weight))

    def _map(self, x: Array) -> Array:
        return self.scale(_interpolate(x, self.knots))


def _interpolate(x: Array, knots: Sequence[tuple[Array, Array]]) -> Array:
    result = np.empty_like(x)
    for c, (values, ranks) in enumerate(knots):
        result[:, c] = np.interp(x[:, c], values, ranks)
        if len(values) > 1:
            with np.errstate(over="ignore"):  # ranges of the largest numbers that there are
                beyond = x[:, c] - np.clip(x[:, c], values[0], values[-1])
                result[:, c] += beyond / (values[-1] - values[0]) * (ranks[-1] - ranks[0])
    return result


@dataclass(frozen=True)
class SharedUnit(_Scaled):
    """All columns centred and divided by one number: for columns that share a unit.

    Standardising would blow up the noise of a pixel or a frequency of small spread.
    """

    words: ClassVar[str] = "in one common unit"

    @classmethod
    def of(cls, x: Array, weight: Array) -> Self | None:
        scale = Scale.of(x, weight)
        chosen = varies(x)
        if chosen.sum() < 2:
            return None
        common = root_mean_square(scale.spread[chosen])
        return cls(Scale(scale.centre, np.full(x.shape[1], common)))


@dataclass(frozen=True)
class UnitRows(FeatureMap):
    """Every row divided by its length, then all columns in one common unit: directions only."""

    unit: SharedUnit
    words: ClassVar[str] = "as directions of the rows"

    @classmethod
    def of(cls, x: Array, weight: Array) -> Self | None:
        unit = SharedUnit.of(_directions(x), weight) if x.shape[1] > 2 else None
        return None if unit is None else cls(unit)

    def _map(self, x: Array) -> Array:
        return self.unit(_directions(x))


def _directions(x: Array) -> Array:
    reach = np.abs(x).max(axis=1, keepdims=True)  # squares must neither overflow nor vanish
    x = x / np.where(reach > 0.0, reach, 1.0)
    length = np.sqrt(np.square(x).sum(axis=1, keepdims=True))
    return np.asarray(x / np.where(length > 0.0, length, 1.0))


@dataclass(frozen=True)
class Coded(FeatureMap):
    """Blocks of indicator columns, of which one is set in every row, as one column of codes.

    The other columns are standardised and come first, ``n_numeric`` of them.
    """

    numeric: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...]
    scale: Scale
    words: ClassVar[str] = "with indicator columns read as categories"

    @classmethod
    def of(cls, x: Array, weight: Array) -> Self | None:
        blocks = _indicator_blocks(x)
        if not blocks:
            return None
        inside = np.zeros(x.shape[1], dtype=bool)
        for start, stop in blocks:
            inside[start:stop] = True
        numeric = tuple(np.flatnonzero(~inside & varies(x)).tolist())
        return cls(numeric, tuple(blocks), Scale.of(x[:, numeric], weight))

    @property
    def n_numeric(self) -> int:
        return len(self.numeric)

    def _map(self, x: Array) -> Array:
        # A row with nothing set, which training rows do not have, gets a code of its own.
        codes = [
            np.where(x[:, a:b].any(axis=1), x[:, a:b].argmax(axis=1), -1.0) for a, b in self.blocks
        ]
        return np.column_stack([self.scale(x[:, self.numeric]), *codes])


def _indicator_blocks(x: Array) -> list[tuple[int, int]]:
    """Runs of two or more columns of zeros and ones that sum to one in every row."""
    binary = ((x == 0.0) | (x == 1.0)).all(axis=0)
    blocks: list[tuple[int, int]] = []
    start = 0
    while start < x.shape[1]:
        total = np.zeros(len(x))
        stop = complete = start
        while stop < x.shape[1] and binary[stop]:
            total = total + x[:, stop]
            if total.max(initial=0.0) > 1.0:
                break
            stop += 1
            if (total == 1.0).all():
                complete = stop  # and columns that are never set belong to the block before them
        if complete - start >= 2 and x[:, start:complete].any(axis=0).sum() >= 2:
            blocks.append((start, complete))
            start = complete
        else:
            start += 1
    return blocks
