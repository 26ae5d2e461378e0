"""Fitting to many rows: structure from a few, hyper-parameters from a sample, posterior from all.

A sample of the rows is in memory, of which a few find the structure and a good start, by exact
inference. The bound of the whole sample tunes the hyper-parameters, and passes over all rows,
wherever they are, give the posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import SCHEMES, Report
from polyfid.inference.inducing import Inducing
from polyfid.inference.linalg import suitable_threads
from polyfid.inference.selection import choose
from polyfid.inference.sources import MemoryRows
from polyfid.inference.sources import Rows as Source
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.inference.sparse_posterior import SparsePosterior
from polyfid.learning.climb import Optimum, maximise
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import Member
from polyfid.learning.model import (
    BinaryFit,
    Settings,
    make_hyperprior,
    make_prior,
    tune,
    tuning_subset,
)
from polyfid.learning.search import Rows, learn, learns_structure
from polyfid.learning.sparse_evidence import MovableEvidence, SparseEvidence, SparseFixed
from polyfid.model.features import AsGiven, FeatureMap, Standardised
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points

#: Rows from which a start is found, by exact inference, and those from which structure is learnt.
N_START, N_STRUCTURE = 600, 1500
#: Rows that a posterior keeps, to show what rows are like.
N_KEPT = 2000
#: How far a belief may be from its fixed point, in standard deviations, while tuning and in the
#: end: half the square of it is what the bound lacks. Passes over very many rows are dear.
TUNING_TOL, FINAL_TOL, ROUGH_TOL = 0.2, 1e-5, 0.02
N_ROUGH = 20_000
#: Of the climb under the bound, relative to its size.
CLIMB_TOL = 1e-2
MAX_PASSES = 50
#: Steps in which inducing points move.
MOVES = 15

#: The rows as a model sees them that has these features and a likelihood of this kind.
RowsFor = Callable[[FeatureMap, Likelihood], Source]
#: Told of every pass: what there is of the fit, and the bounds of the passes so far.
Watch = Callable[[Member, Sequence[float]], None]


@dataclass(frozen=True)
class Sample:
    """Rows to tune on, and what they stand for.

    Parameters
    ----------
    rows : the rows, sorted by level.
    weight : multiplicities of the rows, (n,).
    stands_for : rows of all that one row of the sample stands for, by level, (n_levels,).
    """

    rows: Rows
    weight: Array
    stands_for: Array

    def few(self, n: int, rng: np.random.RandomState) -> tuple[Rows, Array]:
        """Some of the rows, at most so many, and their weights."""
        index = tuning_subset(self.rows.level, n, rng)
        if index is None:
            return self.rows, self.weight
        return self.rows.take(index), self.weight[index]


@dataclass(frozen=True)
class _Start:
    """A structure with hyper-parameters to begin with, and whether it was learnt or given."""

    name: str
    features: FeatureMap
    prior: Prior
    likelihood: Likelihood
    optimum: Optimum | None


def fit_many(
    sample: Sample,
    rows_for: RowsFor,
    n_inducing: Sequence[int],
    standardize: bool,
    n_levels: int,
    settings: Settings,
    rng: np.random.RandomState,
    before: Member | None = None,
    watch: Watch | None = None,
    tuning: Callable[[Sequence[float]], None] | None = None,
) -> Member:
    """Fit one binary model to many rows.

    Parameters
    ----------
    sample : Sample
    rows_for : from features and a likelihood to all rows.
    n_inducing : points of each latent process, at most.
    standardize : whether features may be rescaled and warped.
    n_levels, settings, rng
    before : a fit of such rows to go on from.
    watch : told of every pass.
    tuning : told of every pass over the sample, with the bounds so far.
    """
    if before is None:
        start = _find_start(sample, standardize, n_levels, settings, rng)
    else:
        start = _go_on_from(before, sample.rows.likelihood)
    points = Points(np.ascontiguousarray(start.features(sample.rows.x)), sample.rows.level)
    known = before.fit.sparse if before else None
    inducing = (
        choose(points, start.prior, n_inducing, random_state=rng)
        if known is None
        else known.inducing
    )
    rows = MemoryRows(points, start.likelihood)
    if settings.optimise:
        start, inducing = _tune(start, rows, inducing, settings, known is None, tuning)
    prior, likelihood = start.prior, start.likelihood

    story = _Story(
        start.name,
        start.features,
        prior,
        likelihood,
        inducing,
        points,
        start.optimum,
        sample.stands_for,
    )
    n_rows = float(sample.stands_for[sample.rows.level].sum())
    tol = FINAL_TOL if n_rows <= N_ROUGH else ROUGH_TOL
    full = SparseEvidence(prior, rows_for(start.features, likelihood), inducing, tol, MAX_PASSES)
    full.warm = known.belief if known else _expand(full, rows, likelihood, sample)
    if watch is not None:
        watch(story.member(full.warm, None), ())
        full.watch = lambda fixed: watch(story.member(_next(fixed), fixed), fixed.report.bounds)
    _, fixed = full.fixed(full.theta)
    return story.member(fixed.belief, fixed)


def _find_start(
    sample: Sample,
    standardize: bool,
    n_levels: int,
    settings: Settings,
    rng: np.random.RandomState,
) -> _Start:
    """Structure and hyper-parameters from a few of the rows, by exact inference.

    By Laplace where that is possible: it is several times faster than the other schemes, and what
    it finds is a start.
    """
    if sample.rows.likelihood.log_concave:
        settings = replace(settings, inference="laplace", may_fall_back=False)
    if learns_structure(settings, sample.rows.likelihood):
        few, weight = sample.few(N_STRUCTURE, rng)
        with suitable_threads(len(few.level)):
            best = learn(few, weight, standardize, n_levels, settings, rng).best
        # The same kind of map, learnt from more rows.
        features = type(best.features).of(sample.rows.x, sample.weight) or best.features
        if features(few.x[:1]).shape != best.features(few.x[:1]).shape:
            features = best.features
        return _Start(best.name, features, best.fit.prior, sample.rows.likelihood, best.fit.optimum)
    few, _ = sample.few(N_START, rng)
    kind = Standardised if standardize else AsGiven
    features = kind.of(sample.rows.x, sample.weight)
    points = Points(np.ascontiguousarray(features(few.x)), few.level)
    prior = make_prior(settings, points.x.shape[1], n_levels)
    name = "kernel as given"
    evidence = Evidence(prior, few.likelihood, points, SCHEMES[settings.inference])
    if not settings.optimise or not len(evidence.theta):
        return _Start(name, features, prior, sample.rows.likelihood, None)
    with suitable_threads(len(points)):
        optimum = tune(evidence, settings, rng)
    cut = len(prior.theta)
    likelihood = sample.rows.likelihood.with_theta(optimum.theta[cut:])
    return _Start(name, features, prior.with_theta(optimum.theta[:cut]), likelihood, optimum)


def _go_on_from(before: Member, likelihood: Likelihood) -> _Start:
    fit = before.fit
    theta = fit.theta[len(fit.prior.theta) :]
    return _Start(
        before.name, before.features, fit.prior, likelihood.with_theta(theta), fit.optimum
    )


def _tune(
    start: _Start,
    rows: MemoryRows,
    inducing: Inducing,
    settings: Settings,
    are_new: bool,
    tell: Callable[[Sequence[float]], None] | None,
) -> tuple[_Start, Inducing]:
    """Climb the bound of the sample; points that are new move with the hyper-parameters at first.

    Moving them takes from nothing to as long again as the climb of the hyper-parameters alone, and
    lowered log-loss wherever it was tried: ``python -m benchmarks points``.
    """
    prior, likelihood = start.prior, start.likelihood
    hyperprior = make_hyperprior(prior, likelihood, rows.points, settings.weak_prior)
    tol = max(settings.tol, CLIMB_TOL)
    bounds: list[float] = []

    def watch(fixed: SparseFixed) -> None:
        bounds.append(fixed.bound)
        if tell is not None:
            tell(bounds)

    n_moves = 0
    if settings.refine_inducing and are_new:
        movable = MovableEvidence(prior, rows, inducing, TUNING_TOL, MAX_PASSES)
        movable.watch, n = watch, movable.n_hyper

        def opinion(theta: Array) -> tuple[float, Array]:
            density, slope = hyperprior(theta[:n])
            return density, np.concatenate([slope, np.zeros(len(theta) - n)])

        found = maximise(movable, opinion, [movable.theta], min(MOVES, settings.max_iter), tol)
        prior, likelihood = movable.at(found.theta[:n])
        inducing = movable.inducing_at(found.theta)
        rows, n_moves = replace(rows, likelihood=likelihood), found.n_evaluations
    evidence = SparseEvidence(prior, rows, inducing, TUNING_TOL, MAX_PASSES)
    evidence.watch = watch
    if not len(evidence.theta):
        return replace(start, prior=prior, likelihood=likelihood), inducing
    optimum = maximise(evidence, hyperprior, [evidence.theta], settings.max_iter, tol)
    climb = replace(optimum.best, n_evaluations=optimum.n_evaluations + n_moves)
    prior, likelihood = evidence.at(optimum.theta)
    found = replace(optimum, climbs=(climb,))
    return replace(start, prior=prior, likelihood=likelihood, optimum=found), inducing


def _next(fixed: SparseFixed) -> SparseBelief:
    """The belief that the last pass calls for, or the one it began with where that is none."""
    target = SparseBelief(fixed.sums.gram, fixed.sums.linear)
    return target if target.is_proper else fixed.belief


def _expand(
    full: SparseEvidence, rows: MemoryRows, likelihood: Likelihood, sample: Sample
) -> SparseBelief:
    """What all rows may say: the rows of the sample, each for as many as it stands for."""
    scaled = likelihood.times(sample.stands_for[sample.rows.level])
    scaled_rows = MemoryRows(rows.points, scaled)
    evidence = SparseEvidence(full.prior, scaled_rows, full.inducing, TUNING_TOL, MAX_PASSES)
    return evidence.fixed(evidence.theta)[1].belief


@dataclass(frozen=True)
class _Story:
    """What is known of a fit before its posterior is."""

    name: str
    features: FeatureMap
    prior: Prior
    likelihood: Likelihood
    inducing: Inducing
    points: Points
    optimum: Optimum | None
    stands_for: Array

    @cached_property
    def kept(self) -> tuple[Points, Likelihood]:
        """Some rows of the sample, of all levels, with weights for all rows that there are."""
        level = self.points.level
        index = tuning_subset(level, N_KEPT, np.random.RandomState(0))
        if index is None:
            return self.points, self.likelihood.times(self.stands_for[level])
        n_levels = len(self.stands_for)
        total = np.bincount(level, self.likelihood.weight, n_levels) * self.stands_for
        here = np.bincount(level[index], self.likelihood.weight[index], n_levels)
        factor = np.divide(total, here, out=np.ones(n_levels), where=here > 0.0)
        kept = Points(self.points.x[index], level[index])
        return kept, self.likelihood.take(index).times(factor[kept.level])

    def member(self, belief: SparseBelief, fixed: SparseFixed | None) -> Member:
        """The fit with a belief, of which more is known after a pass under it."""
        if fixed is None:
            report = Report("under way", 0, np.inf)
            bound, n_rows = np.nan, len(self.points)
        else:
            report, bound, n_rows = fixed.report, fixed.bound, fixed.sums.n_rows
        kept, labels = self.kept
        fit = BinaryFit(
            SparsePosterior(self.prior, self.inducing, belief, kept, n_rows),
            labels,
            bound,
            report,
            self.optimum,
            self.prior.theta_names + self.likelihood.theta_names,
            len(self.points),
            "variational",
        )
        return Member(self.name, self.features, fit)
