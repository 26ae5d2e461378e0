"""What happened in a fit, in words and figures: the printable report of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.estimator.inputs import FitInfo
from polyfid.kernels import Kernel
from polyfid.learning.fit import GIVEN
from polyfid.learning.mixture import BinaryFit, Mixture
from polyfid.model.likelihoods import NoisyLogit
from polyfid.model.prior import Prior
from polyfid.rows.survey import Levels

_INFERENCE = {"laplace": "Laplace", "ep": "expectation propagation", "variational": "variational"}


@dataclass(frozen=True)
class LearntStructure:
    """A structure among those that were averaged, with its share ``weight`` in the average.

    ``log_evidence`` has the hyper-parameters integrated out (NaN for a structure that was given),
    ``log_marginal_likelihood`` is that of the tuned ones.
    """

    name: str
    weight: float
    log_evidence: float
    log_marginal_likelihood: float
    rho: tuple[float, ...]
    kernels: tuple[Kernel, ...]

    @classmethod
    def of(cls, mixture: Mixture) -> list[LearntStructure]:
        """Those of a mixture, heaviest first."""
        structures = []
        for m in mixture.members:
            prior = m.fit.prior
            evidence = m.log_evidence, m.fit.log_evidence
            rho = tuple(getattr(prior, "rho", ()))
            structures.append(cls(m.name, m.weight, *evidence, rho, prior.kernels))
        return structures


@dataclass(frozen=True)
class FitReport:
    """What happened in a fit; ``print`` it, or let a notebook show it.

    ``counts`` (n_levels, n_classes) are rows; ``problems`` say what did not converge, of any
    structure that was averaged; ``notes`` say what was unusual; ``lines`` are headings and texts.
    """

    counts: NDArray[np.intp]
    converged: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, info: FitInfo, mixtures: Sequence[Mixture]) -> FitReport:
        """The report of a fit, with one mixture for two classes or one per class."""
        levels = info.levels
        names = None if info.feature_names is None else info.feature_names.tolist()
        counts = _levels(info.counts, levels, info.classes)
        lines = [("levels" if len(levels) > 1 else "data", counts)]
        problems: list[str] = []
        for k, mixture in enumerate(mixtures):
            who = "" if len(mixtures) == 1 else f"class {info.classes[k]}: "
            fit = mixture.best.fit
            own = _structures(mixture) + _describe(fit, levels, names)
            own.append(("inference", f"{_INFERENCE[fit.scheme]}, {fit.inference}"))
            lines += [(who + head, text) for head, text in own]
            problems += [who + p for p in _problems(mixture)]
        if info.plan:
            lines.append(("size", info.plan))
        lines += [("note", n) for n in info.notes]
        lines += [("warning", p) for p in problems]
        return cls(info.counts, not problems, tuple(problems), info.notes, tuple(lines))

    def __str__(self) -> str:
        width = max(len(head) for head, _ in self.lines) + 2
        out = []
        for head, text in self.lines:
            first, *rest = text.split("\n")
            out.append(f"{head:<{width}}{first}")
            out += [" " * width + line for line in rest]
        return "\n".join(out)

    def to_html(self) -> str:
        """The report as a table for notebooks; everything from the data is escaped."""
        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{escape(head)}</th>"
            f"<td style='text-align:left'>{escape(text).replace(chr(10), '<br>')}</td></tr>"
            for head, text in self.lines
        )
        return f"<table class='polyfid-report'>{rows}</table>"

    _repr_html_ = to_html


def _levels(counts: NDArray[np.intp], levels: Levels, classes: NDArray[Any]) -> str:
    def one(row: NDArray[np.intp]) -> str:
        shown = ", ".join(f"{c}: {n}" for c, n in zip(classes, row, strict=True))
        return f"{row.sum()} row{'s' * int(row.sum() != 1)} ({shown})"

    if len(levels) == 1:
        return one(counts[0])
    lines = [f"{name}: {one(row)}" for name, row in zip(levels, counts, strict=True)]
    return "\n".join([*lines, "(least trusted first)"])


def _structures(mixture: Mixture) -> list[tuple[str, str]]:
    best = mixture.best
    if best.name == GIVEN:
        return []
    shares = [f"{m.weight:4.0%}  {m.name}" for m in mixture.members]
    sparse = "(with inducing points only the leading one is kept)"
    remark = "(what follows is of the first)" if best.fit.sparse is None else sparse
    return [("structures", "\n".join([*shares, remark]))]


def _describe(
    fit: BinaryFit, levels: Levels, feature_names: Sequence[str] | None
) -> list[tuple[str, str]]:
    lines = []
    prior = fit.prior
    rho = getattr(prior, "rho", None)
    if rho is None:
        rows = (", ".join(f"{a:+.2f}" for a in row) for row in prior.loadings)
        mixed = [f"{name}: {row}" for name, row in zip(levels, rows, strict=True)]
        lines.append(("loadings", "\n".join(mixed)))
    elif len(rho):
        steps = [
            f"{levels[t + 1]} = {r:+.3f} × {levels[t]} + correction; correlation of the two "
            f"{_correlation(fit, t):+.2f}"
            for t, r in enumerate(rho)
        ]
        lines.append(("rho", "\n".join(steps)))
    kernels = [kernel.describe(feature_names) for kernel in prior.kernels]
    if len(levels) == len(kernels) == 1:
        lines.append(("kernel", kernels[0]))
    else:
        processes = zip(_processes(prior, levels), kernels, strict=True)
        lines.append(("kernels", "\n".join(f"{name}: {kernel}" for name, kernel in processes)))
    if isinstance(fit.likelihood, NoisyLogit):
        lines.append(("label noise", _noise(fit.likelihood, levels)))
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
    if not hasattr(prior, "rho"):
        return list(prior.process_names)
    roles = [levels[0], *(f"correction of {name}" for name in levels[1:])]
    return [f"{name} ({role})" for name, role in zip(prior.process_names, roles, strict=True)]


def _correlation(fit: BinaryFit, t: int) -> float:
    """Prior correlation of f_t and f_{t+1} at a typical training point."""
    prior, x = fit.prior, fit.posterior.points.x
    variances = np.array([k.diagonal(x).mean() for k in prior.kernels])
    below, above = prior.loadings[t], prior.loadings[t + 1]
    joint = (below * above) @ variances
    return float(joint / np.sqrt(((below**2) @ variances) * ((above**2) @ variances)))


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
            f"tuning stopped early{_share(short, fits)} ({short[0].best.message}); raise max_iter "
            "or n_restarts"
        )
    return problems


def _share(some: Sequence[Any], fits: Sequence[BinaryFit]) -> str:
    return "" if len(fits) == 1 else f" for {len(some)} of {len(fits)} structures"
