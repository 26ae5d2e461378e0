"""What every kernel promises: the contract of polyfid.kernels.base."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.gaussian_process import kernels as sk
from tolerances import GRADIENT, IDENTITY

from polyfid.kernels import (
    RBF,
    Categorical,
    Constant,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Pairs,
    RationalQuadratic,
    White,
)
from polyfid.kernels.sklearn import SklearnKernel

FOUR = (0.7, 1.3, 2.1, 0.9)  # length-scales of four columns
TWO = (0.8, 1.7)
EACH = ((0.1, 10.0), (0.2, 20.0), (0.3, 30.0), (0.4, 40.0))

LEAVES = {
    "constant": Constant(1.7),
    "constant fixed": Constant(1.7, "fixed"),
    "white": White(0.3),
    "white fixed": White(0.3, "fixed"),
    "rbf": RBF(1.4),
    "rbf fixed": RBF(1.4, "fixed"),
    "rbf ard": RBF(FOUR),
    "rbf ard asked for": RBF(1.4, ard=True),
    "rbf ard free": RBF(FOUR, ard="free"),
    "rbf ard free asked for": RBF(1.4, ard="free"),
    "rbf columns ard free": RBF(1.4, ard="free", columns=(3, 1)),
    "rbf ard fixed": RBF(FOUR, "fixed"),
    "rbf ard bounds a column": RBF(FOUR, EACH),
    "rbf column": RBF(1.4, columns=(2,)),
    "rbf columns": RBF(1.4, columns=(3, 1)),
    "rbf columns ard": RBF(TWO, columns=(3, 1)),
    "matern 1/2": Matern12(1.4),
    "matern 1/2 ard": Matern12(FOUR),
    "matern 3/2": Matern32(1.4),
    "matern 3/2 ard": Matern32(FOUR),
    "matern 5/2": Matern52(1.4),
    "matern 5/2 ard columns": Matern52(TWO, columns=(0, 2)),
    "rational quadratic": RationalQuadratic(1.4, alpha=0.6),
    "rational quadratic ard": RationalQuadratic(FOUR, alpha=2.5),
    "rational quadratic alpha fixed": RationalQuadratic(FOUR, alpha=2.5, alpha_bounds="fixed"),
    "rational quadratic length fixed": RationalQuadratic(FOUR, "fixed", alpha=2.5),
    "rational quadratic near rbf": RationalQuadratic(1.4, alpha=1e4),
    "linear": Linear(1.4),
    "linear fixed": Linear(1.4, "fixed"),
    "linear ard": Linear(FOUR),
    "linear columns": Linear(1.4, columns=(3, 1)),
    "linear columns ard": Linear(TWO, columns=(3, 1)),
    "categorical": Categorical(1.4),
    "categorical ard": Categorical(FOUR),
    "categorical ard free": Categorical(1.4, ard="free"),
    "categorical ard fixed": Categorical(FOUR, "fixed"),
    "categorical columns": Categorical(1.4, columns=(2, 3)),
    "categorical columns ard": Categorical(TWO, columns=(2, 3)),
}
COMBINED = {
    "constant + constant": Constant(1.7) + Constant(0.4),
    "constant * constant": Constant(1.7) * Constant(0.4),
    "constant * white": 2.0 * White(0.3),
    "scaled": 2.0 * RBF(FOUR),
    "scaled from the right": RBF(FOUR) * 2.0,
    "sum": RBF(1.4) + Linear(FOUR),
    "sum with noise": RBF(1.4) + White(0.3),
    "product": Matern32(1.4) * Linear(FOUR),
    "product with noise": RBF(1.4) * White(0.3),
    "same twice": RBF(1.4) + RBF(0.6),
    "same four times": RBF(1.4) + ((RBF(0.6) + RBF(0.3)) + RBF(0.2)),
    "partly fixed": Constant(2.0, "fixed") * RBF(1.4) + Constant(0.5) * Linear(1.0, "fixed"),
    "mixed columns": 2.0 * RBF(TWO, columns=(0, 1)) * Categorical(TWO, columns=(2, 3)),
    "nested": 2.0 * (RBF(FOUR) * (Linear(1.4) + 0.5) + White(0.1)) + 0.7 * Matern12(1.1),
}


class Cauchy(sk.StationaryKernelMixin, sk.NormalizedKernelMixin, sk.Kernel):
    """What a user of scikit-learn may have written."""

    def __init__(self, width=1.0, width_bounds=(1e-3, 1e3)):
        self.width = width
        self.width_bounds = width_bounds

    @property
    def hyperparameter_width(self):
        return sk.Hyperparameter("width", "numeric", self.width_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        other = X if Y is None else Y
        q = ((X[:, None] - other[None]) ** 2).sum(-1) / self.width**2
        K = 1.0 / (1.0 + q)
        return (K, (2.0 * q * K**2)[..., None]) if eval_gradient else K


WRAPPED = {
    "wrapped periodic": SklearnKernel(sk.ExpSineSquared(1.4, 3.0)),
    "wrapped periodic, partly fixed": SklearnKernel(
        sk.ExpSineSquared(1.4, 3.0, periodicity_bounds="fixed")
    ),
    "wrapped polynomial": SklearnKernel(sk.DotProduct(0.8) ** 2),
    "wrapped ard": SklearnKernel(sk.RBF(FOUR) ** 2),
    "wrapped fixed": SklearnKernel(sk.RBF(1.4, "fixed") ** 2),
    "wrapped noise": SklearnKernel((sk.RBF(1.4) + sk.WhiteKernel(0.3)) ** 2),
    "wrapped user's": SklearnKernel(Cauchy(1.2)),
    "wrapped in a sum": 2.0 * SklearnKernel(Cauchy(1.2)) + RBF(FOUR),
}
# scikit-learn's periodic kernel is a function of the Euclidean distance: positive in one column.
NOT_POSITIVE = {"wrapped periodic", "wrapped periodic, partly fixed"}

KERNELS = {**LEAVES, **COMBINED, **WRAPPED}


def some_points(n, seed=0):
    """Two numeric and two categorical columns; the last rows repeat the first."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, size=(n, 2))])
    x[-3:] = x[:3]
    return x


