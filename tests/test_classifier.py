"""The estimator as its users meet it: what fits, predicts, prints and travels."""

import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerances import GRADIENT, IDENTITY

from polyfid import MultiFidelityClassifier, TrustedKFold, TrustedShuffleSplit, stack_levels
from polyfid.kernels import RBF, Constant, Linear, Matern, White

SCHEMES = ["laplace", "ep", "variational"]
NEW = np.random.default_rng(5).uniform(-2, 2, (25, 2))
FIXED = {
    "kernel": [2.0 * RBF(1.0), 0.5 * RBF(1.5)],
    "rho": 1.3,
    "optimizer": None,
    "standardize": False,
}


def truth(X):
    return X[:, 0] + X[:, 1] ** 2 / 2 > 0.5


def draw(n_cheap=50, n_trusted=20, flip=0.15, seed=0):
    """Cheap labels, some of them flipped, and trusted ones elsewhere."""
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(-2, 2, (n_cheap, 2)), rng.uniform(-2, 2, (n_trusted, 2))
    cheap = truth(X) ^ (rng.uniform(size=n_cheap) < flip)
    return stack_levels({"web": (X, cheap), "lab": (Z, truth(Z))})


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
    X, y, fidelity = draw()
    return MultiFidelityClassifier().fit(X, y, fidelity=fidelity)


@pytest.fixture(scope="module")
def three():
    """Three classes with names, two levels."""
    X, _, fidelity = draw(30, 15)
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [-0.7, 0.7])]
    return X, y, fidelity, MultiFidelityClassifier().fit(X, y, fidelity=fidelity)


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
    assert model.structures_[0].rho == tuple(model.rho_)
    assert model.structures_[0].kernels == tuple(model.kernels_)
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
    both = MultiFidelityClassifier().fit(X, y, fidelity=fidelity)
    alone = MultiFidelityClassifier().fit(X[trusted], y[trusted])

    def loss(m):
        return -m.predict_log_proba(T)[np.arange(500), truth(T).astype(int)].mean()

    assert loss(both) < 0.7 * loss(alone)


@pytest.mark.parametrize("kernel", [FIXED["kernel"], tuple(FIXED["kernel"]), 2.0 * RBF(0.7)])
@pytest.mark.parametrize("standardize", [False, True])
def test_without_an_optimizer_all_stays_as_given(kernel, standardize):
    X, y, fidelity = draw()
    given = FIXED | {"kernel": kernel, "standardize": standardize}
    model = MultiFidelityClassifier(**given).fit(X, y, fidelity=fidelity)
    assert model.rho_.tolist() == [1.3]
    assert model.kernels_ == (list(kernel) if isinstance(kernel, list | tuple) else [kernel] * 2)
    assert model.converged_
    assert "as given" in str(model.report_)
    assert model.n_iter_ == 1


def test_auto_without_an_optimizer():
    X, y, fidelity = draw()
    model = MultiFidelityClassifier(optimizer=None, rho=0.5).fit(X, y, fidelity=fidelity)
    assert model.rho_.tolist() == [0.5]
    assert model.score(X[fidelity == "lab"], y[fidelity == "lab"]) > 0.9


def test_rho_can_be_fixed_while_kernels_are_tuned():
    X, y, fidelity = draw()
    model = MultiFidelityClassifier(rho=0.8, rho_bounds="fixed").fit(X, y, fidelity=fidelity)
    assert model.rho_.tolist() == [0.8]
    assert "rho[1]" not in model.theta_names_
    assert len(model.theta_) == 6


def test_rho_bounds_hold():
    X, y, fidelity = draw(flip=0)
    model = MultiFidelityClassifier(rho_bounds=(-0.2, 0.2)).fit(X, y, fidelity=fidelity)
    assert all(-0.2 <= s.rho[0] <= 0.2 for s in model.structures_)
    model = MultiFidelityClassifier(2.0 * RBF(), rho_bounds=(-0.2, 0.2)).fit(X, y, fidelity)
    assert -0.2 <= model.rho_[0] <= 0.2
    assert "at a bound: rho[1]" in str(model.report_)


