"""Suggestions in the shape of scikit-activeml's query strategies."""

import numpy as np
import pytest
from sklearn.base import clone

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.suggest import QueryStrategy, suggest

MODEL = MultiFidelityClassifier(9.0 * RBF(1.0), optimizer=None)
X = np.random.RandomState(0).uniform(-2, 2, (40, 2))


def labels(n=12):
    y = np.full(40, np.nan)
    y[:n] = X[:n, 0] > 0
    return y


def test_indices_and_utilities_have_their_shapes():
    strategy = clone(QueryStrategy(MODEL, random_state=0))
    indices, utilities = strategy.query(X, labels(), batch_size=3, return_utilities=True)
    assert (indices.shape, utilities.shape) == ((3,), (3, 40))
    assert np.isnan(utilities[:, :12]).all()
    assert np.isfinite(utilities[0, 12:]).all()
    assert np.nanargmax(utilities[1]) == indices[1]
    assert np.isnan(utilities[2, indices[:2]]).all()
    assert len({*indices}) == 3
    np.testing.assert_array_equal(strategy.query(X, labels(), batch_size=3), indices)


def test_they_are_what_suggest_says():
    y = labels()
    model = clone(MODEL).set_params(levels=[0]).fit(X[:12], y[:12], fidelity=np.zeros(12, int))
    batch = suggest(model, X, {0: 1}, n=4, audit=0, choices=None, random_state=0)
    indices, utilities = QueryStrategy(MODEL).query(X, y, batch_size=4, return_utilities=True)
    assert indices.tolist() == batch["row"].tolist()
    np.testing.assert_allclose(np.nanmax(utilities, axis=1), batch["gain"])


def test_candidates_are_indices_or_samples():
    strategy = QueryStrategy(MODEL, random_state=0)
    (index,) = strategy.query(X, labels(), candidates=[20, 3])
    assert index in (20, 3)
    new = np.array([[-2.0, 0.0], [0.1, 0.2], [1.9, 1.0]])
    indices, utilities = strategy.query(X, labels(), new, 2, return_utilities=True)
    assert utilities.shape == (2, 3)
    assert {*indices} <= {0, 1, 2}
    assert len(strategy.query(X, labels(), batch_size=99)) == 28
    with pytest.raises(ValueError, match="indices from 0 to 39"):
        strategy.query(X, labels(), candidates=[40])
    with pytest.raises(ValueError, match="3 features, and X has 2"):
        strategy.query(X, labels(), candidates=np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"y must have shape \(40,\)"):
        strategy.query(X, labels()[:3])


def test_levels_are_columns():
    y = np.stack([labels(20), labels(6)], axis=1)
    given = {"levels": ["crowd", "expert"], "random_state": 0}
    model = MODEL.__class__([9.0 * RBF(1.0), RBF(1.0)], optimizer=None)
    plain = QueryStrategy(model, **given)
    indices, utilities = plain.query(X, y, batch_size=4, return_utilities=True)
    assert (indices.shape, utilities.shape) == ((4, 2), (4, 40, 2))
    assert np.isnan(y[indices[:, 0], indices[:, 1]]).all()
    dear = QueryStrategy(model, costs={"crowd": 1, "expert": 1e6}, **given)
    assert (dear.query(X, y, batch_size=4)[:, 1] == 0).all()
    with pytest.raises(ValueError, match="levels names 1 levels, and y has 2"):
        QueryStrategy(model, levels=["one"]).query(X, y)


def test_before_two_classes_and_with_marks_of_ones_own():
    y = np.full(40, "?", dtype=object)
    y[0] = "yes"
    strategy = QueryStrategy(MODEL, missing_label="?", random_state=0)
    indices = strategy.query(X, y, batch_size=4)
    assert 0 not in indices
    chosen = X[[0, *indices]]
    gaps = np.linalg.norm(chosen[:, None] - chosen[None], axis=2) + 9 * np.eye(5)
    assert gaps.min() > 1.0
    y[1] = "no"
    assert QueryStrategy(MODEL, missing_label="?", strategy="random").query(X, y).shape == (1,)
