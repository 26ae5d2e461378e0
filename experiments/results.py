"""Rows of results read back: means in the columns of the paper, and the best methods."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from os import PathLike
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from experiments.averages import Estimate, Mean, close_to_best, mean_of
from experiments.cells import KEY, Row
from experiments.paper import COLUMNS, GROUPS, METHODS, METRICS, Column, Method, Metric, published
from experiments.run import RowFile

_NUMBERS = (*(metric.name for metric in METRICS), "predict_seconds")
_BLANK: Row = dict.fromkeys((*KEY, *_NUMBERS, "converged"))
_BLANK |= dict.fromkeys(("column", "error", "versions"), "")


@dataclass(frozen=True, eq=False)
class Results:
    """All rows of a directory, and what follows from them.

    Examples
    --------
    >>> import tempfile
    >>> from experiments.results import Results
    >>> from experiments.run import RowFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     what = {"experiment": "pmlb", "column": "splice", "problem": "splice", "noise": 0.2}
    ...     row = {**what, "method": "gpc", "mode": "trusted", "seed": 0, "roc_auc": 0.9}
    ...     RowFile(folder).append(row)
    ...     results = Results.read(folder)
    >>> [(str(column), len(means)) for column, means in results.means("roc_auc").items()]
    [('splice, noise 0.2', 1)]
    """

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
        names = [group.name for group in GROUPS]
        return self.rows[self.rows["experiment"].isin(names)].sort_values("seed", kind="stable")

    @cached_property
    def methods(self) -> list[Method]:
        """The methods of the three groups, in the order of the tables; unknown ones come last."""
        there = set(zip(self._groups["method"], self._groups["mode"], strict=True))
        return [m for m in METHODS if m in there] + sorted(there - METHODS.keys())

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

    def mean_over(self, columns: Iterable[Column], method: Method, metric: str) -> float:
        """The mean over columns, NaN for a method that does not have all of them."""
        means = self.means(metric)
        values = [means[c][method].mean if method in means[c] else math.nan for c in columns]
        return fmean(values) if values else math.nan

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
        self, metric: str, columns: Iterable[Column], first: Method, other: Method
    ) -> tuple[Estimate, int] | None:
        """Mean difference of two methods over common splits, and the number of those.

        Each column has the same weight, and in it each data set. None without common splits.
        """
        gaps: list[list[list[float]]] = []
        for column in columns:
            methods = self._values(metric).get(column, {})
            pairs = methods.get(first, {}), methods.get(other, {})
            sets = [(pairs[0][p] - pairs[1][p]).dropna() for p in pairs[0] if p in pairs[1]]
            gaps.append([gap.tolist() for gap in sets if len(gap)])
        gaps = [sets for sets in gaps if sets]
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
            (column, method, means[column][method], published(column, method))
            for column in means
            for method in self.methods
            if method in means[column]
        ]
        return [(*cell, verdict) for cell in cells if (verdict := cell[2].compare(cell[3]))]


def budget_means(results: Results) -> pd.DataFrame:
    """Mean ROC AUC of the budget experiment by method, noise, cost and share.

    Trusted rows alone (share 1) have neither noise nor cost and are repeated for each.
    """
    names = ["method", "noise", "cost", "share"]
    rows = results.of("budget")[[*names, "roc_auc"]]
    alone = rows["share"] == 1.0
    where = rows.loc[~alone, names[:-1]].drop_duplicates()
    ends = rows[alone].drop(columns=["noise", "cost"]).merge(where, on="method")
    every = pd.concat([rows[~alone], ends[[*names, "roc_auc"]]], ignore_index=True)
    return every.groupby(names)["roc_auc"].mean().reset_index()