def test_evidence_and_its_gradient(model):
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-8)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    copy = pickle.loads(pickle.dumps(model)).set_params(inference="ep")  # changes the next fit
    assert copy.log_marginal_likelihood(model.theta_) == pytest.approx(value, abs=1e-8)
    theta = model.theta_ + 0.1
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    for i, slope in enumerate(gradient):
        step = 1e-4 * (np.arange(len(theta)) == i)
        up, down = (model.log_marginal_likelihood(theta + s) for s in (step, -step))
        assert (up - down) / 2e-4 == pytest.approx(slope, rel=100 * GRADIENT, abs=1e-5)


def test_one_level_is_scikit_learns_model():
    X, y, _ = draw()
    ours = MultiFidelityClassifier(2.0 * RBF(0.8), optimizer=None, standardize=False).fit(X, y)
    theirs = GaussianProcessClassifier(2.0 * sk.RBF(0.8), optimizer=None).fit(X, y)
    assert ours.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood_value_)
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), atol=1e-3)


def test_without_fidelity_all_rows_are_at_the_top():
    X, y, _ = draw()
    fixed = FIXED | {"levels": ["web", "lab"]}
    model = MultiFidelityClassifier(**fixed).fit(X, y)
    assert model.levels_ == ("web", "lab")
    named = MultiFidelityClassifier(**fixed).fit(X, y, fidelity=["lab"] * len(y))
    assert_same(model, named)


def test_three_levels():
    rng = np.random.default_rng(0)
    parts = {}
    for name, n, flip in [("bot", 60, 0.3), ("crowd", 30, 0.1), ("expert", 10, 0.0)]:
        X = rng.uniform(-2, 2, (n, 2))
        parts[name] = X, truth(X) ^ (rng.uniform(size=n) < flip)
    X, y, fidelity = stack_levels(parts)
    model = MultiFidelityClassifier(max_iter=500).fit(X, y, fidelity=fidelity)
    assert model.levels_ == ("bot", "crowd", "expert")
    assert model.rho_.shape == (2,)
    assert len(model.kernels_) == 3
    T = rng.uniform(-2, 2, (300, 2))
    assert model.score(T, truth(T)) > 0.85
    sure = [np.abs(model.predict_proba(T, fidelity=n)[:, 1] - 0.5).mean() for n in parts]
    assert sure[0] < sure[2]  # a noisy level is predicted as noisy
    assert [line.split(" =")[0] for line in dict(model.report_.lines)["rho"].split("\n")] == [
        "crowd",
        "expert",
    ]


def test_schemes_agree_on_an_easy_problem():
    X, y, fidelity = draw()
    proba = {}
    for scheme in SCHEMES:
        model = MultiFidelityClassifier(inference=scheme).fit(X, y, fidelity=fidelity)
        assert model.converged_
        proba[scheme] = model.predict_proba(NEW)[:, 1]
    np.testing.assert_allclose(proba["ep"], proba["variational"], atol=0.02)
    np.testing.assert_allclose(proba["ep"], proba["laplace"], atol=0.1)


def test_restarts_find_no_worse_an_optimum():
    X, y, fidelity = draw(30, 12)
    plain = MultiFidelityClassifier().fit(X, y, fidelity=fidelity)
    models = [
        MultiFidelityClassifier(n_restarts=3, random_state=0).fit(X, y, fidelity=fidelity)
        for _ in range(2)
    ]
    assert models[0].theta_.tolist() == models[1].theta_.tolist()
    assert models[0]._fits[0].optimum.objective > plain._fits[0].optimum.objective - 1e-3


def test_starts_in_parallel_give_the_same():
    X, y, fidelity = draw(30, 12)
    one = MultiFidelityClassifier().fit(X, y, fidelity=fidelity)
    two = MultiFidelityClassifier(n_jobs=2).fit(X, y, fidelity=fidelity)
    assert_same(one, two, atol=1e-8)


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
    assert model.score(X[fidelity == "lab"], y[fidelity == "lab"]) > 0.9


