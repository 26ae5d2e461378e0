"""A study: ask, tell, remember."""

import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

import polyfid
from polyfid import MultiFidelityClassifier, Study
from polyfid.kernels import RBF
from polyfid.model_files import ModelFileError

COSTS = {"crowd": 1, "expert": 5}
# Hyper-parameters as given: fits take no time.
FIXED = MultiFidelityClassifier([9.0 * RBF(1.0), RBF(1.0)], optimizer=None)
POOL = np.random.RandomState(0).uniform(-2, 2, (120, 2))


def truth(x):
    return np.where(np.asarray(x)[:, 0] > 0, "yes", "no")


def make(**settings):
    given = {"pool": POOL, "costs": COSTS, "model": FIXED, "random_state": 0}
    return Study(**{**given, **settings})


def filled(batch, names=("x0", "x1")):
    return batch.assign(label=truth(batch[[*names]]))


def played(study, rounds=3, budget=20):
    for _ in range(rounds):
        study.tell(filled(study.ask(budget=budget)))
    return study


# Ask


def test_a_batch_is_a_table_to_fill_in():
    study = played(make(), 1)
    batch = study.ask(budget=20)
    assert batch.columns.tolist() == [
        *("suggestion", "row", "level", "gain", "gain_per_cost", "relative_gain", "cost", "total"),
        *("audit", "x0", "x1", "label"),
    ]
    np.testing.assert_array_equal(batch[["x0", "x1"]], POOL[batch["row"]])
    assert batch["total"].iloc[-1] <= 20
    assert batch["label"].isna().all()
    assert (batch["gain"] > 0).all()
    assert study.n_pending == len(batch)


def test_before_two_classes_suggestions_are_spread_out():
    study = make(audit=0.5)
    batch = study.ask(budget=40)
    money = batch.groupby("level")["cost"].sum()
    assert abs(money["crowd"] - money["expert"]) <= 5  # as much for each level
    assert batch["row"].is_unique
    assert batch.loc[batch["level"] == "expert", "audit"].sum() == 2
    chosen = batch.loc[~batch["audit"], ["x0", "x1"]].to_numpy()
    gaps = np.linalg.norm(chosen[:, None] - chosen[None], axis=2) + 9 * np.eye(len(chosen))
    assert gaps.min() > 0.3  # far from each other: random ones would be at 0.05
    study.tell(batch.assign(label="yes"))
    again = study.ask(budget=10)
    assert again["gain"].isna().all()
    assert not {*again["row"]} & {*batch["row"]}
    with pytest.raises(ValueError, match=r"no model before labels of two classes are told; 24"):
        _ = study.model_


def test_what_waits_for_an_answer_is_not_asked_again():
    study = played(make(), 1)
    first, second = study.ask(n=30), study.ask(n=30)
    assert not {*first["row"]} & {*second["row"]}
    assert study.forget() == 60
    third = study.ask(n=30)
    assert {*first["row"]} & {*third["row"]}
    study.tell(filled(first))  # late, and withdrawn: an answer is an answer
    assert sum(study.counts.values()) == len(first) + 12
    whole = make(pool=POOL[:4])
    whole.ask(n=4)
    with pytest.raises(ValueError, match=r"all rows of the pool wait for answers.*forget"):
        whole.ask(n=1)


def test_limits_and_settings_are_checked():
    study = make()
    with pytest.raises(ValueError, match="give budget=, the money to spend, or n="):
        study.ask()
    with pytest.raises(ValueError, match=r"budget=0.5 buys no label: the cheapest one costs 1"):
        study.ask(budget=0.5)
    for wrong, words in [
        ({"pool": None}, "give pool=.* or space="),
        ({"space": {"a": (0, 1)}}, "give pool=.* or space="),
        ({"pool": None, "space": {"a": (1, 1)}}, r"space\['a'\] must be \(low, high\)"),
        ({"pool": POOL[:0]}, "pool has no rows"),
        ({"pool": [["a"]]}, "pool must be a data frame, or an array of numbers"),
        ({"pool": np.full((3, 2), np.nan)}, "cells that are missing"),
        ({"costs": None}, "costs must be a dictionary of prices by level"),
        ({"costs": {"crowd": -1}}, "cost of 'crowd' must be a number above 0"),
        ({"levels": ["crowd"]}, "costs name the level 'expert'"),
        ({"model": "rbf"}, "model must be a MultiFidelityClassifier"),
        ({"random_state": -1}, "random_state"),
    ]:
        with pytest.raises(ValueError, match=words):
            make(**wrong)


def test_levels_without_a_cost_are_told_but_not_asked():
    study = make(costs={"expert": 5}, levels=["crowd", "expert"])
    study.tell(np.arange(20), truth(POOL[:20]), "crowd")
    assert {*study.ask(n=5)["level"]} == {"expert"}
    assert study.spent == 0.0
    assert study.counts == {"crowd": 20, "expert": 0}


