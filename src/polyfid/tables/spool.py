"""Rows in numbers, on disk while a fit lasts.

Text is parsed once; from then on a block of rows is a slice of a file that is mapped into memory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.large import FilesSummary
from polyfid.text import bytes_in_words


@contextmanager
def spool_folder(parent: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A folder for numbers inside ``parent``, which is removed in the end, whatever happens."""
    if parent is not None and not Path(parent).is_dir():
        raise ValueError(f"spool must be a folder that is there; got {os.fspath(parent)!r}")
    with tempfile.TemporaryDirectory(prefix="polyfid-", dir=parent) as folder:
        yield Path(folder)


@dataclass(frozen=True)
class Spool:
    """Rows in numbers, in a folder; iterating over it reads them in blocks, as often as needed.

    Parameters
    ----------
    folder : Path
    summary : FilesSummary
        What the rows are.
    rows : int
        Rows per block.
    """

    folder: Path
    summary: FilesSummary
    rows: int

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.summary.n_rows * self.summary.row_type.itemsize

    def check_room(self) -> None:
        """Raise an error if the disk has not enough room."""
        free = shutil.disk_usage(self.folder).free
        if self.size > free:
            raise ValueError(
                f"{self.summary.n_rows:,} rows take {bytes_in_words(self.size)} as numbers, and "
                f"{self.folder.parent} has {bytes_in_words(free)} free; name a folder on a larger "
                "disk (spool=..., --spool)"
            )

    def write(self, blocks: Iterable[NDArray[Any]]) -> None:
        """Write all rows; not through a memory map, whose pages would stay in memory."""
        with self._path.open("wb") as file:
            for block in blocks:
                file.write(block.data)

    def block(self, number: int) -> tuple[Any, ...]:
        """X, y, fidelity and, where rows have weights, sample_weight of one block."""
        every = np.memmap(self._path, self.summary.row_type, mode="r")
        rows = every[number * self.rows : (number + 1) * self.rows]
        X = pd.DataFrame(rows["x"], columns=list(self.summary.encoder.names_), copy=False)
        y = self.summary.classes[rows["code"]]
        fidelity = np.array(self.summary.levels)[rows["level"]]
        if self.summary.roles.weight is None:
            return X, y, fidelity
        return X, y, fidelity, np.array(rows["weight"])

    def __len__(self) -> int:
        return -(-self.summary.n_rows // self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self.block, range(len(self)))

    @property
    def _path(self) -> Path:
        return self.folder / "rows"