def test_tuning_on_a_sample():
    X, y, fidelity = draw(150, 20)
    kernel = 2.0 * RBF()

    def fit(**how):
        return MultiFidelityClassifier(kernel, random_state=0, **how).fit(X, y, fidelity=fidelity)

    sampled, again, full = fit(n_tuning=60), fit(n_tuning=60), fit(n_tuning=None)
    assert "on 60 of 170 rows" in str(sampled.report_)
    assert "of 170 rows" not in str(full.report_)
    assert_same(sampled, again, atol=0)
    difference = sampled.predict_proba(NEW) - full.predict_proba(NEW)
    assert 0 < np.abs(difference).max() < 0.3
    # All rows are in the posterior: with the same hyper-parameters it is that of the full model.
    fixed = MultiFidelityClassifier(sampled.kernels_, rho=sampled.rho_, optimizer=None)
    assert_same(sampled, fixed.fit(X, y, fidelity=fidelity), atol=1e-8)


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
    joint_mean, covariance = model.latent_mean_and_covariance(NEW)
    np.testing.assert_allclose(joint_mean, mean, atol=IDENTITY)
    np.testing.assert_allclose(np.diagonal(covariance), variance, atol=IDENTITY)
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
    samples = model.sample_latent(NEW, 3, fidelity=each, random_state=0)
    assert samples.shape == (25, 3)
    mean, covariance = model.latent_mean_and_covariance(NEW, fidelity=each)
    apart_mean, apart_variance = model.latent_mean_and_variance(NEW, fidelity=each)
    np.testing.assert_allclose(mean, apart_mean, atol=IDENTITY)
    np.testing.assert_allclose(np.diagonal(covariance), apart_variance, atol=IDENTITY)


def test_levels_that_are_numbers():
    X, y, fidelity = draw()
    number = np.where(fidelity == "web", 0.0, 1.0)
    model = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity=number)
    assert model.levels_ == (0, 1)
    at = model.predict_proba(NEW, fidelity=0)
    for same in [0.0, np.float32(0), False, np.zeros(25), [0] * 25, np.zeros(25, dtype=bool)]:
        np.testing.assert_array_equal(model.predict_proba(NEW, fidelity=same), at)


def test_extreme_probabilities_keep_their_digits():
    X = np.linspace(-1, 1, 40)[:, None]
    model = MultiFidelityClassifier(1e4 * RBF(1.0), optimizer=None)
    model.fit(X, X[:, 0] > 0, sample_weight=1e10)
    log_proba, proba = (m([[-1.0], [1.0]]) for m in (model.predict_log_proba, model.predict_proba))
    assert log_proba[0, 1] < -5
    assert log_proba[0, 0] == pytest.approx(np.log1p(-proba[0, 1]), rel=1e-6)
    np.testing.assert_allclose(np.exp(log_proba), proba, rtol=1e-6)


def test_many_new_points_in_batches(model, monkeypatch):
    monkeypatch.setattr("polyfid.inference.posterior.BATCH_ELEMENTS", 500)
    batched = model.predict_proba(NEW)
    monkeypatch.undo()
    np.testing.assert_allclose(batched, model.predict_proba(NEW), atol=1e-14)


# Classes


def test_three_classes(three):
    model = three[-1]
    assert model.classes_.tolist() == ["high", "low", "mid"]
    proba = model.predict_proba(NEW)
    assert proba.shape == (25, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), proba)
    expected = np.array(["low", "mid", "high"])[np.digitize(NEW[:, 0], [-0.7, 0.7])]
    assert (model.predict(NEW) == expected).mean() > 0.8
    for attribute in ["rho_", "kernels_", "theta_", "n_iter_"]:
        assert len(getattr(model, attribute)) == 3
    mean, variance = model.latent_mean_and_variance(NEW)
    assert mean.shape == variance.shape == (25, 3)
    _, covariance = model.latent_mean_and_covariance(NEW)
    assert covariance.shape == (25, 25, 3)
    assert model.sample_latent(NEW, 4, random_state=0).shape == (25, 4, 3)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-6)
    slopes = gradient if isinstance(model.theta_names_, list) else [gradient] * 3
    assert [g.shape for g in slopes] == [t.shape for t in model.theta_]
    for name in model.classes_:
        assert f"class {name}: rho" in str(model.report_)
    assert model.report_.counts.shape == (2, 3)


