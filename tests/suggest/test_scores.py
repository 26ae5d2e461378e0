"""Tables of label pairs against exact integrals."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from polyfid.suggest.scores import (
    KAPPA,
    conditional,
    entropy,
    expected_gain,
    least_cost,
    probability,
    sign_covariance,
    spread_of_label,
)

GRID = [-3.0, -1.0, 0.0, 0.4, 2.0]


@pytest.mark.parametrize("r", [-0.95, -0.5, -0.1, 0.0, 0.3, 0.8, 0.95])
def test_sign_covariance_is_that_of_two_normal_variables(r):
    law = multivariate_normal([0.0, 0.0], [[1.0, r], [r, 1.0]])
    one = multivariate_normal(0.0, 1.0)
    for a in GRID:
        for b in GRID:
            exact = law.cdf([a, b]) - one.cdf(a) * one.cdf(b)
            got = sign_covariance(np.array([a]), np.array([b]), np.array([r]))[0]
            assert got == pytest.approx(exact, abs=2e-5 if abs(r) > 0.9 else 1e-6)


def quadrature(m, v, m2, v2, k):
    """P(first), P(second) and P(both) of labels with sigmoid probabilities."""
    z, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    f = m + np.sqrt(v) * z
    rest = np.sqrt(max(v2 - k * k / v, 0.0))
    g = m2 + k / v * (f - m)[:, None] + rest * z
    second = expit(g) @ w
    return w @ expit(f), w @ second, w @ (expit(f) * second)


@pytest.mark.parametrize("share", [-0.9, 0.2, 0.6, 0.95])
@pytest.mark.parametrize("v", [0.3, 2.0, 10.0])
def test_label_table_is_near_that_of_the_sigmoid(share, v):
    for m in GRID:
        for m2 in GRID:
            v2 = 1.5
            k = share * np.sqrt(v * v2)
            a, b = m / np.sqrt(KAPPA + v), m2 / np.sqrt(KAPPA + v2)
            c = sign_covariance(
                np.array([a]), np.array([b]), np.array([k / np.sqrt((KAPPA + v) * (KAPPA + v2))])
            )[0]
            p, q, both = quadrature(m, v, m2, v2, k)
            assert probability(m, v) == pytest.approx(p, abs=0.02)
            assert c == pytest.approx(both - p * q, abs=0.008)


def test_labels_that_are_one_and_the_same_and_labels_apart():
    p = np.array([0.3])
    same = conditional(p, p, p * (1.0 - p))
    assert np.allclose(same, [[1.0], [0.0]])
    apart = conditional(p, np.array([0.8]), np.zeros(1))
    assert np.allclose(apart, 0.8)


@pytest.mark.parametrize(
    ("uncertainty", "value"),
    [(entropy, np.log(2.0)), (spread_of_label, 0.25), (least_cost(1.0 - np.eye(2)), 0.5)],
)
def test_what_a_certain_answer_gains(uncertainty, value):
    outcomes = np.array([[0.5], [0.5]])
    after = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
    assert expected_gain(uncertainty, outcomes, after)[0] == pytest.approx(value)


def test_brier_gain_has_its_closed_form():
    p, q, c = np.array([0.3]), np.array([0.6]), np.array([0.05])
    yes, no = conditional(p, q, c)
    outcomes = np.stack([p, 1.0 - p])
    after = np.stack([np.stack([1.0 - one, one]) for one in (yes, no)])
    gain = expected_gain(spread_of_label, outcomes, after)
    assert gain == pytest.approx(c**2 / (p * (1.0 - p)))


def test_costs_move_the_decision():
    costs = np.array([[0.0, 1.0], [9.0, 0.0]])  # rows are true classes
    p = np.array([[0.95, 0.8], [0.05, 0.2]])
    assert least_cost(costs)(p) == pytest.approx([0.45, 0.8])
