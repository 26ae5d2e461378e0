"""Learning the structure of a model: which features a kernel sees, its form, the link of levels.

A handful of structures is fitted, and their predictions are averaged by evidence, in which the
hyper-parameters are integrated out (see `occam`). No structure is right for all data: skewed
columns want ranks, columns of one unit want to keep their proportions, a few relevant columns want
length-scales of their own, and with 75 trusted labels a length-scale a column is often too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.inference import SCHEMES
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.kernels import RBF, Categorical, Constant, Kernel, Linear
from polyfid.kernels.hyperprior import HyperPrior
from polyfid.learning.climb import Optimum, maximise
from polyfid.learning.evidence import Evidence
from polyfid.learning.mixture import Member, Mixture
from polyfid.learning.model import (
    BinaryFit,
    Settings,
    infer,
    make_hyperprior,
    make_prior,
    starting_points,
    tuning_subset,
)
from polyfid.learning.occam import log_occam
from polyfid.model.features import (
    AsGiven,
    Coded,
    FeatureMap,
    Ranked,
    SharedUnit,
    Standardised,
    UnitRows,
)
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Autoregressive, Prior
from polyfid.rows import Points

#: Log evidences are divided by this before they become weights: they are approximate, and
#: structures fail in different places, so that an average that is too sure of one loses by it.
TEMPERATURE = 2.0
#: Structures of less weight than this are left out of the average.
NEGLIGIBLE = 0.01
#: Structures are tuned to this relative tolerance in all, shared by the hyper-parameters: what it
#: leaves is some hundredths of a log evidence.
TOLERANCE = 2e-3
#: With more rows than this, structures are compared on a sample, and only the leading ones, at
#: most this many, are tuned on more.
N_SCOUT, N_LEADERS = 600, 3
#: Until structures are chosen, inference may end this many posterior standard deviations from its
#: fixed point, where the evidence is stationary.
ROUGH = 1e-3
#: Iterations of the leading structure under the scheme itself.
POLISH_ITER = 12
#: With more rows than this Laplace, several times as fast, takes the place of EP if it may.
N_LAPLACE = 2000
#: The leading structures whose other links are tried.
N_SPECIALISED = 2
#: How much more a structure may gain than all others by what comes after the climb.
_LENIENCE = 2.0

#: The kernel of a correction that is not there.
ABSENT = Constant(1e-6, "fixed")

FORMS = {
    "isotropic": "one length-scale",
    "soft": "length-scales softly tied",
    "free": "free length-scales",
    "linear": "one length-scale and a linear part",
}
_ARD: dict[str, bool | Literal["free"]] = {"soft": True, "free": "free"}
LINKS = {
    "linked": "",
    "same": "one function at all levels",
    "apart": "levels unrelated",
}


@dataclass(frozen=True)
class Structure:
    """What is decided before hyper-parameters are tuned."""

    features: type[FeatureMap]
    form: str
    link: str = "linked"

    def __str__(self) -> str:
        words = [f"features {self.features.words}", FORMS[self.form], LINKS[self.link]]
        return ", ".join(filter(None, words))

    def kernel(self, features: FeatureMap, n_columns: int) -> Kernel:
        """The kernel of a latent process over points of the feature map."""
        ard = _ARD.get(self.form, False)
        if isinstance(features, Coded):
            cut = features.n_numeric
            kernel: Kernel = Categorical(columns=tuple(range(cut, n_columns)), ard=ard)
            if cut:
                kernel = RBF(columns=tuple(range(cut)), ard=ard) * kernel
        else:
            kernel = RBF(np.sqrt(n_columns), ard=ard)
        kernel = Constant(np.exp(1.5)) * kernel
        return kernel + Linear(np.sqrt(n_columns)) if self.form == "linear" else kernel

    def prior(
        self, features: FeatureMap, n_columns: int, n_levels: int, settings: Settings
    ) -> Prior:
        """The prior with typical hyper-parameters."""
        kernel = self.kernel(features, n_columns).for_features(n_columns)
        general = make_prior(replace(settings, kernels=(kernel,) * n_levels), n_columns, n_levels)
        if self.link == "linked" or not isinstance(general, Autoregressive):
            return general
        if self.link == "apart":
            return replace(general, rho=(0.0,) * (n_levels - 1), rho_bounds="fixed")
        # One function, of which noisy labels see less: rho is the ratio of the amplitudes.
        absent = (kernel,) + (ABSENT,) * (n_levels - 1)
        return replace(general, kernels=absent, rho_prior=(2.0, 1.5))


#: The first one is fitted from several starts, the others from where it ended.
STRUCTURES = (
    Structure(Standardised, "isotropic"),
    Structure(Standardised, "soft"),
    Structure(Standardised, "free"),
    Structure(Standardised, "linear"),
    Structure(Ranked, "isotropic"),
    Structure(Ranked, "free"),
    Structure(SharedUnit, "isotropic"),
    Structure(UnitRows, "isotropic"),
    Structure(UnitRows, "linear"),
    Structure(Coded, "soft"),
    Structure(Coded, "free"),
)


@dataclass(frozen=True)
class Rows:
    """What structures are learnt from; ``x`` as the user gave it, sorted by level."""

    x: Array
    level: NDArray[np.intp]
    likelihood: Likelihood

    def take(self, index: NDArray[np.intp] | None) -> Rows:
        if index is None:
            return self
        return Rows(self.x[index], self.level[index], self.likelihood.take(index))


@dataclass(frozen=True)
class Candidate:
    """A structure with tuned hyper-parameters and its evidence."""

    structure: Structure
    features: FeatureMap
    prior: Prior
    hyperprior: HyperPrior
    optimum: Optimum
    fit: BinaryFit | None  # None where the structure is out of the race
    log_evidence: float

    @property
    def theta(self) -> Array:
        return self.optimum.theta

    def evidence(self, rows: Rows) -> Evidence:
        """The evidence of rows under the structure, by Laplace."""
        points = Points(np.ascontiguousarray(self.features(rows.x)), rows.level)
        return Evidence(self.prior, rows.likelihood, points, SCHEMES["laplace"])

    @property
    def gain(self) -> float:
        """What inference and the Occam factor add to the objective of the climb."""
        return self.log_evidence - self.optimum.objective


def learns_structure(settings: Settings, likelihood: Likelihood) -> bool:
    """Whether these settings leave the structure open.

    Without a hyper-prior there is no evidence to compare by, and Laplace is what makes so many
    fits affordable.
    """
    return (
        settings.kernels is None
        and settings.optimise
        and settings.weak_prior
        and likelihood.log_concave
    )


def learn(
    rows: Rows,
    weight: Array,
    standardize: bool,
    n_levels: int,
    settings: Settings,
    rng: np.random.RandomState,
    subset: NDArray[np.intp] | None = None,
) -> Mixture:
    """Fit the structures and average them.

    Parameters
    ----------
    rows : Rows
    weight : ndarray of shape (n,)
        Multiplicities of the rows, for the feature maps.
    standardize : bool
        Whether features may be rescaled and warped.
    n_levels : int
    settings : Settings
    rng : RandomState
    subset : ndarray, optional
        The rows that hyper-parameters are tuned on.
    """
    maps = _feature_maps(rows.x, weight, standardize)
    tuning = rows.take(subset)
    scout = tuning.take(tuning_subset(tuning.level, N_SCOUT, rng))
    seed = int(rng.randint(2**31 - 1))

    def climb(structure: Structure, on: Rows, start: Candidate | None = None) -> Candidate:
        features = maps[structure.features]
        return _climb(structure, features, on, n_levels, settings, seed, start)

    def climb_again(candidate: Candidate) -> Candidate:
        again = climb(candidate.structure, tuning, candidate)
        return _weigh(again, tuning, settings, seed, None)

    def weighed(candidates: Sequence[Candidate]) -> list[Candidate]:
        # Rows and labels are those of the best so far, and so, nearly, is the posterior.
        near = _leaders(found)[0].fit if found else None
        hopeful = [c for c in candidates if not _hopeless(c, found)]
        return list(pool(delayed(_weigh)(c, scout, settings, seed, near) for c in hopeful))

    first, *others = _worth_trying(maps)
    pool = Parallel(n_jobs=settings.n_jobs, prefer="processes")
    lead = climb(first, scout)
    climbed = list(pool(delayed(climb)(s, scout, lead) for s in others))

    # Weighing takes as long as climbing, and structures that others leave far behind are spared it.
    # So the promising ones come first: the simplest and the highest, then those that may have their
    # links specialised, then what comes of that.
    climbed.sort(key=_height, reverse=True)
    found: list[Candidate] = []
    found += weighed([lead, *climbed[:1]])
    may_lead = [_reach(c, found) >= _leaders(found)[-1].log_evidence for c in climbed[1:]]
    found += weighed([c for c, may in zip(climbed[1:], may_lead, strict=True) if may])
    late = [c for c, may in zip(climbed[1:], may_lead, strict=True) if not may]
    tasks = [
        (replace(c.structure, link=link), c)
        for c in _leaders(found)
        for link in _special_links(c.prior, rows.level)
    ]
    special = sorted(pool(delayed(climb)(s, scout, c) for s, c in tasks), key=_height, reverse=True)
    found += weighed(special[:N_SPECIALISED])
    found += weighed(special[N_SPECIALISED:] + late)
    if scout is not tuning:
        leaders = _average(found)[:N_LEADERS]
        found = list(pool(delayed(climb_again)(c) for c, _ in leaders))

    # What the leading one gains by going on under the scheme itself, the others are given as well.
    leader, *rest = [c for c, _ in _average(found)]
    polished = _polish(leader, tuning, settings)
    if polished is not leader:
        rest = list(pool(delayed(_follow)(c, leader, polished, tuning, settings) for c in rest))
    members = []
    for candidate, share in _average([polished, *rest]):
        near = candidate.fit if tuning is rows else None
        fit = _infer(candidate.evidence(rows), candidate.optimum, settings, near, rough=False)
        fit = replace(fit, tuned_on=len(tuning.level))
        members.append(
            Member(str(candidate.structure), candidate.features, fit, share, candidate.log_evidence)
        )
    return Mixture(tuple(members))


def _feature_maps(x: Array, weight: Array, standardize: bool) -> dict[type[FeatureMap], FeatureMap]:
    kinds = {s.features for s in STRUCTURES} if standardize else {AsGiven}
    maps = {kind: kind.of(x, weight) for kind in kinds}
    return {kind: features for kind, features in maps.items() if features is not None}


def _worth_trying(maps: dict[type[FeatureMap], FeatureMap]) -> list[Structure]:
    """The structures that these feature maps allow, the one to begin with first."""
    if AsGiven in maps:
        return [Structure(AsGiven, form) for form in FORMS]
    # A length-scale a category says more than one an indicator, with a fraction of them.
    instead = {"soft", "free"} if Coded in maps else set()
    return [
        s
        for s in STRUCTURES
        if s.features in maps and not (s.features is Standardised and s.form in instead)
    ]


def _special_links(prior: Prior, level: NDArray[np.intp]) -> Sequence[str]:
    """The links that may take the place of the general one, if there is one to speak of."""
    if len(np.unique(level)) < 2 or not isinstance(prior, Autoregressive):
        return ()
    if isinstance(prior.rho_bounds, str):
        return ()
    low, high = prior.rho_bounds
    return ["same", "apart"] if low <= 0.0 <= high else ["same"]


def _climb(
    structure: Structure,
    features: FeatureMap,
    rows: Rows,
    n_levels: int,
    settings: Settings,
    seed: int,
    start: Candidate | None,
) -> Candidate:
    """Tune a structure with Laplace, from where another one ended, if there is one."""
    points = Points(np.ascontiguousarray(features(rows.x)), rows.level)
    prior = structure.prior(features, points.x.shape[1], n_levels, settings)
    evidence = Evidence(prior, rows.likelihood, points, SCHEMES["laplace"])
    hyperprior = make_hyperprior(prior, rows.likelihood, points, weak=True)
    with suitable_threads(len(points)):
        if start is None:
            rng = np.random.RandomState(seed)
            starts = starting_points(evidence, hyperprior, settings, rng)
        else:
            starts = [_translate(start, evidence, hyperprior)]
            if structure.form in _ARD and structure.link == "linked":
                # A few columns that matter may be lost among many: look at shorter ones too.
                lengths = ["length_scale" in name for name in evidence.theta_names]
                starts.append(starts[0] - np.where(lengths, 1.0, 0.0))
        tol = max(settings.tol, TOLERANCE / len(evidence.theta))
        hopeless = 3.0 if start is None else 0.0
        optimum = maximise(evidence, hyperprior, starts, settings.max_iter, tol, None, hopeless)
    return Candidate(structure, features, prior, hyperprior, optimum, None, -np.inf)


def _weigh(
    candidate: Candidate, rows: Rows, settings: Settings, seed: int, near: BinaryFit | None
) -> Candidate:
    """Find the evidence of a tuned structure under the scheme that is asked for.

    Inference starts from a fit of the same rows, if there is one.
    """
    evidence, hyperprior = candidate.evidence(rows), candidate.hyperprior
    optimum = candidate.optimum
    with suitable_threads(len(evidence.points)):
        try:
            fit = _infer(evidence, optimum, settings, near)
            rng = np.random.RandomState(seed)
            occam = log_occam(evidence, hyperprior, optimum.theta, rng)
        except NotPositiveDefinite:
            return candidate
    log_prior, _ = hyperprior(optimum.theta)
    log_z = fit.log_evidence
    if not fit.inference.converged or log_z > 0.0:  # then it means nothing
        log_z = optimum.objective - log_prior
    return replace(candidate, fit=fit, log_evidence=log_z + log_prior + occam)


def _infer(
    evidence: Evidence,
    optimum: Optimum,
    settings: Settings,
    near: BinaryFit | None,
    rough: bool = True,
) -> BinaryFit:
    """The posterior under the scheme, or under Laplace where that takes its place.

    It starts from a fit of the same rows, if there is one.
    """
    laplace = evidence.with_scheme(SCHEMES["laplace"])
    if settings.may_fall_back and len(evidence.points) > N_LAPLACE:
        return infer(laplace, optimum)
    evidence = evidence.with_scheme(SCHEMES[settings.inference])
    evidence.tol = ROUGH if rough else evidence.tol
    evidence.warm = near.exact if near else None
    fit = infer(evidence, optimum)
    if settings.may_fall_back and not (fit.inference.converged and fit.log_evidence <= 0.0):
        return infer(laplace, optimum)
    return fit


def _polish(candidate: Candidate, rows: Rows, settings: Settings) -> Candidate:
    """Tune on under the scheme's own evidence, which pulls less towards large scales."""
    if not _can_move(candidate) or candidate.fit is None:
        return candidate
    evidence = candidate.evidence(rows).with_scheme(SCHEMES[candidate.fit.scheme])
    evidence.tol = ROUGH
    tol = max(settings.tol, TOLERANCE / len(candidate.theta))
    iterations = min(settings.max_iter, POLISH_ITER)
    with suitable_threads(len(evidence.points)):
        optimum = maximise(evidence, candidate.hyperprior, [candidate.theta], iterations, tol)
    found = replace(candidate.optimum, theta=optimum.theta, at_bounds=optimum.at_bounds)
    return _move(candidate, found, rows, settings)


