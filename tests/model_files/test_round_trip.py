"""A model that is loaded is the one that was saved."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from model_makers import MAKERS, NEW, binary, new_rows, same
from saved_models import two_levels
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.model_files import inspect, write
from polyfid.model_files.codec import MAX_DEPTH
from polyfid.tables import TableModel

METHODS = (
    "predict predict_proba predict_log_proba latent_mean_and_variance latent_mean_and_covariance"
)
ATTRIBUTES = (
    "annotators_ classes_ converged_ levels_ log_marginal_likelihood_value_ n_features_in_ n_iter_ "
    "rho_ theta_ theta_names_"
)


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(models, name, reloaded, tmp_path):
    model = models(name)
    again = reloaded(model)
    X, levels = new_rows(model), (None, *model.levels_)
    thetas = model.theta_ if isinstance(model.theta_, list) else [model.theta_]
    nearby = [theta + 0.1 for theta in thetas]
    nearby = nearby[0] if isinstance(model.theta_names_, tuple) else nearby

    def everything(m):
        at_levels = [getattr(m, f)(X, level) for f in METHODS.split() for level in levels]
        fields = [getattr(m, attribute) for attribute in ATTRIBUTES.split()]
        draws = m.sample_latent(X[:5], 3, random_state=1)
        evidence = [m.log_marginal_likelihood(t, eval_gradient=True) for t in (None, nearby)]
        texts = [str(m.report_), m.report_.to_html(), repr(m.structures_), repr(m.kernels_)]
        return [at_levels, fields, draws, evidence, texts, hasattr(m, "feature_names_in_")]

    same(everything(again), everything(model))
    assert repr(again) == repr(model) or name == "inference by EP"  # whose levels were an iterator
    again.save(tmp_path / "again.polyfid")
    assert (tmp_path / "again.polyfid").read_bytes() == (tmp_path / "model.polyfid").read_bytes()


def test_a_model_of_tables_is_loaded_by_the_same_function(
    table_model, table_bytes, reloaded, tmp_path
):
    again = reloaded(table_model)
    assert isinstance(again, TableModel)
    assert inspect(tmp_path / "model.polyfid")["kind"] == "table"
    new = pd.DataFrame({"x1": NEW[:, 0], "x2": NEW[:, 1], "colour": "red"})
    pd.testing.assert_frame_equal(again.predict(new), table_model.predict(new), check_exact=True)
    again.save(tmp_path / "again.polyfid")
    assert (tmp_path / "again.polyfid").read_bytes() == table_bytes


def test_a_loaded_model_goes_on_as_an_estimator(models, reloaded):
    again = reloaded(models("plain"))
    X, y, fidelity = two_levels()
    same(clone(again).fit(X, y, fidelity=fidelity).predict_proba(NEW), again.predict_proba(NEW))
    again = reloaded(models("fidelity in a data frame"))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame(NEW, columns=["length", "other"]))
    at_levels = pd.DataFrame(NEW, columns=again.feature_names_in_).assign(trust="crowd")
    same(again.predict_proba(at_levels), again.predict_proba(new_rows(again), "crowd"))


def test_another_process_loads_the_same_models_and_needs_no_extras(models, tmp_path):
    for name in ("structures averaged", "kernel of scikit-learn"):
        models(name).save(tmp_path / f"{name}.polyfid")
    model = models("structures averaged")
    np.save(tmp_path / "x.npy", new_rows(model))
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow']))\n"
        "import numpy as np, polyfid\n"
        "model = polyfid.load('structures averaged.polyfid')\n"
        "np.save('p.npy', model.predict_proba(np.load('x.npy')))\n"
        "assert 'sklearn.gaussian_process' not in sys.modules\n"  # which takes a while to import
        "polyfid.load('kernel of scikit-learn.polyfid').save('again.polyfid')\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    same(np.load(tmp_path / "p.npy"), model.predict_proba(new_rows(model)))
    saved = tmp_path / "kernel of scikit-learn.polyfid"
    assert (tmp_path / "again.polyfid").read_bytes() == saved.read_bytes()


@pytest.mark.parametrize(
    ("classes", "levels"),
    [
        (np.array([False, True]), (False, True)),
        (np.array([-3, 2**40]), (0, 1)),
        (np.array([0.0, 1.0], dtype=np.float32), (0.5, 1.5)),
        (np.array(["a", "naïve 💡"], dtype=object), ("a", "naïve 💡")),
    ],
)
def test_classes_and_levels_of_every_type_come_back_as_they_were(classes, levels, reloaded):
    X, y, fidelity = two_levels()
    names = [*levels] if isinstance(levels[0], str) else None  # numbers have an order
    model = MultiFidelityClassifier(RBF(), optimizer=None, levels=names)
    model.fit(X, classes[y.astype(int)], fidelity=np.where(fidelity == "crowd", *levels))
    again = reloaded(model)
    same([again.levels_, again.classes_], [model.levels_, model.classes_])
    assert again.classes_.dtype == classes.dtype


def test_a_generator_of_random_numbers_is_saved_as_none_with_a_note(reloaded, tmp_path):
    assert reloaded(binary(random_state=np.random.RandomState(0))).random_state is None
    assert "RandomState" in inspect(tmp_path / "model.polyfid")["note"]
    assert reloaded(binary(random_state=np.int64(7))).random_state == 7
    assert "note" not in inspect(tmp_path / "model.polyfid")


def test_what_cannot_be_saved_is_named_and_leaves_nothing(tmp_path):
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
    nested = RBF()
    for _ in range(2 * MAX_DEPTH):
        nested = nested + RBF()
    for state, message in [
        ({"x": [1, {2}]}, r"x\[1\] is a builtins\.set"),
        ({"x": np.zeros(2, dtype=complex)}, "x has the type complex128, which a model file"),
        (nested, "nested more than"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            write(path, "thing", state)
    assert list(tmp_path.iterdir()) == []
    write(path, "thing", sum((RBF(0.1 + 0.1 * i) for i in range(60)), RBF()))
