"""The first reading of rows that come in blocks: what there is, and a sample of it.

What a block holds can be added to what another one holds, so that blocks may be looked at one
after another or in many places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.estimator.inputs import check_rows, read_features, read_labels, read_weights
from polyfid.estimator.levels import Levels, declared_order, encode_levels, order_levels
from polyfid.learning.fitting import Encoded


@dataclass(frozen=True)
class RawBlock:
    """Rows as they were handed over, but checked: features, classes, levels, weights.

    ``number`` says which block it is.
    """

    number: int
    x: Array
    y: NDArray[Any]
    fidelity: Any
    weight: Array


def read_block(
    estimator: Any, number: int, block: Sequence[Any], reset: bool = False
) -> RawBlock | None:
    """Check a block; None if it has no rows.

    Parameters
    ----------
    estimator : whose features it has, or is to have, if ``reset``.
    number : which block it is.
    block : X, y, and perhaps fidelity and weights.
    """
    X, y, fidelity, weight = (*block, None, None)[:4]
    if len(y) == 0:
        return None
    x = read_features(estimator, X, reset=reset)
    if fidelity is not None:
        check_rows("fidelity", fidelity, len(x))
    labels = read_labels(y, len(x))
    return RawBlock(number, x, labels, fidelity, _weights(weight, len(x)))


class Blocks:
    """Blocks of rows that can be read again: (X, y), (X, y, fidelity) or with weights as fourth.

    Parameters
    ----------
    given : iterable of tuples that starts anew each time, or a function that returns an iterator.
    estimator : whose features they have.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> blocks = [(np.zeros((2, 1)), [0, 1]), (np.ones((3, 1)), [0, 1, 1])]
    >>> [len(b.x) for b in Blocks(blocks, MultiFidelityClassifier()).read(reset=True)]
    [2, 3]
    """

    def __init__(self, given: Any, estimator: Any) -> None:
        if isinstance(given, Iterator) or not (callable(given) or isinstance(given, Iterable)):
            raise ValueError(
                "blocks must be readable several times: a list of blocks, another object that "
                "can be iterated over again, or a function that returns an iterator of blocks; "
                f"got {type(given).__name__}"
            )
        self._given, self._estimator = given, estimator

    def read(self, reset: bool = False) -> Iterator[RawBlock]:
        """The blocks that have rows, checked; ``reset`` makes their features the estimator's."""
        for number, block in enumerate(self._given() if callable(self._given) else self._given):
            if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
                raise ValueError(
                    f"block {number} must be (X, y), (X, y, fidelity) or "
                    f"(X, y, fidelity, sample_weight); got {_shape(block)}"
                )
            raw = read_block(self._estimator, number, block, reset)
            if raw is not None:
                reset = False
                yield raw


def _shape(block: object) -> str:
    kind = type(block).__name__
    return f"{kind} of {len(block)}" if isinstance(block, tuple | list) else kind


def _weights(given: Any, n: int) -> Array:
    """As `read_weights`, but all rows of a block may be absent."""
    if given is not None and np.ndim(given) == 1 and len(given) == n and not np.any(given):
        return np.zeros(n)
    return read_weights(given, n)


@dataclass(frozen=True)
class Coding:
    """Names of classes and levels, in the order of their numbers. Can be sent elsewhere."""

    classes: NDArray[Any]
    levels: Levels

    def __call__(self, block: RawBlock) -> Encoded:
        """A block in numbers, sorted by level, rows of weight zero left out."""
        present = block.weight > 0.0
        code = np.searchsorted(self.classes, block.y)
        known = self.classes[np.minimum(code, len(self.classes) - 1)] == block.y
        if not known[present].all():
            raise ValueError(
                f"blocks have class {block.y[present & ~known][0]!r}, which they had not when they "
                "were read first; they must be the same whenever they are read"
            )
        level = _encode(block, self.levels)
        order = np.argsort(level, kind="stable")
        order = order[present[order]]
        return Encoded(
            block.x[order],
            level[order],
            code[order].astype(np.intp),
            np.full(len(order), -1, dtype=np.intp),
            block.weight[order],
        )


def _encode(block: RawBlock, levels: Levels) -> Indices:
    if block.fidelity is None:
        return np.full(len(block.x), len(levels) - 1, dtype=np.intp)
    return encode_levels(block.fidelity, levels)


@dataclass(frozen=True)
class Survey:
    """What the rows are: classes, levels, how many of each, and a sample.

    ``counts`` are rows by level and class, ``weight`` the sums of their weights by level.
    """

    coding: Coding
    counts: Indices
    weight: Array
    sample: Encoded

    @property
    def classes(self) -> NDArray[Any]:
        return self.coding.classes

    @property
    def levels(self) -> Levels:
        return self.coding.levels


