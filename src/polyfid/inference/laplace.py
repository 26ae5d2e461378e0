"""Laplace: the sites are the likelihood's Taylor expansion at the mode."""

from __future__ import annotations

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief
from polyfid.inference.scheme import Scheme
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Derivatives, Likelihood


class Laplace(Scheme[Derivatives]):
    """w = -l''(m), nu = w m + l'(m): Newton's method on psi(f) = log p(y|f) - f^T K^-1 f / 2."""

    name = "laplace"
    needs_variance = False

    def check(self, likelihood: Likelihood) -> None:
        if not likelihood.log_concave:
            raise ValueError(
                "Laplace needs a log-concave likelihood, and label noise is not; "
                'use inference="ep" or inference="variational"'
            )

    def look(self, belief: ExactBelief, likelihood: Likelihood) -> Derivatives:
        return likelihood.derivatives(belief.mean)

    def sites(self, belief: ExactBelief, seen: Derivatives) -> Sites:
        w = -seen.second
        return Sites(w, w * belief.mean + seen.first)

    def merit(self, belief: ExactBelief, seen: Derivatives, distance: float) -> float:
        return float(seen.value.sum() - 0.5 * (belief.alpha @ belief.mean))

    def constants(self, belief: ExactBelief, seen: Derivatives) -> float:
        m, w, nu = belief.mean, belief.sites.w, belief.sites.nu
        return float((seen.value - (nu * m - 0.5 * w * m * m)).sum())

    def implicit(self, belief: ExactBelief, seen: Derivatives) -> tuple[Array, Array]:
        # v l''' / 2 as (w v) (l''' / w) / 2: nothing is divided by a vanishing w.
        w = -seen.second
        skew = np.divide(seen.third, w, out=np.zeros_like(w), where=w != 0.0)
        return belief.implicit_solve(0.5 * belief.scaled_variance * skew), seen.first
