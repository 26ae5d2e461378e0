"""Tuning: bounds, starts, reproducibility, and what an optimum says about itself."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from families import differences, every_prior, make_rows
from sklearn.exceptions import ConvergenceWarning
from tolerances import GRADIENT

from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import NotPositiveDefinite
from polyfid.kernels import RBF, Constant, Linear, White
from polyfid.kernels.parameters import HyperPrior
from polyfid.learning.climb import make_hyperprior, maximise, spread_starts, starting_points, tune
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import infer
from polyfid.learning.plan import Options
from polyfid.learning.structures import make_prior
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

N_LOW, N_HIGH = 30, 12


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    x = rng.uniform(-2.0, 2.0, (N_LOW + N_HIGH, 1))
    y = np.where(np.sin(2.0 * x[:, 0]) + 0.3 * rng.normal(size=len(x)) > 0.0, 1.0, -1.0)
    return Points(x, np.repeat([0, 1], [N_LOW, N_HIGH])), y


def logit(y):
    return Logit(y, np.ones(len(y)))


def make_evidence(data, kernels=None, rho_bounds=(-10.0, 10.0), scheme="laplace"):
    points, y = data
    kernels = (2.0 * RBF(1.0), 0.5 * RBF(1.0)) if kernels is None else kernels
    prior = Autoregressive(kernels, (0.7,), rho_bounds)
    return Evidence(prior, logit(y), points, SCHEMES[scheme])


OPTIONS = Options(2, 2, (1.0 * RBF(1.0),) * 2, rho=(1.0,), inference="laplace", may_choose=False)


def fit(data, seed=0, **changes):
    points, y = data
    options = replace(OPTIONS, **changes)
    scheme = SCHEMES[options.inference]
    evidence = Evidence(make_prior(options, points.x.shape[1]), logit(y), points, scheme)
    return infer(evidence, tune(evidence, options, np.random.RandomState(seed)))


def weak(evidence):
    return make_hyperprior(evidence.prior, evidence.likelihood, evidence.points, weak=True)


# ---------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("inference", ["laplace", "ep", "variational"])
def test_tuning_ends_at_the_optimum_of_the_scheme(data, inference):
    result = fit(data, inference=inference)
    points, y = data
    evidence = Evidence(result.prior, logit(y), points, SCHEMES[inference])
    hyperprior, optimum = weak(evidence), result.optimum
    value, (log_prior, slope) = evidence(optimum.theta), hyperprior(optimum.theta)
    assert optimum.converged
    assert optimum.at_bounds == ()
    assert optimum.best.inner_failures == 0
    assert result.log_evidence == pytest.approx(value.value, abs=1e-6)
    assert optimum.objective == pytest.approx(value.value + log_prior)
    assert np.abs(value.gradient + slope).max() < 0.01
    rng = np.random.RandomState(1)
    for _ in range(20):
        near = optimum.theta + 0.3 * rng.normal(size=len(slope))
        assert evidence(near, gradient=False).value + hyperprior(near)[0] < optimum.objective


def test_bounds_are_respected_and_named(data):
    kernels = (Constant(1.0, (0.9, 1.1)) * RBF(1.0, (1.5, 2.0)), 0.5 * RBF(1.0))
    evidence = make_evidence(data, kernels, rho_bounds=(-0.5, 0.5))
    starts = [evidence.theta, evidence.theta + 5.0, evidence.theta - 5.0]  # outside, too
    optimum = maximise(evidence, weak(evidence), starts)
    low, high = evidence.bounds.T
    for climb in optimum.climbs:
        np.testing.assert_array_equal(np.clip(climb.start, low, high), climb.start)
        np.testing.assert_array_equal(np.clip(climb.theta, low, high), climb.theta)
    # Levels that agree want rho near one, and a scale above one.
    assert optimum.at_bounds[:2] == ("rho[1]", "f[0].constant.value")
    assert optimum.theta[0] == 0.5
    at_bound = np.minimum(optimum.theta - low, high - optimum.theta) < 1e-6
    assert optimum.at_bounds == tuple(np.array(evidence.theta_names)[at_bound])


def test_fixed_parameters_stay(data):
    kernels = (Constant(2.5, "fixed") * RBF(1.0), 0.5 * RBF(0.7, "fixed"))
    evidence = make_evidence(data, kernels, "fixed")
    assert evidence.theta_names == ("f[0].rbf.length_scale", "delta[1].constant.value")
    optimum = maximise(evidence, weak(evidence), [evidence.theta])
    tuned, _ = evidence.at(optimum.theta)
    assert tuned.rho == (0.7,)
    assert tuned.kernels[0].left.value == 2.5
    assert tuned.kernels[1].right.length_scale == 0.7
    assert tuned.kernels[0].right.length_scale != pytest.approx(1.0, abs=0.01)


def test_inference_at_the_optimum_starts_from_that_of_the_climb(data):
    # Where there are several fixed points, another start may end at one of less evidence.
    evidence = make_evidence(data, (RBF(1.0), 0.5 * RBF(0.7))).with_scheme("ep")
    optimum = maximise(evidence, weak(evidence), [evidence.theta])
    _, _, fixed = evidence.fixed(optimum.theta)
    assert fixed.report.converged
    assert fixed.report.n_iter <= 1


# --------------------------------------------------------------------------------- sign of rho


def test_without_a_prior_inverted_labels_mirror_the_optimum(data):
    points, y = data
    opposite = points, np.where(points.level == 0, -y, y)
    # The surface is flat along a ridge in rho, so that only the height is compared.
    right, wrong = fit(data, weak_prior=False), fit(opposite, weak_prior=False)
    assert right.prior.rho[0] > 0.5
    assert wrong.prior.rho[0] < -0.5
    assert right.log_evidence == pytest.approx(wrong.log_evidence, abs=0.02)


@pytest.mark.parametrize("n_levels", [2, 3])
def test_starts_have_both_signs_of_each_rho(data, n_levels):
    points, y = data
    kernels = (1.0 * RBF(1.0),) * n_levels
    rho = (0.8,) * (n_levels - 1)
    options = replace(OPTIONS, n_levels=n_levels, kernels=kernels, rho=rho, n_restarts=2)
    evidence = Evidence(make_prior(options, 1), logit(y), points, SCHEMES["laplace"])
    starts = starting_points(evidence, weak(evidence), options, np.random.RandomState(0))
    np.testing.assert_array_equal(starts[0], evidence.theta)
    assert len(starts) == 2 + (n_levels - 1) + 2
    for step in range(n_levels - 1):
        signs = {np.sign(s[step]) for s in starts[1 : n_levels + 1]}
        assert signs == {-1.0, 1.0}


# -------------------------------------------------------------------------------------- restarts


@pytest.mark.parametrize("n_starts", [0, 1, 5])
@pytest.mark.parametrize("hyperprior", ["weak", "flat"])
@pytest.mark.parametrize("value", [1.0, 1e4])  # the second one far outside the bounds
def test_spread_starts_lie_within_the_bounds(data, n_starts, hyperprior, value):
    kernels = (Constant(value, (0.5, 3.0)) * RBF(1.0, (0.9, 1.1)), 0.5 * RBF(1.0) + White(1.0))
    evidence = make_evidence(data, kernels, rho_bounds=(-0.5, 0.6))
    prior = weak(evidence) if hyperprior == "weak" else HyperPrior.flat(len(evidence.theta))
    starts, again, other = (
        np.array(spread_starts(evidence, prior, n_starts, np.random.RandomState(seed)))
        for seed in (5, 5, 6)
    )
    assert len(starts) == n_starts
    np.testing.assert_array_equal(starts, again)
    for low, high, start in zip(*evidence.bounds.T, starts.T, strict=bool(n_starts)):
        assert low <= start.min() <= start.max() <= high
        assert n_starts == 1 or value > 1.0 or np.ptp(start) > 0.05 * min(high - low, 1.0)
    assert n_starts == 0 or np.abs(starts - other).max() > 0.1


def test_spread_starts_follow_the_prior(data):
    evidence = make_evidence(data)
    prior = HyperPrior.independent([1.0, -1.0, 0.5, 2.0, 0.0], [0.1, 0.2, 0.3, 0.4, 0.5])
    starts = spread_starts(evidence, prior, 256, np.random.RandomState(0))
    np.testing.assert_allclose(np.mean(starts, axis=0), prior.mean, atol=0.02)
    np.testing.assert_allclose(np.std(starts, axis=0), prior.sd, rtol=0.1)


# ---------------------------------------------------------------- the climb, on a made-up surface


@dataclass
class Surface:
    """Quacks like `Evidence`: the larger of two parabolas, undefined where theta[0] > 4."""

    peaks: tuple = ((-2.0, -1.0), (3.0, -0.5))  # place, height
    refused_above: float = 4.0
    converged: bool = True

    theta = np.zeros(2)
    bounds = np.array([[-5.0, 5.0], [-5.0, 5.0]])
    theta_names = ("a", "b")
    warm = None

    def __call__(self, theta, gradient=True):
        if theta[0] > self.refused_above:
            raise NotPositiveDefinite("too far")
        height, place = max((h - (theta[0] - p) ** 2 - theta[1] ** 2, p) for p, h in self.peaks)
        slope = np.array([-2.0 * (theta[0] - place), -2.0 * theta[1]])
        return SimpleNamespace(
            value=height, gradient=slope, report=SimpleNamespace(converged=self.converged)
        )


def climb(surface, *starts, **options):
    return maximise(surface, HyperPrior.flat(2), [np.array(s) for s in starts], **options)


def test_the_best_of_several_starts_wins():
    optimum = climb(Surface(), [-3.0, 1.0], [2.0, 1.0], [-1.0, -4.0])
    np.testing.assert_allclose(optimum.theta, [3.0, 0.0], atol=1e-2)
    assert optimum.objective == pytest.approx(-0.5, abs=1e-4)
    assert len(optimum.climbs) == 3
    heights = [c.objective for c in optimum.climbs]
    assert heights == sorted(heights, reverse=True)
    assert optimum.n_evaluations == sum(c.n_evaluations for c in optimum.climbs)
    assert str(optimum).startswith("converged: objective -0.5000, largest slope ")
    assert "best of 1 start," in str(climb(Surface(), [-3.0, 1.0]))


def test_hyper_prior_is_part_of_the_objective():
    prior = HyperPrior.independent([0.0, 1.0], [1.0, 0.5])
    optimum = maximise(Surface(peaks=((3.0, 0.0),)), prior, [np.zeros(2)])
    # Each parabola -(t - p)^2 meets -(t - m)^2 / (2 sd^2).
    np.testing.assert_allclose(optimum.theta, [3.0 * 2.0 / 3.0, 4.0 / 6.0], atol=1e-3)


def test_an_evidence_that_means_nothing_is_not_believed():
    class Ridge(Surface):
        """A ridge at a = 0.5 with straight slopes, which steps overshoot."""

        def __call__(self, theta, gradient=True):
            value = super().__call__(theta)
            height = np.sqrt(1.0 + 25.0 * (theta[0] - 0.5) ** 2)
            value.value, value.gradient[0] = -height, -25.0 * (theta[0] - 0.5) / height
            if theta[0] > 1.0:  # where inference does not converge, anything may come out
                value.value, value.report.converged = 100.0 + theta[0], False
            return value

    optimum = climb(Ridge(), [-4.9, 0.0])
    np.testing.assert_allclose(optimum.theta, [0.5, 0.0], atol=1e-2)
    assert optimum.objective == pytest.approx(-1.0, abs=1e-3)
    assert optimum.best.inner_failures > 0


def test_refused_parameters_are_avoided_and_counted():
    optimum = climb(Surface(peaks=((3.5, 0.0),)), [-4.9, 0.0])
    np.testing.assert_allclose(optimum.theta, [3.5, 0.0], atol=1e-2)
    assert optimum.converged
    nowhere = climb(Surface(refused_above=-10.0), [-3.0, 1.0], [2.0, 1.0])
    assert not nowhere.converged
    assert nowhere.best.inner_failures == nowhere.best.n_evaluations > 0
    failing = climb(Surface(converged=False), [-3.0, 1.0]).best
    assert failing.inner_failures == failing.n_evaluations > 0


# ------------------------------------------------------------------------------ the hyper-priors


def test_hyper_prior():
    prior = HyperPrior.join(
        [
            HyperPrior.independent([1.0, -0.5], [0.75, 2.0]),
            HyperPrior.flat(2),
            HyperPrior.tied(np.array([0.3, 0.1, -0.2]), 1.0, 0.3),
        ]
    )
    theta = np.random.RandomState(0).normal(size=7)
    value, slope = prior(theta)
    expected = differences(lambda t: prior(t)[0], theta)
    np.testing.assert_allclose(slope, expected, rtol=GRADIENT, atol=GRADIENT)
    np.testing.assert_array_equal(slope[2:4], 0.0)
    # tied: covariance shared^2 1 1^T + own^2 I.
    gap = theta[4:] - [0.3, 0.1, -0.2]
    covariance = 1.0 + 0.3**2 * np.eye(3)
    expected = -0.5 * ((theta[0] - 1.0) / 0.75) ** 2 - 0.5 * ((theta[1] + 0.5) / 2.0) ** 2
    expected -= 0.5 * gap @ np.linalg.solve(covariance, gap)
    assert value == pytest.approx(expected, rel=1e-12)
    assert prior(prior.mean)[0] == 0.0
    np.testing.assert_array_equal(prior.is_flat, [0, 0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(prior.known, [1, 1, 0, 0, 1, 1, 1])
    # Conditional standard deviations: of one parameter, the others given.
    own = np.diag(np.linalg.inv(covariance)) ** -0.5
    np.testing.assert_allclose(prior.sd, [0.75, 2.0, np.inf, np.inf, *own])
    # Without preferences the plausible values stay.
    flat = prior.flattened()
    np.testing.assert_array_equal(flat.mean, prior.mean)
    np.testing.assert_array_equal(flat.known, prior.known)
    assert flat(np.arange(7.0))[0] == 0.0
    assert flat.is_flat.all()
    assert len(HyperPrior.join([]).mean) == 0


@every_prior
def test_weak_hyper_prior_has_one_entry_per_parameter(make_prior):
    prior = make_prior(2.0 * RBF((1.0,) * 4) + Linear(1.0) * Constant(1.0, "fixed") + White(0.1))
    rows = make_rows(prior, "flip rates free")
    hyperprior, flat = (
        make_hyperprior(prior, rows.likelihood, rows.points, weak) for weak in (True, False)
    )
    n = len(prior.theta) + len(rows.likelihood.theta)
    assert hyperprior.mean.shape == hyperprior.known.shape == (n,)
    assert hyperprior.precision.shape == (n, n)
    assert np.linalg.eigvalsh(hyperprior.precision).min() >= 0.0
    assert not hyperprior.is_flat.any()
    assert flat.is_flat.all()


def test_inducing_points_are_tuned_until_slopes_are_small():
    made = make_cokriging(60, 25, 2, random_state=0)
    model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=30, random_state=0)
    model.fit(made.data, made.target, fidelity=made.fidelity)
    (fit,) = model._fits
    hyperprior = make_hyperprior(fit.prior, fit.likelihood, fit.posterior.points, weak=True)
    _, slope = model.log_marginal_likelihood(eval_gradient=True)
    assert model.converged_
    assert fit.optimum.best.slope <= 0.05
    assert np.abs(slope + hyperprior(fit.theta)[1]).max() < 0.1
    assert f"largest slope {fit.optimum.best.slope:.1g}" in str(model.report_)


def test_a_climb_that_ends_on_a_slope_has_not_converged(data):
    model = MultiFidelityClassifier(1.0 * RBF(), max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="tuning stopped early"):
        model.fit(data[0].x, data[1], fidelity=data[0].level)
    assert not model.converged_
    assert model._fits[0].optimum.best.slope > 0.05
