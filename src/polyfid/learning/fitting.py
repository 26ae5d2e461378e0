"""From rows in numbers to fitted models: one of two classes, or one a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from polyfid.arrays import Array, Indices, sort_rows
from polyfid.estimator.parameters import make_likelihood
from polyfid.inference.linalg import suitable_threads
from polyfid.learning.large import RowsFor, Sample, fit_many
from polyfid.learning.mixture import Member, Mixture
from polyfid.learning.model import Settings, fit_binary
from polyfid.learning.plan import Plan
from polyfid.learning.search import Rows, learn, learns_structure
from polyfid.model.features import AsGiven, FeatureMap, Standardised
from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points

#: Told of every pass over the rows: the models so far, whose turn it was, the bounds of its passes.
Watch = Callable[[list[Mixture], int, Sequence[float]], None]


@dataclass(frozen=True)
class Encoded:
    """Rows in numbers, sorted by level: features, level, class, who labelled them, weight."""

    x: Array
    level: Indices
    code: Indices
    group: Indices
    weight: Array

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Indices | None) -> Encoded:
        if index is None:
            return self
        return Encoded(
            self.x[index],
            self.level[index],
            self.code[index],
            self.group[index],
            self.weight[index],
        )

    def merged(self, tell_apart: bool) -> Encoded:
        """In an order of their own, and repeats once with the sum of their weights.

        So a fit depends neither on the order of the rows nor on how repetitions are written.
        """
        order, starts = sort_rows(self.level, *self.x.T, self.code, self.group)
        if tell_apart:
            starts = np.arange(len(order))
        weight = np.add.reduceat(self.weight[order], starts)
        return replace(self.take(order[starts]), weight=weight)


@dataclass(frozen=True)
class Task:
    """What is to be fitted, but for the rows."""

    settings: Settings
    label_noise: Any
    standardize: bool
    n_levels: int
    n_classes: int

    @property
    def targets(self) -> Sequence[int]:
        """The classes that get a model: the second of two, or each against the rest."""
        return (1,) if self.n_classes == 2 else range(self.n_classes)

    def likelihood(self, rows: Encoded, positive: int) -> Likelihood:
        signs = np.where(rows.code == positive, 1.0, -1.0)
        return make_likelihood(
            self.label_noise, signs, rows.weight, rows.level, rows.group, self.n_levels
        )


def stands_for(total: Array, sample: Encoded) -> Array:
    """The weight of all rows for one of the sample's, by level; 1 where there are none."""
    here = np.bincount(sample.level, sample.weight, minlength=len(total))
    return np.divide(total, here, out=np.ones(len(total)), where=here > 0.0)


def fit_exactly(
    task: Task, rows: Encoded, subset: Indices | None, rng: np.random.RandomState
) -> list[Mixture]:
    """Exact inference on all rows; hyper-parameters from a subset, if there is one."""
    features: FeatureMap = (Standardised if task.standardize else AsGiven).of(rows.x, rows.weight)
    points = Points(np.ascontiguousarray(features(rows.x)), rows.level)
    seeds = rng.randint(2**31 - 1, size=task.n_classes)
    settings = task.settings
    if len(task.targets) > 1:  # processes go to the classes, not to the starts within one
        settings = replace(settings, n_jobs=None)

    def one(positive: int) -> Mixture:
        likelihood = task.likelihood(rows, positive)
        seed = np.random.RandomState(seeds[positive])
        # Once for all of a fit: threads of BLAS that are let loose again go on turning a while.
        with suitable_threads(len(rows)):
            if learns_structure(settings, likelihood):
                seen = Rows(rows.x, rows.level, likelihood)
                return learn(
                    seen, rows.weight, task.standardize, task.n_levels, settings, seed, subset
                )
            fit = fit_binary(points, likelihood, task.n_levels, settings, seed, subset)
        return Mixture((Member("kernel as given", features, fit),))

    if len(task.targets) == 1:
        return [one(1)]
    pool = Parallel(n_jobs=task.settings.n_jobs, prefer="processes")
    return list(pool(delayed(one)(k) for k in task.targets))


def fit_sparsely(
    task: Task,
    plan: Plan,
    sample: Encoded,
    stands_for: Array,
    rows_for: Callable[[int], RowsFor],
    rng: np.random.RandomState,
    before: Sequence[Mixture] | None = None,
    watch: Watch | None = None,
    tuning: Callable[[int, Sequence[float]], None] | None = None,
) -> list[Mixture]:
    """Inducing points: structure and hyper-parameters from a sample, posterior from all rows.

    Parameters
    ----------
    task, plan
    sample : rows in memory.
    stands_for : rows of all that a row of the sample stands for, by level, (n_levels,).
    rows_for : from a class to all rows as its model sees them.
    rng
    before : models of such rows to go on from, of the first classes or of all.
    watch : told of every pass.
    tuning : told of every pass over the sample before: class, and bounds so far.
    """
    assert plan.n_inducing is not None
    found: list[Mixture] = list(before or ())
    for turn, positive in enumerate(task.targets):
        likelihood = task.likelihood(sample, positive)
        rows = Rows(sample.x, sample.level, likelihood)
        seed = np.random.RandomState(rng.randint(2**31 - 1))

        def tell(member: Member, bounds: Sequence[float], turn: int = turn) -> None:
            found[turn : turn + 1] = [Mixture((member,))]
            if watch is not None:
                watch(found, turn, bounds)

        def tell_of_tuning(bounds: Sequence[float], turn: int = turn) -> None:
            if tuning is not None:
                tuning(turn, bounds)

        member = fit_many(
            Sample(rows, sample.weight, stands_for),
            rows_for(positive),
            plan.n_inducing,
            task.standardize,
            task.n_levels,
            task.settings,
            seed,
            before[turn].best if before and turn < len(before) else None,
            tell,
            tell_of_tuning,
        )
        found[turn : turn + 1] = [Mixture((member,))]
    return found
