"""What a table is made of, and how figures are written in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from polyfid.experiments.paper import METRICS, Column
from polyfid.experiments.results import Results

ROC_AUC, LOG_LOSS = METRICS[0], METRICS[1]
OURS, THEIRS = ("polyfid", "multi"), ("mfgpc", "multi")
HIGHER, LOWER = "▲", "▼"  # than the paper's, which lies outside our interval


@dataclass(frozen=True)
class Entry:
    """One cell: our figure, and the paper's beside it."""

    text: str = "–"
    spread: str = ""
    paper: str = ""
    bold: bool = False
    paper_bold: bool = False
    mark: str = ""
    note: str = ""


@dataclass(frozen=True)
class Head:
    """The head of a column, and what went into it; ``words`` where it holds no figures."""

    label: str
    note: str = ""
    words: bool = False


@dataclass(frozen=True)
class Line:
    """A line of a table; ``opens`` where a new kind of line begins."""

    label: str
    entries: tuple[Entry, ...]
    opens: bool = False


@dataclass(frozen=True)
class Table:
    """A table with the words above it; ``spans`` are heads above several columns.

    Examples
    --------
    >>> from polyfid.experiments.markup import Section, to_markdown
    >>> from polyfid.experiments.tables import Entry, Head, Line, Table
    >>> line = Line("MF gpc", (Entry("0.974", "±0.004", paper="0.975", bold=True),))
    >>> table = Table("t", "ROC AUC", "Words.", "method", (Head("2D", "15 splits"),), (line,))
    >>> print(to_markdown("A", "B", [Section("s", "S", "C", (table,))]).splitlines()[-1])
    | MF gpc | **0.974** ±0.004 (0.975) |
    """

    name: str
    title: str
    text: str
    corner: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    spans: tuple[tuple[str, int], ...] = ()


def mean_over(
    results: Results, columns: Sequence[Column], method: tuple[str, str], metric: str
) -> float:
    """The mean over columns of a method that has all of them, NaN for others."""
    means = results.means(metric)
    there = [means[c][method].mean for c in columns if method in means[c]]
    return fmean(there) if there and len(there) == len(columns) else math.nan


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{value:+.3f}".replace("-", "−")


def spread(half: float) -> str:
    """Half of an interval, if there is one."""
    return "" if math.isnan(half) else f"±{half:.3f}"
