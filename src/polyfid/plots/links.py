"""How levels are linked under a fitted model, how sure that is, and what each level brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.learning.mixture import Member, Mixture
from polyfid.learning.model import BinaryFit, evaluate, make_hyperprior
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Multiplications that the curvature of the evidence may cost; some ten seconds.
_CHEAP = 3e10
#: Draws of hyper-parameters a structure, and rows at which variances are taken.
_DRAWS, _ROWS = 200, 300
#: Step of finite differences, and the least curvature, in units of a weak prior's.
_STEP, _FLAT = 1e-3, 0.05


@dataclass(frozen=True)
class Link:
    """One step between neighbouring levels: values of each structure and intervals over all.

    ``rho`` and ``correlation`` are averages over structures by weight; ``..._each`` are those of
    the structures, whose weights are ``weights``.
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


def links(mixture: Mixture, levels: Sequence[Any], weak_prior: bool) -> list[Link]:
    """The steps between the levels of one binary model."""
    weights = mixture.weights
    rng = np.random.RandomState(0)
    members = mixture.members
    tuned = np.stack([_link_of(m.fit.prior, _some(m.fit.posterior.points.x)) for m in members])
    draws = np.stack([_draw(m, weak_prior, rng) for m in members])  # (m, draws, steps, 2)
    mean = np.einsum("m,mtk->tk", weights, tuned)
    spread = np.repeat(weights / draws.shape[1], draws.shape[1])
    found = []
    for t in range(len(levels) - 1):
        ends = [_quantiles(draws[:, :, t, k].ravel(), spread) for k in range(2)]
        # An average of structures that disagree may lie outside of what any of them says.
        ends = [(min(a, v), max(b, v)) for (a, b), v in zip(ends, mean[t].tolist(), strict=True)]
        found.append(
            Link(
                levels[t],
                levels[t + 1],
                weights,
                float(mean[t, 0]),
                ends[0],
                tuned[:, t, 0],
                float(mean[t, 1]),
                ends[1],
                tuned[:, t, 1],
            )
        )
    return found


def contributions(mixture: Mixture, levels: Sequence[Any], x: Array | None) -> Array:
    """What labels of each level tell of the top latent function, and what stays unknown.

    Shares of the prior variance of the top function, averaged over the points: by how much its
    posterior variance falls when the labels of a level are added to those of all more trusted
    levels. (n_levels + 1,), sums to one; the last entry is what is left.
    """
    total = np.zeros(len(levels) + 1)
    for m in mixture.members:
        posterior = m.fit.posterior
        at = posterior.points.x if x is None else np.ascontiguousarray(m.features(x))
        at = _some(at)
        new = Points(at, np.full(len(at), len(levels) - 1, dtype=np.intp))
        before = start = float(posterior.prior.diagonal(new).mean())
        for t in range(len(levels) - 1, -1, -1):
            after = min(float(posterior.variance_from(t, new, m.fit.likelihood).mean()), before)
            total[t] += m.weight * (before - after) / start
            before = after
        total[-1] += m.weight * before / start
    return total / total.sum()


def _some(x: Array) -> Array:
    """At most so many of the rows, evenly spread over them."""
    if len(x) <= _ROWS:
        return x
    return np.ascontiguousarray(x[np.linspace(0, len(x) - 1, _ROWS).astype(int)])


def _link_of(prior: Prior, x: Array) -> Array:
    """Slope (rho) and prior correlation of neighbouring levels at typical points, (steps, 2)."""
    variances = np.array([float(np.mean(k.diagonal(x))) for k in prior.kernels])
    joint = (prior.loadings * variances) @ prior.loadings.T
    own = np.maximum(np.diagonal(joint), np.finfo(float).tiny)
    shared = np.diagonal(joint, 1)
    return np.stack([shared / own[:-1], shared / np.sqrt(own[:-1] * own[1:])], axis=1)


def _draw(member: Member, weak_prior: bool, rng: np.random.RandomState) -> Array:
    """Slopes and correlations under hyper-parameters from their Laplace posterior."""
    fit = member.fit
    x = _some(fit.posterior.points.x)
    root = _theta_root(fit, weak_prior)
    if root is None:
        return np.repeat(_link_of(fit.prior, x)[None], _DRAWS, axis=0)
    n = len(fit.prior.theta)
    noise = rng.standard_normal((_DRAWS, len(root)))
    low, high = fit.prior.bounds.T
    thetas = np.clip((fit.theta + noise @ root.T)[:, :n], low, high)
    return np.stack([_link_of(fit.prior.with_theta(theta), x) for theta in thetas])


def _theta_root(fit: BinaryFit, weak_prior: bool) -> Array | None:
    """A root of the posterior covariance of the hyper-parameters, None where that costs much."""
    theta = fit.theta
    n, p = len(fit.posterior.points), len(theta)
    # One gradient a parameter; each factorises, and goes through the rows once a parameter.
    if fit.optimum is None or not p or p * (n**3 + p * n**2) > _CHEAP:
        return None
    if fit.likelihood.log_concave:
        fit = replace(fit, scheme="laplace")  # several times faster, and its curvature is near
    hyperprior = make_hyperprior(fit.prior, fit.likelihood, fit.posterior.points, weak_prior)
    try:
        slopes = [evaluate(fit, theta + _STEP * e, True).gradient for e in np.eye(len(theta))]
        here = evaluate(fit, theta, True).gradient
    except NotPositiveDefinite:
        return None
    H = hyperprior.precision - (np.stack(slopes) - here) / _STEP
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    return np.asarray(vectors / np.sqrt(np.maximum(values, _FLAT)))


def _quantiles(values: Array, weights: Array) -> tuple[float, float]:
    """The 2.5 % and 97.5 % points of weighted values."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(share, [0.025, 0.975])
    last = len(values) - 1
    return float(values[order[min(low, last)]]), float(values[order[min(high, last)]])
