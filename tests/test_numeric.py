"""Levels that speak in numbers, as users meet them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_validate

from polyfid import (
    ArrayBlocks,
    MultiFidelityClassifier,
    Pooled,
    Stacked,
    TrustedKFold,
    TrustedOnly,
    evaluate,
    load,
    stack_levels,
)
from polyfid.inspection import level_difference, likely_wrong
from polyfid.kernels import RBF
from polyfid.model.logistic import expected_sigmoid
from polyfid.plots import DiscrepancyDisplay, FeasibilityDisplay

SCHEMES = ("laplace", "ep", "variational")
NUMERIC = ["simulation"]


def margin(X):
    return np.sin(4.0 * X[:, 0]) + X[:, 1] - 0.4


def beam(n=(60, 20), seed=0, wrong=0.2, labels=(False, True)):
    """A simulator's margin in millimetres, and experiments that say whether it is positive."""
    rng = np.random.RandomState(seed)
    X_sim, X_exp, new = (rng.uniform(size=(k, 2)) for k in (*n, 400))
    said = 30.0 + 7.0 * (margin(X_sim) + wrong * X_sim[:, 0])
    broke = np.asarray(labels)[(margin(X_exp) > 0).astype(int)]
    given = {"simulation": (X_sim, said), "experiment": (X_exp, broke)}
    return *stack_levels(given), new


def fixed(**options):
    """A model whose hyper-parameters are given: it fits fast."""
    given = {"kernel": [3.0 * RBF(1.0), 0.5 * RBF(2.0)], "rho": 1.5, "optimizer": None}
    return MultiFidelityClassifier(**(given | {"numeric_levels": NUMERIC} | options))


