"""Exact inference: the loop over the sites of all rows, under the full covariance matrix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyfid.inference.exact import ExactBelief, ExactCovariance, Sites, Start
from polyfid.inference.linalg import Diverged, NotPositiveDefinite
from polyfid.inference.loop import Natural, Problem, Report, State, iterate
from polyfid.inference.schemes import Scheme
from polyfid.model.likelihoods import Likelihood

#: Conjugate-gradient steps after which a factorisation would have been cheaper, and the relative
#: error at which they stop: Newton's next step repairs it.
_CG_STEPS = 24
_CG_TOLERANCE = 0.003
#: A step that leaves more than this share of the distance needs a factorisation of its own.
_SLOW = 0.6


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
    """Run a scheme to its fixed point.

    Raises `Diverged` where it does not converge and ends at an impossible evidence: labels cannot
    be more than certain.
    """
    scheme.check(likelihood)
    problem = ExactProblem(scheme, covariance, likelihood, start, gradient or scheme.needs_variance)
    state, report = iterate(problem, tol, max_iter)
    log_z = scheme.log_z(state.belief, state.labels)
    if log_z > 0.0 and not report.converged:
        raise Diverged(
            f"inference={scheme.name!r} is {report}, and its log evidence of {log_z:.3g} is that "
            'of a probability above one; use inference="variational", which always has a bound'
        )
    return Fixed(state.belief, state.labels, log_z, report)


class ExactProblem(Problem[ExactBelief]):
    """The sites of all rows; ``inverted``: the last belief is to have B^-1, not a factor of B."""

    def __init__(
        self,
        scheme: Scheme[Any],
        covariance: ExactCovariance,
        likelihood: Likelihood,
        start: Start | None = None,
        inverted: bool = False,
    ) -> None:
        self.scheme, self.covariance, self.likelihood = scheme, covariance, likelihood
        self.memory, self.has_objective = scheme.memory, scheme.has_objective
        self.inverted = inverted
        self._start = self._near = start

    def begin(self) -> State[ExactBelief]:
        cold = self._state(self.covariance.prior_belief())
        if self._start is None:
            return cold
        # The old sites under the new prior: a Newton step from the old mode.
        sites = self._start.sites
        moved = self.covariance.with_alpha(self._start.alpha, sites.w)
        try:
            warm = self._state(self._condition_near(sites, moved) or self._condition(sites, moved))
        except NotPositiveDefinite:
            return cold
        # A start that is worse than nothing is not used: EP may never leave it.
        return warm if warm.merit > cold.merit else cold

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

    def finish(self, now: State[ExactBelief], tol: float) -> State[ExactBelief]:
        # One more step costs no more than the factorisation that is needed anyway.
        self._near = None
        if now.distance <= tol:
            with suppress(NotPositiveDefinite):
                last = self.covariance.condition(Sites(*now.target), now.belief)
                state = self._state(last.into_inverted() if self.inverted else last)
                if state.distance <= tol:
                    return state
        return self._state(now.belief.inverted() if self.inverted else now.belief.factorised())

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
        belief = self.covariance.condition(sites, start)
        if self.scheme.needs_variance:
            return belief.into_inverted()
        self._near = belief.start()
        return belief
