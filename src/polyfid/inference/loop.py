"""The one loop of inference: sites give marginals, marginals give sites, until nothing moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from polyfid.inference.exact import ExactBelief, ExactCovariance, Start
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.inference.scheme import Scheme
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Likelihood

#: Conjugate-gradient steps after which a factorisation would have been cheaper, and the relative
#: error at which they stop: Newton's next step repairs it.
_CG_STEPS = 24
_CG_TOLERANCE = 0.003
#: A step that leaves more than this share of the distance calls for a factor of its own.
_SLOW = 0.6
#: What merit may lose in a step by rounding, relative to its size; and by how much a step of a
#: scheme with no objective may enlarge the distance.
_ROUNDING = 1e-10
_GROWTH = 1.5


@dataclass(frozen=True)
class Report:
    """How a run of the loop went."""

    converged: bool
    n_iter: int
    distance: float
    message: str
    #: Of every pass over the rows, where there are passes: the bound on the evidence.
    bounds: tuple[float, ...] = ()

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
    start: Start | None = None,
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
    while loop.state.distance > tol:
        if n_iter == max_iter:
            message = f"not converged: {max_iter} steps were not enough"
            break
        if step < 1e-6:
            message = "not converged: no step improves"
            break
        n_iter += 1
        distance = loop.state.distance
        accepted = loop.advance(step)
        # Without an objective, long steps that overshoot would take turns for ever.
        overshot = not scheme.has_objective and step > 0.5 and loop.state.distance > distance
        step = min(2.0 * step, 1.0) if accepted and not overshot else 0.5 * step
    belief = loop.settle()
    seen = scheme.look(belief, likelihood)
    report = Report(message == "converged", n_iter, loop.state.distance, message)
    return Fixed(belief, seen, scheme.log_z(belief, seen), report)


class _Loop:
    """State of the loop: a belief, the sites it calls for, how far apart they are, its merit."""

    def __init__(
        self,
        scheme: Scheme[Any],
        covariance: ExactCovariance,
        likelihood: Likelihood,
        start: Start | None,
    ) -> None:
        self.scheme, self.covariance, self.likelihood = scheme, covariance, likelihood
        self.near: Start | None = start
        self.state = self._look(covariance.prior_belief())
        if start is not None:
            # The old sites under the new prior: a Newton step from the old mode.
            moved = covariance.carry_over(start)
            try:
                near = self._condition_near(start.sites, moved)
                warm = self._look(near or self._condition(start.sites, moved))
            except NotPositiveDefinite:
                return
            # A start that is worse than nothing is not used: EP may never leave it.
            if warm.merit > self.state.merit:
                self.state = warm

    def _look(self, belief: ExactBelief) -> _State:
        seen = self.scheme.look(belief, self.likelihood)
        target = self.scheme.sites(belief, seen)
        distance = self.covariance.distance(belief, target)
        return _State(belief, target, distance, self.scheme.merit(belief, seen, distance))

    def advance(self, step: float) -> bool:
        """Try a step; False, and nothing changed, if it made things worse."""
        belief, target, _, _ = self.state
        sites = belief.sites.mix(target, step)
        for attempt in (self._condition_near, self._condition):
            try:
                reached = attempt(sites, belief)
                if reached is not None:
                    state = self._look(reached)
                    if self._accepts(state):
                        if state.distance > _SLOW * self.state.distance:
                            self.near = None  # the factor is too far off: make another one
                        self.state = state
                        return True
            except NotPositiveDefinite:
                pass
        return False

    def _accepts(self, new: _State) -> bool:
        """Whether a state may follow the present one."""
        old = self.state
        if not self.scheme.has_objective:
            return new.distance <= _GROWTH * old.distance
        noise = _ROUNDING * (abs(old.merit) + _ROUNDING)
        if new.merit <= old.merit + noise:
            # Too flat for the merit to tell: steps that overshoot would take turns for ever.
            return new.merit >= old.merit - noise and new.distance < 1.1 * old.distance
        return True

    def _condition_near(self, sites: Sites, start: ExactBelief) -> ExactBelief | None:
        """The cheap way, where only the mean is needed and a factor of similar sites is at hand."""
        if self.scheme.needs_variance or self.near is None:
            return None
        return self.covariance.condition_near(sites, start, self.near, _CG_TOLERANCE, _CG_STEPS)

    def _condition(self, sites: Sites, start: ExactBelief) -> ExactBelief:
        belief = self.covariance.condition(sites, start)
        if not self.scheme.needs_variance:
            self.near = belief
        return belief

    def settle(self) -> ExactBelief:
        """The posterior at the sites last called for, factorised."""
        self.near = None
        try:
            return self.covariance.condition(self.state.target, self.state.belief)
        except NotPositiveDefinite:
            return self.covariance.condition(self.state.belief.sites, self.state.belief)


class _State(NamedTuple):
    belief: ExactBelief
    target: Sites
    distance: float
    merit: float
