"""Passes over the rows: sums are all that sparse inference needs of them.

A pass turns a block of rows into its sums and needs nothing else, so that rows may come in blocks
of any size, from memory, from files or from other machines, several at a time.

For the gradient, at the best q the bound moves with the features alone (q is whitened: its KL has
no parameters),

    phi_bar_i = E l'_i mu + E l''_i (S - I) phi_i,  k_bar_ii = E l''_i / 2,

and a kernel is in k_s(Z_s, x_i) and k_s(x_i, x_i) of every row, and in K_uu once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import add
from typing import NamedTuple

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.inducing import Basis, LevelBlock, SparseBelief, pieces
from polyfid.inference.linalg import (
    NotPositiveDefinite,
    add_weighted_gram,
    lower_root,
    times_triangular,
)
from polyfid.inference.loop import Natural, Problem, State
from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points

#: Rows whose features are kept at a time: work that is done once per chunk then costs little.
CHUNK = 2048


class Sums(NamedTuple):
    """Sums over rows under a belief: of w phi phi^T, nu phi and E l; and how many rows."""

    gram: Array
    linear: Array
    value: float
    n_rows: int

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(*map(add, self, other))


class GradientSums(NamedTuple):
    """Adjoints from some rows: of loadings, of all processes' parameters, of the likelihood's."""

    A_bar: Array
    process_bar: Array
    likelihood_bar: Array

    def __add__(self, other: GradientSums) -> GradientSums:  # type: ignore[override]
        return GradientSums(*map(add, self, other))


class LevelBelief:
    """A belief in the coordinates of one level: mean, and C with S = C C^T."""

    def __init__(self, belief: SparseBelief, block: LevelBlock) -> None:
        self.block = block
        self.mean = belief.mean[block.columns]
        self.root = lower_root(belief.covariance[block.square])

    def moments(self, Phi: Array) -> tuple[Array, Array]:
        """Mean of phi^T v, and by how much its variance exceeds that under the prior."""
        Y = times_triangular(Phi, self.root, lower=True, out=np.empty_like(Phi))
        excess = np.einsum("ij,ij->i", Y, Y) - np.einsum("ij,ij->i", Phi, Phi)
        return Phi @ self.mean, excess


class _Pass:
    """A function of a block of rows under a belief; ``theta`` is that of the likelihood."""

    def __init__(self, basis: Basis, belief: SparseBelief, theta: Array) -> None:
        self.basis, self.theta = basis, theta
        self.levels = [LevelBelief(belief, block) for block in basis.levels]


class SumsPass(_Pass):
    """The sums of a block of rows under a belief. Can be sent to another process."""

    def __call__(self, points: Points, likelihood: Likelihood) -> Sums:
        likelihood = likelihood.with_theta(self.theta)
        m = self.basis.inducing.total
        gram, linear, value = np.zeros((m, m)), np.zeros(m), 0.0
        for level, of_level in points.segments():
            block = self.levels[level].block
            own = np.zeros((block.width, block.width))
            for start in range(of_level.start, of_level.stop, CHUNK):
                rows = slice(start, min(start + CHUNK, of_level.stop))
                chunk, labels = _take(points, likelihood, rows)
                Phi, mean, variance = self._marginals(level, chunk)
                expected = labels.expectations(mean, variance)
                w = -expected.second
                value += float(expected.value.sum())
                linear[block.columns] += (expected.first + w * mean) @ Phi
                add_weighted_gram(Phi, w, own)
            gram[block.square] += own
        return Sums(gram, linear, value, len(points))

    def _marginals(self, level: int, points: Points) -> tuple[Array, Array, Array]:
        """Features (n, width), mean and variance (n,) of the latent values of one level's rows."""
        of_level = self.levels[level]
        width = of_level.block.width
        Phi = np.empty((len(points), width))
        mean, variance = np.empty(len(points)), self.basis.prior.diagonal(points)
        for rows in pieces(slice(0, len(points)), width):
            self.basis.level_features(points.x[rows], of_level.block, Phi[rows])
            mean[rows], excess = of_level.moments(Phi[rows])
            variance[rows] += excess
        return Phi, mean, np.maximum(variance, 0.0, out=variance)


