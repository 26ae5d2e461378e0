"""Two ways to the same model must give the same numbers."""

from functools import cached_property

import numpy as np
import pytest
from scipy.special import expit, log_expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as sk
from tolerances import IDENTITY

from polyfid.inference import SCHEMES
from polyfid.inference.posterior import Posterior
from polyfid.kernels import RBF, Constant, Linear, Matern32, Matern52, White
from polyfid.learning.evidence import Evidence
from polyfid.model.likelihoods import Logit, NoisyLogit
from polyfid.model.prior import Autoregressive, Coregional
from polyfid.rows import Points

# Fixed points are found to 1e-10 posterior standard deviations. The evidence is stationary there
# (but for Laplace's determinant), the marginals are not.
TOL = 1e-11
MARGINAL = 1e-9
schemes = pytest.mark.parametrize("scheme", SCHEMES)
noise_schemes = pytest.mark.parametrize("scheme", ["ep", "variational"])


class Fit:
    """Inference at fixed hyper-parameters, to the end."""

    def __init__(self, prior, likelihood, x, level, scheme):
        self.points = Points(np.asarray(x, dtype=float), np.asarray(level))
        self.evidence = Evidence(
            prior, likelihood, self.points, SCHEMES[scheme], tol=TOL, max_iter=500
        )
        self.result = self.evidence(self.evidence.theta)
        assert self.result.report.converged, str(self.result.report)
        self.covariance, _, self.fixed = self.evidence.fixed(self.evidence.theta)

    @property
    def value(self):
        return self.result.value

    @property
    def gradient(self):
        return self.result.gradient

    @property
    def belief(self):
        return self.fixed.belief

    @cached_property
    def posterior(self):
        return Posterior.from_belief(self.covariance.prior, self.points, self.belief)

    def predict(self, x, level):
        return self.posterior.mean_and_variance(Points(x, np.full(len(x), level)))


def same(a, b, tolerance=MARGINAL):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def same_fit(a, b, x_new, levels=(0, 1)):
    """Equal evidence, and equal predictions at the levels."""
    same(a.value, b.value, IDENTITY)
    for level in levels:
        same(a.predict(x_new, level), b.predict(x_new, level))


def make_data():
    """Two levels of labels on a plane, a third of them at the upper one."""
    rng = np.random.RandomState(7)
    x = rng.uniform(-2.0, 2.0, (24, 2))
    level = np.repeat([0, 1], [16, 8])
    truth = np.sin(2.0 * x[:, 0]) + x[:, 1] + 0.5 * level
    y = np.where(rng.uniform(size=24) < expit(2.0 * truth), 1.0, -1.0)
    weight = np.resize([1.0, 2.0, 0.4, 1.0, 3.5], 24)
    return x, level, y, weight, rng.uniform(-2.5, 2.5, (7, 2))


x, level, y, weight, x_new = make_data()
PRIOR = Autoregressive((2.0 * Matern52(1.1), 0.7 * RBF(0.6)), (0.8,))


def logit(y, weight=None):
    return Logit(y, np.ones(len(y)) if weight is None else weight)


# -------------------------------------------------------------------- scikit-learn's classifier


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (1.7 * RBF(0.9), 1.7 * sk.RBF(0.9)),
        (30.0 * RBF((0.9, 2.0)), 30.0 * sk.RBF((0.9, 2.0))),
        (1.7 * Matern32(0.9) + Constant(0.5), 1.7 * sk.Matern(0.9, nu=1.5) + 0.5),
    ],
    ids=["rbf", "large ard", "matern and bias"],
)
def test_one_level_is_scikit_learns_classifier(ours, theirs):
    theirs = GaussianProcessClassifier(theirs, optimizer=None, max_iter_predict=1000).fit(x, y)
    fit = Fit(Autoregressive((ours,)), logit(y), x, np.zeros(len(x), dtype=int), "laplace")
    np.testing.assert_allclose(fit.evidence.theta, theirs.kernel_.theta, rtol=1e-14)
    value, gradient = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    same(fit.value, value, 1e-9)
    same(fit.gradient, gradient, 1e-6)
    # Its latent mean and variance, from what it keeps (`latent_mean_and_variance` came with 1.7).
    inner = theirs.base_estimator_
    k = inner.kernel_(inner.X_train_, x_new)
    half = np.linalg.solve(inner.L_, inner.W_sr_[:, None] * k)
    mean, variance = fit.predict(x_new, 0)
    same(mean, k.T @ (inner.y_train_ - inner.pi_), 1e-6)
    same(variance, inner.kernel_.diag(x_new) - np.einsum("ij,ij->j", half, half), 1e-6)


