"""``polyfid fit``, ``predict`` and ``inspect``."""

import gzip
import io
import re

import numpy as np
import pandas as pd
import pytest

import polyfid as library
from polyfid import MultiFidelityClassifier
from polyfid.cli import predict as verb
from polyfid.kernels import RBF

FAST = ("--kernel", "rbf")


def test_fit_saves_and_says_what_it_learnt(polyfid, folder):
    levels = ("--level", "crowd=crowd.csv", "--level", "expert=expert.csv")
    result = polyfid("fit", *levels, *FAST, "-o", "m.polyfid")
    assert "crowd: 40 rows" in result.stdout
    assert "expert = " in result.stdout
    assert "Written: m.polyfid and m.polyfid.toml" in result.stdout
    assert result.stderr == ""
    model = library.load("m.polyfid")
    assert list(model.classifier.levels_) == ["crowd", "expert"]
    assert model.table.ids[0] == "c00"


def test_the_same_from_python_and_from_a_tidy_table(polyfid, folder):
    levels = ("--level", "crowd=crowd.csv", "--level", "expert=expert.csv")
    polyfid("fit", *levels, *FAST, "-o", "m.polyfid", "-q")
    new = pd.read_csv("new.csv")
    one, other = library.load("m.polyfid"), library.load("model.polyfid")
    np.testing.assert_array_equal(one.predict(new)["p_good"], other.predict(new)["p_good"])


def test_json_and_quiet(polyfid, folder):
    made = polyfid.json("fit", "tidy.csv", *FAST)
    assert made["model"] == "model.polyfid"
    assert made["summary"]["levels"] == ["crowd", "expert"]
    quiet = polyfid("fit", "tidy.csv", *FAST, "--quiet")
    assert quiet.stdout == quiet.stderr == ""


