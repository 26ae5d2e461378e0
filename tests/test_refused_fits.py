"""A fit that raises or is interrupted, wherever that happens, leaves every attribute as it was."""

import inspect
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_rows import draw
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import polyfid
from polyfid import MultiFidelityClassifier, Pooled, Stacked, TrustedOnly, load
from polyfid.kernels import RBF
from polyfid.tables import TableEncoder, TableError

ROWS, Y, FIDELITY = draw(20, 10)
X = pd.DataFrame(ROWS, columns=["a", "b"])
#: The same rows with other columns, classes and levels: a mixture of the two fits would be seen.
OTHER = (pd.DataFrame(-ROWS, columns=["b", "c"]), Y.astype(str), np.asarray(FIDELITY) == "lab")
SOURCE = Path(polyfid.__file__).parent
GIVEN = {"kernel": 2.0 * RBF(), "optimizer": None, "random_state": 0}


def in_blocks(model, X, y, fidelity, **how):
    return model.fit_blocks([(X, y, fidelity)], **how)


def in_one(model, X, y, fidelity, **how):
    return model.fit(X, y, fidelity, **how)


def as_table(model, X, y, fidelity):
    return model.fit(X)


MODELS = {
    "a kernel": (lambda: MultiFidelityClassifier(**GIVEN), in_one),
    "structure": (lambda: MultiFidelityClassifier(max_iter=2, tol=0.9), in_one),
    "inducing": (lambda: MultiFidelityClassifier(**GIVEN, n_inducing=5), in_one),
    "blocks": (lambda: MultiFidelityClassifier(**GIVEN, n_inducing=5), in_blocks),
    "trusted only": (TrustedOnly, in_one),
    "pooled": (Pooled, in_one),
    "stacked": (lambda: Stacked(LogisticRegression()), in_one),
    "encoder": (TableEncoder, as_table),
}
of_each_model = pytest.mark.parametrize("name", MODELS)
of_classifiers = pytest.mark.parametrize("name", ["a kernel", "inducing", "blocks"])
of_baselines = pytest.mark.parametrize("name", ["trusted only", "pooled", "stacked"])


def fitted(name):
    """A fitted model, and the function that fits it again."""
    make, fit = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of climbs cut short on purpose
        return fit(make(), X, Y, FIDELITY), fit


def answers(model, X=X):
    return model.transform(X) if hasattr(model, "transform") else model.predict_proba(X)


class Snapshot:
    """A model at one moment: all attributes by identity and by their bytes, and its answers."""

    def __init__(self, model):
        self.attributes = dict(vars(model))
        self.bytes = {name: pickle.dumps(value) for name, value in vars(model).items()}
        self.answers = answers(model)

    def assert_same(self, model, tmp_path=None):
        assert list(vars(model)) == list(self.attributes)
        for name, value in vars(model).items():
            assert value is self.attributes[name], name
            assert pickle.dumps(value) == self.bytes[name], name
        np.testing.assert_array_equal(answers(model), self.answers)
        if tmp_path is not None and hasattr(model, "save"):
            model.save(tmp_path / "model.polyfid")
            np.testing.assert_array_equal(answers(load(tmp_path / "model.polyfid")), self.answers)


WRONG = {
    "one class": lambda X, y, f: (X, np.full(30, "yes"), f),
    "labels missing": lambda X, y, f: (X, [None, "a"] * 15, f),
    "too few labels": lambda X, y, f: (X, y[:-1], f),
    "numbers as labels": lambda X, y, f: (X, np.linspace(0, 1, 30), f),
    "NaN": lambda X, y, f: (X.assign(b=X["b"].where(X["b"] > 0)), y, f),
    "text": lambda X, y, f: (X.assign(b="x"), y, f),
    "one dimension": lambda X, y, f: (X["b"], y, f),
    "no rows": lambda X, y, f: (X[:0], y[:0], f[:0]),
    "too few levels": lambda X, y, f: (X, y, f[:-1]),
    "levels missing": lambda X, y, f: (X, y, [None] * 30),
}


@pytest.mark.parametrize("wrong", WRONG)
@of_classifiers
def test_wrong_arguments_of_the_classifier(name, wrong, tmp_path):
    model, fit = fitted(name)
    before = Snapshot(model)
    with pytest.raises(ValueError):  # noqa: PT011
        fit(model, *WRONG[wrong](*OTHER))
    before.assert_same(model, tmp_path)


# One class is a constant to the baselines, and NaN and text are for the wrapped estimator.
@pytest.mark.parametrize("wrong", [w for w in WRONG if w != "one class"])
@of_baselines
def test_wrong_arguments_of_the_baselines(name, wrong):
    model, fit = fitted(name)
    before = Snapshot(model)
    with pytest.raises(ValueError):  # noqa: PT011
        fit(model, *WRONG[wrong](*OTHER))
    before.assert_same(model)


@pytest.mark.parametrize(
    "table",
    [X.assign(b=np.nan), X.assign(b=pd.Timestamp(0)), X.assign(a=np.inf), X[:0], X[[]], ROWS],
    ids=["missing", "dates", "infinite", "no rows", "no columns", "array"],
)
def test_wrong_tables(table):
    model, _ = fitted("encoder")
    before = Snapshot(model)
    with pytest.raises((TableError, TypeError)):
        model.fit(table)
    before.assert_same(model)


def test_a_block_that_is_refused_is_not_learnt():
    table = pd.DataFrame({"a": [1.0, 5.0], "colour": ["red", "blue"]})
    model = TableEncoder(missing="median").partial_fit(table)
    before = pickle.dumps(model)
    with pytest.raises(TableError, match="'colour', which earlier blocks have"):
        model.partial_fit(pd.DataFrame({"a": [100.0]}))
    assert pickle.dumps(model) == before
    with pytest.raises(KeyboardInterrupt), interrupted(at=2, lines_of="column.py"):
        model.partial_fit(pd.DataFrame({"a": [100.0], "colour": "grey"}))
    assert pickle.dumps(model) == before
    assert model.partial_fit(table).names_ == ("a", "colour=blue", "colour=red")