class GradientPass(_Pass):
    """The adjoints from a block of rows under a belief. Can be sent to another process."""

    def __init__(self, basis: Basis, belief: SparseBelief, theta: Array) -> None:
        super().__init__(basis, belief, theta)
        self._onward = [self._onward_of(belief, of_level) for of_level in self.levels]

    def _onward_of(self, belief: SparseBelief, of_level: LevelBelief) -> Array:
        """From (E l'' phi, E l') to K_uf_bar = L^-T phi_bar, (width + 1, width)."""
        block = of_level.block
        excess = belief.covariance[block.square]
        excess.flat[:: len(excess) + 1] -= 1.0
        stacked = np.vstack([excess, of_level.mean])
        onward = np.empty_like(stacked)
        for s in block.processes:
            own = block.slices[s]
            np.matmul(stacked[:, own], self.basis.whiteners[s].T, out=onward[:, own])
        return onward

    def __call__(self, points: Points, likelihood: Likelihood) -> GradientSums:
        likelihood = likelihood.with_theta(self.theta)
        shapes = self.basis.prior.loadings.shape, self.basis.parameters[-1].stop, len(self.theta)
        total = GradientSums(*map(np.zeros, shapes))
        for t, of_level in points.segments():
            for rows in pieces(of_level, self.levels[t].block.width):
                self._add(total, t, *_take(points, likelihood, rows))
        return total

    def _add(self, total: GradientSums, level: int, points: Points, likelihood: Likelihood) -> None:
        """Add the adjoints of rows of one level to the total, in place."""
        basis, block, x = self.basis, self.levels[level].block, points.x
        padded = np.empty((len(points), block.width + 1))
        Phi, A_bar = padded[:, :-1], total.A_bar[level]
        at = {s: basis.linearise(x, s) for s in block.processes}
        for s in block.processes:
            basis.whiten(at[s].K, s, block.loading[s], Phi[:, block.slices[s]])
        mean, excess = self.levels[level].moments(Phi)
        variance = np.maximum(basis.prior.diagonal(points) + excess, 0.0)
        _, first, second = likelihood.expectations(mean, variance)
        Phi *= second[:, None]
        padded[:, -1] = first
        K_bar = padded @ self._onward[level]
        for s in block.processes:
            own = np.ascontiguousarray(K_bar[:, block.slices[s]])
            A_bar[s] += np.vdot(own, at[s].K)
            total.process_bar[basis.parameters[s]] += block.loading[s] * basis.pull(at[s], own)
        for s in block.all_processes:
            loading = block.loading[s]
            A_bar[s] += loading * (second @ basis.prior.kernels[s].diagonal(x))
            diagonal_bar = basis.pull_diagonal(x, 0.5 * second, s)
            total.process_bar[basis.parameters[s]] += loading**2 * diagonal_bar
        total.likelihood_bar[...] += likelihood.expectations_pullback(mean, variance)


def process_gradients(
    basis: Basis, belief: SparseBelief, sums: Sums, rows: GradientSums
) -> list[Array]:
    """The gradient in each process's parameters, from both sums under the belief."""
    # sum_i phi_bar_i phi_i^T, with the sum of E l' phi out of that of nu phi.
    slope = sums.linear - sums.gram @ belief.mean
    B = np.outer(belief.mean, slope) - (belief.covariance @ sums.gram - sums.gram)
    bars = zip(basis.parameters, basis.pull_features(B), strict=True)
    return [rows.process_bar[own] + bar for own, bar in bars]


class SparseProblem(Problem[SparseBelief]):
    """Natural-gradient ascent of the evidence lower bound: ``sums`` is a pass over the rows."""

    rounding = 1e-12

    def __init__(self, sums: Callable[[SparseBelief], Sums], start: SparseBelief) -> None:
        self._sums, self._start = sums, start

    def begin(self) -> State[SparseBelief]:
        return self._state(self._start)

    def reach(self, position: Natural, now: State[SparseBelief]) -> Iterator[State[SparseBelief]]:
        try:
            yield self._state(SparseBelief(*position))
        except NotPositiveDefinite:  # as negative sites may bring about
            return

    def _state(self, belief: SparseBelief) -> State[SparseBelief]:
        sums = self._sums(belief)
        gap = belief.whitened(sums.gram - belief.gram, sums.linear - belief.linear)
        merit, distance = sums.value - belief.divergence, float(np.linalg.norm(gap))
        at, to = (belief.gram, belief.linear), (sums.gram, sums.linear)
        return State(belief, sums, at, to, merit, distance)


def _take(points: Points, likelihood: Likelihood, rows: slice) -> tuple[Points, Likelihood]:
    return points.take(rows), likelihood.take(np.arange(rows.start, rows.stop))
