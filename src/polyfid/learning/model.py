"""Fitting one binary model: from labelled points and settings to a posterior and its story."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.inference import SCHEMES, Report
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.posterior import Posterior
from polyfid.inference.sources import MemoryRows
from polyfid.inference.sparse_posterior import SparsePosterior
from polyfid.kernels import RBF, Constant, Kernel, Pairs
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.learning.climb import Optimum, maximise, spread_starts
from polyfid.learning.evidence import Evidence, Value
from polyfid.learning.sparse_evidence import SparseEvidence
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Autoregressive, Coregional, Prior
from polyfid.rows import Points

#: Corrections between levels start this much smaller, in logarithms of their scale.
SMALLER_CORRECTION = 1.5


@dataclass(frozen=True)
class Settings:
    """How to fit: what the estimator's parameters come to."""

    kernels: tuple[Kernel, ...] | None  # None: learn with the default kernel
    rho: tuple[float, ...]
    rho_bounds: tuple[float, float] | str
    coupling: str
    inference: str
    may_fall_back: bool  # to Laplace, where the scheme does not converge
    weak_prior: bool
    optimise: bool
    n_restarts: int
    max_iter: int
    tol: float
    n_jobs: int | None
    refine_inducing: bool = True  # whether inducing points move while tuning

    def tells_rows_apart(self, x: Array) -> bool:
        """Whether a kernel gives repeats of a point latent values of their own, as noise does."""
        point = x[:1]
        same, other = Pairs(point, point, 0), Pairs(point, point)
        kernels = [k.for_features(x.shape[1]) for k in self.kernels or ()]
        return any(not np.array_equal(k.evaluate(same), k.evaluate(other)) for k in kernels)


@dataclass(frozen=True)
class BinaryFit:
    """A fitted binary model."""

    posterior: Posterior | SparsePosterior
    likelihood: Likelihood
    log_evidence: float
    inference: Report
    optimum: Optimum | None
    theta_names: tuple[str, ...]
    tuned_on: int
    scheme: str

    @property
    def prior(self) -> Prior:
        return self.posterior.prior

    @property
    def exact(self) -> Posterior | None:
        """The posterior, if inference was exact."""
        return self.posterior if isinstance(self.posterior, Posterior) else None

    @property
    def sparse(self) -> SparsePosterior | None:
        """The posterior, if it is by way of inducing points."""
        return self.posterior if isinstance(self.posterior, SparsePosterior) else None

    @property
    def theta(self) -> Array:
        return np.concatenate([self.prior.theta, self.likelihood.theta])


def default_kernel(n_features: int) -> Kernel:
    """A scaled RBF with one length-scale a feature, which the weak prior ties softly together."""
    return Constant(np.exp(1.5)) * RBF(np.sqrt(n_features), ard=True)


def make_prior(settings: Settings, n_features: int, n_levels: int) -> Prior:
    """The prior that the settings describe."""
    kernels = settings.kernels or (default_kernel(n_features),) * n_levels
    kernels = tuple(k.for_features(n_features) for k in kernels)
    if settings.coupling == "coregional":
        # Sources start alike on the first process and apart on the others.
        weights = np.eye(n_levels, len(kernels))
        weights[:, 0] = 1.0
        return Coregional(kernels, weights)  # type: ignore[arg-type]
    return Autoregressive(kernels, settings.rho, settings.rho_bounds)


def make_hyperprior(prior: Prior, likelihood: Likelihood, points: Points, weak: bool) -> HyperPrior:
    """The weak prior on hyper-parameters, or none."""
    n_likelihood = len(likelihood.theta)
    typical = [
        prior.mixing_prior(),
        *(k.weak_prior(points.x) for k in prior.kernels),
        HyperPrior.independent([1.5] * n_likelihood, [1.0] * n_likelihood),
    ]
    joined = HyperPrior.join(typical)
    return joined if weak else joined.flattened()