def test_evidence_of_several_classes(three):
    X, y, fidelity, _ = three
    plain = MultiFidelityClassifier(2.0 * RBF()).fit(X, y, fidelity=fidelity)
    _, gradient = plain.log_marginal_likelihood(np.zeros(5), eval_gradient=True)
    step = 1e-4 * (np.arange(5) == 0)
    up, down = (plain.log_marginal_likelihood(s) for s in (step, -step))
    assert (up - down) / 2e-4 == pytest.approx(gradient[0], rel=100 * GRADIENT, abs=1e-5)
    learnt = MultiFidelityClassifier().fit(X, y, fidelity=fidelity)
    assert len(learnt.structures_) == 3
    if isinstance(learnt.theta_names_, list):
        assert learnt.log_marginal_likelihood(learnt.theta_) == pytest.approx(
            learnt.log_marginal_likelihood_value_, abs=1e-6
        )
        with pytest.raises(ValueError, match="theta must hold one vector a class, 3 in all"):
            learnt.log_marginal_likelihood(learnt.theta_[:2])


def test_three_classes_in_parallel(three):
    X, y, fidelity, model = three
    parallel = MultiFidelityClassifier(n_jobs=2).fit(X, y, fidelity=fidelity)
    assert_same(model, parallel, atol=0)
    for one, other in zip(model.theta_, parallel.theta_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_class_against_the_rest(three):
    X, y, fidelity, model = three
    alone = MultiFidelityClassifier().fit(X, y == "low", fidelity=fidelity)
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
    plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity=fidelity)
    named = labels[y.astype(int)]
    for given in [named, pd.Series(named), list(named)]:
        model = MultiFidelityClassifier(**FIXED).fit(X, given, fidelity=fidelity)
        assert model.classes_.tolist() == list(labels)
        assert_same(model, plain, atol=0)
        assert (
            model.predict(NEW).tolist()
            == np.asarray(labels)[plain.predict(NEW).astype(int)].tolist()
        )


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
    plain = MultiFidelityClassifier(**FIXED).fit(X.astype(float), y, fidelity=fidelity)
    model = MultiFidelityClassifier(**FIXED).fit(given, y, fidelity=fidelity)
    proba = model.predict_proba(given)
    assert proba.dtype == np.float64
    np.testing.assert_allclose(proba, plain.predict_proba(X), rtol=0, atol=IDENTITY)
    if kind in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(given[["b", "a"]])


@pytest.mark.parametrize(
    "make",
    [
        lambda names: pd.Categorical(names, ["web", "lab"], ordered=True),
        lambda names: pd.Series(pd.Categorical(names, ["web", "lab"], ordered=True)),
        lambda names: pl.Series(names, dtype=pl.Enum(["web", "lab"])),
    ],
)
def test_a_fidelity_that_carries_its_order(make):
    X, y, fidelity = draw()
    plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity=fidelity)
    model = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity=make(fidelity.tolist()))
    assert model.levels_ == ("web", "lab")
    assert_same(model, plain, atol=0)


def test_a_fidelity_without_an_order_is_sorted_or_told():
    X, y, fidelity = draw()
    names = fidelity.tolist()
    assert MultiFidelityClassifier(**FIXED).fit(X, y, names).levels_ == ("lab", "web")
    told = MultiFidelityClassifier(**FIXED, levels=["web", "lab"]).fit(X, y, names)
    assert told.levels_ == ("web", "lab")
    assert_same(told, MultiFidelityClassifier(**FIXED).fit(X, y, fidelity), atol=0)


# The fidelity as a column


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_fidelity_feature_of_a_frame(frame):
    X, y, fidelity = draw()
    plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity=fidelity)
    columns = {"a": X[:, 0], "source": fidelity.tolist(), "b": X[:, 1]}
    model = MultiFidelityClassifier(**FIXED, fidelity_feature="source", levels=["web", "lab"])
    model.fit(frame(columns), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    without = frame({"a": NEW[:, 0], "b": NEW[:, 1]})
    with_it = frame({"a": NEW[:, 0], "source": ["web"] * 25, "b": NEW[:, 1]})
    np.testing.assert_allclose(model.predict_proba(without), plain.predict_proba(NEW))
    np.testing.assert_allclose(
        model.predict_proba(with_it), plain.predict_proba(NEW, fidelity="web")
    )
    # What is asked for comes first.
    np.testing.assert_allclose(
        model.predict_proba(with_it, fidelity="lab"), plain.predict_proba(NEW)
    )


def test_fidelity_feature_of_an_array():
    X, y, fidelity = draw()
    plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity=fidelity)
    both = np.column_stack([fidelity == "lab", X])
    model = MultiFidelityClassifier(**FIXED, fidelity_feature=0).fit(both, y)
    assert_same(model, plain)
    at_web = model.predict_proba(np.column_stack([np.zeros(25), NEW]))
    np.testing.assert_allclose(at_web, plain.predict_proba(NEW, fidelity="web"))


