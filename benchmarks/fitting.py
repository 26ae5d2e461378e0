"""Fits from one start through the parts of polyfid: the estimator itself always takes several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthetic import Problem
from polyfid.inference import SCHEMES
from polyfid.inference.posterior import Posterior
from polyfid.kernels import RBF, Constant, Kernel
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import maximise
from polyfid.learning.evidence import Evidence
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """Where a climb ended."""

    log_evidence: float
    posterior: Posterior
    n_evaluations: int


def scaled_rbf(bounds: tuple[float, float] = (1e-5, 1e5)) -> Kernel:
    """Scale and one length-scale, both from 1: what scikit-learn's users write."""
    return Constant(1.0, bounds) * RBF(1.0, bounds)


def make_evidence(
    problem: Problem,
    kernel: Kernel,
    inference: str = "laplace",
    kind: type[Evidence] = Evidence,
) -> Evidence:
    """The evidence of a problem, with the same kernel for all latent processes."""
    n_levels = int(problem.level.max()) + 1
    kernels = (kernel.for_features(problem.x.shape[1]),) * n_levels
    prior = Autoregressive(kernels, (1.0,) * (n_levels - 1), (-10.0, 10.0))
    likelihood = Logit(np.where(problem.y > 0, 1.0, -1.0), np.ones(len(problem.y)))
    return kind(prior, likelihood, Points(problem.x, problem.level), SCHEMES[inference])


def fit_from_one_start(problem: Problem, kernel: Kernel) -> Fitted:
    """Type-II maximum likelihood from the kernel's own values: as one climb of the estimator."""
    evidence = make_evidence(problem, kernel)
    optimum = maximise(evidence, HyperPrior.flat(len(evidence.theta)), [evidence.theta])
    covariance, _, fixed = evidence.fixed(optimum.theta)
    posterior = Posterior.from_belief(covariance.prior, evidence.points, fixed.belief)
    return Fitted(fixed.log_z, posterior, optimum.n_evaluations)
