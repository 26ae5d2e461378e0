"""The climb to the hyper-parameters of the best evidence: where to start, and how to get there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import Bounds, minimize
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from polyfid.arrays import Array
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.evidence import Evidence, Parametrised
from polyfid.learning.plan import Options
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Iterations of every start before the hopeless ones are dropped.
_HEAT_ITER = 5
#: The longest first step of a parameter: most climbs start not far from where they end.
_FIRST_STEP = 0.3
#: The cost of parameters under which there is no posterior.
_REFUSED = 1e25
#: A climb ends where no parameter has a slope, in nats, above this many times ``tol``.
_SLOPE = 200.0
#: It has converged if slopes are at most this, however small ``tol`` is: the weak prior alone has
#: a curvature of 0.16 or more in each parameter, so that no more than 0.01 nats are left.
FLAT = 0.05
#: So it has where it ended by itself and a step of Newton's method would gain no more nats than
#: this. Precise numbers tell some parameters so well that small errors of them have large slopes.
LEFT = 1e-3
#: Nor does a climb go on where a step gains less than this, relative to the cost.
_NO_GAIN = 1e-8
#: Corrections between levels start this much smaller, in logarithms of their scale.
_SMALLER_CORRECTION = 1.5

#: Log density of parameters before the labels, and its gradient.
LogPrior = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class Climb:
    """One ascent: where it started, where it ended, and how it went.

    ``slope`` is the largest entry of the projected gradient at the end, in nats, in which entries
    that point beyond a bound are cut off there. NaN in files of earlier versions.
    """

    start: Array
    theta: Array
    objective: float
    n_evaluations: int
    converged: bool
    message: str
    inner_failures: int
    slope: float = np.nan


@dataclass(frozen=True)
class Optimum:
    """The best hyper-parameters, and all climbs, best first.

    ``brief``: a few steps were all that was asked for, so that the climb need not converge.
    """

    theta: Array
    objective: float
    climbs: tuple[Climb, ...]
    at_bounds: tuple[str, ...]
    brief: bool = False

    @property
    def best(self) -> Climb:
        return self.climbs[0]

    @property
    def converged(self) -> bool:
        return self.best.converged or self.brief

    @property
    def n_evaluations(self) -> int:
        return sum(c.n_evaluations for c in self.climbs)

    def __str__(self) -> str:
        state = "converged" if self.converged else f"not converged ({self.best.message})"
        state = "a few steps" if self.brief and not self.best.converged else state
        slope = "" if np.isnan(self.best.slope) else f", largest slope {self.best.slope:.1g}"
        return (
            f"{state}: objective {self.objective:.4f}{slope}, best of {len(self.climbs)} "
            f"start{'s' * (len(self.climbs) != 1)}, {self.n_evaluations} evaluations"
        )


def tune(evidence: Evidence, options: Options, rng: np.random.RandomState) -> Optimum | None:
    """The best hyper-parameters under evidence and hyper-prior; None where they stay as given."""
    if not options.optimise or not len(evidence.theta):
        return None
    hyperprior = make_hyperprior(
        evidence.prior, evidence.likelihood, evidence.points, options.weak_prior
    )
    starts = starting_points(evidence, hyperprior, options, rng)
    limits = options.max_iter, options.tol, options.n_jobs
    laplace = evidence.with_scheme("laplace")
    with suitable_threads(len(evidence.points)):
        # Laplace is several times faster than the other schemes, and its optimum is near theirs.
        if not evidence.likelihood.log_concave or laplace.scheme is evidence.scheme:
            return maximise(evidence, hyperprior, starts, *limits)
        first = maximise(laplace, hyperprior, starts, *limits)
        final = maximise(evidence, hyperprior, [first.theta], *limits)
    return replace(final, climbs=final.climbs + first.climbs)


def make_hyperprior(prior: Prior, likelihood: Likelihood, points: Points, weak: bool) -> HyperPrior:
    """The weak prior on hyper-parameters, or a flat one."""
    of_kernels = (k.weak_prior(points.x) for k in prior.kernels)
    joined = HyperPrior.join([prior.mixing_prior(), *of_kernels, likelihood.weak_prior()])
    return joined if weak else joined.flattened()


def starting_points(
    evidence: Evidence, hyperprior: HyperPrior, options: Options, rng: np.random.RandomState
) -> list[Array]:
    """Where climbs begin: the values given, typical ones with each sign of rho, random ones."""
    prior, given = evidence.prior, evidence.theta
    n_mixing = len(prior.mixing.values)
    typical = hyperprior.mean.copy()
    typical[:n_mixing] = given[:n_mixing]
    typical = np.where(hyperprior.known, typical, given)
    names = np.array(evidence.theta_names, dtype=str)
    # Corrections start small: what the levels share is to be learnt first.
    corrections = np.char.startswith(names, "delta") & np.char.endswith(names, "constant.value")
    typical[corrections & hyperprior.known] -= _SMALLER_CORRECTION
    if options.kernels is None:  # the values given are the typical ones: try wigglier ones too
        lengths = np.char.find(names, "length_scale") >= 0
        given = np.where(lengths, typical - 1.0, typical)
    scattered = spread_starts(evidence, hyperprior, options.n_restarts, rng)
    if len(prior.kernels) == 1 and options.kernels is not None:
        return [given, *scattered]  # as in scikit-learn: links between levels bring several modes
    mirrored = [np.where(np.arange(len(typical)) == t, -typical, typical) for t in prior.mirrors]
    return [given, typical, *mirrored, *scattered]


def spread_starts(
    evidence: Parametrised, hyperprior: HyperPrior, n_starts: int, rng: np.random.RandomState
) -> list[Array]:
    """Quasi-random starts: from the hyper-prior, or uniform in log space where it is flat."""
    bounds = evidence.bounds
    if n_starts == 0:
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


def maximise(
    evidence: Parametrised,
    hyperprior: LogPrior,
    starts: Sequence[Array],
    max_iter: int = 200,
    tol: float = 1e-5,
    n_jobs: int | None = None,
    hopeless: float = 3.0,
    least: float = -np.inf,
) -> Optimum:
    """Maximise log evidence plus log hyper-prior by L-BFGS-B from several starts.

    Starts below ``least`` are dropped. All others climb a little; then those behind the best by
    more than ``hopeless`` are dropped.
    """
    climber = _Climber(copy.copy(evidence), hyperprior, tol, least, evidence.warm)
    bounds = evidence.bounds
    starts = [np.clip(s, *bounds.T) for s in starts]
    heats = [Climb(s, s, -np.inf, 0, False, "not optimised", 0) for s in starts]
    if len(heats) == 1:
        climbs = [climber.climb(heats[0], max_iter)]
        evidence.warm = climber.evidence.warm  # inference at the optimum may start from there
    else:
        pool = Parallel(n_jobs=n_jobs, prefer="processes")
        heats = pool(delayed(climber.climb)(h, min(_HEAT_ITER, max_iter)) for h in heats)
        heats = sorted(heats, key=lambda c: -c.objective)
        hopeful: list[Climb] = []
        dropped: list[Climb] = []
        for heat in heats:
            near = heat.objective >= heats[0].objective - hopeless
            arrived = any(_arrived(heat.theta, heat.objective, other) for other in hopeful)
            (hopeful if near and not arrived else dropped).append(heat)
        left = max_iter - _HEAT_ITER
        winner = climber.climb(hopeful[0], left)
        others = pool(delayed(climber.climb)(heat, left, winner) for heat in hopeful[1:])
        climbs = sorted([winner, *others, *dropped], key=lambda c: -c.objective)
    best = climbs[0]
    gap = np.abs(best.theta[:, None] - bounds).min(axis=1)
    names = tuple(n for n, g in zip(evidence.theta_names, gap, strict=True) if g < 1e-6)
    return Optimum(best.theta, best.objective, tuple(climbs), names)


def _arrived(theta: Array, objective: float, other: Climb) -> bool:
    """Whether a climb has come to where another one is, and will not overtake it."""
    return bool(
        other.objective - 0.5 < objective < other.objective + 0.01
        and np.abs(theta - other.theta).max() < 0.3
    )


@dataclass(frozen=True)
class _Climber:
    """Ascents of one objective. Cheap to send to another process."""

    evidence: Parametrised
    hyperprior: LogPrior
    tol: float
    least: float
    warm: Any

    def climb(self, heat: Climb, max_iter: int, goal: Climb | None = None) -> Climb:
        """Continue a climb, and stop on arriving where another one ended."""
        if heat.converged or (heat.n_evaluations and max_iter <= 0):
            return heat
        start, count, failures = heat.theta, heat.n_evaluations, heat.inner_failures
        prices: list[float] = []
        warm, sound = self.warm, False

        def cost(theta: Any) -> tuple[float, Any]:
            nonlocal count, failures, warm, sound
            count += 1
            # A trial step may go far astray, and the next one is nearer to the best point so far.
            self.evidence.warm = warm
            value = None
            with suppress(NotPositiveDefinite):
                value = self.evidence(theta)
            failures += value is None or not value.report.converged
            # Where inference did not converge its evidence means nothing, and must not be compared
            # with what it is where it did.
            if value is None or (sound and not value.report.converged):
                # More than any cost so far, but not by so much that the line search, which
                # interpolates, would come back with a step of nothing.
                much = max(prices) + 1.0 + abs(max(prices)) if prices else _REFUSED
                return much, np.zeros_like(theta)
            sound = value.report.converged
            log_prior, slope = self.hyperprior(theta)
            prices.append(-(value.value + log_prior))
            if prices[-1] == min(prices):
                warm = self.evidence.warm
            return prices[-1], -(value.gradient + slope)

        first: Any = cost(start)
        price, slope = first
        if max_iter <= 0 or -price < self.least:
            steepest = _steepest(start, slope, self.evidence.bounds)
            flat = max_iter <= 0 and steepest <= self._flat
            return Climb(start, start, -price, count, flat, heat.message, failures, steepest)
        # L-BFGS-B begins with the step -gradient, to the far end of the bounds if they are wide.
        # In these units of the cost it moves no parameter by more than ``_FIRST_STEP``.
        unit = max(1.0, float(np.abs(slope).max()) / _FIRST_STEP)

        def scaled_cost(theta: Any) -> tuple[float, Any]:
            nonlocal first
            price, slope = first or cost(theta)
            first = None
            return price / unit, slope / unit

        def watch(intermediate_result: Any) -> None:
            at = intermediate_result
            if goal is not None and _arrived(at.x, -at.fun * unit, goal):
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
                "ftol": _NO_GAIN * min(1.0, max(1.0, abs(price)) / unit),
                "gtol": _SLOPE * self.tol / unit,
                "maxls": 30,
            },
        )
        self.evidence.warm = warm
        price = float(result.fun) * unit
        steepest = _steepest(result.x, result.jac * unit, self.evidence.bounds)
        ended = steepest <= self._flat or (result.status == 0 and self._left(result) * unit <= LEFT)
        converged, message = price < _REFUSED and ended, str(result.message)
        if goal is not None and not converged and _arrived(result.x, -price, goal):
            converged, message = goal.converged, "arrived where another climb ended"
        return Climb(heat.start, result.x, -price, count, converged, message, failures, steepest)

    def _left(self, result: Any) -> float:
        """What a step of Newton's method would gain, by the curvature that the climb has seen."""
        inside = np.clip(result.x - result.jac, *self.evidence.bounds.T) != result.x
        slope = np.where(inside, result.jac, 0.0)
        return 0.5 * float(slope @ result.hess_inv.dot(slope))

    @property
    def _flat(self) -> float:
        """Slopes of a climb that has converged."""
        return max(_SLOPE * self.tol, FLAT)


def _steepest(theta: Array, slope: Array, bounds: Array) -> float:
    """The largest entry of the projected gradient of a cost: bounds cut a step of its size off."""
    return float(np.abs(np.clip(theta - slope, *bounds.T) - theta).max(initial=0.0))
