"""Models in files: the same after as before, whole or not at all, harmless whoever made them."""

import json
import math
import os
import pickle
import stat
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass, fields

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved_models import MODELS, PRELUDE, seal, split, two_levels
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk

import polyfid
from polyfid import MultiFidelityClassifier, load, persistence
from polyfid.features import FeatureMap
from polyfid.kernels import (
    RBF,
    Categorical,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern52,
    RationalQuadratic,
    White,
)
from polyfid.likelihoods import Likelihood
from polyfid.linalg import Cholesky, Indefinite
from polyfid.persistence import ModelFileError, inspect, read, register, write
from polyfid.persistence.codec import MAX_DEPTH
from polyfid.persistence.registry import fits, take_apart
from polyfid.prior import Prior
from polyfid.tables import Roles, read_labelled
from polyfid.tabular import TableModel

NEW = np.random.RandomState(9).standard_normal((40, 2))


def binary(**changes):
    X, y, fidelity = two_levels()
    given = {"kernel": 1.0 * RBF(), "random_state": 0, **changes}
    return MultiFidelityClassifier(**given).fit(X, y, fidelity=fidelity)


def three_classes():
    X, y, fidelity = two_levels()
    code = y.astype(int) + 2 * (X[:, 1] > 1.0)
    return MultiFidelityClassifier(1.0 * RBF()).fit(X, np.minimum(code, 2) * 10, fidelity=fidelity)


def annotators():
    X, y, fidelity = two_levels()
    who = np.array(["ann", "bob", "eve"])[np.arange(len(X)) % 3]
    model = MultiFidelityClassifier(
        1.0 * RBF(), label_noise="annotator", inference="ep", max_iter=20, tol=1e-3
    )
    return model.fit(X, y, fidelity=fidelity, annotator=who)


def frame_with_fidelity():
    X, y, fidelity = two_levels()
    frame = pd.DataFrame(X, columns=["length", "naïve <b>"]).assign(trust=fidelity)
    labels = pd.Series(np.where(y, "yes", "no"), dtype=object)
    return MultiFidelityClassifier(1.0 * RBF(), fidelity_feature="trust").fit(frame, labels)


def weighted():
    X, y, fidelity = two_levels()
    weight = np.random.RandomState(1).choice([0.0, 0.5, 1.0, 3.0], len(X))
    model = MultiFidelityClassifier(1.0 * RBF(), n_tuning=30, random_state=3)
    return model.fit(X, y, fidelity=fidelity, sample_weight=weight)


def with_categories():
    X, y, fidelity = two_levels(40)
    X = np.column_stack([X[:, 0], np.eye(3)[np.arange(40) % 3]])
    return MultiFidelityClassifier(random_state=0, verbose=0).fit(X, y, fidelity=fidelity)


KERNELS = (
    RBF(ard=True) * Constant(2.0, (0.1, 10.0)),
    Matern52(2.0) + White(0.1, "fixed") + Linear(columns=[1]) * RationalQuadratic(alpha=0.7),
)
MAKERS = {
    "plain": binary,
    "structures averaged": with_categories,
    "three classes": three_classes,
    "known label noise": lambda: binary(label_noise=(0.2, 0.01), optimizer=None, inference="ep"),
    "learnt label noise": lambda: binary(
        label_noise="fidelity", inference="variational", max_iter=5, tol=1e-2
    ),
    "annotators": annotators,
    "sources without order": lambda: binary(coupling="coregional"),
    "a kernel a level": lambda: binary(kernel=list(KERNELS), rho_bounds="fixed", rho=[0.5]),
    "kernel of scikit-learn": lambda: binary(kernel=2.0 * sk.Matern([1.0, 2.0], nu=2.5)),
    "wrapped kernel": lambda: binary(
        kernel=Constant(2.0) * wrapped(),
        optimizer=None,
        standardize=False,
        levels=("crowd", "expert"),
    ),
    "categories by hand": lambda: binary(kernel=Matern12(columns=[0]) * Categorical(columns=[1])),
    "fidelity in a data frame": frame_with_fidelity,
    "weights and a tuning sample": weighted,
    "inference by EP": lambda: binary(inference="ep", levels=iter(["crowd", "expert"])),
}


