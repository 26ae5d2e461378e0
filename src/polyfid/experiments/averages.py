"""Averages: means over splits and data sets, their intervals, and who is best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import stdtrit

from polyfid.experiments.paper import CLOSE, PAPER, Column

__all__ = ["Estimate", "Mean", "close_to_best", "mean_of", "paper_best"]

LEVEL = 0.95  # of intervals
ROUNDING = 0.0005  # the paper gives three decimals
_EPS = 1e-9  # so that 0.71 counts as within 0.01 of 0.72


class Estimate(NamedTuple):
    """A mean and half of its 95 % interval, NaN where there are too few values for one."""

    mean: float
    half: float


def mean_of(strata: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> Estimate:
    r"""Weighted mean of the means of strata, and half of its interval.

    The strata are taken as given and only the values within them as drawn, so the variance is
    :math:`\sum_s w_s^2 s_s^2 / n_s`, with Welch's and Satterthwaite's degrees of freedom. One
    stratum gives the ordinary interval of Student's t.

    Parameters
    ----------
    strata : sequence of sequences of float
        The values, none of them empty.
    weights : sequence of float, optional
        One a stratum, with the sum 1; equal ones by default.

    Examples
    --------
    >>> from polyfid.experiments.averages import mean_of
    >>> mean, half = mean_of([[0.7, 0.8, 0.9]])
    >>> f"{mean:.3f} ± {half:.3f}"
    '0.800 ± 0.248'
    """
    if weights is None:
        weights = [1.0 / len(strata)] * len(strata)
    mean = sum(w * float(np.mean(values)) for w, values in zip(weights, strata, strict=True))
    if any(len(values) < 2 for values in strata):
        return Estimate(mean, math.nan)
    parts = [
        (w**2 * float(np.var(values, ddof=1)) / len(values), len(values) - 1)
        for w, values in zip(weights, strata, strict=True)
    ]
    variance = sum(part for part, _ in parts)
    if variance == 0.0:
        return Estimate(mean, 0.0)
    freedom = variance**2 / sum(part**2 / n for part, n in parts)
    return Estimate(mean, float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance))


@dataclass(frozen=True)
class Mean:
    """A cell of a table: what a method has in a column.

    Attributes
    ----------
    mean, half : float
        The mean, each data set with the same weight, and half of its interval: over the draws of
        rows where all data sets of the paper went in, over data sets where only some did.
    first : float
        The mean over as many splits of each set as the paper has, the first ones.
    reach : float
        How far from the mean the paper's figure may lie: its own splits scatter too.
    n, n_sets, n_failed : int
        Splits and sets that went in, and splits that failed.

    Examples
    --------
    >>> from polyfid.experiments.paper import COLUMNS
    >>> from polyfid.experiments.averages import Mean
    >>> mean = Mean.of({"diabetes": [0.79, 0.81, 0.80]}, COLUMNS[8])
    >>> f"{mean.mean:.3f} ± {mean.half:.3f}", mean.compare(0.805), mean.compare(0.9)
    ('0.800 ± 0.025', 'within', 'off')
    """

    mean: float
    half: float
    first: float
    reach: float
    n: int
    n_sets: int
    n_failed: int

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]], column: Column) -> Self:
        """The mean of the values of each data set, in the order of their splits.

        Values that are not numbers count as failed.
        """
        finite = {p: [x for x in v if math.isfinite(x)] for p, v in values.items()}
        strata = [v for v in finite.values() if v]
        n = sum(map(len, strata))
        n_failed = sum(map(len, values.values())) - n
        if not strata:
            return cls(math.nan, math.nan, math.nan, math.nan, 0, 0, n_failed)
        drawn = mean_of(strata)
        if not all(finite.get(problem) for problem in column.problems):
            # The choice of sets moves the mean more than the draws of rows do. The paper averages
            # these sets and others, so its figure is no further off than the mean of all sets.
            over_sets = mean_of([[float(np.mean(v)) for v in strata]])
            half = reach = over_sets.half
        else:
            half = drawn.half
            # The same variance again, for the paper's own number of splits.
            ours = float(np.mean([len(v) for v in strata]))
            reach = half * math.sqrt(1.0 + ours / column.runs)
        first = float(np.mean([np.mean(v[: column.runs]) for v in strata]))
        return cls(drawn.mean, half, first, reach, n, len(strata), n_failed)

    def compare(self, paper: float) -> str:
        """Where the paper's figure lies: "within" the interval, "near" it, "off", or ""."""
        if math.isnan(self.half):
            return ""
        distance = abs(self.mean - paper) - ROUNDING - _EPS
        if distance <= self.half:
            return "within"
        return "near" if distance <= self.reach else "off"


def close_to_best(values: Mapping[Any, float], sign: int) -> set[Any]:
    """The keys whose value is the best, or within 0.01 of it.

    Examples
    --------
    >>> from polyfid.experiments.averages import close_to_best
    >>> sorted(close_to_best({"a": 0.72, "b": 0.71, "c": 0.70}, sign=1))
    ['a', 'b']
    """
    finite = {key: sign * value for key, value in values.items() if math.isfinite(value)}
    if not finite:
        return set()
    best = max(finite.values())
    return {key for key, value in finite.items() if value >= best - CLOSE - _EPS}


def paper_best(column: Column) -> set[tuple[str, str]]:
    """The methods that are best or within 0.01 of it by the paper's own figures.

    Examples
    --------
    >>> from polyfid.experiments.paper import COLUMNS
    >>> from polyfid.experiments.averages import paper_best
    >>> sum(("mfgpc", "multi") in paper_best(column) for column in COLUMNS)
    14
    """
    where = (column.group, column.name, column.noise)
    return close_to_best({key[3:]: v for key, v in PAPER.items() if key[:3] == where}, sign=1)
