"""A boosted mean: trees learn what many rows know, and Gaussian processes go on from there.

The rows of a level are cut into parts, by their features, so that repeats of a row stay together.
Some parts, or all of them where rows are few, are folds; the trees of a fold learn from all rows
but its own. A row of a fold gets its margin, the log-odds of its label, from the trees of its fold,
a row that no trees have learnt from the average of all. Rows of which all trees know the label are
for trees alone. Trees of a level above another one with trees see the log-odds of these, and their
margin is the difference: it is a part of the correction of the level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from polyfid.arrays import Array, Indices, Scale, hash_rows
from polyfid.learning.plan import Target
from polyfid.model.trees import BoostedMean, Margin, Trees, Turn
from polyfid.rows import Rows
from polyfid.rows.rows import RARE

Hashes = NDArray[np.uint64]


class Cut(NamedTuple):
    """Levels of up to so many rows: their parts, folds among them, leaves per tree and rate.

    ``shrinkage`` draws leaves to zero; averages of such trees are better.
    """

    most_rows: float
    parts: int
    folds: int
    leaves: int
    rate: float
    shrinkage: float = 50.0


# Constants of the trees, chosen on other draws than those of ``python -m benchmarks large``.
CUTS = (
    Cut(60_000, 5, 5, 63, 0.2),
    Cut(200_000, 5, 4, 63, 0.3),
    Cut(np.inf, 20, 4, 255, 0.3),
)
#: Of levels that correct lower ones, if they have no more rows.
CORRECTING = Cut(60_000, 5, 5, 8, 0.1, 20.0)
#: Rows that say when to stop, at most, and the rounds without a gain after which they say it.
N_VALIDATED, PATIENCE = 50_000, 10
#: Rows per leaf that a tree would have if they were all alike, and the fewest leaves.
ROWS_PER_LEAF, FEWEST_LEAVES = 200, 8
MOST_TREES = 1000
#: The share of the columns that a node tries: averages of such trees are better.
COLUMNS = 0.6
#: Columns are turned if that is better on so many rows, of which a third is held out, by the
#: average of so many boosters with so many leaves. There are that many columns of numbers, of at
#: least so many values.
N_TRIED, FEWEST_TRIED, BOOSTERS_TRIED, LEAVES_TRIED = 20_000, 5_000, 2, 31
N_TURNED, FEWEST_VALUES = (2, 30), 10
#: Columns that are added at most.
MOST_TURNED = 16
#: The fold of rows that no trees have learnt from, and of those that all trees have learnt from.
NOT_LEARNT, NO_FOLD = -1, -2


class Forester(Protocol):
    """Grows trees where the rows are, if these are more than there are in memory."""

    @property
    def counts(self) -> Sequence[int]:
        """All rows there are, by level."""

    def grow(self, level: int, positive: int, cut: Cut, fold: int, turn: Turn) -> Trees:
        """Trees of a level's rows but those of a fold, which say when to stop."""

    def occur(self, hashes: Hashes, level: int) -> NDArray[np.bool_]:
        """Which of these hashes are of rows of a level."""


@dataclass(frozen=True)
class Boosting:
    """A mean that was fitted to rows.

    ``learnt`` and ``elsewhere`` are hashes of rows for each margin, sorted: of those that its trees
    have learnt from, and of those of other levels.
    """

    mean: BoostedMean
    learnt: tuple[Hashes, ...]
    elsewhere: tuple[Hashes, ...]

    @classmethod
    def of(cls, mean: BoostedMean, rows: Rows, forester: Forester | None = None) -> Boosting:
        """A mean that was fitted to these rows, or to all of a forester's."""
        hashes, learnt, elsewhere = hash_rows(rows.x), [], []
        for t in mean.levels:
            own, others = (np.unique(hashes[(rows.level == t) == same]) for same in (True, False))
            if forester is not None and forester.counts[t] > len(own):
                own = np.union1d(own, others[forester.occur(others, t)])
            learnt.append(own)
            elsewhere.append(others)
        return cls(mean, tuple(learnt), tuple(elsewhere))

    def extend(self, rows: Rows) -> Rows:
        """Rows with margins."""
        return replace(rows, margin=self.margins(rows.x))

    def log_odds(self, x: Array) -> Array:
        """Log-odds by trees alone of the last level that has some (n,), out of fold."""
        return self.mean.log_odds(x, self._folds(x))

    def spared(self, rows: Rows) -> Rows:
        """The rows that for every margin there are trees which have not learnt from them."""
        folds = self._folds(rows.x)
        return rows.take(np.flatnonzero(np.all([fold != NO_FOLD for fold in folds], axis=0)))

    def margins(self, x: Array) -> Array:
        """Margins of rows (n, d), which the trees may have learnt from, (n, n_margins)."""
        return self.mean(x, self._folds(x))

    def _folds(self, x: Array) -> list[Indices]:
        """The folds of rows, by margin."""
        hashes = hash_rows(x)
        known = zip(self.mean.margins, self.learnt, self.elsewhere, strict=True)
        return [
            np.where(
                _among(hashes, learnt),
                _folds(hashes, elsewhere, margin.parts, len(margin.folds)),
                NOT_LEARNT,
            )
            for margin, learnt, elsewhere in known
        ]


