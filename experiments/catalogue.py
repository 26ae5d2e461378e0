"""The experiments by name, and the cells that each consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from experiments import budget, mcmc, problems, sensitivity
from experiments.cells import Cell
from experiments.methods import RUNNERS, SplitCell
from experiments.problems import Problem, usable_seeds


def split_cells(sources: Sequence[Problem], runs: int | None = None) -> list[Cell]:
    """All methods on the splits of some problems: the first split of each problem first."""
    seeds = {s: usable_seeds([s], s.runs if runs is None else runs) for s in sources}
    return [
        SplitCell.of(source, method=method, mode=mode, seed=seeds[source][run])
        for run in range(max(map(len, seeds.values()), default=0))
        for source in sources
        for method, mode in RUNNERS
        if run < len(seeds[source]) and (source.column.group == "crowd" or mode != "answers")
    ]


def _group(
    make: Callable[..., Sequence[Problem]], data_home: str | None, runs: int | None, quick: bool
) -> list[Cell]:
    return split_cells(make(data_home, quick=quick), 1 if quick and runs is None else runs)


def _all_groups(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    return cells_of(GROUPS, data_home, runs=runs, quick=quick)


class Experiment(NamedTuple):
    """One experiment of the paper: its cells, and packages that it needs besides the usual ones.

    ``cells`` takes a data directory, a number of runs (None: its own), and whether to be quick.
    """

    cells: Callable[[str | None, int | None, bool], list[Cell]]
    needs: tuple[str, ...] = ()
    extra: str = "experiments"


GROUPS = ("artificial", "pmlb", "crowd")
EXPERIMENTS = {
    **{g: Experiment(partial(_group, getattr(problems, g)), ("xgboost",)) for g in GROUPS},
    "mcmc": Experiment(mcmc.cells, ("numpyro",), "experiments,mcmc"),
    "profiles": Experiment(_all_groups, ("xgboost",)),
    "budget": Experiment(budget.cells),
    "sensitivity": Experiment(sensitivity.cells),
}


def cells_of(
    names: Iterable[str],
    data_home: str | None = None,
    *,
    runs: int | None = None,
    quick: bool = False,
) -> list[Cell]:
    """The cells of some experiments, evenly spread, so that all of them progress alike."""
    names = set(names)
    if set(GROUPS) <= names:  # profiles consist of the same cells
        names -= {"profiles"}
    lists = [EXPERIMENTS[n].cells(data_home, runs, quick) for n in EXPERIMENTS if n in names]
    placed = [((i + 0.5) / len(cells), cell) for cells in lists for i, cell in enumerate(cells)]
    return [cell for _, cell in sorted(placed, key=lambda place: place[0])]
