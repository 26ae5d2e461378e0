"""What each hyper-parameter does to a tuned model; only the posterior is computed again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyfid import MultiFidelityClassifier
from polyfid.experiments import problems
from polyfid.experiments.methods import RESTARTS
from polyfid.experiments.problems import Problem, Split
from polyfid.experiments.run import Cell, Row, as_setting
from polyfid.kernels import RBF, Constant, Kernel

#: Low and high noise, both of one set with five features if there is one.
NOISES = (0.2, 0.4)
COLUMN = "5D"

# Every second rho and log-scale and every third length-scale when it is to be quick: a subset, so
# that rows of a quick run are also rows of a full one.
RHOS = np.linspace(-2.0, 2.0, 81)
LOG_SCALES = np.linspace(-3.0, 3.0, 7)
LENGTH_SCALES = np.geomspace(0.1, 10.0, 25)


class Hyper(NamedTuple):
    """Hyper-parameters of the paper's model: k(x, z) = exp(s) exp(-|x - z|^2 / (2 sigma^2)).

    Examples
    --------
    >>> from polyfid.experiments.sensitivity import Hyper
    >>> Hyper(0.5, 0.0, 1.0, -2.0, 3.0).kernels[0]
    Constant(value=1) * RBF(length_scale=1)
    """

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


class Place(NamedTuple):
    """A point of a grid: the panel it is in, its coordinates there, all hyper-parameters."""

    panel: str
    at: dict[str, float]
    hyper: Hyper


def places(fitted: Hyper, quick: bool = False) -> Iterator[Place]:
    """The fitted point, then rho alone, then each kernel's pair with the rest as fitted.

    Examples
    --------
    >>> from polyfid.experiments.sensitivity import Hyper, places
    >>> grid = list(places(Hyper(0.5, 0.0, 1.0, -2.0, 3.0), quick=True))
    >>> grid[0].panel, grid[1].at, grid[1].hyper.length_scale_delta
    ('fitted', {'rho': -2.0}, 3.0)
    """
    two, three = (2, 3) if quick else (1, 1)
    yield Place("fitted", fitted._asdict(), fitted)
    for rho in RHOS[::two].tolist():
        yield Place("rho", {"rho": rho}, fitted._replace(rho=rho))
    for panel in ("low", "delta"):
        for s in LOG_SCALES[::two].tolist():
            for sigma in LENGTH_SCALES[::three].tolist():
                pair = {f"log_scale_{panel}": s, f"length_scale_{panel}": sigma}
                at = {"log_scale": s, "length_scale": sigma}
                yield Place(panel, at, fitted._replace(**pair))


@dataclass(frozen=True, kw_only=True)
class SensitivityCell(Cell):
    """A tuned model and all points of the grids around it, a row each."""

    source: Problem
    quick: bool = False

    @property
    def n_rows(self) -> int:
        return sum(1 for _ in places(Hyper(*np.ones(5)), self.quick))

    @property
    def cost(self) -> float:
        return 0.06 * self.n_rows

    def compute(self) -> list[Row]:
        split = self.source.split(self.seed)
        tuned = MultiFidelityClassifier.paper(n_restarts=RESTARTS, random_state=self.seed).fit(
            split.X, split.y, fidelity=split.fidelity
        )
        return [self._row(place, split) for place in places(Hyper.of(tuned), self.quick)]

    def _row(self, place: Place, split: Split) -> Row:
        started = time.process_time()
        model = MultiFidelityClassifier(
            place.hyper.kernels, rho=place.hyper.rho, prior=None, optimizer=None
        ).fit(split.X, split.y, fidelity=split.fidelity)
        fitted = time.process_time()
        proba = model.predict_proba(split.X_test)[:, 1]
        at = {name: float(f"{value:.6g}") for name, value in place.at.items()}
        return self.scored(
            split.y_test,
            proba,
            setting=as_setting(panel=place.panel, **at),
            n_trusted=len(split.y_trusted),
            n_cheap=len(split.y_cheap),
            fit_seconds=fitted - started,
            predict_seconds=time.process_time() - fitted,
            rho=place.hyper.rho,
            evidence=model.log_marginal_likelihood_value_,
            converged=model.converged_,
        )


def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    """A cell for low and one for high noise, on the first split of one artificial set.

    Two pictures show one model each, whatever ``runs``.

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.sensitivity import cells
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     [(cell.problem, cell.noise) for cell in cells(empty, None, False)]
    [('made_10', 0.2), ('made_10', 0.4)]
    """
    del runs
    found = problems.artificial(data_home)
    name = next((s.name for s in found if s.column == COLUMN), found[0].name)
    return [
        SensitivityCell(
            experiment="sensitivity",
            column=source.column,
            problem=source.name,
            method="mfgpc",
            mode="multi",
            noise=source.noise,
            seed=source.seeds(1)[0],
            source=source,
            quick=quick,
        )
        for source in found
        if source.name == name and source.noise in NOISES
    ]