def wrapped():
    """A kernel that has no native counterpart; nothing in it is tuned, so that nothing warns."""
    return sk.ExpSineSquared(2.0, 3.0, "fixed", "fixed") + sk.PairwiseKernel(
        metric="laplacian", gamma=0.3, gamma_bounds="fixed"
    )


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Waiting for the disk takes most of the time of a small file, and matters to one test."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def models():
    """The models by name, each fitted when first asked for."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = MAKERS[name]()
        return made[name]

    return get


@pytest.fixture(scope="module")
def file_bytes(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "plain.polyfid"
    models("plain").save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def table_model():
    X, y, fidelity = two_levels()
    colour = np.array(["red", "green", None])[np.arange(60) % 3]
    frame = pd.DataFrame({"id": np.arange(60), "x1": X[:, 0], "x2": X[:, 1], "colour": colour})
    frame = frame.assign(label=np.where(y, "good", "bad"), fidelity=fidelity)
    table = read_labelled([frame], Roles(levels=("crowd", "expert")))
    return TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()), missing="indicator")


@pytest.fixture(scope="module")
def table_bytes(table_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "table.polyfid"
    table_model.save(path)
    return path.read_bytes()


def new_rows(model):
    if model.n_features_in_ == 4:
        return np.column_stack([NEW[:, 0], np.eye(3)[np.arange(40) % 3]])
    if hasattr(model, "feature_names_in_"):
        return pd.DataFrame(NEW, columns=model.feature_names_in_)
    return NEW


def same(a, b):
    """Equal to the last bit, types included."""
    assert type(a) is type(b)
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind == "O":
            same(a.tolist(), b.tolist())
        else:
            assert a.tobytes() == b.tobytes()
    else:
        assert a == b or (a != a and b != b)


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(models, name, tmp_path):
    model = models(name)
    model.save(tmp_path / "model.polyfid")
    again = load(tmp_path / "model.polyfid")
    X = new_rows(model)
    for level in (None, *model.levels_):
        same(again.predict(X, level), model.predict(X, level))
        same(again.predict_proba(X, level), model.predict_proba(X, level))
        same(again.predict_log_proba(X, level), model.predict_log_proba(X, level))
        for method in ("latent_mean_and_variance", "latent_mean_and_covariance"):
            same(getattr(again, method)(X, level), getattr(model, method)(X, level))
    draws = [m.sample_latent(X[:5], 3, random_state=1) for m in (again, model)]
    same(*draws)
    same(again.log_marginal_likelihood(), model.log_marginal_likelihood())
    gradients = [m.log_marginal_likelihood(eval_gradient=True) for m in (again, model)]
    same(*gradients)
    moved = [
        m.log_marginal_likelihood(
            m.theta_ + 0.1 if isinstance(m.theta_, np.ndarray) else [t + 0.1 for t in m.theta_]
        )
        for m in (again, model)
        if isinstance(m.theta_names_, tuple) == isinstance(m.theta_, np.ndarray)
    ]
    same(moved[:1], moved[1:])
    assert str(again.report_) == str(model.report_)
    assert again.report_.to_html() == model.report_.to_html()
    assert repr(again) == repr(model) or name == "inference by EP"  # whose levels were an iterator
    assert repr(again.structures_) == repr(model.structures_)
    assert repr(again.kernels_) == repr(model.kernels_)
    for attribute in ("classes_", "levels_", "annotators_", "rho_", "theta_", "theta_names_"):
        same(getattr(again, attribute), getattr(model, attribute))
    for attribute in ("n_iter_", "converged_", "n_features_in_", "log_marginal_likelihood_value_"):
        same(getattr(again, attribute), getattr(model, attribute))
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    # Saved again, it gives the same file.
    again.save(tmp_path / "again.polyfid")
    model.save(tmp_path / "model.polyfid")
    assert (tmp_path / "again.polyfid").read_bytes() == (tmp_path / "model.polyfid").read_bytes()


def test_the_models_have_the_parts_that_matter(models):
    factors = {
        name: type(models(name)._mixtures[0].best.fit.posterior.factor)
        for name in ("plain", "known label noise")
    }
    assert factors == {"plain": Cholesky, "known label noise": Indefinite}
    kinds = {type(m.features).__name__ for m in models("structures averaged")._mixtures[0].members}
    assert len(kinds) >= 3
    assert "Coded" in kinds
    assert len(models("three classes")._mixtures) == 3


def test_a_model_of_tables_is_loaded_by_the_same_function(table_model, table_bytes, tmp_path):
    path = tmp_path / "t.polyfid"
    path.write_bytes(table_bytes)
    assert inspect(path)["kind"] == "table"
    again = load(path)
    assert isinstance(again, TableModel)
    assert again.recipe == table_model.recipe
    assert again.roles == table_model.roles
    new = pd.DataFrame({"x1": NEW[:, 0], "x2": NEW[:, 1], "colour": "red"})
    pd.testing.assert_frame_equal(again.predict(new), table_model.predict(new), check_exact=True)
    again.save(path)
    assert path.read_bytes() == table_bytes


def test_a_loaded_model_goes_on_as_an_estimator(models, tmp_path):
    models("plain").save(tmp_path / "m.polyfid")
    again = load(tmp_path / "m.polyfid")
    X, y, fidelity = two_levels()
    fresh = clone(again).fit(X, y, fidelity=fidelity)
    same(fresh.predict_proba(NEW), again.predict_proba(NEW))
    with pytest.raises(ValueError, match="2 features"):
        again.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="unknown level"):
        again.predict(NEW, "oracle")


def test_a_data_frame_is_known_by_its_columns_after_loading(models, tmp_path):
    models("fidelity in a data frame").save(tmp_path / "m.polyfid")
    again = load(tmp_path / "m.polyfid")
    assert again.feature_names_in_.tolist() == ["length", "naïve <b>"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame(NEW, columns=["length", "other"]))
    at_levels = pd.DataFrame(NEW, columns=again.feature_names_in_).assign(trust="crowd")
    same(again.predict_proba(at_levels), again.predict_proba(new_rows(again), "crowd"))


def test_another_process_loads_the_same_model_and_needs_no_extras(models, tmp_path):
    model = models("structures averaged")
    model.save(tmp_path / "m.polyfid")
    np.save(tmp_path / "x.npy", new_rows(model))
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow'])); "
        "import numpy as np; from polyfid import load; f = sys.argv[1]; "
        "p = load(f + '/m.polyfid').predict_proba(np.load(f + '/x.npy')); np.save(f + '/p.npy', p)"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    same(np.load(tmp_path / "p.npy"), model.predict_proba(new_rows(model)))


def test_loading_neither_prints_nor_warns(tmp_path, capsys):
    X, y, _ = two_levels()
    with pytest.warns(UserWarning, match="no rows at the top level"):
        model = MultiFidelityClassifier(1.0 * RBF(), levels=["crowd", "expert"], verbose=1).fit(
            X, y, fidelity=np.full(len(X), "crowd")
        )
    assert "levels" in capsys.readouterr().out
    model.save(tmp_path / "m.polyfid")
    again = load(tmp_path / "m.polyfid")
    assert capsys.readouterr().out == ""
    assert again.verbose == 1
    assert again.report_.notes == model.report_.notes != ()


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (np.array([False, True]), "b"),
        (np.array([-3, 2**40]), "i"),
        (np.array([0.0, 1.0], dtype=np.float32), "f"),
        (np.array(["", "naïve 💡"]), "U"),
        (np.array(["a", "b"], dtype=object), "O"),
        (np.array([3, 7], dtype=np.uint8), "u"),
    ],
)
def test_classes_of_every_type_come_back_as_they_were(classes, kind, tmp_path):
    X, y, _ = two_levels(30)
    model = MultiFidelityClassifier(RBF(), optimizer=None).fit(X, classes[y.astype(int)])
    model.save(tmp_path / "m.polyfid")
    again = load(tmp_path / "m.polyfid")
    assert again.classes_.dtype.kind == model.classes_.dtype.kind == kind
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == classes.tolist()
    assert again.predict(NEW).tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize("levels", [(0, 1), (0.5, 1.5), ("a", "b"), (False, True)])
def test_names_of_levels_come_back_as_they_were(levels, tmp_path):
    X, y, fidelity = two_levels()
    named = np.where(fidelity == "crowd", *levels)
    model = MultiFidelityClassifier(RBF(), optimizer=None).fit(X, y, fidelity=named)
    model.save(tmp_path / "m.polyfid")
    same(load(tmp_path / "m.polyfid").levels_, model.levels_)


def test_a_state_of_random_numbers_is_saved_as_none_with_a_note(tmp_path):
    model = binary(random_state=np.random.RandomState(0))
    model.save(tmp_path / "m.polyfid")
    assert load(tmp_path / "m.polyfid").random_state is None
    assert "RandomState" in inspect(tmp_path / "m.polyfid")["note"]
    binary(random_state=np.int64(7)).save(tmp_path / "m.polyfid")
    assert load(tmp_path / "m.polyfid").random_state == 7
    assert "note" not in inspect(tmp_path / "m.polyfid")


def test_what_cannot_be_saved_is_named_and_leaves_nothing(models, tmp_path):
    class Mine(MultiFidelityClassifier):
        pass

    class Odd(RBF):
        pass

    X, y, _ = two_levels(30)
    path = tmp_path / "m.polyfid"
    with pytest.raises(NotFittedError):
        MultiFidelityClassifier().save(path)
    with pytest.raises(TypeError, match="Mine may be more"):
        Mine(RBF(), optimizer=None).fit(X, y).save(path)
    with pytest.raises(TypeError, match=r"kernel is a .*Odd, which a model file cannot hold"):
        MultiFidelityClassifier(Odd(), optimizer=None).fit(X, y).save(path)
    with pytest.raises(TypeError, match=r"x\[1\] is a builtins.set"):
        write(path, "thing", {"x": [1, {2}]})
    with pytest.raises(TypeError, match="complex128"):
        write(path, "thing", np.zeros(2, dtype=complex))
    with pytest.raises(TypeError, match=r"builtins\.type"):
        write(path, "thing", [int])
    with pytest.raises(ValueError, match="'schema'"):
        write(path, "thing", 1, about={"schema": 2})
    assert list(tmp_path.iterdir()) == []


def test_a_sum_of_many_kernels_is_saved_and_one_of_too_many_refused(tmp_path):
    X, y, _ = two_levels(30)
    kernel = sum((RBF(0.1 + 0.1 * i) for i in range(60)), RBF())
    model = MultiFidelityClassifier(kernel, optimizer=None).fit(X, y)
    model.save(tmp_path / "m.polyfid")
    same(load(tmp_path / "m.polyfid").predict_proba(NEW), model.predict_proba(NEW))
    deep = RBF()
    for _ in range(2 * MAX_DEPTH):
        deep = deep + RBF()
    with pytest.raises(ValueError, match="nested more than"):
        write(tmp_path / "deep.polyfid", "thing", deep)


def test_pickle_and_joblib_work_too(models, tmp_path):
    model = models("structures averaged")
    joblib.dump(model, tmp_path / "m.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        same(again.predict_proba(new_rows(model)), model.predict_proba(new_rows(model)))
        assert str(again.report_) == str(model.report_)


# ---------------------------------------------------------------------- the header


def test_inspect_tells_what_the_model_is(models, tmp_path):
    model = models("plain")
    model.save(tmp_path / "m.polyfid")
    header = inspect(tmp_path / "m.polyfid")
    assert header["format"] == "polyfid model"
    assert header["schema"] == persistence.SCHEMA == 1
    assert header["kind"] == "classifier"
    assert header["created_by"] == f"polyfid {polyfid.__version__}"
    assert header["versions"]["numpy"] == np.__version__
    assert header["levels"] == ["crowd", "expert"]
    assert header["classes"] == [False, True]
    assert header["features"] is None
    assert header["n_features"] == 2
    counts = [list(row.values()) for row in header["rows"].values()]
    assert counts == model.report_.counts.tolist()
    assert header["structures"] == {"kernel as given": 1.0}
    assert header["hyper_parameters"] == dict(zip(model.theta_names_, model.theta_, strict=True))
    assert "state" not in header
    sizes = sum(entry["nbytes"] for entry in header["arrays"])
    assert sizes < (tmp_path / "m.polyfid").stat().st_size
    assert {"name", "dtype", "shape", "offset", "nbytes"} <= set(header["arrays"][0])
    json.dumps(header, allow_nan=False)


def test_inspect_of_several_classes_and_names(models, tmp_path):
    models("three classes").save(tmp_path / "m.polyfid")
    header = inspect(tmp_path / "m.polyfid")
    assert list(header["structures"]) == list(header["hyper_parameters"]) == ["0", "10", "20"]
    models("fidelity in a data frame").save(tmp_path / "m.polyfid")
    assert inspect(tmp_path / "m.polyfid")["features"] == ["length", "naïve <b>"]


def test_inspect_builds_nothing_and_reads_no_arrays(models, tmp_path):
    write(tmp_path / "m.polyfid", "thing", np.zeros(1 << 20))
    tracemalloc.start()
    try:
        inspect(tmp_path / "m.polyfid")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_triangles_are_stored_without_what_was_never_written(models, tmp_path):
    models("plain").save(tmp_path / "m.polyfid")
    packed = [a for a in inspect(tmp_path / "m.polyfid")["arrays"] if "packed" in a["name"]]
    assert [a["shape"] for a in packed] == [[60 * 61 // 2]]


def test_arrays_that_are_shared_are_stored_once_and_shared_again(tmp_path):
    x = np.arange(5.0)
    write(tmp_path / "m.polyfid", "thing", [x, {"again": x}, x.copy()])
    assert len(inspect(tmp_path / "m.polyfid")["arrays"]) == 2
    _, (first, second, third) = read(tmp_path / "m.polyfid")
    assert first is second["again"]
    assert third is not first


# ---------------------------------------------------------------------- the codec

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from(
        [
            np.float64(0.1),
            np.float32(0.1),
            np.float64("nan"),
            np.float32("-inf"),
            np.int8(-3),
            np.uint64(2**64 - 1),
            np.bool_(True),
            np.str_("x\x00y"),
            np.str_(""),
            np.bytes_(b"\xff"),
            np.datetime64("2024-01-01"),
            np.timedelta64(3, "s"),
        ]
    )
)
ARRAYS = st.sampled_from(
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(3, dtype=">i4"),
        np.array(5.0),
        np.empty((0, 3)),
        np.array([], dtype="U"),
        np.array(["a", "💡 long"]),
        np.array([b"\x00\xff"]),
        np.array([True, False]),
        np.array([1.5], dtype=np.float16),
        np.array(["2024-01-01", "NaT"], dtype="M8[ns]"),
        np.array([[None, "x"], [1, 2.5]], dtype=object),
    ]
)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.text(max_size=4) | st.integers() | st.just("$array"), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def same_value(a, b):
    """As `same`; byte order and strides of arrays apart."""
    if isinstance(a, dict):
        assert list(a) == list(b)
        same_value(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same_value(x, y)
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape
        assert a.dtype.kind == b.dtype.kind
        assert b.dtype.isnative
        same_value(a.ravel().tolist(), b.ravel().tolist())
    else:
        assert type(a) is type(b)
        if isinstance(a, np.generic):
            assert a.dtype == b.dtype
        assert repr(a) == repr(b)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=VALUES)
def test_any_value_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.polyfid"
    write(path, "thing", value)
    kind, again = read(path)
    assert kind == "thing"
    same_value(value, again)


def test_the_order_of_arrays_in_memory_is_kept(tmp_path):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    write(tmp_path / "x.polyfid", "thing", [x, x.T])
    _, (a, b) = read(tmp_path / "x.polyfid")
    assert a.flags.f_contiguous
    assert not a.flags.c_contiguous
    assert b.flags.c_contiguous
    assert np.array_equal(a, x)


def concrete(base):
    """The classes below one, of the library, that can have instances."""
    for cls in base.__subclasses__():
        own = cls.__module__.startswith("polyfid.")
        if own and not cls.__abstractmethods__ and not cls.__name__.startswith("_"):
            yield cls
        yield from concrete(cls)


@pytest.mark.parametrize("base", [Kernel, FeatureMap, Likelihood, Prior])
def test_no_part_of_a_model_is_forgotten_on_the_list(base):
    from polyfid.persistence.registry import _BY_CLASS, _HOMES, _place

    found = {cls for cls in concrete(base) if _place(cls) not in _HOMES}
    assert found
    assert found <= set(_BY_CLASS), "register the new class in polyfid/persistence/known.py"


def test_kernels_of_scikit_learn_are_imported_where_a_file_has_one(tmp_path):
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    for name, kernel in (("native", RBF()), ("theirs", sk.RBF(1.0, "fixed") ** 2)):
        model = MultiFidelityClassifier(kernel, optimizer=None).fit(X, X[:, 0] > 0.0)
        model.save(tmp_path / name)
    code = (
        "import sys, polyfid\n"
        "polyfid.load('native')\n"
        "assert 'sklearn.gaussian_process' not in sys.modules\n"
        "model = polyfid.load('theirs')\n"
        "print(model.kernel, model.predict([[0.5]]))\n"
        "model.save('again')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "RBF(length_scale=1) ** 2 [ True]\n"
    assert (tmp_path / "again").read_bytes() == (tmp_path / "theirs").read_bytes()


@register
@dataclass(frozen=True)
class Spam:
    eggs: int
    ham: tuple[str, ...] = ("default",)
    more: "dict[str, float] | None" = None


def test_registered_classes_come_back(tmp_path):
    path = tmp_path / "spam.polyfid"
    spam = Spam(3, ("a", "b"), {"x": math.nan})
    write(path, "thing", {"spam": spam})
    _, state = read(path)
    assert repr(state["spam"]) == repr(spam)


def test_a_field_that_came_later_takes_its_default_and_others_are_refused(tmp_path):
    path = tmp_path / "spam.polyfid"
    write(path, "thing", Spam(3))
    header, rest = split(path.read_bytes())
    del header["state"]["fields"]["ham"]
    path.write_bytes(seal(header, rest))
    assert read(path)[1] == Spam(3)
    header["state"]["fields"]["colour"] = 1
    path.write_bytes(seal(header, rest))
    with pytest.raises(ModelFileError, match="Spam has no field 'colour'"):
        read(path)
    header["state"]["fields"] = {"ham": {"$tuple": []}}
    path.write_bytes(seal(header, rest))
    with pytest.raises(ModelFileError, match="Spam lacks its field 'eggs'"):
        read(path)


@pytest.mark.parametrize("eggs", ["3", 3.5, None, True, [3]])
def test_fields_of_another_type_are_refused_on_the_way_in_and_out(eggs, tmp_path):
    path = tmp_path / "spam.polyfid"
    with pytest.raises(TypeError, match=r"Spam\.eggs"):
        write(path, "thing", Spam(eggs))
    write(path, "thing", Spam(3))
    header, rest = split(path.read_bytes())
    header["state"]["fields"]["eggs"] = eggs
    path.write_bytes(seal(header, rest))
    with pytest.raises(ModelFileError, match=r"Spam\.eggs"):
        read(path)


def test_register_takes_frozen_dataclasses_under_names_of_their_own():
    @dataclass
    class Loose:
        x: int

    @dataclass(frozen=True)
    class Points:
        x: int

    with pytest.raises(TypeError, match="frozen dataclass"):
        register(Loose)
    with pytest.raises(TypeError, match="frozen dataclass"):
        register(int)
    with pytest.raises(ValueError, match="'Points' is taken"):
        register(Points)
    assert take_apart(Points(1)) is None
    assert register(Spam) is Spam  # again, as when a module is reloaded


@pytest.mark.parametrize(
    ("value", "hint", "good"),
    [
        (1, float, True),
        (np.float32(1), float, True),
        (True, float, False),
        (True, bool, True),
        (1, bool, False),
        (None, None, True),
        (0, None, False),
        ((1, "a"), tuple[int, str], True),
        ((1, "a", 2), tuple[int, str], False),
        ((), tuple[int, ...], True),
        ([1, "a"], list[int], False),
        ({"a": 1}, dict[str, int], True),
        ({1: 1}, dict[str, int], False),
        (np.zeros(2), np.ndarray, True),
        ([0.0], np.ndarray, False),
        ("a", str | None, True),
        (1, str | None, False),
    ],
)
def test_annotations_are_checked(value, hint, good):
    assert fits(value, hint) is good


# -------------------------------------------------------------------- the file


def test_an_existing_file_is_replaced_with_its_permissions(models, tmp_path):
    path = tmp_path / "m.polyfid"
    path.write_text("old")
    path.chmod(0o640)
    models("plain").save(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.polyfid"]


def test_a_new_file_has_the_usual_permissions(models, tmp_path):
    (tmp_path / "usual").write_text("")
    models("plain").save(tmp_path / "m.polyfid")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_link_stays_a_link(models, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "m.polyfid").write_text("old")
    link = tmp_path / "link.polyfid"
    link.symlink_to(tmp_path / "real" / "m.polyfid")
    models("plain").save(link)
    assert link.is_symlink()
    load(tmp_path / "real" / "m.polyfid")


def test_all_is_on_the_disk_before_the_old_file_goes(models, tmp_path, monkeypatch):
    calls = []
    original = os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync"))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), original(a, b)))
    models("plain").save(tmp_path / "m.polyfid")
    assert calls == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    models, tmp_path, monkeypatch, step, error
):
    path = tmp_path / "m.polyfid"
    path.write_text("old")

    def fail(*args):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        models("plain").save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.polyfid"]


def test_errors_of_the_system_stay_what_they_are(models, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.polyfid")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        models("plain").save(tmp_path / "nowhere" / "m.polyfid")
    with pytest.raises(IsADirectoryError):
        models("plain").save(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------- files that are no models


def refused(path, data, match=None):
    """That a file is refused by all that read files, and by nothing but ModelFileError."""
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


class Bomb:
    def __reduce__(self):
        return exec, ("import os; os.environ['WENT_OFF'] = 'yes'",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 5000,
        b"x1,x2,label\n1,2,yes\n" * 100,
        pickle.dumps(Bomb()),
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        b"PK\x03\x04" + b"\x00" * 100,
        b"\x89polyfi",
    ],
    ids=["empty", "zeros", "csv", "pickle", "npy", "zip", "almost"],
)
def test_foreign_files_are_refused(tmp_path, data):
    refused(tmp_path / "m.polyfid", data, "is not a polyfid model")
    with pytest.raises(ModelFileError):
        inspect(tmp_path / "m.polyfid")
    assert "WENT_OFF" not in os.environ


def test_a_file_cut_anywhere_is_called_truncated(tmp_path, file_bytes):
    length = PRELUDE.unpack(file_bytes[: PRELUDE.size])[1]
    cuts = [8, 20, PRELUDE.size - 1, PRELUDE.size, PRELUDE.size + length // 2]
    cuts += [PRELUDE.size + length, len(file_bytes) // 2, len(file_bytes) - 1]
    for cut in cuts:
        refused(tmp_path / "m.polyfid", file_bytes[:cut], "truncated")
    refused(tmp_path / "m.polyfid", file_bytes + b"\x00", "1 bytes that belong to no model")


def test_a_bit_that_flips_anywhere_is_noticed(tmp_path, file_bytes):
    for place in [0, 9, 17, 60, 700, len(file_bytes) // 2, len(file_bytes) - 1]:
        data = bytearray(file_bytes)
        data[place] ^= 1
        refused(tmp_path / "m.polyfid", bytes(data))
    refused(tmp_path / "m.polyfid", bytes(data), "altered since it was saved")


def test_a_later_schema_says_what_to_do(tmp_path, file_bytes):
    header, rest = split(file_bytes)
    header |= {"schema": 2, "created_by": "polyfid 9.0", "state": {"$new": 1}}
    message = refused(tmp_path / "m.polyfid", seal(header, rest), "update polyfid")
    assert "polyfid 9.0 with schema 2" in message


def test_another_kind_says_what_to_do(tmp_path, file_bytes):
    header, rest = split(file_bytes)
    data = seal({**header, "kind": "dragon"}, rest)
    refused(tmp_path / "m.polyfid", data, "holds a 'dragon'.*update polyfid")


def test_a_state_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "m.polyfid"
    for state in (None, [], {"parameters": {}}, Spam(1), RBF()):
        write(path, "classifier", state)
        with pytest.raises(ModelFileError):
            load(path)


TERABYTE = 1 << 40


def entry(**changes):
    given = {"name": "x", "dtype": "<f8", "shape": [1], "offset": 0, "nbytes": 8}
    return {**given, **changes}


@pytest.mark.parametrize(
    "table",
    [
        [entry(shape=[TERABYTE], nbytes=8 * TERABYTE)],
        [entry(shape=[TERABYTE])],
        [entry(shape=[1 << 40, 1 << 40], nbytes=8)],
        [entry(shape=[-1], nbytes=-8)],
        [entry(shape=[-1, -1])],
        [entry(shape=[1.0])],
        [entry(shape=[True])],
        [entry(shape=1)],
        [entry(shape=[1] * 100)],
        [entry(shape=[0, 1 << 61, 1 << 61], nbytes=0), entry()],
        [entry(dtype="<U0", shape=[TERABYTE], nbytes=0), entry()],
        [entry(dtype="|S0", shape=[TERABYTE], nbytes=0), entry()],
        [entry(dtype="|V0", shape=[TERABYTE], nbytes=0), entry()],
        [entry(dtype="|O")],
        [entry(dtype="O")],
        [entry(dtype=">f8")],
        [entry(dtype="<c16", nbytes=16)],
        [entry(dtype="f8,f8", nbytes=16)],
        [entry(dtype=["<f8"])],
        [entry(dtype="<U99999999999", nbytes=4)],
        [entry(offset=8)],
        [entry(offset=-8)],
        [entry(), entry()],
        [entry(nbytes=8.0)],
        [entry(nbytes="8")],
        [entry(order="K")],
        [entry(order=["F"])],
        [{}],
        [None],
        {},
        None,
        "arrays",
    ],
)
def test_a_table_of_arrays_that_lies_is_refused_before_anything_is_allocated(tmp_path, table):
    header = {"format": "polyfid model", "schema": 1, "kind": "classifier", "state": {"$array": 0}}
    data = seal({**header, "arrays": table}, bytes(8))
    tracemalloc.start()
    try:
        refused(tmp_path / "m.polyfid", data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [TERABYTE, 2**64 - 1, (64 << 20) + 1, 64 << 20])
def test_a_header_that_declares_too_much_is_refused_unread(tmp_path, file_bytes, length):
    data = PRELUDE.pack(b"\x89polyfid", length, bytes(32)) + file_bytes[PRELUDE.size :]
    tracemalloc.start()
    try:
        refused(tmp_path / "m.polyfid", data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"NaN",
        b"\xff\xfe",
        b'"' + b"x" * 100,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
        b'{"format": "polyfid model", "schema": NaN}',
        b'{"format": "polyfid model", "schema": true, "kind": "x", "arrays": [], "state": 1}',
        b'{"format": "polyfid model", "schema": 0, "kind": "x", "arrays": [], "state": 1}',
        b'{"format": "polyfid model", "schema": 1, "kind": 5, "arrays": [], "state": 1}',
        b'{"format": "polyfid model", "schema": 1, "kind": "x", "arrays": []}',
    ],
)
def test_headers_that_are_none_are_refused(tmp_path, text):
    refused(tmp_path / "m.polyfid", seal(text, b""))


@pytest.mark.parametrize(
    "tree",
    [
        {"$class": "os.system", "fields": {"command": "true"}},
        {"$class": "eval", "fields": {}},
        {"$class": "builtins.eval", "fields": {}},
        {"$class": ["RBF"], "fields": {}},
        {"$class": "RBF", "fields": []},
        {"$class": "RBF", "fields": {"__class__": 1}},
        {"$class": "RBF", "fields": {"length_scale": -1.0}},
        {"$class": "RBF", "fields": {"length_scale": "1"}},
        {"$class": "RBF", "fields": {}, "extra": 1},
        {"$class": "RBF"},
        {"$class": "Cholesky", "fields": {"size": 1 << 30, "packed": {"$array": 0}}},
        {"$class": "Cholesky", "fields": {"size": -1, "packed": {"$array": 0}}},
        {"$class": "Cholesky", "fields": {}},
        {"$class": "Indefinite", "fields": {"values": {"$array": 0}, "vectors": {"$array": 0}}},
        {"$class": "Indefinite", "fields": {"values": 1, "vectors": 2}},
        {"$class": "sklearn.PairwiseKernel", "fields": {"metric": 3}},
        {"$class": "sklearn.RBF", "fields": {"colour": 3}},
        {"$class": "SklearnKernel", "fields": {"kernel": "x"}},
        {"$class": "Mixture", "fields": {"members": [1]}},
        {"$array": 1},
        {"$array": -1},
        {"$array": True},
        {"$array": "0"},
        {"$array": 0, "$tuple": []},
        {"$tuple": 3},
        {"$tuple": {"a": 1}},
        {"$dict": [[1, 2, 3]]},
        {"$dict": [[[1], 2]]},
        {"$dict": 5},
        {"$float": "1e5"},
        {"$float": 1},
        {"$float": []},
        {"$bytes": "💡"},
        {"$bytes": 1},
        {"$scalar": "|O", "value": 1},
        {"$scalar": "<f8", "value": [1]},
        {"$scalar": "<f8", "value": "x"},
        {"$scalar": "|i1", "value": 300},
        {"$scalar": "<i8", "value": 2**70},
        {"$scalar": "<M8[D]", "value": 2**70},
        {"$items": [1], "shape": [2]},
        {"$items": [1], "shape": [-1, -1]},
        {"$items": {"a": 1}, "shape": [1]},
        {"$items": [1], "shape": [1], "of": "code"},
        {"$import": "os"},
        {"$tuple": [{"$tuple": [{"$unknown": 1}]}]},
    ],
)
def test_trees_of_no_meaning_are_refused(tmp_path, tree):
    path = tmp_path / "m.polyfid"
    write(path, "thing", np.zeros(3))
    header, rest = split(path.read_bytes())
    path.write_bytes(seal({**header, "state": tree}, rest))
    with pytest.raises(ModelFileError, match="does not describe a model"):
        read(path)


def test_trees_too_deep_are_refused(tmp_path):
    path = tmp_path / "m.polyfid"
    write(path, "thing", 1)
    header, rest = split(path.read_bytes())
    for depth in (3 * MAX_DEPTH, 400):
        tree = 1
        for _ in range(depth):
            tree = [tree]
        path.write_bytes(seal({**header, "state": tree}, rest))
        with pytest.raises(ModelFileError):
            read(path)


def test_a_small_file_cannot_make_many_large_matrices(tmp_path):
    path = tmp_path / "m.polyfid"
    n = 1000
    write(path, "thing", np.zeros(n * (n + 1) // 2))
    header, rest = split(path.read_bytes())
    factor = {"$class": "Cholesky", "fields": {"size": n, "packed": {"$array": 0}}}
    path.write_bytes(seal({**header, "state": [factor] * 500}, rest))  # 4 GB
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="again and again"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("dtype", "content"),
    [("|b1", b"\x02"), ("<U1", b"\xff\xff\xff\xff"), ("<U1", b"\x00\x00\x11\x00")],
)
def test_bytes_that_are_no_value_of_their_type_are_refused(tmp_path, dtype, content):
    header = {"format": "polyfid model", "schema": 1, "kind": "thing", "state": {"$array": 0}}
    table = [entry(dtype=dtype, nbytes=len(content))]
    path = tmp_path / "m.polyfid"
    path.write_bytes(seal({**header, "arrays": table}, content))
    with pytest.raises(ModelFileError, match="array of"):
        read(path)


def at(tree, *keys):
    """A place in a tree of a state, through the fields of instances."""
    for key in keys:
        if isinstance(tree, dict) and "fields" in tree:
            tree = tree["fields"]
        if isinstance(tree, dict) and "$tuple" in tree:
            tree = tree["$tuple"]
        tree = tree[key]
    return tree["fields"] if isinstance(tree, dict) and "fields" in tree else tree


def edit_n_features(state):
    at(state)["n_features"] = 10**15


def edit_features(state):
    at(state)["n_features"] = 3


def edit_classes(state):
    at(state)["classes"] = {"$items": [1, 2, 3], "shape": [3]}


def edit_levels(state):
    at(state)["levels"]["$tuple"].append("more")


def edit_same_levels(state):
    at(state)["levels"]["$tuple"][:] = ["same", "same"]


def edit_members(state):
    at(state, "mixtures", 0)["members"] = {"$tuple": []}


def edit_mixtures(state):
    at(state)["mixtures"] *= 2


def edit_scheme(state):
    at(state, "mixtures", 0, "members", 0, "fit")["scheme"] = "magic"


def edit_climbs(state):
    at(state, "mixtures", 0, "members", 0, "fit", "optimum")["climbs"] = {"$tuple": []}


def edit_alpha(state):
    posterior = at(state, "mixtures", 0, "members", 0, "fit", "posterior")
    posterior["alpha"] = posterior["factor"]["fields"]["packed"]


def edit_points(state):
    posterior = at(state, "mixtures", 0, "members", 0, "fit", "posterior")
    posterior["points"]["fields"]["x"] = posterior["alpha"]


def edit_factor(state):
    factor = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "factor")
    factor["size"] = 1


def edit_kernels(state):
    prior = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "prior")
    prior["kernels"]["$tuple"] *= 501
    prior["rho"] = {"$tuple": [1.0] * (len(prior["kernels"]["$tuple"]) - 1)}


def edit_columns(state):
    prior = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "prior")
    rbf = at(prior["kernels"], 0, "right")
    rbf["columns"] = {"$tuple": [10**12]}


def edit_parameter(state):
    at(state)["parameters"]["colour"] = "green"


def edit_names(state):
    at(state)["feature_names"] = {"$items": [1, 2], "shape": [2]}


def edit_notes(state):
    at(state)["notes"] = [5]


def edit_counts(state):
    at(state)["counts"] = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "points")[
        "level"
    ]


@pytest.mark.parametrize(
    "edit",
    [value for name, value in sorted(globals().items()) if name.startswith("edit_")],
    ids=lambda edit: edit.__name__,
)
def test_parts_that_do_not_belong_together_are_refused(tmp_path, file_bytes, edit):
    header, rest = split(file_bytes)
    edit(header["state"])
    refused(tmp_path / "m.polyfid", seal(header, rest), "does not describe a model")


# --------------------------------------------------------------------- fuzzing


def load_or_refuse(path):
    """The model of a file or None; anything but ModelFileError fails the test."""
    try:
        inspect(path)
        return load(path)
    except ModelFileError:
        return None


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_are_refused(tmp_path_factory, file_bytes, data):
    path = tmp_path_factory.getbasetemp() / "damaged.polyfid"
    place = st.integers(0, len(file_bytes) - 1) | st.integers(0, 2000)
    damaged = bytearray(file_bytes)
    for _ in range(data.draw(st.integers(1, 3))):
        a, b = sorted((data.draw(place), data.draw(place)))
        what = data.draw(st.sampled_from(["flip", "cut", "drop", "repeat", "insert", "zero"]))
        if what == "flip" and a < len(damaged):
            damaged[a] ^= data.draw(st.integers(1, 255))
        elif what == "cut":
            del damaged[a:]
        elif what == "drop":
            del damaged[a:b]
        elif what == "repeat":
            damaged[b:b] = damaged[a:b]
        elif what == "insert":
            damaged[a:a] = data.draw(st.binary(min_size=1, max_size=20))
        else:
            damaged[a:b] = bytes(b - a)
    path.write_bytes(damaged)
    model = load_or_refuse(path)
    assert (model is None) == (bytes(damaged) != file_bytes)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "RBF", "fixed", "nan", "<f8", "laplace", "ep", "crowd", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$tuple", "$array", "$class", "fields", "$dict", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def places(tree, found):
    """All places of a tree: containers and keys."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        found.append((tree, key))
        if isinstance(value, dict | list) and value:
            places(value, found)
    return found


