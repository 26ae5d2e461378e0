"""Many rows against boosted trees: log-loss, ROC AUC, calibration and time.

Every rival stops early on held-out rows and has the better of two depths. Times are wall time with
all cores, one method after the other; the rival whose time counts is the tree of lowest log-loss.
POLYFID_LARGE="rough 100000 3000,hastie" runs some of the problems only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import make_friedman1, make_hastie_10_2
from sklearn.metrics import roc_auc_score

from benchmarks.figures import Context, Figure, Skip, Table, at_least, at_most, info, peer
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging, make_rough
from polyfid.model.calibration import calibration_error

Array = NDArray[np.float64]
N_TEST, DEPTHS, MOST_TREES, PATIENCE = 20_000, (5, 8), 1000, 20
SIZES = ((100_000, 3_000), (300_000, 5_000), (1_000_000, 10_000))
QUICK = ((10_000, 500),)
SEED = 100  # constants were chosen on other draws
CATBOOST_ROWS = 200_000  # with more it takes a quarter of an hour
WEIGHTS = (0.1, 0.5)
TIME, CALIBRATED, GAP = 3.0, 0.01, 1.0 / 3.0


class Large(NamedTuple):
    """Training rows of levels 0 and 1, test rows of level 1; ``q`` is P(y = 1), if it is known."""

    X: Array
    y: NDArray[Any]
    level: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    q: Array | None


def rough(n_low: int, n_high: int) -> Large:
    made = make_rough(n_low, n_high, n_test=N_TEST, random_state=SEED)
    train, test = (made.data, made.target, made.fidelity), (made.test_data, made.test_target)
    return Large(*train, *test, made.test_probability)


def cokriging(n_low: int, n_high: int) -> Large:
    made = make_cokriging(n_low, n_high, 5, labels="sigmoid", n_test=N_TEST, random_state=SEED)
    train, test = (made.data, made.target, made.fidelity), (made.test_data, made.test_target)
    return Large(*train, *test, expit(made.test_latent[:, 1]))


def flipped(X: Array, y: NDArray[Any], share: float = 0.05) -> Large:
    """Labels of a table: a few trusted ones, half of the rest for testing, cheap ones flipped.

    Flips depend on the features: their log-odds are a line and a wave of two of them.
    """
    rng = np.random.RandomState(0)
    order = rng.permutation(len(X))
    X, y = X[order], y[order].astype(int)
    z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    odds = -1.2 + 1.2 * z[:, 0] + np.sin(3.0 * z[:, 1 % z.shape[1]])
    cheap = y ^ (rng.uniform(size=len(y)) < 0.6 * expit(odds))
    n_test, n_high = len(X) // 4, int(share * len(X))
    level = np.repeat([0, 1], [len(X) - n_test - n_high, n_high])
    n = len(level)
    return Large(X[:n], np.where(level == 1, y[:n], cheap[:n]), level, X[n:], y[n:], None)


def hastie(context: Context) -> Large:
    X, y = make_hastie_10_2(40_000, random_state=0)
    return flipped(X, y > 0)


def friedman(context: Context) -> Large:
    X, y = make_friedman1(40_000, noise=3.0, random_state=0)
    return flipped(X, y > np.median(y))


def named(context: Context) -> Iterator[tuple[str, Callable[[], Large]]]:
    for n_low, n_high in QUICK if context.quick else SIZES:
        for make in (rough, cokriging):
            yield f"{make.__name__} {n_low} {n_high}", lambda m=make, s=(n_low, n_high): m(*s)
    for table in (hastie, friedman):
        yield table.__name__, lambda t=table: t(context)


class Boosted(NamedTuple):
    """XGBoost or LightGBM: rows, weights and margins to margins of other rows."""

    name: str

    def __call__(
        self, X: Array, y: Any, others: list[Array], margin: Array | None, margins: list[Array]
    ) -> list[Array]:
        """Margins of other rows; the first tenth of the rows says when to stop."""
        n = min(max(len(X) // 10, 100), 20_000)
        margin = np.zeros(len(X)) if margin is None else margin
        margins = margins or [np.zeros(len(o)) for o in others]
        fits = [getattr(self, f"_{self.name}")(X, y, margin, n, depth) for depth in DEPTHS]
        _, predict = min(fits, key=lambda fit: fit[0])
        return [m + predict(o) for o, m in zip(others, margins, strict=True)]

    def _xgboost(self, X: Array, y: Any, margin: Array, n: int, depth: int) -> Any:
        xgboost = peer("xgboost")
        model = xgboost.XGBClassifier(
            n_estimators=MOST_TREES,
            max_depth=depth,
            learning_rate=0.1,
            early_stopping_rounds=PATIENCE,
            base_score=0.5,
        )
        told = {"eval_set": [(X[:n], y[:n])], "base_margin_eval_set": [margin[:n]]}
        model.fit(X[n:], y[n:], base_margin=margin[n:], verbose=False, **told)
        return model.best_score, lambda Z: model.predict(Z, output_margin=True)

    def _lightgbm(self, X: Array, y: Any, margin: Array, n: int, depth: int) -> Any:
        lightgbm = peer("lightgbm")
        model = lightgbm.LGBMClassifier(
            n_estimators=MOST_TREES, num_leaves=2**depth - 1, learning_rate=0.1, verbose=-1
        )
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        told = {"eval_set": [(X[:n], y[:n])], "eval_init_score": [margin[:n]]}
        model.fit(X[n:], y[n:], init_score=margin[n:], callbacks=[stop], **told)
        score = model.best_score_["valid_0"]["binary_logloss"]
        return score, lambda Z: model.predict(Z, raw_score=True)


def of_trees(name: str, way: str, rows: Large) -> Array:
    """Probabilities of the test rows by trees, in one of the ways to use both levels."""
    boost, X, y, top = Boosted(name), rows.X, rows.y, rows.level == 1
    if way == "pooled":
        order = np.random.RandomState(0).permutation(len(X))
        return expit(boost(X[order], y[order], [rows.X_test], None, [])[0])
    if way == "trusted only":
        return expit(boost(X[top], y[top], [rows.X_test], None, [])[0])
    low, low_test = boost(X[~top], y[~top], [X[top], rows.X_test], None, [])
    if way == "stacked":
        Z, Z_test = (np.column_stack(c) for c in ((X[top], low), (rows.X_test, low_test)))
        return expit(boost(Z, y[top], [Z_test], None, [])[0])
    return expit(boost(X[top], y[top], [rows.X_test], low, [low_test])[0])


def catboost(rows: Large) -> Array:
    """CatBoost, with the better of some weights of cheap rows by held-out trusted ones."""
    if len(rows.X) > CATBOOST_ROWS:
        raise Skip("too many rows")
    top = np.flatnonzero(rows.level == 1)
    out = np.isin(np.arange(len(rows.X)), top[: len(top) // 5])
    best = None
    for weight in WEIGHTS:
        model = peer("catboost").CatBoostClassifier(
            iterations=MOST_TREES, depth=8, verbose=False, early_stopping_rounds=PATIENCE
        )
        w = np.where(rows.level == 1, 1.0, weight)[~out]
        model.fit(rows.X[~out], rows.y[~out], w, eval_set=(rows.X[out], rows.y[out]))
        score = model.best_score_["validation"]["Logloss"]
        if best is None or score < best[0]:
            best = score, model
    assert best is not None
    return np.asarray(best[1].predict_proba(rows.X_test)[:, 1])


def ours(rows: Large, **options: Any) -> Array:
    model = MultiFidelityClassifier(random_state=0, **options)
    model.fit(rows.X, rows.y, fidelity=rows.level)
    return np.asarray(model.predict_proba(rows.X_test)[:, 1])


def methods(context: Context) -> dict[str, Callable[[Large], Array]]:
    """Ours first, without trees second."""
    found: dict[str, Callable[[Large], Array]] = {
        "polyfid": ours,
        "polyfid, mean=None": lambda rows: ours(rows, mean=None),
    }
    for name in ("xgboost", "lightgbm"):
        for way in ("base margin", "stacked", "pooled", "trusted only"):
            found[f"{name}, {way}"] = lambda rows, n=name, w=way: of_trees(n, w, rows)
    return found | {"catboost, weighted": catboost}


def run(context: Context) -> list[Figure]:
    """Every method on every problem."""
    figures: list[Figure] = []
    wanted = os.environ.get("POLYFID_LARGE", "")
    for name, make in named(context):
        if wanted and name not in wanted.split(","):
            continue
        rows, results, lines = make(), {}, []
        for method, predict in methods(context).items():
            context.progress(f"large: {name}, {method}")
            started = time.perf_counter()
            try:
                p = np.clip(predict(rows), 1e-12, 1.0 - 1e-12)
            except Skip as skip:
                context.progress(f"{method}: {skip}")
                continue
            results[method] = (*scores(p, rows), time.perf_counter() - started)
            loss, auc, error, seconds = results[method]
            lines.append([method, f"{loss:.4f}", f"{auc:.4f}", f"{error:.4f}", f"{seconds:.1f}"])
            context.progress("  ".join(lines[-1]))
        title = name if rows.q is None else f"{name}: best {scores(rows.q, rows)[0]:.4f}"
        header = ["method", "log-loss", "ROC AUC", "calibration error", "s"]
        context.tables.append(Table(title, header, lines))
        figures += _figures(name, rows, results)
    return figures


def scores(p: Array, rows: Large) -> tuple[float, float, float]:
    """Log-loss, ROC AUC and calibration error; expected ones where probabilities are known."""
    y = rows.y_test
    q = y if rows.q is None else rows.q
    loss = -float(np.mean(q * np.log(p) + (1.0 - q) * np.log1p(-p)))
    error = float(calibration_error(p, q, np.ones((1, len(p))))[0])
    return loss, float(roc_auc_score(y, p)), error


def _figures(name: str, rows: Large, results: dict[str, tuple[float, ...]]) -> list[Figure]:
    loss, auc, error, seconds = results["polyfid"]
    others = {method: r for method, r in results.items() if method != "polyfid"}
    trees = {method: r for method, r in others.items() if "mean=None" not in method}
    best = min(others, key=lambda method: others[method][0])
    tree = min(trees, key=lambda method: trees[method][0])
    figures = [
        at_most(f"large, {name}: log-loss minus the best", loss - others[best][0], 0.0, note=best),
        at_least(
            f"large, {name}: ROC AUC minus the best", auc - max(r[1] for r in others.values()), 0.0
        ),
        at_most(f"large, {name}: calibration error", error, CALIBRATED),
        at_most(
            f"large, {name}: time, × the best trees", seconds / trees[tree][3], TIME, note=tree
        ),
    ]
    if rows.q is not None:
        own = scores(rows.q, rows)[0]
        share = (trees[tree][0] - loss) / (trees[tree][0] - own)
        figures.append(info(f"large, {name}: of the way from the best trees to the best", share))
    return figures
