"""How often EP and variational inference converge, at settings that tuning may run into.

A full factorial design with the hyper-parameters held fixed. Most of its settings are harder than
any fit needs: latent functions a hundred times as large as typical ones, rows that count a thousand
times, levels that contradict each other. Functions ten times as large again are counted apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Context, Figure, Table, at_least, info
from polyfid.inference import SCHEMES, Report
from polyfid.inference import run as infer
from polyfid.inference.exact import ExactCovariance
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.kernels import RBF
from polyfid.model.likelihoods import Likelihood, Logit, NoisyLogit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

Array = NDArray[np.float64]

N_ROWS = 90
MAX_STEPS = 100
#: The share of runs that is to converge.
GOAL = 0.95

#: Variances of the latent function, and one for which there is no goal.
AMPLITUDES, EXTREME = (1e-2, 1.0, 1e2, 1e4), 1e6
#: Length-scales in typical distances between rows.
LENGTHS = {"short": 0.05, "typical": 0.5, "very long": 20.0}
WEIGHTS = {"1": (1.0, 1.0), "0.1 to 100": (0.1, 100.0), "1000": (1e3, 1e3)}
LABELS = ("separable", "noisy", "nearly one class")
CHANNELS = ("logit", "flip rates")
#: Number of columns, and rho of the steps between levels.
LEVELS = {
    "one": (2, ()),
    "rho 1": (2, (1.0,)),
    "rho -2": (5, (-2.0,)),
    "rho 0.5, 3": (3, (0.5, 3.0)),
}
#: Probabilities that a label is flipped, of the last levels.
FLIP_RATES = (0.3, 0.2, 0.05)


class Setting(NamedTuple):
    """One run: a combination of one value per factor."""

    scheme: str
    likelihood: str
    amplitude: float
    length: str
    weight: str
    labels: str
    levels: str


def settings(amplitudes: Sequence[float] = AMPLITUDES, every: int = 1) -> Iterator[Setting]:
    """All combinations, 1728 of the usual amplitudes, or some of them."""
    factors = (("ep", "variational"), CHANNELS, amplitudes, LENGTHS, WEIGHTS, LABELS, LEVELS)
    for values in islice(product(*factors), 0, None, every):
        yield Setting(*values)


def run(context: Context) -> list[Figure]:
    """The share of runs that converge, and the steps that they take."""
    every = 29 if context.quick else 1
    context.progress("convergence")
    reports = {setting: attempt(setting) for setting in settings(every=every)}
    context.progress("convergence: the largest functions")
    extreme = [attempt(setting) for setting in settings((EXTREME,), every)]
    share = float(np.mean([r is not None and r.converged for r in extreme]))
    name = f"convergence: amplitude {EXTREME:g}, share of {len(extreme)} runs"
    return [*figures(context, reports), info(name, share)]


def figures(context: Context, reports: dict[Setting, Report | None]) -> list[Figure]:
    """Shares of runs that converged: all, by scheme, and in a table by all factors."""
    shares: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for setting, report in reports.items():
        for factor, value in setting._asdict().items():
            shares[factor, str(value)].append(report is not None and report.converged)
    means = {about: float(np.mean(reached)) for about, reached in shares.items()}
    body = [[factor, value, f"{mean:.3f}"] for (factor, value), mean in means.items()]
    context.tables.append(Table("convergence: share of runs", ["factor", "value", "share"], body))
    done = [r.n_iter for r in reports.values() if r is not None and r.converged]
    total = len(done) / len(reports)
    note = f"{len(done)} of {len(reports)} runs within {MAX_STEPS} steps"
    by_scheme = [
        info(f"convergence: {value}, share of runs", mean)
        for (factor, value), mean in means.items()
        if factor == "scheme"
    ]
    return [
        at_least("convergence: share of runs", total, GOAL, note=note),
        *by_scheme,
        info("convergence: steps of a run that converged, mean", float(np.mean(done))),
    ]


def attempt(setting: Setting) -> Report | None:
    """How inference went; None where it ended with no posterior."""
    covariance, likelihood = problem(setting)
    try:
        return infer(SCHEMES[setting.scheme], covariance, likelihood, max_iter=MAX_STEPS).report
    except NotPositiveDefinite:
        return None


def problem(setting: Setting) -> tuple[ExactCovariance, Likelihood]:
    """The prior covariance of made rows, and the likelihood of their labels."""
    rng = np.random.RandomState(0)
    n_columns, rho = LEVELS[setting.levels]
    n_levels = len(rho) + 1
    x = rng.uniform(-2.0, 2.0, (N_ROWS, n_columns))
    level = np.sort(np.arange(N_ROWS) % n_levels)
    y = np.where(np.sin(2.0 * x[:, 0]) + x[:, 1] > 0.0, 1.0, -1.0)
    if setting.labels == "noisy":
        y = np.where(rng.uniform(size=N_ROWS) < 0.2, -y, y)
    elif setting.labels == "nearly one class":
        y = np.where(np.arange(N_ROWS) % 30 == 7, -1.0, 1.0)
    weight = np.geomspace(*WEIGHTS[setting.weight], N_ROWS)[rng.permutation(N_ROWS)]
    likelihood: Likelihood = Logit(y, weight)
    if setting.likelihood == "flip rates":
        if setting.scheme == "ep":  # which takes no other weights here
            weight = np.maximum(weight, 1.0)
        rates = FLIP_RATES[-n_levels:] if n_levels > 1 else FLIP_RATES[1:2]
        likelihood = NoisyLogit.from_flip_rates(y, weight, level, rates)
    typical = np.sqrt(8.0 * n_columns / 3.0)  # root mean square distance
    kernel = setting.amplitude * RBF(LENGTHS[setting.length] * typical)
    prior = Autoregressive((kernel,) * n_levels, rho)
    return ExactCovariance(prior, Points(x, level)), likelihood
