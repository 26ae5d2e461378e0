"""Exact or sparse: what a fit of so many rows costs either way, and which one it is to be."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import joblib
import numpy as np
from numpy.typing import NDArray

from polyfid.text import bytes_in_words

#: Inducing points of the first process, and of corrections: one for so many rows that see them.
N_INDUCING, ROWS_A_CORRECTION_POINT = 500, 10
FEWEST_CORRECTION_POINTS = 50
#: Rows that hyper-parameters are tuned on by default, if inference is exact or sparse.
N_TUNING_EXACT, N_TUNING_SPARSE = 3000, 20_000
#: Fits of no more rows than this are exact, whatever an estimate says.
ALWAYS_EXACT = 2000

#: Evaluations of the evidence in a climb, steps of inference in one, and operations of a step in
#: units of n^3 (exact), or of m^2 a row (sparse): typical figures.
_EVALUATIONS, _STEPS, _CUBES = 40, 10, 1.5
_SPARSE_EVALUATIONS, _SPARSE_STEPS, _SQUARES, _PASSES = 20, 7, 7.0, 7
#: Matrices of n by n in memory at a time, and copies of the rows.
_MATRICES, _COPIES = 8, 6.0


@dataclass(frozen=True)
class Cost:
    """Floating-point operations and bytes of memory, roughly."""

    operations: float
    memory: float
    threads: int = 1

    def __str__(self) -> str:
        seconds = self.operations / (_speed() * self.threads)
        return f"{_time(seconds)} and {bytes_in_words(self.memory)}"


@dataclass(frozen=True)
class Plan:
    """What a fit will do, and why.

    Attributes
    ----------
    n_inducing : tuple of int, or None
        Inducing points of each latent process, at most; None: exact inference.
    n_rows : int
    exact, sparse : Cost
        Of the two ways.
    reason : str

    Examples
    --------
    >>> from polyfid.learning.plan import make_plan
    >>> make_plan("auto", [225, 75], [[True, False], [True, True]], 5).n_inducing is None
    True
    >>> make_plan("auto", [1_000_000, 10_000], [[True, False], [True, True]], 5).n_inducing
    (500, 500)
    """

    n_inducing: tuple[int, ...] | None
    n_rows: int
    exact: Cost
    sparse: Cost
    reason: str

    @property
    def is_small(self) -> bool:
        """Whether there is nothing to plan."""
        return self.n_inducing is None and self.n_rows <= ALWAYS_EXACT

    def __str__(self) -> str:
        if self.is_small:
            return f"exact ({self.reason})"
        if self.n_inducing is None:
            return f"exact, about {self.exact} ({self.reason})"
        points = " + ".join(map(str, self.n_inducing))
        return (
            f"{points} inducing points, about {self.sparse}; exact inference would take about "
            f"{self.exact} ({self.reason})"
        )


def make_plan(
    n_inducing: str | int | Sequence[int] | None,
    rows: Sequence[int] | NDArray[np.intp],
    support: Sequence[Sequence[bool]] | NDArray[np.bool_],
    n_features: int,
    n_tuning: int | None = None,
    may_be_sparse: bool = True,
    in_memory: bool = True,
) -> Plan:
    """Decide how to fit.

    Parameters
    ----------
    n_inducing : as the estimator takes it.
    rows : rows of each level.
    support : which processes each level sees, (n_levels, n_processes).
    n_features : columns of the rows.
    n_tuning : rows that hyper-parameters are tuned on, if that is given.
    may_be_sparse : whether the scheme of inference allows inducing points.
    in_memory : whether the rows are, so that exact inference is possible at all.
    """
    counts = np.asarray(rows, dtype=float)
    n = float(counts.sum())
    sizes = _sizes(n_inducing, counts, np.asarray(support, dtype=bool))
    exact = _exact_cost(n, n_tuning)
    sparse = _sparse_cost(counts, np.asarray(support, dtype=bool), sizes, n_features, n_tuning)

    def plan(sparsely: bool, reason: str) -> Plan:
        return Plan(sizes if sparsely else None, int(n), exact, sparse, reason)

    if n_inducing is None:
        return plan(False, "as n_inducing says")
    if n_inducing != "auto":
        return plan(True, "as n_inducing says")
    if not in_memory:
        return plan(True, "rows are read in blocks")
    if not may_be_sparse:
        return plan(False, "inducing points go with variational inference only")
    if n <= ALWAYS_EXACT:
        return plan(False, "few rows")
    if exact.memory > 0.7 * _memory():
        return plan(True, "exact inference would not fit in memory")
    cheaper = sparse.operations < exact.operations
    return plan(cheaper, "the cheaper way")


def _sizes(
    given: object, counts: NDArray[np.float64], support: NDArray[np.bool_]
) -> tuple[int, ...]:
    """Inducing points of each process: no more than there are rows that see it."""
    see = (counts @ support).astype(int)
    if isinstance(given, int | np.integer):
        wanted = np.full(len(see), int(given))
    elif isinstance(given, Sequence) and not isinstance(given, str):
        wanted = np.array([int(m) for m in given])
    else:
        # A process that all levels see is as rich as its rows; a correction has few of them.
        few = np.clip(see // ROWS_A_CORRECTION_POINT, FEWEST_CORRECTION_POINTS, N_INDUCING)
        wanted = np.where(support[0], N_INDUCING, few)
    return tuple(np.minimum(wanted, see).tolist())


def _exact_cost(n: float, n_tuning: int | None) -> Cost:
    tuned = min(n, N_TUNING_EXACT if n_tuning is None else n_tuning)
    operations = _CUBES * _STEPS * (_EVALUATIONS * tuned**3 + n**3)
    return Cost(operations, _MATRICES * 8.0 * n * n)


def _sparse_cost(
    counts: NDArray[np.float64],
    support: NDArray[np.bool_],
    sizes: tuple[int, ...],
    n_features: int,
    n_tuning: int | None,
) -> Cost:
    n, threads = counts.sum(), joblib.cpu_count()
    width = support @ np.array(sizes, dtype=float)  # of the features of a row of each level
    a_pass = _SQUARES * float(counts @ width**2)
    tuned = min(n, N_TUNING_SPARSE if n_tuning is None else n_tuning) / n
    few = _CUBES * _STEPS * _EVALUATIONS * min(n, 1500.0) ** 3
    climb = _SPARSE_EVALUATIONS * _SPARSE_STEPS * tuned
    m = float(sum(sizes))
    memory = 8.0 * (_COPIES * n * (n_features + 4) + 20.0 * m * m + 3.0 * threads * 2048 * m)
    return Cost(a_pass * (climb + _PASSES) + few, memory, threads)


@lru_cache(maxsize=1)
def _speed() -> float:
    """Operations a second of one thread of matrix products, measured once."""
    a = np.ones((384, 384))
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2.0 * len(a) ** 3 / max(best, 1e-6)


def _memory() -> float:
    """Bytes of memory that are free; without an answer, as many as small machines have."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 4e9


def _time(seconds: float) -> str:
    if seconds < 1.0:
        return "a second"
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000.0 else f"{seconds / 3600:.0f} h"
