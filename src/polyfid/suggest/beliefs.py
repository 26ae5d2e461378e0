"""What is believed of candidates and targets, jointly: averaged over posteriors, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from polyfid.arrays import Array, Indices
from polyfid.inference.posterior import JointMoments, LatentPosterior
from polyfid.learning.draws import Drawn
from polyfid.learning.mixture import Mixture
from polyfid.model.likelihoods import NoisyLogit
from polyfid.rows import Points
from polyfid.suggest.scores import KAPPA, expected_slope, probability, sign_covariance

#: The least variance that is divided by.
_TINY = 1e-9


@dataclass(frozen=True)
class Channel:
    """How labels of each level relate to the true ones, (n_levels,) each."""

    sensitivity: Array
    specificity: Array

    @classmethod
    def of(cls, drawn: Drawn) -> Channel:
        """Rates of new labels: those of the level, or the mean over the rows' annotators."""
        likelihood, level = drawn.likelihood.labels, drawn.posterior.points.level
        level = level[~drawn.likelihood.is_number]
        rates = np.ones((2, drawn.posterior.prior.n_levels))
        if isinstance(likelihood, NoisyLogit):
            own = likelihood.sensitivity, likelihood.specificity
            for t in np.unique(level):
                rates[:, t] = [np.mean(rate[likelihood.group[level == t]]) for rate in own]
        return cls(*rates)

    def observed(self, p: Array, level: Indices) -> Array:
        """Probability of a positive label from that of a positive true one."""
        s, c = self.sensitivity[level], self.specificity[level]
        return np.asarray(s * p + (1.0 - c) * (1.0 - p))

    def slope(self, level: Indices) -> Array:
        """By how much the probability of the label follows that of the true one."""
        return np.asarray(self.sensitivity[level] + self.specificity[level] - 1.0)


@dataclass(frozen=True)
class Moments:
    """Moments of candidates (n,), of targets (k,) and between them (n, k), of one posterior.

    ``covariance`` is that before the first pick; ``own`` (n_picks, n) and ``told`` (n_picks, k) are
    what picks take from it.
    """

    mean: Array
    variance: Array
    target_mean: Array
    target_variance: Array
    covariance: Array
    own: list[Array] = field(default_factory=list)
    told: list[Array] = field(default_factory=list)

    def with_targets(self, rows: Indices | slice) -> Array:
        """Covariance of some candidates with all targets, after the picks, (len(rows), k)."""
        before = self.covariance[rows]
        if not self.own:
            return before
        return np.asarray(before - np.stack(self.own)[:, rows].T @ np.stack(self.told))

    def pick(self, i: int, column: Array, precision: float) -> None:
        """Condition on a site at candidate i, of which ``column`` has the covariances before."""
        for own in self.own:
            column -= own[i] * own
        column[i] = self.variance[i]
        scale = 1.0 / np.sqrt(max(self.variance[i], 0.0) + 1.0 / max(precision, _TINY**2))
        own, told = column * scale, self.with_targets(np.array([i]))[0] * scale
        self.variance[:] = np.maximum(self.variance - np.square(own), 0.0)
        self.target_variance[:] = np.maximum(self.target_variance - np.square(told), 0.0)
        self.own.append(own)
        self.told.append(told)

    @classmethod
    def of(cls, posterior: LatentPosterior, new: Points, targets: Points) -> Moments:
        """The moments at candidates before any pick."""
        mean, variance, covariance = posterior.moments_with(new, targets)
        return cls(mean, variance, *posterior.mean_and_variance(targets), covariance)


@dataclass(frozen=True)
class LabelTable:
    """Labels of candidates and targets of one class against the rest, over structures.

    ``p`` (n,) and ``q`` (k,) are probabilities of the class, ``c`` (n, k) covariances of labels.
    """

    p: Array
    q: Array
    c: Array


