"""Inference schemes, a row of the table in docs/understanding/notation.md each, and how one is run.

A scheme says how marginals become sites; the sites of all rows under the full covariance matrix
are what the loop solves for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.aims import Marginals, newton, settle
from polyfid.inference.exact import ExactBelief, ExactCovariance, Sites, Start
from polyfid.inference.linalg import Diverged, NotPositiveDefinite
from polyfid.inference.loop import SHORTEST, Natural, Problem, Report, State, iterate
from polyfid.model.likelihoods import Derivatives, Expectations, Likelihood
from polyfid.model.logistic import Tilted

Labels = TypeVar("Labels")

#: Conjugate-gradient steps after which a factorisation would have been cheaper, and the relative
#: error at which they stop: Newton's next step repairs it.
_CG_STEPS = 24
_CG_TOLERANCE = 0.003
#: A step that leaves more than this share of the distance needs a factorisation of its own.
_SLOW = 0.6
#: Steps of a scheme that may be guided by another one before it is, and how short they may get.
_ALONE, _TOO_SHORT = 16, 0.2
#: A state this many standard deviations from its target needs no guide, and Newton's method works.
_NEAR = 0.1


class Scheme(ABC, Generic[Labels]):
    """Site update, constants of the evidence, and the implicit pair of its derivative.

    What a scheme asks of the likelihood, given marginals, is computed once, by `ask`, and handed
    to the other methods as ``labels``.
    """

    name: str
    #: Whether the site update needs posterior variances.
    needs_variance: bool = True
    #: Whether there is an objective that good steps raise.
    has_objective: bool = True
    #: Earlier states that a step is extrapolated from.
    memory: int = 5
    #: The scheme whose fixed point is a start where this one makes no headway.
    guide: str | None = None

    @abstractmethod
    def ask(self, belief: ExactBelief | Marginals, likelihood: Likelihood) -> Labels:
        """What the likelihood says under the marginals."""

    @abstractmethod
    def sites(self, belief: ExactBelief | Marginals, labels: Labels) -> Sites:
        """The sites that the labels ask for."""

    def feeds_back(self, likelihood: Likelihood) -> bool:
        """Whether what labels ask for depends on the sites of their own rows."""
        return True

    @abstractmethod
    def constants(self, belief: ExactBelief, labels: Labels) -> float:
        """Log Z minus its Gaussian part, -log|B|/2 - alpha^T m / 2."""

    def implicit(self, belief: ExactBelief, labels: Labels) -> tuple[Array, Array] | None:
        """The pair (u, g) of the evidence's derivative in K, where the sites depend on K."""
        return None

    @abstractmethod
    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        """Derivative of log Z in the likelihood's own parameters."""

    def merit(self, belief: ExactBelief, labels: Labels) -> float:
        """The objective."""
        return self.log_z(belief, labels)

    def log_z(self, belief: ExactBelief, labels: Labels) -> float:
        """The approximate log evidence."""
        # With alpha, and not nu^T m / 2: nu is huge where numbers have small errors.
        gauss = -0.5 * belief.log_det - 0.5 * float(belief.alpha @ belief.mean)
        return gauss + self.constants(belief, labels)


class Laplace(Scheme[Derivatives]):
    """w = -l''(m), nu = w m + l'(m): Newton's method on psi(f) = log p(y|f) - f^T K^-1 f / 2."""

    name = "laplace"
    needs_variance = False
    memory = 0  # Newton's steps get shorter by themselves

    def feeds_back(self, likelihood: Likelihood) -> bool:
        return False

    def ask(self, belief: ExactBelief | Marginals, likelihood: Likelihood) -> Derivatives:
        return likelihood.derivatives(belief.mean)

    def sites(self, belief: ExactBelief | Marginals, labels: Derivatives) -> Sites:
        w = -labels.second
        return Sites(w, w * belief.mean + labels.first)

    def merit(self, belief: ExactBelief, labels: Derivatives) -> float:
        return float(labels.value.sum() - 0.5 * (belief.alpha @ belief.mean))

    def constants(self, belief: ExactBelief, labels: Derivatives) -> float:
        return float(labels.value.sum())

    def implicit(self, belief: ExactBelief, labels: Derivatives) -> tuple[Array, Array]:
        # v l''' / 2 as (w v) (l''' / w) / 2: nothing is divided by a vanishing w.
        w = -labels.second
        skew = np.divide(labels.third, w, out=np.zeros_like(w), where=w != 0.0)
        return belief.implicit_solve(0.5 * belief.scaled_variance * skew), labels.first

    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        if not len(likelihood.theta):
            return np.empty(0)
        # The mode moves by (K^-1 + W)^-1 times the change of l', and log|B| with it.
        u, _ = self.implicit(belief, self.ask(belief, likelihood))
        ones = np.ones(len(belief.mean))
        return likelihood.derivatives_pullback(
            belief.mean, ones, belief.covariance.times(u), 0.5 * belief.variance
        )


