"""Fitting every method to every fold and scoring what it predicts for the rows left out."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from polyfid.arrays import Array
from polyfid.estimator.baselines import Pooled, Stacked, TrustedOnly
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import point_ids
from polyfid.estimator.model_selection import TrustedKFold
from polyfid.evaluation.result import ALONE, FEW_OF_A_CLASS, FEW_ROWS, OURS, Estimate, Evaluation
from polyfid.evaluation.rows import Rows
from polyfid.evaluation.scores import SCORES, bootstrap, score

Index = NDArray[np.intp]

_WRAPPERS = {ALONE: TrustedOnly, "pooled": Pooled, "stacked": Stacked}
#: What is compared, the model that is judged first.
METHODS = (OURS, *_WRAPPERS)


def evaluate(
    X: Any,
    y: ArrayLike,
    fidelity: Any,
    *,
    model: MultiFidelityClassifier | None = None,
    sample_weight: ArrayLike | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    n_bootstrap: int = 1000,
    progress: Callable[[int, int], object] | None = None,
    levels: Iterable[Any] | None = None,
    drop_repeats: bool = False,
) -> Evaluation:
    """Compare the model with what the same classifier makes of the labels without it.

    The rows of the top level are split into folds, stratified by class. Each fold is predicted by
    models that have seen all cheaper rows and the other trusted ones: the model itself
    ("polyfid"), and the same classifier given the trusted rows ("trusted only"), all rows alike
    ("pooled"), or the trusted rows with the predictions of the level below as features
    ("stacked").

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    y : array-like of shape (n,)
    fidelity : array-like of shape (n,)
        The level of each row.
    model : MultiFidelityClassifier, optional
        What to evaluate; it is cloned, not fitted. By default one with all settings as they come.
        Settings that concern levels (list of kernels, rho, label noise) do not go to the
        baselines; of a list of kernels these have the first.
    sample_weight : array-like of shape (n,), optional
        Rows count so many times, in fits and in scores; 0 leaves one out.
    n_splits : int
        Folds; fewer are made where a class has fewer trusted rows.
    random_state : int, RandomState or None
        For folds, bootstrap, and a model that has none of its own.
    n_jobs : int, optional
        Processes; a task is one method on one fold.
    n_bootstrap : int
        Bootstrap samples behind the intervals.
    progress : callable, optional
        Called with the number of tasks done and their total, at first with 0.
    levels : sequence, optional
        Names of the levels, least trusted first; else the model's, or as ``fidelity`` has them.
    drop_repeats : bool
        Also leave out cheaper labels of the very points that are held out. The scores are then
        those for new points that nobody has labelled at all.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, stack_levels
    >>> from polyfid.evaluation import evaluate
    >>> from polyfid.kernels import RBF
    >>> rng = np.random.RandomState(1)
    >>> X = rng.uniform(-2, 2, (80, 1))
    >>> X, y, fidelity = stack_levels(
    ...     {"crowd": (X[:60], X[:60, 0] > 0.2), "gold": (X[60:], X[60:, 0] > 0)}
    ... )
    >>> result = evaluate(X, y, fidelity, model=MultiFidelityClassifier(kernel=1.0 * RBF()))
    >>> sorted(result.scores)
    ['polyfid', 'pooled', 'stacked', 'trusted only']
    >>> result.out_of_fold["polyfid"].shape
    (20, 2)
    """
    _check_count("n_splits", n_splits, 2)
    _check_count("n_bootstrap", n_bootstrap, 10)
    given = MultiFidelityClassifier() if model is None else model
    _check_model(given)
    rows = Rows.read(X, y, fidelity, sample_weight, given.levels if levels is None else levels)
    counts = rows.trusted_counts()
    folds = min(n_splits, int(counts.min()))
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    splitter = TrustedKFold(
        folds, levels=rows.levels, shuffle=True, random_state=seed, drop_repeats=drop_repeats
    )
    splits = list(splitter.split(rows.X, rows.y, fidelity=rows.fidelity))
    probas, warned = _predict(_methods(given, seed, n_jobs), rows, splits, n_jobs, progress)

    code, weight = rows.code[rows.trusted], rows.weight[rows.trusted]
    samples = bootstrap(probas, code, weight, n_bootstrap, rng)
    values = {m: score(p, code, weight[None])[0] for m, p in probas.items()}
    fold = np.empty(len(rows.y), dtype=np.intp)
    for k, (_, test) in enumerate(splits):
        fold[test] = k
    notes = _notes(rows, counts, n_splits, folds, drop_repeats)
    others = [m for m in METHODS if m != OURS]
    return Evaluation(
        levels=rows.levels,
        classes=tuple(rows.classes.tolist()),
        rows=rows.index[rows.trusted],
        labels=rows.y[rows.trusted],
        fold=fold[rows.trusted],
        out_of_fold=probas,
        scores={m: _estimates(values[m], samples[m]) for m in METHODS},
        differences={
            m: _estimates(values[OURS] - values[m], samples[OURS] - samples[m]) for m in others
        },
        n_splits=folds,
        n_bootstrap=int(n_bootstrap),
        notes=(*notes, *warned),
    )


def _predict(
    models: dict[str, Any],
    rows: Rows,
    splits: Sequence[tuple[Index, Index]],
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[dict[str, Array], list[str]]:
    """Out-of-fold probabilities of the trusted rows by method, and what the fits warned of."""
    place = np.empty(len(rows.y), dtype=np.intp)
    place[rows.trusted] = np.arange(len(rows.trusted))
    probas = {m: np.empty((len(rows.trusted), len(rows.classes))) for m in models}
    tasks = [(m, k) for k in range(len(splits)) for m in models]
    warned: Counter[tuple[str, str]] = Counter()
    report = progress or (lambda done, total: None)
    report(0, len(tasks))
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results = pool(delayed(_fit_and_predict)(m, k, models[m], rows, *splits[k]) for m, k in tasks)
    for done, (m, k, proba, messages) in enumerate(results, start=1):
        probas[m][place[splits[k][1]]] = proba
        warned.update((m, message) for message in set(messages))
        report(done, len(tasks))
    order = sorted(warned.items(), key=lambda item: (METHODS.index(item[0][0]), item[0][1]))
    notes = [f"{m}, {count} of {len(splits)} folds: {text}" for (m, text), count in order]
    return probas, notes


def _fit_and_predict(
    name: str, fold: int, model: Any, rows: Rows, train: Index, test: Index
) -> tuple[str, int, Array, list[str]]:
    model = clone(model)
    weights = {"sample_weight": rows.weight[train]} if rows.weighted else {}
    # Shown once for all folds, not by every process.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            X_train = _safe_indexing(rows.X, train)
            model.fit(X_train, rows.y[train], fidelity=rows.fidelity[train], **weights)
            known = model.predict_proba(_safe_indexing(rows.X, test))
        except Exception as error:
            error.add_note(f"(in fold {fold + 1}, method {name!r})")
            raise
    # Where repeats are dropped, a training set may lack a class.
    proba = np.zeros((len(test), len(rows.classes)))
    proba[:, np.searchsorted(rows.classes, model.classes_)] = known
    return name, fold, proba, [str(w.message) for w in caught]


def _methods(model: MultiFidelityClassifier, seed: int, n_jobs: int | None) -> dict[str, Any]:
    ours = clone(model)
    if ours.random_state is None:
        ours.set_params(random_state=seed)
    ours.set_params(levels=None)  # the rows carry their order
    if n_jobs is not None:
        ours.set_params(n_jobs=None)  # processes go to tasks
    # One level only: what is set a level has no place.
    plain = clone(ours).set_params(rho=1.0, label_noise=None)
    if isinstance(plain.kernel, Sequence | np.ndarray) and not isinstance(plain.kernel, str):
        plain.set_params(kernel=plain.kernel[0])
    return {OURS: ours, **{name: wrap(plain) for name, wrap in _WRAPPERS.items()}}


def _estimates(values: Array, samples: Array) -> dict[str, Estimate]:
    return {name: Estimate.of(values[k], samples[:, k]) for k, name in enumerate(SCORES)}


def _notes(rows: Rows, counts: Index, asked: int, folds: int, drop_repeats: bool) -> list[str]:
    notes = []
    n = int(counts.sum())
    if n < FEW_ROWS or counts.min() < FEW_OF_A_CLASS:
        notes.append(
            f"small sample: {n} trusted rows, {counts.min()} of the rarest class; the intervals "
            "are rough, and another sample may well give another verdict"
        )
    if folds < asked:
        notes.append(f"{folds} folds instead of {asked}, as a class has {folds} trusted rows")
    absent = np.setdiff1d(np.arange(len(rows.classes)), rows.code[rows.trusted])
    if len(absent):
        shown = ", ".join(str(rows.classes[k]) for k in absent)
        notes.append(f"no trusted row is of class {shown}, so it is not in the ROC AUC")
    if not drop_repeats:
        point = point_ids(rows.X)
        cheap = np.setdiff1d(np.arange(len(point)), rows.trusted)
        repeated = int(np.isin(point[rows.trusted], point[cheap]).sum())
        if repeated:
            notes.append(
                f"{repeated} of the {n} trusted points also have cheaper labels, which stay in "
                "the training sets; for points without any label pass drop_repeats=True"
            )
    return notes


def _check_count(name: str, value: object, least: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, got {value!r}")


def _check_model(model: Any) -> None:
    if not isinstance(model, MultiFidelityClassifier):
        raise ValueError(
            "model must be a MultiFidelityClassifier, or None for one with default settings; got "
            f"{type(model).__name__}"
        )
    if model.fidelity_feature is not None:
        raise ValueError(
            f"model has fidelity_feature={model.fidelity_feature!r}, but the levels come as the "
            "argument fidelity; pass X without that column and a model without the setting"
        )
    if isinstance(model.label_noise, str) and model.label_noise == "annotator":
        raise ValueError(
            'model has label_noise="annotator", which needs to know who gave each label, and '
            'evaluate does not; use label_noise="fidelity" or None'
        )
