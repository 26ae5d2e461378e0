"""The loop of sparse inference: passes over the rows, until they call for what is believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import Report
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.inference.passes import Sums
from polyfid.inference.sparse_belief import SparseBelief

Look = Callable[[SparseBelief], Sums]

#: What the bound may lose in a step by rounding, relative to its size.
_ROUNDING = 1e-12
_UNDER_WAY = "not converged: under way"
#: Growth of a step after a success. Steps that overshoot would take turns if it were two.
_GROWTH = 1.4
#: Earlier states from which a step is extrapolated, and how much further from their goals they
#: may be than the last one: what is far off says little of what is near.
_DEPTH, _REACH = 5, 100.0


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
    look: Look,
    start: SparseBelief,
    tol: float = 1e-4,
    max_iter: int = 100,
    watch: Callable[[SparseFixed], None] | None = None,
) -> SparseFixed:
    """Natural-gradient ascent of the bound, extrapolated; a step that lowers it is undone.

    A step goes from the belief towards the one that the rows call for. Where labels are nearly
    certain such steps overshoot, and damped ones are slow: combining the last states (Anderson's
    acceleration, in the metric of the belief) takes a fraction of the passes.

    Parameters
    ----------
    look : a pass over the rows, from a belief to the sums under it.
    start : the belief to begin with.
    tol : how far, in standard deviations, the belief may be from the one that the rows call for.
    max_iter : passes.
    watch : told of the state that every pass leaves.
    """
    now = _State.at(start, look)
    near, bounds, step, message = [now], [now.bound], 1.0, "converged"

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
        trial = _State.try_at(_extrapolate(near, step), look)
        bounds.append(trial.bound if trial else -np.inf)
        if trial and _accepts(now, trial):
            now, step = trial, min(_GROWTH * step, 1.0)
            near = [*(s for s in near[-_DEPTH:] if s.distance < _REACH * now.distance), now]
        else:
            step = step if len(near) > 1 else 0.5 * step  # earlier states may be to blame
            near = [now]
        if watch is not None:
            watch(state(_UNDER_WAY))
    return state(message)


@dataclass(frozen=True)
class _State:
    """A belief, the sums under it, its bound, and how far it is from what the sums call for."""

    belief: SparseBelief
    sums: Sums
    bound: float
    distance: float

    @classmethod
    def at(cls, belief: SparseBelief, look: Look) -> _State:
        sums = look(belief)
        distance = float(np.linalg.norm(_gap(belief, sums, belief)))
        return cls(belief, sums, sums.value - belief.divergence, distance)

    @classmethod
    def try_at(cls, belief: SparseBelief, look: Look) -> _State | None:
        """None where the belief has no covariance, as negative sites may bring about."""
        try:
            return cls.at(belief, look)
        except NotPositiveDefinite:
            return None

    def towards(self, step: float) -> tuple[Array, Array]:
        """Natural parameters after a step."""
        belief, sums = self.belief, self.sums
        return (
            belief.gram + step * (sums.gram - belief.gram),
            belief.linear + step * (sums.linear - belief.linear),
        )


def _gap(belief: SparseBelief, sums: Sums, metric: SparseBelief) -> Array:
    """From a belief to what the sums under it call for, in the units of a belief."""
    return metric.whitened(sums.gram - belief.gram, sums.linear - belief.linear)


def _extrapolate(near: Sequence[_State], step: float) -> SparseBelief:
    """A step from the combination of states whose gap, were it linear, would be the smallest."""
    if len(near) == 1:
        return SparseBelief(*near[0].towards(step))
    gaps = np.stack([_gap(s.belief, s.sums, near[-1].belief) for s in near])
    gaps /= (size := np.linalg.norm(gaps, axis=1))[:, None]
    cosines = gaps @ gaps.T
    cosines.flat[:: len(near) + 1] += 1e-10  # gaps may be parallel
    shares = np.linalg.solve(cosines, 1.0 / size) / size
    shares /= shares.sum()
    parts = [state.towards(step) for state in near]
    gram, linear = (np.tensordot(shares, np.stack(p), 1) for p in zip(*parts, strict=True))
    return SparseBelief(gram, linear)


def _accepts(old: _State, new: _State) -> bool:
    noise = _ROUNDING * abs(old.bound)
    if new.bound > old.bound + noise:
        return True
    # Too flat for the bound to tell: a step must then come nearer to its goal.
    return new.bound >= old.bound - noise and new.distance < old.distance