@dataclass(frozen=True)
class Kept:
    """Some rows of a level with the smallest keys, so many at most, in the order they came in."""

    size: int
    key: Array
    x: Array
    y: NDArray[Any]
    weight: Array

    def cut(self) -> Kept:
        """No more than the size allows."""
        if len(self.key) <= self.size:
            return self
        rows = np.sort(np.argsort(self.key, kind="stable")[: self.size])
        return Kept(self.size, self.key[rows], self.x[rows], self.y[rows], self.weight[rows])

    def __add__(self, other: Kept) -> Kept:
        return Kept(
            self.size,
            np.concatenate([self.key, other.key]),
            np.concatenate([self.x, other.x]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.weight, other.weight]),
        ).cut()


@dataclass(frozen=True)
class Found:
    """What some blocks hold, by the names of levels and classes; adds up in the blocks' order.

    ``orders`` are those that fidelities carry, ``told`` whether blocks have a fidelity: both, if
    some do and some do not.
    """

    orders: frozenset[Levels]
    told: frozenset[bool]
    counts: Mapping[tuple[Any, Any], int]
    weights: Mapping[Any, float]
    kept: Mapping[Any, Kept]

    def __add__(self, other: Found) -> Found:
        return Found(
            self.orders | other.orders,
            self.told | other.told,
            _added(self.counts, other.counts),
            _added(self.weights, other.weights),
            _added(self.kept, other.kept),
        )

    def survey(self, levels: Levels | None) -> Survey:
        """All of it in numbers; ``levels`` are the names in order, if they are known."""
        if not self.counts:
            raise ValueError("blocks hold no rows (0 samples); at least one is needed")
        names = self._order() if levels is None else levels
        if unknown := [name for name in self.weights if name not in names]:
            raise ValueError(
                f"fidelity has level {unknown[0]!r} in some block, and in another one an order "
                f"without it, {list(names)}; pass levels=..., least trusted first"
            )
        classes = np.unique([value for _, value in self.counts])
        table = np.zeros((len(names), len(classes)), dtype=np.intp)
        for (name, value), n in self.counts.items():
            table[names.index(name), int(np.searchsorted(classes, value))] = n
        total = np.array([self.weights.get(name, 0.0) for name in names])
        sample = _join([self.kept.get(name) for name in names], classes)
        return Survey(Coding(classes, names), table, total, sample)

    def _order(self) -> Levels:
        if len(self.told) > 1:
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
        return order_levels(list(self.weights), *self.orders)


def _added(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    """Entries of both, added where both have one."""
    return {**one, **{k: one[k] + v if k in one else v for k, v in other.items()}}


@dataclass(frozen=True)
class Look:
    """What a block holds, at a first look. Can be sent elsewhere.

    Parameters
    ----------
    levels : names of the levels in order, if they are known.
    n_sample : from the name of a level to how many of its rows are kept.
    seed : of the sample. Which rows of a block have a chance to be in it depends on the seed and on
        the block's number, whoever looks at it when.
    """

    levels: Levels | None
    n_sample: Callable[[Any], int]
    seed: int

    def __call__(self, block: RawBlock) -> Found:
        key = np.random.default_rng([self.seed, block.number]).uniform(size=len(block.x))
        names = self.levels
        if names is None:
            names = (0,) if block.fidelity is None else order_levels(block.fidelity)
        carried = self.levels is None and declared_order(block.fidelity) is not None
        level = _encode(block, names)
        counts: dict[tuple[Any, Any], int] = {}
        weights: dict[Any, float] = {}
        kept: dict[Any, Kept] = {}
        for t in np.unique(level):
            rows, name = np.flatnonzero((level == t) & (block.weight > 0.0)), names[t]
            values, which = np.unique(block.y[rows], return_inverse=True)
            for value, n in zip(values.tolist(), np.bincount(which).tolist(), strict=True):
                counts[name, value] = n
            weights[name] = float(block.weight[rows].sum())
            own = Kept(
                self.n_sample(name), key[rows], block.x[rows], block.y[rows], block.weight[rows]
            )
            kept[name] = own.cut()
        told = frozenset([block.fidelity is not None])
        return Found(frozenset([names] if carried else []), told, counts, weights, kept)


def survey(blocks: Blocks, look: Look) -> Survey:
    """Read all rows once.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> rows = [(np.zeros((2, 1)), [0, 1], ["a", "b"]), (np.ones((3, 1)), [0, 1, 1], list("aab"))]
    >>> found = survey(Blocks(rows, MultiFidelityClassifier()), Look(None, lambda name: 2, seed=0))
    >>> found.levels, found.counts.tolist(), len(found.sample)
    (('a', 'b'), [[2, 1], [0, 2]], 4)
    """
    total = Found(frozenset(), frozenset(), {}, {}, {})
    for block in blocks.read(reset=True):
        total += look(block)
    return total.survey(look.levels)


def _join(kept: Iterable[Kept | None], classes: NDArray[Any]) -> Encoded:
    """The samples of all levels as one."""
    there = [(t, rows) for t, rows in enumerate(kept) if rows is not None]
    level = np.concatenate([np.full(len(rows.key), t, dtype=np.intp) for t, rows in there])
    x, y, weight = (
        np.concatenate([getattr(rows, name) for _, rows in there]) for name in ("x", "y", "weight")
    )
    code = np.searchsorted(classes, y).astype(np.intp)
    return Encoded(x, level, code, np.full(len(x), -1, dtype=np.intp), weight)