# -------------------------------------------------------------------------------- levels, loadings


@schemes
def test_rho_zero_decouples_the_levels(scheme):
    prior = Autoregressive((2.0 * Matern52(1.1), 0.7 * RBF(0.6)), (0.0,))
    both = Fit(prior, logit(y, weight), x, level, scheme)
    alone = []
    for t, kernel in enumerate(prior.kernels):
        rows = level == t
        part = logit(y[rows], weight[rows])
        alone.append(Fit(Autoregressive((kernel,)), part, x[rows], 0 * level[rows], scheme))
        same(both.predict(x_new, t), alone[t].predict(x_new, 0))
    same(both.value, alone[0].value + alone[1].value, IDENTITY)
    same(both.gradient[1:], np.concatenate([a.gradient for a in alone]), 1e-8)
    # rho itself still matters: the cheap labels say something as soon as it moves.
    assert abs(both.gradient[0]) > 0.1


@schemes
@pytest.mark.parametrize("where", ["top", "middle"])
def test_a_level_without_rows_changes_nothing(scheme, where):
    plain = Fit(PRIOR, logit(y, weight), x, level, scheme)
    low, high = PRIOR.kernels
    if where == "top":
        prior = Autoregressive((low, high, 3.0 * RBF(0.5)), (0.8, -1.3))
        more = Fit(prior, logit(y, weight), x, level, scheme)
        same_fit(plain, more, x_new)
        # theta: rho_1, rho_2, the three kernels.
        same(more.gradient[[0, 2, 3, 4, 5]], plain.gradient, 1e-8)
        same(more.gradient[[1, 6, 7]], 0.0, IDENTITY)
        # f_2 = rho_2 f_1 + delta_2
        mean, variance = plain.predict(x_new, 1)
        same(more.predict(x_new, 2), (-1.3 * mean, 1.3**2 * variance + 3.0))
    else:
        # f_2 = 0.4 (2 f_0 + delta_1) + delta_2, and 0.4^2 of delta_1 makes up for a smaller delta_2
        prior = Autoregressive((low, 0.5 * RBF(0.6), (0.7 - 0.4**2 * 0.5) * RBF(0.6)), (2.0, 0.4))
        more = Fit(prior, logit(y, weight), x, 2 * level, scheme)
        same(more.value, plain.value, IDENTITY)
        same(more.predict(x_new, 0), plain.predict(x_new, 0))
        same(more.predict(x_new, 2), plain.predict(x_new, 1))


@schemes
def test_autoregression_is_a_coregionalisation(scheme):
    mixed = Coregional(PRIOR.kernels, [[1.0, 0.0], [0.8, 1.0]])
    a = Fit(PRIOR, logit(y, weight), x, level, scheme)
    b = Fit(mixed, logit(y, weight), x, level, scheme)
    same_fit(a, b, x_new)
    # theta of the mix: loadings (0,0), (0,1), (1,0), (1,1), then kernels.
    same(a.gradient, b.gradient[[2, 4, 5, 6, 7]], 1e-8)


