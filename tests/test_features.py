"""Feature maps: what they keep, what they forget, and what they make of rows they never saw."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tolerances import IDENTITY

from polyfid.model.features import AsGiven, Coded, Ranked, SharedUnit, Standardised, UnitRows

ALL = [AsGiven, Standardised, Ranked, SharedUnit, UnitRows, Coded]


def some_rows(n=40, seed=0):
    """Two numeric columns, one of them skewed, and four indicators."""
    rng = np.random.default_rng(seed)
    numeric = np.column_stack([rng.normal(3.0, 2.0, n), np.exp(2.0 * rng.normal(size=n))])
    return np.column_stack([numeric, one_hot(np.arange(n) % 4)])


def one_hot(codes):
    return np.eye(codes.max() + 1)[codes]


X = some_rows()
ONES = np.ones(len(X))

tables = hnp.arrays(
    float,
    st.tuples(st.integers(2, 12), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, width=32),
)


@pytest.mark.parametrize("kind", ALL)
def test_rows_are_mapped_one_by_one(kind):
    features = kind.of(X, ONES)
    points = features(X)
    assert points.shape[0] == len(X)
    assert np.isfinite(points).all()
    np.testing.assert_allclose(features(X[7:8]), points[7:8], rtol=IDENTITY)
    np.testing.assert_array_equal(features(X[::-1]), points[::-1])


@pytest.mark.parametrize("kind", ALL)
def test_weight_is_repetition_in_any_order(kind):
    weight = np.random.default_rng(1).integers(1, 5, len(X))
    weighted = kind.of(X, weight.astype(float))
    repeated = kind.of(np.repeat(X, weight, axis=0)[::-1], np.ones(weight.sum()))
    new = some_rows(seed=2)
    np.testing.assert_allclose(weighted(new), repeated(new), rtol=IDENTITY, atol=IDENTITY)
    if kind in (Standardised, Ranked, SharedUnit, UnitRows):
        assert np.abs(weighted(new) - kind.of(X, ONES)(new)).max() > 0.01


@pytest.mark.parametrize("kind", [Standardised, Ranked, SharedUnit])
def test_constant_columns_become_exactly_zero(kind):
    x, weight = np.column_stack([X, np.full(len(X), 0.1)]), np.linspace(0.3, 2.0, len(X))
    points = kind.of(x, weight)(x)
    assert not points[:, -1].any()
    np.testing.assert_allclose(points[:, :-1], kind.of(X, weight)(X), rtol=IDENTITY, atol=IDENTITY)


@settings(deadline=None, max_examples=50)
@given(
    ranks=hnp.arrays(
        int, st.tuples(st.integers(3, 12), st.integers(1, 4)), elements=st.integers(0, 6)
    ),
    values=st.lists(st.floats(-1e9, 1e9), min_size=7, max_size=7, unique=True),
    data=st.data(),
)
def test_ranked_forgets_monotone_changes_of_a_column(ranks, values, data):
    x = ranks.astype(float)
    column = data.draw(st.integers(0, x.shape[1] - 1))
    weight = data.draw(hnp.arrays(float, len(x), elements=st.floats(0.5, 3.0)))
    changed = x.copy()
    changed[:, column] = np.sort(values)[ranks[:, column]]
    one, other = Ranked.of(x, weight), Ranked.of(changed, weight)
    assert (one is None) == (other is None)
    if one is not None:
        np.testing.assert_array_equal(one(x), other(changed))


@settings(deadline=None, max_examples=50)
@given(x=tables, data=st.data())
def test_warps_are_monotone(x, data):
    features = Ranked.of(x, data.draw(hnp.arrays(float, len(x), elements=st.floats(0.5, 3.0))))
    assume(features is not None)
    new = data.draw(hnp.arrays(float, (9, x.shape[1]), elements=st.floats(-2e6, 2e6)))
    new = np.sort(new, axis=0)
    points = features(new)
    assert np.diff(points, axis=0).min() > -1e-12
    # One range of the values beyond the last of them is one range of the ranks.
    low, high = features(x.min(axis=0, keepdims=True)), features(x.max(axis=0, keepdims=True))
    beyond = features(2.0 * x.max(axis=0, keepdims=True) - x.min(axis=0))
    np.testing.assert_allclose(beyond - high, high - low, atol=1e-6)


def test_ranks_are_shares_of_the_rows_below():
    x = np.array([[1.0], [10.0], [10.0], [1000.0]])
    points = Ranked.of(x, np.ones(4))(np.array([[1.0], [5.5], [10.0], [505.0], [1000.0], [2000.0]]))
    shares = np.array([1 / 8, 5 / 16, 1 / 2, 11 / 16, 7 / 8, 7 / 8 + 3 / 4 * 1000 / 999])
    sd = np.sqrt(np.mean([9 / 64, 0.0, 0.0, 9 / 64]))
    np.testing.assert_allclose(points.ravel(), (shares - 0.5) / sd, rtol=IDENTITY)


def test_shared_unit_keeps_proportions():
    rng = np.random.default_rng(0)
    x = rng.normal(2.0, 1.0, (50, 3)) * np.array([1.0, 10.0, 0.01])
    points = SharedUnit.of(x, np.ones(50))(x)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    assert np.mean(points.std(axis=0) ** 2) == pytest.approx(1.0)
    ratio = np.ptp(points, axis=0) / np.ptp(x, axis=0)
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("kind", [SharedUnit, UnitRows])
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-3, 1e3, 1e200, 1e300])
def test_units_of_any_size(kind, size):
    x = np.random.default_rng(0).normal(size=(30, 3))
    points, other = (kind.of(z, np.ones(30))(z) for z in (x, x * size))
    np.testing.assert_allclose(other, points, atol=1e-12)


def test_a_column_that_varies_by_rounding_has_no_unit():
    x = np.random.default_rng(0).normal(size=(30, 3)) * 1e-6
    jitter = np.where(np.arange(30) % 2, 0.3, 0.1 + 0.2)
    plain, other = (
        SharedUnit.of(z, np.ones(30))(z)[:, :3] for z in (x, np.column_stack([x, jitter]))
    )
    np.testing.assert_allclose(other, plain, rtol=IDENTITY)


def test_maps_that_make_no_sense_are_none():
    assert Ranked.of(X[:, 2:], ONES) is None  # two values have no shape
    assert SharedUnit.of(X[:, :1], ONES) is None  # one column is its own unit
    assert SharedUnit.of(np.column_stack([X[:, 0], ONES]), ONES) is None
    assert UnitRows.of(X[:, :2], ONES) is None


@settings(deadline=None, max_examples=50)
@given(
    x=hnp.arrays(float, st.tuples(st.integers(2, 10), st.just(3)), elements=st.floats(-5.0, 5.0)),
    data=st.data(),
)
def test_unit_rows_forget_the_length_of_rows(x, data):
    assume((np.abs(x).max(axis=1) > 1e-3).all())
    length = data.draw(hnp.arrays(float, (len(x), 1), elements=st.floats(1e-3, 1e3)))
    features = UnitRows.of(x, np.ones(len(x)))
    assume(features is not None and features.unit.scale.spread[0] > 1e-6)
    np.testing.assert_allclose(features(x * length), features(x), atol=1e-8)
    trained = UnitRows.of(x * length, np.ones(len(x)))
    np.testing.assert_allclose(trained(x), features(x), atol=1e-7)


def test_a_row_of_zeros_has_no_direction():
    x = np.random.default_rng(0).normal(size=(20, 3))
    x[4] = 0.0
    features = UnitRows.of(x, np.ones(20))
    assert np.isfinite(features(x)).all()
    scale = features.unit.scale
    np.testing.assert_allclose(features(x)[4], -scale.centre / scale.spread)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("sizes", [[2], [4, 3], [2, 2, 4, 3]])
def test_coded_reads_what_one_hot_encoding_wrote(sizes, between):
    rng, numeric = np.random.default_rng(0), np.linspace(0.0, 1.0, 15) ** 2
    codes = [rng.permutation(np.arange(15) % size) for size in sizes]
    columns = [numeric]
    for column in codes:
        columns += [one_hot(column), numeric] if between else [one_hot(column)]
    x = np.column_stack(columns)
    features = Coded.of(x, np.ones(len(x)))
    assert [stop - start for start, stop in features.blocks] == sizes
    np.testing.assert_array_equal(features(x)[:, features.n_numeric :], np.column_stack(codes))
    standardised = Standardised.of(x, np.ones(len(x)))(x)
    np.testing.assert_allclose(features(x)[:, 0], standardised[:, 0], atol=IDENTITY)
    assert features.n_numeric == 1 + between * len(sizes)


@settings(deadline=None, max_examples=60)
@given(
    x=hnp.arrays(
        float, st.tuples(st.integers(2, 8), st.integers(2, 7)), elements=st.sampled_from([0.0, 1.0])
    )
)
def test_blocks_are_set_once_in_every_row(x):
    features = Coded.of(x, np.ones(len(x)))
    if features is None:
        return
    for start, stop in features.blocks:
        np.testing.assert_array_equal(x[:, start:stop].sum(axis=1), 1.0)
        assert x[:, start:stop].any(axis=0).sum() >= 2
    points = features(x)
    assert points.shape[1] == features.n_numeric + len(features.blocks)
    # Nothing is lost: rows differ as points exactly where they differ.
    varying = np.ptp(x, axis=0) > 0.0
    different = (x[:, None, varying] != x[None, :, varying]).any(axis=2)
    np.testing.assert_array_equal((points[:, None] != points[None]).any(axis=2), different)


@pytest.mark.parametrize(
    "x",
    [
        X[:, :2],  # numbers
        np.array([[0, 1], [1, 1], [1, 0], [0, 1]]),  # two flags
        np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]]),  # one row with nothing set
        np.array([[0, 2], [2, 0], [0, 2], [2, 0]]),  # not indicators
        np.array([[1, 0], [1, 0], [1, 0], [1, 0]]),  # one category
    ],
    ids=["numbers", "flags", "empty row", "twos", "one category"],
)
def test_what_is_no_block(x):
    assert Coded.of(x.astype(float), np.ones(len(x))) is None


def test_columns_never_set_belong_to_the_block_before():
    x = np.column_stack([one_hot(np.arange(12) % 3), np.zeros(12), one_hot(np.arange(12) % 2)])
    assert Coded.of(x, np.ones(12)).blocks == ((0, 4), (4, 6))
    # A category that training rows do not have gets a code of its own.
    new = np.array([[0.0, 0.0, 0.0, 1.0, 1.0, 0.0]])
    np.testing.assert_array_equal(Coded.of(x, np.ones(12))(new), [[3.0, 0.0]])
    # So does a row with nothing set.
    np.testing.assert_array_equal(Coded.of(x, np.ones(12))(0.0 * new), [[-1.0, -1.0]])
