"""Which columns matter: the gain by a kernel of one column, from sums over bins."""

import numpy as np
import pytest
from tolerances import GRADIENT, IDENTITY

from polyfid.inference import SCHEMES
from polyfid.kernels import Categorical, Constant, Intercept
from polyfid.learning.columns import N_BINS, Bins
from polyfid.learning.evidence import Evidence
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

RHO = 0.7
LOADING = np.array([1.0, RHO])


def make_evidence(kernel, x, y, scheme="variational"):
    points = Points(x, np.repeat([0, 1], [len(x) - 15, 15]))
    prior = Autoregressive((kernel, Intercept(0.3)), (RHO,))
    weight = np.where(np.arange(len(x)) % 5, 1.0, 2.0)
    return Evidence(prior, Logit(y, weight), points, SCHEMES[scheme], tol=1e-11, max_iter=500)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 4, (45, 2)), rng.normal(size=(45, 2))]).astype(float)
    y = np.where((x[:, 1] > 1.5) ^ (rng.uniform(size=45) < 0.2), 1.0, -1.0)
    return x, y


def belief_of(evidence):
    return evidence.fixed(evidence.theta, gradient=True)[2].belief


def slope_and_information(belief, K):
    """What the docstring of the module says, by dense matrices."""
    inverse = belief.inverse.matrix
    R = np.triu(inverse) + np.triu(inverse, 1).T
    R = belief.sites.root[:, None] * R * belief.sites.root
    RK = R @ K
    return 0.5 * (belief.alpha @ K @ belief.alpha - np.trace(RK)), 0.5 * np.trace(RK @ RK)


def test_the_slope_is_that_of_the_evidence(rows):
    x, y = rows

    def value(a):
        # Columns of four codes have a bin per code: the kernel tells them apart, and no more.
        kernel = Intercept(0.8) + Constant(a) * Categorical(1e-3, columns=(1,))
        evidence = make_evidence(kernel, x, y)
        return evidence(evidence.theta, gradient=False).value

    evidence = make_evidence(Intercept(0.8), x, y)
    A = LOADING[evidence.points.level]
    K = np.outer(A, A) * (x[:, 1, None] == x[:, 1])
    slope, _ = slope_and_information(belief_of(evidence), K)
    h = 1e-3
    forward = (4.0 * value(h) - 3.0 * value(1e-300) - value(2.0 * h)) / (2.0 * h)
    assert slope == pytest.approx(forward, rel=1e3 * GRADIENT)


def test_sums_over_bins_are_the_dense_formula(rows):
    x, y = rows
    evidence = make_evidence(Intercept(0.8), x, y, "laplace")
    belief, level = belief_of(evidence), evidence.points.level
    bins = Bins.of(x, categories=(0, 1))
    relevance = bins.relevance(belief, evidence.points, LOADING)
    for c in range(x.shape[1]):
        Z = np.eye(N_BINS)[bins.code[:, c]]
        K = Z @ bins.G[c] @ Z.T

        def z(loading, K=K):
            slope, information = slope_and_information(
                belief, np.outer(loading[level], loading[level]) * K
            )
            return slope / np.sqrt(information)

        alone = [max(z(unit), 0.0) for unit in np.eye(2)]
        expected = max(z(LOADING), np.hypot(*alone)) if any(alone) else z(LOADING)
        assert relevance[c] == pytest.approx(expected, abs=1e3 * IDENTITY)
    assert np.argmax(relevance) == 1


def test_bins():
    many = np.repeat(np.arange(20.0), np.arange(20, 0, -1))
    bins = Bins.of(np.column_stack([many, many, np.sin(many), np.zeros_like(many)]), (0,))
    # The eleven most frequent categories have a bin each, the others share one.
    assert [len(np.unique(bins.code[many == v, 0])) for v in range(20)] == [1] * 20
    assert set(bins.code[many > 10, 0]) == {N_BINS - 1}
    # Numbers are in bins by rank, of nearly as many rows each.
    assert (np.diff(bins.code[:, 1]) >= 0).all()
    assert np.bincount(bins.code[:, 1]).max() <= 2 * len(many) / N_BINS
    assert len(set(bins.code[:, 3])) == 1
    for G in bins.G:
        assert np.linalg.eigvalsh(G).min() > -IDENTITY


def test_columns_in_chunks(monkeypatch, rows):
    x, y = rows
    evidence = make_evidence(Intercept(0.8), x, y, "laplace")
    arguments = belief_of(evidence), evidence.points, LOADING
    whole = Bins.of(x).relevance(*arguments)
    monkeypatch.setattr("polyfid.learning.columns._CHUNK", 3)
    np.testing.assert_allclose(Bins.of(x).relevance(*arguments), whole, atol=IDENTITY)
