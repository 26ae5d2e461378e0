"""The climb to the hyper-parameters of the best evidence, from several starts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import Bounds, minimize
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from polyfid.arrays import Array
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.evidence import Value

#: Iterations of every start before the hopeless ones are dropped.
_HEAT_ITER = 5
#: The cost of parameters under which there is no posterior.
_REFUSED = 1e25


class Objective(Protocol):
    """A function to climb: an evidence, exact or a bound; ``warm`` is where inference starts."""

    warm: Any

    @property
    def theta(self) -> Array: ...

    @property
    def bounds(self) -> Array: ...

    @property
    def theta_names(self) -> tuple[str, ...]: ...

    def __call__(self, theta: Array) -> Value: ...


@dataclass(frozen=True)
class Climb:
    """One ascent: where it started, where it ended, and how it went."""

    start: Array
    theta: Array
    objective: float
    n_evaluations: int
    converged: bool
    message: str
    inner_failures: int


@dataclass(frozen=True)
class Optimum:
    """The best hyper-parameters found, and all climbs, best first."""

    theta: Array
    objective: float
    climbs: tuple[Climb, ...]
    at_bounds: tuple[str, ...]

    @property
    def best(self) -> Climb:
        return self.climbs[0]

    @property
    def converged(self) -> bool:
        return self.best.converged

    @property
    def n_evaluations(self) -> int:
        return sum(c.n_evaluations for c in self.climbs)

    def __str__(self) -> str:
        state = "converged" if self.converged else f"not converged ({self.best.message})"
        return (
            f"{state}: objective {self.objective:.4f}, best of {len(self.climbs)} "
            f"start{'s' * (len(self.climbs) != 1)}, {self.n_evaluations} evaluations"
        )


#: Log density of parameters before the labels, and its gradient.
LogPrior = Callable[[Array], tuple[float, Array]]


def maximise(
    evidence: Objective,
    hyperprior: LogPrior,
    starts: Sequence[Array],
    max_iter: int = 200,
    tol: float = 1e-5,
    n_jobs: int | None = None,
    hopeless: float = 3.0,
) -> Optimum:
    """Maximise log evidence plus log hyper-prior by L-BFGS-B from several starts.

    All starts climb a little; those behind the best by more than is hopeless, or arrived where
    another one is, are dropped, and the rest climb to the top.
    """
    climber = _Climber(evidence, hyperprior, tol)
    bounds = evidence.bounds
    starts = [np.clip(s, bounds[:, 0], bounds[:, 1]) for s in starts]
    if len(bounds) == 0:
        climbs = [climber.climb(starts[0], 0)]
    elif len(starts) == 1:
        climbs = [climber.climb(starts[0], max_iter)]
    else:
        pool = Parallel(n_jobs=n_jobs, prefer="processes")
        heats = pool(delayed(climber.climb)(s, min(_HEAT_ITER, max_iter)) for s in starts)
        finalists = _finalists(heats, hopeless)
        left = max_iter - _HEAT_ITER
        winner = climber.resume(heats[finalists[0]], left)
        others = pool(delayed(climber.resume)(heats[i], left, winner) for i in finalists[1:])
        finals = [winner, *others]
        rest = [c for i, c in enumerate(heats) if i not in finalists]
        climbs = [*finals, *rest]
    climbs = sorted(climbs, key=lambda c: -c.objective)
    best = climbs[0]
    gap = np.abs(best.theta[:, None] - bounds).min(axis=1, initial=np.inf)
    names = tuple(n for n, g in zip(evidence.theta_names, gap, strict=True) if g < 1e-6)
    return Optimum(best.theta, best.objective, tuple(climbs), names)


def _finalists(heats: Sequence[Climb], hopeless: float) -> list[int]:
    """Starts worth finishing: near the best, and not where a better one already is."""
    order = sorted(range(len(heats)), key=lambda i: -heats[i].objective)
    best = heats[order[0]].objective
    chosen: list[int] = []
    for i in order:
        here = heats[i]
        if not here.objective >= best - hopeless:
            continue
        if not any(_arrived(here.theta, here.objective, heats[j]) for j in chosen):
            chosen.append(i)
    return chosen


def _arrived(theta: Array, objective: float, other: Climb) -> bool:
    """Whether a climb has come to where another one is, and will not overtake it."""
    return bool(
        objective < other.objective + 0.01
        and objective > other.objective - 0.5
        and np.abs(theta - other.theta).max() < 0.3
    )


class _Climber:
    """Ascents of one objective. Cheap to send to another process."""

    def __init__(self, evidence: Objective, hyperprior: LogPrior, tol: float) -> None:
        self.evidence, self.hyperprior, self.tol = copy.copy(evidence), hyperprior, tol

    def climb(self, start: Array, max_iter: int, known: Climb | None = None) -> Climb:
        """Climb from a start, and no further than to where another climb is known to end."""
        self.evidence.warm = None
        count = failures = 0
        dearest: float | None = None
        cheapest, warm = np.inf, None

        def cost(theta: Any) -> tuple[float, Any]:
            nonlocal count, failures, dearest, cheapest, warm
            count += 1
            # A trial step may go far astray, and the next one is nearer to the best point so far.
            self.evidence.warm = warm
            try:
                value = self.evidence(theta)
            except NotPositiveDefinite:
                failures += 1
                # More than any cost so far, but not by so much that the line search, which
                # interpolates, would come back with a step of nothing.
                much = _REFUSED if dearest is None else dearest + 1.0 + abs(dearest)
                return much, np.zeros_like(theta)
            failures += not value.report.converged
            log_prior, slope = self.hyperprior(theta)
            price = -(value.value + log_prior)
            dearest = price if dearest is None else max(price, dearest)
            if price < cheapest:
                cheapest, warm = price, self.evidence.warm
            return price, -(value.gradient + slope)

        price, slope = cost(start)
        if max_iter <= 0 or len(start) == 0:
            return Climb(start, start, -price, count, True, "not optimised", failures)
        # L-BFGS-B begins with the step -gradient, to the far end of the bounds if they are wide.
        # In these units of the cost no parameter moves by more than one.
        unit = max(1.0, float(np.abs(slope).max()))
        first: Any = (price, slope)

        def scaled_cost(theta: Any) -> tuple[float, Any]:
            nonlocal first
            price, slope = first or cost(theta)
            first = None
            return price / unit, slope / unit

        arrived = False

        def watch(intermediate_result: Any) -> None:
            nonlocal arrived
            at = intermediate_result
            if known is not None and _arrived(at.x, -at.fun * unit, known):
                arrived = True
                raise StopIteration

        result = minimize(
            scaled_cost,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(*self.evidence.bounds.T),
            callback=watch,
            options={
                "maxiter": max_iter,
                "ftol": 1e-3 * self.tol * min(1.0, max(1.0, abs(price)) / unit),
                "gtol": 200.0 * self.tol / unit,
                "maxls": 30,
            },
        )
        price = float(result.fun) * unit
        converged, message = bool(result.success and price < _REFUSED), str(result.message)
        if arrived and known is not None:
            converged, message = known.converged, "arrived where another climb ended"
        return Climb(start, result.x, -price, count, converged, message, failures)

    def resume(self, heat: Climb, max_iter: int, known: Climb | None = None) -> Climb:
        if heat.converged or max_iter <= 0:
            return heat
        rest = self.climb(heat.theta, max_iter, known)
        return replace(
            rest,
            start=heat.start,
            n_evaluations=heat.n_evaluations + rest.n_evaluations,
            inner_failures=heat.inner_failures + rest.inner_failures,
        )


def spread_starts(
    evidence: Objective, hyperprior: HyperPrior, n_starts: int, rng: np.random.RandomState
) -> list[Array]:
    """Quasi-random starts: from the hyper-prior, or uniform in log space where it is flat."""
    bounds = evidence.bounds
    if n_starts == 0 or len(bounds) == 0:
        return []
    # Sobol points come in powers of two.
    sobol = qmc.Sobol(len(bounds), seed=rng.randint(2**31 - 1))
    uniform = sobol.random_base2(int(np.ceil(np.log2(n_starts))))[:n_starts]
    # A decade or two around the given values, however wide the bounds.
    centre, reach = evidence.theta, np.log(100.0)
    low = np.maximum(bounds[:, 0], centre - reach)
    high = np.minimum(bounds[:, 1], centre + reach)
    flat = low + uniform * (high - low)
    # The prior, cut off at the bounds.
    sd = np.where(hyperprior.is_flat, 1.0, hyperprior.sd)
    below, above = ndtr((bounds.T - hyperprior.mean) / sd)
    informed = hyperprior.mean + sd * ndtri(below + uniform * (above - below))
    return list(np.clip(np.where(hyperprior.is_flat, flat, informed), *bounds.T))
