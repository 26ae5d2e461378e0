"""The result of a fit as one value: what is printed of it, and what a model file holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polyfid.arrays import Array
from polyfid.estimator.constraints import read_options
from polyfid.estimator.inputs import FitInfo
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import suitable_threads
from polyfid.kernels import Kernel
from polyfid.learning.fit import GIVEN
from polyfid.learning.links import Link, link_levels
from polyfid.learning.mixture import BinaryFit, Member, Mixture
from polyfid.learning.plan import Options
from polyfid.learning.structures import ABSENT
from polyfid.model.likelihoods import NoisyLogit
from polyfid.model.numbers import Numbers
from polyfid.model.prior import Autoregressive, Deviating, Prior
from polyfid.rows.survey import Levels
from polyfid.text import percent

_INFERENCE = {"laplace": "Laplace", "ep": "expectation propagation", "variational": "variational"}
#: Hyper-parameters that are probabilities.
LOG_ODDS = ("reliability", "sensitivity", "specificity")
#: A file with more levels or features than this is damaged, or made to do harm.
MAX_LEVELS, MAX_FEATURES = 1000, 10_000_000

Estimator = TypeVar("Estimator")


@dataclass(frozen=True)
class FittedModel:
    """The models of all classes: one for two classes, else one per class against the rest."""

    info: FitInfo
    options: Options
    mixtures: tuple[Mixture, ...]

    @property
    def fits(self) -> list[BinaryFit]:
        """The heaviest model of each class."""
        return [m.best.fit for m in self.mixtures]

    @property
    def is_binary(self) -> bool:
        return len(self.mixtures) == 1

    @property
    def names(self) -> list[str]:
        """What texts about each model begin with: of several the class, of one nothing."""
        return [""] if self.is_binary else [f"class {c}: " for c in self.info.classes]


class Structures(list["LearntStructure"]):
    """The structures of a model, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{percent(one.weight)}</td>"
            f"<td style='text-align:left'>{escape(one.name)}</td>"
            f"<td>{one.log_evidence:.1f}</td></tr>"
            for one in self
        )
        heads = "<tr><th>weight</th><th>structure</th><th>log evidence</th></tr>"
        return f"<table class='polyfid-structures'>{heads}{rows}</table>"


@dataclass(frozen=True)
class LearntStructure:
    """A structure among those that were averaged, with its share ``weight`` in the average.

    ``log_marginal_likelihood`` is that of the tuned hyper-parameters. ``log_evidence``, from which
    the weight comes, adds the log priors of these and of the structure (NaN if it was given).
    """

    name: str
    weight: float
    log_evidence: float
    log_marginal_likelihood: float
    rho: tuple[float, ...]
    kernels: tuple[Kernel, ...]

    def __repr__(self) -> str:
        # A kernel that was given has no evidence to be compared by.
        given = np.isnan(self.log_evidence)
        evidence = "" if given else f", log evidence {self.log_evidence:.1f}"
        return f"<{percent(self.weight)} {self.name}{evidence}>"

    @classmethod
    def of(cls, mixture: Mixture) -> Structures:
        """Those of a mixture, heaviest first."""
        structures = Structures()
        for m in mixture.members:
            prior = m.fit.prior
            evidence = m.log_evidence, m.fit.log_evidence
            rho = tuple(rho_of(m.fit).tolist())
            structures.append(cls(m.name, m.weight, *evidence, rho, prior.kernels))
        return structures


