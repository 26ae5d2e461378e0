"""Two ways to the same model must give the same numbers."""

from functools import cached_property

import numpy as np
import pytest
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as sk
from tolerances import IDENTITY

from polyfid.inference import SCHEMES
from polyfid.inference.posterior import Posterior
from polyfid.kernels import RBF, Constant, Matern32, Matern52
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
        result = self.evidence(self.evidence.theta)
        assert result.report.converged, str(result.report)
        self.value, self.gradient = result.value, result.gradient
        self.covariance, _, fixed = self.evidence.fixed(self.evidence.theta)
        self.belief = fixed.belief

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
@pytest.mark.parametrize(("rate", "sign"), [(0.0, 1.0), (1.0, -1.0)])
def test_a_channel_that_never_or_always_errs(scheme, rate, sign):
    weight = np.resize([1.0, 2.0, 1.0, 3.0], len(y))
    plain = Fit(PRIOR, logit(sign * y, weight), x, level, scheme)
    noisy = NoisyLogit.from_flip_rates(y, weight, level, [rate, rate])
    same_fit(plain, Fit(PRIOR, noisy, x, level, scheme), x_new)


@noise_schemes
def test_a_channel_that_tells_nothing_leaves_the_prior(scheme):
    noisy = NoisyLogit.from_flip_rates(y, np.ones(len(y)), level, [0.5, 0.5])
    fit = Fit(PRIOR, noisy, x, level, scheme)
    same(fit.value, len(y) * np.log(0.5), IDENTITY)
    same(fit.gradient, 0.0, IDENTITY)
    same(fit.predict(x_new, 0), (np.zeros(7), np.full(7, 2.0)))
    same(fit.predict(x_new, 1), (np.zeros(7), np.full(7, 0.8**2 * 2.0 + 0.7)))


def channel(y, weight, level):
    return NoisyLogit.from_flip_rates(y, weight, level, [0.2, 0.0], [True, False])


@pytest.mark.parametrize(
    ("scheme", "likelihood"),
    [*((s, lambda y, w, level: Logit(y, w)) for s in SCHEMES), ("ep", channel)],
)
def test_weight_is_repetition(scheme, likelihood):
    weight = np.resize([1, 2, 1, 3, 1, 1, 5], len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = Fit(PRIOR, likelihood(y, weight.astype(float), level), x, level, scheme)
    one = likelihood(y[rows], np.ones(len(rows)), level[rows])
    repeated = Fit(PRIOR, one, x[rows], level[rows], scheme)
    same_fit(weighted, repeated, x_new)
    same(weighted.gradient, repeated.gradient, 1e-8)
    same(weighted.belief.mean[rows], repeated.belief.mean)
    same(weighted.belief.variance[rows], repeated.belief.variance)


@pytest.mark.parametrize("scheme", ["laplace", "variational"])
def test_fractions_add_up(scheme):
    # Not EP: half a label has moments of its own.
    rows = np.repeat(np.arange(len(y)), 2)
    parts = np.resize([0.3, 0.7], len(rows))
    halves = Fit(PRIOR, logit(y[rows], parts), x[rows], level[rows], scheme)
    same_fit(Fit(PRIOR, logit(y), x, level, scheme), halves, x_new)


@noise_schemes
def test_labels_whose_truth_is_known_tell_of_the_channel_only(scheme):
    rng = np.random.RandomState(3)
    x, level = np.sort(rng.uniform(-2.0, 2.0, (14, 1)), axis=0), np.repeat([0, 1], 7)
    y = np.where(rng.uniform(size=14) < 0.5, 1.0, -1.0)
    truth = np.zeros(14)
    truth[:3] = [1.0, -1.0, 1.0] * y[:3]
    prior = Autoregressive((1.5 * RBF(0.8), 0.5 * RBF(0.6)), (0.9,))
    rates, free = [0.2, 0.0], [True, False]
    one = np.ones(14)
    known = NoisyLogit.from_flip_rates(y, one, level, rates, free, truth)
    with_them = Fit(prior, known, x, level, scheme)
    rest = NoisyLogit.from_flip_rates(y[3:], one[3:], level[3:], rates, free)
    without = Fit(prior, rest, x[3:], level[3:], scheme)
    # Two labels of three are right.
    assert with_them.value == pytest.approx(without.value + 2 * np.log(0.8) + np.log(0.2), rel=TOL)
    slope = 2 * 0.2 - 0.8  # of log(1 - e) and log e in the logit of 1 - e
    assert with_them.gradient[-1] == pytest.approx(without.gradient[-1] + slope, rel=1e-8)
    new = np.linspace(-2.0, 2.0, 5)[:, None], np.ones(5, dtype=int)
    for a, b in zip(with_them.predict(*new), without.predict(*new), strict=True):
        np.testing.assert_allclose(a, b, rtol=MARGINAL, atol=MARGINAL)
