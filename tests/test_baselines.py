"""The baselines against the same models fitted by hand."""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import IDENTITY

from polyfid import Pooled, Stacked, TrustedOnly, stack_levels

ALL = [TrustedOnly, Pooled, Stacked]
SEARCH = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]})  # passes weights on
ESTIMATORS = [LogisticRegression(), DecisionTreeClassifier(random_state=0), SEARCH]
NEW = np.random.default_rng(5).normal(size=(30, 2))

each = pytest.mark.parametrize("baseline", ALL)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def draw(counts=(60, 30), n_classes=2, seed=0):
    """Points of their own for each level, whose labels are the better the higher the level."""
    rng = np.random.default_rng(seed)
    level = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    X = rng.normal(size=(len(level), 2))
    score = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=len(level)) * (len(counts) - level) / 4
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.digitize(score, edges), level


def weights(n):
    return np.random.default_rng(0).uniform(0.1, 4, n)


def assert_same(model, hand, hand_new=NEW):
    """The same probabilities and classes to the last bit."""
    np.testing.assert_array_equal(model.predict_proba(NEW), hand.predict_proba(hand_new))
    np.testing.assert_array_equal(model.predict(NEW), hand.predict(hand_new))


def assert_close(actual, desired):
    """For the same values in another container: the order in memory changes the last digit."""
    np.testing.assert_allclose(actual, desired, rtol=0, atol=IDENTITY)


@parametrize_with_checks([baseline() for baseline in ALL])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@each_estimator
def test_trusted_only_and_pooled_by_hand(estimator):
    X, y, level = draw([60, 40, 20])
    weight = weights(len(y))
    for baseline, rows in [(TrustedOnly, level == 2), (Pooled, level >= 0)]:
        model = baseline(estimator).fit(X, y, fidelity=level)
        assert_same(model, clone(estimator).fit(X[rows], y[rows]))
        model = baseline(estimator).fit(X, y, fidelity=level, sample_weight=weight)
        assert_same(model, clone(estimator).fit(X[rows], y[rows], sample_weight=weight[rows]))


