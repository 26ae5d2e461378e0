"""Many fits and predictions in one process: memory must not grow, nor one fit change the next."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.attacks.trial import Trial, attack
from benchmarks.figures import Context
from polyfid import MultiFidelityClassifier, Stacked, load
from polyfid.kernels import RBF

Proba = NDArray[np.float64]
#: What may be allocated after the warm-up, in bytes.
ROOM = 50 * 2**20

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
LEVEL = np.repeat([0, 1], [28, 12])
TWO = (X[:, 0] + X[:, 1] ** 2 > 0.5) ^ ((RNG.uniform(size=40) < 0.15) & (LEVEL == 0))
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
#: Climbs are short: what is looked for is what fits leave behind, not how good they are.
SHORT = {"max_iter": 5, "tol": 0.1, "random_state": 0}


def fitted(y: NDArray[np.generic], **parameters: object) -> MultiFidelityClassifier:
    return MultiFidelityClassifier(**{**SHORT, **parameters}).fit(X, y, LEVEL)


def saved_and_loaded() -> Proba:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.polyfid")
        fitted(TWO, kernel=1.0 * RBF()).save(path)
        return load(path).predict_proba(X)


def in_blocks() -> Proba:
    blocks = [(X[part], TWO[part], LEVEL[part]) for part in (slice(0, 20), slice(20, 40))]
    model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=6, levels=[0, 1], **SHORT)
    return model.fit_blocks(blocks).predict_proba(X)


def fitted_again() -> Proba:
    """With a fit that is refused in between."""
    model = fitted(TWO, kernel=1.0 * RBF())
    try:
        model.fit(X[:, :1], np.ones(40), LEVEL)
    except ValueError:
        return model.fit(X, TWO, LEVEL).predict_proba(X)
    raise AssertionError("a fit to one class was not refused")


KINDS: dict[str, Callable[[], Proba]] = {
    "a kernel given": lambda: fitted(TWO, kernel=1.0 * RBF()).predict_proba(X),
    "structure learnt": lambda: fitted(TWO).predict_proba(X, fidelity=0),
    "inducing points": lambda: fitted(TWO, kernel=1.0 * RBF(), n_inducing=6).predict_proba(X),
    "three classes": lambda: fitted(THREE, kernel=1.0 * RBF()).predict_proba(X),
    "saved and loaded": saved_and_loaded,
    "blocks": in_blocks,
    "fitted again": fitted_again,
    "a baseline": lambda: Stacked().fit(X, TWO, LEVEL).predict_proba(X),
}


def resident() -> int:
    """Bytes of memory that this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def trials(context: Context) -> Iterator[Trial]:
    """Fits of all kinds in turn."""
    rounds, warm_up = (60, 40) if context.quick else (2000, 100)
    names = list(KINDS)
    first: dict[str, Proba] = {}
    sizes: list[int] = []

    def problem_of(number: int) -> str | None:
        name = names[number % len(names)]
        proba = KINDS[name]()
        sizes.append(resident())
        if not np.array_equal(first.setdefault(name, proba), proba):
            return f"{name}: other probabilities than of the first fit"
        grown = sizes[-1] - max(sizes[:warm_up])
        return f"{grown / 2**20:.0f} MB more than after the warm-up" if grown > ROOM else None

    yield attack(
        f"{rounds} fits and predictions in one process",
        f"the same probabilities each time; at most 50 MB more memory than after {warm_up} of them",
        range(rounds),
        problem_of,
    )
    grown = (max(sizes[warm_up:]) - max(sizes[:warm_up])) / 2**20
    context.progress(f"soak: {sizes[-1] / 2**20:.0f} MB at the end, grown by {grown:.1f} MB")