@dataclass(frozen=True)
class FitReport:
    """What happened in a fit; ``print`` it, or let a notebook show it.

    ``counts`` (n_levels, n_classes) are rows; ``problems`` say what did not converge, of any
    structure that was averaged; ``notes`` say what was unusual. ``links`` between the levels and
    ``lines``, headings and texts, are computed when they are first asked for.
    """

    counts: NDArray[np.intp]
    converged: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    _model: FittedModel = field(repr=False, compare=False)

    @classmethod
    def of(cls, model: FittedModel) -> FitReport:
        """The report of a fit."""
        problems = [
            who + problem
            for who, mixture in zip(model.names, model.mixtures, strict=True)
            for problem in _problems(mixture)
        ]
        return cls(model.info.counts, not problems, tuple(problems), model.info.notes, model)

    @property
    def n_rows(self) -> NDArray[np.intp]:
        """Rows by level (n_levels,), those with numbers included."""
        return self._model.info.n_rows

    @cached_property
    def links(self) -> list[list[Link]]:
        """How neighbouring levels are linked, from the lowest: one list per binary model."""
        model = self._model
        return link_levels(model.mixtures, model.info.levels, model.options.weak_prior)

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Headings and texts."""
        info = self._model.info
        levels = info.levels
        names = None if info.feature_names is None else info.feature_names.tolist()
        counts = _levels(info)
        lines = [("levels" if len(levels) > 1 else "data", counts)]
        parts = zip(self._model.names, self._model.mixtures, self.links, strict=True)
        for who, mixture, links in parts:
            fit = mixture.best.fit
            own = _trust(links) + _boosted(mixture, levels) + _structures(mixture)
            own += _describe(fit, levels, _columns(mixture, levels, names))
            own.append(("inference", f"{_INFERENCE[fit.scheme]}, {fit.inference}"))
            own += _calibration(mixture, levels)
            lines += [(who + head, text) for head, text in own]
        if info.plan:
            lines.append(("size", info.plan))
        lines += [("note", n) for n in self.notes]
        return (*lines, *(("warning", p) for p in self.problems))

    def __str__(self) -> str:
        width = max(len(head) for head, _ in self.lines) + 2
        indented = [(head, text.replace("\n", "\n" + " " * width)) for head, text in self.lines]
        return "\n".join(f"{head:<{width}}{text}" for head, text in indented)

    def to_html(self) -> str:
        """The report as a table for notebooks; everything from the data is escaped."""
        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{escape(head)}</th>"
            f"<td style='text-align:left'>{escape(text).replace(chr(10), '<br>')}</td></tr>"
            for head, text in self.lines
        )
        return f"<table class='polyfid-report'>{rows}</table>"

    _repr_html_ = to_html


def _levels(info: FitInfo) -> str:
    levels, n_rows = info.levels, info.n_rows.tolist()

    def one(t: int) -> str:
        counts = zip(info.classes, info.counts[t], strict=True)
        shown = "numbers" if t in info.numeric else ", ".join(f"{c}: {n}" for c, n in counts)
        return f"{n_rows[t]} row{'s' * (n_rows[t] != 1)} ({shown})"

    if len(levels) == 1:
        return one(0)
    lines = [f"{name}: {one(t)}" for t, name in enumerate(levels)]
    return "\n".join([*lines, f"(least trusted first; most trusted: {levels[-1]})"])


def _trust(links: Sequence[Link]) -> list[tuple[str, str]]:
    """How far each level can be trusted, in words."""
    if not links:
        return []
    remarks = ["averages over structures"] * (len(links[0].weights) > 1)
    remarks += ["95 % intervals"] * any(link.has_intervals for link in links)
    remark = [f"({', with '.join(remarks)})"] * bool(remarks)
    return [("rho", "\n".join([*map(str, links), *remark]))]


def _structures(mixture: Mixture) -> list[tuple[str, str]]:
    best = mixture.best
    if best.name == GIVEN:
        return []
    shares = [f"{m.weight:4.0%}  {m.name}" for m in mixture.members]
    sparse = "(with inducing points only the leading one is kept)"
    remark = "(what follows is of the first)" if best.fit.sparse is None else sparse
    return [("structures", "\n".join([*shares, remark]))]


def _boosted(mixture: Mixture, levels: Levels) -> list[tuple[str, str]]:
    """What trees do in the model, in words."""
    if mixture.mean is None:
        return []
    share = sum(m.weight for m in mixture.members if m.boosted)
    names = " and ".join(str(levels[t]) for t in mixture.mean.levels)
    bulk = f"boosted trees carry the bulk of {names}, with {share:.0%} of the weight"
    text = bulk if share >= 0.5 else f"boosted trees of {names} have {share:.0%} of the weight"
    text += ";\nGaussian processes say how far they can be trusted, and where they are wrong"
    return [("mean", text)]


def _columns(
    mixture: Mixture, levels: Levels, feature_names: Sequence[str] | None
) -> Sequence[str] | None:
    """Names of the columns of points of the first member, the margins of its trees included."""
    if mixture.mean is None or not mixture.best.boosted:
        return feature_names
    margins = [f"the trees of {levels[t]}" for t in mixture.mean.levels]
    n_columns = mixture.best.fit.posterior.points.x.shape[1] - len(margins)
    own = map(str, range(n_columns)) if feature_names is None else feature_names[:n_columns]
    return [*own, *margins]


def _calibration(mixture: Mixture, levels: Levels) -> list[tuple[str, str]]:
    """How rows of the top level turned out that were held out in turn, in words."""
    if (of := mixture.calibration) is None:
        return []
    text = (
        f"of {of.n_rows} rows of {levels[-1]}, each held out in turn: probabilities are off by "
        f"{of.error:.3f} on average, log-loss {of.log_loss:.3f}"
    )
    return [("calibration", text)]


def _describe(
    fit: BinaryFit, levels: Levels, feature_names: Sequence[str] | None
) -> list[tuple[str, str]]:
    lines = []
    prior = fit.prior
    if not isinstance(prior, Autoregressive | Deviating):
        rows = (", ".join(f"{a:+.2f}" for a in row) for row in prior.loadings)
        mixed = [f"{name}: {row}" for name, row in zip(levels, rows, strict=True)]
        lines.append(("loadings", "\n".join(mixed)))
    kernels = ["none" if k == ABSENT else k.describe(feature_names) for k in prior.kernels]
    if len(levels) == len(kernels) == 1:
        lines.append(("kernel", kernels[0]))
    else:
        processes = zip(_processes(prior, levels), kernels, strict=True)
        lines.append(("kernels", "\n".join(f"{name}: {kernel}" for name, kernel in processes)))
    if isinstance(fit.likelihood.labels, NoisyLogit):
        lines.append(("label noise", _noise(fit.likelihood.labels, levels)))
    if numbers := fit.likelihood.numbers:
        lines.append(("numbers", "\n".join(_errors(levels[t], own) for t, own in numbers.items())))
    lines.append(("evidence", f"log marginal likelihood {fit.log_evidence:.4f}"))
    if fit.optimum is None:
        return [*lines, ("tuning", "none: hyper-parameters as given")]
    tuning = str(fit.optimum)
    if fit.tuned_on < fit.posterior.n_rows:
        tuning += f"; on {fit.tuned_on} of {fit.posterior.n_rows} rows"
    if fit.optimum.at_bounds:
        tuning += f"\nat a bound: {', '.join(fit.optimum.at_bounds)}"
    return [*lines, ("tuning", tuning)]


def _processes(prior: Prior, levels: Levels) -> list[str]:
    """Names of the latent processes and what they stand for."""
    if isinstance(prior, Autoregressive):
        roles = [levels[0], *(f"correction of {name}" for name in levels[1:])]
    elif isinstance(prior, Deviating):
        roles = ["all levels", *(f"deviation of {name}" for name in levels[:-1])]
    else:
        return list(prior.process_names)
    return [f"{name} ({role})" for name, role in zip(prior.process_names, roles, strict=True)]


def rho_of(fit: BinaryFit) -> Array:
    """Rho of each step from a level to the next, (n_levels - 1,); empty if levels have no order."""
    if isinstance(fit.prior, Deviating):
        return fit.prior.slopes(fit.posterior.points.x)[:, 0]
    return np.array(getattr(fit.prior, "rho", ()), dtype=float)


def _noise(likelihood: NoisyLogit, levels: Levels) -> str:
    free = likelihood.free
    if likelihood.symmetric or (not free.any() and len(free) == len(levels)):
        rates = zip(levels, 1.0 - likelihood.sensitivity, strict=True)
        return "labels flipped: " + ", ".join(f"{name} {rate:.1%}" for name, rate in rates)
    if not free.any():
        return "none: all labels are of the top level"
    return (
        f"{free.sum()} annotators, sensitivity {likelihood.sensitivity[free].min():.2f} to "
        f"{likelihood.sensitivity[free].max():.2f}, specificity "
        f"{likelihood.specificity[free].min():.2f} to {likelihood.specificity[free].max():.2f}"
    )


def _errors(level: Any, numbers: Numbers) -> str:
    """The errors of a level's numbers, in their own units, and the warp."""
    sd = float(np.sqrt(numbers.noise_variance))
    text = f"{level}: {'errors' if numbers.free else 'errors (given)'} of sd {sd:.3g}"
    text += f", numbers of sd {numbers.scale.spread:.3g}"
    return text + (f", warped by the power {numbers.scale.power:.2f}" if numbers.warps else "")


