"""From rows to fitted models of all classes: exact, or with inducing points for many rows.

A sparse fit has a sample of the rows in memory. A few of them give the structure and a good start,
by exact inference; the lower bound of the whole sample tunes the hyper-parameters, and passes over
all rows, wherever they are, give the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed

from polyfid.arrays import Array
from polyfid.inference import SCHEMES, Report
from polyfid.inference.inducing import Inducing, SparseBelief, choose
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.posterior import SparsePosterior
from polyfid.learning.climb import Optimum, maximise
from polyfid.learning.evidence import Evidence, MovableEvidence, SparseEvidence, SparseFixed
from polyfid.learning.fit_options import Options, Target
from polyfid.learning.mixture import BinaryFit, Member, Mixture
from polyfid.learning.plan import N_TUNING_EXACT
from polyfid.learning.progress import Callback, Progress
from polyfid.learning.search import learn
from polyfid.learning.tune import infer, make_hyperprior, make_prior, tune
from polyfid.model.features import AsGiven, FeatureMap, Standardised
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points, Rows
from polyfid.rows.source import InMemory, LabelledPoints, Source, label

#: Name of a structure that was not learnt.
GIVEN = "kernel as given"

# Constants of sparse fits, chosen by ``python -m benchmarks many_rows`` and ``points``.
#: Rows from which a start is found by exact inference, and those from which structure is learnt.
N_START, N_STRUCTURE = 600, 1500
#: Rows that a sparse posterior keeps, to show what rows are like.
N_KEPT = 2000
#: How far a belief may be from its fixed point, in standard deviations, while tuning and in the
#: end: half the square of it is what the bound lacks. Passes over very many rows are dear.
TUNING_TOL, FINAL_TOL, ROUGH_TOL = 0.2, 1e-5, 0.02
N_ROUGH = 20_000
#: The bound is climbed to this many times ``tol``.
TOLERANCE = 1000.0
MAX_PASSES = 50
#: Steps in which inducing points move.
MOVES = 15


def fit_exact(
    options: Options, rows: Rows, rng: np.random.RandomState, callback: Callback | None = None
) -> list[Mixture]:
    """Exact inference on all rows; hyper-parameters from a sample if there are very many."""
    options = options.suited_to(rows)
    tuning = rows
    if options.optimise:
        tuning = rows.sample(options.tuning_size(N_TUNING_EXACT), rng)
    seeds = rng.randint(2**31 - 1, size=options.n_classes)
    targets = [Target.of(options, rows, k) for k in options.targets]
    n_jobs = options.n_jobs if len(targets) > 1 else None
    # Processes go to the classes, not to the structures within one.
    inner = options if len(targets) == 1 else replace(options, n_jobs=None)
    pool = Parallel(n_jobs=n_jobs, prefer="processes", return_as="generator")
    mixtures: list[Mixture] = []
    for mixture in pool(
        delayed(_fit_class)(inner, rows, tuning, t, int(seeds[t.positive])) for t in targets
    ):
        mixtures.append(mixture)
        if callback is not None:
            turn, n = len(mixtures) - 1, len(targets)
            value = mixture.best.fit.log_evidence
            callback(Progress("classes", turn + 1, n, value, tuple(mixtures), turn, n))
    return mixtures


def _fit_class(options: Options, rows: Rows, tuning: Rows, target: Target, seed: int) -> Mixture:
    rng = np.random.RandomState(seed)
    # Once for all of a fit: threads of BLAS that are let loose again go on turning a while.
    with suitable_threads(len(rows)):
        if options.learns_structure:
            return learn(options, rows, tuning, target, rng)
        features = _plain_features(options, rows)
        evidence = all_rows = _evidence(options, label(rows, features, target))
        if tuning is not rows:
            evidence = _evidence(options, label(tuning, features, target))
        optimum = tune(evidence, options, rng)
        fit = infer(all_rows, optimum, len(tuning))
    return Mixture((Member(GIVEN, features, fit),))


def _plain_features(options: Options, rows: Rows) -> FeatureMap:
    kind = Standardised if options.standardize else AsGiven
    return kind.of(rows.x, rows.weight)


def _evidence(options: Options, rows: LabelledPoints) -> Evidence:
    prior = make_prior(options, rows.points.x.shape[1])
    return Evidence(prior, rows.likelihood, rows.points, SCHEMES[options.inference])


def fit_sparse(
    options: Options,
    source: Source,
    rng: np.random.RandomState,
    before: Sequence[Mixture] = (),
    callback: Callback | None = None,
) -> list[Mixture]:
    """Inducing points: hyper-parameters from the source's sample, the posterior from all rows.

    ``before`` has models of an earlier fit to continue, of the first classes or of all.
    """
    options = options.suited_to(source.sample)
    mixtures = list(before)
    for turn, positive in enumerate(options.targets):
        seed = np.random.RandomState(rng.randint(2**31 - 1))
        earlier = before[turn].best if turn < len(before) else None
        target = Target.of(options, source.sample, positive)
        report = _Reporter(callback, mixtures, turn, len(options.targets))
        member = _fit_class_sparsely(options, source, target, seed, earlier, report)
        report.keep(member)
    return mixtures


@dataclass
class _Reporter:
    """Tells a callback of every pass for the model of one class."""

    callback: Callback | None
    mixtures: list[Mixture]
    turn: int
    n_turns: int
    tuning_passes: int = 0

    def keep(self, member: Member) -> None:
        """Put the model of the class, as it is now, among the models of all."""
        self.mixtures[self.turn : self.turn + 1] = [Mixture((member,))]

    def tuning(self, fixed: SparseFixed) -> None:
        self.tuning_passes += 1
        self._tell("tuning", self.tuning_passes, None, fixed.bound)

    def passes(self, member: Member) -> None:
        self.keep(member)
        bounds = member.fit.inference.bounds
        self._tell("passes", len(bounds), MAX_PASSES, member.fit.log_evidence)

    def _tell(self, stage: str, done: int, total: int | None, value: float) -> None:
        if self.callback is not None:
            models = tuple(self.mixtures)
            self.callback(Progress(stage, done, total, value, models, self.turn, self.n_turns))


@dataclass(frozen=True)
class _SparseModel:
    """The model of one class before its posterior is known; its rows are the sample.

    ``factor`` (n_levels,) is the number of all rows per row of the sample.
    """

    name: str
    features: FeatureMap
    prior: Prior
    rows: LabelledPoints
    inducing: Inducing
    optimum: Optimum | None
    factor: Array

    @property
    def likelihood(self) -> Likelihood:
        likelihood: Likelihood = self.rows.likelihood
        return likelihood

    @cached_property
    def kept(self) -> tuple[Points, Likelihood]:
        """Some rows of the sample, of all levels, with weights for all rows that there are."""
        level, weight = self.rows.points.level, self.likelihood.weight
        x, nobody = self.rows.points.x, np.full(len(level), -1)
        numbered = Rows(x, level, np.arange(len(level)), weight, nobody)
        some = numbered.sample(N_KEPT, np.random.RandomState(0))
        total = np.bincount(level, weight, len(self.factor)) * self.factor
        factor = InMemory(some, total, some).rows_per_sample_row
        return Points(some.x, some.level), self.likelihood.take(some.y).times(factor[some.level])

    def member(self, belief: SparseBelief, fixed: SparseFixed | None) -> Member:
        """The fit with a belief; ``fixed`` is the last pass over all rows, if there was one."""
        if fixed is None:
            report = Report("under way", 0, np.inf)
            bound, n_rows = np.nan, len(self.rows.points)
        else:
            report, bound, n_rows = fixed.report, fixed.bound, fixed.sums.n_rows
        points, labels = self.kept
        fit = BinaryFit(
            SparsePosterior(self.prior, self.inducing, belief, points, n_rows),
            labels,
            bound,
            report,
            self.optimum,
            self.prior.theta_names + labels.theta_names,
            len(self.rows.points),
            "variational",
        )
        return Member(self.name, self.features, fit)


def _fit_class_sparsely(
    options: Options,
    source: Source,
    target: Target,
    rng: np.random.RandomState,
    before: Member | None,
    report: _Reporter,
) -> Member:
    if before is None or before.fit.sparse is None:
        model, belief = _start(options, source, target, rng), None
    else:
        model, belief = _go_on(before, source, target), before.fit.sparse.belief
    if options.optimise:
        model = _tune(model, options, report, may_move=belief is None)
    n_rows = float(model.factor[source.sample.level].sum())
    tol = FINAL_TOL if n_rows <= N_ROUGH else ROUGH_TOL
    view = source.view(model.features, target)
    evidence = SparseEvidence(model.prior, view, model.inducing, tol, MAX_PASSES)
    evidence.warm = _expected_belief(model) if belief is None else belief
    report.passes(model.member(evidence.warm, None))
    evidence.watch = lambda fixed: report.passes(model.member(_next(fixed), fixed))
    theta = np.concatenate([model.prior.theta, model.likelihood.theta])
    _, fixed = evidence.fixed(theta)
    return model.member(fixed.belief, fixed)


def _start(
    options: Options, source: Source, target: Target, rng: np.random.RandomState
) -> _SparseModel:
    """Structure and hyper-parameters from a few of the rows, by exact inference.

    By Laplace where that is possible: it is several times faster than the other schemes, and what
    it gives is a start.
    """
    sample = source.sample
    if options.label_noise is None:
        options = replace(options, inference="laplace", may_choose=False)
    if options.learns_structure:
        few = sample.sample(N_STRUCTURE, rng)
        with suitable_threads(len(few)):
            best = learn(options, few, few, target, rng).best
        # The same kind of map, learnt from more rows.
        features = type(best.features).of(sample.x, sample.weight) or best.features
        if features(few.x[:1]).shape != best.features(few.x[:1]).shape:
            features = best.features
        name, prior, optimum = best.name, best.fit.prior, best.fit.optimum
        rows = label(sample, features, target)
    else:
        few = sample.sample(N_START, rng)
        features = _plain_features(options, sample)
        evidence = _evidence(options, label(few, features, target))
        optimum = tune(evidence, options, rng)
        theta = evidence.theta if optimum is None else optimum.theta
        prior, labels = evidence.at(theta)
        name, rows = GIVEN, label(sample, features, target)
        rows = replace(rows, likelihood=rows.likelihood.with_theta(labels.theta))
    assert isinstance(options.n_inducing, tuple)
    inducing = choose(rows.points, prior, options.n_inducing, random_state=rng)
    return _SparseModel(name, features, prior, rows, inducing, optimum, source.rows_per_sample_row)


def _go_on(before: Member, source: Source, target: Target) -> _SparseModel:
    """The model of an earlier fit, for the rows that there are now."""
    fit, features = before.fit, before.features
    assert fit.sparse is not None
    rows = label(source.sample, features, target)
    rows = replace(rows, likelihood=rows.likelihood.with_theta(fit.likelihood.theta))
    factor, inducing = source.rows_per_sample_row, fit.sparse.inducing
    return _SparseModel(before.name, features, fit.prior, rows, inducing, fit.optimum, factor)


def _tune(model: _SparseModel, options: Options, report: _Reporter, may_move: bool) -> _SparseModel:
    """Climb the bound of the sample; new inducing points move with the hyper-parameters at first.

    Moving them takes from nothing to as long again as the climb of the hyper-parameters alone, and
    lowered log-loss wherever it was tried: ``python -m benchmarks points``.
    """
    hyperprior = make_hyperprior(
        model.prior, model.likelihood, model.rows.points, options.weak_prior
    )
    tol = options.tol * TOLERANCE
    n_moves = 0
    if options.refine_inducing and may_move:
        movable = MovableEvidence(model.prior, model.rows, model.inducing, TUNING_TOL, MAX_PASSES)
        movable.watch, n = report.tuning, movable.n_hyper

        def log_prior(theta: Array) -> tuple[float, Array]:
            density, slope = hyperprior(theta[:n])
            return density, np.concatenate([slope, np.zeros(len(theta) - n)])

        moved = maximise(movable, log_prior, [movable.theta], min(MOVES, options.max_iter), tol)
        prior, likelihood = movable.at(moved.theta[:n])
        rows = replace(model.rows, likelihood=likelihood)
        inducing = movable.inducing_at(moved.theta)
        model = replace(model, prior=prior, rows=rows, inducing=inducing)
        n_moves = moved.n_evaluations
    evidence = SparseEvidence(model.prior, model.rows, model.inducing, TUNING_TOL, MAX_PASSES)
    if not len(evidence.theta):
        return model
    evidence.watch = report.tuning
    optimum = maximise(evidence, hyperprior, [evidence.theta], options.max_iter, tol)
    climb = replace(optimum.best, n_evaluations=optimum.n_evaluations + n_moves)
    prior, likelihood = evidence.at(optimum.theta)
    return replace(
        model,
        prior=prior,
        rows=replace(model.rows, likelihood=likelihood),
        optimum=replace(optimum, climbs=(climb,)),
    )


def _expected_belief(model: _SparseModel) -> SparseBelief:
    """The belief of the sample with each row repeated as often as there are rows like it."""
    level = model.rows.points.level
    scaled = LabelledPoints(model.rows.points, model.likelihood.times(model.factor[level]))
    evidence = SparseEvidence(model.prior, scaled, model.inducing, TUNING_TOL, MAX_PASSES)
    return evidence.fixed(evidence.theta)[1].belief


def _next(fixed: SparseFixed) -> SparseBelief:
    """The belief after the last pass, or the one before it where that is not proper."""
    target = SparseBelief(fixed.sums.gram, fixed.sums.linear)
    return target if target.is_proper else fixed.belief