X = some_points(13)
PAIRS = {
    "square": Pairs(X, X, 0),
    "rows of the square": Pairs(X[4:9], X, 4),
    "columns of the square": Pairs(X, X[4:9], -4),
    "overlap": Pairs(X[:8], X[5:], -5),
    "rectangular": Pairs(X, np.concatenate([some_points(5, seed=1), X[:2]])),
    "one row": Pairs(X[:1], X),
}

every_kernel = pytest.mark.parametrize(
    "kernel", [k.for_features(4) for k in KERNELS.values()], ids=list(KERNELS)
)
every_pairs = pytest.mark.parametrize("pairs", PAIRS.values(), ids=list(PAIRS))


def finite_differences(function, theta, step=1e-5):
    """Central differences of a scalar function, (p,)."""
    steps = step * np.eye(len(theta))
    return np.array([(function(theta + h) - function(theta - h)) / (2.0 * step) for h in steps])


@every_kernel
def test_symmetric(kernel):
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=IDENTITY, atol=IDENTITY)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in NOT_POSITIVE])
def test_positive_semidefinite(name):
    assert np.linalg.eigvalsh(KERNELS[name](X)).min() >= -1e-10


@every_kernel
def test_diagonal_is_that_of_the_matrix(kernel):
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel(X)), rtol=IDENTITY)


@every_kernel
@every_pairs
def test_value_with_and_without_gradient(kernel, pairs):
    np.testing.assert_array_equal(kernel.linearise(pairs).K, kernel.evaluate(pairs))
    assert np.broadcast_shapes(kernel.evaluate(pairs).shape, pairs.shape) == pairs.shape


@every_kernel
def test_parts_of_the_square_are_its_parts(kernel):
    K = kernel(X)
    for name, part in [
        ("rows of the square", K[4:9]),
        ("columns of the square", K[:, 4:9]),
        ("overlap", K[:8, 5:]),
    ]:
        pairs = PAIRS[name]
        found = np.broadcast_to(kernel.evaluate(pairs), pairs.shape)
        np.testing.assert_allclose(found, part, rtol=IDENTITY, atol=IDENTITY, err_msg=name)


@every_kernel
def test_repeated_points_differ_by_noise_only(kernel):
    # Rows 0 and -3 are one point. Without noise all entries of their block are equal.
    K = kernel(X)
    assert K[0, -3] == pytest.approx(kernel(X[:1], X[-3:-2])[0, 0], rel=IDENTITY)
    noisy = any("noise" in n for n in kernel.theta_names) or "White" in repr(kernel)
    if noisy:
        assert K[0, 0] > K[0, -3]
    else:
        assert K[0, 0] == pytest.approx(K[0, -3], rel=IDENTITY)


