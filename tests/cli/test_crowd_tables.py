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


def test_common_names_need_no_options(polyfid, crowd):
    long, gold = crowd
    expected = polyfid.json(f"check {TABLES} --answers long.csv")
    pd.read_csv("items.csv").rename(columns={"id": "item_id"}).to_csv("items.csv", index=False)
    long.set_axis(["item", "user", "answer"], axis=1).to_csv("long.csv", index=False)
    gold.set_axis(["id", "rating"], axis=1).to_csv("gold.csv", index=False)
    assert polyfid.json(f"check {TABLES} --answers long.csv") == expected
    long.assign(item=1, question=2).drop(columns="task").to_csv("long.csv", index=False)
    said = polyfid.refusal(f"check {TABLES} --answers long.csv", code=1)
    assert "answers (long.csv): columns 'item', 'question' could each be the task" in said


def test_the_worker_is_kept_and_groups_are_listed(polyfid, crowd, no_crowd_kit):
    polyfid(f"convert {TABLES} --answers long.csv --crowd answer -o rows.csv")
    assert {*pd.read_csv("rows.csv")["worker"]} == {"ann", "bob", "cat", "dan", "gold"}
    for verb in ("check", "convert -o rows.csv", "fit --kernel rbf"):
        said = polyfid(f"{verb} {TABLES} --answers long.csv --crowd skill").stderr
        assert "annotators by skill, the least first: crowd-1: " in said
        assert said.strip().endswith("crowd-2: dan, ann")


def test_annotators(polyfid, crowd):
    text = polyfid("annotators --answers long.csv --gold gold.csv").stdout
    assert "Sensitivity is how often they say 'hot'" in text
    assert "  ann " in text
    found = polyfid.json(f"annotators {TABLES} --answers wide.csv")
    by_name = {row["worker"]: row for row in found["annotators"]}
    assert found["classes"] == ["cold", "hot"]
    assert by_name["ann"]["agreement_gold"] > by_name["dan"]["agreement_gold"]
    assert by_name["bob"]["n_gold"] == N // 2
    polyfid(f"annotators {TABLES} --answers wide.csv -o people.csv")
    assert pd.read_csv("people.csv")["worker"].tolist() == [*by_name]
    assert polyfid.json("annotators --answers long.csv")["annotators"][0]["agreement_gold"] is None
    # The same from one tidy table.
    polyfid(f"convert {TABLES} --answers long.csv --crowd answer -o rows.csv")
    tidy = polyfid.json("annotators rows.csv --levels crowd,gold")
    assert tidy["annotators"] == found["annotators"]
    renamed = pd.read_csv("rows.csv").rename(columns={"worker": "who"})
    renamed.to_csv("rows.csv", index=False)
    assert tidy == polyfid.json("annotators rows.csv --levels crowd,gold --worker who")
    said = polyfid("annotators rows.csv --levels crowd,gold --features heat", code=1).stderr
    assert "--worker" in said


def test_annotators_of_an_export(polyfid, export):
    found = polyfid.json("annotators export.json --trusted 3")
    (first, second) = found["annotators"]
    assert (first["worker"], second["worker"]) == ("1", "2")
    assert second["agreement_gold"] == 1.0
    assert first["agreement_gold"] < 1.0


def test_annotators_with_many_classes(polyfid, folder):
    tasks = np.arange(60)
    truth = np.array([f"class {k % 12}" for k in tasks])
    pd.DataFrame({"task": tasks, "ann": truth, "bob": truth[::-1]}).to_csv("a.csv", index=False)
    pd.DataFrame({"task": tasks, "label": truth}).to_csv("g.csv", index=False)
    text = polyfid("annotators --answers a.csv --gold g.csv").stdout
    assert "does not fit here" in text
    pd.DataFrame({"task": tasks, "ann": tasks % 3, "bob": 0}).to_csv("a.csv", index=False)
    pd.DataFrame({"task": tasks, "label": tasks % 3}).to_csv("g.csv", index=False)
    text = polyfid("annotators --answers a.csv --gold g.csv").stdout
    assert "right where trusted is    0    1    2" in text


