"""Dense linear algebra on symmetric matrices kept in one triangle: the only callers of LAPACK.

A symmetric matrix is a C-ordered array of which the upper triangle is valid, so that its transpose
is what LAPACK calls a Fortran-ordered matrix with a valid lower triangle: no copies are made.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from polyfid.arrays import Array, Indices
from polyfid.rows.source import one_blas_thread

#: Below this size threads of BLAS cost more than they bring, and very much more on a busy machine.
SMALL = 800
#: Size of the blocks into which triangular matrices are cut. Unlike scipy's triangular products,
#: numpy's products of blocks leave the interpreter to other threads.
_TRIANGULAR_BLOCK = 64
#: The error of a variance, as estimated, up to which single precision is used. A probability moves
#: by at most 0.05 of the error, and the logarithm of a tiny one by at most 0.5 of it.
SINGLE_ERROR = 1e-3


def suitable_threads(n: int) -> AbstractContextManager[Any]:
    """A context for work on matrices of size n: small ones are left to one thread of BLAS."""
    return one_blas_thread() if n < SMALL else nullcontext()


class NotPositiveDefinite(ArithmeticError):  # noqa: N818
    """There is no such posterior: a matrix that must be positive definite is not."""


class Diverged(NotPositiveDefinite):
    """An iteration ended far from a posterior."""


@dataclass(frozen=True)
class Inverse:
    """B^-1 as a matrix, upper triangle valid, and log|B|."""

    matrix: Array
    log_det: float

    def solve(self, b: Array) -> Array:
        return symv(self.matrix, b)


@dataclass(frozen=True)
class QuadraticForm:
    """diag(V Q V^T), (m,), for many rows V, (m, n): Q = G diag(signs) G^T, G (n, r).

    NumPy's products, unlike SciPy's, let other threads of Python run. Without signs they are all
    one and G is upper triangular.
    """

    G: Array
    signs: Array | None = None

    def __call__(self, V: Array, most: float = np.inf) -> Array:
        """The values; in single precision if that is safe, given that none is more than ``most``.

        With h = V G, whose rows are at most sqrt(most) long, rounding errors of h change h h^T by
        2 sqrt(most) epsilon |V| |G|. They point anywhere, so that the number of terms drops out.
        """
        G = self.G
        if max(most, self._single_error) < np.inf:
            largest = max(V.max(initial=0.0), -V.min(initial=0.0))
            if np.sqrt(most) * largest * self._single_error <= SINGLE_ERROR:
                G = self._single
        V = V.astype(G.dtype, copy=False)
        if self.signs is not None:
            return np.asarray(np.square(V @ G) @ self.signs)
        half = times_triangular(V, G, lower=False, out=np.empty_like(V))
        return np.einsum("ij,ij->i", half, half)

    @cached_property
    def _single(self) -> Array:
        return self.G.astype(np.float32)

    @cached_property
    def _single_error(self) -> float:
        """Error in single precision, relative to the largest values of sqrt(V Q V^T) and |V|."""
        if self.G.size == 0 or (self.signs is not None and (self.signs < 0.0).any()):
            return np.inf  # rows of h may be longer than the values say
        n, r = self.G.shape
        return 2.0**-23 * float(np.sqrt(np.square(self.G).sum() * max(n / r, 1.0)))


class Cholesky:
    """B = L L^T of a positive definite matrix; takes over (and destroys) the array B.

    As of every factor, B = H^-1 diag(signs) H^-T.
    """

    signs = 1.0

    def __init__(self, B: Array) -> None:
        self._factor = _checked(lapack.dpotrf(B.T, lower=1, clean=0, overwrite_a=1))

    @property
    def log_det(self) -> float:
        return 2.0 * float(np.log(np.diagonal(self._factor)).sum())

    def solve(self, b: Array) -> Array:
        """B^-1 b."""
        if b.ndim == 1:
            half = blas.dtrsv(self._factor, b, lower=1)
            return np.asarray(blas.dtrsv(self._factor, half, lower=1, trans=1, overwrite_x=1))
        return np.asarray(lapack.dpotrs(self._factor, b, lower=1)[0])

    def half_solve(self, b: Array, overwrite: bool = False) -> Array:
        """H b = h, with b^T B^-1 b = h^T diag(signs) h, for b (n, m)."""
        return np.asarray(blas.dtrsm(1.0, self._factor, b, lower=1, overwrite_b=overwrite))

    def quadratic(self, V: Array, overwrite: bool = False) -> Array:
        """diag(V^T B^-1 V), (m,)."""
        half = self.half_solve(V, overwrite).T
        return np.asarray(np.einsum("ij,ij->i", half, half))

    def quadratic_form(self, d: Array) -> QuadraticForm:
        """diag(d) B^-1 diag(d), ready for many rows."""
        inverse = _checked(lapack.dtrtri(self._factor, lower=1))
        # LAPACK leaves anything in the other triangle, and not always numbers.
        return QuadraticForm(np.ascontiguousarray((np.tril(inverse) * d).T))

    def into_inverse(self) -> Inverse:
        """B^-1, in the memory of the factor, which is gone afterwards."""
        log_det = self.log_det
        inverse = _checked(lapack.dpotri(self._factor, lower=1, overwrite_c=1))
        del self._factor
        return Inverse(np.asarray(inverse.T), log_det)

    def __getstate__(self) -> dict[str, Any]:
        """The triangle of L, packed; LAPACK never writes to the other one."""
        n = len(self._factor)
        return {"size": n, "packed": self._factor.T[_upper_triangle(n)]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        n, packed = state["size"], np.asarray(state["packed"], dtype=float)
        if type(n) is not int or n < 0 or packed.shape != (n * (n + 1) // 2,):
            raise ValueError(f"a triangle of size {n!r} does not have entries {packed.shape}")
        upper = np.zeros((n, n))
        upper[_upper_triangle(n)] = packed
        self._factor = upper.T


@dataclass(frozen=True)
class Indefinite:
    """B = J + D K D with J = diag(+1 or -1), where some w < 0: a Cholesky factor with signs.

    With the rows in ``order``, the first ``n_positive`` of them those of positive sites, B is
    L diag(signs) L^T, L lower triangular.
    """

    order: Indices
    L: Array
    n_positive: int

    def __post_init__(self) -> None:
        n = len(self.order)
        if self.L.shape != (n, n) or not 0 <= self.n_positive <= n:
            raise ValueError(f"{n} rows, {self.n_positive} positive, and a factor {self.L.shape}")
        if not np.array_equal(np.sort(self.order), np.arange(n)):
            raise ValueError(f"an order of {n} rows must have each of them once")
        if not (np.diagonal(self.L) > 0.0).all():
            raise ValueError("a Cholesky factor must have a positive diagonal")

    @classmethod
    def of(cls, B: Array, signs: Array) -> Indefinite:
        """The factor of B, upper triangle valid, which must have as many eigenvalues as J below 0.

        Then the block of positive sites is positive definite, and what the others leave of it,
        its Schur complement, negative definite.
        """
        order, n = np.argsort(-signs, kind="stable"), int((signs > 0.0).sum())
        full = np.where(_upper_triangle(len(B)), B, B.T).take(order, 0).take(order, 1)
        try:
            L = np.zeros_like(full)
            L[:n, :n] = lower_root(full[:n, :n])
            L[n:, :n] = blas.dtrsm(1.0, L[:n, :n], full[:n, n:], lower=1).T if n else 0.0
            L[n:, n:] = lower_root(L[n:, :n] @ L[n:, :n].T - full[n:, n:])
        except NotPositiveDefinite:
            raise NotPositiveDefinite("negative sites outweigh the prior") from None
        if np.square(np.diagonal(L)).min() < 1e-12:
            raise NotPositiveDefinite("negative sites outweigh the prior")
        return cls(order, L, n)

    @property
    def signs(self) -> Array:
        return np.where(np.arange(len(self.order)) < self.n_positive, 1.0, -1.0)

    @property
    def log_det(self) -> float:
        return 2.0 * float(np.log(np.diagonal(self.L)).sum())

    def solve(self, b: Array) -> Array:
        half = self.half_solve(b if b.ndim == 2 else b[:, None])
        result = np.empty_like(half)
        result[self.order] = blas.dtrsm(1.0, self.L, self.signs[:, None] * half, lower=1, trans_a=1)
        return result.reshape(b.shape)

    def half_solve(self, b: Array, overwrite: bool = False) -> Array:
        return np.asarray(blas.dtrsm(1.0, self.L, b[self.order], lower=1))

    def quadratic(self, V: Array, overwrite: bool = False) -> Array:
        half = self.half_solve(V).T
        return np.asarray(np.einsum("ij,ij->i", half * self.signs, half))

    def quadratic_form(self, d: Array) -> QuadraticForm:
        return QuadraticForm(np.ascontiguousarray(d[:, None] * self._inverse_root.T), self.signs)

    def into_inverse(self) -> Inverse:
        H, n = self._inverse_root, self.n_positive
        return Inverse(H[:n].T @ H[:n] - H[n:].T @ H[n:], self.log_det)

    @property
    def _inverse_root(self) -> Array:
        """H with B^-1 = H^T diag(signs) H."""
        inverse = _checked(lapack.dtrtri(self.L.T, lower=0)).T
        return inverse.take(np.argsort(self.order), 1)


Factor = Cholesky | Indefinite


def _checked(result: tuple[Array, int]) -> Array:
    """What a routine of LAPACK returned; its second value says where the matrix is singular."""
    factor, info = result
    if info != 0:
        raise NotPositiveDefinite(f"leading minor {info} of {len(factor)} is not positive")
    return np.asarray(factor)


def _upper_triangle(n: int) -> Any:
    return np.tri(n, dtype=bool).T


def lower_root(S: Array) -> Array:
    """C, lower triangular, with C C^T = S, of which the upper triangle is valid."""
    if len(S) == 0:  # LAPACK refuses
        return S
    return np.ascontiguousarray(_checked(lapack.dpotrf(S.T, lower=1, clean=1)))


def _jittered(A: Array, scale: float, exponents: range) -> tuple[Array, float]:
    """L of A + jitter scale I, and the jitter: it grows until the factorisation succeeds."""
    for exponent in exponents:
        jitter = 10.0**exponent
        try:
            return lower_root(A + jitter * scale * np.eye(len(A))), jitter
        except NotPositiveDefinite:
            continue
    raise NotPositiveDefinite("matrix is not positive semi-definite, even with jitter")


def jittered_root(A: Array) -> Array:
    """S with S S^T = A, lower triangular, of a symmetric positive semi-definite A."""
    scale = max(float(np.abs(np.diagonal(A)).max(initial=0.0)), np.finfo(float).tiny)
    return _jittered(A, scale, range(-14, -3))[0]


def jittered_whitener(K: Array) -> tuple[Array, float]:
    """T = L^-T, upper triangular, of K + jitter mean(diag K) I = L L^T; and the relative jitter.

    Jitter starts at a level that no result feels.
    """
    if len(K) == 0:  # LAPACK refuses
        return np.empty((0, 0)), 0.0
    factor, jitter = _jittered(K, float(np.diagonal(K).mean()), range(-12, -4))
    return np.ascontiguousarray(_checked(lapack.dtrtri(factor, lower=1)).T), jitter


def symv(K: Array, x: Array) -> Array:
    """K x for a symmetric K of which the upper triangle is valid."""
    return np.asarray(blas.dsymv(1.0, K.T, x, lower=1))


def symm(K: Array, V: Array) -> Array:
    """K V for a symmetric K of which the upper triangle is valid, (n, m)."""
    return np.asarray(blas.dsymm(1.0, K.T, V, lower=1))


def times_triangular(X: Array, T: Array, lower: bool, out: Array) -> Array:
    """X T for a triangular T, in ``out``, at a little more than half the cost of a full product."""
    n = len(T)
    for start in range(0, n, _TRIANGULAR_BLOCK):
        cols = slice(start, min(start + _TRIANGULAR_BLOCK, n))
        rows = slice(cols.start, n) if lower else slice(0, cols.stop)
        np.matmul(X[:, rows], T[rows, cols], out=out[:, cols])
    return out


def add_weighted_gram(X: Array, w: Array, out: Array) -> None:
    """Add X^T diag(w) X to ``out``; destroys X, (n, m)."""
    X *= np.sqrt(np.abs(w))[:, None]
    if (negative := w < 0.0).any():
        N = X[negative]
        out -= N.T @ N
        X = X[~negative]
    out += X.T @ X  # numpy sees that this is symmetric and computes one half
