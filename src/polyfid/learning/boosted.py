"""A boosted mean: trees learn what many rows know, and Gaussian processes go on from there.

The rows of a level are cut into folds, by their features, so that repeats of a row stay together.
The trees of a fold learn from all other folds. A row that trees have learnt from gets its margin,
the log-odds of its label, from those of its own fold, any other row the average of all folds.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from polyfid.arrays import Array, Indices, hash_rows
from polyfid.learning.plan import Target
from polyfid.model.trees import BoostedMean, Margin, Trees
from polyfid.rows import Rows
from polyfid.rows.rows import RARE

# Constants of the trees, chosen on other draws than those of ``python -m benchmarks large``.
#: Folds of levels of up to so many rows; the time of more than two grows with their number.
FOLDS = ((20_000, 5), (200_000, 3))
FEWEST_FOLDS = 2
#: Rows that say when to stop, at most, and the rounds without a gain after which they say it.
N_VALIDATED, PATIENCE = 50_000, 10
#: Rows per leaf that a tree would have if they were all alike, and bounds of the leaves.
ROWS_PER_LEAF, LEAVES = 200, (8, 127)
LEARNING_RATE, MOST_TREES = 0.2, 1000
#: How strongly leaves are drawn to zero, and the share of the columns that a node tries:
#: averages of such trees are better.
SHRINKAGE, COLUMNS = 50.0, 0.6


@dataclass(frozen=True)
class Boosting:
    """A mean that was fitted to rows; ``learnt`` are hashes of the rows of each margin, sorted."""

    mean: BoostedMean
    learnt: tuple[NDArray[np.uint64], ...]

    @classmethod
    def of(cls, mean: BoostedMean, rows: Rows) -> Boosting:
        """A mean that was fitted to these rows."""
        hashes = hash_rows(rows.x)
        return cls(mean, tuple(np.unique(hashes[rows.level == t]) for t in mean.levels))

    def extend(self, rows: Rows) -> Rows:
        """Rows with margins."""
        return replace(rows, margin=self.margins(rows.x))

    def margins(self, x: Array) -> Array:
        """Margins of rows (n, d), which the trees may have learnt from, (n, n_margins)."""
        hashes = hash_rows(x)
        known = zip(self.mean.margins, self.learnt, strict=True)
        columns = (m.out_of_fold(x, _folds(hashes, own, len(m.folds))) for m, own in known)
        return np.column_stack(list(columns))


def _folds(hashes: NDArray[np.uint64], learnt: NDArray[np.uint64], n_folds: int) -> Indices:
    """The folds of rows, -1 of those that are not among the ones that were learnt from."""
    if not len(learnt):
        return np.full(len(hashes), -1)
    place = np.minimum(np.searchsorted(learnt, hashes), len(learnt) - 1)
    return np.where(learnt[place] == hashes, (hashes % np.uint64(n_folds)).astype(np.intp), -1)


def boost(
    rows: Rows,
    levels: tuple[int, ...],
    target: Target,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Boosting | None:
    """Trees for the levels that have enough rows of both classes; None if there is no such level.

    Rows of few different points, which come unmerged in blocks, may leave a fold without a class.

    ``watch`` is told of the folds so far and of how many there will be.
    """
    chosen, hashes = [], hash_rows(rows.x)
    for t in levels:
        own = rows.level == t
        y, k = rows.y[own] == target.positive, _n_folds(int(own.sum()))
        fold = (hashes[own] % np.uint64(k)).astype(np.intp)
        counts = np.bincount(2 * fold + y, minlength=2 * k).reshape(k, 2)
        if counts.all() and counts.sum(axis=0).min() >= RARE:
            chosen.append((t, k))
    if not chosen:
        return None
    folds = [(t, k) for t, n_folds in chosen for k in range(n_folds)]
    watch(0, len(folds))
    trees: dict[int, list[Trees]] = {t: [] for t, _ in chosen}
    # One core per fold is as fast as all cores for each, and does not wait for busy ones.
    pool = ThreadPoolExecutor(joblib.cpu_count())
    try:
        of_fold = partial(_fit_fold, rows, target.positive)
        for done, ((t, _), fitted) in enumerate(zip(folds, pool.map(of_fold, folds), strict=True)):
            trees[t].append(fitted)
            watch(done + 1, len(folds))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C waits for the folds under way only
    margins = (Margin(t, tuple(own)) for t, own in trees.items())
    return Boosting.of(BoostedMean(tuple(margins)), rows)


def _n_folds(n_rows: int) -> int:
    return next((k for most, k in FOLDS if n_rows <= most), FEWEST_FOLDS)


def _fit_fold(rows: Rows, positive: int, fold: tuple[int, int]) -> Trees:
    """Trees for the rows of a level that are not in a fold, which says when to stop."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes a while to import

    level, k = fold
    own = rows.take(np.flatnonzero(rows.level == level))
    out = hash_rows(own.x) % np.uint64(_n_folds(len(own))) == k
    y, learn, stop = own.y == positive, np.flatnonzero(~out), np.flatnonzero(out)[:N_VALIDATED]
    booster = HistGradientBoostingClassifier(
        learning_rate=LEARNING_RATE,
        max_iter=MOST_TREES,
        max_leaf_nodes=int(np.clip(len(learn) // ROWS_PER_LEAF, *LEAVES)),
        l2_regularization=SHRINKAGE,
        max_features=COLUMNS,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        random_state=0,
    )
    told = {"X_val": own.x[stop], "y_val": y[stop], "sample_weight_val": own.weight[stop]}
    with threadpool_limits(1, user_api="openmp"):
        return Trees.of(booster.fit(own.x[learn], y[learn], own.weight[learn], **told))