@each_estimator
@pytest.mark.parametrize("cv", [None, 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_stacked_chain_by_hand(estimator, cv, n_classes):
    X, y, level = draw([80, 60, 40], n_classes)
    first = 1 if n_classes == 2 else 0  # of two columns that say the same, the second
    features, new = X, NEW
    for t in range(2):
        hand = clone(estimator).fit(features[level == t], y[level == t])
        features = np.hstack([X, hand.predict_proba(features)[:, first:]])
        new = np.hstack([NEW, hand.predict_proba(new)[:, first:]])
    top = clone(estimator).fit(features[level == 2], y[level == 2])
    model = Stacked(estimator, cv=cv).fit(X, y, fidelity=level)
    assert_same(model, top, new)
    assert len(model.lower_estimators_) == 2


def test_a_level_without_rows_is_left_out_of_the_chain():
    X, y, level = draw()
    short = Stacked().fit(X, y, fidelity=level)
    long = Stacked(levels=[0, 0.5, 1]).fit(X, y, fidelity=level)
    assert len(long.lower_estimators_) == 1
    assert_same(short, long)


@each
def test_without_fidelity_all_rows_are_at_the_top(baseline):
    X, y, _ = draw([60])
    hand = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    for levels in [None, ["crowd", "expert"]]:
        says = pytest.warns(UserWarning, match="no fidelity") if levels else nullcontext()
        with says:
            model = baseline(levels=levels).fit(X, y)
        assert_same(model, hand)
        np.testing.assert_array_equal(model.decision_function(NEW), hand.decision_function(NEW))


# Out of fold


class Memory(ClassifierMixin, BaseEstimator):
    """Repeats the labels of its training points and knows nothing else."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = np.asarray(X), y, np.unique(y)
        # x alone: the features of a point differ from level to level
        self.labels_ = {x[0]: label for x, label in zip(self.X_, y, strict=True)}
        return self

    def predict_proba(self, X):
        labels = [self.labels_.get(x[0]) for x in np.asarray(X)]
        equal = np.full(len(self.classes_), 1 / len(self.classes_))
        return np.array([equal if k is None else (self.classes_ == k) * 1.0 for k in labels])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def repeated_points(n_levels, copies):
    """Each level repeats points of those below, several times below the top, and has its own."""
    rows = []
    for t in range(n_levels):
        repeats = np.arange(20 - 4 * t).repeat(copies if t < n_levels - 1 else 1)
        rows += [(x, x % 2, t) for x in repeats] + [(100 + t, 0, t)]
    x, y, level = np.random.default_rng(0).permutation(rows).T
    return x[:, None].astype(float), y, level


@pytest.mark.parametrize(("copies", "cv"), [(1, 1000), (3, 2), (3, 5)])
def test_memorised_labels_do_not_leak(copies, cv):
    X, y, level = repeated_points(3, copies)
    honest = Stacked(Memory(), cv=cv).fit(X, y, fidelity=level)
    for stage in [honest.lower_estimators_[1], honest.estimator_]:
        assert set(stage.X_[:, 1]) == {0.5}

    plain = Stacked(Memory(), cv=None).fit(X, y, fidelity=level)
    for stage in [plain.lower_estimators_[1], plain.estimator_]:
        own = stage.X_[:, 0] >= 100
        np.testing.assert_array_equal(stage.X_[~own, 1], stage.y_[~own])
        assert set(stage.X_[own, 1]) == {0.5}

    # New rows go to the models of all rows, which have these points.
    np.testing.assert_array_equal(honest._features(X[level == 2]), plain._features(X[level == 2]))


def test_one_point_below_needs_no_folds():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    model = Stacked().fit(X, [0, 1, 0, 1], fidelity=[0, 0, 1, 1])
    assert len(model.lower_estimators_) == 1


# Levels and containers


@each
def test_names_of_levels_that_do_not_sort_by_trust(baseline):
    X, y, level = draw([60, 40, 20])
    names = np.array(["simulation", "laboratory", "field"])  # alphabetical order is the reverse
    expected = baseline().fit(X, y, fidelity=level)
    _, _, remembered = stack_levels({name: (np.zeros((1, 1)), [0]) for name in names})
    for levels, fidelity in [(list(names), list(names[level])), (None, remembered[level])]:
        model = baseline(levels=levels).fit(X, y, fidelity=fidelity)
        assert model.levels_ == tuple(names)
        assert_same(model, expected)


def named(library):
    return lambda X: library.DataFrame({"width": X[:, 0], "height": X[:, 1]})


@each
@pytest.mark.parametrize(
    "make", [named(pd), named(pl), pd.DataFrame, sparse.csr_array, sparse.coo_array]
)
def test_data_frames_and_sparse_matrices(baseline, make):
    X, y, level = draw([60, 40, 20], 3)
    X[X < 0] = 0
    X[:20] = X[20:40]  # repeats
    model = baseline(LogisticRegression()).fit(make(X), y, fidelity=level)
    plain = baseline(LogisticRegression()).fit(X, y, fidelity=level)
    assert_close(model.predict_proba(make(NEW)), plain.predict_proba(NEW))
    if hasattr(model, "feature_names_in_"):
        assert model.feature_names_in_.tolist() == ["width", "height"]
        extra = [f"proba_1_{c}" for c in range(3)] if baseline is Stacked else []
        assert model.estimator_.feature_names_in_.tolist() == ["width", "height", *extra]


def test_columns_that_are_not_numbers_reach_the_estimator():
    X, y, level = draw()
    frame = pd.DataFrame({"place": np.where(X[:, 0] > 0, "north", "south"), "size": X[:, 1]})
    encode = ColumnTransformer([("place", OneHotEncoder(), ["place"])], remainder="passthrough")
    model = Stacked(make_pipeline(encode, LogisticRegression())).fit(frame, y, fidelity=level)
    assert model.predict(frame).shape == y.shape


# The fidelity as a column


FRAMES = [pd.DataFrame, pl.DataFrame]
ARRAYS = [np.asarray, sparse.csr_array, np.ndarray.tolist]


@each
@pytest.mark.parametrize(
    ("make", "column"), [*product(FRAMES, ["source", 1]), *product(ARRAYS, [1, -2])]
)
def test_fidelity_as_a_column(baseline, make, column):
    X, y, level = draw()
    names = np.array(["web", "lab"] if make in FRAMES else [1, 0])  # not in the order of trust

    def table(**columns):
        return make(columns if make in FRAMES else np.column_stack(list(columns.values())))

    model = baseline(LogisticRegression(), levels=names, fidelity_feature=column)
    model.fit(table(a=X[:, 0], source=names[level], b=X[:, 1]), y)
    plain = baseline(LogisticRegression()).fit(X, y, fidelity=level)
    assert model.n_features_in_ == 2
    a, b, source = NEW[:, 0], NEW[:, 1], np.full(len(NEW), names[0])
    moved = [table(source=source, a=a, b=b)] if make in FRAMES else []
    for new in [table(a=a, b=b), table(a=a, source=source, b=b), *moved]:
        assert_close(model.predict_proba(new), plain.predict_proba(NEW))


# Classes


@pytest.mark.parametrize("baseline", [TrustedOnly, Stacked])
def test_classes_that_do_not_occur_at_every_level(baseline):
    X, y, level = draw([90, 60], 3)
    trusted = level == 1
    y = np.where(trusted, np.minimum(y + 1, 2), y)  # the top has no 0 ...
    y[trusted] += (y[trusted] == 2) & (X[trusted, 0] > 0)  # ... and alone has 3
    y = np.array(["d", "a", "c", "b"])[y]
    model = baseline(LogisticRegression()).fit(X, y, fidelity=level)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    proba, scores = model.predict_proba(NEW), model.decision_function(NEW)
    assert (proba[:, 3] == 0).all()
    assert_close(proba[:, :3].sum(axis=1), 1)
    assert np.isfinite(scores).all()
    for values in (proba, scores):
        np.testing.assert_array_equal(model.classes_[values.argmax(axis=1)], model.predict(NEW))
    if baseline is TrustedOnly:
        hand = LogisticRegression().fit(X[trusted], y[trusted])
        np.testing.assert_array_equal(proba[:, :3], hand.predict_proba(NEW))


def test_two_of_three_classes_at_the_top():
    X, y, level = draw([90, 60], 3)
    X, y, level = (a[(level == 0) | (y != 1)] for a in (X, y, level))
    scores = TrustedOnly(LogisticRegression()).fit(X, y, fidelity=level).decision_function(NEW)
    hand = LogisticRegression().fit(X[level == 1], y[level == 1]).decision_function(NEW)
    lowest = np.full(len(NEW), np.finfo(float).min)
    np.testing.assert_array_equal(scores, np.column_stack([-hand, lowest, hand]))


@pytest.mark.parametrize("baseline", [TrustedOnly, Stacked])
@pytest.mark.parametrize("only", [0, 1])
def test_one_class_at_the_top_is_a_constant(baseline, only):
    X, y, level = draw()
    y = np.array(["no", "yes"])[np.where(level == 1, only, y)]
    model = baseline(LogisticRegression()).fit(X, y, fidelity=level)
    assert set(model.predict(NEW)) == {["no", "yes"][only]}
    np.testing.assert_array_equal(model.predict_proba(NEW), np.eye(2)[[only] * len(NEW)])
    np.testing.assert_array_equal(model.decision_function(NEW), [2 * only - 1] * len(NEW))


def test_one_class_below_the_top_or_in_all():
    X, y, level = draw()
    y[level == 0] = 1
    model = Stacked().fit(X, y, fidelity=level)
    assert (model.predict(X[level == 1]) == y[level == 1]).mean() > 0.6
    for baseline in ALL:
        model = baseline().fit(np.eye(3), ["a"] * 3, fidelity=[0, 0, 1])
        assert model.predict(np.eye(3)).tolist() == ["a"] * 3
        assert model.predict_proba(np.eye(3)).tolist() == [[1.0]] * 3
        assert model.decision_function(np.eye(3)).tolist() == [[0.0]] * 3


@each
def test_methods_are_those_of_the_estimator(baseline):
    assert not hasattr(baseline(RidgeClassifier()), "predict_proba")
    assert not hasattr(baseline(GaussianNB()), "decision_function")


# Weights


@pytest.mark.parametrize("baseline", [TrustedOnly, Pooled])
def test_weights_count_as_copies_in_the_default_pipeline(baseline):
    X, y, level = draw()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = baseline().fit(X, y, fidelity=level, sample_weight=weight)
    copies = baseline().fit(*(np.repeat(a, weight, axis=0) for a in (X, y, level)))
    np.testing.assert_allclose(model.predict_proba(NEW), copies.predict_proba(NEW), atol=1e-4)


@each
def test_weights_with_routing(baseline):
    X, y, level = draw()
    params = {"fidelity": level, "sample_weight": weights(len(y))}
    plain = baseline().fit(X, y, **params)
    with sklearn.config_context(enable_metadata_routing=True):
        assert_same(baseline().fit(X, y, **params), plain)
        model = make_pipeline("passthrough", baseline().set_score_request(sample_weight=True))
        assert_same(model.fit(X, y, **params), plain)
        score = model.score(X, y, sample_weight=params["sample_weight"])
    assert score == plain.score(X, y, params["sample_weight"])


@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: make_pipeline(StandardScaler(), e)])
def test_weights_the_estimator_does_not_take(wrap):
    X, y, level = draw()
    with pytest.raises(ValueError, match="the fit of KNeighborsClassifier does not take it"):
        Pooled(wrap(KNeighborsClassifier())).fit(X, y, level, np.ones(len(y)))


# In scikit-learn's tools


@each
@pytest.mark.parametrize("routed", [False, True])
def test_cross_validation(baseline, routed):
    X, y, level = draw([60, 40])
    cv, step = KFold(4), baseline.__name__.lower()
    by_hand = [
        baseline().fit(X[train], y[train], level[train]).score(X[test], y[test])
        for train, test in cv.split(X)
    ]
    piped = make_pipeline("passthrough", baseline())
    with sklearn.config_context(enable_metadata_routing=routed):
        deeper = [make_pipeline("passthrough", piped)] if routed else []
        for model in [baseline(), piped, *deeper]:
            name = "fidelity" if routed or model is not piped else f"{step}__fidelity"
            run = cross_validate(model, X, y, cv=cv, params={name: level}, error_score="raise")
            np.testing.assert_array_equal(run["test_score"], by_hand)


# Errors


@each
@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"levels": list("abc")}, {"fidelity": list("aabb")}, r"no row at the.*'b': 2.*levels="),
        ({"fidelity_feature": "source"}, {}, r"fidelity_feature must be a column.*'source'"),
        ({"fidelity_feature": 1}, {"fidelity": [0, 0, 1, 1]}, r"use one of the two"),
        ({}, {"X": np.zeros((0, 2)), "y": []}, r"X has no rows"),
        ({}, {"X": np.zeros((0, 2)), "y": [], "fidelity": []}, r"X has no rows"),
        ({}, {"sample_weight": [1, 1, -1, 1]}, r"sample_weight must not be negative"),
    ],
)
def test_what_the_errors_say(baseline, parameters, arguments, message):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    arguments = {"X": X, "y": [0, 1, 0, 1]} | arguments
    with pytest.raises(ValueError, match=message):
        baseline(**parameters).fit(**arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": 1}, r"cv must be a whole number from 2 \(folds\), or None"),
        ({"estimator": LinearSVC()}, r"predict_proba.*LinearSVC.*CalibratedClassifierCV"),
    ],
)
def test_what_stacked_cannot_do(parameters, message):
    X, y, level = draw()
    with pytest.raises(ValueError, match=message):
        Stacked(**parameters).fit(X, y, fidelity=level)
