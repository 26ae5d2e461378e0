"""Trees that XGBoost grows on the workers of a cluster, as arrays like all others.

XGBoost compares in single precision, and sends a row left if its number is below a split. A number
in double precision is rounded to one below it exactly if it is at most halfway between the split
and the single number before it; at halfway it goes to the even one of the two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from distributed import Client, Future
from numpy.typing import NDArray
from scipy.special import logit

from polyfid.arrays import Array, hash_rows
from polyfid.distributed.sums import add_up
from polyfid.learning.boosted import (
    COLUMNS,
    MOST_TREES,
    PATIENCE,
    Cut,
    Hashes,
    fold_of,
)
from polyfid.model.trees import Trees, Turn
from polyfid.rows import Rows


@dataclass(frozen=True)
class Forest:
    """Grows trees on the workers that have the rows; ``counts`` are all rows by level."""

    client: Client
    blocks: Sequence[Future]
    counts: Sequence[int]

    def grow(self, level: int, positive: int, cut: Cut, fold: int, turn: Turn) -> Trees:
        """Trees of a level's rows but those of a fold, which say when to stop."""
        from xgboost import dask as xgboost  # takes a while to import

        of = level, positive, cut.folds, fold, turn
        tables = [self._table(_Chosen(*of, inside)) for inside in (False, True)]
        (learn, rate), (stop, _) = tables
        settings = {
            "objective": "binary:logistic",
            "base_score": rate,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": cut.leaves,
            "max_depth": 0,
            "learning_rate": cut.rate,
            "reg_lambda": cut.shrinkage,
            "colsample_bynode": COLUMNS,
            "seed": fold,
            "verbosity": 0,
        }
        booster = xgboost.train(
            self.client,
            settings,
            learn,
            num_boost_round=MOST_TREES,
            evals=[(stop, "held_out")],
            early_stopping_rounds=PATIENCE,
            verbose_eval=False,
        )["booster"]
        kept = booster[: booster.best_iteration + 1]
        return from_xgboost(json.loads(kept.save_raw("json")), float(logit(rate)), turn)

    def occur(self, hashes: Hashes, level: int) -> NDArray[np.bool_]:
        """Which of these hashes are of rows of a level."""
        found = add_up(self.client, _Occurring(hashes, level), self.blocks)
        return np.zeros(len(hashes), dtype=bool) if found is None else found > 0

    def _table(self, chosen: _Chosen) -> tuple[Any, float]:
        """Rows for XGBoost, where they are, and the share of positive labels."""
        from xgboost import dask as xgboost

        counts = self.client.gather(self.client.map(_count, self.blocks, chosen=chosen, pure=False))
        parts = [
            (count, delayed(chosen)(block))
            for count, block in zip(counts, self.blocks, strict=True)
            if count.n
        ]
        columns = [
            da.concatenate(
                [da.from_delayed(part[k], (c.n, *shape), dtype=float) for c, part in parts]
            )
            for k, shape in enumerate([(parts[0][0].width,), (), ()])
        ]
        total = sum(c.weight for c in counts)
        return (
            xgboost.DaskDMatrix(self.client, columns[0], columns[1], weight=columns[2]),
            sum(c.positive for c in counts) / total,
        )


@dataclass(frozen=True)
class _Count:
    """Rows that were chosen from a block, their columns, weight, and that of the positive ones."""

    n: int
    width: int
    weight: float
    positive: float


@dataclass(frozen=True)
class _Chosen:
    """Takes the rows of a level that are inside a fold, or outside: features, labels, weights."""

    level: int
    positive: int
    n_folds: int
    fold: int
    turn: Turn
    inside: bool

    def __call__(self, block: Rows) -> tuple[Array, Array, Array]:
        own = block.take(np.flatnonzero(block.level == self.level))
        chosen = (fold_of(own.x, self.n_folds) == self.fold) == self.inside
        rows = own.take(np.flatnonzero(chosen & (own.weight > 0.0)))
        return self.turn(rows.x), (rows.y == self.positive).astype(float), rows.weight


def _count(block: Rows | None, chosen: _Chosen) -> _Count:
    if block is None:
        return _Count(0, 0, 0.0, 0.0)
    x, y, weight = chosen(block)
    return _Count(len(x), x.shape[1], float(weight.sum()), float(weight @ y))


@dataclass(frozen=True)
class _Occurring:
    """Counts the blocks in which hashes are of rows of a level."""

    hashes: Hashes
    level: int

    def __call__(self, block: Rows) -> NDArray[np.intp]:
        own = hash_rows(block.x[block.level == self.level])
        return np.isin(self.hashes, own).astype(np.intp)


def from_xgboost(saved: dict[str, Any], baseline: float, turn: Turn) -> Trees:
    """The trees of an XGBoost model in its own JSON format, without categories."""
    each = [_in_order(tree) for tree in saved["learner"]["gradient_booster"]["model"]["trees"]]
    left, right, feature, split = (np.concatenate(column) for column in zip(*each, strict=True))
    leaf, sizes = left < 0, np.array([len(tree[0]) for tree in each], dtype=np.intp)
    return Trees(
        baseline,
        sizes,
        np.where(leaf, -1, feature).astype(np.int32),
        np.where(leaf, 0.0, largest_below(split)),
        np.where(leaf, 0, left).astype(np.int32),
        np.where(leaf, 0, right).astype(np.int32),
        np.where(leaf, split.astype(float), 0.0),
        turn,
    )


def largest_below(split: NDArray[np.float32]) -> Array:
    """The largest numbers that single precision rounds to one below these."""
    before = np.nextafter(split, np.float32(-np.inf))
    halfway = 0.5 * (before.astype(float) + split.astype(float))
    even = before.view(np.int32) % 2 == 0
    return np.where(even, halfway, np.nextafter(halfway, -np.inf))


def _in_order(tree: dict[str, Any]) -> tuple[NDArray[Any], ...]:
    """Children, features and splits (values of leaves) of a tree's nodes, each after its parent."""
    left, right = (np.array(tree[name]) for name in ("left_children", "right_children"))
    order = [0]
    for node in order:
        if left[node] >= 0:
            order += [left[node], right[node]]
    place = np.full(len(left), -1)
    place[order] = np.arange(len(order))
    inner = left[order] >= 0
    feature = np.array(tree["split_indices"], dtype=np.intp)[order]
    split = np.array(tree["split_conditions"], dtype=np.float32)[order]
    return (
        np.where(inner, place[left[order]], -1),
        np.where(inner, place[right[order]], -1),
        feature,
        split,
    )
