"""Rows in blocks as users hand them over: checked one block at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from polyfid.estimator.constraints import is_whole, read_whole
from polyfid.estimator.inputs import Columns, check_rows, read_block
from polyfid.estimator.levels import order_levels
from polyfid.learning.plan import N_ROWS_TREES, N_TUNING_SPARSE, TREES_BYTES
from polyfid.rows.survey import Block, Levels, Surveyor


class Blocks:
    """Blocks that can be read again: (X, y), (X, y, fidelity) or with weights as the fourth.

    The first reading makes its features those of ``columns``; ``levels`` are the names in order, if
    the user gave them, and ``numeric_levels`` those that hold numbers.
    """

    def __init__(
        self,
        given: Any,
        columns: Columns,
        levels: Levels | None = None,
        numeric_levels: Any = None,
    ) -> None:
        if isinstance(given, Iterator) or not (callable(given) or isinstance(given, Iterable)):
            raise ValueError(
                "blocks must be readable several times: a list of blocks, another object that "
                "can be iterated over again, or a function that returns an iterator of blocks; "
                f"got {type(given).__name__}"
            )
        self._given, self._columns, self._levels = given, columns, levels
        self._numeric_levels = numeric_levels
        self._sizes: dict[int, int] = {}  # rows of each block, from the first reading

    def __iter__(self) -> Iterator[Block]:
        for number, block in enumerate(self._given() if callable(self._given) else self._given):
            if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
                size = f" of {len(block)}" if isinstance(block, Sized) else ""
                raise ValueError(
                    f"block {number} must be (X, y), (X, y, fidelity) or "
                    f"(X, y, fidelity, sample_weight); got {type(block).__name__}{size}"
                )
            reset = not hasattr(self._columns, "n_features_in_")
            checked = read_block(
                self._columns, self._levels, number, block, reset, self._numeric_levels
            )
            n = 0 if checked is None else len(checked.x)
            if self._sizes.setdefault(number, n) != n:
                raise ValueError(
                    f"block {number} has {n} rows, and had {self._sizes[number]} when it was first "
                    "read; blocks must be the same whenever they are read"
                )
            if checked is not None:
                yield checked


def given_levels(given: Any) -> Levels | None:
    """The names of the levels, if the parameters of an estimator say them."""
    return None if given.levels is None else order_levels((), given.levels)


def make_surveyor(given: Any, rng: np.random.RandomState) -> Surveyor:
    """The first reader of rows that are not in memory, for the parameters of an estimator."""
    if given.fidelity_feature is not None:
        raise ValueError(
            "fidelity_feature is for fit only; leave it None and hand the fidelity over beside "
            f"X, got {given.fidelity_feature!r}"
        )
    if given.label_noise == "annotator":
        raise ValueError(
            'label_noise="annotator" needs all rows in memory; use fit, or label_noise="fidelity"'
        )
    if given.n_tuning is None:
        raise ValueError(
            "n_tuning=None asks to tune on all rows, and not all of them are in memory; give a "
            "number of rows"
        )
    seed = int(rng.randint(2**31 - 1))
    per_level = given.n_tuning if isinstance(given.n_tuning, Mapping) else {}
    in_all = given.n_tuning if is_whole(given.n_tuning, 1) else N_TUNING_SPARSE
    if given.mean == "boosted" or (given.mean == "auto" and given.kernel == "auto"):
        per_level, in_all = {}, N_ROWS_TREES  # trees learn from the sample
    return Surveyor(int(in_all), per_level, seed, TREES_BYTES)


class ArrayBlocks:
    """Blocks of arrays that may be larger than memory, such as those of ``numpy.memmap``.

    Can be iterated over again and again, as `MultiFidelityClassifier.fit_blocks` needs it. A block
    is read when its turn comes.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
    fidelity, sample_weight : array of shape (n,), optional
    rows : int
        Rows of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import ArrayBlocks
    >>> blocks = ArrayBlocks(np.zeros((5, 2)), np.arange(5), rows=3)
    >>> [X.shape for X, y in blocks]
    [(3, 2), (2, 2)]
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        fidelity: Any = None,
        sample_weight: Any = None,
        *,
        rows: int = 65_536,
    ) -> None:
        given = {"X": X, "y": y, "fidelity": fidelity, "sample_weight": sample_weight}
        for name, values in given.items():
            if values is not None:
                check_rows(name, values, len(X))
        n_columns = 4 if sample_weight is not None else 2 if fidelity is None else 3
        self._columns, self._rows = tuple(given.values())[:n_columns], read_whole("rows", rows, 1)

    def __len__(self) -> int:
        return -(-len(self._columns[0]) // self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self._columns[0]), self._rows):
            block = slice(start, start + self._rows)
            yield tuple(None if c is None else _safe_indexing(c, block) for c in self._columns)
