"""What a model file holds of a fitted classifier, and the check that it is consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from polyfid.estimator.constraints import read_options
from polyfid.estimator.fitted import FittedModel
from polyfid.estimator.inputs import FitInfo
from polyfid.inference import SCHEMES
from polyfid.learning.mixture import Member, Mixture

#: A file with more levels or features than this is damaged, or made to do harm.
MAX_LEVELS, MAX_FEATURES = 1000, 10_000_000

Estimator = TypeVar("Estimator")


@dataclass(frozen=True)
class ClassifierState:
    """The values from which a fitted classifier can be rebuilt: its parameters by name too."""

    parameters: dict[str, Any]
    info: FitInfo
    mixtures: tuple[Mixture, ...]


def state_of(estimator: Any, model: FittedModel) -> ClassifierState:
    """All that a file has to hold of an estimator with this model."""
    cls = type(estimator)
    if f"{cls.__module__}.{cls.__name__}" != "polyfid.estimator.classifier.MultiFidelityClassifier":
        raise TypeError(
            f"a model file holds a MultiFidelityClassifier, and {cls.__name__} may be "
            "more than that; use joblib.dump"
        )
    parameters = estimator.get_params(deep=False)
    if not _keeps_random_state(estimator):
        parameters["random_state"] = None
    if not isinstance(estimator.levels, list | tuple | None):
        parameters["levels"] = model.info.levels  # what it held in the end
    return ClassifierState(parameters, model.info, model.mixtures)


def about(estimator: Any, model: FittedModel) -> dict[str, Any]:
    """What the header of a file tells; figures are those of the structure of largest weight."""
    info, fits = model.info, model.fits
    classes = info.classes.tolist()

    def by_class(values: list[Any]) -> Any:
        return values[0] if model.is_binary else dict(zip(classes, values, strict=True))

    header = {
        "levels": info.levels,
        "classes": classes,
        "n_features": info.n_features,
        "features": info.feature_names,
        "rows": {
            level: dict(zip(classes, row, strict=True))
            for level, row in zip(info.levels, info.counts.tolist(), strict=True)
        },
        "structures": by_class([{m.name: m.weight for m in x.members} for x in model.mixtures]),
        "hyper_parameters": by_class(
            [dict(zip(f.theta_names, f.theta, strict=True)) for f in fits]
        ),
        "log_marginal_likelihood": by_class([f.log_evidence for f in fits]),
    }
    if not _keeps_random_state(estimator):
        kind = type(estimator.random_state).__name__
        header["note"] = f"random_state was a {kind}, and is None in the file"
    return header


def _keeps_random_state(estimator: Any) -> bool:
    return estimator.random_state is None or isinstance(estimator.random_state, int | np.integer)


def restore(cls: type[Estimator], state: Any) -> tuple[Estimator, FittedModel]:
    """An estimator with the parameters of a state, and its model, if they belong together."""
    if not isinstance(state, ClassifierState):
        raise TypeError(f"a classifier cannot be made of a {type(state).__name__}")
    _check_info(state.info, len(state.mixtures))
    for mixture in state.mixtures:
        _check_mixture(mixture, state.info.n_features, len(state.info.levels))
    estimator = cls(**state.parameters)
    options = read_options(estimator, state.info.levels, len(state.info.classes))
    return estimator, FittedModel(state.info, options, state.mixtures)


def _check_info(info: FitInfo, n_models: int) -> None:
    """Raise ValueError or TypeError where numbers and names of rows contradict each other."""
    n_levels, n_classes, n_features = len(info.levels), len(info.classes), info.n_features
    if not 1 <= n_levels <= MAX_LEVELS or not 1 <= n_features <= MAX_FEATURES:
        raise ValueError(f"it has {n_levels} levels and {n_features} features")
    if info.classes.ndim != 1 or n_classes < 2:
        raise ValueError("there are fewer than two classes")
    if len(set(info.levels)) < n_levels or len(set(info.classes.tolist())) < n_classes:
        raise ValueError("two levels or two classes have the same name")
    if info.counts.shape != (n_levels, n_classes):
        raise ValueError(f"counts have shape {info.counts.shape}, not {(n_levels, n_classes)}")
    if n_models != (1 if n_classes == 2 else n_classes):
        raise ValueError(f"{n_classes} classes cannot have {n_models} models")
    names = info.feature_names
    if names is not None and names.shape != (n_features,):
        raise ValueError(f"{n_features} features have names of shape {names.shape}")
    if names is not None and not all(isinstance(name, str) for name in names):
        raise TypeError("names of features must be strings")


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