def _problems(mixture: Mixture) -> list[str]:
    """What did not converge, of all structures that carry weight; figures of the heaviest one."""
    fits = [member.fit for member in mixture.members]
    stuck = [f for f in fits if not f.inference.converged]
    short = [f.optimum for f in fits if f.optimum is not None and not f.optimum.converged]
    problems = []
    if stuck:
        other = "laplace" if stuck[0].likelihood.log_concave else "ep"
        other = f'inference="{other}", or ' if other != stuck[0].scheme else ""
        problems.append(
            f"inference did not converge at the final hyper-parameters{_share(stuck, fits)} "
            f"({stuck[0].inference}; the distance is in posterior standard deviations of the "
            f"latent values, and a small one does little harm); try {other}kernel bounds that "
            "keep scales smaller"
        )
    if short:
        problems.append(
            f"tuning stopped early{_share(short, fits)} ({short[0].best.message}, after "
            f"{short[0].best.n_evaluations} evaluations, at a slope of {short[0].best.slope:.1g} "
            "nats); raise max_iter or n_restarts"
        )
    return problems


def _share(some: Sequence[Any], fits: Sequence[BinaryFit]) -> str:
    return "" if len(fits) == 1 else f" for {len(some)} of {len(fits)} structures"


# ------------------------------------------------------------------- model files


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

    rows: list[Any] = [dict(zip(classes, row, strict=True)) for row in info.counts.tolist()]
    for t in info.numeric:
        rows[t] = info.numbers[t]
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


