"""The catalogue of structures: which features a kernel compares, its form, the link of levels."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from polyfid.arrays import Array
from polyfid.kernels import (
    RBF,
    Additive,
    Categorical,
    Constant,
    Intercept,
    Kernel,
    Laplacian,
    Linear,
)
from polyfid.learning.plan import Options
from polyfid.model.features import (
    AsGiven,
    Coded,
    FeatureMap,
    Ranked,
    SharedUnit,
    Standardised,
    UnitRows,
)
from polyfid.model.prior import Autoregressive, Coregional, Prior
from polyfid.rows import Rows

#: Forms of a kernel, in words.
FORMS = {
    "isotropic": "one length-scale",
    "soft": "length-scales softly tied",
    "free": "free length-scales",
    "linear": "one length-scale and a linear part",
    "steps": "steps of one length-scale",
    "free steps": "steps of free length-scales",
    "additive": "steps by column",
}
#: Links between levels, in words.
LINKS = {"linked": "", "same": "one function at all levels", "apart": "levels unrelated"}
_ARD: dict[str, bool | Literal["free"]] = {"soft": True, "free": "free", "free steps": "free"}
#: Forms that go through the columns one by one are left out if there are more columns than this.
_BY_COLUMN, N_COLUMNS = {"free steps", "additive"}, 200
#: The forms that a form refines, the nearest one first.
_SIMPLER = {
    "linear": ("isotropic",),
    "soft": ("isotropic",),
    "free": ("isotropic", "soft"),
    "free steps": ("steps",),
}
#: Feature maps whose points have this correlation count as one.
ALIKE = 0.99
#: The kernel of a correction that is not there.
_ABSENT = Constant(1e-6, "fixed")


def default_kernel(n_features: int) -> Kernel:
    """A scaled RBF with one length-scale per feature, softly tied together by the weak prior."""
    return Constant(np.exp(1.5)) * RBF(np.sqrt(n_features), ard=True)


def make_prior(options: Options, n_features: int) -> Prior:
    """The prior that the options describe, over points of so many features."""
    kernels = options.kernels or (default_kernel(n_features),) * options.n_levels
    kernels = tuple(k.for_features(n_features) for k in kernels)
    if options.coupling == "coregional":
        # Levels start alike on the first process and apart on the others.
        weights = np.eye(options.n_levels, len(kernels))
        weights[:, 0] = 1.0
        return Coregional(kernels, weights)  # type: ignore[arg-type]
    return Autoregressive(kernels, options.rho, options.rho_bounds)


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
        elif self.form == "additive":
            kernel = Additive(2.0)
        elif self.form in ("steps", "free steps"):
            kernel = Laplacian(float(n_columns), ard=ard)
        else:
            kernel = RBF(np.sqrt(n_columns), ard=ard)
        kernel = Constant(np.exp(1.5)) * kernel
        if self.form == "linear":
            kernel = kernel + Linear(np.sqrt(n_columns))
        return kernel + Intercept()

    def prior(self, features: FeatureMap, n_columns: int, options: Options) -> Prior:
        """The prior with typical hyper-parameters."""
        kernel = self.kernel(features, n_columns).for_features(n_columns)
        general = make_prior(replace(options, kernels=(kernel,) * options.n_levels), n_columns)
        if self.link == "linked" or not isinstance(general, Autoregressive):
            return general
        if self.link == "apart":
            return replace(general, rho=(0.0,) * (options.n_levels - 1), rho_bounds="fixed")
        # One function, of which noisy labels show less: rho is the ratio of the amplitudes.
        kernels = (kernel,) + (_ABSENT,) * (options.n_levels - 1)
        return replace(general, kernels=kernels, rho_prior=(2.0, 1.5))


#: The first one is tuned from several starts, the others from where a simpler one ended.
STRUCTURES = (
    Structure(Standardised, "isotropic"),
    Structure(Standardised, "soft"),
    Structure(Standardised, "free"),
    Structure(Standardised, "linear"),
    Structure(Ranked, "isotropic"),
    Structure(Ranked, "free"),
    Structure(Ranked, "steps"),
    Structure(Ranked, "free steps"),
    Structure(Ranked, "additive"),
    Structure(SharedUnit, "isotropic"),
    Structure(UnitRows, "isotropic"),
    Structure(UnitRows, "linear"),
    Structure(Coded, "soft"),
    Structure(Coded, "free"),
)


def candidates(rows: Rows, standardize: bool) -> dict[Structure, FeatureMap]:
    """The structures that make sense for these rows, with their feature maps."""
    forms = set(FORMS) - (_BY_COLUMN if rows.x.shape[1] > N_COLUMNS else set())
    if not standardize:
        return {Structure(AsGiven, form): AsGiven() for form in FORMS if form in forms}
    made = {kind: kind.of(rows.x, rows.weight) for kind in {s.features for s in STRUCTURES}}
    maps = {kind: features for kind, features in made.items() if features is not None}
    points = {kind: _direction(features(rows.x)) for kind, features in maps.items()}
    chosen: dict[Structure, FeatureMap] = {}
    for structure in STRUCTURES:
        if structure.features not in maps or structure.form not in forms:
            continue
        # One length-scale per category says more than one per indicator, with a fraction of them.
        if structure.features is Standardised and structure.form in _ARD and Coded in maps:
            continue
        rivals = [s.features for s in chosen if s.form == structure.form]
        if not any(_alike(points[structure.features], points[kind]) for kind in rivals):
            chosen[structure] = maps[structure.features]
    return chosen


def _direction(points: Array) -> Array:
    """Points as one vector of length one, so that their scale does not matter."""
    centred = (points - points.mean(axis=0)).ravel()
    return np.asarray(centred / max(np.linalg.norm(centred), np.finfo(float).tiny))


def _alike(a: Array, b: Array) -> bool:
    """Whether two maps give the same points but for their scale, nearly."""
    return a.shape == b.shape and bool(a @ b > ALIKE)


def simpler(structure: Structure, others: Container[Structure]) -> Structure | None:
    """The structure that another one refines, if it is among the others."""
    forms = _SIMPLER.get(structure.form, ())
    return next((s for f in forms if (s := replace(structure, form=f)) in others), None)


def other_links(prior: Prior, rows: Rows) -> Sequence[str]:
    """The links that may take the place of the general one, if there is one to speak of."""
    if not isinstance(prior, Autoregressive) or isinstance(prior.rho_bounds, str):
        return ()
    if len(np.unique(rows.level)) < 2:
        return ()
    low, high = prior.rho_bounds
    return ["same", "apart"] if low <= 0.0 <= high else ["same"]
