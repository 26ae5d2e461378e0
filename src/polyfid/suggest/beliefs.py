"""What is believed of candidates and targets, jointly: averaged over posteriors, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from polyfid.arrays import Array, Indices
from polyfid.inference.posterior import JointMoments, LatentPosterior
from polyfid.learning.draws import Drawn
from polyfid.learning.mixture import Mixture
from polyfid.model.likelihoods import NoisyLogit
from polyfid.model.numbers import Numbers
from polyfid.rows import Points
from polyfid.suggest.scores import (
    KAPPA,
    NORMAL_NODES,
    expected_slope,
    probability,
    sign_covariance,
)

#: The least variance that is divided by.
_TINY = 1e-9


@dataclass(frozen=True)
class Channel:
    """How labels of each level relate to the true ones, (n_levels,) each.

    ``numbers`` are the likelihoods of levels that say numbers instead.
    """

    sensitivity: Array
    specificity: Array
    numbers: Mapping[int, Numbers] = field(default_factory=dict)

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
        return cls(rates[0], rates[1], drawn.likelihood.numbers)

    def observed(self, p: Array, level: Indices) -> Array:
        """Probability of a positive label from that of a positive true one."""
        s, c = self.sensitivity[level], self.specificity[level]
        return np.asarray(s * p + (1.0 - c) * (1.0 - p))

    def slope(self, level: Indices) -> Array:
        """By how much the probability of the label follows that of the true one."""
        return np.asarray(self.sensitivity[level] + self.specificity[level] - 1.0)

    def is_number(self, level: Indices) -> NDArray[np.bool_]:
        """Which levels say numbers, (n,)."""
        return np.isin(level, list(self.numbers))

    def precision(self, level: Indices) -> Array:
        """Precisions of numbers as Gaussian sites, (n,), of numeric levels."""
        return np.array([self.numbers[t].precision for t in level.tolist()])

    def said(self, mean: Array, variance: Array, level: Indices) -> tuple[Array, Array]:
        """Means and variances of numbers, in their own units, from those of latent values."""
        total, moments = variance + 1.0 / self.precision(level), np.empty((2, len(level)))
        for t in np.unique(level).tolist():
            at = level == t
            moments[:, at] = self.numbers[t].scale.moments(mean[at], total[at])
        return moments[0], moments[1]


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


@dataclass(frozen=True)
class RoughTable:
    """Answers of candidates, labels or numbers, and labels of targets, to first order.

    ``variance`` (n,) is that of answers, ``q`` (k,) and ``c`` (n, k) are as in `LabelTable`.
    Numbers are in units of their standard deviations.
    """

    variance: Array
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
        self.channels = [Channel.of(one) for one in drawn]
        self.is_number = self.channels[0].is_number(self.level)
        self.points = [new[one.member] for one in drawn]
        weights = np.array([one.weight for one in drawn])
        self.weights = weights / weights.sum()
        self.members = [Moments.of(d.posterior, new[d.member], at[d.member]) for d in drawn]
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

    def numbers_table(self, rows: Indices, threshold: float | None = None) -> Array:
        """Probabilities of all targets' labels after numbers of some candidates, (nodes, n, k).

        The numbers are so many standard deviations from what is expected as `NORMAL_NODES` are. For
        ``threshold`` see `table`.
        """
        u, level = NORMAL_NODES[:, None, None], self.level[rows]
        extra, shift = (KAPPA, 0.0) if threshold is None else (_TINY, threshold)
        target, after = [], np.zeros((len(u), len(rows), self.members[0].covariance.shape[1]))
        for weight, at, channel in zip(self.weights, self.members, self.channels, strict=True):
            sd = np.sqrt(at.variance[rows] + 1.0 / channel.precision(level))
            pull = at.with_targets(rows) / sd[:, None]
            left = extra + np.maximum(at.target_variance - np.square(pull), 0.0)
            centre = at.target_mean - shift
            after += weight * ndtr((centre + u * pull) / np.sqrt(left))
            target.append(ndtr(centre / np.sqrt(extra + at.target_variance)))
        # To first order, what the number says of which posterior is right.
        after += u * (self._standardised(rows).T @ (self._doubt @ np.stack(target)))
        return np.clip(after, 0.0, 1.0)

    def _standardised(self, rows: Indices) -> Array:
        """Numbers that posteriors expect of candidates, (n_posteriors, n).

        They are differences from their average in standard deviations of the numbers.
        """
        level = self.level[rows]
        said = [
            channel.said(at.mean[rows], at.variance[rows], level)
            for at, channel in zip(self.members, self.channels, strict=True)
        ]
        mean, variance = (np.stack(values) for values in zip(*said, strict=True))
        apart = mean - self.weights @ mean
        total = self.weights @ variance + np.einsum("ij,ij->j", apart, self._doubt @ apart)
        return np.asarray(apart / np.sqrt(total))

    def rough_table(self, rows: slice) -> RoughTable:
        """Labels and numbers to first order in the correlation, for very many candidates."""
        level, is_number = self.level[rows], self.is_number[rows]
        numbers, places = np.flatnonzero(is_number), np.arange(rows.start, rows.stop)[is_number]
        own, target = [], []
        c: Array | float = 0.0
        for weight, at, channel in zip(self.weights, self.members, self.channels, strict=True):
            slopes = channel.slope(level) * expected_slope(at.mean[rows], at.variance[rows])
            noise = 1.0 / channel.precision(level[numbers])
            slopes[numbers] = 1.0 / np.sqrt(at.variance[places] + noise)
            target_slopes = expected_slope(at.target_mean, at.target_variance)
            c = c + at.with_targets(rows) * np.multiply.outer(weight * slopes, target_slopes)
            own.append(channel.observed(probability(at.mean[rows], at.variance[rows]), level))
            target.append(probability(at.target_mean, at.target_variance))
        answers = np.stack(own)
        answers[:, numbers] = self._standardised(places)
        table = self._averaged(answers, np.stack(target), np.asarray(c))
        return RoughTable(np.where(is_number, 1.0, table.p * (1.0 - table.p)), table.q, table.c)

    def pick(self, i: int) -> None:
        """Condition all posteriors on the answer of candidate i, whatever it will be.

        It acts as a Gaussian site of the precision that is expected of it; means stay.
        """
        own, variance = self._answers(i)
        told = self._doubt @ own
        self._doubt -= np.outer(told, told) / max(variance, _TINY)
        for k, at in enumerate(self.members):
            at.pick(i, self._joint[k].column(i), self._precision(k, i))

    def _answers(self, i: int) -> tuple[Array, float]:
        """The answer of candidate i that each posterior expects, and the answer's variance."""
        if self.is_number[i]:
            return self._standardised(np.array([i]))[:, 0], 1.0
        own = np.array(
            [
                channel.observed(probability(at.mean[i], at.variance[i]), self.level[i])
                for at, channel in zip(self.members, self.channels, strict=True)
            ]
        )
        p = float(self.weights @ own)
        return own, p * (1.0 - p)

    def _precision(self, k: int, i: int) -> float:
        """Expected precision of the answer of candidate i.

        That of numbers is known; labels that may be flipped say less than others.
        """
        at, channel, level = self.members[k], self.channels[k], self.level[i]
        if self.is_number[i]:
            return channel.numbers[int(level)].precision
        mean, variance = at.mean[i], at.variance[i]
        slope = channel.slope(level)
        p = probability(mean, variance)
        seen = channel.observed(p, level)
        variance_seen = max(float(seen * (1.0 - seen)), np.finfo(float).tiny)
        share = np.square(slope) * p * (1.0 - p) / variance_seen
        return float(expected_slope(mean, variance) * share)
