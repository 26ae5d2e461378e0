"""The gradient of the bound in the hyper-parameters: a sum over rows too.

At the best q the bound moves with the features alone (q is whitened: its KL has no parameters),

    phi_bar_i = E l'_i mu + E l''_i (S - I) phi_i,  k_bar_ii = E l''_i / 2,

and a kernel has its part in k_s(Z_s, x_i) and k_s(x_i, x_i) of every row, and in K_uu once for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.inducing import Basis, pieces
from polyfid.inference.passes import LevelView, Sums, View, part_of
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points


@dataclass(frozen=True)
class GradientSums:
    """Adjoints from some rows: of loadings, of each process's parameters, of the likelihood's."""

    A_bar: Array
    process_bars: tuple[Array, ...]
    likelihood_bar: Array

    def __add__(self, other: GradientSums) -> GradientSums:
        return GradientSums(
            self.A_bar + other.A_bar,
            tuple(a + b for a, b in zip(self.process_bars, other.process_bars, strict=True)),
            self.likelihood_bar + other.likelihood_bar,
        )


class _Adjoint:
    """phi_bar of rows of one level on its way to K_uf_bar = L^-T phi_bar: one product a row."""

    def __init__(self, basis: Basis, belief: SparseBelief, view: LevelView) -> None:
        seen = view.seen
        excess = belief.covariance[seen.block]
        excess.flat[:: len(excess) + 1] -= 1.0
        stacked = np.vstack([excess, view.mean])
        self._onward = np.empty_like(stacked)
        for s in seen.processes:
            part = seen.parts[s]
            np.matmul(stacked[:, part], basis.whiteners[s].T, out=self._onward[:, part])

    def __call__(self, Phi: Array, first: Array, second: Array) -> Array:
        """K_fu_bar, (n, width), from E l' and E l''; ``Phi`` has one more column and is lost."""
        Phi[:, :-1] *= second[:, None]
        Phi[:, -1] = first
        return np.asarray(Phi @ self._onward)


class GradientView(View):
    """A belief as the rows of each level see it, with what their adjoints need."""

    def __init__(self, basis: Basis, belief: SparseBelief) -> None:
        super().__init__(basis, belief)
        self.adjoints = [_Adjoint(basis, belief, view) for view in self.levels]


def block_gradient(view: GradientView, points: Points, likelihood: Likelihood) -> GradientSums:
    """The part of a block of rows, sorted by level, in the gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import Constant
    >>> from polyfid.model.likelihoods import Logit
    >>> from polyfid.model.prior import Autoregressive
    >>> from polyfid.inference.inducing import Inducing
    >>> basis = Basis(Autoregressive((Constant(4.0),)), Inducing((np.zeros((1, 1)),)))
    >>> points = Points(np.zeros((1, 1)), np.zeros(1, dtype=int))
    >>> view = GradientView(basis, SparseBelief(np.eye(1), np.zeros(1)))
    >>> block_gradient(view, points, Logit(np.ones(1), np.ones(1))).A_bar.round(3)
    array([[-0.363]])
    """
    prior = view.basis.prior
    A_bar = np.zeros_like(prior.loadings)
    bars = [np.zeros(view.basis.n_parameters(s)) for s in range(len(prior.kernels))]
    likelihood_bar = np.zeros(len(likelihood.theta))
    for t, of_level in points.segments():
        for rows in pieces(of_level, view.levels[t].seen.width):
            piece, labels = part_of(points, likelihood, rows)
            likelihood_bar += _piece_gradient(view, t, piece, labels, A_bar[t], bars)
    return GradientSums(A_bar, tuple(bars), likelihood_bar)


def _piece_gradient(
    view: GradientView,
    level: int,
    points: Points,
    likelihood: Likelihood,
    A_bar: Array,
    bars: list[Array],
) -> Array:
    """Add a piece's part to the adjoints of loadings and kernels; return the likelihood's."""
    basis, of_level = view.basis, view.levels[level]
    seen, x = of_level.seen, points.x
    padded, kept = np.empty((len(points), seen.width + 1)), {}
    Phi = padded[:, :-1]
    for s in seen.processes:
        kept[s] = basis.covariance_vjp(x, s)
        basis.whiten(kept[s][0], s, seen.loading[s], Phi[:, seen.parts[s]])
    mean, excess = of_level.moments(Phi)
    variance = np.maximum(basis.prior.diagonal(points) + excess, 0.0)
    _, first, second = likelihood.expectations(mean, variance)
    K_bar = view.adjoints[level](padded, first, second)
    for s in seen.processes:
        loading, (K, pull) = seen.loading[s], kept[s]
        own = np.ascontiguousarray(K_bar[:, seen.parts[s]])
        A_bar[s] += np.vdot(own, K)
        bars[s] += loading * pull(own)
    for s in seen.all_processes:
        loading = seen.loading[s]
        diagonal, pull_diagonal = basis.diagonal_vjp(x, s)
        A_bar[s] += loading * (second @ diagonal)
        bars[s] += loading**2 * pull_diagonal(0.5 * second)
    return likelihood.expectations_pullback(mean, variance)


def process_gradients(
    basis: Basis, belief: SparseBelief, sums: Sums, rows: GradientSums
) -> list[Array]:
    """The gradient in each process's parameters, from sums under the belief."""
    # sum_i phi_bar_i phi_i^T, with the sum of E l' phi out of that of nu phi.
    slope = sums.linear - sums.gram @ belief.mean
    B = np.outer(belief.mean, slope) - (belief.covariance @ sums.gram - sums.gram)
    return [a + b for a, b in zip(rows.process_bars, basis.pullback(B), strict=True)]