def test_fidelity_feature_in_cross_validation():
    X, y, fidelity = draw()
    order = pd.CategoricalDtype(["web", "lab"], ordered=True)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "source": pd.Series(fidelity).astype(order)})
    cv = TrustedKFold(3, fidelity=fidelity)
    column = MultiFidelityClassifier(**FIXED, fidelity_feature="source")
    plain = MultiFidelityClassifier(**FIXED)
    np.testing.assert_array_equal(
        cross_validate(column, frame, y, cv=cv)["test_score"],
        cross_validate(plain, X, y, cv=cv, params={"fidelity": fidelity})["test_score"],
    )


# Weights


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_count_as_repetitions(scheme):
    X, y, fidelity = draw(20, 10)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    fixed = FIXED | {"inference": scheme, "standardize": True}
    weighted = MultiFidelityClassifier(**fixed).fit(X, y, fidelity, weight)
    repeated = MultiFidelityClassifier(**fixed).fit(
        *(np.repeat(a, weight, axis=0) for a in (X, y)), fidelity=fidelity.repeat(weight)
    )
    assert_same(weighted, repeated)
    assert weighted.log_marginal_likelihood() == pytest.approx(
        repeated.log_marginal_likelihood(), abs=IDENTITY
    )


def test_weights_count_as_repetitions_in_tuning():
    X, y, fidelity = draw(30, 15)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = MultiFidelityClassifier().fit(X, y, fidelity, weight)
    mixed = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weight))
    repeated = MultiFidelityClassifier().fit(X[mixed], y[mixed], fidelity[mixed])
    assert_same(weighted, repeated)
    assert repeated.report_.counts.sum() == weight.sum()


def test_the_order_of_rows_does_not_matter():
    X, y, fidelity = draw(30, 15)
    order = np.random.default_rng(1).permutation(len(y))
    one = MultiFidelityClassifier().fit(X, y, fidelity)
    other = MultiFidelityClassifier().fit(X[order], y[order], fidelity[order])
    assert_same(one, other, atol=0)


def test_the_names_of_classes_do_not_matter():
    X, y, fidelity = draw(30, 15)
    one = MultiFidelityClassifier().fit(X, y, fidelity)
    other = MultiFidelityClassifier().fit(X, ~y, fidelity)
    np.testing.assert_allclose(
        one.predict_proba(NEW), other.predict_proba(NEW)[:, ::-1], rtol=0, atol=1e-6
    )


def test_weights_of_any_size():
    X, y, fidelity = draw(20, 10)
    plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity)
    assert_same(plain, MultiFidelityClassifier(**FIXED).fit(X, y, fidelity, 1.0), atol=0)
    half = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity, np.full(len(y), 0.5))
    twice = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity, np.full(len(y), 2))
    sure = [m.latent_mean_and_variance(NEW)[1].mean() for m in (half, plain, twice)]
    assert sure[0] > sure[1] > sure[2]


def test_rows_of_weight_zero_are_not_there():
    X, y, fidelity = draw(20, 10)
    weight = np.ones(len(y))
    weight[[0, 25]] = 0
    X[[0, 25]] = 1e6
    weighted = MultiFidelityClassifier().fit(X, y, fidelity, weight)
    there = weight > 0
    fewer = MultiFidelityClassifier().fit(X[there], y[there], fidelity[there])
    assert_same(weighted, fewer, atol=0)
    # A class that has no weight is no class.
    y = y.astype(int)
    y[0] = 7
    assert MultiFidelityClassifier(**FIXED).fit(X, y, fidelity, weight).classes_.tolist() == [0, 1]


def test_repeated_rows_under_white_noise_stay_apart():
    X, y, fidelity = draw(20, 10)
    noisy = FIXED | {"kernel": [2.0 * RBF(1.0) + White(1.0), RBF(1.5)]}
    twice = [np.concatenate([a, a]) for a in (X, y, fidelity)]
    repeated = MultiFidelityClassifier(**noisy).fit(
        *twice[:2], fidelity=twice[2].tolist(), sample_weight=None
    )
    weighted = MultiFidelityClassifier(**noisy).fit(X, y, fidelity.tolist(), np.full(len(y), 2))
    assert len(repeated._fits[0].posterior.points) == 2 * len(weighted._fits[0].posterior.points)
    difference = repeated.predict_proba(NEW) - weighted.predict_proba(NEW)
    assert np.abs(difference).max() > 1e-3


