"""What to fit, and which way: the estimator's parameters as one value, and exact or sparse.

The way depends on rows and options alone, so that the same data get the same algorithm anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.kernels import Kernel, Pairs
from polyfid.model.likelihoods import Likelihood, Logit, NoisyLogit, Parts
from polyfid.model.numbers import (
    PLAUSIBLE_NOISE,
    TYPICAL,
    Gaussian,
    Numbers,
    NumberScale,
    Student,
)
from polyfid.model.prior import Autoregressive, RhoPrior
from polyfid.rows import Rows
from polyfid.text import bytes_in_words

#: Fits of no more rows than this are exact; beyond it exact inference costs more from two to ten
#: times as much as inducing points do (``python -m benchmarks scale``).
EXACT_ROWS = 2000
#: Rows that hyper-parameters are tuned on by default: if inference is exact and the structure given
#: or learnt, and if it is sparse.
N_TUNING_EXACT, N_TUNING_LEARNT, N_TUNING_SPARSE = 3000, 1000, 20_000
#: Inducing points of the first process; corrections get one per so many rows, at least so many.
N_INDUCING, ROWS_PER_CORRECTION_POINT, FEWEST_CORRECTION_POINTS = 500, 10, 50

#: Levels of at least so many rows may get a boosted mean, and Gaussian processes then see at most
#: so many rows in all. The fewer of a level's rows they see, the fewer inducing points its function
#: needs, down to so many.
N_BOOSTED, N_ROWS_BOOSTED, FEWEST_BOOSTED_POINTS = 1000, 20_000, 100
#: Rows that trees learn from at most, if not all rows are in memory, and their memory in bytes.
N_ROWS_TREES, TREES_BYTES = 1_000_000, 256e6

#: Prior standard deviation of rho between numbers and classes. Where a number decides the class,
#: rho is large; chosen on other draws than those of ``python -m benchmarks numeric``.
RHO_OF_NUMBERS = 8.0

#: Typical figures of a fit: evaluations of the evidence in a climb, steps of inference in one,
#: operations of a step in units of n^3 (exact) or of m^2 per row (sparse), final passes.
_EVALUATIONS, _STEPS, _CUBES = 40, 10, 1.5
_SPARSE_EVALUATIONS, _SPARSE_STEPS, _SQUARES, _PASSES = 20, 7, 7.0, 7
#: Matrices of n by n in memory at a time, and copies of the rows.
_MATRICES, _COPIES = 8, 6.0
#: Floating-point operations per second of one core.
_SPEED = 3e10


@dataclass(frozen=True)
class Options:
    """The estimator's parameters, checked, for so many levels and classes; see its docstring.

    ``kernels`` is None to learn the structure. ``mean`` says whether structures have a boosted mean
    ("auto": if that is better), and ``boosted`` which levels have margins. ``links`` are ties of
    the levels to be tried besides co-kriging; ``may_choose`` says that the scheme was left open;
    ``n_tuning`` may be per level; ``n_boosted`` are inducing points beside trees; ``brief`` says
    that tuning takes a few steps only. ``numeric`` are the levels that hold numbers; ``noise`` has
    the error variance of each level where it is given. Fields without repr do not count for
    `is_like`.
    """

    n_levels: int
    n_classes: int
    kernels: tuple[Kernel, ...] | None = None
    rho: tuple[float, ...] = ()
    rho_bounds: tuple[float, float] | str = (-10.0, 10.0)
    coupling: str = "autoregressive"
    inference: str = "ep"
    may_choose: bool = True
    weak_prior: bool = True
    optimise: bool = True
    standardize: bool = True
    refine_inducing: bool = True
    label_noise: str | tuple[float, ...] | None = None
    numeric: tuple[int, ...] = ()
    noise: tuple[float | None, ...] = ()
    warp: bool = False
    outliers: bool = False
    mean: str | None = "auto"
    links: tuple[str, ...] = ("deviating", "same", "apart", "flips")
    n_inducing: Literal["auto"] | int | tuple[int, ...] | None = "auto"
    n_tuning: Literal["auto"] | int | tuple[int | None, ...] | None = field(
        default="auto", repr=False
    )
    n_boosted: tuple[int, ...] = field(default=(), repr=False)
    n_restarts: int = field(default=0, repr=False)
    max_iter: int = field(default=200, repr=False)
    tol: float = field(default=1e-5, repr=False)
    n_jobs: int | None = field(default=None, repr=False)
    boosted: tuple[int, ...] = field(default=(), repr=False)
    brief: bool = field(default=False, repr=False)

    def is_like(self, other: Options) -> bool:
        """Whether a fit with these options may go on from one with the others."""
        return repr(self) == repr(other)  # kernels may hold arrays, which have no one truth value

    @property
    def targets(self) -> Sequence[int]:
        """The classes that get a model: the second of two, or each against the rest."""
        return (1,) if self.n_classes == 2 else range(self.n_classes)

    @property
    def learns_structure(self) -> bool:
        """Whether structures are compared, which takes a hyper-prior and labels fit for Laplace."""
        given = self.kernels is not None or not self.is_log_concave
        return self.optimise and self.weak_prior and not given

    @property
    def rho_prior(self) -> RhoPrior:
        """Mean and spread of rho; between numbers and classes either sign is as plausible."""
        is_numeric = np.isin(np.arange(self.n_levels), self.numeric)
        mixed = is_numeric[1:] != is_numeric[:-1]
        mean, sd = Autoregressive.rho_prior
        if not mixed.any():
            return mean, sd
        of_steps = np.where(mixed, 0.0, mean), np.where(mixed, RHO_OF_NUMBERS, sd)
        return tuple(of_steps[0].tolist()), tuple(of_steps[1].tolist())

    def large_levels(self, counts: Sequence[int]) -> tuple[int, ...]:
        """The levels that may get a boosted mean, given the rows of each.

        The top level alone is one only if its Gaussian process cannot see all of its rows.
        """
        if self.mean is None or (self.mean == "auto" and not self.learns_structure):
            return ()
        classes = [t for t in range(self.n_levels) if t not in self.numeric]
        large = tuple(t for t in classes if counts[t] >= N_BOOSTED)
        alone = large == (self.n_levels - 1,) and self.n_levels > 1
        return () if alone and counts[-1] < N_ROWS_BOOSTED else large

    @property
    def n_tuning_exact(self) -> int:
        """Rows to tune on by default if inference is exact."""
        return N_TUNING_LEARNT if self.learns_structure else N_TUNING_EXACT

    @property
    def support(self) -> NDArray[np.bool_]:
        """Which levels depend on which latent processes, (n_levels, n_processes)."""
        n_processes = self.n_levels if self.kernels is None else len(self.kernels)
        if self.coupling == "coregional":
            return np.ones((self.n_levels, n_processes), dtype=bool)
        return np.tri(self.n_levels, n_processes, dtype=bool)

    def tuning_size(self, default: int) -> int | tuple[int, ...] | None:
        """Rows to tune on at most, in all or per level; None: all."""
        if self.n_tuning == "auto":
            return default
        if isinstance(self.n_tuning, tuple):
            return tuple(default if n is None else n for n in self.n_tuning)
        return self.n_tuning

    def tells_rows_apart(self, n_features: int) -> bool:
        """Whether a kernel gives repeats of a point latent values of their own, as noise does."""
        point = np.ones((1, n_features))
        same, other = Pairs(point, point, 0), Pairs(point, point)
        kernels = [k.for_features(n_features) for k in self.kernels or ()]
        return any(not np.array_equal(k.evaluate(same), k.evaluate(other)) for k in kernels)

    def suited_to(self, rows: Rows) -> Options:
        """The options with a scheme for fractions of noisy labels: EP has no moments of them."""
        fractions = not self.is_log_concave and bool((rows.weight < 1.0).any())
        return replace(self, inference="variational") if fractions and self.may_choose else self

    @property
    def is_log_concave(self) -> bool:
        """Whether all likelihoods are log-concave."""
        return self.label_noise is None and not self.outliers


@dataclass(frozen=True)
class Target:
    """From rows to their likelihood under a model of one class; annotators' rates may be free."""

    positive: int
    n_levels: int
    n_classes: int
    label_noise: str | tuple[float, ...] | None
    free: NDArray[np.bool_] | None = None
    knows_truth: bool = False  # labels of the top level are true for repeats of their rows
    numbers: tuple[Numbers, ...] = ()  # of each numeric level: its likelihood without rows

    @classmethod
    def of(cls, options: Options, rows: Rows, positive: int) -> Target:
        """The target of a class; all annotators must be among the rows."""
        free, numbers = None, tuple(_numbers(options, rows, t) for t in options.numeric)
        labelled = ~np.isin(rows.level, options.numeric)
        if options.label_noise == "annotator":
            if rows.annotator[labelled].min(initial=0) < 0:
                raise ValueError(
                    'label_noise="annotator" needs to know who gave each label; '
                    "pass fit(..., annotator=...)"
                )
            untrusted = (rows.level < options.n_levels - 1) | (options.n_levels == 1)
            untrusted &= labelled
            free = np.isin(np.arange(rows.annotator.max() + 1), rows.annotator[untrusted])
        own = options.n_levels, options.n_classes, options.label_noise, free
        return cls(positive, *own, numbers=numbers)

    def __call__(self, rows: Rows) -> Likelihood:
        if not self.numbers:
            return self._of_labels(rows)
        part = np.zeros(len(rows), dtype=np.intp)
        for k, of_level in enumerate(self.numbers, 1):
            part[rows.level == of_level.level] = k
        assert rows.value is not None
        parts: list[Likelihood] = [self._of_labels(rows.take(np.flatnonzero(part == 0)))]
        for k, of_level in enumerate(self.numbers, 1):
            own = part == k
            parts.append(replace(of_level, value=rows.value[own], weight=rows.weight[own]))
        return Parts(tuple(parts), part)

    def _of_labels(self, rows: Rows) -> Likelihood:
        """The likelihood of rows that have labels."""
        y = np.where(rows.y == self.positive, 1.0, -1.0)
        if self.label_noise is None:
            return Logit(y, rows.weight)
        if self.label_noise == "fidelity":
            learnt = np.append(np.full(self.n_levels - 1, 0.2), 0.0)
            learnt[[one.level for one in self.numbers]] = 0.0
            truth = _truth(rows, y, self.n_levels - 1) if self.knows_truth else None
            how = learnt, learnt > 0.0, truth
            return NoisyLogit.from_flip_rates(y, rows.weight, rows.level, *how)
        if self.free is not None:
            # Rows of the top level form a group of their own that never errs.
            trusted = (rows.level == self.n_levels - 1) & (self.n_levels > 1)
            group = np.where(trusted, len(self.free), rows.annotator)
            rates = np.append(np.full(len(self.free), 0.8), 1.0)
            free = np.append(self.free, False)
            return NoisyLogit(y, rows.weight, group, rates, rates.copy(), free)
        flips = np.array(self.label_noise, dtype=float)
        if self.n_classes == 2:
            return NoisyLogit.from_flip_rates(y, rows.weight, rows.level, flips)
        # A label that is flipped turns into each of the other classes with the same probability.
        specificity = 1.0 - flips / (self.n_classes - 1)
        fixed = np.zeros(len(flips), dtype=bool)
        return NoisyLogit(y, rows.weight, rows.level, 1.0 - flips, specificity, fixed)


