"""A whole one-level fit against scikit-learn's GaussianProcessClassifier.

Same kernel, start and bounds, no restarts, features as they are, no hyper-prior.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from benchmarks.figures import Context, Figure, at_least, info
from benchmarks.fitting import fit_from_one_start, scaled_rbf
from benchmarks.synthetic import Problem, make_problem
from benchmarks.timing import take_turns
from polyfid import MultiFidelityClassifier

GOALS = {300: 2.0, 1000: 4.0, 2000: 4.0}
N_PROBLEMS = {300: 5, 1000: 3, 2000: 2}
BOUNDS = (1e-5, 1e5)


def run(context: Context) -> list[Figure]:
    figures = []
    for n, goal in GOALS.items():
        if not context.quick or n <= 1000:
            n_problems = 1 if context.quick else N_PROBLEMS[n]
            fits = partial(
                against_peer, context, _fit_sklearn, lambda fit: fit.log_marginal_likelihood_value_
            )
            figures += fits("sklearn: fit", n, n_problems, goal, repetitions=3 if n <= 300 else 1)
    return figures


def against_peer(
    context: Context,
    fit_peer: Callable[[Problem], Any],
    evidence_of: Callable[[Any], float],
    name: str,
    n: int,
    n_problems: int,
    goal: float,
    repetitions: int = 1,
) -> list[Figure]:
    """Times and evidences of one-level fits of ``n`` rows, beside those of a peer."""
    ratios, api_ratios, gaps, api_gaps = [], [], [], []
    name = f"{name}, n {n}"
    for seed in range(n_problems):
        context.progress(f"{name}, problem {seed}")
        problem = make_problem(n, seed=seed)
        seconds, fitted = take_turns(
            {
                "one start": partial(fit_from_one_start, problem, scaled_rbf(BOUNDS)),
                "estimator": partial(fit_estimator, problem),
                "peer": partial(fit_peer, problem),
            },
            repetitions,
        )
        typical = {who: float(np.median(taken)) for who, taken in seconds.items()}
        ratios.append(typical["peer"] / typical["one start"])
        api_ratios.append(typical["peer"] / typical["estimator"])
        theirs = evidence_of(fitted["peer"])
        gaps.append(fitted["one start"].log_evidence - theirs)
        api_gaps.append(fitted["estimator"].log_marginal_likelihood_value_ - theirs)
    note = f"{len(ratios)} problems, last {typical['one start']:.3g} s"
    return [
        at_least(f"{name}, one start each", np.median(ratios), goal, "x faster", note),
        at_least(f"{name}, lowest evidence less theirs", min(gaps), -0.01, "nats"),
        info(
            f"{name}, estimator with its own starts",
            float(np.median(api_ratios)),
            "x faster",
            f"lowest evidence less theirs {min(api_gaps):.3g}",
        ),
    ]


def fit_estimator(problem: Problem) -> MultiFidelityClassifier:
    """The same model through the public interface, which adds a start of its own."""
    model = MultiFidelityClassifier(
        kernel=scaled_rbf(BOUNDS), prior=None, standardize=False, n_restarts=0, n_tuning=None
    )
    return model.fit(problem.x, problem.y)


def _fit_sklearn(problem: Problem) -> Any:
    kernel = ConstantKernel(1.0, BOUNDS) * RBF(1.0, BOUNDS)
    return GaussianProcessClassifier(kernel, n_restarts_optimizer=0).fit(problem.x, problem.y)