# Kernels


def test_kernels_of_scikit_learn():
    X, y, fidelity = draw()
    ours = MultiFidelityClassifier([2.0 * RBF(0.8), Matern(1.2, nu=2.5)], optimizer=None)
    theirs = MultiFidelityClassifier(
        [2.0 * sk.RBF(0.8), sk.Matern(1.2, nu=2.5)], optimizer=None
    ).fit(X, y, fidelity)
    assert_same(ours.fit(X, y, fidelity), theirs, atol=0)
    mixed = MultiFidelityClassifier([2.0 * sk.RBF(0.8), Matern(1.2, nu=2.5)], optimizer=None)
    assert_same(mixed.fit(X, y, fidelity), theirs, atol=0)
    one = MultiFidelityClassifier(1.0 * sk.RBF([1.0, 1.0])).fit(X, y, fidelity)
    assert one.score(X[fidelity == "lab"], y[fidelity == "lab"]) > 0.9
    assert clone(one).get_params()["kernel"] == 1.0 * sk.RBF([1.0, 1.0])


def test_a_kernel_that_has_to_be_wrapped():
    X, y, fidelity = draw(20, 10)
    kernel = sk.ExpSineSquared(2.0, 8.0, "fixed", "fixed")
    model = MultiFidelityClassifier(kernel, optimizer=None).fit(X, y, fidelity)
    assert np.isfinite(model.predict_proba(NEW)).all()


def test_a_linear_kernel():
    X, _, fidelity = draw()
    y = X[:, 0] > 0.3
    kernel = 1.0 * Linear() + Constant(1.0)
    model = MultiFidelityClassifier(kernel).fit(X, y, fidelity=fidelity)
    assert model.score(NEW, NEW[:, 0] > 0.3) > 0.9


# Other couplings and label noise


def test_coregional():
    X, y, fidelity = draw()
    model = MultiFidelityClassifier(coupling="coregional").fit(X, y, fidelity=fidelity)
    assert model.rho_.shape == (0,)
    assert model.score(X[fidelity == "lab"], y[fidelity == "lab"]) > 0.9
    assert "loadings" in str(model.report_)
    one = MultiFidelityClassifier([1.0 * RBF()], coupling="coregional").fit(X, y, fidelity)
    assert len(one.kernels_) == 1
    assert sum("loading" in name for name in one.theta_names_) == 2


def test_known_flip_rates():
    X, y, fidelity = draw(40, 10, flip=0.3, seed=2)
    fixed = FIXED | {"inference": "ep"}
    noisy = MultiFidelityClassifier(**fixed, label_noise=[0.3, 0.0]).fit(X, y, fidelity)
    assert "web 30.0%, lab 0.0%" in str(noisy.report_)
    right = MultiFidelityClassifier(**fixed, label_noise=[0.0, 0.0]).fit(X, y, fidelity)
    assert_same(right, MultiFidelityClassifier(**fixed).fit(X, y, fidelity), atol=1e-5)


def test_flip_rates_are_learnt():
    X, y, fidelity = draw(60, 15, flip=0.25, seed=1)
    model = MultiFidelityClassifier(
        2.0 * RBF(1.5, "fixed"), inference="ep", label_noise="fidelity", rho_bounds="fixed"
    ).fit(X, y, fidelity)
    assert model.theta_names_[-1] == "reliability[0]"
    assert 0.05 < 1 / (1 + np.exp(model.theta_[-1])) < 0.45
    assert "labels flipped: web" in str(model.report_)
    assert model.score(X[fidelity == "lab"], y[fidelity == "lab"]) > 0.9


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
    assert [n for n in model.theta_names_ if n.startswith("s")] == [
        "sensitivity[0]",
        "sensitivity[2]",
        "specificity[0]",
        "specificity[2]",
    ]
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


def test_the_report_of_one_level():
    X, y, _ = draw(20, 10)
    text = str(MultiFidelityClassifier(**FIXED | {"kernel": RBF()}).fit(X, y).report_)
    assert "30 rows" in text
    assert "rho" not in text
    assert "trusted" not in text


