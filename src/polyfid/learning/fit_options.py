"""What to fit: the estimator's parameters as one value, and the likelihood of one class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyfid.kernels import Kernel, Pairs
from polyfid.model.likelihoods import Likelihood, Logit, NoisyLogit
from polyfid.rows import Rows


@dataclass(frozen=True)
class Options:
    """The estimator's parameters, checked, for so many levels and classes; see its docstring.

    ``kernels`` is None to learn the structure; ``may_choose`` says that the scheme was left open;
    ``n_tuning`` may be per level. Fields without repr do not count for `is_like`.
    """

    n_levels: int
    n_classes: int
    kernels: tuple[Kernel, ...] | None = None
    rho: tuple[float, ...] = ()
    rho_bounds: tuple[float, float] | str = (-10.0, 10.0)
    coupling: str = "autoregressive"
    inference: str = "ep"
    may_choose: bool = True
    weak_prior: bool = True
    optimise: bool = True
    standardize: bool = True
    refine_inducing: bool = True
    label_noise: str | tuple[float, ...] | None = None
    n_inducing: Literal["auto"] | int | tuple[int, ...] | None = "auto"
    n_tuning: Literal["auto"] | int | tuple[int | None, ...] | None = field(
        default="auto", repr=False
    )
    n_restarts: int = field(default=0, repr=False)
    max_iter: int = field(default=200, repr=False)
    tol: float = field(default=1e-5, repr=False)
    n_jobs: int | None = field(default=None, repr=False)

    def is_like(self, other: Options) -> bool:
        """Whether a fit with these options may go on from one with the others."""
        return repr(self) == repr(other)  # kernels may hold arrays, which have no one truth value

    @property
    def targets(self) -> Sequence[int]:
        """The classes that get a model: the second of two, or each against the rest."""
        return (1,) if self.n_classes == 2 else range(self.n_classes)

    @property
    def learns_structure(self) -> bool:
        """Whether structures are compared, which takes a hyper-prior and labels fit for Laplace."""
        given = self.kernels is not None or self.label_noise is not None
        return self.optimise and self.weak_prior and not given

    @property
    def support(self) -> NDArray[np.bool_]:
        """Which levels depend on which latent processes, (n_levels, n_processes)."""
        n_processes = self.n_levels if self.kernels is None else len(self.kernels)
        if self.coupling == "coregional":
            return np.ones((self.n_levels, n_processes), dtype=bool)
        return np.tri(self.n_levels, n_processes, dtype=bool)

    def tuning_size(self, default: int) -> int | tuple[int, ...] | None:
        """Rows to tune on at most, in all or per level; None: all."""
        if self.n_tuning == "auto":
            return default
        if isinstance(self.n_tuning, tuple):
            return tuple(default if n is None else n for n in self.n_tuning)
        return self.n_tuning

    def tells_rows_apart(self, x: NDArray[np.float64]) -> bool:
        """Whether a kernel gives repeats of a point latent values of their own, as noise does."""
        point = x[:1]
        same, other = Pairs(point, point, 0), Pairs(point, point)
        kernels = [k.for_features(x.shape[1]) for k in self.kernels or ()]
        return any(not np.array_equal(k.evaluate(same), k.evaluate(other)) for k in kernels)

    def suited_to(self, rows: Rows) -> Options:
        """The options with a scheme for fractions of noisy labels: EP has no moments of them."""
        fractions = self.label_noise is not None and bool((rows.weight < 1.0).any())
        return replace(self, inference="variational") if fractions and self.may_choose else self


@dataclass(frozen=True)
class Target:
    """From rows to their likelihood under a model of one class; annotators' rates may be free."""

    positive: int
    n_levels: int
    n_classes: int
    label_noise: str | tuple[float, ...] | None
    free: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, options: Options, rows: Rows, positive: int) -> Target:
        """The target of a class; all annotators must be among the rows."""
        free = None
        if options.label_noise == "annotator":
            if rows.annotator.min() < 0:
                raise ValueError(
                    'label_noise="annotator" needs to know who gave each label; '
                    "pass fit(..., annotator=...)"
                )
            untrusted = (rows.level < options.n_levels - 1) | (options.n_levels == 1)
            free = np.isin(np.arange(rows.annotator.max() + 1), rows.annotator[untrusted])
        return cls(positive, options.n_levels, options.n_classes, options.label_noise, free)

    def __call__(self, rows: Rows) -> Likelihood:
        y = np.where(rows.y == self.positive, 1.0, -1.0)
        if self.label_noise is None:
            return Logit(y, rows.weight)
        if self.label_noise == "fidelity":
            learnt = np.append(np.full(self.n_levels - 1, 0.2), 0.0)
            return NoisyLogit.from_flip_rates(y, rows.weight, rows.level, learnt, learnt > 0.0)
        if self.free is not None:
            # Rows of the top level form a group of their own that never errs.
            trusted = (rows.level == self.n_levels - 1) & (self.n_levels > 1)
            group = np.where(trusted, len(self.free), rows.annotator)
            rates = np.append(np.full(len(self.free), 0.8), 1.0)
            free = np.append(self.free, False)
            return NoisyLogit(y, rows.weight, group, rates, rates.copy(), free)
        flips = np.array(self.label_noise, dtype=float)
        if self.n_classes == 2:
            return NoisyLogit.from_flip_rates(y, rows.weight, rows.level, flips)
        # A label that is flipped turns into each of the other classes with the same probability.
        specificity = 1.0 - flips / (self.n_classes - 1)
        fixed = np.zeros(len(flips), dtype=bool)
        return NoisyLogit(y, rows.weight, rows.level, 1.0 - flips, specificity, fixed)
