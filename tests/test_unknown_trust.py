"""Fits that are not handed the fidelity of rows of different trust say so; all others are quiet."""

import pickle

import numpy as np
import pytest
from made_rows import draw
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyfid import (
    MultiFidelityClassifier,
    Pooled,
    Stacked,
    TrustedKFold,
    TrustedOnly,
    TrustedShuffleSplit,
    evaluate,
)
from polyfid.kernels import RBF

X, Y, FIDELITY = draw(40, 20)
N_TRAIN = 40 + 20 - 20 // 4
MODEL = MultiFidelityClassifier(2.0 * RBF(1.0), optimizer=None)
FOLDS = TrustedKFold(4, fidelity=FIDELITY)
BASELINES = [TrustedOnly(MODEL), Pooled(MODEL), Stacked(MODEL, cv=2)]
TOLD = f"fit got {N_TRAIN} training rows of a splitter, some of them cheap, but not their fidelity"


@pytest.mark.parametrize("cv", [FOLDS, TrustedShuffleSplit(2, test_size=5, fidelity=FIDELITY)])
@pytest.mark.parametrize("model", [MODEL, make_pipeline(StandardScaler(), MODEL), *BASELINES])
def test_cross_validation_without_fidelity_warns(model, cv):
    with pytest.warns(UserWarning, match=TOLD):
        cross_val_score(model, X, Y, cv=cv)


def test_the_report_of_such_a_fit_says_it_too():
    train, _ = next(FOLDS.split(X, Y))
    with pytest.warns(UserWarning, match="most trusted level"):
        model = MultiFidelityClassifier(2.0 * RBF(1.0), optimizer=None).fit(X[train], Y[train])
    assert TOLD in str(model.report_)
    assert 'params={"fidelity": f}' in str(model.report_)


def test_other_processes_know_it():
    """Whatever carries the indices there: they arrive as they were pickled."""
    train, test = next(FOLDS.split(X, Y))
    data = pickle.dumps(train)
    del train
    MODEL.fit(X[:N_TRAIN], Y[:N_TRAIN])  # nobody uses such rows now
    arrived = pickle.loads(data)
    with pytest.warns(UserWarning, match=TOLD):
        MODEL.fit(X[arrived], Y[arrived])
    assert type(test) is np.ndarray


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_with_and_without_fidelity_in_several_processes(n_jobs):
    # scikit-learn's processes have the filters of this one, under which warnings are errors.
    how = {"cv": FOLDS, "n_jobs": n_jobs, "error_score": "raise"}
    cross_validate(MODEL, X, Y, params={"fidelity": FIDELITY}, **how)
    with pytest.raises(UserWarning, match=TOLD):
        cross_validate(MODEL, X, Y, **how)


@pytest.mark.parametrize("model", [MODEL, *BASELINES])
def test_no_warning_where_the_fidelity_is_handed_over(model):
    cross_validate(model, X, Y, cv=FOLDS, params={"fidelity": FIDELITY}, error_score="raise")
    for train, test in FOLDS.split(X, Y):
        model.fit(X[train], Y[train], fidelity=FIDELITY[train]).score(X[test], Y[test])
        MODEL.fit(X[:N_TRAIN], Y[:N_TRAIN])  # as many rows, after those were handed over
    column = np.column_stack([X, FIDELITY == "lab"])
    inside = MultiFidelityClassifier(2.0 * RBF(1.0), optimizer=None, fidelity_feature=2)
    cross_validate(inside, column, Y, cv=FOLDS, error_score="raise")


def test_no_warning_in_pipelines_searches_and_evaluations():
    pipeline = make_pipeline(StandardScaler(), MODEL)
    fidelity = {"multifidelityclassifier__fidelity": FIDELITY}
    cross_validate(pipeline, X, Y, cv=FOLDS, params=fidelity, error_score="raise")
    grid = {"multifidelityclassifier__rho": [0.5, 1.0]}
    GridSearchCV(pipeline, grid, cv=FOLDS, error_score="raise").fit(X, Y, **fidelity)
    for n_jobs in (None, 2):
        assert not evaluate(X, Y, FIDELITY, model=MODEL, n_splits=2, n_jobs=n_jobs).notes


def test_no_warning_of_rows_that_are_all_trusted():
    top = FIDELITY == "lab"
    for train, _ in TrustedKFold(4, fidelity=np.ones(top.sum())).split(X[top], Y[top]):
        assert type(train) is np.ndarray
        MODEL.fit(X[top][train], Y[top][train])
    for train, test in FOLDS.split(X, Y):  # only the trusted rows of a training set
        alone = train[FIDELITY[train] == "lab"]
        MODEL.fit(X[alone], Y[alone]).predict(X[test])


@pytest.mark.parametrize("model", [MODEL, *BASELINES])
def test_levels_without_fidelity_warn(model):
    levels = {"levels": ["web", "lab"]}
    with pytest.warns(UserWarning, match=r"levels names 2 levels, .*no fidelity.* level, 'lab'"):
        type(model)(**{**model.get_params(deep=False), **levels}).fit(X, Y)
    type(model)(**{**model.get_params(deep=False), "levels": ["lab"]}).fit(X, Y)
