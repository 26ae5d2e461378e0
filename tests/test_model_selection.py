"""Splitters that test on trusted rows only."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyfid import Pooled, TrustedKFold, TrustedShuffleSplit, stack_levels
from polyfid.estimator.inputs import point_ids

both = pytest.mark.parametrize("splitter", [TrustedKFold, TrustedShuffleSplit])


def draw(n_cheap=40, n_trusted=30, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    level = rng.permutation(np.repeat([0, 1], [n_cheap, n_trusted]))
    X = rng.normal(size=(len(level), 2))
    return X, rng.integers(0, n_classes, len(level)), level


def pairs(splitter, *arguments, **named):
    """Training and test rows of every split, each sorted as scikit-learn's need not be."""
    splits = splitter.split(*arguments, **named)
    return [(sorted(train.tolist()), test.tolist()) for train, test in splits]


@settings(deadline=None, max_examples=50)
@given(
    level=st.lists(st.integers(0, 2), min_size=8, max_size=60).filter(lambda f: f.count(2) >= 4),
    data=st.data(),
)
def test_cheap_rows_train_and_trusted_rows_are_tested(level, data):
    level = np.array(level)
    y = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 4, len(level))
    X = np.zeros((len(level), 1))
    trusted, cheap = np.flatnonzero(level == 2), np.flatnonzero(level < 2)
    shuffle, stratify = data.draw(st.booleans()), data.draw(st.booleans())
    options = {"stratify": stratify, "levels": [0, 1, 2], "fidelity": level}
    folds = list(TrustedKFold(4, shuffle=shuffle, **options).split(X, y))
    assert len(folds) == 4
    tested = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(tested), trusted)
    draws = list(TrustedShuffleSplit(3, test_size=0.4, **options).split(X, y))
    for train, test in folds + draws:
        assert len(test) > 0
        assert np.isin(test, trusted).all()
        assert np.isin(cheap, train).all()
        assert sorted([*train, *test]) == list(range(len(level)))
        assert np.isin(trusted, train).any()


@pytest.mark.parametrize("shuffle", [False, True])
def test_classes_are_spread_evenly(shuffle):
    X, y, level = draw(n_trusted=63, n_classes=5)
    folds = TrustedKFold(4, shuffle=shuffle).split(X, y, level)
    counts = np.array([np.bincount(y[test], minlength=5) for _, test in folds])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_rows_of_one_level_are_split_as_in_scikit_learn():
    X, y, level = draw(n_cheap=0, n_trusted=33)
    ours = [np.bincount(y[test]).tolist() for _, test in TrustedKFold(4).split(X, y, level)]
    theirs = [np.bincount(y[test]).tolist() for _, test in StratifiedKFold(4).split(X, y)]
    assert sorted(ours) == sorted(theirs)
    assert pairs(TrustedKFold(4, stratify=False), X, y, level) == pairs(KFold(4), X)
    assert pairs(TrustedKFold(4), X, None, level) == pairs(KFold(4), X)
    options = {"n_splits": 3, "test_size": 0.3, "train_size": 0.5, "random_state": 1}
    for stratify, theirs in [(True, StratifiedShuffleSplit), (False, ShuffleSplit)]:
        ours = pairs(TrustedShuffleSplit(stratify=stratify, **options), X, y, level)
        assert ours == pairs(theirs(**options), X, y)


def test_rare_classes():
    y = np.arange(20) % 7  # all classes are rarer than the folds
    assert {len(test) for _, test in TrustedKFold(5, fidelity=np.ones(20)).split(y, y)} == {4}
    y = np.array([0] * 9 + [1])  # cannot be stratified
    splitter = TrustedShuffleSplit(4, fidelity=np.ones(10), random_state=0)
    assert pairs(splitter, y, y) == pairs(ShuffleSplit(4, test_size=0.2, random_state=0), y)


# Audit marks


