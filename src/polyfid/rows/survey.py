"""The first reading of rows that come in blocks: classes, levels, counts, and a sample.

The contents of one block can be added to those of another, so that blocks may be read one after
another or in many places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.rows.rows import Rows

#: Names of levels, least trusted first.
Levels = tuple[Any, ...]


@dataclass(frozen=True)
class Block:
    """Rows that were checked, with the names of their classes and levels.

    Attributes
    ----------
    number : int
        Which block it is.
    x : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Classes by name.
    level : ndarray of shape (n,)
        Numbers of the levels in ``levels``.
    levels : tuple
        The levels that this block names.
    weight : ndarray of shape (n,)
    has_fidelity, is_ordered : bool
        Whether a fidelity was given, and whether it carries an order of the levels.
    """

    number: int
    x: Array
    y: NDArray[Any]
    level: Indices
    levels: Levels
    weight: Array
    has_fidelity: bool = True
    is_ordered: bool = False


@dataclass(frozen=True)
class Coding:
    """Names of classes and levels in the order of their numbers; can be pickled."""

    classes: NDArray[Any]
    levels: Levels

    def __call__(self, block: Block) -> Rows:
        """A block in numbers; rows of weight zero are left out."""
        present = block.weight > 0.0
        code = np.searchsorted(self.classes, block.y)
        same = self.classes[np.minimum(code, len(self.classes) - 1)] == block.y
        if not same[present].all():
            raise ValueError(
                f"blocks have class {block.y[present & ~same][0]!r}, which was not there when they "
                "were first read; they must be the same whenever they are read"
            )
        number = {name: t for t, name in enumerate(self.levels)}
        names = [block.levels[t] for t in np.unique(block.level[present])]
        if new := [name for name in names if name not in number]:
            raise ValueError(
                f"blocks have level {new[0]!r}, which was not there when they were first read; "
                "they must be the same whenever they are read"
            )
        level = np.array([number.get(name, 0) for name in block.levels], dtype=np.intp)[block.level]
        return Rows.of(block.x[present], level[present], code[present], block.weight[present])


@dataclass(frozen=True)
class Survey:
    """All rows of the blocks in figures, and a sample of them.

    ``counts`` (n_levels, n_classes) are rows, ``weight`` (n_levels,) the sums of their weights.
    """

    coding: Coding
    counts: Indices
    weight: Array
    sample: Rows

    @property
    def classes(self) -> NDArray[Any]:
        return self.coding.classes

    @property
    def levels(self) -> Levels:
        return self.coding.levels


@dataclass(frozen=True)
class LevelSample:
    """The rows of a level with the smallest keys, at most ``size``, in the order they came in."""

    size: int
    key: Array
    x: Array
    y: NDArray[Any]
    weight: Array

    def cut(self) -> LevelSample:
        """At most ``size`` rows."""
        if len(self.key) <= self.size:
            return self
        rows = np.sort(np.argsort(self.key, kind="stable")[: self.size])
        return LevelSample(self.size, self.key[rows], self.x[rows], self.y[rows], self.weight[rows])

    def __add__(self, other: LevelSample) -> LevelSample:
        columns = ("key", "x", "y", "weight")
        joined = (np.concatenate([getattr(self, c), getattr(other, c)]) for c in columns)
        return LevelSample(self.size, *joined).cut()


@dataclass(frozen=True)
class Contents:
    """The contents of some blocks by name; adds up in the order of the blocks.

    ``orders`` are the orders of levels that fidelities carry; ``has_fidelity`` holds True if some
    blocks have a fidelity and False if some have none.
    """

    orders: frozenset[Levels] = frozenset()
    has_fidelity: frozenset[bool] = frozenset()
    counts: Mapping[tuple[Any, Any], int] = field(default_factory=dict)
    weights: Mapping[Any, float] = field(default_factory=dict)
    samples: Mapping[Any, LevelSample] = field(default_factory=dict)

    def __add__(self, other: Contents) -> Contents:
        return Contents(
            self.orders | other.orders,
            self.has_fidelity | other.has_fidelity,
            _added(self.counts, other.counts),
            _added(self.weights, other.weights),
            _added(self.samples, other.samples),
        )

    def survey(self, levels: Levels | None) -> Survey:
        """The contents in numbers; ``levels`` are the names in order, if the user gave them."""
        if not self.counts:
            raise ValueError("blocks hold no rows (0 samples); at least one is needed")
        names = self._order() if levels is None else levels
        if unknown := [name for name in self.weights if name not in names]:
            raise ValueError(
                f"fidelity has level {unknown[0]!r} in some block, and in another one an order "
                f"without it, {list(names)}; pass levels=..., least trusted first"
            )
        classes = np.unique([value for _, value in self.counts])
        counts = np.zeros((len(names), len(classes)), dtype=np.intp)
        for (name, value), n in self.counts.items():
            counts[names.index(name), int(np.searchsorted(classes, value))] = n
        weight = np.array([self.weights.get(name, 0.0) for name in names])
        there = [(t, self.samples[name]) for t, name in enumerate(names) if name in self.samples]
        x, y, weights = (
            np.concatenate([getattr(s, c) for _, s in there]) for c in ("x", "y", "weight")
        )
        level = np.repeat([t for t, _ in there], [len(s.key) for _, s in there])
        sample = Rows.of(x, level, np.searchsorted(classes, y), weights)
        return Survey(Coding(classes, names), counts, weight, sample)

    def _order(self) -> Levels:
        if len(self.has_fidelity) > 1:
            raise ValueError(
                "some blocks come with fidelity and some without; give all of them one, or name "
                "the levels (levels=...), of which rows without fidelity have the last"
            )
        if len(self.orders) > 1:
            shown = " and ".join(str(list(order)) for order in sorted(self.orders, key=str)[:2])
            raise ValueError(
                f"the fidelity of blocks carries different orders of levels, {shown}; pass "
                "levels=..., least trusted first"
            )
        if self.orders:
            return next(iter(self.orders))
        try:
            return tuple(sorted(self.weights))
        except TypeError:
            raise ValueError(
                f"fidelity has levels of several types, {list(self.weights)}, which cannot be "
                "ordered; use one type, such as strings"
            ) from None


def _added(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    """Entries of both, added where both have one."""
    return {**one, **{k: one[k] + v if k in one else v for k, v in other.items()}}


@dataclass(frozen=True)
class Surveyor:
    """Turns a block into its `Contents`; can be pickled.

    Which rows of a block may be in the sample depends on the seed and on the block's number, not
    on who reads it when.

    Parameters
    ----------
    n_sample : int
        Rows per level to keep as a sample.
    n_sample_of : mapping of level name to int
        Levels of which another number of rows is kept.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.zeros((3, 1)), np.array([0, 1, 1]), np.array([0, 0, 1])
    >>> total = Contents()
    >>> for number in (0, 1):
    ...     total += Surveyor(2, {}, seed=0)(Block(number, *rows, ("a", "b"), np.ones(3)))
    >>> survey = total.survey(None)
    >>> survey.levels, survey.counts.tolist(), len(survey.sample)
    (('a', 'b'), [[2, 2], [0, 2]], 4)
    """

    n_sample: int
    n_sample_of: Mapping[Any, int]
    seed: int

    def __call__(self, block: Block) -> Contents:
        key = np.random.default_rng([self.seed, block.number]).uniform(size=len(block.x))
        counts: dict[tuple[Any, Any], int] = {}
        weights: dict[Any, float] = {}
        samples: dict[Any, LevelSample] = {}
        for t in np.unique(block.level):
            rows = np.flatnonzero((block.level == t) & (block.weight > 0.0))
            name = block.levels[t]
            values, which = np.unique(block.y[rows], return_inverse=True)
            for value, n in zip(values.tolist(), np.bincount(which).tolist(), strict=True):
                counts[name, value] = n
            weights[name] = float(block.weight[rows].sum())
            samples[name] = LevelSample(
                self.n_sample_of.get(name, self.n_sample),
                key[rows],
                block.x[rows],
                block.y[rows],
                block.weight[rows],
            ).cut()
        return Contents(
            frozenset([block.levels] if block.is_ordered else []),
            frozenset([block.has_fidelity]),
            counts,
            weights,
            samples,
        )
