"""Learning the structure of a model: structures are tuned, weighed by evidence, and averaged.

Tuning is by Laplace, which makes so many fits affordable; weights and posteriors are by the scheme
asked for. In the evidence the hyper-parameters are integrated out (see `occam`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import Optimum, make_hyperprior, maximise, starting_points
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import BinaryFit, Member, Mixture, infer
from polyfid.learning.occam import log_occam
from polyfid.learning.plan import Options, Target
from polyfid.learning.structures import Structure, candidates, other_links, simpler
from polyfid.model.features import FeatureMap
from polyfid.rows import Rows
from polyfid.rows.source import label

# Constants of the comparison, all chosen by ``python -m benchmarks structures``.
#: Log evidences are divided by this before they become weights: they are approximate, and
#: structures fail in different places, so that an average that is too sure of one loses by it.
TEMPERATURE = 2.0
#: Structures of less weight than this are left out of the average.
NEGLIGIBLE = 0.03
#: Structures are tuned to this many times ``tol``, shared by the hyper-parameters, and the leading
#: one in the end to fewer.
TOLERANCE, REFINED = 500.0, 200.0
#: With more rows than this structures are compared on a sample, and only the leading ones, at
#: most so many, are tuned on more.
N_COMPARED, N_LEADERS = 600, 3
#: A structure that refines another one is tried if that is behind by no more than this.
REACH = 20.0
#: The leading structures whose other links are tried.
N_RELINKED = 2
#: Until structures are chosen, inference may end so many standard deviations from its fixed point.
ROUGH = 1e-3
#: With more rows than this Laplace, several times as fast, takes the place of EP if it may.
N_LAPLACE = 2000
#: Structures weighed between two decisions on which ones are still worth weighing.
BATCH = 2
#: How much more a structure may gain by being weighed than all others did.
LENIENCE = 2.0
#: Iterations of the leading structure under the scheme itself.
N_REFINING = 12


@dataclass(frozen=True)
class Comparison:
    """The rows on which structures are compared; ``seed`` is for starts and Occam factors."""

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


def learn(
    options: Options, rows: Rows, tuning: Rows, target: Target, rng: np.random.RandomState
) -> Mixture:
    """Compare the structures on the tuning rows, and average the best of them over all rows."""
    few = tuning.sample(N_COMPARED, rng)
    on = Comparison(options, few, target, int(rng.randint(2**31 - 1)))
    pool = Parallel(n_jobs=options.n_jobs, prefer="processes")
    weighed = compare(on, rows, pool)
    if few is not tuning:
        on, leaders = replace(on, rows=tuning), shares(weighed)[:N_LEADERS]
        climbed = pool(delayed(climb)(on, c.structure, c.features, c) for c, _ in leaders)
        weighed = pool(delayed(weigh)(on, c) for c in climbed)
    refined = refine(options, [c for c, _ in shares(weighed)], pool)
    return average(refined, replace(on, rows=rows))


def compare(on: Comparison, rows: Rows, pool: Parallel) -> list[Candidate]:
    """Climb and weigh all structures, then the leading ones with other links of the levels."""
    maps = candidates(rows, on.options.standardize)
    refines = {structure: simpler(structure, maps) for structure in maps}
    roots = [structure for structure in maps if refines[structure] is None]
    first = climb(on, roots[0], maps[roots[0]])
    climbed = [first, *pool(delayed(climb)(on, s, maps[s], first) for s in roots[1:])]
    before = {c.structure: c for c in climbed}
    least = max(c.optimum.objective for c in climbed) - REACH
    climbed += pool(
        delayed(climb)(on, structure, maps[structure], before[simple])
        for structure, simple in refines.items()
        if simple is not None and before[simple].optimum.objective > least
    )
    weighed = weigh_all(on, _by_cost(climbed), [], pool)
    relinked = pool(
        delayed(climb)(on, replace(c.structure, link=link), c.features, c)
        for c in weighed[:N_RELINKED]
        for link in other_links(c.evidence.prior, rows)
    )
    return weigh_all(on, _by_cost(relinked), weighed, pool)


def climb(
    on: Comparison, structure: Structure, features: FeatureMap, start: Candidate | None = None
) -> Candidate:
    """Tune a structure by Laplace, from where another one ended if there is one."""
    options, labelled = on.options, label(on.rows, features, on.target)
    points, likelihood = labelled.points, labelled.likelihood
    prior = structure.prior(features, points.x.shape[1], options)
    evidence = Evidence(prior, likelihood, points, SCHEMES["laplace"])
    hyperprior = make_hyperprior(prior, likelihood, points, weak=True)
    if start is None:
        rng = np.random.RandomState(on.seed)
        starts, hopeless = starting_points(evidence, hyperprior, options, rng), 3.0
    else:
        # Parameters deviate from typical values as those of the other structure do.
        deviation = carry(start, start.optimum.theta - start.hyperprior.mean, evidence)
        starts, hopeless = [hyperprior.mean + deviation], 0.0
        if structure.form in ("soft", "free") and structure.link == "linked":
            # A few columns that matter may be lost among many: try shorter lengths too.
            lengths = ["length_scale" in name for name in evidence.theta_names]
            starts.append(starts[0] - np.where(lengths, 1.0, 0.0))
    tol = _tolerance(options, evidence, TOLERANCE)
    with suitable_threads(len(on.rows)):
        optimum = maximise(evidence, hyperprior, starts, options.max_iter, tol, None, hopeless)
    return Candidate(structure, features, evidence, hyperprior, optimum)


def weigh_all(
    on: Comparison, climbed: list[Candidate], weighed: list[Candidate], pool: Parallel
) -> list[Candidate]:
    """Add to the weighed candidates those of the climbed ones that may get some weight; best first.

    Weighing takes as long as climbing, so those that others leave far behind are left out.
    """
    for start, stop in pairwise([0, *range(2, len(climbed) + BATCH, BATCH)]):
        # Rows and labels are those of the best so far, and so, nearly, is the posterior.
        near = weighed[0].fit if weighed else None
        hopeful = [c for c in climbed[start:stop] if not _is_hopeless(c, weighed)]
        weighed = weighed + list(pool(delayed(weigh)(on, c, near) for c in hopeful))
        weighed = sorted(weighed, key=lambda c: -c.log_evidence)
    return weighed


def weigh(on: Comparison, candidate: Candidate, near: BinaryFit | None = None) -> Candidate:
    """Weigh a tuned structure by its evidence; inference starts from ``near``."""
    hyperprior, optimum = candidate.hyperprior, candidate.optimum
    laplace = candidate.evidence.with_scheme("laplace")
    rng = np.random.RandomState(on.seed)
    with suitable_threads(len(on.rows)):
        try:
            fit = _infer(candidate.evidence, optimum, on.options, near, ROUGH)
            occam = log_occam(
                lambda theta: laplace(theta).gradient, hyperprior.precision, optimum.theta, rng
            )
        except NotPositiveDefinite:
            return candidate
    log_evidence = optimum.objective + occam
    if fit.inference.converged:  # else its evidence means nothing
        log_evidence = fit.log_evidence + hyperprior(optimum.theta)[0] + occam
    return replace(candidate, fit=fit, log_evidence=log_evidence)


def refine(options: Options, weighed: list[Candidate], pool: Parallel) -> list[Candidate]:
    """Tune the first structure further under its scheme, and move the others as it was moved.

    With 20 columns this is worth 0.02 of ROC AUC and 0.006 of log-loss, with few columns little.
    """
    leader, *others = weighed
    if not _can_move(leader.fit):
        return weighed
    evidence = leader.evidence.with_scheme(options.inference, ROUGH)
    limits = min(options.max_iter, N_REFINING), _tolerance(options, evidence, REFINED)
    with suitable_threads(len(evidence.points)):
        optimum = maximise(evidence, leader.hyperprior, [leader.optimum.theta], *limits)
    change = optimum.theta - leader.optimum.theta
    moved = _move(options, leader, leader, change)
    if moved is leader:
        return weighed
    return [moved, *pool(delayed(_move)(options, c, leader, change) for c in others)]


def _can_move(fit: BinaryFit | None) -> bool:
    """Whether there is a posterior that Laplace, whose optimum it is at, did not give."""
    return fit is not None and fit.scheme != "laplace" and fit.inference.converged


def _move(options: Options, candidate: Candidate, leader: Candidate, change: Array) -> Candidate:
    """Move a candidate as the leading one was moved, if that is better; its Occam factor stays."""
    old, optimum, log_prior = candidate.fit, candidate.optimum, candidate.hyperprior
    if old is None or not _can_move(old):
        return candidate
    theta = optimum.theta + carry(leader, change, candidate.evidence)
    theta = np.clip(theta, *candidate.evidence.bounds.T)
    try:
        fit = _infer(candidate.evidence, replace(optimum, theta=theta), options, old, ROUGH)
    except NotPositiveDefinite:
        return candidate
    objective = fit.log_evidence + log_prior(theta)[0]
    gain = objective - old.log_evidence - log_prior(optimum.theta)[0]
    if fit.scheme != old.scheme or not fit.inference.converged or not gain > 0.0:
        return candidate
    best = replace(optimum.best, theta=theta, objective=objective)
    optimum = replace(optimum, theta=theta, objective=objective, climbs=(best, *optimum.climbs[1:]))
    log_evidence = candidate.log_evidence + gain
    fit = replace(fit, optimum=optimum)
    return replace(candidate, optimum=optimum, fit=fit, log_evidence=log_evidence)


def average(weighed: list[Candidate], on: Comparison) -> Mixture:
    """The posteriors of all rows under the structures that have some weight."""
    members = []
    for candidate, share in shares(weighed):
        evidence, near = candidate.evidence, candidate.fit
        n_tuned = len(evidence.points)
        if n_tuned < len(on.rows):
            rows, near = label(on.rows, candidate.features, on.target), None
            evidence = Evidence(evidence.prior, rows.likelihood, rows.points, evidence.scheme)
        fit = _infer(evidence, candidate.optimum, on.options, near)
        fit = replace(fit, tuned_on=n_tuned)
        name = str(candidate.structure)
        members.append(Member(name, candidate.features, fit, share, candidate.log_evidence))
    return Mixture(tuple(members))


def shares(weighed: list[Candidate]) -> list[tuple[Candidate, float]]:
    """Candidates and their weights, heaviest first, negligible ones left out."""
    scores = np.array([c.log_evidence for c in weighed]) / TEMPERATURE
    if not np.isfinite(scores).any():
        scores = np.array([c.optimum.objective for c in weighed])
    share = softmax(scores)
    share[share < min(NEGLIGIBLE, share.max())] = 0.0
    share /= share.sum()
    order = np.argsort(-share, kind="stable")
    return [(weighed[i], float(share[i])) for i in order if share[i] > 0.0]


def _infer(
    evidence: Evidence,
    optimum: Optimum,
    options: Options,
    near: BinaryFit | None,
    tol: float | None = None,
) -> BinaryFit:
    """The posterior under the scheme, or under Laplace where that takes its place."""
    if not options.may_choose or len(evidence.points) <= N_LAPLACE:
        warm = None if near is None else near.posterior.start  # type: ignore[union-attr]
        try:
            fit = infer(evidence.with_scheme(options.inference, tol, warm), optimum)
            if fit.inference.converged or not options.may_choose:
                return fit
        except NotPositiveDefinite:
            if not options.may_choose:
                raise
    return infer(evidence.with_scheme("laplace"), optimum)


def _by_cost(climbed: list[Candidate]) -> list[Candidate]:
    """Those of few parameters first, which take the least time to weigh, then the best."""
    return sorted(climbed, key=lambda c: (len(c.optimum.theta), -c.optimum.objective))


def _is_hopeless(candidate: Candidate, weighed: list[Candidate]) -> bool:
    """Whether the weight of a structure would be negligible even if it gains as no other did."""
    alike = [c for c in weighed if c.structure.form == candidate.structure.form]
    gains = [c.log_evidence - c.optimum.objective for c in alike or weighed]
    evidences = [c.log_evidence for c in weighed]
    reach = candidate.optimum.objective + max(gains, default=0.0) + LENIENCE
    return bool(reach < max(evidences, default=-np.inf) + TEMPERATURE * np.log(NEGLIGIBLE))


def _tolerance(options: Options, evidence: Evidence, factor: float) -> float:
    return options.tol * max(1.0, factor / len(evidence.theta))


def carry(start: Candidate, change: Array, evidence: Evidence) -> Array:
    """A change of one structure's parameters as one of another's: by name, or the mean by role."""
    changes = dict(zip(start.evidence.theta_names, change, strict=True))
    by_role: dict[str, list[float]] = {}
    for name, value in changes.items():
        by_role.setdefault(_role(name), []).append(value)
    carried = np.zeros(len(evidence.theta))
    for i, name in enumerate(evidence.theta_names):
        alike = [] if "linear." in name else by_role.get(_role(name), [])
        carried[i] = changes[name] if name in changes else np.mean(alike or [0.0])
    return carried


def _role(name: str) -> str:
    """The process and the role of a parameter: f[0].rbf.length_scale[3] → f[0] length_scale."""
    process, *path = name.split(".")
    return f"{process} {path[-1].partition('[')[0]}" if path else process
