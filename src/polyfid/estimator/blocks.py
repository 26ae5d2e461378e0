"""Arrays cut into blocks, for fits that read rows a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


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
        if not isinstance(rows, int | np.integer) or rows < 1:
            raise ValueError(f"rows must be a whole number from 1, got {rows!r}")
        given = {"X": X, "y": y, "fidelity": fidelity, "sample_weight": sample_weight}
        for name, values in given.items():
            if values is not None and len(values) != len(X):
                raise ValueError(
                    f"{name} has {len(values)} entries and X has {len(X)} rows; they must have "
                    "equal length"
                )
        n_parts = 4 if sample_weight is not None else 2 if fidelity is None else 3
        self._parts, self._rows = tuple(given.values())[:n_parts], int(rows)

    def __len__(self) -> int:
        return -(-len(self._parts[0]) // self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self._parts[0]), self._rows):
            part = slice(start, start + self._rows)
            yield tuple(None if p is None else _cut(p, part) for p in self._parts)


def _cut(values: Any, part: slice) -> Any:
    """Some rows of an array or a data frame."""
    return values.iloc[part] if hasattr(values, "iloc") else values[part]
