"""The evidence lower bound of hyper-parameters, with its gradient, from passes over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import SCHEMES, Report
from polyfid.inference.inducing import Basis, Inducing
from polyfid.inference.loop import State, iterate
from polyfid.inference.passes import (
    GradientPass,
    SparseProblem,
    Sums,
    SumsPass,
    process_gradients,
)
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.kernels.parameters import Parameters
from polyfid.learning.evidence import Parametrised, Value
from polyfid.model.prior import Prior
from polyfid.rows import Points
from polyfid.rows.source import View


@dataclass(frozen=True)
class SparseFixed:
    """A fixed point, or the last state that was reached.

    Parameters
    ----------
    belief : of the inducing variables.
    sums : over the rows, under the belief.
    bound : on the log evidence.
    report : how the loop went; it has the bound of every pass.
    """

    belief: SparseBelief
    sums: Sums
    bound: float
    report: Report

    @classmethod
    def of(cls, state: State[SparseBelief], report: Report) -> SparseFixed:
        return cls(state.belief, state.labels, state.merit, report)


class SparseEvidence(Parametrised):
    """The bound as a function of theta: the prior's parameters, then the likelihood's.

    It takes the place of `Evidence` for many rows. Each evaluation starts from the belief of the
    one before. That is kept in ``warm`` and may be replaced; None starts from the prior.

    Parameters
    ----------
    prior : template, whose free parameters make ``theta`` with those of the rows' likelihood.
    rows : the labelled rows.
    inducing : points of the processes; they stay where they are while theta moves.
    tol, max_iter : of the inner loop; see `polyfid.inference.loop.iterate`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.model.likelihoods import Logit
    >>> from polyfid.model.prior import Autoregressive
    >>> from polyfid.rows.source import LabelledPoints
    >>> points = Points(np.arange(4.0)[:, None], np.zeros(4, dtype=int))
    >>> rows = LabelledPoints(points, Logit(np.array([-1.0, -1.0, 1.0, 1.0]), np.ones(4)))
    >>> evidence = SparseEvidence(Autoregressive((RBF(),)), rows, Inducing((points.x[::3],)))
    >>> round(evidence(evidence.theta).value, 3)
    -2.76
    """

    scheme = SCHEMES["variational"]

    def __init__(
        self,
        prior: Prior,
        rows: View,
        inducing: Inducing,
        tol: float = 1e-4,
        max_iter: int = 100,
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

        start = SparseBelief.prior(basis.total) if self.warm is None else self.warm
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
        cuts = [len(kernel.theta) for kernel in self.prior.kernels]
        hyper = [bar[:cut] for bar, cut in zip(bars, cuts, strict=True)]
        places = [bar[cut:] for bar, cut in zip(bars, cuts, strict=True)]
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