def forge(data, original):
    """A file that differs from another one in a few places, and has its checksums right."""
    header, rest = split(original)
    rest = bytearray(rest)
    part = data.draw(st.sampled_from(["state", "state", "state", "arrays", "header", "bytes"]))
    if part == "bytes":
        for _ in range(3):
            rest[data.draw(st.integers(0, len(rest) - 1))] = data.draw(st.integers(0, 255))
        return seal(header, bytes(rest))
    for _ in range(data.draw(st.integers(1, 3))):
        tree = header if part == "header" else header.get(part)
        found = places(tree, []) if isinstance(tree, dict | list) else []
        if not found:
            break
        tree, key = data.draw(st.sampled_from(found))
        what = data.draw(st.sampled_from(["new", "drop", "swap"]))
        if what == "new":
            tree[key] = data.draw(JSON)
        elif what == "drop":
            del tree[key]
        else:
            other, place = data.draw(st.sampled_from(found))
            tree[key] = json.loads(json.dumps(other[place]))
    return seal(header, bytes(rest))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forged_files_load_a_working_model_or_are_refused(tmp_path_factory, file_bytes, data):
    path = tmp_path_factory.getbasetemp() / "forged.polyfid"
    path.write_bytes(forge(data, file_bytes))
    model = load_or_refuse(path)
    if model is not None:
        X = np.zeros((3, model.n_features_in_))
        with np.errstate(all="ignore"):
            assert model.predict_proba(X).shape == (3, len(model.classes_))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forged_files_of_tables_load_or_are_refused(tmp_path_factory, table_bytes, data):
    path = tmp_path_factory.getbasetemp() / "forged.polyfid"
    path.write_bytes(forge(data, table_bytes))
    load_or_refuse(path)


