"""Averages: means over splits and data sets, their intervals, and which methods are best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import stdtrit

from experiments.paper import CLOSE, PAPER, Column, Method

T = TypeVar("T")

LEVEL = 0.95  # of intervals
ROUNDING = 0.0005  # the paper gives three decimals
_EPS = 1e-9  # so that 0.71 counts as within 0.01 of 0.72


class Estimate(NamedTuple):
    """A mean and half of its 95 % interval, which is NaN if there are too few values."""

    mean: float
    half: float


def mean_of(strata: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> Estimate:
    r"""Weighted mean of the means of strata, and half of its interval.

    The strata are fixed and only the values within them are random, so the variance is
    :math:`\sum_s w_s^2 s_s^2 / n_s`, with Welch's and Satterthwaite's degrees of freedom. One
    stratum gives the ordinary interval of Student's t.

    Parameters
    ----------
    strata : sequence of sequences of float
        The values; no stratum is empty.
    weights : sequence of float, optional
        One per stratum, with sum 1. Default: equal weights.

    Examples
    --------
    >>> from experiments.averages import mean_of
    >>> mean, half = mean_of([[0.7, 0.8, 0.9]])
    >>> f"{mean:.3f} ± {half:.3f}"
    '0.800 ± 0.248'
    """
    if weights is None:
        weights = [1.0 / len(strata)] * len(strata)
    mean = sum(w * float(np.mean(values)) for w, values in zip(weights, strata, strict=True))
    if any(len(values) < 2 for values in strata):
        return Estimate(mean, math.nan)
    terms = [
        (w**2 * float(np.var(values, ddof=1)) / len(values), len(values) - 1)
        for w, values in zip(weights, strata, strict=True)
    ]
    variance = sum(term for term, _ in terms)
    if variance == 0.0:
        return Estimate(mean, 0.0)
    freedom = variance**2 / sum(term**2 / n for term, n in terms)
    return Estimate(mean, float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance))


@dataclass(frozen=True)
class Mean:
    """The mean of a method in a column.

    Attributes
    ----------
    mean, half : float
        The mean, each data set with the same weight, and half of its interval: over random splits
        if all data sets of the paper are included, over data sets if only some are.
    first : float
        The mean over the first splits of each set, as many as the paper has.
    reach : float
        How far from the mean the paper's figure may lie by chance: its own splits are random too.
    n, n_failed : int
        Splits included, and splits that failed.

    Examples
    --------
    >>> from experiments.averages import Mean
    >>> from experiments.paper import COLUMNS
    >>> mean = Mean.of({"diabetes": [0.79, 0.81, 0.80]}, COLUMNS[8])
    >>> f"{mean.mean:.3f} ± {mean.half:.3f}", mean.compare(0.805), mean.compare(0.9)
    ('0.800 ± 0.025', 'within', 'off')
    """

    mean: float
    half: float
    first: float
    reach: float
    n: int
    n_failed: int

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]], column: Column) -> Mean:
        """The mean of the values of each data set, in the order of splits; NaN is a failure."""
        finite = {p: [x for x in v if math.isfinite(x)] for p, v in values.items()}
        strata = [v for v in finite.values() if v]
        n = sum(map(len, strata))
        n_failed = sum(map(len, values.values())) - n
        if not strata:
            return cls(math.nan, math.nan, math.nan, math.nan, 0, n_failed)
        mean, half = mean_of(strata)
        # The same variance again, for the paper's own number of splits.
        reach = half * math.sqrt(1.0 + float(np.mean([len(v) for v in strata])) / column.runs)
        if not all(finite.get(problem) for problem in column.problems):
            # Which sets are included changes the mean more than the splits do. The paper averages
            # these sets and others, so its figure is no further off than the mean of all sets.
            half = reach = mean_of([[float(np.mean(v)) for v in strata]]).half
        first = float(np.mean([np.mean(v[: column.runs]) for v in strata]))
        return cls(mean, half, first, reach, n, n_failed)

    def compare(self, paper: float) -> str:
        """Where the paper's figure lies: "within" the interval, "near" it, "off", or "" if unknown.

        "Near" is outside the interval, but not further than `reach`.
        """
        if math.isnan(self.half) or math.isnan(paper):
            return ""
        distance = abs(self.mean - paper) - ROUNDING - _EPS
        if distance <= self.half:
            return "within"
        return "near" if distance <= self.reach else "off"


def close_to_best(values: Mapping[T, float], sign: int) -> set[T]:
    """The keys whose value is the best, or within 0.01 of it.

    Examples
    --------
    >>> from experiments.averages import close_to_best
    >>> sorted(close_to_best({"a": 0.72, "b": 0.71, "c": 0.70}, sign=1))
    ['a', 'b']
    """
    finite = {key: sign * value for key, value in values.items() if math.isfinite(value)}
    best = max(finite.values(), default=0.0)
    return {key for key, value in finite.items() if value >= best - CLOSE - _EPS}


def paper_best(column: Column) -> set[Method]:
    """The methods that are best or within 0.01 of it by the paper's own figures."""
    return close_to_best({m: v for (where, m), v in PAPER.items() if where == column}, sign=1)