class ClassBelief:
    """Moments of candidates and targets under each posterior, which picks make certain.

    ``drawn`` are the posteriors that are averaged, by default those of the structures.
    """

    def __init__(
        self,
        mixture: Mixture,
        new: Sequence[Points],
        at: Sequence[Points],
        drawn: Sequence[Drawn] | None = None,
    ) -> None:
        if drawn is None:
            drawn = [
                Drawn(k, member.weight, member.fit.posterior, member.fit.likelihood)
                for k, member in enumerate(mixture.members)
            ]
        self.drawn, self.level = drawn, new[0].level
        self.points = [new[one.member] for one in drawn]
        weights = np.array([one.weight for one in drawn])
        self.weights = weights / weights.sum()
        self.members = [Moments.of(d.posterior, new[d.member], at[d.member]) for d in drawn]
        self.channels = [Channel.of(one) for one in drawn]
        # Covariance of which posterior is right, between them; every pick tells something of it.
        self._doubt = np.diag(self.weights) - np.outer(self.weights, self.weights)

    @cached_property
    def _joint(self) -> list[JointMoments]:
        """Made at the first pick: scores of single labels do without."""
        pairs = zip(self.drawn, self.points, strict=True)
        return [one.posterior.joint(points) for one, points in pairs]

    def table(self, rows: Indices, threshold: float | None = None) -> LabelTable:
        """The labels of some candidates and of all targets.

        With ``threshold`` the target's label says whether its latent function is above it.
        """
        level = self.level[rows]
        own, target = [], []
        c: Array | float = 0.0
        extra, shift = (KAPPA, 0.0) if threshold is None else (_TINY, threshold)
        for weight, at, channel in zip(self.weights, self.members, self.channels, strict=True):
            sd = np.sqrt(KAPPA + at.variance[rows])
            target_sd = np.sqrt(extra + at.target_variance)
            b = (at.target_mean - shift) / target_sd
            a = at.mean[rows] / sd
            agreement = at.with_targets(rows) / np.multiply.outer(sd, target_sd)
            signs = sign_covariance(a[:, None], b, agreement)
            c = c + weight * channel.slope(level)[:, None] * signs
            own.append(channel.observed(ndtr(a), level))
            target.append(ndtr(b))
        return self._averaged(np.stack(own), np.stack(target), np.asarray(c))

    def _averaged(self, own: Array, target: Array, c: Array) -> LabelTable:
        """The table of the average, from those of each posterior and the mean covariance."""
        c = c + own.T @ (self._doubt @ target)
        return LabelTable(self.weights @ own, self.weights @ target, c)

    def own_probability(self, rows: Indices) -> Array:
        """Probabilities that the candidates' own labels are of the class, (len(rows),)."""
        level = self.level[rows]
        each = (
            weight * channel.observed(probability(at.mean[rows], at.variance[rows]), level)
            for weight, at, channel in zip(self.weights, self.members, self.channels, strict=True)
        )
        return np.asarray(sum(each, np.zeros(len(level))))

    def rough_table(self, rows: slice) -> LabelTable:
        """The same to first order in the correlation, for very many candidates."""
        level = self.level[rows]
        own, target = [], []
        c: Array | float = 0.0
        for weight, at, channel in zip(self.weights, self.members, self.channels, strict=True):
            slopes = channel.slope(level) * expected_slope(at.mean[rows], at.variance[rows])
            target_slopes = expected_slope(at.target_mean, at.target_variance)
            c = c + at.with_targets(rows) * np.multiply.outer(weight * slopes, target_slopes)
            own.append(channel.observed(probability(at.mean[rows], at.variance[rows]), level))
            target.append(probability(at.target_mean, at.target_variance))
        return self._averaged(np.stack(own), np.stack(target), np.asarray(c))

    def pick(self, i: int) -> None:
        """Condition all posteriors on a label of candidate i, whatever it will be.

        It acts as a Gaussian site of the precision that is expected of it; means stay.
        """
        own = np.array(
            [
                channel.observed(probability(at.mean[i], at.variance[i]), self.level[i])
                for at, channel in zip(self.members, self.channels, strict=True)
            ]
        )
        p = float(self.weights @ own)
        told = self._doubt @ own
        self._doubt -= np.outer(told, told) / max(p * (1.0 - p), _TINY)
        for k, at in enumerate(self.members):
            at.pick(i, self._joint[k].column(i), self._precision(k, i))

    def _precision(self, k: int, i: int) -> float:
        """Expected precision of a label of candidate i; labels that may be flipped say less."""
        at, channel, level = self.members[k], self.channels[k], self.level[i]
        mean, variance = at.mean[i], at.variance[i]
        slope = channel.slope(level)
        p = probability(mean, variance)
        seen = channel.observed(p, level)
        variance_seen = max(float(seen * (1.0 - seen)), np.finfo(float).tiny)
        share = np.square(slope) * p * (1.0 - p) / variance_seen
        return float(expected_slope(mean, variance) * share)