def _numbers(options: Options, rows: Rows, level: int) -> Numbers:
    """The likelihood of a numeric level, scaled by its rows, without any."""
    assert rows.value is not None
    own = rows.level == level
    scale = NumberScale.of(rows.value[own], rows.weight[own])
    kind = Student if options.outliers else Gaussian
    none, given = np.empty(0), options.noise[level]
    noise = TYPICAL * PLAUSIBLE_NOISE
    if given is not None:  # a variance; that of a number whose error has scale 1 is divided out
        unit = kind(none, none, level, scale, 1.0).noise_variance
        noise = float(np.sqrt(given / unit))
    return kind(none, none, level, scale, noise, free=given is None, warps=options.warp)


def _truth(rows: Rows, y: Array, top: int) -> Array:
    """Labels of the top level for rows of lower levels that repeat its rows, else 0.

    Rows of the top level, and repeats of rows of which it is not sure, have 0 too.
    """
    _, point = np.unique(rows.x, axis=0, return_inverse=True)
    trusted = rows.level == top
    n = np.bincount(point.ravel()[trusted], minlength=point.max() + 1)
    total = np.bincount(point.ravel()[trusted], y[trusted], minlength=len(n))
    sure = np.where(np.abs(total) == n, np.sign(total), 0.0)
    return np.where(trusted, 0.0, sure[point.ravel()])


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
    """Which way a fit takes, and why; ``n_inducing`` is per process, None for exact inference.

    ``n_boosted`` are inducing points beside trees.
    """

    n_inducing: tuple[int, ...] | None
    n_boosted: tuple[int, ...]
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
        if self.n_boosted != self.n_inducing:
            beside = " + ".join(map(str, self.n_boosted))
            points = f"{beside} (beside trees, where more gain nothing) and {points}"
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
    if not in_memory and given is None:
        raise ValueError(
            "n_inducing=None asks for exact inference, and rows in blocks are not in memory; "
            'use n_inducing="auto" or a number'
        )
    if not in_memory and not may_be_sparse:
        raise ValueError(
            f"rows in blocks go with variational inference only; use inference="
            f'"variational" or "auto" instead of {options.inference!r}'
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
    sizes = _sizes(given, per_level, options)
    costs = _costs(per_level, options, sizes, n_features)
    beside_trees = _fewer_points(options, sizes, per_level)
    return Plan(sizes if sparsely else None, beside_trees, int(n), *costs, reason)


def _sizes(
    given: int | tuple[int, ...] | str | None, counts: NDArray[np.float64], options: Options
) -> tuple[int, ...]:
    """Inducing points of each process: no more than there are rows that depend on it."""
    support = options.support
    rows = (counts @ support).astype(int)
    if given is None or isinstance(given, str):
        # A process that all levels depend on is as rich as its rows; a correction has few of them.
        few = np.clip(rows // ROWS_PER_CORRECTION_POINT, FEWEST_CORRECTION_POINTS, N_INDUCING)
        wanted = np.where(support[0], N_INDUCING, few)
    else:
        wanted = np.broadcast_to(given, rows.shape)
    return tuple(np.minimum(wanted, rows).tolist())


def _fewer_points(
    options: Options, sizes: tuple[int, ...], counts: NDArray[np.float64]
) -> tuple[int, ...]:
    """Inducing points of each process where trees carry the functions of large levels."""
    large = options.large_levels(counts.astype(int).tolist())
    if options.n_inducing != "auto" or options.coupling != "autoregressive":
        return sizes
    of_trees = dict.fromkeys(large, FEWEST_BOOSTED_POINTS)
    for t in large:
        of_trees[t] = max(int(N_INDUCING * N_ROWS_BOOSTED / counts[t]), FEWEST_BOOSTED_POINTS)
    return tuple(min(m, of_trees.get(t, m)) for t, m in enumerate(sizes))


def _n_tuned(counts: NDArray[np.float64], options: Options, default: int) -> float:
    size = options.tuning_size(default)
    rows = counts if isinstance(size, tuple) else counts.sum()
    return float(np.sum(rows if size is None else np.minimum(rows, size)))


def _costs(
    counts: NDArray[np.float64], options: Options, sizes: tuple[int, ...], n_features: int
) -> tuple[Cost, Cost]:
    """What exact inference and inducing points cost."""
    n, m = counts.sum(), float(sum(sizes))
    cube = _CUBES * _STEPS
    exact = cube * (_EVALUATIONS * _n_tuned(counts, options, options.n_tuning_exact) ** 3 + n**3)
    width = options.support @ np.array(sizes, dtype=float)  # inducing points per row of each level
    one_pass = _SQUARES * float(counts @ width**2)
    start = cube * _EVALUATIONS * min(n, 1500.0) ** 3
    tuned = _n_tuned(counts, options, N_TUNING_SPARSE) / n
    n_passes = _SPARSE_EVALUATIONS * _SPARSE_STEPS * tuned + _PASSES
    memory = 8.0 * (_COPIES * n * (n_features + 4) + 20.0 * m * m + 3.0 * 2048 * m)
    return Cost(exact, _MATRICES * 8.0 * n * n), Cost(one_pass * n_passes + start, memory)
