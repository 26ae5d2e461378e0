"""A fitted model as one value: what it says of new rows, in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polyfid.arrays import Array, Indices, settled
from polyfid.estimator.inputs import FitInfo
from polyfid.learning.fit import fit_exact, fit_sparse
from polyfid.learning.mixture import BinaryFit, Mixture
from polyfid.learning.options import Options
from polyfid.learning.plan import N_TUNING_SPARSE, Plan, make_plan
from polyfid.learning.progress import Callback, Progress
from polyfid.rows import Rows
from polyfid.rows.source import InMemory, Source


@dataclass(frozen=True)
class FittedModel:
    """The models of all classes: one for two classes, else one per class against the rest.

    Rows ``x`` (n, d) with ``level`` (n,) are sorted by level in all methods.
    """

    info: FitInfo
    options: Options
    mixtures: tuple[Mixture, ...]

    @property
    def fits(self) -> list[BinaryFit]:
        """The heaviest model of each class."""
        return [m.best.fit for m in self.mixtures]

    @property
    def is_binary(self) -> bool:
        return len(self.mixtures) == 1

    def continues(self, info: FitInfo, options: Options) -> bool:
        """Whether a fit of such rows with these options may go on from this one."""
        return (
            self.info.levels == info.levels
            and np.array_equal(self.info.classes, info.classes)
            and self.info.n_features == info.n_features
            and self.options.is_like(options)
        )

    def classes(self, x: Array, level: Indices) -> Indices:
        """Numbers of the most probable classes, (n,)."""
        if self.is_binary:
            return self.mixtures[0].positive(x, level).astype(np.intp)
        return np.argmax(self.probabilities(x, level), axis=1)

    def probabilities(self, x: Array, level: Indices) -> Array:
        """Of all classes, (n, n_classes)."""
        return self._joined([m.probabilities(x, level) for m in self.mixtures])

    def log_probabilities(self, x: Array, level: Indices) -> Array:
        """Logarithms of the probabilities; of two classes accurate where one is tiny."""
        if self.is_binary:
            return np.stack(self.mixtures[0].log_probabilities(x, level), axis=1)
        return np.log(self.probabilities(x, level))

    def probabilities_and_moments(self, x: Array, level: Indices) -> tuple[Array, Array, Array]:
        """Probabilities, and means and variances of the latent functions, at the price of one."""
        parts = [m.probabilities_and_moments(x, level) for m in self.mixtures]
        p = self._joined([(down, up) for down, up, _, _ in parts])
        mean, variance = (self._stacked([part[i] for part in parts]) for i in (2, 3))
        return p, mean, variance

    def mean_and_variance(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Of the latent functions, (n,) each, or (n, n_classes)."""
        moments = [m.mean_and_variance(x, level) for m in self.mixtures]
        means, variances = zip(*moments, strict=True)
        return self._stacked(means), self._stacked(variances)

    def mean_and_covariance(self, x: Array, level: Indices) -> tuple[Array, Array]:
        """Of the latent functions, (n,) and (n, n), or with n_classes as last axis."""
        moments = [m.mean_and_covariance(x, level) for m in self.mixtures]
        means, covariances = zip(*moments, strict=True)
        return self._stacked(means), self._stacked(covariances)

    def sample(self, x: Array, level: Indices, n: int, rng: np.random.RandomState) -> Array:
        """Joint samples of the latent functions, (n_rows, n), or with n_classes as last axis."""
        return self._stacked([m.sample(x, level, n, rng) for m in self.mixtures])

    def _joined(self, parts: list[tuple[Array, Array]]) -> Array:
        """Probabilities of all classes from those of each class against the rest."""
        if self.is_binary:
            return np.stack(parts[0], axis=1)
        p = np.maximum(np.stack([up for _, up in parts], axis=1), np.finfo(float).tiny)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _stacked(self, parts: Any) -> Array:
        """One array per class as one array, the classes last; two classes have one."""
        return np.asarray(parts[0] if self.is_binary else np.stack(parts, axis=-1))

    def evidence(self, thetas: list[Array], gradient: bool) -> tuple[float, list[Array]]:
        """The mean log evidence over classes, and its gradient in the parameters of each."""
        values = [f.evaluate(t, gradient) for f, t in zip(self.fits, thetas, strict=True)]
        mean = float(np.mean([v.value for v in values]))
        return mean, [v.gradient / len(values) for v in values]


