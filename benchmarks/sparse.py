"""Inducing points: how near they are to exact inference, and beside GPBoost's Vecchia-Laplace."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from benchmarks.figures import Context, Figure, at_least, at_most, info, peer
from benchmarks.synthetic import make_problem
from benchmarks.timing import cpu
from experiments.data import load_pmlb
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.inference import SCHEMES
from polyfid.inference.inducing import Inducing
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.kernels import RBF, Constant
from polyfid.learning.evidence import Evidence, SparseEvidence
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

Array = NDArray[np.float64]


def run(context: Context) -> list[Figure]:
    return [*_at_the_rows(), *_near_exact(context)]


def _at_the_rows() -> list[Figure]:
    """Inducing points at all rows against exact variational inference."""
    problem = make_problem(300, n_levels=2)
    points = Points(problem.x, problem.level)
    labels = Logit(np.where(problem.y > 0, 1.0, -1.0), np.ones(len(problem.y)))
    kernel = Constant(4.0) * RBF(2.0)
    prior = Autoregressive((kernel, kernel), (0.8,))
    exact = Evidence(prior, labels, points, SCHEMES["variational"], tol=1e-10)
    inducing = Inducing((points.x, points.x[points.level == 1]))
    sparse = SparseEvidence(prior, LabelledPoints(points, labels), inducing, tol=1e-9)
    values = [evidence(prior.theta) for evidence in (exact, sparse)]
    slope = np.abs(values[0].gradient).max()
    new = Points(problem.x[:100] + 0.1, np.ones(100, dtype=np.intp))
    posteriors = (
        Posterior.from_belief(prior, points, exact.fixed(prior.theta)[2].belief),
        SparsePosterior(prior, inducing, sparse.fixed(prior.theta)[1].belief),
    )
    moments = [np.stack(p.mean_and_variance(new)) for p in posteriors]
    name = "sparse: points at the rows,"
    return [
        at_most(f"{name} bound off by", abs(values[0].value - values[1].value), 1e-6, "nats"),
        at_most(
            f"{name} gradient off by",
            float(np.abs(values[0].gradient - values[1].gradient).max() / slope),
            1e-6,
            "relative",
        ),
        at_most(f"{name} predictions off by", float(np.abs(moments[0] - moments[1]).max()), 1e-6),
    ]


def _near_exact(context: Context) -> list[Figure]:
    """500 inducing points against exact variational inference, hyper-parameters the same."""
    n, figures = 1000 if context.quick else 4000, []
    made = make_cokriging(3 * n // 4, n // 4, 5, labels="sigmoid", n_test=5000, random_state=1001)
    for name, (X, y, level, X_test, y_test) in with_spambase(context, made, n).items():
        context.progress(f"sparse: near exact, {name}")
        m = min(500, n // 4)
        sparse = MultiFidelityClassifier(4.0 * RBF(2.0), n_inducing=m, random_state=0)
        sparse.fit(X, y, fidelity=level)
        exact = MultiFidelityClassifier(
            sparse.kernels_,
            rho=sparse.rho_.tolist() if len(sparse.rho_) else 1.0,
            optimizer=None,
            inference="variational",
            n_inducing=None,
        ).fit(X, y, fidelity=level)
        losses = [log_loss(y_test, model.predict_proba(X_test)) for model in (sparse, exact)]
        figures.append(
            at_most(
                f"sparse: {name}, log-loss above that of exact inference",
                losses[0] - losses[1],
                0.005,
                "",
                f"{losses[0]:.4f} and {losses[1]:.4f}; n {len(X)}, {m} points per process",
            )
        )
    return figures


def with_spambase(context: Context, made: Bunch, n: int) -> dict[str, tuple[Any, ...]]:
    """A made problem and, if it is there, spambase: training rows with levels, and test rows.

    A quarter of its rows are trusted; of the labels of the others 20 % are flipped at random.
    """
    own = (made.data, made.target, made.fidelity, made.test_data, made.test_target)
    if context.data is None:
        return {"co-kriging": own}
    data = load_pmlb("spambase", data_home=context.data)
    rng = np.random.RandomState(1001)
    order = rng.permutation(len(data.target))
    X, y = np.asarray(data.data)[order], np.asarray(data.target)[order]
    n = min(n, len(y) - 600)
    level = (np.arange(n) < n // 4).astype(int)
    cheap = np.where((level == 0) & (rng.uniform(size=n) < 0.2), 1 - y[:n], y[:n])
    return {"co-kriging": own, "spambase": (X[:n], cheap, level, X[n:], y[n:])}


def against_vecchia(context: Context) -> list[Figure]:
    """One level of 10 000 rows: time of a fit and of predictions, and log-loss."""
    gpboost = peer("gpboost")
    n, n_test = (2000, 1000) if context.quick else (10_000, 5000)
    problem = make_problem(n + n_test)
    x, y, new, truth = problem.x[:n], problem.y[:n], problem.x[n:], problem.y[n:]
    model = MultiFidelityClassifier(4.0 * RBF(2.0, ard=True), n_inducing=200, random_state=0)
    theirs = gpboost.GPModel(
        gp_coords=x,
        cov_function="gaussian_ard",
        likelihood="bernoulli_logit",
        gp_approx="vecchia",
        num_parallel_threads=2,
    )
    context.progress("vecchia: polyfid")
    with threadpool_limits(None):
        fit, _ = cpu(lambda: model.fit(x, y), time.perf_counter)
        predict, p = cpu(lambda: model.predict_proba(new)[:, 1], time.perf_counter)
    context.progress("vecchia: gpboost")
    their_fit, _ = cpu(lambda: theirs.fit(y=y.astype(float)), time.perf_counter)
    their_predict, their_p = cpu(
        lambda: theirs.predict(gp_coords_pred=new, predict_response=True)["mu"], time.perf_counter
    )
    losses = log_loss(truth, p), log_loss(truth, np.asarray(their_p))
    note = f"n {n}, {n_test} new rows"
    return [
        at_most(
            "vecchia: fit", fit / their_fit, 0.2, "x the time", f"{fit:.1f}, {their_fit:.1f} s"
        ),
        at_most(
            "vecchia: predictions",
            predict / their_predict,
            0.02,
            "x the time",
            f"{predict:.2f}, {their_predict:.1f} s",
        ),
        at_least("vecchia: log-loss below theirs", losses[1] - losses[0], 0.0, "", note),
        info("vecchia: log-loss", losses[0], "", f"theirs {losses[1]:.4f}"),
    ]
