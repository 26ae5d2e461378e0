"""Problems of two levels with many rows: simulated ones, and tables with labels made cheaper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import make_hastie_10_2

from benchmarks import real_tables
from benchmarks.figures import Context
from polyfid.datasets import make_cokriging, make_rough

Array = NDArray[np.float64]

SEED = 100  # constants were chosen on other draws
N_TEST = 20_000
#: Rows of the two levels.
SIZES = ((100_000, 3_000), (300_000, 5_000), (1_000_000, 10_000))
MIDDLE = ((2_700, 300), (9_500, 500), (29_000, 1_000))
QUICK = ((4_500, 500),)
#: Trusted rows of a whole table, at most, and their share.
MOST_TRUSTED, TRUSTED = 5_000, 0.05
HASTIE_ROWS = 40_000
#: Of the rows, one in so many is held out, up to a number.
HELD_OUT, MOST_HELD_OUT = 5, 20_000


class Large(NamedTuple):
    """Training rows of levels 0 and 1, test rows of level 1; ``q`` is P(y = 1), if it is known."""

    X: Array
    y: NDArray[Any]
    level: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    q: Array | None = None

    def save(self, path: Path) -> None:
        np.savez(path, **{name: v for name, v in self._asdict().items() if v is not None})

    @classmethod
    def load(cls, path: Path) -> Large:
        with np.load(path) as arrays:
            return cls(**arrays)


class Answer(NamedTuple):
    """Probabilities of the test rows, seconds that they took, and what else is to be kept."""

    p: Array
    wall: float
    cpu: float
    facts: dict[str, Any]


class Problem(NamedTuple):
    """A name and what makes the rows."""

    name: str
    make: Callable[[], Large]


def large(context: Context) -> Iterator[Problem]:
    """Simulated problems of several sizes and whole tables."""
    if context.quick:
        yield from _of_sizes(QUICK, (*SIMULATED, *TABLES))
        return
    yield from _of_sizes(SIZES, SIMULATED)
    for name in TABLES:
        yield Problem(name, lambda name=name: table(name))
    yield Problem("sentiment", lambda: sentiment(context.data))


def middle(context: Context) -> Iterator[Problem]:
    """The same problems, with 3000 to 30 000 rows."""
    return _of_sizes(QUICK if context.quick else MIDDLE, (*SIMULATED, *TABLES))


def _of_sizes(sizes: Any, names: tuple[str, ...]) -> Iterator[Problem]:
    for size in sizes:
        for name in names:
            yield Problem(" ".join(map(str, (name, *size))), lambda n=name, s=size: made(n, *s))


def made(name: str, n_low: int, n_high: int, n_test: int = N_TEST) -> Large:
    """A problem with so many rows."""
    if name in SIMULATED:
        return SIMULATED[name](n_low, n_high, n_test)
    return table(name, n_low, n_high, n_test)


def rough(n_low: int, n_high: int, n_test: int) -> Large:
    """A function so rough that a few hundred points cannot hold it."""
    made = make_rough(n_low, n_high, n_test=n_test, random_state=SEED)
    train, test = (made.data, made.target, made.fidelity), (made.test_data, made.test_target)
    return Large(*train, *test, made.test_probability)


def cokriging(n_low: int, n_high: int, n_test: int) -> Large:
    """A draw from the model itself."""
    made = make_cokriging(n_low, n_high, 5, labels="sigmoid", n_test=n_test, random_state=SEED)
    train, test = (made.data, made.target, made.fidelity), (made.test_data, made.test_target)
    return Large(*train, *test, expit(made.test_latent[:, 1]))


def hastie() -> tuple[Array, NDArray[Any]]:
    """Whether ten Gaussian features are far from zero: simulated, but no draw from a process."""
    X, y = make_hastie_10_2(HASTIE_ROWS, random_state=SEED)
    return X, y > 0


#: Of simulated problems the labels' own probabilities are known.
SIMULATED = {"rough": rough, "cokriging": cokriging}
TABLES = {"hastie": hastie, **real_tables.TABLES}


def table(
    name: str, n_low: int | None = None, n_high: int | None = None, n_test: int = N_TEST
) -> Large:
    """Some rows of a table, or all: a few trusted ones, up to a quarter for testing.

    Labels of the rest are cheap: they are flipped with a probability, up to 0.6, whose log-odds are
    a line and a wave of the ranks of the first two features.
    """
    X, y = TABLES[name]()
    rng = np.random.RandomState(SEED)
    order = rng.permutation(len(X))
    X, y = X[order], y[order].astype(int)
    first, second = (np.argsort(np.argsort(column)) / len(X) for column in X[:, :2].T)
    odds = -1.2 + 1.2 * np.sqrt(12.0) * (first - 0.5) + np.sin(3.0 * np.sqrt(12.0) * second)
    cheap = y ^ (rng.uniform(size=len(y)) < 0.6 * expit(odds))
    n_test = min(len(X) // 4, n_test)
    n_high = min(int(TRUSTED * len(X)), MOST_TRUSTED) if n_high is None else n_high
    n_low = len(X) - n_test - n_high if n_low is None else n_low
    n, level = n_low + n_high, np.repeat([0, 1], [n_low, n_high])
    if n + n_test > len(X):
        raise ValueError(f"{name} has {len(X)} rows, too few for {n} and {n_test} for testing")
    train = X[:n], np.where(level == 1, y[:n], cheap[:n]), level
    return Large(*train, X[len(X) - n_test :], y[len(X) - n_test :])


def sentiment(data: Path | None, n_high: int = 1_000) -> Large:
    """Every answer of a crowd is a cheap row; true labels of other sentences, trusted and tests."""
    (X, y), (X_other, y_other) = real_tables.sentiment(data)
    order = np.random.RandomState(SEED).permutation(len(X_other))
    top, test = order[:n_high], order[n_high:]
    level = np.repeat([0, 1], [len(X), n_high])
    return Large(
        np.concatenate([X, X_other[top]]),
        np.concatenate([y, y_other[top]]),
        level,
        X_other[test],
        y_other[test],
    )


def hold_out(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """A fifth of some rows, at most 20 000."""
    return np.random.RandomState(0).permutation(rows)[: min(len(rows) // HELD_OUT, MOST_HELD_OUT)]