def test_columns_that_are_called_otherwise(polyfid, folder):
    table = pd.read_csv("tidy.csv").rename(
        columns={"label": "verdict", "fidelity": "who", "id": "name"}
    )
    table["times"], table["kind"], table["noise"] = 2, [1, 2, 3] * 20, "z"
    table.to_parquet("other.parquet")
    polyfid(
        *("fit", "other.parquet", "--target", "verdict", "--fidelity", "who", "--id", "name"),
        *("--weight", "times", "--features", "heat, kind", "--categorical", "kind"),
        *("--levels", "expert,crowd", *FAST, "-q"),
    )
    held = polyfid.json("inspect", "model.polyfid")
    assert held["inputs"] == {"heat": "number", "kind": "category"}
    assert held["levels"] == ["expert", "crowd"]
    assert held["target"] == "verdict"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-o", "-"], "a model is a file"),
        (["-o", "no/such/m.polyfid"], "no folder no/such"),
        (["-o", "."], "is a folder"),
        (["-o", "tidy.csv"], "would be replaced"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "0"], "--jobs"),
        (["--kernel", "round"], "--kernel"),
    ],
)
def test_calls_that_make_no_sense(polyfid, folder, args, words):
    before = (folder / "tidy.csv").read_bytes()
    result = polyfid("fit", "tidy.csv", *args, code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert (folder / "tidy.csv").read_bytes() == before


def test_one_class_is_a_problem_with_the_data(polyfid, folder):
    (folder / "one.csv").write_text("x,label,fidelity\n1,a,low\n2,a,top\n")
    assert "two classes" in polyfid("fit", "one.csv", code=1).stderr
    assert not (folder / "one.polyfid").exists()


def test_a_model_without_its_rows(polyfid, folder):
    polyfid("fit", "tidy.csv", *FAST, "--no-rows", "-o", "bare.polyfid", "-q")
    assert library.load("bare.polyfid").table is None
    assert b"c00" not in (folder / "bare.polyfid").read_bytes()
    polyfid("predict", "bare.polyfid", "new.csv", "-o", "out.csv")
    said = polyfid("report", "bare.polyfid", code=1).stderr
    assert "has no rows" in said
    assert "give the tables instead" in said


# ------------------------------------------------------------------------------ predict


def test_columns_of_predictions(polyfid, folder):
    result = polyfid("predict", "model.polyfid", "new.csv", "-o", "out.csv")
    assert result.stdout == "12 rows predicted, written to out.csv\n"
    out = pd.read_csv("out.csv")
    assert list(out) == ["id", "label", "p_bad", "p_good", "latent_mean", "latent_sd"]
    assert list(out["id"]) == [f"n{i:02d}" for i in range(12)]
    expected = library.load("model.polyfid").predict(pd.read_csv("new.csv"))
    np.testing.assert_allclose(out["p_good"], expected["p_good"], rtol=1e-14)
    said = polyfid.json("predict", "model.polyfid", "new.csv", "-o", "out.csv")
    assert (said["rows"], said["out"]) == (12, "out.csv")


def test_from_standard_input_to_standard_output(polyfid, folder):
    result = polyfid("predict", "model.polyfid", "-", input=(folder / "new.csv").read_bytes())
    assert result.stderr == ""
    assert len(pd.read_csv(io.StringIO(result.stdout))) == 12
    before = sorted(folder.iterdir())
    polyfid("predict", "model.polyfid", "new.csv", "-o", "-", "-q")
    assert sorted(folder.iterdir()) == before


def test_blocks_change_nothing(polyfid, folder):
    whole = polyfid("predict", "model.polyfid", "new.csv").stdout
    few = polyfid("predict", "model.polyfid", "new.csv", "--block", 5, "--jobs", 1).stdout
    numbers = [
        np.loadtxt(io.StringIO(t), delimiter=",", skiprows=1, usecols=2) for t in (whole, few)
    ]
    np.testing.assert_allclose(*numbers, rtol=1e-12)


@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet", "out.tsv"])
def test_formats(polyfid, folder, name):
    with gzip.open("new.csv.gz", "wb") as file:
        file.write((folder / "new.csv").read_bytes())
    polyfid("predict", "model.polyfid", "new.csv.gz", "-o", name)
    read = {"gz": pd.read_csv, "parquet": pd.read_parquet, "tsv": pd.read_table}
    assert len(read[name.rpartition(".")[2]](name)) == 12


def test_another_level_and_another_id(polyfid, folder):
    top = polyfid("predict", "model.polyfid", "new.csv").stdout
    low = polyfid("predict", "model.polyfid", "new.csv", "--fidelity", "crowd").stdout
    assert top != low
    assert polyfid("predict", "model.polyfid", "new.csv", "--id", "heat").stdout.startswith("heat,")
    assert "'name'" in polyfid("predict", "model.polyfid", "new.csv", "--id", "name", code=1).stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--json"], "cannot both go to standard output"),
        (["--json", "-o", "-"], "cannot both go to standard output"),
        (["-o", "new.csv"], "would be replaced"),
        (["-o", "model.polyfid"], "would be replaced"),
        (["-o", "out.xlsx"], "must end in"),
        (["--fidelity", "oracle"], "crowd, expert"),
        (["--block", "0"], "--block"),
    ],
)
def test_predictions_that_cannot_be_asked_for(polyfid, folder, args, words):
    result = polyfid("predict", "model.polyfid", "new.csv", *args, code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


def test_problems_with_new_rows_name_row_and_column(polyfid, folder):
    (folder / "less.csv").write_text("id,heat\n1,2\n")
    assert "'flow'" in polyfid("predict", "model.polyfid", "less.csv", code=1).stderr
    (folder / "text.csv").write_text("id,heat,flow\n1,2,3\n2,hot,3\n")
    said = polyfid("predict", "model.polyfid", "text.csv", "-o", "out.csv", code=1).stderr
    assert "text.csv, row 3, column 'heat'" in said
    assert not list(folder.glob("*out*"))


@pytest.mark.parametrize("name", ["new.csv", "new.csv.gz", "new.parquet", "-"])
def test_a_column_of_another_name_is_named_though_it_is_not_read(polyfid, folder, name):
    new = pd.read_csv("new.csv").rename(columns={"heat": "Heat", "flow": "feat"})
    text = new.to_csv(index=False)
    if name != "-":
        polyfid("convert", "-", "--to", "table", "-o", name, input=text)
    said = polyfid("predict", "model.polyfid", name, input=text, code=1).stderr
    there = ", ".join(map(repr, new.columns))
    file = "standard input" if name == "-" else name
    assert f"{file}: there is no column 'heat', which the model was fitted to" in said
    assert f"did you mean 'Heat'? the columns are {there}" in said
    said = polyfid("predict", "model.polyfid", name, "--id", "idd", input=text, code=1).stderr
    assert f"did you mean 'id'? the columns are {there}" in said


def test_no_column_is_suggested_that_is_another_feature(polyfid, folder):
    pd.read_csv("new.csv").drop(columns="heat").assign(heat2=1).to_csv("a.csv", index=False)
    (folder / "b.csv").write_text("beat,flow,label,fidelity\n1,2,a,x\n2,3,b,x\n3,1,a,y\n4,2,b,y\n")
    assert "did you mean 'heat2'" in polyfid("predict", "model.polyfid", "a.csv", code=1).stderr
    polyfid("fit", "b.csv", "--kernel", "rbf", "-q", "-o", "b.polyfid")
    (folder / "c.csv").write_text("floe,flow\n1,2\n")
    said = polyfid("predict", "b.polyfid", "c.csv", code=1).stderr
    assert "no column 'beat'" in said
    assert "did you mean" not in said


def test_a_wrong_file_is_told_in_one_line(polyfid, folder):
    names = ["a", "b", "c", "d"]
    rows = "\n".join(f"{i},{i % 3},1,{i},{'xy'[i % 2]},{'lh'[i // 4]}" for i in range(8))
    (folder / "t.csv").write_text(f"{','.join(names)},label,fidelity\n{rows}\n")
    polyfid("fit", "t.csv", "--levels", "l,h", "--kernel", "rbf", "-q", "-o", "t.polyfid")
    said = polyfid("predict", "t.polyfid", "new.csv", code=1).stderr
    assert said.count("polyfid:") == 1
    assert "there are no columns 'a', 'b', 'c', 'd', which the model was fitted to" in said


def test_a_model_is_no_table(polyfid, folder):
    for call in (("check",), ("fit", "-o", "m.polyfid"), ("predict", "model.polyfid")):
        said = polyfid(*call, "model.polyfid", code=1).stderr
        assert "model.polyfid: this is a model that polyfid saved, not a table" in said


def test_files_that_are_no_models(polyfid, folder):
    assert "not a polyfid model" in polyfid("predict", "tidy.csv", "new.csv", code=1).stderr
    assert "not a polyfid model" in polyfid("inspect", "tidy.csv", code=1).stderr
    assert "No such file" in polyfid("inspect", "nowhere.polyfid", code=2).stderr
    data = (folder / "model.polyfid").read_bytes()
    (folder / "cut.polyfid").write_bytes(data[:-50])
    polyfid("predict", "cut.polyfid", "new.csv", code=1)
    x = np.linspace(-1, 1, 12)[:, None]
    MultiFidelityClassifier(1.0 * RBF()).fit(x, x[:, 0] > 0).save("plain.polyfid")
    said = polyfid("predict", "plain.polyfid", "new.csv", code=1).stderr
    assert "knows no columns" in said
    assert polyfid.json("inspect", "plain.polyfid")["kind"] == "classifier"


def test_stopped_in_the_middle(polyfid, folder, monkeypatch):
    (folder / "out.csv").write_text("what was there before\n")
    step = iter(range(100))

    def stop(blocks):
        for block in blocks:
            if next(step) == 1:
                raise KeyboardInterrupt
            yield block

    kept = verb.load_table_model

    def load(path):
        model = kept(path)
        read = model.read_blocks
        object.__setattr__(model, "read_blocks", lambda *a, **k: stop(read(*a, **k)))
        return model

    monkeypatch.setattr(verb, "load_table_model", load)
    before = {p: p.read_bytes() for p in folder.iterdir()}
    result = polyfid(
        *("predict", "model.polyfid", "new.csv", "-o", "out.csv", "--block", 4), code=130
    )
    assert "stopped" in result.stderr
    assert {p: p.read_bytes() for p in folder.iterdir()} == before


# ------------------------------------------------------------------------------ inspect


def test_inspect_says_what_is_in_a_model(polyfid, folder):
    said = polyfid("inspect", "model.polyfid").stdout
    assert re.search(r"^levels: crowd, expert$", said, re.MULTILINE)
    assert re.search(r"^  crowd:\n    bad: \d+", said, re.MULTILINE)
    assert polyfid("inspect", "model.polyfid", "-q").stdout == ""
    held = polyfid.json("inspect", "model.polyfid")
    assert held["schema"] == 2
    assert held["features"] == ["heat", "flow"]