@pytest.fixture
def texts(folder):
    """A project whose tasks are texts and images; annotator 3 is right."""
    rng = np.random.RandomState(0)
    tasks = []
    for i in range(80):
        label = ("pop", "rock")[i % 2]
        words = ["guitar", "drums", "loud"] if label == "rock" else ["dance", "synth", "sweet"]
        text = " ".join(rng.permutation([*words, "song", "about", "love", f"take{i}"]))
        entry = {"type": "choices", "from_name": "genre", "to_name": "song"}
        said = [
            {"completed_by": who, "result": [{**entry, "value": {"choices": [label]}}]}
            for who in (1, 2, 3)[: 3 if i < 40 else 2]
        ]
        data = {"text": text, "cover": f"s3://covers/{i}.jpg"}
        tasks.append({"id": i + 1, "data": data, "annotations": said if i < 60 else []})
    (folder / "texts.json").write_text(json.dumps(tasks))
    return tasks


def test_a_project_of_texts_goes_there_and_back(polyfid, texts, folder):
    fit = "fit texts.json --trusted 3 --kernel rbf -q"
    assert "name it as text (--text)" in polyfid(fit, code=1).stderr
    polyfid(f"{fit} --text text")
    polyfid("predict model.polyfid texts.json --block 33 -o out.csv")
    predicted = pd.read_csv("out.csv")
    assert predicted["id"].tolist() == [task["id"] for task in texts]
    assert predicted["label"].tolist() == ["pop", "rock"] * 40
    polyfid(f"convert out.csv {TAGS} --tasks texts.json -o tasks.json")
    made = json.loads((folder / "tasks.json").read_text())
    assert [task["data"] for task in made] == [task["data"] for task in texts]
    check = polyfid.json("check texts.json --trusted 3 --text text")
    assert [(f["name"], f["kind"]) for f in check["features"]] == [("text", "text")]
    assert "column left out: 'cover'" in check["notes"]


def test_a_project_of_images_needs_embeddings(polyfid, texts, folder):
    for task in texts:
        del task["data"]["text"]
    (folder / "texts.json").write_text(json.dumps(texts))
    said = polyfid("check texts.json --trusted 3", code=1).stderr
    assert said.startswith("polyfid: texts.json: there is no column to learn from")
    assert "embeddings (--embeddings FILE)" in said
    values = np.random.RandomState(0).normal(size=(80, 2))
    values[:, 0] += np.where(np.arange(80) % 2, 2.0, -2.0)
    np.save("emb.npy", values)
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(id=[t["id"] for t in texts])
    frame[::-1].to_parquet("emb.parquet")
    given = "texts.json --trusted 3 --kernel rbf"
    for file in ("emb.npy", "emb.parquet"):
        polyfid(f"fit {given} -q --embeddings {file}")
        polyfid(f"predict model.polyfid texts.json --block 33 --embeddings {file} -o {file}.csv")
        assert (pd.read_csv(f"{file}.csv")["label"] == ["pop", "rock"] * 40).mean() > 0.9
    assert polyfid.json(f"evaluate {given} --embeddings emb.npy --folds 2")
    assert "--embeddings" in polyfid("predict model.polyfid texts.json", code=1).stderr
    frame[4:].to_csv("few.csv", index=False)
    said = polyfid(f"check {given[:23]} --embeddings few.csv", code=1).stderr
    assert "embeddings (few.csv): 4 of 60 ids of column 'id' have no embedding: '1', '2'" in said


def test_texts_and_embeddings_of_tables(polyfid, folder):
    rng = np.random.RandomState(0)
    label = np.array(["a", "b"] * 30)
    words = {"a": ["apple", "apricot"], "b": ["beet", "bean"]}
    text = [" ".join(rng.permutation([*words[one], "and"])) for one in label]
    note = ["ripe and ready", "green and hard", "ready and green"] * 20
    rows = pd.DataFrame({"text": text, "note": note, "label": label, "fidelity": [1, 2] * 30})
    rows.loc[:9, "fidelity"] = [1, 1, 2, 2, 1, 1, 2, 2, 1, 2]
    rows.to_csv("rows.csv", index=False)
    ways = ("--text text,note", "--text text --text note")
    found = [polyfid.json(f"check rows.csv {way}")["features"] for way in ways]
    assert found[0] == found[1]
    assert [f["kind"] for f in found[0]] == ["text", "text"]
    polyfid("fit rows.csv --text text --kernel rbf -q --in-blocks --inducing 10 --block 20")
    np.save("emb.npy", np.zeros((60, 1)))
    refusal = polyfid.refusal("fit rows.csv --embeddings emb.npy --text text --in-blocks")
    assert "--embeddings are for tables that are read at once" in refusal
    assert "did you mean 'text'" in polyfid("check rows.csv --text txt", code=1).stderr
