"""``polyfid suggest`` and ``polyfid study``."""

import numpy as np
import pandas as pd
import pytest

COSTS = "--costs crowd=1,expert=5"


@pytest.fixture
def pool(folder, some_rows):
    """A table of rows that may be labelled; its truth beside it."""
    made = some_rows(60, 0.0, 5, "p")
    made.drop(columns="label").assign(kind="07").to_csv("pool.csv", index=False)
    return made


def fill_in(file, pool, rows=slice(None)):
    """Fill in labels, as a person would."""
    table = pd.read_csv(file, dtype={"kind": str})
    label = table["id"].map(pool.set_index("id")["label"])
    table["label"] = label.where(label.index.isin(label.index[rows]))
    table.to_csv(file, index=False)
    return table


def test_suggestions_are_a_table_to_fill_in(polyfid, pool):
    said = polyfid(f"suggest model.polyfid pool.csv {COSTS} --budget 20 -o next.csv").stdout
    table = pd.read_csv("next.csv")
    assert table.columns.tolist() == [
        *("row", "level", "gain", "gain_per_cost", "relative_gain", "cost", "total", "audit"),
        *("id", "heat", "flow", "kind", "label"),
    ]
    assert table["label"].isna().all()
    assert table["total"].iloc[-1] <= 20
    assert (table["id"] == [f"p{row:02d}" for row in table["row"]]).all()
    assert f"{len(table)} labels (" in said
    assert "Written: next.csv, next.csv.toml" in said
    again = polyfid.json("suggest --config next.csv.toml")
    assert again["cost"] == table["cost"].sum()
    piped = polyfid(f"suggest model.polyfid pool.csv {COSTS} --n 2 --targets new.csv")
    assert piped.stdout.startswith("row,level,gain")
    assert "2 labels (" in piped.stderr


def test_what_cannot_be_suggested(polyfid, pool):
    call = "suggest model.polyfid pool.csv"
    assert "give --budget" in polyfid.refusal(f"{call} {COSTS}")
    for wrong in ("crowd", "crowd=x", "crowd=0", "crowd=1,crowd=2"):
        said = polyfid.refusal(f"{call} --budget 9 --costs {wrong}")
        assert "--costs: must be LEVEL=COST" in said
    said = polyfid.refusal(f"{call} --budget 9 --costs boss=1", code=1)
    assert "costs name the level 'boss'" in said
    assert "budget=0.5 buys no label" in polyfid.refusal(f"{call} {COSTS} --budget 0.5", code=1)
    assert "is an input" in polyfid.refusal(f"{call} {COSTS} --budget 9 -o pool.csv")
    pool.drop(columns=["label", "heat"]).to_csv("less.csv", index=False)
    less = "suggest model.polyfid less.csv"
    assert "'heat'" in polyfid.refusal(f"{less} {COSTS} --budget 9", code=1)


def test_a_study_from_the_command_line(polyfid, pool, not_drawn):
    made = polyfid.json(f"study init s.polyfid --pool pool.csv {COSTS} --kernel rbf")
    assert made["levels"] == ["crowd", "expert"]
    asked = polyfid.json("study ask s.polyfid --budget 40 -o next.csv")
    assert asked["gain"] is None
    assert asked["cost"] <= 40
    table = fill_in("next.csv", pool, slice(0, 5))
    assert table["kind"].tolist() == ["07"] * len(table)
    told = polyfid.json("study tell s.polyfid next.csv")
    assert (
        told["told"]["next.csv"] | {"new": 5, "empty": len(table) - 5} == told["told"]["next.csv"]
    )
    assert told["pending"] == len(table) - 5
    fill_in("next.csv", pool)
    said = polyfid("study tell s.polyfid next.csv").stdout
    assert f"{len(table) - 5} new labels, 5 told before" in said
    assert "Spent: 40." in said
    # Labels that nobody asked for, of rows in the pool and of others.
    crowd = pd.read_csv("crowd.csv").assign(kind="07")
    crowd.to_csv("more.csv", index=False)
    told = polyfid.json("study tell s.polyfid more.csv --level crowd")
    assert told["told"]["more.csv"]["unasked"] == len(crowd)
    asked = polyfid.json("study ask s.polyfid --n 6 -o next.csv")
    assert asked["gain"] > 0
    assert polyfid.json("study ask s.polyfid --n 6 --forget -o next.csv")["withdrawn"] == 6
    said = polyfid("study status s.polyfid --value 1000 --budget 5 --labelled all.csv").stdout
    assert "The next batch is worth its price: go on." in said
    assert "held out" in said
    state = polyfid.json("study status s.polyfid --value 1e-9 --n 1 --n-targets 10")
    assert state["stop"] is True
    assert [h["batch"] for h in state["history"]] == [0, 1, 2]
    advice = polyfid.json("study advise s.polyfid --budget 40")
    assert {*advice["plans"][0]["labels"]} == {"crowd", "expert"}
    # The labels are a table that other verbs read, with marks of the audit rows.
    everything = pd.read_csv("all.csv")
    assert len(everything) == sum(state["labels"].values())
    assert {"fidelity", "audit", "label"} < {*everything.columns}
    polyfid("fit all.csv --levels crowd,expert --kernel rbf -q -o again.polyfid")


