"""The first reading of rows that come in blocks: what there is, and a sample of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.data import Levels, check_rows, encode_levels, order_levels, read_weights
from polyfid.fitting import Encoded
from polyfid.reading import read_features, read_labels

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class RawBlock:
    """Rows as they were handed over, but checked: features, classes, levels, weights."""

    x: Array
    y: NDArray[Any]
    fidelity: Any
    weight: Array


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
            X, y, fidelity, weight = (*block, None, None)[:4]
            if len(y) == 0:
                continue
            x = read_features(self._estimator, X, reset=reset)
            reset = False
            if fidelity is not None:
                check_rows("fidelity", fidelity, len(x))
            yield RawBlock(
                x, read_labels(self._estimator, y, len(x)), fidelity, _weights(weight, len(x))
            )


def _shape(block: object) -> str:
    kind = type(block).__name__
    return f"{kind} of {len(block)}" if isinstance(block, tuple | list) else kind


def _weights(given: Any, n: int) -> Array:
    """As `read_weights`, but all rows of a block may be absent."""
    if given is not None and np.ndim(given) == 1 and len(given) == n and not np.any(given):
        return np.zeros(n)
    return read_weights(given, n)


@dataclass(frozen=True)
class Survey:
    """What the rows are: classes, levels, how many of each, and a sample.

    ``counts`` are rows by level and class, ``weight`` the sums of their weights by level.
    """

    classes: NDArray[Any]
    levels: Levels
    counts: Indices
    weight: Array
    sample: Encoded

    def encode(self, block: RawBlock) -> Encoded:
        """A block in numbers, sorted by level, rows of weight zero left out."""
        present = block.weight > 0.0
        code = np.searchsorted(self.classes, block.y)
        known = self.classes[np.minimum(code, len(self.classes) - 1)] == block.y
        if not known.all():
            raise ValueError(
                f"blocks have class {block.y[~known][0]!r}, which they had not when they were "
                "read first; they must be the same whenever they are read"
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


def survey(
    blocks: Blocks,
    levels: Iterable[Any] | None,
    n_sample: Callable[[Any], int],
    rng: np.random.RandomState,
) -> Survey:
    """Read all rows once.

    Parameters
    ----------
    blocks : Blocks
    levels : their names in order, if they are known.
    n_sample : from the name of a level to how many of its rows are kept.
    rng : RandomState
        The sample depends on it and on the order of the rows, not on where blocks are cut.
    """
    kept: dict[Any, _Reservoir] = {}
    counts: dict[tuple[Any, Any], int] = {}
    weights: dict[Any, float] = {}
    declared = None if levels is None else order_levels((), levels)
    for block in blocks.read(reset=True):
        key = rng.uniform(size=len(block.x))  # of all rows, so that cuts make no difference
        names, level = _levels_of(block, declared)
        declared = names if declared is None and block.fidelity is None else declared
        for t in np.unique(level):
            rows = np.flatnonzero((level == t) & (block.weight > 0.0))
            name = names[t]
            values, which = np.unique(block.y[rows], return_inverse=True)
            for value, n in zip(values.tolist(), np.bincount(which).tolist(), strict=True):
                counts[name, value] = counts.get((name, value), 0) + n
            weights[name] = weights.get(name, 0.0) + float(block.weight[rows].sum())
            own = kept.setdefault(name, _Reservoir(n_sample(name)))
            own.add(key[rows], block.x[rows], block.y[rows], block.weight[rows])
    if not counts:
        raise ValueError("blocks hold no rows (0 samples); at least one is needed")
    found = tuple(kept) if declared is None else declared
    names = order_levels(found) if declared is None else found
    classes = np.unique([value for _, value in counts])
    table = np.zeros((len(names), len(classes)), dtype=np.intp)
    for (name, value), n in counts.items():
        table[names.index(name), int(np.searchsorted(classes, value))] = n
    total = np.array([weights.get(name, 0.0) for name in names])
    sample = _join([(t, kept[name]) for t, name in enumerate(names) if name in kept], classes)
    return Survey(classes, names, table, total, sample)


def _levels_of(block: RawBlock, declared: Levels | None) -> tuple[Levels, Indices]:
    """Names of the levels of a block, and which one each row is of."""
    if declared is None:
        declared = (0,) if block.fidelity is None else order_levels(block.fidelity)
    return declared, _encode(block, declared)


class _Reservoir:
    """The rows with the smallest keys, so many at most."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: tuple[NDArray[Any], ...] | None = None

    def add(self, *parts: NDArray[Any]) -> None:
        if self.parts is not None:
            parts = tuple(np.concatenate(pair) for pair in zip(self.parts, parts, strict=True))
        order = np.sort(np.argsort(parts[0], kind="stable")[: self.size])
        self.parts = tuple(part[order] for part in parts)


def _join(kept: list[tuple[int, _Reservoir]], classes: NDArray[Any]) -> Encoded:
    columns = [(t, r.parts) for t, r in kept if r.parts is not None]
    level = np.concatenate([np.full(len(p[0]), t, dtype=np.intp) for t, p in columns])
    x, y, weight = (np.concatenate([p[i] for _, p in columns]) for i in (1, 2, 3))
    code = np.searchsorted(classes, y).astype(np.intp)
    return Encoded(x, level, code, np.full(len(x), -1, dtype=np.intp), weight)
