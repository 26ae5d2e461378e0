"""Rows that are left out, one at a time: the calibration of a fit, and the weights of two models.

A label is one Gaussian site. Without it the posterior of its latent value follows in closed form:
with the site (w, nu) and the moments (m, s) of what it acts on,

    s' = s / (1 - w s),  m' = (m - s nu) / (1 - w s).

The other sites, and the hyper-parameters, stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from polyfid.arrays import Array, Indices
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.learning.mixture import NEGLIGIBLE, Calibration, Mixture, Prediction
from polyfid.model.calibration import calibration_error
from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points, Rows
from polyfid.rows.source import LabelledPoints, View

#: With more rows at the top level than this, calibration is checked on them; rows of a level that
#: are left out, at most.
N_CHECKED, MOST_CHECKED = 1000, 5000


def expected_labels(
    posterior: Posterior | SparsePosterior, points: Points, likelihood: Likelihood
) -> Array:
    """The log probability of the label of every row given all others, (n,).

    The posterior is of these rows, among others; in exact inference of these alone.
    """
    if isinstance(posterior, Posterior):
        mean, variance = posterior.mean_and_variance(points)
        w, nu, rest = posterior.sites.w, posterior.sites.nu, np.zeros(len(points))
    else:
        mean, variance, rest = posterior.moments_apart(points)
        expected = likelihood.expectations(mean, variance + rest)
        w, nu = -expected.second, expected.first - expected.second * mean
    left = np.maximum(1.0 - w * variance, np.finfo(float).eps)
    return likelihood.tilted((mean - variance * nu) / left, variance / left + rest).log_z


def predict_without(
    mixture: Mixture, rows: Rows, y: Array, repeats: NDArray[np.bool_], upper: int
) -> Prediction:
    """The labels of a level at rows that were fitted, each without what its own label told.

    The levels of the rows are ``upper`` or below it, and ``y`` are their labels, -1 or 1; a row of
    weight zero is predicted with all labels. ``repeats`` are rows at points that have a trusted
    label. Trees, and what a label told of hyper-parameters, stay.
    """
    moments, level = [], rows.level
    # Where the truth is known, some structures take nothing else from a label.
    own = {"y": y, "weight": rows.weight, "group": level, "truth": repeats.astype(float)}
    for member in mixture.members:
        fit, at = member.fit, mixture.points(member, rows.x)
        assert fit.likelihood.labels is not None
        of_rows = {name: own[name] for name in fit.likelihood.labels._row_fields}
        likelihood: Likelihood = replace(fit.likelihood.labels, **of_rows)  # type: ignore[type-var]
        mean, variance = np.empty(len(at)), np.empty(len(at))
        for t in np.unique(level):
            here = np.flatnonzero(level == t)
            below, above, var_below, var_above, shared = fit.posterior.pair(at[here], t, upper)
            # Laplace's sites are of the mode, those of others nearly of the whole posterior.
            spread = np.zeros(len(here)) if fit.scheme == "laplace" else var_below
            expected = likelihood.take(here).expectations(below, spread)
            w, nu = -expected.second, expected.first - expected.second * below
            left = np.maximum(1.0 - w * var_below, np.finfo(float).eps)
            # What the value at the lower level gains, the upper one gains in proportion.
            gain = shared / np.maximum(var_below, np.finfo(float).tiny)
            mean[here] = above + gain * ((below - var_below * nu) / left - below)
            variance[here] = var_above + gain**2 * (var_below / left - var_below)
        moments.append((mean, np.maximum(variance, 0.0)))
    means, variances = (np.stack(values) for values in zip(*moments, strict=True))
    return mixture.prediction(means, variances, np.full(len(level), upper, dtype=np.intp))


class Part(NamedTuple):
    """A model with or without a boosted mean, and labels that were left out, one at a time.

    Of each the log probability given all others, the level, the label itself, -1 or 1, and its
    weight.
    """

    mixture: Mixture
    log_p: Array
    level: Indices
    y: Array
    weight: Array


def part_of(mixture: Mixture, rows: View, weighed: bool) -> Part:
    """A sparse model of these rows, and labels left out: those of the top level for calibration.

    If it is ``weighed``, of all levels.
    """
    none = Part(mixture, *(np.empty(0, kind) for kind in (float, np.intp, float, float)))
    if not isinstance(rows, LabelledPoints):
        return none
    rows = rows.take(np.flatnonzero(~rows.likelihood.is_number))
    fit, level, rng = mixture.best.fit, rows.points.level, np.random.RandomState(0)
    top = fit.prior.n_levels - 1
    if not weighed and np.sum(level == top) <= N_CHECKED:
        return none
    of_levels = [np.flatnonzero(level == t) for t in (range(top + 1) if weighed else [top])]
    few = [rng.permutation(own)[:MOST_CHECKED] for own in of_levels]
    rows = rows.take(np.sort(np.concatenate(few)))
    likelihood = rows.likelihood.with_theta(fit.likelihood.theta)
    log_p = expected_labels(fit.posterior, rows.points, likelihood)
    return _checked(Part(mixture, log_p, rows.points.level, likelihood.y, likelihood.weight))


def _checked(part: Part) -> Part:
    """The part with the calibration of its model at the top level, if that has enough rows."""
    top = part.level == part.mixture.best.fit.prior.n_levels - 1
    if top.sum() <= N_CHECKED:
        return part
    log_p, y, weight = part.log_p[top], part.y[top], part.weight[top]
    p, hit = np.where(y > 0.0, np.exp(log_p), -np.expm1(log_p)), np.where(y > 0.0, 1.0, 0.0)
    error = float(calibration_error(p, hit, weight[None])[0])
    found = Calibration(len(y), -float(np.average(log_p, weights=weight)), error)
    return part._replace(mixture=replace(part.mixture, calibration=found))


def average_parts(one: Part, other: Part) -> Mixture:
    """Both models, with weights under which labels that are left out are most probable.

    Those of the top level count as much as all others together.
    """
    top = one.level == one.level.max()
    shares = np.where(top, 1.0 / max(top.sum(), 1), 1.0 / max((~top).sum(), 1))

    def mixed(weight: float) -> Array:
        return np.logaddexp(np.log(weight) + one.log_p, np.log1p(-weight) + other.log_p)

    def cost(weight: float) -> float:
        return -float(shares @ mixed(weight))

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
    both = one._replace(mixture=replace(first, members=members, mean=mean), log_p=mixed(weight))
    return _checked(both).mixture
