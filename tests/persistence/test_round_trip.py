"""A model that is loaded is the one that was saved."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from model_makers import MAKERS, NEW, binary, new_rows, same
from saved_models import two_levels
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from polyfid import MultiFidelityClassifier, load
from polyfid.inference.linalg import Cholesky, Indefinite
from polyfid.kernels import RBF
from polyfid.model_files import inspect, write
from polyfid.model_files.codec import MAX_DEPTH
from polyfid.tabular import TableModel


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