@every_kernel
@every_pairs
def test_pullback_is_finite_differences(kernel, pairs):
    K_bar = np.random.default_rng(2).normal(size=pairs.shape)

    def product(theta):
        K = kernel.with_theta(theta).evaluate(pairs)
        return np.vdot(K_bar, np.broadcast_to(K, pairs.shape))

    found = kernel.linearise(pairs).pull(K_bar).theta
    expected = finite_differences(product, kernel.theta)
    assert found.shape == kernel.theta.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=GRADIENT, atol=GRADIENT * scale)


@every_kernel
def test_pullback_to_places_is_finite_differences(kernel):
    # Away from x, where a Matern 1/2 has a kink; categories, which equality alone matters for,
    # have no slope, and stay equal to some of the others only where they do not move.
    z = X[:6].copy()
    moving = [0, 1] if "Categorical" in repr(kernel) else [0, 1, 2, 3]
    z[:, moving] += np.random.default_rng(1).uniform(0.05, 0.1, (6, len(moving)))
    K_bar = np.random.default_rng(2).normal(size=(len(X), 6))

    def product(places):
        moved = z.copy()
        moved[:, moving] = places.reshape(6, -1)
        pairs = Pairs(X, moved)
        return np.vdot(K_bar, np.broadcast_to(kernel.evaluate(pairs), pairs.shape))

    K, pullback = kernel.place_vjp(Pairs(X, z))
    np.testing.assert_array_equal(np.broadcast_to(K, K_bar.shape), kernel(X, z))
    found = pullback(K_bar)
    assert found.shape == z.shape
    expected = np.zeros_like(z)
    expected[:, moving] = finite_differences(product, z[:, moving].ravel()).reshape(6, -1)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=GRADIENT, atol=GRADIENT * scale)


@every_kernel
def test_pullback_of_the_diagonal_is_finite_differences(kernel):
    k_bar = np.random.default_rng(2).normal(size=len(X))
    diagonal, pullback = kernel.diagonal_vjp(X)
    np.testing.assert_array_equal(diagonal, kernel.diagonal(X))
    found = pullback(k_bar)
    expected = finite_differences(lambda t: k_bar @ kernel.with_theta(t).diagonal(X), kernel.theta)
    assert found.shape == kernel.theta.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=GRADIENT, atol=GRADIENT * scale)


@every_kernel
def test_theta_round_trip(kernel):
    again = kernel.with_theta(kernel.theta)
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)
    np.testing.assert_allclose(again.theta, kernel.theta, rtol=0.0, atol=IDENTITY)
    np.testing.assert_allclose(again(X), kernel(X), rtol=IDENTITY, atol=IDENTITY)
    other = kernel.theta + np.linspace(-0.5, 0.5, len(kernel.theta))
    np.testing.assert_allclose(kernel.with_theta(other).theta, other, rtol=0.0, atol=IDENTITY)


@every_kernel
def test_bounds_and_names_go_with_theta(kernel):
    p = len(kernel.theta)
    assert kernel.bounds.shape == (p, 2)
    assert (kernel.bounds[:, 0] <= kernel.theta).all()
    assert (kernel.theta <= kernel.bounds[:, 1]).all()
    assert len(kernel.theta_names) == len(set(kernel.theta_names)) == p


@every_kernel
def test_fixed_kernels_stay_as_they_are(kernel):
    assert kernel.for_features(4).theta_names == kernel.theta_names
    if len(kernel.theta) == 0:
        np.testing.assert_array_equal(kernel.with_theta(np.empty(0))(X), kernel(X))


@every_kernel
def test_immutable(kernel):
    name = dataclasses.fields(kernel)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(kernel, name, 1.0)
    before = kernel.theta.copy()
    kernel.with_theta(before + 0.1)
    kernel.theta[...] = 99.0
    np.testing.assert_array_equal(kernel.theta, before)


@every_kernel
def test_words(kernel):
    assert kernel.describe()
    assert kernel.describe(["age", "income", "town", "trade"])
    assert " at 0x" not in repr(kernel)


def test_columns_are_named_in_words():
    kernel = 2.0 * RBF(columns=(0, 2)) + Linear()
    assert kernel.describe(["age", "income", "town"]) == (
        "smooth (RBF) on age, town, length-scale 1, scale 2 plus linear, length-scale 1"
    )
    assert (kernel * 3.0).describe().startswith("(smooth (RBF) on 0, 2")


