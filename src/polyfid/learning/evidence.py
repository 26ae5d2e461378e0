"""The approximate log evidence of hyper-parameters, with its gradient: chains the pullbacks."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import Fixed, Report, Scheme, run
from polyfid.inference.exact import ExactCovariance, Start
from polyfid.kernels.parameters import Parameters, Tunable
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior, tiles
from polyfid.rows import Points


@dataclass(frozen=True)
class Value:
    """The evidence at a point: value, gradient (empty if not asked for) and how inference went."""

    value: float
    gradient: Array
    report: Report


class Parametrised(Tunable):
    """Templates of a prior and a likelihood; ``theta`` has their free parameters in that order."""

    prior: Prior
    likelihood: Likelihood

    @property
    def parameters(self) -> Parameters:
        return Parameters.join([self.prior.parameters, self.likelihood.parameters])

    def at(self, theta: Array) -> tuple[Prior, Likelihood]:
        """Prior and likelihood with these parameters."""
        cut = len(self.prior.theta)
        return self.prior.with_theta(theta[:cut]), self.likelihood.with_theta(theta[cut:])


class Evidence(Parametrised):
    """log Z as a function of theta: the prior's parameters, then the likelihood's.

    Each evaluation starts from the posterior of the one before. That is kept in ``warm`` and may
    be replaced; None starts from the prior.

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
        fixed = run(
            self.scheme, covariance, likelihood, self.warm, self.tol, self.max_iter, gradient
        )
        self.warm = fixed.belief.start()
        return covariance, likelihood, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        covariance, likelihood, fixed = self.fixed(np.asarray(theta, dtype=float), gradient)
        if not gradient:
            return Value(fixed.log_z, np.empty(0), fixed.report)
        belief = fixed.belief.inverted()
        prior_bar = covariance.pull(belief, self.scheme.implicit(belief, fixed.labels))
        likelihood_bar = self.scheme.pull_likelihood(belief, likelihood)
        return Value(fixed.log_z, np.concatenate([prior_bar, likelihood_bar]), fixed.report)
