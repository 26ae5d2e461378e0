"""Tables of a crowd and exports of Label Studio, through the verbs that read them."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

N = 24
TABLES = "--items items.csv --gold gold.csv"
TAGS = "--to labelstudio --from-name genre --to-name song"


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
    gold = pd.DataFrame({"task": range(0, N, 2), "label": right[::2]})
    gold.to_csv("gold.csv", index=False)
    return long, gold


@pytest.fixture
def no_crowd_kit(monkeypatch):
    """crowd-kit is not installed."""
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    monkeypatch.setitem(sys.modules, "crowdkit", None)


def rows_of(found):
    return dict(zip(found["levels"], map(sum, found["counts"]), strict=True))


def test_long_and_wide_are_the_same(polyfid, crowd):
    wide = polyfid.json(f"check {TABLES} --answers wide.csv")
    assert rows_of(wide) == {"crowd": N, "gold": N // 2}
    for same in ("long.csv", "wide.csv --form wide", "long.csv --aggregate majority"):
        assert polyfid.json(f"check {TABLES} --answers {same}") == wide


def test_rows_of_the_crowd(polyfid, crowd, no_crowd_kit):
    check = f"check {TABLES} --answers long.csv"
    every = polyfid.json(f"{check} --crowd answer")
    assert rows_of(every) == {"crowd": 4 * N - 1, "gold": N // 2}
    assert [f["name"] for f in every["features"]] == ["heat"]  # and not the worker
    skill = polyfid.json(f"{check} --crowd skill --groups 3")
    assert skill["levels"] == ["crowd-1", "crowd-2", "crowd-3", "gold"]
    assert rows_of(polyfid.json(f"{check} --ties split"))["crowd"] > N


def test_names_of_columns(polyfid, crowd):
    long, gold = crowd
    pd.read_csv("items.csv").rename(columns={"id": "key"}).to_csv("keyed.csv", index=False)
    long.set_axis(["song", "who", "genre"], axis=1).to_csv("named.csv", index=False)
    gold.set_axis(["song", "genre"], axis=1).to_csv("named-gold.csv", index=False)
    args = "--items keyed.csv --answers named.csv --gold named-gold.csv --id key"
    polyfid(f"convert {args} --task song --worker who --target genre -o rows.csv")
    assert list(pd.read_csv("rows.csv")) == ["key", "heat", "label", "fidelity", "weight"]
    assert "task=" in polyfid(f"check {args}", code=1).stderr


def test_errors_name_file_row_and_option(polyfid, crowd, folder):
    for role, table, words in [
        ("items", "song\n1", "items (bad.csv): there is no column 'id'"),
        # A row without an answer is left out, and does not move the count of those after it.
        (
            "answers",
            "task,worker,label\n1,ann,hot\n2,ann,\n\n,ann,hot\n",
            "answers (bad.csv), row 5, column 'task': the cell is empty (1 in all)",
        ),
    ]:
        (folder / "bad.csv").write_text(table)
        files = {"items": "items.csv", "answers": "long.csv", role: "bad.csv"}
        call = " ".join(f"--{name} {file}" for name, file in files.items())
        assert words in polyfid(f"check {call}", code=1).stderr


def test_without_crowd_kit_the_extra_is_named(polyfid, crowd, no_crowd_kit):
    call = f"check {TABLES} --answers long.csv --aggregate dawid-skene"
    assert "polyfid[crowd]" in polyfid(call, code=2).stderr


@pytest.fixture
def export(folder):
    def choice(who, label):
        entry = {"type": "choices", "from_name": "genre", "to_name": "song"}
        return {"completed_by": who, "result": [{**entry, "value": {"choices": [label]}}]}

    tasks = []
    for i, x in enumerate(np.random.RandomState(0).uniform(-1, 1, N).tolist()):
        right, other = ("pop", "rock") if x > 0 else ("rock", "pop")
        said = [choice(1, other if i % 5 == 0 else right), choice(2, right)]
        said += [choice(3, right)] * (i % 2)
        tasks.append({"id": i + 1, "data": {"tempo": x}, "annotations": said})
    (folder / "export.json").write_text(json.dumps(tasks))
    return tasks


def test_an_export_comes_in(polyfid, export):
    found = polyfid.json("check export.json --trusted 3")
    assert rows_of(found) == {"crowd": N, "gold": N // 2}
    assert found["classes"] == ["pop", "rock"]
    assert polyfid.json("check export.json --from-name genre")["levels"] == ["crowd"]
    assert "nobody called '9'" in polyfid("check export.json --trusted 9", code=1).stderr


def test_there_and_back(polyfid, export, folder):
    polyfid("fit export.json --trusted 3 --kernel rbf -q")
    export.append({"id": 99, "data": {"tempo": 0.1}, "annotations": []})  # nobody has labelled it
    (folder / "export.json").write_text(json.dumps(export))
    polyfid("predict model.polyfid export.json --block 10 -o out.csv")
    assert pd.read_csv("out.csv")["id"].tolist() == [t["id"] for t in export]
    polyfid("convert export.json --to table -o tasks.csv")
    assert pd.read_csv("tasks.csv").columns.tolist() == ["id", "tempo"]
    made = polyfid.json(f"convert out.csv {TAGS} --tasks export.json -o tasks.json")
    assert made["written"] == ["tasks.json"]
    whole = json.loads((folder / "tasks.json").read_text())
    assert whole[0]["data"] == export[0]["data"]
    assert whole[0]["predictions"][0]["result"][0]["from_name"] == "genre"


def test_one_row_per_task_goes_to_label_studio(polyfid, folder):
    (folder / "p.csv").write_text("id,p_a,p_b\n1,0.5,0.5\n2,0.5,0.5\n1,0.2,0.8\n")
    said = polyfid(f"convert p.csv {TAGS} -o p.json", code=1).stderr
    assert "p.csv, row 4, column 'id': task 1 has an earlier row too" in said
    said = polyfid(f"convert p.csv {TAGS} --id nr -o p.json", code=1).stderr
    assert "p.csv: there is no column 'nr' with ids of tasks" in said
    assert not (folder / "p.json").exists()


def test_other_json_is_no_table(polyfid, folder):
    (folder / "t.json").write_text("{}")
    said = polyfid("check --level a=t.json --level b=expert.csv", code=1).stderr
    assert "t.json: JSON is no table" in said
    assert "t.json must be a list" in polyfid("predict model.polyfid t.json", code=1).stderr
