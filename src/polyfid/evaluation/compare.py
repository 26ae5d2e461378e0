"""Every method is fitted to every fold, and its predictions of the held-out rows are scored."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state, check_scalar

from polyfid.arrays import Array
from polyfid.estimator.baselines import Pooled, Stacked, TrustedOnly
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import as_table, point_ids, read_labels, read_levels, read_weights
from polyfid.estimator.levels import FidelityArray
from polyfid.estimator.model_selection import TrustedKFold
from polyfid.evaluation.result import ALONE, OURS, Estimate, Evaluation, is_small
from polyfid.evaluation.scores import SCORES, bootstrap, score

Index = NDArray[np.intp]

_BASELINES = {ALONE: TrustedOnly, "pooled": Pooled, "stacked": Stacked}
#: The methods that are compared; the first is the one that is judged.
METHODS = (OURS, *_BASELINES)


def evaluate(
    X: Any,
    y: ArrayLike,
    fidelity: Any,
    *,
    model: MultiFidelityClassifier | None = None,
    encoder: Any = None,
    sample_weight: ArrayLike | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    n_bootstrap: int = 1000,
    progress: Callable[[int, int], object] | None = None,
    levels: Iterable[Any] | None = None,
    drop_repeats: bool = False,
) -> Evaluation:
    """Compare the model with baselines by cross-validation on the trusted rows.

    The rows of the top level are split into folds, stratified by class. Each fold is predicted by
    models that were fitted to the other trusted rows and to all cheaper ones. The methods are the
    model itself ("polyfid"), and the same classifier fitted to the trusted rows only ("trusted
    only"), to all rows alike ("pooled"), or to the trusted rows with predictions of the level
    below as additional features ("stacked").

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    y : array-like of shape (n,)
    fidelity : array-like of shape (n,)
        The level of each row.
    model : MultiFidelityClassifier, optional
        The model to evaluate; it is cloned, not fitted. One with default settings by default.
        Baselines have one level, so settings per level (rho, label noise) are not passed to them;
        of a list of kernels they get the first.
    encoder : object with ``fit`` and ``transform``, optional
        Turns rows of X into numbers. In each fold a clone is fitted to the training rows only, so
        that nothing about the held-out rows reaches the models.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts, in fits and in scores; rows of weight 0 are left out.
    n_splits : int
        Number of folds; fewer where a class has fewer trusted rows.
    random_state : int, RandomState or None
        Seed of folds and bootstrap, and of a model that has none of its own.
    n_jobs : int, optional
        Number of processes; one task is one method on one fold.
    n_bootstrap : int
        Number of bootstrap samples for the intervals.
    progress : callable, optional
        Called with the number of finished tasks and of all tasks, first with 0.
    levels : sequence, optional
        Names of the levels, least trusted first. By default those of the model, or the order that
        ``fidelity`` has.
    drop_repeats : bool
        Also leave out cheaper labels of the points that are held out. The scores are then those
        for points without any label.

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
    check_scalar(n_splits, "n_splits", Integral, min_val=2)
    check_scalar(n_bootstrap, "n_bootstrap", Integral, min_val=10)
    model = MultiFidelityClassifier() if model is None else model
    _check_model(model)
    data = _read(model, X, y, fidelity, sample_weight, levels)
    folds = min(n_splits, data.rarest)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    splitter = TrustedKFold(
        folds, levels=data.levels, shuffle=True, random_state=seed, drop_repeats=drop_repeats
    )
    splits = list(splitter.split(data.X, data.y, fidelity=data.fidelity))
    methods = _methods(model, seed, n_jobs)
    probas, warned = _predict(methods, data, encoder, splits, n_jobs, progress)
    labels, weight = data.y[data.trusted], data.weight[data.trusted]
    code = np.searchsorted(data.classes, labels)
    samples = bootstrap(probas, code, weight, n_bootstrap, rng)
    values = {m: score(p, code, weight[None])[0] for m, p in probas.items()}
    fold = np.empty(len(data.y), dtype=np.intp)
    for k, (_, test) in enumerate(splits):
        fold[test] = k
    notes = _notes(data, n_splits, folds, drop_repeats)
    return Evaluation(
        levels=data.levels,
        classes=tuple(data.classes.tolist()),
        rows=data.index[data.trusted],
        labels=labels,
        fold=fold[data.trusted],
        out_of_fold=probas,
        scores={m: _estimates(values[m], samples[m]) for m in METHODS},
        differences={
            m: _estimates(values[OURS] - values[m], samples[OURS] - samples[m]) for m in _BASELINES
        },
        n_splits=folds,
        n_bootstrap=int(n_bootstrap),
        notes=(*notes, *warned),
    )


@dataclass(frozen=True)
class _LabelledRows:
    """The rows of positive weight; ``index`` is where they are in the input."""

    X: Any
    y: NDArray[Any]
    fidelity: FidelityArray
    weight: Array
    index: Index
    levels: tuple[Any, ...]
    trusted: Index  # the rows at the top level
    rarest: int  # how many of them are of their rarest class
    classes: NDArray[Any]


def _read(
    model: MultiFidelityClassifier, X: Any, y: Any, fidelity: Any, sample_weight: Any, levels: Any
) -> _LabelledRows:
    """The rows, if there are cheaper ones, and trusted ones of two classes for two folds."""
    X = as_table(X)
    n = X.shape[0]
    if fidelity is None:
        raise ValueError("fidelity is None; pass the level of each row")
    labels = read_labels(y, n)
    names, level = read_levels(model.levels if levels is None else levels, fidelity, n)
    weight = read_weights(sample_weight, n)
    index = np.flatnonzero(weight > 0.0)
    labels, level = labels[index], level[index]
    trusted = np.flatnonzero(level == len(names) - 1)
    if len(trusted) == len(level):
        raise ValueError(
            f"fidelity has rows of one level only, {names[-1]!r}, so there is nothing to compare; "
            "add cheaper labels, or score a single level with scikit-learn's cross_val_score"
        )
    classes, counts = np.unique(labels[trusted], return_counts=True)
    if len(classes) < 2 or counts.min() < 2:
        held = [f"{n} of class {c!s}" for c, n in zip(classes, counts, strict=True)]
        raise ValueError(
            f"the trusted rows (level {names[-1]!r}) are {', '.join(held) or 'none'}, and "
            "cross-validation needs two of each class and at least two classes; label more rows at "
            f"that level, or correct the order of the levels {list(names)} by levels="
        )
    by_name = FidelityArray(np.asarray(names)[level], names)
    rows = (_safe_indexing(X, index), labels, by_name, weight[index], index)
    return _LabelledRows(*rows, names, trusted, int(counts.min()), np.unique(labels))


def _predict(
    models: dict[str, Any],
    data: _LabelledRows,
    encoder: Any,
    splits: Sequence[tuple[Index, Index]],
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[dict[str, Array], list[str]]:
    """Out-of-fold probabilities of the trusted rows per method, and notes on warnings of fits."""
    probas = {m: np.empty((len(data.y), len(data.classes))) for m in models}
    warned: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(models, 0))
    tasks = [(m, k) for k in range(len(splits)) for m in models]
    report = progress or (lambda done, total: None)
    report(0, len(tasks))
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results = pool(
        delayed(_fit_and_predict)(m, k, models[m], encoder, data, *splits[k]) for m, k in tasks
    )
    for done, (m, k, proba, messages) in enumerate(results, start=1):
        probas[m][splits[k][1]] = proba
        for message in set(messages):
            warned[message][m] += 1
        report(done, len(tasks))
    return {m: p[data.trusted] for m, p in probas.items()}, _warning_notes(warned, len(splits))


def _fit_and_predict(
    name: str, fold: int, model: Any, encoder: Any, data: _LabelledRows, train: Index, test: Index
) -> tuple[str, int, Array, list[str]]:
    """One method on one fold: its name, the fold, probabilities of test rows, and warnings."""
    model = clone(model)
    rows = {"fidelity": data.fidelity[train], "sample_weight": data.weight[train]}
    X_train, X_test = _safe_indexing(data.X, train), _safe_indexing(data.X, test)
    # Recorded, so that each is shown once for all folds and not by every process.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if encoder is not None:
                encoder = clone(encoder, safe=False).fit(X_train)
                X_train, X_test = encoder.transform(X_train), encoder.transform(X_test)
            model.fit(X_train, data.y[train], **rows)
            predicted = model.predict_proba(X_test)
        except Exception as error:
            error.add_note(f"(in fold {fold + 1}, method {name!r})")
            raise
    # Where repeats are dropped, a training set may lack a class.
    proba = np.zeros((len(test), len(data.classes)))
    proba[:, np.searchsorted(data.classes, model.classes_)] = predicted
    return name, fold, proba, [str(w.message) for w in caught]


def _methods(model: MultiFidelityClassifier, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """The model and its baselines, unfitted."""
    ours = clone(model)
    if ours.random_state is None:
        ours.set_params(random_state=seed)
    ours.set_params(levels=None)  # the fidelity of the rows carries their order
    if n_jobs is not None:
        ours.set_params(n_jobs=None)  # the processes are used for tasks
    # Baselines have one level, where settings per level have no meaning.
    plain = clone(ours).set_params(rho=1.0, label_noise=None)
    if isinstance(plain.kernel, Sequence | np.ndarray) and not isinstance(plain.kernel, str):
        plain.set_params(kernel=plain.kernel[0])
    return {OURS: ours, **{name: baseline(plain) for name, baseline in _BASELINES.items()}}


def _estimates(values: Array, samples: Array) -> dict[str, Estimate]:
    return {name: Estimate.of(values[k], samples[:, k]) for k, name in enumerate(SCORES)}


def _notes(data: _LabelledRows, asked: int, folds: int, drop_repeats: bool) -> list[str]:
    """Reasons for caution that lie in the rows."""
    labels, notes = data.y[data.trusted], []
    if is_small(labels):
        notes.append(
            f"small sample: {len(labels)} trusted rows, {data.rarest} of the rarest class; the "
            "intervals are rough, and another sample may well give another verdict"
        )
    if folds < asked:
        notes.append(f"{folds} folds instead of {asked}, as a class has {folds} trusted rows")
    absent = ", ".join(map(str, np.setdiff1d(data.classes, labels)))
    if absent:
        notes.append(f"no trusted row is of class {absent}, so it is not in the ROC AUC")
    point = point_ids(data.X)
    repeated = int(np.isin(point[data.trusted], np.delete(point, data.trusted)).sum())
    if repeated and not drop_repeats:
        notes.append(
            f"{repeated} of the {len(labels)} trusted points also have cheaper labels, which stay "
            "in the training sets; for points without any label pass drop_repeats=True"
        )
    return notes


def _warning_notes(warned: dict[str, dict[str, int]], n_folds: int) -> list[str]:
    """One note per warning and method; one in all where every method warned in as many folds."""
    notes = []
    for message, folds in sorted(warned.items()):
        same = len({*folds.values()}) == 1
        counts = {"all methods": folds[OURS]} if same else folds
        notes += [f"{m}, {n} of {n_folds} folds: {message}" for m, n in counts.items() if n]
    return notes


def _check_model(model: Any) -> None:
    problem = None
    if not isinstance(model, MultiFidelityClassifier):
        problem = f"must be a MultiFidelityClassifier or None, got {type(model).__name__}"
    elif model.fidelity_feature is not None:
        problem = (
            f"has fidelity_feature={model.fidelity_feature!r}, but the levels come as the argument "
            "fidelity; pass X without that column and a model without the setting"
        )
    elif isinstance(model.label_noise, str) and model.label_noise == "annotator":
        problem = (
            'has label_noise="annotator", which needs the annotator of each label, and evaluate '
            'has no such argument; use label_noise="fidelity" or None'
        )
    if problem is not None:
        raise ValueError(f"model {problem}")
