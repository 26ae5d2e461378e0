"""Whatever scikit-learn's users hand over: containers of all kinds, its tools, other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from benchmarks.attacks.trial import Trial, attack
from benchmarks.figures import Context
from polyfid import MultiFidelityClassifier, Pooled, Stacked, TrustedKFold, TrustedOnly
from polyfid.kernels import RBF

RNG = np.random.default_rng(0)
WHOLE = RNG.integers(-5, 6, size=(40, 3))
X = WHOLE.astype(float)
LEVEL = np.repeat([0, 1], [28, 12])
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
Y[:5] = 1 - Y[:5]
THIRD = np.arange(40) == 3
FRAME = pd.DataFrame(X, columns=list("abc"))
POLARS = pl.DataFrame(X, schema=list("abc"))
SAME = 1e-12


def new(**parameters: Any) -> MultiFidelityClassifier:
    return MultiFidelityClassifier(2.0 * RBF(3.0), optimizer=None, **parameters)


WANTED = new().fit(X, Y, LEVEL).predict_proba(X)


# ------------------------------------------------------------------- containers


def objects(kind: Callable[[int], Any]) -> np.ndarray:
    return np.array([[kind(int(v)) for v in row] for row in WHOLE], dtype=object)


def memmap() -> np.ndarray:
    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file.name, dtype=float, shape=X.shape, mode="w+")
        mapped[:] = X
        return mapped


def read_only() -> np.ndarray:
    X_ = X.copy()
    X_.flags.writeable = False
    return X_


def spread() -> np.ndarray:
    every = np.full((80, 6), np.nan)
    every[::2, ::2] = X
    return every[::2, ::2]


#: X in forms that must give the answer of the plain array.
ALIKE_X: dict[str, Callable[[], Any]] = {
    "memmap": memmap,
    "read-only": read_only,
    "Fortran order": lambda: np.asfortranarray(X),
    "strided": spread,
    "negative strides": lambda: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "float16": lambda: X.astype(np.float16),
    "float32": lambda: X.astype(np.float32),
    "longdouble": lambda: X.astype(np.longdouble),
    "int8": lambda: WHOLE.astype(np.int8),
    "big-endian": lambda: X.astype(">f8"),
    "objects": lambda: X.astype(object),
    "fractions": lambda: objects(Fraction),
    "decimals": lambda: objects(Decimal),
    "texts of numbers": lambda: X.astype(str),
    "list of lists": X.tolist,
    "list of arrays": lambda: list(X),
    "tuple of tuples": lambda: tuple(map(tuple, X.tolist())),
    "masked array, nothing masked": lambda: np.ma.masked_array(X),
    "data frame": lambda: FRAME,
    "Int64": lambda: FRAME.astype("Int64"),
    "Float64": lambda: FRAME.astype("Float64"),
    "pyarrow's doubles": lambda: FRAME.astype("double[pyarrow]"),
    "sparse columns": lambda: FRAME.astype(pd.SparseDtype(float, 0.0)),
    "one sparse column": lambda: FRAME.assign(a=pd.arrays.SparseArray(FRAME["a"])),
    "columns that are numbers": lambda: pd.DataFrame(X),
    "columns of two levels": lambda: FRAME.set_axis(
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]), axis=1
    ),
    "index in another order": lambda: FRAME.set_index(pd.Index(range(40, 0, -1))),
    "index of one value": lambda: FRAME.set_index(pd.Index([0] * 40)),
    "polars": lambda: POLARS,
    "polars, lazy": POLARS.lazy,
    "polars, decimals": lambda: POLARS.with_columns(pl.col("a").cast(pl.Decimal(10, 2))),
    "arrow table": lambda: pa.table({name: FRAME[name].to_numpy() for name in "abc"}),
}
#: X that must be refused with ValueError or TypeError, and a word that the error has to say.
REFUSED_X: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"sparse {kind}": (lambda kind=kind: getattr(sparse, f"{kind}")(X), "dense")
        for kind in [
            f"{n}_{t}"
            for n in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
            for t in ("matrix", "array")
        ]
    },
    "masked values": (lambda: np.ma.masked_array(X, mask=X == 1), "masked"),
    "NaN": (lambda: np.where(X == 1, np.nan, X), "NaN"),
    "infinity": (lambda: np.where(X == 1, np.inf, X), "infinity"),
    "None among objects": (lambda: np.where(X == 1, None, X.astype(object)), "NaN"),
    "Int64 with NA": (lambda: FRAME.astype("Int64").mask(FRAME == 1), "NaN"),
    "Float64 with NA": (lambda: FRAME.astype("Float64").mask(FRAME == 1), "NaN"),
    "polars with null": (
        lambda: POLARS.with_columns(
            pl.when(pl.col("a") == 1).then(None).otherwise(pl.col("a")).alias("a")
        ),
        "NaN",
    ),
    "category": (lambda: FRAME.assign(a=FRAME["a"].astype("category")), "not numeric: a"),
    "ordered": (lambda: FRAME.assign(a=pd.Categorical(FRAME["a"], ordered=True)), "not numeric: a"),
    "text": (lambda: FRAME.assign(a="x"), "not numeric: a"),
    "dates": (lambda: FRAME.assign(a=pd.to_datetime(FRAME["a"], unit="D")), "not numeric: a"),
    "durations": (lambda: FRAME.assign(a=pd.to_timedelta(FRAME["a"], unit="D")), "not numeric: a"),
    "polars' dates": (
        lambda: POLARS.with_columns(pl.col("a").cast(pl.Int64).cast(pl.Date)),
        "not numeric: a",
    ),
    "objects in a frame": (lambda: FRAME.astype(object), "astype(float)"),
    "array of dates": (lambda: X.astype("datetime64[D]"), "X must hold numbers"),
    "array of durations": (lambda: X.astype("timedelta64[D]"), "X must hold numbers"),
    "columns of one name": (lambda: FRAME.set_axis(["a", "a", "b"], axis=1), "same name: a"),
    "names of two types": (lambda: FRAME.set_axis(["a", 1, "b"], axis=1), "string names"),
    "no rows": (lambda: X[:0], "no rows"),
    "no features": (lambda: X[:, :0], "0 feature(s)"),
    "one dimension": (lambda: X[:, 0], "two dimensions"),
    "three dimensions": (lambda: X[:, :, None], "two dimensions"),
    "a series": (lambda: FRAME["a"], "two dimensions"),
    "a number": (lambda: 3.0, "two dimensions"),
    "None": (lambda: None, "X must be an array"),
    "a dictionary": (lambda: {"a": [1.0]}, "X must be an array"),
    "a generator": (lambda: (row for row in X), "X must be an array"),
    "rows of unequal length": (lambda: [[1.0, 2.0], [3.0]], "features in every row"),
    "complex": (lambda: X.astype(complex), "real numbers"),
    "dictionaries as cells": (lambda: np.full((40, 3), {}, dtype=object), "X must hold numbers"),
    "np.matrix": (lambda: np.asmatrix(X), "np.asarray"),
    "numbers beyond float64": (lambda: np.full((40, 3), 10**400, dtype=object), "float64"),
}


def forms(values: np.ndarray) -> dict[str, Any]:
    """A column of whole numbers in forms that all mean the same."""
    odd = pd.Index(range(100, 60, -1))
    return {
        "list": values.tolist(),
        "tuple": tuple(values.tolist()),
        "float": values.astype(float),
        "float16": values.astype(np.float16),
        "int8": values.astype(np.int8),
        "big-endian": values.astype(">i8"),
        "objects": values.astype(object),
        "series with another index": pd.Series(values, index=odd),
        "series with an index of one value": pd.Series(values, index=[0] * 40),
        "Int64": pd.Series(values, dtype="Int64"),
        "pyarrow's integers": pd.Series(values, dtype="int64[pyarrow]"),
        "category": pd.Series(values).astype("category"),
        "sparse": pd.Series(pd.arrays.SparseArray(values)),
        "index": pd.Index(values),
        "polars": pl.Series(values),
        "arrow": pa.array(values),
        "masked array, nothing masked": np.ma.masked_array(values),
    }


def wrong_forms(values: np.ndarray, name: str) -> dict[str, tuple[Any, str]]:
    """A column in forms that cannot be used, and a word that the error has to say."""
    return {
        "two columns": (np.stack([values, values], axis=1), name),
        "a row": (values[None, :], name),
        "too short": (values[:-1], f"{name} has 39 entries"),
        "Int64 with NA": (pd.Series(values, dtype="Int64").mask(THIRD), name),
        "polars with null": (pl.Series([None, *values.tolist()[1:]]), name),
        "NaN": (np.where(THIRD, np.nan, values), name),
        "infinity": (np.where(THIRD, np.inf, values), name),
        "None": ([None, *values.tolist()[1:]], name),
        "masked values": (np.ma.masked_array(values, mask=THIRD), "masked"),
        "text and numbers": (["a", *values.tolist()[1:]], name),
        "a dictionary": (dict(enumerate(values.tolist())), name),
        "a generator": ((v for v in values.tolist()), name),
        "a lazy frame": (pl.DataFrame({"v": values}).lazy(), name),
    }


def difference(got: np.ndarray, wanted: np.ndarray = WANTED) -> str | None:
    if got.shape != wanted.shape:
        return f"shape {got.shape}"
    gap = float(np.abs(got - wanted).max())
    return None if gap <= SAME else f"other probabilities, by {gap:.1e}"


def refusal(act: Callable[[], Any], word: str) -> str | None:
    """What is wrong with how something was refused."""
    try:
        act()
    except (ValueError, TypeError) as error:
        return None if word in str(error) else f"the error does not say {word!r}: {error}"
    return "it was accepted"


def alike_x(name: str) -> str | None:
    given = ALIKE_X[name]()
    model = new().fit(given, Y, LEVEL)
    return difference(model.predict_proba(given))


def refused_x(name: str) -> str | None:
    make, word = REFUSED_X[name]
    fitted = new().fit(X, Y, LEVEL)
    problem = refusal(lambda: new().fit(make(), Y, LEVEL), word)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X has feature names")  # and the model has none
        return problem or refusal(lambda: fitted.predict_proba(make()), word)


def columns_of_a_fit() -> Iterator[tuple[str, str]]:
    for argument in ("y", "fidelity", "sample_weight"):
        for name in forms(Y):
            yield argument, name


def arguments(**changes: Any) -> dict[str, Any]:
    return {"y": Y, "fidelity": LEVEL, "sample_weight": np.ones(40, int)} | changes


def alike_column(case: tuple[str, str]) -> str | None:
    argument, name = case
    given = forms(arguments()[argument])[name]
    return difference(new().fit(X, **arguments(**{argument: given})).predict_proba(X))


def refused_column(case: tuple[str, str]) -> str | None:
    argument, name = case
    given, word = wrong_forms(arguments()[argument], argument)[name]
    return refusal(lambda: new().fit(X, **arguments(**{argument: given})), word)


# ------------------------------------------------------------------- tools


def search(make: Callable[..., Any], routing: bool) -> str | None:
    """A search, with the fidelity as an argument of fit."""
    cv = TrustedKFold(3, fidelity=None if routing else LEVEL)
    model = make(MultiFidelityClassifier(optimizer=None), cv)
    with sklearn.config_context(enable_metadata_routing=routing):
        model.fit(X, Y, fidelity=LEVEL)
    best = new(**{}).set_params(kernel=model.best_params_["kernel"]).fit(X, Y, LEVEL)
    return difference(model.predict_proba(X), best.predict_proba(X))


#: Rows are sorted by level here, so that other folds would lack one.
SHUFFLED = StratifiedKFold(3, shuffle=True, random_state=0)
GRID = {"kernel": [2.0 * RBF(3.0), 1.0 * RBF(0.5)]}


def grid(model: Any, cv: Any) -> Any:
    return GridSearchCV(model, GRID, cv=cv, error_score="raise")


def randomized(model: Any, cv: Any) -> Any:
    return RandomizedSearchCV(model, GRID, n_iter=2, cv=cv, random_state=0, error_score="raise")


def halving(model: Any, cv: Any) -> Any:
    return HalvingGridSearchCV(
        model, GRID, cv=cv, error_score="raise", resource="max_iter", max_resources=4,
        min_resources=2, random_state=0,
    )  # fmt: skip


def of_probabilities(model: Any, **fit: Any) -> str | None:
    """A tool on one level: it runs, and its probabilities are some."""
    proba = model.fit(X, Y, **fit).predict_proba(X)
    right = np.isfinite(proba).all() and np.allclose(proba.sum(axis=1), 1.0)
    accuracy = float(np.mean(model.predict(X) == Y))
    if not right:
        return "no probabilities"
    return None if accuracy > 0.6 else f"accuracy {accuracy:.2f}"


def with_fidelity_as_column(wrap: Callable[[Any], Any]) -> str | None:
    """A tool that passes no fidelity on: it is a column of X."""
    model = wrap(new(fidelity_feature=3))
    table = np.column_stack([X, LEVEL])
    proba = model.fit(table, Y).predict_proba(table)
    return None if np.isfinite(proba).all() else "no probabilities"


def boosted() -> str | None:
    """The weights of boosting, which sum to one, count as fractions of rows."""
    first = AdaBoostClassifier(new(), n_estimators=3).fit(X, Y).estimators_[0]
    by_hand = new().fit(X, Y, sample_weight=np.full(40, 1 / 40))
    return difference(first.predict_proba(X), by_hand.predict_proba(X))


def in_columns(output: str) -> str | None:
    """A column transformer before the model, with its output set."""
    table = FRAME.assign(kind=np.where(X[:, 2] > 0, "u", "v"))
    steps = ColumnTransformer(
        [
            ("numbers", FunctionTransformer(feature_names_out="one-to-one"), ["a", "b"]),
            ("kinds", OneHotEncoder(sparse_output=False), ["kind"]),
        ]
    ).set_output(transform=output)
    piped = make_pipeline(steps, new())
    proba = piped.fit(table, Y, multifidelityclassifier__fidelity=LEVEL).predict_proba(table)
    by_hand = np.column_stack([X[:, :2], X[:, 2] > 0, X[:, 2] <= 0]).astype(float)
    return difference(proba, new().fit(by_hand, Y, LEVEL).predict_proba(by_hand))


def nested() -> str | None:
    piped = make_pipeline(StandardScaler(), new())
    piped.set_params(multifidelityclassifier__rho=0.3, multifidelityclassifier__levels=[0, 1])
    got = clone(piped).get_params()
    if got["multifidelityclassifier__rho"] != 0.3:
        return "a nested parameter was not set"
    other = clone(new(levels=[0, 1], n_tuning={0: 5})).get_params()
    same = other["levels"] == [0, 1] and other["n_tuning"] == {0: 5}
    return None if same else f"clone changed {other}"


TOOLS: dict[str, Callable[[], str | None]] = {
    **{
        f"{make.__name__} search, {'routed' if routing else 'fit arguments'}": (
            lambda make=make, routing=routing: search(make, routing)
        )
        for make in (grid, randomized, halving)
        for routing in (False, True)
    },
    "calibration": lambda: of_probabilities(CalibratedClassifierCV(new(), cv=3)),
    "calibration, fidelity": lambda: of_probabilities(
        CalibratedClassifierCV(new(), cv=TrustedKFold(3, fidelity=LEVEL)), fidelity=LEVEL
    ),
    "voting, soft": lambda: of_probabilities(
        VotingClassifier([("a", new()), ("b", LogisticRegression())], voting="soft")
    ),
    "voting, hard": lambda: (
        None
        if (
            VotingClassifier([("a", new())]).fit(X, Y).predict(X) == new().fit(X, Y).predict(X)
        ).all()
        else "other classes"
    ),
    "stacking": lambda: of_probabilities(
        StackingClassifier([("a", new()), ("b", LogisticRegression())], cv=3)
    ),
    "one against the rest": lambda: of_probabilities(OneVsRestClassifier(new())),
    "bagging": lambda: of_probabilities(BaggingClassifier(new(), 3, random_state=0)),
    "boosting": boosted,
    "bagging, fidelity a column": lambda: with_fidelity_as_column(
        lambda model: BaggingClassifier(model, 3, random_state=0)
    ),
    "stacking, fidelity a column": lambda: with_fidelity_as_column(
        lambda model: StackingClassifier([("a", model)], cv=SHUFFLED)
    ),
    "columns to arrays": lambda: in_columns("default"),
    "columns to pandas": lambda: in_columns("pandas"),
    "columns to polars": lambda: in_columns("polars"),
    "nested parameters and clones": nested,
}


# ------------------------------------------------------------------- processes


def fit_there(model: Any) -> np.ndarray:
    return model.fit(X, Y, LEVEL).predict_proba(X)


def predict_there(model: Any) -> np.ndarray:
    return model.predict_proba(X)


def elsewhere(case: tuple[str, str]) -> str | None:
    """Fitted or predicted in another process, or by a copy."""
    where, what = case
    model = new().fit(X, Y, LEVEL) if what == "fitted" else new()
    act = predict_there if what == "fitted" else fit_there
    if where == "pickle":
        return difference(act(pickle.loads(pickle.dumps(model))))
    if where == "deepcopy":
        return difference(act(copy.deepcopy(model)))
    if where == "joblib file":
        with tempfile.TemporaryDirectory() as folder:
            joblib.dump(model, Path(folder, "model"))
            return difference(act(joblib.load(Path(folder, "model"), mmap_mode="r")))
    if where == "loky":
        answers = joblib.Parallel(2)(joblib.delayed(act)(model) for _ in range(2))
        return difference(answers[0]) or difference(answers[1])
    with multiprocessing.get_context(where).Pool(1) as pool:
        return difference(pool.apply_async(act, (model,)).get(timeout=60))


# ------------------------------------------------------------------- trials


def checked(estimator: Any) -> Iterator[tuple[Any, Any]]:
    for case in estimator_checks_generator(estimator, mark=None):
        if "array_api" not in str(case[1]):  # which runs with SCIPY_ARRAY_API=1 only
            yield case


def check(case: tuple[Any, Any]) -> str | None:
    estimator, function = case
    function(estimator)
    return None


def trials(context: Context) -> Iterator[Trial]:
    """Containers, tools of scikit-learn, and other processes."""
    wrong = [(a, n) for a in ("y", "fidelity", "sample_weight") for n in wrong_forms(Y, a)]
    models = [
        new(),
        *([] if context.quick else [MultiFidelityClassifier(), TrustedOnly(), Pooled(), Stacked()]),
    ]
    places = ("pickle", "deepcopy", "joblib file", "loky", "fork", "spawn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=PendingDeprecationWarning)  # of np.matrix
        warnings.filterwarnings("ignore", message=".*fork.*")  # threads at a fork: on purpose
        yield attack("X in another container", "the same probabilities", ALIKE_X, alike_x)
        yield attack("X that cannot be used", "an error that says why", REFUSED_X, refused_x)
        yield attack(
            "y, fidelity or weights in another container",
            "the same probabilities; an index does not matter",
            columns_of_a_fit(),
            alike_column,
        )
        yield attack(
            "y, fidelity or weights that cannot be used", "an error that says why", wrong,
            refused_column,
        )  # fmt: skip
        yield attack("tools of scikit-learn", "they work", TOOLS, lambda name: TOOLS[name]())
        yield attack(
            "copies and other processes",
            "the same probabilities",
            [(where, what) for where in places for what in ("fitted", "unfitted")],
            elsewhere,
        )
    for model in models:
        yield attack(
            f"scikit-learn's own checks of {type(model).__name__}", "they pass", checked(model),
            check,
        )  # fmt: skip
