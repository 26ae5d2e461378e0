"""The loop of inference: it ends at the fixed point, says so, and never at NaN."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit
from tolerances import IDENTITY

from polyfid.inference import EP, SCHEMES, Laplace, run
from polyfid.inference.aims import newton, settle
from polyfid.inference.exact import ExactCovariance, Sites
from polyfid.inference.linalg import Diverged
from polyfid.inference.loop import iterate
from polyfid.inference.schemes import ExactProblem
from polyfid.kernels import RBF, Constant, Linear
from polyfid.learning.evidence import Evidence
from polyfid.model.likelihoods import Logit, NoisyLogit
from polyfid.model.logistic import expected_sigmoid
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

schemes = pytest.mark.parametrize("scheme", SCHEMES)


def two_levels(scale=1.0, length=1.0, rho=1.0):
    return Autoregressive((scale * RBF(length), 0.5 * scale * RBF(length)), (rho,))


def make(x, y, weight=None, prior=None, level=None):
    """A covariance and a likelihood of rows, half of them at each level."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    level = np.sort(np.arange(len(y)) % 2) if level is None else level
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    prior = two_levels() if prior is None else prior
    return ExactCovariance(prior, Points(x, level), gradient=True), Logit(y, weight)


def typical(n=30, seed=0, **kwargs):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-2.0, 2.0, (n, 2))
    truth = np.sin(2.0 * x[:, 0]) + x[:, 1]
    y = np.where(rng.uniform(size=n) < expit(2.0 * truth), 1.0, -1.0)
    return make(x, y, **kwargs)


# ---------------------------------------------------------------------------- the fixed point


def dense(covariance, sites):
    """Mean and covariance of N(z | 0, K) exp(nu z - w z^2 / 2), plainly."""
    K = np.triu(covariance.K) + np.triu(covariance.K, 1).T
    inverse = np.linalg.inv(np.eye(len(K)) + sites.w[:, None] * K)
    return K @ inverse @ sites.nu, K - K @ (inverse * sites.w) @ K