@both
def test_where_trusted_rows_are_marked_they_alone_are_tested(splitter):
    X, y, level = draw(n_trusted=40)
    trusted = np.flatnonzero(level == 1)
    audit = np.zeros(len(level), dtype=bool)
    audit[trusted[::3]] = True
    audit[np.flatnonzero(level == 0)[:5]] = True  # marks of cheap rows change nothing
    options = {"random_state": 0} if splitter is TrustedShuffleSplit else {}
    splits = list(splitter(3, fidelity=level, audit=audit, **options).split(X, y))
    tested = np.concatenate([test for _, test in splits])
    assert {*tested} <= {*trusted[::3]}
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(len(level)))
    as_argument = splitter(3, **options).split(X, y, level, audit=audit.astype(int).tolist())
    for one, other in zip(splits, as_argument, strict=True):
        np.testing.assert_array_equal(one[1], other[1])
    unmarked = pairs(splitter(3, fidelity=level, audit=audit & (level == 0), **options), X, y)
    assert unmarked == pairs(splitter(3, fidelity=level, **options), X, y)


@both
def test_wrong_or_few_marks_are_refused(splitter):
    X, y, level = draw()
    with pytest.raises(ValueError, match=r"audit must hold True or False .* got 2\."):
        next(splitter(3).split(X, y, level, audit=np.full(len(level), 2)))
    with pytest.raises(ValueError, match=r"audit must hold .* got shape \(3,\)"):
        next(splitter(3, audit=[True] * 3).split(X, y, level))
    one = np.arange(len(level)) == np.flatnonzero(level == 1)[0]
    with pytest.raises(ValueError, match=r"audit rows at the top level 1, got 1 .* mark more"):
        next(splitter(3, audit=one).split(X, y, level))


# Where the levels come from


@both
def test_ways_to_pass_the_levels(splitter):
    X, y, level = draw()
    options = {"random_state": 0} if splitter is TrustedShuffleSplit else {}
    expected = pairs(splitter(3, fidelity=level, **options), X, y)
    names = np.array(["web", "lab"])  # not in alphabetical order
    _, _, remembered = stack_levels({name: (np.zeros((1, 1)), [0]) for name in names})
    plain, ordered = splitter(3, **options), splitter(3, levels=["web", "lab"], **options)
    assert pairs(plain, X, y, groups=level.tolist()) == expected
    assert pairs(plain, X, y, fidelity=pd.Series(level)) == expected
    assert pairs(ordered, X, y, names[level]) == expected
    assert pairs(plain, X, y, remembered[level]) == expected
    # An argument of split overrides that of the constructor.
    assert pairs(splitter(3, fidelity=1 - level, **options), X, y, level) == expected


@both
def test_repr_pickle_seed_and_number_of_splits(splitter):
    X, y, level = draw()
    options = {"shuffle": True} if splitter is TrustedKFold else {}
    cv, other = (splitter(4, fidelity=level, random_state=s, **options) for s in (0, 1))
    assert repr(cv).startswith(f"{splitter.__name__}(")
    assert cv.get_n_splits() == cv.get_n_splits(X, y, level) == 4
    for copy in [cv, pickle.loads(pickle.dumps(cv)), clone(cv, safe=False)]:
        assert pairs(copy, X, y) == pairs(cv, X, y) != pairs(other, X, y)


# Repeats


@both
def test_repeats_of_test_rows_can_be_dropped(splitter):
    X, y, level = draw(n_cheap=60, n_trusted=40)
    X = X[np.random.default_rng(1).integers(0, 30, len(X))]  # points with labels at several levels
    for train, test in splitter(4, drop_repeats=True).split(X, y, level):
        rows, tested = X[train].tolist(), X[test].tolist()
        assert not [row for row in rows if row in tested]
        left_out = np.setdiff1d(np.arange(len(X)), np.union1d(train, test))
        assert len(left_out)
        assert all(X[i].tolist() in tested for i in left_out)


