"""The contract of an inference scheme: how marginals become sites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.exact import ExactBelief
from polyfid.inference.sites import Sites
from polyfid.model.likelihoods import Likelihood

Seen = TypeVar("Seen")


class Scheme(ABC, Generic[Seen]):
    """A row of the table of schemes: site update, constants of the evidence, implicit pair.

    What a scheme asks of the likelihood at a belief is computed once, by `look`, and handed to
    the other methods as ``seen``.
    """

    name: str
    #: Whether the site update looks at posterior variances.
    needs_variance: bool
    #: Whether `merit` is an objective that good steps raise.
    has_objective: bool = True

    def check(self, likelihood: Likelihood) -> None:
        """Complain about a likelihood that the scheme cannot take."""

    @abstractmethod
    def look(self, belief: ExactBelief, likelihood: Likelihood) -> Seen:
        """The likelihood as the scheme sees it from the marginals."""

    @abstractmethod
    def sites(self, belief: ExactBelief, seen: Seen) -> Sites:
        """The sites that the marginals call for."""

    @abstractmethod
    def merit(self, belief: ExactBelief, seen: Seen, distance: float) -> float:
        """What rises from step to step."""

    @abstractmethod
    def constants(self, belief: ExactBelief, seen: Seen) -> float:
        """Log Z less the Gaussian part, -log|B|/2 + nu^T m / 2."""

    def implicit(self, belief: ExactBelief, seen: Seen) -> tuple[Array, Array] | None:
        """The pair (u, g) of the evidence's derivative in K, where the sites depend on K."""
        return None

    def theta_pullback(self, belief: ExactBelief, likelihood: Likelihood) -> Array:
        """Derivative of log Z in the likelihood's own parameters."""
        return np.empty(0)

    def log_z(self, belief: ExactBelief, seen: Seen) -> float:
        """The approximate log evidence."""
        gauss = -0.5 * belief.log_det + 0.5 * float(belief.sites.nu @ belief.mean)
        return gauss + self.constants(belief, seen)
