"""Learning the structure of a model: structures are tuned, weighed by evidence, and averaged.

Tuning is by Laplace, which makes so many fits affordable; weights and posteriors are by the scheme
asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from joblib import delayed
from scipy.special import softmax

from polyfid.arrays import Array
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.inference.posterior import Posterior
from polyfid.learning.candidates import (
    ROUGH,
    Candidate,
    Comparison,
    Workers,
    by_objective,
    carry,
    climb,
    tolerance,
)
from polyfid.learning.climb import Optimum, maximise
from polyfid.learning.columns import grow_further, single_out
from polyfid.learning.evidence import Evidence
from polyfid.learning.left_out import expected_labels
from polyfid.learning.mixture import NEGLIGIBLE, BinaryFit, Member, Mixture, infer
from polyfid.learning.plan import Options, Target
from polyfid.learning.spread import Spread, find_spread
from polyfid.learning.structures import candidates, other_links, simpler, splittable
from polyfid.model.likelihoods import NoisyLogit
from polyfid.rows import Rows
from polyfid.rows.source import label

# Constants of the comparison, all chosen by ``python -m benchmarks structures`` and on other draws
# of the paper's sets.
#: Log evidences are divided by this before they become weights: they are approximate, and
#: structures fail in different places, so that an average that is too sure of one loses by it.
TEMPERATURE = 2.0
#: The leading structure is tuned, in the end, to this many times ``tol``.
REFINED = 200.0
#: With more rows than this structures are compared on a sample, and only the leading ones, at
#: most so many, are tuned on more.
N_COMPARED, N_LEADERS = 400, 2
#: Structures that are further behind than this, in nats, are neither refined nor weighed; and
#: from so far behind neither columns that are singled out nor flipped labels are tried.
REACH, FAR = 3.0, 10.0
#: The leading structures whose other links are tried, and those whose labels may be flipped; other
#: feature maps count for so many nats, because structures that are alike fail in the same places.
N_RELINKED, N_FLIPPED, VARIETY = 2, 3, 2.0
#: With more rows than this Laplace, several times as fast, takes the place of EP if it may.
N_LAPLACE = 2000
#: Forms that go with a boosted mean.
SMOOTH = ("isotropic", "soft")
#: Iterations of the leading structure under the scheme itself.
N_REFINING = 9


def learn(
    options: Options,
    rows: Rows,
    tuning: Rows,
    target: Target,
    rng: np.random.RandomState,
    report: Callable[[int, int], None] | None = None,
) -> Mixture:
    """Compare the structures on the tuning rows, and average the best of them over all rows.

    ``report`` is told how many structures are tuned, and how many there are to tune as far as is
    known.
    """
    refined, on = _rank(options, rows, tuning, target, rng, report)
    mixture = average(refined, replace(on, rows=rows))
    leader = shares(refined)[0][0]
    mixture = replace(mixture, spread=spread(leader))
    if not options.boosted or leader.structure.boosted:
        return mixture
    return or_boosted(mixture, leader, on, replace(on, rows=rows))


def lead(options: Options, rows: Rows, target: Target, rng: np.random.RandomState) -> Candidate:
    """The structure that leads on these rows, for fits that keep one."""
    return shares(_rank(options, rows, rows, target, rng)[0])[0][0]


def _rank(
    options: Options,
    rows: Rows,
    tuning: Rows,
    target: Target,
    rng: np.random.RandomState,
    report: Callable[[int, int], None] | None = None,
) -> tuple[list[Candidate], Comparison]:
    """The structures that have some weight, tuned on the tuning rows, and how they were compared.

    Feature maps are learnt from all rows.
    """
    few = tuning.sample(N_COMPARED, rng)
    on = Comparison(options, few, target, int(rng.randint(2**31 - 1)))
    pool = Workers(options.n_jobs, report)
    weighed = compare(on, rows, pool)
    if few is not tuning:
        on, leaders = replace(on, rows=tuning), shares(weighed)[:N_LEADERS]
        climbed = pool.tune(delayed(climb)(on, c.structure, c.features, c) for c, _ in leaders)
        weighed = pool(delayed(weigh)(on, c) for c in climbed)
    return refine(options, [c for c, _ in shares(weighed)], pool), on


def or_boosted(mixture: Mixture, leader: Candidate, on: Comparison, of_all: Comparison) -> Mixture:
    """The mixture, or its first structure with a boosted mean, or both, by what labels they expect.

    Evidence cannot decide: it counts what a function cost to learn, and trees have learnt before.
    Each label is expected from all others instead, under the mixture's first member and under the
    boosted structure.
    """
    structure = replace(leader.structure, boosted=on.options.boosted)
    try:
        boosted = weigh(on, climb(on, structure, leader.features, leader))
        with_trees = average([boosted], of_all)
    except NotPositiveDefinite:
        return mixture
    fits = [m.best.fit for m in (mixture, with_trees)]
    if not with_trees.best.fit.inference.converged:
        return mixture
    share = softmax([leave_one_out(fit) / TEMPERATURE for fit in fits])
    share = np.where(share < NEGLIGIBLE, 0.0, share) / share[share >= NEGLIGIBLE].sum()
    if not share[0]:
        return replace(with_trees, spread=spread(boosted))
    members = [
        replace(member, weight=float(weight * member.weight))
        for part, weight in zip((mixture, with_trees), share, strict=True)
        for member in part.members
        if weight
    ]
    members.sort(key=lambda member: -member.weight)
    return replace(mixture, members=tuple(members))


def leave_one_out(fit: BinaryFit) -> float:
    """The log probability of every label given all others, summed over the rows that have one."""
    posterior = fit.posterior
    assert isinstance(posterior, Posterior)
    copies = np.where(fit.likelihood.is_number, 0.0, np.maximum(fit.likelihood.weight, 1.0))
    return float(copies @ expected_labels(posterior, posterior.points, fit.likelihood))


def compare(on: Comparison, rows: Rows, pool: Workers) -> list[Candidate]:
    """Climb and weigh all structures, then the leading ones with other links of the levels."""
    maps = candidates(rows, on.options.standardize)
    boosted = on.options.boosted if on.options.mean == "boosted" else ()
    if boosted:  # steps and columns that matter are for trees
        maps = {replace(s, boosted=boosted): of for s, of in maps.items() if s.form in SMOOTH}
    refines = {structure: simpler(structure, maps) for structure in maps}
    roots = [structure for structure in maps if refines[structure] is None]
    pool.total = len(maps)
    first = climb(on, roots[0], maps[roots[0]])
    pool.tuned()
    climbed = [first, *pool.tune(delayed(climb)(on, s, maps[s], first) for s in roots[1:])]
    hopeful = {c.structure: c for c in within(REACH, climbed, climbed)}
    climbed += pool.tune(
        delayed(climb)(on, structure, maps[structure], hopeful[simple])
        for structure, simple in refines.items()
        if simple in hopeful
    )
    if not boosted:
        by_column = [c for c in within(FAR, climbed, climbed) if c.structure in splittable(maps)]
        climbed += single_out(on, within(REACH, by_column, by_column), pool)
    weighed = weigh_all(on, climbed, [], pool)
    links = other_links(on.options, rows)
    if "flips" in links:
        links.remove("flips")
        weighed = weigh_all(on, flip(on, leading(weighed, N_FLIPPED)), weighed, pool)
    # Where labels are flipped at random, other links of what is far behind by now gain too little.
    least = weighed[0].log_evidence - REACH
    linked = [c for c in weighed if c.structure.link == "linked" and c.log_evidence > least]
    relinked = pool.tune(
        delayed(climb)(on, replace(c.structure, link=link), c.features, c)
        for c in leading(linked, N_RELINKED)
        for link in links
    )
    return weigh_all(on, relinked, weighed, pool)


def leading(weighed: list[Candidate], n: int) -> list[Candidate]:
    """The best n candidates, other feature maps first unless they are much worse."""
    chosen: list[Candidate] = []
    left = list(weighed)
    while left and len(chosen) < n:
        maps = {c.structure.features for c in chosen}
        scores = [c.log_evidence - VARIETY * (c.structure.features in maps) for c in left]
        chosen.append(left.pop(int(np.argmax(scores))))
    return chosen


def flip(on: Comparison, leaders: list[Candidate]) -> list[Candidate]:
    """Structures of one function whose labels are flipped at random at the lower levels.

    Laplace has no such labels, and the scheme itself takes long: the first structure starts where
    flip rates can be expected, the others where the last one ended.
    """
    flipped: list[Candidate] = []
    for leader in leaders:
        if leader.fit is None:  # there is no posterior to start from
            continue
        structure = replace(leader.structure, link="flips")
        start, least = (flipped or [leader])[-1], leader.log_evidence - FAR
        flipped.append(climb(on, structure, leader.features, start, least))
        if not within(REACH, flipped, [leader]):
            break
    best = max(flipped, key=by_objective, default=leaders[0])
    if best.structure.columns and best.objective > leaders[0].log_evidence:
        with suppress(NotPositiveDefinite):  # it sees more clearly which columns matter
            flipped += grow_further(on, best)
    return flipped


def within(reach: float, some: list[Candidate], others: list[Candidate]) -> list[Candidate]:
    """Those that are not further behind the best of the others."""
    best = max(map(by_objective, others), default=0.0)
    return [c for c in some if c.objective >= best - reach]


def weigh_all(
    on: Comparison, climbed: list[Candidate], weighed: list[Candidate], pool: Workers
) -> list[Candidate]:
    """Add to the weighed candidates the climbed ones that are within reach; best first."""
    hopeful = within(REACH, climbed, climbed + weighed) if climbed else []
    if not weighed:
        hopeful.sort(key=by_objective)
        weighed = [weigh(on, hopeful.pop())]
    # Rows and labels are those of the best so far, and so, nearly, is the posterior; but labels
    # that may be flipped have one of their own, where the climb ended.
    near = {c.structure: None if c.structure.link == "flips" else weighed[0].fit for c in hopeful}
    weighed = weighed + pool(delayed(weigh)(on, c, near[c.structure]) for c in hopeful)
    return sorted(weighed, key=lambda c: -c.log_evidence)


def weigh(on: Comparison, candidate: Candidate, near: BinaryFit | None = None) -> Candidate:
    """Weigh a tuned structure by its evidence; inference starts from ``near``."""
    hyperprior, optimum = candidate.hyperprior, candidate.optimum
    with suitable_threads(len(on.rows)):
        try:
            fit = _infer(candidate.evidence, optimum, on.options, near, ROUGH)
        except NotPositiveDefinite:
            return candidate
    if not fit.inference.converged:  # its evidence means nothing, that of Laplace something
        laplace = candidate.evidence.likelihood.log_concave
        return (
            replace(candidate, fit=fit, log_evidence=candidate.objective) if laplace else candidate
        )
    log_evidence = fit.log_evidence + hyperprior(optimum.theta)[0] + candidate.log_prior
    return replace(candidate, fit=fit, log_evidence=log_evidence)


def refine(options: Options, weighed: list[Candidate], pool: Workers) -> list[Candidate]:
    """Tune the first structure further under its scheme, and move the others as it was moved.

    With 20 columns this is worth 0.02 of ROC AUC and 0.006 of log-loss, with few columns little.
    """
    leader, *others = weighed
    if leader.structure.link == "flips" or not _can_move(leader.fit):
        return weighed  # it was tuned under its scheme
    evidence = leader.evidence.with_scheme(options.inference, ROUGH)
    limits = min(options.max_iter, N_REFINING), tolerance(options, evidence, REFINED)
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
    """Move a candidate as the leading one was moved, if that is better."""
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
    members: list[Member] = []
    near: BinaryFit | None
    for candidate, share in shares(weighed):
        evidence, near = candidate.evidence, candidate.fit
        n_tuned = len(evidence.points)
        if n_tuned < len(on.rows):
            target = candidate.structure.target(on.target)
            boosted = bool(candidate.structure.boosted)
            rows = label(on.rows, candidate.features, target, boosted)
            # Rows and labels are those of the first member, and so, nearly, is the posterior.
            near = members[0].fit if members else None
            evidence = Evidence(evidence.prior, rows.likelihood, rows.points, evidence.scheme)
        fit = _infer(evidence, candidate.optimum, on.options, near)
        fit = replace(fit, tuned_on=n_tuned)
        name, flips = str(candidate.structure), ()
        if isinstance(fit.likelihood, NoisyLogit):
            flips = tuple((1.0 - fit.likelihood.sensitivity).tolist())
        boosted = bool(candidate.structure.boosted)
        evidence_of = candidate.log_evidence
        member = Member(name, candidate.features, fit, share, evidence_of, flips, boosted)
        members.append(member)
    return Mixture(tuple(members))


def spread(leader: Candidate) -> Spread | None:
    """What is added by hyper-parameters that are known from the compared rows only."""
    evidence = leader.evidence
    if leader.fit is not None:
        start = leader.fit.posterior.start  # type: ignore[union-attr]
        evidence = evidence.with_scheme(leader.fit.scheme, warm=start)
    return find_spread(evidence, leader.hyperprior, leader.optimum.theta)


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
    n, may_choose = len(evidence.points), options.may_choose and evidence.likelihood.log_concave
    warm = None if evidence.likelihood.log_concave else evidence.warm
    warm = warm if near is None else near.posterior.start  # type: ignore[union-attr]
    if not may_choose or n <= N_LAPLACE:
        try:
            fit = infer(evidence.with_scheme(options.inference, tol, warm), optimum)
            if fit.inference.converged or not may_choose:
                return fit
        except NotPositiveDefinite:
            if not may_choose:
                raise
    return infer(evidence.with_scheme("laplace", tol, warm), optimum)
