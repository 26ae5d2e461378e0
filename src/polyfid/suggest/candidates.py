"""What is offered, for which money: pairs of a row and a level that have no label yet."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.constraints import read_whole
from polyfid.estimator.inputs import hash_pairs
from polyfid.values import to_python

#: What a cheap label promises counts for less while there are few trusted rows, by the factor
#: 1 + CAUTION / (number of trusted rows): it holds only if levels are linked as they seem to be.
CAUTION = 60.0


@dataclass(frozen=True)
class Candidates:
    """Pairs of a row and a level, sorted by level; ``random`` ones are a random sample of all."""

    row: Indices
    level: Indices
    random: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: Indices) -> Candidates:
        """Some of them."""
        return Candidates(self.row[chosen], self.level[chosen], self.random[chosen])

    def by_level(self) -> list[Indices]:
        """Places of the candidates of each level."""
        return [np.flatnonzero(self.level == t) for t in np.unique(self.level)]

    def cost(self, offer: Mapping[int, float]) -> Array:
        """What each costs, by the prices of the levels."""
        return np.array([offer[t] for t in self.level.tolist()])


def read_costs(model: MultiFidelityClassifier, costs: Any) -> dict[int, float]:
    """Costs by number of the level."""
    if not isinstance(costs, Mapping) or not costs:
        raise ValueError(
            f"costs must be a dictionary of prices by level, such as {{{model.levels_[-1]!r}: 8}}; "
            f"got {costs!r}"
        )
    names = {to_python(name): t for t, name in enumerate(model.levels_)}
    offer = {}
    for name, cost in costs.items():
        if to_python(name) not in names:
            raise ValueError(
                f"costs name the level {name!r}, and the model's levels are {list(model.levels_)}"
            )
        if not is_positive(cost):
            raise ValueError(f"the cost of {name!r} must be a number above 0, got {cost!r}")
        offer[names[to_python(name)]] = float(cost)
    return dict(sorted(offer.items()))


def caution(model: MultiFidelityClassifier) -> float:
    """The factor by which what cheap labels promise counts for less; see `CAUTION`."""
    return 1.0 + CAUTION / max(int(model._fitted.info.counts[-1].sum()), 1)


def cautious(model: MultiFidelityClassifier, cost: Array, level: Indices) -> Array:
    """Costs by which candidates are compared: those of cheap levels are raised, see `CAUTION`."""
    is_cheap = level < len(model.levels_) - 1
    return np.asarray(cost * np.where(is_cheap, caution(model), 1.0))


def is_positive(value: Any) -> bool:
    """Whether a value is a finite number above 0."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and 0.0 < float(value) < np.inf


def read_limits(budget: Any, n: Any, least: float) -> tuple[float, int]:
    """Money, and how many labels it buys at most."""
    if budget is None and n is None:
        raise ValueError("give budget=, the money to spend, or n=, the number of labels, or both")
    if budget is not None and not is_positive(budget):
        raise ValueError(f"budget must be a number above 0, got {budget!r}")
    if budget is not None and budget < least * (1.0 - 1e-9):
        raise ValueError(f"budget={budget:g} buys no label: the cheapest one costs {least:g}")
    most = sys.maxsize if n is None else read_whole("n", n, 1)
    if budget is None:
        return np.inf, most
    return float(budget), min(most, int(budget / least * (1.0 + 1e-9)))


def offered(
    model: MultiFidelityClassifier, x: Array, offer: Mapping[int, float], repeat: bool
) -> Candidates:
    """All rows at all levels that have a cost, without those that are labelled already."""
    labelled = model._fitted.info.labelled
    rows, levels = [], []
    for t in offer:
        level = np.full(len(x), t, dtype=np.intp)
        free = np.ones(len(x), dtype=bool)
        if labelled is not None and not repeat:
            free = ~np.isin(hash_pairs(x, level), labelled)
        rows.append(np.flatnonzero(free))
        levels.append(level[free])
    row = np.concatenate(rows)
    if not len(row):
        names = [model.levels_[t] for t in offer]
        raise ValueError(
            f"pool has no row without a label at the levels {names}; add rows, or pass repeat=True "
            "to label rows again"
        )
    return Candidates(row, np.concatenate(levels), np.ones(len(row), dtype=bool))
