"""Laplace: the sites are the likelihood's Taylor expansion at the mode."""

from __future__ import annotations

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief, InvertedBelief
from polyfid.inference.scheme import Scheme
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Derivatives, Likelihood


class Laplace(Scheme[Derivatives]):
    """w = -l''(m), nu = w m + l'(m): Newton's method on psi(f) = log p(y|f) - f^T K^-1 f / 2."""

    name = "laplace"
    needs_variance = False
    memory = 0  # Newton's steps get shorter by themselves

    def check(self, likelihood: Likelihood) -> None:
        if not likelihood.log_concave:
            raise ValueError(
                "Laplace needs a log-concave likelihood, and label noise is not; "
                'use inference="ep" or inference="variational"'
            )

    def ask(self, belief: ExactBelief, likelihood: Likelihood) -> Derivatives:
        return likelihood.derivatives(belief.mean)

    def sites(self, belief: ExactBelief, labels: Derivatives) -> Sites:
        w = -labels.second
        return Sites(w, w * belief.mean + labels.first)

    def merit(self, belief: ExactBelief, labels: Derivatives) -> float:
        return float(labels.value.sum() - 0.5 * (belief.alpha @ belief.mean))

    def constants(self, belief: ExactBelief, labels: Derivatives) -> float:
        m, w, nu = belief.mean, belief.sites.w, belief.sites.nu
        return float((labels.value - (nu * m - 0.5 * w * m * m)).sum())

    def implicit(self, belief: InvertedBelief, labels: Derivatives) -> tuple[Array, Array]:
        # v l''' / 2 as (w v) (l''' / w) / 2: nothing is divided by a vanishing w.
        w = -labels.second
        skew = np.divide(labels.third, w, out=np.zeros_like(w), where=w != 0.0)
        return belief.implicit_solve(0.5 * belief.scaled_variance * skew), labels.first
