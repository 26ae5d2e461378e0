"""Rows that are held out of a fit: what they say of its calibration, and of the better of two."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from polyfid.arrays import Array, Indices
from polyfid.learning.mixture import Calibration, Mixture
from polyfid.learning.search import NEGLIGIBLE
from polyfid.model.calibration import calibration_error
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

#: With more rows at the top level than this, calibration is checked on some that are held out, this
#: share of them and at most so many.
N_CHECKED, HELD_OUT, MOST_HELD_OUT = 1000, 0.2, 2000


class Part(NamedTuple):
    """A model with or without a boosted mean; how probable held-out labels are, and their level."""

    mixture: Mixture
    log_p: Array
    level: Indices


def average_parts(one: Part, other: Part) -> Mixture:
    """Both models, with weights under which labels that were held out are most probable.

    Those of the top level count as much as all others together.
    """
    top = one.level == one.level.max()
    shares = np.where(top, 1.0 / max(top.sum(), 1), 1.0 / max((~top).sum(), 1))

    def cost(weight: float) -> float:
        mixed = np.logaddexp(np.log(weight) + one.log_p, np.log1p(-weight) + other.log_p)
        return -float(shares @ mixed)

    weight = float(minimize_scalar(cost, bounds=(1e-3, 1.0 - 1e-3), method="bounded").x)
    weights = [weight, 1.0 - weight]
    if min(weights) < NEGLIGIBLE:
        return (one, other)[int(np.argmax(weights))].mixture
    parts = [
        (w, replace(part.mixture.best, weight=w), part.mixture)
        for w, part in zip(weights, (one, other), strict=True)
    ]
    parts.sort(key=lambda part: -part[0])
    members = tuple(member for _, member, _ in parts)
    mean, first = one.mixture.mean or other.mixture.mean, parts[0][2]
    return replace(first, members=members, mean=mean)


def hold_out(points: Points, top: int, weighed: bool) -> Indices:
    """Rows to hold out: of all levels, or of the top level if it has many."""
    rng, chosen = np.random.RandomState(0), []
    for level, rows in points.segments():
        n = rows.stop - rows.start
        if weighed or (level == top and n > N_CHECKED):
            size = min(int(HELD_OUT * n), MOST_HELD_OUT)
            chosen.append(rows.start + rng.permutation(n)[:size])
    return np.sort(np.concatenate([np.empty(0, dtype=np.intp), *chosen]))


def calibration_of(rows: LabelledPoints, log_p: Array, top: int) -> Calibration | None:
    """How probabilities of labels of the top level turned out; None if they are too few."""
    chosen = rows.points.level == top
    if chosen.sum() < HELD_OUT * N_CHECKED:
        return None
    y, weight, log_p = rows.likelihood.y[chosen], rows.likelihood.weight[chosen], log_p[chosen]
    p = np.where(y > 0.0, np.exp(log_p), -np.expm1(log_p))
    error = float(calibration_error(p, y > 0.0, weight[None])[0])
    return Calibration(len(y), -float(np.average(log_p, weights=weight)), error)
