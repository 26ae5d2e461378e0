"""Candidates: structures that are tuned on some rows, from where other ones ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from joblib import Parallel
from scipy.special import logit

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import suitable_threads
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import Optimum, make_hyperprior, maximise, starting_points
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import BinaryFit
from polyfid.learning.plan import Options, Target
from polyfid.learning.structures import Structure
from polyfid.model.features import FeatureMap
from polyfid.rows import Points, Rows
from polyfid.rows.source import label

#: Structures are tuned to this many times ``tol``, shared by the hyper-parameters.
TOLERANCE = 1500.0
#: Until structures are chosen, inference may end so many standard deviations from its fixed point.
ROUGH = 3e-2
#: Shares of labels that are right, for a start.
PLAUSIBLE = 0.55, 0.95


@dataclass(frozen=True)
class Comparison:
    """The rows on which structures are compared; ``seed`` is for starts."""

    options: Options
    rows: Rows
    target: Target
    seed: int


@dataclass(frozen=True)
class Candidate:
    """A structure tuned by Laplace on the compared rows; weighed, it has a fit and an evidence."""

    structure: Structure
    features: FeatureMap
    evidence: Evidence
    hyperprior: HyperPrior
    optimum: Optimum
    fit: BinaryFit | None = None
    log_evidence: float = -np.inf

    @property
    def objective(self) -> float:
        """The log evidence by Laplace with the log priors of hyper-parameters and structure."""
        return self.optimum.objective + self.log_prior

    @property
    def log_prior(self) -> float:
        """The log prior of the structure."""
        return self.structure.log_prior(self.n_columns)

    @property
    def n_columns(self) -> int:
        """Columns of the points, without margins."""
        return self.structure.n_columns(self.evidence.points.x)


by_objective = attrgetter("objective")


class Workers:
    """Processes that tune and weigh structures; ``report`` is told how many are tuned.

    Which structures are worth tuning is known one group after the other, so that ``total`` grows.
    """

    def __init__(
        self, n_jobs: int | None, report: Callable[[int, int], None] | None = None
    ) -> None:
        self._pool = Parallel(n_jobs=n_jobs, prefer="processes", return_as="generator")
        self._report = report
        self.done = self.total = 0

    def __call__(self, calls: Iterable[Any]) -> list[Any]:
        """The results of calls, which come from joblib's ``delayed``."""
        return list(self._pool(calls))

    def tune(self, calls: Iterable[Any]) -> list[Any]:
        """The results of calls that tune one structure each."""
        calls, results = list(calls), []
        self.total = max(self.total, self.done + len(calls))
        for result in self._pool(calls):
            results.append(result)
            self.tuned()
        return results

    def tuned(self) -> None:
        """One more structure was tuned."""
        self.done += 1
        self.total = max(self.total, self.done)
        if self._report is not None:
            self._report(self.done, self.total)


def climb(
    on: Comparison,
    structure: Structure,
    features: FeatureMap,
    start: Candidate | None = None,
    least: float = -np.inf,
) -> Candidate:
    """Tune a structure, by Laplace if it may, from where another one ended if there is one.

    A start with an objective below ``least`` is not worth the climb.
    """
    options, target = on.options, structure.target(on.target)
    labelled = label(on.rows, features, target, bool(structure.boosted))
    points, likelihood = labelled.points, labelled.likelihood
    n_columns = structure.n_columns(points.x)
    prior = structure.prior(features, n_columns, options)
    scheme = "laplace" if likelihood.log_concave else options.inference
    evidence = Evidence(prior, likelihood, points, SCHEMES[scheme])
    hyperprior = make_hyperprior(prior, likelihood, points, weak=True)
    if start is None:
        rng = np.random.RandomState(on.seed)
        starts, hopeless = starting_points(evidence, hyperprior, options, rng), 1.0
    else:
        # Parameters deviate from typical values as those of the other structure do.
        deviation = carry(start, start.optimum.theta - start.hyperprior.mean, evidence)
        starts, hopeless = [hyperprior.mean + deviation], 0.0
        if structure.link == "flips" != start.structure.link:
            starts = [_as_flipped(start, evidence, starts[0])]
    tol = tolerance(options, evidence, TOLERANCE)
    limits = options.max_iter, tol, None, hopeless, least - structure.log_prior(n_columns)
    climbed = evidence if scheme == "laplace" else evidence.with_scheme(scheme, ROUGH)
    if start is not None and len(start.evidence.points) == len(points):
        climbed.warm = start.evidence.warm
    with suitable_threads(len(on.rows)):
        optimum = maximise(climbed, hyperprior, starts, *limits)
    evidence.warm = climbed.warm
    return Candidate(structure, features, evidence, hyperprior, optimum)


def _as_flipped(start: Candidate, evidence: Evidence, theta: Array) -> Array:
    """Theta of a structure with flips from one with corrections, by its top level.

    Amplitudes are those of the top level, and labels are flipped as often as they contradict it.
    """
    prior, theta = start.evidence.at(start.optimum.theta)[0], theta.copy()
    values = dict(zip(start.evidence.theta_names, start.optimum.theta, strict=True))
    shares = dict(zip(prior.process_names, np.square(prior.loadings[-1]), strict=True))
    points = start.evidence.points
    assert start.fit is not None
    top = Points(points.x, np.full(len(points), prior.n_levels - 1))
    right = start.fit.posterior.mean(top) * evidence.likelihood.y > 0.0
    for i, name in enumerate(evidence.theta_names):
        process, _, role = name.partition(".")
        if role.endswith("constant.value"):
            theta[i] = np.log(sum(a * np.exp(values[f"{p}.{role}"]) for p, a in shares.items()))
        elif process.startswith("reliability"):
            own = right[points.level == int(name.removeprefix("reliability[").removesuffix("]"))]
            theta[i] = logit(np.clip(own.mean(), *PLAUSIBLE)) if len(own) else theta[i]
    return theta


def tolerance(options: Options, evidence: Evidence, factor: float) -> float:
    """So many times ``tol``, shared by the hyper-parameters."""
    return options.tol * max(1.0, factor / len(evidence.theta))


def carry(start: Candidate, change: Array, evidence: Evidence) -> Array:
    """A change of one structure's parameters as one of another's, by name or else by role."""
    by_role: dict[str, list[float]] = {}
    for name, value in zip(start.evidence.theta_names, change, strict=True):
        for role in _roles(name, start.evidence):
            by_role.setdefault(role, []).append(value)
    carried = np.zeros(len(evidence.theta))
    for i, name in enumerate(evidence.theta_names):
        alike = [by_role[role] for role in _roles(name, evidence) if role in by_role]
        if alike and "linear." not in name:
            carried[i] = np.mean(alike[0])
    return carried


def _roles(name: str, evidence: Evidence) -> list[str]:
    """What a parameter is, ever less exactly, from its name on; processes have their number.

    Of f[0].left.rbf.length_scale[3] also 0.left.length_scale and 0.length_scale.
    """
    process, *path = name.split(".")
    if not path:
        return [name]
    number = str(evidence.prior.process_names.index(process))
    *terms, kernel, last = path
    short = last.partition("[")[0]
    exact, by_term = [number, *terms, kernel, last], [number, *terms, short]
    return [".".join(exact), ".".join(by_term), f"{number}.{short}"]
