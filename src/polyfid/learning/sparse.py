"""Fits with inducing points, for many rows.

A few rows give the structure and a start, by exact inference; the lower bound of a sample tunes the
hyper-parameters, and passes over all rows, wherever they are, give the posterior. Of large levels
trees learn first, from all rows in memory. They carry the bulk of what these know, and the Gaussian
processes, which go on from there, see a part of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import Report
from polyfid.inference.inducing import Inducing, SparseBelief, choose
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.loop import Outcome
from polyfid.inference.posterior import SparsePosterior
from polyfid.learning.boosted import Boosting, boost
from polyfid.learning.candidates import Candidate
from polyfid.learning.climb import Optimum, make_hyperprior, maximise, tune
from polyfid.learning.evidence import MovableEvidence, SparseEvidence, SparseFixed
from polyfid.learning.fit import GIVEN, check_tuning, evidence_of, plain_features, spread_of
from polyfid.learning.left_out import Part, average_parts, part_of
from polyfid.learning.mixture import BinaryFit, Member, Mixture
from polyfid.learning.plan import N_ROWS_BOOSTED, N_TUNING_SPARSE, Options, Target
from polyfid.learning.progress import Callback, Progress
from polyfid.learning.search import lead
from polyfid.learning.search import spread as spread_of_leader
from polyfid.learning.spread import Spread
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.model.trees import BoostedMean
from polyfid.rows import Points, Rows
from polyfid.rows.source import InMemory, LabelledPoints, Source, View, label

SomeSource = TypeVar("SomeSource", bound=Source)

#: States of a model whose tuning has not ended; in the first one inducing points move still.
MOVING: Outcome = "moving points"
TUNING: Outcome = "tuning"

# Constants of sparse fits, chosen by ``python -m benchmarks many_rows`` and ``points``.
#: Rows from which a start is found by exact inference, and those from which structure is learnt.
N_START, N_STRUCTURE = 600, 1500
#: The same with a boosted mean, and rows that its Gaussian processes are tuned on.
N_STRUCTURE_BOOSTED, N_TUNING_BOOSTED = 1000, 6000
#: Rows that a model without trees is tuned on, beside one with trees of more than it can see.
N_TUNING_BESIDE = 3000
#: From this weight on it is worth passes over so many rows at most.
WORTH_MORE, N_ROWS_MORE = 0.25, 100_000
#: Rows that a sparse posterior keeps, to show what rows are like.
N_KEPT = 2000
#: How far a belief may be from its fixed point, in standard deviations, while tuning and in the
#: end: half the square of it is what the bound lacks. Passes over very many rows are dear.
TUNING_TOL, FINAL_TOL, ROUGH_TOL = 0.05, 1e-5, 0.02
N_ROUGH = 15_000
#: While inducing points move, which is a rough climb anyway.
MOVING_TOL = 0.2
#: The bound of 100 rows is climbed to this many times ``tol``, and that of more rows to a multiple
#: that grows with the root of their number, as slopes do that are the same share of a posterior
#: standard deviation of the hyper-parameters.
TOLERANCE, N_TOLERANCE = 25.0, 100.0
MAX_PASSES = 50
#: Steps in which inducing points move, and those of either stage of tuning where a model without
#: trees is averaged with one that has learnt from more rows: further ones gain nothing.
MOVES, STEPS_BESIDE = 15, 2


def fit_sparse(
    options: Options,
    source: Source,
    rng: np.random.RandomState,
    before: Sequence[Mixture] = (),
    callback: Callback | None = None,
) -> list[Mixture]:
    """Inducing points for all rows; ``before`` has models to continue, of some classes or all."""
    known = source.in_memory
    source = _sampled(source, options, rng)
    check_tuning(source.sample, options)
    options = options.suited_to(source.sample)
    mixtures = list(before)
    assert isinstance(options.n_inducing, tuple)
    # Once for all of a fit, as in `_fit_class`.
    with suitable_threads(sum(options.n_inducing)):
        for turn, positive in enumerate(options.targets):
            seed = np.random.RandomState(rng.randint(2**31 - 1))
            target = Target.of(options, source.sample, positive)
            report = _Reporter(callback, mixtures, turn, len(options.targets))
            earlier = before[turn] if turn < len(before) else None
            report.keep(_fit_sparsely(options, source, known, target, seed, earlier, report))
    return mixtures


def _fit_sparsely(
    options: Options,
    source: Source,
    known: Rows,
    target: Target,
    rng: np.random.RandomState,
    earlier: Mixture | None,
    report: _Reporter,
) -> Mixture:
    """The model of one class: with a boosted mean, without, or both if trees may be left out."""
    counts = np.bincount(known.level, minlength=options.n_levels)
    if earlier is None:
        levels = options.large_levels(counts.tolist())
        boosting = boost(known, levels, target, report.trees, source.forester)
    else:
        mean = earlier.mean
        boosting = None if mean is None else Boosting.of(mean, known, source.forester)
    if boosting is None:
        structure = _Start(options, source.sample, target, N_STRUCTURE, rng)
        return _fit_part(options, source, target, rng, structure, earlier, report).mixture
    both = options.mean == "auto"
    own = _boosted(known, boosting, options, rng)
    is_whole = len(own.rows) == len(known)
    n_structure = N_STRUCTURE if is_whole else N_STRUCTURE_BOOSTED
    structure = _Start(options, own.sample, target, n_structure, rng)
    of_trees = replace(
        options,
        boosted=boosting.mean.levels,
        mean="boosted",
        n_inducing=options.n_boosted,
    )
    before = _part_of(earlier, boosted=True)
    part = _fit_part(of_trees, own, target, rng, structure, before, report, boosting.mean, both)
    if not both:
        return part.mixture
    # The first part is kept until both are there.
    before, report = _part_of(earlier, boosted=False), replace(report, keeps=False)
    if is_whole:
        own = _sampled(own, options, rng)
    else:
        own = _sampled(own, options, rng, N_TUNING_BESIDE)
        options = replace(options, brief=True)
    beside = _fit_part(options, own, target, rng, structure, before, report, None, both)
    mixture = average_parts(part, beside)
    if is_whole or sum(m.weight for m in mixture.members if not m.boosted) < WORTH_MORE:
        return mixture
    # Smooth functions, of which Gaussian processes learn from more rows.
    more = _in_memory(known.sample(N_ROWS_MORE, rng), options)
    fixed = replace(options, optimise=False)
    again = _fit_part(fixed, more, target, rng, structure, beside.mixture, report).mixture.best
    members = (m if m.boosted else replace(again, weight=m.weight) for m in mixture.members)
    return replace(mixture, members=tuple(members))


def _part_of(mixture: Mixture | None, boosted: bool) -> Mixture | None:
    """The member of an earlier fit with a boosted mean or without, if there is one."""
    members = () if mixture is None else mixture.members
    own = [replace(m, weight=1.0) for m in members if m.boosted == boosted]
    if mixture is None or not own:
        return None
    return replace(mixture, members=(own[0],), mean=mixture.mean if boosted else None)


def _fit_part(
    options: Options,
    source: Source,
    target: Target,
    rng: np.random.RandomState,
    start: _Start,
    earlier: Mixture | None,
    report: _Reporter,
    mean: BoostedMean | None = None,
    weighed: bool = False,
) -> Part:
    """A sparse model; if it is ``weighed``, with how probable its labels are, each left out."""
    belief, state = None, MOVING
    if earlier is None or (sparse := earlier.best.fit.sparse) is None:
        model = _begin(start, options, source, target, rng, mean)
        if options.optimise:
            report.keep(model.mixture(SparseBelief.prior(model.inducing.total), None, state))
            report.tuning(np.nan)
    else:
        model, state = _go_on(earlier, source, target), earlier.best.fit.inference.outcome
        if state not in (MOVING, TUNING):
            belief = sparse.belief
    if options.optimise:
        model = _tune(model, options, report, may_move=state == MOVING)
    rows = source.view(model.features, target, model.mean is not None)
    mixture = _passes(model, belief, rows, report)
    return part_of(mixture, rows, weighed)


def _sampled(
    source: SomeSource, options: Options, rng: np.random.RandomState, default: int = N_TUNING_SPARSE
) -> SomeSource:
    """The source with a sample of the rows in memory to tune on."""
    size = options.tuning_size(default)
    return replace(source, sample=source.in_memory.sample(size, rng))


def _boosted(
    rows: Rows, boosting: Boosting, options: Options, rng: np.random.RandomState
) -> InMemory:
    """The rows from which Gaussian processes go on where trees have learnt."""
    some = boosting.extend(boosting.spared(rows).sample(N_ROWS_BOOSTED, rng))
    return _sampled(_in_memory(some, options), options, rng, N_TUNING_BOOSTED)


def _in_memory(rows: Rows, options: Options) -> InMemory:
    """A source of these rows."""
    total = np.bincount(rows.level, rows.weight, options.n_levels).astype(float)
    return InMemory(rows, total, rows, options.n_jobs)


@dataclass
class _Reporter:
    """Tells a callback of every pass for the model of one class."""

    callback: Callback | None
    mixtures: list[Mixture]
    turn: int
    n_turns: int
    tuning_passes: int = -1  # the first step is the start
    keeps: bool = True

    def keep(self, mixture: Mixture) -> None:
        """Put the model of the class, as it is now, among the models of all."""
        if not self.keeps:
            return
        self.mixtures[self.turn : self.turn + 1] = [mixture]

    def tuning(self, bound: float) -> None:
        self.tuning_passes += 1
        self._tell("tuning", self.tuning_passes, None, bound)

    def trees(self, done: int, total: int) -> None:
        self._tell("trees", done, total, np.nan)

    def passes(self, mixture: Mixture) -> None:
        self.keep(mixture)
        fit = mixture.best.fit
        self._tell("passes", len(fit.inference.bounds), MAX_PASSES, fit.log_evidence)

    def _tell(self, stage: str, done: int, total: int | None, value: float) -> None:
        if self.callback is not None:
            models = tuple(self.mixtures)
            self.callback(Progress(stage, done, total, value, models, self.turn, self.n_turns))


@dataclass(frozen=True)
class _SparseModel:
    """The model of one class without a posterior; ``factor`` is all rows per row, by level.

    ``spread`` is that of the few rows with which the fit began: small levels, of which most is
    unknown, are among them whole.
    """

    name: str
    features: FeatureMap
    prior: Prior
    rows: LabelledPoints
    inducing: Inducing
    optimum: Optimum | None
    factor: Array
    spread: Spread | None
    mean: BoostedMean | None = None

    @cached_property
    def kept(self) -> tuple[Points, Likelihood]:
        """Some rows of the sample, of all levels, with weights for all rows that there are."""
        some, n_levels = self.rows.sample(N_KEPT, np.random.RandomState(0)), len(self.factor)
        here, all_rows = (
            np.bincount(rows.points.level, rows.likelihood.weight, n_levels)
            for rows in (some, self.rows)
        )
        factor = self.factor * np.divide(all_rows, here, out=np.ones(n_levels), where=here > 0.0)
        return some.points, some.likelihood.times(factor[some.points.level])

    def evidence(
        self, rows: View, kind: type[SparseEvidence] = SparseEvidence, tol: float = TUNING_TOL
    ) -> SparseEvidence:
        """The bound of these rows, as a function of the model's parameters."""
        return kind(self.prior, rows, self.inducing, tol, MAX_PASSES)

    def mixture(
        self, belief: SparseBelief, fixed: SparseFixed | None, state: Outcome = "under way"
    ) -> Mixture:
        """The fit with a belief; ``fixed`` is the last pass over all rows, if there was one."""
        n = n_rows = len(self.rows.points)
        report, bound = Report(state, 0, np.inf), np.nan
        if fixed is not None:
            report, bound, n_rows = fixed.report, fixed.bound, fixed.sums.n_rows
        points, labels = self.kept
        fit = BinaryFit(
            SparsePosterior(self.prior, self.inducing, belief, points, n_rows),
            labels,
            bound,
            report,
            self.optimum,
            self.prior.theta_names + labels.theta_names,
            n,
            "variational",
        )
        member = Member(self.name, self.features, fit, boosted=self.mean is not None)
        return Mixture((member,), self.spread, self.mean)