def test_verbose_prints_the_report(capsys):
    X, y, fidelity = draw(20, 10)
    MultiFidelityClassifier(**FIXED).fit(X, y, fidelity)
    assert capsys.readouterr().out == ""
    model = MultiFidelityClassifier(**FIXED, verbose=1).fit(X, y, fidelity)
    assert capsys.readouterr().out == f"{model.report_}\n"


def test_html_is_escaped():
    X, y, _ = draw(20, 10)
    evil = "<script>alert(1)</script>"
    fidelity = np.where(np.arange(30) < 20, "a", evil)
    frame = pd.DataFrame(X, columns=["<b>x</b>", "z"])
    kernel = [RBF(columns=[0]), RBF(columns=[1])]
    model = MultiFidelityClassifier(kernel, levels=["a", evil], optimizer=None)
    plain = model._repr_html_()
    model.fit(frame, np.where(y, evil, "&"), fidelity)
    for html in [model._repr_html_(), model.report_._repr_html_()]:
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert(1)" in html
        assert "<b>x</b>" not in html
    assert "polyfid-report" in model._repr_html_()
    assert "polyfid-report" not in plain
    assert model._repr_mimebundle_()["text/plain"] == str(model)
    assert "polyfid-report" in model._repr_mimebundle_()["text/html"]


def test_short_in_a_pipeline():
    X, y, fidelity = draw(20, 10)
    pipeline = make_pipeline(StandardScaler(), MultiFidelityClassifier(**FIXED))
    pipeline.fit(X, y, multifidelityclassifier__fidelity=fidelity)
    assert "log marginal likelihood" not in repr(pipeline)
    assert "MultiFidelityClassifier" in pipeline._repr_html_()


# Copies


def test_copies_predict_the_same(model, three):
    for fitted in (model, three[-1]):
        file = io.BytesIO()
        joblib.dump(fitted, file)
        file.seek(0)
        for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(file)):
            assert_same(copy, fitted, atol=0)
            assert str(copy) == str(fitted)


def test_clone_forgets_the_fit_and_keeps_the_parameters():
    given = MultiFidelityClassifier([RBF(2.0), 3.0 * RBF()], rho=[0.5], levels=("a", "b"), tol=1e-3)
    copy = clone(given)
    assert copy.get_params() == given.get_params()
    X, y, fidelity = draw(20, 10)
    fitted = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity)
    assert not hasattr(clone(fitted), "report_")
    assert_same(clone(fitted).fit(X, y, fidelity), fitted, atol=0)


def test_a_fit_that_fails_leaves_the_old_one():
    X, y, fidelity = draw(20, 10)
    model = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity)
    before = model.predict_proba(NEW), str(model)
    with pytest.raises(ValueError, match="kernel is a list of 2"):
        model.fit(X, y, np.arange(30) % 3)
    assert model.levels_ == ("web", "lab")
    np.testing.assert_array_equal(model.predict_proba(NEW), before[0])
    assert str(model) == before[1]


def test_a_second_fit_starts_afresh():
    X, y, fidelity = draw(20, 10)
    model = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity)
    model.set_params(kernel=RBF()).fit(pd.DataFrame(X, columns=["a", "b"]), y.astype(str))
    assert model.levels_ == (0,)
    assert model.classes_.tolist() == ["False", "True"]
    assert model.rho_.shape == (0,)
    model.fit(X[:, :1], y)
    assert model.n_features_in_ == 1
    assert not hasattr(model, "feature_names_in_")


def test_too_few_iterations_are_told():
    X, y, fidelity = draw(20, 10)
    with pytest.warns(ConvergenceWarning, match=r"tuning stopped early.*raise max_iter"):
        model = MultiFidelityClassifier(max_iter=1).fit(X, y, fidelity)
    assert not model.converged_
    assert "warning" in str(model.report_)
    assert model.report_.problems


# In scikit-learn's tools, with and without metadata routing


def by_hand(X, y, fidelity, splits):
    scores = []
    for train, test in splits:
        model = MultiFidelityClassifier(**FIXED).fit(X[train], y[train], fidelity[train])
        scores.append(model.score(X[test], y[test]))
    return scores


