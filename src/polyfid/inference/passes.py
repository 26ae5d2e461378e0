"""Sums over rows: all that inference wants to know of them.

A block of rows is turned into its sums by a function that needs nothing else, so that rows may
come in blocks of any size, from memory, from files or from other machines, several at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array
from polyfid.inference.inducing import Basis, Seen, pieces
from polyfid.inference.linalg import add_weighted_gram, lower_root, times_triangular
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.model.likelihoods import Likelihood
from polyfid.rows import Points

#: Rows whose features are kept at a time: enough that what is done once a chunk costs little.
CHUNK = 2048


@dataclass(frozen=True)
class Sums:
    """What rows say under a belief: sums of w phi phi^T, nu phi and E l; rows and weights."""

    gram: Array
    linear: Array
    value: float
    n_rows: int
    weight: float

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.gram + other.gram,
            self.linear + other.linear,
            self.value + other.value,
            self.n_rows + other.n_rows,
            self.weight + other.weight,
        )


class LevelView:
    """A belief in the coordinates that rows of one level see: mean, and C with S = C C^T."""

    def __init__(self, belief: SparseBelief, seen: Seen) -> None:
        self.seen = seen
        self.mean = belief.mean[seen.columns]
        self.root = lower_root(belief.covariance[seen.block])

    def moments(self, Phi: Array) -> tuple[Array, Array]:
        """Mean of phi^T v, and by how much its variance exceeds that under the prior."""
        Y = times_triangular(Phi, self.root, lower=True, out=np.empty_like(Phi))
        excess = np.einsum("ij,ij->i", Y, Y) - np.einsum("ij,ij->i", Phi, Phi)
        return Phi @ self.mean, excess


class View:
    """A belief as the rows of each level see it: what blocks share in a pass over the rows."""

    def __init__(self, basis: Basis, belief: SparseBelief) -> None:
        self.basis = basis
        self.levels = [LevelView(belief, seen) for seen in basis.levels]


def block_sums(view: View, points: Points, likelihood: Likelihood) -> Sums:
    """The sums of a block of rows, sorted by level.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.kernels import RBF
    >>> from polyfid.model.likelihoods import Logit
    >>> from polyfid.model.prior import Autoregressive
    >>> from polyfid.inference.inducing import Inducing
    >>> basis = Basis(Autoregressive((RBF(),)), Inducing((np.zeros((1, 1)),)))
    >>> points = Points(np.zeros((2, 1)), np.zeros(2, dtype=int))
    >>> labels = Logit(np.array([1.0, 1.0]), np.ones(2))
    >>> block_sums(View(basis, SparseBelief.prior(1)), points, labels).linear.round(6)
    array([1.])
    """
    m = view.basis.total
    gram, linear, value = np.zeros((m, m)), np.zeros(m), 0.0
    for level, of_level in points.segments():
        seen = view.levels[level].seen
        own = np.zeros((seen.width, seen.width))
        for rows in _chunks(of_level):
            chunk, labels = part_of(points, likelihood, rows)
            Phi, mean, variance = _marginals(view, level, chunk)
            expected = labels.expectations(mean, variance)
            w = -expected.second
            value += float(expected.value.sum())
            linear[seen.columns] += (expected.first + w * mean) @ Phi
            add_weighted_gram(Phi, w, own)
        gram[seen.block] += own
    return Sums(gram, linear, value, len(points), float(likelihood.weight.sum()))


def _chunks(rows: slice) -> Iterator[slice]:
    for start in range(rows.start, rows.stop, CHUNK):
        yield slice(start, min(start + CHUNK, rows.stop))


def part_of(points: Points, likelihood: Likelihood, rows: slice) -> tuple[Points, Likelihood]:
    """Some rows of a block."""
    return (
        Points(points.x[rows], points.level[rows]),
        likelihood.take(np.arange(rows.start, rows.stop)),
    )


def _marginals(view: View, level: int, points: Points) -> tuple[Array, Array, Array]:
    """Features (n, width), mean and variance (n,) of the latent values of rows of one level."""
    basis, of_level = view.basis, view.levels[level]
    Phi = np.empty((len(points), of_level.seen.width))
    mean, variance = np.empty(len(points)), basis.prior.diagonal(points)
    for rows in pieces(slice(0, len(points)), of_level.seen.width):
        basis.level_features(points.x[rows], of_level.seen, Phi[rows])
        mean[rows], excess = of_level.moments(Phi[rows])
        variance[rows] += excess
    return Phi, mean, np.maximum(variance, 0.0, out=variance)
