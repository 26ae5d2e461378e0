"""What every kernel promises."""

from functools import partial

import numpy as np
import pytest
from families import EACH, FOUR, TWO, differences, every_kernel
from tolerances import GRADIENT, IDENTITY

from polyfid.kernels import (
    RBF,
    Additive,
    Categorical,
    Constant,
    Laplacian,
    Linear,
    Matern,
    Pairs,
    RationalQuadratic,
)
from polyfid.kernels.pairs import PairsWithin, PassingPairs, PointSet
from polyfid.model.prior import tiles
from polyfid.rows import Points


def some_points(n, seed=0):
    """Two numeric and two categorical columns; the last rows repeat the first."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, size=(n, 2))])
    x[-3:] = x[:3]
    return x


X = some_points(13)
OTHER = np.concatenate([some_points(5, seed=1), X[:2]])
PAIRS = {
    "square": Pairs(X, X, 0),
    "rows of the square": Pairs(X[4:9], X, 4),
    "columns of the square": Pairs(X, X[4:9], -4),
    "overlap": Pairs(X[:8], X[5:], -5),
    "within a set": PairsWithin(PointSet(X), slice(4, 9), slice(2, 13)),
    "rectangular": Pairs(X, OTHER),
    "passing": PassingPairs(X, PointSet(OTHER)),
    "one row": Pairs(X[:1], X),
    "no points": Pairs(X, X[:0]),
}
MATERNS = [partial(Matern, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)]
every_pairs = pytest.mark.parametrize("pairs", PAIRS.values(), ids=list(PAIRS))
every = every_kernel()


def assert_gradient(found, function, at):
    expected = differences(function, at, step=1e-5)
    assert found.shape == at.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=GRADIENT, atol=GRADIENT * scale)


@every
def test_symmetric_with_its_diagonal_and_positive(kernel):
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=IDENTITY, atol=IDENTITY)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=IDENTITY)
    # scikit-learn's periodic kernel is a function of the distance: positive in one column.
    assert np.linalg.eigvalsh(K).min() >= -1e-10 or "ExpSineSquared" in repr(kernel)


@every
def test_slices_of_the_square_are_its_slices(kernel):
    K = kernel(X)
    for name, part in [
        ("rows of the square", K[4:9]),
        ("columns of the square", K[:, 4:9]),
        ("overlap", K[:8, 5:]),
        ("within a set", K[4:9, 2:]),
        ("passing", kernel(X, OTHER)),
    ]:
        found = kernel.evaluate(PAIRS[name])
        np.testing.assert_allclose(found, part, rtol=IDENTITY, atol=IDENTITY, err_msg=name)


@every
@every_pairs
def test_weights_multiply_columns(kernel, pairs):
    weight = np.random.default_rng(2).normal(size=pairs.shape[1])
    for given in (weight, np.abs(weight)):
        expected = kernel.evaluate(pairs) * given
        np.testing.assert_allclose(
            kernel.weighted(pairs, given), expected, rtol=IDENTITY, atol=IDENTITY
        )


@pytest.mark.parametrize("kernel", [2.0 * RBF(1.4), Additive(1.4), Laplacian(FOUR)], ids=str)
@pytest.mark.parametrize("far", [1e3, 1e8, 1e300])
def test_points_far_away_leave_the_others_as_they_are(kernel, far):
    x, z, weight = X.copy(), X.copy(), np.full(len(X), 0.5)
    expected = 0.5 * kernel(X)
    x[2, 0] = far  # of new points
    found = kernel.weighted(PassingPairs(x, PointSet(z)), weight)
    others = np.arange(len(X)) != 2
    np.testing.assert_allclose(found[others], expected[others], rtol=IDENTITY)
    alone = 0.5 * kernel(x[2:3], z)
    np.testing.assert_allclose(found[2:3], alone, rtol=IDENTITY, atol=IDENTITY)
    z[2, 0] = min(far, 1e6)  # of fixed ones
    found = kernel.weighted(PassingPairs(X, PointSet(z)), weight)
    np.testing.assert_allclose(found[:, others], expected[:, others], rtol=1e-9)


@every
def test_repeated_points_differ_by_noise_only(kernel):
    # Rows 0 and -3 are one point. Without noise all entries of their block are equal.
    K, noisy = kernel(X), "White" in repr(kernel)
    assert K[0, -3] == pytest.approx(kernel(X[:1], X[-3:-2])[0, 0], rel=IDENTITY)
    assert K[0, 0] > K[0, -3] if noisy else K[0, 0] == pytest.approx(K[0, -3], rel=IDENTITY)


@every
@every_pairs
def test_adjoint_of_theta_is_finite_differences(kernel, pairs):
    K_bar = np.random.default_rng(2).normal(size=pairs.shape)
    at = kernel.linearise(pairs)
    np.testing.assert_array_equal(at.K, kernel.evaluate(pairs))
    bars = at.pull(K_bar)
    assert bars.places.shape == (0, 4)

    def product(theta):
        return np.vdot(K_bar, kernel.with_theta(theta).evaluate(pairs))

    assert_gradient(bars.theta, product, kernel.theta)


@every
@pytest.mark.parametrize("passing", [False, True])
def test_adjoint_of_places_is_finite_differences(kernel, passing):
    # Away from x, where a Matern 1/2 has a kink; categories, which equality alone matters for,
    # have zero gradient, and stay equal to some of the others only where they do not move.
    z = X[:6].copy()
    moving = [0, 1] if "Categorical" in repr(kernel) else [0, 1, 2, 3]
    z[:, moving] += np.random.default_rng(1).uniform(0.05, 0.1, (6, len(moving)))
    K_bar = np.random.default_rng(2).normal(size=(len(X), 6))

    def product(places):
        moved = z.copy()
        moved[:, moving] = places.reshape(6, -1)
        return np.vdot(K_bar, kernel.evaluate(Pairs(X, moved)))

    at = kernel.linearise(PassingPairs(X, PointSet(z)) if passing else Pairs(X, z))
    theta_bar, found = at.pull(K_bar, places=True)
    assert_gradient(found[:, moving].ravel(), product, z[:, moving].ravel())
    assert found.shape == z.shape
    assert not np.delete(found, moving, axis=1).any()
    np.testing.assert_allclose(theta_bar, at.pull(K_bar).theta, rtol=1e-9, atol=1e-9)


@every
def test_adjoint_of_the_diagonal_is_finite_differences(kernel):
    k_bar = np.random.default_rng(2).normal(size=len(X))
    found = kernel.pull_diagonal(X, k_bar)
    assert_gradient(found, lambda t: k_bar @ kernel.with_theta(t).diagonal(X), kernel.theta)


def test_points_are_centred_once_for_all_tiles():
    # A copy per tile took several times the memory of the covariance.
    x = np.random.default_rng(0).normal(size=(600, 50))
    parts = tiles(Points(x, np.zeros(600, dtype=int)))
    assert len(parts) > 5
    centred = {id(a.base) for tile in parts for a in tile.pairs.centred(None)}
    assert len(centred) == 1


@every
def test_theta_round_trip(kernel):
    again = kernel.with_theta(kernel.theta)
    assert repr(again) == repr(kernel)
    np.testing.assert_allclose(again(X), kernel(X), rtol=IDENTITY, atol=IDENTITY)
    other = kernel.theta + np.linspace(-0.5, 0.5, len(kernel.theta))
    np.testing.assert_allclose(kernel.with_theta(other).theta, other, rtol=0.0, atol=IDENTITY)
    kernel.theta[...] = 99.0  # callers own what they get
    kernel(X)[...] = 0.0
    assert repr(kernel) == repr(again)


@every
def test_bounds_and_names_go_with_theta(kernel):
    p = len(kernel.theta)
    assert kernel.bounds.shape == (p, 2)
    assert (kernel.bounds[:, 0] <= kernel.theta).all()
    assert (kernel.theta <= kernel.bounds[:, 1]).all()
    assert len(kernel.theta_names) == len(set(kernel.theta_names)) == p
    assert kernel.for_features(4).theta_names == kernel.theta_names
    assert kernel.describe(["age", "income", "town", "trade"])


def test_kernels_in_words():
    assert (2.0 * RBF(TWO)).theta_names[1:] == ("rbf.length_scale[0]", "rbf.length_scale[1]")
    assert (RBF() + RBF()).theta_names == ("left.rbf.length_scale", "right.rbf.length_scale")
    kernel = 2.0 * RBF(columns=(0, 2)) + Linear()
    assert kernel.describe(["age", "income", "town"]) == (
        "smooth (RBF) on age, town, length-scale 1, scale 2 plus linear, length-scale 1"
    )
    assert (kernel * 3.0).describe().startswith("(smooth (RBF) on 0, 2")


def test_ard_takes_the_number_of_columns_from_the_data():
    assert RBF(2.0, ard=True).for_features(3) == RBF((2.0, 2.0, 2.0))
    assert RBF(2.0, ard=True, columns=(0, 2)).for_features(3) == RBF((2.0, 2.0), columns=(0, 2))
    assert (3.0 * RBF(2.0, ard=True)).for_features(2) == 3.0 * RBF((2.0, 2.0))
    free = RBF(2.0, ard="free").for_features(2)
    assert free == RBF((2.0, 2.0), ard="free") != RBF((2.0, 2.0))
    assert free.with_theta(free.theta + 0.1).ard == "free"


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(RBF(1.4, columns=(3, 1)), RBF(1.4)), (Categorical(TWO, columns=(3, 1)), Categorical(TWO))],
)
def test_columns_are_a_selection_of_the_data(narrow, wide):
    np.testing.assert_allclose(narrow(X), wide(X[:, [3, 1]]), rtol=IDENTITY)


@pytest.mark.parametrize("cls", [*MATERNS, RationalQuadratic, Linear, Categorical])
def test_equal_length_scales_are_one_shared(cls):
    np.testing.assert_allclose(cls((1.4,) * 4)(X), cls(1.4)(X), rtol=IDENTITY, atol=IDENTITY)


def test_far_from_the_origin_nothing_is_lost():
    # s = |x|^2 + |z|^2 - 2 x.z cancels there, which points shifted to their middle avoid.
    # The coordinates themselves are rounded to about 1e-10.
    far = X + 1e6
    np.testing.assert_allclose(RBF(FOUR)(far), RBF(FOUR)(X), atol=1e-8)
    np.testing.assert_array_equal(np.diag(Matern(FOUR, 0.5)(far)), 1.0)


@pytest.mark.parametrize("repeats", [1, 30])
@pytest.mark.parametrize("cls", MATERNS)
def test_points_close_together(cls, repeats):
    near = X + 1e-9 * np.random.default_rng(5).normal(size=X.shape)
    x = np.concatenate([X, *[near] * repeats])
    K = cls((0.1,) * 4)(x)
    np.testing.assert_allclose(K, cls(0.1)(x), rtol=IDENTITY, atol=IDENTITY)
    assert np.linalg.eigvalsh(K).min() >= -IDENTITY


def test_categories_that_the_sets_do_not_share():
    kernel = Categorical((2.0, 4.0))
    K = kernel([[0.0, 7.0], [1.0, 8.0]], [[5.0, 8.0], [6.0, 9.0]])
    all_differ, first_differs = np.exp(-0.75), np.exp(-0.5)
    np.testing.assert_allclose(K, [[all_differ, all_differ], [first_differs, all_differ]])


def test_numbers_are_constants():
    assert 2 * RBF() == np.float64(2.0) * RBF() == Constant(2.0) * RBF()
    assert RBF() * np.float64(2.0) == RBF() * Constant(2.0)
    assert 2 + RBF() == np.int64(2) + RBF() == Constant(2.0) + RBF()
    assert repr(2.0 * (RBF() + 1)).endswith("* (RBF(length_scale=1) + Constant(value=1))")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(-1.0), r"RBF\(length_scale=\) must be a number, or one per column, positive"),
        (lambda: RBF("long"), r"RBF\(length_scale=\).*got 'long'"),
        (lambda: Constant([1.0, 2.0]), r"Constant\(value=\) must be a number, positive"),
        (lambda: RationalQuadratic(alpha=[1.0]), r"RationalQuadratic\(alpha=\) must be a number,"),
        (lambda: RBF(1.0, (2.0, 1.0)), r"RBF\(length_scale_bounds=\) must be \(low, high\)"),
        (lambda: RBF(1.0, (0.0, 1.0)), r"0 < low <= high < inf"),
        (lambda: RBF(1.0, None), r"RBF\(length_scale_bounds=\).*got None"),
        (lambda: RBF(1.0, "free"), r'or "fixed"; got \'free\''),
        (lambda: RBF(TWO, EACH), r"one such pair per value \(2 in all\)"),
        (lambda: RBF(ard="loose"), r'RBF\(ard=\) must be False, True or "free"; got \'loose\''),
        (lambda: RBF(columns=(1, 1)), r"columns of RBF must be distinct indices from 0"),
        (lambda: RBF(FOUR, columns=(0, 1)), r"RBF has 4 length-scales for 2 features"),
        (lambda: RBF(TWO).for_features(4), r"RBF has 2 length-scales for 4 features"),
        (lambda: RBF(columns=(1, 4))(X), r"RBF asks for column 4, but there are 4 features"),
        (lambda: RBF()([1.0, 2.0]), r"X must have the shape \(rows, features\), got \(2,\)"),
        (lambda: Matern(nu=2.0), r"Matern\(nu=\) must be 0.5, 1.5, 2.5 or inf, got 2.0"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("other", ["RBF", None, [1.0], np.ones(2)])
def test_only_kernels_and_numbers_combine(other):
    with pytest.raises(TypeError, match="expected a kernel"):
        RBF() + other
    with pytest.raises(TypeError, match="expected a kernel"):
        other * RBF()
