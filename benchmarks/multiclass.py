"""Three classes: log-loss of the default against scikit-learn's classifiers, with simulated crowds.

Five workers of different skill answer for the cheap level. Which wrong answer they give depends on
the class, and how often on the features too; about a third of the answers are wrong. A rival is
a classifier in one way of using it (see `RIVALS`), the same on all draws of a set; the goal is the
mean log-loss of the best rival of the set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.figures import Context, Figure, Table, at_most, info
from polyfid import MultiFidelityClassifier, TrustedKFold

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

N_TRUSTED, N_CHEAP, N_TEST = 45, 180, 1000
#: The largest part of a set that is trained on.
TRAINED = 0.6
#: How often each worker is wrong, and which wrong answer is given how often, by class.
ERRORS = (0.15, 0.25, 0.3, 0.4, 0.5)
MISTAKES = ((0.0, 0.8, 0.2), (0.3, 0.0, 0.7), (0.4, 0.6, 0.0))
N_BINS = 10


class Draw(NamedTuple):
    """Training rows, the cheap ones at level 0 and the trusted ones at level 1, and test rows.

    ``answers`` are what workers would say of the test rows.
    """

    X: Array
    y: Labels
    level: Labels
    X_test: Array
    y_test: Labels
    answers: Labels


Maker = Callable[[np.random.RandomState], tuple[Array, Labels]]


def draw(name: str, seed: int) -> Draw:
    """One draw of rows, workers and answers."""
    rng = np.random.RandomState(seed)
    X, y = MAKERS[name](rng)
    order = rng.permutation(len(y))
    n_pool = min(int(TRAINED * len(y)), N_TRUSTED + N_CHEAP)
    pool, test = order[:n_pool], order[n_pool:][:N_TEST]
    # Trusted rows first; where the pool is small, some rows have several answers.
    trusted, cheap = pool[:N_TRUSTED], np.resize(pool[::-1], N_CHEAP)
    asked = np.concatenate([cheap, test])
    answers = _answer(X[asked], y[asked], rng)
    return Draw(
        np.concatenate([X[cheap], X[trusted]]),
        np.concatenate([answers[:N_CHEAP], y[trusted]]),
        np.repeat([0, 1], [N_CHEAP, N_TRUSTED]),
        X[test],
        y[test],
        answers[N_CHEAP:],
    )


def _answer(X: Array, y: Labels, rng: np.random.RandomState) -> Labels:
    """Answers of the workers, who find rows on one side of a random plane harder."""
    n_classes = int(y.max()) + 1
    side = StandardScaler().fit_transform(X) @ rng.standard_normal(X.shape[1])
    hardness = np.where(side > np.median(side), 1.25, 0.75)
    error = np.array(ERRORS)[rng.randint(len(ERRORS), size=len(y))] * hardness
    if n_classes == 3:
        edges = np.cumsum(MISTAKES, axis=1)[y]
        wrong = (rng.uniform(size=(len(y), 1)) > edges).sum(axis=1)
    else:
        wrong = (y + rng.randint(1, n_classes, size=len(y))) % n_classes
    return np.where(rng.uniform(size=len(y)) < error, wrong, y).astype(np.intp)


def _bundled(load: Callable[..., Any], *classes: int) -> Maker:
    def make(rng: np.random.RandomState) -> tuple[Array, Labels]:
        X, y = load(return_X_y=True)
        kept = np.isin(y, classes) if classes else np.full(len(y), True)
        return np.asarray(X[kept], dtype=float), np.unique(y[kept], return_inverse=True)[1]

    return make


def _waveform(n_noise: int) -> Maker:
    """Breiman's waves: each class mixes two of three triangles, in 21 columns with noise."""
    place = np.arange(21)
    triangles = np.array([np.maximum(6 - np.abs(place - peak), 0) for peak in (6, 14, 10)])

    def make(rng: np.random.RandomState) -> tuple[Array, Labels]:
        y = rng.randint(3, size=N_TRUSTED + N_CHEAP + N_TEST)
        share = rng.uniform(size=(len(y), 1))
        X = share * triangles[y] + (1.0 - share) * triangles[(y + 1) % 3]
        X = np.hstack([X, np.zeros((len(y), n_noise))])
        return X + rng.standard_normal(X.shape), y

    return make


SETS: dict[str, Maker] = {
    "iris": _bundled(datasets.load_iris),
    "wine": _bundled(datasets.load_wine),
    "digits 3, 5, 8": _bundled(datasets.load_digits, 3, 5, 8),
    "waveform": _waveform(0),
    "waveform, 19 columns of noise": _waveform(19),
}
TEN = "ten digits"
MAKERS = {**SETS, TEN: _bundled(datasets.load_digits)}
#: Sets of 60 test rows or so get more draws.
SMALL = {"iris": 60, "wine": 60}


