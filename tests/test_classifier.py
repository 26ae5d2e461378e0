"""The estimator as its users meet it: what fits, predicts, prints and travels."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from made_rows import draw, truth
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerances import GRADIENT, IDENTITY

from polyfid import MultiFidelityClassifier, TrustedKFold, TrustedShuffleSplit, stack_levels
from polyfid.kernels import RBF, Matern, White

SCHEMES = ["laplace", "ep", "variational"]
NEW = np.random.default_rng(5).uniform(-2, 2, (25, 2))
FIXED = {
    "kernel": [2.0 * RBF(1.0), 0.5 * RBF(1.5)],
    "rho": 1.3,
    "optimizer": None,
    "standardize": False,
}


def fit(data=None, weight=None, **how):
    X, y, fidelity = draw() if data is None else data
    return MultiFidelityClassifier(**how).fit(X, y, fidelity=fidelity, sample_weight=weight)


def fixed(data=None, weight=None, **how):
    return fit(data, weight, **FIXED | how)


def trusted_score(model, data):
    X, y, fidelity = data
    return model.score(X[fidelity == "lab"], y[fidelity == "lab"])


def assert_same(model, other, atol=IDENTITY, **kwargs):
    for method in ["predict_proba", "latent_mean_and_variance"]:
        np.testing.assert_allclose(
            getattr(model, method)(NEW, **kwargs),
            getattr(other, method)(NEW, **kwargs),
            rtol=0,
            atol=atol,
        )


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture(scope="module")
def small():
    """A learnt model of fewer rows."""
    return fit(draw(30, 15))


@pytest.fixture(scope="module")
def three():
    """Three classes with names, two levels."""
    X, _, fidelity = draw(30, 15)
    data = X, np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [-0.7, 0.7])], fidelity
    return data, fit(data)


@pytest.fixture(params=[False, True], ids=["plain", "routing"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


# What is learnt


def test_quality_and_attributes(model):
    T = np.random.default_rng(9).uniform(-2, 2, (500, 2))
    assert model.score(T, truth(T)) > 0.9
    assert model.classes_.tolist() == [False, True]
    assert model.levels_ == ("web", "lab")
    assert model.rho_.shape == (1,)
    assert model.rho_[0] > 0.3
    assert len(model.kernels_) == 2
    assert model.theta_.shape == (len(model.theta_names_),)
    assert model.theta_names_[0] == "rho[1]"
    assert model.theta_[0] == model.rho_[0]
    assert model.converged_
    assert model.report_.converged
    assert model.n_iter_ >= 1
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert model.report_.counts.sum() == 70


def test_the_cheap_labels_help():
    X, y, fidelity = draw(90, 12)
    trusted = fidelity == "lab"
    T = np.random.default_rng(9).uniform(-2, 2, (500, 2))
    both, alone = fit((X, y, fidelity)), fit((X[trusted], y[trusted], None))

    def loss(m):
        return -m.predict_log_proba(T)[np.arange(500), truth(T).astype(int)].mean()

    assert loss(both) < 0.7 * loss(alone)


@pytest.mark.parametrize("kernel", [FIXED["kernel"], tuple(FIXED["kernel"]), 2.0 * RBF(0.7)])
@pytest.mark.parametrize("standardize", [False, True])
def test_without_an_optimizer_all_stays_as_given(kernel, standardize):
    model = fixed(kernel=kernel, standardize=standardize)
    assert model.rho_.tolist() == [1.3]
    assert model.kernels_ == (list(kernel) if isinstance(kernel, list | tuple) else [kernel] * 2)
    assert model.converged_
    assert "as given" in str(model.report_)
    assert model.n_iter_ == 1


def test_rho_as_given():
    fixed_rho = fit(rho=0.8, rho_bounds="fixed")
    assert fixed_rho.rho_.tolist() == [0.8]
    assert "rho[1]" not in fixed_rho.theta_names_
    assert len(fixed_rho.theta_) == 6


def test_rho_bounds_hold():
    data = draw(flip=0)
    assert all(-0.2 <= s.rho[0] <= 0.2 for s in fit(data, rho_bounds=(-0.2, 0.2)).structures_)
    model = fit(data, kernel=2.0 * RBF(), rho_bounds=(-0.2, 0.2))
    assert -0.2 <= model.rho_[0] <= 0.2
    assert "at a bound: rho[1]" in str(model.report_)


def slopes(model, theta, step=1e-4):
    """The gradient of the evidence by differences."""
    ends = [
        [model.log_marginal_likelihood(theta + s * e) for s in (step, -step)]
        for e in np.eye(len(theta))
    ]
    return np.diff(ends)[:, 0] / (-2.0 * step)


def test_evidence_and_its_gradient(model):
    value, _ = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-8)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    copy = pickle.loads(pickle.dumps(model)).set_params(inference="ep")  # changes the next fit
    assert copy.log_marginal_likelihood(model.theta_) == pytest.approx(value, abs=1e-8)
    theta = model.theta_ + 0.1
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    np.testing.assert_allclose(slopes(model, theta), gradient, rtol=100 * GRADIENT, atol=1e-5)


def test_one_level_is_scikit_learns_model():
    X, y, _ = draw()
    ours = fit((X, y, None), kernel=2.0 * RBF(0.8), optimizer=None, standardize=False)
    theirs = GaussianProcessClassifier(2.0 * sk.RBF(0.8), optimizer=None).fit(X, y)
    assert ours.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood_value_)
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-3)


def test_without_fidelity_all_rows_are_at_the_top():
    X, y, _ = draw()
    model = fixed((X, y, None), levels=["web", "lab"])
    assert model.levels_ == ("web", "lab")
    assert_same(model, fixed((X, y, ["lab"] * len(y)), levels=["web", "lab"]))


def test_three_levels():
    rng = np.random.default_rng(0)
    parts = {}
    for name, n, flip in [("bot", 60, 0.3), ("crowd", 30, 0.1), ("expert", 10, 0.0)]:
        X = rng.uniform(-2, 2, (n, 2))
        parts[name] = X, truth(X) ^ (rng.uniform(size=n) < flip)
    model = fit(stack_levels(parts), max_iter=500)
    assert model.levels_ == ("bot", "crowd", "expert")
    assert model.rho_.shape == (2,)
    assert len(model.kernels_) == 3
    T = rng.uniform(-2, 2, (300, 2))
    assert model.score(T, truth(T)) > 0.85
    sure = [np.abs(model.predict_proba(T, fidelity=n)[:, 1] - 0.5).mean() for n in parts]
    assert sure[0] < sure[2]  # a noisy level is predicted as noisy
    steps = dict(model.report_.lines)["rho"].split("\n")
    assert [line.split(" =")[0] for line in steps] == ["crowd", "expert"]


def test_schemes_agree_on_an_easy_problem():
    models = {scheme: fit(inference=scheme) for scheme in SCHEMES}
    assert all(m.converged_ for m in models.values())
    proba = {scheme: m.predict_proba(NEW)[:, 1] for scheme, m in models.items()}
    np.testing.assert_allclose(proba["ep"], proba["variational"], atol=0.02)
    np.testing.assert_allclose(proba["ep"], proba["laplace"], atol=0.1)


def test_restarts_and_processes():
    data = draw(30, 12)
    plain = fit(data)
    one, two = (fit(data, n_restarts=3, random_state=0) for _ in range(2))
    assert one.theta_.tolist() == two.theta_.tolist()
    assert one._fits[0].optimum.objective > plain._fits[0].optimum.objective - 1e-3
    assert_same(plain, fit(data, n_jobs=2), atol=1e-8)


def test_the_paper():
    X, y, fidelity = draw()
    model = MultiFidelityClassifier.paper(n_restarts=2, random_state=0)
    assert model.prior is None
    assert model.n_restarts == 2
    model.fit(X, y, fidelity=fidelity)
    assert -1 <= model.rho_[0] <= 1
    for kernel in model.kernels_:
        assert 0.1 <= kernel.left.value <= 10
        assert 0.01 <= kernel.right.length_scale <= 10
    assert trusted_score(model, (X, y, fidelity)) > 0.9


def test_tuning_on_a_sample():
    data = draw(150, 20)
    sampled, again, full = (
        fit(data, kernel=2.0 * RBF(), random_state=0, n_tuning=n) for n in (60, 60, None)
    )
    assert "on 60 of 170 rows" in str(sampled.report_)
    assert "of 170 rows" not in str(full.report_)
    assert_same(sampled, again, atol=0)
    difference = sampled.predict_proba(NEW) - full.predict_proba(NEW)
    assert 0 < np.abs(difference).max() < 0.3
    # All rows are in the posterior: with the same hyper-parameters it is that of the full model.
    given = fit(data, kernel=sampled.kernels_, rho=sampled.rho_, optimizer=None)
    assert_same(sampled, given, atol=1e-8)


def test_progress_of_an_exact_fit(three):
    (X, y, fidelity), model = three
    steps = []
    MultiFidelityClassifier().fit(X, y, fidelity, callback=steps.append)
    assert [(s.stage, s.done, s.total) for s in steps] == [("classes", k, 3) for k in (1, 2, 3)]
    assert [len(s.checkpoint) for s in steps] == [1, 2, 3]
    assert np.mean([s.value for s in steps]) == model.log_marginal_likelihood_value_


# Predictions


def test_predictions_agree_with_each_other(model):
    proba = model.predict_proba(NEW)
    assert proba.shape == (25, 2)
    assert ((proba > 0) & (proba < 1)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), proba, rtol=1e-8)
    mean, variance = model.latent_mean_and_variance(NEW)
    assert mean.shape == variance.shape == (25,)
    assert (variance > 0).all()
    np.testing.assert_array_equal((mean > 0), model.predict(NEW))


def test_samples_have_the_posteriors_moments(model):
    mean, covariance = model.latent_mean_and_covariance(NEW[:5])
    samples = model.sample_latent(NEW[:5], n_samples=20_000, random_state=0)
    assert samples.shape == (5, 20_000)
    scale = np.sqrt(np.diagonal(covariance).max())
    np.testing.assert_allclose(samples.mean(axis=1), mean, atol=0.05 * scale)
    np.testing.assert_allclose(np.cov(samples), covariance, atol=0.05 * scale**2)
    again = model.sample_latent(NEW[:5], n_samples=20_000, random_state=0)
    np.testing.assert_array_equal(samples, again)


def test_predictions_at_a_level(model):
    top, low = model.predict_proba(NEW, fidelity="lab"), model.predict_proba(NEW, fidelity="web")
    np.testing.assert_array_equal(top, model.predict_proba(NEW))
    assert np.abs(top - low).max() > 0.05
    each = np.array(["lab", "web", "web", "lab", "lab"] * 5)
    mixed = np.where((each == "lab")[:, None], top, low)
    for fidelity in [each, each.tolist(), pd.Series(each), pd.Categorical(each), pl.Series(each)]:
        np.testing.assert_allclose(model.predict_proba(NEW, fidelity=fidelity), mixed, atol=1e-14)
    np.testing.assert_array_equal(model.predict(NEW, fidelity=each), mixed[:, 1] > 0.5)
    assert model.sample_latent(NEW, 3, fidelity=each, random_state=0).shape == (25, 3)
    for at in (each, None):
        mean, covariance = model.latent_mean_and_covariance(NEW, fidelity=at)
        apart_mean, apart_variance = model.latent_mean_and_variance(NEW, fidelity=at)
        np.testing.assert_allclose(mean, apart_mean, atol=IDENTITY)
        np.testing.assert_allclose(np.diagonal(covariance), apart_variance, atol=IDENTITY)


def test_levels_that_are_numbers():
    X, y, fidelity = draw()
    model = fixed((X, y, np.where(fidelity == "web", 0.0, 1.0)))
    assert model.levels_ == (0, 1)
    at = model.predict_proba(NEW, fidelity=0)
    for same in [0.0, np.float32(0), False, np.zeros(25), [0] * 25, np.zeros(25, dtype=bool)]:
        np.testing.assert_array_equal(model.predict_proba(NEW, fidelity=same), at)


def test_extreme_probabilities_keep_their_digits():
    X = np.linspace(-1, 1, 40)[:, None]
    model = fit((X, X[:, 0] > 0, None), 1e10, kernel=1e4 * RBF(1.0), optimizer=None)
    log_proba, proba = (m([[-1.0], [1.0]]) for m in (model.predict_log_proba, model.predict_proba))
    assert log_proba[0, 1] < -5
    assert log_proba[0, 0] == pytest.approx(np.log1p(-proba[0, 1]), rel=1e-6)
    np.testing.assert_allclose(np.exp(log_proba), proba, rtol=1e-6)


# Classes


def test_three_classes(three):
    _, model = three
    assert model.classes_.tolist() == ["high", "low", "mid"]
    proba = model.predict_proba(NEW)
    assert proba.shape == (25, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), proba)
    expected = np.array(["low", "mid", "high"])[np.digitize(NEW[:, 0], [-0.7, 0.7])]
    assert (model.predict(NEW) == expected).mean() > 0.8
    assert [tuple(r) for r in model.rho_] == [s[0].rho for s in model.structures_]
    for attribute in ["rho_", "kernels_", "theta_", "n_iter_", "structures_"]:
        assert len(getattr(model, attribute)) == 3
    mean, variance = model.latent_mean_and_variance(NEW)
    assert mean.shape == variance.shape == (25, 3)
    assert model.latent_mean_and_covariance(NEW)[1].shape == (25, 25, 3)
    assert model.sample_latent(NEW, 4, random_state=0).shape == (25, 4, 3)
    for name in model.classes_:
        assert f"class {name}: rho" in str(model.report_)
    assert model.report_.counts.shape == (2, 3)


def test_evidence_of_several_classes(three):
    data, learnt = three
    plain = fit(data, kernel=2.0 * RBF())
    _, gradient = plain.log_marginal_likelihood(np.zeros(5), eval_gradient=True)
    np.testing.assert_allclose(slopes(plain, np.zeros(5)), gradient, rtol=100 * GRADIENT, atol=1e-5)
    value, gradients = learnt.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(learnt.log_marginal_likelihood_value_, abs=1e-6)
    if isinstance(learnt.theta_names_, list):  # where each class has its own structure
        assert [g.shape for g in gradients] == [t.shape for t in learnt.theta_]
        assert learnt.log_marginal_likelihood(learnt.theta_) == pytest.approx(value, abs=1e-6)
        with pytest.raises(ValueError, match="theta must hold one vector per class, 3 in all"):
            learnt.log_marginal_likelihood(learnt.theta_[:2])


def test_three_classes_in_parallel(three):
    data, model = three
    parallel = fit(data, n_jobs=2)
    assert_same(model, parallel, atol=0)
    for one, other in zip(model.theta_, parallel.theta_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_class_against_the_rest(three):
    (X, y, fidelity), model = three
    alone = fit((X, y == "low", fidelity))
    mean, _ = model.latent_mean_and_variance(NEW)
    np.testing.assert_allclose(mean[:, 1], alone.latent_mean_and_variance(NEW)[0], atol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([-1, 1]),
        np.array([2.0, 7.0]),
        np.array([False, True]),
        pd.array(["no", "yes"], dtype="string"),
    ],
)
def test_kinds_of_labels(labels):
    X, y, fidelity = draw()
    plain, named = fixed(), labels[y.astype(int)]
    for given in [named, pd.Series(named), list(named)]:
        model = fixed((X, given, fidelity))
        assert model.classes_.tolist() == list(labels)
        assert_same(model, plain, atol=0)
        wanted = np.asarray(labels)[plain.predict(NEW).astype(int)]
        assert model.predict(NEW).tolist() == wanted.tolist()


# Containers


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "float32", "fortran", "object"])
def test_containers(kind):
    X, y, fidelity = draw()
    X = X.astype(np.float32)
    frame = {"a": X[:, 0], "b": X[:, 1]}
    given = {
        "list": lambda: X.tolist(),
        "pandas": lambda: pd.DataFrame(frame, index=np.arange(len(X)) * 3),
        "polars": lambda: pl.DataFrame(frame),
        "float32": lambda: X,
        "fortran": lambda: np.asfortranarray(X),
        "object": lambda: X.astype(object),
    }[kind]()
    plain, model = fixed((X.astype(float), y, fidelity)), fixed((given, y, fidelity))
    proba = model.predict_proba(given)
    assert proba.dtype == np.float64
    np.testing.assert_allclose(proba, plain.predict_proba(X), rtol=0, atol=IDENTITY)
    if kind in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(given[["b", "a"]])


ORDER = ["web", "lab"]


# The fidelity as a column


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_fidelity_feature_of_a_frame(frame):
    X, y, fidelity = draw()
    plain = fixed()
    columns = {"a": X[:, 0], "source": fidelity.tolist(), "b": X[:, 1]}
    model = fixed((frame(columns), y, None), fidelity_feature="source", levels=ORDER)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    without = frame({"a": NEW[:, 0], "b": NEW[:, 1]})
    with_it = frame({"a": NEW[:, 0], "source": ["web"] * 25, "b": NEW[:, 1]})
    top, low = plain.predict_proba(NEW), plain.predict_proba(NEW, fidelity="web")
    np.testing.assert_allclose(model.predict_proba(without), top)
    np.testing.assert_allclose(model.predict_proba(with_it), low)
    # The argument overrides the column.
    np.testing.assert_allclose(model.predict_proba(with_it, fidelity="lab"), top)


def test_fidelity_feature_of_an_array():
    X, y, fidelity = draw()
    plain = fixed()
    model = fixed((np.column_stack([fidelity == "lab", X]), y, None), fidelity_feature=0)
    assert_same(model, plain)
    at_web = model.predict_proba(np.column_stack([np.zeros(25), NEW]))
    np.testing.assert_allclose(at_web, plain.predict_proba(NEW, fidelity="web"))


# Weights


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_count_as_repetitions(scheme):
    data = draw(20, 10)
    weight = np.random.default_rng(0).integers(0, 4, 30)
    how = {"inference": scheme, "standardize": True}
    weighted, repeated = (
        fixed(data, weight, **how),
        fixed([a.repeat(weight, 0) for a in data], **how),
    )
    assert_same(weighted, repeated)
    evidence = repeated.log_marginal_likelihood()
    assert weighted.log_marginal_likelihood() == pytest.approx(evidence, abs=IDENTITY)


def test_weights_count_as_repetitions_in_tuning():
    data = draw(30, 15)
    weight = np.random.default_rng(0).integers(0, 4, 45)
    mixed = np.random.default_rng(1).permutation(np.repeat(np.arange(45), weight))
    repeated = fit([a[mixed] for a in data])
    assert_same(fit(data, weight), repeated)
    assert repeated.report_.counts.sum() == weight.sum()


def test_orders_and_names_do_not_matter(small):
    X, y, fidelity = draw(30, 15)
    order = np.random.default_rng(1).permutation(len(y))
    assert_same(small, fit((X[order], y[order], fidelity[order])), atol=0)
    other = fit((X, ~y, fidelity)).predict_proba(NEW)[:, ::-1]
    np.testing.assert_allclose(small.predict_proba(NEW), other, rtol=0, atol=1e-6)


def test_rows_of_weight_zero_are_not_there():
    X, y, fidelity = draw(20, 10)
    weight = np.ones(len(y))
    weight[[0, 25]] = 0
    X[[0, 25]] = 1e6
    there = weight > 0
    weighted, fewer = fit((X, y, fidelity), weight), fit((X[there], y[there], fidelity[there]))
    assert_same(weighted, fewer, atol=0)
    # A class that has no weight is no class.
    y = y.astype(int)
    y[0] = 7
    assert fixed((X, y, fidelity), weight).classes_.tolist() == [0, 1]


def test_repeated_rows_under_white_noise_stay_apart():
    X, y, fidelity = draw(20, 10)
    noisy = {"kernel": [2.0 * RBF(1.0) + White(1.0), RBF(1.5)]}
    repeated = fixed([np.concatenate([a, a]) for a in (X, y, fidelity.tolist())], **noisy)
    weighted = fixed((X, y, fidelity.tolist()), np.full(len(y), 2), **noisy)
    assert len(repeated._fits[0].posterior.points) == 2 * len(weighted._fits[0].posterior.points)
    difference = repeated.predict_proba(NEW) - weighted.predict_proba(NEW)
    assert np.abs(difference).max() > 1e-3


# Kernels


def test_kernels_of_scikit_learn():
    data = draw()
    ours, theirs, mixed = (
        fit(data, kernel=kernel, optimizer=None)
        for kernel in (
            [2.0 * RBF(0.8), Matern(1.2, nu=2.5)],
            [2.0 * sk.RBF(0.8), sk.Matern(1.2, nu=2.5)],
            [2.0 * sk.RBF(0.8), Matern(1.2, nu=2.5)],
        )
    )
    assert_same(ours, theirs, atol=0)
    assert_same(mixed, theirs, atol=0)
    one = fit(data, kernel=1.0 * sk.RBF([1.0, 1.0]))
    assert trusted_score(one, data) > 0.9
    assert clone(one).get_params()["kernel"] == 1.0 * sk.RBF([1.0, 1.0])
    wrapped = fit(draw(20, 10), kernel=sk.ExpSineSquared(2.0, 8.0, "fixed", "fixed"))
    assert np.isfinite(wrapped.predict_proba(NEW)).all()


# Other couplings and label noise


def test_coregional():
    data = draw()
    model = fit(data, coupling="coregional")
    assert model.rho_.shape == (0,)
    assert trusted_score(model, data) > 0.9
    assert "loadings" in str(model.report_)
    one = fit(data, kernel=[1.0 * RBF()], coupling="coregional")
    assert len(one.kernels_) == 1
    assert sum("loading" in name for name in one.theta_names_) == 2


def test_flip_rates_that_are_given():
    data = draw(40, 10, flip=0.3, seed=2)
    noisy = fixed(data, inference="ep", label_noise=[0.3, 0.0])
    assert "web 30.0%, lab 0.0%" in str(noisy.report_)
    right = fixed(data, inference="ep", label_noise=[0.0, 0.0])
    assert_same(right, fixed(data, inference="ep"), atol=1e-5)


def test_flip_rates_of_three_classes():
    # A label is wrong with probability 0.3, and then each of the two others with 0.15.
    X, _, fidelity = draw(40, 10)
    y = np.digitize(X[:, 0], [-0.7, 0.7])
    model = fixed((X, y, fidelity), label_noise=[0.3, 0.0])
    assert "class 1: label noise" in str(model.report_)
    assert "web 30.0%, lab 0.0%" in str(model.report_)
    for fitted in model._fits:
        np.testing.assert_allclose(fitted.likelihood.sensitivity, [0.7, 1.0])
        np.testing.assert_allclose(fitted.likelihood.specificity, [0.85, 1.0])
    p = model.predict_proba(NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_label_noise_with_fractions_of_rows():
    data = draw(20, 10)
    noisy = {"label_noise": [0.2, 0.0]}
    model = fixed(data, np.full(30, 0.5), **noisy, inference="auto")
    assert model._fits[0].scheme == "variational"
    assert_same(model, fixed(data, np.full(30, 0.5), **noisy, inference="variational"))
    assert fixed(data, np.full(30, 2.0), **noisy)._fits[0].scheme == "ep"
    many = fixed(data, np.full(30, 0.5), **noisy, n_inducing=5)
    assert many.converged_
    with pytest.raises(ValueError, match="sample_weight below 1"):
        fixed(data, np.full(30, 0.5), **noisy, inference="ep")


def test_flip_rates_are_learnt():
    data = draw(60, 15, flip=0.25, seed=1)
    kernel = 2.0 * RBF(1.5, "fixed")
    model = fit(data, kernel=kernel, label_noise="fidelity", rho_bounds="fixed")
    assert model.theta_names_[-1] == "reliability[0]"
    assert 0.05 < 1 / (1 + np.exp(model.theta_[-1])) < 0.45
    assert "labels flipped: web" in str(model.report_)
    assert trusted_score(model, data) > 0.9


def test_annotators():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (80, 2))
    who = np.array(["good", "bad"])[np.arange(80) % 2]
    y = truth(X) ^ (rng.uniform(size=80) < np.where(who == "bad", 0.4, 0.02))
    X, y, fidelity = stack_levels({"web": (X, y), "lab": (X[:10], truth(X[:10]))})
    who = np.concatenate([who, ["dr"] * 10])
    model = MultiFidelityClassifier(
        4.0 * RBF(1.5, "fixed"), inference="ep", label_noise="annotator", rho_bounds="fixed"
    ).fit(X, y, fidelity, annotator=who)
    assert model.annotators_.tolist() == ["bad", "dr", "good"]
    rates = dict(zip(model.theta_names_, model.theta_, strict=True))
    # The annotator of the trusted rows is right by assumption and has no rates to learn.
    assert {n for n in rates if n.startswith("s")} == {
        f"{name}[{k}]" for name in ("sensitivity", "specificity") for k in (0, 2)
    }
    assert rates["sensitivity[0]"] < rates["sensitivity[2]"]
    assert "2 annotators" in str(model.report_)
    with pytest.raises(ValueError, match=r"needs to know who.*annotator="):
        clone(model).fit(X, y, fidelity)


# Text


def test_the_report(model):
    text = str(model.report_)
    for words in ["web: 50 rows", "lab: 20 rows", "least trusted first", "lab = +", "× web"]:
        assert words in text
    for words in ["correction of lab", "log marginal likelihood", "converged"]:
        assert words in text
    assert str(model) == f"MultiFidelityClassifier()\n{text}"
    assert repr(model) == "MultiFidelityClassifier()"
    assert max(map(len, text.split("\n"))) < 120
    assert str(MultiFidelityClassifier(rho=2.0)) == "MultiFidelityClassifier(rho=2.0)"


def test_verbose_prints_the_report(capsys):
    fixed(draw(20, 10))
    assert capsys.readouterr().out == ""
    model = fixed(draw(20, 10), verbose=1)
    assert capsys.readouterr().out == f"{model.report_}\n"


def test_html_is_escaped():
    X, y, _ = draw(20, 10)
    evil = "<script>alert(1)</script>"
    fidelity = np.where(np.arange(30) < 20, "a", evil)
    frame = pd.DataFrame(X, columns=["<b>x</b>", "z"])
    kernel = [RBF(columns=[0]), RBF(columns=[1])]
    model = MultiFidelityClassifier(kernel, levels=["a", evil], optimizer=None)
    assert "polyfid-report" not in model._repr_html_()
    model.fit(frame, np.where(y, evil, "&"), fidelity)
    for html in [model._repr_html_(), model.report_._repr_html_()]:
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert(1)" in html
        assert "<b>x</b>" not in html
        assert "polyfid-report" in html
    assert model._repr_mimebundle_()["text/plain"] == str(model)
    assert "polyfid-report" in model._repr_mimebundle_()["text/html"]


# Copies and further fits


def test_copies_predict_the_same(model, three):
    for fitted in (model, three[1]):
        copy = pickle.loads(pickle.dumps(fitted))
        assert_same(copy, fitted, atol=0)
        assert str(copy) == str(fitted)


def test_clone_forgets_the_fit_and_keeps_the_parameters():
    given = MultiFidelityClassifier([RBF(2.0), 3.0 * RBF()], rho=[0.5], levels=("a", "b"), tol=1e-3)
    assert clone(given).get_params() == given.get_params()
    X, y, fidelity = draw(20, 10)
    fitted = fixed((X, y, fidelity))
    assert not hasattr(clone(fitted), "report_")
    assert_same(clone(fitted).fit(X, y, fidelity), fitted, atol=0)


def interrupt(step):
    raise KeyboardInterrupt


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    ("changes", "how", "error"),
    [
        ({"fidelity": np.arange(30) % 3}, {}, ValueError),
        ({"y": np.arange(30) % 3, "X": np.ones((30, 5))}, {"tol": "small"}, ValueError),
        ({"X": np.ones((30, 5)), "callback": interrupt}, {}, KeyboardInterrupt),
        ({"callback": interrupt}, {"n_inducing": 5}, KeyboardInterrupt),
    ],
    ids=["levels", "parameter", "interrupted", "interrupted sparse"],
)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(warm_start, changes, how, error):
    X, y, fidelity = draw(20, 10)
    X = pd.DataFrame(X, columns=["a", "b"])
    model = fixed((X, y, fidelity), warm_start=warm_start)
    before = {k: v for k, v in vars(model).items() if k not in how}
    model.set_params(**how)
    with pytest.raises(error):
        model.fit(**{"X": X, "y": y, "fidelity": fidelity} | changes)
    after = {k: v for k, v in vars(model).items() if k not in (*how, "_resume")}
    assert list(after) == list(before)
    assert all(after[k] is v for k, v in before.items())
    assert ("_resume" in vars(model)) == (warm_start and "n_inducing" in how)


def test_an_interrupted_first_fit_leaves_nothing():
    X, y, fidelity = draw(20, 10)
    model = MultiFidelityClassifier(**FIXED, n_inducing=5)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, fidelity, callback=interrupt)
    assert vars(model) == before
    blocks = [(X[:20], y[:20], fidelity[:20]), (np.ones((2, 3)), [True, False], ["web", "lab"])]
    with pytest.raises(ValueError, match="3 features"):
        model.fit_blocks(blocks)
    assert vars(model) == before


def test_a_second_fit_starts_afresh():
    X, y, fidelity = draw(20, 10)
    model = fixed((X, y, fidelity))
    model.set_params(kernel=RBF()).fit(pd.DataFrame(X, columns=["a", "b"]), y.astype(str))
    assert model.levels_ == (0,)
    assert model.classes_.tolist() == ["False", "True"]
    assert model.rho_.shape == (0,)
    model.fit(X[:, :1], y)
    assert model.n_features_in_ == 1
    assert not hasattr(model, "feature_names_in_")


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match=r"tuning stopped early.*raise max_iter"):
        model = fit(draw(20, 10), max_iter=1)
    assert not model.converged_
    assert "warning" in str(model.report_)
    assert model.report_.problems


# In scikit-learn's tools, with and without metadata routing

FOLDS = KFold(3, shuffle=True, random_state=0)


def by_hand(X, y, fidelity, splits):
    scores = []
    for train, test in splits:
        model = fixed((X[train], y[train], fidelity[train]))
        scores.append(model.score(X[test], y[test]))
    return scores


def test_cross_validation(routing):
    X, y, fidelity = draw()
    model = MultiFidelityClassifier(**FIXED)
    piped = make_pipeline(StandardScaler(with_mean=False, with_std=False), model)
    name = "fidelity" if routing else "multifidelityclassifier__fidelity"
    for estimator, argument in ((model, "fidelity"), (piped, name)):
        how = {"cv": FOLDS, "params": {argument: fidelity}, "error_score": "raise"}
        scores = cross_validate(estimator, X, y, **how)["test_score"]
        np.testing.assert_array_equal(scores, by_hand(X, y, fidelity, FOLDS.split(X)))


@pytest.mark.parametrize("splitter", [TrustedKFold(3), TrustedShuffleSplit(3, random_state=0)])
def test_cross_validation_on_trusted_rows(routing, splitter):
    X, y, fidelity = draw()
    how = {"cv": splitter, "params": {"fidelity": fidelity}, "error_score": "raise"}
    groups = {} if routing else {"groups": fidelity}
    run = cross_validate(MultiFidelityClassifier(**FIXED), X, y, **how, **groups)
    splits = list(splitter.split(X, y, groups=fidelity))
    np.testing.assert_array_equal(run["test_score"], by_hand(X, y, fidelity, splits))
    assert np.mean(run["test_score"]) > 0.7


def test_search(routing):
    X, y, fidelity = draw()
    grid = {"rho": [-1.0, 1.0]}
    search = GridSearchCV(MultiFidelityClassifier(**FIXED), grid, cv=FOLDS, error_score="raise")
    search.fit(X, y, fidelity=fidelity)
    assert search.best_params_ == {"rho": 1.0}
    np.testing.assert_array_equal(search.predict_proba(NEW), fixed(rho=1.0).predict_proba(NEW))
    piped = GridSearchCV(
        make_pipeline(StandardScaler(), MultiFidelityClassifier(**FIXED)),
        {"multifidelityclassifier__rho": [-1.0, 1.0]},
        cv=TrustedKFold(2, fidelity=fidelity),
        error_score="raise",
    )
    name = "fidelity" if routing else "multifidelityclassifier__fidelity"
    piped.fit(X, y, **{name: fidelity})
    assert piped.best_params_ == {"multifidelityclassifier__rho": 1.0}


def test_weights_and_annotators_are_routed():
    X, y, fidelity = data = draw(20, 10)
    weight = np.random.default_rng(0).uniform(1, 3, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        requests = MultiFidelityClassifier().get_metadata_routing().fit.requests
        assert requests == {"fidelity": True, "sample_weight": True, "annotator": True}
        piped = make_pipeline(
            StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False),
            MultiFidelityClassifier(**FIXED),
        )
        piped.fit(X, y, fidelity=fidelity, sample_weight=weight)
        plain = fixed(data, weight)
        np.testing.assert_array_equal(piped.predict_proba(NEW), plain.predict_proba(NEW))
        asked = MultiFidelityClassifier(**FIXED).set_predict_proba_request(fidelity=True)
        piped = make_pipeline("passthrough", asked).fit(X, y, fidelity=fidelity)
        low = piped.predict_proba(NEW, fidelity=["web"] * 25)
    np.testing.assert_array_equal(low, fixed(data).predict_proba(NEW, fidelity="web"))
