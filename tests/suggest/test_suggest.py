"""Suggestions as a user asks for them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import polyfid
from polyfid import MultiFidelityClassifier, load, stack_levels, suggest
from polyfid.kernels import RBF
from polyfid.suggest import rank
from polyfid.suggest.candidates import cautious
from polyfid.suggest.suggestion import COLUMNS

RNG = np.random.RandomState(0)
X = RNG.uniform(-2.0, 2.0, (60, 2))
Y = X[:, 0] > 0.2
COSTS = {"crowd": 1, "expert": 6}


def fitted(kernel=None, levels=("crowd", "expert"), y=Y, **given):
    cheap = y if given.pop("noise", None) is None else RNG.permutation(y)
    rows, labels, fidelity = stack_levels(
        {levels[0]: (X[:45], cheap[:45]), levels[1]: (X[45:], y[45:])}
    )
    model = MultiFidelityClassifier(1.0 * RBF() if kernel is None else kernel, **given)
    return model.fit(rows, labels, fidelity=fidelity)


@pytest.fixture(scope="module")
def model():
    return fitted(random_state=0)


@pytest.fixture(scope="module")
def known():
    """A model whose hyper-parameters are known, so that only its functions are learnt."""
    return fitted(9.0 * RBF(1.5), optimizer=None)


@pytest.fixture(scope="module")
def pool():
    return np.random.RandomState(1).uniform(-2.0, 2.0, (150, 2))


def test_a_batch_spends_the_budget_in_order_of_worth(model, pool):
    batch = model.suggest(pool, COSTS, budget=40, choices=None, random_state=0)
    assert tuple(batch.columns) == COLUMNS
    assert batch["total"].iloc[-1] <= 40
    assert np.allclose(batch["total"], batch["cost"].cumsum())
    assert batch["cost"].tolist() == [COSTS[level] for level in batch["level"]]
    assert np.allclose(batch["gain_per_cost"], batch["gain"] / batch["cost"])
    assert not batch.duplicated(["row", "level"]).any()
    chosen = batch[~batch["audit"]]
    for _, of_level in chosen.groupby("level"):
        assert (of_level["gain"].diff().dropna() < 1e-3).all()
    assert (chosen["relative_gain"] > 0.9).all()


def test_it_is_the_same_by_both_names_and_for_one_seed(model, pool):
    first = suggest(model, pool, COSTS, n=8, random_state=3)
    pd.testing.assert_frame_equal(first, model.suggest(pool, COSTS, n=8, random_state=3))
    pd.testing.assert_frame_equal(first, polyfid.suggest(model, pool, COSTS, n=8, random_state=3))
    pd.testing.assert_frame_equal(
        first, polyfid.suggest.suggest(model, pool, COSTS, n=8, random_state=3)
    )


def test_the_first_row_gains_most_of_all(model, known, pool):
    for one in (model, known):
        given = {"n": 1, "audit": 0, "choices": None, "random_state": 0}
        batch = one.suggest(pool, {"expert": 1.0}, **given)
        gains = rank(one, pool, "expert", random_state=0)
        assert batch["row"][0] == np.argmax(gains)
        assert batch["gain"][0] == pytest.approx(gains.max())


def test_a_label_that_is_known_anyway_is_worth_nothing(known):
    weight = np.where(np.arange(60) == 50, 1e4, 1.0)
    rows, y, fidelity = stack_levels({"crowd": (X[:45], Y[:45]), "expert": (X[45:], Y[45:])})
    model = MultiFidelityClassifier(9.0 * RBF(1.5), optimizer=None)
    model.fit(rows, y, fidelity=fidelity, sample_weight=weight)
    at = X[[50]]
    before, after = (rank(m, at, "expert", targets=X, random_state=0)[0] for m in (known, model))
    assert after < 0.2 * before


def test_hyper_parameters_that_are_not_known_make_rows_worth_more_or_less(model, pool):
    first, again, other = (rank(model, pool, "crowd", random_state=seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert np.corrcoef(first, other)[0, 1] > 0.7


def test_a_batch_is_more_diverse_than_the_best_rows(model, pool):
    def spread(rows):
        return np.linalg.norm(pool[rows][:, None] - pool[rows], axis=2).mean()

    given = {"n": 12, "audit": 0, "choices": None, "random_state": 0}
    batch = model.suggest(pool, {"expert": 1.0}, **given)
    best = np.argsort(-rank(model, pool, "expert", random_state=0))[:12]
    assert spread(batch["row"].to_numpy()) > 1.05 * spread(best)


def test_cheap_labels_are_bought_where_they_are_cheap_enough(model, pool):
    def share(price):
        costs = {"crowd": 1.0, "expert": price}
        batch = model.suggest(pool, costs, n=12, audit=0, random_state=0)
        return (batch["level"] == "crowd").mean()

    assert share(0.1) < 0.5
    assert share(1000.0) == 1.0


def test_each_label_is_the_best_of_some_random_rows(model, pool):
    def first(choices):
        costs, given = {"expert": 1}, {"n": 1, "audit": 0, "choices": choices}
        chosen = [model.suggest(pool, costs, random_state=k, **given) for k in range(5)]
        return [batch["row"][0] for batch in chosen], [batch["gain"][0] for batch in chosen]

    (_, one), (rows, some), (same, best) = map(first, (1, 8, None))
    assert len(set(rows)) > 2
    assert len(set(same)) <= 2
    assert np.mean(one) < np.mean(some) < np.mean(best)


def test_cheap_labels_count_for_less_while_there_are_few_trusted_rows(pool):
    model = MultiFidelityClassifier(4.0 * RBF(1.0), optimizer=None)
    level = np.array([0, 1, 1])
    for n in (20, 600):
        rows = np.random.RandomState(0).uniform(-2.0, 2.0, (n + 30, 2))
        fidelity = np.arange(n + 30) >= 30
        model.fit(rows, rows[:, 0] > 0, fidelity=fidelity)
        compared = cautious(model, np.array([1.0, 1.0, 8.0]), level)
        assert compared == pytest.approx([1.0 + 60.0 / n, 1.0, 8.0])


def test_levels_without_a_cost_are_not_offered(model, pool):
    assert set(model.suggest(pool, {"crowd": 1}, n=5)["level"]) == {"crowd"}


@pytest.mark.parametrize(
    "strategy", ["epig", "brier", "error", "boundary", "margin", "bald", "random"]
)
def test_every_strategy_makes_a_batch(model, pool, strategy):
    batch = model.suggest(pool, COSTS, budget=24, strategy=strategy, random_state=0)
    assert len(batch) > 3
    assert (batch["gain"] >= 0).all()


@pytest.mark.parametrize("strategy", ["margin", "bald", "random"])
def test_strategies_that_cannot_compare_levels_share_the_money(model, pool, strategy):
    batch = model.suggest(pool, COSTS, budget=60, strategy=strategy, random_state=0)
    spent = batch.groupby("level")["cost"].sum()
    assert abs(spent["crowd"] - spent["expert"]) <= 6


def test_margin_takes_rows_whose_label_is_uncertain(model, pool):
    batch = model.suggest(pool, {"expert": 1}, n=5, strategy="margin", audit=0, choices=None)
    p = model.predict_proba(pool)[:, 1]
    assert np.abs(p[batch["row"]] - 0.5).max() <= np.sort(np.abs(p - 0.5))[10]


def test_boundary_moves_with_the_threshold_and_with_costs(known, pool):
    at = [
        known.suggest(
            pool, {"expert": 1}, n=8, strategy="boundary", audit=0, random_state=0, **given
        )["row"]
        for given in (
            {"threshold": 0.1},
            {"threshold": 0.9},
            {"error_costs": {"fp": 1, "fn": 9}},
        )
    ]
    low, high, dear_misses = (pool[rows, 0].mean() for rows in at)
    assert low < high
    # Deciding for the second class at a probability of a tenth is the same question.
    assert dear_misses == pytest.approx(low)


def test_errors_that_cost_more_are_looked_for(model, pool):
    plain = model.suggest(pool, {"expert": 1}, n=3, strategy="error", audit=0, random_state=0)
    dear = model.suggest(
        pool,
        {"expert": 1},
        n=3,
        strategy="error",
        audit=0,
        random_state=0,
        error_costs={"fp": 10, "fn": 10},
    )
    assert np.allclose(dear["gain"], 10.0 * plain["gain"])


def test_audit_rows_are_a_share_of_trusted_labels(model, pool):
    counts = []
    for seed in range(8):
        batch = model.suggest(
            pool, {"expert": 1}, n=10, audit=0.25, strategy="brier", random_state=seed
        )
        counts.append(batch["audit"].sum())
    assert set(counts) == {2, 3}
    assert not model.suggest(pool, {"crowd": 1}, n=10, audit=0.5)["audit"].any()
    assert not model.suggest(pool, COSTS, n=20, audit=0.0)["audit"].any()


def test_all_trusted_rows_of_a_random_batch_are_audit_rows(model, pool):
    batch = model.suggest(pool, COSTS, budget=60, strategy="random", random_state=0)
    assert (batch["audit"] == (batch["level"] == "expert")).all()


def test_targets_say_where_predictions_are_wanted(model, pool):
    left, right = (pool[(pool[:, 1] > 0) == side] for side in (False, True))
    chosen = [
        pool[model.suggest(pool, {"expert": 1}, n=6, audit=0, targets=t, random_state=0)["row"], 1]
        for t in (left, right)
    ]
    assert chosen[0].mean() < chosen[1].mean()


def test_labelled_rows_are_offered_again_only_if_asked_for(model):
    rows = model.suggest(X, COSTS, budget=1000, audit=0, random_state=0)
    crowd, expert = (set(rows["row"][rows["level"] == level]) for level in COSTS)
    assert crowd <= set(range(45, 60))
    assert expert <= set(range(45))
    again = model.suggest(X[45:], {"expert": 6}, n=30, repeat=True, audit=0, random_state=0)
    assert again["row"].duplicated().any()
    with pytest.raises(ValueError, match="no row without a label at the levels"):
        model.suggest(X[45:], {"expert": 6}, n=1)


def test_a_model_file_knows_what_was_labelled(model, tmp_path):
    model.save(tmp_path / "model.polyfid")
    loaded = load(tmp_path / "model.polyfid")
    with pytest.raises(ValueError, match="no row without a label"):
        loaded.suggest(X[:45], {"crowd": 6}, n=1)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_come_back_as_what_they_were(kind):
    frame = kind({"a": X[:, 0], "b": X[:, 1]})
    model = MultiFidelityClassifier(1.0 * RBF(), levels=["expert"]).fit(frame, Y)
    batch = model.suggest(kind({"a": [0.0, 1.0], "b": [0.5, 0.5]}), {"expert": 2}, budget=4)
    assert isinstance(batch, kind)
    assert list(batch.columns) == list(COLUMNS)


def test_three_classes():
    y = np.digitize(X[:, 0], [-0.6, 0.6])
    model = fitted(9.0 * RBF(1.5), y=y, optimizer=None)
    batch = model.suggest(X + 0.01, COSTS, budget=40, random_state=0)
    assert (batch["gain"] > 0).all()
    for strategy in ("brier", "error", "margin", "bald", "random"):
        assert len(model.suggest(X + 0.01, COSTS, n=4, strategy=strategy)) == 4
    with pytest.raises(ValueError, match="is for two classes"):
        model.suggest(X, COSTS, n=1, strategy="boundary")


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "auto"},
        {"n_inducing": 12},
        {"coupling": "coregional", "kernel": [1.0 * RBF(), 1.0 * RBF()]},
        {"label_noise": "fidelity", "inference": "ep"},
    ],
    ids=["structures", "sparse", "coregional", "label noise"],
)
def test_every_sort_of_model_suggests(given, pool):
    model = fitted(**{"random_state": 0, **given})
    batch = model.suggest(pool, COSTS, budget=24, random_state=0)
    assert np.isfinite(batch["gain"]).all()


def test_three_levels(pool):
    rows, labels, fidelity = stack_levels(
        {
            "robot": (X[:30], Y[:30] ^ (np.arange(30) % 5 == 0)),
            "crowd": (X[30:45], Y[30:45]),
            "expert": (X[45:], Y[45:]),
        }
    )
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0).fit(
        rows, labels, fidelity=fidelity
    )
    batch = model.suggest(pool, {"robot": 0.1, "crowd": 1, "expert": 5}, budget=20)
    assert set(batch["level"]) <= {"robot", "crowd", "expert"}


def test_of_very_many_candidates_the_best_ones_are_found(model, monkeypatch):
    pool = np.random.RandomState(5).uniform(-2.0, 2.0, (3000, 2))
    whole = {"audit": 0, "choices": None, "random_state": 0}
    gains = rank(model, pool, "expert", targets=pool[:200])
    monkeypatch.setattr("polyfid.suggest.suggestion.N_EXACT", 500)
    monkeypatch.setattr("polyfid.suggest.suggestion.N_BEST", 300)
    monkeypatch.setattr("polyfid.suggest.suggestion.N_RANDOM", 50)
    batch = model.suggest(pool, {"expert": 1}, n=1, targets=pool[:200], **whole)
    assert gains[batch["row"][0]] > 0.9 * gains.max()


def test_useless_cheap_labels_get_no_money(pool):
    rng = np.random.RandomState(2)
    rows, labels, fidelity = stack_levels(
        {"crowd": (X, rng.uniform(size=60) < 0.5), "expert": (X[::2], Y[::2])}
    )
    model = MultiFidelityClassifier(random_state=0).fit(rows, labels, fidelity=fidelity)
    batch = model.suggest(pool, {"crowd": 1, "expert": 8}, budget=80, random_state=0)
    spent = batch.groupby("level")["cost"].sum()
    assert spent.get("crowd", 0.0) < 0.35 * spent["expert"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give budget=, the money to spend"),
        ({"budget": -3}, "budget must be a number above 0, got -3"),
        ({"budget": 0.5}, "buys no label: the cheapest one costs 1"),
        ({"n": 0}, "n must be"),
        ({"n": 3, "strategy": "best"}, "strategy must be one of"),
        ({"n": 3, "audit": 1.5}, "audit must be a share from 0 to 1"),
        ({"n": 3, "choices": 0}, "choices must be"),
        ({"n": 3, "threshold": 0.5}, "threshold goes with"),
        ({"n": 3, "strategy": "boundary", "threshold": 2}, "threshold must be a probability"),
        ({"n": 3, "error_costs": {"fp": 1}}, "error_costs go with"),
    ],
)
def test_what_is_wrong_is_said(model, pool, given, message):
    with pytest.raises(ValueError, match=message):
        model.suggest(pool, COSTS, **given)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({}, "costs must be a dictionary of prices by level"),
        ({"nurse": 3}, "costs name the level 'nurse', and the model's levels are"),
        ({"crowd": 0}, "the cost of 'crowd' must be a number above 0"),
        ({"crowd": True}, "the cost of 'crowd' must be a number above 0"),
        ({"crowd": "1"}, "the cost of 'crowd' must be a number above 0"),
    ],
)
def test_wrong_costs(model, pool, costs, message):
    with pytest.raises(ValueError, match=message):
        model.suggest(pool, costs, n=1)


def test_an_empty_pool(model):
    with pytest.raises(ValueError, match="pool has no rows"):
        model.suggest(np.empty((0, 2)), COSTS, n=1)


def test_nothing_is_warned_of(model, pool):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.suggest(pool, COSTS, n=3)
