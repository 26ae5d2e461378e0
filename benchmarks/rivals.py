"""The default against what people would use instead, on the splits of the paper's experiments.

Every rival chooses its own setting, most of them the weight of a cheap row, by the log-loss of
`TrustedKFold` on the training rows. Rows of results are kept in ``benchmarks/out/rivals``: a run
that was stopped goes on where it was. Remove the folder to measure another version of polyfid.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.figures import Context, Figure, Skip, Table, at_least, at_most
from experiments import problems
from experiments.cells import Row, scores
from experiments.methods import RUNNERS, SplitCell
from experiments.paper import CLOSE, COLUMNS, METRICS
from experiments.problems import Answers, Problem, Split, usable_seeds
from experiments.results import Results
from experiments.run import run as run_cells
from polyfid import TrustedKFold

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
#: Probabilities of class 1 of some rows.
Predict = Callable[[Array], Array]
#: Probabilities of class 1 of the test rows, and figures to keep.
Outcome = tuple[Array, Row]

FOLDER = Path(__file__).parent / "out" / "rivals"
#: The folder with the weights of TabPFN.
TABPFN_FOLDER = "TABPFN_WEIGHTS"
GOAL = 24
N_FOLDS = 5
#: Splits per problem, and of the crowd's: ten genres of songs are problems of one column, and
#: sentences have 1200 columns, of which CatBoost takes a quarter of an hour.
N_RUNS, N_RUNS_OF_CROWD = 3, 1
CLIP = 1e-6
LEAST_SLOPE = 1e-3  # keeps second derivatives of a corrected loss positive


class Training(NamedTuple):
    """Training rows: features, labels 0 and 1, and which ones are trusted."""

    X: Array
    y: Labels
    trusted: NDArray[np.bool_]

    def take(self, rows: Labels | NDArray[np.bool_]) -> Training:
        return Training(self.X[rows], self.y[rows], self.trusted[rows])


@dataclass(frozen=True)
class Tuned:
    """A method and the settings that it may choose from."""

    fit: Callable[[Training, float], Predict]
    settings: Sequence[float]

    def __call__(self, split: Split, seed: int) -> Outcome:
        """Choose the setting, fit, and predict the test rows."""
        return self.on(Training(split.X, split.y, split.fidelity == 1), split.X_test, seed)

    def on(self, rows: Training, X_test: Array, seed: int) -> Outcome:
        """The same for other training rows."""
        started = time.process_time()
        # As many folds as the rarer trusted class allows.
        rarer = int(np.bincount(rows.y[rows.trusted], minlength=2).min())
        folds = TrustedKFold(int(np.clip(rarer, 2, N_FOLDS)), shuffle=True, random_state=seed)
        losses = np.zeros(len(self.settings))
        for train, test in folds.split(rows.X, rows.y, fidelity=rows.trusted.astype(int)):
            inside = rows.take(train)
            for i, setting in enumerate(self.settings):
                p = np.clip(self.fit(inside, setting)(rows.X[test]), CLIP, 1.0 - CLIP)
                losses[i] += log_loss(rows.y[test], p, labels=[0, 1], normalize=False)
        predict = self.fit(rows, self.settings[int(np.argmin(losses))])
        seconds = time.process_time() - started
        return predict(X_test), {"fit_seconds": seconds}


def _boosted_trees(**given: Any) -> Any:
    settings = {"n_estimators": 150, "max_depth": 3, "learning_rate": 0.05, "subsample": 0.85}
    return import_module("xgboost").XGBClassifier(**settings | given, random_state=0, n_jobs=1)


def _weights(rows: Training, cheap: float) -> Array:
    return np.where(rows.trusted, 1.0, cheap)


def catboost(rows: Training, weight: float) -> Predict:
    """CatBoost on all rows, cheap ones with a weight."""
    model = import_module("catboost").CatBoostClassifier(
        iterations=300,
        border_count=64,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    model.fit(rows.X, rows.y, sample_weight=_weights(rows, weight))
    return lambda X: np.asarray(model.predict_proba(X)[:, 1])


def clean_learning(rows: Training, weight: float) -> Predict:
    """Labels that cleanlab doubts are left out, trusted ones never; boosted trees of the rest."""
    clean = import_module("cleanlab.classification").CleanLearning
    # In one process: its workers expect to be started from the main one.
    model = clean(
        _boosted_trees(), seed=0, cv_n_folds=N_FOLDS, find_label_issues_kwargs={"n_jobs": 1}
    )
    issues = model.find_label_issues(rows.X, rows.y)["is_label_issue"].to_numpy()
    kept = rows.trusted | ~issues
    if len(np.unique(rows.y[kept])) < 2:
        kept = np.ones(len(rows.y), dtype=bool)
    final = _boosted_trees().fit(
        rows.X[kept], rows.y[kept], sample_weight=_weights(rows, weight)[kept]
    )
    return lambda X: np.asarray(final.predict_proba(X)[:, 1])


def _lacks_a_class(*levels: Training) -> bool:
    """Whether a level has labels of one class only, so that no model of it can be made."""
    return any(len(np.unique(level.y)) < 2 for level in levels)


def on_a_margin(rows: Training, factor: float) -> Predict:
    """Boosted trees of the trusted rows that start from the margin of trees of the cheap ones."""
    cheap, trusted = rows.take(~rows.trusted), rows.take(rows.trusted)
    if _lacks_a_class(cheap, trusted):
        return _weighted_trees(rows, 1.0)
    first = _boosted_trees().fit(cheap.X, cheap.y)

    def margin(X: Array) -> Array:
        return factor * np.asarray(first.predict(X, output_margin=True))

    second = _boosted_trees(base_score=0.5).fit(trusted.X, trusted.y, base_margin=margin(trusted.X))
    return lambda X: np.asarray(second.predict_proba(X, base_margin=margin(X))[:, 1])


def gold_correction(rows: Training, weight: float) -> Predict:
    """Cheap labels as seen through the confusion that the trusted rows show (Hendrycks, 2018)."""
    xgboost = import_module("xgboost")
    cheap, trusted = rows.take(~rows.trusted), rows.take(rows.trusted)
    if _lacks_a_class(cheap, trusted):
        return _weighted_trees(rows, 1.0)
    says_one = _boosted_trees().fit(cheap.X, cheap.y).predict_proba(trusted.X)[:, 1]
    # P(cheap label 1 | true label k): the mean of the cheap model over trusted rows of class k.
    rate = [float(np.clip(says_one[trusted.y == k].mean(), 0.02, 0.98)) for k in (0, 1)]
    low = np.where(rows.trusted, 0.0, rate[0])
    high = np.where(rows.trusted, 1.0, rate[1])

    def objective(f: Array, _: Any) -> tuple[Array, Array]:
        p = expit(f)
        q = np.clip(low + (high - low) * p, CLIP, 1.0 - CLIP)  # of the label that was given
        slope = (high - low) * p * (1.0 - p)
        weights = _weights(rows, weight)
        gradient = weights * (q - rows.y) / (q * (1.0 - q)) * slope
        curvature = weights * np.maximum(slope**2 / (q * (1.0 - q)), LEAST_SLOPE)
        return gradient, curvature

    settings = {"max_depth": 3, "eta": 0.05, "subsample": 0.85, "seed": 0, "nthread": 1}
    matrix = xgboost.DMatrix(rows.X, label=rows.y)
    model = xgboost.train(
        settings | {"base_score": 0.0}, matrix, num_boost_round=150, obj=objective
    )

    return lambda X: np.asarray(expit(model.predict(xgboost.DMatrix(X), output_margin=True)))


def tabpfn(rows: Training, weight: float) -> Predict:
    """TabPFN on the trusted rows (setting 0) or on all rows (setting 1)."""
    used = rows.trusted | (weight > 0.0)
    model = import_module("tabpfn").TabPFNClassifier(
        model_path=os.environ[TABPFN_FOLDER], device="cpu", random_state=0
    )
    model.fit(rows.X[used], rows.y[used])
    return lambda X: np.asarray(model.predict_proba(X)[:, 1])


WEIGHTS = (0.03, 0.1, 0.3, 1.0)


# Crowds: single answers of people become one label per item, and a classifier learns from these.


def _votes(answers: Answers) -> tuple[Array, Any]:
    """The distinct items, and a table of their answers: one column per person, NaN for none."""
    import pandas as pd

    X, item = np.unique(answers.X, axis=0, return_inverse=True)
    long = pd.DataFrame({"task": item.ravel(), "worker": answers.annotator, "label": answers.y})
    return X, long.drop_duplicates(["task", "worker"])


def _dawid_skene(split: Split, seed: int) -> Outcome:
    """Dawid and Skene's labels of all items, trusted labels where there are any, then trees."""
    crowd_kit = import_module("crowdkit.aggregation")
    X, long = _votes(_of(split))
    proba = crowd_kit.DawidSkene(100).fit_predict_proba(long)
    ones = proba.reindex(range(len(X)))[1].to_numpy()
    return _with_trusted(split, X, ones > 0.5, seed)


