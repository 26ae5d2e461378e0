"""What all combinations of the parts promise: exact gradients, regression, plain formulas."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import kernels as sk
from tolerances import GRADIENT, IDENTITY

from polyfid.inference import SCHEMES, run
from polyfid.inference import posterior as posterior_module
from polyfid.inference.exact import ExactCovariance
from polyfid.inference.posterior import Posterior
from polyfid.kernels import (
    RBF,
    Categorical,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    White,
)
from polyfid.kernels.sklearn import SklearnKernel
from polyfid.learning.evidence import Evidence
from polyfid.model import prior as prior_module
from polyfid.model.likelihoods import Derivatives, Expectations, Likelihood, Logit, NoisyLogit
from polyfid.model.logistic import Tilted
from polyfid.model.prior import Autoregressive, Coregional, tiles
from polyfid.rows import Points

# ------------------------------------------------------------------------------------ the parts

KERNELS = {
    "rbf": RBF(1.1),
    "scaled rbf ard": 1.5 * RBF((0.8, 1.2, 1.5)),
    "matern 1/2": 1.5 * Matern12(1.4),
    "matern 3/2": 1.5 * Matern32((0.8, 1.2, 1.5)),
    "matern 5/2": 1.5 * Matern52(1.2, columns=(0, 1)),
    "rational quadratic": 1.5 * RationalQuadratic((0.8, 1.2, 1.5), alpha=0.7),
    "linear": Linear((1.4, 0.9, 2.0)) + Constant(0.5),
    "categorical": 2.0 * RBF(1.1, columns=(0, 1)) * Categorical(1.3, columns=(2,)),
    "white": 1.5 * RBF(1.1) + White(0.4),
    "partly fixed": Constant(2.0, "fixed") * RBF(1.1) + Constant(0.5) * Linear(1.0, "fixed"),
    "scikit-learn's": 1.5 * SklearnKernel(sk.RBF(1.1) + sk.WhiteKernel(0.2)),
}


def autoregressive(kernel, n_levels):
    """Kernels that differ from level to level, and rho of both signs."""
    kernels = tuple(kernel.with_theta(kernel.theta + 0.2 * s) for s in range(n_levels))
    return Autoregressive(kernels, (0.8, -0.6)[: n_levels - 1])


def coregional(kernel):
    kernels = (kernel, kernel.with_theta(kernel.theta + 0.3))
    return Coregional(kernels, [[1.0, 0.2], [0.5, -0.7], [-0.9, 0.6]])


PRIORS = {
    "one level": partial(autoregressive, n_levels=1),
    "two levels": partial(autoregressive, n_levels=2),
    "three levels": partial(autoregressive, n_levels=3),
    "coregional": coregional,
}


def noisy(y, level, weight, free, symmetric):
    group = np.minimum(level, 1)
    free = np.array([free, False])  # the second group shows that the others stay
    if symmetric:
        return NoisyLogit.from_flip_rates(y, weight, group, [0.2, 0.05], free)
    return NoisyLogit(y, weight, group, np.array([0.8, 0.95]), np.array([0.7, 1.0]), free)


LIKELIHOODS = {
    "logit": lambda y, level, weight: Logit(y, weight),
    "flip rates": partial(noisy, free=False, symmetric=True),
    "flip rates free": partial(noisy, free=True, symmetric=True),
    "sensitivity": partial(noisy, free=False, symmetric=False),
    "sensitivity free": partial(noisy, free=True, symmetric=False),
}
ALLOWED = [
    (scheme, name)
    for scheme in SCHEMES
    for name in LIKELIHOODS
    if scheme != "laplace" or name == "logit"
]


def make_points(n, n_levels, seed=0):
    """Two real columns and one of codes; every level has rows."""
    rng = np.random.RandomState(seed)
    x = np.column_stack([rng.uniform(-2.0, 2.0, (n, 2)), rng.randint(0, 3, n)])
    level = np.sort(np.concatenate([np.arange(n_levels), rng.randint(0, n_levels, n - n_levels)]))
    return Points(x, level)


def make_labels(points, seed=1):
    rng = np.random.RandomState(seed)
    truth = 1.5 * np.sin(2.0 * points.x[:, 0]) + points.x[:, 1]
    return np.where(rng.uniform(size=len(points)) < expit(3.0 * truth), 1.0, -1.0)


def make_evidence(kernel, prior, scheme, likelihood, n=12):
    prior = PRIORS[prior](kernel.for_features(3))
    points = make_points(n, prior.n_levels)
    y = make_labels(points)
    weights = [1.0, 2.0, 2.5] if (scheme, likelihood) in NO_FRACTIONS else [0.3, 1.0, 2.0, 2.5]
    weight = np.resize(weights, n)
    likelihood = LIKELIHOODS[likelihood](y, points.level, weight)
    return Evidence(prior, likelihood, points, SCHEMES[scheme], tol=1e-10, max_iter=500)


# EP has no fractions of labels that went through a channel.
NO_FRACTIONS = {("ep", name) for name in LIKELIHOODS if name != "logit"}


def slope(function, theta, direction, step=1e-4):
    """Derivative along a direction by central differences."""
    up, down = (function(theta + h * direction) for h in (step, -step))
    return (up - down) / (2.0 * step)


def gradient_by_differences(function, theta):
    return np.array([slope(function, theta, e) for e in np.eye(len(theta))])


def assert_same_gradient(gradient, differences):
    scale = np.abs(differences).max()
    np.testing.assert_allclose(gradient, differences, rtol=GRADIENT, atol=1e-2 * GRADIENT * scale)


def value_of(evidence, theta):
    value = evidence(theta, gradient=False)
    assert value.report.converged, str(value.report)
    return value.value


# ------------------------------------------------------------------------- gradient of evidence


@pytest.mark.parametrize(("scheme", "likelihood"), ALLOWED)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_evidence_gradient_along_a_direction(kernel, prior, scheme, likelihood):
    evidence = make_evidence(KERNELS[kernel], prior, scheme, likelihood)
    theta = evidence.theta
    value = evidence(theta)
    assert value.report.converged, str(value.report)
    assert value.gradient.shape == theta.shape == (len(evidence.theta_names),)
    assert evidence.bounds.shape == (len(theta), 2)
    # A random direction has a part in every parameter: one derivative checks them all.
    direction = np.random.RandomState(len(theta)).choice([-1.0, 1.0], len(theta))
    direction *= np.random.RandomState(0).uniform(0.5, 1.0, len(theta))
    expected = slope(partial(value_of, evidence), theta, direction)
    assert value.gradient @ direction == pytest.approx(expected, rel=GRADIENT, abs=GRADIENT)


@pytest.mark.parametrize(("scheme", "likelihood"), ALLOWED)
@pytest.mark.parametrize("prior", PRIORS)
def test_evidence_gradient_of_each_parameter(prior, scheme, likelihood):
    evidence = make_evidence(1.5 * RBF(1.1) + White(0.2), prior, scheme, likelihood)
    theta = evidence.theta
    differences = gradient_by_differences(partial(value_of, evidence), theta)
    assert_same_gradient(evidence(theta).gradient, differences)


@pytest.mark.parametrize("scheme", ["ep", "variational"])
def test_evidence_gradient_with_negative_sites(scheme):
    # A label that the other rows contradict, behind a noisy channel, gets w < 0.
    points = Points(np.linspace(-1.0, 1.0, 11)[:, None], np.repeat([0, 1], [8, 3]))
    y = np.ones(11)
    y[[3, 7]] = -1.0
    likelihood = NoisyLogit.from_flip_rates(y, np.ones(11), points.level, [0.2, 0.1], [True, False])
    prior = Autoregressive((8.0 * RBF(2.0), 0.5 * RBF(0.5)), (1.2,))
    evidence = Evidence(prior, likelihood, points, SCHEMES[scheme], tol=1e-10, max_iter=500)
    assert evidence.fixed(evidence.theta)[2].belief.sites.w.min() < -1e-3
    differences = gradient_by_differences(partial(value_of, evidence), evidence.theta)
    assert_same_gradient(evidence(evidence.theta).gradient, differences)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("scale", [1e-3, 100.0])
def test_evidence_gradient_far_from_typical(scheme, scale):
    evidence = make_evidence(scale * RBF(1.1), "two levels", scheme, "logit")
    differences = gradient_by_differences(partial(value_of, evidence), evidence.theta)
    assert_same_gradient(evidence(evidence.theta).gradient, differences)


@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name != "logit"])
@pytest.mark.parametrize("prior", PRIORS)
def test_laplace_refuses_label_noise(prior, likelihood):
    evidence = make_evidence(RBF(1.1), prior, "laplace", likelihood)
    with pytest.raises(ValueError, match=r'label noise.*use inference="ep" or .*"variational"'):
        evidence(evidence.theta)


@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name != "logit"])
def test_derivatives_of_noisy_labels_are_refused(likelihood):
    points = make_points(12, 2)
    noisy = LIKELIHOODS[likelihood](make_labels(points), points.level, np.ones(12))
    with pytest.raises(ValueError, match="Laplace"):
        noisy.derivatives(np.zeros(12))


def test_ep_refuses_fractions_of_noisy_labels():
    points = make_points(12, 2)
    weight = np.full(12, 0.5)
    noisy = LIKELIHOODS["flip rates"](make_labels(points), points.level, weight)
    prior = autoregressive(RBF(1.1), 2)
    with pytest.raises(ValueError, match=r'sample_weight below 1.*use inference="variational"'):
        run(SCHEMES["ep"], ExactCovariance(prior, points), noisy)


def test_gradient_needs_to_be_asked_for_and_is_given_once():
    evidence = make_evidence(RBF(1.1), "two levels", "laplace", "logit")
    assert evidence(evidence.theta, gradient=False).gradient.size == 0
    covariance, _, fixed = evidence.fixed(evidence.theta)
    with pytest.raises(RuntimeError, match="gradient=True"):
        covariance.pullback(fixed.belief, None)


# ---------------------------------------------------------- a Gaussian likelihood is regression


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """p(y | f) = N(y | f, noise)^weight, against the contract of `Likelihood`."""

    y: np.ndarray
    weight: np.ndarray
    noise: float

    log_concave = True

    def take(self, rows):
        return replace(self, y=self.y[rows], weight=self.weight[rows])

    def derivatives(self, f):
        constant = np.log(2.0 * np.pi * self.noise)
        value = -0.5 * self.weight * ((self.y - f) ** 2 / self.noise + constant)
        first = self.weight * (self.y - f) / self.noise
        return Derivatives(value, first, -self.weight / self.noise, np.zeros_like(f))

    def expectations(self, mean, variance):
        value, first, second, _ = self.derivatives(mean)
        return Expectations(value + 0.5 * second * variance, first, second)

    def tilted(self, mean, variance):
        # N(y | f, noise)^p is N(y | f, noise / p) times a constant.
        power = np.minimum(self.weight, 1.0)
        total = variance + self.noise / power
        gap = self.y - mean
        log_z = -0.5 * (np.log(total) + gap**2 / total + power * np.log(2.0 * np.pi * self.noise))
        log_z += 0.5 * np.log(self.noise / power)
        return Tilted(log_z, gap / total, -1.0 / total)


def dense_covariance(prior, a, b, same=False):
    """sum_s A[t_i, s] A[t_j, s] k_s(x_i, x_j), a pair at a time."""
    A = prior.loadings
    K = np.zeros((len(a), len(b)))
    for s, kernel in enumerate(prior.kernels):
        k = kernel(a.x) if same else kernel(a.x, b.x)
        for i, j in np.ndindex(K.shape):
            K[i, j] += A[a.level[i], s] * A[b.level[j], s] * k[i, j]
    return K


@pytest.mark.parametrize("weights", [[1.0], [0.25, 1.0, 3.0]], ids=["plain", "weighted"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_gaussian_likelihood_is_exact_regression(scheme, prior, weights):
    n, noise = 15, 0.3
    prior = PRIORS[prior](1.5 * RBF(1.1) + White(0.1))
    points = make_points(n, prior.n_levels)
    rng = np.random.RandomState(2)
    y, weight = rng.normal(0.0, 1.5, n), np.resize(weights, n)
    evidence = Evidence(
        prior, Gaussian(y, weight, noise), points, SCHEMES[scheme], tol=1e-10, max_iter=500
    )
    value = evidence(evidence.theta)
    covariance, _, fixed = evidence.fixed(evidence.theta)
    assert value.report.converged

    K = dense_covariance(prior, points, points, same=True)
    S = K + np.diag(noise / weight)
    # Of w repeated measurements: N(y | f, s)^w = N(y | f, s/w) (2 pi s)^(-w/2) (2 pi s/w)^(1/2).
    extra = 0.5 * (np.log(2.0 * np.pi * noise / weight) - weight * np.log(2.0 * np.pi * noise))
    log_z = multivariate_normal(np.zeros(n), S).logpdf(y) + extra.sum()
    assert value.value == pytest.approx(log_z, rel=IDENTITY)

    mean = K @ np.linalg.solve(S, y)
    variance = np.diag(K - K @ np.linalg.solve(S, K))
    np.testing.assert_allclose(fixed.belief.mean, mean, rtol=0.0, atol=IDENTITY)
    np.testing.assert_allclose(fixed.belief.variance, variance, rtol=IDENTITY, atol=IDENTITY)

    new = make_points(7, prior.n_levels, seed=5)
    k = dense_covariance(prior, new, points)
    mean, variance = Posterior.from_belief(
        covariance.prior, points, fixed.belief
    ).mean_and_variance(new)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(S, y), rtol=0.0, atol=IDENTITY)
    own = np.diag(dense_covariance(prior, new, new, same=True))
    exact = own - np.einsum("ij,ji->i", k, np.linalg.solve(S, k.T))
    np.testing.assert_allclose(variance, exact, rtol=IDENTITY, atol=IDENTITY)

    # d log Z / d theta = tr((a a^T - S^-1) dK / d theta) / 2, a = S^-1 y.
    a = np.linalg.solve(S, y)
    G = 0.5 * (np.outer(a, a) - np.linalg.inv(S))

    def weighted(theta):
        return np.sum(G * dense_covariance(prior.with_theta(theta), points, points, same=True))

    assert_same_gradient(value.gradient, gradient_by_differences(weighted, prior.theta))


# ----------------------------------------------------------------------- the prior and its tiles


def pulled_back(prior, points, G):
    """Gradient of sum_ij G_ij K_ij, G symmetric, handed out as `PriorPullback` asks for it."""
    doubled = np.triu(2.0 * G, 1) + np.diag(np.diag(G))
    _, pullback = prior.vjp(points, tiles(points))
    return pullback(lambda tile: doubled[tile.rows, tile.cols])


def symmetric(n, seed=3):
    G = np.random.RandomState(seed).normal(size=(n, n))
    return G + G.T


@pytest.mark.parametrize("tile_elements", [32768, 1], ids=["large tiles", "small tiles"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_prior_pullback(kernel, prior, tile_elements, monkeypatch):
    monkeypatch.setattr(prior_module, "TILE_ELEMENTS", tile_elements)
    prior = PRIORS[prior](KERNELS[kernel].for_features(3))
    points = make_points(40, prior.n_levels)
    G = symmetric(len(points))

    def weighted(theta):
        K = prior.with_theta(theta).covariance(points, tiles(points))
        K = np.triu(K) + np.triu(K, 1).T
        return np.sum(G * K)

    gradient = pulled_back(prior, points, G)
    assert_same_gradient(gradient, gradient_by_differences(weighted, prior.theta))


@pytest.mark.parametrize("bounds", [{"rho_bounds": "fixed"}, {}])
def test_fixed_rho_has_no_part_in_theta(bounds):
    prior = Autoregressive((1.5 * RBF(1.1), RBF(0.7)), (0.8,), **bounds)
    points, G = make_points(12, 2), symmetric(12)
    free = Autoregressive((1.5 * RBF(1.1), RBF(0.7)), (0.8,))
    cut = len(bounds)
    assert len(prior.theta) == len(prior.bounds) == len(prior.theta_names) == 4 - cut
    np.testing.assert_array_equal(pulled_back(prior, points, G), pulled_back(free, points, G)[cut:])
    assert prior.with_theta(prior.theta + 0.1).rho == ((0.8,) if cut else (0.9,))


@pytest.mark.parametrize("prior", [Autoregressive, Coregional])
def test_fixed_loadings_have_no_part_in_theta(prior):
    kernels = (RBF(1.1), RBF(0.7))
    if prior is Autoregressive:
        fixed = Autoregressive(kernels, (0.8,), "fixed")
    else:
        fixed = Coregional(kernels, [[1.0, 0.2], [0.5, -0.7]], "fixed")
    assert fixed.mixing_names == ()
    assert fixed.mixing_bounds.shape == (0, 2)
    changed = fixed.with_theta(np.log([2.0, 3.0]))
    np.testing.assert_array_equal(changed.loadings, fixed.loadings)
    assert [k.length_scale for k in changed.kernels] == pytest.approx([2.0, 3.0])


def rbf(x, z, scale, length):
    return scale * np.exp(-0.5 * ((x[:, None, :] - z[None, :, :]) ** 2).sum(-1) / length**2)


@pytest.mark.parametrize("n", [1, 2, 47, 200])
@pytest.mark.parametrize("level_counts", ["all", "gap", "one"])
def test_covariance_by_tiles_is_the_plain_formula(n, level_counts, monkeypatch):
    monkeypatch.setattr(prior_module, "TILE_ELEMENTS", 64)
    rng = np.random.RandomState(n)
    present = {"all": [0, 1, 2], "gap": [0, 2], "one": [1]}[level_counts]
    points = Points(rng.uniform(-2, 2, (n, 3)), np.sort(rng.choice(present, n)))
    scales, lengths, noise = (1.3, 0.7, 2.0), (1.0, 0.5, 2.0), 0.2
    kernels = tuple(s * RBF(ell) for s, ell in zip(scales, lengths, strict=True))
    prior = Autoregressive((kernels[0] + White(noise), *kernels[1:]), (0.8, -0.6))
    # f_0 = g_0, f_1 = 0.8 g_0 + g_1, f_2 = -0.6 (0.8 g_0 + g_1) + g_2.
    loadings = np.array([[1.0, 0.0, 0.0], [0.8, 1.0, 0.0], [-0.48, -0.6, 1.0]])
    np.testing.assert_allclose(prior.loadings, loadings, rtol=1e-15)

    parts = tiles(points)
    if n == 200:
        assert len(parts) > 10
    covered = np.zeros((n, n), dtype=int)
    for tile in parts:
        covered[tile.rows, tile.cols] += 1
        assert set(points.level[tile.rows]) == {tile.levels[0]}
        assert set(points.level[tile.cols]) == {tile.levels[1]}
    assert (covered[np.triu_indices(n)] == 1).all()

    A = loadings[points.level]
    expected = sum(
        np.outer(A[:, s], A[:, s]) * rbf(points.x, points.x, scales[s], lengths[s])
        for s in range(3)
    )
    expected += noise * np.diag(A[:, 0] ** 2)
    for K in (prior.covariance(points, parts), prior.vjp(points, parts)[0]):
        np.testing.assert_allclose(np.triu(K), np.triu(expected), rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(prior.diagonal(points), np.diag(expected), rtol=1e-13)

    # Between two sets of points no row is the same, so that there is no noise.
    other = Points(rng.uniform(-2, 2, (5, 3)), np.array([0, 0, 1, 2, 2]))
    cross = sum(
        np.outer(A[:, s], loadings[other.level, s]) * rbf(points.x, other.x, scales[s], lengths[s])
        for s in range(3)
    )
    np.testing.assert_allclose(prior.cross_covariance(points, other), cross, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_evidence_does_not_depend_on_tiles(scheme, monkeypatch):
    prior = autoregressive(1.5 * RBF(1.1) + White(0.2), 3)
    points = make_points(100, 3)
    likelihood = Logit(make_labels(points), np.ones(100))
    values = []
    for tile_elements in (1 << 20, 1):
        monkeypatch.setattr(prior_module, "TILE_ELEMENTS", tile_elements)
        evidence = Evidence(prior, likelihood, points, SCHEMES[scheme], tol=1e-10, max_iter=500)
        values.append(evidence(evidence.theta))
    assert values[0].value == pytest.approx(values[1].value, rel=IDENTITY)
    np.testing.assert_allclose(values[0].gradient, values[1].gradient, rtol=1e-8, atol=1e-8)


def test_wrong_number_of_loadings_is_refused():
    with pytest.raises(ValueError, match="rho needs 1 values for 2 levels, got 2"):
        Autoregressive((RBF(), RBF()), (1.0, 2.0))
    with pytest.raises(ValueError, match=r"\(n_levels, 2\)"):
        Coregional((RBF(), RBF()), [[1.0], [2.0]])


# --------------------------------------------------------------------------------- the posterior


def make_posterior(scheme, likelihood="logit", kernel=None, n=20):
    evidence = make_evidence(
        2.0 * RBF(1.1) if kernel is None else kernel, "three levels", scheme, likelihood, n
    )
    covariance, _, fixed = evidence.fixed(evidence.theta)
    return Posterior.from_belief(covariance.prior, evidence.points, fixed.belief), fixed.belief


@pytest.mark.parametrize(("scheme", "likelihood"), ALLOWED)
@pytest.mark.parametrize("kernel", [2.0 * RBF(1.1), 2.0 * RBF(1.1) + White(0.3)], ids=str)
def test_posterior_is_the_dense_formula(scheme, likelihood, kernel, monkeypatch):
    posterior, belief = make_posterior(scheme, likelihood, kernel)
    prior, points = posterior.prior, posterior.points
    new = make_points(23, 3, seed=9)
    w, nu = belief.sites.w, belief.sites.nu
    K = dense_covariance(prior, points, points, same=True)
    k = dense_covariance(prior, new, points)
    own = dense_covariance(prior, new, new, same=True)
    own_cross = dense_covariance(prior, new, new)
    own = own_cross + np.diag(np.diag(own) - np.diag(own_cross))
    # q(z) = N(z | 0, K) exp(nu z - w z^2 / 2): mean K (I + W K)^-1 nu, R = (I + W K)^-1 W.
    inverse = np.linalg.inv(np.eye(len(points)) + w[:, None] * K)
    mean = k @ inverse @ nu
    joint = own - k @ (inverse * w) @ k.T
    at_rows = K - K @ (inverse * w) @ K

    np.testing.assert_allclose(belief.mean, K @ inverse @ nu, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(belief.variance, np.diag(at_rows), rtol=1e-9)
    assert belief.log_det == pytest.approx(
        np.linalg.slogdet(np.eye(len(points)) + w[:, None] * K)[1], rel=1e-10
    )
    v = np.random.RandomState(0).normal(size=len(points))
    np.testing.assert_allclose(belief.implicit_solve(v), inverse @ v, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(posterior.mean(new), mean, rtol=0.0, atol=1e-9)
    monkeypatch.setattr(posterior_module, "BATCH_ELEMENTS", 7 * len(points))
    got_mean, got_variance = posterior.mean_and_variance(new)
    np.testing.assert_allclose(got_mean, mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(got_variance, np.diag(joint), rtol=1e-9)
    got_mean, got_joint = posterior.mean_and_covariance(new)
    np.testing.assert_allclose(got_mean, mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(got_joint, joint, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(posterior.mean(new), mean, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_posterior_at_the_rows_is_the_belief(scheme):
    posterior, belief = make_posterior(scheme)
    mean, variance = posterior.mean_and_variance(posterior.points)
    np.testing.assert_allclose(mean, belief.mean, rtol=0.0, atol=IDENTITY)
    np.testing.assert_allclose(variance, belief.variance, rtol=1e-9)


def test_no_new_points():
    posterior, _ = make_posterior("laplace")
    mean, variance = posterior.mean_and_variance(Points(np.empty((0, 3)), np.empty(0, dtype=int)))
    assert mean.shape == variance.shape == (0,)


@pytest.mark.parametrize(("scheme", "likelihood"), [("laplace", "logit"), ("ep", "flip rates")])
def test_samples_have_the_posterior_mean_and_covariance(scheme, likelihood):
    posterior, _ = make_posterior(scheme, likelihood)
    new, n_samples = make_points(8, 3, seed=9), 40_000
    mean, covariance = posterior.mean_and_covariance(new)
    samples = posterior.sample(new, n_samples, np.random.RandomState(0))
    assert samples.shape == (8, n_samples)
    sd = np.sqrt(np.diag(covariance))
    z = (samples.mean(axis=1) - mean) / (sd / np.sqrt(n_samples))
    assert np.abs(z).max() < 4.5
    # The standard error of a covariance is sqrt((S_ii S_jj + S_ij^2) / n).
    error = np.cov(samples) - covariance
    z = error / np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / n_samples)
    assert np.abs(z).max() < 4.5
    again = posterior.sample(new, n_samples, np.random.RandomState(0))
    np.testing.assert_array_equal(samples, again)
