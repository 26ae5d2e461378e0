"""Tables of a crowd and exports of Label Studio, through the verbs that read them."""

import importlib.util
import json
import sys

import numpy as np
import pandas as pd
import pytest

N = 24


@pytest.fixture
def crowd(folder):
    """Items, answers long and wide, and gold, in files."""
    rng = np.random.RandomState(0)
    heat = rng.uniform(-1, 1, N).round(3)
    right = np.where(heat > 0, "hot", "cold")
    pd.DataFrame({"id": range(N), "heat": heat}).to_csv("items.csv", index=False)
    said = {}
    for worker, wrong in (("ann", 0.1), ("bob", 0.3), ("cat", 0.5), ("dan", 0.5)):
        other = np.where(right == "hot", "cold", "hot")
        said[worker] = np.where(rng.uniform(size=N) < wrong, other, right)
    wide = pd.DataFrame({"task": range(N), **said})
    wide.loc[3, "ann"] = None
    wide.to_csv("wide.csv", index=False)
    long = wide.melt("task", var_name="worker", value_name="label").dropna()
    long.to_csv("long.csv", index=False)
    long.set_axis(["song", "who", "genre"], axis=1).to_csv("named.csv", index=False)
    gold = pd.DataFrame({"task": range(0, N, 2), "label": right[::2]})
    gold.to_csv("gold.csv", index=False)
    gold.set_axis(["song", "genre"], axis=1).to_csv("named-gold.csv", index=False)
    return ("--items", "items.csv", "--gold", "gold.csv")


@pytest.fixture
def no_crowd_kit(monkeypatch):
    """It is not installed."""
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    monkeypatch.setitem(sys.modules, "crowdkit", None)


def rows_of(found):
    return dict(zip(found["levels"], map(sum, found["counts"]), strict=True))


