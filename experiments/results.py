"""Rows of results read back: means in the columns of the paper, intervals, the best methods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from os import PathLike
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from experiments import paper
from experiments.cells import KEY, Row
from experiments.data import PMLB
from experiments.paper import CLOSE, COLUMNS, METRICS, OURS, PAPER, THEIRS, Column, Method, Metric
from experiments.run import RowFile

T = TypeVar("T")

LEVEL = 0.95  # of intervals
ROUNDING = 0.0005  # the paper gives three decimals
_EPS = 1e-9  # so that 0.71 counts as within 0.01 of 0.72

_NUMBERS = (*(metric.name for metric in METRICS), "predict_seconds")
_BLANK: Row = dict.fromkeys((*KEY, *_NUMBERS, "converged"))
_BLANK |= dict.fromkeys(("column", "error", "versions"), "")


class Estimate(NamedTuple):
    """A mean and half of its 95 % interval, which is NaN if there are too few values."""

    mean: float
    half: float


def mean_of(strata: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> Estimate:
    """Weighted mean of the means of strata, and half of its interval by Welch and Satterthwaite.

    The strata are fixed and only the values within them are random. Weights default to equal ones.
    """
    n = np.array([len(values) for values in strata])
    w = np.full(len(n), 1.0 / len(n)) if weights is None else np.asarray(weights)
    mean = float(w @ [np.mean(values) for values in strata])
    if n.min() < 2:
        return Estimate(mean, math.nan)
    terms = w**2 * [np.var(values, ddof=1) for values in strata] / n
    variance = terms.sum()
    if variance == 0.0:
        return Estimate(mean, 0.0)
    freedom = variance**2 / (terms**2 / (n - 1)).sum()
    return Estimate(mean, float(stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance)))


@dataclass(frozen=True)
class Mean:
    """The mean of a method in a column, in which each data set has the same weight."""

    mean: float = math.nan
    half: float = math.nan  # of the interval, over splits, or over data sets if some are missing
    first: float = math.nan  # the mean over the first splits, as many as the paper has
    reach: float = math.nan  # how far from the mean the paper's figure may lie by chance
    n: int = 0  # splits that did not fail

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]], column: Column) -> Mean:
        """The mean of the values of each data set, in the order of splits; NaN is a failure."""
        finite = {p: [x for x in v if math.isfinite(x)] for p, v in values.items()}
        strata = [v for v in finite.values() if v]
        if not strata:
            return cls()
        mean, half = mean_of(strata)
        # The same variance again, for the paper's own number of splits.
        reach = half * math.sqrt(1.0 + fmean(map(len, strata)) / column.runs)
        if not all(finite.get(problem) for problem in column.problems):
            # Which sets are included changes the mean more than the splits do. The paper averages
            # these sets and others, so its figure is no further off than the mean of all sets.
            half = reach = mean_of([[fmean(v) for v in strata]]).half
        first = fmean(fmean(v[: column.runs]) for v in strata)
        return cls(mean, half, first, reach, sum(map(len, strata)))

    def compare(self, paper: float) -> str:
        """Whether the paper's figure is "within" the interval, "near" (within `reach`) or "off"."""
        if math.isnan(self.half) or math.isnan(paper):
            return ""
        distance = abs(self.mean - paper) - ROUNDING - _EPS
        if distance <= self.half:
            return "within"
        return "near" if distance <= self.reach else "off"


def close_to_best(values: Mapping[T, float], sign: int) -> set[T]:
    """The keys whose value is the best, or within 0.01 of it."""
    finite = {key: sign * value for key, value in values.items() if math.isfinite(value)}
    best = max(finite.values(), default=0.0)
    return {key for key, value in finite.items() if value >= best - CLOSE - _EPS}


def paper_best(column: Column) -> set[Method]:
    """The methods that are best or within 0.01 of it by the paper's own figures."""
    return close_to_best({m: v for (where, m), v in PAPER.items() if where == column}, sign=1)


