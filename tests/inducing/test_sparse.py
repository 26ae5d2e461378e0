"""Inference through inducing points: equal to the exact one where it must be, a bound elsewhere."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from families import (
    NOISY,
    PRIORS,
    SMOOTH,
    assert_gradient_along_a_direction,
    contradicted_rows,
    converged,
    every_kernel,
    every_prior,
    inducing_at_rows,
    make_labels,
    make_points,
    make_rows,
    value_of,
)
from tolerances import IDENTITY

from polyfid.inference import SCHEMES
from polyfid.inference import inducing as inducing_module
from polyfid.inference import passes as passes_module
from polyfid.inference.inducing import Basis, Inducing, SparseBelief
from polyfid.inference.passes import GradientPass, SumsPass
from polyfid.inference.posterior import Posterior, SparsePosterior
from polyfid.kernels import RBF, Matern32, White
from polyfid.learning.evidence import Evidence, MovableEvidence, SparseEvidence
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points
from polyfid.rows.source import LabelledPoints

# Inducing points have a jitter of 1e-12 of their variance.
SAME = 1e-8
TWO_LEVELS = PRIORS["two levels"](1.5 * RBF(1.1))
FREE_LABELS = ["logit", "flip rates free", "sensitivity free"]
every_likelihood = pytest.mark.parametrize("likelihood", FREE_LABELS)


def tight(prior, rows, inducing, kind=SparseEvidence):
    return kind(prior, rows, inducing, tol=1e-10, max_iter=300)


def exact_of(prior, rows):
    scheme = SCHEMES["variational"]
    return Evidence(prior, rows.likelihood, rows.points, scheme, tol=1e-11, max_iter=500)


def posterior_of(evidence):
    _, fixed = evidence.fixed(evidence.theta)
    assert fixed.report.converged, str(fixed.report)
    return SparsePosterior(evidence.prior, evidence.inducing, fixed.belief)


def labelled(points, y):
    return LabelledPoints(points, Logit(y, np.ones(len(y))), n_threads=1)


# --------------------------------------------------------- inducing points at the data are exact


def assert_exact(prior, rows, new, tolerance=SAME):
    """Bound, gradient and predictions are those of exact inference."""
    sparse = tight(prior, rows, inducing_at_rows(rows.points, prior))
    exact = exact_of(prior, rows)
    found, expected = converged(sparse(sparse.theta)), converged(exact(exact.theta))
    assert found.value == pytest.approx(expected.value, rel=SAME)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-6, atol=1e-7)
    belief = exact.fixed(exact.theta)[2].belief
    posterior, reference = posterior_of(sparse), Posterior.from_belief(prior, rows.points, belief)
    for a, b in zip(
        (*posterior.mean_and_variance(new), *posterior.mean_and_covariance(new)),
        (*reference.mean_and_variance(new), *reference.mean_and_covariance(new)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    return belief


@every_kernel(["constant", *SMOOTH])
@every_prior
def test_points_at_the_rows_are_exact(kernel, make_prior):
    prior = make_prior(kernel)
    assert_exact(prior, make_rows(prior, block_size=7), make_points(9, prior.n_levels, seed=5))


def test_negative_sites_are_exact_too():
    prior, rows = contradicted_rows()
    assert assert_exact(prior, rows, rows.points, 1e-6).sites.w.min() < -1e-3


# ----------------------------------------------------------------------------------- gradients


@every_kernel([*SMOOTH, *NOISY])
@every_prior
def test_gradient_with_and_without_places(kernel, make_prior):
    prior = make_prior(kernel)
    rows = make_rows(prior)
    # Codes are compared for equality, and no step along them is small. Kernels of steps have a
    # kink where a point meets a row in a column.
    coded = "Categorical" in repr(kernel)
    off = np.random.RandomState(2).uniform(0.05, 0.1, (6, 4)) * [1.0, 1.0, not coded, not coded]
    near = inducing_at_rows(rows.points, prior, 6)
    inducing = Inducing(tuple(z + off[: len(z)] for z in near.z))
    plain = assert_gradient_along_a_direction(tight(prior, rows, inducing))
    movable = tight(prior, rows, inducing, MovableEvidence)
    for a, b in zip(movable.inducing_at(movable.theta).z, inducing.z, strict=True):
        np.testing.assert_array_equal(a, b)
    of_codes = [name.endswith((", 2]", ", 3]")) for name in movable.theta_names]
    still = np.array(of_codes) & coded
    moved = assert_gradient_along_a_direction(movable, ~still)
    assert moved.value == pytest.approx(plain.value, rel=IDENTITY)
    np.testing.assert_allclose(moved.gradient[: movable.n_hyper], plain.gradient, atol=1e-6)
    assert not moved.gradient[still & (np.arange(len(still)) >= movable.n_hyper)].any()


@every_likelihood
@every_prior
def test_gradient_under_every_likelihood(likelihood, make_prior):
    prior = make_prior(1.5 * RBF(1.1) + White(0.2))
    rows = make_rows(prior, likelihood)
    assert_gradient_along_a_direction(tight(prior, rows, inducing_at_rows(rows.points, prior, 6)))


@pytest.mark.parametrize("scale", [1e-3, 100.0])
def test_gradient_far_from_typical(scale):
    prior = PRIORS["two levels"](scale * RBF((1.1, 0.9, 2.0, 1.5)))
    rows = make_rows(prior)
    assert_gradient_along_a_direction(tight(prior, rows, inducing_at_rows(rows.points, prior, 8)))


# --------------------------------------------------------------------------------------- noise


@every_kernel(NOISY)
def test_noise_of_rows_is_in_their_variance_only(kernel):
    prior, smooth = Autoregressive((kernel,)), Autoregressive((1.5 * RBF(1.4),))
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
        sparse = tight(prior, rows, inducing_at_rows(rows.points, prior))
        return exact_of(prior, rows)(prior.theta).value - sparse(prior.theta).value

    assert gap(0.4) > 10.0 * gap(0.004) > 0.0


def test_a_level_may_be_noise_alone():
    prior = Autoregressive((White(0.5), 1.5 * RBF(1.1)), (0.8,))
    rows = make_rows(prior)
    evidence = tight(prior, rows, Inducing((np.empty((0, 4)), rows.points.x[:6])))
    assert_gradient_along_a_direction(evidence)
    low = rows.points.level == 0
    mean, variance = posterior_of(evidence).mean_and_variance(rows.points)
    assert (mean[low] == 0.0).all()
    np.testing.assert_allclose(variance[low], 0.5)


# ------------------------------------------------------------------------- sums, blocks, threads


@pytest.fixture
def three_levels():
    prior = PRIORS["three levels"](1.5 * RBF(1.1) + White(0.1))
    rows = make_rows(prior, "sensitivity free", n=60)
    basis = Basis(prior, inducing_at_rows(rows.points, prior, 7))
    rng = np.random.RandomState(3)
    F = rng.normal(size=(basis.inducing.total, 30))
    return basis, SparseBelief(F @ F.T, rng.normal(size=basis.inducing.total)), rows


def passes_of(basis, belief, rows):
    return [kind(basis, belief, rows.likelihood.theta) for kind in (SumsPass, GradientPass)]


def test_sums_are_those_of_plain_formulas(three_levels):
    basis, belief, rows = three_levels
    Phi, points = basis.features(rows.points), rows.points
    S, mu = belief.covariance, belief.mean
    np.testing.assert_allclose(S @ (np.eye(len(S)) + belief.gram), np.eye(len(S)), atol=1e-9)
    mean = Phi @ mu
    variance = basis.prior.diagonal(points) + np.diag(Phi @ (S - np.eye(len(S))) @ Phi.T)
    value, first, second = rows.likelihood.expectations(mean, variance)
    sums = passes_of(*three_levels)[0](points, rows.likelihood)
    np.testing.assert_allclose(sums.gram, Phi.T @ (-second[:, None] * Phi), atol=1e-9)
    np.testing.assert_allclose(sums.linear, Phi.T @ (first - second * mean), atol=1e-9)
    assert sums.value == pytest.approx(value.sum(), rel=IDENTITY)
    assert sums.n_rows == 60
    kl = 0.5 * (np.trace(S) + mu @ mu - len(mu) - np.linalg.slogdet(S)[1])
    assert belief.divergence == pytest.approx(kl, rel=IDENTITY)
    assert SparseBelief.prior(len(mu)).divergence == 0.0


@pytest.mark.parametrize("block_size", [1, 7, 59, 60, 1000])
def test_blocks_of_any_size_give_the_same_sums(three_levels, block_size, monkeypatch):
    rows, passes = three_levels[2], passes_of(*three_levels)
    # Passes can be sent to other processes.
    copies = pickle.loads(pickle.dumps(passes))
    whole = [p(rows.points, rows.likelihood) for p in copies]
    monkeypatch.setattr(passes_module, "CHUNK", 5)
    monkeypatch.setattr(inducing_module, "PIECE_ELEMENTS", 1)
    sums, gradient = (replace(rows, block_size=block_size).reduce(p) for p in passes)
    for got, expected in zip((*sums, *gradient), (*whole[0], *whole[1]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_threads", [2, 5, None])
def test_threads_give_the_same_as_one(three_levels, n_threads):
    rows, sums = replace(three_levels[2], block_size=4), passes_of(*three_levels)[0]
    one, many = rows.reduce(sums), replace(rows, n_threads=n_threads).reduce(sums)
    for got, expected in zip(many, one, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_an_error_in_a_block_comes_through():
    def fail(points, likelihood):
        raise ZeroDivisionError("in a block")

    with pytest.raises(ZeroDivisionError, match="in a block"):
        make_rows(TWO_LEVELS, block_size=5, n_threads=2).reduce(fail)


def test_rows_and_points_that_are_none_are_refused():
    nothing = Points(np.empty((0, 2)), np.empty(0, int))
    with pytest.raises(ValueError, match="at least one row"):
        labelled(nothing, np.empty(0))
    with pytest.raises(ValueError, match="n_inducing goes with"):
        Basis(PRIORS["one level"](White()), Inducing((np.empty((0, 3)),)))


# -------------------------------------------------------------------------------- the bound


@every_prior
def test_the_bound_rises_with_inducing_points_and_stays_below_the_exact_one(make_prior):
    prior = make_prior(1.5 * Matern32(1.1))
    rows = make_rows(prior)
    bounds = []
    for count in (1, 2, 4, 8, 16):
        evidence = tight(prior, rows, inducing_at_rows(rows.points, prior, count))
        bounds.append(value_of(evidence)(evidence.theta))
    assert (np.diff(bounds) > 0.0).all()
    assert bounds[-1] < exact_of(prior, rows)(prior.theta).value


def test_no_pass_that_is_kept_lowers_the_bound():
    # Certain labels and a large scale: whole steps overshoot.
    points = Points(np.linspace(-3.0, 3.0, 200)[:, None], np.zeros(200, dtype=int))
    rows = labelled(points, np.sign(np.sin(3.0 * points.x[:, 0]) + 0.1))
    prior = Autoregressive((3000.0 * RBF(0.5),))
    evidence = SparseEvidence(prior, rows, Inducing((points.x[::10],)), tol=1e-6, max_iter=300)
    told = []
    evidence.watch = lambda theta, fixed: told.append(fixed)
    _, fixed = evidence.fixed(evidence.theta)
    assert fixed.report.converged
    assert fixed.report.n_iter == len(fixed.report.bounds) - 1 == len(told) - 1
    assert fixed.bound == pytest.approx(max(fixed.report.bounds), rel=1e-11)
    assert (np.diff(fixed.report.bounds) < 0.0).any()  # some steps had to be undone
    assert (np.diff([state.bound for state in told]) >= -1e-9).all()


def test_a_warm_start_saves_passes_and_changes_nothing():
    rows = make_rows(TWO_LEVELS)
    evidence = tight(TWO_LEVELS, rows, inducing_at_rows(rows.points, TWO_LEVELS, 6))
    cold, warm = evidence(evidence.theta), evidence(evidence.theta)
    assert warm.report.n_iter == 0 < cold.report.n_iter
    assert warm.value == pytest.approx(cold.value, rel=IDENTITY)


# ------------------------------------------------------------------------------- identities


@pytest.mark.parametrize("count", [3, 0])
def test_a_process_of_a_level_without_rows_keeps_its_prior(count):
    prior = Autoregressive((1.5 * RBF(1.1), 0.5 * RBF(0.7)), (0.8,))
    points = Points(make_points(20, 1).x, np.zeros(20, dtype=int))
    rows = labelled(points, make_labels(points))
    evidence = tight(prior, rows, Inducing((points.x[:8], points.x[:count])))
    value, posterior = converged(evidence(evidence.theta)), posterior_of(evidence)
    low_mean, low_variance = posterior.mean_and_variance(points)
    mean, variance = posterior.mean_and_variance(Points(points.x, np.ones(20, dtype=int)))
    np.testing.assert_allclose(mean, 0.8 * low_mean, atol=1e-9)
    np.testing.assert_allclose(variance, 0.64 * low_variance + 0.5, atol=1e-9)
    np.testing.assert_allclose(value.gradient[-2:], 0.0, atol=1e-12)
    # The bound is that of the levels that have rows.
    alone = tight(Autoregressive(prior.kernels[:1]), rows, Inducing((points.x[:8],)))
    assert value.value == pytest.approx(alone(alone.theta).value, rel=IDENTITY)
