"""Learning the structure of a model: structures are tuned, weighed by evidence, and averaged.

In the evidence the hyper-parameters are integrated out (see `occam`). Tuning is by Laplace, which
makes so many fits affordable; then the leading structure is tuned further under the scheme asked
for, the others are moved as it was, and the posterior of each is found by that scheme.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import Optimum, maximise
from polyfid.learning.evidence import Evidence
from polyfid.learning.fit_options import Options, Target
from polyfid.learning.mixture import BinaryFit, Member, Mixture
from polyfid.learning.occam import log_occam
from polyfid.learning.structures import Structure, candidates, other_links
from polyfid.learning.tune import infer, make_hyperprior, starting_points
from polyfid.model.features import FeatureMap
from polyfid.model.prior import Prior
from polyfid.rows import Rows
from polyfid.rows.source import LabelledPoints, label

# Constants of the comparison, all chosen by ``python -m benchmarks structures``.
#: Log evidences are divided by this before they become weights: they are approximate, and
#: structures fail in different places, so that an average that is too sure of one loses by it.
TEMPERATURE = 2.0
#: Structures of less weight than this are left out of the average.
NEGLIGIBLE = 0.01
#: Structures are tuned to this many times ``tol``, shared by the hyper-parameters: what it leaves
#: is some hundredths of a log evidence.
TOLERANCE = 200.0
#: With more rows than this structures are compared on a sample, and only the leading ones, at
#: most so many, are tuned on more.
N_COMPARED, N_LEADERS = 600, 3
#: The leading structures whose other links are tried.
N_RELINKED = 2
#: Until structures are chosen, inference may end this many posterior standard deviations from its
#: fixed point, where the evidence is stationary.
ROUGH = 1e-3
#: With more rows than this Laplace, several times as fast, takes the place of EP if it may.
N_LAPLACE = 2000
#: Structures weighed between two decisions on which ones are still worth weighing.
BATCH = 4
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

    def points(self, features: FeatureMap) -> LabelledPoints:
        return label(self.rows, features, self.target)


@dataclass(frozen=True)
class Candidate:
    """A structure with tuned hyper-parameters; weighed, it has a fit and an evidence.

    ``evidence`` is that of the compared rows, by Laplace.
    """

    structure: Structure
    features: FeatureMap
    evidence: Evidence
    hyperprior: HyperPrior
    optimum: Optimum
    fit: BinaryFit | None = None
    log_evidence: float = -np.inf

    @property
    def gain(self) -> float:
        """What inference and the Occam factor add to the objective of the climb."""
        return self.log_evidence - self.optimum.objective


def learn(
    options: Options, rows: Rows, tuning: Rows, target: Target, rng: np.random.RandomState
) -> Mixture:
    """Compare the structures on the tuning rows, and average the best of them over all rows."""
    few = tuning.sample(N_COMPARED, rng)
    seed = int(rng.randint(2**31 - 1))
    pool = Parallel(n_jobs=options.n_jobs, prefer="processes")
    weighed = compare(Comparison(options, few, target, seed), rows, pool)
    if few is not tuning:
        leaders = [c for c, _ in shares(weighed)[:N_LEADERS]]
        on = Comparison(options, tuning, target, seed)
        weighed = list(pool(delayed(_tune_again)(on, c) for c in leaders))
    refined = refine(options, [c for c, _ in shares(weighed)], pool)
    return average(refined, Comparison(options, rows, target, seed))


def compare(on: Comparison, rows: Rows, pool: Parallel) -> list[Candidate]:
    """Climb and weigh all structures, then the leading ones with other links of the levels."""
    (structure, features), *others = candidates(rows, on.options.standardize)
    first = climb(on, structure, features)
    climbed = pool(delayed(climb)(on, s, f, first) for s, f in others)
    weighed = weigh_all(on, [first, *_by_height(climbed)], [], pool)
    relinked = pool(
        delayed(climb)(on, replace(c.structure, link=link), c.features, c)
        for c in _leaders(weighed)[:N_RELINKED]
        for link in other_links(c.evidence.prior, rows)
    )
    return weigh_all(on, _by_height(relinked), weighed, pool)


def climb(
    on: Comparison, structure: Structure, features: FeatureMap, start: Candidate | None = None
) -> Candidate:
    """Tune a structure by Laplace, from where another one ended if there is one."""
    options, labelled = on.options, on.points(features)
    prior = structure.prior(features, labelled.points.x.shape[1], options)
    evidence = Evidence(prior, labelled.likelihood, labelled.points, SCHEMES["laplace"])
    hyperprior = make_hyperprior(prior, labelled.likelihood, labelled.points, weak=True)
    with suitable_threads(len(on.rows)):
        if start is None:
            rng = np.random.RandomState(on.seed)
            starts = starting_points(evidence, hyperprior, options, rng)
        else:
            starts = [translate(start, evidence, hyperprior)]
            if structure.has_own_lengths and structure.link == "linked":
                # A few columns that matter may be lost among many: try shorter lengths too.
                lengths = ["length_scale" in name for name in evidence.theta_names]
                starts.append(starts[0] - np.where(lengths, 1.0, 0.0))
        tol = _tolerance(options, evidence)
        hopeless = 3.0 if start is None else 0.0
        optimum = maximise(evidence, hyperprior, starts, options.max_iter, tol, None, hopeless)
    return Candidate(structure, features, evidence, hyperprior, optimum)


def weigh_all(
    on: Comparison, climbed: list[Candidate], weighed: list[Candidate], pool: Parallel
) -> list[Candidate]:
    """Add to the weighed candidates those of the climbed ones that may get some weight.

    Weighing takes as long as climbing, so the promising ones come first, and those that others
    leave far behind are left out.
    """
    cuts = [0, *range(2, len(climbed) + BATCH, BATCH)]
    for start, stop in pairwise(cuts):
        # Rows and labels are those of the best so far, and so, nearly, is the posterior.
        near = _leaders(weighed)[0].fit if weighed else None
        hopeful = [c for c in climbed[start:stop] if not _is_hopeless(c, weighed)]
        weighed = weighed + list(pool(delayed(weigh)(on, c, near) for c in hopeful))
    return weighed


def weigh(on: Comparison, candidate: Candidate, near: BinaryFit | None = None) -> Candidate:
    """Find the evidence of a tuned structure under the scheme that is asked for.

    Inference starts from a fit of the same rows, if there is one.
    """
    hyperprior, optimum = candidate.hyperprior, candidate.optimum
    with suitable_threads(len(on.rows)):
        try:
            fit = _infer(candidate.evidence, optimum, on.options, near, ROUGH)
            laplace = candidate.evidence.with_scheme(SCHEMES["laplace"])
            rng = np.random.RandomState(on.seed)
            occam = log_occam(laplace, hyperprior, optimum.theta, rng)
        except NotPositiveDefinite:
            return candidate
    log_prior, _ = hyperprior(optimum.theta)
    log_z = fit.log_evidence
    if not fit.inference.converged:  # then it means nothing
        log_z = optimum.objective - log_prior
    return replace(candidate, fit=fit, log_evidence=log_z + log_prior + occam)


def refine(options: Options, weighed: list[Candidate], pool: Parallel) -> list[Candidate]:
    """Tune the first structure further under its scheme, and move the others as it was moved.

    EP's evidence pulls less towards large scales than Laplace's. With 20 columns this is worth
    0.02 of ROC AUC and 0.006 of log-loss; with few columns it changes little.
    """
    leader, *others = weighed
    if not _can_move(leader):
        return weighed
    evidence = leader.evidence.with_scheme(SCHEMES[options.inference])
    evidence.tol = ROUGH
    limits = min(options.max_iter, N_REFINING), _tolerance(options, evidence)
    with suitable_threads(len(evidence.points)):
        optimum = maximise(evidence, leader.hyperprior, [leader.optimum.theta], *limits)
    moved = _move(options, leader, optimum.theta)
    change = moved.optimum.theta - leader.optimum.theta
    if moved is leader:
        return weighed
    return [moved, *pool(delayed(_follow)(options, c, leader, change) for c in others)]


def _follow(options: Options, candidate: Candidate, leader: Candidate, change: Array) -> Candidate:
    """Move a structure as the leading one was moved."""
    if not _can_move(candidate):
        return candidate
    theta = candidate.optimum.theta + carry(leader, change, candidate.evidence)
    return _move(options, candidate, np.clip(theta, *candidate.evidence.bounds.T))


def _can_move(candidate: Candidate) -> bool:
    """Whether there is a posterior that Laplace, whose optimum it is at, did not find."""
    fit = candidate.fit
    return fit is not None and fit.scheme != "laplace" and fit.inference.converged


def _move(options: Options, candidate: Candidate, theta: Array) -> Candidate:
    """The candidate at other hyper-parameters, or as it was where they are no better.

    Its Occam factor stays that of the first ones, a little way off.
    """
    old, log_prior = candidate.fit, candidate.hyperprior
    optimum = replace(candidate.optimum, theta=theta)
    try:
        fit = _infer(candidate.evidence, optimum, options, old, ROUGH)
    except NotPositiveDefinite:
        return candidate
    if old is None or fit.scheme != old.scheme or not fit.inference.converged:
        return candidate
    objective = fit.log_evidence + log_prior(theta)[0]
    gain = objective - old.log_evidence - log_prior(candidate.optimum.theta)[0]
    if not gain > 0.0:
        return candidate
    best = replace(optimum.best, theta=theta, objective=objective)
    optimum = replace(optimum, objective=objective, climbs=(best, *optimum.climbs[1:]))
    return replace(
        candidate,
        optimum=optimum,
        fit=replace(fit, optimum=optimum),
        log_evidence=candidate.log_evidence + gain,
    )


def average(weighed: list[Candidate], on: Comparison) -> Mixture:
    """The posteriors of all rows under the structures that have some weight."""
    members = []
    for candidate, share in shares(weighed):
        evidence, near = candidate.evidence, candidate.fit
        n_tuned = len(evidence.points)
        if n_tuned < len(on.rows):
            labelled, near = on.points(candidate.features), None
            evidence = Evidence(
                evidence.prior, labelled.likelihood, labelled.points, evidence.scheme
            )
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
    share = np.exp(scores - scores.max())
    share /= share.sum()
    keep = share >= min(NEGLIGIBLE, share.max())
    share = np.where(keep, share, 0.0) / share[keep].sum()
    order = np.argsort(-share, kind="stable")
    return [(weighed[i], float(share[i])) for i in order if keep[i]]


def _tune_again(on: Comparison, candidate: Candidate) -> Candidate:
    """The candidate tuned and weighed on other rows."""
    return weigh(on, climb(on, candidate.structure, candidate.features, candidate))


def _infer(
    evidence: Evidence,
    optimum: Optimum,
    options: Options,
    near: BinaryFit | None,
    tol: float | None = None,
) -> BinaryFit:
    """The posterior under the scheme, or under Laplace where that takes its place."""
    laplace = evidence.with_scheme(SCHEMES["laplace"])
    if options.may_choose and len(evidence.points) > N_LAPLACE:
        return infer(laplace, optimum)
    evidence = evidence.with_scheme(SCHEMES[options.inference])
    evidence.tol = evidence.tol if tol is None else tol
    evidence.warm = near.posterior.start if near else None  # type: ignore[union-attr]
    try:
        fit = infer(evidence, optimum)
    except NotPositiveDefinite:
        if not options.may_choose:
            raise
        return infer(laplace, optimum)
    return infer(laplace, optimum) if options.may_choose and not fit.inference.converged else fit


def _by_height(climbed: Iterable[Candidate]) -> list[Candidate]:
    return sorted(climbed, key=lambda c: -c.optimum.objective)


def _leaders(weighed: list[Candidate]) -> list[Candidate]:
    return sorted(weighed, key=lambda c: -c.log_evidence)


def _is_hopeless(candidate: Candidate, weighed: list[Candidate]) -> bool:
    """Whether the weight of a structure would be negligible even if it gains as no other did."""
    if not weighed:
        return False
    reach = candidate.optimum.objective + max(c.gain for c in weighed) + LENIENCE
    enough = max(c.log_evidence for c in weighed) + TEMPERATURE * np.log(NEGLIGIBLE)
    return bool(reach < enough)


def _tolerance(options: Options, evidence: Evidence) -> float:
    return options.tol * max(1.0, TOLERANCE / len(evidence.theta))


def translate(start: Candidate, evidence: Evidence, hyperprior: HyperPrior) -> Array:
    """Where the optimum of one structure lies in the parameters of another.

    What deviates from the typical value there deviates as much here.
    """
    deviation = start.optimum.theta - start.hyperprior.mean
    return hyperprior.mean + carry(start, deviation, evidence)


def carry(start: Candidate, change: Array, evidence: Evidence) -> Array:
    """A change of one structure's parameters as one of another's.

    It goes by the names of parameters, or is the average over those of the same role. Parameters
    that have no counterpart stay.
    """
    names = _names(start.evidence.prior) + evidence.likelihood.theta_names
    changes = dict(zip(names, change, strict=True))
    by_role: dict[str, list[float]] = {}
    for name, value in changes.items():
        by_role.setdefault(_role(name), []).append(value)
    carried = np.zeros(len(evidence.theta))
    for i, name in enumerate(_names(evidence.prior) + evidence.likelihood.theta_names):
        if name in changes:
            carried[i] = changes[name]
        elif "linear." not in name:
            carried[i] = float(np.mean(by_role.get(_role(name), [0.0])))
    return carried


def _names(prior: Prior) -> tuple[str, ...]:
    """Names of parameters with processes by number, which priors of different kinds share."""
    return prior.mixing.names + tuple(
        f"{s}.{name}" for s, kernel in enumerate(prior.kernels) for name in kernel.theta_names
    )


def _role(name: str) -> str:
    """The process and the role of a parameter: 0.rbf.length_scale[3] → 0 length_scale."""
    process, *path = name.split(".")
    return f"{process} {path[-1].partition('[')[0]}" if path else process
