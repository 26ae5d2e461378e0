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

    def look(self, belief: ExactBelief, likelihood: Likelihood) -> Cavity:
        copies = np.maximum(likelihood.weight, 1.0)
        w, nu = belief.sites.w / copies, belief.sites.nu / copies
        m, v = belief.mean, belief.variance
        shrink = np.maximum(1.0 - w * v, 1e-10)
        mean, variance = (m - v * nu) / shrink, v / shrink
        return Cavity(mean, variance, copies, likelihood.tilted(mean, variance))

    def sites(self, belief: ExactBelief, seen: Cavity) -> Sites:
        mean, variance, copies, (_, first, second) = seen
        scale = copies / np.maximum(1.0 + variance * second, 1e-12)
        return Sites(-second * scale, (first - mean * second) * scale)

    def merit(self, belief: ExactBelief, seen: Cavity, distance: float) -> float:
        return -distance

    def constants(self, belief: ExactBelief, seen: Cavity) -> float:
        # log Z of the label less log of the integral of cavity times site, a copy.
        mean, variance, copies, tilted = seen
        w, nu = belief.sites.w / copies, belief.sites.nu / copies
        grown = 1.0 + w * variance
        fit = (nu * nu * variance + 2.0 * nu * mean - w * mean * mean) / grown
        return float((copies * (tilted.log_z + 0.5 * np.log(grown) - 0.5 * fit)).sum())

    def theta_pullback(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        seen = self.look(belief, likelihood)
        return likelihood.tilted_pullback(seen.mean, seen.variance, seen.copies)
