"""The one loop of inference: sites give marginals, marginals give sites, until nothing moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyfid.covariances import ExactBelief, ExactCovariance, Sites
from polyfid.inference.scheme import Scheme
from polyfid.likelihoods import Likelihood
from polyfid.linalg import NotPositiveDefinite

#: Conjugate-gradient steps after which a factorisation would have been cheaper, and the relative
#: error at which they stop: Newton's next step repairs it.
_CG_STEPS = 8
_CG_TOLERANCE = 0.01


@dataclass(frozen=True)
class Report:
    """How a run of the loop went."""

    converged: bool
    n_iter: int
    distance: float
    message: str

    def __str__(self) -> str:
        return f"{self.message} after {self.n_iter} steps (distance {self.distance:.1e})"


@dataclass(frozen=True)
class Fixed:
    """A fixed point (or the last state reached): posterior, what the scheme saw there, report."""

    belief: ExactBelief
    seen: Any
    log_z: float
    report: Report


def run(
    scheme: Scheme[Any],
    covariance: ExactCovariance,
    likelihood: Likelihood,
    start: ExactBelief | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Fixed:
    """Run a scheme to its fixed point.

    A step that lowers the scheme's merit is halved; the sites of the last, accepted step are within
    ``tol`` posterior standard deviations of the fixed point's equations before one more update.
    """
    scheme.check(likelihood)
    loop = _Loop(scheme, covariance, likelihood, start)
    step, n_iter, message = 1.0, 0, "converged"
    while loop.distance > tol:
        if n_iter == max_iter:
            message = f"not converged: {max_iter} steps were not enough"
            break
        if step < 1e-6:
            message = "not converged: no step improves"
            break
        n_iter += 1
        step = min(2.0 * step, 1.0) if loop.advance(step) else 0.5 * step
    belief = loop.settle()
    seen = scheme.look(belief, likelihood)
    report = Report(message == "converged", n_iter, loop.distance, message)
    return Fixed(belief, seen, scheme.log_z(belief, seen), report)


class _Loop:
    """State of the loop: a belief, the sites it calls for, and how far apart the two are."""

    def __init__(
        self,
        scheme: Scheme[Any],
        covariance: ExactCovariance,
        likelihood: Likelihood,
        start: ExactBelief | None,
    ) -> None:
        self.scheme, self.covariance, self.likelihood = scheme, covariance, likelihood
        self.near = start
        self._enter(covariance.prior_belief())
        if start is not None:
            cold = self.belief, self.target, self.distance, self.merit
            try:
                self._enter(covariance.carry_over(start))
            except NotPositiveDefinite:
                self.merit = -np.inf
            if not self.merit > cold[3] and scheme.slack < 0.1:
                self.belief, self.target, self.distance, self.merit = cold

    def _enter(self, belief: ExactBelief) -> None:
        self.belief = belief
        seen = self.scheme.look(belief, self.likelihood)
        self.target = self.scheme.sites(belief, seen)
        self.distance = self.covariance.distance(belief, self.target)
        self.merit = self.scheme.merit(belief, seen, self.distance)

    def advance(self, step: float) -> bool:
        """Try a step; False, and nothing changed, if it made things worse."""
        before = self.belief, self.target, self.distance, self.merit
        sites = self.belief.sites.mix(self.target, step)
        lowest = self.merit - self.scheme.slack * (abs(self.merit) + self.scheme.slack)
        for attempt in (self._condition_near, self._condition):
            try:
                belief = attempt(sites)
                if belief is not None:
                    self._enter(belief)
                    if self.merit >= lowest:
                        return True
            except NotPositiveDefinite:
                pass
            self.belief, self.target, self.distance, self.merit = before
        return False

    def _condition_near(self, sites: Sites) -> ExactBelief | None:
        """The cheap way, where only the mean is needed and a factor of similar sites is at hand."""
        if self.scheme.needs_variance or self.near is None:
            return None
        return self.covariance.condition_near(
            sites, self.belief, self.near, _CG_TOLERANCE, _CG_STEPS
        )

    def _condition(self, sites: Sites) -> ExactBelief:
        belief = self.covariance.condition(sites, self.belief)
        if not self.scheme.needs_variance:
            self.near = belief
        return belief

    def settle(self) -> ExactBelief:
        """The posterior at the sites last called for, factorised."""
        self.near = None
        try:
            return self.covariance.condition(self.target, self.belief)
        except NotPositiveDefinite:
            return self.covariance.condition(self.belief.sites, self.belief)
