"""Baselines: what any scikit-learn classifier makes of the same labels.

The common part reads rows and levels and keeps the columns of the classes in order; a baseline
says which rows its models see.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from polyfid.arrays import Array
from polyfid.estimator.inputs import FidelityColumn, as_table, check_rows, point_ids
from polyfid.estimator.levels import Levels, encode_levels, order_levels

__all__ = ["Pooled", "Stacked", "TrustedOnly"]


@dataclass(frozen=True)
class _Rows:
    """What one model is trained on; ``X`` keeps the container it came in."""

    X: Any
    y: NDArray[Any]
    level: NDArray[np.intp]
    weight: Array | None = None
    point: Any = None  # (n,) equal where the features are, see `point_ids`

    def take(self, index: NDArray[Any]) -> _Rows:
        """The rows of an index or a mask."""
        weight = None if self.weight is None else self.weight[index]
        point = None if self.point is None else self.point[index]
        return _Rows(_take(self.X, index), self.y[index], self.level[index], weight, point)


def _take(X: Any, index: NDArray[Any]) -> Any:
    return _safe_indexing(X, np.flatnonzero(index) if index.dtype == bool else index)


def _has(method: str) -> Callable[[_Baseline], bool]:
    """For `available_if`: the wrapped estimator has the method, or fails as it does without."""

    def check(self: _Baseline) -> bool:
        getattr(self._template(), method)
        return True

    return check


class _Baseline(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Levels in, predictions at the top level out; a subclass says which rows a model sees."""

    # Where metadata routing is enabled, what is passed arrives without a request. Whether scores
    # are weighted too is for the user to say: set_score_request(sample_weight=...).
    __metadata_request__fit = {"fidelity": True, "sample_weight": True}  # noqa: RUF012

    def __init__(
        self,
        estimator: Any = None,
        *,
        levels: Iterable[Any] | None = None,
        fidelity_feature: int | str | None = None,
    ) -> None:
        self.estimator = estimator
        self.levels = levels
        self.fidelity_feature = fidelity_feature

    def _fit_rows(self, rows: _Rows) -> Any:
        """The fitted model of the top level."""
        raise NotImplementedError

    def _features(self, X: Any) -> Any:
        """What the model of the top level takes for new rows."""
        return X

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        fidelity: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to labels of several levels.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            Passed on as it is, rows selected, to the wrapped estimator.
        y : array-like of shape (n,)
            Classes. They need not all occur at every level.
        fidelity : array-like of shape (n,), optional
            The level of each row; without it all rows are at the top level.
        sample_weight : array-like of shape (n,), optional
            Passed on to the wrapped estimator; in a pipeline, to all steps that take it.

        Returns
        -------
        self
        """
        X = as_table(X)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "pass one class a row"
            )
        labels = column_or_1d(y, warn=True)
        n = X.shape[0]
        check_rows("y", labels, n)
        if n == 0:
            raise ValueError("X has no rows; at least one labelled row is needed")
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)

        self._fidelity_column: FidelityColumn | None = None
        if self.fidelity_feature is not None:
            if fidelity is not None:
                raise ValueError(
                    f"fidelity was passed although fidelity_feature={self.fidelity_feature!r} "
                    "says that a column of X holds it; use one of the two"
                )
            self._fidelity_column = FidelityColumn.find(X, self.fidelity_feature)
            X, fidelity = self._fidelity_column.split(X)
        self.levels_, level = self._read_levels(fidelity, n)
        validate_data(self, X, skip_check_array=True)
        self.classes_ = np.unique(labels)
        self.estimator_ = self._fit_rows(_Rows(X, labels, level, weight))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes (n,) at the top level."""
        X = self._read_new(X)
        return self.estimator_.predict(self._features(X))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, number of classes) at the top level, in the order of ``classes_``.

        A class that the model of the top level never saw has probability zero.
        """
        X = self._read_new(X)
        return _proba(self.estimator_, self._features(X), self.classes_)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Scores at the top level: (n,) for two classes, else (n, number of classes).

        A class that the model of the top level never saw scores the lowest finite number.
        """
        X = self._read_new(X)
        known = np.isin(self.classes_, self.estimator_.classes_)
        if known.sum() == 1:
            scores = np.zeros((X.shape[0], 1))
        else:
            scores = self.estimator_.decision_function(self._features(X))
            if known.all():
                return scores
            if scores.ndim == 1:
                scores = np.column_stack([-scores, scores])
        every = np.full((len(scores), len(known)), np.finfo(np.float64).min)
        every[:, known] = scores
        return np.sign(every[:, 1] - every[:, 0]) if len(known) == 2 else every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        wrapped = get_tags(self._template())
        tags.input_tags = wrapped.input_tags
        if wrapped.classifier_tags is not None:
            tags.classifier_tags = wrapped.classifier_tags
        return tags

    def _template(self) -> Any:
        """The estimator to clone: the one given or the default."""
        if self.estimator is not None:
            return self.estimator
        steps = StandardScaler(), LogisticRegression()
        if _routing():
            for step in steps:
                step.set_fit_request(sample_weight=True)
        return make_pipeline(*steps)

    def _train(self, rows: _Rows) -> Any:
        """The estimator fitted to the rows, or a constant if they hold one class only."""
        present = np.unique(rows.y if rows.weight is None else rows.y[rows.weight > 0])
        if len(present) == 1:
            constant = DummyClassifier(strategy="prior")
            return constant.fit(np.zeros((1, 1)), present)
        model = clone(self._template())
        weights = {} if rows.weight is None else _weight_arguments(model, rows.weight)
        return model.fit(rows.X, rows.y, **weights)

    def _read_levels(self, fidelity: Any, n: int) -> tuple[Levels, NDArray[np.intp]]:
        """Names of the levels and the level of each row, some of which are at the top."""
        if fidelity is None:
            names = (0,) if self.levels is None else order_levels(None, self.levels)
            return names, np.full(n, len(names) - 1, dtype=np.intp)
        names = order_levels(fidelity, self.levels)
        level = encode_levels(fidelity, names)
        check_rows("fidelity", level, n)
        if not (level == len(names) - 1).any():
            counts = {name: int((level == t).sum()) for t, name in enumerate(names)}
            raise ValueError(
                f"fidelity has no row at the top level {names[-1]!r} (rows a level, least trusted "
                f"first: {counts}); add labels of that level, or pass levels= with names that end "
                "in the most trusted level that has labels"
            )
        return names, level

    def _read_new(self, X: Any) -> Any:
        """New rows without the column of the fidelity, which may be there or not."""
        check_is_fitted(self)
        X = as_table(X)
        if self._fidelity_column is not None:
            X, _ = self._fidelity_column.split_if_there(X, self.n_features_in_)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X


