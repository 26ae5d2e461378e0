"""How to divide a budget: a few trusted rows, many cheap ones, or some of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from experiments import problems
from experiments.cells import Cell, key_of
from experiments.methods import SplitCell
from experiments.problems import Problem, usable_seeds

TOTAL, TRUSTED_COST = 800, 8
COSTS = (1, 2, 4)  # of a cheap row
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the budget that is spent on trusted rows
NOISES = (0.0, 0.2, 0.3, 0.4)
SETS = range(1, 40, 5)


class Plan(NamedTuple):
    """How many splits of each set, and which costs, a method is run on."""

    runs: int
    costs: tuple[int, ...] = COSTS


#: The default model takes several times as long as the paper's, so it runs on fewer splits.
PLANS = {"mfgpc": Plan(3), "polyfid": Plan(1)}
#: For a quick run, on one set. A low cost means many rows and slow fits.
QUICK_PLANS, QUICK_NOISES = {"mfgpc": Plan(1, (2, 4))}, (0.2, 0.4)


def counts(share: float, cost: int) -> tuple[int, int]:
    """Numbers of cheap and of trusted rows for a share of the budget spent on trusted ones."""
    return round(TOTAL * (1.0 - share) / cost), round(TOTAL * share / TRUSTED_COST)


def budget_cell(source: Problem, method: str, seed: int, share: float, cost: int) -> SplitCell:
    """A method on the rows that the budget pays for; at both ends they have a single level.

    With trusted rows only, noise and cost make no difference, and the cell has neither.
    """
    n_cheap, n_trusted = counts(share, cost)
    return SplitCell.of(
        source,
        experiment="budget",
        method=method,
        mode={0.0: "cheap", 1.0: "trusted"}.get(share, "multi"),
        noise=None if share == 1.0 else source.column.noise,
        cost=None if share == 1.0 else cost,
        share=share,
        seed=seed,
        n_cheap=n_cheap,
        n_trusted=n_trusted,
    )


def common_seeds(sources: Sequence[Problem], runs: int) -> list[int]:
    """Seeds of splits that can be used for all noises, costs and shares of one set.

    A draw of fewer rows is the beginning of a draw of more rows with the same seed. So if the
    smallest numbers of cheap and trusted rows have both classes, all others do.
    """
    inner = [counts(share, cost) for share in SHARES[1:-1] for cost in COSTS]
    n_cheap, n_trusted = (min(numbers) for numbers in zip(*inner, strict=True))
    return usable_seeds(sources, runs, n_cheap, n_trusted)


def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    """Cells of every method, set, noise, cost and share; the first splits of all come first."""
    noises, plans = (QUICK_NOISES, QUICK_PLANS) if quick else (NOISES, PLANS)
    if runs is not None:
        plans = {name: plan._replace(runs=runs) for name, plan in plans.items()}
    available = problems.artificial_sets(data_home, noises)
    sets = [available[number] for number in SETS if number in available]
    most = max(plan.runs for plan in plans.values())
    seeds = [(some, common_seeds(some, most)) for some in sets[: 1 if quick else None]]
    made = [
        budget_cell(source, method, own[run], share, cost)
        for run in range(most)
        for sources, own in seeds
        for method, plan in plans.items()
        if run < plan.runs
        for source in sources
        for cost in plan.costs
        for share in SHARES
    ]
    return list({key_of(cell.row()): cell for cell in made}.values())
