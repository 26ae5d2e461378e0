"""The approximate log evidence of hyper-parameters, with its gradient: chains the pullbacks."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import SCHEMES, Fixed, Report, Scheme, run
from polyfid.inference.exact import ExactCovariance, Start
from polyfid.inference.inducing import Basis, Inducing, SparseBelief
from polyfid.inference.loop import State, iterate
from polyfid.inference.passes import (
    GradientPass,
    SparseProblem,
    Sums,
    SumsPass,
    process_gradients,
)
from polyfid.kernels.parameters import Parameters, Tunable
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior, tiles
from polyfid.rows import Points
from polyfid.rows.source import View


@dataclass(frozen=True)
class Value:
    """The evidence at a point: value, gradient (empty if not asked for) and how inference went."""

    value: float
    gradient: Array
    report: Report


class Parametrised(Tunable):
    """log Z as a function of theta: the free parameters of a prior, then of a likelihood.

    Each evaluation starts from the posterior of the one before. That is kept in ``warm`` and may
    be replaced; None starts from the prior. ``tol`` and ``max_iter`` are those of the inner loop.
    """

    prior: Prior
    likelihood: Likelihood
    scheme: Scheme[Any]

    @property
    def parameters(self) -> Parameters:
        return Parameters.join([self.prior.parameters, self.likelihood.parameters])

    def at(self, theta: Array) -> tuple[Prior, Likelihood]:
        """Prior and likelihood with these parameters."""
        cut = len(self.prior.theta)
        return self.prior.with_theta(theta[:cut]), self.likelihood.with_theta(theta[cut:])

    @abstractmethod
    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        """The evidence of these parameters."""


class Evidence(Parametrised):
    """The evidence of labels at sorted points, under the full covariance matrix."""

    def __init__(
        self,
        prior: Prior,
        likelihood: Likelihood,
        points: Points,
        scheme: Scheme[Any],
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.prior, self.likelihood = prior, likelihood
        self.points, self.scheme = points, scheme
        self.tol, self.max_iter = tol, max_iter
        self._tiles = tiles(points)
        self.warm: Start | None = None

    def with_scheme(self, scheme: Scheme[Any]) -> Evidence:
        """The evidence of the same rows under another scheme; distances are shared."""
        other = copy.copy(self)
        other.scheme, other.warm = scheme, None
        return other

    def fixed(
        self, theta: Array, gradient: bool = False
    ) -> tuple[ExactCovariance, Likelihood, Fixed]:
        """Inference at these parameters."""
        prior, likelihood = self.at(theta)
        covariance = ExactCovariance(prior, self.points, self._tiles, gradient)
        fixed = run(
            self.scheme, covariance, likelihood, self.warm, self.tol, self.max_iter, gradient
        )
        self.warm = fixed.belief.start()
        return covariance, likelihood, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        covariance, likelihood, fixed = self.fixed(np.asarray(theta, dtype=float), gradient)
        if not gradient:
            return Value(fixed.log_z, np.empty(0), fixed.report)
        implicit = self.scheme.implicit(fixed.belief, fixed.labels)
        prior_bar = covariance.pull(fixed.belief, implicit)
        likelihood_bar = self.scheme.pull_likelihood(fixed.belief, likelihood)
        return Value(fixed.log_z, np.concatenate([prior_bar, likelihood_bar]), fixed.report)


@dataclass(frozen=True)
class SparseFixed:
    """A fixed point, or the last state that was reached, and its bound on the log evidence."""

    belief: SparseBelief
    sums: Sums
    bound: float
    report: Report

    @classmethod
    def of(cls, state: State[SparseBelief], report: Report) -> SparseFixed:
        return cls(state.belief, state.labels, state.merit, report)


class SparseEvidence(Parametrised):
    """A lower bound on the evidence, from passes over many rows and inducing points that stay."""

    scheme = SCHEMES["variational"]

    def __init__(
        self, prior: Prior, rows: View, inducing: Inducing, tol: float = 1e-4, max_iter: int = 100
    ) -> None:
        self.prior, self.likelihood = prior, rows.likelihood
        self.rows, self.inducing = rows, inducing
        self.tol, self.max_iter = tol, max_iter
        self.warm: SparseBelief | None = None
        #: Called after every pass.
        self.watch: Callable[[SparseFixed], None] | None = None

    @property
    def points(self) -> Points:
        """The rows, or a sample of them."""
        return self.rows.points

    def fixed(self, theta: Array) -> tuple[Basis, SparseFixed]:
        """Inference at these parameters."""
        basis, labels = self._basis(theta), self._label_theta(theta)

        def sums(belief: SparseBelief) -> Sums:
            total: Sums = self.rows.reduce(SumsPass(basis, belief, labels))
            return total

        def watch(state: State[SparseBelief], report: Report) -> None:
            if self.watch is not None:
                self.watch(SparseFixed.of(state, report))

        start = SparseBelief.prior(basis.inducing.total) if self.warm is None else self.warm
        fixed = SparseFixed.of(*iterate(SparseProblem(sums, start), self.tol, self.max_iter, watch))
        self.warm = fixed.belief
        return basis, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        theta = np.asarray(theta, dtype=float)
        basis, fixed = self.fixed(theta)
        if not gradient:
            return Value(fixed.bound, np.empty(0), fixed.report)
        adjoints = self.rows.reduce(GradientPass(basis, fixed.belief, self._label_theta(theta)))
        bars = process_gradients(basis, fixed.belief, fixed.sums, adjoints)
        split = [
            np.split(bar, [len(kernel.theta)])
            for bar, kernel in zip(bars, self.prior.kernels, strict=True)
        ]
        hyper, places = zip(*split, strict=True)
        mixing = basis.prior.pull_loadings(adjoints.A_bar)
        slope = np.concatenate([mixing, *hyper, adjoints.likelihood_bar, *places])
        return Value(fixed.bound, slope, fixed.report)

    def _basis(self, theta: Array) -> Basis:
        return Basis(self.prior.with_theta(theta[: len(self.prior.theta)]), self.inducing)

    def _label_theta(self, theta: Array) -> Array:
        start = len(self.prior.theta)
        return theta[start : start + len(self.likelihood.theta)]


class MovableEvidence(SparseEvidence):
    """The bound as a function of hyper-parameters and of the places of the inducing points.

    ``theta`` is that of `SparseEvidence`, and then the coordinates of all points, row by row.
    Columns that a kernel only compares for equality, such as categories, have zero gradient, and
    points stay in them where they are.
    """

    @property
    def parameters(self) -> Parameters:
        places = [
            Parameters.of(
                (f"z[{s}][{i}, {c}]" for i, c in np.ndindex(*z.shape)), z.ravel(), (-np.inf, np.inf)
            )
            for s, z in enumerate(self.inducing.z)
        ]
        return Parameters.join([super().parameters, *places])

    @property
    def n_hyper(self) -> int:
        """Entries of theta that are hyper-parameters; the others are coordinates."""
        return len(super().parameters.values)

    def inducing_at(self, theta: Array) -> Inducing:
        """The points with the coordinates that theta has."""
        z = self.inducing.z
        parts = np.split(theta[self.n_hyper :], np.cumsum([part.size for part in z])[:-1])
        return Inducing(tuple(p.reshape(old.shape) for p, old in zip(parts, z, strict=True)))

    def _basis(self, theta: Array) -> Basis:
        prior = self.prior.with_theta(theta[: len(self.prior.theta)])
        return Basis(prior, self.inducing_at(theta), places=True)