def value_of(name: str, theta: float) -> float:
    """The value of a hyper-parameter, of which ``theta_`` has the logarithm or the log-odds.

    >>> value_of("f[0].rbf.length_scale", 0.0), value_of("reliability[0]", 0.0)
    (1.0, 0.5)
    >>> value_of("rho[1]", -0.5)
    -0.5
    """
    kind = name.partition("[")[0]
    if kind in ("rho", "loading", "warp"):
        return theta
    return float(expit(theta) if kind in LOG_ODDS else np.exp(theta))


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
    _demand(len(info.numbers) in (0, n_levels), "a number of rows for each level")
    _demand(n_models == (1 if n_classes == 2 else n_classes), "a model for each class")
    names = info.feature_names
    if names is not None:
        right = names.shape == (n_features,) and all(isinstance(name, str) for name in names)
        _demand(right, "a name for each feature")


def _check_mixture(mixture: Mixture, n_features: int, n_levels: int) -> None:
    _demand(mixture.members, "members of a mixture")
    for member in mixture.members:
        _check_member(member, n_levels)
    if mixture.spread is not None:
        mixture.spread.check(n_levels)
    if mixture.mean is not None:
        mixture.mean.check(n_levels, n_features)
    _demand(mixture.mean or not any(m.boosted for m in mixture.members), "the trees of a mean")
    # Any other inconsistency shows in the prediction of any row, such as one of zeros. What it
    # computes is kept, and must be what any prediction would have computed, to the last bit.
    x, top = np.zeros((1, n_features)), np.array([n_levels - 1], dtype=np.intp)
    with np.errstate(all="ignore"), suitable_threads(mixture.size):
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
