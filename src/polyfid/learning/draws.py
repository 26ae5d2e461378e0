"""Posteriors under hyper-parameters that are drawn from what is believed of them.

Predictions need the best hyper-parameters only. What further labels are worth does not: with few
labels it is often not known whether levels differ, and a label that tells is worth much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from polyfid.inference import SCHEMES
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.learning.climb import make_hyperprior
from polyfid.learning.evidence import Evidence
from polyfid.learning.links import theta_root
from polyfid.learning.mixture import BinaryFit, Member, Mixture
from polyfid.model.likelihoods import Likelihood

#: Of more rows than this no hyper-parameters are drawn: many labels tell which are right.
MANY_ROWS = 600


@dataclass(frozen=True)
class Drawn:
    """A structure at drawn hyper-parameters, with its share in the average."""

    member: int
    weight: float
    posterior: Posterior | SparsePosterior
    likelihood: Likelihood


def draw_posteriors(
    mixture: Mixture, n_draws: int, weak_prior: bool, rng: np.random.RandomState
) -> list[Drawn]:
    """Posteriors of a mixture under about so many draws of hyper-parameters.

    Each structure has draws in proportion to its weight, its own hyper-parameters among them. They
    come from a normal distribution that has the curvature of the posterior at its mode, and are
    weighted by how probable they are; none by more than three times its share.
    """
    drawn = []
    for k, member in enumerate(mixture.members):
        n = max(1, round(n_draws * member.weight)) if _can_draw(member, weak_prior) else 1
        found = list(_draws(member.fit, n - 1, rng))
        log_weights = np.array([log_weight for *_, log_weight in found])
        log_weights = np.minimum(log_weights, logsumexp(log_weights) - np.log(len(found) / 3.0))
        shares = np.exp(log_weights - logsumexp(log_weights))
        drawn += [
            Drawn(k, float(member.weight * share), posterior, likelihood)
            for (posterior, likelihood, _), share in zip(found, shares, strict=True)
        ]
    return drawn


def _can_draw(member: Member, weak_prior: bool) -> bool:
    fit = member.fit
    tuned = fit.optimum is not None and len(fit.theta) > 0
    return tuned and weak_prior and fit.sparse is None and len(fit.posterior.points) <= MANY_ROWS


def _draws(
    fit: BinaryFit, n: int, rng: np.random.RandomState
) -> Iterator[tuple[Posterior | SparsePosterior, Likelihood, float]]:
    """The fit itself and others at drawn hyper-parameters, with logarithms of weights."""
    yield fit.posterior, fit.likelihood, 0.0
    root = theta_root(fit, weak_prior=True) if n else None
    if root is None:
        return
    if fit.likelihood.log_concave:
        fit = replace(fit, scheme="laplace")  # several times faster
    points = fit.posterior.points
    evidence = Evidence(fit.prior, fit.likelihood, points, SCHEMES[fit.scheme])
    hyperprior = make_hyperprior(fit.prior, fit.likelihood, points, True)
    sobol = qmc.Sobol(len(root), scramble=True, seed=rng.randint(1 << 30))
    uniform = sobol.random(1 << max(0, n - 1).bit_length())[:n]
    low, high = evidence.bounds.T
    with np.errstate(all="ignore"), suitable_threads(len(points)):
        mode = evidence(fit.theta, False).value + hyperprior(fit.theta)[0]
        for z in ndtri(np.clip(uniform, 1e-3, 1.0 - 1e-3)):
            theta = np.clip(fit.theta + root @ z, low, high)
            try:
                covariance, likelihood, fixed = evidence.fixed(theta)
                posterior = Posterior.from_belief(covariance.prior, points, fixed.belief)
            except NotPositiveDefinite:
                continue
            log_weight = float(fixed.log_z + hyperprior(theta)[0] - mode + 0.5 * z @ z)
            if fixed.report.converged and np.isfinite(log_weight):
                yield posterior, likelihood, log_weight
