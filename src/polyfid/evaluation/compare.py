"""Every method is fitted to every fold, and its predictions of the held-out rows are scored."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state, check_scalar

from polyfid.arrays import Array, Indices
from polyfid.estimator.baselines import Pooled, Stacked, TrustedOnly, for_one_level
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import FitInfo, as_table, point_ids, read_rows
from polyfid.estimator.levels import FidelityArray
from polyfid.estimator.model_selection import TrustedKFold, read_marks
from polyfid.evaluation.result import (
    ALONE,
    OURS,
    SCORES,
    Evaluation,
    bootstrap,
    score,
)
from polyfid.evaluation.verdict import Agreement, Estimate
from polyfid.rows import Rows

_BASELINES = {ALONE: TrustedOnly, "pooled": Pooled, "stacked": Stacked}
#: The methods that are compared; the first is the one that is judged.
METHODS = (OURS, *_BASELINES)

#: Figures in a message.
_FIGURES = re.compile(r"[\d.]+(e[+-]?\d+)?")


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
    audit: ArrayLike | None = None,
) -> Evaluation:
    """Compare the model with baselines by cross-validation on the trusted rows.

    The rows of the top level are split into folds, stratified by class. Each fold is predicted by
    models that were fitted to the other trusted rows and to all cheaper ones. The methods are the
    model itself ("polyfid"), and the same classifier fitted to the trusted rows only ("trusted
    only"), to all rows alike ("pooled"), or to the trusted rows with predictions of the level
    below as additional features ("stacked"). Numbers of numeric levels are not pooled, and
    predictions of them are those of a regressor.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    y : array-like of shape (n,)
        Classes, and numbers at the ``numeric_levels`` of the model.
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
    audit : array-like of bool of shape (n,), optional
        Marks of trusted rows that were drawn at random (`polyfid.suggest` marks them). If there are
        any, they alone are held out and scored, and all other trusted rows are in every training
        set: rows that were chosen to be labelled are not like new rows.

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
    if fidelity is None:
        raise ValueError("fidelity is None; pass the level of each row")
    X = as_table(X)
    # Features are read in each fold, after its encoder; until then a row has its place in X.
    place = np.arange(X.shape[0])[:, None]
    order = model.levels if levels is None else levels
    rows, info = read_rows(
        place, y, fidelity, sample_weight, levels=order, numeric_levels=model.numeric_levels
    )
    index = rows.x[:, 0].astype(np.intp)
    trusted = np.flatnonzero(rows.level == len(info.levels) - 1)
    marked = read_marks(audit, X.shape[0])[index]
    n_trusted, audited = len(trusted), bool(marked[trusted].any())
    if audited:
        trusted = trusted[marked[trusted]]
    counts = np.bincount(rows.y[trusted], minlength=len(info.classes))
    rarest = _check_trusted(info, counts, audited)
    X, labels = _safe_indexing(X, index), _targets(rows, info)
    named = FidelityArray(np.asarray(info.levels)[rows.level], info.levels)
    folds = min(n_splits, rarest)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    splitter = TrustedKFold(folds, shuffle=True, random_state=seed, drop_repeats=drop_repeats)
    splits = list(splitter.split(X, labels, fidelity=named, audit=marked))
    fold = np.empty(len(labels), dtype=np.intp)
    for k, (_, test) in enumerate(splits):
        fold[test] = k
    methods, data = _methods(model, info, seed, n_jobs), (X, labels, named, rows.weight)
    probas, warned = _predict(methods, data, info.classes, encoder, splits, n_jobs, progress)
    probas = {name: proba[trusted] for name, proba in probas.items()}
    code, weight = rows.y[trusted], rows.weight[trusted]
    wider = float(np.sqrt(1.0 + folds / (folds - 1.0)))
    samples = bootstrap(probas, code, weight, n_bootstrap, rng)
    values = {m: score(p, code, weight[None])[0] for m, p in probas.items()}
    notes = _notes(info, counts, n_splits, folds)
    if audited:
        notes.insert(0, _about_audit(len(trusted), n_trusted))
    point, caveats = point_ids(X), []
    repeated = int(np.isin(point[trusted], np.delete(point, trusted)).sum())
    if repeated and not drop_repeats:
        caveats.append(
            f"{repeated} of the {len(trusted)} trusted points also have "
            f"{'other' if audited else 'cheaper'} labels, which stay in the training sets; for "
            "points without any label pass drop_repeats=True."
        )
    return Evaluation(
        levels=info.levels,
        classes=tuple(info.classes.tolist()),
        rows=index[trusted],
        labels=info.classes[code],
        codes=code,
        fold=fold[trusted],
        out_of_fold=probas,
        scores={m: _estimates(values[m], samples[m]) for m in methods},
        differences={
            m: {
                name: gap.widened(wider)
                for name, gap in _estimates(
                    values[OURS] - values[m], samples[OURS] - samples[m]
                ).items()
            }
            for m in methods
            if m != OURS
        },
        n_splits=folds,
        n_bootstrap=int(n_bootstrap),
        notes=(*notes, *warned),
        caveats=tuple(caveats),
        agreement=_agreement(rows, point, info),
        n_audit=len(trusted) if audited else 0,
    )


def _check_model(model: Any) -> None:
    if not isinstance(model, MultiFidelityClassifier):
        raise ValueError(
            f"model must be a MultiFidelityClassifier or None, got {type(model).__name__}"
        )
    if model.fidelity_feature is not None or str(model.label_noise) == "annotator":
        raise ValueError(
            'model must have no fidelity_feature and no label_noise="annotator", as the levels '
            "come as the argument fidelity, and annotators cannot be passed; got "
            f"fidelity_feature={model.fidelity_feature!r} and label_noise={model.label_noise!r}"
        )


def _check_trusted(info: FitInfo, counts: Indices, audited: bool) -> int:
    """The number of rows to hold out of their rarest class, if there are enough, and cheaper rows.

    ``counts`` are rows to hold out per class: all trusted ones, or those with audit marks.
    """
    levels = info.levels
    if not info.n_rows[:-1].any():
        raise ValueError(
            f"fidelity has rows of one level only, {levels[-1]!r}, so there is nothing to compare; "
            "add cheaper labels, or score a single level with scikit-learn's cross_val_score"
        )
    held = counts > 0
    if held.sum() < 2 or counts[held].min() < 2:
        names = zip(info.classes[held], counts[held], strict=True)
        there = ", ".join(f"{n} of class {c!s}" for c, n in names)
        if audited:
            raise ValueError(
                f"the audit rows of level {levels[-1]!r} are {there}, and cross-validation needs "
                "two of each class and at least two classes; label more rows drawn at random, or "
                "leave the marks out (audit=None) to score all trusted rows, chosen ones too"
            )
        raise ValueError(
            f"the trusted rows (level {levels[-1]!r}) are {there or 'none'}, and "
            "cross-validation needs two of each class and at least two classes; label more rows at "
            f"that level, or correct the order of the levels {list(levels)} by levels="
        )
    return int(counts[held].min())


def _targets(rows: Rows, info: FitInfo) -> NDArray[Any]:
    """Classes of the rows, and numbers of those that have one."""
    if rows.value is None:
        return np.asarray(info.classes[rows.y])
    return np.where(rows.y < 0, rows.value.astype(object), info.classes[rows.y].astype(object))


def _methods(
    model: MultiFidelityClassifier, info: FitInfo, seed: int, n_jobs: int | None
) -> dict[str, Any]:
    """The model and its baselines, unfitted; numbers cannot be pooled with classes."""
    ours = clone(model).set_params(levels=None)  # the fidelity of the rows carries their order
    if ours.random_state is None:
        ours.set_params(random_state=seed)
    if n_jobs is not None:
        ours.set_params(n_jobs=None)  # the processes are used for tasks
    plain, numeric = for_one_level(ours), model.numeric_levels
    baselines = {
        name: baseline(plain, numeric_levels=numeric)
        for name, baseline in _BASELINES.items()
        if name != "pooled" or info.counts[:-1].any()
    }
    return {OURS: ours, **baselines}


def _predict(
    methods: dict[str, Any],
    data: Sequence[Any],
    classes: NDArray[Any],
    encoder: Any,
    splits: Sequence[tuple[Indices, Indices]],
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[dict[str, Array], list[str]]:
    """Probabilities of the held-out rows per method, and notes on warnings of fits."""
    # Where repeats are dropped, a training set may lack a class: its probability stays zero.
    probas = {m: np.zeros((len(data[1]), len(classes))) for m in methods}
    warned: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(methods, 0))
    first: dict[str, str] = {}  # of messages that differ in their figures only
    tasks = [(m, k) for k in range(len(splits)) for m in methods]
    report = progress or (lambda done, total: None)
    report(0, len(tasks))
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_fit_and_predict)(m, k, methods[m], encoder, data, *splits[k]) for m, k in tasks
    )
    for done, ((m, k), (there, proba, messages)) in enumerate(zip(tasks, results, strict=True), 1):
        probas[m][np.ix_(splits[k][1], np.searchsorted(classes, there))] = proba
        for message in messages:
            warned[first.setdefault(_FIGURES.sub("#", message), message)][m] += 1
        report(done, len(tasks))
    notes = []
    for message, counts in sorted(warned.items()):
        if len({*counts.values()}) == 1:
            counts = {"all methods": counts[OURS]}
        notes += [f"{m}, {n} of {len(splits)} folds: {message}" for m, n in counts.items() if n]
    return probas, notes


