"""Kernels of scikit-learn through polyfid: the same numbers, in the same order."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk
from tolerances import IDENTITY

from polyfid.kernels import RBF, Linear, Matern52, Pairs, White, from_sklearn
from polyfid.kernels.sklearn import SklearnKernel

SAME = 1e-12  # the same formula in another order of operations
THREE = [0.7, 1.3, 2.1]
EACH = np.array([[0.1, 10.0], [0.2, 20.0], [0.3, 30.0]])

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
X[-2:] = X[:2]
Z = np.concatenate([rng.normal(size=(5, 3)), X[:2]])

TRANSLATED = [
    sk.ConstantKernel(2, (0.1, 9.0)),
    sk.ConstantKernel(2.5, "fixed"),
    sk.WhiteKernel(0.3, (1e-3, 2.0)),
    sk.RBF(1.4, (0.2, 30.0)),
    sk.RBF([1.4], [(0.2, 30.0)]),
    sk.RBF(THREE, EACH),
    sk.RBF(np.array(THREE), "fixed"),
    *[sk.Matern(1.4, (0.2, 30.0), nu) for nu in (0.5, 1.5, 2.5, np.inf)],
    *[sk.Matern(THREE, EACH, nu) for nu in (0.5, 1.5, 2.5, np.inf)],
    sk.RationalQuadratic(1.4, 0.6, (0.2, 30.0), (0.3, 40.0)),
    sk.RationalQuadratic(1.4, 0.6, alpha_bounds="fixed"),
    2.5 * sk.RBF(THREE, EACH) + 0.5,
    (sk.RBF(0.5) + sk.RBF(1.5)) * (sk.Matern(THREE) + sk.RationalQuadratic()) + sk.WhiteKernel(),
]
DOT_PRODUCTS = [sk.DotProduct(0.8, (0.1, 9.0)), sk.DotProduct(0.8, "fixed")]
WRAPPED = [
    sk.ExpSineSquared(1.4, 3.0, (0.2, 30.0), (0.3, 40.0)),
    sk.ExpSineSquared(1.4, 3.0, length_scale_bounds="fixed"),
    sk.DotProduct(0.8) ** 2,
    sk.Matern(1.4, nu=2.0),
    sk.PairwiseKernel(0.4, metric="rbf"),
    (sk.RBF(THREE, EACH) + sk.WhiteKernel(0.3)) ** 2,
    (sk.ConstantKernel(0.5) * sk.WhiteKernel(0.3) + sk.DotProduct()) ** 3,
]
EXACT = [k for k in WRAPPED if not isinstance(k, sk.PairwiseKernel | sk.Matern)]


def named(kernels):
    return pytest.mark.parametrize("theirs", kernels, ids=repr)


def contains_wrapped(kernel):
    return "SklearnKernel" in repr(kernel)


@named(TRANSLATED + DOT_PRODUCTS + WRAPPED)
@pytest.mark.filterwarnings("ignore:.*no native counterpart")
def test_same_covariance_and_parameters(theirs):
    ours = from_sklearn(theirs)
    # A dot product has the square of sigma_0 as its parameter.
    factor = 2.0 if theirs in DOT_PRODUCTS else 1.0
    np.testing.assert_allclose(ours.theta, factor * theirs.theta, rtol=0.0, atol=SAME)
    bounds = factor * theirs.bounds.reshape(-1, 2)
    np.testing.assert_allclose(ours.bounds, bounds, rtol=0.0, atol=SAME)
    assert contains_wrapped(ours) == any(theirs is kernel for kernel in WRAPPED)
    np.testing.assert_allclose(ours(X), theirs(X), rtol=SAME, atol=SAME)
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=SAME, atol=SAME)
    np.testing.assert_allclose(ours.diagonal(X), theirs.diag(X), rtol=SAME)


@named(TRANSLATED + EXACT)
@pytest.mark.filterwarnings("ignore:.*no native counterpart")
def test_same_gradient(theirs):
    K_bar = np.random.default_rng(1).normal(size=(len(X), len(X)))
    found = from_sklearn(theirs).linearise(Pairs(X, X, 0)).pull(K_bar).theta
    expected = np.einsum("ij,ijp->p", K_bar, theirs(X, eval_gradient=True)[1])
    np.testing.assert_allclose(found, expected, rtol=IDENTITY, atol=IDENTITY)


def test_kernels_of_both_libraries_combine():
    assert from_sklearn(sk.DotProduct(0.0, "fixed")) == Linear(1.0, "fixed")
    assert RBF() + sk.Matern(nu=2.5) == RBF() + Matern52()
    assert 2.0 * RBF() * sk.WhiteKernel() == 2.0 * RBF() * White()
    # Here scikit-learn's operator runs first and takes our kernel for a number.
    assert from_sklearn(sk.Matern(nu=2.5) + RBF()) == Matern52() + RBF()


def test_a_subclass_is_not_its_parent():
    class Flipped(sk.RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return super().__call__(-X, None if Y is None else -Y, eval_gradient)

    with pytest.warns(UserWarning, match="no native counterpart"):
        kernel = from_sklearn(Flipped(THREE))
    assert contains_wrapped(kernel)
    np.testing.assert_allclose(kernel(X), sk.RBF(THREE)(X), rtol=SAME)


def test_one_warning_on_memory_for_each_wrapped_kernel():
    with pytest.warns(UserWarning, match=r"array of shape \(n, n, 2\)") as caught:
        kernel = 2.0 * RBF() + 3.0 * sk.ExpSineSquared()
    assert len(caught) == 1
    kernel.with_theta(kernel.theta + 0.1)(X)  # warnings are errors here
    from_sklearn(sk.RBF(1.0, "fixed") ** 2)  # which has no gradient


def test_wrapped_gradient_in_blocks():
    # More columns than one block has rows, so that several are joined and summed.
    theirs = (sk.RBF(THREE) + sk.WhiteKernel(0.5)) ** 2
    x = np.random.default_rng(3).normal(size=(300, 3))
    K_bar = np.random.default_rng(4).normal(size=(300, 300))
    gradient = theirs(x, eval_gradient=True)[1]
    for rows, columns in [
        (slice(90, 190), slice(0, 300)),
        (slice(0, 300), slice(100, 180)),
        (slice(5, 8), slice(0, 300)),
    ]:
        pairs = Pairs(x[rows], x[columns], rows.start - columns.start)
        found = SklearnKernel(theirs).linearise(pairs).pull(K_bar[rows, columns]).theta
        expected = np.einsum("ij,ijp->p", K_bar[rows, columns], gradient[rows, columns])
        np.testing.assert_allclose(found, expected, rtol=IDENTITY, atol=IDENTITY)


def test_wrapped_kernel_is_a_copy_with_names():
    theirs = (sk.RBF([1.0, 2.0]) + sk.WhiteKernel(0.5)) ** 2
    kernel = SklearnKernel(theirs)
    theirs.theta = theirs.theta + 1.0
    inside = "RBF(length_scale=[1, 2]) + WhiteKernel(noise_level=0.5) ** 2"
    assert repr(kernel) == f"SklearnKernel({inside})"
    assert kernel.describe() == f"{inside} of scikit-learn"
    names = ["k1.length_scale[0]", "k1.length_scale[1]", "k2.noise_level"]
    assert kernel.theta_names == tuple(f"exponentiation.kernel.{name}" for name in names)


@pytest.mark.parametrize(
    ("theirs", "error", "message"),
    [
        (sk.CompoundKernel([sk.RBF()]) ** 2, ValueError, "CompoundKernel is several kernels"),
        (sk.RBF() + sk.CompoundKernel([sk.RBF()]), ValueError, "CompoundKernel is several"),
        (
            1.0 * sk.RBF(1.0, (0.0, 1.0)),
            ValueError,
            r"^cannot translate scikit-learn's RBF: RBF\(length_scale_bounds=\).*0 < low",
        ),
        (sk.DotProduct(0.0), ValueError, r"scikit-learn's DotProduct: Constant\(value=\)"),
        (sk.ExpSineSquared(1.0, 1.0, (0.0, 1.0)), ValueError, "bounds must be positive and"),
        ("RBF", TypeError, "expected a kernel .* got 'RBF'"),
    ],
)
def test_errors_say_what_is_wrong(theirs, error, message):
    with pytest.raises(error, match=message):
        from_sklearn(theirs)
