"""Attacks on what is learnt: levels that say nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from benchmarks.attacks.trial import Trial
from benchmarks.figures import Context
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging

#: What a useless level may cost, in log-loss, on average.
COST = 0.005
N_FEATURES, N_TRUSTED = (1, 2, 3, 5), (40, 75, 150)


def trials(context: Context) -> Iterator[Trial]:
    """Cheap labels that are tossed: what they cost against trusted rows alone."""
    n = 4 if context.quick else 100
    costs = [useless_level(i) for i in range(n)]
    mean, error = np.mean(costs), np.std(costs) / np.sqrt(n)
    trial = Trial(
        f"{n} problems whose cheap labels are tossed: log-loss {mean:+.4f} ± {error:.4f}",
        f"costs at most {COST} of log-loss on average",
    )
    trial.count(None if mean <= COST else f"costs {mean:.4f}")
    yield trial


def useless_level(i: int) -> float:
    """Expected log-loss with 225 tossed labels minus that without them."""
    made = make_cokriging(
        225,
        N_TRUSTED[i // 4 % 3],
        N_FEATURES[i % 4],
        labels="sigmoid",
        n_test=1000,
        random_state=9000 + i,
    )
    top = made.fidelity == 1
    y = np.where(top, made.target, np.random.RandomState(i).randint(2, size=len(top)))
    if len(np.unique(y[top])) < 2:
        return 0.0
    q, losses = expit(made.test_latent[:, 1]), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for rows in (np.ones(len(top), dtype=bool), top):
            model = MultiFidelityClassifier(random_state=0)
            model.fit(made.data[rows], y[rows], fidelity=made.fidelity[rows])
            p = model.predict_log_proba(made.test_data)
            losses.append(-np.mean(q * p[:, 1] + (1.0 - q) * p[:, 0]))
    return float(losses[0] - losses[1])