@schemes
def test_levels_that_are_equal_are_one(scheme):
    shared = Coregional((PRIOR.kernels[0],), [[1.0], [1.0]])
    two = Fit(shared, logit(y, weight), x, level, scheme)
    one = Fit(Autoregressive(PRIOR.kernels[:1]), logit(y, weight), x, 0 * level, scheme)
    same(two.value, one.value, IDENTITY)
    same(two.predict(x_new, 0), one.predict(x_new, 0))
    same(two.predict(x_new, 1), one.predict(x_new, 0))


@schemes
def test_opposite_cheap_labels_are_the_opposite_rho(scheme):
    # Opposite labels at level 0 and the opposite rho are the same thing.
    a = Fit(PRIOR, logit(y, weight), x, level, scheme)
    opposite = Autoregressive(PRIOR.kernels, (-0.8,))
    b = Fit(opposite, logit(np.where(level == 0, -y, y), weight), x, level, scheme)
    same(a.value, b.value, IDENTITY)
    same(a.predict(x_new, 1), b.predict(x_new, 1))
    mean, variance = b.predict(x_new, 0)
    same(a.predict(x_new, 0), (-mean, variance))
    same(a.gradient * [-1, 1, 1, 1, 1], b.gradient, 1e-8)


# ------------------------------------------------------------------------------ labels and rows


@schemes
def test_label_swap(scheme):
    a, b = (Fit(PRIOR, logit(s * y, weight), x, level, scheme) for s in (1.0, -1.0))
    same(a.value, b.value, IDENTITY)
    same(a.gradient, b.gradient, 1e-8)
    (mean, variance), (opposite, same_variance) = a.predict(x_new, 1), b.predict(x_new, 1)
    same(mean, -opposite)
    same(variance, same_variance)


@noise_schemes
def test_label_swap_exchanges_sensitivity_and_specificity(scheme):
    one, free = np.ones(len(y)), np.array([True, False])
    s, c = np.array([0.8, 0.95]), np.array([0.7, 0.9])
    a = Fit(PRIOR, NoisyLogit(y, one, level, s, c, free), x, level, scheme)
    b = Fit(PRIOR, NoisyLogit(-y, one, level, c, s, free), x, level, scheme)
    same(a.value, b.value, IDENTITY)
    same(a.gradient, b.gradient[[0, 1, 2, 3, 4, 6, 5]], 1e-8)
    same(a.predict(x_new, 1)[0], -b.predict(x_new, 1)[0])


@noise_schemes
def test_a_channel_that_never_errs_is_no_channel(scheme):
    weight = np.resize([1.0, 2.0, 1.0, 3.0], len(y))
    plain = Fit(PRIOR, logit(y, weight), x, level, scheme)
    noisy = NoisyLogit.from_flip_rates(y, weight, level, [0.0, 0.0])
    same_fit(plain, Fit(PRIOR, noisy, x, level, scheme), x_new)


@noise_schemes
def test_a_channel_that_tells_nothing_leaves_the_prior(scheme):
    noisy = NoisyLogit.from_flip_rates(y, np.ones(len(y)), level, [0.5, 0.5])
    fit = Fit(PRIOR, noisy, x, level, scheme)
    same(fit.value, len(y) * np.log(0.5), IDENTITY)
    same(fit.gradient, 0.0, IDENTITY)
    same(fit.predict(x_new, 0), (np.zeros(7), np.full(7, 2.0)))
    same(fit.predict(x_new, 1), (np.zeros(7), np.full(7, 0.8**2 * 2.0 + 0.7)))


@noise_schemes
def test_a_channel_that_always_flips_turns_the_labels(scheme):
    one = np.ones(len(y))
    noisy = NoisyLogit.from_flip_rates(y, one, level, [1.0, 1.0])
    same_fit(Fit(PRIOR, logit(-y), x, level, scheme), Fit(PRIOR, noisy, x, level, scheme), x_new)