class TrustedOnly(_Baseline):
    """A classifier of the top level's labels only: what the cheap labels must improve on.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        By default logistic regression on standardized features.
    levels : sequence, optional
        Names of the levels, least trusted first; needed when they do not sort that way and
        ``fidelity`` does not carry their order as that of `polyfid.stack_levels` does.
    fidelity_feature : int or str, optional
        The column of X that holds the fidelity, instead of the argument of `fit`. It is no
        feature, and new rows may come with or without it.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model of the top level.
    classes_ : array
        All classes in y, whatever their level.
    levels_ : tuple
        Names of the levels, least trusted first.
    n_features_in_ : int
        Number of features, the fidelity not among them.
    feature_names_in_ : array
        Their names, if X is a data frame.

    Notes
    -----
    With ``sklearn.set_config(enable_metadata_routing=True)`` the fidelity reaches `fit` through
    pipelines and searches without further requests:
    ``cross_validate(make_pipeline(StandardScaler(), TrustedOnly()), X, y,
    params={"fidelity": fidelity})``. Without it, ``cross_validate(TrustedOnly(), X, y,
    params={"fidelity": fidelity})`` works too, and a step of a pipeline is named as in
    ``params={"trustedonly__fidelity": fidelity}``. Either way it is worth scoring trusted rows
    only: see `polyfid.TrustedKFold`. Weights are routed to `fit` in the same way;
    with routing, scikit-learn asks whether the scores shall be weighted:
    ``TrustedOnly().set_score_request(sample_weight=True)``.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.estimator.baselines import TrustedOnly
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]])
    >>> y = [1, 1, 0, 0, 0, 1]
    >>> fidelity = ["crowd"] * 3 + ["expert"] * 3
    >>> model = TrustedOnly().fit(X, y, fidelity=fidelity)
    >>> model.predict([[-1.0], [3.0]])
    array([0, 1])
    """

    def _fit_rows(self, rows: _Rows) -> Any:
        return self._train(rows.take(rows.level == rows.level.max()))


class Pooled(_Baseline):
    """A classifier of all labels alike, as if every level deserved the same trust.

    Parameters
    ----------
    estimator, levels, fidelity_feature
        As in `TrustedOnly`; so are the attributes, and how the fidelity is passed.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.estimator.baselines import Pooled
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [2.0]])
    >>> y = ["no", "no", "yes", "no", "yes"]
    >>> model = Pooled().fit(X, y, fidelity=[0, 0, 0, 1, 1])
    >>> model.predict([[-1.0], [3.0]]).tolist()
    ['no', 'yes']
    """

    def _fit_rows(self, rows: _Rows) -> Any:
        return self._train(rows)