def test_equal_points():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [1.0, 0.0], [-np.nan, 1.0], [1.0, 0.0]])
    mixed = pd.DataFrame({"a": list("xxyzyz"), "b": pd.array([1, 1, None, 3, None, 3], "Int64")})
    alike = [X, X.astype(object), X.astype(np.float32), pd.DataFrame(X), pl.DataFrame(X), mixed]
    for like in alike:
        assert point_ids(like).tolist() == [0, 0, 1, 2, 1, 2]
    assert point_ids(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert point_ids(np.array([[True], [False], [True]])).tolist() == [0, 1, 0]
    stored_zero = sparse.csr_array(([1.0, 0.0, 1.0], [0, 1, 0], [0, 2, 3]), shape=(2, 2))
    assert point_ids(stored_zero).tolist() == [0, 0]
    assert stored_zero.nnz == 3
    assert point_ids(np.zeros((0, 2))).tolist() == []


# In scikit-learn's tools


@pytest.mark.parametrize("routed", [False, True])
def test_cross_validation(routed):
    X, y, level = draw()
    by_hand = []
    for train, test in TrustedKFold(5).split(X, y, level):
        model = Pooled().fit(X[train], y[train], fidelity=level[train])
        by_hand.append(model.score(X[test], y[test]))
    with sklearn.config_context(enable_metadata_routing=routed):
        run = partial(cross_val_score, X=X, y=y, error_score="raise", params={"fidelity": level})
        groups = {} if routed else {"groups": level}
        for cv, how in [(TrustedKFold(fidelity=level), {}), (TrustedKFold(), groups)]:
            np.testing.assert_array_equal(run(Pooled(), cv=cv, **how), by_hand)
        # Any model at all, without a fidelity of its own.
        assert len(run(LogisticRegression(), cv=TrustedKFold(fidelity=level), params={})) == 5
        piped = make_pipeline(StandardScaler(), Pooled(LogisticRegression()))
        search = GridSearchCV(piped, {"pooled__estimator__C": [0.1, 1.0]}, cv=TrustedKFold(3))
        if routed:
            assert len(run(search, cv=TrustedKFold())) == 5
            # Under scikit-learn's name for what a splitter takes.
            named = {"groups": level}
            assert len(run(LogisticRegression(), cv=TrustedKFold(), params=named)) == 5
        else:
            search.fit(X, y, groups=level, pooled__fidelity=level)
            assert search.n_splits_ == 3


# Errors


@both
@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {}, r"needs the level of each row.*fidelity=.*groups="),
        ({}, {"groups": [0, 1], "fidelity": [0, 1]}, r"both passed"),
        ({}, {"groups": [0, 1]}, r"fidelity has 2 entries and X has 6 rows"),
        ({}, {"groups": [0, 0, 0, 0, 0, 1]}, r"needs at least 2 rows at the top level 1, got 1 "),
        ({"levels": list("abc")}, {"groups": list("aaabbb")}, r"top level 'c', got 0 .*levels="),
        ({}, {"groups": [1] * 6, "y": np.linspace(0, 1, 6)}, r"continuous.*stratify=False"),
        ({"n_splits": 0}, {}, r"n_splits must be a whole number from \d, got 0"),
    ],
)
def test_what_the_errors_say(splitter, options, arguments, message):
    arguments = {"X": np.zeros((6, 1)), "y": [0, 1] * 3} | arguments
    with pytest.raises(ValueError, match=message):
        list(splitter(**({"n_splits": 2} | options)).split(**arguments))


def test_errors_of_one_splitter():
    with pytest.raises(ValueError, match="random_state=0 has no effect with shuffle=False"):
        TrustedKFold(random_state=0)
    with pytest.raises(ValueError, match=r"test_size=1\.5"):
        next(TrustedShuffleSplit(test_size=1.5).split(np.zeros(6), [0, 1] * 3, [1] * 6))
