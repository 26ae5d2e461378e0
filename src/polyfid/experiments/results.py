"""Rows of results read back: means in the columns of the paper, who is best, what is missing."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.experiments.averages import Estimate, Mean, close_to_best, mean_of
from polyfid.experiments.paper import COLUMNS, GROUPS, METHODS, PAPER, Column, Method, Metric
from polyfid.experiments.rows import COLUMNS as ROW_COLUMNS
from polyfid.experiments.rows import Key

__all__ = ["Results", "budget_means", "numbers"]

_NUMBERS = (
    "noise",
    "roc_auc",
    "log_loss",
    "brier",
    "accuracy",
    "fit_seconds",
    "predict_seconds",
    "rho",
    "evidence",
)


@dataclass(frozen=True)
class Results:
    """All rows of a directory, and what follows from them.

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.results import Results
    >>> from polyfid.experiments.rows import Row, Rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     what = {"experiment": "pmlb", "column": "splice", "problem": "splice", "noise": 0.2}
    ...     row = Row(**what, method="gpc", mode="trusted", seed=0, roc_auc=0.9)
    ...     Rows(folder).append([row])
    ...     results = Results.read(folder)
    >>> [(str(column), len(lines)) for column, lines in results.means("roc_auc").items()]
    [('splice, noise 0.2', 1)]
    """

    rows: pd.DataFrame
    side: Mapping[str, pd.DataFrame]

    @classmethod
    def read(cls, directory: str | PathLike[str]) -> Self:
        """The rows in a directory; none, if it has no rows.csv yet."""
        folder = Path(directory)
        if not folder.is_dir():
            raise FileNotFoundError(
                f"directory must be one that holds rows.csv, and {str(folder)!r} is no directory; "
                "`polyfid reproduce NAME --out DIR` makes one"
            )
        rows = _read_csv(folder / "rows.csv")
        missing = [name for name in ROW_COLUMNS if name not in rows]
        if missing and len(rows.columns):
            raise ValueError(
                f"{folder / 'rows.csv'} lacks the column(s) {', '.join(missing)}; name the "
                "directory of a run of `polyfid reproduce`"
            )
        rows = rows.reindex(columns=list(ROW_COLUMNS), fill_value="")
        rows = rows.drop_duplicates(list(Key._fields), keep="last", ignore_index=True)
        for name in _NUMBERS:
            rows[name] = pd.to_numeric(rows[name], errors="coerce")
        rows["noise"] = rows["noise"].round(6)
        rows["seed"] = pd.to_numeric(rows["seed"], errors="coerce").fillna(-1).astype(int)
        side = {name: _read_csv(folder / f"{name}.csv") for name in _SIDE}
        for name, keys in _SIDE.items():
            if len(side[name]):
                side[name] = side[name].drop_duplicates(keys, keep="last", ignore_index=True)
        return cls(rows, side)

    def of(self, experiment: str) -> pd.DataFrame:
        """The rows of an experiment that succeeded."""
        return self.rows[(self.rows["experiment"] == experiment) & self._sound]

    def settings(self, experiment: str) -> pd.DataFrame:
        """The rows of an experiment that succeeded, with a column for each of their settings."""
        rows = self.of(experiment).reset_index(drop=True)
        further = pd.DataFrame([json.loads(text) if text else {} for text in rows["setting"]])
        return pd.concat([rows.drop(columns=further.columns, errors="ignore"), further], axis=1)

    @cached_property
    def _sound(self) -> pd.Series:
        return (self.rows["error"] == "") & np.isfinite(self.rows["roc_auc"])

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The rows with an error, or without a figure."""
        failed = self.rows[~self._sound].copy()
        failed.loc[failed["error"] == "", "error"] = "the row has no ROC AUC"
        return failed

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """The methods that occur in the three groups, in the order of the tables."""
        rows = self.rows[self.rows["experiment"].isin([group.name for group in GROUPS])]
        there = dict.fromkeys(zip(rows["method"], rows["mode"], strict=True))
        known = tuple(method for method in METHODS if method.key in there)
        others = there.keys() - {method.key for method in METHODS}
        return known + tuple(Method(name, mode, f"{name} {mode}") for name, mode in sorted(others))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the paper that have rows, failed ones included."""
        there = {
            _column(*key)
            for key in self.rows[["experiment", "column", "noise"]].itertuples(index=False)
        }
        return tuple(column for column in COLUMNS if column in there)

    @cached_property
    def _lines(self) -> dict[Column, dict[tuple[str, str], dict[str, list[int]]]]:
        """The places of the rows of each column, method and data set, by rising seed."""
        found: dict[Column, dict[tuple[str, str], dict[str, list[int]]]] = {
            column: {} for column in self.columns
        }
        names = ["experiment", "column", "noise", "method", "mode", "problem", "seed"]
        keys = list(self.rows[names].itertuples(index=False))
        for place in sorted(range(len(keys)), key=lambda i: (keys[i].problem, keys[i].seed)):
            *where, method, mode, problem, _ = keys[place]
            column = _column(*where)
            if column in found:
                problems = found[column].setdefault((method, mode), {})
                problems.setdefault(problem, []).append(place)
        return found

    def _values(self, metric: str) -> NDArray[np.float64]:
        """A measure of every row, NaN in those that failed."""
        return np.where(self._sound, self.rows[metric], np.nan)

    def means(self, metric: str) -> dict[Column, dict[tuple[str, str], Mean]]:
        """What each method has in each column; methods of which all splits failed included."""
        if metric not in self._means:
            scores = self._values(metric)
            self._means[metric] = {
                column: {
                    method: Mean.of({p: scores[at].tolist() for p, at in places.items()}, column)
                    for method, places in methods.items()
                }
                for column, methods in self._lines.items()
            }
        return self._means[metric]

    @cached_property
    def _means(self) -> dict[str, dict[Column, dict[tuple[str, str], Mean]]]:
        return {}

    def best(self, metric: Metric, *, ours: bool = True) -> dict[Column, set[tuple[str, str]]]:
        """The methods that are best or within 0.01 of it; without polyfid if not ``ours``."""
        return {
            column: close_to_best(
                {key: m.mean for key, m in lines.items() if ours or key[0] != "polyfid"},
                metric.sign,
            )
            for column, lines in self.means(metric.name).items()
        }

    def difference(
        self, metric: str, columns: Iterable[Column], first: tuple[str, str], less: tuple[str, str]
    ) -> tuple[Estimate, int] | None:
        """Mean difference of two methods, split by split, and the number of splits.

        Each column has the same weight, and in it each data set. None without common splits.
        """
        values = self._values(metric)
        seeds = self.rows["seed"].to_numpy()
        pairs: dict[Column, list[list[float]]] = {}
        for column in columns:
            lines = self._lines.get(column, {})
            for problem, places in lines.get(first, {}).items():
                other = {seeds[i]: values[i] for i in lines.get(less, {}).get(problem, ())}
                gaps = [float(values[i] - other.get(seeds[i], math.nan)) for i in places]
                if finite := [gap for gap in gaps if math.isfinite(gap)]:
                    pairs.setdefault(column, []).append(finite)
        if not pairs:
            return None
        strata = [gaps for sets in pairs.values() for gaps in sets]
        weights = [1 / len(pairs) / len(sets) for sets in pairs.values() for _ in sets]
        return mean_of(strata, weights), sum(map(len, strata))

    @cached_property
    def left_out(self) -> dict[str, list[str]]:
        """For each group with rows, the data sets of the paper that have none."""
        found = {}
        for group in GROUPS:
            there = set(self.rows.loc[self.rows["experiment"] == group.name, "problem"])
            wanted = dict.fromkeys(p for c in COLUMNS if c.group == group.name for p in c.problems)
            if there:
                found[group.name] = [name for name in wanted if name not in there]
        return found

    def sets(self, column: Column) -> list[str]:
        """The data sets that have rows in a column, failed ones included."""
        there = self.rows["experiment"].eq(column.group) & self.rows["column"].eq(column.name)
        return sorted(set(self.rows.loc[there, "problem"]))

    def paper(self, column: Column, method: tuple[str, str]) -> float:
        """The paper's ROC AUC, NaN where it has none."""
        return PAPER.get((column.group, column.name, column.noise, *method), math.nan)

    def compare(self) -> list[tuple[Column, Method, Mean, float, str]]:
        """Every cell that the paper has too, with its figure and where that lies."""
        means = self.means("roc_auc")
        return [
            (column, method, means[column][method.key], paper, verdict)
            for column in self.columns
            for method in self.methods
            if method.key in means[column]
            and not math.isnan(paper := self.paper(column, method.key))
            and (verdict := means[column][method.key].compare(paper))
        ]


