"""Where inducing points are: chosen in two ways, and moved."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any
from unittest import mock

from sklearn.metrics import log_loss

from benchmarks.figures import Context, Figure, Table, at_most
from benchmarks.sparse import with_spambase
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF


def pivots_of_all_rows() -> Any:
    """Inducing points where most variance is left under the kernel, without clusters before."""
    return mock.patch.multiple(
        "polyfid.inference.inducing",
        _nearest_to_centres=lambda x, m, rng: x,
        _wigglier=lambda kernel: kernel,
    )


def run(context: Context) -> list[Figure]:
    """Inducing points from pivots or from clusters, at rows or moved: log-loss and time."""
    n = 4000 if context.quick else 20_000
    made = make_cokriging(n - n // 5, n // 5, 5, labels="sigmoid", n_test=5000, random_state=1002)
    ways = {
        "pivots": (pivots_of_all_rows, False),
        "clusters": (nullcontext, False),
        "clusters, moved": (nullcontext, True),
    }
    rows, losses = [], {}
    for name, (X, y, level, X_test, y_test) in with_spambase(context, made, 4000).items():
        for m in ((60, 40),) if context.quick else ((60, 40), (300, 100)):
            for way, (choosing, refine) in ways.items():
                context.progress(f"points: {name}, {m}, {way}")
                model = MultiFidelityClassifier(
                    4.0 * RBF(2.0, ard=True), n_inducing=m, refine_inducing=refine, random_state=0
                )
                begin = time.process_time()
                with choosing():
                    model.fit(X, y, fidelity=level)
                taken = time.process_time() - begin
                loss = losses[name, m, way] = log_loss(y_test, model.predict_proba(X_test))
                bound = model.log_marginal_likelihood_value_
                sizes = " + ".join(map(str, m))
                rows.append([name, sizes, way, f"{bound:.0f}", f"{loss:.4f}", f"{taken:.1f}"])
    header = ["set", "points", "where", "bound", "log-loss", "CPU, s"]
    context.tables.append(Table(f"Where inducing points are ({n:,} rows)", header, rows))
    cells = {key[:2] for key in losses}

    def worst(better: str, worse: str) -> float:
        return max(losses[*cell, better] - losses[*cell, worse] for cell in cells)

    return [
        at_most("points: clusters' log-loss less pivots', at most", worst("clusters", "pivots"), 0),
        at_most(
            "points: log-loss moved less at rows, at most", worst("clusters, moved", "clusters"), 0
        ),
    ]