def _consensus(split: Split, seed: int) -> Outcome:
    """The consensus of cleanlab (CROWDLAB), trusted labels where there are any, then trees."""
    multiannotator = import_module("cleanlab.multiannotator")
    X, long = _votes(_of(split))
    table = long.pivot(index="task", columns="worker", values="label").reindex(range(len(X)))
    majority = (table.mean(axis=1) > 0.5).to_numpy().astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    proba = cross_val_predict(model, X, majority, cv=N_FOLDS, method="predict_proba")
    best = multiannotator.get_label_quality_multiannotator(table, proba, verbose=False)
    labels = best["label_quality"]["consensus_label"].to_numpy() == 1
    return _with_trusted(split, X, labels, seed)


def _of(split: Split) -> Answers:
    assert split.answers is not None
    return split.answers


def _with_trusted(split: Split, X: Array, labels: NDArray[np.bool_], seed: int) -> Outcome:
    """Trees of the crowd's labels and the trusted ones, the weight chosen as for the others."""
    X_trusted, y_trusted = split.level(1)
    rows = Training(
        np.concatenate([X, X_trusted]),
        np.concatenate([labels.astype(np.intp), y_trusted]),
        np.repeat([False, True], [len(X), len(y_trusted)]),
    )
    return Tuned(_weighted_trees, WEIGHTS).on(rows, split.X_test, seed)


