"""The approximate log evidence of hyper-parameters, with its gradient: chains the pullbacks."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import Fixed, Report, Scheme, run
from polyfid.inference.exact import ExactCovariance, Start
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior, tiles
from polyfid.rows import Points


@dataclass(frozen=True)
class Value:
    """The evidence at a point: value, gradient (empty if not asked for) and how inference went."""

    value: float
    gradient: Array
    report: Report


class Parametrised:
    """Templates of a prior and a likelihood; ``theta`` is their free parameters in that order."""

    prior: Prior
    likelihood: Likelihood

    @property
    def theta(self) -> Array:
        return np.concatenate([self.prior.theta, self.likelihood.theta])

    @property
    def bounds(self) -> Array:
        return np.concatenate([self.prior.bounds, self.likelihood.bounds])

    @property
    def theta_names(self) -> tuple[str, ...]:
        return self.prior.theta_names + self.likelihood.theta_names

    def at(self, theta: Array) -> tuple[Prior, Likelihood]:
        """Prior and likelihood with these parameters."""
        cut = len(self.prior.theta)
        return self.prior.with_theta(theta[:cut]), self.likelihood.with_theta(theta[cut:])


class Evidence(Parametrised):
    """log Z as a function of theta: the prior's parameters, then the likelihood's.

    Evaluations that follow each other start from the posterior of the one before; it is kept in
    ``warm`` and may be replaced, by None to start from nothing.

    Parameters
    ----------
    prior, likelihood : templates, whose free parameters make ``theta``.
    points : sorted points of the rows.
    scheme : an inference scheme.
    tol, max_iter : of the inner loop.
    """

    def __init__(
        self,
        prior: Prior,
        likelihood: Likelihood,
        points: Points,
        scheme: Scheme[Any],
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.prior, self.likelihood = prior, likelihood
        self.points, self.scheme = points, scheme
        self.tol, self.max_iter = tol, max_iter
        self._tiles = tiles(points)
        self.warm: Start | None = None

    def with_scheme(self, scheme: Scheme[Any]) -> Evidence:
        """The evidence of the same rows under another scheme; distances are shared."""
        other = copy.copy(self)
        other.scheme, other.warm = scheme, None
        return other

    def fixed(
        self, theta: Array, gradient: bool = False
    ) -> tuple[ExactCovariance, Likelihood, Fixed]:
        """Inference at these parameters."""
        prior, likelihood = self.at(theta)
        covariance = ExactCovariance(prior, self.points, self._tiles, gradient)
        fixed = run(self.scheme, covariance, likelihood, self.warm, self.tol, self.max_iter)
        self.warm = fixed.belief
        return covariance, likelihood, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        covariance, likelihood, fixed = self.fixed(np.asarray(theta, dtype=float), gradient)
        if not gradient:
            return Value(fixed.log_z, np.empty(0), fixed.report)
        belief = fixed.belief
        implicit = self.scheme.implicit(belief, fixed.seen)
        prior_bar = covariance.pullback(belief, implicit)
        likelihood_bar = self.scheme.theta_pullback(belief, likelihood)
        return Value(fixed.log_z, np.concatenate([prior_bar, likelihood_bar]), fixed.report)
