"""The Occam factor: exact for a Gaussian evidence, and near the integral of a real one."""

import numpy as np
import pytest
from scipy.integrate import simpson
from tolerances import IDENTITY

from polyfid.inference import SCHEMES
from polyfid.kernels import RBF, Constant
from polyfid.learning import occam
from polyfid.learning.climb import make_hyperprior, maximise
from polyfid.learning.evidence import Evidence
from polyfid.learning.occam import N_EXACT, log_occam
from polyfid.model.likelihoods import Logit
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points


def any_matrix(p, seed, rank=None):
    """A symmetric matrix with no negative eigenvalues, (p, p)."""
    A = np.random.default_rng(seed).normal(size=(p, p if rank is None else rank))
    return A @ A.T


def exact(A, precision):
    """-1/2 log|P^-1 H| with H = P + A."""
    return -0.5 * (np.linalg.slogdet(precision + A)[1] - np.linalg.slogdet(precision)[1])


def occam_of(A, precision, rng=0):
    """The Occam factor of log Z = -1/2 t^T A t, off its top."""
    theta = np.linspace(-1.0, 1.0, len(A))
    return log_occam(lambda t: -A @ t, precision, theta, np.random.RandomState(rng))


# Few parameters: all second derivatives


@pytest.mark.parametrize("p", [1, 2, 5, N_EXACT])
@pytest.mark.parametrize("correlated", [False, True])
def test_quadratic(p, correlated):
    A = any_matrix(p, seed=p)
    precision = any_matrix(p, seed=99) + np.eye(p) if correlated else np.diag(np.arange(1.0, p + 1))
    assert occam_of(A, precision) == pytest.approx(exact(A, precision), abs=1e-7)


def test_nothing_learnt_costs_nothing():
    for p in (0, 1, N_EXACT, N_EXACT + 1, 60):
        precision = any_matrix(p, seed=1) + np.eye(p)
        assert occam_of(np.zeros((p, p)), precision) == pytest.approx(0.0, abs=IDENTITY)


def test_off_the_top_the_curvature_has_a_floor():
    # Where log Z curves upwards more than the hyper-prior downwards there is no Gaussian to fit.
    assert occam_of(np.array([[-5.0]]), np.eye(1)) == pytest.approx(-0.5 * np.log(occam._FLAT))
    A = np.diag([3.0, -1.0, -7.0])
    expected = -0.5 * np.log(4.0) - np.log(occam._FLAT)
    assert occam_of(A, np.eye(3)) == pytest.approx(expected)


# Many parameters: probes


@pytest.mark.parametrize("rank", [1, 4, 7])
@pytest.mark.parametrize("seed", range(5))
def test_a_few_directions_are_found_exactly(rank, seed):
    # The rest of the parameters is as the hyper-prior has it, and probes say so.
    A = 10.0 * any_matrix(60, seed=rank, rank=rank)
    precision = any_matrix(60, seed=1) / 60.0 + np.eye(60)
    assert occam_of(A, precision, rng=seed) == pytest.approx(exact(A, precision), rel=1e-4)


@pytest.mark.parametrize("p", [N_EXACT, N_EXACT + 1, 90, 150])
def test_the_error_is_below_a_third_of_a_nat(p):
    # The spectrum is one that length-scales of many columns were observed to have.
    values = np.concatenate([[60.0, 15.0, 12.0], 10.0 / np.arange(1.0, p - 2.0)])
    Q, _ = np.linalg.qr(np.random.default_rng(p).normal(size=(p, p)))
    A, precision, calls = (Q * values) @ Q.T, np.eye(p), []

    def gradient(theta):
        calls.append(theta)
        return -A @ theta

    errors = [
        log_occam(gradient, precision, np.zeros(p), np.random.RandomState(seed))
        - exact(A, precision)
        for seed in range(15)
    ]
    assert np.sqrt(np.mean(np.square(errors))) < 0.3
    assert len(set(errors)) == (1 if p <= N_EXACT else 15)  # probes follow the random state
    assert len(calls) / 15 <= p + 25


# Real evidences


def make_evidence(kernels, rho=()):
    """An evidence, the hyper-prior, and the optimum of their product."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (45, 1))
    y = np.where(np.sin(2.0 * x[:, 0]) + 0.4 * rng.normal(size=45) > 0.0, 1.0, -1.0)
    points = Points(x, np.repeat([0, len(rho)], [30, 15]))
    likelihood = Logit(y, np.ones(45))
    prior = Autoregressive(kernels, rho)
    evidence = Evidence(prior, likelihood, points, SCHEMES["laplace"])
    hyperprior = make_hyperprior(prior, likelihood, points, weak=True)
    return evidence, hyperprior, maximise(evidence, hyperprior, [evidence.theta]).theta


def occam_at(evidence, hyperprior, theta):
    rng = np.random.RandomState(0)
    return log_occam(lambda t: evidence(t).gradient, hyperprior.precision, theta, rng)


def test_of_an_evidence():
    evidence, hyperprior, theta = make_evidence((2.0 * RBF(1.0), 0.5 * RBF(1.0)), (0.7,))
    steps = 0.02 * np.eye(len(theta))
    H = hyperprior.precision.copy()
    for i, j in np.ndindex(*H.shape):  # second differences of the values
        for s, t in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            corner = evidence(theta + s * steps[i] + t * steps[j], False).value
            H[i, j] -= s * t * corner / (4.0 * 0.02**2)
    assert np.linalg.eigvalsh(H).min() > 0.1
    expected = exact(H - hyperprior.precision, hyperprior.precision)
    assert expected < -0.5  # the data say something
    assert occam_at(evidence, hyperprior, theta) == pytest.approx(expected, abs=0.01)


def test_an_integral_over_the_hyper_prior():
    # The evidence with hyper-parameters integrated out, by brute force over two of them.
    evidence, hyperprior, best = make_evidence((Constant(2.0) * RBF(1.0),))
    mean, sd = hyperprior.mean, hyperprior.sd
    first, second = np.linspace(mean - 5.0 * sd, mean + 5.0 * sd, 31).T
    grid = [[np.array([a, b]) for b in second] for a in first]
    log_density = np.array([[evidence(t, False).value + hyperprior(t)[0] for t in g] for g in grid])
    top = log_density.max()
    inner = simpson(simpson(np.exp(log_density - top), x=second), x=first)
    integral = top + np.log(inner / (2.0 * np.pi * sd.prod()))
    value = evidence(best, False).value + hyperprior(best)[0]
    assert value - integral > 0.5  # without the price it is too much
    price = occam_at(evidence, hyperprior, best)
    assert value + price == pytest.approx(integral, abs=0.2)
