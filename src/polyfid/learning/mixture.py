"""Fitted models of one class, and the average of several: what predictions are made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from polyfid.arrays import Array, Indices
from polyfid.inference import SCHEMES, Report
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.learning.climb import Optimum
from polyfid.learning.evidence import Evidence, Parametrised, SparseEvidence, Value
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import Likelihood
from polyfid.model.logistic import expected_sigmoid, log_expected_sigmoid
from polyfid.model.prior import Prior
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints


@dataclass(frozen=True)
class BinaryFit:
    """A fitted model of one class against the rest.

    ``optimum`` is None where hyper-parameters were kept as given, ``tuned_on`` a number of rows.
    """

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
    def sparse(self) -> SparsePosterior | None:
        """The posterior, if it has inducing points."""
        return self.posterior if isinstance(self.posterior, SparsePosterior) else None

    @property
    def theta(self) -> Array:
        return np.concatenate([self.prior.theta, self.likelihood.theta])

    def evaluate(self, theta: Array, gradient: bool) -> Value:
        """The log evidence of other hyper-parameters, by the rows that the posterior has kept."""
        points = self.posterior.points
        evidence: Parametrised
        if self.sparse is None:
            evidence = Evidence(self.prior, self.likelihood, points, SCHEMES[self.scheme])
        else:
            rows = LabelledPoints(points, self.likelihood)
            evidence = SparseEvidence(self.prior, rows, self.sparse.inducing)
        with suitable_threads(len(points)):
            return evidence(theta, gradient)


def infer(evidence: Evidence, optimum: Optimum | None, tuned_on: int | None = None) -> BinaryFit:
    """The posterior of the rows at the optimum, or at the hyper-parameters as given."""
    n, theta = len(evidence.points), evidence.theta if optimum is None else optimum.theta
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


@dataclass(frozen=True)
class Member:
    """A fitted model, its features, and its weight in an average.

    ``log_evidence`` includes the log priors of hyper-parameters and structure; NaN if nothing was
    compared.
    """

    name: str
    features: FeatureMap
    fit: BinaryFit
    weight: float = 1.0
    log_evidence: float = np.nan


@dataclass(frozen=True)
class Mixture:
    """Members, the heaviest first; their weights sum to one. Rows ``x`` are sorted by level."""

    members: tuple[Member, ...]

    @property
    def best(self) -> Member:
        return self.members[0]

    @property
    def weights(self) -> Array:
        return np.array([m.weight for m in self.members])

    def probabilities(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Of the negative and the positive class, (n,) each, the smaller one to full accuracy."""
        down, up, _, _ = self.probabilities_and_moments(x, level)
        return down, up

    def probabilities_and_moments(self, x: Array, level: Indices) -> tuple[Array, ...]:
        """What `probabilities` and `mean_and_variance` give, four arrays, at the price of one."""
        means, variances = self._moments(x, level)
        weights = self.weights[:, None]
        small = weights * expected_sigmoid(-np.abs(means), variances)
        large = weights - small
        up = np.where(means > 0.0, large, small).sum(axis=0)
        down = np.where(means > 0.0, small, large).sum(axis=0)
        upper, small = up > down, np.minimum(up, down)
        down, up = np.where(upper, small, 1.0 - small), np.where(upper, 1.0 - small, small)
        return down, up, *self._mixed(means, variances)

    def log_probabilities(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Logarithms of `probabilities`, accurate where one is tiny."""
        moments = list(zip(*self._moments(x, level), strict=True))
        weights = self.weights[:, None]
        down, up = (
            logsumexp([log_expected_sigmoid(sign * m, v) for m, v in moments], axis=0, b=weights)
            for sign in (-1.0, 1.0)
        )
        return np.asarray(down), np.asarray(up)

    def positive(self, x: Array, level: Indices) -> NDArray[np.bool_]:
        """Where the positive class is the more probable one."""
        if len(self.members) == 1:
            # Over one half exactly where the latent mean is positive: no variance is needed.
            points = self._points(self.best, x, level)
            return np.asarray(self.best.fit.posterior.mean(points) > 0.0)
        down, up = self.probabilities(x, level)
        return np.asarray(up > down)

    def mean_and_variance(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Mean and variance of the mixture of latent posteriors, (n,) each."""
        return self._mixed(*self._moments(x, level))

    def mean_and_covariance(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Mean (n,) and joint covariance (n, n) of the mixture of latent posteriors."""
        each = [
            m.fit.posterior.mean_and_covariance(self._points(m, x, level)) for m in self.members
        ]
        mean = self.weights @ np.stack([m for m, _ in each])
        covariance = np.zeros((len(mean), len(mean)))
        for weight, (m, c) in zip(self.weights, each, strict=True):
            covariance += weight * (c + np.outer(m - mean, m - mean))
        return mean, covariance

    def sample(self, x: Array, level: Indices, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint samples of the latent function, (n, n_samples), members drawn by weight."""
        which = np.zeros(n_samples, dtype=int)
        if len(self.members) > 1:
            which = rng.choice(len(self.members), n_samples, p=self.weights / self.weights.sum())
        samples = np.empty((len(x), n_samples))
        for k in np.unique(which):
            member, columns = self.members[k], np.flatnonzero(which == k)
            points = self._points(member, x, level)
            samples[:, columns] = member.fit.posterior.sample(points, len(columns), rng)
        return samples

    def _mixed(self, means: Array, variances: Array) -> tuple[Array, Array]:
        mean = self.weights @ means
        return mean, self.weights @ (variances + np.square(means - mean))

    def _moments(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Means and variances of the members, (n_members, n) each."""
        each = [m.fit.posterior.mean_and_variance(self._points(m, x, level)) for m in self.members]
        return np.stack([m for m, _ in each]), np.stack([v for _, v in each])

    @staticmethod
    def _points(member: Member, x: Array, level: Indices) -> Points:
        return Points(np.ascontiguousarray(member.features(x)), level)
