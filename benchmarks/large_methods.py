"""What people would use for many rows of two levels, and polyfid.

Rows and categories are the same numbers for all (`real_tables`). What is held out of the training
rows decides settings; nobody sees test rows.

- XGBoost and LightGBM: see `large_trees`.
- CatBoost has all rows, cheap ones with a weight, 0.1 or 0.5. Trusted rows decide: first the
  weight, at depth 6, then the depth. Its learning rate is its own. The best is fitted again.
- GPyTorch's SVGP has polyfid's co-kriging prior, 500 inducing points and 200 s for each of two
  learning rates. Held-out trusted rows choose the rate and the epoch. It is not fitted again.

Times are of all fits that were needed, ``wall_known`` of those that a user who knows the best
settings needs. ``python -m benchmarks.large_methods PROBLEM.npz METHOD`` prints answers as JSON; it
is a process of its own, so that its memory can be measured and it can have all cores.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from benchmarks.figures import peer
from benchmarks.large_problems import Answer, Array, Large, hold_out
from benchmarks.large_trees import DEPTHS, N_CORES, PATIENCE, WAYS, Fit, lightgbm, of_trees, xgboost
from benchmarks.memory import peak_bytes
from benchmarks.timing import Timed, timed
from polyfid import MultiFidelityClassifier
from polyfid.model.calibration import calibration_error

CATBOOST_ROWS, CATBOOST_TREES, CATBOOST_WEIGHTS = 350_000, 1000, (0.1, 0.5)
SVGP_ROWS, SVGP_POINTS, SVGP_SECONDS, SVGP_RATES = 150_000, 500, 200.0, (0.003, 0.01)
#: From so many rows on, polyfid also predicts a million.
MANY, N_PREDICTED = 1_000_000, 1_000_000
CLIP = 1e-12


def catboost(rows: Large) -> Answer:
    """CatBoost, with the best weight of cheap rows and depth by held-out trusted ones."""
    out = np.isin(np.arange(len(rows.X)), hold_out(np.flatnonzero(rows.level == 1)))
    tried: dict[tuple[float, int], Timed] = {}

    def fit(weight: float, depth: int, again: Any = None) -> Any:
        """A model of all rows but those held out; of all, with the trees of another model."""
        model = peer("catboost").CatBoostClassifier(
            iterations=CATBOOST_TREES if again is None else again.tree_count_,
            # Its own rate depends on the number of trees.
            learning_rate=None if again is None else again.learning_rate_,
            depth=depth,
            thread_count=N_CORES,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
        )
        w = np.where(rows.level == 1, 1.0, weight)
        if again is not None:
            return model.fit(rows.X, rows.y, sample_weight=w)
        stop = {"eval_set": (rows.X[out], rows.y[out]), "early_stopping_rounds": PATIENCE}
        return model.fit(rows.X[~out], rows.y[~out], sample_weight=w[~out], **stop)

    def try_out(weight: float, depth: int) -> None:
        tried[weight, depth] = timed(lambda: fit(weight, depth))

    def best() -> tuple[float, int]:
        return min(tried, key=lambda s: tried[s].result.best_score_["validation"]["Logloss"])

    for weight in CATBOOST_WEIGHTS:
        try_out(weight, DEPTHS[1])
    weight = best()[0]
    for depth in (DEPTHS[0], DEPTHS[2]):
        try_out(weight, depth)
    first = tried[best()]
    again = timed(lambda: fit(*best(), first.result))
    facts = {
        "settings": "weight {}, depth {}, {} trees".format(*best(), first.result.tree_count_),
        "wall_known": first.wall + again.wall,
    }
    every = [*tried.values(), again]
    wall, cpu = sum(t.wall for t in every), sum(t.cpu for t in every)
    return Answer(again.result.predict_proba(rows.X_test)[:, 1], wall, cpu, facts)


def svgp(rows: Large, inducing: int = SVGP_POINTS, seconds: float = SVGP_SECONDS) -> Answer:
    """GPyTorch's sparse variational classifier, stopped where held-out trusted rows are best."""
    for name in ("torch", "gpytorch"):
        peer(name)
    from benchmarks.svgp import fit

    out = np.isin(np.arange(len(rows.X)), hold_out(np.flatnonzero(rows.level == 1)))
    data = {"x": rows.X[~out], "y": rows.y[~out], "level": rows.level[~out], "x_new": rows.X_test}
    data |= {"x_test": rows.X[out], "y_test": rows.y[out]}
    shared = {"inducing": inducing, "seconds": seconds, "threads": N_CORES, "seed": 0}
    runs = [timed(lambda r=rate: fit(data, {**shared, "rate": r})) for rate in SVGP_RATES]
    best = min(runs, key=lambda run: min(loss for _, loss in run.result["trace"]))
    when = min(best.result["trace"], key=lambda epoch: epoch[1])[0]
    facts = {
        "settings": f"rate {best.result['options']['rate']}, best after {when:.0f} s",
        "wall_known": when,
    }
    return Answer(best.result["new"], sum(r.wall for r in runs), sum(r.cpu for r in runs), facts)