def _follow(
    candidate: Candidate, before: Candidate, after: Candidate, rows: Rows, settings: Settings
) -> Candidate:
    """Move a structure as another one was moved, if that is to its good."""
    if not _can_move(candidate):
        return candidate
    evidence = candidate.evidence(rows)
    shift = _carry(before, after.theta - before.theta, evidence)
    bounds = evidence.bounds
    theta = np.clip(candidate.theta + shift, bounds[:, 0], bounds[:, 1])
    return _move(candidate, replace(candidate.optimum, theta=theta), rows, settings)


def _can_move(candidate: Candidate) -> bool:
    """Whether a scheme other than Laplace, which has seen its optimum, has converged."""
    fit = candidate.fit
    return fit is not None and fit.scheme != "laplace" and fit.inference.converged


def _move(candidate: Candidate, optimum: Optimum, rows: Rows, settings: Settings) -> Candidate:
    """The candidate at other hyper-parameters, or as it was where they are no better.

    Its Occam factor stays that of the first ones, a little way off.
    """
    old = candidate.fit
    try:
        fit = _infer(candidate.evidence(rows), optimum, settings, old)
    except NotPositiveDefinite:
        return candidate
    log_priors = [candidate.hyperprior(theta)[0] for theta in (candidate.theta, optimum.theta)]
    if old is None or fit.scheme != old.scheme or not fit.inference.converged:
        return candidate
    gain = fit.log_evidence + log_priors[1] - old.log_evidence - log_priors[0]
    if not gain > 0.0:
        return candidate
    objective = fit.log_evidence + log_priors[1]
    climbs = (replace(optimum.best, theta=optimum.theta, objective=objective), *optimum.climbs[1:])
    found = replace(optimum, objective=objective, climbs=climbs)
    return replace(
        candidate,
        optimum=found,
        fit=replace(fit, optimum=found),
        log_evidence=candidate.log_evidence + gain,
    )


