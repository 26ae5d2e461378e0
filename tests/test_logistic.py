"""Integrals of the sigmoid against a Gaussian, against figures with 17 digits.

`references/make_logistic.py` makes them, with mpmath: means from -50 to 50, standard deviations
from 1e-8 to 100.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, log_ndtr

from polyfid.model.logistic import (
    expected_sigmoid,
    log_expected_sigmoid,
    sigmoid_moments,
    tilted_sigmoid,
)

STORED = json.loads((Path(__file__).parent / "references" / "logistic.json").read_text())
ROWS = STORED["rows"]
MEAN = np.array([row["mean"] for row in ROWS])
SD = np.array([row["sd"] for row in ROWS])
VARIANCE = SD**2
MOMENTS = np.array([row["moments"] for row in ROWS]).T
TILTED = np.array([row["tilted"] for row in ROWS]).transpose(1, 2, 0)  # power, figure, row
EPSILON = np.finfo(float).eps


@pytest.mark.parametrize(
    ("figure", "accuracy"), [("log_sigmoid", 1e-13), ("sigmoid", 1e-13), ("slope", 1e-11)]
)
def test_moments_have_relative_accuracy(figure, accuracy):
    got = sigmoid_moments(MEAN, VARIANCE)
    expected = MOMENTS[got._fields.index(figure)]
    np.testing.assert_allclose(getattr(got, figure), expected, rtol=accuracy)


@pytest.mark.parametrize("which", range(3))
def test_tilted_moments(which):
    power = STORED["powers"][which]
    log_z, first, second = tilted_sigmoid(MEAN, VARIANCE, power)
    expected = TILTED[which]
    # Z itself has relative accuracy in both tails, so its logarithm has absolute accuracy.
    np.testing.assert_allclose(log_z, expected[0], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(first, expected[1], rtol=1e-11)
    # The second derivative is a difference of terms of the size of first^2.
    np.testing.assert_allclose(second, expected[2], rtol=1e-8, atol=1e-9 * power)
    # The variance of cavity times label: what EP divides by.
    shrink = 1.0 + VARIANCE * second
    np.testing.assert_allclose(shrink, 1.0 + VARIANCE * expected[2], rtol=1e-8)
    assert (shrink > 0.0).all()
    assert (second <= 0.0).all()


def test_expected_sigmoid():
    expected = MOMENTS[1]
    np.testing.assert_allclose(expected_sigmoid(MEAN, VARIANCE), expected, rtol=1e-9)
    logs = log_expected_sigmoid(MEAN, VARIANCE)
    np.testing.assert_allclose(logs, np.log(expected), rtol=1e-13, atol=1e-14)
    # The probability of the other class, where this one is nearly certain.
    other = 1.0 - expected_sigmoid(MEAN, VARIANCE)
    np.testing.assert_allclose(other, 1.0 - expected, rtol=1e-9, atol=2.0 * EPSILON)


@pytest.mark.parametrize("sd", [0.3, 1.0, 1.001, 2.0, 2.5, 3.0, 4.5, 6.499, 6.5, 6.501])
def test_every_rule_for_probabilities_has_nine_digits(sd):
    mean = -np.linspace(0.0, 60.0, 301)
    expected = np.exp(log_expected_sigmoid(mean, np.full(len(mean), sd**2)))
    np.testing.assert_allclose(expected_sigmoid(mean, sd**2), expected, rtol=1e-9)


@pytest.mark.parametrize("mean", [-700.0, -1e4])
def test_far_tails_neither_overflow_nor_vanish(mean):
    # For f far below zero sigmoid(f) = e^f, and E e^f = e^(m + v / 2).
    assert log_expected_sigmoid([mean], [4.0])[0] == pytest.approx(mean + 2.0, rel=1e-14)
    log_z, first, second = tilted_sigmoid([mean], [4.0], 0.5)
    assert log_z[0] == pytest.approx(0.5 * mean + 0.5, rel=1e-14)
    assert first[0] == pytest.approx(0.5, rel=1e-12)
    assert second[0] == pytest.approx(0.0, abs=1e-9)
    below = sigmoid_moments([mean], [4.0])
    assert below.log_sigmoid[0] == pytest.approx(mean, rel=1e-14)
    above = sigmoid_moments([-mean], [4.0])
    assert above.sigmoid[0] == 1.0
    assert -1e-300 <= above.log_sigmoid[0] <= 0.0


def test_wide_gaussians():
    # For sd >> 1 the sigmoid is a step: E sigmoid = Phi(m / s) up to 1 / s.
    for sd in (1e4, 1e8):
        assert expected_sigmoid([0.7 * sd], [sd**2])[0] == pytest.approx(0.758036, abs=1e-6)
        log_z, first, second = tilted_sigmoid([-3.0 * sd], [sd**2])
        assert log_z[0] == pytest.approx(np.log(0.0013498980), abs=1e-3)
        assert np.isfinite([first[0], second[0]]).all()
        assert -1.0 < sd**2 * second[0] < 0.0
    # So far out that Phi itself is zero in floating point.
    log_z, first, second = tilted_sigmoid([-60e4], [1e8])
    assert log_z[0] == pytest.approx(log_ndtr(-60.0), abs=1e-2)
    assert first[0] == pytest.approx(60.0 / 1e4, rel=1e-2)
    assert np.isfinite(second[0])


def test_a_point_mass_is_the_sigmoid_itself():
    m = np.array([-30.0, -2.0, 0.0, 0.5, 30.0])
    zero = np.zeros_like(m)
    np.testing.assert_allclose(expected_sigmoid(m, zero), expit(m), rtol=1e-9)
    moments = sigmoid_moments(m, zero)
    np.testing.assert_allclose(moments.log_sigmoid, log_expit(m), rtol=1e-11)
    np.testing.assert_allclose(moments.sigmoid, expit(m), rtol=1e-11)
    np.testing.assert_allclose(moments.slope, expit(m) * expit(-m), rtol=1e-11)
    log_z = tilted_sigmoid(m, zero, 0.3).log_z
    np.testing.assert_allclose(log_z, 0.3 * log_expit(m), rtol=1e-11, atol=1e-14)


# ------------------------------------------------------------------------- consistency, anywhere


@settings(deadline=None)
@given(st.floats(-60.0, 60.0), st.floats(1e-3, 200.0))
def test_ways_to_the_same_number(m, sd):
    moments, tilted = sigmoid_moments([m], sd**2), tilted_sigmoid([m], sd**2)
    mirrored = sigmoid_moments([-m], sd**2)
    assert np.log(moments.sigmoid[0]) == pytest.approx(tilted.log_z[0], rel=1e-11, abs=1e-13)
    assert expected_sigmoid([m], sd**2)[0] == pytest.approx(moments.sigmoid[0], rel=1e-8)
    assert moments.sigmoid[0] + mirrored.sigmoid[0] == pytest.approx(1.0, abs=1e-14)
    assert moments.slope[0] == pytest.approx(mirrored.slope[0], rel=1e-11)
    assert np.log(moments.slope[0]) == pytest.approx(
        tilted.log_z[0] + np.log(tilted.first[0]), rel=1e-9, abs=1e-9
    )
    # log sigmoid(f) - log sigmoid(-f) = f
    gap = moments.log_sigmoid[0] - mirrored.log_sigmoid[0]
    assert gap == pytest.approx(m, rel=1e-12, abs=1e-13 * (1.0 + sd))
    assert moments.log_sigmoid[0] <= np.log(moments.sigmoid[0]) + 1e-13  # Jensen