@schemes
def test_row_order(scheme):
    a = Fit(PRIOR, logit(y, weight), x, level, scheme)
    shuffled = np.random.RandomState(0).permutation(len(y))
    points, order = Points.sort(x[shuffled], level[shuffled])
    rows = shuffled[order]
    assert not np.array_equal(rows, np.arange(len(y)))
    b = Fit(PRIOR, logit(y, weight).take(rows), points.x, points.level, scheme)
    same_fit(a, b, x_new)
    same(a.gradient, b.gradient, 1e-8)
    same(a.belief.mean[rows], b.belief.mean)
    same(a.belief.variance[rows], b.belief.variance)


@schemes
def test_weight_is_repetition(scheme):
    weight = np.resize([1, 2, 1, 3, 1, 1, 5], len(y))
    weighted = Fit(PRIOR, logit(y, weight.astype(float)), x, level, scheme)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = Fit(PRIOR, logit(y[rows]), x[rows], level[rows], scheme)
    same_fit(weighted, repeated, x_new)
    same(weighted.gradient, repeated.gradient, 1e-8)
    same(weighted.belief.mean[rows], repeated.belief.mean)
    same(weighted.belief.variance[rows], repeated.belief.variance)


@noise_schemes
def test_weight_is_repetition_behind_a_channel(scheme):
    weight = np.resize([1, 2, 1, 3, 1], len(y))
    weighted = NoisyLogit.from_flip_rates(y, weight.astype(float), level, [0.2, 0.0], [True, False])
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = NoisyLogit.from_flip_rates(
        y[rows], np.ones(len(rows)), level[rows], [0.2, 0.0], [True, False]
    )
    a = Fit(PRIOR, weighted, x, level, scheme)
    b = Fit(PRIOR, repeated, x[rows], level[rows], scheme)
    same_fit(a, b, x_new)
    same(a.gradient, b.gradient, 1e-8)


@pytest.mark.parametrize("scheme", ["laplace", "variational"])
def test_fractions_add_up(scheme):
    # Not EP: half a label has moments of its own.
    rows = np.repeat(np.arange(len(y)), 2)
    parts = np.resize([0.3, 0.7], len(rows))
    halves = Fit(PRIOR, logit(y[rows], parts), x[rows], level[rows], scheme)
    same_fit(Fit(PRIOR, logit(y), x, level, scheme), halves, x_new)


@schemes
def test_a_row_of_little_weight_says_little(scheme):
    kept = np.arange(len(y)) % 3 != 1
    light = Fit(PRIOR, logit(y, np.where(kept, 1.0, 1e-12)), x, level, scheme)
    fewer = Fit(PRIOR, logit(y[kept]), x[kept], level[kept], scheme)
    same_fit(light, fewer, x_new)


# -------------------------------------------------------------------------------------- kernels


@schemes
def test_feature_rescaling(scheme):
    scale, lengths = np.array([100.0, 0.03]), np.array([0.9, 1.6])

    def prior(unit):
        return Autoregressive(
            (2.0 * Matern52(lengths * unit), 0.7 * RBF(2.0 * lengths * unit)), (0.8,)
        )

    a = Fit(prior(1.0), logit(y, weight), x, level, scheme)
    b = Fit(prior(scale), logit(y, weight), x * scale + [3.0, -1.0], level, scheme)
    same(a.value, b.value, IDENTITY)
    same(a.gradient, b.gradient, 1e-8)
    for t in (0, 1):
        same(a.predict(x_new, t), b.predict(x_new * scale + [3.0, -1.0], t))


@schemes
def test_sums_and_products_commute(scheme):
    left, right = 1.2 * RBF(0.9), Linear(1.5) + White(0.2)
    fits = [
        Fit(Autoregressive((kernel, Matern32(0.7)), (0.8,)), logit(y, weight), x, level, scheme)
        for kernel in (left + right, right + left, RBF(0.9) * 1.2 + right)
    ]
    for other in fits[1:]:
        same_fit(fits[0], other, x_new)
    # theta: rho, the two parts of the first kernel, the second kernel.
    same(fits[0].gradient, fits[1].gradient[[0, 3, 4, 1, 2, 5]], 1e-8)
    same(fits[0].gradient, fits[2].gradient[[0, 2, 1, 3, 4, 5]], 1e-8)