def quietly(model, X, y, fidelity):
    """Fit without warnings of climbs that end early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, fidelity=fidelity)


@pytest.fixture(scope="module")
def learnt():
    X, y, fidelity, new = beam()
    return MultiFidelityClassifier(numeric_levels=NUMERIC).fit(X, y, fidelity=fidelity), new


# ------------------------------------------------------------------------------------ identities


@pytest.mark.parametrize("inference", SCHEMES)
def test_numbers_alone_are_gaussian_process_regression(inference):
    # Two trusted rows of next to no weight: classes have to be known.
    X, y, fidelity, new = beam((40, 2))
    y[-2:] = [0.0, 1.0]
    y, weight = y.astype(float), np.r_[np.ones(40), 1e-14, 1e-14]
    model = fixed(inference=inference, noise={"simulation": 2.5})
    model.fit(X, y, fidelity=fidelity, sample_weight=weight)
    X_sim, z = X[:40], y[:40]
    centre = z.mean()
    unit = np.exp(0.75) / z.std()  # numbers get the spread that latent functions have
    S = X_sim.mean(axis=0), X_sim.std(axis=0)  # weights count here too
    own = GaussianProcessRegressor(3.0 * sk.RBF(1.0), alpha=2.5 * unit**2, optimizer=None)
    own.fit((X_sim - S[0]) / S[1], (z - centre) * unit)
    mean, sd = own.predict((new - S[0]) / S[1], return_std=True)
    found, found_sd = model.predict_value(new, with_noise=False)
    np.testing.assert_allclose(found, centre + mean / unit, rtol=1e-8)
    np.testing.assert_allclose(found_sd, sd / unit, rtol=1e-8, atol=1e-8)
    _, with_noise = model.predict_value(new)
    np.testing.assert_allclose(with_noise**2, found_sd**2 + 2.5, rtol=1e-7)
    # The two labels weigh nothing in the evidence.
    expected = own.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(expected, rel=1e-8)
    # And the posterior at the top is the prior link: f_H = rho f_L + delta.
    top = model.latent_mean_and_variance(new, "experiment")
    np.testing.assert_allclose(top[0], 1.5 * mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(top[1], 1.5**2 * sd**2 + 0.5, rtol=1e-8)


@pytest.mark.parametrize("inference", SCHEMES)
def test_weights_of_numbers_are_repetitions(inference):
    X, y, fidelity, new = beam((30, 20))
    times = np.resize([1, 2, 3], 50)
    rows = np.repeat(np.arange(50), times)
    a = fixed(inference=inference).fit(X, y, fidelity=fidelity, sample_weight=times.astype(float))
    b = fixed(inference=inference).fit(X[rows], y[rows], fidelity=fidelity[rows])
    np.testing.assert_allclose(a.predict_value(new), b.predict_value(new), rtol=1e-7)
    np.testing.assert_allclose(a.predict_proba(new), b.predict_proba(new), rtol=1e-6)


@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize("warp", [False, True])
def test_the_unit_of_numbers_does_not_matter(warp, outliers):
    X, y, fidelity, new = beam((30, 20))
    settings = {"kernel": "rbf", "warp": warp, "outliers": outliers, "max_iter": 5}
    settings |= {"optimizer": "lbfgs", "inference": "ep"}
    y[:30] = y[:30].astype(float) + np.random.RandomState(0).standard_normal(30)
    other = y.copy()
    other[:30] = 1000.0 * y[:30] - 5.0
    a, b = (quietly(fixed(**settings), X, t, fidelity) for t in (y, other))
    np.testing.assert_allclose(a.predict_proba(new), b.predict_proba(new), rtol=1e-6)
    values = [np.array(m.predict_value(new)) for m in (a, b)]
    np.testing.assert_allclose(values[1][0], 1000.0 * values[0][0] - 5.0, rtol=1e-6)
    np.testing.assert_allclose(values[1][1], 1000.0 * values[0][1], rtol=1e-6)


def test_a_power_of_one_is_no_warp():
    X, y, fidelity, new = beam((30, 20))
    a, b = (fixed(warp=warp).fit(X, y, fidelity=fidelity) for warp in (False, True))
    np.testing.assert_allclose(a.predict_proba(new), b.predict_proba(new), rtol=1e-12)
    np.testing.assert_allclose(a.predict_value(new), b.predict_value(new), rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"inference": "variational", "outliers": True}])
def test_inducing_points_at_all_rows_change_nothing(options):
    X, y, fidelity, new = beam((30, 20))
    exact = fixed(**({"inference": "variational"} | options)).fit(X, y, fidelity=fidelity)
    sparse = fixed(n_inducing=200, **options).fit(X, y, fidelity=fidelity)
    np.testing.assert_allclose(sparse.predict_proba(new), exact.predict_proba(new), atol=1e-4)
    for a, b in zip(sparse.predict_value(new), exact.predict_value(new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3)


def test_blocks_are_like_memory():
    X, y, fidelity, new = beam((300, 60), labels=("holds", "breaks"))
    order = np.random.RandomState(3).permutation(len(X))
    X, y, fidelity = X[order], y[order], fidelity[order]
    settings = {"n_inducing": 25, "n_tuning": 400, "random_state": 0, "n_jobs": 1}
    whole = fixed(**settings).fit(X, y, fidelity=fidelity)
    in_blocks = fixed(**settings).fit_blocks(ArrayBlocks(X, y, fidelity, rows=70))
    assert in_blocks.classes_.tolist() == ["breaks", "holds"]
    assert in_blocks.report_.n_rows.tolist() == [300, 60]
    # Inducing points are drawn from the sample, in another order.
    np.testing.assert_allclose(in_blocks.predict_proba(new), whole.predict_proba(new), atol=0.05)
    for a, b in zip(in_blocks.predict_value(new), whole.predict_value(new), strict=True):
        np.testing.assert_allclose(a, b, atol=0.7)


# ----------------------------------------------------------------------------------- what is learnt


def test_it_learns_from_numbers(learnt):
    model, new = learnt
    truth = margin(new) > 0
    assert np.mean(model.predict(new) == truth) > 0.93
    alone = MultiFidelityClassifier().fit(*_experiments(*beam()[:3]))
    losses = [log_loss(truth, m.predict_proba(new)) for m in (model, alone)]
    assert losses[0] < 0.7 * losses[1]
    mean, sd = model.predict_value(new)
    said = 30.0 + 7.0 * (margin(new) + 0.2 * new[:, 0])
    assert np.sqrt(np.mean((mean - said) ** 2)) < 0.05 * said.std()
    assert np.mean(np.abs(mean - said) < 2 * sd) > 0.9
    assert "simulation: 60 rows (numbers)" in str(model.report_)
    assert "errors of sd" in str(model.report_)


def _experiments(X, y, fidelity):
    top = np.asarray(fidelity) == "experiment"
    return X[top], y[top].astype(bool)


def test_the_sign_of_the_link_is_learnt(learnt):
    model, new = learnt
    X, y, fidelity, _ = beam()
    opposite = y.copy()
    opposite[:60] = -y[:60]
    mirrored = clone(model).fit(X, opposite, fidelity=fidelity)
    assert model.rho_[0] > 0.5
    assert mirrored.rho_[0] < -0.5
    np.testing.assert_allclose(mirrored.predict_proba(new), model.predict_proba(new), atol=0.02)
    means = [m.predict_value(new)[0] for m in (model, mirrored)]
    np.testing.assert_allclose(means[1], -means[0], rtol=0.02)


def test_noise_is_learnt_or_given():
    rng = np.random.RandomState(1)
    X, y, fidelity, new = beam((120, 20))
    y[:120] = y[:120].astype(float) + 2.0 * rng.standard_normal(120)
    learnt = MultiFidelityClassifier("ard", numeric_levels=NUMERIC).fit(X, y, fidelity=fidelity)
    name = learnt.theta_names_.index("noise[0]")
    sd = np.exp(learnt.theta_[name]) * y[:120].astype(float).std() / np.exp(0.75)
    assert 1.6 < sd < 2.4
    given = fixed(noise={"simulation": 4.0}).fit(X, y, fidelity=fidelity)
    assert "noise[0]" not in given.theta_names_
    assert "errors (given) of sd 2," in str(given.report_)
    _, with_noise = given.predict_value(new)
    _, without = given.predict_value(new, with_noise=False)
    np.testing.assert_allclose(with_noise**2 - without**2, 4.0, rtol=1e-8)


def test_outliers_do_little_harm_if_they_are_expected():
    rng = np.random.RandomState(2)
    X, y, fidelity, new = beam((80, 20))
    rows = rng.choice(80, 6, replace=False)
    y[rows] = y[rows].astype(float) + 100.0 * rng.choice([-1, 1], 6)
    said = 30.0 + 7.0 * (margin(new) + 0.2 * new[:, 0])
    errors = []
    for outliers in (False, True):
        model = MultiFidelityClassifier("ard", numeric_levels=NUMERIC, outliers=outliers)
        mean, _ = quietly(model, X, y, fidelity).predict_value(new)
        errors.append(np.sqrt(np.mean((mean - said) ** 2)))
    assert errors[1] < 0.3 * errors[0]


def test_skewed_numbers_are_warped():
    X, y, fidelity, _ = beam((80, 20))
    y[:80] = np.exp(0.4 * (y[:80].astype(float) - 30.0))
    plain, warped = (
        MultiFidelityClassifier("ard", numeric_levels=NUMERIC, warp=warp) for warp in (False, True)
    )
    for model in (plain, warped):
        quietly(model, X, y, fidelity)
    power = warped.theta_[warped.theta_names_.index("warp[0]")]
    assert power < 0.7
    # The derivative of the warp is in it, or a warp that shrinks all numbers would win.
    gain = warped.log_marginal_likelihood_value_ - plain.log_marginal_likelihood_value_
    assert gain > 10.0
    straight = quietly(clone(warped), *beam((80, 20))[:3])
    assert 0.6 < straight.theta_[straight.theta_names_.index("warp[0]")] < 1.4


def test_three_classes_and_levels_of_both_kinds():
    rng = np.random.RandomState(0)
    X = [rng.uniform(size=(n, 2)) for n in (60, 40, 40, 25)]
    names = np.array(["low", "middle", "high"])

    def label(X):
        return names[np.digitize(margin(X), [-0.2, 0.5])]

    crowd = label(X[0])
    crowd[::5] = "low"
    X_all, y, fidelity = stack_levels(
        {
            "crowd": (X[0], crowd),
            "coarse": (X[1], margin(X[1]) + 0.3 * X[1][:, 1]),
            "fine": (X[2], -2.0 * margin(X[2])),
            "expert": (X[3], label(X[3])),
        }
    )
    model = MultiFidelityClassifier("rbf", numeric_levels=["coarse", "fine"])
    quietly(model, X_all, y, fidelity)
    new = rng.uniform(size=(300, 2))
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert np.mean(model.predict(new) == label(new)) > 0.8
    assert np.mean(model.predict(new, fidelity="crowd") == label(new)) > 0.6
    mean, _ = model.predict_value(new)  # of the most trusted numeric level
    assert np.corrcoef(mean, -2.0 * margin(new))[0, 1] > 0.98
    mixed, _ = model.predict_value(new, fidelity=np.resize(["coarse", "fine"], 300))
    assert np.corrcoef(mixed[::2], margin(new[::2]))[0, 1] > 0.95
    np.testing.assert_allclose(mixed[1::2], mean[1::2])
    rho = np.array(model.rho_)
    assert rho.shape == (3, 3)
    assert (rho[0] * rho[1] < 0).any()  # each class has a link of its own


@pytest.mark.parametrize("noise", ["fidelity", [0.2, 0.0, 0.0]])
def test_label_noise_at_other_levels(noise):
    rng = np.random.RandomState(0)
    X, y, fidelity, new = beam((40, 20))
    crowd = rng.uniform(size=(60, 2))
    flipped = (margin(crowd) > 0) ^ (rng.uniform(size=60) < 0.2)
    X = np.concatenate([crowd, X])
    y = np.concatenate([flipped.astype(object), y])
    fidelity = np.concatenate([["crowd"] * 60, fidelity])
    model = MultiFidelityClassifier(
        "rbf",
        levels=["crowd", "simulation", "experiment"],
        numeric_levels=NUMERIC,
        label_noise=noise,
    )
    quietly(model, X, y, fidelity)
    assert np.mean(model.predict(new) == (margin(new) > 0)) > 0.85
    assert "labels flipped" in str(model.report_)


def test_a_simulator_of_pure_noise_does_no_harm():
    X, y, fidelity, new = beam((60, 40))
    y[:60] = np.random.RandomState(5).standard_normal(60)
    model = MultiFidelityClassifier(numeric_levels=NUMERIC).fit(X, y, fidelity=fidelity)
    alone = MultiFidelityClassifier().fit(*_experiments(X, y, fidelity))
    truth = margin(new) > 0
    losses = [log_loss(truth, m.predict_proba(new)) for m in (model, alone)]
    assert losses[0] < losses[1] + 0.03


# --------------------------------------------------------------------------- kept, shown, compared


@pytest.mark.parametrize("options", [{}, {"warp": True, "outliers": True}, {"n_inducing": 20}])
def test_model_files(tmp_path, options):
    X, y, fidelity, new = beam((30, 20), labels=("holds", "breaks"))
    model = MultiFidelityClassifier("rbf", numeric_levels=NUMERIC, **options)
    quietly(model, X, y, fidelity)
    model.save(tmp_path / "model.polyfid")
    loaded = load(tmp_path / "model.polyfid")
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(loaded.predict_value(new), model.predict_value(new))
    assert str(loaded.report_) == str(model.report_)


def test_baselines():
    X, y, fidelity, new = beam((100, 30))
    truth = margin(new) > 0
    stacked = Stacked(numeric_levels=NUMERIC).fit(X, y, fidelity=fidelity)
    assert np.mean(stacked.predict(new) == truth) > 0.85
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = Stacked(numeric_levels=NUMERIC).fit(frame, y, fidelity=fidelity)
    assert named.estimator_.feature_names_in_.tolist() == ["a", "b", "value_simulation"]
    for kind in (TrustedOnly, Pooled):  # numbers cannot be pooled with classes
        model = kind(numeric_levels=NUMERIC).fit(X, y, fidelity=fidelity)
        alone = TrustedOnly().fit(*_experiments(X, y, fidelity))
        np.testing.assert_allclose(model.predict_proba(new), alone.predict_proba(new))
    assert stacked.classes_.tolist() == [0.0, 1.0]


def test_the_folds_of_trusted_rows():
    X, y, fidelity, _ = beam((20, 20))
    for train, test in TrustedKFold(4).split(X, y, fidelity=fidelity):
        assert (np.asarray(fidelity)[test] == "experiment").all()
        model = fixed().fit(X[train], y[train], fidelity=fidelity[train])
        assert set(model.predict(X[test])) <= {0.0, 1.0}


@pytest.mark.parametrize("labels", [(False, True), ("breaks", "holds")])
def test_cross_validation_scores_trusted_rows(labels):
    X, y, fidelity, _ = beam((40, 30), labels=labels)
    found = cross_validate(
        fixed(), X, y, cv=TrustedKFold(3, fidelity=fidelity), scoring="accuracy",
        params={"fidelity": fidelity}, error_score="raise",
    )  # fmt: skip
    assert found["test_score"].mean() > 0.6


def test_evaluation():
    X, y, fidelity, _ = beam((60, 40))
    model = MultiFidelityClassifier("rbf", numeric_levels=NUMERIC)
    result = evaluate(X, y, fidelity, model=model, n_splits=3, n_bootstrap=100)
    assert sorted(result.scores) == ["polyfid", "stacked", "trusted only"]
    ours, alone = (result.scores[m]["log_loss"].value for m in ("polyfid", "trusted only"))
    assert ours < alone
    assert "pool" not in str(result)
    assert result.classes == (0.0, 1.0)


def test_what_was_learnt_is_shown(learnt):
    model, _ = learnt
    X, y, fidelity, _ = beam()
    display = FeasibilityDisplay.from_estimator(model, X, y, fidelity, grid_resolution=8)
    assert (display.points.code[:60] == -1).all()
    assert len(likely_wrong(model, X, y, fidelity).rows) == 0
    difference = level_difference(model, X[:5], 0, 1, 1)
    assert np.isnan(difference.probability).all()
    assert np.isfinite(difference.delta_mean).all()
    shown = DiscrepancyDisplay.from_estimator(model, X, grid_resolution=8)
    assert shown.is_numeric
    with pytest.raises(ValueError, match=r'holds numbers.*"mean" or "sd"'):
        shown.plot(show="probability")


def test_probabilities_are_those_of_the_latent_function():
    X, y, fidelity, new = beam((30, 20))
    model = fixed().fit(X, y, fidelity=fidelity)
    expected = expected_sigmoid(*model.latent_mean_and_variance(new))
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], expected, rtol=1e-7)


# ---------------------------------------------------------------------------------- y and errors


def test_y_as_objects_floats_lists_and_series():
    X, y, fidelity, new = beam((30, 20))
    assert y.dtype == float  # booleans are 0 and 1
    expected = fixed().fit(X, y, fidelity=fidelity).predict_proba(new)
    for given in (y.astype(object), list(y), pd.Series(y)):
        model = fixed().fit(X, given, fidelity=fidelity)
        np.testing.assert_array_equal(model.predict_proba(new), expected)
    y = y.astype(object)
    y[30:] = y[30:] > 0.5
    assert fixed().fit(X, y, fidelity=fidelity).classes_.dtype == bool


def test_stacked_levels_keep_text_and_numbers_apart():
    X, y, _, _ = beam((3, 3), labels=("holds", "breaks"))
    assert [type(v) for v in y[[0, -1]]] == [float, str]
    whole = {"crowd": (X, [0, 1, 0, 1, 0, 1]), "expert": (X, ["a", "b"] * 3)}
    with pytest.raises(ValueError, match="numeric_levels"):
        stack_levels(whole)


def test_a_numeric_level_has_values_and_no_classes(learnt):
    model, new = learnt
    for method in (model.predict, model.predict_proba, model.predict_log_proba, model.predict_all):
        with pytest.raises(ValueError, match=r"'simulation', a numeric level.*predict_value"):
            method(new, fidelity="simulation")
    with pytest.raises(ValueError, match="numeric level"):
        model.predict_value(new, fidelity="experiment")
    assert model.latent_mean_and_variance(new, fidelity="simulation")[0].shape == (400,)
    plain = MultiFidelityClassifier("rbf").fit(new[:40], margin(new[:40]) > 0)
    with pytest.raises(ValueError, match=r"no numeric level.*predict_proba"):
        plain.predict_value(new)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric_levels": ["simulator"]}, r"numeric_levels has unknown level 'simulator'"),
        ({"numeric_levels": "simulation"}, r"numeric_levels must be a list"),
        ({"numeric_levels": ["experiment"]}, r"names 'experiment', the most trusted level"),
        ({"noise": {"experiment": 0.1}}, r"noise has 'experiment'.*not among the numeric"),
        ({"noise": {"simulation": 0.0}}, r"noise\['simulation'\] must be one variance above 0"),
        ({"noise": 0.1}, r"noise must be a dictionary"),
        ({"outliers": True, "inference": "laplace"}, r"outliers=True .*not log-concave"),
        ({"outliers": True, "numeric_levels": None}, r"numeric_levels="),
        ({"warp": "yes"}, r"warp must be one of"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    X, y, fidelity, _ = beam((10, 10))
    y = y.astype(float) if options.get("numeric_levels", 0) is not None else np.resize([0, 1], 20)
    with pytest.raises(ValueError, match=message):
        fixed(**options).fit(X, y, fidelity=fidelity)


@pytest.mark.parametrize("bad", [np.nan, np.inf, None, "much", "3,5"])
def test_numbers_must_be_numbers(bad):
    X, y, fidelity, _ = beam((10, 10))
    y = y.astype(object)
    y[3] = bad
    with pytest.raises(ValueError, match=r"finite number .* 'simulation', .* in row 3"):
        fixed().fit(X, y, fidelity=fidelity)


def test_numbers_without_being_told_so_are_refused():
    X, y, fidelity, _ = beam((10, 10))
    with pytest.raises(ValueError, match=r"(?i)continuous|label"):
        MultiFidelityClassifier().fit(X, y, fidelity=fidelity)


def test_numbers_only_are_refused():
    X, y, fidelity, _ = beam((10, 10))
    with pytest.raises(ValueError, match="numbers only"):
        MultiFidelityClassifier(levels=["simulation", "experiment"], numeric_levels=NUMERIC).fit(
            X[:10], y[:10], fidelity=fidelity[:10]
        )
