"""Advice on budgets: promises are kept where the model is right, and say what can be said."""

import json

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest

import polyfid
from polyfid import MultiFidelityClassifier, advise, stack_levels
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF
from polyfid.plots import AdviceDisplay
from polyfid.suggest import Promise
from polyfid.suggest.budget import LEAST_TRUSTED, expected_gains

COSTS = {"crowd": 1, "expert": 8}


def data(n_cheap=90, n_trusted=30, wrong=0.1, seed=0, d=2):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-2, 2, (n_cheap + n_trusted, d))
    right = x[:, 0] + 0.5 * x[:, -1] > 0
    cheap = right[:n_cheap] ^ (rng.uniform(size=n_cheap) < wrong)
    return stack_levels({"crowd": (x[:n_cheap], cheap), "expert": (x[n_cheap:], right[n_cheap:])})


def fit(X, y, fidelity, **options):
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0, **options)
    return model.fit(X, y, fidelity=fidelity)


def pool(n=300, seed=1, d=2):
    return np.random.RandomState(seed).uniform(-2, 2, (n, d))


@pytest.fixture(scope="module")
def model():
    return fit(*data())


@pytest.fixture(scope="module")
def advice(model):
    return advise(model, pool(), COSTS, 80, random_state=0)


def test_plans_cost_at_most_the_budget_and_go_from_cheap_to_trusted(advice):
    assert all(0 < plan.cost <= advice.budget for plan in advice.plans)
    assert advice.plans[0].labels == {"crowd": 80, "expert": 0}
    assert advice.plans[-1].labels == {"crowd": 0, "expert": 10}
    assert list(advice.shares) == sorted(advice.shares)
    assert advice.best in advice.plans
    assert advice.best.cautious_gain == max(plan.cautious_gain for plan in advice.plans)


def test_what_cheap_labels_promise_counts_for_less_while_there_are_few_trusted_rows(advice):
    cheap, trusted = advice.plans[0], advice.plans[-1]
    assert cheap.cautious_gain == pytest.approx(cheap.gain.value / (1.0 + 60.0 / 30.0))
    assert trusted.cautious_gain == trusted.gain.value


def test_more_money_is_expected_to_bring_more(model, advice):
    for more, less in zip(
        advise(model, pool(), COSTS, 320, random_state=0).plans, advice.plans, strict=True
    ):
        assert more.gain.value > less.gain.value > 0.0
        assert more.gain.low < more.gain.value < more.gain.high


def test_promises_are_kept_where_the_model_is_right():
    """Truths are drawn from the posterior, labelled, and learnt with the same hyper-parameters."""
    rng, given = np.random.RandomState(0), data(40, 12, d=1)
    known = {"optimizer": None, "inference": "ep", "levels": ["crowd", "expert"]}
    kernel = [4.0 * RBF(0.7), 0.5 * RBF(0.7)]
    X, y, fidelity = given
    before = MultiFidelityClassifier(kernel, **known).fit(X, y, fidelity=fidelity)
    at, counts = pool(60, d=1), [(0, 20), (20, 0)]
    promised = expected_gains(before, at, {"crowd": 1, "expert": 1}, counts, moved=False)
    sure = np.clip(before.predict_proba(at)[:, 1], 1e-9, 1 - 1e-9)
    delivered = np.zeros((100, 2))
    for k in range(len(delivered)):
        both = np.vstack([at, at])
        level = np.repeat(["crowd", "expert"], len(at))
        f = before.sample_latent(both, 1, level, random_state=k)[:, 0]
        label = rng.uniform(size=len(f)) < 1 / (1 + np.exp(-f))
        p = 1 / (1 + np.exp(-f[len(at) :]))
        loss = -np.mean(p * np.log(sure) + (1 - p) * np.log(1 - sure))
        for j, start in enumerate((len(at), 0)):
            rows = start + rng.permutation(len(at))[:20]
            after = MultiFidelityClassifier(kernel, **known).fit(
                np.vstack([X, both[rows]]),
                np.append(y, label[rows]),
                fidelity=np.append(fidelity, level[rows]),
            )
            q = np.clip(after.predict_proba(at)[:, 1], 1e-9, 1 - 1e-9)
            delivered[k, j] = loss + np.mean(p * np.log(q) + (1 - p) * np.log(1 - q))
    error = delivered.std(axis=0) / np.sqrt(len(delivered))
    assert (np.abs(delivered.mean(axis=0) - promised) < 3 * error + 0.1 * np.array(promised)).all()
    assert (np.array(promised) > 3 * error).all()


def test_coin_flips_are_worth_little():
    coins = fit(*data(150, 60, wrong=0.5))
    advice = advise(coins, pool(), COSTS, 160, random_state=0)
    assert advice.best.labels["crowd"] < 40
    (crowd,) = advice.cheap
    good = advise(fit(*data(150, 60, wrong=0.0)), pool(), COSTS, 160, random_state=0)
    assert crowd.rate > 2 * good.cheap[0].rate
    assert crowd.useful < good.cheap[0].useful


def test_a_flipped_label_says_less():
    rates = []
    for flips in (0.0, 0.3):
        noisy = fit(*data(), label_noise=[flips, 0.0], optimizer=None)
        rates.append(expected_gains(noisy, pool(), {"crowd": 1}, [(40,)], random_state=0)[0])
    assert rates[1] < 0.6 * rates[0]