@schemes
def test_a_split_kernel_is_the_whole(scheme):
    whole = Fit(
        Autoregressive((2.0 * RBF(1.1), RBF(0.6)), (0.8,)), logit(y, weight), x, level, scheme
    )
    parts = 0.5 * RBF(1.1) + 1.5 * RBF(1.1)
    split = Fit(Autoregressive((parts, RBF(0.6)), (0.8,)), logit(y, weight), x, level, scheme)
    same_fit(whole, split, x_new)


# ------------------------------------------------------------------------- the paper's own form


class PaperLaplace:
    """Laplace in the form of Klyuchnikov and Burnaev, written out for two levels.

    The unknowns are xi = [f_L(X_L), f_L(X_H), delta(X_H)], n_L + 2 n_H of them, with a block
    diagonal prior; labels of the upper level look at rho f_L(X_H) + delta(X_H), so that W is not
    diagonal. The evidence is -xi^T K^-1 xi / 2 + lambda - log|B| / 2 with |B| = |I + K W|.
    """

    def __init__(self, kernels, rho, x, level, y):
        low, high = x[level == 0], x[level == 1]
        n, m = len(low), len(high)
        self.K = np.zeros((n + 2 * m, n + 2 * m))
        self.K[: n + m, : n + m] = kernels[0](np.concatenate([low, high]))
        self.K[n + m :, n + m :] = kernels[1](high)
        # What each label looks at: H xi.
        self.H = np.zeros((n + m, n + 2 * m))
        self.H[:n, :n] = np.eye(n)
        self.H[n:, n : n + m] = rho * np.eye(m)
        self.H[n:, n + m :] = np.eye(m)
        self.y = y
        a = np.zeros(n + 2 * m)  # K^-1 xi
        for _ in range(100):
            xi = self.K @ a
            slope, W = self.derivatives(xi)
            b = W @ xi + slope
            step = np.linalg.solve(np.eye(len(a)) + W @ self.K, b) - a
            while self.objective(a + step) < self.objective(a) - 1e-12:
                step *= 0.5
            a = a + step
            if np.abs(step).max() < 1e-13:
                break
        self.xi = self.K @ a
        _, W = self.derivatives(self.xi)
        log_det = np.linalg.slogdet(np.eye(len(a)) + self.K @ W)[1]
        self.evidence = self.objective(a) - 0.5 * log_det
        self.mode = self.H @ self.xi

    def objective(self, a):
        xi = self.K @ a
        return log_expit(self.y * (self.H @ xi)).sum() - 0.5 * a @ xi

    def derivatives(self, xi):
        """The gradient of lambda in xi, and W, minus its Hessian."""
        f = self.H @ xi
        slope = self.H.T @ (self.y * expit(-self.y * f))
        return slope, self.H.T @ np.diag(expit(f) * expit(-f)) @ self.H


@pytest.mark.parametrize("rho", [0.8, -1.7, 0.0])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_the_papers_block_form(rho, scale):
    kernels = (scale * Matern52(1.1), 0.7 * scale * RBF(0.6))
    fit = Fit(Autoregressive(kernels, (rho,)), logit(y), x, level, "laplace")
    paper = PaperLaplace(kernels, rho, x, level, y)
    same(fit.value, paper.evidence, IDENTITY)
    same(fit.belief.mean, paper.mode)

    def evidence(r):
        return PaperLaplace(kernels, r, x, level, y).evidence

    h = 1e-3
    near, far = (evidence(rho + k * h) - evidence(rho - k * h) for k in (1, 2))
    assert fit.gradient[0] == pytest.approx((8.0 * near - far) / (12.0 * h), rel=1e-6, abs=1e-8)