# Tell


def test_answers_come_late_twice_never_and_unasked():
    study = make()
    batch = filled(study.ask(budget=20))
    half = batch.assign(label=batch["label"].where(np.arange(len(batch)) < 4))
    told = study.tell(half)
    assert (told.new, told.empty, study.n_pending) == (4, len(batch) - 4, len(batch) - 4)
    told = study.tell(batch)  # the same table, with the rest filled in
    assert (told.new, told.same, study.n_pending) == (len(batch) - 4, 4, 0)
    wrong = batch.assign(label=np.where(batch["label"] == "yes", "no", "yes"))
    told = study.tell(wrong)
    assert (told.new, told.replaced, len(study)) == (0, len(batch), len(batch))
    assert (study.labelled()["label"] == wrong["label"]).all()
    # Without numbers of suggestions, labels are new ones: of rows that have some, repetitions.
    told = study.tell(batch["row"], batch["label"], batch["level"])
    assert (told.new, told.repeated, told.unasked) == (len(batch), len(batch), len(batch))
    told = study.tell([[9.0, 9.0]], ["yes"], "expert", audit=True)  # not in the pool
    assert (told.new, told.unasked) == (1, 1)
    assert study.labelled()["audit"].tolist()[-1]
    assert study.labelled()["x0"].tolist()[-1] == 9.0
    assert str(told) == "1 new label, 1 of them not asked for"
    assert study.ask(n=200)["row"].max() < 120


def test_rows_are_recognised_by_their_features():
    study = make()
    batch = filled(study.ask(n=10))
    told = study.tell(batch[["x0", "x1", "level", "label"]])
    assert (told.new, told.unasked, study.n_pending) == (10, 0, 0)
    assert study.labelled()["audit"].tolist() == batch["audit"].tolist()
    other = study.ask(n=2)
    study.tell(filled(other.assign(x0=-9.0)).assign(label="no"))  # rows of a pool are what they are
    np.testing.assert_array_equal(study.labelled()["x0"].iloc[-2:], other["x0"])
    level = np.where(other["level"] == "crowd", "expert", "crowd")  # somebody else answered
    told = study.tell(filled(other).assign(level=level))
    assert (told.new, told.unasked) == (2, 2)


def test_points_as_they_were_really_set():
    study = make(pool=None, space={"a": (0, 1), "b": (0, 1)})
    batch = study.ask(n=3).assign(label="yes")
    study.tell(batch.round(10))
    assert len(study.labelled()) == 3
    told = study.tell(batch.assign(a=batch["a"] + 0.01))
    assert told.same == 3
    batch = study.ask(n=3).assign(label="no")
    study.tell(batch.assign(a=batch["a"] + 0.01))
    np.testing.assert_allclose(study.labelled()["a"].iloc[-3:], batch["a"] + 0.01)
    assert study.n_pending == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0], ["yes"], "boss"), r"level must be one of \['crowd', 'expert'\], got 'boss'"),
        (([0], ["yes"]), "level is missing"),
        (([0, 1], ["yes"], "crowd"), "there are 2 rows, and 1 labels"),
        (([0, 1], ["yes", "no"], ["crowd"]), "there are 2 labels, and 1 levels"),
        (([300], ["yes"], "crowd"), "rows must be numbers from 0 to 119"),
        (([0], [0.5], "crowd"), "labels must be whole numbers, text or truth values; got 0.5"),
        (([0],), "labels are missing"),
        ((pd.DataFrame({"label": ["yes"], "level": ["crowd"]}),), "suggestion or row, or all feat"),
        (
            (pd.DataFrame({"suggestion": [7], "label": ["yes"], "level": ["crowd"]}),),
            "suggestion must be a number .* of another study",
        ),
    ],
)
def test_wrong_answers_change_nothing(arguments, words):
    study = make()
    study.ask(n=4)
    with pytest.raises(ValueError, match=words):
        study.tell(*arguments)
    assert (len(study), study.n_pending) == (0, 4)


def test_labels_keep_their_kind():
    study = make()
    study.tell([0, 1, 2], [0, 1, 1], "crowd")
    assert study.model_.classes_.tolist() == [0, 1]
    study.tell([3], [True], "crowd")
    study.tell([4], ["maybe"], "crowd")
    assert study.model_.classes_.tolist() == ["0", "1", "True", "maybe"]