class Variational(Scheme[Expectations]):
    """w = -E l'', nu = E l' + w m: natural gradient steps on the bound E log p(y|f) - KL."""

    name = "variational"

    def ask(self, belief: ExactBelief | Marginals, likelihood: Likelihood) -> Expectations:
        return likelihood.expectations(belief.mean, belief.variance)

    def sites(self, belief: ExactBelief | Marginals, labels: Expectations) -> Sites:
        w = -labels.second
        return Sites(w, labels.first + w * belief.mean)

    def constants(self, belief: ExactBelief, labels: Expectations) -> float:
        return float((labels.value + 0.5 * belief.sites.w * belief.variance).sum())

    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        return likelihood.expectations_pullback(belief.mean, belief.variance)


class Cavity(NamedTuple):
    """Marginals without one copy of the row's own site, and cavity times label."""

    mean: Array
    variance: Array
    copies: Array
    tilted: Tilted


class EP(Scheme[Cavity]):
    """Expectation propagation, all sites at once: they match moments of cavity times label.

    A row of weight c > 1 is c equal sites, so that weight equals repetition.
    """

    name = "ep"
    has_objective = False
    guide = "variational"

    def feeds_back(self, likelihood: Likelihood) -> bool:
        copied = (likelihood.weight > 1.0) & ~likelihood.is_exact
        return bool(copied.any())  # through the other copies

    def ask(self, belief: ExactBelief | Marginals, likelihood: Likelihood) -> Cavity:
        copies = np.maximum(likelihood.weight, 1.0)
        # The site of a number with a normal error is the same whatever its cavity. With very small
        # errors a cavity would have no digits left: the mean stands for it.
        exact = likelihood.is_exact
        w, nu = (np.where(exact, 0.0, s / copies) for s in (belief.sites.w, belief.sites.nu))
        m, v = belief.mean, np.where(exact, 0.0, belief.variance)
        shrink = np.maximum(1.0 - w * v, 1e-10)
        mean, variance = (m - v * nu) / shrink, v / shrink
        return Cavity(mean, variance, copies, likelihood.tilted(mean, variance))

    def sites(self, belief: ExactBelief | Marginals, labels: Cavity) -> Sites:
        mean, variance, copies, (_, first, second) = labels
        scale = copies / np.maximum(1.0 + variance * second, 1e-12)
        return Sites(-second * scale, (first - mean * second) * scale)

    def constants(self, belief: ExactBelief, labels: Cavity) -> float:
        # For each copy, log Z of the label minus the log of the integral of cavity times site.
        mean, variance, copies, tilted = labels
        w, nu = belief.sites.w / copies, belief.sites.nu / copies
        grown = 1.0 + w * variance
        fit = (nu * nu * variance + 2.0 * nu * mean - w * mean * mean) / grown
        each = copies * (tilted.log_z + 0.5 * np.log(grown) - 0.5 * fit)
        m, w, nu = belief.mean, belief.sites.w, belief.sites.nu
        return float((each + nu * m - 0.5 * w * m * m).sum())

    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        exact, other = (np.flatnonzero(likelihood.is_exact == kind) for kind in (True, False))
        labels = self.ask(belief, likelihood)
        mean, variance, copies = (v[other] for v in labels[:3])
        slope = likelihood.take(other).tilted_pullback(mean, variance, copies)
        # Of rows that are their own sites the bound on the evidence is exact.
        mean, variance = belief.mean[exact], belief.variance[exact]
        return slope + likelihood.take(exact).expectations_pullback(mean, variance)


SCHEMES: dict[str, Scheme[Any]] = {s.name: s for s in (Laplace(), EP(), Variational())}


@dataclass(frozen=True)
class Fixed:
    """A fixed point, or the last state that was reached, and its approximate log evidence."""

    belief: ExactBelief  # factorised, or inverted if a gradient or the scheme needs variances
    labels: Any  # what the scheme asked of the likelihood there
    log_z: float
    report: Report