def test_names_say_what_and_where():
    kernel = 2.0 * RBF((1.0, 2.0)) + White()
    assert kernel.theta_names == (
        "constant.value",
        "rbf.length_scale[0]",
        "rbf.length_scale[1]",
        "white.noise_level",
    )
    assert (RBF() + RBF()).theta_names == ("left.rbf.length_scale", "right.rbf.length_scale")


def test_bounds_one_pair_or_one_a_column():
    np.testing.assert_allclose(RBF(FOUR, EACH).bounds, np.log(EACH), rtol=IDENTITY)
    np.testing.assert_allclose(RBF(FOUR, (0.1, 9.0)).bounds, np.log([(0.1, 9.0)] * 4))
    assert RBF(1.0, [[0.1, 9.0]]).length_scale_bounds == (0.1, 9.0)


def test_ard_takes_the_number_of_columns_from_the_data():
    assert RBF(2.0, ard=True).for_features(3) == RBF((2.0, 2.0, 2.0))
    assert RBF(2.0, ard=True, columns=(0, 2)).for_features(3) == RBF((2.0, 2.0), columns=(0, 2))
    assert (3.0 * RBF(2.0, ard=True)).for_features(2) == 3.0 * RBF((2.0, 2.0))
    assert RBF(2.0, ard="free").for_features(2) == RBF((2.0, 2.0), ard="free")


def test_free_length_scales_differ_in_their_prior_only():
    free, tied = (RBF(1.4, ard=a).for_features(4) for a in ("free", True))
    assert free != tied
    np.testing.assert_array_equal(free(X), tied(X))
    assert free.theta_names == tied.theta_names
    assert free.with_theta(free.theta + 0.1).ard == "free"
    assert repr(free) == "RBF(length_scale=(1.4, 1.4, 1.4, 1.4), ard='free')"
    assert Matern(1.4, nu=0.5, ard="free") == Matern12(1.4, ard="free")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [(RBF(1.4, columns=(3, 1)), RBF(1.4)), (Categorical(TWO, columns=(3, 1)), Categorical(TWO))],
)
def test_columns_are_a_selection_of_the_data(narrow, wide):
    np.testing.assert_allclose(narrow(X), wide(X[:, [3, 1]]), rtol=IDENTITY)


@pytest.mark.parametrize("cls", [RBF, Matern12, Matern32, Matern52, RationalQuadratic, Linear])
def test_equal_length_scales_are_one_shared(cls):
    np.testing.assert_allclose(cls((1.4,) * 4)(X), cls(1.4)(X), rtol=IDENTITY, atol=IDENTITY)
    np.testing.assert_allclose(Categorical((1.4,) * 4)(X), Categorical(1.4)(X), rtol=IDENTITY)


def test_far_from_the_origin_nothing_is_lost():
    # s = |x|^2 + |z|^2 - 2 x.z cancels there, which points shifted to their middle avoid.
    # The coordinates themselves are rounded to about 1e-10.
    far = X + 1e6
    np.testing.assert_allclose(RBF(FOUR)(far), RBF(FOUR)(X), atol=1e-8)
    np.testing.assert_array_equal(np.diag(Matern12(FOUR)(far)), 1.0)


@pytest.mark.parametrize("repeats", [1, 30])
@pytest.mark.parametrize("cls", [RBF, Matern12, Matern32, Matern52])
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


@pytest.mark.parametrize(
    ("nu", "cls"), [(0.5, Matern12), (1.5, Matern32), (2.5, Matern52), (np.inf, RBF)]
)
def test_matern_by_smoothness(nu, cls):
    kernel = Matern(TWO, nu=nu, length_scale_bounds=(0.1, 9.0), columns=[0, 2])
    assert kernel == cls(TWO, (0.1, 9.0), columns=(0, 2))


