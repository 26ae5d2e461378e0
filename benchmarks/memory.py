"""Peak memory of an exact fit, in matrices of n by n doubles.

The fit runs in a process of its own, `python -m benchmarks.memory SCHEME LEVELS N`, which prints
how far the peak rose above what a tiny fit had needed.
"""

from __future__ import annotations

import re
import resource
import sys
import warnings
from itertools import product
from pathlib import Path

from benchmarks.figures import Context, Figure, at_most
from benchmarks.synthetic import Problem, make_problem
from benchmarks.timing import run_python
from polyfid import MultiFidelityClassifier
from polyfid.learning.structures import default_kernel


def run(context: Context) -> list[Figure]:
    n = 1500 if context.quick else 3000
    figures = []
    for scheme, n_levels in product(("laplace", "ep"), (1, 2)):
        name = f"memory: {scheme}, {n_levels} level{'s' * (n_levels - 1)}"
        context.progress(name)
        peak = float(run_python("-m", "benchmarks.memory", scheme, str(n_levels), str(n)))
        figures.append(at_most(name, peak, 8.0, "n² doubles", f"n {n}"))
    return figures


def peak_bytes() -> int:
    """Most memory this process has had resident."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)
    # getrusage would count the parent before exec.
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) * 1024


def _fit(problem: Problem, scheme: str) -> None:
    kernel = default_kernel(problem.x.shape[1])
    model = MultiFidelityClassifier(kernel, inference=scheme, max_iter=2, n_tuning=None)  # type: ignore[arg-type]
    model.fit(problem.x, problem.y, fidelity=problem.level)


def _measure(scheme: str, n_levels: int, n: int) -> float:
    warnings.simplefilter("ignore")  # a few iterations do not converge
    problem = make_problem(n, n_levels=n_levels)
    _fit(make_problem(100, n_levels=n_levels), scheme)
    before = peak_bytes()
    _fit(problem, scheme)
    return (peak_bytes() - before) / (8.0 * n * n)


if __name__ == "__main__":
    print(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
