"""Cheap levels that speak in numbers, against the same numbers turned into classes.

Pairs of an expensive function and a cheap version of it from the multi-fidelity literature, and
latent functions of `make_cokriging`. The expensive level says whether its function is above a
threshold, the cheap one says a number. What was measured is kept in ``benchmarks/out/numeric``: a
run that was stopped goes on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.figures import Context, Figure, Table, at_least, at_most
from experiments.run import RowFile
from polyfid import MultiFidelityClassifier, Stacked, TrustedOnly, stack_levels
from polyfid.arrays import Array
from polyfid.datasets import make_cokriging

FOLDER = Path(__file__).parent / "out" / "numeric"
N_CHEAP, N_TRUSTED, N_TEST = 100, (20, 30, 40), 2000
#: Draws per problem and number of trusted rows; constants were chosen on seeds from 5000 on.
N_DRAWS, FIRST_SEED = 8, 0
#: The share of the points where the expensive function is above its threshold.
ABOVE = 0.4
OURS = "numbers"


def branin(x: Array) -> Array:
    a, b = 15.0 * x[:, 0] - 5.0, 15.0 * x[:, 1]
    bowl = b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0
    return bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) + 10.0


def branin_cheap(x: Array) -> Array:
    """Perdikaris and others (2017), the middle one of three."""
    a, b = 15.0 * x[:, 0] - 5.0, 15.0 * x[:, 1]
    shifted = np.maximum(branin(x - 2.0 / 15.0), 0.0)
    return 10.0 * np.sqrt(shifted) + 2.0 * (a - 0.5) - 3.0 * (3.0 * b - 1.0) - 1.0


def currin(x: Array) -> Array:
    a, b = x.T
    with np.errstate(divide="ignore", over="ignore"):
        fade = 1.0 - np.exp(-0.5 / np.maximum(b, 1e-12))
    top = 2300.0 * a**3 + 1900.0 * a**2 + 2092.0 * a + 60.0
    return fade * top / (100.0 * a**3 + 500.0 * a**2 + 4.0 * a + 20.0)


def currin_cheap(x: Array) -> Array:
    """Xiong, Qian and Wu (2013): the mean of four neighbours."""
    around = [(0.05, 0.05), (0.05, -0.05), (-0.05, 0.05), (-0.05, -0.05)]
    moved = (np.column_stack([x[:, 0] + a, np.maximum(x[:, 1] + b, 0.0)]) for a, b in around)
    return np.mean([currin(m) for m in moved], axis=0)


_LOW = np.array([0.05, 100.0, 63070.0, 990.0, 63.1, 700.0, 1120.0, 9855.0])
_HIGH = np.array([0.15, 50000.0, 115600.0, 1110.0, 116.0, 820.0, 1680.0, 12045.0])


def _flow(x: Array, scale: float, one: float) -> Array:
    r_w, r, t_u, h_u, t_l, h_l, length, k_w = (_LOW + (_HIGH - _LOW) * x).T
    log = np.log(r / r_w)
    return (
        scale
        * t_u
        * (h_u - h_l)
        / (log * (one + 2.0 * length * t_u / (log * r_w**2 * k_w) + t_u / t_l))
    )


def borehole(x: Array) -> Array:
    return _flow(x, 2.0 * np.pi, 1.0)


def borehole_cheap(x: Array) -> Array:
    """Xiong, Qian and Wu (2013)."""
    return _flow(x, 5.0, 1.5)


_A = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0], [3.0, 10.0, 30.0], [0.1, 10.0, 35.0]])
_P = 1e-4 * np.array(
    [
        [3689.0, 1170.0, 2673.0],
        [4699.0, 4387.0, 7470.0],
        [1091.0, 8732.0, 5547.0],
        [381.0, 5743.0, 8828.0],
    ]
)


def _hartmann(x: Array, alpha: Array) -> Array:
    return np.exp(-((x[:, None] - _P) ** 2 * _A).sum(axis=2)) @ alpha


def hartmann(x: Array) -> Array:
    return _hartmann(x, np.array([1.0, 1.2, 3.0, 3.2]))


def hartmann_cheap(x: Array) -> Array:
    """Kandasamy and others (2016): other weights of the bumps."""
    return _hartmann(x, np.array([1.02, 1.18, 2.8, 3.4]))


Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Sample:
    """Cheap rows with numbers, trusted rows with classes, and rows to score."""

    cheap: tuple[Array, Array]
    trusted: tuple[Array, Array]
    test: tuple[Array, Array]
    threshold: float  # of the cheap numbers, where as many are above it


def _pair(high: Function, low: Function, n_features: int) -> Callable[..., Sample]:
    def draw(n_trusted: int, rng: np.random.RandomState) -> Sample:
        x = rng.uniform(size=(N_CHEAP + n_trusted + N_TEST, n_features))
        cut = np.quantile(high(x), 1.0 - ABOVE)
        cheap, trusted, test = np.split(x, [N_CHEAP, N_CHEAP + n_trusted])
        return Sample(
            (cheap, low(cheap)),
            (trusted, high(trusted) > cut),
            (test, high(test) > cut),
            float(np.quantile(low(x), 1.0 - ABOVE)),
        )

    return draw


def _cokriging(n_features: int, noise: float) -> Callable[..., Sample]:
    def draw(n_trusted: int, rng: np.random.RandomState) -> Sample:
        made = make_cokriging(
            N_CHEAP, n_trusted, n_features, noise=noise, n_test=N_TEST, random_state=rng
        )
        cheap = made.fidelity == 0
        return Sample(
            (made.data[cheap], made.latent[cheap, 0]),
            (made.data[~cheap], made.target[~cheap] == 1),
            (made.test_data, made.test_target == 1),
            0.0,
        )

    return draw


def _noise(n_trusted: int, rng: np.random.RandomState) -> Sample:
    """The Currin function, and a simulator that says nothing."""
    sample = _pair(currin, currin, 2)(n_trusted, rng)
    return Sample((sample.cheap[0], rng.standard_normal(N_CHEAP)), sample.trusted, sample.test, 0.0)


NOISE = "pure noise"
PROBLEMS: dict[str, Callable[..., Sample]] = {
    "Branin": _pair(branin, branin_cheap, 2),
    "Currin": _pair(currin, currin_cheap, 2),
    "Hartmann-3": _pair(hartmann, hartmann_cheap, 3),
    "Borehole": _pair(borehole, borehole_cheap, 8),
    "cokriging 2-D": _cokriging(2, 0.15),
    "cokriging 5-D": _cokriging(5, 0.15),
    NOISE: _noise,
}


def _fit(X: Any, y: Any, fidelity: Any, **options: Any) -> MultiFidelityClassifier:
    return MultiFidelityClassifier(random_state=0, **options).fit(X, y, fidelity=fidelity)


def losses(problem: str, n_trusted: int, seed: int, **options: Any) -> dict[str, Any]:
    """Log-losses of the methods on one draw, and times of both fits."""
    offset = list(PROBLEMS).index(problem)
    rng = np.random.RandomState(1000 * seed + 100 * offset + n_trusted)
    sample = PROBLEMS[problem](n_trusted, rng)
    X, y, fidelity = stack_levels({"simulation": sample.cheap, "experiment": sample.trusted})
    classes = (sample.cheap[0], sample.cheap[1] > sample.threshold)
    X_c, y_c, fidelity_c = stack_levels({"simulation": classes, "experiment": sample.trusted})
    x_test, y_test = sample.test
    lengths = np.ones(X.shape[1])
    kernel = ConstantKernel() * RBF(lengths, (0.05, 1e3)) + WhiteKernel(0.01, (1e-6, 10.0))
    regressor = make_pipeline(
        StandardScaler(),
        GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0),
    )
    alone = MultiFidelityClassifier(random_state=0)
    row: dict[str, Any] = {
        "experiment": "numeric",
        "problem": problem,
        "n": n_trusted,
        "seed": seed,
    }
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        numbers = _fit(X, y, fidelity, numeric_levels=["simulation"], **options)
        middle = time.process_time()
        thresholded = _fit(X_c, y_c, fidelity_c)
        row |= {"seconds": middle - start, "seconds_classes": time.process_time() - middle}
        stacked = Stacked(alone, numeric_levels=["simulation"], regressor=regressor)
        trusted = TrustedOnly(alone, numeric_levels=["simulation"])
        models = {
            OURS: numbers,
            "thresholded": thresholded,
            "trusted only": trusted.fit(X, y, fidelity=fidelity),
            "stacked": stacked.fit(X, y, fidelity=fidelity),
        }
        for name, model in models.items():
            proba = model.predict_proba(x_test)[:, 1]
            row[name] = float(log_loss(y_test, np.clip(proba, 1e-9, 1 - 1e-9)))
    return row


RIVALS = ("thresholded", "trusted only", "stacked")


def run(context: Context) -> list[Figure]:
    draws = 2 if context.quick else N_DRAWS
    done = RowFile(FOLDER)
    wanted = [(p, n, FIRST_SEED + s) for p in PROBLEMS for n in N_TRUSTED for s in range(draws)]
    kept = {(row["problem"], row["n"], row["seed"]): row for row in done.rows.values()}
    left = [job for job in wanted if job not in kept]
    found = Parallel(n_jobs=2, return_as="generator_unordered")(delayed(losses)(*j) for j in left)
    for k, row in enumerate(found, 1):
        done.append(row)
        kept[row["problem"], row["n"], row["seed"]] = row
        if k % 20 == 0:
            context.progress(f"numeric: {k} of {len(left)}")
    return summary([kept[job] for job in wanted], context)


def summary(rows: list[dict[str, Any]], context: Context) -> list[Figure]:
    """Means by problem, and the figures with goals."""
    lines, figures = [], []
    for problem in PROBLEMS:
        own = [row for row in rows if row["problem"] == problem]
        if not own:
            continue
        mean = {m: np.array([row[m] for row in own]) for m in (OURS, *RIVALS)}
        errors = {
            m: float(np.std(mean[m] - mean[OURS], ddof=1) / np.sqrt(len(own))) for m in RIVALS
        }
        lines.append(
            [
                problem,
                f"{mean[OURS].mean():.3f}",
                *(f"{mean[m].mean():.3f} (+- {errors[m]:.3f})" for m in RIVALS),
            ]
        )
        if problem == NOISE:
            gap = float((mean[OURS] - mean["trusted only"]).mean())
            figures.append(at_most(f"{problem}: log-loss above trusted only", gap, 0.005))
            continue
        for m in RIVALS:
            factor = float(mean[m].mean() / mean[OURS].mean())
            figures.append(at_least(f"{problem}: log-loss of {m} over ours", factor, 1.0))
    context.tables.append(Table("log-loss", ["problem", OURS, *RIVALS], lines))
    times = [[row[name] for row in rows] for name in ("seconds", "seconds_classes")]
    ratio = float(np.sum(times[0]) / np.sum(times[1]))
    figures.append(at_most("time of a fit over that with classes", ratio, 1.3))
    return figures
