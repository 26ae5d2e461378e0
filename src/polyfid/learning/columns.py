"""Which columns matter: the gain in evidence that a kernel of one column would bring.

With the posterior of a model at hand, a further kernel of variance a over column c changes the log
evidence by about s a - I a^2 / 2 for small a, where, with K_c its covariance of variance one,

    s = (alpha^T K_c alpha - tr(R K_c)) / 2,  I = tr(R K_c R K_c) / 2.

Columns are cut into a few bins, so that K_c = Z G Z^T with indicators Z of the bins, and all that
is needed of the rows are sums over bins.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array, Indices
from polyfid.inference.exact import ExactBelief
from polyfid.rows import Points

#: Bins per column, at most, and columns at a time, which bounds the memory.
N_BINS, _CHUNK = 12, 128


@dataclass(frozen=True)
class Bins:
    """Columns in bins: the bin of every row, (n, d), and the covariance G of bins, (d, b, b)."""

    code: Indices
    G: Array

    @classmethod
    def of(cls, x: Array, categories: Container[int] = ()) -> Bins:
        """Numbers in bins of about as many rows each; each category in one, the rarest in one."""
        code = np.empty(x.shape, dtype=np.intp)
        G = np.empty((x.shape[1], N_BINS, N_BINS))
        for c, column in enumerate(x.T):
            _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
            if c in categories:
                by_size = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
                code[:, c] = np.minimum(by_size, N_BINS - 1)[which]
                G[c] = np.eye(N_BINS)
                continue
            rank = (np.cumsum(counts) - 0.5 * counts)[which] / len(column)
            code[:, c] = rank * N_BINS
            in_bin = np.bincount(code[:, c], minlength=N_BINS)
            middle = np.bincount(code[:, c], rank, minlength=N_BINS) / np.maximum(in_bin, 1)
            spread = max(float(np.std(rank)), np.finfo(float).tiny)
            G[c] = np.exp(-np.abs(np.subtract.outer(middle, middle)) / spread)  # steps in ranks
        return cls(code, G)

    def relevance(self, belief: ExactBelief, points: Points, loading: Array) -> Array:
        """By how many standard deviations s is above zero, (d,), or less than zero if below.

        ``loading`` (n_levels,) says how much of the further function each level has. It is what
        the levels share so far; a column may as well matter to one level only, so the same is
        computed for each level by itself.
        """
        R = np.triu(belief.inverse.matrix)
        R += np.triu(R, 1).T
        R *= belief.sites.root
        R *= belief.sites.root[:, None]
        chunks = range(0, len(self.G), _CHUNK)
        return np.concatenate(
            [
                self._relevance(slice(a, a + _CHUNK), belief.alpha, R, points, loading)
                for a in chunks
            ]
        )

    def _relevance(
        self, columns: slice, alpha: Array, R: Array, points: Points, loading: Array
    ) -> Array:
        """`relevance` of some columns."""
        Z = np.equal.outer(self.code[:, columns].T, np.arange(N_BINS)).astype(float)
        G, n_levels = self.G[columns], len(loading)
        sums = np.zeros((n_levels, len(G), N_BINS))  # Z^T alpha and Z^T R Z by level
        blocks = np.zeros((n_levels, n_levels, len(G), N_BINS, N_BINS))
        for t, rows in points.segments():
            sums[t] = np.einsum("dnb,n->db", Z[:, rows], alpha[rows])
            half = Z[:, rows].transpose(0, 2, 1) @ R[rows]
            for u, cols in points.segments():
                blocks[t, u] = half[:, :, cols] @ Z[:, cols]

        def standardised(loading: Array) -> Array:
            u = np.einsum("t,tdb->db", loading, sums)
            GP = G @ np.einsum("t,u,tudab->dab", loading, loading, blocks)
            s = np.einsum("da,dab,db->d", u, G, u) - np.einsum("daa->d", GP)
            variance = 2.0 * np.einsum("dab,dba->d", GP, GP)
            return np.asarray(s / np.sqrt(np.maximum(variance, np.finfo(float).tiny)))

        alone = np.maximum([standardised(level) for level in np.eye(n_levels)], 0.0)
        return np.maximum(standardised(loading), np.sqrt(np.square(alone).sum(axis=0)))
