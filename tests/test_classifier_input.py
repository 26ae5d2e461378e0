"""Bad input is refused with the argument and the remedy; odd input is dealt with."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_rows import draw, truth
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF

X = np.random.default_rng(0).normal(size=(20, 2))
Y = X[:, 0] > 0
LEVEL = np.repeat([0, 1], [14, 6])
FIXED = {"kernel": 2.0 * RBF(), "optimizer": None}


def held_out(n=1000, seed=9):
    T = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return T, truth(T)


def put(value, row=3, column=1):
    changed = X.copy()
    changed[row, column] = value
    return changed


# What is refused at fitting


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": put(np.nan)}, r"X contains NaN, in column\(s\) 1;.*SimpleImputer"),
        ({"X": put(-np.inf)}, r"X contains infinity.*column\(s\) 1;.*SimpleImputer"),
        (
            {"X": pd.DataFrame(put(np.nan), columns=["age", "size"])},
            r"X contains NaN, in column\(s\) size",
        ),
        ({"X": X[:0], "y": Y[:0]}, r"X has no rows"),
        ({"X": X[:, 0]}, r"X must have two dimensions.*Reshape"),
        ({"X": X + 1j}, r"Complex data not supported: X must hold real numbers"),
        ({"X": np.array([["a", "b"]] * 20)}, r"X has columns that are not numeric: 0, 1.*OneHot"),
        (
            {"X": pd.DataFrame({"u": X[:, 0], "v": ["x"] * 20})},
            r"X has columns that are not numeric: v \(.*\).*OneHotEncoder.*Categorical",
        ),
        ({"X": np.ma.masked_array(X, mask=X > 1)}, r"X is a masked array.*X\.filled"),
        ({"X": X.astype("datetime64[D]")}, r"X must hold numbers, got.*datetime64.*days since"),
        ({"X": pd.DataFrame(X, columns=["u", "u"])}, r"X has several columns of the same name: u"),
        ({"X": X[:, :0]}, r"X has 0 feature\(s\).*pass at least one column"),
        ({"X": (row for row in X)}, r"X must be an array, a data frame or.*got generator"),
        ({"X": [[1.0, 2.0], [3.0]]}, r"X must have as many features in every row"),
        ({"X": np.full((20, 2), 10**400, dtype=object)}, r"X holds numbers that float64 cannot"),
        ({"y": np.ma.masked_array(Y, mask=Y)}, r"y is a masked array"),
        ({"y": ["a", 1] * 10}, r"y mixes text with values of type int; name all classes alike"),
        ({"y": pd.array([None, *Y[1:]], dtype="Int64")}, r"^Input y contains NaN"),
        ({"fidelity": np.ma.masked_array(LEVEL, mask=Y)}, r"fidelity is a masked array"),
        ({"sample_weight": np.ma.masked_array(np.ones(20), mask=Y)}, r"sample_weight is a masked"),
        ({"y": Y[:5]}, r"y has 5 entries and X has 20 rows"),
        ({"y": np.where(Y, np.nan, 0)}, r"y contains NaN"),
        ({"y": [None, "a"] * 10}, r"y has missing values; give every row a class"),
        ({"y": np.zeros(20)}, r"y holds one class only, 0\.0,.*two classes"),
        ({"sample_weight": Y}, r"one class only"),
        ({"fidelity": LEVEL[:5]}, r"fidelity has 5 entries and X has 20 rows"),
        ({"fidelity": "web"}, r"fidelity must be one-dimensional"),
        ({"fidelity": ["a", 1] * 10}, r"fidelity mixes.*cannot be ordered; use one type"),
        ({"sample_weight": -np.ones(20)}, r"sample_weight must not be negative.*row 0; 0 leaves"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"X": X, "y": Y, "fidelity": LEVEL, "sample_weight": None} | arguments
    with pytest.raises(ValueError, match=f"(?s){message}"):
        MultiFidelityClassifier().fit(**given)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rfb"}, r"""kernel must be "auto", "rbf",.* or a list.*got 'rfb'"""),
        ({"kernel": [RBF(), "rbf"]}, r"kernel must be.*'rbf'"),
        ({"kernel": [RBF()]}, r"kernel is a list of 1, but there are 2 levels \[0, 1\]; give"),
        ({"kernel": [], "coupling": "coregional"}, r"kernel is a list of 0"),
        ({"kernel": RBF([1, 2, 3])}, r"3 length-scales for 2 features"),
        ({"kernel": RBF(columns=[5])}, r"column 5, but there are 2 features"),
        ({"rho": "high"}, r"rho must be one number.*got 'high'"),
        ({"rho": [1.0, 2.0]}, r"rho must be one number, or one per step between levels, 1 for 2"),
        ({"rho_bounds": (1, -1)}, r"rho_bounds must be \(low, high\) with low <= high"),
        ({"levels": ["a", "b"]}, r"fidelity has unknown level\(s\) \[0, 1\]; the levels are"),
        ({"levels": [0, 0]}, r"levels must be distinct names in a list"),
        ({"inference": "mcmc"}, r"inference must be one of \['auto', 'laplace', 'ep', 'variat"),
        ({"prior": "strong"}, r"prior must be one of \['weak', None\], got 'strong'"),
        ({"n_inducing": 0}, r"n_inducing must be \"auto\", None, a whole number from 1"),
        ({"standardize": "no"}, r"standardize must be one of \[True, False\]"),
        ({"n_restarts": -1}, r"n_restarts must be a whole number from 0"),
        ({"max_iter": 0}, r"max_iter must be a whole number from 1"),
        ({"n_tuning": 0}, r"n_tuning must be a whole number from 1"),
        ({"tol": -1.0}, r"tol must be"),
        ({"random_state": "a"}, r"seed"),
        ({"n_jobs": 0}, r"n_jobs"),
        ({"label_noise": "fidelity", "inference": "laplace"}, r"Laplace.*inference=\"ep\""),
        ({"label_noise": "who", "inference": "ep"}, r"label_noise must be one of"),
        ({"label_noise": "annotator", "inference": "ep"}, r"pass fit\(\.\.\., annotator="),
        ({"label_noise": [0.1], "inference": "ep"}, r"label_noise must be one flip rate per level"),
        ({"label_noise": [0.1, 0.6], "inference": "ep"}, r"each from 0 to below 0\.5: 2 numbers"),
        ({"fidelity_feature": 0}, r"fidelity was passed although fidelity_feature=0.*one of the"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        MultiFidelityClassifier(**parameters).fit(X, Y, LEVEL)


def test_cells_that_are_no_numbers():
    with pytest.raises(TypeError, match=r"X must hold numbers only: .* not 'dict'; encode or drop"):
        MultiFidelityClassifier().fit(np.full((20, 2), {}, dtype=object), Y, LEVEL)


FRAME = pd.DataFrame(X, columns=["u", "v"])


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame(X, schema=["u", "v"]).lazy(),
        FRAME.astype(pd.SparseDtype(float, 0.0)),
        FRAME.assign(u=pd.arrays.SparseArray(FRAME["u"])),
        pa.table({"u": X[:, 0], "v": X[:, 1]}),
        np.ma.masked_array(X),
    ],
    ids=["lazy", "sparse columns", "one sparse column", "arrow", "nothing masked"],
)
def test_tables_of_other_kinds(table):
    model = MultiFidelityClassifier(**FIXED)
    plain = model.fit(X, Y, LEVEL).predict_proba(X)
    np.testing.assert_array_equal(model.fit(table, Y, LEVEL).predict_proba(table), plain)


def test_the_fidelity_in_a_table_of_arrow():
    table = pa.table({"u": X[:, 0], "v": X[:, 1], "level": LEVEL})
    model = MultiFidelityClassifier(**FIXED, fidelity_feature="level").fit(table, Y)
    plain = MultiFidelityClassifier(**FIXED).fit(X, Y, LEVEL)
    np.testing.assert_array_equal(
        model.predict_proba(table), plain.predict_proba(X, fidelity=LEVEL)
    )


def test_entries_belong_together_by_position_whatever_their_index():
    odd = pd.Index(range(100, 80, -1))
    series = [pd.Series(values, index=odd) for values in (Y, LEVEL, np.arange(20) + 1.0)]
    model = MultiFidelityClassifier(**FIXED)
    plain = model.fit(X, Y, LEVEL, np.arange(20) + 1.0).predict_proba(X)
    np.testing.assert_array_equal(model.fit(FRAME, *series).predict_proba(FRAME), plain)


def test_numbers_in_an_array_of_objects_are_classes():
    model = MultiFidelityClassifier(**FIXED).fit(X, Y.astype(int).astype(object), LEVEL)
    assert model.classes_.tolist() == [0, 1]


def test_annotators_that_do_not_fit():
    model = MultiFidelityClassifier(label_noise="annotator", inference="ep")
    with pytest.raises(ValueError, match=r"annotator has 3 entries and X has 20 rows"):
        model.fit(X, Y, LEVEL, annotator=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"annotator has missing"):
        model.fit(X, Y, LEVEL, annotator=["a", None] * 10)


# What is refused at prediction


@pytest.fixture(scope="module")
def model():
    names = {"levels": ["a", "b"]}
    return MultiFidelityClassifier(**FIXED, **names).fit(X, Y, np.array(["a", "b"])[LEVEL])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": put(np.nan)}, r"X contains NaN, in column\(s\) 1"),
        ({"X": X[:, :1]}, r"X has 1 features, but.*expecting 2"),
        ({"X": X[:0]}, r"X has no rows"),
        ({"X": X[0]}, r"X must have two dimensions.*Reshape"),
        ({"fidelity": "c"}, r"fidelity has unknown level\(s\) \['c'\]; the levels are \['a', 'b'"),
        ({"fidelity": ["a", "c"] * 10}, r"fidelity has unknown level\(s\) \['c'\]"),
        ({"fidelity": ["a"] * 3}, r"fidelity has 3 entries and X has 20 rows"),
    ],
)
def test_bad_predictions(model, method, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(**{"X": X} | arguments)


def test_other_bad_questions(model):
    with pytest.raises(NotFittedError):
        MultiFidelityClassifier().log_marginal_likelihood()
    for theta in [[0.0], np.full(5, np.nan), "abc"]:
        with pytest.raises(ValueError, match=r"theta must be 5 numbers, rho\[1\], f\[0\]"):
            model.log_marginal_likelihood(theta)
    for n_samples in [0, -1, 2.5, "x"]:
        with pytest.raises(ValueError, match=r"n_samples must be a whole number from 1"):
            model.sample_latent(X, n_samples)


# Levels and classes that are short of rows


def test_no_high_rows():
    C = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    T, right = held_out()
    model = MultiFidelityClassifier(levels=["web", "lab"])
    with pytest.warns(UserWarning, match=r"no rows at the top level 'lab'.*link between them"):
        model.fit(C, truth(C), fidelity=["web"] * 60)
    assert model.score(T, right) > 0.9
    top, low = model.predict_proba(T), model.predict_proba(T, fidelity="web")
    # The link is not known: the top level is predicted alike, with less confidence.
    assert ((top[:, 1] > 0.5) == (low[:, 1] > 0.5)).all()
    assert np.abs(top - 0.5).mean() < np.abs(low - 0.5).mean()
    assert "no rows at the top level" in str(model.report_)


def test_one_class_at_the_top():
    A, y, fidelity = draw(60, 10, flip=0)
    y = np.where(fidelity == "lab", True, y)
    with pytest.warns(UserWarning, match=r"top level 'lab' has no row of class False;.*lower"):
        model = MultiFidelityClassifier().fit(A, y, fidelity)
    assert model.classes_.tolist() == [False, True]
    assert np.isfinite(model.predict_proba(A)).all()


@pytest.mark.parametrize("scheme", ["laplace", "ep", "variational"])
def test_two_rows(scheme):
    model = MultiFidelityClassifier(inference=scheme).fit([[0.0], [1.0]], ["a", "b"])
    proba = model.predict_proba([[-1.0], [0.5], [2.0]])
    assert proba[0, 0] > 0.5 > proba[2, 0]
    assert proba[1, 0] == pytest.approx(0.5, abs=1e-6)


def test_one_trusted_row_among_many_cheap_ones():
    C = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    T, right = held_out()
    with pytest.warns(UserWarning, match="no row of class False"):
        model = MultiFidelityClassifier(n_tuning=100, random_state=0).fit(
            np.vstack([C, [[2.0, 2.0]]]), np.append(truth(C), True), [0] * 300 + [1]
        )
    assert model.score(T, right) > 0.95
    assert "on 100 of 301 rows" in str(model.report_)


@pytest.mark.parametrize("scheme", ["laplace", "ep", "variational"])
def test_one_row_of_a_class(scheme):
    Z = np.random.default_rng(0).uniform(-2, 2, (200, 2))
    Z[0] = 2.0
    y = np.arange(200) == 0
    model = MultiFidelityClassifier(inference=scheme).fit(Z, y)
    proba = model.predict_proba(Z)[:, 1]
    assert proba.argmax() == 0
    assert proba[1:].max() < 0.5
    assert proba.mean() < 0.05


# Features


@pytest.mark.parametrize("value", [0.0, 3.7, 1e12, -1e-12])
def test_constant_features(value):
    A, y, fidelity = draw(40, 15, flip=0)
    T, _ = held_out(50)
    wide, new = (np.insert(x, 2, value, axis=1) for x in (A, T))
    plain = MultiFidelityClassifier(**FIXED).fit(A, y, fidelity)
    model = MultiFidelityClassifier(**FIXED).fit(wide, y, fidelity)
    np.testing.assert_allclose(model.predict_proba(new), plain.predict_proba(T), atol=1e-10)


def test_nothing_but_constant_features():
    y = np.arange(30) < 20
    model = MultiFidelityClassifier().fit(np.ones((30, 2)), y)
    proba = model.predict_proba(np.ones((1, 2)))[0, 1]
    assert proba == pytest.approx(2 / 3, abs=0.05)


@pytest.mark.parametrize("size", [1e-100, 1e12, np.array([1e100, 1e-12])])
def test_features_of_other_sizes(size):
    A, y, fidelity = draw(30, 15, flip=0)
    T, _ = held_out(50)
    kernel = "auto" if np.ndim(size) == 0 else 2.0 * RBF(ard=True)  # one that keeps no proportions
    plain = MultiFidelityClassifier(kernel).fit(A, y, fidelity)
    model = MultiFidelityClassifier(kernel).fit(A * size, y, fidelity)
    np.testing.assert_allclose(model.predict_proba(T * size), plain.predict_proba(T), atol=1e-6)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 60))
    model = MultiFidelityClassifier().fit(A, A[:, 0] > 0)
    assert len(model.theta_) < 12  # few parameters, however many features
    assert np.isfinite(model.predict_proba(A)).all()
    assert model.score(A, A[:, 0] > 0) > 0.9


# Labels


@pytest.mark.parametrize("scheme", ["laplace", "ep", "variational"])
def test_rows_that_contradict_each_other(scheme):
    Z = np.repeat(np.linspace(-1, 1, 10), 2)[:, None]
    y = np.tile([0, 1], 10)
    model = MultiFidelityClassifier(inference=scheme).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(Z), 0.5, atol=1e-3)


def test_perfectly_separable():
    Z = np.linspace(-1, 1, 30)[:, None]
    y = Z[:, 0] > 0
    model = MultiFidelityClassifier().fit(Z, y)
    assert model.converged_
    proba = model.predict_proba(Z)[:, 1]
    assert proba[0] < 0.2
    assert proba[-1] > 0.8
    free = MultiFidelityClassifier(prior=None).fit(Z, y)  # runs into its bounds
    assert model.score(Z, y) == free.score(Z, y) == 1.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_cheap_labels_do_no_harm(seed):
    A, y, fidelity = draw(100, 40, seed=seed, change=lambda y, rng: rng.uniform(size=len(y)) < 0.5)
    T, right = held_out()
    trusted = fidelity == "lab"
    both = MultiFidelityClassifier().fit(A, y, fidelity)
    alone = MultiFidelityClassifier().fit(A[trusted], y[trusted])
    assert both.score(T, right) > alone.score(T, right) - 0.02
    losses = [log_loss(right, m.predict_proba(T)) for m in (both, alone)]
    assert losses[0] < losses[1] + 0.03


@pytest.mark.filterwarnings("ignore:inference did not converge")  # of a structure of little weight
@pytest.mark.parametrize(("seed", "scheme"), [(0, "laplace"), (1, "laplace"), (2, "ep")])
def test_inverted_cheap_labels_are_turned_round(seed, scheme):
    A, y, fidelity = draw(100, 15, seed=seed, change=lambda y, rng: ~y)
    T, right = held_out()
    model = MultiFidelityClassifier(inference=scheme).fit(A, y, fidelity)
    assert model.score(T, right) > 0.93
    assert "lab on web: rho -" in str(model.report_)


# Anything


@st.composite
def problems(draw):
    n, d = draw(st.integers(2, 25)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "wide", "far", "ties", "constant"]))
    A = rng.normal(size=(n, d))
    if kind == "wide":
        A = np.sign(A) * 10.0 ** rng.uniform(-30, 30, (n, d))
    elif kind == "far":
        A = A * 10.0 ** rng.uniform(-12, 12, d) + 10.0 ** rng.uniform(-12, 12, d)
    elif kind == "ties":
        A = rng.integers(0, 3, (n, d)).astype(float)
    elif kind == "constant":
        A = np.repeat(A[:1], n, axis=0)
    y = rng.integers(0, draw(st.integers(1, 3)), n)
    level = rng.integers(0, draw(st.integers(1, 3)), n)
    weight = None
    if draw(st.booleans()):
        weight = rng.choice([0.0, 0.01, 0.5, 1.0, 2.0, 100.0], n)
    return A, y, level, weight


@settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    problem=problems(),
    scheme=st.sampled_from(["laplace", "ep", "variational"]),
    prior=st.sampled_from(["weak", None]),
    coupling=st.sampled_from(["autoregressive", "coregional"]),
)
def test_anything(problem, scheme, prior, coupling):
    A, y, level, weight = problem
    model = MultiFidelityClassifier(
        inference=scheme, prior=prior, coupling=coupling, max_iter=5, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "there are no rows at the top|the top level .* has no")
        try:
            model.fit(A, y, level, weight)
        except ValueError as error:
            documented = "y holds one class only", "sample_weight is zero in all rows"
            assert str(error).startswith(documented)  # noqa: PT017
            return
    new = np.vstack([A, A[::-1] * 1.5 + 1.0])
    for name in model.levels_:
        proba = model.predict_proba(new, fidelity=name)
        assert ((proba >= 0) & (proba <= 1)).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
        assert (model.predict_log_proba(new, fidelity=name) <= 1e-12).all()
        mean, variance = model.latent_mean_and_variance(new, fidelity=name)
        assert np.isfinite(mean).all()
        assert (variance >= 0).all()
    assert set(model.predict(new)) <= set(y.tolist())
    assert np.isfinite(model.log_marginal_likelihood())
    assert "evidence" in str(model)
