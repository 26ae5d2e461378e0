"""The benchmark ``loop``: what it buys, and how it sums up."""

import numpy as np
import pytest

from benchmarks import loop, loop_problems
from benchmarks.figures import Context, Skip
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF


@pytest.mark.parametrize("name", loop_problems.PROBLEMS)
def test_pools_and_answers(name):
    try:
        game = loop_problems.PROBLEMS[name](3, None)
    except Skip as reason:
        pytest.skip(str(reason))
    assert game.answers.shape == (2, len(game.X))
    assert set(np.unique(game.answers)) == {0, 1}
    assert len(game.X_test) == len(game.y_test)
    assert 0.05 < game.y_test.mean() < 0.95


@pytest.mark.parametrize("strategy", loop.STRATEGIES)
def test_strategies_spend_the_same_money(strategy):
    game = loop_problems.PROBLEMS["cokriging 2-D"](3, None)

    def make(**given):
        return MultiFidelityClassifier(9.0 * RBF(1.0), optimizer=None, **given)

    played = loop.play(game, strategy, 3, make)
    first, last = played["counts"][0], played["counts"][-1]
    assert first == list(game.start)
    spent = np.dot(np.subtract(last, first), game.costs)
    assert spent <= loop.N_BATCHES * game.batch
    assert spent > (loop.N_BATCHES - 1) * game.batch
    assert len(played["losses"]) == loop.N_BATCHES + 1


def row(problem, method, seed, losses):
    counts = [[40, 12]] * loop.N_BATCHES
    return {
        "problem": problem,
        "method": method,
        "seed": seed,
        "losses": losses,
        "counts": counts,
        "seconds": 1.0,
    }


def test_draws_that_are_not_complete_do_not_count():
    good, bad = np.linspace(0.5, 0.2, 7).tolist(), np.linspace(0.5, 0.35, 7).tolist()
    rows = [
        row("a", s, seed, good if s == "epig" else [x + 0.001 * seed for x in bad])
        for seed in range(3)
        for s in loop.STRATEGIES
    ]
    context = Context()
    figures = {f.name: f for f in loop.summarise(context, [*rows, row("a", "epig", 9, bad)])}
    assert context.tables[0].rows[0][:2] == ["a", "3"]
    assert figures["epig better than margin, standard errors"].met
    assert figures["problems where epig is worse than random"].value == 0


def test_share_of_the_money():
    theirs = np.array([0.5, 0.45, 0.4])
    assert loop.share_of_cost(np.array([0.5, 0.3, 0.2]), theirs) == pytest.approx(0.5 / 6)
    assert loop.share_of_cost(np.array([0.5, 0.48, 0.46]), theirs) == np.inf
