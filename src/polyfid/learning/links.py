"""How levels are linked according to fitted models: slopes and correlations with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.learning.climb import make_hyperprior
from polyfid.learning.mixture import BinaryFit, Mixture

#: Multiplications for the curvature of the evidence, over all classes (about ten seconds).
_CURVATURE_COST = 3e10
#: Draws of hyper-parameters per structure, and rows at which variances are averaged.
_THETA_DRAWS, _ROWS = 200, 300
#: Step of finite differences, and the least curvature, in units of a weak prior's.
_STEP, _LEAST_CURVATURE = 1e-3, 0.05


@dataclass(frozen=True)
class Link:
    """How a level follows the level below it, with 95 % intervals.

    ``rho`` and ``correlation`` are averages over structures by weight; ``rho_each`` and
    ``correlation_each`` are the values of the structures, whose weights are ``weights``.
    """

    lower: Any
    upper: Any
    weights: Array
    rho: float
    rho_interval: tuple[float, float]
    rho_each: Array
    correlation: float
    correlation_interval: tuple[float, float]
    correlation_each: Array

    @property
    def has_intervals(self) -> bool:
        """Whether there are any: one structure with given hyper-parameters has none."""
        return any(low < high for low, high in (self.rho_interval, self.correlation_interval))

    def __str__(self) -> str:
        shown = (
            f"{name} {value:+.2f}"
            + (f" ({ends[0]:+.2f} to {ends[1]:+.2f})" if ends[0] < ends[1] else "")
            for name, value, ends in (
                ("rho", self.rho, self.rho_interval),
                ("correlation", self.correlation, self.correlation_interval),
            )
        )
        return f"{self.upper} on {self.lower}: {', '.join(shown)}"


def link_levels(
    mixtures: Sequence[Mixture], levels: Sequence[Any], weak_prior: bool
) -> list[list[Link]]:
    """The links between neighbouring levels, from the lowest: one list per mixture.

    Intervals cover the spread over structures and the uncertainty of hyper-parameters. The latter
    takes long for large fits: it is left out of the structures of least weight where all of it
    would take more than some ten seconds.
    """
    if len(levels) < 2:
        return [[] for _ in mixtures]
    every = []
    for mixture in mixtures:
        weights, rng = mixture.weights, np.random.RandomState(0)
        fits = [member.fit for member in mixture.members]
        tuned = np.stack([fit.prior.slopes(typical_rows(fit.posterior.points.x)) for fit in fits])
        budget, draws = _CURVATURE_COST / len(mixtures), []
        for fit in fits:
            cost = _cost(fit)
            root = theta_root(fit, weak_prior) if 0.0 < cost <= budget else None
            budget -= cost if root is not None else 0.0
            draws.append(_draw_slopes(fit, root, rng))
        drawn, repeated = np.concatenate(draws), np.repeat(weights, _THETA_DRAWS)
        links = []
        for t in range(len(levels) - 1):
            values: list[Any] = []
            for k in range(2):
                mean = float(weights @ tuned[:, t, k])
                values += [mean, _interval(drawn[:, t, k], repeated, mean), tuned[:, t, k]]
            links.append(Link(levels[t], levels[t + 1], weights, *values))
        every.append(links)
    return every


def typical_rows(x: Array) -> Array:
    """At most `_ROWS` of the rows, evenly spread over them."""
    if len(x) > _ROWS:
        x = x[np.linspace(0, len(x) - 1, _ROWS).astype(int)]
    return np.ascontiguousarray(x)


def _draw_slopes(fit: BinaryFit, root: Array | None, rng: np.random.RandomState) -> Array:
    """Slopes under hyper-parameters drawn from their Laplace posterior, (draws, steps, 2)."""
    x = typical_rows(fit.posterior.points.x)
    if root is None:
        return np.repeat(fit.prior.slopes(x)[None], _THETA_DRAWS, axis=0)
    noise = rng.standard_normal((_THETA_DRAWS, len(root)))
    low, high = fit.prior.bounds.T
    thetas = np.clip((fit.theta + noise @ root.T)[:, : len(low)], low, high)
    return np.stack([fit.prior.with_theta(theta).slopes(x) for theta in thetas])


def _cost(fit: BinaryFit) -> float:
    """Multiplications that `theta_root` takes; 0 if no hyper-parameters were tuned."""
    n, p = len(fit.posterior.points), 0 if fit.optimum is None else len(fit.theta)
    # One gradient per parameter: each factorises once and passes over the rows once per parameter.
    return float(p) * (float(n) ** 3 + p * float(n) ** 2)


def theta_root(fit: BinaryFit, weak_prior: bool) -> Array | None:
    """A root of the posterior covariance of the hyper-parameters; None if it has none."""
    theta = fit.theta
    if fit.likelihood.log_concave:
        fit = replace(fit, scheme="laplace")  # several times faster, and its curvature is close
    hyperprior = make_hyperprior(fit.prior, fit.likelihood, fit.posterior.points, weak_prior)
    evidence = fit.evidence()  # one for all, which begins each inference at the last posterior
    try:
        with np.errstate(all="ignore"), suitable_threads(len(fit.posterior.points)):
            here = evidence(theta, True).gradient
            moved = [evidence(theta + _STEP * e, True).gradient for e in np.eye(len(theta))]
    except NotPositiveDefinite:
        return None
    H = hyperprior.precision - (np.stack(moved) - here) / _STEP
    if not np.isfinite(H).all():
        return None
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    return np.asarray(vectors / np.sqrt(np.maximum(values, _LEAST_CURVATURE)))


def _interval(values: Array, weights: Array, mean: float) -> tuple[float, float]:
    """The 2.5 % and 97.5 % quantiles of weighted values, widened to hold the mean."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    ends = np.minimum(np.searchsorted(share, [0.025, 0.975]), len(values) - 1)
    low, high = values[order[ends]]
    # An average of structures that disagree may lie outside of what any of them says.
    return float(min(low, mean)), float(max(high, mean))
