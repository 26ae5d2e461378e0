"""From rows to fitted models of all classes: exact, or with inducing points for many rows.

In a sparse fit a few rows give the structure and a start, by exact inference; the lower bound of a
sample tunes the hyper-parameters, and passes over all rows, wherever they are, give the posterior.
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
from polyfid.inference.loop import Outcome
from polyfid.inference.posterior import SparsePosterior
from polyfid.learning.climb import Optimum, make_hyperprior, maximise, tune
from polyfid.learning.evidence import Evidence, MovableEvidence, SparseEvidence, SparseFixed
from polyfid.learning.mixture import BinaryFit, Member, Mixture, infer
from polyfid.learning.plan import Options, Target
from polyfid.learning.progress import Callback, Progress
from polyfid.learning.search import learn
from polyfid.learning.spread import Spread, find_spread
from polyfid.learning.structures import make_prior
from polyfid.model.features import AsGiven, FeatureMap, Standardised
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points, Rows
from polyfid.rows.source import LabelledPoints, Source, View, label

#: States of a model whose tuning has not ended; in the first one inducing points move still.
MOVING: Outcome = "moving points"
TUNING: Outcome = "tuning"
#: Name of a structure that was not learnt.
GIVEN = "kernel as given"

# Constants of sparse fits, chosen by ``python -m benchmarks many_rows`` and ``points``.
#: Rows from which a start is found by exact inference, and those from which structure is learnt.
N_START, N_STRUCTURE = 600, 1500
#: Rows that a sparse posterior keeps, to show what rows are like.
N_KEPT = 2000
#: How far a belief may be from its fixed point, in standard deviations, while tuning and in the
#: end: half the square of it is what the bound lacks. Passes over very many rows are dear.
TUNING_TOL, FINAL_TOL, ROUGH_TOL = 0.05, 1e-5, 0.02
N_ROUGH = 20_000
#: While inducing points move, which is a rough climb anyway.
MOVING_TOL = 0.2
#: The bound of 100 rows is climbed to this many times ``tol``, and that of more rows to a multiple
#: that grows with the root of their number, as slopes do that are the same share of a posterior
#: standard deviation of the hyper-parameters.
TOLERANCE, N_TOLERANCE = 25.0, 100.0
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
        tuning = rows.sample(options.tuning_size(options.n_tuning_exact), rng)
        _check_tuning(tuning, options)
    seeds = rng.randint(2**31 - 1, size=options.n_classes)
    targets = [Target.of(options, rows, k) for k in options.targets]
    n_jobs, n = None, len(targets)
    if n > 1:  # processes go to the classes, not to the structures within one
        n_jobs, options = options.n_jobs, replace(options, n_jobs=None)
    pool = Parallel(n_jobs=n_jobs, prefer="processes", return_as="generator")
    mixtures: list[Mixture] = []
    for mixture in pool(
        delayed(_fit_class)(options, rows, tuning, t, int(seeds[t.positive])) for t in targets
    ):
        mixtures.append(mixture)
        if callback is not None:
            done, value = len(mixtures), mixture.best.fit.log_evidence
            callback(Progress("classes", done, n, value, tuple(mixtures), done - 1, n))
    return mixtures


def _check_tuning(rows: Rows, options: Options) -> None:
    if len(rows) == 0:
        raise ValueError(
            f"n_tuning leaves no rows to tune on: {options.n_tuning} of the levels, and those with "
            "more than 0 are empty; give a level that has rows a number above 0"
        )


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
        fit = infer(all_rows, tune(evidence, options, rng), len(tuning))
        spread = _spread(evidence, fit.optimum) if options.weak_prior else None
    return Mixture((Member(GIVEN, features, fit),), spread)


def _spread(evidence: Evidence, optimum: Optimum | None) -> Spread | None:
    """What is added by hyper-parameters that are known from these rows only."""
    if optimum is None:
        return None
    hyperprior = make_hyperprior(evidence.prior, evidence.likelihood, evidence.points, weak=True)
    return find_spread(evidence, hyperprior, optimum.theta)


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
    """Inducing points for all rows; ``before`` has models to continue, of some classes or all."""
    _check_tuning(source.sample, options)
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
            belief, state = None, MOVING
            if earlier is None or (sparse := earlier.best.fit.sparse) is None:
                model = _start(options, source, target, seed)
                if options.optimise:
                    report.keep(
                        model.mixture(SparseBelief.prior(model.inducing.total), None, state)
                    )
                    report.tuning(np.nan)
            else:
                model, state = _go_on(earlier, source, target), earlier.best.fit.inference.outcome
                if state not in (MOVING, TUNING):
                    belief = sparse.belief
            if options.optimise:
                model = _tune(model, options, report, may_move=state == MOVING)
            report.keep(_fit_all_rows(model, belief, source.view(model.features, target), report))
    return mixtures


@dataclass
class _Reporter:
    """Tells a callback of every pass for the model of one class."""

    callback: Callback | None
    mixtures: list[Mixture]
    turn: int
    n_turns: int
    tuning_passes: int = -1  # the first step is the start

    def keep(self, mixture: Mixture) -> None:
        """Put the model of the class, as it is now, among the models of all."""
        self.mixtures[self.turn : self.turn + 1] = [mixture]

    def tuning(self, bound: float) -> None:
        self.tuning_passes += 1
        self._tell("tuning", self.tuning_passes, None, bound)

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
        return Mixture((Member(self.name, self.features, fit),), self.spread)


def _fit_all_rows(
    model: _SparseModel, belief: SparseBelief | None, rows: View, report: _Reporter
) -> Mixture:
    """The model with the posterior of all rows; passes begin with a belief, if there is one."""
    n_rows = float(model.factor[model.rows.points.level].sum())
    evidence = model.evidence(rows, tol=FINAL_TOL if n_rows <= N_ROUGH else ROUGH_TOL)
    evidence.warm = _expected_belief(model) if belief is None else belief
    report.passes(model.mixture(evidence.warm, None))
    evidence.watch = lambda _, fixed: report.passes(model.mixture(_next(fixed), fixed))
    theta = np.concatenate([model.prior.theta, model.rows.likelihood.theta])
    _, fixed = evidence.fixed(theta)
    return model.mixture(fixed.belief, fixed)


def _start(
    options: Options, source: Source, target: Target, rng: np.random.RandomState
) -> _SparseModel:
    """Structure and hyper-parameters from a few of the rows, by exact inference."""
    sample = source.sample
    if options.label_noise is None:  # Laplace is fast, and good enough for a start
        options = replace(options, inference="laplace", may_choose=False)
    if options.learns_structure:
        few = sample.sample(N_STRUCTURE, rng)
        # Inducing points are counted for processes that lower levels share with higher ones.
        options = replace(options, links=("same", "apart"))
        with suitable_threads(len(few)):
            learnt = learn(options, few, few, target, rng)
        best, spread = learnt.best, learnt.spread
        # The same kind of map, learnt from more rows.
        features = type(best.features).of(sample.x, sample.weight) or best.features
        if features(few.x[:1]).shape != best.features(few.x[:1]).shape:
            features = best.features
        name, prior, optimum, label_theta = best.name, best.fit.prior, best.fit.optimum, np.empty(0)
    else:
        few = sample.sample(N_START, rng)
        name, features = GIVEN, _plain_features(options, sample)
        evidence = _evidence(options, label(few, features, target))
        optimum = tune(evidence, options, rng)
        prior, likelihood = evidence.at(evidence.theta if optimum is None else optimum.theta)
        label_theta = likelihood.theta
        spread = None
        if options.weak_prior:
            spread = _spread(evidence, optimum)
    assert isinstance(options.n_inducing, tuple)
    rows = _labelled(sample, features, target, label_theta)
    inducing = choose(rows.points, prior, options.n_inducing, random_state=rng)
    factor = source.rows_per_sample_row
    return _SparseModel(name, features, prior, rows, inducing, optimum, factor, spread)


def _go_on(before: Mixture, source: Source, target: Target) -> _SparseModel:
    """The model of an earlier fit, for the rows that there are now."""
    name, fit, features = before.best.name, before.best.fit, before.best.features
    assert fit.sparse is not None
    rows = _labelled(source.sample, features, target, fit.likelihood.theta)
    factor, inducing = source.rows_per_sample_row, fit.sparse.inducing
    optimum, spread = fit.optimum, before.spread
    return _SparseModel(name, features, fit.prior, rows, inducing, optimum, factor, spread)


def _labelled(sample: Rows, features: FeatureMap, target: Target, theta: Array) -> LabelledPoints:
    """Rows of a model whose likelihood has these parameters."""
    rows = label(sample, features, target)
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

    stages: list[tuple[type[SparseEvidence], int]] = []
    if options.refine_inducing and may_move:
        stages.append((MovableEvidence, MOVES))
    if n:
        stages.append((SparseEvidence, options.max_iter))

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
        climbed = replace(optimum, climbs=(best,)) if n else model.optimum
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
