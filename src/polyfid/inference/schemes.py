"""Inference schemes: how marginals become sites, one row of the table in docs/notation.md each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief, InvertedBelief, Sites
from polyfid.model.likelihoods import Derivatives, Expectations, Likelihood
from polyfid.model.logistic import Tilted

Labels = TypeVar("Labels")


class Scheme(ABC, Generic[Labels]):
    """Site update, constants of the evidence, and the implicit pair of its derivative.

    What a scheme asks of the likelihood, given marginals, is computed once, by `ask`, and handed
    to the other methods as ``labels``.
    """

    name: str
    #: Whether the site update needs posterior variances.
    needs_variance: bool = True
    #: Whether there is an objective that good steps raise.
    has_objective: bool = True
    #: Earlier states that a step is extrapolated from.
    memory: int = 5

    def check(self, likelihood: Likelihood) -> None:
        """Raise ValueError for a likelihood that the scheme cannot take."""

    @abstractmethod
    def ask(self, belief: ExactBelief, likelihood: Likelihood) -> Labels:
        """What the likelihood says under the marginals."""

    @abstractmethod
    def sites(self, belief: ExactBelief, labels: Labels) -> Sites:
        """The sites that the labels ask for."""

    @abstractmethod
    def constants(self, belief: ExactBelief, labels: Labels) -> float:
        """Log Z minus its Gaussian part, -log|B|/2 + nu^T m / 2."""

    def implicit(self, belief: InvertedBelief, labels: Labels) -> tuple[Array, Array] | None:
        """The pair (u, g) of the evidence's derivative in K, where the sites depend on K."""
        return None

    def pull_likelihood(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        """Derivative of log Z in the likelihood's own parameters."""
        return np.empty(0)

    def merit(self, belief: ExactBelief, labels: Labels) -> float:
        """The objective."""
        return self.log_z(belief, labels)

    def log_z(self, belief: ExactBelief, labels: Labels) -> float:
        """The approximate log evidence."""
        gauss = -0.5 * belief.log_det + 0.5 * float(belief.sites.nu @ belief.mean)
        return gauss + self.constants(belief, labels)


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


class Variational(Scheme[Expectations]):
    """w = -E l'', nu = E l' + w m: natural gradient steps on the bound E log p(y|f) - KL."""

    name = "variational"

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


class Cavity(NamedTuple):
    """Marginals without one copy of the row's own site, and cavity times label."""

    mean: Array
    variance: Array
    copies: Array
    tilted: Tilted


class EP(Scheme[Cavity]):
    """Expectation propagation, all sites at once: they match moments of cavity times label.

    A row of weight c > 1 is c equal sites, so that weight equals repetition.
    """

    name = "ep"
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


SCHEMES: dict[str, Scheme[Any]] = {
    scheme.name: scheme for scheme in (Laplace(), EP(), Variational())
}
