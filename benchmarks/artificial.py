"""The artificial sets of the paper: its draws of rows, and the reference's results on them."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from experiments import problems
from experiments.data import available_artificial
from experiments.paper import DIMENSIONS, NOISES

T = TypeVar("T")
Rows = problems.Split

N_RUNS = 3


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
        numbers = frozenset(available_artificial(data))
        return cls(data, numbers) if numbers else None

    def cell(self, split: Split) -> Cell:
        return Cell(DIMENSIONS[split.set // 10], split.noise)

    def rows(self, split: Split) -> Rows:
        """The rows of a split, as the paper's published code draws them."""
        return self._problem(split.set, split.noise).split(split.seed)

    def splits(self) -> list[Split]:
        """The splits of the paper: three per set and noise, all with both classes."""
        return [
            Split(number, noise, seed)
            for number in sorted(self.numbers)
            for noise in NOISES
            for seed in problems.usable_seeds([self._problem(number, noise)], N_RUNS)
        ]

    def _problem(self, number: int, noise: float) -> problems.Problem:
        return problems.artificial_set(number, noise, str(self.folder))

    def some(self, items: Iterable[T], split_of: Callable[[T], Split], per_cell: int) -> list[T]:
        """At most ``per_cell`` items of each cell, of different sets as far as that goes."""
        by_cell: dict[Cell, list[T]] = defaultdict(list)
        for item in items:
            by_cell[self.cell(split_of(item))].append(item)
        chosen = []
        for cell in sorted(by_cell):
            # All first draws before the second ones.
            order = sorted(by_cell[cell], key=lambda item: (split_of(item)[2], split_of(item)[0]))
            chosen += order[:per_cell]
        return chosen


def by_cell(cells: Sequence[Cell], values: Sequence[float]) -> dict[Cell, float]:
    """Means over the splits of each cell."""
    groups: dict[Cell, list[float]] = defaultdict(list)
    for cell, value in zip(cells, values, strict=True):
        groups[cell].append(value)
    return {cell: float(np.mean(groups[cell])) for cell in sorted(groups)}


def read_golden(path: Path) -> list[GoldenRow]:
    """Reference results, one row per split."""
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
