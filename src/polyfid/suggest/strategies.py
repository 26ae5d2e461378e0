"""The strategies that candidates are ranked by: a score per candidate, from what is believed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, logit

from polyfid.arrays import Array, Indices
from polyfid.suggest.beliefs import ClassBelief, LabelTable, RoughTable
from polyfid.suggest.scores import (
    NORMAL_WEIGHTS,
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
    """Says what labels of candidates are worth, and numbers of those at numeric levels.

    ``shares_money``: whether scores of different levels cannot be compared, so that every level
    gets the same money.
    """

    shares_money = False

    def score(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        """Scores of some candidates, (len(rows),)."""
        is_number, scores = beliefs[0].is_number[rows], np.empty(len(rows))
        scores[~is_number] = self._of_labels(beliefs, rows[~is_number])
        scores[is_number] = self._of_numbers(beliefs, rows[is_number])
        return scores

    @abstractmethod
    def _of_labels(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        """Scores of candidates that will have labels."""

    @abstractmethod
    def _of_numbers(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        """Scores of candidates that will have numbers."""

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

    def _of_labels(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        gains = [
            self._gain(*_after_labels([b.table(chunk, self.threshold) for b in beliefs]))
            for chunk in _chunks(beliefs, rows, max(2, len(beliefs)))
        ]
        return np.concatenate([np.empty(0), *gains])

    def _of_numbers(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        gains = [
            self._gain(
                NORMAL_WEIGHTS[:, None, None],
                _after_numbers([b.numbers_table(chunk, self.threshold) for b in beliefs]),
            )
            for chunk in _chunks(beliefs, rows, len(NORMAL_WEIGHTS))
        ]
        return np.concatenate([np.empty(0), *gains])

    def rough_score(self, beliefs: Sequence[ClassBelief], rows: slice) -> Array:
        return self._rough([belief.rough_table(rows) for belief in beliefs])

    def _rough(self, tables: Sequence[RoughTable]) -> Array:
        """Gains to second order: squared covariances of answers by the variances of both."""
        total: Array | float = 0.0
        for own, q, c in ((t.variance, t.q, t.c) for t in tables):
            target = q * (1.0 - q)
            gain = np.square(c) @ (1.0 / np.maximum(target, 1e-6)) / np.maximum(own, 1e-6)
            total = total + gain / (2.0 * len(q))
        return np.asarray(total)

    def _gain(self, outcomes: Array, after: Array) -> Array:
        """Gains (n,) of answers; the arguments are those of `expected_gain`."""
        outcomes = np.broadcast_to(outcomes, (len(outcomes), *after.shape[2:]))
        return np.asarray(expected_gain(self.uncertainty, outcomes, after).mean(axis=1))


def _chunks(beliefs: Sequence[ClassBelief], rows: Indices, n_outcomes: int) -> Iterator[Indices]:
    """Rows in parts of which the class probabilities after each outcome can be held."""
    n_targets = beliefs[0].members[0].covariance.shape[1]
    size = max(1, _BATCH_ELEMENTS // max(1, n_targets * n_outcomes * max(2, len(beliefs))))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _after_labels(tables: Sequence[LabelTable]) -> tuple[Array, Array]:
    """Probabilities of the classes as labels, and of the targets' classes after each."""
    after = [conditional(t.p[:, None], t.q, t.c) for t in tables]
    if len(tables) == 1:
        p = tables[0].p[:, None]
        return np.stack([p, 1.0 - p]), np.stack([_class_probabilities([one]) for one in after[0]])
    p = np.stack([t.p[:, None] for t in tables])
    each = [
        _class_probabilities([yes if k == label else no for k, (yes, no) in enumerate(after)])
        for label in range(len(tables))
    ]
    return p / p.sum(axis=0), np.stack(each)


def _after_numbers(tables: Sequence[Array]) -> Array:
    """Probabilities of the targets' classes after each outcome, from those of each class."""
    return np.stack([_class_probabilities(each) for each in zip(*tables, strict=True)])


def _class_probabilities(of_class: Sequence[Array]) -> Array:
    """Probabilities of all classes from those of each against the rest; of two the second."""
    if len(of_class) == 1:
        return np.stack([1.0 - of_class[0], of_class[0]])
    p = np.maximum(np.stack(of_class), np.finfo(float).tiny)
    return np.asarray(p / p.sum(axis=0))


class Margin(Strategy):
    """How near the two most probable classes of the candidate's own label are.

    Of a number, which share of its variance is not error.
    """

    shares_money = True

    def _of_labels(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        p = np.stack([belief.own_probability(rows) for belief in beliefs])
        p = np.concatenate([1.0 - p, p]) if len(p) == 1 else p / p.sum(axis=0)
        second, first = np.partition(p, -2, axis=0)[-2:]
        return np.asarray(1.0 - (first - second))

    def _of_numbers(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        return _of_own_numbers(beliefs, rows, lambda ratio: ratio / (1.0 + ratio))


class Bald(Strategy):
    """What the candidate's answer says about its own latent function, in nats."""

    shares_money = True

    def _of_labels(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        gains = [
            _binary_entropy(belief.own_probability(rows)) - _expected_entropy(belief, rows)
            for belief in beliefs
        ]
        return np.asarray(np.maximum(np.sum(gains, axis=0), 0.0))

    def _of_numbers(self, beliefs: Sequence[ClassBelief], rows: Indices) -> Array:
        return _of_own_numbers(beliefs, rows, lambda ratio: 0.5 * np.log1p(ratio))


def _of_own_numbers(
    beliefs: Sequence[ClassBelief], rows: Indices, worth: Callable[[Array], Array]
) -> Array:
    """A worth of numbers on average, from their latent variances in units of those of errors."""
    total = np.zeros(len(rows))
    for belief in beliefs:
        level = belief.level[rows]
        for weight, at, channel in zip(
            belief.weights, belief.members, belief.channels, strict=True
        ):
            total += weight * worth(at.variance[rows] * channel.precision(level))
    return total / len(beliefs)


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
