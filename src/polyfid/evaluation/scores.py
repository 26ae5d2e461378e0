"""Scores of class probabilities, for many weightings of the same rows at once.

A bootstrap sample is a weighting of the rows: how often each was drawn. All scores here are
weighted sums over ranks or bins that do not depend on the weights, so that a thousand samples cost
one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array

Index = NDArray[np.intp]

#: Upper bound on the elements of one array of weights.
_BATCH_ELEMENTS = 1 << 21
#: Upper bound on the bins of the calibration error, and lower bound on the rows per bin.
_MAX_BINS, _ROWS_PER_BIN = 10, 10


@dataclass(frozen=True)
class Score:
    """The name of a score as people write it, and whether higher values are better."""

    words: str
    more_is_better: bool


SCORES: dict[str, Score] = {
    "roc_auc": Score("ROC AUC", True),
    "log_loss": Score("log-loss", False),
    "brier": Score("Brier score", False),
    "calibration_error": Score("calibration error", False),
}


def score(proba: Array, code: Index, weights: Array) -> Array:
    """All of `SCORES` under each row of ``weights``, (n_weightings, n_scores).

    ``code`` is the class of each row, as the place of its column in ``proba``. In each weighting
    every class in ``code`` must have a weight above zero.
    """
    total = weights.sum(axis=1)
    rows = np.arange(len(code))
    hit = np.zeros_like(proba)
    hit[rows, code] = 1.0
    loss = -np.log(np.maximum(proba[rows, code], np.finfo(float).eps))
    square = np.square(proba - hit).sum(axis=1)
    # As in scikit-learn: at most 1 for two classes, at most 2 for more.
    square *= 0.5 if proba.shape[1] == 2 else 1.0
    # Two classes: that of the second one. More: the mean over each class against the others.
    columns = [1] if proba.shape[1] == 2 else np.unique(code).tolist()
    parts = [
        np.mean([_auc(proba[:, k], hit[:, k], weights) for k in columns], axis=0),
        weights @ loss / total,
        weights @ square / total,
        np.mean([_calibration_error(proba[:, k], hit[:, k], weights) for k in columns], axis=0),
    ]
    return np.stack(parts, axis=1)


def _auc(p: Array, hit: Array, weights: Array) -> Array:
    """Probability that a row of the class ranks above a row of another; ties count half."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) > 0.0])
    weights, hit = weights[:, order], hit[order]
    up = np.add.reduceat(weights * hit, starts, axis=1)
    down = np.add.reduceat(weights * (1.0 - hit), starts, axis=1)
    below = np.cumsum(down, axis=1) - 0.5 * down
    return np.asarray((up * below).sum(axis=1) / (up.sum(axis=1) * down.sum(axis=1)))


def _calibration_error(p: Array, hit: Array, weights: Array) -> Array:
    """Mean distance between predicted and observed frequency, over bins of equally many rows."""
    n_bins = int(np.clip(len(p) // _ROWS_PER_BIN, 1, _MAX_BINS))
    edges = np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    inside = np.searchsorted(edges, p, side="right")[:, None] == np.arange(n_bins)
    gaps = weights @ ((p - hit)[:, None] * inside)
    return np.asarray(np.abs(gaps).sum(axis=1) / weights.sum(axis=1))


def resample(code: Index, n_samples: int, rng: np.random.RandomState) -> Iterator[Array]:
    """How often each of ``n_samples`` bootstrap samples holds each row, in batches (m, n).

    Rows are drawn within their class, so that the number of rows per class stays the same.
    """
    size = max(1, _BATCH_ELEMENTS // len(code))
    for start in range(0, n_samples, size):
        counts = np.empty((min(size, n_samples - start), len(code)))
        for k in np.unique(code):
            members = np.flatnonzero(code == k)
            share = np.full(len(members), 1.0 / len(members))
            counts[:, members] = rng.multinomial(len(members), share, size=len(counts))
        yield counts


def bootstrap(
    probas: Mapping[str, Array], code: Index, weight: Array, n_samples: int, rng: Any
) -> dict[str, Array]:
    """Scores per method (n_samples, n_scores); all methods get the same bootstrap samples."""
    batches = [
        {name: score(proba, code, counts * weight) for name, proba in probas.items()}
        for counts in resample(code, n_samples, rng)
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in probas}
