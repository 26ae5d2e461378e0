"""What large fits lose by keeping the leading structure only, where small ones average several.

Structures are learnt once from a sample, as the fit does it. Then each of the leading ones is
fitted with inducing points to all rows, and probabilities are averaged with the weights of the
sample.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.figures import Context, Figure, Skip, Table, at_most
from experiments import problems
from polyfid import MultiFidelityClassifier
from polyfid.learning import fit
from polyfid.learning.mixture import Mixture

SETS = ("spambase", "waveform-40", "satimage", "splice")
NOISE, SEED = 0.2, 1001
N_TRUSTED, N_TRAINING, N_INDUCING, N_AVERAGED = 500, 4500, 300, 3
#: The most log-loss that keeping one structure may cost on average.
GOAL = 0.001


def run(context: Context) -> list[Figure]:
    if context.data is None:
        raise Skip("needs the sets of the paper: --data DIR or POLYFID_DATA")
    body, losses = [], []
    for name in SETS[: 1 if context.quick else None]:
        context.progress(f"one structure: {name}")
        one, several, n = _losses(str(context.data), name)
        losses.append(one - several)
        body.append([name, f"{one:.4f}", f"{several:.4f}", str(n)])
    header = ["", "log-loss of one", "of several", "structures"]
    context.tables.append(Table("one structure: more than 2000 rows", header, body))
    note = f"{len(losses)} sets; most {max(losses):.4f}"
    return [at_most("one structure: log-loss lost", float(np.mean(losses)), GOAL, note=note)]


def _losses(home: str, name: str) -> tuple[float, float, int]:
    """Log-loss with the leading structure and with the average, and how many were averaged."""
    rows = problems.load(name, NOISE, home)
    order = np.random.RandomState(SEED).permutation(len(rows.X))
    test, training = np.split(order, [len(order) // 4])
    trusted, cheap = np.split(training[:N_TRAINING], [N_TRUSTED])
    X = rows.X[np.concatenate([cheap, trusted])]
    y = np.concatenate([rows.cheap[cheap], rows.trusted[trusted]])
    level = np.repeat([0, 1], [len(cheap), len(trusted)])
    learnt: list[Mixture] = []
    probabilities: list[np.ndarray] = []

    def learn_once(*arguments: Any, learn: Any = fit.learn) -> Mixture:
        if not learnt:
            learnt.append(learn(*arguments))
        return Mixture(learnt[0].members[len(probabilities) :][:1])

    with mock.patch.object(fit, "learn", learn_once):
        while not learnt or len(probabilities) < min(N_AVERAGED, len(learnt[0].members)):
            model = MultiFidelityClassifier(n_inducing=N_INDUCING, random_state=0)
            model.fit(X, y, fidelity=level)
            probabilities.append(model.predict_proba(rows.X[test])[:, 1])
    weights = learnt[0].weights[: len(probabilities)]
    several = weights @ np.stack(probabilities) / weights.sum()
    one, averaged = (log_loss(rows.true[test], p) for p in (probabilities[0], several))
    return float(one), float(averaged), len(probabilities)