def _passes(
    model: _SparseModel, belief: SparseBelief | None, rows: View, report: _Reporter
) -> Mixture:
    """The posterior of the rows; passes begin with a belief, if there is one."""
    n_rows = float(model.factor[model.rows.points.level].sum())
    evidence = model.evidence(rows, tol=FINAL_TOL if n_rows < N_ROUGH else ROUGH_TOL)
    evidence.warm = _expected_belief(model) if belief is None else belief
    report.passes(model.mixture(evidence.warm, None))
    evidence.watch = lambda _, fixed: report.passes(model.mixture(_next(fixed), fixed))
    theta = np.concatenate([model.prior.theta, model.rows.likelihood.theta])
    _, fixed = evidence.fixed(theta)
    return model.mixture(fixed.belief, fixed)


@dataclass(frozen=True)
class _Start:
    """What a few rows say of structure and hyper-parameters, by exact inference without trees.

    Beside margins, few rows seem to need no functions at all. Models with trees and without begin
    with the same structure.
    """

    options: Options
    sample: Rows
    target: Target
    n_structure: int
    rng: np.random.RandomState

    @cached_property
    def exact(self) -> Options:
        """Laplace is fast, and good enough for a start."""
        if not self.options.is_log_concave:
            return self.options
        return replace(self.options, inference="laplace", may_choose=False)

    @cached_property
    def leader(self) -> tuple[Candidate, Spread | None]:
        """The leading structure, and what is added by hyper-parameters that are not known."""
        few = self.sample.sample(self.n_structure, self.rng)
        # Few rows cannot say that levels are the same or unrelated; co-kriging comes to either
        # where many rows say so.
        plain = replace(self.exact, links=(), boosted=(), mean=None)
        with suitable_threads(len(few)):
            leader = lead(plain, few, self.target, self.rng)
            return leader, spread_of_leader(leader)

    @cached_property
    def features(self) -> FeatureMap:
        """Those of the leading structure, learnt from more rows."""
        own, sample = self.leader[0].features, self.sample
        features = type(own).of(sample.x, sample.weight) or own
        return own if features(sample.x[:1]).shape != own(sample.x[:1]).shape else features


