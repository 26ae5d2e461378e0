"""Whether the posterior of the latent functions is as wide as it should be.

Problems are drawn from the model itself: Gaussian processes tied by co-kriging, labels through a
sigmoid. Intervals are mean plus or minus a multiple of the standard deviation.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from sklearn.exceptions import ConvergenceWarning

from benchmarks.figures import Context, Figure, Table, at_most, info
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.evaluation.result import score

Array = NDArray[np.float64]

NOMINAL = (0.50, 0.80, 0.95, 0.99)
N_FEATURES, NOISES = (1, 2, 3, 5), (0.1, 0.2, 0.3)
N_TEST = 200
#: Constants of the spread were chosen on other seeds.
FIRST_SEED = 7000
#: How far coverage may be off, calibration error, and the time of a prediction.
GOAL, CALIBRATED, SLOWER = 0.02, 0.015, 1.5
SAME = "the spread leaves probabilities as they are"


class Measured(NamedTuple):
    """Of one problem: coverage (2 levels, 4 intervals), probabilities, labels, log-loss."""

    coverage: Array
    probability: Array
    y: NDArray[Any]
    log_loss: float


def run(context: Context) -> list[Figure]:
    """Coverage of intervals, calibration and log-loss, with the spread and without."""
    n = 6 if context.quick else 60
    widened, plain, seconds = [], [], []
    for i in range(n):
        context.progress(f"coverage: problem {i + 1} of {n}")
        made = make_cokriging(
            n_features=N_FEATURES[i % 4],
            noise=NOISES[i // 4 % 3],
            labels="sigmoid",
            n_test=N_TEST,
            random_state=FIRST_SEED + i,
        )
        model = MultiFidelityClassifier(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(made.data, made.target, fidelity=made.fidelity)
        widened.append(measure(model, made))
        times = [predict_seconds(model, made.test_data)]
        without_spread(model)
        plain.append(measure(model, made))
        seconds.append([*times, predict_seconds(model, made.test_data)])
    rows, figures = [], []
    for name, measured in {"widened": widened, "plain": plain}.items():
        coverage = np.array([m.coverage for m in measured])
        for level, label in ((1, "trusted"), (0, "cheap")):
            mean = coverage[:, level].mean(axis=0)
            error = coverage[:, level].std(axis=0) / np.sqrt(n)
            cells = [f"{c:.3f} ± {e:.3f}" for c, e in zip(mean, error, strict=True)]
            rows.append([name, label, *cells])
            if name == "widened" and level == 1:
                figures += [
                    at_most(f"coverage: trusted level, off at {q:.0%}", abs(c - q), GOAL)
                    for q, c in zip(NOMINAL, mean, strict=True)
                ]
    header = ["posterior", "level", *(f"{q:.0%}" for q in NOMINAL)]
    context.tables.append(Table(f"Coverage of intervals over {n} problems", header, rows))
    ratio = float(np.median([a / b for a, b in seconds]))
    return [
        *figures,
        at_most("coverage: calibration error, trusted level", calibration(widened), CALIBRATED),
        info("coverage: log-loss", float(np.mean([m.log_loss for m in widened])), note=SAME),
        at_most("coverage: time of a prediction, × that without", ratio, SLOWER),
    ]


def measure(model: MultiFidelityClassifier, made: Any) -> Measured:
    """Coverage at both levels, and probabilities at the trusted one."""
    coverage = np.empty((2, len(NOMINAL)))
    for level in (0, 1):
        mean, variance = model.latent_mean_and_variance(made.test_data, fidelity=level)
        error = np.abs(made.test_latent[:, level] - mean) / np.sqrt(variance)
        coverage[level] = [(error <= ndtri(0.5 + q / 2)).mean() for q in NOMINAL]
    p = model.predict_log_proba(made.test_data)
    q = expit(made.test_latent[:, 1])  # log-loss expected over labels has less noise
    loss = -float(np.mean(q * p[:, 1] + (1.0 - q) * p[:, 0]))
    return Measured(coverage, np.exp(p[:, 1]), made.test_target, loss)


def without_spread(model: MultiFidelityClassifier) -> None:
    """Take the hyper-parameters as known."""
    fitted = model._model
    model._model = replace(
        fitted, mixtures=tuple(replace(mixture, spread=None) for mixture in fitted.mixtures)
    )


def calibration(measured: list[Measured]) -> float:
    p = np.concatenate([m.probability for m in measured])
    y = np.concatenate([m.y for m in measured])
    return float(score(np.stack([1.0 - p, p], axis=1), y, np.ones((1, len(p))))[0][3])


def predict_seconds(model: MultiFidelityClassifier, x: Array) -> float:
    model.predict_proba(x)
    start = time.process_time()
    for _ in range(5):
        model.predict_all(x)
    return time.process_time() - start