@dataclass
class FitRun:
    """One run of a fit: what is fitted, what it goes on from, and who is told of its progress.

    Attributes
    ----------
    info, options
        Of the rows.
    rng : RandomState
    earlier : FittedModel, optional
        A fit to go on from; where it is of other options or rows, the run begins anew and says so.
    callback : function of a `Progress`, optional
    save : function of a FittedModel, optional
        Called after every pass, once all classes have a model.
    verbose : int
    latest : FittedModel or None
        The models after the last pass, of the first classes or of all.
    """

    info: FitInfo
    options: Options
    rng: np.random.RandomState
    earlier: FittedModel | None = None
    callback: Callback | None = None
    save: Callable[[FittedModel], None] | None = None
    verbose: int = 0
    latest: FittedModel | None = field(default=None, init=False)

    def fit(self, rows: Rows) -> FittedModel:
        """Fit to rows in memory, exactly or with inducing points."""
        if self.options.standardize:
            rows = replace(rows, x=settled(rows.x))  # or rounding errors become a feature
        rows = rows.merged(self.options.tells_rows_apart(rows.x))
        n_levels = self.options.n_levels
        plan = self._plan(np.bincount(rows.level, minlength=n_levels), in_memory=True)
        if plan.n_inducing is None:
            return self._model(fit_exact(self.options, rows, self.rng, self))
        total = np.bincount(rows.level, rows.weight, n_levels).astype(float)
        return self._fit_sparse(InMemory(rows, total, rows, self.options.n_jobs), plan)

    def fit_source(self, source: Source) -> FittedModel:
        """Fit to rows that are not in memory."""
        return self._fit_sparse(source, self._plan(self.info.counts.sum(axis=1), in_memory=False))

    def _plan(self, counts: Indices, in_memory: bool) -> Plan:
        plan = make_plan(self.options, counts.tolist(), self.info.n_features, in_memory)
        self.info = replace(self.info, plan=str(plan))
        if self.verbose and not plan.is_small:
            print(f"polyfid: {plan}")
        return plan

    def _fit_sparse(self, source: Source, plan: Plan) -> FittedModel:
        size = self.options.tuning_size(N_TUNING_SPARSE)
        sample = source.sample.sample(size, self.rng)
        source = replace(source, sample=sample)
        options = replace(self.options, n_inducing=plan.n_inducing)
        before = self._go_on()
        return self._model(fit_sparse(options, source, self.rng, before, self))

    def _go_on(self) -> tuple[Mixture, ...]:
        """The models to go on from, if there are any of the same kind."""
        if self.earlier is None:
            return ()
        if self.earlier.continues(self.info, self.options):
            return self.earlier.mixtures
        note = (
            "warm_start: the earlier fit had other parameters, levels, classes or features, so "
            "that this fit began anew"
        )
        self.info = replace(self.info, notes=(*self.info.notes, note))
        return ()

    def _model(self, mixtures: Any) -> FittedModel:
        return FittedModel(self.info, self.options, tuple(mixtures))

    def __call__(self, progress: Progress) -> None:
        """A step was done."""
        done, value = progress.done, progress.value
        if progress.stage == "passes":
            self.latest = self._model(progress.checkpoint)
            if self.verbose and done:
                which = self.info.classes[progress.class_index]
                who = "" if progress.n_classes == 1 else f"class {which}, "
                print(f"polyfid: {who}pass {done}, bound {value:.4f}", flush=True)
            if self.save is not None and len(progress.checkpoint) == progress.n_classes:
                self.save(self.latest)
        if self.callback is not None:
            self.callback(progress)
