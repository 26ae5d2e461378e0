"""The catalogue of structures: which features a kernel compares, its form, the link of levels.

A structure may also single out a few columns, which then have a kernel of their own besides that of
all columns (`columns` finds them), and it may have a boosted mean: margins of trees, which come
after the other columns of its points, and of which latent functions are linear functions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb

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
from polyfid.learning.plan import Options, Target
from polyfid.model.features import (
    AsGiven,
    Coded,
    FeatureMap,
    Ranked,
    SharedUnit,
    Standardised,
    UnitRows,
)
from polyfid.model.prior import Autoregressive, Coregional, Deviating, Prior
from polyfid.rows import Rows

#: Forms of a kernel, in words.
FORMS = {
    "isotropic": "one length-scale",
    "soft": "length-scales softly tied",
    "linear": "one length-scale and a linear part",
    "steps": "steps of one length-scale",
    "additive": "steps by column",
}
#: Links between levels, in words.
LINKS = {
    "linked": "",
    "deviating": "one function, cheaper levels with deviations",
    "flips": "one function, cheaper labels flipped at random",
    "same": "one function at all levels",
    "apart": "levels unrelated",
}
#: What the name of a structure with a boosted mean begins with.
BOOSTED = "boosted trees"
#: Forms that go through the columns one by one are left out if there are more than this.
N_COLUMNS = 200
#: Feature maps whose points have this correlation count as one.
ALIKE = 0.99
#: Bounds of amplitudes. Beyond them, where labels are nearly without noise, Laplace's evidence
#: still rises although that of EP falls.
AMPLITUDES = 1e-5, float(np.exp(6.0))
#: The inverse of the prior standard deviation of a function's slope in a margin: margins are
#: log-odds, and slopes about one.
SLOPE = 1.0
#: The kernel of a correction that is not there.
ABSENT = Constant(1e-6, "fixed")


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
    return Autoregressive(kernels, options.rho, options.rho_bounds, options.rho_prior)


@dataclass(frozen=True)
class Structure:
    """What is decided before hyper-parameters are tuned."""

    features: type[FeatureMap]
    form: str
    link: str = "linked"
    columns: tuple[int, ...] = ()
    #: The levels that each margin of the boosted mean is of.
    boosted: tuple[int, ...] = ()

    def __str__(self) -> str:
        words = [f"features {self.features.words}", FORMS[self.form], LINKS[self.link]]
        if n := len(self.columns):
            words.insert(2, f"{n} column{'s' * (n > 1)} singled out")
        if self.boosted:
            words.insert(0, BOOSTED)
        return ", ".join(filter(None, words))

    def log_prior(self, n_columns: int) -> float:
        """Log prior probability, up to a constant: all choices of so many columns are alike."""
        return -float(np.log(comb(n_columns, len(self.columns))))

    def kernel(self, features: FeatureMap, n_columns: int, ard: bool = False) -> Kernel:
        """The kernel of a latent process over points of the feature map, without margins.

        With ``ard`` columns have length-scales of their own, as they always have if "soft".
        """
        ard = ard or self.form == "soft"
        kernel = self._part(features, range(n_columns), n_columns, ard)
        if self.columns:
            kernel = self._part(features, self.columns, n_columns, ard) + kernel
        if self.form == "linear":
            columns = tuple(range(n_columns)) if self.boosted else None
            kernel = kernel + Linear(np.sqrt(n_columns), columns=columns)
        return kernel + Intercept()

    def _part(
        self, features: FeatureMap, chosen: Sequence[int], n_columns: int, ard: bool
    ) -> Kernel:
        """A scaled kernel of some columns, with values that are typical for so many."""
        scale = Constant(np.exp(1.5), AMPLITUDES)
        everything = None if not self.boosted else tuple(range(n_columns))
        if self.form == "additive":
            return scale * Additive(2.0, columns=everything)
        n, cut = len(chosen), first_code(features, n_columns)
        codes = tuple(c for c in chosen if c >= cut)
        numbers = everything if n == cut == n_columns else tuple(c for c in chosen if c < cut)
        kernel: Kernel = scale
        if numbers is None or numbers:
            steps = self.form == "steps"
            of_numbers = Laplacian(float(n)) if steps else RBF(np.sqrt(n))
            kernel = kernel * replace(of_numbers, columns=numbers, ard=ard)
        return kernel * Categorical(float(n), columns=codes, ard=ard) if codes else kernel

    def prior(
        self, features: FeatureMap, n_columns: int, options: Options, ard: bool = False
    ) -> Prior:
        """The prior with typical hyper-parameters; ``ard`` as for `kernel`.

        Points have ``n_columns`` columns, and the margins after them.
        """
        kernel = self.kernel(features, n_columns, ard).for_features(n_columns)
        return self.linked(kernel, n_columns, options)

    def linked(self, kernel: Kernel, n_columns: int, options: Options) -> Prior:
        """The prior in which a kernel is that of each latent process which the link leaves."""
        n = options.n_levels
        kernels = tuple(
            self._with_margins(kernel, levels, n_columns) for levels in self._margins_of(options)
        )
        kernel = kernels[0]
        general = make_prior(replace(options, kernels=kernels), n_columns + len(self.boosted))
        if self.link == "linked" or not isinstance(general, Autoregressive):
            return general
        if self.link == "apart":
            return replace(general, rho=(0.0,) * (n - 1), rho_bounds="fixed")
        if self.link == "deviating":
            return Deviating(general.kernels, general.rho, general.rho_bounds)
        kernels = (kernel,) + (ABSENT,) * (n - 1)
        if self.link == "flips":
            return replace(general, kernels=kernels, rho=(1.0,) * (n - 1), rho_bounds="fixed")
        # One function, of which noisy labels show less: rho is the ratio of the amplitudes.
        return replace(general, kernels=kernels, rho_prior=(2.0, 1.5))

    def _margins_of(self, options: Options) -> list[tuple[int, ...]]:
        """The levels whose margins each latent process is linear in."""
        if options.coupling != "autoregressive":
            return [self.boosted] * options.n_levels
        if self.link in ("linked", "apart"):
            return [(t,) if t in self.boosted else () for t in range(options.n_levels)]
        return [self.boosted] + [()] * (options.n_levels - 1)

    def _with_margins(self, kernel: Kernel, levels: Sequence[int], n_columns: int) -> Kernel:
        """The kernel of a function that is linear in the margins of these levels besides."""
        columns = tuple(n_columns + self.boosted.index(t) for t in levels)
        return kernel + Linear(SLOPE, "fixed", columns=columns) if columns else kernel

    def n_columns(self, points: Array) -> int:
        """Columns of points of the structure, without margins."""
        return points.shape[1] - len(self.boosted)

    def target(self, target: Target) -> Target:
        """What labels mean if the link is such that they may be flipped."""
        if self.link != "flips":
            return target
        return replace(target, label_noise="fidelity", knows_truth=True)


#: The first one is tuned from several starts, the others from where it or a simpler one ended.
STRUCTURES = (
    Structure(Standardised, "isotropic"),
    Structure(Standardised, "soft"),
    Structure(Standardised, "linear"),
    Structure(Ranked, "isotropic"),
    Structure(Ranked, "steps"),
    Structure(Ranked, "additive"),
    Structure(SharedUnit, "isotropic"),
    Structure(UnitRows, "isotropic"),
    Structure(UnitRows, "linear"),
    Structure(Coded, "isotropic"),
)


def candidates(rows: Rows, standardize: bool) -> dict[Structure, FeatureMap]:
    """The structures that make sense for these rows, with their feature maps."""
    forms, d = set(FORMS), rows.x.shape[1]
    if d == 1 or d > N_COLUMNS:  # of one column they are "isotropic" and "steps"
        forms -= {"soft", "additive"}
    if not standardize:
        return {Structure(AsGiven, form): AsGiven() for form in FORMS if form in forms}
    made = {kind: kind.of(rows.x, rows.weight) for kind in {s.features for s in STRUCTURES}}
    maps = {kind: features for kind, features in made.items() if features is not None}
    points = {kind: _direction(features(rows.x)) for kind, features in maps.items()}
    chosen: dict[Structure, FeatureMap] = {}
    for structure in STRUCTURES:
        if structure.features not in maps or structure.form not in forms:
            continue
        # Categories that are columns of indicators have no length-scales of their own.
        if structure == Structure(Standardised, "soft") and Coded in maps:
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
    simple = replace(structure, form="isotropic")
    return simple if structure.form in ("soft", "linear") and simple in others else None


def first_code(features: FeatureMap, n_columns: int) -> int:
    """The first column of a map's points that holds codes of categories; the others follow it."""
    return features.n_numeric if isinstance(features, Coded) else n_columns


def splittable(structures: Iterable[Structure]) -> list[Structure]:
    """Those that may single out columns; all of them number the columns alike."""
    maps = {s.features for s in structures}
    by_column = {Coded} if Coded in maps else {AsGiven, Standardised, Ranked}
    return [s for s in structures if s.features in by_column and s.form in ("isotropic", "steps")]


def other_links(options: Options, rows: Rows) -> list[str]:
    """The links that may take the place of the general one, if there is one to speak of."""
    bounds = options.rho_bounds
    if options.coupling != "autoregressive" or isinstance(bounds, str):
        return []
    if len(np.unique(rows.level)) < 2:
        return []
    low, high = bounds
    excluded = set()
    if not low <= 0.0 <= high:
        excluded.add("apart")
    # Numbers do not flip, and no class is the same as a number. With deviations of their own they
    # would be sums of two functions: that fits many numbers better whatever it does to few labels.
    if options.numeric:
        excluded |= {"flips", "deviating", "same"}
    # Laplace has no labels that may be flipped, and EP no fractions of them.
    if options.inference == "laplace" or not low <= 1.0 <= high or (rows.weight < 1.0).any():
        excluded.add("flips")
    return [link for link in options.links if link not in excluded]