def _begin(
    start: _Start,
    options: Options,
    source: Source,
    target: Target,
    rng: np.random.RandomState,
    mean: BoostedMean | None,
) -> _SparseModel:
    """Structure and hyper-parameters to begin with, and inducing points."""
    sample, boosted = source.sample, mean is not None
    optimum: Optimum | None
    if options.learns_structure:
        (leader, spread), features = start.leader, start.features
        structure = replace(leader.structure, boosted=options.boosted)
        name, optimum = str(structure), leader.optimum
        label_theta = leader.evidence.at(leader.optimum.theta)[1].theta
        prior = structure.prior(features, leader.n_columns, options)
        prior = prior.with_theta(leader.optimum.theta)
    else:
        options = replace(start.exact, boosted=options.boosted)
        few = sample.sample(N_START, rng)
        name, features = GIVEN, plain_features(options, sample)
        evidence = evidence_of(options, features, label(few, features, target, boosted))
        optimum = tune(evidence, options, rng)
        prior, likelihood = evidence.at(evidence.theta if optimum is None else optimum.theta)
        label_theta = likelihood.theta
        spread = None
        if options.weak_prior:
            spread = spread_of(evidence, optimum)
    assert isinstance(options.n_inducing, tuple)
    rows = _labelled(sample, features, target, label_theta, boosted)
    inducing = choose(rows.points, prior, options.n_inducing, random_state=rng)
    factor = source.rows_per_sample_row
    return _SparseModel(name, features, prior, rows, inducing, optimum, factor, spread, mean)


