"""The estimator as its users meet it: what fits, predicts, prints and travels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from made_rows import draw, truth
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import GRADIENT, IDENTITY

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF, White

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
def three():
    """Three classes with names, two levels."""
    X, _, fidelity = draw(30, 15)
    data = X, np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [-0.7, 0.7])], fidelity
    return data, fit(data)


# What is learnt


def test_quality_and_attributes(model):
    T = np.random.default_rng(9).uniform(-2, 2, (500, 2))
    assert model.score(T, truth(T)) > 0.9
    assert model.classes_.tolist() == [False, True]
    assert model.levels_ == ("web", "lab")
    assert model.rho_[0] > 0.3
    assert len(model.kernels_) == 2
    assert dict(zip(model.theta_names_, model.theta_, strict=True))["rho[1]"] == model.rho_[0]
    assert model.converged_
    assert model.n_iter_ >= 1
    assert model.report_.counts.sum() == 70
    assert_same(model, fit(n_jobs=2), atol=1e-8)


def test_the_cheap_labels_help():
    X, y, fidelity = draw(90, 12)
    trusted = fidelity == "lab"
    T = np.random.default_rng(9).uniform(-2, 2, (500, 2))
    both, alone = fit((X, y, fidelity)), fit((X[trusted], y[trusted], None))
    losses = [log_loss(truth(T), m.predict_proba(T)) for m in (both, alone)]
    assert losses[0] < 0.7 * losses[1]


@pytest.mark.parametrize("kernel", [FIXED["kernel"], tuple(FIXED["kernel"]), 2.0 * RBF(0.7)])
@pytest.mark.parametrize("standardize", [False, True])
def test_without_an_optimizer_all_stays_as_given(kernel, standardize):
    model = fixed(kernel=kernel, standardize=standardize)
    assert model.rho_.tolist() == [1.3]
    assert model.kernels_ == (list(kernel) if isinstance(kernel, list | tuple) else [kernel] * 2)
    assert model.converged_
    assert "as given" in str(model.report_)
    assert model.n_iter_ == 1


def test_bounds_of_rho():
    fixed_rho = fit(rho=0.8, rho_bounds="fixed")
    assert fixed_rho.rho_.tolist() == [0.8]
    assert "rho[1]" not in fixed_rho.theta_names_
    data = draw(flip=0)
    assert all(-0.2 <= s.rho[0] <= 0.2 for s in fit(data, rho_bounds=(-0.2, 0.2)).structures_)
    model = fit(data, kernel=2.0 * RBF(), rho_bounds=(-0.2, 0.2))
    assert -0.2 <= model.rho_[0] <= 0.2
    assert "at a bound: rho[1]" in str(model.report_)


def test_without_fidelity_all_rows_are_at_the_top():
    X, y, _ = draw()
    with pytest.warns(UserWarning, match=r"levels names 2 levels, but fit got no fidelity.*'lab'"):
        model = fixed((X, y, None), levels=["web", "lab"])
    assert model.levels_ == ("web", "lab")
    assert_same(model, fixed((X, y, ["lab"] * len(y)), levels=["web", "lab"]))


def test_tuning_on_a_sample():
    data = draw(150, 20)
    sampled, again = (fit(data, kernel=2.0 * RBF(), random_state=0, n_tuning=60) for _ in range(2))
    assert "on 60 of 170 rows" in str(sampled.report_)
    assert_same(sampled, again, atol=0)
    # All rows are in the posterior: with the same hyper-parameters it is that of the full model.
    given = fit(data, kernel=sampled.kernels_, rho=sampled.rho_, optimizer=None)
    np.testing.assert_allclose(sampled.predict_proba(NEW), given.predict_proba(NEW), atol=1e-8)


def test_progress_of_an_exact_fit(three):
    (X, y, fidelity), model = three
    steps = []
    MultiFidelityClassifier().fit(X, y, fidelity, callback=steps.append)
    tuned = [s for s in steps if s.stage == "structures"]
    assert {s.class_index for s in tuned} == {0, 1, 2}
    steps = [s for s in steps if s.stage != "structures"]
    assert [(s.stage, s.done, s.total) for s in steps] == [("classes", k, 3) for k in (1, 2, 3)]
    assert [len(s.checkpoint) for s in steps] == [1, 2, 3]
    assert np.mean([s.value for s in steps]) == model.log_marginal_likelihood_value_


# Predictions


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
    np.testing.assert_array_equal(model.latent_mean_and_variance(NEW)[0] > 0, model.predict(NEW))
    for at in (each, None):
        mean, covariance = model.latent_mean_and_covariance(NEW, fidelity=at)
        apart_mean, apart_variance = model.latent_mean_and_variance(NEW, fidelity=at)
        np.testing.assert_allclose(mean, apart_mean, atol=IDENTITY)
        np.testing.assert_allclose(np.diagonal(covariance), apart_variance, atol=IDENTITY)


# Classes


def test_three_classes(three):
    _, model = three
    assert model.classes_.tolist() == ["high", "low", "mid"]
    expected = np.array(["low", "mid", "high"])[np.digitize(NEW[:, 0], [-0.7, 0.7])]
    assert (model.predict(NEW) == expected).mean() > 0.8
    for attribute in ["rho_", "kernels_", "theta_", "n_iter_", "structures_"]:
        assert len(getattr(model, attribute)) == 3
    mean, variance = model.latent_mean_and_variance(NEW)
    assert mean.shape == variance.shape == (25, 3)
    assert model.latent_mean_and_covariance(NEW)[1].shape == (25, 25, 3)
    assert model.sample_latent(NEW, 4, random_state=0).shape == (25, 4, 3)
    assert all(f"class {name}: rho" in str(model.report_) for name in model.classes_)


def test_evidence_of_several_classes(three):
    data, learnt = three
    plain = fixed(data)
    assert plain.log_marginal_likelihood() == plain.log_marginal_likelihood_value_
    evidence, step = plain.set_params(inference="ep").log_marginal_likelihood, 1e-4  # as fitted
    _, gradient = evidence(np.zeros(5), eval_gradient=True)
    slopes = [(evidence(e) - evidence(-e)) / (2 * step) for e in step * np.eye(5)]
    np.testing.assert_allclose(slopes, gradient, rtol=100 * GRADIENT, atol=1e-5)
    value, gradients = learnt.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(learnt.log_marginal_likelihood_value_, abs=1e-6)
    if isinstance(learnt.theta_names_, list):  # where each class has its own structure
        assert [g.shape for g in gradients] == [t.shape for t in learnt.theta_]
        assert learnt.log_marginal_likelihood(learnt.theta_) == pytest.approx(value, abs=1e-6)
        with pytest.raises(ValueError, match="theta must hold one vector per class, 3 in all"):
            learnt.log_marginal_likelihood(learnt.theta_[:2])


def test_each_class_against_the_rest(three):
    (X, y, fidelity), model = three
    assert_same(model, fit((X, y, fidelity), n_jobs=2), atol=0)
    alone = fit((X, y == "low", fidelity))
    mean, _ = model.latent_mean_and_variance(NEW)
    np.testing.assert_allclose(mean[:, 1], alone.latent_mean_and_variance(NEW)[0], atol=1e-6)


def test_probabilities_of_three_classes(three):
    (X, y, fidelity), model = three
    proba = model.predict_proba(NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=IDENTITY)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), proba, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_array_equal(model.predict_all(NEW)[0], proba)
    # Other names, and with them another order of the classes.
    swapped = {"high": "mid", "low": "high", "mid": "low"}
    plain = fixed((X, y, fidelity)).predict_proba(NEW)
    other = fixed((X, np.array([swapped[c] for c in y]), fidelity)).predict_proba(NEW)
    np.testing.assert_allclose(other[:, [2, 0, 1]], plain, rtol=1e-9)


def test_two_classes_have_one_model(model):
    (mixture,) = model._mixtures
    p = mixture.predict(NEW, np.ones(len(NEW), dtype=int))
    np.testing.assert_array_equal(model.predict_proba(NEW), np.stack([p.down, p.up], axis=1))


@pytest.mark.parametrize("labels", [np.array([2.0, 7.0]), pd.array(["no", "yes"], dtype="string")])
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


def columns(X):
    return {"a": X[:, 0], "b": X[:, 1]}


@pytest.mark.parametrize(
    "make",
    [
        np.ndarray.tolist,
        lambda X: pd.DataFrame(columns(X), index=np.arange(len(X)) * 3),
        lambda X: pl.DataFrame(columns(X)),
        np.asfortranarray,
    ],
)
def test_containers(make):
    X, y, fidelity = draw()
    X = X.astype(np.float32)
    given = make(X)
    plain, model = fixed((X.astype(float), y, fidelity)), fixed((given, y, fidelity))
    proba = model.predict_proba(given)
    assert proba.dtype == np.float64
    np.testing.assert_allclose(proba, plain.predict_proba(X), rtol=0, atol=IDENTITY)
    if hasattr(given, "columns"):
        assert model.feature_names_in_.tolist() == ["a", "b"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(given[["b", "a"]])


# The fidelity as a column


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_fidelity_feature_of_a_frame(frame):
    X, y, fidelity = draw()
    plain = fixed()
    columns = {"a": X[:, 0], "source": fidelity.tolist(), "b": X[:, 1]}
    model = fixed((frame(columns), y, None), fidelity_feature="source", levels=["web", "lab"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    without = frame({"a": NEW[:, 0], "b": NEW[:, 1]})
    with_it = frame({"a": NEW[:, 0], "source": ["web"] * 25, "b": NEW[:, 1]})
    top, low = plain.predict_proba(NEW), plain.predict_proba(NEW, fidelity="web")
    np.testing.assert_allclose(model.predict_proba(without), top)
    np.testing.assert_allclose(model.predict_proba(with_it), low)
    # The argument overrides the column.
    np.testing.assert_allclose(model.predict_proba(with_it, fidelity="lab"), top)


# Weights


def test_weights_count_as_repetitions():
    data = draw(30, 15)
    weight = np.random.default_rng(0).integers(0, 4, 45)
    mixed = np.random.default_rng(1).permutation(np.repeat(np.arange(45), weight))
    repeated = fit([a[mixed] for a in data])  # in another order too
    assert_same(fit(data, weight), repeated)
    assert repeated.report_.counts.sum() == weight.sum()


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
    noisy = {"kernel": [2.0 * RBF(1.0) + White(1.0), RBF(1.5)], "levels": ["web", "lab"]}
    repeated = fixed([np.concatenate([a, a]) for a in (X, y, fidelity.tolist())], **noisy)
    weighted = fixed((X, y, fidelity.tolist()), np.full(len(y), 2), **noisy)
    assert len(repeated._fits[0].posterior.points) == 2 * len(weighted._fits[0].posterior.points)
    difference = repeated.predict_proba(NEW) - weighted.predict_proba(NEW)
    assert np.abs(difference).max() > 1e-3


# Other couplings and label noise


def test_coregional():
    model = fit(kernel=[1.0 * RBF()], coupling="coregional")
    assert model.rho_.shape == (0,)
    assert "loadings" in str(model.report_)
    assert len(model.kernels_) == 1
    assert sum("loading" in name for name in model.theta_names_) == 2


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


def test_label_noise_with_fractions_of_rows():
    data = draw(20, 10)
    noisy = {"label_noise": [0.2, 0.0]}
    model = fixed(data, np.full(30, 0.5), **noisy, inference="auto")
    assert model._fits[0].scheme == "variational"
    assert_same(model, fixed(data, np.full(30, 0.5), **noisy, inference="variational"))
    assert fixed(data, np.full(30, 2.0), **noisy)._fits[0].scheme == "ep"
    assert fixed(data, np.full(30, 0.5), **noisy, n_inducing=5).converged_
    with pytest.raises(ValueError, match="sample_weight below 1"):
        fixed(data, np.full(30, 0.5), **noisy, inference="ep")


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
    for words in ["web: 50 rows", "lab: 20 rows", "most trusted: lab)", "lab on web: rho +"]:
        assert words in text
    assert "correction of lab" in text
    assert "log marginal likelihood" in text
    assert str(model) == f"MultiFidelityClassifier()\n{text}"
    assert repr(model) == "MultiFidelityClassifier()"
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


SWAPPED = pd.DataFrame(np.ones((30, 2)), columns=["b", "a"])


def interrupt(step):
    raise KeyboardInterrupt


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    ("changes", "how", "error"),
    [
        ({"fidelity": np.arange(30) % 3}, {}, ValueError),
        ({"X": SWAPPED, "y": np.ones(30)}, {}, ValueError),
        ({"y": np.arange(30) % 3, "X": np.ones((30, 5))}, {"tol": "small"}, ValueError),
        ({"X": np.ones((30, 5)), "callback": interrupt}, {}, KeyboardInterrupt),
        ({"callback": interrupt}, {"n_inducing": 5}, KeyboardInterrupt),
    ],
    ids=["levels", "one class", "parameter", "interrupted", "interrupted sparse"],
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


def test_a_first_fit_that_fails_leaves_nothing():
    X, y, fidelity = draw(20, 10)
    model = MultiFidelityClassifier(**FIXED, n_inducing=5)
    before = dict(vars(model))
    blocks = [(X[:20], y[:20], fidelity[:20]), (np.ones((2, 3)), [True, False], ["web", "lab"])]
    with pytest.raises(ValueError, match="3 features"):
        model.fit_blocks(blocks)
    assert vars(model) == before


def test_a_second_fit_starts_afresh():
    X, y, fidelity = draw(20, 10)
    model = fixed((pd.DataFrame(X, columns=["a", "b"]), y, fidelity))
    model.set_params(kernel=RBF()).fit(X[:, :1], y.astype(str))
    assert model.levels_ == (0,)
    assert model.classes_.tolist() == ["False", "True"]
    assert model.rho_.shape == (0,)
    assert model.n_features_in_ == 1
    assert not hasattr(model, "feature_names_in_")


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match=r"tuning stopped early.*raise max_iter"):
        model = fit(draw(20, 10), kernel=1.0 * RBF(), max_iter=1)
    assert not model.converged_
    assert "warning" in str(model.report_)
    assert model.report_.problems


# In scikit-learn's tools, with and without metadata routing


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validation(routing):
    (X, y, fidelity), folds = draw(), KFold(3, shuffle=True, random_state=0)
    by_hand = [
        fixed((X[train], y[train], fidelity[train])).score(X[test], y[test])
        for train, test in folds.split(X)
    ]
    model = MultiFidelityClassifier(**FIXED)
    piped = make_pipeline(StandardScaler(with_mean=False, with_std=False), model)
    name = "fidelity" if routing else "multifidelityclassifier__fidelity"
    for estimator, argument in ((model, "fidelity"), (piped, name)):
        how = {"cv": folds, "params": {argument: fidelity}, "error_score": "raise"}
        with sklearn.config_context(enable_metadata_routing=routing):
            scores = cross_validate(estimator, X, y, **how)["test_score"]
        np.testing.assert_array_equal(scores, by_hand)


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


@parametrize_with_checks(
    [
        MultiFidelityClassifier(),
        MultiFidelityClassifier.paper(),
        MultiFidelityClassifier(2.0 * RBF(), optimizer=None, inference="ep"),
        MultiFidelityClassifier(2.0 * RBF(), optimizer=None, inference="variational"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
