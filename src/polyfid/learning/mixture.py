"""Fitted models of one class, and the average of several: what predictions are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, ndtr, ndtri

from polyfid.arrays import Array, Indices
from polyfid.inference import SCHEMES, Report
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.learning.climb import Optimum
from polyfid.learning.evidence import Evidence, Parametrised, SparseEvidence, Value
from polyfid.learning.spread import Spread
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import Likelihood
from polyfid.model.logistic import expected_sigmoid_and_slope, tilted_sigmoid
from polyfid.model.prior import Prior
from polyfid.model.trees import BoostedMean
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

#: Members of less weight than this are left out of an average.
NEGLIGIBLE = 0.05
#: Below this product of probabilities their logarithms alone are accurate.
_NO_VARIANCE = 1e-290
#: Nodes, standard normal, that stand for what is not known of the functions' scale.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()
#: Halvings by which a quantile is found, and elements of the largest temporary array.
_HALVINGS, _BATCH_ELEMENTS = 40, 1 << 20


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
        with suitable_threads(len(self.posterior.points)):
            return self.evidence()(theta, gradient)

    def evidence(self) -> Parametrised:
        """The log evidence as a function of hyper-parameters; it remembers its last posterior."""
        points = self.posterior.points
        if self.sparse is None:
            return Evidence(self.prior, self.likelihood, points, SCHEMES[self.scheme])
        rows = LabelledPoints(points, self.likelihood)
        return SparseEvidence(self.prior, rows, self.sparse.inducing)


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
    compared. ``flips`` has a probability per level that a label of it is flipped, if that is what
    the structure says of lower levels. ``boosted``: whether points have margins of trees.
    """

    name: str
    features: FeatureMap
    fit: BinaryFit
    weight: float = 1.0
    log_evidence: float = np.nan
    flips: tuple[float, ...] = ()
    boosted: bool = False


@dataclass(frozen=True)
class Calibration:
    """How the probabilities of labels turned out, each one expected from all others."""

    n_rows: int
    log_loss: float
    error: float


class Prediction(NamedTuple):
    """Of one class against the rest, (n,) each.

    The smaller one of ``down`` and ``up``, the probabilities of the rest and of the class, has
    full accuracy. ``unsure`` is the share of the label's variance, up * down, that would vanish
    if the latent function were known.
    """

    down: Array
    up: Array
    unsure: Array
    mean: Array
    variance: Array


