"""Tuning one binary model: its prior, the hyper-prior, where to start, the best values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.posterior import Posterior
from polyfid.kernels import RBF, Constant, Kernel
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import Optimum, maximise, spread_starts
from polyfid.learning.evidence import Evidence
from polyfid.learning.fit_options import Options
from polyfid.learning.mixture import BinaryFit
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Autoregressive, Coregional, Prior
from polyfid.rows import Points

#: Corrections between levels start this much smaller, in logarithms of their scale.
SMALLER_CORRECTION = 1.5


def default_kernel(n_features: int) -> Kernel:
    """A scaled RBF with one length-scale per feature, softly tied together by the weak prior."""
    return Constant(np.exp(1.5)) * RBF(np.sqrt(n_features), ard=True)


def make_prior(options: Options, n_features: int) -> Prior:
    """The prior that the options describe, over points of so many features."""
    kernels = options.kernels or (default_kernel(n_features),) * options.n_levels
    kernels = tuple(k.for_features(n_features) for k in kernels)
    if options.coupling == "coregional":
        # Levels start alike on the first process and apart on the others.
        weights = np.eye(options.n_levels, len(kernels))
        weights[:, 0] = 1.0
        return Coregional(kernels, weights)  # type: ignore[arg-type]
    return Autoregressive(kernels, options.rho, options.rho_bounds)


def make_hyperprior(prior: Prior, likelihood: Likelihood, points: Points, weak: bool) -> HyperPrior:
    """The weak prior on hyper-parameters, or a flat one."""
    n_likelihood = len(likelihood.theta)
    typical = [
        prior.mixing_prior(),
        *(k.weak_prior(points.x) for k in prior.kernels),
        HyperPrior.independent([1.5] * n_likelihood, [1.0] * n_likelihood),
    ]
    joined = HyperPrior.join(typical)
    return joined if weak else joined.flattened()


def starting_points(
    evidence: Evidence, hyperprior: HyperPrior, options: Options, rng: np.random.RandomState
) -> list[Array]:
    """Where climbs begin: the values given, typical ones with each sign of rho, random ones.

    One level with a kernel of the user's choice has one start, as in scikit-learn: it is the link
    between levels that brings several modes.
    """
    prior = evidence.prior
    given = evidence.theta
    n_mixing = len(prior.mixing.values)
    typical = hyperprior.mean.copy()
    typical[:n_mixing] = given[:n_mixing]
    typical = np.where(hyperprior.known, typical, given)
    names = np.array(evidence.theta_names, dtype=str)
    # Corrections start small: what the levels share is to be learnt first.
    corrections = np.char.startswith(names, "delta") & np.char.endswith(names, "constant.value")
    typical[corrections & hyperprior.known] -= SMALLER_CORRECTION
    if options.kernels is None:  # the values given are the typical ones: try wigglier ones too
        lengths = np.char.find(names, "length_scale") >= 0
        given = np.where(lengths, typical - 1.0, typical)
    scattered = spread_starts(evidence, hyperprior, options.n_restarts, rng)
    if len(prior.kernels) == 1 and options.kernels is not None:
        return [given, *scattered]
    starts = [given, typical]
    for t in prior.mirrors:
        flipped = typical.copy()
        flipped[t] *= -1.0
        starts.append(flipped)
    return starts + scattered


def tune(evidence: Evidence, options: Options, rng: np.random.RandomState) -> Optimum | None:
    """The best hyper-parameters under evidence and hyper-prior; None where they stay as given.

    Laplace is several times faster than the other schemes and its optimum is near theirs, so where
    the likelihood allows it, Laplace climbs from all starts and the scheme itself from there.
    """
    if not options.optimise or not len(evidence.theta):
        return None
    hyperprior = make_hyperprior(
        evidence.prior, evidence.likelihood, evidence.points, options.weak_prior
    )
    starts = starting_points(evidence, hyperprior, options, rng)
    limits = options.max_iter, options.tol, options.n_jobs
    laplace = evidence.with_scheme(SCHEMES["laplace"])
    with suitable_threads(len(evidence.points)):
        if not evidence.likelihood.log_concave or laplace.scheme is evidence.scheme:
            return maximise(evidence, hyperprior, starts, *limits)
        first = maximise(laplace, hyperprior, starts, *limits)
        final = maximise(evidence, hyperprior, [first.theta], *limits)
    return replace(final, climbs=final.climbs + first.climbs)


def infer(evidence: Evidence, optimum: Optimum | None, tuned_on: int | None = None) -> BinaryFit:
    """The posterior of the rows at the optimum, or at the hyper-parameters as given."""
    theta = evidence.theta if optimum is None else optimum.theta
    n = len(evidence.points)
    with suitable_threads(n):
        covariance, likelihood, fixed = evidence.fixed(theta)
    return BinaryFit(
        Posterior.from_belief(covariance.prior, evidence.points, fixed.belief),
        likelihood,
        fixed.log_z,
        fixed.report,
        optimum,
        evidence.theta_names,
        n if tuned_on is None else tuned_on,
        evidence.scheme.name,
    )