# Frames


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_mixed_columns_and_names_that_are_taken(kind, tmp_path):
    rng = np.random.RandomState(0)
    columns = {
        "id": [f"r{i}" for i in range(60)],
        "heat": rng.uniform(-2, 2, 60).tolist(),
        "colour": rng.choice(["red", "blue"], 60).tolist(),
        "cost": rng.uniform(0, 9, 60).tolist(),
    }
    study = make(pool=kind(columns), path=tmp_path / "s.polyfid")
    assert "id" not in study.load(tmp_path / "s.polyfid")._rows.features
    for _ in range(2):
        batch = study.ask(budget=20)
        assert isinstance(batch, kind)
        assert {"id", "heat", "colour", "cost", "cost_given"} < {*batch.columns}
        label = np.where(np.asarray(batch["heat"]) > 0, "yes", "no").tolist()
        if kind is pd.DataFrame:
            batch["label"] = label
        else:
            batch = batch.with_columns(pl.Series("label", label))
        study.tell(batch)
    assert study.model_.feature_names_in_.tolist() == ["heat", "colour=blue", "colour=red", "cost"]
    assert study.predict_proba(kind(columns)).shape == (60, 2)
    without = kind(columns)[["heat", "colour"]]
    with pytest.raises(ValueError, match="'cost'"):
        study.predict_proba(without)
    again = Study.load(tmp_path / "s.polyfid")
    np.testing.assert_array_equal(
        again.predict_proba(kind(columns)), study.predict_proba(kind(columns))
    )


# Progress


def test_history_has_money_labels_losses_promises_and_what_came_of_them():
    study = make()
    study.tell(np.arange(12), truth(POOL[:12]), "expert", audit=True)
    history = played(study, 4, budget=40).history_
    assert [h["batch"] for h in history] == [0, 1, 2, 3, None]
    assert [h["spent"] for h in history] == [60.0, 100.0, 140.0, 180.0, 220.0]
    assert history[0]["labels"] == {"crowd": 0, "expert": 12}
    assert history[-1]["labels"] == study.counts
    assert {h["held_out_by"] for h in history} == {"audit rows"}
    for earlier, later in pairwise(history):
        assert earlier["answered"] == earlier["asked"]
        assert earlier["promised"] > 0
        fall = earlier["expected"] - later["expected"]
        assert earlier["delivered_expected"] == pytest.approx(fall)
    # Falls are those of the same rows; here all audit rows but the new ones.
    assert history[0]["delivered"] > 0
    assert history[-1]["held_out"] < history[0]["held_out"]
    assert history[-1]["delivered"] is None
    designed = played(make(), 1).history_
    assert designed[0]["promised"] is None


def test_held_out_losses_are_those_of_models_without_the_label():
    study = make(model=FIXED.__class__([9.0 * RBF(1.0), RBF(1.0)], optimizer=None))
    rows = np.arange(0, 60)
    level = np.where(rows < 40, "crowd", "expert")
    label = truth(POOL[rows] + np.random.RandomState(1).normal(0, 0.8, (60, 2)))
    study.tell(rows, label, level, audit=(rows >= 50))
    now = study.history_[-1]
    assert (now["held_out_by"], now["n_held_out"]) == ("audit rows", 10)
    losses = []
    for k in range(50, 60):
        keep = rows != k
        model = FIXED.set_params(levels=["crowd", "expert"])
        model.fit(POOL[rows[keep]], label[keep], fidelity=level[keep])
        p = model.predict_proba(POOL[[k]])[0, model.classes_.tolist().index(label[k])]
        losses.append(-np.log(p))
    assert now["held_out"] == pytest.approx(np.mean(losses), rel=0.05)


def test_stop_when_a_batch_gains_less_than_its_price():
    study = make()
    assert not study.should_stop(1e9, budget=20)  # nothing is known yet
    played(study)
    before = study.ask(budget=20)
    price = before["cost"].sum() / (before["gain"].sum() * len(POOL))
    study.forget()
    assert study.should_stop(price * 0.5, budget=20)
    assert not study.should_stop(price * 2.0, budget=20)
    assert study.should_stop(price * 2.0, budget=20, n_targets=1)
    assert study.n_pending == 0
    with pytest.raises(ValueError, match="value must be a number above 0"):
        study.should_stop(0, budget=20)


# A space


def test_advice_is_rescaled_by_what_batches_delivered():
    study = played(make(), rounds=5, budget=40)
    kept = [r for r in study.history_ if r["promised"] is not None and r["delivered"] is not None]
    advice = study.advise(60)
    assert [(p.expected, p.delivered) for p in advice.history] == [
        (r["promised"], r["delivered"]) for r in kept
    ]
    assert kept
    assert {level for plan in advice.plans for level in plan.labels} == set(study.costs)


def feasible(frame):
    inside = np.square(frame["a"] - 3) + np.square(10 * frame["b"] - 3) < 4
    return np.where(inside, "yes", "no")


