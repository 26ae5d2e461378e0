"""The catalogue of structures: which features a kernel compares, its form, the link of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from polyfid.kernels import RBF, Categorical, Constant, Kernel, Linear
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
}
#: Links between levels, in words.
LINKS = {"linked": "", "same": "one function at all levels", "apart": "levels unrelated"}
_ARD: dict[str, bool | Literal["free"]] = {"soft": True, "free": "free"}
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
        else:
            kernel = RBF(np.sqrt(n_columns), ard=ard)
        kernel = Constant(np.exp(1.5)) * kernel
        return kernel + Linear(np.sqrt(n_columns)) if self.form == "linear" else kernel

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


def candidates(rows: Rows, standardize: bool) -> list[tuple[Structure, FeatureMap]]:
    """The structures that make sense for these rows, with their feature maps."""
    if not standardize:
        return [(Structure(AsGiven, form), AsGiven()) for form in FORMS]
    maps = {kind: kind.of(rows.x, rows.weight) for kind in {s.features for s in STRUCTURES}}
    # One length-scale per category says more than one per indicator, with a fraction of them.
    instead = {"soft", "free"} if maps.get(Coded) is not None else set()
    return [
        (s, features)
        for s in STRUCTURES
        if (features := maps[s.features]) is not None
        and not (s.features is Standardised and s.form in instead)
    ]


def other_links(prior: Prior, rows: Rows) -> Sequence[str]:
    """The links that may take the place of the general one, if there is one to speak of."""
    if not isinstance(prior, Autoregressive) or isinstance(prior.rho_bounds, str):
        return ()
    if len(np.unique(rows.level)) < 2:
        return ()
    low, high = prior.rho_bounds
    return ["same", "apart"] if low <= 0.0 <= high else ["same"]
