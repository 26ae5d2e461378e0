"""One pass over the rows: threads of blocks, threads of BLAS, and single precision."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.figures import Context, Figure, at_least, info
from benchmarks.timing import take_turns
from polyfid.datasets import make_cokriging
from polyfid.inference.inducing import Basis, SparseBelief, choose
from polyfid.inference.loop import iterate
from polyfid.inference.passes import LevelBelief, SparseProblem, Sums, SumsPass
from polyfid.inference.posterior import SparsePosterior
from polyfid.kernels import RBF
from polyfid.model.likelihoods import Likelihood, Logit
from polyfid.model.logistic import expected_sigmoid
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

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
    start = SparseBelief.prior(basis.inducing.total)

    nothing = labels.theta  # no free parameters

    def sums(rows: LabelledPoints, belief: SparseBelief) -> Sums:
        return rows.reduce(SumsPass(basis, belief, nothing))

    one, two = (LabelledPoints(points, labels, n_threads=k) for k in (1, 2))
    fixed, _ = iterate(SparseProblem(partial(sums, two), start), 1e-5, 100)
    belief = fixed.belief

    def threaded_blas() -> Sums:
        with threadpool_limits(2, "blas"):
            of_block, blocks = SumsPass(basis, belief, nothing), one.blocks()
            total = of_block(*next(blocks))
            for block in blocks:
                total = total + of_block(*block)
            return total

    calls: dict[str, Any] = {
        "one thread": lambda: sums(one, belief),
        "two threads": lambda: sums(two, belief),
        "BLAS in two threads": threaded_blas,
        "single precision": lambda: _single(two, basis, belief),
    }
    seconds, _ = take_turns(calls, 1 if context.quick else 5, time.perf_counter)
    typical = {name: float(np.median(taken)) for name, taken in seconds.items()}
    ratio = {name: typical["one thread"] / taken for name, taken in typical.items()}

    rough, report = iterate(SparseProblem(partial(_single, two, basis), start), 1e-2, 100)
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
            f"bound off by {rough.merit - fixed.merit:.2g} nats; {report}",
        ),
    ]


def _single(rows: LabelledPoints, basis: Basis, belief: SparseBelief) -> Sums:
    """A pass with features, products and solves in 32 bits, whose sums are kept in 64."""
    own = LevelBelief(belief, basis.levels[0])
    T, root, mu = (a.astype(np.float32) for a in (basis.whiteners[0], own.root, own.mean))

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
        return Sums(gram, linear.astype(float), value, len(points))

    return rows.reduce(block)