@schemes
def test_sites_are_those_that_their_own_marginals_call_for(scheme):
    covariance, likelihood = typical(weight=np.resize([1.0, 2.0, 0.5], 30))
    fixed = run(SCHEMES[scheme], covariance, likelihood, tol=1e-10, max_iter=500)
    assert fixed.report.converged
    mean, joint = dense(covariance, fixed.belief.sites)
    variance = np.diag(joint)
    w, nu = fixed.belief.sites.w, fixed.belief.sites.nu
    np.testing.assert_allclose(fixed.belief.mean, mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(fixed.belief.variance, variance, rtol=1e-9)
    if scheme == "laplace":
        _, first, second, _ = likelihood.derivatives(mean)
        target = Sites(-second, first - second * mean)
    elif scheme == "variational":
        _, first, second = likelihood.expectations(mean, variance)
        target = Sites(-second, first - second * mean)
    else:
        # Of c copies each is left out in turn; cavity times label has the marginal's moments.
        copies = np.maximum(likelihood.weight, 1.0)
        tau = 1.0 / variance - w / copies
        cavity_mean, cavity = (mean / variance - nu / copies) / tau, 1.0 / tau
        _, first, second = likelihood.tilted(cavity_mean, cavity)
        np.testing.assert_allclose(cavity_mean + cavity * first, mean, rtol=0.0, atol=1e-8)
        np.testing.assert_allclose(cavity + cavity**2 * second, variance, rtol=1e-8)
        return
    np.testing.assert_allclose(w, target.w, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(nu, target.nu, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("scale", [0.1, 4.0, 100.0])
def test_one_row_by_quadrature(scale):
    prior = Autoregressive((Constant(scale),))
    problem = make([[0.0]], [1.0], None, prior, level=np.zeros(1, dtype=int))
    sd = np.sqrt(scale)

    def moment(k):
        def integrand(f):
            return f**k * np.exp(-0.5 * f * f / scale + log_expit(f))

        value = quad(integrand, -12.0 * sd, 12.0 * sd, points=[0.0], epsabs=0.0, epsrel=1e-12)[0]
        return value / np.sqrt(2.0 * np.pi * scale)

    z, mean = moment(0), moment(1) / moment(0)
    ep = run(SCHEMES["ep"], *problem, tol=1e-10, max_iter=500)  # exact for one site
    assert ep.log_z == pytest.approx(np.log(z), abs=1e-9)
    assert ep.belief.mean[0] == pytest.approx(mean, abs=1e-7)
    assert ep.belief.variance[0] == pytest.approx(moment(2) / z - mean**2, rel=1e-7)
    assert np.log(z) - 0.25 <= run(SCHEMES["variational"], *problem).log_z <= np.log(z) + 1e-10
    # Laplace's mode is the root of f = K l'(f).
    laplace = run(SCHEMES["laplace"], *problem)
    mode = laplace.belief.mean[0]
    assert mode == pytest.approx(scale * expit(-mode), rel=1e-6)
    w = expit(mode) * expit(-mode)
    expected = log_expit(mode) - 0.5 * mode**2 / scale - 0.5 * np.log1p(scale * w)
    assert laplace.log_z == pytest.approx(expected, abs=1e-8)


# ------------------------------------------------------------------------------------ never NaN


def hard_problems():
    rng = np.random.RandomState(3)
    pairs = np.repeat(rng.uniform(-1.0, 1.0, (6, 2)), 2, axis=0)
    line = np.linspace(-1.0, 1.0, 16)[:, None] * [1.0, 0.5]
    cloud, labels = rng.uniform(-1.0, 1.0, (12, 2)), rng.choice([-1.0, 1.0], 12)
    return {
        "opposite labels on the same rows": (pairs, np.tile([1.0, -1.0], 6), None),
        "opposite heavy labels": (pairs, np.tile([1.0, -1.0], 6), np.full(12, 1e3)),
        "separable": (line, np.sign(line[:, 0]), None),
        "one class": (cloud, np.ones(12), None),
        "one row": (np.zeros((1, 2)), np.ones(1), None),
        "all rows at one point": (np.zeros((12, 2)), labels, None),
        "heavy": (cloud, labels, np.resize([1e3, 1.0], 12)),
        "light": (cloud, labels, np.full(12, 1e-3)),
        "far apart": (1e8 * cloud, labels, None),
    }


HARD = hard_problems()


def assert_sound(scheme, prior, points, likelihood):
    """Everything finite, variances positive, and the report honest."""
    evidence = Evidence(prior, likelihood, points, SCHEMES[scheme])
    value = evidence(evidence.theta)
    _, _, fixed = evidence.fixed(evidence.theta)
    belief = fixed.belief
    for figure in (value.value, value.gradient, belief.mean, belief.variance, belief.alpha):
        assert np.isfinite(figure).all()
    assert (belief.variance > 0.0).all()
    limit = evidence.prior.diagonal(evidence.points) * (1.0 + 1e-9) + 1e-9
    assert (belief.variance <= limit).all() or scheme == "ep"
    assert np.isfinite(expected_sigmoid(belief.mean, belief.variance)).all()
    assert value.report.converged == (value.report.distance <= evidence.tol)
    assert value.value <= 1e-9  # the probability of labels is at most one
    return value


CHANNELS = [None, (0.2, 0.05), (0.0, 0.5), (0.45, 0.0)]


@pytest.mark.parametrize(
    ("scheme", "rates"),
    [(s, rates) for s in SCHEMES for rates in CHANNELS if s != "laplace" or rates is None],
)
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize("problem", HARD)
def test_hard_problems(problem, scale, scheme, rates):
    covariance, likelihood = make(*HARD[problem])
    level, weight = covariance.points.level, likelihood.weight
    if rates is not None:
        weight = np.maximum(weight, 1.0) if scheme == "ep" else weight
        likelihood = NoisyLogit.from_flip_rates(likelihood.y, weight, level, rates)
    value = assert_sound(scheme, two_levels(scale), covariance.points, likelihood)
    if scheme == "laplace" or (scale <= 1.0 and (rates is None or weight.max() == 1.0)):
        assert value.report.converged, str(value.report)
    if scale == 1e-8 and rates is None:  # nothing moves: every label has probability one half
        assert value.value == pytest.approx(weight.sum() * np.log(0.5), rel=1e-3)


SINGULAR = [100.0 * Linear(1.0), 100.0 * RBF(1e6), Constant(25.0)]
EXTREME = [
    *(Autoregressive((kernel, kernel), (1.0,)) for kernel in SINGULAR),
    *(two_levels(rho=rho) for rho in (0.0, -1.0, 1e3)),
]


@schemes
@pytest.mark.parametrize("prior", EXTREME)
def test_singular_kernels_and_extreme_rho(scheme, prior):
    covariance, likelihood = typical()
    assert_sound(scheme, prior, covariance.points, likelihood)


# ----------------------------------------------------------------------------------- convergence


def overshooting():
    """Labels that are explained perfectly, by a smooth function of a very large amplitude."""
    rng = np.random.RandomState(0)
    x = rng.uniform(-1.0, 1.0, (100, 2))
    y = np.sign(np.sin(4.0 * x[:, 0]) + x[:, 1])
    prior = Autoregressive((1e6 * RBF(1.0),))
    return make(x, y, None, prior, np.zeros(100, dtype=int))


@schemes
def test_too_few_steps_are_reported(scheme):
    problem = typical(prior=two_levels(10.0))
    whole = run(SCHEMES[scheme], *problem, tol=1e-8)
    short = run(SCHEMES[scheme], *problem, max_iter=1)
    assert str(whole.report).startswith(f"converged after {whole.report.n_iter} steps")
    assert str(short.report).startswith("not converged: out of steps after 1 steps")
    assert np.isfinite(short.log_z)
    assert abs(short.log_z - whole.log_z) > 1e-6


PROBLEMS = {
    "typical": typical,
    "large": lambda: typical(prior=two_levels(1e3)),
    "overshooting": overshooting,
}


@pytest.mark.parametrize("scheme", ["laplace", "variational"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_merit_rises(scheme, problem):
    told = []
    loop = ExactProblem(SCHEMES[scheme], *PROBLEMS[problem]())
    iterate(loop, 1e-8, 300, lambda state, report: told.append((state.merit, report)))
    merits = np.array([merit for merit, _ in told])
    assert (np.diff(merits) >= -1e-9 * np.abs(merits[:-1])).all()
    assert merits[-1] > merits[0] + 0.1
    tried = told[-1][1].bounds
    assert told[-1][1].converged or scheme != "laplace"  # undamped Newton steps do not
    if problem == "overshooting":  # some steps lowered it, and were not taken
        assert min(tried[1:]) < merits[0] or (np.diff(tried) < -1e-6).any()


@schemes
@pytest.mark.parametrize("max_iter", [1, 3, 6, 500])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_distance_is_that_of_the_state_returned(scheme, max_iter, problem):
    covariance, likelihood = PROBLEMS[problem]()
    scheme = SCHEMES[scheme]
    fixed = run(scheme, covariance, likelihood, max_iter=max_iter)
    belief = fixed.belief
    target = scheme.sites(belief, scheme.ask(belief, likelihood))
    gap = belief.whitened(target.w - belief.sites.w, target.nu - belief.sites.nu)
    assert fixed.report.distance == pytest.approx(np.abs(gap).max(), rel=1e-6, abs=1e-12)
    assert fixed.report.converged == (fixed.report.distance <= 1e-6)
    if not fixed.report.converged and scheme.has_objective:
        assert scheme.merit(belief, fixed.labels) >= fixed.report.bounds[0]


@pytest.mark.parametrize(
    ("scheme", "scale", "before"),
    [("variational", 1e3, 354), ("variational", 30.0, 77), ("ep", 1e3, 734)],
)
def test_extrapolation_takes_a_fraction_of_the_steps(scheme, scale, before, monkeypatch):
    monkeypatch.setattr(ExactProblem, "aims", lambda self, now: iter(()))
    monkeypatch.setattr(EP, "guide", None)
    weight = np.resize([1.0, 30.0], 60)
    problem = typical(60, 1, weight=weight, prior=two_levels(scale))
    fixed = run(SCHEMES[scheme], *problem, max_iter=1000)
    assert fixed.report.converged
    assert fixed.report.n_iter < 0.4 * before
    monkeypatch.setattr(type(SCHEMES[scheme]), "memory", 0)
    plain = run(SCHEMES[scheme], *problem, max_iter=1000)
    assert plain.report.n_iter > 1.5 * fixed.report.n_iter
    if plain.report.converged:
        assert fixed.log_z == pytest.approx(plain.log_z, abs=1e-6)


def hard(scheme, scale, length, weight, rates=None, n=60):
    """Labels with some errors, and weights and a latent function that are very large."""
    rng = np.random.RandomState(0)
    x = rng.uniform(-2.0, 2.0, (n, 2))
    y = np.where(np.sin(2.0 * x[:, 0]) + x[:, 1] > rng.standard_normal(n), 1.0, -1.0)
    prior, level = two_levels(scale, length), np.sort(np.arange(n) % 2)
    covariance, likelihood = make(x, y, np.full(n, weight), prior, level)
    if rates is not None:
        likelihood = NoisyLogit.from_flip_rates(y, likelihood.weight, level, rates)
    return SCHEMES[scheme], covariance, likelihood


@pytest.mark.parametrize(
    "setting",
    [
        ("variational", 1e4, 0.1, 1e3),
        ("variational", 1e4, 1.0, 1e3),
        ("variational", 1e4, 30.0, 1.0, (0.2, 0.05)),
        ("ep", 1e4, 0.1, 1e3),
        ("ep", 1e4, 1.0, 1e3),
        ("ep", 1e2, 30.0, 30.0, (0.2, 0.05)),
    ],
)
def test_hard_settings_converge(setting):
    scheme, covariance, likelihood = hard(*setting)
    fixed = run(scheme, covariance, likelihood)
    assert fixed.report.converged, str(fixed.report)
    assert fixed.report.n_iter <= 100
    # A fixed point of the scheme itself, whatever the way to it.
    belief = fixed.belief
    target = scheme.sites(belief, scheme.ask(belief, likelihood))
    gap = belief.whitened(target.w - belief.sites.w, target.nu - belief.sites.nu)
    assert np.abs(gap).max() <= 1e-6


@pytest.mark.parametrize("scheme", ["ep", "variational"])
def test_rows_that_have_settled_stay_where_they_are(scheme):
    scheme, covariance, likelihood = hard(scheme, 10.0, 1.0, 3.0)
    belief = run(scheme, covariance, likelihood, tol=1e-10).belief

    def ask(rows, labels):
        return scheme.sites(rows, scheme.ask(rows, labels))

    for sites in (settle(ask, likelihood, belief), newton(ask, likelihood, belief)):
        gap = belief.whitened(sites.w - belief.sites.w, sites.nu - belief.sites.nu)
        assert np.abs(gap).max() < 1e-8


@pytest.mark.parametrize("scheme", ["ep", "variational"])
def test_rows_far_apart_settle_at_once(scheme):
    problem = ExactProblem(*hard(scheme, 10.0, 1e-4, 3.0))
    state = problem.begin()
    settled, target = (next(problem.reach(aim, state)) for aim in problem.aims(state))
    assert settled.distance < 1e-2 < 0.3 < target.distance


@pytest.mark.parametrize("rates", [None, (0.2, 0.05)])
@pytest.mark.parametrize("scheme", ["ep", "variational"])
def test_newtons_method_squares_the_distance(scheme, rates):
    scheme, covariance, likelihood = hard(scheme, 10.0, 1.0, 3.0, rates)
    near = run(scheme, covariance, likelihood, tol=1e-2).belief
    sites = newton(
        lambda rows, labels: scheme.sites(rows, scheme.ask(rows, labels)), likelihood, near
    )
    problem = ExactProblem(scheme, covariance, likelihood, near)
    state = problem.begin()
    (new,) = problem.reach((sites.w, sites.nu), state)
    assert new.distance < max(5.0 * state.distance**2, 1e-9)


@pytest.mark.parametrize("negative", [False, True])
def test_posterior_covariance(negative):
    covariance, _ = typical(prior=two_levels(2.0))
    w = np.resize([0.5, 1e-9, 2.0, 0.0], 30)
    w[4::8] = -1e-2 if negative else 0.3
    sites = Sites(w, np.ones(30))
    belief = covariance.condition(sites, covariance.prior_belief(), inverted=True)
    np.testing.assert_allclose(belief.joint, dense(covariance, sites)[1], rtol=0.0, atol=1e-10)


def test_an_impossible_evidence_is_refused_unless_converged():
    class Wild(EP):
        def constants(self, belief, labels):
            return 3e13

    covariance, likelihood = typical(prior=two_levels(10.0))
    with pytest.raises(
        Diverged, match=r"out of steps after 1 steps.*log evidence of 3e\+13.*varia"
    ):
        run(Wild(), covariance, likelihood, max_iter=1)
    assert run(Wild(), covariance, likelihood).report.converged


# ------------------------------------------------------------------------------------ warm starts


@schemes
@pytest.mark.parametrize("near", ["near", "far", "opposite labels"])
def test_warm_and_cold_starts_agree(scheme, near):
    covariance, likelihood = typical(prior=two_levels(4.0))
    other = two_levels(1e3, 0.1, -5.0) if near == "far" else two_levels(4.4, 1.05, 0.9)
    options = {"tol": 1e-10, "max_iter": 1000}
    labels = Logit(-likelihood.y, likelihood.weight) if near == "opposite labels" else likelihood
    start = run(SCHEMES[scheme], ExactCovariance(other, covariance.points), labels)
    cold = run(SCHEMES[scheme], covariance, likelihood, **options)
    warm = run(SCHEMES[scheme], covariance, likelihood, start.belief.start(), **options)
    assert warm.report.converged, str(warm.report)
    assert warm.log_z == pytest.approx(cold.log_z, rel=IDENTITY)
    np.testing.assert_allclose(warm.belief.mean, cold.belief.mean, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(warm.belief.variance, cold.belief.variance, rtol=1e-8)
    if near == "near":
        assert warm.report.n_iter <= cold.report.n_iter


def test_ep_goes_on_from_its_last_posterior():
    """Also where, by the distance to the next state, the prior looks nearer."""
    rng = np.random.RandomState(2)
    x, level, one = rng.uniform(-2.0, 2.0, (80, 2)), np.zeros(80, dtype=int), np.ones(80)
    right = np.sin(2.0 * x[:, 0]) + x[:, 1] > 0.0
    y = np.where(right ^ (rng.uniform(size=80) < 0.25), 1.0, -1.0)
    likelihood = NoisyLogit.from_flip_rates(y, one, level, [0.25])

    def at(amplitude, start=None):
        covariance = ExactCovariance(Autoregressive((amplitude * RBF(),)), Points(x, level))
        return run(SCHEMES["ep"], covariance, likelihood, start)

    cold, warm = at(60.0), at(60.0, at(20.0).belief.start())
    assert warm.report.n_iter < 0.8 * cold.report.n_iter
    assert warm.log_z == pytest.approx(cold.log_z, rel=IDENTITY)


def test_a_start_that_leads_nowhere_is_given_up():
    rng = np.random.RandomState(0)
    x, level, one = rng.standard_normal((60, 2)), np.zeros(60, dtype=int), np.ones(60)
    y = np.where(np.sin(2.0 * x[:, 0]) > 0.0, 1.0, -1.0)
    covariance = ExactCovariance(Autoregressive((100.0 * RBF(),)), Points(x, level))
    far = run(Laplace(), covariance, Logit(-y, 1000.0 * one)).belief.start()
    cold = run(EP(), covariance, Logit(y, one), max_iter=20)
    warm = run(EP(), covariance, Logit(y, one), far, max_iter=20)
    assert cold.report.converged
    assert warm.report.converged
    assert warm.log_z == pytest.approx(cold.log_z, rel=IDENTITY)


def test_the_cheap_steps_are_taken_and_change_nothing(monkeypatch):
    # Laplace near a factor at hand: conjugate gradients instead of a factorisation.
    covariance, likelihood = typical(60, prior=two_levels(4.0))
    other = ExactCovariance(two_levels(4.2), covariance.points)
    start = run(Laplace(), other, likelihood)
    taken = []
    original = ExactCovariance.condition_near

    def watched(self, *args):
        belief = original(self, *args)
        taken.append(belief is not None)
        return belief

    monkeypatch.setattr(ExactCovariance, "condition_near", watched)
    cheap = run(Laplace(), covariance, likelihood, start.belief.start(), tol=1e-9)
    assert any(taken)
    monkeypatch.setattr(ExactCovariance, "condition_near", lambda *args: None)
    plain = run(Laplace(), covariance, likelihood, start.belief.start(), tol=1e-9)
    assert cheap.log_z == pytest.approx(plain.log_z, rel=IDENTITY)
    np.testing.assert_allclose(cheap.belief.mean, plain.belief.mean, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("scheme", ["ep", "variational"])
def test_weak_sites_keep_their_variance(scheme):
    # v_i = (1 - [B^-1]_ii) / w_i has no digits left where w_i is tiny.
    covariance, _ = typical(prior=two_levels(2.0))
    likelihood = Logit(np.ones(30), np.resize([1e-14, 1.0], 30))
    fixed = run(SCHEMES[scheme], covariance, likelihood, tol=1e-9)
    _, joint = dense(covariance, fixed.belief.sites)
    np.testing.assert_allclose(fixed.belief.variance, np.diag(joint), rtol=1e-9)
