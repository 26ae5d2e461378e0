"""The evidence lower bound of hyper-parameters, with its gradient, from passes over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyfid.data import Points
from polyfid.evidence import Parametrised, Value
from polyfid.inference import SCHEMES
from polyfid.likelihoods import Likelihood
from polyfid.prior import Prior
from polyfid.sparse.belief import SparseBelief
from polyfid.sparse.gradient import GradientSums, GradientView, block_gradient, gradient
from polyfid.sparse.inducing import Basis, Inducing
from polyfid.sparse.loop import SparseFixed, run
from polyfid.sparse.rows import Rows
from polyfid.sparse.sums import Sums, View, block_sums

Array = NDArray[np.float64]


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

    It takes the place of `polyfid.evidence.Evidence` for many rows. Evaluations that follow each
    other start from the belief of the one before; it is kept in ``warm`` and may be replaced,
    by None to start from nothing.

    Parameters
    ----------
    prior : template, whose free parameters make ``theta`` with those of the rows' likelihood.
    rows : the labelled rows.
    inducing : points of the processes; they stay where they are while theta moves.
    tol, max_iter : of the inner loop; see `polyfid.sparse.loop.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.likelihoods import Logit
    >>> from polyfid.prior import Autoregressive
    >>> from polyfid.sparse import MemoryRows
    >>> points = Points(np.arange(4.0)[:, None], np.zeros(4, dtype=int))
    >>> rows = MemoryRows(points, Logit(np.array([-1.0, -1.0, 1.0, 1.0]), np.ones(4)))
    >>> evidence = SparseEvidence(Autoregressive((RBF(),)), rows, Inducing((points.x[::3],)))
    >>> round(evidence(evidence.theta).value, 3)
    -2.76
    """

    scheme = SCHEMES["variational"]

    def __init__(
        self,
        prior: Prior,
        rows: Rows,
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
        cut = len(self.prior.theta)
        basis = Basis(self.prior.with_theta(theta[:cut]), self.inducing)

        def look(belief: SparseBelief) -> Sums:
            return self.rows.reduce(ValuePass(View(basis, belief), theta[cut:]))

        start = SparseBelief.prior(basis.total) if self.warm is None else self.warm
        fixed = run(look, start, self.tol, self.max_iter, self.watch)
        self.warm = fixed.belief
        return basis, fixed

    def __call__(self, theta: Array, gradient: bool = True) -> Value:
        theta = np.asarray(theta, dtype=float)
        basis, fixed = self.fixed(theta)
        if not gradient:
            return Value(fixed.bound, np.empty(0), fixed.report)
        return Value(fixed.bound, self._gradient(theta, basis, fixed), fixed.report)

    def _gradient(self, theta: Array, basis: Basis, fixed: SparseFixed) -> Array:
        view = GradientView(basis, fixed.belief)
        bars = self.rows.reduce(GradientPass(view, theta[len(self.prior.theta) :]))
        return gradient(basis, fixed.belief, fixed.sums, bars)
