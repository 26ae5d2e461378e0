"""Baselines: any scikit-learn classifier on the same labels of several levels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
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
from polyfid.estimator.constraints import read_numeric, read_whole
from polyfid.estimator.levels import Levels
from polyfid.estimator.unknown_trust import unknown_trust
from polyfid.rows.survey import plain

__all__ = ["Pooled", "Stacked", "TrustedOnly"]

#: Numbers of a level from which trees take the place of a Gaussian process as a regressor.
MANY_NUMBERS = 1000


class _Labelled(NamedTuple):
    """Rows of a baseline: features, classes, numbers (NaN where there is a class), levels."""

    X: Any
    y: NDArray[Any]
    value: Array
    levels: Levels
    level: Indices
    weight: Array | None

    @property
    def is_number(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.value)


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
        numeric_levels: Iterable[Any] | None = None,
    ) -> None:
        self.estimator, self.levels, self.fidelity_feature = estimator, levels, fidelity_feature
        self.numeric_levels = numeric_levels

    def _fit_levels(self, given: _Labelled) -> dict[str, Any]:
        """Fitted attributes by name: the model of the top level, and what else it needs."""
        return {"estimator_": self._train(given, np.flatnonzero(~given.is_number))}

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
            Classes. They need not all occur at every level. At ``numeric_levels`` numbers.
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
        weight = None if sample_weight is None else inputs.read_weights(sample_weight, n)
        levels, level = inputs.read_levels(self.levels, fidelity, n)
        if self.numeric_levels is None:
            labels, value = inputs.read_labels(y, n), np.full(n, np.nan)
        else:
            numeric = read_numeric(self.numeric_levels, levels)
            labels, value = inputs.read_targets(y, level, levels, numeric)
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
            "classes_": np.unique(plain(labels[np.isnan(value)])),
            **self._fit_levels(_Labelled(X, labels, value, levels, level, weight)),
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

    def _train(self, given: _Labelled, rows: Indices, X: Any = None) -> Any:
        """The estimator fitted to some of the rows, or a constant if they have one class only."""
        X = given.X if X is None else X
        y, weight = plain(given.y[rows]), None if given.weight is None else given.weight[rows]
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
    own = clone(model).set_params(levels=None, rho=1.0, label_noise=None)
    own.set_params(numeric_levels=None, noise=None, warp=False, outliers=False)
    if isinstance(own.kernel, Sequence | np.ndarray) and not isinstance(own.kernel, str):
        own.set_params(kernel=own.kernel[0])
    return own


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
    numeric_levels : sequence, optional
        Levels whose y holds numbers and not classes.

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

    def _fit_levels(self, given: _Labelled) -> dict[str, Any]:
        level = given.level
        return {"estimator_": self._train(given, np.flatnonzero(level == level.max()))}


class Pooled(_Baseline):
    """A classifier of all labels, as if every level deserved the same trust; numbers are left out.

    Parameters
    ----------
    estimator, levels, fidelity_feature, numeric_levels
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
    all) are features of the next level's model, ``proba_<level>_<class>`` in a data frame. Of a
    numeric level it is what a regressor predicts, ``value_<level>``.

    Parameters
    ----------
    estimator, levels, fidelity_feature, numeric_levels
        As in `TrustedOnly`; so is how the fidelity is passed. The estimator needs
        `predict_proba`; it is cloned for each level.
    cv : int or None, default=5
        Folds for points that have labels at two levels: the lower level's prediction of such a
        point comes from a model trained on other points. None: from that of all rows.
    regressor : scikit-learn regressor, optional
        For numeric levels; cloned for each. By default a Gaussian process with a length-scale per
        feature, and gradient boosted trees where a level has more than 1000 rows.

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
        numeric_levels: Iterable[Any] | None = None,
        cv: int | None = 5,
        regressor: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            levels=levels,
            fidelity_feature=fidelity_feature,
            numeric_levels=numeric_levels,
        )
        self.cv, self.regressor = cv, regressor

    def _fit_levels(self, given: _Labelled) -> dict[str, Any]:
        models, X, level = [], given.X, given.level
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
            is_numeric = bool(given.is_number[here].all())
            train_on = self._train_regressor if is_numeric else self._train
            model = train_on(given, here, features)
            names = _names(model, given.levels[t])
            added = np.zeros((len(level), len(names)))
            added[above] = _said(model, _safe_indexing(features, above), model)
            for train, repeats in self._folds(points, here, above):
                other = train_on(given, train, features)
                added[repeats] = _said(other, _safe_indexing(features, repeats), model)
            features = _append(X, added, names)
            models.append(model)
        return {
            "lower_estimators_": models,
            "_lower_names": [given.levels[t] for t in lower],
            "estimator_": self._train(given, np.flatnonzero(level == top), features),
        }

    def _train_regressor(self, given: _Labelled, rows: Indices, X: Any) -> Any:
        """The regressor fitted to the numbers of some rows."""
        own, weights = _safe_indexing(X, rows), {}
        if self.regressor is None:
            own = own.toarray() if hasattr(own, "tocsr") else own
            model = _default_regressor(*own.shape)
        else:
            model = clone(self.regressor)
        if given.weight is not None and has_fit_parameter(model, "sample_weight"):
            weights = {"sample_weight": given.weight[rows]}
        with warnings.catch_warnings():
            if self.regressor is None:  # a length-scale at its bound is of a column without effect
                warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(own, given.value[rows], **weights)

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
            features = _append(X, _said(model, features, model), _names(model, name))
        return features


def _default_regressor(n_rows: int, n_features: int) -> Any:
    """A regressor for so many rows and features."""
    if n_rows > MANY_NUMBERS:
        return HistGradientBoostingRegressor(random_state=0)
    lengths = np.full(n_features, np.sqrt(n_features))
    kernel = ConstantKernel() * RBF(lengths, (0.05, 1e3)) + WhiteKernel(0.01, (1e-6, 10.0))
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )
    return make_pipeline(StandardScaler(), model)


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


def _names(model: Any, level: Any) -> list[str]:
    """Names of the features that come from a level's model."""
    if not hasattr(model, "classes_"):
        return [f"value_{level}"]
    classes = model.classes_.tolist()
    # Of two classes the first column is one minus the second.
    return [f"proba_{level}_{c}" for c in (classes[1:] if len(classes) == 2 else classes)]


def _said(model: Any, X: Any, first: Any) -> Array:
    """What a level's model says of rows, in the columns of the ``first`` model of that level."""
    if not hasattr(first, "classes_"):
        return np.asarray(model.predict(X), dtype=float).reshape(-1, 1)
    proba = _proba(model, X, first.classes_)
    return proba[:, 1:] if proba.shape[1] == 2 else proba


def _append(X: Any, added: Array, names: list[str]) -> Any:
    """X with further columns, in the container of X."""
    if hasattr(X, "tocsr"):
        return sparse.hstack([X, sparse.csr_array(added)], format="csr")
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return np.hstack([np.asarray(X), added])
    named = dict(zip(names, added.T, strict=True))
    return X.assign(**named) if hasattr(X, "assign") else X.with_columns(**named)
