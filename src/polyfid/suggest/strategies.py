"""The strategies that candidates are ranked by: a score per candidate, from what is believed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, logit

from polyfid.arrays import Array, Indices
from polyfid.suggest.beliefs import ClassBelief, LabelTable
from polyfid.suggest.scores import (
    Uncertainty,
    conditional,
    entropy,
    expected_gain,
    least_cost,
    spread_of_label,
)

#: Elements of the largest temporary array.
_BATCH_ELEMENTS = 1 << 20
#: Standard normal nodes over which the entropy of a label given its latent value is averaged.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


class Strategy(ABC):
    """Says what labels of candidates are worth.

    ``shares_money``: whether scores of different levels cannot be compared, so that every level
    gets the same money.
    """

    shares_money = False

    @abstractmethod
    def score(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        """Scores of some candidates, (len(rows),)."""

    def rough_score(self, beliefs: Sequence[ClassBelief], rows: slice) -> Array:
        """Scores that are good enough to tell which of very many candidates deserve more."""
        return self.score(beliefs, np.arange(rows.start, rows.stop))


@dataclass(frozen=True)
class ExpectedGain(Strategy):
    """How much less uncertain the labels of the targets are expected to be, on average.

    With ``threshold``, a latent value, the question is on which side of it the targets are.
    """

    uncertainty: Uncertainty
    threshold: float | None = None

    def score(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        n_targets = beliefs[0].members[0].covariance.shape[1]
        k = max(2, len(beliefs))
        size = max(1, _BATCH_ELEMENTS // max(1, n_targets * k * k))
        gains = [np.empty(0)]
        for start in range(0, len(rows), size):
            chunk = rows[start : start + size]
            gains.append(self._gain([b.table(chunk, self.threshold) for b in beliefs]))
        return np.concatenate(gains)

    def rough_score(self, beliefs: Sequence[ClassBelief], rows: slice) -> Array:
        return self._rough([belief.rough_table(rows) for belief in beliefs])

    def _rough(self, tables: Sequence[LabelTable]) -> Array:
        """Gains to second order: squared covariances of labels by the variances of both."""
        total: Array | float = 0.0
        for p, q, c in ((t.p, t.q, t.c) for t in tables):
            own, target = p * (1.0 - p), q * (1.0 - q)
            gain = np.square(c) @ (1.0 / np.maximum(target, 1e-6)) / np.maximum(own, 1e-6)
            total = total + gain / (2.0 * len(q))
        return np.asarray(total)

    def _gain(self, tables: Sequence[LabelTable]) -> Array:
        after = [conditional(t.p[:, None], t.q, t.c) for t in tables]
        if len(tables) == 1:
            p = tables[0].p[:, None]
            outcomes = np.stack([p, 1.0 - p])
            each = np.stack([np.stack([1.0 - one, one]) for one in after[0]])
        else:
            p = np.stack([t.p[:, None] for t in tables])
            outcomes = p / p.sum(axis=0)
            each = np.stack([_after_class(after, j) for j in range(len(tables))])
        outcomes = np.broadcast_to(outcomes, (len(outcomes), *tables[0].c.shape))
        return np.asarray(expected_gain(self.uncertainty, outcomes, each).mean(axis=1))


def _after_class(after: Sequence[tuple[Array, Array]], label: int) -> Array:
    """Class probabilities of the targets after a label of this class."""
    p = np.stack([yes if k == label else no for k, (yes, no) in enumerate(after)])
    p = np.maximum(p, np.finfo(float).tiny)
    return np.asarray(p / p.sum(axis=0))


class Margin(Strategy):
    """How near the two most probable classes of the candidate's own label are."""

    shares_money = True

    def score(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        p = np.stack([belief.own_probability(rows) for belief in beliefs])
        p = np.concatenate([1.0 - p, p]) if len(p) == 1 else p / p.sum(axis=0)
        second, first = np.partition(p, -2, axis=0)[-2:]
        return np.asarray(1.0 - (first - second))


class Bald(Strategy):
    """What the candidate's label says about its own latent function, in nats."""

    shares_money = True

    def score(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        gains = [
            _binary_entropy(belief.own_probability(rows)) - _expected_entropy(belief, rows)
            for belief in beliefs
        ]
        return np.asarray(np.maximum(np.sum(gains, axis=0), 0.0))


def _binary_entropy(p: Array) -> Array:
    return np.asarray(entr(p) + entr(1.0 - p))


def _expected_entropy(belief: ClassBelief, rows: Indices) -> Array:
    """The entropy of labels whose latent values were known, on average."""
    total = np.zeros(len(rows))
    level = belief.level[rows]
    for weight, at, channel in zip(belief.weights, belief.members, belief.channels, strict=True):
        sd = np.sqrt(np.maximum(at.variance[rows], 0.0))
        f = at.mean[rows] + np.multiply.outer(_NODES, sd)
        total += weight * (_NODE_WEIGHTS @ _binary_entropy(channel.observed(expit(f), level)))
    return total


def make_strategy(name: str, costs: Array | None, threshold: float | None) -> Strategy:
    """A strategy by name; ``costs`` are those of errors, ``threshold`` a probability."""
    if name == "boundary":
        return ExpectedGain(entropy, float(logit(0.5 if threshold is None else threshold)))
    if name == "error":
        return ExpectedGain(least_cost(1.0 - np.eye(2) if costs is None else costs))
    return {
        "epig": ExpectedGain(entropy),
        "brier": ExpectedGain(spread_of_label),
        "margin": Margin(),
        "bald": Bald(),
        "random": RandomRows(),
    }[name]


class RandomRows(ExpectedGain):
    """Rows at random; their gains are those of ``epig``, so that they can be compared."""

    shares_money = True

    def __init__(self) -> None:
        super().__init__(entropy)


STRATEGIES = ("epig", "brier", "error", "boundary", "margin", "bald", "random")
