"""One pass over the rows: threads of blocks, threads of BLAS, and single precision.

And where inducing points are: chosen in two ways, and moved.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from benchmarks.figures import Context, Figure, Table, at_least, at_most, info
from benchmarks.sparse import spambase
from benchmarks.timing import take_turns
from polyfid import MultiFidelityClassifier
from polyfid.data import Points
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF
from polyfid.likelihoods import Likelihood, Logit
from polyfid.logistic import expected_sigmoid
from polyfid.prior import Autoregressive
from polyfid.sparse import (
    Basis,
    MemoryRows,
    SparseBelief,
    SparsePosterior,
    Sums,
    View,
    block_sums,
    choose,
)
from polyfid.sparse import loop as sparse_loop

Array = NDArray[np.float64]


def run(context: Context) -> list[Figure]:
    """The ways to make a pass of one level, and what single precision does to predictions."""
    context.progress("passes")
    n, m = (8_192, 200) if context.quick else (65_536, 500)
    made = make_cokriging(n, 0, 5, labels="sigmoid", n_test=2000, random_state=1001)
    points = Points(np.asarray(made.data), np.zeros(n, dtype=np.intp))
    labels = Logit(np.where(made.target == 1, 1.0, -1.0), np.ones(n))
    prior = Autoregressive((4.0 * RBF(1.2),))
    inducing = choose(points, prior, m, random_state=0)
    basis = Basis(prior, inducing)
    start = SparseBelief.prior(basis.total)

    def look(rows: MemoryRows, belief: SparseBelief) -> Sums:
        return rows.reduce(partial(block_sums, View(basis, belief)))

    one, two = (MemoryRows(points, labels, n_threads=k) for k in (1, 2))
    fixed = sparse_loop.run(partial(look, two), start, 1e-5)
    belief = fixed.belief

    def threaded_blas() -> Sums:
        with threadpool_limits(2, "blas"):
            view, blocks = View(basis, belief), one.blocks()
            total = block_sums(view, *next(blocks))
            for block in blocks:
                total = total + block_sums(view, *block)
            return total

    calls: dict[str, Any] = {
        "one thread": lambda: look(one, belief),
        "two threads": lambda: look(two, belief),
        "BLAS in two threads": threaded_blas,
        "single precision": lambda: _single(two, basis, belief),
    }
    seconds, _ = take_turns(calls, 1 if context.quick else 5, time.perf_counter)
    typical = {name: float(np.median(taken)) for name, taken in seconds.items()}
    ratio = {name: typical["one thread"] / taken for name, taken in typical.items()}

    rough = sparse_loop.run(partial(_single, two, basis), start, 1e-2)
    new = Points(np.asarray(made.test_data), np.zeros(2000, dtype=np.intp))
    p = [
        expected_sigmoid(*SparsePosterior(prior, inducing, f.belief).mean_and_variance(new))
        for f in (fixed, rough)
    ]
    note = f"{n:,} rows, {m} points, {typical['one thread']:.2f} s in one thread"
    return [
        at_least(
            "passes: blocks in two threads over BLAS in two",
            ratio["two threads"] / ratio["BLAS in two threads"],
            1.0,
            "x as fast",
            note,
        ),
        *(
            info(f"passes: {name} over one thread", ratio[name], "x as fast")
            for name in ("two threads", "BLAS in two threads")
        ),
        info(
            "passes: single precision over double",
            typical["two threads"] / typical["single precision"],
            "x as fast",
        ),
        info(
            "passes: probabilities of single precision off by",
            float(np.abs(p[0] - p[1]).max()),
            "",
            f"bound off by {rough.bound - fixed.bound:.2g} nats; {rough.report}",
        ),
    ]


def _single(rows: MemoryRows, basis: Basis, belief: SparseBelief) -> Sums:
    """A pass with features, products and solves in 32 bits, whose sums are kept in 64."""
    seen = View(basis, belief).levels[0]
    T, root, mu = (a.astype(np.float32) for a in (basis.whiteners[0], seen.root, seen.mean))

    def block(points: Points, labels: Likelihood) -> Sums:
        Phi = basis.covariance(points.x, 0).astype(np.float32) @ T
        Y = Phi @ root
        squares = [np.einsum("ij,ij->i", a, a).astype(float) for a in (Y, Phi)]
        variance = basis.prior.diagonal(points) + squares[0] - squares[1]
        mean = (Phi @ mu).astype(float)
        expected = labels.expectations(mean, np.maximum(variance, 0.0))
        w = -expected.second
        linear = (expected.first + w * mean).astype(np.float32) @ Phi
        Phi *= np.sqrt(w).astype(np.float32)[:, None]
        gram = (Phi.T @ Phi).astype(float)
        value = float(expected.value.sum())
        return Sums(gram, linear.astype(float), value, len(points), float(labels.weight.sum()))

    return rows.reduce(block)


def points(context: Context) -> list[Figure]:
    """Inducing points from pivots or from clusters, at rows or moved: log-loss and time."""
    n = 4000 if context.quick else 20_000
    made = make_cokriging(n - n // 5, n // 5, 5, labels="sigmoid", n_test=5000, random_state=1002)
    given = {
        "co-kriging": (made.data, made.target, made.fidelity, made.test_data, made.test_target)
    }
    if context.data is not None:
        given["spambase"] = spambase(context, 4000)
    ways = {
        "pivots": ("pivoted", False),
        "clusters": ("kmeans", False),
        "clusters, moved": ("kmeans", True),
    }
    rows, losses = [], {}
    for name, (X, y, level, X_test, y_test) in given.items():
        for m in ((60, 40),) if context.quick else ((60, 40), (300, 100)):
            for way, (method, refine) in ways.items():
                context.progress(f"points: {name}, {m}, {way}")
                model = MultiFidelityClassifier(
                    4.0 * RBF(2.0, ard=True), n_inducing=m, refine_inducing=refine, random_state=0
                )
                begin = time.process_time()
                with mock.patch("polyfid.large.choose", partial(choose, method=method)):
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
