"""Learning the structure of a model: structures are tuned, weighed by evidence, and averaged.

Tuning is by Laplace, which makes so many fits affordable; weights and posteriors are by the scheme
asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logit, softmax

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.kernels import Intercept
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import Optimum, make_hyperprior, maximise, starting_points
from polyfid.learning.columns import Bins
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import BinaryFit, Member, Mixture, infer
from polyfid.learning.plan import Options, Target
from polyfid.learning.structures import (
    Structure,
    candidates,
    first_code,
    other_links,
    simpler,
    splittable,
)
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import NoisyLogit
from polyfid.rows import Points, Rows
from polyfid.rows.source import label

# Constants of the comparison, all chosen by ``python -m benchmarks structures`` and on other draws
# of the paper's sets.
#: Log evidences are divided by this before they become weights: they are approximate, and
#: structures fail in different places, so that an average that is too sure of one loses by it.
TEMPERATURE = 2.0
#: Structures of less weight than this are left out of the average.
NEGLIGIBLE = 0.05
#: Structures are tuned to this many times ``tol``, shared by the hyper-parameters, and the leading
#: one in the end to fewer.
TOLERANCE, REFINED = 1500.0, 200.0
#: With more rows than this structures are compared on a sample, and only the leading ones, at
#: most so many, are tuned on more.
N_COMPARED, N_LEADERS = 600, 3
#: Structures that are further behind than this, in nats, are neither refined nor weighed; and
#: labels that may be flipped are not tried where they start so far behind.
REACH, FAR = 6.0, 10.0
#: Shares of labels that are right, for a start.
PLAUSIBLE = 0.55, 0.95
#: Columns that may be singled out; no more are tried where the last ones lost so many nats.
N_SINGLED_OUT, PATIENCE = 6, 1.0
#: What two columns that do not matter one by one must gain together, in nats.
SURPRISE = 6.0
#: Variance of the intercepts of the model with which the search for columns begins.
EMPTY = 4.0
#: The leading structures whose other links are tried.
N_RELINKED = 2
#: Until structures are chosen, inference may end so many standard deviations from its fixed point.
ROUGH = 1e-2
#: With more rows than this Laplace, several times as fast, takes the place of EP if it may.
N_LAPLACE = 2000
#: Iterations of the leading structure under the scheme itself.
N_REFINING = 9


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
        return self.structure.log_prior(self.evidence.points.x.shape[1])


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
    hopeful = {c.structure: c for c in within_reach(climbed, climbed)}
    climbed += pool(
        delayed(climb)(on, structure, maps[structure], hopeful[simple])
        for structure, simple in refines.items()
        if simple in hopeful
    )
    climbed += single_out(on, [hopeful[s] for s in splittable(maps) if s in hopeful], pool)
    weighed = weigh_all(on, climbed, [], pool)
    leaders, links = weighed[:N_RELINKED], other_links(on.options, rows)
    relinked = pool(
        delayed(climb)(on, replace(c.structure, link=link), c.features, c)
        for c in leaders
        for link in links
        if link != "flips"
    )
    if "flips" in links:
        relinked += flip(on, leaders)
    return weigh_all(on, relinked, weighed, pool)


def flip(on: Comparison, leaders: list[Candidate]) -> list[Candidate]:
    """Structures of one function whose labels are flipped at random at the lower levels.

    Laplace has no such labels, and the scheme itself takes long: the first structure starts where
    flip rates can be expected, the others where the last one ended.
    """
    flipped: list[Candidate] = []
    for leader in leaders:
        structure = replace(leader.structure, link="flips")
        start, least = (flipped or [leader])[-1], leader.log_evidence - FAR
        flipped.append(climb(on, structure, leader.features, start, least))
        if not within_reach(flipped, [leader]):
            break
    best = max(flipped, key=_objective)
    if best.structure.columns and best.objective > leaders[0].log_evidence:
        flipped += _grow_further(on, best)  # it sees more clearly which columns matter
    return flipped


def within_reach(some: list[Candidate], others: list[Candidate]) -> list[Candidate]:
    """Those that are not far behind the best of the others."""
    best = max(map(_objective, others))
    return [c for c in some if c.objective > best - REACH]


def single_out(on: Comparison, climbed: list[Candidate], pool: Parallel) -> list[Candidate]:
    """Structures that give the few columns that matter most a kernel of their own.

    Columns are added one by one to the best structure, and the best choice is tried with others.
    """
    try:
        grown = _grow(on, max(climbed, key=_objective)) if climbed else []
    except NotPositiveDefinite:  # features or weights of extreme size
        grown = []
    if not grown:
        return []
    best = max(grown, key=_objective)
    columns, found_with = best.structure.columns, replace(best.structure, columns=())
    others = (c for c in climbed if c.structure != found_with)
    also = pool(
        delayed(climb)(on, replace(c.structure, columns=columns), c.features, best) for c in others
    )
    return [best, *also]


def _grow(on: Comparison, base: Candidate) -> list[Candidate]:
    """A structure with ever more columns singled out, as long as that does not lose."""
    d = base.evidence.points.x.shape[1]
    if d < 2:
        return []
    # The first column is the one by which a model without any would gain most.
    empty = base.structure.linked(Intercept(EMPTY), d, on.options)
    evidence = replace(base.evidence, prior=empty)
    last = _with_columns(on, base, [_most_relevant(evidence, evidence.theta, base)])
    if d > 2:
        # Two columns may matter together and neither alone. Many pairs gain a little by chance.
        pair = _with_columns(
            on, base, np.argsort(-_eagerness(on, base), kind="stable")[:2].tolist()
        )
        if pair.objective > max(base.objective, last.objective) + SURPRISE:
            last = pair
    return [last, *_grow_further(on, last)]


def _grow_further(on: Comparison, last: Candidate) -> list[Candidate]:
    """Structures with further columns, until one of them loses clearly."""
    best, grown = last.objective, []
    while len(last.structure.columns) < min(N_SINGLED_OUT, last.evidence.points.x.shape[1] - 1):
        column = _most_relevant(last.evidence, last.optimum.theta, last)
        last = _with_columns(on, last, [*last.structure.columns, column])
        grown.append(last)
        best = max(best, last.objective)
        if last.objective < best - PATIENCE:
            break
    return grown


def _with_columns(on: Comparison, before: Candidate, columns: Iterable[int]) -> Candidate:
    structure = replace(before.structure, columns=tuple(sorted(columns)))
    return climb(on, structure, before.features, before)


def _most_relevant(evidence: Evidence, theta: Array, last: Candidate) -> int:
    """The column by which a model of the rows would gain most, among those not singled out."""
    points, d = evidence.points, evidence.points.x.shape[1]
    bins = Bins.of(points.x, range(first_code(last.features, d), d))
    belief = evidence.fixed(theta, gradient=True)[2].belief
    loadings = last.evidence.at(last.optimum.theta)[0].loadings
    relevance = bins.relevance(belief, points, loadings[:, 0])
    relevance[list(last.structure.columns)] = -np.inf
    return int(np.argmax(relevance))


def _eagerness(on: Comparison, base: Candidate) -> Array:
    """How fast the evidence grows as the length-scale of one column becomes shorter, (d,)."""
    d = base.evidence.points.x.shape[1]
    prior = base.structure.prior(base.features, d, on.options, ard=True)
    evidence = Evidence(prior, base.evidence.likelihood, base.evidence.points, SCHEMES["laplace"])
    hyperprior = make_hyperprior(prior, evidence.likelihood, evidence.points, weak=True)
    theta = hyperprior.mean + carry(base, base.optimum.theta - base.hyperprior.mean, evidence)
    slope = evidence(theta).gradient
    lengths = np.array(["length_scale" in name for name in evidence.theta_names])
    return -slope[lengths].reshape(-1, d).sum(axis=0)


def _objective(candidate: Candidate) -> float:
    return candidate.objective


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
    options, labelled = on.options, label(on.rows, features, structure.target(on.target))
    points, likelihood = labelled.points, labelled.likelihood
    prior = structure.prior(features, points.x.shape[1], options)
    evidence = Evidence(prior, likelihood, points, SCHEMES["laplace"])
    if not likelihood.log_concave:
        evidence = evidence.with_scheme(options.inference, ROUGH)
    hyperprior = make_hyperprior(prior, likelihood, points, weak=True)
    if start is None:
        rng = np.random.RandomState(on.seed)
        starts, hopeless = starting_points(evidence, hyperprior, options, rng), 3.0
    else:
        # Parameters deviate from typical values as those of the other structure do.
        deviation = carry(start, start.optimum.theta - start.hyperprior.mean, evidence)
        starts, hopeless = [hyperprior.mean + deviation], 0.0
        if structure.link == "flips" != start.structure.link:
            starts = [_as_flipped(start, evidence, starts[0])]
    tol = _tolerance(options, evidence, TOLERANCE)
    limits = options.max_iter, tol, None, hopeless, least - structure.log_prior(points.x.shape[1])
    with suitable_threads(len(on.rows)):
        optimum = maximise(evidence, hyperprior, starts, *limits)
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
    right = start.fit.posterior.mean(top) * evidence.likelihood.y > 0.0  # type: ignore[attr-defined]
    for i, name in enumerate(evidence.theta_names):
        process, _, role = name.partition(".")
        if role.endswith("constant.value"):
            theta[i] = np.log(sum(a * np.exp(values[f"{p}.{role}"]) for p, a in shares.items()))
        elif process.startswith("reliability"):
            of_level = points.level == int(name.removeprefix("reliability[").removesuffix("]"))
            theta[i] = logit(np.clip(right[of_level].mean(), *PLAUSIBLE))
    return theta


def weigh_all(
    on: Comparison, climbed: list[Candidate], weighed: list[Candidate], pool: Parallel
) -> list[Candidate]:
    """Add to the weighed candidates the climbed ones that are within reach; best first."""
    hopeful = within_reach(climbed, climbed + weighed) if climbed else []
    if not weighed:
        hopeful.sort(key=_objective)
        weighed = [weigh(on, hopeful.pop())]
    # Rows and labels are those of the best so far, and so, nearly, is the posterior.
    near = weighed[0].fit
    weighed = weighed + list(pool(delayed(weigh)(on, c, near) for c in hopeful))
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


def refine(options: Options, weighed: list[Candidate], pool: Parallel) -> list[Candidate]:
    """Tune the first structure further under its scheme, and move the others as it was moved.

    With 20 columns this is worth 0.02 of ROC AUC and 0.006 of log-loss, with few columns little.
    """
    leader, *others = weighed
    if leader.structure.link == "flips" or not _can_move(leader.fit):
        return weighed  # it was tuned under its scheme
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
    members = []
    for candidate, share in shares(weighed):
        evidence, near = candidate.evidence, candidate.fit
        n_tuned = len(evidence.points)
        if n_tuned < len(on.rows):
            target = candidate.structure.target(on.target)
            rows, near = label(on.rows, candidate.features, target), None
            evidence = Evidence(evidence.prior, rows.likelihood, rows.points, evidence.scheme)
        fit = _infer(evidence, candidate.optimum, on.options, near)
        fit = replace(fit, tuned_on=n_tuned)
        name, flips = str(candidate.structure), ()
        if isinstance(fit.likelihood, NoisyLogit):
            flips = tuple((1.0 - fit.likelihood.sensitivity).tolist())
        member = Member(name, candidate.features, fit, share, candidate.log_evidence, flips)
        members.append(member)
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
    n, may_choose = len(evidence.points), options.may_choose and evidence.likelihood.log_concave
    if not may_choose or n <= N_LAPLACE:
        warm = None if near is None else near.posterior.start  # type: ignore[union-attr]
        try:
            fit = infer(evidence.with_scheme(options.inference, tol, warm), optimum)
            if fit.inference.converged or not may_choose:
                return fit
        except NotPositiveDefinite:
            if not may_choose:
                raise
    return infer(evidence.with_scheme("laplace"), optimum)


def _tolerance(options: Options, evidence: Evidence, factor: float) -> float:
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
