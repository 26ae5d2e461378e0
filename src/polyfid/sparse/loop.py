"""The loop of sparse inference: passes over the rows, until a pass calls for what is believed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polyfid.inference import Report
from polyfid.linalg import NotPositiveDefinite
from polyfid.sparse.belief import SparseBelief
from polyfid.sparse.sums import Sums

#: What the bound may lose in a step by rounding, relative to its size.
_ROUNDING = 1e-12
_UNDER_WAY = "not converged: under way"


@dataclass(frozen=True)
class SparseFixed:
    """A fixed point (or the last state reached), the sums under it, and how it was found.

    ``report.bounds`` has the bound of every pass, those of steps that were undone among them.
    """

    belief: SparseBelief
    sums: Sums
    bound: float
    report: Report


def run(
    look: Callable[[SparseBelief], Sums],
    start: SparseBelief,
    tol: float = 1e-4,
    max_iter: int = 100,
    watch: Callable[[SparseFixed], None] | None = None,
) -> SparseFixed:
    """Natural-gradient ascent of the bound: a step that lowers it is undone and halved.

    Parameters
    ----------
    look : a pass over the rows, from a belief to the sums under it.
    start : the belief to begin with.
    tol : how far, in standard deviations, the belief may be from the one that the rows call for.
    max_iter : passes.
    watch : told of the state that every pass leaves.
    """
    now = _State.at(start, look)
    bounds, step, message = [now.bound], 1.0, "converged"

    def state(message: str) -> SparseFixed:
        report = Report(message == "converged", len(bounds), now.distance, message, tuple(bounds))
        return SparseFixed(now.belief, now.sums, now.bound, report)

    if watch is not None:
        watch(state(_UNDER_WAY))
    while now.distance > tol:
        if len(bounds) >= max_iter:
            message = f"not converged: {max_iter} passes were not enough"
            break
        if step < 1e-6:
            message = "not converged: no step improves"
            break
        trial = _State.try_at(now.belief.mix(now.sums.target, step), look)
        bounds.append(trial.bound if trial else float("-inf"))
        if trial and _accepts(now, trial):
            now, step = trial, min(2.0 * step, 1.0)
        else:
            step *= 0.5
        if watch is not None:
            watch(state(_UNDER_WAY))
    return state(message)


@dataclass(frozen=True)
class _State:
    """A belief, the sums under it, its bound, and how far the belief is that they call for."""

    belief: SparseBelief
    sums: Sums
    bound: float
    distance: float

    @classmethod
    def at(cls, belief: SparseBelief, look: Callable[[SparseBelief], Sums]) -> _State:
        sums = look(belief)
        bound = sums.value - belief.divergence
        return cls(belief, sums, bound, belief.distance(sums.target))

    @classmethod
    def try_at(cls, belief: SparseBelief, look: Callable[[SparseBelief], Sums]) -> _State | None:
        """None where the belief has no covariance, as negative sites may bring about."""
        try:
            return cls.at(belief, look)
        except NotPositiveDefinite:
            return None


def _accepts(old: _State, new: _State) -> bool:
    noise = _ROUNDING * abs(old.bound)
    if new.bound > old.bound + noise:
        return True
    # Too flat for the bound to tell: a step must then come nearer to its goal.
    return new.bound >= old.bound - noise and new.distance < old.distance
