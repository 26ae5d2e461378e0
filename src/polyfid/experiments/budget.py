"""How to share a budget: a few trusted rows, many cheap ones, or some of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyfid.experiments import problems
from polyfid.experiments.methods import METHODS
from polyfid.experiments.problems import MAX_DRAWS, Problem
from polyfid.experiments.run import Cell, Row, as_setting

TOTAL, TRUSTED_COST = 800, 8
COSTS = (1, 2, 4)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
NOISES = (0.0, 0.2, 0.3, 0.4)
SETS = range(1, 40, 5)


class Plan(NamedTuple):
    """How much of the experiment a method takes part in."""

    runs: int
    costs: tuple[int, ...] = COSTS


#: The default model takes several times as long as the paper's, so it runs on fewer splits.
PLANS = {"mfgpc": Plan(3), "polyfid": Plan(1)}
#: What is left when it is to be quick, on one set: the largest fits are those for little cost.
QUICK_PLANS, QUICK_NOISES = {"mfgpc": Plan(1, (2, 4))}, (0.2, 0.4)


def counts(share: float, cost: int) -> tuple[int, int]:
    """Numbers of cheap and of trusted rows for a share of the budget spent on trusted ones.

    Examples
    --------
    >>> from polyfid.experiments.budget import counts
    >>> counts(0.2, cost=1), counts(0.2, cost=4), counts(1.0, cost=4)
    ((640, 20), (160, 20), (0, 100))
    """
    return round(TOTAL * (1.0 - share) / cost), round(TOTAL * share / TRUSTED_COST)


@dataclass(frozen=True, kw_only=True)
class BudgetCell(Cell):
    """A method on the rows that a share of the budget buys; a single level at both ends.

    Examples
    --------
    >>> from polyfid.experiments.budget import BudgetCell
    >>> from polyfid.experiments.problems import Made
    >>> cell = BudgetCell.of(Made(number=1, noise=0.2), "mfgpc", seed=0, share=0.8, price=4)
    >>> cell.key.mode, cell.key.setting
    ('multi', '{"cost":4,"share":0.8}')
    """

    source: Problem
    share: float
    price: int

    @classmethod
    def of(cls, source: Problem, method: str, *, seed: int, share: float, price: int) -> BudgetCell:
        """The cell of a share and of the price of a cheap row.

        With trusted rows only neither noise nor price play a part, and the cell names neither.
        """
        where = {"share": share} if share == 1.0 else {"share": share, "cost": price}
        return cls(
            experiment="budget",
            column=source.column,
            problem=source.name,
            noise=None if share == 1.0 else source.noise,
            method=method,
            mode={0.0: "cheap", 1.0: "trusted"}.get(share, "multi"),
            seed=seed,
            setting=as_setting(**where),
            source=source,
            share=share,
            price=price,
        )

    @property
    def cost(self) -> float:
        n = sum(counts(self.share, self.price))
        return METHODS[self.method, "multi"].cost * (n / 300.0) ** 2

    def compute(self) -> list[Row]:
        split = self.source.split(self.seed, *counts(self.share, self.price))
        figures = METHODS[self.method, "multi"].run(split, self.seed)._asdict()
        proba = figures.pop("proba")
        sizes = {"n_trusted": len(split.y_trusted), "n_cheap": len(split.y_cheap)}
        return [self.scored(split.y_test, proba, **sizes, **figures)]


def common_seeds(sources: Sequence[Problem], runs: int) -> list[int]:
    """Seeds of splits that serve all noises, prices and shares of one set.

    A draw of fewer rows is the beginning of a draw of more with the same seed. So if the smallest
    numbers of cheap and trusted rows hold both classes, all others do, and lines in a figure
    differ in nothing but what they are about. Seeds follow `Problem.seeds`.

    Examples
    --------
    >>> from polyfid.experiments.budget import common_seeds
    >>> from polyfid.experiments.problems import Made
    >>> common_seeds([Made(number=1, noise=0.2)], runs=2)
    [0, 2]
    """
    inner = [counts(share, cost) for share in SHARES[1:-1] for cost in COSTS]
    n_cheap, n_trusted = (min(numbers) for numbers in zip(*inner, strict=True))
    found: list[int] = []
    for tried in range(MAX_DRAWS):
        if len(found) == runs:
            return found
        seed = len(found) + tried
        splits = [source.split(seed, n_cheap, n_trusted) for source in sources]
        parts = [part for s in splits for part in (s.y_cheap, s.y_trusted, s.y_test)]
        if all(len(np.unique(part)) == 2 for part in parts):
            found.append(seed)
    raise ValueError(
        f"sources must have both classes among {n_cheap} cheap and {n_trusted} trusted rows, and "
        f"{MAX_DRAWS} draws from {sources[0].name} gave {len(found)} such splits; leave it out"
    )


def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    """Cells of every method, set, noise, price and share: the first splits of all first.

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.budget import cells
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     found = cells(empty, None, quick=True)
    >>> len(found), {cell.problem for cell in found}
    (21, {'made_1'})
    """
    noises, plans = (QUICK_NOISES, QUICK_PLANS) if quick else (NOISES, PLANS)
    if runs is not None:
        plans = {name: plan._replace(runs=runs) for name, plan in plans.items()}
    found: list[tuple[int, Cell]] = []
    for sources in _sets(data_home, noises)[: 1 if quick else None]:
        seeds = common_seeds(sources, max(plan.runs for plan in plans.values()))
        for method, plan in plans.items():
            for run, seed in enumerate(seeds[: plan.runs]):
                found += [(run, cell) for cell in _cells(sources, method, seed, plan.costs)]
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def _cells(
    sources: Sequence[Problem], method: str, seed: int, costs: Sequence[int]
) -> list[BudgetCell]:
    """All that one method does on one split of a set."""
    every = [
        BudgetCell.of(source, method, seed=seed, share=share, price=price)
        for source in sources
        for price in costs
        for share in SHARES
    ]
    return list({cell.key: cell for cell in reversed(every)}.values())[::-1]


def _sets(data_home: str | None, noises: Sequence[float]) -> list[list[Problem]]:
    """Every fifth of the sets there are, each at all noises."""
    first = {p.name: p for p in problems.artificial(data_home) if getattr(p, "number", 0) in SETS}
    return [[replace(p, noise=noise) for noise in noises] for p in first.values()]
