"""The first reading of rows that come in blocks: classes, levels, counts, and a sample.

Contents of blocks add up, so that blocks may be read one after another or in many places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.rows.rows import RARE, Rows, keep_rare_classes
from polyfid.values import order_of_trust

#: Samples grow to so many times the size that is asked for before they are cut to it.
SLACK = 1.5
#: Names of levels, least trusted first.
Levels = tuple[Any, ...]


def plain(names: NDArray[Any]) -> NDArray[Any]:
    """Names as an array of their own type, if they are objects."""
    return np.array(names.tolist()) if names.dtype.kind == "O" else names


@dataclass(frozen=True)
class Block:
    """Rows that were checked; ``y`` has names of classes, ``level`` places in ``levels``.

    ``is_ordered``: whether the fidelity carries the order of the levels.
    """

    number: int
    x: Array
    y: NDArray[Any]
    level: Indices
    levels: Levels
    weight: Array
    has_fidelity: bool = True
    is_ordered: bool = False
    #: Numbers of rows of numeric levels, NaN elsewhere; their ``y`` is None.
    value: Array | None = None

    def labels(self, rows: NDArray[np.bool_]) -> NDArray[Any]:
        """Names of classes of those of some rows that have one."""
        if self.value is None:
            return self.y[rows]
        return plain(self.y[rows & np.isnan(self.value)])


@dataclass(frozen=True)
class Coding:
    """Names of classes and levels in the order of their numbers; can be pickled."""

    classes: NDArray[Any]
    levels: Levels

    def __call__(self, block: Block) -> Rows:
        """A block in numbers; rows of weight zero are left out."""
        present = block.weight > 0.0
        labels = block.labels(present)
        labels = labels if len(labels) else self.classes[:0]
        code = np.searchsorted(self.classes, labels)
        same = self.classes[np.minimum(code, len(self.classes) - 1)] == labels
        number = {name: t for t, name in enumerate(self.levels)}
        names = [block.levels[t] for t in np.unique(block.level[present])]
        new = [f"class {name!r}" for name in labels[~same][:1]]
        new += [f"level {name!r}" for name in names if name not in number]
        if new:
            raise ValueError(
                f"blocks have {new[0]}, which was not there when they were first read; they must "
                "be the same whenever they are read"
            )
        level = np.array([number.get(name, 0) for name in block.levels], dtype=np.intp)[block.level]
        weight = block.weight[present]
        if block.value is None:
            return Rows.of(block.x[present], level[present], code, weight)
        value = block.value[present]
        codes = np.full(len(value), -1)
        codes[np.isnan(value)] = code
        return Rows.of(block.x[present], level[present], codes, weight, value=value)


@dataclass(frozen=True)
class Survey:
    """All rows of the blocks in figures, and a sample of them.

    ``counts`` (n_levels, n_classes) are rows with labels, ``numbers`` (n_levels,) rows with
    numbers, ``weight`` (n_levels,) the sums of their weights.
    """

    coding: Coding
    counts: Indices
    numbers: Indices
    weight: Array
    sample: Rows


@dataclass(frozen=True)
class LevelContents:
    """Rows per class of one level, the sum of their weights, and a sample of about ``size`` rows.

    The sample is of the smallest keys, of all rows and of each class, in the order in which rows
    came: key, x, y, numbers (NaN at levels that have classes) and weight. Rows of a numeric level
    are counted under None.
    """

    counts: Counter[Any]
    weight: float
    size: int
    sample: tuple[NDArray[Any], ...]

    @property
    def _names(self) -> NDArray[Any]:
        """Classes of the rows of the sample; numbers are all of one, as None has no order."""
        return np.zeros(len(self.sample[2])) if None in self.counts else self.sample[2]

    def cut(self) -> LevelContents:
        """With at most ``size`` rows in the sample, and `RARE` of each class besides."""
        order = np.argsort(self.sample[0], kind="stable")
        if len(order) <= self.size:
            return self
        first, y = order[: self.size], self._names[order]
        of_class = [order[y == name][:RARE] for name in np.unique(y)]
        rows = np.unique(np.concatenate([first, *of_class]))
        return replace(self, sample=tuple(column[rows] for column in self.sample))

    def thinned(self) -> LevelContents:
        """With ``size`` rows in the sample; weights make up for rare classes that are kept."""
        key, _, _, _, weight = self.sample
        order = np.argsort(key, kind="stable")
        kept, factor = keep_rare_classes(self._names[order], self.size, self.counts)
        rows = order[kept]
        weights = weight.copy()
        weights[rows] *= factor
        rows = np.sort(rows)
        return replace(self, sample=tuple(c[rows] for c in (*self.sample[:-1], weights)))

    def __add__(self, other: LevelContents) -> LevelContents:
        sample = tuple(map(np.concatenate, zip(self.sample, other.sample, strict=True)))
        counts, weight = self.counts + other.counts, self.weight + other.weight
        added = LevelContents(counts, weight, self.size, sample)
        # Not every time: a large sample takes a while to cut.
        return added.cut() if len(sample[0]) > SLACK * self.size else added


@dataclass(frozen=True)
class Contents:
    """The contents of some blocks by name of level; adds up in the order of the blocks.

    ``orders`` are the orders of levels that fidelities carry; ``has_fidelity`` holds True if some
    blocks have a fidelity and False if some have none.
    """

    orders: frozenset[Levels] = frozenset()
    has_fidelity: frozenset[bool] = frozenset()
    levels: Mapping[Any, LevelContents] = field(default_factory=dict)

    def __add__(self, other: Contents) -> Contents:
        _names_of_classes(self, other)  # of one kind, or samples cannot be put together
        levels = dict(self.levels)
        for name, more in other.levels.items():
            levels[name] = levels[name] + more if name in levels else more
        return Contents(self.orders | other.orders, self.has_fidelity | other.has_fidelity, levels)

    def survey(self, levels: Levels | None) -> Survey:
        """The contents in numbers; ``levels`` are the names in order, if the user gave them."""
        classes = np.unique(_names_of_classes(self))
        if not self.levels:
            raise ValueError("blocks hold no rows (0 samples); at least one is needed")
        names = self._order() if levels is None else levels
        if unknown := [name for name in self.levels if name not in names]:
            raise ValueError(
                f"fidelity has level {unknown[0]!r} in some block, and in another one an order "
                f"without it, {list(names)}; pass levels=..., least trusted first"
            )
        counts, weight = np.zeros((len(names), len(classes)), dtype=np.intp), np.zeros(len(names))
        numbers = np.zeros(len(names), dtype=np.intp)
        present = [t for t, name in enumerate(names) if name in self.levels]
        for t in present:
            own = self.levels[names[t]]
            weight[t] = own.weight
            numbers[t] = own.counts[None]
            for label, n in own.counts.items():
                if label is not None:
                    counts[t, np.searchsorted(classes, label)] = n
        samples = [self.levels[names[t]].thinned().sample for t in present]
        _, x, y, value, weights = map(np.concatenate, zip(*samples, strict=True))
        level = np.repeat(present, [len(columns[0]) for columns in samples])
        code, has_label = np.full(len(y), -1, dtype=np.intp), np.isnan(value)
        code[has_label] = np.searchsorted(classes, plain(y[has_label]))
        sample = Rows.of(x, level, code, weights, value=value if numbers.any() else None)
        return Survey(Coding(classes, names), counts, numbers, weight, sample)

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
        counts = {name: own.counts.total() for name, own in self.levels.items()}
        return order_of_trust(counts, lambda names: f"levels={names}")


@dataclass(frozen=True)
class Surveyor:
    """Turns a block into its `Contents`; can be pickled.

    Which rows of a block may be in the sample depends on the seed and on the block's number, not
    on who reads it when. ``n_sample`` rows per level are kept, or as many as ``n_sample_of`` says.
    """

    n_sample: int
    n_sample_of: Mapping[Any, int]
    seed: int
    max_bytes: float = np.inf

    def __call__(self, block: Block) -> Contents:
        key = np.random.default_rng([self.seed, block.number]).uniform(size=len(block.x))
        most = int(min(self.n_sample, self.max_bytes / (8.0 * max(block.x.shape[1], 1))))
        levels = {}
        for t in np.unique(block.level):
            rows = np.flatnonzero((block.level == t) & (block.weight > 0.0))
            name = block.levels[t]
            value = np.full(len(key), np.nan) if block.value is None else block.value
            sample = tuple(column[rows] for column in (key, block.x, block.y, value, block.weight))
            levels[name] = LevelContents(
                Counter(block.y[rows].tolist()),
                float(block.weight[rows].sum()),
                self.n_sample_of.get(name, most),
                sample,
            ).cut()
        orders = frozenset([block.levels] if block.is_ordered else [])
        return Contents(orders, frozenset([block.has_fidelity]), levels)


def _names_of_classes(*parts: Contents) -> list[Any]:
    """Classes that occur, by level; raises ValueError if some are text and others are not."""
    names = [name for part in parts for own in part.levels.values() for name in own.counts]
    names = [name for name in names if name is not None]
    if len({isinstance(name, str) for name in names}) > 1:
        raise ValueError("y holds text in some blocks and numbers in others; name classes alike")
    return names
