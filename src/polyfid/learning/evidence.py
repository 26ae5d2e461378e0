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
from polyfid.inference.exact import ExactCovariance
from polyfid.inference.inducing import Basis, Inducing, SparseBelief
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.inference.loop import State, iterate
from polyfid.inference.passes import GradientPass, SparseProblem, Sums, SumsPass, process_gradients
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

    def checked(self) -> Value:
        """The value itself; raises `NotPositiveDefinite` where numbers overflowed."""
        if not (np.isfinite(self.value) and np.isfinite(self.gradient).all()):
            raise NotPositiveDefinite("the evidence or its gradient is not finite")
        return self


class Parametrised(Tunable):
    """log Z as a function of theta: the free parameters of a prior, then of a likelihood.

    Inference starts from ``warm``, the posterior of the last evaluation; None is the prior.
    """

    prior: Prior
    likelihood: Likelihood
    scheme: Scheme[Any]
    warm: Any = None

    @property
    def parameters(self) -> Parameters:
        return Parameters.join([self.prior.parameters, self.likelihood.parameters])

    def split(self, theta: Array) -> list[Array]:
        """Theta of the prior, of the likelihood, and what comes after them."""
        return np.split(theta, np.cumsum([len(self.prior.theta), len(self.likelihood.theta)]))

    def at(self, theta: Array) -> tuple[Prior, Likelihood]:
        """Prior and likelihood with these parameters."""
        of_prior, of_likelihood, _ = self.split(theta)
        return self.prior.with_theta(of_prior), self.likelihood.with_theta(of_likelihood)

    @abstractmethod
    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        """The evidence of these parameters."""


@dataclass(eq=False)
class Evidence(Parametrised):
    """The evidence of labels at sorted points, under the full covariance matrix."""

    prior: Prior
    likelihood: Likelihood
    points: Points
    scheme: Scheme[Any]
    tol: float = 1e-6
    max_iter: int = 100

    def __post_init__(self) -> None:
        self._tiles = tiles(self.points)

    def with_scheme(self, name: str, tol: float | None = None, warm: Any = None) -> Evidence:
        """The evidence of the same rows under another scheme; distances are shared."""
        other = copy.copy(self)
        other.scheme, other.warm = SCHEMES[name], warm
        other.tol = self.tol if tol is None else tol
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
        found = self.fixed(np.asarray(theta, dtype=float), gradient)
        slope = self.gradient(*found) if gradient else np.empty(0)
        return Value(found[-1].log_z, slope, found[-1].report)

    def gradient(self, covariance: ExactCovariance, likelihood: Likelihood, fixed: Fixed) -> Array:
        """The gradient of log Z from what `fixed` gave with ``gradient``."""
        implicit = self.scheme.implicit(fixed.belief, fixed.labels)
        prior_bar = covariance.pull(fixed.belief, implicit)
        likelihood_bar = self.scheme.pull_likelihood(fixed.belief, likelihood)
        return np.concatenate([prior_bar, likelihood_bar])


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


@dataclass(eq=False)
class SparseEvidence(Parametrised):
    """A lower bound on the evidence from inducing points.

    ``watch`` is called after every pass, with the parameters and the state that was reached.
    """

    prior: Prior
    rows: View
    inducing: Inducing
    tol: float = 1e-4
    max_iter: int = 100
    watch: Callable[[Array, SparseFixed], None] | None = None
    scheme = SCHEMES["variational"]
    moves = False

    def __post_init__(self) -> None:
        self.likelihood = self.rows.likelihood

    def fixed(self, theta: Array) -> tuple[Basis, SparseFixed]:
        """Inference at these parameters."""
        of_prior, of_likelihood, _ = self.split(theta)
        basis = Basis(self.prior.with_theta(of_prior), self.inducing_at(theta), self.moves)

        def sums(belief: SparseBelief) -> Sums:
            total: Sums = self.rows.reduce(SumsPass(basis, belief, of_likelihood))
            return total

        def watch(state: State[SparseBelief], report: Report) -> None:
            if self.watch is not None:
                self.watch(theta, SparseFixed.of(state, report))

        start = SparseBelief.prior(basis.inducing.total) if self.warm is None else self.warm
        fixed = SparseFixed.of(*iterate(SparseProblem(sums, start), self.tol, self.max_iter, watch))
        self.warm = fixed.belief
        return basis, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        theta = np.asarray(theta, dtype=float)
        basis, fixed = self.fixed(theta)
        if not gradient:
            return Value(fixed.bound, np.empty(0), fixed.report)
        adjoints = self.rows.reduce(GradientPass(basis, fixed.belief, self.split(theta)[1]))
        bars = process_gradients(basis, fixed.belief, fixed.sums, adjoints)
        sizes = [len(kernel.theta) for kernel in self.prior.kernels]
        hyper = [bar[:n] for bar, n in zip(bars, sizes, strict=True)]
        places = [bar[n:] for bar, n in zip(bars, sizes, strict=True)]
        mixing = basis.prior.pull_loadings(adjoints.A_bar)
        slope = np.concatenate([mixing, *hyper, adjoints.likelihood_bar, *places])
        return Value(fixed.bound, slope, fixed.report).checked()

    def inducing_at(self, theta: Array) -> Inducing:
        """The inducing points under these parameters."""
        return self.inducing


class MovableEvidence(SparseEvidence):
    """The bound as a function of hyper-parameters, then of the inducing points, row by row.

    Columns that a kernel only compares for equality, such as categories, have zero gradient.
    """

    moves = True

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
        old = self.inducing.z
        new = np.split(self.split(theta)[2], np.cumsum([z.size for z in old])[:-1])
        return Inducing(tuple(z.reshape(o.shape) for z, o in zip(new, old, strict=True)))