def test_cross_validation(routing):
    X, y, fidelity = draw()
    model = MultiFidelityClassifier(**FIXED)
    cv = KFold(3, shuffle=True, random_state=0)
    run = cross_validate(model, X, y, cv=cv, params={"fidelity": fidelity}, error_score="raise")
    np.testing.assert_array_equal(run["test_score"], by_hand(X, y, fidelity, cv.split(X)))
    piped = make_pipeline(StandardScaler(with_mean=False, with_std=False), model)
    name = "fidelity" if routing else "multifidelityclassifier__fidelity"
    run = cross_validate(piped, X, y, cv=cv, params={name: fidelity}, error_score="raise")
    np.testing.assert_array_equal(run["test_score"], by_hand(X, y, fidelity, cv.split(X)))


@pytest.mark.parametrize("splitter", [TrustedKFold(3), TrustedShuffleSplit(3, random_state=0)])
def test_cross_validation_on_trusted_rows(routing, splitter):
    X, y, fidelity = draw()
    model = MultiFidelityClassifier(**FIXED)
    params = {"fidelity": fidelity}
    groups = {} if routing else {"groups": fidelity}
    run = cross_validate(model, X, y, cv=splitter, params=params, error_score="raise", **groups)
    splits = list(splitter.split(X, y, groups=fidelity))
    np.testing.assert_array_equal(run["test_score"], by_hand(X, y, fidelity, splits))
    assert np.mean(run["test_score"]) > 0.7


def test_search(routing):
    X, y, fidelity = draw()
    grid = {"rho": [-1.0, 1.0]}
    cv = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(MultiFidelityClassifier(**FIXED), grid, cv=cv, error_score="raise")
    search.fit(X, y, fidelity=fidelity)
    assert search.best_params_ == {"rho": 1.0}
    best = MultiFidelityClassifier(**FIXED | {"rho": 1.0}).fit(X, y, fidelity)
    np.testing.assert_array_equal(search.predict_proba(NEW), best.predict_proba(NEW))
    piped = GridSearchCV(
        make_pipeline(StandardScaler(), MultiFidelityClassifier(**FIXED)),
        {"multifidelityclassifier__rho": [-1.0, 1.0]},
        cv=TrustedKFold(2, fidelity=fidelity),
        error_score="raise",
    )
    name = "fidelity" if routing else "multifidelityclassifier__fidelity"
    piped.fit(X, y, **{name: fidelity})
    assert piped.best_params_ == {"multifidelityclassifier__rho": 1.0}


def test_cross_val_predict_is_at_the_top_level(routing):
    X, y, fidelity = draw()
    cv = KFold(3, shuffle=True, random_state=0)
    proba = cross_val_predict(
        MultiFidelityClassifier(**FIXED),
        X,
        y,
        cv=cv,
        params={"fidelity": fidelity},
        method="predict_proba",
    )
    for train, test in cv.split(X):
        model = MultiFidelityClassifier(**FIXED).fit(X[train], y[train], fidelity[train])
        np.testing.assert_array_equal(proba[test], model.predict_proba(X[test]))


def test_weights_and_annotators_are_routed():
    X, y, fidelity = draw(20, 10)
    weight = np.random.default_rng(0).uniform(1, 3, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        requests = MultiFidelityClassifier().get_metadata_routing().fit.requests
        assert requests == {"fidelity": True, "sample_weight": True, "annotator": True}
        piped = make_pipeline(
            StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=False),
            MultiFidelityClassifier(**FIXED),
        )
        piped.fit(X, y, fidelity=fidelity, sample_weight=weight)
        plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity, weight)
        np.testing.assert_array_equal(piped.predict_proba(NEW), plain.predict_proba(NEW))
        asked = MultiFidelityClassifier(**FIXED).set_predict_proba_request(fidelity=True)
        piped = make_pipeline("passthrough", asked).fit(X, y, fidelity=fidelity)
        low = piped.predict_proba(NEW, fidelity=["web"] * 25)
    plain = MultiFidelityClassifier(**FIXED).fit(X, y, fidelity)
    np.testing.assert_array_equal(low, plain.predict_proba(NEW, fidelity="web"))


def test_nothing_is_said_without_need():
    X, y, fidelity = draw(20, 10)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = MultiFidelityClassifier().fit(X, y, fidelity)
        model.predict_proba(NEW)
    assert [str(w.message) for w in said] == []
