"""Exact or sparse: which way a fit takes, by rows and options alone, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyfid.learning.fit_options import Options
from polyfid.text import bytes_in_words

#: Fits of no more rows than this are exact; beyond it exact inference costs more from two to ten
#: times as much as inducing points do (``python -m benchmarks scale``).
EXACT_ROWS = 2000
#: Rows that hyper-parameters are tuned on by default, if inference is exact or sparse.
N_TUNING_EXACT, N_TUNING_SPARSE = 3000, 20_000
#: Inducing points of the first process; corrections get one per so many rows, at least so many.
N_INDUCING, ROWS_PER_CORRECTION_POINT, FEWEST_CORRECTION_POINTS = 500, 10, 50

#: Typical figures of a fit: evaluations of the evidence in a climb, steps of inference in one,
#: operations of a step in units of n^3 (exact) or of m^2 per row (sparse), final passes.
_EVALUATIONS, _STEPS, _CUBES = 40, 10, 1.5
_SPARSE_EVALUATIONS, _SPARSE_STEPS, _SQUARES, _PASSES = 20, 7, 7.0, 7
#: Matrices of n by n in memory at a time, and copies of the rows.
_MATRICES, _COPIES = 8, 6.0
#: Floating-point operations per second of one core.
_SPEED = 3e10


@dataclass(frozen=True)
class Cost:
    """Floating-point operations and bytes of memory, roughly."""

    operations: float
    memory: float

    def __str__(self) -> str:
        seconds = self.operations / _SPEED
        if seconds < 100.0:
            time = f"{max(seconds, 1.0):.0f} s"
        else:
            time = f"{seconds / 60:.0f} min" if seconds < 6000.0 else f"{seconds / 3600:.0f} h"
        return f"{time} of one core and {bytes_in_words(self.memory)}"


@dataclass(frozen=True)
class Plan:
    """Which way a fit takes, and why; ``n_inducing`` is per process, None for exact inference."""

    n_inducing: tuple[int, ...] | None
    n_rows: int
    exact: Cost
    sparse: Cost
    reason: str

    @property
    def is_small(self) -> bool:
        return self.n_inducing is None and self.n_rows <= EXACT_ROWS

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
    options: Options, counts: Sequence[int], n_features: int, in_memory: bool = True
) -> Plan:
    """Exact inference or inducing points, for so many rows of each level."""
    given = options.n_inducing
    may_be_sparse = options.may_choose or options.inference == "variational"
    if not in_memory and (given is None or not may_be_sparse):
        raise ValueError(
            "rows in blocks go with inducing points and variational inference only; got "
            f"n_inducing={given!r} and inference={options.inference!r}, use "
            'n_inducing="auto" or a number, and inference="auto" or "variational"'
        )
    per_level = np.asarray(counts, dtype=float)
    n = float(per_level.sum())
    if given != "auto":
        sparsely, reason = given is not None, "as n_inducing says"
    elif not in_memory:
        sparsely, reason = True, "rows are read in blocks"
    elif not may_be_sparse:
        sparsely, reason = False, "inducing points go with variational inference only"
    elif n <= EXACT_ROWS:
        sparsely, reason = False, "few rows"
    else:
        sparsely, reason = True, f"more than {EXACT_ROWS} rows"
    sizes = _sizes(given, per_level, options.support)
    return Plan(
        sizes if sparsely else None,
        int(n),
        _exact_cost(per_level, options),
        _sparse_cost(per_level, options, sizes, n_features),
        reason,
    )


def _sizes(
    given: int | tuple[int, ...] | str | None,
    counts: NDArray[np.float64],
    support: NDArray[np.bool_],
) -> tuple[int, ...]:
    """Inducing points of each process: no more than there are rows that depend on it."""
    rows = (counts @ support).astype(int)
    if given is None or isinstance(given, str):
        # A process that all levels depend on is as rich as its rows; a correction has few of them.
        few = np.clip(rows // ROWS_PER_CORRECTION_POINT, FEWEST_CORRECTION_POINTS, N_INDUCING)
        wanted = np.where(support[0], N_INDUCING, few)
    else:
        wanted = np.broadcast_to(given, rows.shape)
    return tuple(np.minimum(wanted, rows).tolist())


def _n_tuned(counts: NDArray[np.float64], options: Options, default: int) -> float:
    size = options.tuning_size(default)
    rows = counts if isinstance(size, tuple) else counts.sum()
    return float(np.sum(rows if size is None else np.minimum(rows, size)))


def _exact_cost(counts: NDArray[np.float64], options: Options) -> Cost:
    n, tuned = counts.sum(), _n_tuned(counts, options, N_TUNING_EXACT)
    operations = _CUBES * _STEPS * (_EVALUATIONS * tuned**3 + n**3)
    return Cost(operations, _MATRICES * 8.0 * n * n)


def _sparse_cost(
    counts: NDArray[np.float64], options: Options, sizes: tuple[int, ...], n_features: int
) -> Cost:
    n, m = counts.sum(), float(sum(sizes))
    width = options.support @ np.array(sizes, dtype=float)  # inducing points per row of each level
    one_pass = _SQUARES * float(counts @ width**2)
    tuned = _n_tuned(counts, options, N_TUNING_SPARSE) / n
    start = _CUBES * _STEPS * _EVALUATIONS * min(n, 1500.0) ** 3
    climb = _SPARSE_EVALUATIONS * _SPARSE_STEPS * tuned
    memory = 8.0 * (_COPIES * n * (n_features + 4) + 20.0 * m * m + 3.0 * 2048 * m)
    return Cost(one_pass * (climb + _PASSES) + start, memory)
