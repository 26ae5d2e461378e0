"""The contract of an inference scheme: how marginals become sites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief, InvertedBelief
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Likelihood

Labels = TypeVar("Labels")


class Scheme(ABC, Generic[Labels]):
    """A row of the table of schemes: site update, constants of the evidence, implicit pair.

    What a scheme asks of the likelihood, given marginals, is computed once, by `ask`, and handed
    to the other methods as ``labels``.
    """

    name: str
    #: Whether the site update needs posterior variances.
    needs_variance: bool
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
