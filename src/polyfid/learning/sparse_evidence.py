"""The evidence lower bound of hyper-parameters, with its gradient, from passes over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.gradient import GradientSums, GradientView, block_gradient, process_gradients
from polyfid.inference.inducing import Basis, Inducing, MovableBasis
from polyfid.inference.passes import Sums, View, block_sums
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.inference.sparse_loop import SparseFixed, run
from polyfid.learning.evidence import Parametrised, Value
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.rows import Points
from polyfid.rows.source import View as RowsView


@dataclass(frozen=True)
class ValuePass:
    """A block's sums at some parameters of the likelihood. Can be sent to another process."""

    view: View
    theta: Array

    def __call__(self, points: Points, likelihood: Likelihood) -> Sums:
        return block_sums(self.view, points, likelihood.with_theta(self.theta))


@dataclass(frozen=True)
class GradientPass:
    """A block's part in the gradient. Can be sent to another process."""

    view: GradientView
    theta: Array

    def __call__(self, points: Points, likelihood: Likelihood) -> GradientSums:
        return block_gradient(self.view, points, likelihood.with_theta(self.theta))


class SparseEvidence(Parametrised):
    """The bound as a function of theta: the prior's parameters, then the likelihood's.

    It takes the place of `Evidence` for many rows. Evaluations that follow each other
    start from the belief of the one before; it is kept in ``warm`` and may be replaced,
    by None to start from nothing.

    Parameters
    ----------
    prior : template, whose free parameters make ``theta`` with those of the rows' likelihood.
    rows : the labelled rows.
    inducing : points of the processes; they stay where they are while theta moves.
    tol, max_iter : of the inner loop; see `polyfid.inference.sparse_loop.run`.

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
        rows: RowsView,
        inducing: Inducing,
        tol: float = 1e-4,
        max_iter: int = 100,
    ) -> None:
        self.prior, self.likelihood = prior, rows.likelihood
        self.rows, self.inducing = rows, inducing
        self.tol, self.max_iter = tol, max_iter
        self.warm: SparseBelief | None = None
        #: Told of every pass.
        self.watch: Callable[[SparseFixed], None] | None = None

    @property
    def points(self) -> Points:
        """The rows, or a sample of them."""
        return self.rows.points

    def fixed(self, theta: Array) -> tuple[Basis, SparseFixed]:
        """Inference at these parameters."""
        basis, labels = self._basis(theta), self._label_theta(theta)

        def look(belief: SparseBelief) -> Sums:
            return self.rows.reduce(ValuePass(View(basis, belief), labels))

        start = SparseBelief.prior(basis.total) if self.warm is None else self.warm
        fixed = run(look, start, self.tol, self.max_iter, self.watch)
        self.warm = fixed.belief
        return basis, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        theta = np.asarray(theta, dtype=float)
        basis, fixed = self.fixed(theta)
        if not gradient:
            return Value(fixed.bound, np.empty(0), fixed.report)
        view = GradientView(basis, fixed.belief)
        sums = self.rows.reduce(GradientPass(view, self._label_theta(theta)))
        bars = process_gradients(basis, fixed.belief, fixed.sums, sums)
        return Value(fixed.bound, self._gradient(basis, sums, bars), fixed.report)

    def _basis(self, theta: Array) -> Basis:
        return Basis(self.prior.with_theta(theta[: len(self.prior.theta)]), self.inducing)

    def _label_theta(self, theta: Array) -> Array:
        start = len(self.prior.theta)
        return theta[start : start + len(self.likelihood.theta)]

    def _gradient(self, basis: Basis, sums: GradientSums, bars: list[Array]) -> Array:
        mixing_bar = basis.prior.loadings_pullback(sums.A_bar)
        return np.concatenate([mixing_bar, *bars, sums.likelihood_bar])


class MovableEvidence(SparseEvidence):
    """The bound as a function of hyper-parameters and of where the inducing points are.

    ``theta`` is that of `SparseEvidence`, and then the coordinates of all points, row by row.
    Columns that a kernel only compares for equality, such as categories, have no slope, and points
    stay in them where they are.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.model.likelihoods import Logit
    >>> from polyfid.model.prior import Autoregressive
    >>> from polyfid.rows.source import LabelledPoints
    >>> points = Points(np.arange(4.0)[:, None], np.zeros(4, dtype=int))
    >>> rows = LabelledPoints(points, Logit(np.array([-1.0, -1.0, 1.0, 1.0]), np.ones(4)))
    >>> evidence = MovableEvidence(Autoregressive((RBF(),)), rows, Inducing((points.x[::3],)))
    >>> evidence(evidence.theta).gradient.round(2)  # of the length-scale, and of both points
    array([ 0.07,  0.11, -0.11])
    """

    @property
    def theta(self) -> Array:
        return np.concatenate([super().theta, *(z.ravel() for z in self.inducing.z)])

    @property
    def bounds(self) -> Array:
        n_places = sum(z.size for z in self.inducing.z)
        return np.concatenate([super().bounds, np.tile([-np.inf, np.inf], (n_places, 1))])

    @property
    def theta_names(self) -> tuple[str, ...]:
        places = (
            f"z[{s}][{i}, {c}]"
            for s, z in enumerate(self.inducing.z)
            for i, c in np.ndindex(*z.shape)
        )
        return (*super().theta_names, *places)

    @property
    def n_hyper(self) -> int:
        """Entries of theta that are no coordinates."""
        return len(super().theta)

    def inducing_at(self, theta: Array) -> Inducing:
        """The points with the coordinates that theta has."""
        z = self.inducing.z
        parts = np.split(theta[self.n_hyper :], np.cumsum([part.size for part in z])[:-1])
        return Inducing(tuple(p.reshape(old.shape) for p, old in zip(parts, z, strict=True)))

    def _basis(self, theta: Array) -> Basis:
        prior = self.prior.with_theta(theta[: len(self.prior.theta)])
        return MovableBasis(prior, self.inducing_at(theta))

    def _gradient(self, basis: Basis, sums: GradientSums, bars: list[Array]) -> Array:
        cuts = [len(kernel.theta) for kernel in self.prior.kernels]
        hyper = super()._gradient(basis, sums, [b[:n] for b, n in zip(bars, cuts, strict=True)])
        return np.concatenate([hyper, *(b[n:] for b, n in zip(bars, cuts, strict=True))])