def test_too_few_trusted_rows_give_no_verdict():
    few = fit(*data(90, LEAST_TRUSTED - 4))
    advice = advise(few, pool(), COSTS, 80, random_state=0)
    assert advice.action == "too few trusted rows to tell"
    assert advice.best is None
    assert advice.flat is None
    assert "label 4 more random rows at expert" in str(advice)


def test_a_small_gain_stops():
    rich = fit(*data(100, 100))
    assert advise(rich, pool(), COSTS, 8, least_gain=0.1).action == "stop"
    assert advise(rich, pool(), COSTS, 8, least_gain=0).action == "go"


def test_earlier_promises_rescale_later_ones(model, advice):
    kept = [Promise(80, 0.1, 0.05, 0.001)]
    half = advise(model, pool(), COSTS, 80, history=kept, random_state=0)
    assert half.scale == pytest.approx(0.5, abs=0.01)
    assert half.best.gain.value == pytest.approx(half.scale * advice.best.gain.value)
    width = [one.best.gain.high - one.best.gain.low for one in (half, advice)]
    assert width[0] < 0.6 * width[1]
    assert "promised a fall of 0.100 and delivered 0.050" in str(half)
    same = advise(model, pool(), COSTS, 80, history=[kept[0]._asdict()], random_state=0)
    assert same.scale == half.scale


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": {}}, "costs must be"),
        ({"costs": {"boss": 1}}, "costs name the level 'boss'"),
        ({"budget": -1}, "budget must be a number above 0"),
        ({"budget": 0.5}, "budget=0.5 buys no label"),
        ({"least_gain": -1}, "least_gain must be"),
        ({"history": [(1, 2)]}, "history must hold Promise"),
        ({"history": [(1, 2, np.nan)]}, "history must hold Promise"),
        ({"pool": np.empty((0, 2))}, "pool has no rows"),
    ],
)
def test_refusals(model, change, message):
    given = {"pool": pool(), "costs": COSTS, "budget": 80} | change
    with pytest.raises(ValueError, match=message):
        advise(model, **given)


def three_levels(**options):
    made = make_cokriging(40, 25, levels=3, random_state=0)
    return MultiFidelityClassifier(1.0 * RBF(), random_state=0, **options).fit(
        made.data, made.target, fidelity=made.fidelity
    )


@pytest.mark.parametrize("options", [{}, {"n_inducing": 20}, {"coupling": "coregional"}])
def test_three_levels_and_inducing_points(options):
    advice = advise(three_levels(**options), pool(), {0: 1, 1: 2, 2: 8}, 40, random_state=0)
    assert len(advice.plans) == 15
    assert all(np.isfinite(plan.gain.value) for plan in advice.plans)
    assert [one.level for one in advice.cheap] == [0, 1]


def test_several_classes():
    rng = np.random.RandomState(0)
    x = rng.uniform(-2, 2, (120, 2))
    y = np.digitize(x[:, 0], [-0.7, 0.7])
    model = fit(x, y, np.repeat(["crowd", "expert"], 60), levels=["crowd", "expert"])
    advice = advise(model, pool(), COSTS, 80, random_state=0)
    assert 0.0 < advice.best.log_loss.value < advice.now.log_loss.value < np.log(3)
    assert 0.7 < advice.now.accuracy.value < advice.best.accuracy.value < 1.0


def test_top_level_alone(model):
    advice = advise(model, pool(), {"expert": 8}, 80, random_state=0)
    assert [plan.labels for plan in advice.plans] == [{"expert": 10}]
    assert advice.cheap == ()


def test_what_the_budget_cannot_buy_is_not_spoken_of(model):
    advice = advise(model, pool(), COSTS, 7, random_state=0)
    assert all(plan.labels["expert"] == 0 for plan in advice.plans)
    assert [one.level for one in advice.again] == ["crowd"]


def test_advice_in_other_forms(advice):
    frame = advice.to_frame()
    assert len(frame) == 1 + len(advice.plans)
    assert frame["best"].sum() == 1
    assert json.loads(json.dumps(advice.to_dict()))["action"] == advice.action
    assert "<table>" in advice._repr_html_()
    display = AdviceDisplay.from_advice(advice)
    assert display.log_loss[display.best] == advice.best.log_loss.value


def test_same_seed_same_advice(model, advice):
    assert advise(model, pool(), COSTS, 80, random_state=0).plans == advice.plans


def test_advice_for_tables_is_on_the_page(tmp_path):
    pytest.importorskip("jinja2")
    from polyfid.report import render
    from polyfid.tables import TableModel, read_labelled

    X, y, fidelity = data()
    frame = pd.DataFrame(X, columns=["heat", "flow"]).assign(label=np.where(y, "good", "bad"))
    levels = {name: frame[np.array(fidelity) == name] for name in ("crowd", "expert")}
    table = read_labelled([], level_files=levels)
    model = TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF(), random_state=0))
    new = pd.DataFrame(pool(), columns=["heat", "flow"])
    advice = polyfid.advise(model, new, COSTS, 80, random_state=0)
    assert advice.plans[-1].labels == {"crowd": 0, "expert": 10}
    html = render(model=model, table=table, advice=advice)
    assert "How to split a budget" in html
    assert "How to split a budget" not in render(model=model, table=table)