def test_points_of_a_space_find_a_region():
    model = MultiFidelityClassifier(4.0 * RBF(0.5), optimizer=None)
    study = Study(
        space={"a": (0, 10), "b": (0.0, 1.0)}, costs={"lab": 1}, model=model, random_state=0
    )
    for _ in range(5):
        batch = study.ask(n=8)
        assert batch[["a", "b"]].to_numpy().min() >= 0
        assert (batch["a"] <= 10).all()
        assert (batch["b"] <= 1).all()
        study.tell(batch.assign(label=feasible(batch)))
    grid = pd.DataFrame({"a": np.tile(np.linspace(0, 10, 40), 40)})
    grid["b"] = np.repeat(np.linspace(0, 1, 40), 40)
    found = study.predict_proba(grid).argmax(axis=1) == 1
    right = found == (feasible(grid) == "yes")
    assert right.mean() > 0.93
    with pytest.raises(ValueError, match="n_targets is needed"):
        study.should_stop(1.0, n=5)
    study.should_stop(1.0, n=5, n_targets=100)
    study.audit = 1.0
    assert study.ask(n=4)["audit"].all()


def test_points_go_uphill_within_the_box():
    from polyfid.suggest.box import Box

    box = Box.of({"a": (0, 10), "b": (-1, 1)})
    start = box.spread_out(20, seed=0).matrix()

    def score(x):  # the best point is at a wall
        return -np.square(x[:, 0] - 4) - 10 * np.square(x[:, 1] - 2)

    end = box.uphill(start, score, reach=0.1)
    assert (score(end) > score(start)).all()
    assert (end[:, 1] <= 1).all()
    way = np.linalg.norm((end - start) / [10, 2], axis=1)
    assert way.max() <= 0.1 + 1e-9
    assert np.median(way) > 0.05
    far = box.uphill(start, score, reach=2.0)
    assert np.median(score(far)) > -10.5  # the best is -10


# The file


def test_a_study_goes_on_where_it_was_left(tmp_path):
    path = tmp_path / "study.polyfid"
    kept = played(make(path=path), 2)
    left = kept.ask(budget=10)
    again = Study.load(path)
    assert isinstance(polyfid.load(path), Study)
    assert repr(again) == repr(kept)
    assert again.history_ == kept.history_
    for study in (kept, again):
        study._path = None  # or they would be in each other's way
        study.tell(filled(left))
    pd.testing.assert_frame_equal(again.ask(budget=20), kept.ask(budget=20))
    with pytest.raises(ValueError, match=r"there is a file .* already; Study.load"):
        make(path=path)


def test_a_study_of_a_space_and_error_costs_in_a_file(tmp_path):
    path = tmp_path / "study.polyfid"
    costs = {("no", "yes"): 5.0}
    given = {"space": {"a": (0, 1)}, "pool": None, "strategy": "error", "error_costs": costs}
    study = make(path=path, target=[[0.1], [0.2]], **given)
    study.tell([[0.1], [0.9], [0.3]], ["no", "yes", "no"], "expert")
    batch = study.ask(n=2)
    again = Study.load(path)
    assert again.error_costs == costs
    assert again.labelled().equals(study.labelled())
    again.tell(batch.assign(label="no"))
    assert len(again) == 5


def test_two_that_write_one_file(tmp_path):
    path = tmp_path / "study.polyfid"
    one = make(path=path)
    other = Study.load(path)
    one.ask(n=2)
    with pytest.raises(ValueError, match="was changed by something else since this study read it"):
        other.ask(n=2)
    assert len(Study.load(path).ask(n=2)) == 2


def test_files_that_are_no_studies(tmp_path):
    path = tmp_path / "study.polyfid"
    study = played(make(path=path), 1)
    content = path.read_bytes()
    for wrong in (content[:-30], content[:200], b"", content.replace(b'"row"', b'"raw"')):
        path.write_bytes(wrong)
        with pytest.raises(ModelFileError, match=r"study\.polyfid"):
            Study.load(path)
    study.model_.save(path)
    with pytest.raises(ModelFileError, match="holds a MultiFidelityClassifier, not a study"):
        Study.load(path)


LOOP = """
import sys, numpy as np
from polyfid import MultiFidelityClassifier, Study
from polyfid.kernels import RBF
study = Study.load(sys.argv[1])
print("ready", flush=True)
while True:
    batch = study.ask(n=3)
    study.tell(batch.assign(label=np.where(batch["x0"] > 0, "yes", "no")))
    print(len(study), flush=True)
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "study.polyfid"
    pool = np.random.RandomState(0).uniform(-2, 2, (3000, 2))
    make(pool=pool, path=path)
    rng = np.random.RandomState(0)
    for _ in range(3):
        command = [sys.executable, "-c", LOOP, str(path)]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert run.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.05, 0.6))
        run.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        said, _ = run.communicate()
        told = [int(line) for line in said.splitlines()]
        study = Study.load(path)
        # What it said it had told is there, and at most one batch more.
        assert len(study) >= max(told, default=0)
        assert study.forget() in (0, 3)
    assert len(study) > 0
