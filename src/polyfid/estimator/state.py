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

    rows = [dict(zip(classes, row, strict=True)) for row in info.counts.tolist()]
    thetas = [dict(zip(f.theta_names, f.theta, strict=True)) for f in fits]
    header = {
        "levels": info.levels,
        "classes": classes,
        "n_features": info.n_features,
        "features": info.feature_names,
        "rows": dict(zip(info.levels, rows, strict=True)),
        "structures": by_class([{m.name: m.weight for m in x.members} for x in model.mixtures]),
        "hyper_parameters": by_class(thetas),
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


def _demand(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(f"it lacks {what}")


def _check_info(info: FitInfo, n_models: int) -> None:
    """Raise ValueError where numbers and names of rows contradict each other."""
    n_levels, n_classes, n_features = len(info.levels), len(info.classes), info.n_features
    _demand(1 <= n_levels <= MAX_LEVELS, "a possible number of levels")
    _demand(1 <= n_features <= MAX_FEATURES, "a possible number of features")
    _demand(info.classes.ndim == 1 and n_classes >= 2, "two classes")
    _demand(len(set(info.levels)) == n_levels, "a name of its own for each level")
    _demand(len(set(info.classes.tolist())) == n_classes, "a name of its own for each class")
    _demand(info.counts.shape == (n_levels, n_classes), "a count for each level and class")
    _demand(n_models == (1 if n_classes == 2 else n_classes), "a model for each class")
    names = info.feature_names
    if names is not None:
        right = names.shape == (n_features,) and all(isinstance(name, str) for name in names)
        _demand(right, "a name for each feature")


def _check_mixture(mixture: Mixture, n_features: int, n_levels: int) -> None:
    _demand(mixture.members, "members of a mixture")
    for member in mixture.members:
        _check_member(member, n_levels)
    # Any other inconsistency shows in the prediction of any row, such as one of zeros.
    x, top = np.zeros((1, n_features)), np.array([n_levels - 1], dtype=np.intp)
    with np.errstate(all="ignore"):
        moments = mixture.mean_and_variance(x, top)
    _demand(all(moment.shape == (1,) for moment in moments), "a prediction for each row")


def _check_member(member: Member, n_levels: int) -> None:
    fit, prior, points = member.fit, member.fit.prior, member.fit.posterior.points
    n, level = len(points.x), points.level
    # The number of kernels first: the prior makes a matrix of as many rows and columns.
    _demand(len(prior.kernels) <= MAX_LEVELS, "a possible number of kernels")
    _demand(prior.n_levels == n_levels, "a prior of all levels")
    _demand(points.x.ndim == 2 and n > 0, "training points")
    fit.posterior.check(fit.likelihood)
    _demand(level.shape == (n,) and (np.diff(level) >= 0).all(), "points in order of level")
    _demand(level[0] >= 0 and level[-1] < n_levels, "levels of all points")
    _demand(fit.scheme in SCHEMES, "an inference scheme")
    _demand(len(fit.theta_names) == len(fit.theta), "a name for each hyper-parameter")
    _demand(fit.optimum is None or fit.optimum.climbs, "the climb of an optimum")