# ------------------------------------------------------------ older schemas


@pytest.mark.parametrize("schema", range(1, persistence.SCHEMA + 1))
def test_files_of_every_schema_load_and_predict_as_they_did(schema):
    path = MODELS / f"schema-{schema}.polyfid"
    assert path.stat().st_size < 50_000
    assert inspect(path)["schema"] == schema
    model = load(path)
    then = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    X = np.array(then["X"])
    assert list(model.levels_) == then["levels"]
    for level, proba in zip(then["levels"], then["predict_proba"], strict=True):
        np.testing.assert_allclose(model.predict_proba(X, level), proba, rtol=1e-9, atol=1e-12)
    for now, before in zip(model.latent_mean_and_variance(X), then["latent"], strict=True):
        np.testing.assert_allclose(now, before, rtol=1e-8)
    evidence = model.log_marginal_likelihood(model.theta_)
    assert evidence == pytest.approx(then["log_marginal_likelihood"], rel=1e-6)
    assert str(model.report_).splitlines()[0] == then["report"].splitlines()[0]


def test_what_schema_1_consists_of_has_not_changed(models):
    # A field that goes, or comes without a default, needs a new schema that reads the old one.
    from polyfid.mixture import Member
    from polyfid.model import BinaryFit
    from polyfid.persistence import ClassifierState
    from polyfid.posterior import Posterior

    found = {c.__name__: [f.name for f in fields(c)] for c in (Member, BinaryFit, Posterior)}
    assert found == {
        "Member": ["name", "features", "fit", "weight", "log_evidence"],
        "BinaryFit": [
            "posterior",
            "likelihood",
            "log_evidence",
            "inference",
            "optimum",
            "theta_names",
            "tuned_on",
            "scheme",
        ],
        "Posterior": ["prior", "points", "sites", "alpha", "factor"],
    }
    assert isinstance(models("plain")._state(), ClassifierState)
