from itertools import product

import numpy as np
import pytest

from experiments import budget, problems
from experiments.budget import budget_cell, common_seeds, counts
from experiments.cells import key_of
from experiments.paper import Column
from experiments.problems import Labelled, Problem, artificial_set


def rare_rows(rarity, noise, data_home):
    """One row in ``rarity`` is positive; the noise shifts which."""
    i = np.arange(5000)
    true, cheap = ((i + shift) % int(rarity) == 0 for shift in (0, round(10 * noise)))
    return Labelled(i[:, None].astype(float), *(y.astype(int) for y in (cheap, true, true)))


@pytest.mark.parametrize(("share", "cost"), [*product(budget.SHARES, budget.COSTS)])
def test_the_budget_is_spent(share, cost):
    n_cheap, n_trusted = counts(share, cost)
    assert n_cheap * cost + n_trusted * budget.TRUSTED_COST == budget.TOTAL


def test_seeds_serve_every_noise_cost_and_share(monkeypatch):
    monkeypatch.setattr(problems, "load", rare_rows)
    sources = [Problem(Column("artificial", "1D", noise), "16") for noise in budget.NOISES]
    seeds = common_seeds(sources, 3)
    assert len(seeds) == 3
    assert seeds != [0, 2, 4]  # some draws had to be refused
    for seed, source, share, cost in product(seeds, sources, budget.SHARES, budget.COSTS):
        split = source.split(seed, *counts(share, cost))
        for labels in (split.level(0)[1], split.level(1)[1], split.y_test):
            assert len(labels) == 0 or len(np.unique(labels)) == 2
    monkeypatch.setattr(problems, "MAX_DRAWS", 5)
    with pytest.raises(ValueError, match="both classes among 40 cheap, 20 trusted"):
        common_seeds([Problem(Column("artificial", "1D", 0.2), "5000")], 1)


def test_cells_of_all_coordinates_and_none_twice(tmp_path):
    cells = budget.cells(str(tmp_path), None, False)
    assert len({key_of(cell.row()) for cell in cells}) == len(cells)
    first = [c for c in cells if (c.problem, c.method) == ("made_1", "mfgpc") and c.seed == 0]
    modes = [cell.mode for cell in first]
    assert [modes.count(mode) for mode in ("cheap", "multi", "trusted")] == [12, 48, 1]
    (alone,) = [cell for cell in first if cell.mode == "trusted"]
    assert (alone.noise, alone.cost, alone.share) == (None, None, 1.0)
    assert {cell.problem for cell in cells} == {"made_1", "made_11", "made_21", "made_31"}
    seeds = [cell.seed for cell in cells if cell.problem == "made_1"]
    assert seeds == sorted(seeds)
    for method, plan in budget.PLANS.items():
        assert len({c.seed for c in cells if c.method == method}) >= plan.runs
    assert len({cell.seed for cell in budget.cells(str(tmp_path), 2, True)}) == 2


@pytest.mark.parametrize(
    ("share", "mode", "n"),
    [(0.0, "cheap", (200, 0)), (0.8, "multi", (40, 80)), (1.0, "trusted", (0, 100))],
)
def test_ends_have_one_level(share, mode, n):
    cell = budget_cell(artificial_set(1, 0.2, stem="made"), "mfgpc", 0, share, cost=4)
    row = cell.row(**cell.compute())
    assert (row["mode"], row["n_cheap"], row["n_trusted"]) == (mode, *n)
    assert ("rho" in row) == (mode == "multi")
    assert row["roc_auc"] > 0.6
