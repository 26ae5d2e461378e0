"""Trees of XGBoost as arrays: the same leaves for every number."""

import json

import numpy as np
import pytest
from scipy.special import logit

from polyfid.model.trees import Turn

xgboost = pytest.importorskip("xgboost")
forest = pytest.importorskip("polyfid.distributed.forest")


def grown(x, y, **settings):
    settings = {"base_score": 0.3, "tree_method": "hist", "objective": "binary:logistic"} | settings
    return xgboost.train(settings, xgboost.DMatrix(x, y), 20)


def as_arrays(booster, n_columns):
    saved = json.loads(booster.save_raw("json"))
    return forest.from_xgboost(saved, float(logit(0.3)), Turn.none(n_columns))


@pytest.mark.parametrize(
    "settings", [{"max_depth": 4}, {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0}]
)
def test_trees_of_xgboost_say_the_same_as_arrays(settings):
    rng = np.random.RandomState(0)
    x = rng.standard_normal((3000, 3)).round(2)
    booster = grown(x, x[:, 0] * x[:, 1] > 0.1, **settings)
    trees = as_arrays(booster, 3)
    trees.check(3)
    new = np.concatenate([x, rng.standard_normal((3000, 3))])
    expected = booster.predict(xgboost.DMatrix(new), output_margin=True)
    np.testing.assert_allclose(trees(new), expected, atol=1e-5)


def test_numbers_beside_a_split_go_where_single_precision_sends_them():
    x = np.arange(20.0)[:, None] / 7.0
    booster = grown(x, x[:, 0] > 1.3, min_child_weight=0, max_depth=1)
    trees = as_arrays(booster, 1)
    beside = np.unique(trees.threshold[trees.feature == 0])
    for _ in range(3):
        beside = np.unique(
            np.concatenate([np.nextafter(beside, -9), beside, np.nextafter(beside, 9)])
        )
    expected = booster.predict(xgboost.DMatrix(beside[:, None]), output_margin=True)
    np.testing.assert_allclose(trees(beside[:, None]), expected, atol=1e-5)
    assert np.ptp(expected) > 0.1  # both sides


def test_the_largest_number_below_a_split():
    rng = np.random.RandomState(1)
    special = [0.0, 1.0, -1.0, 2.0**-126, 1e-40, -1e-40, 3.0e38]
    split = np.concatenate([special, rng.standard_normal(500)]).astype(np.float32)
    below = forest.largest_below(split)
    assert (below.astype(np.float32) < split).all()
    assert (np.nextafter(below, np.inf).astype(np.float32) >= split).all()


def test_nodes_come_after_their_parents():
    tree = {
        "left_children": [3, -1, -1, 1, -1],
        "right_children": [4, -1, -1, 2, -1],
        "split_indices": [0, 0, 0, 1, 0],
        "split_conditions": [0.5, 1.0, 2.0, 0.25, 3.0],
    }
    saved = {"learner": {"gradient_booster": {"model": {"trees": [tree]}}}}
    trees = forest.from_xgboost(saved, 0.0, Turn.none(2))
    trees.check(2)
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(trees(x), [1.0, 2.0, 3.0])