def run(
    scheme: Scheme[Any],
    covariance: ExactCovariance,
    likelihood: Likelihood,
    start: Start | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    gradient: bool = False,
) -> Fixed:
    """Run a scheme to its fixed point; raises `Diverged` at an impossible evidence."""
    inverted = gradient or scheme.needs_variance

    def go(
        scheme: Scheme[Any],
        start: Start | ExactBelief | None,
        tol: float,
        steps: int,
        shortest: float = SHORTEST,
    ) -> Any:
        problem = ExactProblem(scheme, covariance, likelihood, start, inverted)
        return iterate(problem, tol, steps, shortest=shortest)

    alone = (max_iter, SHORTEST) if scheme.guide is None else (min(_ALONE, max_iter), _TOO_SHORT)
    state, report = go(scheme, start, tol, *alone)
    if not report.converged and report.n_iter < max_iter and scheme.guide is not None:
        done, begin = report.n_iter, state.belief
        if not state.distance <= _NEAR:
            guided, way = go(SCHEMES[scheme.guide], start, _NEAR, (max_iter - done) // 2)
            done, begin = done + way.n_iter, guided.belief
        state, report = go(scheme, begin, tol, max_iter - done)
        report = replace(report, n_iter=done + report.n_iter)
    if not report.converged and start is not None:  # it may lie in a place with no way out
        with suppress(NotPositiveDefinite):
            anew = run(scheme, covariance, likelihood, None, tol, max_iter, gradient)
            if anew.report.converged:
                return anew
    log_z = scheme.log_z(state.belief, state.labels)
    # Of numbers the evidence is a density, and may be any number.
    possible = log_z <= 0.0 or bool(likelihood.is_number.any() and np.isfinite(log_z))
    if not possible and not report.converged:
        other = "" if scheme.has_objective else '; use inference="variational", which has a bound'
        raise Diverged(
            f"inference={scheme.name!r} is {report}, and its log evidence of {log_z:.3g} is that "
            f"of a probability above one{other}"
        )
    return Fixed(state.belief, state.labels, log_z, report)


@dataclass
class ExactProblem(Problem[ExactBelief]):
    """The sites of all rows; ``inverted``: the last belief is to have B^-1, not a factor of B."""

    scheme: Scheme[Any]
    covariance: ExactCovariance
    likelihood: Likelihood
    start: Start | ExactBelief | None = None
    inverted: bool = False

    def __post_init__(self) -> None:
        self.memory, self.has_objective = self.scheme.memory, self.scheme.has_objective
        #: B of sites like those at hand, factorised or inverted, for cheap steps.
        self._near = None if self.start is None else self.start.solver

    def begin(self) -> State[ExactBelief]:
        if isinstance(self.start, ExactBelief):
            return self._state(self.start)
        if self.start is None:
            return self._cold()
        # The old sites under the new prior: a Newton step from the old mode.
        sites = self.start.sites
        moved = self.covariance.with_alpha(self.start.alpha, sites.w)
        try:
            warm = self._state(self._condition_near(sites, moved) or self._condition(sites, moved))
        except NotPositiveDefinite:
            return self._cold()
        # A start that is worse than nothing is not used, if there is an objective to tell by.
        if not self.has_objective or warm.merit > (cold := self._cold()).merit:
            return warm
        return cold

    def _cold(self) -> State[ExactBelief]:
        return self._state(self.covariance.prior_belief())

    def reach(self, position: Natural, now: State[ExactBelief]) -> Iterator[State[ExactBelief]]:
        for condition in (self._condition_near, self._condition):
            try:
                belief = condition(Sites(*position), now.belief)
                if belief is None:
                    continue
                state = self._state(belief)
            except NotPositiveDefinite:
                continue
            if state.distance > _SLOW * now.distance:
                self._near = None  # the factor is too far off
            yield state

    def aims(self, now: State[ExactBelief]) -> Iterator[Natural]:
        if not self.scheme.needs_variance:
            return

        def ask(rows: Marginals, likelihood: Likelihood) -> Sites:
            return self.scheme.sites(rows, self.scheme.ask(rows, likelihood))

        near, feeds_back = now.distance <= _NEAR, self.scheme.feeds_back(self.likelihood)
        if near and (sites := newton(ask, self.likelihood, now.belief)) is not None:
            yield sites.w, sites.nu
        if feeds_back:
            sites = settle(ask, self.likelihood, now.belief)
            yield sites.w, sites.nu
        if near or feeds_back:
            yield now.target  # which is uphill, if only a little

    def noise(self, now: State[ExactBelief]) -> float:
        # Errors of the mean and of log|B| grow with the largest eigenvalue of B.
        largest = float(np.maximum(now.belief.sites.w, 0.0) @ self.covariance.diagonal)
        return max(1.0, 4.0 * np.finfo(float).eps * largest / self.rounding) * super().noise(now)

    def finish(self, now: State[ExactBelief], tol: float) -> State[ExactBelief]:
        # One more step costs no more than the factorisation that is needed anyway.
        self._near = None
        if now.distance <= tol:
            with suppress(NotPositiveDefinite):
                target = Sites(*now.target)
                state = self._state(self.covariance.condition(target, now.belief, self.inverted))
                if state.distance <= tol:
                    return state
        return self._state(now.belief.solved(self.inverted))

    def _state(self, belief: ExactBelief) -> State[ExactBelief]:
        labels = self.scheme.ask(belief, self.likelihood)
        at, to = belief.sites, self.scheme.sites(belief, labels)
        distance = float(np.abs(belief.whitened(to.w - at.w, to.nu - at.nu)).max())
        merit = self.scheme.merit(belief, labels) if self.has_objective else -distance
        return State(belief, labels, (at.w, at.nu), (to.w, to.nu), merit, distance)

    def _condition_near(self, sites: Sites, start: ExactBelief) -> ExactBelief | None:
        """The cheap way, where only the mean is needed and a factor of similar sites is there."""
        if self.scheme.needs_variance or self._near is None:
            return None
        return self.covariance.condition_near(sites, start, self._near, _CG_TOLERANCE, _CG_STEPS)

    def _condition(self, sites: Sites, start: ExactBelief) -> ExactBelief:
        belief = self.covariance.condition(sites, start, inverted=self.scheme.needs_variance)
        if not self.scheme.needs_variance:
            self._near = belief.solver
        return belief
