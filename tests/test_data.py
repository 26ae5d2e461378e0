"""Points, names of levels, weights and tables: what comes in, in order or refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polyfid.arrays import Scale, root_mean_square, settled, sort_rows, varies
from polyfid.estimator.inputs import read_weights, refuse_other_than_numbers
from polyfid.estimator.levels import (
    FidelityArray,
    as_column,
    encode_levels,
    order_levels,
    stack_levels,
)
from polyfid.rows import Points, Rows

# Points


def test_segments_are_the_levels_that_occur():
    points = Points(np.zeros((4, 1)), np.array([0, 0, 2, 2]))
    assert points.segments() == [(0, slice(0, 2)), (2, slice(2, 4))]
    assert Points(np.zeros((0, 1)), np.zeros(0, dtype=int)).segments() == []


def some_rows(counts=(500, 20, 100)):
    n = sum(counts)
    rng = np.random.RandomState(0)
    level = np.repeat(np.arange(len(counts)), counts)
    return Rows.of(rng.normal(size=(n, 2)), level, rng.randint(2, size=n), rng.uniform(size=n))


def test_rows_are_sampled_with_small_levels_whole():
    rows = some_rows()
    chosen = rows.sample(200, np.random.RandomState(0))
    assert np.bincount(chosen.level).tolist() == [90, 20, 90]
    assert len(np.unique(chosen.x, axis=0)) == 200
    again = rows.sample(200, np.random.RandomState(0))
    np.testing.assert_array_equal(chosen.x, again.x)
    by_level = rows.sample((7, 0, 200), np.random.RandomState(0))
    assert np.bincount(by_level.level).tolist() == [7, 0, 100]
    for size in (620, None, (500, 20, 100)):
        assert rows.sample(size, np.random.RandomState(0)) is rows


def test_rows_of_any_order_are_sorted_and_merged():
    rows = Rows.of([[2.0], [1.0], [2.0], [2.0]], [1, 0, 1, 1], [0, 1, 0, 0], annotator=[3, 3, 3, 4])
    assert rows.level.tolist() == [0, 1, 1, 1]
    merged = rows.merged()
    assert merged.weight.tolist() == [1.0, 2.0, 1.0]
    assert merged.annotator.tolist() == [3, 3, 4]
    assert rows.merged(tell_apart=True).weight.tolist() == [1.0] * 4


@given(st.data())
def test_sort_rows_forgets_the_order(data):
    x = data.draw(arrays(float, (8, 2), elements=st.sampled_from([0.0, -0.0, 1.0])))
    key = data.draw(arrays(int, 8, elements=st.integers(0, 1)))
    mixed = np.array(data.draw(st.permutations(range(8))))
    order, starts = sort_rows(key, *x.T)
    other, other_starts = sort_rows(key[mixed], *x[mixed].T)
    np.testing.assert_array_equal(x[order], x[mixed][other])
    np.testing.assert_array_equal(key[order], key[mixed][other])
    np.testing.assert_array_equal(starts, other_starts)
    assert len(starts) == len(np.unique(np.column_stack([key, x]), axis=0))


# The scale of features


def test_scale_standardizes():
    x = np.random.default_rng(0).normal(3, 5, (50, 3))
    z = Scale.of(x, np.ones(50))(x)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(z.std(axis=0), 1)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-12, 1.0, 1e12, 1e200, 1e300])
def test_scale_of_features_of_any_size(size):
    x = np.random.default_rng(0).normal(size=(30, 2))
    z = Scale.of(x * size, np.ones(30))(x * size)
    tolerance = 1e-12 if size > 1e-300 else 1e-2  # numbers below 1e-308 have few digits
    np.testing.assert_allclose(z, Scale.of(x, np.ones(30))(x), atol=tolerance)


def test_what_varies():
    jitter = np.where(np.arange(6) % 2, 0.3, 0.1 + 0.2)
    x = np.column_stack([np.full(6, 0.1), jitter, np.arange(6.0), np.arange(6.0) * 1e-300])
    assert varies(x).tolist() == [False, False, True, True]
    np.testing.assert_array_equal(settled(x)[:, 1], 0.3)
    np.testing.assert_array_equal(settled(x)[:, [0, 2, 3]], x[:, [0, 2, 3]])
    np.testing.assert_array_equal(settled(x[::-1]), settled(x)[::-1])


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_root_mean_square(size):
    assert root_mean_square(size * np.array([3.0, 4.0, 0.0])) == pytest.approx(
        size * np.sqrt(25 / 3), rel=1e-12
    )


# Names and order of levels


@pytest.mark.parametrize(
    ("fidelity", "levels"),
    [
        (["b", "b"], ("b",)),  # one level needs no order
        (["10", "9"], ("9", "10")),
        (np.array([1.0, 0.0]), (0, 1)),
        ([True, False], (False, True)),
        ([0, 1.0], (0, 1)),
        ((np.str_("1e1"), "-2"), ("-2", "1e1")),
        ([0.5, 1.5], (0.5, 1.5)),
        (pd.Series(["2", "10"], dtype="string"), ("2", "10")),
        (pd.Series([3, 1], dtype="Int64"), (1, 3)),
        (pd.Series(["2", "10"], dtype="category"), ("2", "10")),
        (pl.Series(["2", "10"]), ("2", "10")),
        # those that carry an order
        (pd.Series(pd.Categorical(["b", "a"], ["b", "a"], ordered=True)), ("b", "a")),
        (pd.Categorical(["b"], ["z", "b", "a"], ordered=True), ("z", "b", "a")),
        (pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])), ("b", "a")),
        (FidelityArray(["b", "a"], ("b", "a")), ("b", "a")),
        (FidelityArray(["2", "10"]), ("2", "10")),
        (FidelityArray(["b", "a"], ("b", "a")) == "b", (False, True)),  # no names of levels
        (FidelityArray([True, False], (True, False))[::-1], (True, False)),
    ],
)
def test_order_of_levels(fidelity, levels):
    names = order_levels(fidelity)
    assert names == levels
    assert [type(n) for n in names] == [type(n) for n in levels]
    codes = encode_levels(fidelity, names)
    assert [names[t] for t in codes] == list(np.asarray(fidelity))


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        lambda names: np.array(names, dtype=object),
        FidelityArray,
        pl.Series,
        pd.Series,
        lambda names: pd.Series(names, dtype="category"),  # which is not ordered
    ],
)
def test_names_have_no_order(make):
    fidelity = make(["expert"] + ["crowd"] * 3 + ["bot"] * 3)
    with pytest.raises(ValueError, match="fidelity names levels without saying") as caught:
        order_levels(fidelity)
    message = str(caught.value)
    # Counts, and what to write: frequent levels are proposed as cheap ones, ties by name.
    assert "'bot' (3 rows), 'crowd' (3 rows), 'expert' (1 row)" in message
    assert "levels=['bot', 'crowd', 'expert'] if 'expert' is the most trusted level" in message
    assert order_levels(fidelity, ["crowd", "bot", "expert"]) == ("crowd", "bot", "expert")


def test_one_name_among_numbers_and_many_names():
    for names in (["1", "2", "top"], ["1", "nan"], ["2", "inf"]):
        with pytest.raises(ValueError, match="without saying which is trusted"):
            order_levels(names)
    with pytest.raises(ValueError, match=r"'f' \(1 row\) and 3 more\. Name them"):
        order_levels(list("abcdefghi"))


def test_the_order_given_wins():
    fidelity = pd.Categorical(["b", "a"], ["b", "a"], ordered=True)
    assert order_levels(fidelity, ["a", "b"]) == ("a", "b")
    assert order_levels(fidelity, np.array(["a", "b"])) == ("a", "b")
    assert order_levels(None, (1.0, 2)) == (1, 2)


@pytest.mark.parametrize(
    "levels", [["a", "a"], [1, 1.0], [], "ab", b"ab", 3, {"a", "b"}, [["a"], ["b"]]]
)
def test_levels_that_are_no_list_of_names_or_unknown(levels):
    with pytest.raises(ValueError, match=r"levels must be distinct names in a list.*least trusted"):
        order_levels(["a", "b"], levels)
    with pytest.raises(
        ValueError, match=r"unknown level\(s\) \[2, 3, 4, 5, 6, \.\.\.\]; the levels"
    ):
        encode_levels(range(100), (0, 1))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a", "b"}, r"one-dimensional"),
        ((i for i in range(3)), r"one-dimensional"),
        ([[0, 1]], r"one-dimensional.*shape \(1, 2\)"),
        ([0.0, np.inf], r"missing or infinite values \(first in row 1\)"),
        (pd.Series([1, None], dtype="Int64"), r"missing or infinite"),
        (pd.Categorical(["a", None], ["a"], ordered=True), r"missing or infinite"),
        (pl.Series(["a", None]), r"missing or infinite"),
        ([object(), object()], r"cannot be ordered"),
    ],
)
def test_columns_that_cannot_be_ordered(values, message):
    with pytest.raises(ValueError, match=f"(?s)annotator.*{message}"):
        as_column(values, "annotator")


# Stacking, which remembers the order of levels

ONE = (np.zeros((1, 1)), [1])


def test_the_order_of_levels_survives_what_is_done_to_rows():
    empty = (np.zeros((0, 1)), [])
    X, y, fidelity = stack_levels({"b": (np.zeros((2, 1)), [0, 1]), "a": ONE, "c": empty})
    assert (X.shape, y.dtype.kind) == ((3, 1), "i")
    pickled = pickle.loads(pickle.dumps(fidelity))
    chosen = (fidelity[1:], fidelity[[0, 2]], fidelity[fidelity == "b"])
    for changed in (*chosen, pickled, copy.deepcopy(fidelity), fidelity.copy()):
        assert order_levels(changed) == ("b", "a", "c")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_stack_frames(frame):
    low, high = frame({"a": [0.0, 1.0], "b": [2.0, 3.0]}), frame({"a": [4.0], "b": [5.0]})
    X, y, fidelity = stack_levels({1: (low, ["u", "v"]), 0: (high, ["u"])})
    assert isinstance(X, frame)
    assert list(X.columns) == ["a", "b"]
    assert np.asarray(X).tolist() == [[0, 2], [1, 3], [4, 5]]
    assert y.tolist() == ["u", "v", "u"]
    assert order_levels(fidelity) == (1, 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"data must be a mapping"),
        ({}, r"data must be a mapping.*at least one level"),
        ({"a": ONE, 1: ONE}, r"data mixes.*'number', 'str'"),
        ({"a": ONE, "b": (np.zeros((1, 1)), ["1"])}, r"name the classes alike"),
        ({"a": 1}, r"data\['a'\] must be a pair \(X, y\)"),
        ({"a": (np.zeros((2, 1)), [1])}, r"data\['a'\]: X has 2 rows and y has 1"),
        ({"a": ONE, "b": (np.zeros((1, 2)), [1])}, r"same features.*\(1,\), \(2,\)"),
        (
            {"a": (pd.DataFrame({"u": [1]}), [1]), "b": (pd.DataFrame({"v": [1]}), [1])},
            r"same columns.*'u'.*'v'",
        ),
        ({"a": (pd.DataFrame({"u": [1]}), [1]), "b": ONE}, r"same columns"),
    ],
)
def test_what_cannot_be_stacked(data, message):
    with pytest.raises(ValueError, match=message):
        stack_levels(data)


# Weights


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, np.inf], r"missing or infinite.*0 to leave it out"),
        (0, r"sample_weight is zero in all rows"),
        ([[1.0], [1.0]], r"one-dimensional.*shape \(2, 1\)"),
        ([1j, 1j], r"sample_weight must be numbers.*complex"),
        ("balanced", r"sample_weight must be numbers"),
    ],
)
def test_bad_weights(weight, message):
    assert read_weights([True, False], 2).tolist() == [1.0, 0.0]
    assert read_weights(3, 2).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=message):
        read_weights(weight, 2)


# Tables


@pytest.mark.parametrize(
    ("X", "names"),
    [
        (np.array([["x", 1.0]], dtype=object), "0"),
        (np.array([["1", "x"]]), "1"),
        (pd.DataFrame({"a": ["x"], "b": [1]}), r"a \((str|object)\)"),
        (pd.DataFrame({"a": [1], "b": pd.Categorical(["x"])}), r"b \(category\)"),
        (pd.DataFrame({"t": pd.to_datetime(["2020"])}), r"t \(datetime64"),
        (pd.DataFrame({"a": np.array([1.0], dtype=object)}), r"a \(object\)"),
        (pl.DataFrame({"a": ["x"]}), r"a \(String\)"),
        (pd.DataFrame([["x"] * 7]), r"0 .*, 4 \((str|object)\) and 2 more"),
    ],
)
def test_columns_of_other_than_numbers(X, names):
    for numbers in (
        np.ones((2, 2), dtype=object),
        np.array([["1", "2.5"]]),
        np.array([[None, 1.0]]),  # missing, which is for others to say
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": True}),
        pl.DataFrame({"a": [1], "b": [True], "c": [0.5]}),
    ):
        refuse_other_than_numbers(numbers)
    with pytest.raises(ValueError, match=f"not numeric: {names}.*Encode them first"):
        refuse_other_than_numbers(X)