def _folds(hashes: Hashes, elsewhere: Hashes, parts: int, n_folds: int) -> Indices:
    """The folds of rows of a level: repeats of rows of other levels have one of their own."""
    part = np.where(
        _among(hashes, elsewhere), hashes % np.uint64(n_folds), hashes % np.uint64(parts)
    )
    return np.where(part < n_folds, part.astype(np.intp), NO_FOLD)


def fold_of(x: Array, n_folds: int) -> Indices:
    """The folds of rows (n, d) of a level of which all parts are folds."""
    return _folds(hash_rows(x), np.empty(0, np.uint64), n_folds, n_folds)


def _among(hashes: Hashes, others: Hashes) -> NDArray[np.bool_]:
    """Which hashes are among others, which are sorted."""
    if not len(others):
        return np.zeros(len(hashes), dtype=bool)
    place = np.minimum(np.searchsorted(others, hashes), len(others) - 1)
    return np.asarray(others[place] == hashes)


@dataclass(frozen=True)
class _Level:
    """The rows of a level that trees learn from, with labels that are true or false.

    If there is a forester these are only some of its rows.
    """

    level: int
    positive: int
    cut: Cut
    x: Array
    y: NDArray[np.bool_]
    weight: Array
    hashes: Hashes
    fold: Indices
    forester: Forester | None
    corrects: bool = False

    @classmethod
    def of(
        cls, rows: Rows, hashes: Hashes, level: int, positive: int, forester: Forester | None
    ) -> _Level:
        own = np.flatnonzero(rows.level == level)
        if forester is not None and forester.counts[level] <= len(own):
            forester = None
        n = len(own) if forester is None else forester.counts[level]
        cut = next(cut for cut in CUTS if n <= cut.most_rows)
        if forester is not None:  # nobody knows all rows of other levels
            cut = cut._replace(parts=cut.folds)
        elsewhere = np.unique(np.delete(hashes, own))
        fold = _folds(hashes[own], elsewhere, cut.parts, cut.folds)
        y = rows.y[own] == positive
        labelled = rows.x[own], y, rows.weight[own], hashes[own]
        return cls(level, positive, cut, *labelled, fold, forester)

    def above(self, lower: Sequence[Margin], rows: Rows, forester: Forester | None) -> _Level:
        """The level with log-odds by the trees of lower levels as a further column."""
        if not lower or self.forester is not None:
            return self
        mean = BoostedMean(tuple(lower))
        below = Boosting.of(mean, rows, forester).log_odds(self.x)
        x, few = np.column_stack([self.x, below]), len(self.x) <= CORRECTING.most_rows
        return replace(self, x=x, corrects=True, cut=CORRECTING if few else self.cut)

    @property
    def has_both_classes(self) -> bool:
        """Whether there are rows of both classes in every fold, and enough of them in all."""
        k = self.cut.folds
        inside = self.fold >= 0
        counts = np.bincount(2 * self.fold[inside] + self.y[inside], minlength=2 * k)
        both = np.bincount(self.y, minlength=2)
        return bool(counts.all() and both.min() >= RARE)

    def fit(self, fold: int, turn: Turn) -> Trees:
        """The trees of a fold, whose rows say when to stop."""
        if self.forester is not None:
            return self.forester.grow(self.level, self.positive, self.cut, fold, turn)
        learn, stop = self.fold != fold, np.flatnonzero(self.fold == fold)[:N_VALIDATED]
        return _boosted(self, np.flatnonzero(learn), stop, turn, seed=fold)

    def turns(self, map_: Callable[..., Iterable[Trees]]) -> list[Turn]:
        """For each fold how columns are turned, if that is better on some of the rows."""
        d, some = self.x.shape[1], slice(None, None, -(-len(self.x) // N_TRIED))
        x, none = self.x[some], [Turn.none(self.x.shape[1])] * self.cut.folds
        numbers = [j for j in range(d) if len(np.unique(x[:, j])) >= FEWEST_VALUES]
        if len(x) < FEWEST_TRIED or not N_TURNED[0] <= len(numbers) <= N_TURNED[1]:
            return none
        scale, rng = Scale.of(x, self.weight[some]), np.random.RandomState(0)
        turns = [_turn(scale, numbers, rng) for _ in range(self.cut.folds)]
        own = {name: getattr(self, name)[some] for name in ("x", "y", "weight", "hashes")}
        rows = replace(self, **own, cut=self.cut._replace(leaves=LEAVES_TRIED))
        out = (rows.hashes // np.uint64(self.cut.parts)) % np.uint64(3) == 0
        if min(np.bincount(rows.y[at], minlength=2).min() for at in (out, ~out)) < RARE:
            return none
        learn, stop = np.flatnonzero(~out), np.flatnonzero(out)
        tried = [none[0]] * BOOSTERS_TRIED + turns[:BOOSTERS_TRIED]
        boosters = map_(lambda job: _boosted(rows, learn, stop, job[1], job[0]), enumerate(tried))
        sign = np.where(rows.y[stop], -1.0, 1.0)
        margins = np.stack([trees(x[stop]) for trees in boosters]).reshape(2, BOOSTERS_TRIED, -1)
        loss = np.logaddexp(0.0, sign * margins.mean(axis=1))
        gain, weight = loss[0] - loss[1], rows.weight[stop]
        mean = float(np.average(gain, weights=weight))
        error = np.sqrt(np.sum(np.square(weight * (gain - mean)))) / weight.sum()
        return turns if mean > error else none


def boost(
    rows: Rows,
    levels: tuple[int, ...],
    target: Target,
    watch: Callable[[int, int], None] = lambda done, total: None,
    forester: Forester | None = None,
) -> Boosting | None:
    """Trees for the levels that have enough rows of both classes; None if there is no such level.

    Rows of few different points, which come unmerged in blocks, may leave a fold without a class.

    ``watch`` is told of the folds so far and of how many there will be. A ``forester`` grows the
    trees of levels of which it has more rows than these.
    """
    hashes = hash_rows(rows.x)
    every = [_Level.of(rows, hashes, t, target.positive, forester) for t in levels]
    chosen = [level for level in every if level.has_both_classes]
    if not chosen:
        return None
    done, total = 0, sum(level.cut.folds for level in chosen)
    watch(0, total)
    margins: list[Margin] = []
    # One core per fold is as fast as all cores for each, and does not wait for busy ones.
    pool = ThreadPoolExecutor(joblib.cpu_count())
    try:
        for level in chosen:
            level = level.above(margins, rows, forester)
            jobs = [
                pool.submit(partial(level.fit, k), turn)
                for k, turn in enumerate(level.turns(pool.map))
            ]
            trees = []
            for job in jobs:
                trees.append(job.result())
                watch(done := done + 1, total)
            margins.append(Margin(level.level, tuple(trees), level.cut.parts, level.corrects))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C waits for the folds under way only
    return Boosting.of(BoostedMean(tuple(margins)), rows, forester)


def _turn(scale: Scale, numbers: list[int], rng: np.random.RandomState) -> Turn:
    """Directions at right angles to each other, in columns of numbers with one spread."""
    n, none = len(numbers), Turn.none(len(scale.centre))
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    directions = np.zeros((len(scale.centre), min(n, MOST_TURNED)))
    directions[numbers] = q[:, :MOST_TURNED] / scale.spread[numbers, None]
    return replace(none, centre=scale.centre, directions=directions)


def _boosted(rows: _Level, learn: Indices, stop: Indices, turn: Turn, seed: int) -> Trees:
    """Trees that learn from some rows, until others say when to stop."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes a while to import

    leaves = int(np.clip(len(learn) // ROWS_PER_LEAF, FEWEST_LEAVES, rows.cut.leaves))
    booster = HistGradientBoostingClassifier(
        learning_rate=rows.cut.rate,
        max_iter=MOST_TREES,
        max_leaf_nodes=leaves,
        l2_regularization=rows.cut.shrinkage,
        max_features=COLUMNS,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        random_state=seed,
    )
    # Bins of weighted rows take longer than the trees.
    weighted = bool((rows.weight != 1.0).any())
    (x, y, weight), (x_val, y_val, weight_val) = (
        (turn(rows.x[at]), rows.y[at], rows.weight[at] if weighted else None)
        for at in (learn, stop)
    )
    with threadpool_limits(1, user_api="openmp"):
        booster.fit(x, y, weight, X_val=x_val, y_val=y_val, sample_weight_val=weight_val)
    return Trees.of(booster, turn)