def starting_points(
    evidence: Evidence, hyperprior: HyperPrior, settings: Settings, rng: np.random.RandomState
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
    # Corrections start small: what the levels share is to be found first.
    corrections = np.char.startswith(names, "delta") & np.char.endswith(names, "constant.value")
    typical[corrections & hyperprior.known] -= SMALLER_CORRECTION
    if settings.kernels is None:  # the values given are the typical ones: look at wigglier ones too
        lengths = np.char.find(names, "length_scale") >= 0
        given = np.where(lengths, typical - 1.0, typical)
    scattered = spread_starts(evidence, hyperprior, settings.n_restarts, rng)
    if len(prior.kernels) == 1 and settings.kernels is not None:
        return [given, *scattered]
    starts = [given, typical]
    for t in prior.mirrors:
        flipped = typical.copy()
        flipped[t] *= -1.0
        starts.append(flipped)
    return starts + scattered


def tune(evidence: Evidence, settings: Settings, rng: np.random.RandomState) -> Optimum:
    """The best hyper-parameters under the evidence and the hyper-prior.

    Laplace is several times faster than the other schemes and its optimum is near theirs, so where
    the likelihood allows it, Laplace climbs from all starts and the scheme itself from there.
    """
    hyperprior = make_hyperprior(
        evidence.prior, evidence.likelihood, evidence.points, settings.weak_prior
    )
    starts = starting_points(evidence, hyperprior, settings, rng)
    limits = settings.max_iter, settings.tol, settings.n_jobs
    scout = evidence.with_scheme(SCHEMES["laplace"])
    if not evidence.likelihood.log_concave or scout.scheme is evidence.scheme:
        return maximise(evidence, hyperprior, starts, *limits)
    scouted = maximise(scout, hyperprior, starts, *limits)
    final = maximise(evidence, hyperprior, [scouted.theta], *limits)
    return replace(final, climbs=final.climbs + scouted.climbs)


def fit_binary(
    points: Points,
    likelihood: Likelihood,
    n_levels: int,
    settings: Settings,
    rng: np.random.RandomState,
    subset: NDArray[np.intp] | None = None,
) -> BinaryFit:
    """Tune hyper-parameters (on a subset of the rows, if given) and infer on all rows."""
    scheme = SCHEMES[settings.inference]
    scheme.check(likelihood)
    prior = make_prior(settings, points.x.shape[1], n_levels)
    evidence = Evidence(prior, likelihood, points, scheme)
    optimum = None
    if settings.optimise and len(evidence.theta):
        tuned = evidence
        if subset is not None:
            part = Points(points.x[subset], points.level[subset])
            tuned = Evidence(prior, likelihood.take(subset), part, scheme)
        with suitable_threads(len(tuned.points)):
            optimum = tune(tuned, settings, rng)
    fit = infer(evidence, optimum)
    return fit if subset is None else replace(fit, tuned_on=len(subset))


def infer(evidence: Evidence, optimum: Optimum | None) -> BinaryFit:
    """The posterior of the rows at the best hyper-parameters found, or at those given."""
    theta = evidence.theta if optimum is None else optimum.theta
    with suitable_threads(len(evidence.points)):
        covariance, likelihood, fixed = evidence.fixed(theta)
    posterior = Posterior.from_belief(covariance.prior, evidence.points, fixed.belief)
    return BinaryFit(
        posterior,
        likelihood,
        fixed.log_z,
        fixed.report,
        optimum,
        evidence.theta_names,
        len(evidence.points),
        evidence.scheme.name,
    )


def evidence_of(fit: BinaryFit) -> Evidence | SparseEvidence:
    """The evidence as a function of hyper-parameters, on the rows that a fit has kept.

    Of many rows these are some that stand for all, so that it is an estimate.
    """
    if fit.sparse is not None:
        rows = MemoryRows(fit.sparse.points, fit.likelihood)
        return SparseEvidence(fit.prior, rows, fit.sparse.inducing)
    return Evidence(fit.prior, fit.likelihood, fit.posterior.points, SCHEMES[fit.scheme])


def evaluate(fit: BinaryFit, theta: Array, gradient: bool) -> Value:
    """The log evidence of other hyper-parameters on the rows of a fit."""
    evidence = evidence_of(fit)
    with suitable_threads(len(evidence.points)):
        return evidence(theta, gradient)


def tuning_subset(
    level: NDArray[np.intp],
    size: int | tuple[int, ...] | None,
    rng: np.random.RandomState,
) -> NDArray[np.intp] | None:
    """Rows to tune on, at most so many in all, or of each level; None, for all, if they are few.

    Of every level there are some, and small levels are whole.
    """
    if size is None:
        return None
    counts = np.bincount(level)
    if isinstance(size, int):
        quotas = _share_out(counts, size)
    else:
        quotas = np.minimum(counts, size[: len(counts)])
    if (quotas >= counts).all():
        return None
    chosen = [
        rng.permutation(np.nonzero(level == t)[0])[: quotas[t]]
        for t in np.argsort(counts, kind="stable")
    ]
    return np.sort(np.concatenate(chosen))


def _share_out(counts: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    quotas, room = np.zeros_like(counts), size
    for rank, t in enumerate(np.argsort(counts, kind="stable")):
        quotas[t] = min(counts[t], room // (len(counts) - rank))
        room -= quotas[t]
    return quotas
