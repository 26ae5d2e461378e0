"""Rows in numbers, on disk for as long as a fit lasts: text would take long to read in every pass.

Parsing is done once; from then on a block of rows is a part of a file that is mapped into memory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.estimator.blocks import ArrayBlocks
from polyfid.tables.files import Found, Numbers
from polyfid.text import bytes_in_words

#: Files of a spool, and the type of their numbers.
_TYPES = {"x": "<f8", "level": "<i4", "code": "<i4", "weight": "<f8"}


@contextmanager
def spool_folder(parent: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A folder for numbers, which is removed in the end, whatever happens.

    Parameters
    ----------
    parent : path, optional
        The folder to make it in; that for temporary files by default.
    """
    if parent is not None and not Path(parent).is_dir():
        raise ValueError(f"spool must be a folder that is there; got {os.fspath(parent)!r}")
    with tempfile.TemporaryDirectory(prefix="polyfid-", dir=parent) as folder:
        yield Path(folder)


@dataclass(frozen=True)
class Spool:
    """Rows in numbers, in a folder.

    Parameters
    ----------
    folder : Path
    found : Found
        What the rows are.
    rows : int
        Of a block.
    """

    folder: Path
    found: Found
    rows: int

    @property
    def size(self) -> int:
        """Bytes on disk, roughly."""
        return sum(
            np.dtype(_TYPES[name]).itemsize * int(np.prod(self._shape(name)))
            for name in self._names
        )

    def check_room(self) -> None:
        """Complain if the disk has not enough room."""
        free = shutil.disk_usage(self.folder).free
        if self.size > free:
            raise ValueError(
                f"{self.found.n_rows:,} rows take {bytes_in_words(self.size)} as numbers, and "
                f"{self.folder.parent} has {bytes_in_words(free)} free; name a folder on a larger "
                "disk (spool=..., --spool)"
            )

    def write(self, blocks: Iterable[Numbers]) -> None:
        """Write all rows. They go through files, not maps, so that they do not stay in memory."""
        with ExitStack() as stack:
            files = {}
            for name in self._names:
                files[name] = stack.enter_context(self._path(name).open("wb"))
                header = {
                    "descr": _TYPES[name],
                    "fortran_order": False,
                    "shape": self._shape(name),
                }
                np.lib.format.write_array_header_1_0(files[name], header)
            for block in blocks:
                for name, file in files.items():
                    part = np.ascontiguousarray(getattr(block, name), dtype=_TYPES[name])
                    file.write(part.data)

    def blocks(self) -> ArrayBlocks:
        """The rows for `MultiFidelityClassifier.fit_blocks`."""
        columns = list(self.found.recipe.names)
        return ArrayBlocks(
            pd.DataFrame(self._map("x"), columns=columns, copy=False),
            Names(self.found.classes, self._map("code")),
            Names(np.array(self.found.levels), self._map("level")),
            self._map("weight") if self.weighted else None,
            rows=self.rows,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of the blocks."""
        starts = range(0, self.found.n_rows, self.rows)
        return tuple(min(self.rows, self.found.n_rows - start) for start in starts)

    def part(self, name: str, number: int) -> Any:
        """One of the four things of a block, read by whoever sees the folder.

        Parameters
        ----------
        name : {"x", "code", "level", "weight"}
        number : int
            Of the block.
        """
        rows = self._map(name)[number * self.rows : (number + 1) * self.rows]
        if name == "x":
            return pd.DataFrame(rows, columns=list(self.found.recipe.names), copy=False)
        names = {"code": self.found.classes, "level": np.array(self.found.levels)}
        return names[name][rows] if name in names else rows

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.found.roles.weight is not None

    @property
    def _names(self) -> list[str]:
        return [name for name in _TYPES if self.weighted or name != "weight"]

    def _shape(self, name: str) -> tuple[int, ...]:
        n = self.found.n_rows
        return (n, len(self.found.recipe.names)) if name == "x" else (n,)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def _map(self, name: str) -> NDArray[Any]:
        made: NDArray[Any] = np.load(self._path(name), mmap_mode="r")
        return made


@dataclass(frozen=True)
class Names:
    """Names by their numbers, which are looked up when rows are chosen."""

    names: NDArray[Any]
    code: NDArray[np.integer[Any]]

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        made: NDArray[Any] = self.names[self.code[rows]]
        return made