def _height(candidate: Candidate) -> float:
    return candidate.optimum.objective


def _leaders(found: Sequence[Candidate]) -> list[Candidate]:
    """Those of most evidence, whose other links are worth trying."""
    return sorted(found, key=lambda c: -c.log_evidence)[:N_SPECIALISED]


def _reach(candidate: Candidate, found: Sequence[Candidate]) -> float:
    """The most evidence that a structure may have when it is weighed, as others were."""
    return _height(candidate) + max(c.gain for c in found) + _LENIENCE


def _hopeless(candidate: Candidate, found: Sequence[Candidate]) -> bool:
    """Whether a structure is so far behind others that its weight would be negligible."""
    if not found:
        return False
    enough = max(c.log_evidence for c in found) + TEMPERATURE * np.log(NEGLIGIBLE)
    return bool(_reach(candidate, found) < enough)


def _translate(start: Candidate, evidence: Evidence, hyperprior: HyperPrior) -> Array:
    """Where another structure's optimum lies in this one's parameters.

    What deviates from the typical value there deviates as much here; parameters that the other
    one does not have are typical.
    """
    return hyperprior.mean + _carry(start, start.theta - start.hyperprior.mean, evidence)


def _carry(start: Candidate, change: Array, evidence: Evidence) -> Array:
    """A change of one structure's parameters as one of another's: by name, else by role."""
    names = _names(start.prior) + evidence.likelihood.theta_names
    own = dict(zip(names, change, strict=True))
    alike: dict[str, list[float]] = {}
    for name, value in own.items():
        alike.setdefault(_kind(name), []).append(value)
    carried = np.zeros(len(evidence.theta))
    for i, name in enumerate(_names(evidence.prior) + evidence.likelihood.theta_names):
        if name in own:
            carried[i] = own[name]
        elif "linear." not in name:
            carried[i] = float(np.mean(alike.get(_kind(name), [0.0])))
    return carried


def _names(prior: Prior) -> tuple[str, ...]:
    """Names of parameters with processes by number, which priors of different kinds share."""
    return prior.mixing.names + tuple(
        f"{s}.{name}" for s, kernel in enumerate(prior.kernels) for name in kernel.theta_names
    )


def _kind(name: str) -> str:
    """The process and the role of a parameter: 0.rbf.length_scale[3] → 0 length_scale."""
    process, *path = name.split(".")
    return f"{process} {path[-1].partition('[')[0]}" if path else process


def _average(found: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
    """Candidates and their weights, heaviest first, negligible ones left out."""
    scores = np.array([c.log_evidence for c in found]) / TEMPERATURE
    if not np.isfinite(scores).any():
        scores = np.array([c.optimum.objective for c in found])
    share = np.exp(scores - scores.max())
    share /= share.sum()
    keep = share >= min(NEGLIGIBLE, share.max())
    share = np.where(keep, share, 0.0) / share[keep].sum()
    order = np.argsort(-share, kind="stable")
    return [(found[i], float(share[i])) for i in order if keep[i]]
