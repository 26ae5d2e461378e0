"""One evaluation of the evidence with its gradient, in units of one dpotrf and one dpotri.

The evaluations are those of a real climb, from the default start and under the weak prior, each
warm-started from the one before; after each comes the reference, on a matrix of the same size.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from benchmarks.figures import Context, Figure, at_most, info
from benchmarks.fitting import make_evidence, scaled_rbf
from benchmarks.synthetic import make_problem
from polyfid.learning.climb import make_hyperprior, maximise
from polyfid.learning.evidence import Evidence, Value
from polyfid.learning.structures import default_kernel

Array = NDArray[np.float64]

N_FEATURES = 5


def run(context: Context) -> list[Figure]:
    n = 600 if context.quick else 2000
    kernels = {"isotropic": scaled_rbf(), "ARD": default_kernel(N_FEATURES)}
    figures = []
    for n_levels, levels in ((1, "one level"), (2, "two levels")):
        for kind, kernel in kernels.items():
            name = f"evaluation: Laplace, {levels}, {kind}"
            context.progress(name)
            path = _climb(n, n_levels, kernel, "laplace", 200)
            figures += [
                at_most(name, path.typical, 2.0, "x", f"n {n}, {path}"),
                info(f"{name}, mean of the path", path.mean, "x"),
            ]
    for inference in ("ep", "variational"):
        name = f"evaluation: {inference}, one level, ARD"
        context.progress(name)
        path = _climb(n, 1, kernels["ARD"], inference, 5)
        figures.append(info(name, path.typical, "x", f"n {n}, {path}"))
    return figures


class Path:
    """Seconds of the evaluations of a climb, and of the reference after each."""

    def __init__(self) -> None:
        self.ours: list[float] = []
        self.reference: list[float] = []
        self.steps: list[int] = []

    @property
    def typical(self) -> float:
        """Median ratio, without the first evaluation, which starts from nothing."""
        return float(np.median(np.divide(self.ours, self.reference)[1:]))

    @property
    def mean(self) -> float:
        return sum(self.ours) / sum(self.reference)

    def __str__(self) -> str:
        return (
            f"{len(self.ours)} evaluations, {np.mean(self.steps):.1f} inner steps each, "
            f"reference {np.median(self.reference):.3g} s"
        )


class _TimedEvidence(Evidence):
    """Evidence that times itself and the reference."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.path = Path()
        n = len(self.points)
        root = np.random.RandomState(0).standard_normal((n, 20))
        self.matrix = np.asfortranarray(root @ root.T + n * np.eye(n))

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        start = time.process_time()
        value = super().__call__(theta, gradient)
        self.path.ours.append(time.process_time() - start)
        self.path.steps.append(value.report.n_iter)
        self.path.reference.append(factorise_and_invert(self.matrix))
        return value


def factorise_and_invert(matrix: Array) -> float:
    """Seconds of dpotrf and dpotri on a copy of the matrix."""
    work = matrix.copy(order="F")
    start = time.process_time()
    factor, failed = lapack.dpotrf(work, lower=1, clean=0, overwrite_a=1)
    _, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
    taken = time.process_time() - start
    if failed or failed_too:
        raise ArithmeticError("the reference matrix is not positive definite")
    return taken


def _climb(n: int, n_levels: int, kernel: Any, inference: str, max_iter: int) -> Path:
    problem = make_problem(n, N_FEATURES, n_levels)
    evidence = make_evidence(problem, kernel, inference, _TimedEvidence)
    hyperprior = make_hyperprior(evidence.prior, evidence.likelihood, evidence.points, weak=True)
    maximise(evidence, hyperprior, [evidence.theta], max_iter)
    assert isinstance(evidence, _TimedEvidence)
    return evidence.path
