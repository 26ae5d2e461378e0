"""The artificial sets of the paper: reading them, its draws of rows, its results on them."""

from __future__ import annotations

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")

N_TEST, N_CHEAP, N_TRUSTED = 2500, 225, 75
NOISES, N_RUNS = (0.2, 0.4), 3


class Split(NamedTuple):
    """One draw of rows from one set."""

    set: int
    noise: float
    seed: int


class Cell(NamedTuple):
    """What results are averaged over: all draws of all sets of a dimension, at one noise."""

    dimension: int
    noise: float

    def __str__(self) -> str:
        return f"{self.dimension}D noise {self.noise}"


class Rows(NamedTuple):
    """Training rows of two levels, cheap ones first, and trusted test rows."""

    X: Array
    y: NDArray[np.intp]
    level: NDArray[np.intp]
    X_test: Array
    y_test: NDArray[np.intp]


class GoldenRow(NamedTuple):
    """What the reference implementation reached on a split."""

    split: Split
    roc_auc: float
    log_loss: float
    log_marginal_likelihood: float


@dataclass(frozen=True)
class Artificial:
    """A folder of artificial sets."""

    folder: Path
    numbers: frozenset[int]

    @classmethod
    def find(cls, data: Path) -> Artificial | None:
        """The sets in a data directory or in the folder itself."""
        for folder in (data / "artificial", data):
            names = [re.fullmatch(r"df_(\d+)\.csv\.gz", p.name) for p in folder.glob("df_*")]
            numbers = frozenset(int(m[1]) for m in names if m)
            if numbers:
                return cls(folder, numbers)
        return None

    def cell(self, split: Split) -> Cell:
        return Cell(_read(self.folder, split.set)[0].shape[1], split.noise)

    def rows(self, split: Split) -> Rows:
        """The rows of a split, as the paper's published code draws them."""
        x, gold, noisy = _read(self.folder, split.set)
        rng = np.random.RandomState(split.seed)
        test = rng.choice(len(x), N_TEST, replace=False)
        rest = np.setdiff1d(np.arange(len(x)), test)
        cheap = rng.choice(rest, N_CHEAP, replace=False)
        trusted = rng.choice(rest, N_TRUSTED, replace=False)
        return Rows(
            np.concatenate([x[cheap], x[trusted]]),
            np.concatenate([noisy[split.noise][cheap], gold[trusted]]),
            np.repeat([0, 1], [N_CHEAP, N_TRUSTED]),
            x[test],
            gold[test],
        )

    def splits(self) -> list[Split]:
        """The splits of the paper: three draws a set and noise, none without a class."""
        found = []
        for number in sorted(self.numbers):
            for noise in NOISES:
                run = tried = 0
                while run < N_RUNS:
                    split = Split(number, noise, run + tried)
                    tried += 1
                    rows = self.rows(split)
                    parts = (rows.y[rows.level == 0], rows.y[rows.level == 1], rows.y_test)
                    if all(len(np.unique(part)) == 2 for part in parts):
                        found.append(split)
                        run += 1
        return found

    def some(self, items: Iterable[T], split_of: Callable[[T], Split], a_cell: int) -> list[T]:
        """At most ``a_cell`` items of each cell, of different sets as far as that goes."""
        by_cell: dict[Cell, list[T]] = defaultdict(list)
        for item in items:
            by_cell[self.cell(split_of(item))].append(item)
        chosen = []
        for cell in sorted(by_cell):
            # All first draws before the second ones.
            order = sorted(by_cell[cell], key=lambda item: (split_of(item)[2], split_of(item)[0]))
            chosen += order[:a_cell]
        return chosen


def by_cell(cells: Sequence[Cell], values: Sequence[float]) -> dict[Cell, float]:
    """Means over the splits of each cell."""
    groups: dict[Cell, list[float]] = defaultdict(list)
    for cell, value in zip(cells, values, strict=True):
        groups[cell].append(value)
    return {cell: float(np.mean(groups[cell])) for cell in sorted(groups)}


def read_golden(path: Path) -> list[GoldenRow]:
    """Reference results, one row a split."""
    with path.open(newline="") as lines:
        return [
            GoldenRow(
                Split(int(r["set"]), float(r["noise"]), int(r["seed"])),
                float(r["roc_auc"]),
                float(r["log_loss"]),
                float(r["log_marginal_likelihood"]),
            )
            for r in csv.DictReader(lines)
        ]


@lru_cache(maxsize=64)
def _read(
    folder: Path, number: int
) -> tuple[Array, NDArray[np.intp], dict[float, NDArray[np.intp]]]:
    """Features, true labels, and the noisy labels of each noise level."""
    path = folder / f"df_{number}.csv.gz"
    with gzip.open(path, "rt") as lines:
        header = lines.readline().strip().split(",")
        table = np.loadtxt(lines, delimiter=",")
    features = [i for i, name in enumerate(header) if name.startswith("feature_")]
    labels = table.astype(np.intp)
    noisy = {
        float(name.removeprefix("target_noisy_")): labels[:, i]
        for i, name in enumerate(header)
        if name.startswith("target_noisy_")
    }
    return table[:, features], labels[:, header.index("target_gold")], noisy