@dataclass(frozen=True, eq=False)
class Results:
    """All rows of a directory, and what follows from them."""

    rows: pd.DataFrame

    @classmethod
    def read(cls, directory: str | PathLike[str]) -> Results:
        """The rows in a directory; none, if it has no rows.jsonl yet."""
        given = [_BLANK | row for row in RowFile(directory).rows.values()]
        rows = pd.DataFrame(given, columns=None if given else list(_BLANK))
        rows = rows.astype(dict.fromkeys((*_NUMBERS, "noise", "share", "cost"), float))
        no_figure = (rows["error"] == "") & ~np.isfinite(rows["roc_auc"])
        rows.loc[no_figure, "error"] = "the row has no ROC AUC"
        rows.loc[rows["error"] != "", [*_NUMBERS]] = np.nan
        return cls(rows)

    def of(self, experiment: str) -> pd.DataFrame:
        """The rows of an experiment that succeeded."""
        return self.rows[(self.rows["experiment"] == experiment) & (self.rows["error"] == "")]

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The rows with an error or without figures."""
        return self.rows[self.rows["error"] != ""]

    @cached_property
    def _groups(self) -> pd.DataFrame:
        """The rows of the three groups of data sets, in the order of their seeds."""
        names = [group.name for group in paper.GROUPS]
        return self.rows[self.rows["experiment"].isin(names)].sort_values("seed", kind="stable")

    @cached_property
    def methods(self) -> list[Method]:
        """The methods of the three groups, in the order of the tables; unknown ones come last."""
        there = set(zip(self._groups["method"], self._groups["mode"], strict=True))
        return [m for m in paper.METHODS if m in there] + sorted(there - paper.METHODS.keys())

    @cached_property
    def columns(self) -> list[Column]:
        """The columns of the paper that have rows, failed ones included."""
        return [column for column in COLUMNS if column in self._values("roc_auc")]

    @cache  # noqa: B019
    def _values(self, metric: str) -> dict[Column, dict[Method, dict[str, pd.Series]]]:
        """A measure of every split by its seed, for each column, method and data set."""
        values: dict[Column, dict[Method, dict[str, pd.Series]]] = {}
        names = ["experiment", "column", "noise", "method", "mode", "problem"]
        key: Any
        for key, rows in self._groups.groupby(names, dropna=False):
            group, name, noise, method, mode, problem = key
            column = Column(group, name, None if math.isnan(noise) else round(noise, 6))
            methods = values.setdefault(column, {}).setdefault((method, mode), {})
            methods[problem] = pd.Series(rows[metric].to_numpy(), rows["seed"])
        return values

    @cache  # noqa: B019
    def means(self, metric: str) -> dict[Column, dict[Method, Mean]]:
        """The mean of each method in each column, also of methods that always failed."""
        values = self._values(metric)
        return {
            column: {
                method: Mean.of({p: v.tolist() for p, v in sets.items()}, column)
                for method, sets in values[column].items()
            }
            for column in self.columns
        }

    def has(self, column: Column, method: Method) -> bool:
        """Whether a method has a mean in a column."""
        return self.means("roc_auc").get(column, {}).get(method, Mean()).n > 0

    def mean_over(self, columns: Iterable[Column], method: Method, metric: str) -> float:
        """The mean over columns, NaN for a method that does not have all of them."""
        means = self.means(metric)
        return fmean([means[c].get(method, Mean()).mean for c in columns])

    def best(self, metric: Metric, *, ours: bool = True) -> dict[Column, set[Method]]:
        """The methods that are best or within 0.01 of it; without polyfid if not ``ours``."""
        return {
            column: close_to_best(
                {m: mean.mean for m, mean in means.items() if ours or m[0] != "polyfid"},
                metric.sign,
            )
            for column, means in self.means(metric.name).items()
        }

    def difference(
        self,
        metric: str,
        columns: Iterable[Column] = COLUMNS,
        first: Method = OURS,
        other: Method = THEIRS,
    ) -> tuple[Estimate, int] | None:
        """Mean difference of two methods over common splits, and the number of those.

        Each column has the same weight, and in it each data set. None without common splits.
        """
        gaps: list[list[list[float]]] = []
        for column in columns:
            methods = self._values(metric).get(column, {})
            a, b = methods.get(first, {}), methods.get(other, {})
            sets = [(a[p] - b[p]).dropna().tolist() for p in a if p in b]
            if any(sets):
                gaps.append([values for values in sets if values])
        if not gaps:
            return None
        strata = [gap for sets in gaps for gap in sets]
        weights = [1 / len(gaps) / len(sets) for sets in gaps for _ in sets]
        return mean_of(strata, weights), sum(map(len, strata))

    def sets(self, group: str, column: str | None = None) -> list[str]:
        """The data sets of a group, or of one of its columns, that have rows."""
        there = self.rows["experiment"] == group
        if column is not None:
            there &= self.rows["column"] == column
        return sorted(set(self.rows.loc[there, "problem"]))

    def compare(self) -> list[tuple[Column, Method, Mean, float, str]]:
        """Every mean that the paper has too, with its figure and where that lies."""
        means = self.means("roc_auc")
        cells = [
            (column, method, means[column][method], paper.published(column, method))
            for column in means
            for method in self.methods
            if method in means[column]
        ]
        return [(*cell, cell[2].compare(cell[3])) for cell in cells if cell[2].n and cell[3] > 0]

    def by_task(self) -> dict[str, dict[str, Row]]:
        """The facts of each scheme of the sampling experiment, by task in the paper's order."""
        rows = self.of("mcmc")
        tasks = dict(zip(rows["problem"], rows["schemes"], strict=True)) if len(rows) else {}
        return {name: tasks[name] for name in PMLB if name in tasks}

    def budget_means(self) -> pd.DataFrame:
        """Mean ROC AUC of the budget experiment by method, noise, cost and share.

        Trusted rows alone (share 1) have neither noise nor cost and are repeated for each.
        """
        names = ["method", "noise", "cost", "share"]
        rows = self.of("budget")[[*names, "roc_auc"]]
        alone = rows["share"] == 1.0
        where = rows.loc[~alone, names[:-1]].drop_duplicates()
        ends = rows[alone].drop(columns=["noise", "cost"]).merge(where, on="method")
        every = pd.concat([rows[~alone], ends[[*names, "roc_auc"]]], ignore_index=True)
        return every.groupby(names)["roc_auc"].mean().reset_index()
