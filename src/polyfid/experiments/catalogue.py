"""The experiments by name, and the cells that each consists of."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyfid.experiments import problems
from polyfid.experiments.methods import METHODS
from polyfid.experiments.problems import Problem
from polyfid.experiments.run import Cell, Row, interleave


@dataclass(frozen=True, kw_only=True)
class SplitCell(Cell):
    """One method on one split of a problem.

    Examples
    --------
    >>> from polyfid.experiments.catalogue import SplitCell
    >>> from polyfid.experiments.problems import Made
    >>> cell = SplitCell.of(Made(number=0, noise=0.2), "logit", "trusted", seed=0)
    >>> cell.key.problem, cell.compute()[0].n_cheap
    ('made_0', 225)
    """

    source: Problem

    @classmethod
    def of(cls, source: Problem, method: str, mode: str, seed: int) -> SplitCell:
        """The cell of a problem, a method and a seed."""
        return cls(
            experiment=source.experiment,
            column=source.column,
            problem=source.name,
            noise=source.noise,
            method=method,
            mode=mode,
            seed=seed,
            source=source,
        )

    @property
    def cost(self) -> float:
        return METHODS[self.method, self.mode].cost

    def compute(self) -> list[Row]:
        split = self.source.split(self.seed)
        outcome = METHODS[self.method, self.mode].run(split, self.seed)
        figures = outcome._asdict()
        proba = figures.pop("proba")
        sizes = {"n_trusted": len(split.y_trusted), "n_cheap": len(split.y_cheap)}
        return [self.scored(split.y_test, proba, **sizes, **figures)]


def split_cells(sources: Sequence[Problem], runs: int | None = None) -> list[Cell]:
    """All methods on the splits of some problems: the first split of each problem first."""
    seeds = [source.seeds(runs) for source in sources]
    cells: list[Cell] = []
    for run in range(max(map(len, seeds), default=0)):
        for source, its in zip(sources, seeds, strict=True):
            for method in METHODS.values():
                if run < len(its) and (source.experiment == "crowd" or not method.crowd_only):
                    cells.append(SplitCell.of(source, method.name, method.mode, its[run]))
    return cells


Lister = Callable[[str | None, int | None, bool], list[Cell]]


class Experiment(NamedTuple):
    """A part of the paper that can be run: what it shows, its cells, and what it imports."""

    name: str
    summary: str
    cells: Lister
    needs: tuple[str, ...] = ("pandas", "matplotlib")
    extra: str = "experiments"


def _group(make: Callable[..., list[Problem]]) -> Lister:
    def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
        return split_cells(make(data_home, quick=quick), 1 if quick and runs is None else runs)

    return cells


def _module(name: str) -> Lister:
    """Cells of an experiment with a module of its own, imported when it is asked for."""

    def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
        module: Any = importlib.import_module(f"polyfid.experiments.{name}")
        return list(module.cells(data_home, runs, quick))

    return cells


def _groups(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    return interleave([EXPERIMENTS[name].cells(data_home, runs, quick) for name in GROUPS])


GROUPS = ("artificial", "pmlb", "crowd")
BOOSTED = ("pandas", "matplotlib", "xgboost")

#: What can be reproduced, in the order of the page.
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("artificial", "sets drawn from the model", _group(problems.artificial), BOOSTED),
        Experiment("pmlb", "public sets, labels flipped", _group(problems.pmlb), BOOSTED),
        Experiment(
            "crowd", "songs and sentences, asked of a crowd", _group(problems.crowd), BOOSTED
        ),
        Experiment(
            "mcmc",
            "approximate inference against sampling",
            _module("mcmc"),
            ("pandas", "matplotlib", "numpyro"),
            "experiments,mcmc",
        ),
        Experiment("profiles", "share of tests above a threshold", _groups, BOOSTED),
        Experiment("budget", "how to share a budget between levels", _module("budget")),
        Experiment("sensitivity", "what each hyper-parameter does", _module("sensitivity")),
    )
}


def cells_of(
    names: Iterable[str],
    data_home: str | None = None,
    *,
    runs: int | None = None,
    quick: bool = False,
) -> list[Cell]:
    """The cells of some experiments, in an order in which all of them progress evenly.

    Parameters
    ----------
    names : iterable of str
        Of `EXPERIMENTS`.
    data_home : str, optional
        The directory with data sets; see `polyfid.datasets`.
    runs : int, optional
        Splits a problem, instead of each experiment's own number.
    quick : bool, default=False
        A small selection that touches every table and figure.

    Returns
    -------
    list of Cell

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.catalogue import cells_of
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     cells = cells_of(["artificial"], empty, quick=True)
    >>> cells[0].key.problem, {cell.seed for cell in cells}
    ('made_0', {0})
    """
    wanted = list(dict.fromkeys(names))
    if set(GROUPS) <= set(wanted):  # profiles consist of their cells
        wanted = [name for name in wanted if name != "profiles"]
    return interleave([EXPERIMENTS[name].cells(data_home, runs, quick) for name in wanted])