def _go_on(before: Mixture, source: Source, target: Target) -> _SparseModel:
    """The model of an earlier fit, for the rows that there are now."""
    name, fit, features = before.best.name, before.best.fit, before.best.features
    assert fit.sparse is not None
    boosted = before.mean is not None
    rows = _labelled(source.sample, features, target, fit.likelihood.theta, boosted)
    factor, inducing = source.rows_per_sample_row, fit.sparse.inducing
    return _SparseModel(
        name, features, fit.prior, rows, inducing, fit.optimum, factor, before.spread, before.mean
    )


def _labelled(
    sample: Rows, features: FeatureMap, target: Target, theta: Array, boosted: bool
) -> LabelledPoints:
    """Rows of a model whose likelihood has these parameters."""
    rows = label(sample, features, target, boosted)
    return replace(rows, likelihood=rows.likelihood.with_theta(theta))


def _tune(model: _SparseModel, options: Options, report: _Reporter, may_move: bool) -> _SparseModel:
    """Climb the bound of the sample; new inducing points move with the hyper-parameters at first.

    Moving them may take as long again; it lowers log-loss: ``python -m benchmarks points``.
    """
    rows, best_bound = model.rows, -np.inf
    hyperprior = make_hyperprior(model.prior, rows.likelihood, rows.points, options.weak_prior)
    n, n_evaluations = len(hyperprior.mean), 0
    tolerance = TOLERANCE * float(np.sqrt(max(1.0, len(rows.points) / N_TOLERANCE)))

    def log_prior(theta: Array) -> tuple[float, Array]:
        density, slope = hyperprior(theta[:n])
        return density, np.append(slope, np.zeros(len(theta) - n))

    moves, steps = (STEPS_BESIDE,) * 2 if options.brief else (MOVES, options.max_iter)
    stages: list[tuple[type[SparseEvidence], int]] = []
    if options.refine_inducing and may_move:
        stages.append((MovableEvidence, moves))
    if n:
        stages.append((SparseEvidence, steps))

    def moved_to(theta: Array) -> _SparseModel:
        prior, likelihood = evidence.at(theta)
        labelled, inducing = replace(rows, likelihood=likelihood), evidence.inducing_at(theta)
        return replace(model, prior=prior, rows=labelled, inducing=inducing)

    def watch(theta: Array, fixed: SparseFixed) -> None:
        nonlocal best_bound
        value = fixed.bound + log_prior(theta)[0]
        if fixed.report.converged and value > best_bound:
            best_bound, state = value, MOVING if evidence.moves else TUNING
            report.keep(moved_to(theta).mixture(fixed.belief, None, state))
        report.tuning(fixed.bound)

    for kind, max_iter in stages:
        tol = MOVING_TOL if kind.moves else TUNING_TOL
        evidence = model.evidence(model.rows, kind, tol)
        evidence.watch = watch
        limits = min(max_iter, options.max_iter), options.tol * tolerance
        optimum = maximise(evidence, log_prior, [evidence.theta], *limits)
        n_evaluations += optimum.n_evaluations
        best = replace(optimum.best, n_evaluations=n_evaluations)
        climbed = replace(optimum, climbs=(best,), brief=options.brief) if n else model.optimum
        model = replace(moved_to(optimum.theta), optimum=climbed)
    return model


def _expected_belief(model: _SparseModel) -> SparseBelief:
    """The belief of the sample with each row repeated as often as there are rows like it."""
    points, likelihood = model.rows.points, model.rows.likelihood
    scaled = LabelledPoints(points, likelihood.times(model.factor[points.level]))
    evidence = model.evidence(scaled)
    return evidence.fixed(evidence.theta)[1].belief


def _next(fixed: SparseFixed) -> SparseBelief:
    """The belief after the last pass, or the one before it where that is not proper."""
    target = SparseBelief(fixed.sums.gram, fixed.sums.linear)
    return target if target.is_proper else fixed.belief
