"""What a model file holds of a fitted classifier, and the check that it is consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyfid.estimator.constraints import read_options
from polyfid.estimator.fitted import FittedModel
from polyfid.estimator.inputs import FidelityColumn, FitInfo
from polyfid.inference import SCHEMES
from polyfid.learning.mixture import Member, Mixture

#: A file with more levels or features than this is damaged, or made to do harm.
MAX_LEVELS, MAX_FEATURES = 1000, 10_000_000

Estimator = TypeVar("Estimator")


@dataclass(frozen=True)
class ClassifierState:
    """The values of a fitted classifier from which it can be rebuilt.

    Attributes
    ----------
    parameters : dict
        Of the estimator, by name.
    classes, levels, annotators
        As in the fitted attributes.
    mixtures : list of Mixture
        One, or one per class if there are more than two.
    column : FidelityColumn or None
        The column of X that holds the fidelity.
    n_features : int
    feature_names : array or None
    counts : array of shape (n_levels, n_classes)
        Number of rows per level and class.
    notes : list of str
        What is unusual about the rows.
    plan : str
        Exact or sparse, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> state = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)._state()
    >>> state.check()
    >>> state.n_features, state.counts.tolist()
    (1, [[6, 6]])
    """

    parameters: dict[str, Any]
    classes: NDArray[Any]
    levels: tuple[Any, ...]
    annotators: NDArray[Any] | None
    mixtures: list[Mixture]
    column: FidelityColumn | None
    n_features: int
    feature_names: NDArray[Any] | None
    counts: NDArray[np.intp]
    notes: list[str]
    plan: str = ""

    def about(self) -> dict[str, Any]:
        """What the header of a file tells; figures are those of the structure of largest weight."""
        fits = [mixture.best.fit for mixture in self.mixtures]
        classes = self.classes.tolist()

        def by_class(values: list[Any]) -> Any:
            return values[0] if len(values) == 1 else dict(zip(classes, values, strict=True))

        return {
            "levels": self.levels,
            "classes": classes,
            "n_features": self.n_features,
            "features": self.feature_names,
            "rows": {
                level: dict(zip(classes, row, strict=True))
                for level, row in zip(self.levels, self.counts.tolist(), strict=True)
            },
            "structures": by_class([{m.name: m.weight for m in x.members} for x in self.mixtures]),
            "hyper_parameters": by_class(
                [dict(zip(f.theta_names, f.theta, strict=True)) for f in fits]
            ),
            "log_marginal_likelihood": by_class([f.log_evidence for f in fits]),
        }

    def check(self) -> None:
        """Raise an error if the values do not fit each other.

        Raises
        ------
        ValueError
            Or an ArithmeticError, TypeError or LookupError if the prediction of one row fails.
        """
        n_levels, n_classes = len(self.levels), len(self.classes)
        if not 1 <= n_levels <= MAX_LEVELS or not 1 <= self.n_features <= MAX_FEATURES:
            raise ValueError(f"it has {n_levels} levels and {self.n_features} features")
        if self.classes.ndim != 1 or n_classes < 2:
            raise ValueError("there are fewer than two classes")
        if len(set(self.levels)) < n_levels or len(set(self.classes.tolist())) < n_classes:
            raise ValueError("two levels or two classes have the same name")
        if self.counts.shape != (n_levels, n_classes):
            raise ValueError(
                f"counts of rows have shape {self.counts.shape}, not {(n_levels, n_classes)}"
            )
        if len(self.mixtures) != (1 if n_classes == 2 else n_classes):
            raise ValueError(f"{n_classes} classes cannot have {len(self.mixtures)} models")
        names = self.feature_names
        if names is not None and names.shape != (self.n_features,):
            raise ValueError(f"{self.n_features} features have names of shape {names.shape}")
        if names is not None and not all(isinstance(name, str) for name in names):
            raise TypeError("names of features must be strings")
        for mixture in self.mixtures:
            _check_mixture(mixture, self.n_features, n_levels)


def _check_mixture(mixture: Mixture, n_features: int, n_levels: int) -> None:
    if not mixture.members:
        raise ValueError("a mixture has no members")
    for member in mixture.members:
        _check_member(member, n_levels)
    # Any other inconsistency shows in the prediction of any row, such as one of zeros.
    x, top = np.zeros((1, n_features)), np.array([n_levels - 1], dtype=np.intp)
    with np.errstate(all="ignore"):
        moments = mixture.mean_and_variance(x, top)
    if any(moment.shape != (1,) for moment in moments):
        raise ValueError("the prediction of one row has another shape")


def _check_member(member: Member, n_levels: int) -> None:
    fit, posterior = member.fit, member.fit.posterior
    points, prior = posterior.points, fit.prior
    n = len(points.x)
    # The number of kernels first: the prior makes a matrix of as many rows and columns.
    if len(prior.kernels) > MAX_LEVELS or prior.n_levels != n_levels:
        raise ValueError(f"a prior does not have {n_levels} levels")
    if points.x.ndim != 2 or n == 0:
        raise ValueError("a posterior has no training points")
    posterior.check(fit.likelihood)
    level = points.level
    if level.shape != (n,):
        raise ValueError(f"levels have shape {level.shape}, and there are {n} points")
    if level[0] < 0 or level[-1] >= n_levels or (np.diff(level) < 0).any():
        raise ValueError("the levels of the points are not in order")
    if fit.scheme not in SCHEMES:
        raise ValueError(f"{fit.scheme!r} is not an inference scheme")
    if len(fit.theta_names) != len(fit.theta):
        raise ValueError(f"{len(fit.theta)} hyper-parameters have {len(fit.theta_names)} names")
    if fit.optimum is not None and not fit.optimum.climbs:
        raise ValueError("an optimum has no climb")


def state_of(estimator: Any, model: FittedModel) -> ClassifierState:
    """All that a file has to hold of an estimator with this model."""
    cls = type(estimator)
    if (cls.__module__, cls.__name__) != (
        "polyfid.estimator.classifier",
        "MultiFidelityClassifier",
    ):
        raise TypeError(
            f"a model file holds a MultiFidelityClassifier, and {cls.__name__} may be "
            "more than that; use joblib.dump"
        )
    info = model.info
    parameters = estimator.get_params(deep=False)
    if not _keeps_random_state(estimator):
        parameters["random_state"] = None
    if not isinstance(estimator.levels, list | tuple | None):
        parameters["levels"] = info.levels  # what it held in the end
    return ClassifierState(
        parameters,
        info.classes,
        info.levels,
        info.annotators,
        list(model.mixtures),
        info.column,
        info.n_features,
        info.feature_names,
        info.counts,
        list(info.notes),
        info.plan,
    )


def about(estimator: Any, model: FittedModel) -> dict[str, Any]:
    """What the header of a file says about the model."""
    header = state_of(estimator, model).about()
    if not _keeps_random_state(estimator):
        kind = type(estimator.random_state).__name__
        header["note"] = f"random_state was a {kind}, and is None in the file"
    return header


def restore(cls: type[Estimator], state: Any) -> tuple[Estimator, FittedModel]:
    """An estimator with the parameters of a state, and its model, if its parts belong together."""
    if not isinstance(state, ClassifierState):
        raise TypeError(f"a classifier cannot be made of a {type(state).__name__}")
    state.check()
    estimator = cls(**state.parameters)
    info = FitInfo(
        state.classes,
        state.levels,
        state.annotators,
        state.counts,
        state.n_features,
        state.feature_names,
        state.column,
        state.plan,
        tuple(state.notes),
    )
    options = read_options(estimator, state.levels, len(state.classes))
    return estimator, FittedModel(info, options, tuple(state.mixtures))


def _keeps_random_state(estimator: Any) -> bool:
    return estimator.random_state is None or isinstance(estimator.random_state, int | np.integer)
