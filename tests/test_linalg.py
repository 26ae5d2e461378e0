"""Linear algebra on one triangle, against numpy on the whole matrix."""

import numpy as np
import pytest
from tolerances import IDENTITY

from polyfid.inference.linalg import (
    Cholesky,
    Indefinite,
    NotPositiveDefinite,
    add_weighted_gram,
    jittered_root,
    jittered_whitener,
    lower_root,
    times_triangular,
)

SIZES = [1, 2, 5, 64, 65, 130]


def definite(n, seed=0):
    G = np.random.RandomState(seed).normal(size=(n, n + 2))
    return G @ G.T / n + 0.1 * np.eye(n)


def upper(A):
    """The upper triangle, with NaN below: whoever looks there shows it."""
    return np.where(np.tri(len(A), k=-1, dtype=bool), np.nan, A)


def indefinite(n, n_negative, seed=1):
    """J + D K D as it arises where sites are negative, with the inertia of J."""
    K = definite(n, seed)
    w = np.random.RandomState(seed).uniform(0.2, 1.0, n)
    w[:n_negative] *= -0.3 / np.linalg.eigvalsh(K).max()
    root, signs = np.sqrt(np.abs(w)), np.sign(w)
    return np.diag(signs) + root[:, None] * K * root, w, K


def check_factor(make, B, tolerance):
    """What a factor of a matrix promises, against the inverse of the whole matrix."""
    n = len(B)
    close = {"rtol": tolerance, "atol": tolerance}
    rng = np.random.RandomState(3)
    v, V, d = rng.normal(size=n), rng.normal(size=(n, 4)), rng.uniform(0.5, 2.0, n)
    kept = v.copy(), V.copy()
    factor, exact = make(upper(B)), np.linalg.inv(B)
    log_det = np.linalg.slogdet(B)[1]
    assert factor.log_det == pytest.approx(log_det, rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(factor.solve(v), exact @ v, **close)
    np.testing.assert_allclose(factor.solve(V), exact @ V, **close)
    half = factor.half_solve(V)
    np.testing.assert_allclose((half.T * factor.signs) @ half, V.T @ exact @ V, **close)
    np.testing.assert_allclose(factor.quadratic(V), np.diag(V.T @ exact @ V), **close)
    scaled = V * d[:, None]
    form = factor.quadratic_form(d)
    np.testing.assert_allclose(form(V.T), np.diag(scaled.T @ exact @ scaled), **close)
    assert form(V.T[:0]).shape == (0,)
    assert (v == kept[0]).all()
    assert (kept[1] == V).all()
    inverse = factor.into_inverse()
    np.testing.assert_allclose(np.triu(inverse.matrix), np.triu(exact), **close)
    np.testing.assert_allclose(inverse.solve(v), exact @ v, **close)
    assert inverse.log_det == pytest.approx(log_det, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("n", [*SIZES, 128, 250])
def test_cholesky(n):
    check_factor(Cholesky, definite(n), IDENTITY)


@pytest.mark.parametrize(("n", "n_negative"), [(1, 1), (5, 2), (65, 20), (40, 40)])
def test_indefinite(n, n_negative):
    B, w, K = indefinite(n, n_negative)
    check_factor(lambda A: Indefinite.of(A, np.sign(w)), B, 1e-9)
    # |det(J + D K D)| = det(I + W K)
    log_det = np.linalg.slogdet(np.eye(n) + w[:, None] * K)[1]
    assert Indefinite.of(B, np.sign(w)).log_det == pytest.approx(log_det, rel=1e-9, abs=1e-9)


def test_indefinite_refuses_sites_that_outweigh_the_prior():
    # I + W K has a negative eigenvalue: there is no Gaussian with these sites.
    K = np.array([[2.0, 0.0], [0.0, 1.0]])
    root = np.sqrt([0.6, 0.5])
    B = np.diag([-1.0, 1.0]) + root[:, None] * K * root
    for matrix in (B, np.diag([-1e-14, 1.0])):
        with pytest.raises(NotPositiveDefinite, match="outweigh"):
            Indefinite.of(matrix, np.array([-1.0, 1.0]))


@pytest.mark.parametrize("rank", [0, 1, 7, 30])
def test_root_of_a_singular_matrix(rank):
    n = 30
    G = np.random.RandomState(4).normal(size=(n, rank))
    A = G @ G.T
    S = jittered_root(A)
    np.testing.assert_allclose(S @ S.T, A, rtol=0.0, atol=1e-9 * max(1.0, np.abs(A).max()))


@pytest.mark.parametrize("n", [*SIZES, 300])
def test_products_with_triangular_matrices(n):
    rng = np.random.RandomState(0)
    X, T = rng.normal(size=(7, n)), rng.normal(size=(n, n))
    for lower, part in ((True, np.tril(T)), (False, np.triu(T))):
        out = times_triangular(X, part, lower, np.full((7, n), np.nan))
        np.testing.assert_allclose(out, X @ part, rtol=IDENTITY, atol=IDENTITY)


@pytest.mark.parametrize("low", [0.0, -1.0])
def test_weighted_gram_with_weights_of_both_signs(low):
    rng = np.random.RandomState(0)
    X, w, out = rng.normal(size=(9, 4)), rng.uniform(low, 1.0, 9), rng.normal(size=(4, 4))
    expected = out + X.T @ np.diag(w) @ X
    add_weighted_gram(X.copy(), w, out)
    np.testing.assert_allclose(out, expected, rtol=IDENTITY, atol=IDENTITY)


@pytest.mark.parametrize("n", SIZES)
def test_whitener_and_root_undo_and_make_a_matrix(n):
    K = definite(n)
    T, jitter = jittered_whitener(K.copy())
    np.testing.assert_allclose(T.T @ K @ T, np.eye(n), atol=1e-9)
    np.testing.assert_array_equal(T, np.triu(T))
    assert jitter == 1e-12
    C = lower_root(upper(K))
    np.testing.assert_allclose(C @ C.T, K, atol=IDENTITY)
    np.testing.assert_array_equal(C, np.tril(C))


def test_whitener_of_a_singular_matrix_has_jitter_and_of_an_indefinite_one_there_is_none():
    ones = np.ones((40, 40))
    T, jitter = jittered_whitener(ones)
    assert 1e-12 <= jitter <= 1e-9
    np.testing.assert_allclose(T.T @ (ones + jitter * np.eye(40)) @ T, np.eye(40), atol=1e-3)
    for function in (jittered_whitener, jittered_root):
        with pytest.raises(NotPositiveDefinite, match="jitter"):
            function(np.diag([1.0, -1.0]))
    for function in (lower_root, Cholesky):
        with pytest.raises(NotPositiveDefinite, match="leading minor 2 of 2"):
            function(np.diag([1.0, -1.0]))