def ours(rows: Large, **options: Any) -> Answer:
    """polyfid with its default parameters, but for those given."""
    model = MultiFidelityClassifier(random_state=0, **options)
    fit = timed(lambda: model.fit(rows.X, rows.y, fidelity=rows.level))
    facts: dict[str, Any] = {"report": str(model.report_), "peak": peak_bytes()}
    p = model.predict_proba(rows.X_test)[:, 1]
    if len(rows.X) >= MANY:
        # Columns one by one: no row comes twice.
        rng = np.random.RandomState(0)
        new = np.column_stack([rng.choice(column, N_PREDICTED) for column in rows.X_test.T])
        facts["predict"] = timed(lambda: model.predict_proba(new)).wall
    return Answer(p, fit.wall, fit.cpu, facts)


class Method(NamedTuple):
    """Answers by name, the package that is needed and the rows that are not too many."""

    run: Callable[[Large], dict[str, Answer]]
    answers: Sequence[str]
    needs: str
    most_rows: int | None = None

    def missing(self, n_rows: int) -> str:
        """Why it cannot run, if it cannot."""
        if find_spec(self.needs) is None:
            return f"needs {self.needs}, see benchmarks/peers.txt"
        if self.most_rows is not None and n_rows > self.most_rows:
            return f"only for up to {self.most_rows:,} rows"
        return ""


def _alone(name: str, run: Callable[[Large], Answer], needs: str, most: int | None = None) -> Any:
    return name, Method(lambda rows: {name: run(rows)}, (name,), needs, most)


def _in_all_ways(name: str, fit: Fit) -> Any:
    def run(rows: Large) -> dict[str, Answer]:
        return {f"{name}, {way}": answer for way, answer in of_trees(fit, rows).items()}

    return name, Method(run, [f"{name}, {way}" for way in WAYS], name)


METHODS: dict[str, Method] = dict(
    [
        _alone("polyfid", ours, "polyfid"),
        _alone("polyfid mean=None", lambda rows: ours(rows, mean=None), "polyfid"),
        _alone("polyfid mean=boosted", lambda rows: ours(rows, mean="boosted"), "polyfid"),
        _in_all_ways("xgboost", xgboost),
        _in_all_ways("lightgbm", lightgbm),
        _alone("catboost", catboost, "catboost", CATBOOST_ROWS),
        _alone("svgp", svgp, "gpytorch", SVGP_ROWS),
    ]
)
#: Answers of trees alone.
TREES = [a for name in ("xgboost", "lightgbm", "catboost") for a in METHODS[name].answers]


def scores(p: Array, rows: Large) -> dict[str, float]:
    """Log-loss, ROC AUC and calibration error; expected ones where probabilities are known."""
    p, y = np.clip(p, CLIP, 1.0 - CLIP), rows.y_test
    q = y if rows.q is None else rows.q
    return {
        "log_loss": -float(np.mean(q * np.log(p) + (1.0 - q) * np.log1p(-p))),
        "roc_auc": float(roc_auc_score(y, p)),
        "calibration": float(calibration_error(p, q, np.ones((1, len(p))))[0]),
    }


def rows_of(answers: Iterable[tuple[str, Answer]], rows: Large) -> dict[str, dict[str, Any]]:
    """Figures of answers, as they are kept."""
    return {
        name: {
            **scores(answer.p, rows),
            "wall": answer.wall,
            "cpu": answer.cpu,
            "wall_known": answer.wall,
            "peak": peak_bytes(),
            **answer.facts,
        }
        for name, answer in answers
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    given = Large.load(Path(sys.argv[1]))
    print(json.dumps(rows_of(METHODS[sys.argv[2]].run(given).items(), given)))
