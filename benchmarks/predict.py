"""Rows per second of `predict_proba` against scikit-learn's GaussianProcessClassifier."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from benchmarks.figures import Context, Figure, at_least, info
from benchmarks.fitting import scaled_rbf
from benchmarks.synthetic import make_problem
from benchmarks.timing import take_turns
from polyfid import MultiFidelityClassifier

N_TRAIN = 300


def run(context: Context) -> list[Figure]:
    context.progress("predict")
    n_new = 2_000 if context.quick else 20_000
    new = make_problem(n_new, seed=1).x
    train, mixed = make_problem(N_TRAIN), make_problem(N_TRAIN, n_levels=2)
    one = MultiFidelityClassifier(scaled_rbf(), standardize=False, prior=None)
    one.fit(train.x, train.y)
    two = MultiFidelityClassifier(scaled_rbf()).fit(mixed.x, mixed.y, fidelity=mixed.level)
    peer = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(train.x, train.y)
    calls = {
        "sklearn": partial(peer.predict_proba, new),
        "one level": partial(one.predict_proba, new),
        "two levels": partial(two.predict_proba, new),
    }
    seconds, answers = take_turns(calls, repetitions=3 if context.quick else 9)
    typical = {name: float(np.median(taken)) for name, taken in seconds.items()}
    apart = float(np.abs(answers["one level"] - answers["sklearn"]).max())
    return [
        at_least(
            "predict: one level against sklearn",
            typical["sklearn"] / typical["one level"],
            1.5,
            "x faster",
            f"{N_TRAIN} training rows; probabilities at most {apart:.1g} apart",
        ),
        *(
            info(f"predict: {name}", n_new / taken, "rows a second")
            for name, taken in typical.items()
        ),
    ]
