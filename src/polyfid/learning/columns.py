"""Which columns matter: the gain in evidence that a kernel of one column would bring.

With the posterior of a model at hand, a further kernel of variance a over column c changes the log
evidence by about s a - I a^2 / 2 for small a, where, with K_c its covariance of variance one,

    s = (alpha^T K_c alpha - tr(R K_c)) / 2,  I = tr(R K_c R K_c) / 2.

Columns are cut into a few bins, so that K_c = Z G Z^T with indicators Z of the bins, and all that
is needed of the rows are sums over bins.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed

from polyfid.arrays import Array, Indices
from polyfid.inference import SCHEMES
from polyfid.inference.exact import ExactBelief
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.kernels import Intercept
from polyfid.learning.candidates import Candidate, Comparison, Workers, by_objective, carry, climb
from polyfid.learning.climb import make_hyperprior
from polyfid.learning.evidence import Evidence
from polyfid.learning.structures import first_code
from polyfid.rows import Points

#: Columns that may be singled out; no more are tried where the last ones lost so many nats.
N_SINGLED_OUT, PATIENCE = 6, 1.0
#: What two columns that do not matter one by one must gain together, in nats.
SURPRISE = 6.0
#: Variance of the intercepts of the model with which the search for columns begins.
EMPTY = 4.0

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
        together, apart = standardised(loading), np.sqrt(np.square(alone).sum(axis=0))
        # Not zero where no level is above it, or the first of several such columns would be chosen.
        return np.where(apart > 0.0, np.maximum(together, apart), together)


def single_out(on: Comparison, climbed: list[Candidate], pool: Workers) -> list[Candidate]:
    """Structures that give the few columns that matter most a kernel of their own.

    Columns are added one by one to the best structure, and the best choice is tried with others.
    """
    try:
        grown = _grow(on, max(climbed, key=by_objective)) if climbed else []
    except NotPositiveDefinite:  # features or weights of extreme size
        grown = []
    if not grown:
        return []
    best = max(grown, key=by_objective)
    columns, found_with = best.structure.columns, replace(best.structure, columns=())
    others = (c for c in climbed if c.structure != found_with)
    also = pool.tune(
        delayed(climb)(on, replace(c.structure, columns=columns), c.features, best) for c in others
    )
    return [best, *also]


def _grow(on: Comparison, base: Candidate) -> list[Candidate]:
    """A structure with ever more columns singled out, as long as that does not lose."""
    d = base.n_columns
    if d < 2:
        return []
    # The first column is the one by which a model without any would gain most.
    empty = base.structure.linked(Intercept(EMPTY), d, on.options)
    evidence = replace(base.evidence, prior=empty)
    last = _with_columns(on, base, [_most_relevant(evidence, evidence.theta, base)])
    tried = [last]
    if d > 2:
        # Two columns may matter together and neither alone. Many pairs gain a little by chance.
        pair = _with_columns(
            on, base, np.argsort(-_eagerness(on, base), kind="stable")[:2].tolist()
        )
        tried.append(pair)
        if pair.objective > max(base.objective, last.objective) + SURPRISE:
            last = pair
    return [last, *grow_further(on, last, tried)]


def grow_further(
    on: Comparison, last: Candidate, tried: Sequence[Candidate] = ()
) -> list[Candidate]:
    """Structures with further columns, until one of them loses clearly; some were tried before."""
    best, grown = last.objective, []
    while len(last.structure.columns) < min(N_SINGLED_OUT, last.n_columns - 1):
        column = _most_relevant(last.evidence, last.optimum.theta, last)
        columns = sorted([*last.structure.columns, column])
        same = (c for c in tried if list(c.structure.columns) == columns)
        last = next(same, None) or _with_columns(on, last, columns)
        grown.append(last)
        best = max(best, last.objective)
        if last.objective < best - PATIENCE:
            break
    return grown


def _with_columns(on: Comparison, before: Candidate, columns: Iterable[int]) -> Candidate:
    structure = replace(before.structure, columns=tuple(sorted(columns)))
    return climb(on, structure, before.features, before)


def _most_relevant(evidence: Evidence, theta: Array, last: Candidate) -> int:
    """The column by which a model of the rows would gain most, among those not singled out."""
    points, d = evidence.points, last.n_columns
    bins = Bins.of(points.x[:, :d], range(first_code(last.features, d), d))
    belief = evidence.fixed(theta, gradient=True)[2].belief
    loadings = last.evidence.at(last.optimum.theta)[0].loadings
    relevance = bins.relevance(belief, points, loadings[:, 0])
    relevance[list(last.structure.columns)] = -np.inf
    return int(np.argmax(relevance))


def _eagerness(on: Comparison, base: Candidate) -> Array:
    """How fast the evidence grows as the length-scale of one column becomes shorter, (d,)."""
    d = base.n_columns
    prior = base.structure.prior(base.features, d, on.options, ard=True)
    evidence = Evidence(prior, base.evidence.likelihood, base.evidence.points, SCHEMES["laplace"])
    hyperprior = make_hyperprior(prior, evidence.likelihood, evidence.points, weak=True)
    theta = hyperprior.mean + carry(base, base.optimum.theta - base.hyperprior.mean, evidence)
    slope = evidence(theta).gradient
    lengths = np.array(["length_scale" in name for name in evidence.theta_names])
    return -slope[lengths].reshape(-1, d).sum(axis=0)