def _weighted_trees(rows: Training, weight: float) -> Predict:
    model = _boosted_trees().fit(rows.X, rows.y, sample_weight=_weights(rows, weight))
    return lambda X: np.asarray(model.predict_proba(X)[:, 1])


class Method(NamedTuple):
    """What to run on a split, the package that it needs, and whether it needs single answers."""

    run: Callable[[Split, int], Outcome]
    package: str
    crowd: bool = False


OURS = "polyfid"
METHODS = {
    OURS: Method(RUNNERS[OURS, "multi"], "polyfid"),
    "CatBoost, weights": Method(Tuned(catboost, WEIGHTS), "catboost"),
    "cleanlab, XGBoost": Method(Tuned(clean_learning, WEIGHTS), "cleanlab"),
    "XGBoost on a margin": Method(Tuned(on_a_margin, (0.0, 0.5, 1.0, 2.0)), "xgboost"),
    "gold loss correction": Method(Tuned(gold_correction, WEIGHTS), "xgboost"),
    "TabPFN": Method(Tuned(tabpfn, (0.0, 1.0)), "tabpfn"),
    "Dawid-Skene, XGBoost": Method(_dawid_skene, "crowdkit", crowd=True),
    "cleanlab consensus, XGBoost": Method(_consensus, "cleanlab", crowd=True),
}


@dataclass(frozen=True, kw_only=True)
class RivalCell(SplitCell):
    """One method on one split."""

    @property
    def seconds(self) -> float:
        return 5.0

    def compute(self) -> Row:
        split = self.split
        proba, facts = METHODS[self.method].run(split, self.seed)
        return {**split.sizes, **scores(split.y_test, proba), **facts}


def run(context: Context) -> list[Figure]:
    if context.data is None:
        raise Skip("needs the sets of the paper: --data DIR or POLYFID_DATA")
    there = {name: m for name, m in METHODS.items() if find_spec(m.package) is not None}
    if TABPFN_FOLDER not in os.environ:
        there.pop("TabPFN", None)
    if len(there) == 1:
        raise Skip("needs catboost, cleanlab or xgboost, see benchmarks/peers.txt")
    home = str(context.data)
    sources = [
        source
        for group in (problems.artificial, problems.pmlb, problems.crowd)
        for source in group(home, quick=context.quick)
    ]
    cells = [
        RivalCell.of(source, method=name, mode="rivals", seed=seed)
        for source in sources
        for seed in usable_seeds([source], _runs(context, source))
        for name, method in there.items()
        if source.column.group == "crowd" or not method.crowd
    ]
    run_cells(
        cells,
        FOLDER,
        jobs=os.cpu_count(),
        retry_failed=True,
        progress=lambda row, done, total, left: context.progress(
            f"rivals: {done} of {total}, {left / 60:.0f} min left"
        ),
    )
    figures = []
    results = Results.read(FOLDER)
    for metric in METRICS[:2]:
        means, best = results.means(metric.name), results.best(metric)
        columns = [c for c in COLUMNS if c in means]
        names = [name for name in METHODS if any((name, "rivals") in means[c] for c in columns)]
        body = [
            [str(c), *(_figure(means[c].get((name, "rivals"))) for name in names)] for c in columns
        ]
        context.tables.append(Table(f"rivals: {metric.name}", ["", *names], body))
        good = sum((OURS, "rivals") in best[c] for c in columns)
        goal = GOAL if len(columns) == len(COLUMNS) else len(columns)
        title = f"rivals: {metric.name} best or within {CLOSE} of the best"
        figures.append(at_least(title, good, goal, f"of {len(columns)} columns"))
    failed = len(results.failures)
    figures.append(at_most("rivals: fits that failed", failed, 0, f"of {len(results.rows)}"))
    for name, method in METHODS.items():
        if name not in there:
            needs = (
                f"{TABPFN_FOLDER}, a folder with weights" if name == "TabPFN" else method.package
            )
            figures.append(Figure(f"rivals: {name}", None, note=f"left out: needs {needs}"))
    return figures


def _runs(context: Context, source: Problem) -> int:
    if context.quick or context.full:
        return 1 if context.quick else source.runs
    return N_RUNS_OF_CROWD if source.column.group == "crowd" else N_RUNS


def _figure(mean: Any) -> str:
    return "" if mean is None else f"{mean.mean:.3f}"
