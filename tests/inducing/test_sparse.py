"""Inference through inducing points: equal to the exact one where it must be, a bound elsewhere."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from tolerances import GRADIENT, IDENTITY

from polyfid.inference import SCHEMES
from polyfid.inference import inducing as inducing_module
from polyfid.inference import passes as sums_module
from polyfid.inference.gradient import GradientView
from polyfid.inference.inducing import Basis, Inducing
from polyfid.inference.passes import View, block_sums
from polyfid.inference.posterior import Posterior
from polyfid.inference.sources import MemoryRows
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.inference.sparse_posterior import SparsePosterior
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
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.learning.climb import maximise
from polyfid.learning.evidence import Evidence
from polyfid.learning.sparse_evidence import (
    GradientPass,
    MovableEvidence,
    SparseEvidence,
    ValuePass,
)
from polyfid.model.likelihoods import Logit, NoisyLogit
from polyfid.model.prior import Autoregressive, Coregional
from polyfid.rows import Points

# Inducing points have a jitter of 1e-12 of their variance.
SAME = 1e-8

SMOOTH = {
    "rbf": RBF(1.1),
    "scaled rbf ard": 1.5 * RBF((0.8, 1.2, 1.5)),
    "matern 1/2": 1.5 * Matern12(1.4),
    "matern 3/2 ard": 1.5 * Matern32((0.8, 1.2, 1.5)),
    "matern 5/2 columns": 1.5 * Matern52(1.2, columns=(0, 1)),
    "rational quadratic": 1.5 * RationalQuadratic((0.8, 1.2, 1.5), alpha=0.7),
    "linear": Linear((1.4, 0.9, 2.0)) + Constant(0.5),
    "constant": Constant(0.5),
    "categorical": 2.0 * RBF(1.1, columns=(0, 1)) * Categorical(1.3, columns=(2,)),
    "categorical ard": 2.0 * Categorical((1.3, 2.0, 0.7)),
    "sum": 1.5 * RBF(1.1) + Linear(2.0),
    "partly fixed": Constant(2.0, "fixed") * RBF(1.1) + Constant(0.5) * Linear(1.0, "fixed"),
}
NOISY = {"white": 1.5 * RBF(1.1) + White(0.4), "scaled white": 1.5 * (RBF(1.1) + White(0.4))}
every_kernel = pytest.mark.parametrize(
    "kernel", {**SMOOTH, **NOISY}.values(), ids={**SMOOTH, **NOISY}
)
every_smooth = pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)


def autoregressive(kernel, n_levels):
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
every_prior = pytest.mark.parametrize("make_prior", PRIORS.values(), ids=PRIORS)

LIKELIHOODS = {
    "logit": lambda y, weight, level: Logit(y, weight),
    "flip rates free": lambda y, weight, level: NoisyLogit.from_flip_rates(
        y, weight, np.minimum(level, 1), [0.2, 0.05], [True, False]
    ),
    "sensitivity free": lambda y, weight, level: NoisyLogit(
        y,
        weight,
        np.minimum(level, 1),
        np.array([0.8, 0.95]),
        np.array([0.7, 1.0]),
        np.array([True, False]),
    ),
}
every_likelihood = pytest.mark.parametrize("make_likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)


def make_points(n, n_levels, seed=0):
    """Two real columns and one of codes; every level has rows, and some rows repeat others."""
    rng = np.random.RandomState(seed)
    x = np.column_stack([rng.uniform(-2.0, 2.0, (n, 2)), rng.randint(0, 3, n)])
    x[n // 2] = x[0]
    level = np.sort(np.concatenate([np.arange(n_levels), rng.randint(0, n_levels, n - n_levels)]))
    return Points(x, level)


def make_labels(points, seed=1):
    truth = 1.5 * np.sin(2.0 * points.x[:, 0]) + points.x[:, 1]
    return np.where(
        np.random.RandomState(seed).uniform(size=len(points)) < expit(2.0 * truth), 1.0, -1.0
    )


def make_rows(prior, make_likelihood=LIKELIHOODS["logit"], n=24, **options):
    points = make_points(n, prior.n_levels)
    weight = np.resize([0.3, 1.0, 2.0, 2.5], n)
    likelihood = make_likelihood(make_labels(points), weight, points.level)
    return MemoryRows(points, likelihood, **{"n_threads": 1, **options})


def rows_that_see(points, prior):
    """All rows as inducing points of the processes that they see."""
    return Inducing(
        tuple(points.x[prior.support[points.level, s]] for s in range(len(prior.kernels)))
    )


def some(inducing, count):
    return Inducing(tuple(z[:count] for z in inducing.z))


def tight(prior, rows, inducing):
    return SparseEvidence(prior, rows, inducing, tol=1e-10, max_iter=300)


def exact_of(prior, rows):
    scheme = SCHEMES["variational"]
    return Evidence(prior, rows.likelihood, rows.points, scheme, tol=1e-11, max_iter=500)


def converged(value):
    assert value.report.converged, str(value.report)
    return value


# --------------------------------------------------------- inducing points at the data are exact


@every_smooth
@every_prior
def test_points_at_the_rows_give_the_exact_bound_gradient_and_predictions(kernel, make_prior):
    prior = make_prior(kernel.for_features(3))
    rows = make_rows(prior, block_size=7)
    inducing = rows_that_see(rows.points, prior)
    sparse, exact = tight(prior, rows, inducing), exact_of(prior, rows)
    found, expected = converged(sparse(sparse.theta)), converged(exact(exact.theta))
    assert found.value == pytest.approx(expected.value, rel=SAME)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-6, atol=1e-7)

    _, fixed = sparse.fixed(sparse.theta)
    posterior = SparsePosterior(prior, inducing, fixed.belief)
    _, _, belief = exact.fixed(exact.theta)
    reference = Posterior.from_belief(prior, rows.points, belief.belief)
    new = make_points(9, prior.n_levels, seed=5)
    for a, b in zip(
        (*posterior.mean_and_variance(new), *posterior.mean_and_covariance(new)),
        (*reference.mean_and_variance(new), *reference.mean_and_covariance(new)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=SAME, atol=SAME)


@every_likelihood
def test_points_at_the_rows_are_exact_under_every_likelihood(make_likelihood):
    prior = autoregressive(1.5 * Matern32(1.1), 2)
    rows = make_rows(prior, make_likelihood)
    sparse, exact = tight(prior, rows, rows_that_see(rows.points, prior)), exact_of(prior, rows)
    found, expected = converged(sparse(sparse.theta)), converged(exact(exact.theta))
    assert found.value == pytest.approx(expected.value, rel=SAME)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-6, atol=1e-7)


def test_negative_sites_are_exact_too():
    # A label that the other rows contradict, behind a noisy channel, gets w < 0.
    points = Points(np.linspace(-1.0, 1.0, 11)[:, None], np.repeat([0, 1], [8, 3]))
    y = np.ones(11)
    y[[3, 7]] = -1.0
    likelihood = NoisyLogit.from_flip_rates(y, np.ones(11), points.level, [0.2, 0.1], [True, False])
    prior = Autoregressive((8.0 * RBF(2.0), 0.5 * RBF(0.5)), (1.2,))
    rows = MemoryRows(points, likelihood, n_threads=1)
    inducing = rows_that_see(points, prior)
    sparse, exact = tight(prior, rows, inducing), exact_of(prior, rows)
    found, expected = converged(sparse(sparse.theta)), converged(exact(exact.theta))
    assert exact.fixed(exact.theta)[2].belief.sites.w.min() < -1e-3
    assert found.value == pytest.approx(expected.value, rel=SAME)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-6, atol=1e-7)
    _, fixed = sparse.fixed(sparse.theta)
    mean, variance = SparsePosterior(prior, inducing, fixed.belief).mean_and_variance(points)
    reference = Posterior.from_belief(prior, points, exact.fixed(exact.theta)[2].belief)
    np.testing.assert_allclose(mean, reference.mean(points), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(variance, reference.mean_and_variance(points)[1], atol=1e-6)


# ----------------------------------------------------------------------------------- gradients


@every_kernel
@every_prior
def test_gradient_along_a_direction_is_finite_differences(kernel, make_prior):
    prior = make_prior(kernel.for_features(3))
    rows = make_rows(prior)
    evidence = tight(prior, rows, some(rows_that_see(rows.points, prior), 6))
    assert_gradient_along_a_direction(evidence)


@every_kernel
@every_prior
def test_gradient_with_places_is_finite_differences(kernel, make_prior):
    prior = make_prior(kernel.for_features(3))
    rows = make_rows(prior)
    off = np.random.RandomState(2).uniform(0.05, 0.1, (6, 3)) * [1.0, 1.0, 0.0]
    near = some(rows_that_see(rows.points, prior), 6)
    inducing = Inducing(tuple(z + off[: len(z)] for z in near.z))
    evidence = MovableEvidence(prior, rows, inducing, tol=1e-10, max_iter=300)
    fixed = tight(prior, rows, inducing)
    found, plain = converged(evidence(evidence.theta)), converged(fixed(fixed.theta))
    assert found.value == pytest.approx(plain.value, rel=IDENTITY)
    np.testing.assert_allclose(found.gradient[: evidence.n_hyper], plain.gradient, atol=1e-6)
    for a, b in zip(evidence.inducing_at(evidence.theta).z, inducing.z, strict=True):
        np.testing.assert_array_equal(a, b)
    # Codes are compared for equality, and no step along them is small.
    coded = "Categorical" in repr(kernel)
    still = np.array([coded and name.endswith(", 2]") for name in evidence.theta_names])
    assert_gradient_along_a_direction(evidence, ~still)
    assert not found.gradient[still].any()


@every_likelihood
@every_prior
def test_gradient_under_every_likelihood(make_likelihood, make_prior):
    prior = make_prior(1.5 * RBF(1.1) + White(0.2))
    rows = make_rows(prior, make_likelihood)
    evidence = tight(prior, rows, some(rows_that_see(rows.points, prior), 6))
    assert_gradient_along_a_direction(evidence)


@pytest.mark.parametrize("scale", [1e-3, 100.0])
def test_gradient_of_each_parameter_far_from_typical(scale):
    prior = autoregressive(scale * RBF((1.1, 0.9, 2.0)), 2)
    rows = make_rows(prior)
    evidence = tight(prior, rows, some(rows_that_see(rows.points, prior), 8))
    theta = evidence.theta
    gradient = converged(evidence(theta)).gradient
    for g, direction in zip(gradient, np.eye(len(theta)), strict=True):
        assert g == pytest.approx(slope(evidence, direction), rel=GRADIENT, abs=GRADIENT)


def assert_gradient_along_a_direction(evidence, among=1.0):
    theta = evidence.theta
    value = converged(evidence(theta))
    assert value.gradient.shape == theta.shape == (len(evidence.theta_names),)
    assert evidence.bounds.shape == (len(theta), 2)
    # A random direction has a part in every parameter: one derivative checks them all.
    direction = np.random.RandomState(len(theta)).choice([-1.0, 1.0], len(theta))
    direction *= np.random.RandomState(0).uniform(0.5, 1.0, len(theta)) * among
    expected = slope(evidence, direction)
    assert value.gradient @ direction == pytest.approx(expected, rel=GRADIENT, abs=GRADIENT)


def slope(evidence, direction, step=1e-4):
    up, down = (
        converged(evidence(evidence.theta + h * direction, gradient=False)).value
        for h in (step, -step)
    )
    return (up - down) / (2.0 * step)


# --------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("kernel", NOISY.values(), ids=NOISY)
def test_noise_of_rows_is_in_their_variance_only(kernel):
    prior = Autoregressive((kernel,))
    smooth = Autoregressive((1.5 * RBF(1.1),))
    points = make_points(9, 1)
    inducing = Inducing((points.x[:4],))  # rows that are among the points: noise differs still
    np.testing.assert_array_equal(
        Basis(prior, inducing).features(points), Basis(smooth, inducing).features(points)
    )
    belief = SparseBelief(np.eye(4), np.ones(4))
    noisy, plain = (SparsePosterior(p, inducing, belief) for p in (prior, smooth))
    noise = prior.diagonal(points) - smooth.diagonal(points)
    for a, b, extra in zip(
        (*noisy.mean_and_variance(points), noisy.mean_and_covariance(points)[1]),
        (*plain.mean_and_variance(points), plain.mean_and_covariance(points)[1]),
        (0.0, noise, np.diag(noise)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b + extra, atol=IDENTITY)


def test_the_bound_with_noise_is_below_the_exact_one():
    # q leaves the noise of a row as it is a priori; exact inference learns it from the label.
    def gap(noise):
        prior = Autoregressive((1.5 * RBF(1.1) + White(noise),))
        rows = make_rows(prior)
        sparse = tight(prior, rows, rows_that_see(rows.points, prior))
        return exact_of(prior, rows)(prior.theta).value - sparse(prior.theta).value

    assert gap(0.4) > 10.0 * gap(0.004) > 0.0


# ------------------------------------------------------------------------- sums, blocks, threads


@pytest.fixture
def three_levels():
    prior = autoregressive(1.5 * RBF(1.1) + White(0.1), 3)
    rows = make_rows(prior, LIKELIHOODS["sensitivity free"], n=60)
    basis = Basis(prior, some(rows_that_see(rows.points, prior), 7))
    rng = np.random.RandomState(3)
    F = rng.normal(size=(basis.total, 30))
    return basis, SparseBelief(F @ F.T, rng.normal(size=basis.total)), rows


def test_sums_are_those_of_plain_formulas(three_levels):
    basis, belief, rows = three_levels
    Phi, points = basis.features(rows.points), rows.points
    S, mu = belief.covariance, belief.mean
    np.testing.assert_allclose(S @ (np.eye(len(S)) + belief.gram), np.eye(len(S)), atol=1e-9)
    mean = Phi @ mu
    variance = basis.prior.diagonal(points) + np.diag(Phi @ (S - np.eye(len(S))) @ Phi.T)
    value, first, second = rows.likelihood.expectations(mean, variance)
    sums = block_sums(View(basis, belief), points, rows.likelihood)
    np.testing.assert_allclose(sums.gram, Phi.T @ (-second[:, None] * Phi), atol=1e-9)
    np.testing.assert_allclose(sums.linear, Phi.T @ (first - second * mean), atol=1e-9)
    assert sums.value == pytest.approx(value.sum(), rel=IDENTITY)
    assert sums.n_rows == 60
    assert sums.weight == pytest.approx(rows.likelihood.weight.sum())
    q, p = belief, SparseBelief.prior(len(mu))
    kl = 0.5 * (np.trace(S) + mu @ mu - len(mu) - np.linalg.slogdet(S)[1])
    assert q.divergence == pytest.approx(kl, rel=IDENTITY)
    assert p.divergence == 0.0


def test_features_make_the_covariance_of_the_inducing_points():
    prior = coregional(1.5 * Matern32(1.1))
    points = make_points(12, 3)
    basis = Basis(prior, Inducing((points.x, points.x)))
    Phi = basis.features(points)
    np.testing.assert_allclose(Phi @ Phi.T, prior.cross_covariance(points, points), atol=1e-9)


@pytest.mark.parametrize("block_size", [1, 7, 59, 60, 1000])
def test_blocks_of_any_size_give_the_same_sums(three_levels, block_size, monkeypatch):
    basis, belief, rows = three_levels
    theta = rows.likelihood.theta
    passes = ValuePass(View(basis, belief), theta), GradientPass(GradientView(basis, belief), theta)
    whole = [p(rows.points, rows.likelihood) for p in passes]
    monkeypatch.setattr(sums_module, "CHUNK", 5)
    monkeypatch.setattr(inducing_module, "PIECE_ELEMENTS", 1)
    sums, gradient = (replace(rows, block_size=block_size).reduce(p) for p in passes)
    close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)
    close(sums.gram, whole[0].gram)
    close(sums.linear, whole[0].linear)
    close([sums.value, sums.weight], [whole[0].value, whole[0].weight])
    assert sums.n_rows == whole[0].n_rows
    close(gradient.A_bar, whole[1].A_bar)
    close(np.concatenate(gradient.process_bars), np.concatenate(whole[1].process_bars))
    close(gradient.likelihood_bar, whole[1].likelihood_bar)


@pytest.mark.parametrize("n_threads", [2, 5, None])
def test_threads_give_the_same_as_one(three_levels, n_threads):
    basis, belief, rows = three_levels
    rows = replace(rows, block_size=4)
    look = ValuePass(View(basis, belief), rows.likelihood.theta)
    one, many = rows.reduce(look), replace(rows, n_threads=n_threads).reduce(look)
    np.testing.assert_array_equal(one.gram, many.gram)
    np.testing.assert_array_equal(one.linear, many.linear)
    assert one.value == many.value


def test_an_error_in_a_block_comes_through():
    rows = make_rows(autoregressive(RBF(), 1), block_size=5, n_threads=2)

    def fail(points, likelihood):
        raise ZeroDivisionError("in a block")

    with pytest.raises(ZeroDivisionError, match="in a block"):
        rows.reduce(fail)


def test_passes_can_be_sent_to_other_processes(three_levels):
    basis, belief, rows = three_levels
    theta = rows.likelihood.theta
    passes = ValuePass(View(basis, belief), theta), GradientPass(GradientView(basis, belief), theta)
    again = [pickle.loads(pickle.dumps(p))(rows.points, rows.likelihood) for p in passes]
    np.testing.assert_array_equal(again[0].gram, passes[0](rows.points, rows.likelihood).gram)
    np.testing.assert_array_equal(again[1].A_bar, passes[1](rows.points, rows.likelihood).A_bar)


def test_rows_that_are_none_are_refused():
    with pytest.raises(ValueError, match="at least one row"):
        MemoryRows(Points(np.empty((0, 2)), np.empty(0, int)), Logit(np.empty(0), np.empty(0)))
    rows = make_rows(autoregressive(RBF(), 1))
    with pytest.raises(ValueError, match="block_size must be at least 1, got 0"):
        replace(rows, block_size=0)


def test_a_level_may_see_noise_alone():
    prior = Autoregressive((White(0.5), 1.5 * RBF(1.1)), (0.8,))
    rows = make_rows(prior)
    evidence = tight(prior, rows, Inducing((np.empty((0, 3)), rows.points.x[:6])))
    assert_gradient_along_a_direction(evidence)
    _, fixed = evidence.fixed(evidence.theta)
    posterior = SparsePosterior(prior, evidence.inducing, fixed.belief)
    low = rows.points.level == 0
    mean, variance = posterior.mean_and_variance(rows.points)
    assert (mean[low] == 0.0).all()
    np.testing.assert_allclose(variance[low], 0.5)


def test_no_inducing_points_at_all_are_refused():
    with pytest.raises(ValueError, match="at least one point"):
        Basis(autoregressive(White(), 1), Inducing((np.empty((0, 3)),)))


def test_inducing_points_go_with_processes():
    with pytest.raises(ValueError, match="one set of points per process, 2 in all; got 1"):
        Basis(autoregressive(RBF(), 2), Inducing((np.zeros((1, 3)),)))


# -------------------------------------------------------------------------------- the bound


@every_prior
def test_the_bound_rises_with_inducing_points_and_stays_below_the_exact_one(make_prior):
    prior = make_prior(1.5 * Matern32(1.1))
    rows = make_rows(prior)
    inducing = rows_that_see(rows.points, prior)
    bounds = []
    for count in (1, 2, 4, 8, 16):
        evidence = tight(prior, rows, some(inducing, count))
        bounds.append(converged(evidence(evidence.theta, gradient=False)).value)
    assert (np.diff(bounds) > 0.0).all()
    assert bounds[-1] < exact_of(prior, rows)(prior.theta).value


def test_no_pass_that_is_kept_lowers_the_bound():
    # Certain labels and a large scale: whole steps overshoot.
    points = Points(np.linspace(-3.0, 3.0, 200)[:, None], np.zeros(200, dtype=int))
    rows = MemoryRows(points, Logit(np.sign(np.sin(3.0 * points.x[:, 0]) + 0.1), np.ones(200)))
    prior = Autoregressive((3000.0 * RBF(0.5),))
    evidence = SparseEvidence(prior, rows, Inducing((points.x[::10],)), tol=1e-6, max_iter=300)
    _, fixed = evidence.fixed(evidence.theta)
    assert fixed.report.converged
    assert fixed.report.n_iter == len(fixed.report.bounds)
    assert fixed.bound == pytest.approx(max(fixed.report.bounds), rel=1e-11)
    assert (np.diff(fixed.report.bounds) < 0.0).any()  # some steps had to be undone


def test_passes_that_are_not_enough_are_reported():
    prior = autoregressive(1.5 * RBF(1.1), 2)
    rows = make_rows(prior)
    inducing = rows_that_see(rows.points, prior)
    evidence = SparseEvidence(prior, rows, inducing, tol=1e-10, max_iter=2)
    report = evidence(evidence.theta).report
    assert not report.converged
    assert report.n_iter == 2
    assert "2 passes were not enough" in str(report)


def test_a_warm_start_saves_passes_and_changes_nothing():
    prior = autoregressive(1.5 * RBF(1.1), 2)
    rows = make_rows(prior)
    evidence = tight(prior, rows, some(rows_that_see(rows.points, prior), 6))
    cold = evidence(evidence.theta)
    warm = evidence(evidence.theta)
    assert warm.report.n_iter == 1 < cold.report.n_iter
    assert warm.value == pytest.approx(cold.value, rel=IDENTITY)


def test_tuning_climbs_the_bound():
    prior = autoregressive(1.5 * RBF(1.1), 2)
    rows = make_rows(prior, n=60)
    evidence = SparseEvidence(prior, rows, some(rows_that_see(rows.points, prior), 12), tol=1e-6)
    flat = HyperPrior.independent(evidence.theta, np.ones(len(evidence.theta)))
    optimum = maximise(evidence, flat, [evidence.theta], max_iter=50)
    assert optimum.converged
    assert optimum.objective > evidence(evidence.theta).value + 0.1


# ------------------------------------------------------------------------------- identities


def bound_of(prior, points, likelihood, inducing):
    evidence = tight(prior, MemoryRows(points, likelihood, n_threads=1), inducing)
    return converged(evidence(evidence.theta))


def test_weight_two_is_a_row_twice():
    prior = autoregressive(1.5 * RBF(1.1), 2)
    points = make_points(20, 2)
    y = make_labels(points)
    inducing = some(rows_that_see(points, prior), 6)
    twice = np.repeat(np.arange(20), np.resize([1, 2], 20))
    weighted = bound_of(prior, points, Logit(y, np.resize([1.0, 2.0], 20)), inducing)
    repeated = bound_of(
        prior,
        Points(points.x[twice], points.level[twice]),
        Logit(y[twice], np.ones(len(twice))),
        inducing,
    )
    assert weighted.value == pytest.approx(repeated.value, rel=IDENTITY)
    np.testing.assert_allclose(weighted.gradient, repeated.gradient, rtol=1e-8, atol=1e-8)


def test_swapped_labels_swap_the_posterior():
    prior = autoregressive(1.5 * RBF(1.1), 2)
    points = make_points(20, 2)
    y = make_labels(points)
    inducing = some(rows_that_see(points, prior), 6)
    found = []
    for labels in (y, -y):
        rows = MemoryRows(points, Logit(labels, np.ones(20)), n_threads=1)
        _, fixed = (evidence := tight(prior, rows, inducing)).fixed(evidence.theta)
        posterior = SparsePosterior(prior, inducing, fixed.belief)
        found.append((fixed.bound, *posterior.mean_and_variance(points)))
    (bound, mean, variance), (other_bound, other_mean, other_variance) = found
    assert bound == pytest.approx(other_bound, rel=IDENTITY)
    np.testing.assert_allclose(mean, -other_mean, atol=1e-9)
    np.testing.assert_allclose(variance, other_variance, atol=1e-9)


def test_one_class_only():
    prior = autoregressive(1.5 * RBF(1.1), 2)
    points = make_points(20, 2)
    inducing = rows_that_see(points, prior)
    rows = MemoryRows(points, Logit(np.ones(20), np.ones(20)), n_threads=1)
    _, fixed = (evidence := tight(prior, rows, inducing)).fixed(evidence.theta)
    assert fixed.report.converged
    posterior = SparsePosterior(prior, inducing, fixed.belief)
    top = Points(points.x[points.level == 0], np.zeros((points.level == 0).sum(), dtype=int))
    assert (posterior.mean(top) > 0.0).all()


def test_a_process_that_no_row_sees_keeps_its_prior():
    prior = Autoregressive((1.5 * RBF(1.1), 0.5 * RBF(0.7)), (0.8,))
    points = Points(make_points(20, 1).x, np.zeros(20, dtype=int))
    likelihood = Logit(make_labels(points), np.ones(20))
    with_points = Inducing((points.x[:8], points.x[:3]))
    without = Inducing((points.x[:8], np.empty((0, 3))))
    for inducing in (with_points, without):
        rows = MemoryRows(points, likelihood, n_threads=1)
        value = bound_of(prior, points, likelihood, inducing)
        _, fixed = (evidence := tight(prior, rows, inducing)).fixed(evidence.theta)
        posterior = SparsePosterior(prior, inducing, fixed.belief)
        new = Points(points.x, np.ones(20, dtype=int))
        low_mean, low_variance = posterior.mean_and_variance(points)
        mean, variance = posterior.mean_and_variance(new)
        np.testing.assert_allclose(mean, 0.8 * low_mean, atol=1e-9)
        np.testing.assert_allclose(variance, 0.64 * low_variance + 0.5, atol=1e-9)
        np.testing.assert_allclose(value.gradient[-2:], 0.0, atol=1e-12)
    # The bound is that of the levels that are there.
    single = Inducing((points.x[:8],))
    alone = bound_of(Autoregressive((1.5 * RBF(1.1),)), points, likelihood, single)
    assert value.value == pytest.approx(alone.value, rel=IDENTITY)


# ------------------------------------------------------------------------------- predictions


@pytest.fixture
def posterior(three_levels):
    basis, belief, _ = three_levels
    return SparsePosterior(basis.prior, basis.inducing, belief)


def test_the_ways_to_predict_agree(posterior):
    new = make_points(11, 3, seed=7)
    mean, variance = posterior.mean_and_variance(new)
    joint_mean, covariance = posterior.mean_and_covariance(new)
    np.testing.assert_allclose(posterior.mean(new), mean, rtol=IDENTITY, atol=IDENTITY)
    np.testing.assert_allclose(joint_mean, mean, atol=1e-9)
    np.testing.assert_allclose(np.diag(covariance), variance, atol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


def test_samples_have_the_moments_of_the_posterior(posterior):
    new = make_points(4, 3, seed=7)
    mean, covariance = posterior.mean_and_covariance(new)
    samples = posterior.sample(new, 40_000, np.random.RandomState(0))
    assert samples.shape == (4, 40_000)
    np.testing.assert_allclose(samples.mean(axis=1), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(samples), covariance, atol=0.1)


def test_batches_of_a_prediction_do_not_matter(posterior, monkeypatch):
    new = make_points(300, 3, seed=7)
    whole = posterior.mean_and_variance(new)
    monkeypatch.setattr(inducing_module, "PIECE_ELEMENTS", 1)
    for a, b in zip(whole, posterior.mean_and_variance(new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_no_points_no_predictions(posterior):
    nothing = Points(np.empty((0, 3)), np.empty(0, dtype=np.intp))
    assert [a.shape for a in posterior.mean_and_variance(nothing)] == [(0,), (0,)]
