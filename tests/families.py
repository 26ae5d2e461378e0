"""One table of kernels, priors and likelihoods, and rows to try them on, for all tests."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from sklearn.gaussian_process import kernels as sk
from tolerances import GRADIENT

from polyfid.inference import SCHEMES
from polyfid.inference.inducing import Inducing
from polyfid.kernels import (
    RBF,
    Additive,
    Categorical,
    Constant,
    Intercept,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
    White,
)
from polyfid.kernels.sklearn import SklearnKernel
from polyfid.model.likelihoods import Logit, NoisyLogit, Parts
from polyfid.model.numbers import Gaussian, NumberScale, Student
from polyfid.model.prior import Autoregressive, Coregional, Deviating
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

FOUR = (0.7, 1.3, 2.1, 0.9)  # length-scales of four columns
TWO = (0.8, 1.7)
EACH = ((0.1, 10.0), (0.2, 20.0), (0.3, 30.0), (0.4, 40.0))


KERNELS = {
    "constant": Constant(1.7),
    "constant fixed": Constant(1.7, "fixed"),
    "white": White(0.3),
    "rbf": RBF(1.4),
    "rbf ard asked for": RBF(1.4, ard=True),
    "rbf ard free": RBF(FOUR, ard="free"),
    "rbf ard fixed": RBF(FOUR, "fixed"),
    "rbf ard bounds per column": RBF(FOUR, EACH),
    "rbf column": RBF(1.4, columns=(2,)),
    "matern 1/2": Matern(1.4, 0.5),
    "matern 1/2 ard": Matern(FOUR, 0.5),
    "matern 3/2 ard": 1.5 * Matern(FOUR, 1.5),
    "matern 5/2 columns": 1.5 * Matern(1.4, 2.5, columns=(0, 1)),
    "matern 5/2 ard columns": Matern(TWO, 2.5, columns=(0, 2)),
    "rational quadratic": RationalQuadratic(1.4, alpha=0.6),
    "rational quadratic ard": RationalQuadratic(FOUR, alpha=0.7),
    "rational quadratic alpha fixed": RationalQuadratic(FOUR, alpha=2.5, alpha_bounds="fixed"),
    "rational quadratic length fixed": RationalQuadratic(FOUR, "fixed", alpha=2.5),
    "linear": Linear(1.4),
    "linear columns ard": Linear(TWO, columns=(3, 1)),
    "linear ard and bias": Linear(FOUR) + Constant(0.5),
    "categorical": Categorical(1.4),
    "categorical ard": 2.0 * Categorical(FOUR),
    "categorical columns ard": Categorical(TWO, columns=(2, 3)),
    "laplacian": Laplacian(1.4),
    "laplacian ard": 2.0 * Laplacian(FOUR),
    "laplacian columns ard free": Laplacian(1.4, ard="free", columns=(3, 1)),
    "laplacian fixed": Laplacian(FOUR, "fixed"),
    "additive": Additive(1.4),
    "additive ard": 2.0 * Additive(FOUR),
    "additive columns": Additive(1.4, columns=(2, 3)) + Intercept(0.5),
    "additive ard fixed": Additive(FOUR, "fixed"),
    "constant * white": 2.0 * White(0.3),
    "scaled ard": 2.0 * RBF(FOUR),
    "sum": RBF(1.4) + Linear(FOUR),
    "sum with noise": 1.5 * RBF(1.4) + White(0.3),
    "product": Matern(1.4, 1.5) * Linear(FOUR),
    "scaled noise": 1.5 * (RBF(1.4) + White(0.4)),
    "same four times": RBF(1.4) + ((RBF(0.6) + RBF(0.3)) + RBF(0.2)),
    "partly fixed": Constant(2.0, "fixed") * RBF(1.4) + Constant(0.5) * Linear(1.0, "fixed"),
    "mixed columns": 2.0 * RBF(TWO, columns=(0, 1)) * Categorical(TWO, columns=(2, 3)),
    "nested": 2.0 * (RBF(FOUR) * (Linear(1.4) + 0.5) + White(0.1)) + 0.7 * Matern(1.1, 0.5),
    "wrapped periodic": SklearnKernel(sk.ExpSineSquared(1.4, 3.0)),
    "wrapped, partly fixed": SklearnKernel(sk.ExpSineSquared(1.4, 3.0, periodicity_bounds="fixed")),
    "wrapped polynomial": SklearnKernel(sk.DotProduct(0.8) ** 2),
    "wrapped fixed": SklearnKernel(sk.RBF(1.4, "fixed") ** 2),
    "wrapped noise": 1.5 * SklearnKernel((sk.RBF(1.4) + sk.WhiteKernel(0.3)) ** 2),
    "wrapped in a sum": 2.0 * SklearnKernel(sk.RBF(1.2) ** 2) + RBF(FOUR),
}
#: For tests of many combinations: every family, without noise per row, and with it.
SMOOTH = ["rbf", "scaled ard", "matern 1/2", "matern 3/2 ard", "matern 5/2 columns"]
SMOOTH += [
    "rational quadratic ard",
    "linear ard and bias",
    "categorical ard",
    "laplacian ard",
    "additive ard",
]
SMOOTH += ["sum", "partly fixed", "mixed columns"]
NOISY = ["sum with noise", "scaled noise"]


def every_kernel(names=tuple(KERNELS)):
    kernels = [KERNELS[name].for_features(4) for name in names]
    return pytest.mark.parametrize("kernel", kernels, ids=list(names))


def autoregressive(kernel, n_levels):
    """Kernels that differ from level to level, and rho of both signs."""
    kernels = tuple(kernel.with_theta(kernel.theta + 0.2 * s) for s in range(n_levels))
    return Autoregressive(kernels, (0.8, -0.6)[: n_levels - 1])


def coregional(kernel):
    kernels = (kernel, kernel.with_theta(kernel.theta + 0.3))
    return Coregional(kernels, [[1.0, 0.2], [0.5, -0.7], [-0.9, 0.6]])


def deviating(kernel):
    """Three levels that share a function, two of them with deviations."""
    return Deviating(autoregressive(kernel, 3).kernels, (1.7, -0.6))


PRIORS = {
    "one level": partial(autoregressive, n_levels=1),
    "two levels": partial(autoregressive, n_levels=2),
    "three levels": partial(autoregressive, n_levels=3),
    "coregional": coregional,
    "deviating": deviating,
}
every_prior = pytest.mark.parametrize("make_prior", PRIORS.values(), ids=PRIORS)


def _noisy(y, level, weight, free, symmetric):
    group = np.minimum(level, 1)
    free = np.array([free, False])  # the second group shows that the others stay
    if symmetric:
        return NoisyLogit.from_flip_rates(y, weight, group, [0.2, 0.05], free)
    return NoisyLogit(y, weight, group, np.array([0.8, 0.95]), np.array([0.7, 1.0]), free)


def _partly_known(y, level, weight):
    """Every third row is known to be right, the next one to be wrong."""
    truth = np.resize([1.0, -1.0, 0.0], len(y)) * y
    return replace(_noisy(y, level, weight, free=True, symmetric=True), truth=truth)


def _numbers(y, level, weight, kind, warps=False, of_labels=None):
    """Every other row has a number, the others labels."""
    part = np.arange(len(y)) % 2
    rng, rows = np.random.RandomState(4), part == 1
    value = 3.0 + 2.0 * (y[rows] + rng.standard_normal(rows.sum()))
    scale = NumberScale(3.2, 2.5, 0.7 if warps else 1.0)
    labels = (of_labels or LIKELIHOODS["logit"])(y[~rows], level[~rows], weight[~rows])
    return Parts((labels, kind(value, weight[rows], 0, scale, 0.4, warps=warps)), part)


LIKELIHOODS = {
    "logit": lambda y, level, weight: Logit(y, weight),
    "flip rates": partial(_noisy, free=False, symmetric=True),
    "flip rates free": partial(_noisy, free=True, symmetric=True),
    "flip rates free, some truth known": _partly_known,
    "sensitivity": partial(_noisy, free=False, symmetric=False),
    "sensitivity free": partial(_noisy, free=True, symmetric=False),
    "numbers": partial(_numbers, kind=Gaussian),
    "numbers, warped": partial(_numbers, kind=Gaussian, warps=True),
    "numbers with outliers, warped": partial(_numbers, kind=Student, warps=True),
    "numbers beside flip rates": partial(
        _numbers, kind=Gaussian, of_labels=partial(_noisy, free=True, symmetric=True)
    ),
}
LOG_CONCAVE = ("logit", "numbers", "numbers, warped")
NOISY_LABELS = [name for name in LIKELIHOODS if name.startswith(("flip", "sensitivity"))]
every_combination = pytest.mark.parametrize(
    ("scheme", "likelihood"),
    [(s, name) for s in SCHEMES for name in LIKELIHOODS if s != "laplace" or name in LOG_CONCAVE],
)


def make_points(n, n_levels, seed=0):
    """Two real columns and two of codes; every level has rows, and one row repeats another."""
    rng = np.random.RandomState(seed)
    x = np.column_stack([rng.uniform(-2.0, 2.0, (n, 2)), rng.randint(0, 3, (n, 2))])
    x[n // 2] = x[0]
    level = np.sort(np.concatenate([np.arange(n_levels), rng.randint(0, n_levels, n - n_levels)]))
    return Points(x, level)


def make_labels(points, seed=1):
    rng = np.random.RandomState(seed)
    truth = 1.5 * np.sin(2.0 * points.x[:, 0]) + points.x[:, 1]
    return np.where(rng.uniform(size=len(points)) < expit(3.0 * truth), 1.0, -1.0)


def make_rows(prior, likelihood="logit", n=24, weights=(0.3, 1.0, 2.0, 2.5), **options):
    points = make_points(n, prior.n_levels)
    weight = np.resize(weights, n)
    labels = LIKELIHOODS[likelihood](make_labels(points), points.level, weight)
    return LabelledPoints(points, labels, **{"n_threads": 1, **options})


def contradicted_rows():
    """A label that the other rows contradict, behind a noisy channel, gets a site with w < 0."""
    points = Points(np.linspace(-1.0, 1.0, 11)[:, None], np.repeat([0, 1], [8, 3]))
    y = np.ones(11)
    y[[3, 7]] = -1.0
    labels = NoisyLogit.from_flip_rates(y, np.ones(11), points.level, [0.2, 0.1], [True, False])
    prior = Autoregressive((8.0 * RBF(2.0), 0.5 * RBF(0.5)), (1.2,))
    return prior, LabelledPoints(points, labels, n_threads=1)


def inducing_at_rows(points, prior, count=None):
    """Rows, all or the first few, as inducing points of the processes of their levels."""
    own = (points.x[prior.support[points.level, s]] for s in range(len(prior.kernels)))
    return Inducing(tuple(z[:count] for z in own))


def dense_covariance(prior, a, b, same=False):
    """sum_s A[t_i, s] A[t_j, s] k_s(x_i, x_j), plainly."""
    A = prior.loadings
    return sum(
        np.outer(A[a.level, s], A[b.level, s]) * (k(a.x) if same else k(a.x, b.x))
        for s, k in enumerate(prior.kernels)
    )


def converged(value):
    assert value.report.converged, str(value.report)
    return value


def slope(function, theta, direction, step=1e-4):
    """Derivative along a direction by central differences."""
    up, down = (function(theta + h * direction) for h in (step, -step))
    return (up - down) / (2.0 * step)


def differences(function, theta, step=1e-4):
    """Gradient by central differences."""
    return np.array([slope(function, theta, e, step) for e in np.eye(len(theta))])


def value_of(evidence):
    return lambda theta: converged(evidence(theta, gradient=False)).value


def assert_gradient(evidence):
    expected = differences(value_of(evidence), evidence.theta)
    found = converged(evidence(evidence.theta)).gradient
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=GRADIENT, atol=1e-2 * GRADIENT * scale)


def assert_gradient_along_a_direction(evidence, among=1.0):
    theta = evidence.theta
    value = converged(evidence(theta))
    assert value.gradient.shape == theta.shape == (len(evidence.theta_names),)
    assert evidence.bounds.shape == (len(theta), 2)
    # A random direction has a share in every parameter: one derivative checks them all.
    direction = np.random.RandomState(len(theta)).choice([-1.0, 1.0], len(theta))
    direction *= np.random.RandomState(0).uniform(0.5, 1.0, len(theta)) * among
    expected = slope(value_of(evidence), theta, direction)
    assert value.gradient @ direction == pytest.approx(expected, rel=GRADIENT, abs=GRADIENT)
    return value
