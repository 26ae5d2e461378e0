"""What a benchmark is given (a Context) and what it returns (Figures)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.artificial import Artificial, GoldenRow, read_golden
from benchmarks.timing import Score


@dataclass(frozen=True)
class Figure:
    """A measured number and the goal for it; ``met`` is None where there is none."""

    name: str
    value: float | None
    unit: str = ""
    goal: str = ""
    met: bool | None = None
    note: str = ""


def info(name: str, value: float, unit: str = "", note: str = "") -> Figure:
    """A figure without a goal."""
    return Figure(name, float(value), unit, note=note)


def at_most(name: str, value: float, bound: float, unit: str = "", note: str = "") -> Figure:
    return Figure(name, float(value), unit, f"≤ {bound:g}", bool(value <= bound), note)


def at_least(name: str, value: float, bound: float, unit: str = "", note: str = "") -> Figure:
    return Figure(name, float(value), unit, f"≥ {bound:g}", bool(value >= bound), note)


def no_worse(name: str, ours: Score, theirs: Score, whose: str) -> list[Figure]:
    """ROC AUC and log-loss less those of another, which should be better or the same."""
    auc, loss = (f"{a:.4f} and {b:.4f}" for a, b in zip(ours, theirs, strict=True))
    gap = np.subtract(ours, theirs)
    return [
        at_least(f"{name}, ROC AUC less {whose}", gap[0], 0.0, note=auc),
        at_most(f"{name}, log-loss less {whose}", gap[1], 0.0, note=loss),
    ]


class Skip(Exception):  # noqa: N818
    """A benchmark cannot run here; the message says what it needs."""


def peer(name: str) -> Any:
    """A package to compare with, or a reason to skip the benchmark."""
    try:
        return import_module(name)
    except (ImportError, OSError) as error:
        raise Skip(f"needs {name}, see benchmarks/peers.txt ({error})") from error


@dataclass(frozen=True)
class Table:
    """Figures by rows and columns that would be too many for the main table."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class Context:
    """Where the data are, how thorough to be, and where tables besides the figures go."""

    data: Path | None = None
    golden: Path | None = None
    quick: bool = False
    full: bool = False
    tables: list[Table] = field(default_factory=list)

    def artificial(self) -> Artificial:
        """The artificial sets."""
        if self.data is None:
            raise Skip("needs the artificial sets: --data DIR or POLYFID_DATA")
        sets = Artificial.find(self.data)
        if sets is None:
            raise Skip(f"no artificial/df_*.csv.gz in {self.data}")
        return sets

    def golden_rows(self, sets: Artificial) -> list[GoldenRow]:
        """The reference results whose sets are there."""
        if self.golden is None:
            raise Skip("needs reference results: --golden FILE or POLYFID_GOLDEN")
        rows = [r for r in read_golden(self.golden) if r.split.set in sets.numbers]
        if not rows:
            raise Skip(f"no row of {self.golden} is of a set in {sets.folder}")
        return rows

    def progress(self, message: str) -> None:
        print(f"  {message}", file=sys.stderr, flush=True)
