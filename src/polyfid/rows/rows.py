"""Rows: points at levels of fidelity, with or without labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices, hash_rows, sort_rows, starts_of_runs

#: Classes with fewer rows in a sample of a level are rare.
RARE = 50
#: Rows from which equal ones are found by hashes: sorting by all columns takes seconds there.
N_HASHED = 20_000


def consecutive(sizes: Iterable[int]) -> list[slice]:
    """Slices of these sizes, one after the other."""
    edges = np.cumsum([0, *sizes]).tolist()
    return list(map(slice, edges[:-1], edges[1:]))


@dataclass(frozen=True)
class Points:
    """Points sorted by level: ``x`` (n, d) and ``level`` (n,) from 0, the least trusted."""

    x: Array
    level: Indices

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: slice | NDArray[Any]) -> Points:
        """Some of the points."""
        return Points(np.ascontiguousarray(self.x[rows]), self.level[rows])

    def segments(self) -> list[tuple[int, slice]]:
        """The rows of each level that occurs, as slices."""
        present, counts = np.unique(self.level, return_counts=True)
        return list(zip(present.tolist(), consecutive(counts), strict=True))


@dataclass(frozen=True)
class Rows:
    """Labelled rows, all in numbers and sorted by level.

    Levels, classes ``y`` and annotators count from 0; an annotator of -1 has no name. ``weight`` is
    the number of repetitions that a row stands for. ``margin`` (n, n_margins) are what trees say of
    the rows, if they were asked. Rows of numeric levels have a number, their ``value``, and a class
    of -1; other rows have NaN. Where no level is numeric, ``value`` is None.
    """

    x: Array
    level: Indices
    y: Indices
    weight: Array
    annotator: Indices
    margin: Array | None = None
    value: Array | None = None

    @classmethod
    def of(
        cls,
        x: object,
        level: object,
        y: object,
        weight: object = None,
        annotator: object = None,
        value: Array | None = None,
    ) -> Rows:
        """Rows in any order, which are sorted; those of the same level keep their order."""
        level = np.asarray(level, dtype=np.intp)
        n = len(level)
        return cls(
            np.asarray(x, dtype=float),
            level,
            np.asarray(y, dtype=np.intp),
            np.ones(n) if weight is None else np.asarray(weight, dtype=float),
            np.full(n, -1) if annotator is None else np.asarray(annotator, dtype=np.intp),
            value=value,
        ).take(np.argsort(level, kind="stable"))

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Indices) -> Rows:
        """The rows with these numbers."""
        margin, value = (None if v is None else v[index] for v in (self.margin, self.value))
        own = (self.level[index], self.y[index], self.weight[index], self.annotator[index])
        return Rows(self.x[index], *own, margin, value)

    @property
    def _targets(self) -> list[NDArray[Any]]:
        """What rows say and who says it, as columns that are equal for equal rows."""
        own: list[NDArray[Any]] = [self.y, self.annotator]
        return own if self.value is None else [*own, np.nan_to_num(self.value)]

    def merged(self, tell_apart: bool = False) -> Rows:
        """Rows in an order of their own, equal ones as one row with the sum of their weights.

        So a fit depends neither on the order of the rows nor on how repetitions are written.
        ``tell_apart`` keeps equal rows as they are, for kernels that give each its own noise.
        """
        columns = [self.level, *self.x.T, *self._targets]
        if len(self) >= N_HASHED:
            order, _ = sort_rows(self.level, hash_rows(self.x), *self._targets)
            starts = starts_of_runs(order, columns)
        else:
            order, starts = sort_rows(*columns)
        if tell_apart:
            starts = np.arange(len(order))
        weight = np.add.reduceat(self.weight[order], starts)
        return replace(self.take(order[starts]), weight=weight)

    def sample(self, size: int | tuple[int, ...] | None, rng: np.random.RandomState) -> Rows:
        """At most so many rows in all, or of each level; the rows themselves if they are few.

        Small levels are whole, and of every level there are some rows; so it is with rare classes
        of a level, with weights that undo it: see `keep_rare_classes`.
        """
        if size is None:
            return self
        counts = np.bincount(self.level)
        if isinstance(size, int):
            quotas = _share_out(counts, size)
        else:
            quotas = np.minimum(counts, size[: len(counts)])
        if (quotas >= counts).all():
            return self
        chosen, factors = [], []
        for t in np.argsort(counts, kind="stable"):
            order = rng.permutation(np.flatnonzero(self.level == t))
            kept, factor = keep_rare_classes(self.y[order], quotas[t])
            chosen.append(order[kept])
            factors.append(factor)
        rows = np.concatenate(chosen)
        order = np.argsort(rows)
        sampled = self.take(rows[order])
        return replace(sampled, weight=sampled.weight * np.concatenate(factors)[order])


def keep_rare_classes(
    y: NDArray[Any], size: int, counts: Mapping[Any, int] | None = None
) -> tuple[Indices, Array]:
    """Which rows to keep of some in random order, and factors of their weights.

    The first ``size`` rows are kept, unless a class has fewer than `RARE` rows among them. Such a
    class is kept whole or to that number, and the other classes fill the rest. Factors undo that:
    relative to each other the classes weigh what they weigh among all rows, and no factor is below
    one. ``counts`` are all rows by class, if those that are given are some of them only.
    """
    names, code, given = np.unique(y, return_inverse=True, return_counts=True)
    first = np.arange(min(size, len(y)))
    among_first = np.bincount(code[first], minlength=len(names))
    wanted = np.minimum(given, min(RARE, size // (2 * max(len(names), 1))))
    rare = among_first < wanted
    if not rare.any():
        return first, np.ones(len(first))
    rank = np.empty(len(y), dtype=np.intp)  # of a row among those of its class
    for k, n in enumerate(given):
        rank[code == k] = np.arange(n)
    chosen = np.flatnonzero(rare[code] & (rank < wanted[code]))
    others = np.flatnonzero(~rare[code])[: size - len(chosen)]
    kept = np.sort(np.concatenate([chosen, others]))
    total = given if counts is None else np.array([counts[name] for name in names.tolist()])
    factor = (total / np.bincount(code[kept], minlength=len(names)))[code[kept]]
    return kept, factor / factor.min()


def _share_out(counts: Indices, size: int) -> Indices:
    """Rows of each level: what small levels leave unused goes to the larger ones."""
    quotas, room = np.zeros_like(counts), size
    for rank, t in enumerate(np.argsort(counts, kind="stable")):
        quotas[t] = min(counts[t], room // (len(counts) - rank))
        room -= quotas[t]
    return quotas
