"""The one loop of inference: sites give marginals, marginals give sites, until nothing moves.

A belief, exact or sparse, has natural parameters; under its marginals the labels ask for others. A
step goes from the first towards the second. Where labels are nearly certain whole steps overshoot,
and damped ones are slow; combining the last few states (Anderson's acceleration, in the metric of
the belief) takes a fraction of the steps. Where that is not enough, a step that was refused or very
many steps, a problem may have better aims.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from polyfid.arrays import Array

#: Natural parameters: the quadratic one and the linear one.
Natural = tuple[Array, Array]

#: The last two are of fits whose tuning has not ended: whether inducing points move still.
Outcome = Literal["converged", "stalled", "out of steps", "under way", "moving points", "tuning"]
#: A belief has a method `whitened`: a change of natural parameters in its standard deviations.
B = TypeVar("B")

_LONGER = 1.4  # growth of a step after a success; with two, steps that overshoot take turns
SHORTEST = 1e-6  # shorter steps are not tried
_EASY = 20  # steps that all go to the target, unless one is refused
_GROWTH = 1.5  # of the distance that a step may bring where there is no objective
_FLAT = 1.1  # and where the objective is too flat to tell
_REACH = 100.0  # states that many times further from their targets than the last one say little


@dataclass(frozen=True)
class Report:
    """How a run of the loop went; steps and bounds include those that were refused."""

    outcome: Outcome
    n_iter: int
    #: From the state that was returned to the one that the labels ask for, in posterior
    #: standard deviations.
    distance: float
    #: The merit of every state: for variational inference the bound on the log evidence.
    bounds: tuple[float, ...] = ()

    @property
    def converged(self) -> bool:
        return self.outcome == "converged"

    def __str__(self) -> str:
        state = "converged" if self.converged else f"not converged: {self.outcome}"
        return f"{state} after {self.n_iter} steps (distance {self.distance:.1e})"


@dataclass(frozen=True)
class State(Generic[B]):
    """A belief, its natural parameters, and those that the labels ask for."""

    belief: B
    labels: Any  # what the likelihood says under the belief
    position: Natural
    target: Natural
    merit: float  # what good steps raise
    distance: float  # from position to target, in standard deviations of the belief


class Problem(ABC, Generic[B]):
    """What the loop solves."""

    #: Earlier states that a step is extrapolated from; none for schemes that need few steps.
    memory: int = 5
    #: Whether merit is an objective. If not, steps are judged by the distance.
    has_objective: bool = True
    #: Relative rounding errors of the merit.
    rounding: float = 1e-10

    @abstractmethod
    def begin(self) -> State[B]:
        """The first state."""

    def aims(self, now: State[B]) -> Iterator[Natural]:
        """Other places to go than the target, the best first, where there is no easy way to it."""
        return iter(())

    def noise(self, now: State[B]) -> float:
        """Rounding errors of the merit."""
        return self.rounding * (abs(now.merit) + self.rounding)

    @abstractmethod
    def reach(self, position: Natural, now: State[B]) -> Iterator[State[B]]:
        """States at or near a position, the cheapest first; none where there is no posterior."""

    def finish(self, now: State[B], tol: float) -> State[B]:
        """The state to return; as near to its target as ``tol`` if ``now`` is."""
        return now

    def accepts(self, old: State[B], new: State[B]) -> bool:
        """Whether a state may follow another."""
        if not self.has_objective:
            return new.distance <= _GROWTH * old.distance
        noise = self.noise(old)
        if new.merit > old.merit + noise:
            return True
        # Too flat for the merit to tell: steps that overshoot would take turns for ever.
        return new.merit >= old.merit - noise and new.distance < _FLAT * old.distance


def iterate(
    problem: Problem[B],
    tol: float,
    max_iter: int,
    watch: Callable[[State[B], Report], None] | None = None,
    shortest: float = SHORTEST,
) -> tuple[State[B], Report]:
    """Step until the distance is at most ``tol``; a step that makes things worse is not taken.

    ``watch`` is called with the state that every step leaves. Shorter steps than ``shortest`` are
    not tried.
    """
    now, n_iter, step, easy = problem.begin(), 0, 1.0, True
    past, merits, aims = [_Past.of(now, now.target)], [now.merit], problem.aims(now)
    while not (now.distance <= tol) and n_iter < max_iter and step >= shortest:  # NaN goes on
        if watch is not None:
            watch(now, Report("under way", n_iter, now.distance, tuple(merits)))
        n_iter += 1
        for trial in problem.reach(_extrapolate(past, step, now.belief), now):
            merits.append(trial.merit)
            if problem.accepts(now, trial):
                # Without an objective, long steps that overshoot would take turns for ever.
                overshot = not problem.has_objective and trial.distance > now.distance
                step = 0.5 * step if overshot and step > 0.5 else min(_LONGER * step, 1.0)
                now, easy = trial, easy and n_iter < _EASY
                aims = problem.aims(now)
                if easy or (aim := next(aims, None)) is None:
                    near = [p for p in past if p.distance < _REACH * now.distance]
                    past = near[len(near) - min(problem.memory, len(near)) :]
                    past.append(_Past.of(now, now.target))
                else:
                    past = [_Past.of(now, aim)]
                break
        else:
            if len(past) > 1:
                past = past[-1:]  # earlier states may be to blame
            elif (aim := next(aims, None)) is not None:
                step, easy, past = 1.0, False, [_Past.of(now, aim)]
            else:
                step *= 0.5
    outcome: Outcome = "stalled" if n_iter < max_iter else "out of steps"
    outcome = "converged" if now.distance <= tol else outcome
    now = problem.finish(now, tol)
    report = Report(outcome, n_iter, now.distance, tuple(merits))
    if watch is not None:
        watch(now, report)
    return now, report


class _Past(NamedTuple):
    """Where a state was and how far it aimed from there; its belief may be much larger."""

    position: Natural
    gap: Natural
    distance: float

    @classmethod
    def of(cls, state: State[Any], aim: Natural) -> _Past:
        (w, nu), (aim_w, aim_nu) = state.position, aim
        return cls(state.position, (aim_w - w, aim_nu - nu), state.distance)


def _extrapolate(past: Sequence[_Past], step: float, metric: Any) -> Natural:
    """A step from the combination of states whose gap, were it linear, would be the smallest."""
    shares = np.ones(1)
    if len(past) > 1:
        gaps = np.stack([metric.whitened(*p.gap) for p in past])
        gaps /= (size := np.linalg.norm(gaps, axis=1))[:, None]
        cosines = gaps @ gaps.T
        cosines.flat[:: len(past) + 1] += 1e-10  # gaps may be parallel
        shares = np.linalg.solve(cosines, 1.0 / size) / size
        shares /= shares.sum()
    quadratic, linear = np.zeros_like(past[0].position[0]), np.zeros_like(past[0].position[1])
    for share, p in zip(shares, past, strict=True):
        quadratic += share * (p.position[0] + step * p.gap[0])
        linear += share * (p.position[1] + step * p.gap[1])
    return quadratic, linear
