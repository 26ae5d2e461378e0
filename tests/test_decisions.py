"""Decisions by costs: thresholds, abstentions, cost matrices, and what is refused."""

import numpy as np
import pytest

from polyfid import MultiFidelityClassifier, load
from polyfid.estimator.decisions import DecisionRule

TWO = ("no", "yes")


def rule(costs, classes=TWO, cost_abstain=None):
    return DecisionRule.of(costs, classes, cost_abstain)


def probabilities(*positive):
    return np.array([[1.0 - p, p] for p in positive])


def decided(of, proba):
    return of.labels(of.decide(np.asarray(proba)), np.array(TWO)).tolist()


@pytest.mark.parametrize(
    ("costs", "threshold"),
    [
        ({"fp": 1, "fn": 1}, 1 / 2),
        ({"fp": 1, "fn": 20}, 1 / 21),
        ({"fp": 3, "fn": 1}, 3 / 4),
        ({"fn": 4}, 1 / 5),  # a mistake that is not named costs 1
        ({("no", "yes"): 1, ("yes", "no"): 20}, 1 / 21),
        # Right decisions that cost something: only the differences count.
        ({("no", "yes"): 3, ("no", "no"): 2, ("yes", "no"): 4, ("yes", "yes"): 1}, 1 / 4),
    ],
)
def test_the_threshold_that_costs_imply(costs, threshold):
    proba = probabilities(threshold - 1e-9, threshold + 1e-9)
    assert decided(rule(costs), proba) == ["no", "yes"]


def test_abstaining_between_two_thresholds():
    # "no" costs 4p, "yes" costs 1 - p, nothing costs 0.4: nothing between 0.1 and 0.6.
    of = rule({"fp": 1, "fn": 4}, cost_abstain=0.4)
    assert decided(of, probabilities(0.099, 0.101, 0.599, 0.601)) == ["no", None, None, "yes"]
    assert "0.6 or above" in of.describe(TWO)[-1]
    # Never worth it: the least expected cost is at most 0.8.
    of = rule({"fp": 1, "fn": 4}, cost_abstain=0.8)
    assert None not in decided(of, probabilities(*np.linspace(0, 1, 101)))
    assert "above 0.2" in of.describe(TWO)[-1]


def test_three_classes():
    names = ("a", "b", "c")
    of = rule({("a", "b"): 10, ("a", "c"): 10, ("b", "c"): 2}, names)
    np.testing.assert_array_equal(of.costs, [[0, 10, 10], [1, 0, 2], [1, 1, 0]])
    proba = np.array([[0.2, 0.7, 0.1], [0.05, 0.9, 0.05], [0.0, 0.3, 0.7]])
    expected = [[0.8, 2.1, 3.4], [0.95, 0.55, 2.3], [1.0, 0.7, 0.6]]
    np.testing.assert_allclose(of.expected(proba), expected)
    assert of.decide(proba).tolist() == [0, 1, 2]
    assert rule(of.pairs(names), names, 0.58).decide(proba).tolist() == [-1, 1, -1]


def test_what_decisions_cost():
    of = rule({"fp": 1, "fn": 20}, cost_abstain=0.5)
    truth, code = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, -1])
    assert of.paid(truth, code).tolist() == [0, 1, 20, 0, 0.5]


@pytest.mark.parametrize(
    ("costs", "abstain", "words"),
    [
        ({}, None, "costs must be a dictionary"),
        ([1, 2], None, "costs must be a dictionary"),
        ({"fp": -1}, None, "the cost of 'fp' must be a number from 0; got -1"),
        ({"fp": "1"}, None, "must be a number from 0; got '1'"),
        ({"fp": np.nan}, None, "must be a number from 0; got nan"),
        ({"fp": True}, None, "must be a number from 0; got True"),
        ({"fq": 1}, None, "costs has 'fq'; costs are those of pairs"),
        ({("no", "maybe"): 1}, None, "'maybe', which is no class; the classes are 'no', 'yes'"),
        ({"fp": 0, "fn": 0}, None, "all of them are 0"),
        ({"fp": 1}, -1, "cost_abstain .* must be a number from 0; got -1"),
    ],
)
def test_costs_that_are_refused(costs, abstain, words):
    with pytest.raises(ValueError, match=words):
        rule(costs, cost_abstain=abstain)


def test_short_names_are_for_two_classes():
    with pytest.raises(ValueError, match=r"for two classes, and there are 3.*TRUE>PREDICTED=COST"):
        rule({"fp": 1}, "abc")


@pytest.fixture(scope="module")
def model():
    X = np.linspace(-1, 1, 30)[:, None]
    fidelity = np.where(np.arange(30) % 3, "crowd", "expert")
    kind = MultiFidelityClassifier("rbf", levels=["crowd", "expert"], optimizer=None)
    return kind.fit(X, (X[:, 0] > 0).astype(int), fidelity=fidelity)


NEW = np.linspace(-1, 1, 21)[:, None]


@pytest.mark.parametrize("fidelity", [None, "crowd"])
def test_decide_uses_the_probabilities_of_its_level(model, fidelity):
    p = model.predict_proba(NEW, fidelity)[:, 1]
    made = model.decide(NEW, {"fp": 1, "fn": 3}, fidelity=fidelity)
    assert made.dtype == model.classes_.dtype
    np.testing.assert_array_equal(made, (p > 0.25).astype(int))
    made = model.decide(NEW, {(0, 1): 1, (1, 0): 3}, 0.3, fidelity=fidelity)
    assert made.dtype == object
    expected = [1 if q >= 0.7 else 0 if q <= 0.1 else None for q in p]
    assert made.tolist() == expected
    assert None in expected


def test_kernels_by_name(tmp_path, model):
    model.save(tmp_path / "m.polyfid")
    again = load(tmp_path / "m.polyfid")
    assert again.kernel == "rbf"
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    for name in ("ard", "matern"):
        other = MultiFidelityClassifier(name, optimizer=None).fit(NEW, NEW[:, 0] > 0)
        assert str(other.kernels_[0]) != str(model.kernels_[0])