@dataclass(frozen=True)
class Logistic:
    """Multinomial logistic regression; C and the weight of a cheap row by `TrustedKFold`."""

    weights: Sequence[float]
    strengths: Sequence[float] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)

    def __call__(self, rows: Draw, seed: int) -> Array:
        settings = [(c, w) for c in self.strengths for w in self.weights]
        folds = TrustedKFold(5, shuffle=True, random_state=seed)
        losses = np.zeros(len(settings))
        for train, test in folds.split(rows.X, rows.y, fidelity=rows.level):
            inside = rows._replace(
                X=rows.X[train], y=rows.y[train], level=rows.level[train], X_test=rows.X[test]
            )
            losses += [_loss(rows.y[test], _logistic(inside, *s)) for s in settings]
        return _logistic(rows, *settings[int(np.argmin(losses))])


def _logistic(rows: Draw, strength: float, weight: float) -> Array:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))
    kept = (rows.level == 1) | (weight > 0.0)
    weights = np.where(rows.level == 1, 1.0, weight)[kept]
    fitted = model.fit(rows.X[kept], rows.y[kept], logisticregression__sample_weight=weights)
    return np.asarray(fitted.predict_proba(rows.X_test))


def _gaussian_process(rows: Draw, least: int) -> Array:
    """scikit-learn's, one against the rest, with a tuned RBF kernel on standardised features."""
    kernel = ConstantKernel(1.0) * RBF(np.sqrt(rows.X.shape[1]))
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))
    kept = rows.level >= least
    return np.asarray(model.fit(rows.X[kept], rows.y[kept]).predict_proba(rows.X_test))


#: What a user of scikit-learn would do: probabilities of the test rows.
RIVALS: dict[str, Callable[[Draw, int], Array]] = {
    "logistic regression, trusted rows": Logistic((0.0,)),
    "logistic regression, all rows": Logistic((1.0,)),
    "logistic regression, weights": Logistic((0.0, 0.1, 0.3, 1.0)),
    "Gaussian process, trusted rows": lambda rows, seed: _gaussian_process(rows, 1),
    "Gaussian process, all rows": lambda rows, seed: _gaussian_process(rows, 0),
}


def _ours(rows: Draw) -> tuple[Array, Array]:
    """Probabilities of the test rows at the trusted level and at that of the workers."""
    model = MultiFidelityClassifier(random_state=0).fit(rows.X, rows.y, fidelity=rows.level)
    return model.predict_proba(rows.X_test), model.predict_proba(rows.X_test, fidelity=0)


def _loss(y: Labels, p: Array) -> float:
    p = np.clip(p, 1e-6, 1.0)  # scikit-learn would clip at 1e-16: 37 for one row that is wrong
    return float(log_loss(y, p / p.sum(axis=1, keepdims=True), labels=range(p.shape[1])))


def calibration_error(y: Labels, p: Array) -> float:
    """Expected calibration error of all classes: shares and mean probabilities in equal bins."""
    hits = (y[:, None] == np.arange(p.shape[1])).ravel()
    where = np.minimum((p.ravel() * N_BINS).astype(int), N_BINS - 1)
    return float(np.abs(np.bincount(where, p.ravel() - hits)).sum() / len(hits))


def run(context: Context) -> list[Figure]:
    figures, body = [], []
    for name in SETS:
        runs = 1 if context.quick else SMALL.get(name, 10)
        losses, errors = np.empty((runs, 1 + len(RIVALS))), np.empty((runs, 2))
        for seed in range(runs):
            context.progress(f"multiclass: {name}, draw {seed + 1} of {runs}")
            rows = draw(name, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = _ours(rows)
                proba = [ours[0], *(rival(rows, seed) for rival in RIVALS.values())]
            losses[seed] = [_loss(rows.y_test, p) for p in proba]
            labels = rows.y_test, rows.answers
            errors[seed] = [calibration_error(y, p) for y, p in zip(labels, ours, strict=True)]
        loss, *others = losses.mean(axis=0)
        best = int(np.argmin(others))
        gaps = losses[:, 0] - losses[:, 1 + best]
        note = (
            f"{loss:.4f} and {others[best]:.4f} of {list(RIVALS)[best]}, "
            f"standard error {gaps.std() / np.sqrt(runs):.4f}"
        )
        body.append([name, *(f"{value:.3f}" for value in (loss, *others))])
        figures += [
            at_most(
                f"multiclass: {name}, log-loss less the best rival's", gaps.mean(), 0.0, note=note
            ),
            *_calibration(name, *errors.mean(axis=0)),
        ]
    context.tables.append(Table("multiclass: log-loss", ["", "polyfid", *RIVALS], body))
    if not context.quick:
        context.progress("multiclass: ten classes")
        rows = draw(TEN, 0)
        top, low = _ours(rows)
        figures.append(info("multiclass: ten digits, log-loss", _loss(rows.y_test, top)))
        errors = calibration_error(rows.y_test, top), calibration_error(rows.answers, low)
        figures += _calibration("ten digits", *errors)
    return figures


def _calibration(name: str, top: float, low: float) -> list[Figure]:
    return [
        info(f"multiclass: {name}, calibration error", top),
        info(f"multiclass: {name}, calibration error at the workers' level", low),
    ]
