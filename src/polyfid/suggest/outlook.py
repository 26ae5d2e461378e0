"""How well a model will predict once further labels are there, before they are.

Labels of random rows take the variance of a target from v_0 to v_n. Its mean m, which they will
change, is expected to be N(m, v_0 - v_n), and so the log-loss that is expected afterwards is

    E H(Phi(m' / sqrt(KAPPA + v_n))),  m' ~ N(m, v_0 - v_n).

Neither the structure nor its hyper-parameters are known, and with known ones gains are overstated.
So this is averaged over structures and over points that stand for the posterior of the
hyper-parameters. What comes on top is that predictions are made with estimates of them: the
log-loss that is measured on new rows is larger than expected by N_ESTIMATED / (2 n), n the number
of trusted rows, as for any model with so many parameters that were estimated (Akaike).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.special import entr, expit, ndtr

from polyfid.arrays import Array, Indices
from polyfid.learning.draws import Drawn, draw_posteriors
from polyfid.learning.mixture import Mixture
from polyfid.learning.spread import Spread
from polyfid.rows import Points
from polyfid.suggest.beliefs import Channel
from polyfid.suggest.scores import KAPPA

#: Parameters that trusted rows alone can tell, as many as explain the log-loss beyond what is
#: expected. Chosen on problems of ``make_cokriging`` and ``make_rough``.
N_ESTIMATED = 1.0
#: Draws of hyper-parameters, over all structures.
N_MOVED = 48
#: Beliefs of less weight than this are left out.
NEGLIGIBLE = 0.004
#: Draws of the classes' latent values where there are more than two classes.
N_DRAWS = 64
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Belief:
    """One class under a structure and hyper-parameters, with its share in the average."""

    drawn: Drawn
    channel: Channel
    spread: Spread | None


def beliefs_of(mixture: Mixture, moved: bool) -> list[Belief]:
    """What the average over structures and hyper-parameters consists of.

    With ``moved=False`` hyper-parameters are taken as known.
    """
    drawn = draw_posteriors(mixture, N_MOVED, moved, np.random.RandomState(0))
    kept = [one for one in drawn if one.weight > NEGLIGIBLE]
    total, counts = sum(one.weight for one in kept), Counter(one.member for one in drawn)
    # Where hyper-parameters are not drawn, moments are widened instead.
    widened = mixture.spread if moved else None
    return [
        Belief(
            replace(one, weight=one.weight / total),
            Channel.of(one),
            widened if counts[one.member] == 1 else None,
        )
        for one in kept
    ]


class Labels(NamedTuple):
    """Further labels: places of their rows, and how many labels each stands for, (n,) each."""

    rows: Indices
    copies: Array


class Scores(NamedTuple):
    """Of each case (structure, hyper-parameters, draw) what is expected, (n_cases,) each."""

    log_loss: Array
    accuracy: Array
    roc_auc: Array


class Outlook:
    """Joint moments of targets and rows that may be labelled, under all beliefs of all classes.

    Parameters
    ----------
    mixtures, beliefs : of each class
    x, level : array of shape (n, d) and (n,)
        The first ``n_targets`` rows are targets, at the top level.
    old, old_level : array of shape (n_old,)
        Rows that the model was fitted to, by number, which follow them.
    """

    def __init__(
        self,
        mixtures: Sequence[Mixture],
        beliefs: Sequence[Sequence[Belief]],
        x: Array,
        level: Indices,
        n_targets: int,
        old: Indices,
        old_level: Indices,
        rng: np.random.RandomState,
    ) -> None:
        self.weights = [np.array([b.drawn.weight for b in own]) for own in beliefs]
        self._n = n_targets
        levels = np.concatenate([level, old_level])
        self._joint = [
            _moments(mixture, own, x, levels, len(level), old)
            for mixture, own in zip(mixtures, beliefs, strict=True)
        ]
        self._noise = rng.standard_normal((len(mixtures), n_targets, N_DRAWS))
        self._drawn = [
            rng.permutation(np.searchsorted(np.cumsum(w), (np.arange(N_DRAWS) + 0.5) / N_DRAWS))
            for w in self.weights
        ]

    @property
    def case_weights(self) -> Array:
        """Weights of the cases of `Scores`; they sum to one."""
        return self.weights[0] if len(self.weights) == 1 else np.full(N_DRAWS, 1.0 / N_DRAWS)

    def after(self, labels: Labels) -> Scores:
        """The scores that are expected once these labels are there."""
        moments = [[at.after(labels, self._n) for at in own] for own in self._joint]
        if len(moments) == 1:
            return Scores(*np.transpose([_binary(at) for at in moments[0]]))
        p = np.stack(
            [
                np.hstack(
                    [_chance(own[c], z[:, None]) for c, z in zip(drawn, noise.T, strict=True)]
                )
                for own, drawn, noise in zip(moments, self._drawn, self._noise, strict=True)
            ]
        )
        p /= p.sum(axis=0)
        auc = [[_soft_auc(one, np.ones_like(one)) for one in of_class.T] for of_class in p]
        return Scores(
            entr(p).sum(axis=0).mean(axis=0), p.max(axis=0).mean(axis=0), np.mean(auc, axis=0)
        )


class _Change(NamedTuple):
    """Means of targets, and their variances before and after further labels, (n,) each."""

    mean: Array
    before: Array
    after: Array


class _Joint(NamedTuple):
    """Means (n,), covariance (n, n) and expected precision (n,) of labels under one belief."""

    mean: Array
    covariance: Array
    precision: Array

    def after(self, labels: Labels, n: int) -> _Change:
        """What labels do to the first n rows."""
        mean, variance = self.mean[:n], np.maximum(np.diagonal(self.covariance)[:n], 0.0)
        if not len(labels.rows):
            return _Change(mean, variance, variance)
        noise = 1.0 / np.maximum(self.precision[labels.rows] * labels.copies, 1e-12)
        S = self.covariance[np.ix_(labels.rows, labels.rows)]
        S.flat[:: len(S) + 1] += noise
        L = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)[0]
        towards = self.covariance[labels.rows, :n]
        h = solve_triangular(L, towards, lower=True, check_finite=False)
        after = np.clip(variance - np.square(h).sum(axis=0), 0.0, variance)
        return _Change(mean, variance, after)


def _moments(
    mixture: Mixture, beliefs: Sequence[Belief], x: Array, level: Indices, n: int, old: Indices
) -> list[_Joint]:
    """The joint moments under each belief; points must be sorted by level, and are sorted back."""
    order = np.argsort(level, kind="stable")
    back = np.argsort(order)
    placed = mixture.placed(x, level[:n])
    joint = []
    for belief in beliefs:
        drawn = belief.drawn
        own = np.vstack([placed[drawn.member].x, drawn.posterior.points.x[old]])
        points = Points(np.ascontiguousarray(own[order]), level[order])
        mean, covariance = drawn.posterior.mean_and_covariance(points)
        if belief.spread is not None:
            covariance = belief.spread.covariance(mean, covariance, points.level)
            mean = belief.spread.mean[points.level] * mean
        precision = _information(mean, np.diagonal(covariance), belief.channel, points.level)
        joint.append(_Joint(mean[back], covariance[np.ix_(back, back)], precision[back]))
    return joint


def _information(mean: Array, variance: Array, channel: Channel, level: Indices) -> Array:
    """The precision that an answer is expected to have as a Gaussian site, (n,).

    With the probability q of a positive label it is E q'(f)^2 / (q (1 - q)), of labels without
    errors E sigmoid'(f). That of a number is known.
    """
    p = expit(mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * _NODES)
    q = channel.observed(p, level[:, None])
    slope = channel.slope(level)[:, None] * p * (1.0 - p)
    tiny = np.finfo(float).tiny
    precision = np.asarray(np.square(slope) / np.maximum(q * (1.0 - q), tiny) @ _NODE_WEIGHTS)
    is_number = channel.is_number(level)
    precision[is_number] = channel.precision(level[is_number])
    return precision


def _chance(at: _Change, z: Array) -> Array:
    """Probabilities of the class once labels have moved the means by z standard deviations.

    Both are (n, k), for z that is (n, k) or (1, k).
    """
    mean, before, after = (values[:, None] for values in at)
    return np.asarray(ndtr((mean + np.sqrt(before - after) * z) / np.sqrt(KAPPA + after)))


def _binary(at: _Change) -> tuple[float, float, float]:
    """Expected log-loss, accuracy and ROC AUC of two classes."""
    p = _chance(at, _NODES[None])
    log_loss = (entr(p) + entr(1.0 - p)) @ _NODE_WEIGHTS
    weight = np.broadcast_to(_NODE_WEIGHTS, p.shape).ravel()
    right = np.maximum(p, 1.0 - p) @ _NODE_WEIGHTS
    return float(log_loss.mean()), float(right.mean()), _soft_auc(p.ravel(), weight)


def _soft_auc(p: Array, weight: Array) -> float:
    """The ROC AUC that is expected if probabilities are right."""
    order = np.argsort(p)
    up, down = (weight * p)[order], (weight * (1.0 - p))[order]
    below = np.cumsum(down) - 0.5 * down
    return float(up @ below / max(up.sum() * down.sum(), np.finfo(float).tiny))