class Stacked(_Baseline):
    """A chain of classifiers: the features of each are X and what the one below it predicts.

    The model of a level is trained on the rows of that level. Its probabilities (of the second
    class if it knows two, else of all) are further features of the next level's model, named
    ``proba_<level>_<class>`` where X is a data frame.

    Parameters
    ----------
    estimator, levels, fidelity_feature
        As in `TrustedOnly`; so is how the fidelity is passed. The estimator needs
        `predict_proba`; it is cloned for each level.
    cv : int or None, default=5
        A point that was labelled at two levels would show the upper model what the lower one has
        learnt by heart. Such rows therefore get their features from a model trained on other
        points, one of ``cv`` folds. None: always from the model of all the level's rows.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model of the top level.
    lower_estimators_ : list
        The fitted models below it, least trusted first: of levels that have rows.
    classes_, levels_, n_features_in_, feature_names_in_
        As in `TrustedOnly`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.estimator.baselines import Stacked
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> cheap, trusted = X[:, 0] > 0.6, X[::4, 0] > 0.5
    >>> X, y = np.concatenate([X, X[::4]]), np.concatenate([cheap, trusted])
    >>> model = Stacked().fit(X, y, fidelity=[0] * 20 + [1] * 5)
    >>> model.predict([[0.1], [0.9]])
    array([False,  True])
    >>> len(model.lower_estimators_), model.estimator_.n_features_in_
    (1, 2)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        levels: Iterable[Any] | None = None,
        fidelity_feature: int | str | None = None,
        cv: int | None = 5,
    ) -> None:
        super().__init__(estimator, levels=levels, fidelity_feature=fidelity_feature)
        self.cv = cv

    def _fit_rows(self, rows: _Rows) -> Any:
        self.lower_estimators_ = []
        self._lower_names = []
        lower = np.unique(rows.level)[:-1]
        if len(lower):
            self._check_chain()
            rows = replace(rows, point=point_ids(rows.X))
        stage = rows  # those of this level and above, with the predictions of the level below
        for t in lower:
            here = rows.level == t
            below, above, rows = stage.take(here), stage.take(~here), rows.take(~here)
            model = self._train(below)
            proba = self._predict_above(model, below, above)
            self.lower_estimators_.append(model)
            self._lower_names.append(self.levels_[t])
            stage = replace(rows, X=_append(rows.X, proba, self.levels_[t], model.classes_))
        return self._train(stage)

    def _check_chain(self) -> None:
        cv = self.cv
        if cv is not None and (not isinstance(cv, int | np.integer) or cv < 2):
            raise ValueError(
                "cv must be a number of folds from 2, or None for no folds at all; got "
                f"{cv!r}. Take 5 if in doubt"
            )
        if not hasattr(self._template(), "predict_proba"):
            raise ValueError(
                "estimator must have predict_proba, which Stacked turns into features; "
                f"{self.estimator!r} has none. Wrap it in scikit-learn's CalibratedClassifierCV"
            )

    def _predict_above(self, model: Any, below: _Rows, above: _Rows) -> Array:
        """Probabilities for the rows above, from other models where they repeat points below."""
        proba = _proba(model, above.X, model.classes_)
        n_points = len(np.unique(below.point))
        if self.cv is None or n_points < 2 or not np.isin(above.point, below.point).any():
            return proba
        # Whole points make up a fold: a point may have several labels at one level.
        folds = GroupKFold(min(self.cv, n_points)).split(below.y, groups=below.point)
        for train, held_out in folds:
            repeats = np.isin(above.point, below.take(held_out).point)
            if repeats.any():
                other = self._train(below.take(train))
                proba[repeats] = _proba(other, _take(above.X, repeats), model.classes_)
        return proba

    def _features(self, X: Any) -> Any:
        features = X
        for model, name in zip(self.lower_estimators_, self._lower_names, strict=True):
            proba = _proba(model, features, model.classes_)
            features = _append(X, proba, name, model.classes_)
        return features


def _routing() -> bool:
    return bool(get_config()["enable_metadata_routing"])


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def _weight_arguments(model: Any, weight: Array) -> dict[str, Array]:
    """How `fit` takes the weights of the rows."""
    taker = model
    if isinstance(model, Pipeline) and not _routing():
        # To all steps, so that a weight of two counts as two rows for the scaler too.
        steps = [name for name, step in model.steps if has_fit_parameter(step, "sample_weight")]
        last, taker = model.steps[-1]
        if last in steps:
            return {f"{name}__sample_weight": weight for name in steps}
    else:
        # Pipelines and searches take any argument and pass it on.
        kinds = {p.kind for p in inspect.signature(model.fit).parameters.values()}
        if has_fit_parameter(model, "sample_weight") or inspect.Parameter.VAR_KEYWORD in kinds:
            return {"sample_weight": weight}
    raise ValueError(
        f"sample_weight was passed, and the fit of {type(taker).__name__} does not take it; leave "
        "it out, or use an estimator that does"
    )


def _proba(model: Any, X: Any, classes: NDArray[Any]) -> Array:
    """Probabilities in the order of ``classes``, zero for those the model does not know."""
    proba = np.zeros((X.shape[0], len(classes)))
    proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return proba


def _append(X: Any, proba: Array, level: Any, classes: NDArray[Any]) -> Any:
    """X with columns of probabilities, in the container of X."""
    if len(classes) == 2:  # the first column says what the second does
        proba, classes = proba[:, 1:], classes[1:]
    if _is_sparse(X):
        blocks: list[Any] = [X, proba]
        return sparse.hstack(blocks, format="csr")
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return np.hstack([np.asarray(X), proba])
    named = {f"proba_{level}_{c}": p for c, p in zip(classes.tolist(), proba.T, strict=True)}
    return X.assign(**named) if hasattr(X, "assign") else X.with_columns(**named)