#: Side files and the columns that tell their lines apart.
_SIDE = {"mcmc": ["problem", "scheme"], "mcmc_probabilities": ["problem", "row", "scheme"]}


def _column(group: Any, name: Any, noise: Any) -> Column:
    return Column(group, name, None if math.isnan(noise) else noise)


def _read_csv(path: Path) -> pd.DataFrame:
    """The whole lines of a file as text; a last one that was cut short is left out."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return pd.DataFrame()
    return pd.read_csv(io.StringIO(whole), dtype=str, keep_default_na=False, na_filter=False)


def numbers(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """A copy with these columns as numbers, NaN where a field is empty or the column missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.experiments.results import numbers
    >>> numbers(pd.DataFrame({"a": ["1.5", ""]}), "a")["a"].tolist()
    [1.5, nan]
    """
    frame = frame.copy()
    for name in names:
        column = frame.get(name, math.nan)
        frame[name] = pd.to_numeric(pd.Series(column, index=frame.index), errors="coerce")
    return frame


def budget_means(results: Results) -> pd.DataFrame:
    """Mean ROC AUC by method, noise, cost and share; what does not depend on one, under each.

    Rows on trusted labels alone (share 1) depend neither on noise nor on cost.
    """
    rows = results.settings("budget")
    names = ["method", "noise", "cost", "share", "roc_auc"]
    if rows.empty:
        return pd.DataFrame(columns=names)
    if "cost" not in rows:
        rows["cost"] = math.nan
    if "share" not in rows:
        rows["share"] = math.nan
    share = rows["mode"].map({"cheap": 0.0, "trusted": 1.0})
    rows["share"] = share.fillna(rows["share"]).astype(float).round(6)
    alone = rows["share"] == 1.0
    coordinates = rows.loc[~alone, ["method", "noise", "cost"]].dropna().drop_duplicates()
    one = rows[alone].drop_duplicates(["method", "problem", "seed"])
    one = one.drop(columns=["noise", "cost"]).merge(coordinates, on="method")
    every = pd.concat([rows[~alone], one], ignore_index=True)[names]
    return every.groupby(names[:-1])["roc_auc"].mean().reset_index()