# Interrupts


class interrupted:  # noqa: N801
    """Ctrl-C at one moment inside polyfid: a call of a function or, in some files, a line.

    ``at=None`` only counts the moments.
    """

    def __init__(self, at=None, lines_of="estimator"):
        self.at, self.lines_of, self.count = at, lines_of, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def trace(self, frame, event, _):
        name, flags = frame.f_code.co_filename, frame.f_code.co_flags
        if not name.startswith(str(SOURCE)) or event not in ("call", "line"):
            return None
        # Python swallows what is raised while a generator is closed or an object is deleted.
        if flags & inspect.CO_GENERATOR or frame.f_code.co_name in ("__del__", "_leave"):
            return None
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt
        return self.trace if self.lines_of in name or "atomic" in name else None


def moments(count):
    """Some moments of a fit, and all of the last, when its result becomes attributes."""
    return sorted({*np.linspace(1, count, 25).astype(int).tolist(), *range(count - 60, count + 1)})


@pytest.mark.slow
@of_each_model
def test_ctrl_c_at_any_moment(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, fit = fitted(name)
        with interrupted() as every:
            fit(model, *OTHER)
        complete = (set(vars(model)), answers(model, OTHER[0]))
        stopped = 0
        for at in moments(every.count):
            model, fit = fitted(name)
            before = Snapshot(model)
            with pytest.raises(KeyboardInterrupt), interrupted(at):
                fit(model, *OTHER)
            if answers_or_none(model, OTHER[0]) is None:
                before.assert_same(model)
                stopped += 1
            else:  # the interrupt came after all was done: then it is all of the new model
                assert set(vars(model)) == complete[0]
                np.testing.assert_array_equal(answers(model, OTHER[0]), complete[1])
    assert stopped > 25


def answers_or_none(model, X):
    """The answers of a model to these columns; None if it knows others."""
    try:
        return answers(model, X)
    except (ValueError, TableError):
        return None


@of_classifiers
def test_an_error_of_the_callback_at_each_step(name, tmp_path):
    steps = []
    model, fit = fitted(name)
    fit(model, *OTHER, callback=steps.append)
    for last in range(len(steps)):
        model, fit = fitted(name)
        before, left = Snapshot(model), iter(range(last))

        def stop(step, left=left):
            if next(left, None) is None:
                raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            fit(model, *OTHER, callback=stop)
        before.assert_same(model, tmp_path if last == 0 else None)


@of_classifiers
def test_warnings_that_are_errors(name):
    model, fit = fitted(name)
    before = Snapshot(model)
    table, y, trusted = OTHER
    with pytest.raises(UserWarning, match="no row of class"):  # warnings are errors in all tests
        fit(model, table, np.where(trusted, "True", y), trusted)
    before.assert_same(model)


def test_a_warning_that_does_not_converge():
    model = MultiFidelityClassifier(1.0 * RBF()).fit(X, Y, FIDELITY)
    model.set_params(max_iter=1)
    before = Snapshot(model)
    with pytest.raises(ConvergenceWarning):
        model.fit(*OTHER)
    before.assert_same(model)


class Fails(LogisticRegression):
    """Raises in place of one fit too many."""

    fits_left = 0

    def fit(self, X, y, **how):
        Fails.fits_left -= 1
        if Fails.fits_left < 0:
            raise RuntimeError("no more")
        return super().fit(X, y, **how)


@of_baselines
def test_an_estimator_that_fails_half_way(name):
    for allowed in range(2 if name == "stacked" else 1):
        model, fit = fitted(name)
        model.set_params(estimator=Fails())
        before = Snapshot(model)
        Fails.fits_left = allowed
        with pytest.raises(RuntimeError, match="no more"):
            fit(model, *OTHER)
        before.assert_same(model)


# What users hand over is theirs


def test_parameters_and_data_stay_as_given():
    given = {
        "kernel": [2.0 * RBF([1.0, 2.0]), 1.0 * RBF()],
        "levels": ["web", "lab"],
        "rho": np.array([0.5]),
        "rho_bounds": [-1.0, 1.0],
        "n_inducing": [6, 4],
        "n_tuning": {"web": 15},
        "random_state": 3,
    }
    data = (X.copy(), Y.copy(), np.asarray(FIDELITY), np.linspace(1, 2, 30))
    before = pickle.dumps((given, data))
    model = MultiFidelityClassifier(**given).fit(*data)
    assert all(getattr(model, name) is value for name, value in given.items())
    assert pickle.dumps((given, data)) == before


@pytest.mark.parametrize("fit", [in_one, in_blocks])
def test_a_generator_is_as_it_was_after_a_fit_that_failed(fit):
    def stop(step):
        raise RuntimeError("no more")

    rng = np.random.RandomState(0)
    model = MultiFidelityClassifier(**{**GIVEN, "n_inducing": 5, "random_state": rng})
    before = pickle.dumps(rng)
    with pytest.raises(RuntimeError, match="no more"):
        fit(model, X, Y, FIDELITY, callback=stop)
    assert pickle.dumps(rng) == before
    fit(model, X, Y, FIDELITY)
    assert pickle.dumps(rng) != before


def test_levels_that_can_be_read_once_are_refused():
    with pytest.raises(ValueError, match="levels must be distinct names in a list"):
        MultiFidelityClassifier(**GIVEN, levels=iter(["web", "lab"])).fit(X, Y, FIDELITY)
