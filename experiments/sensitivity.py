"""How the ROC AUC depends on each hyper-parameter of a tuned model; nothing is tuned again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from experiments import problems
from experiments.cells import Cell, Row, scores
from experiments.methods import SplitCell, paper_model
from experiments.problems import usable_seeds
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Constant, Kernel

COLUMN = "5D"  # the first set with five features is used, at low and at high noise

RHOS = np.linspace(-2.0, 2.0, 81)
LOG_SCALES = np.linspace(-3.0, 3.0, 7)
LENGTH_SCALES = np.geomspace(0.1, 10.0, 25)


class Hyper(NamedTuple):
    """Hyper-parameters of the paper's model: k(x, z) = exp(s) exp(-|x - z|^2 / (2 sigma^2))."""

    rho: float
    log_scale_low: float
    length_scale_low: float
    log_scale_delta: float
    length_scale_delta: float

    @classmethod
    def of(cls, model: MultiFidelityClassifier) -> Hyper:
        """Those of a fitted model with scaled isotropic kernels."""
        kernels: Any = model.kernels_
        (s_l, sigma_l), (s_d, sigma_d) = (kernel.theta for kernel in kernels)
        values = (model.rho_[0], s_l, np.exp(sigma_l), s_d, np.exp(sigma_d))
        return cls(*map(float, values))

    @property
    def kernels(self) -> list[Kernel]:
        """Kernels of the cheap level and of the correction."""
        return [
            Constant(np.exp(self.log_scale_low)) * RBF(self.length_scale_low),
            Constant(np.exp(self.log_scale_delta)) * RBF(self.length_scale_delta),
        ]


def grid(fitted: Hyper) -> Iterator[tuple[Row, Hyper]]:
    """Points that vary rho alone, then each kernel's pair; the rest stays as fitted.

    A point is its panel with its coordinates there, and all hyper-parameters.
    """
    for rho in RHOS.tolist():
        yield {"panel": "rho", "rho": rho}, fitted._replace(rho=rho)
    for panel in ("low", "delta"):
        for s in LOG_SCALES.tolist():
            for sigma in LENGTH_SCALES.tolist():
                pair = {f"log_scale_{panel}": s, f"length_scale_{panel}": sigma}
                at = {"panel": panel, "log_scale": s, "length_scale": sigma}
                yield at, fitted._replace(**pair)


@dataclass(frozen=True, kw_only=True)
class SensitivityCell(SplitCell):
    """A tuned model, and the ROC AUC at all points of the grids around it."""

    def compute(self) -> Row:
        """The figures of the tuned model, its hyper-parameters, and the ``points`` of the grids."""
        split = self.split
        rows = split.X, split.y, split.fidelity
        tuned = paper_model(self.seed).fit(*rows)
        fitted = Hyper.of(tuned)
        points = []
        for at, hyper in grid(fitted):
            model = MultiFidelityClassifier(
                hyper.kernels, rho=hyper.rho, prior=None, optimizer=None
            ).fit(*rows)
            auc = scores(split.y_test, model.predict_proba(split.X_test)[:, 1])["roc_auc"]
            points.append({**at, "roc_auc": auc})
        return {
            **scores(split.y_test, tuned.predict_proba(split.X_test)[:, 1]),
            **split.sizes,
            "evidence": tuned.log_marginal_likelihood_value_,
            "converged": tuned.converged_,
            "fitted": fitted._asdict(),
            "points": points,
        }


def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    """One cell for low and one for high noise, on the first split of one artificial set.

    Each is one figure of one model, whatever ``runs`` and ``quick``.
    """
    del runs, quick
    sets = problems.artificial(data_home)
    name = next((s.name for s in sets if s.column.name == COLUMN), sets[0].name)
    about = {"experiment": "sensitivity", "method": "mfgpc", "mode": "multi"}
    return [
        SensitivityCell.of(source, **about, seed=usable_seeds([source], 1)[0])
        for source in sets
        if source.name == name
    ]
