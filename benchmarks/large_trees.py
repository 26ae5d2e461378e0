"""XGBoost and LightGBM on rows of two levels, in all the ways in which people use them.

They stop early on a fifth of their rows (of the trusted ones, where these are among them; at most
20 000), after 30 rounds without a gain. They try depths 4, 6 and 8 (15, 63 and 255 leaves) at the
learning rate 0.1, then the best depth at 0.05. The best setting is fitted again to all rows with
the number of trees that was best, unless so few were held out that it cannot matter, less than a
tenth. The ways: pooled; trusted rows only; trusted rows with the margin of trees of the cheap rows
as a feature (stacked), or as the margin to start from (base margin).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.figures import peer
from benchmarks.large_problems import Answer, Array, Large, hold_out
from benchmarks.timing import Timed, timed

N_CORES = os.cpu_count() or 1
DEPTHS, RATE, LOWER_RATE, PATIENCE, MOST_TREES = (4, 6, 8), 0.1, 0.05, 30, 2000
AGAIN = 0.1


class Part(NamedTuple):
    """Rows, labels 0 and 1, and margins that trees start from."""

    X: Array
    y: NDArray[Any]
    margin: Array

    @classmethod
    def of(cls, X: Array, y: NDArray[Any]) -> Part:
        """Rows that start from the log-odds of the classes."""
        return cls(X, y, np.full(len(y), logit(np.clip(y.mean(), 1e-3, 1.0 - 1e-3))))

    def take(self, rows: NDArray[np.bool_]) -> Part:
        return Part(self.X[rows], self.y[rows], self.margin[rows])


class Setting(NamedTuple):
    depth: int
    rate: float


class Trees(NamedTuple):
    """Log-loss of held-out rows, the best number of trees, and what these add to margins."""

    loss: float
    n_trees: int
    add: Callable[[Array], Array]


#: Training rows, held-out rows or none, a setting, trees at most.
Fit = Callable[[Part, Part | None, Setting, int], Trees]


def xgboost(rows: Part, out: Part | None, setting: Setting, most: int) -> Trees:
    model = peer("xgboost").XGBClassifier(
        n_estimators=most,
        max_depth=setting.depth,
        learning_rate=setting.rate,
        early_stopping_rounds=None if out is None else PATIENCE,
        base_score=0.5,
        n_jobs=N_CORES,
    )
    told: dict[str, Any] = {}
    if out is not None:
        told = {"eval_set": [(out.X, out.y)], "base_margin_eval_set": [out.margin]}
    model.fit(rows.X, rows.y, base_margin=rows.margin, verbose=False, **told)
    loss, n = (0.0, most) if out is None else (model.best_score, model.best_iteration + 1)
    return Trees(loss, n, lambda X: model.predict(X, output_margin=True).astype(float))


def lightgbm(rows: Part, out: Part | None, setting: Setting, most: int) -> Trees:
    library = peer("lightgbm")
    model = library.LGBMClassifier(
        n_estimators=most,
        num_leaves=2**setting.depth - 1,
        learning_rate=setting.rate,
        n_jobs=N_CORES,
        verbose=-1,
    )
    told: dict[str, Any] = {}
    if out is not None:
        stop = library.early_stopping(PATIENCE, verbose=False)
        told = {"eval_X": out.X, "eval_y": out.y, "eval_init_score": [out.margin]}
        told["callbacks"] = [stop]
    model.fit(rows.X, rows.y, init_score=rows.margin, **told)
    loss, n = 0.0, most
    if out is not None:
        loss, n = model.best_score_["valid_0"]["binary_logloss"], model.best_iteration_
    # Named columns would be expected otherwise.
    return Trees(loss, n, lambda X: np.asarray(model.booster_.predict(X, raw_score=True)))


class Learnt(NamedTuple):
    """The trees of the best setting, with the seconds that they took in all and alone."""

    trees: Trees
    setting: Setting
    wall: float
    cpu: float
    wall_known: float


def learn(fit: Fit, rows: Part, candidates: NDArray[np.intp] | None = None) -> Learnt:
    """Trees of the best setting; of the candidates, or of all rows, a fifth is held out."""
    candidates = np.arange(len(rows.y)) if candidates is None else candidates
    chosen = hold_out(candidates)
    out = np.isin(np.arange(len(rows.y)), chosen)
    inside, outside = rows.take(~out), rows.take(out)

    def try_out(setting: Setting) -> Timed:
        return timed(lambda: fit(inside, outside, setting, MOST_TREES))

    tried = {s: try_out(s) for s in (Setting(depth, RATE) for depth in DEPTHS)}
    lower = Setting(_best(tried).depth, LOWER_RATE)
    tried[lower] = try_out(lower)
    best = _best(tried)
    used = [tried[best]]
    if len(chosen) >= AGAIN * len(candidates):
        n = used[0].result.n_trees
        used.append(timed(lambda: fit(rows, None, best, n)))
    every = [*tried.values(), *used[1:]]
    wall, cpu = sum(t.wall for t in every), sum(t.cpu for t in every)
    return Learnt(used[-1].result, best, wall, cpu, sum(t.wall for t in used))


def _best(tried: dict[Setting, Timed]) -> Setting:
    return min(tried, key=lambda setting: tried[setting].result.loss)


WAYS = ("base margin", "stacked", "pooled", "trusted only")


def of_trees(fit: Fit, rows: Large) -> dict[str, Answer]:
    """Probabilities of the test rows in all ways; trees of the cheap rows are fitted once."""
    top = rows.level == 1
    X, y, X_test = rows.X[top], rows.y[top], rows.X_test

    def start(part: Part, n: int) -> Array:
        return np.full(n, part.margin[0])

    def answer(part: Part, X_new: Array, margin: Array, *before: Learnt, **told: Any) -> Answer:
        own = learn(fit, part, **told)
        parts = (*before, own)
        facts = {
            "settings": "; ".join(
                f"depth {s.setting.depth}, rate {s.setting.rate}, {s.trees.n_trees} trees"
                for s in parts
            ),
            "wall_known": sum(s.wall_known for s in parts),
        }
        p = expit(margin + own.trees.add(X_new))
        return Answer(p, sum(s.wall for s in parts), sum(s.cpu for s in parts), facts)

    cheap, trusted, pooled = Part.of(rows.X[~top], rows.y[~top]), Part.of(X, y), Part.of(*rows[:2])
    low = learn(fit, cheap)
    m, m_test = (start(cheap, len(Z)) + low.trees.add(Z) for Z in (X, X_test))
    stacked = Part.of(np.column_stack([X, m]), y)
    n = len(X_test)
    return {
        "base margin": answer(Part(X, y, m), X_test, m_test, low),
        "stacked": answer(stacked, np.column_stack([X_test, m_test]), start(stacked, n), low),
        "pooled": answer(pooled, X_test, start(pooled, n), candidates=np.flatnonzero(top)),
        "trusted only": answer(trusted, X_test, start(trusted, n)),
    }