def _fit_and_predict(
    name: str,
    fold: int,
    model: Any,
    encoder: Any,
    data: Sequence[Any],
    train: Indices,
    test: Indices,
) -> tuple[NDArray[Any], Array, set[str]]:
    """One method on one fold: the classes, probabilities of test rows, and warnings."""
    model = clone(model)
    X, y, fidelity, weight = (_safe_indexing(values, train) for values in data)
    X_test = _safe_indexing(data[0], test)
    # Recorded, so that each is shown once for all folds and not by every process.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if encoder is not None:
                encoder = clone(encoder, safe=False).fit(X)
                X, X_test = encoder.transform(X), encoder.transform(X_test)
            model.fit(X, y, fidelity=fidelity, sample_weight=weight)
            proba = model.predict_proba(X_test)
        except Exception as error:
            error.add_note(f"(in fold {fold + 1}, method {name!r})")
            raise
    return model.classes_, proba, {str(w.message) for w in caught}


def _estimates(values: Array, samples: Array) -> dict[str, Estimate]:
    return {name: Estimate.of(values[k], samples[:, k]) for k, name in enumerate(SCORES)}


def _agreement(rows: Rows, point: Indices, info: FitInfo) -> tuple[Agreement, ...]:
    """How often lower levels agree with the top one, by the most frequent label at a point."""
    top, found = _usual_labels(rows, point, len(info.levels) - 1), []
    for t, level in enumerate(info.levels[:-1]):
        own = {} if t in info.numeric else _usual_labels(rows, point, t)
        both = [p for p in own if p in top]
        if both:
            agree = sum(own[p] == top[p] for p in both)
            found.append(Agreement(level, len(both), Estimate.of_share(agree, len(both))))
    return tuple(found)


def _usual_labels(rows: Rows, point: Indices, level: int) -> dict[int, int]:
    """The class of most weight at each point of a level."""
    own = np.flatnonzero(rows.level == level)
    total = np.zeros((point.max() + 1, rows.y.max() + 1))
    np.add.at(total, (point[own], rows.y[own]), rows.weight[own])
    there = np.unique(point[own])
    return dict(zip(there.tolist(), total[there].argmax(axis=1).tolist(), strict=True))


def _about_audit(n: int, n_trusted: int) -> str:
    """From which rows the scores are."""
    others = n_trusted - n
    training = f"; {others} other trusted rows are in training sets only" if others else ""
    return f"scores are from {n} audit rows, which were drawn at random{training}"


def _notes(info: FitInfo, counts: Indices, asked: int, folds: int) -> list[str]:
    """What is unusual about the rows that are held out."""
    notes = []
    if folds < asked:
        notes.append(f"{folds} folds instead of {asked}, as a class has {folds} trusted rows")
    absent = ", ".join(map(str, info.classes[counts == 0]))
    if absent:
        notes.append(f"no trusted row is of class {absent}, so it is not in the ROC AUC")
    return notes
