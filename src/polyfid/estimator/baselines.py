"""Baselines: any scikit-learn classifier on the same labels of several levels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from polyfid.arrays import Array, Indices
from polyfid.atomic import set_attributes
from polyfid.estimator import inputs
from polyfid.estimator.constraints import read_whole
from polyfid.estimator.levels import Levels
from polyfid.estimator.unknown_trust import unknown_trust

__all__ = ["Pooled", "Stacked", "TrustedOnly"]


class _Baseline(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Labels of several levels in, predictions at the top level out."""

    # With metadata routing, fit takes these without a request.
    __metadata_request__fit = {"fidelity": True, "sample_weight": True}  # noqa: RUF012

    def __init__(
        self,
        estimator: Any = None,
        *,
        levels: Iterable[Any] | None = None,
        fidelity_feature: int | str | None = None,
    ) -> None:
        self.estimator, self.levels, self.fidelity_feature = estimator, levels, fidelity_feature

    def _fit_levels(
        self, X: Any, y: NDArray[Any], levels: Levels, level: Indices, weight: Array | None
    ) -> dict[str, Any]:
        """Fitted attributes by name: the model of the top level, and what else it needs."""
        return {"estimator_": self._train(X, y, weight, np.arange(len(y)))}

    def _features(self, X: Any) -> Any:
        return X

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        fidelity: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to labels of several levels.

        A fit that raises or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            The wrapped estimator gets its rows in the same container.
        y : array-like of shape (n,)
            Classes. They need not all occur at every level.
        fidelity : array-like of shape (n,), optional
            The level of each row; without it all rows are at the top level.
        sample_weight : array-like of shape (n,), optional
            Passed on to the wrapped estimator; in a pipeline, to all steps that take it.
        """
        X, fidelity, column = inputs.split_fidelity(
            inputs.as_table(X), fidelity, self.fidelity_feature
        )
        inputs.refuse_no_rows(X)
        n = X.shape[0]
        labels = inputs.read_labels(y, n)
        weight = None if sample_weight is None else inputs.read_weights(sample_weight, n)
        levels, level = inputs.read_levels(self.levels, fidelity, n)
        unknown = unknown_trust(fidelity, n, levels)
        if unknown is not None:
            warnings.warn(unknown, UserWarning, stacklevel=2)
        counts = np.bincount(level, minlength=len(levels)).tolist()
        if not counts[-1]:
            raise ValueError(
                f"fidelity has no row at the top level {levels[-1]!r}; rows per level: "
                f"{dict(zip(levels, counts, strict=True))}. Add labels, or pass levels= without it"
            )
        columns = inputs.Columns()
        validate_data(columns, X, skip_check_array=True)
        attributes = {
            **vars(columns),
            "_fidelity_column": column,
            "levels_": levels,
            "classes_": np.unique(labels),
            **self._fit_levels(X, labels, levels, level, weight),
        }
        set_attributes(self, attributes, drop=["feature_names_in_"])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes (n,) at the top level."""
        X = self._top_features(X)
        return self.estimator_.predict(X)

    @available_if(lambda self: hasattr(self._template(), "predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, n_classes) at the top level: zero for a class that its model lacks."""
        X = self._top_features(X)
        return _proba(self.estimator_, X, self.classes_)

    @available_if(lambda self: hasattr(self._template(), "decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Scores at the top level: (n,) for two classes, else (n, n_classes).

        A class that the top level's model lacks gets the lowest finite number.
        """
        X = self._top_features(X)
        present = np.isin(self.classes_, self.estimator_.classes_)
        if present.sum() == 1:
            scores = np.zeros((X.shape[0], 1))
        else:
            scores = self.estimator_.decision_function(X)
            if present.all():
                return scores
            if scores.ndim == 1:
                scores = np.column_stack([-scores, scores])
        every = np.full((len(scores), len(present)), np.finfo(np.float64).min)
        every[:, present] = scores
        return np.sign(every[:, 1] - every[:, 0]) if len(present) == 2 else every

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
        scaler, model = StandardScaler(), LogisticRegression()
        if _routing_enabled():
            scaler.set_fit_request(sample_weight=True)
            model.set_fit_request(sample_weight=True)
        return make_pipeline(scaler, model)

    def _train(self, X: Any, y: NDArray[Any], weight: Array | None, rows: Indices) -> Any:
        """The estimator fitted to some of the rows, or a constant if they have one class only."""
        y, weight = y[rows], None if weight is None else weight[rows]
        present = np.unique(y if weight is None else y[weight > 0])
        if len(present) == 1:
            return DummyClassifier(strategy="prior").fit(np.zeros((1, 1)), present)
        model = clone(self._template())
        weights = {} if weight is None else _weight_arguments(model, weight)
        return model.fit(_safe_indexing(X, rows), y, **weights)

    def _top_features(self, X: Any) -> Any:
        """The input of the top level's model for new rows, with or without their fidelity."""
        check_is_fitted(self)
        X = inputs.as_table(X)
        if self._fidelity_column is not None:
            X, _ = self._fidelity_column.split_if_there(X, self.n_features_in_)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._features(X)


def for_one_level(model: Any) -> Any:
    """A copy of a `MultiFidelityClassifier`, unfitted, without what has a meaning per level only.

    Of a list of kernels it gets the first.
    """
    plain = clone(model).set_params(levels=None, rho=1.0, label_noise=None)
    if isinstance(plain.kernel, Sequence | np.ndarray) and not isinstance(plain.kernel, str):
        plain.set_params(kernel=plain.kernel[0])
    return plain


class TrustedOnly(_Baseline):
    """A classifier of the top level's labels only: the cheap labels must improve on it.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        By default logistic regression on standardized features.
    levels : sequence, optional
        Names of the levels, least trusted first; needed where they are text, unless ``fidelity``
        carries their order as that of `polyfid.stack_levels` does. Numbers are sorted.
    fidelity_feature : int or str, optional
        The column of X that holds the fidelity; new rows may come with or without it.

    Attributes
    ----------
    estimator_ : classifier
        The fitted model of the top level.
    classes_, levels_
        All classes in y, whatever their level; names of the levels, least trusted first.
    n_features_in_, feature_names_in_
        Number and names of the features, without the fidelity.

    Notes
    -----
    The fidelity reaches `fit` in ``cross_validate(TrustedOnly(), X, y, params={"fidelity": f})``,
    through pipelines as ``params={"trustedonly__fidelity": f}`` or, with scikit-learn's metadata
    routing, without further requests. Score trusted rows only, with `polyfid.TrustedKFold`. With
    routing, ``set_score_request(sample_weight=True)`` lets weights count in scores too.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import TrustedOnly
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]])
    >>> fidelity = ["crowd"] * 3 + ["expert"] * 3
    >>> model = TrustedOnly(levels=["crowd", "expert"])
    >>> model.fit(X, [1, 1, 0, 0, 0, 1], fidelity=fidelity).predict([[-1.0], [3.0]])
    array([0, 1])
    """

    def _fit_levels(
        self, X: Any, y: NDArray[Any], levels: Levels, level: Indices, weight: Array | None
    ) -> dict[str, Any]:
        return {"estimator_": self._train(X, y, weight, np.flatnonzero(level == level.max()))}


class Pooled(_Baseline):
    """A classifier of all labels, as if every level deserved the same trust.

    Parameters
    ----------
    estimator, levels, fidelity_feature
        As in `TrustedOnly`; so are the attributes, and how the fidelity is passed.

    Examples
    --------
    >>> from polyfid import Pooled
    >>> X = [[0.0], [1.0], [2.0], [0.0], [2.0]]
    >>> Pooled().fit(X, [0, 0, 1, 0, 1], fidelity=[0, 0, 0, 1, 1]).predict([[-1.0], [3.0]])
    array([0, 1])
    """


class Stacked(_Baseline):
    """A chain of classifiers, one per level: the input of each is X and the prediction of the last.

    The probabilities that the model of a level gives (of the second class if it has two, else of
    all) are features of the next level's model, ``proba_<level>_<class>`` in a data frame.

    Parameters
    ----------
    estimator, levels, fidelity_feature
        As in `TrustedOnly`; so is how the fidelity is passed. The estimator needs
        `predict_proba`; it is cloned for each level.
    cv : int or None, default=5
        Folds for points that have labels at two levels: the lower level's prediction of such a
        point comes from a model trained on other points. None: from that of all rows.

    Attributes
    ----------
    lower_estimators_ : list
        The fitted models below the top level, least trusted first, of the levels that have rows.
        The other attributes are those of `TrustedOnly`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import Stacked
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> cheap, trusted = X[:, 0] > 0.6, X[::4, 0] > 0.5
    >>> X, y = np.concatenate([X, X[::4]]), np.concatenate([cheap, trusted])
    >>> model = Stacked().fit(X, y, fidelity=[0] * 20 + [1] * 5)
    >>> model.predict([[0.1], [0.9]]), model.estimator_.n_features_in_
    (array([False,  True]), 2)
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

    def _fit_levels(
        self, X: Any, y: NDArray[Any], levels: Levels, level: Indices, weight: Array | None
    ) -> dict[str, Any]:
        models = []
        *lower, top = np.unique(level)
        if lower:
            if self.cv is not None:
                read_whole("cv", self.cv, 2, " (folds), or None")
            if not hasattr(self._template(), "predict_proba"):
                raise ValueError(
                    "estimator must have predict_proba, which Stacked turns into features; "
                    f"{self.estimator!r} has none. Wrap it in scikit-learn's CalibratedClassifierCV"
                )
            points = inputs.point_ids(X)
        features = X
        for t in lower:
            here, above = np.flatnonzero(level == t), np.flatnonzero(level > t)
            model = self._train(features, y, weight, here)
            proba = np.zeros((len(y), len(model.classes_)))
            proba[above] = _proba(model, _safe_indexing(features, above), model.classes_)
            for train, repeats in self._folds(points, here, above):
                other = self._train(features, y, weight, train)
                proba[repeats] = _proba(other, _safe_indexing(features, repeats), model.classes_)
            features = _append(X, proba, levels[t], model.classes_)
            models.append(model)
        return {
            "lower_estimators_": models,
            "_lower_names": [levels[t] for t in lower],
            "estimator_": self._train(features, y, weight, np.flatnonzero(level == top)),
        }

    def _folds(
        self, points: Indices, here: Indices, above: Indices
    ) -> Iterable[tuple[Indices, Indices]]:
        """Rows of a level to train on, and rows above it that repeat points left out of those."""
        groups = points[here]  # a fold has whole points: one may have several labels at a level
        n_folds = min(self.cv or 1, len(np.unique(groups)))
        if n_folds < 2:
            return
        for train, held_out in GroupKFold(n_folds).split(here, groups=groups):
            repeats = above[np.isin(points[above], groups[held_out])]
            if len(repeats):
                yield here[train], repeats

    def _features(self, X: Any) -> Any:
        features = X
        for model, name in zip(self.lower_estimators_, self._lower_names, strict=True):
            proba = _proba(model, features, model.classes_)
            features = _append(X, proba, name, model.classes_)
        return features


def _weight_arguments(model: Any, weight: Array) -> dict[str, Array]:
    """The arguments of `fit` that pass the weights of the rows."""
    if isinstance(model, Pipeline) and not _routing_enabled():
        # To all steps, so that a weight of two counts as two rows for the scaler too.
        steps = [name for name, step in model.steps if has_fit_parameter(step, "sample_weight")]
        name, model = model.steps[-1]
        if name in steps:
            return {f"{name}__sample_weight": weight for name in steps}
    elif any(has_fit_parameter(model, name) for name in ("sample_weight", "params")):
        return {"sample_weight": weight}  # params: those that pass arguments on
    raise ValueError(
        f"sample_weight was passed, and the fit of {type(model).__name__} does not take it; leave "
        "it out, or use an estimator that does"
    )


def _proba(model: Any, X: Any, classes: NDArray[Any]) -> Array:
    """Probabilities in the order of ``classes``, zero for those that the model does not have."""
    proba = np.zeros((X.shape[0], len(classes)))
    proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return proba


def _append(X: Any, proba: Array, level: Any, classes: NDArray[Any]) -> Any:
    """X with columns of probabilities, in the container of X."""
    if len(classes) == 2:  # the first column is one minus the second
        proba, classes = proba[:, 1:], classes[1:]
    if hasattr(X, "tocsr"):
        return sparse.hstack([X, sparse.csr_array(proba)], format="csr")
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return np.hstack([np.asarray(X), proba])
    named = {f"proba_{level}_{c}": p for c, p in zip(classes.tolist(), proba.T, strict=True)}
    return X.assign(**named) if hasattr(X, "assign") else X.with_columns(**named)
