"""Expectation propagation: the sites match moments of cavity times label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief
from polyfid.inference.scheme import Scheme
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Likelihood
from polyfid.model.logistic import Tilted


class Cavity(NamedTuple):
    """Marginals without one copy of the row's own site, and cavity times label."""

    mean: Array
    variance: Array
    copies: Array
    tilted: Tilted


class EP(Scheme[Cavity]):
    """Parallel EP. A row of weight c > 1 is c equal sites, so that weight equals repetition."""

    name = "ep"
    needs_variance = True
    has_objective = False

    def ask(self, belief: ExactBelief, likelihood: Likelihood) -> Cavity:
        copies = np.maximum(likelihood.weight, 1.0)
        w, nu = belief.sites.w / copies, belief.sites.nu / copies
        m, v = belief.mean, belief.variance
        shrink = np.maximum(1.0 - w * v, 1e-10)
        mean, variance = (m - v * nu) / shrink, v / shrink
        return Cavity(mean, variance, copies, likelihood.tilted(mean, variance))

    def sites(self, belief: ExactBelief, labels: Cavity) -> Sites:
        mean, variance, copies, (_, first, second) = labels
        scale = copies / np.maximum(1.0 + variance * second, 1e-12)
        return Sites(-second * scale, (first - mean * second) * scale)

    def constants(self, belief: ExactBelief, labels: Cavity) -> float:
        # For each copy, log Z of the label minus the log of the integral of cavity times site.
        mean, variance, copies, tilted = labels
        w, nu = belief.sites.w / copies, belief.sites.nu / copies
        grown = 1.0 + w * variance
        fit = (nu * nu * variance + 2.0 * nu * mean - w * mean * mean) / grown
        return float((copies * (tilted.log_z + 0.5 * np.log(grown) - 0.5 * fit)).sum())

    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        labels = self.ask(belief, likelihood)
        return likelihood.tilted_pullback(labels.mean, labels.variance, labels.copies)
