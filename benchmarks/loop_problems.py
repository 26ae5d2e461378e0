"""Problems of buying labels: a pool, what labels of each row would say, and rows to test on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.figures import Skip
from experiments import data as files
from experiments import problems
from polyfid.datasets import make_cokriging

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: Rows of a pool and for testing, at most.
N_POOL, N_TEST = 1000, 2000
LEVELS = ("cheap", "trusted")
NOISE = "cheap labels are noise"


@dataclass(frozen=True, eq=False)
class Game:
    """A pool with the labels that would be given, prices, and the money of each batch.

    ``answers`` (2, n_pool) are the labels of the cheap and of the trusted level; ``start`` says how
    many of each are known before the first batch.
    """

    X: Array
    answers: Labels
    X_test: Array
    y_test: Labels
    costs: tuple[float, float]
    batch: float
    start: tuple[int, int]


def _toy(link: Callable[[Array], Array]) -> Callable[[int, Path | None], Game]:
    """Labels by the sign of 20 (1 - 0.75 x_1) (x_2 - b(x_1)), which is steep on the left.

    The cheap level has another boundary than b.
    """

    def make(seed: int, data: Path | None) -> Game:
        rng = np.random.RandomState(seed)
        X = rng.uniform(size=(N_POOL + N_TEST, 2))

        def latent(b: Array) -> Array:
            return 20.0 * (1.0 - 0.75 * X[:, 0]) * (X[:, 1] - b)

        b = 0.4 + 0.25 * np.sin(2.0 * np.pi * X[:, 0])
        y = [
            (rng.uniform(size=len(X)) < expit(latent(own))).astype(np.intp)
            for own in (link(X[:, 0]) + b, b)
        ]
        return _game(X, y, (0.1, 1.0), 10.0, (50, 10))

    return make


def _level_set(
    context: Callable[[Array], Array], gain: float, bias: Callable[[Array], Array]
) -> Callable[[int, Path | None], Game]:
    """A psychometric function: what is detected depends on the stimulus's strength and frequency.

    The cheap level is another observer, whose threshold is shifted and who guesses in a tenth of
    the trials.
    """

    def make(seed: int, data: Path | None) -> Game:
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1.0, 1.0, size=(N_POOL + N_TEST, 2))
        f = gain * (X[:, 1] - context(X[:, 0]))
        cheap = 0.1 * 0.5 + 0.9 * expit(f + bias(X[:, 0]))
        y = [(rng.uniform(size=len(X)) < p).astype(np.intp) for p in (cheap, expit(f))]
        return _game(X, y, (1.0, 5.0), 40.0, (40, 12))

    return make


def _made(n_features: int, noise: float, price: float) -> Callable[[int, Path | None], Game]:
    def make(seed: int, data: Path | None) -> Game:
        n = N_POOL + N_TEST
        rows = make_cokriging(1, 1, n_features, noise=noise, n_test=n, random_state=seed)
        cheap, trusted = (rows.test_latent > 0.0).astype(np.intp).T
        return _game(rows.test_data, [cheap, trusted], (1.0, price), 8.0 * price, (40, 12))

    return make


def _noise_only(seed: int, data: Path | None) -> Game:
    """Cheap labels that are coin flips."""
    game = _made(2, 0.2, 5.0)(seed, data)
    answers = game.answers.copy()
    answers[0] = np.random.RandomState(seed).randint(2, size=len(game.X))
    return Game(game.X, answers, game.X_test, game.y_test, game.costs, game.batch, game.start)


def _stored(name: str, noise: float, price: float) -> Callable[[int, Path | None], Game]:
    """A set of the paper's experiments, with cheap labels as they have them."""

    def make(seed: int, data: Path | None) -> Game:
        if data is None:
            raise Skip("needs the paper's sets: --data DIR or POLYFID_DATA")
        try:
            rows = problems.load(name, noise, str(data))
        except (files.DatasetNotFound, FileNotFoundError) as error:
            raise Skip(f"needs {name}: {error}") from error
        order = np.random.RandomState(seed).permutation(len(rows.X))
        y = [labels[order] for labels in (rows.cheap, rows.true)]
        return _game(rows.X[order], y, (1.0, price), 8.0 * price, (40, 12))

    return make


def _game(
    X: Array,
    y: list[Labels],
    costs: tuple[float, float],
    batch: float,
    start: tuple[int, int],
) -> Game:
    n = min(N_POOL, len(X) // 2)
    test = slice(n, n + N_TEST)
    answers = np.stack([labels[:n] for labels in y])
    return Game(X[:n], answers, X[test], y[1][test], costs, batch, start)


def _shifted(x: Array) -> Array:
    return 0.15 * x


def _wavy(x: Array) -> Array:
    return np.asarray(0.2 * np.sin(3.0 * np.pi * x))


def _valley(x: Array) -> Array:
    return np.asarray(0.5 * x**2 - 0.3)


def _step(x: Array) -> Array:
    return np.asarray(0.6 * np.tanh(4.0 * x))


PROBLEMS: dict[str, Callable[[int, Path | None], Game]] = {
    "toy, linear link": _toy(_shifted),
    "toy, non-linear link": _toy(_wavy),
    "level set, valley": _level_set(_valley, 6.0, lambda x: np.full_like(x, 1.0)),
    "level set, steep valley": _level_set(_valley, 15.0, lambda x: 2.0 * x),
    "level set, step": _level_set(_step, 6.0, lambda x: np.full_like(x, -1.0)),
    "level set, wave": _level_set(lambda x: 0.5 * np.sin(4.0 * x), 8.0, lambda x: 1.5 * x),
    "cokriging 2-D": _made(2, 0.2, 5.0),
    "cokriging 5-D, 1:20": _made(5, 0.2, 20.0),
    NOISE: _noise_only,
    "df_0": _stored("df_0", 0.2, 5.0),
    "df_0, 1:20": _stored("df_0", 0.2, 20.0),
    "df_10": _stored("df_10", 0.2, 5.0),
    "df_11, 1:20": _stored("df_11", 0.2, 20.0),
    "diabetes": _stored("diabetes", 0.2, 5.0),
    "diabetes, 1:20": _stored("diabetes", 0.2, 20.0),
    "german": _stored("german", 0.2, 5.0),
    "satimage": _stored("satimage", 0.2, 5.0),
    "satimage, 1:20": _stored("satimage", 0.2, 20.0),
    "waveform-40": _stored("waveform-40", 0.2, 5.0),
    "spambase": _stored("spambase", 0.2, 5.0),
}