@dataclass(frozen=True)
class Mixture:
    """Members, the heaviest first; their weights sum to one. Rows ``x`` are sorted by level.

    ``spread`` is what hyper-parameters that are not known add to the latent moments of the heaviest
    member, and is taken to add to all; None where they are known, or count as known. ``mean`` has
    the trees of members that are boosted, and ``calibration`` is that at the top level.
    """

    members: tuple[Member, ...]
    spread: Spread | None = None
    mean: BoostedMean | None = None
    calibration: Calibration | None = None

    @property
    def size(self) -> int:
        """The size of the largest matrices that a prediction takes."""
        return max(member.fit.posterior.size for member in self.members)

    @property
    def best(self) -> Member:
        return self.members[0]

    @property
    def weights(self) -> Array:
        return np.array([m.weight for m in self.members])

    def predict(self, x: Array, level: Indices) -> Prediction:
        """Probabilities of the labels and moments of the latent function."""
        return self.prediction(*self._moments(x, level), level)

    def prediction(self, means: Array, variances: Array, level: Indices) -> Prediction:
        """What follows from means and variances of the members, (n_members, n) each."""
        weights = self.weights[:, None]
        smaller, slope = expected_sigmoid_and_slope(-np.abs(means), variances)
        if any(m.flips for m in self.members):
            flips = self._flips(level)
            smaller = flips + (1.0 - 2.0 * flips) * smaller
            slope = flips * (1.0 - flips) + np.square(1.0 - 2.0 * flips) * slope
        small = weights * smaller
        large = weights - small
        up = np.where(means > 0.0, large, small).sum(axis=0)
        down = np.where(means > 0.0, small, large).sum(axis=0)
        upper, small = up > down, np.minimum(up, down)
        down, up = np.where(upper, small, 1.0 - small), np.where(upper, 1.0 - small, small)
        # E sigmoid' = E sigmoid (1 - sigmoid): the variance that is left if f is known.
        total = up * down
        known = np.ones_like(total)
        np.divide(self.weights @ slope, total, out=known, where=total > _NO_VARIANCE)
        return Prediction(
            down, up, np.clip(1.0 - known, 0.0, 1.0), *self._mixed(means, variances, level)
        )

    def log_probabilities(self, x: Array, level: Indices) -> tuple[Array, Array, Array]:
        """Logarithms of ``down`` and ``up``, accurate where one is tiny, and ``unsure``."""
        means, variances = self._moments(x, level)
        shape, v = means.shape, variances.ravel()
        below, above = (tilted_sigmoid(s * means.ravel(), v)[:2] for s in (-1.0, 1.0))
        # The slope, dZ / dmean, is that of either side; it has its digits where Z is the smaller.
        log_z, first = np.where(means.ravel() < 0.0, above, below)
        parts = [p.reshape(shape) for p in (below[0], above[0], log_z + np.log(first))]
        weights = self.weights[:, None]
        if any(m.flips for m in self.members):
            flips = self._flips(level)
            with np.errstate(divide="ignore"):
                yes, no = np.log(flips), np.log1p(-flips)
                both = 2.0 * np.log1p(-2.0 * flips)
            down, up, slope = parts
            parts = [
                np.logaddexp(no + down, yes + up),
                np.logaddexp(no + up, yes + down),
                np.logaddexp(yes + no, both + slope),
            ]
        down, up, slope = (logsumexp(p, axis=0, b=weights) for p in parts)
        return np.asarray(down), np.asarray(up), np.clip(-np.expm1(slope - down - up), 0.0, 1.0)

    def values(
        self, x: Array, level: Indices, with_noise: bool, numeric: Sequence[int]
    ) -> tuple[Array, Array]:
        """Means and variances of numbers, or of the functions beneath, in units of the numbers."""
        if len(wrong := np.setdiff1d(level, numeric)):
            raise ValueError(
                f"fidelity must be a numeric level, and level {wrong[0]} in the order of trust has "
                "classes; use predict_proba for it"
            )
        means, variances = self._moments(x, level)
        for member, mean, variance in zip(self.members, means, variances, strict=True):
            of_levels = member.fit.likelihood.numbers
            for t in np.unique(level):
                at, own = level == t, of_levels[int(t)]
                wide = variance[at] + (own.error_variance if with_noise else 0.0)
                mean[at], variance[at] = own.scale.moments(mean[at], wide)
        centre = self.weights @ means
        return centre, self.weights @ (variances + np.square(means - centre))

    def positive(self, x: Array, level: Indices) -> NDArray[np.bool_]:
        """Where the positive class is the more probable one."""
        if len(self.members) == 1:
            # Over one half exactly where the latent mean is positive: no variance is needed.
            (points,) = self.placed(x, level)
            return np.asarray(self.best.fit.posterior.mean(points) > 0.0)
        prediction = self.predict(x, level)
        return np.asarray(prediction.up > prediction.down)

    def mean_and_variance(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Mean and variance of the mixture of latent posteriors, (n,) each."""
        return self._mixed(*self._moments(x, level), level)

    def interval(self, x: Array, level: Indices, coverage: float) -> tuple[Array, Array]:
        """The central interval of the mixture of latent posteriors, (n,) each."""
        means, variances = self._moments(x, level)
        weights, p = self.weights, 0.5 * (1.0 - coverage)
        if self.spread is not None:
            weights = np.outer(_NODE_WEIGHTS, weights).ravel()
        ends = np.empty((2, len(level)))
        size = max(1, _BATCH_ELEMENTS // len(weights))
        for start in range(0, len(level), size):
            rows = slice(start, start + size)
            m, v = means[:, rows], variances[:, rows]
            if self.spread is not None:
                s, t = (f[level[rows]].T[:, None] for f in self.spread.factors(_NODES))
                m, v = ((f * at).reshape(len(weights), -1) for f, at in ((s, m), (t, v)))
            sd = np.sqrt(np.maximum(v, np.finfo(float).tiny))
            # The upper end is the lower one of -f, so that small tails keep their digits.
            ends[:, rows] = _quantile(p, weights, m, sd), -_quantile(p, weights, -m, sd)
        return ends[0], ends[1]

    def mean_and_covariance(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Mean (n,) and joint covariance (n, n) of the mixture of latent posteriors."""
        each = [
            m.fit.posterior.mean_and_covariance(points)
            for m, points in zip(self.members, self.placed(x, level), strict=True)
        ]
        if (spread := self.spread) is not None:
            each = [(spread.mean[level] * m, spread.covariance(m, c, level)) for m, c in each]
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
        samples, by_member = np.empty((len(x), n_samples)), self.placed(x, level)
        for k in np.unique(which):
            points, columns = by_member[k], np.flatnonzero(which == k)
            posterior = self.members[k].fit.posterior
            drawn = posterior.sample(points, len(columns), rng)
            if self.spread is not None:
                noise = rng.standard_normal(len(columns))
                drawn = self.spread.sample(posterior.mean(points), drawn, level, noise)
            samples[:, columns] = drawn
        return samples

    def _flips(self, level: Indices) -> Array:
        """Probabilities that labels of these levels are flipped, (n_members, n)."""
        none = np.zeros(len(level))
        return np.stack([np.array(m.flips)[level] if m.flips else none for m in self.members])

    def _mixed(self, means: Array, variances: Array, level: Indices) -> tuple[Array, Array]:
        if self.spread is not None:
            means, variances = self.spread.moments(means, variances, level)
        mean = self.weights @ means
        return mean, self.weights @ (variances + np.square(means - mean))

    def _moments(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Means and variances of the members at their hyper-parameters, (n_members, n) each."""
        each = [
            m.fit.posterior.mean_and_variance(points)
            for m, points in zip(self.members, self.placed(x, level), strict=True)
        ]
        return np.stack([m for m, _ in each]), np.stack([v for _, v in each])

    def points(self, member: Member, x: Array) -> Array:
        """The points of new rows under a member."""
        (points,) = replace(self, members=(member,)).placed(x, np.zeros(len(x), dtype=np.intp))
        return points.x

    def placed(self, x: Array, level: Indices) -> list[Points]:
        """The points of new rows under each member."""
        boosted = self.mean is not None and any(m.boosted for m in self.members)
        margins = self.mean(x) if boosted and self.mean is not None else np.empty((len(x), 0))
        return [
            Points(
                np.column_stack([m.features(x), margins])
                if m.boosted
                else np.ascontiguousarray(m.features(x)),
                level,
            )
            for m in self.members
        ]


def _quantile(p: float, weights: Array, means: Array, sd: Array) -> Array:
    """Quantiles (n,) of mixtures of normal distributions, (n_parts, n), by bisection."""
    each = means + ndtri(p) * sd
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(_HALVINGS):
        middle = 0.5 * low + 0.5 * high
        below = weights @ ndtr((middle - means) / sd) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * low + 0.5 * high)


def coupled(log_down: Array, log_up: Array, unsure: Array) -> Array:
    """Log probabilities (n, n_classes) from models of each class against the rest.

    With s the mean of ``unsure`` over the classes, p_k is proportional to

        (up_k / down_k^s)^(1 + s).

    Where the latent functions are known, s = 0, this divides the probabilities by their sum: they
    are those of a noisy label. Where they are not, labels that are certain may still look like a
    toss-up to each model. Then that exactly one class is right tells more: s in the base
    multiplies by the probability that the others are wrong, and 1 + s takes back what each model
    lost by averaging over its own uncertainty. Classes keep the order of ``up``. Chosen among
    some forty rules, on draws other than those of ``python -m benchmarks multiclass``.
    """
    s = unsure.mean(axis=1, keepdims=True)
    return np.asarray(log_softmax((1.0 + s) * (log_up - s * log_down), axis=1))