def test_long_and_wide_are_the_same(polyfid, crowd):
    wide = polyfid.json("check", *crowd, "--answers", "wide.csv")
    assert rows_of(wide) == {"crowd": N, "gold": N // 2}
    assert polyfid.json("check", *crowd, "--answers", "long.csv") == wide
    assert polyfid.json("check", *crowd, "--answers", "wide.csv", "--form", "wide") == wide


def test_what_a_level_is(polyfid, crowd, no_crowd_kit):
    answers = (*crowd, "--answers", "long.csv")
    every = polyfid.json("check", *answers, "--crowd", "answer")
    assert rows_of(every) == {"crowd": 4 * N - 1, "gold": N // 2}
    assert [f["name"] for f in every["features"]] == ["heat"]  # and not the worker
    skill = polyfid.json("check", *answers, "--crowd", "skill", "--groups", 3)
    assert skill["levels"] == ["crowd-1", "crowd-2", "crowd-3", "gold"]
    split = polyfid.json("check", *answers, "--ties", "split")
    assert rows_of(split)["crowd"] > N


def test_names_of_columns(polyfid, crowd, folder):
    pd.read_csv("items.csv").rename(columns={"id": "key"}).to_csv("keyed.csv", index=False)
    args = ("--items", "keyed.csv", "--answers", "named.csv", "--gold", "named-gold.csv")
    names = ("--id", "key", "--task", "song", "--worker", "who", "--target", "genre")
    polyfid("convert", *args, *names, "-o", "rows.csv")
    assert list(pd.read_csv("rows.csv")) == ["key", "heat", "label", "fidelity", "weight"]
    assert "task=" in polyfid("check", *args, "--id", "key", code=1).stderr


def test_seeded_draws(polyfid, crowd):
    answers = (*crowd, "--answers", "long.csv", "-o", "-")
    draws = [polyfid("convert", *answers, "--seed", seed).stdout for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_fit_and_report_take_them(polyfid, crowd, folder):
    polyfid("fit", *crowd, "--answers", "wide.csv", "--kernel", "rbf", "-q")
    assert polyfid.json("inspect", "model.polyfid")["levels"] == ["crowd", "gold"]
    polyfid("fit", "--config", "model.polyfid.toml", "-q")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--crowd", "majority", "--aggregate", "glad"], "leave one out"),
        (["--fidelity", "level"], "--fidelity is a column of tidy tables"),
        (["--weight", "w"], "--weight is a column of tidy tables"),
        (["--groups", "0"], "--groups"),
        (["--aggregate", "shouting"], "--aggregate"),
    ],
)
def test_calls_that_make_no_sense(polyfid, crowd, args, words):
    said = polyfid("check", *crowd, "--answers", "long.csv", *args, code=2).stderr
    assert words in " ".join(said.replace("│", " ").split())


def test_unknown_tasks_are_a_problem_with_the_data(polyfid, crowd, folder):
    with (folder / "long.csv").open("a") as file:
        file.write("999,ann,hot\n")
    said = polyfid("check", *crowd, "--answers", "long.csv", code=1).stderr
    row = len((folder / "long.csv").read_text().splitlines())
    assert f"answers (long.csv) has 1 of {N + 1} tasks that are no items: '999'" in said
    assert f"column 'task', row {row}." in said


def test_errors_name_file_row_and_option(polyfid, crowd, folder):
    answers = ("--answers", "long.csv")
    items = pd.read_csv("items.csv")
    items.rename(columns={"id": "song"}).to_csv("other.csv", index=False)
    said = polyfid("check", "--items", "other.csv", *answers, code=1).stderr
    assert "items (other.csv) has no column 'id'" in said
    assert "(--id)" in said
    pd.concat([items, items[4:5]]).to_csv("twice.csv", index=False)
    said = polyfid("check", "--items", "twice.csv", *answers, code=1).stderr
    assert "items (twice.csv), column 'id': '4' occur" in said
    assert f"again in row {N + 2};" in said
    # A row without an answer is left out, and does not move the count of those after it.
    (folder / "gap.csv").write_text("task,worker,label\n1,ann,hot\n2,ann,\n\n,ann,hot\n")
    said = polyfid("check", "--items", "items.csv", "--answers", "gap.csv", code=1).stderr
    assert "answers (gap.csv), column 'task': no value in row 5, 1 in all" in said
    (folder / "wide-gap.csv").write_text("task,ann\n1,hot\n,cold\n,\n")
    said = polyfid("check", *crowd, "--answers", "wide-gap.csv", "--form", "wide", code=1).stderr
    assert "answers (wide-gap.csv), column 'task': no value in row 3, 1 in all" in said
    (folder / "no-gold.csv").write_text("task,label\n1,hot\n2,\n")
    said = polyfid(
        *("check", "--items", "items.csv", *answers, "--gold", "no-gold.csv"), code=1
    ).stderr
    assert "gold (no-gold.csv), column 'label': no label in row 3" in said


def test_without_crowd_kit_the_extra_is_named(polyfid, crowd, no_crowd_kit):
    answers = (*crowd, "--answers", "long.csv", "--aggregate", "dawid-skene")
    for verb in ("check", "fit"):
        assert "polyfid[crowd]" in polyfid(verb, *answers, code=2).stderr


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("crowdkit") is None, reason="crowd-kit is missing")
def test_dawid_and_skene(polyfid, crowd):
    found = polyfid.json(
        "check", *crowd, "--answers", "long.csv", "--aggregate", "one-coin-dawid-skene"
    )
    assert rows_of(found) == {"crowd": N, "gold": N // 2}


# ------------------------------------------------------------------------- Label Studio


@pytest.fixture
def export(folder):
    def choice(who, label, name="genre"):
        entry = {"type": "choices", "from_name": name, "to_name": "song"}
        return {"completed_by": who, "result": [{**entry, "value": {"choices": [label]}}]}

    rng = np.random.RandomState(0)
    tasks = []
    for i in range(N):
        x = float(rng.uniform(-1, 1))
        right, other = ("pop", "rock") if x > 0 else ("rock", "pop")
        said = [choice(1, other if i % 5 == 0 else right), choice(2, right)]
        if i % 2:
            said.append(choice(3, right))
        tasks.append({"id": i + 1, "data": {"tempo": x}, "annotations": said})
    (folder / "export.json").write_text(json.dumps(tasks))
    return tasks


def test_an_export_comes_in(polyfid, export):
    found = polyfid.json("check", "export.json", "--trusted", "3")
    assert rows_of(found) == {"crowd": N, "gold": N // 2}
    assert found["classes"] == ["pop", "rock"]
    assert polyfid.json("check", "export.json", "--from-name", "genre")["levels"] == ["crowd"]
    said = polyfid("check", "export.json", "--trusted", "9", code=1).stderr
    assert "export.json: trusted: nobody called '9'" in said
    assert "mood" in polyfid("check", "export.json", "--from-name", "mood", code=1).stderr


def test_there_and_back(polyfid, export, folder):
    polyfid("fit", "export.json", "--trusted", "3", "--kernel", "rbf", "-q")
    export.append({"id": 99, "data": {"tempo": 0.1}, "annotations": []})  # nobody has seen it
    (folder / "export.json").write_text(json.dumps(export))
    polyfid("predict", "model.polyfid", "export.json", "--block", 10, "-o", "out.csv")
    assert pd.read_csv("out.csv")["id"].tolist() == [t["id"] for t in export]
    polyfid("convert", "export.json", "--to", "table", "-o", "tasks.csv")
    assert pd.read_csv("tasks.csv").columns.tolist() == ["id", "tempo"]
    polyfid("predict", "model.polyfid", "tasks.csv", "-o", "same.csv")
    pd.testing.assert_frame_equal(pd.read_csv("same.csv"), pd.read_csv("out.csv"), rtol=1e-10)
    tags = ("--to", "labelstudio", "--from-name", "genre", "--to-name", "song")
    polyfid("convert", "out.csv", *tags, "-o", "ids.json")
    alone = json.loads((folder / "ids.json").read_text())
    assert [p["task"] for p in alone] == [t["id"] for t in export]
    assert all(0.5 <= p["score"] <= 1 for p in alone)
    made = polyfid.json("convert", "out.csv", *tags, "--tasks", "export.json", "-o", "tasks.json")
    assert made["written"] == ["tasks.json"]
    whole = json.loads((folder / "tasks.json").read_text())
    assert whole[0]["data"] == export[0]["data"]
    assert whole[0]["predictions"][0]["result"][0]["from_name"] == "genre"


def test_predictions_for_label_studio_need_names(polyfid, folder):
    polyfid("predict", "model.polyfid", "new.csv", "-o", "out.csv")
    said = polyfid("convert", "out.csv", "--to", "labelstudio", "-o", "p.json", code=2).stderr
    assert "--from-name" in said
    tags = ("--to", "labelstudio", "--from-name", "a", "--to-name", "b")
    assert "-o -" in polyfid("convert", "out.csv", *tags, "-o", "-", code=2).stderr
    assert ".json" in polyfid("convert", "out.csv", *tags, "-o", "p.csv", code=2).stderr
    result = polyfid("convert", "out.csv", *tags, "--id", "nr", "-o", "p.json", code=1)
    assert "out.csv" in result.stderr
    assert "'nr'" in result.stderr


def test_one_row_a_task_goes_to_label_studio(polyfid, folder):
    (folder / "p.csv").write_text("id,p_a,p_b\n1,0.5,0.5\n2,0.5,0.5\n1,0.2,0.8\n")
    tags = ("--to", "labelstudio", "--from-name", "a", "--to-name", "b")
    said = polyfid("convert", "p.csv", *tags, "-o", "p.json", code=1).stderr
    assert "p.csv, row 4, column 'id': task 1 has an earlier row too" in said
    assert not (folder / "p.json").exists()


def test_other_json_is_no_table(polyfid, folder):
    (folder / "t.json").write_text("{}")
    said = polyfid("check", "--level", "a=t.json", "--level", "b=expert.csv", code=1).stderr
    assert "t.json: JSON is no table" in said
    assert "t.json: " in polyfid("predict", "model.polyfid", "t.json", code=1).stderr
