"""Variational Gaussian inference: the sites are expected derivatives."""

from __future__ import annotations

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief
from polyfid.inference.scheme import Scheme
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Expectations, Likelihood


class Variational(Scheme[Expectations]):
    """w = -E l'', nu = E l' + w m: natural gradient steps on the bound E log p(y|f) - KL."""

    name = "variational"
    needs_variance = True

    def ask(self, belief: ExactBelief, likelihood: Likelihood) -> Expectations:
        return likelihood.expectations(belief.mean, belief.variance)

    def sites(self, belief: ExactBelief, labels: Expectations) -> Sites:
        w = -labels.second
        return Sites(w, labels.first + w * belief.mean)

    def constants(self, belief: ExactBelief, labels: Expectations) -> float:
        m, v = belief.mean, belief.variance
        w, nu = belief.sites.w, belief.sites.nu
        return float((labels.value - nu * m + 0.5 * w * (m * m + v)).sum())

    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        return likelihood.expectations_pullback(belief.mean, belief.variance)
