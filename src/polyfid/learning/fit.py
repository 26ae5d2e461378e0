"""From rows to fitted models of all classes by exact inference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from polyfid.inference import SCHEMES
from polyfid.inference.linalg import suitable_threads
from polyfid.learning.boosted import boost
from polyfid.learning.climb import Optimum, make_hyperprior, tune
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import Member, Mixture, infer
from polyfid.learning.plan import Options, Target
from polyfid.learning.progress import Callback, Progress
from polyfid.learning.search import learn
from polyfid.learning.spread import Spread, find_spread
from polyfid.learning.structures import Structure, make_prior
from polyfid.model.features import AsGiven, FeatureMap, Standardised
from polyfid.rows import Rows
from polyfid.rows.source import LabelledPoints, label

#: Name of a structure that was not learnt.
GIVEN = "kernel as given"


def fit_exact(
    options: Options, rows: Rows, rng: np.random.RandomState, callback: Callback | None = None
) -> list[Mixture]:
    """Exact inference on all rows; hyper-parameters from a sample if there are very many."""
    options = options.suited_to(rows)
    tuning = rows
    if options.optimise:
        tuning = rows.sample(options.tuning_size(options.n_tuning_exact), rng)
        check_tuning(tuning, options)
    seeds = rng.randint(2**31 - 1, size=options.n_classes)
    targets = [Target.of(options, rows, k) for k in options.targets]
    n_jobs, n = None, len(targets)
    if n > 1:  # processes go to the classes, not to the structures within one
        n_jobs, options = options.n_jobs, replace(options, n_jobs=None)
    pool = Parallel(n_jobs=n_jobs, prefer="processes", return_as="generator")
    mixtures: list[Mixture] = []

    def report(done: int, total: int) -> None:
        if callback is not None:
            models = tuple(mixtures)
            callback(Progress("structures", done, total, math.nan, models, len(models), n))

    # Other processes could not call it.
    own = report if callback is not None and effective_n_jobs(n_jobs) == 1 else None
    for mixture in pool(
        delayed(_fit_class)(options, rows, tuning, t, int(seeds[t.positive]), own) for t in targets
    ):
        mixtures.append(mixture)
        if callback is not None:
            done, value = len(mixtures), mixture.best.fit.log_evidence
            callback(Progress("classes", done, n, value, tuple(mixtures), done - 1, n))
    return mixtures


def check_tuning(rows: Rows, options: Options) -> None:
    """Raise ValueError where there are no rows to tune on."""
    if len(rows) == 0:
        raise ValueError(
            f"n_tuning leaves no rows to tune on: {options.n_tuning} of the levels, and those with "
            "more than 0 are empty; give a level that has rows a number above 0"
        )


def _fit_class(
    options: Options,
    rows: Rows,
    tuning: Rows,
    target: Target,
    seed: int,
    report: Callable[[int, int], None] | None = None,
) -> Mixture:
    rng = np.random.RandomState(seed)
    counts = np.bincount(rows.level, minlength=options.n_levels)
    boosting = boost(rows, options.large_levels(counts.tolist()), target)
    if boosting is not None:
        is_whole, rows = tuning is rows, boosting.extend(rows)
        tuning = rows if is_whole else boosting.extend(tuning)
        options = replace(options, boosted=boosting.mean.levels)
    # Once for all of a fit: threads of BLAS that are let loose again go on turning a while.
    with suitable_threads(len(rows)):
        if options.learns_structure:
            mixture = learn(options, rows, tuning, target, rng, report)
        else:
            mixture = _fit_as_given(options, rows, tuning, target, rng)
    if boosting is None or not any(member.boosted for member in mixture.members):
        return mixture
    return replace(mixture, mean=boosting.mean)


def _fit_as_given(
    options: Options, rows: Rows, tuning: Rows, target: Target, rng: np.random.RandomState
) -> Mixture:
    """The model with the kernels of the options."""
    features, boosted = plain_features(options, rows), bool(options.boosted)
    evidence = all_rows = evidence_of(options, features, label(rows, features, target, boosted))
    if tuning is not rows:
        evidence = evidence_of(options, features, label(tuning, features, target, boosted))
    fit = infer(all_rows, tune(evidence, options, rng), len(tuning))
    spread = spread_of(evidence, fit.optimum) if options.weak_prior else None
    return Mixture((Member(GIVEN, features, fit, boosted=boosted),), spread)


def spread_of(evidence: Evidence, optimum: Optimum | None) -> Spread | None:
    """What is added by hyper-parameters that are known from these rows only."""
    if optimum is None:
        return None
    hyperprior = make_hyperprior(evidence.prior, evidence.likelihood, evidence.points, weak=True)
    return find_spread(evidence, hyperprior, optimum.theta)


def plain_features(options: Options, rows: Rows) -> FeatureMap:
    """The feature map of kernels that are given."""
    kind = Standardised if options.standardize else AsGiven
    return kind.of(rows.x, rows.weight)


def evidence_of(options: Options, features: FeatureMap, rows: LabelledPoints) -> Evidence:
    """The evidence of rows under the kernels of the options."""
    if options.boosted:
        structure = Structure(type(features), "soft", boosted=options.boosted)
        prior = structure.prior(features, structure.n_columns(rows.points.x), options)
    else:
        prior = make_prior(options, rows.points.x.shape[1])
    return Evidence(prior, rows.likelihood, rows.points, SCHEMES[options.inference])