def test_numbers_are_constants():
    assert 2 * RBF() == np.float64(2.0) * RBF() == Constant(2.0) * RBF()
    assert RBF() * np.float64(2.0) == RBF() * Constant(2.0)
    assert 2 + RBF() == np.int64(2) + RBF() == Constant(2.0) + RBF()
    assert repr(2.0 * (RBF() + Linear())) == (
        "Constant(value=2) * (RBF(length_scale=1) + Linear(length_scale=1))"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(-1.0), r"RBF\(length_scale=\) must be a number, or one per column, positive"),
        (lambda: RBF([1.0, 0.0]), r"RBF\(length_scale=\).*got \[1.0, 0.0\]"),
        (lambda: RBF([]), r"RBF\(length_scale=\)"),
        (lambda: RBF("long"), r"RBF\(length_scale=\).*got 'long'"),
        (lambda: RBF([[1.0]]), r"RBF\(length_scale=\)"),
        (lambda: Matern32(np.nan), r"Matern32\(length_scale=\)"),
        (lambda: Constant([1.0, 2.0]), r"Constant\(value=\) must be a number, positive"),
        (lambda: RationalQuadratic(alpha=[1.0]), r"RationalQuadratic\(alpha=\) must be a number,"),
        (lambda: RBF(1.0, (2.0, 1.0)), r"RBF\(length_scale_bounds=\) must be \(low, high\)"),
        (lambda: RBF(1.0, (0.0, 1.0)), r"0 < low <= high < inf"),
        (lambda: RBF(1.0, (1.0, np.inf)), r"0 < low <= high < inf"),
        (lambda: RBF(1.0, (1.0, 2.0, 3.0)), r"RBF\(length_scale_bounds=\)"),
        (lambda: RBF(1.0, ("low", "high")), r"RBF\(length_scale_bounds=\)"),
        (lambda: RBF(1.0, None), r"RBF\(length_scale_bounds=\).*got None"),
        (lambda: RBF(1.0, "free"), r'or "fixed"; got \'free\''),
        (lambda: RBF(1.0, EACH), r"has 4 pairs for 1 value\(s\) of length_scale; give one pair"),
        (lambda: RBF(TWO, EACH), r"has 4 pairs for 2 value\(s\) of length_scale; give one pair"),
        (lambda: RBF(ard="loose"), r'RBF\(ard=\) must be False, True or "free"; got \'loose\''),
        (lambda: RBF(ard=None), r'RBF\(ard=\) must be False, True or "free"; got None'),
        (lambda: RBF(columns=(1, 1)), r"columns of RBF must be distinct indices from 0"),
        (lambda: RBF(columns=(-1,)), r"columns of RBF must be distinct indices from 0"),
        (lambda: RBF(columns=()), r"columns of RBF must be distinct indices from 0"),
        (lambda: RBF(FOUR, columns=(0, 1)), r"RBF has 2 columns and 4 length-scales"),
        (lambda: RBF(TWO).for_features(4), r"RBF has 2 length-scales for 4 features"),
        (lambda: RBF(TWO)(X), r"RBF has 2 length-scales for 4 features"),
        (lambda: RBF(columns=(1, 4))(X), r"RBF asks for column 4, but there are 4 features"),
        (lambda: (2.0 * RBF(columns=(9,)) + White())(X), r"RBF asks for column 9"),
        (lambda: RBF()([1.0, 2.0]), r"X must have the shape \(rows, features\), got \(2,\)"),
        (lambda: RBF()([[1.0]], [1.0]), r"Z must have the shape"),
        (lambda: Matern(nu=2.0), r"Matern\(nu=\) must be 0.5, 1.5, 2.5 or inf, got 2.0"),
        (lambda: 0.0 * RBF(), r"Constant\(value=\) must be a number, positive and finite"),
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


leaf_kernels = st.one_of(
    st.builds(
        lambda cls, lengths: cls(lengths),
        st.sampled_from([RBF, Matern12, Matern32, Matern52, RationalQuadratic, Categorical]),
        st.one_of(st.floats(0.1, 10.0), st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0))),
    ),
    st.builds(Linear, st.floats(1.0, 10.0)),
    st.builds(Constant, st.floats(0.1, 2.0)),
    st.builds(White, st.floats(0.1, 2.0)),
)
kernel_trees = st.recursive(
    leaf_kernels,
    lambda parts: st.one_of(
        st.builds(lambda a, b: a + b, parts, parts), st.builds(lambda a, b: a * b, parts, parts)
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=100)
@given(
    kernel=kernel_trees,
    x=hnp.arrays(float, st.tuples(st.integers(1, 8), st.just(2)), elements=st.floats(-2.0, 2.0)),
)
def test_sums_and_products_are_positive_semidefinite(kernel, x):
    K = kernel(x)
    np.testing.assert_allclose(kernel.diagonal(x), np.diag(K), rtol=IDENTITY, atol=IDENTITY)
    assert np.linalg.eigvalsh((K + K.T) / 2.0).min() >= -IDENTITY * max(1.0, K.max())