def test_a_study_of_a_space(polyfid, folder):
    polyfid("study init s.polyfid --space heat=-2:2,flow=0:1 --costs lab=3 --kernel rbf -q")
    for _ in range(2):
        polyfid("study ask s.polyfid --n 6 -o next.csv -q")
        table = pd.read_csv("next.csv")
        assert table["heat"].between(-2, 2).all()
        table["label"] = np.where(table["heat"] > 0, 1, 0)
        table.to_csv("next.csv", index=False)
        polyfid("study tell s.polyfid next.csv -q")
    assert polyfid.json("study status s.polyfid")["labels"] == {"lab": 12}


def test_a_study_with_numbers(polyfid, pool):
    costs = "--costs simulation=1,test=5 --numeric simulation"
    polyfid(f"study init s.polyfid --pool pool.csv {costs} --kernel rbf -q")
    for _ in range(2):
        polyfid("study ask s.polyfid --budget 30 -o next.csv -q")
        table = pd.read_csv("next.csv", dtype={"kind": str})
        is_number = table["level"] == "simulation"
        label = table["id"].map(pool.set_index("id")["label"])
        table["label"] = label.astype(object).where(~is_number, table["heat"] + 0.25)
        table.to_csv("next.csv", index=False)
        assert "new labels" in polyfid("study tell s.polyfid next.csv").stdout
    polyfid("study status s.polyfid --labelled all.csv -q")
    told = pd.read_csv("all.csv")
    assert (told["label"].isna() == (told["fidelity"] == "simulation")).all()
    own = told[told["label"].isna()]
    np.testing.assert_allclose(own["value_simulation"], own["heat"] + 0.25)
    table.assign(label="x").to_csv("next.csv", index=False)
    assert "must be finite numbers" in polyfid.refusal("study tell s.polyfid next.csv", code=1)
    advice = polyfid.json("study advise s.polyfid --budget 20")
    assert {*advice["plans"][0]["labels"]} == {"simulation", "test"}


def test_what_a_study_refuses(polyfid, pool):
    assert "give --pool, a table, or --space" in polyfid.refusal(f"study init s {COSTS}")
    assert "there is a file model.polyfid already" in polyfid.refusal(
        f"study init model.polyfid --pool pool.csv {COSTS}"
    )
    for space in ("heat", "heat=1", "heat=a:b", "heat=0:1,heat=0:1"):
        said = polyfid.refusal(f"study init s --costs a=1 --space {space}")
        assert "--space: must be NAME=LOW:HIGH" in said
    said = polyfid.refusal("study init s --costs a=1 --space heat=2:1", code=1)
    assert "low < high" in said
    assert "holds a TableModel, not a study" in polyfid.refusal(
        "study ask model.polyfid --n 1", code=1
    )
    assert "no-study" in polyfid.refusal("study ask no-study --n 1")
    polyfid(f"study init s.polyfid --pool pool.csv {COSTS} -q")
    assert "holds a study" in polyfid.refusal("predict s.polyfid pool.csv", code=1)
    pool.drop(columns="label").to_csv("none.csv", index=False)
    said = polyfid.refusal("study tell s.polyfid none.csv --level crowd", code=1)
    assert "'label'" in said
    pool.to_csv("all.csv", index=False)
    assert "level is missing" in polyfid.refusal("study tell s.polyfid all.csv", code=1)
    (pool[["id", "label"]]).to_csv("names.csv", index=False)
    said = polyfid.refusal("study tell s.polyfid names.csv --level crowd", code=1)
    assert "columns suggestion or row, or all features" in said
    assert "study" in polyfid("study --help").stdout


def test_reports_say_what_to_label_next(polyfid, pool, not_drawn):
    polyfid(f"report model.polyfid --folds 0 --pool pool.csv {COSTS} --budget 12")
    polyfid(f"study init s.polyfid --pool pool.csv {COSTS} --kernel rbf -q")
    pool.assign(level="expert", kind="07").to_csv("all.csv", index=False)
    polyfid("study ask s.polyfid --budget 30 -o next.csv -q")
    fill_in("next.csv", pool)
    polyfid("study tell s.polyfid next.csv -q")
    polyfid("report --study s.polyfid --kernel rbf --folds 0")
    of_pool, of_study = not_drawn
    assert of_pool["batch"]["total"].iloc[-1] <= 12
    assert {"id", "heat"} < {*of_pool["batch"].columns}
    assert of_pool["history"] == []
    assert len(of_study["batch"]) == 20
    assert [h["batch"] for h in of_study["history"]] == [0, None]
    assert of_study["table"].audit is not None
    assert len(of_study["table"]) == sum(of_study["history"][-1]["labels"].values())
    assert "go together" in polyfid.refusal("report model.polyfid --pool pool.csv")
    assert "a study has a pool" in polyfid.refusal(
        f"report --study s.polyfid --pool pool.csv {COSTS}"
    )
