"""The default, which learns its structure, on data sets that come with scikit-learn.

Labels of the cheap level are flipped at random, as in the paper's second group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from benchmarks.figures import Context, Figure, Table, at_most, info, no_worse
from benchmarks.timing import Score, cpu, score
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Constant

Array = NDArray[np.float64]

N_TRUSTED, N_CHEAP = 75, 225
NOISES = (0.2, 0.4)


class Rows(NamedTuple):
    """Features and labels 0 and 1."""

    X: Array
    y: NDArray[np.intp]


def run(context: Context) -> list[Figure]:
    runs = 1 if context.quick else 5
    scores: dict[str, list[Score]] = {name: [] for name in _methods()}
    seconds: dict[str, list[float]] = {name: [] for name in _methods()}
    body = []
    for name, make in SETS.items():
        for noise in NOISES:
            here: dict[str, list[Score]] = {method: [] for method in scores}
            for seed in range(runs):
                context.progress(f"structures: {name}, noise {noise}, draw {seed + 1} of {runs}")
                for method, estimator in _methods().items():
                    taken, reached = _one(make(), noise, seed, estimator)
                    here[method].append(reached)
                    seconds[method].append(taken)
            means = {m: Score(*np.mean(s, axis=0)) for m, s in here.items()}
            body.append(
                [f"{name}, {noise}", *(f"{m.roc_auc:.4f} {m.log_loss:.4f}" for m in means.values())]
            )
            for method, mean in means.items():
                scores[method].append(mean)
    context.tables.append(Table("structures: ROC AUC and log-loss", ["", *scores], body))
    mean = {m: Score(*np.mean(s, axis=0)) for m, s in scores.items()}
    ours = mean["default"]
    n_best = sum(
        scores["default"][i].log_loss <= min(s[i].log_loss for s in scores.values()) + 1e-12
        for i in range(len(body))
    )
    ratio = np.sum(seconds["default"]) / np.sum(seconds["plain"])
    slowest = np.max(np.divide(seconds["default"], seconds["plain"]))
    figures = [
        at_most("structures: default, time of a plain fit", ratio, 10.0, "x"),
        info("structures: default, time of a plain fit, worst draw", float(slowest), "x"),
        info("structures: default has the best log-loss", n_best, f"of {len(body)} columns"),
    ]
    for method, other in mean.items():
        if method != "default":
            figures += no_worse("structures: default", ours, other, f"that of {method}")
    return figures


def _methods() -> dict[str, MultiFidelityClassifier]:
    scale = Constant(np.exp(1.5))
    return {
        "default": MultiFidelityClassifier(random_state=0),
        "plain": MultiFidelityClassifier(RBF(), random_state=0),
        "isotropic, EP": MultiFidelityClassifier(scale * RBF(), inference="ep", random_state=0),
        "soft ARD, EP": MultiFidelityClassifier(
            scale * RBF(ard=True), inference="ep", random_state=0
        ),
        "paper": MultiFidelityClassifier.paper(n_restarts=10, random_state=0),
    }


def _one(
    rows: Rows, noise: float, seed: int, model: MultiFidelityClassifier
) -> tuple[float, Score]:
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(rows.y))
    n_test = max(len(order) - N_TRUSTED - N_CHEAP, len(order) // 3)
    test, rest = order[:n_test], order[n_test:]
    trusted, cheap = rest[: min(N_TRUSTED, len(rest) // 4)], rest[-min(N_CHEAP, len(rest)) :]
    flipped = rows.y[cheap] ^ (rng.uniform(size=len(cheap)) < noise)
    X = np.concatenate([rows.X[cheap], rows.X[trusted]])
    y = np.concatenate([flipped, rows.y[trusted]])
    level = np.repeat([0, 1], [len(cheap), len(trusted)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, model = cpu(lambda: model.fit(X, y, fidelity=level))
    return seconds, score(rows.y[test], model.predict_proba(rows.X[test])[:, 1])


def _bundled(load: Callable[..., tuple[Array, Array]], threshold: float) -> Callable[[], Rows]:
    def make() -> Rows:
        X, y = load(return_X_y=True)
        return Rows(np.asarray(X, dtype=float), (np.asarray(y) > threshold).astype(np.intp))

    return make


def _moons() -> Rows:
    """Two moons among eight columns of noise."""
    X, y = datasets.make_moons(1500, noise=0.25, random_state=0)
    noise = np.random.RandomState(0).standard_normal((len(X), 8))
    return Rows(np.hstack([X, noise]), y)


def _friedman() -> Rows:
    """Five of ten columns matter, in ways of their own."""
    X, y = datasets.make_friedman1(1500, noise=1.0, random_state=0)
    return Rows(X, (y > np.median(y)).astype(np.intp))


def _skewed() -> Rows:
    """A linear rule in columns that are then put through an exponential."""
    rng = np.random.RandomState(0)
    Z = rng.standard_normal((1500, 6))
    y = Z @ [1.0, -1.0, 0.5, 0.5, 0.0, 0.0] + 0.3 * rng.standard_normal(len(Z)) > 0
    return Rows(np.exp(2.0 * Z), y.astype(np.intp))


SETS: dict[str, Callable[[], Rows]] = {
    "breast cancer": _bundled(datasets.load_breast_cancer, 0.5),
    "wine, first class": _bundled(datasets.load_wine, 0.5),
    "digits, five and above": _bundled(datasets.load_digits, 4.5),
    "diabetes progression": _bundled(datasets.load_diabetes, 140.0),
    "moons among noise": _moons,
    "Friedman's first": _friedman,
    "skewed columns": _skewed,
}
