"""``polyfid score``, and costs in ``fit`` and ``predict``."""

import typing

import pandas as pd
import pytest

import polyfid as library
from polyfid.cli.options import Fitting
from polyfid.kernels import NAMED

SCORE = "score model.polyfid test.csv"
FIT = "fit --level crowd=crowd.csv --level expert=expert.csv --kernel rbf"


@pytest.fixture
def folder(folder, some_rows):
    rows = some_rows(60, 0.1, 5, "t")
    rows.to_csv(folder / "test.csv", index=False)
    rows.assign(fidelity=["crowd", "expert"] * 30).to_csv(folder / "both.csv", index=False)
    return folder


def test_scores_in_text_and_json(polyfid, folder):
    result = polyfid(SCORE)
    assert result.stderr == ""
    assert result.stdout.startswith("Scores on 60 rows, with 95 % intervals:")
    assert max(map(len, result.stdout.splitlines())) <= 60
    found = polyfid.json(SCORE)
    assert [*found["scores"]] == ["log_loss", "roc_auc", "accuracy", "brier", "calibration_error"]
    for e in found["scores"].values():
        assert e["low"] <= e["value"] <= e["high"]
    predicted = library.load("model.polyfid").predict("test.csv")["label"]
    truth = pd.read_csv("test.csv")["label"]
    assert found["scores"]["accuracy"]["value"] == pytest.approx((predicted == truth).mean())
    assert found["confusion"]["good"]["bad"] == ((truth == "good") & (predicted == "bad")).sum()
    assert found["n_known"] == 0
    assert not list(folder.glob("*.toml"))


def test_trusted_rows_unless_all_are_asked_for(polyfid, folder):
    said = polyfid("score model.polyfid both.csv").stdout
    assert "Rows of the most trusted level, expert; 30 rows of other levels are left out." in said
    assert "Scores on 30 rows" in said
    assert polyfid.json("score model.polyfid both.csv --all-rows")["n_rows"] == 60
    pd.read_csv("test.csv").rename(columns={"label": "truth"}).to_csv("other.csv", index=False)
    assert "no column 'label' of labels" in polyfid.refusal("score model.polyfid other.csv", code=1)
    assert polyfid.json("score model.polyfid other.csv --target truth")["n_rows"] == 60


def test_rows_of_the_fit_are_a_warning(polyfid, folder):
    said = polyfid("score model.polyfid tidy.csv").stderr
    assert "20 of the 20 rows have the features and the label of a row that the model" in said
    found = polyfid.json("score model.polyfid tidy.csv --all-rows")
    assert found["n_known"] == 60
    assert "scores on such rows are too good" in found["warnings"][0]


def test_costs_are_stored_and_used(polyfid, folder):
    said = polyfid(f"{SCORE} --costs fp=1,fn=20 --cost-abstain 0.5 -o decides.polyfid").stdout
    assert "'good' is decided where its probability is 0.5 or above" in " ".join(said.split())
    assert "by probability above 0.5" in said
    assert "Written: decides.polyfid, decides.polyfid.toml" in said
    result = polyfid("predict decides.polyfid new.csv --keep flow -o out.csv")
    assert result.stdout.startswith("Labels are decisions by costs.\nCosts: 1 for 'good' where")
    out = pd.read_csv("out.csv")
    expected = out["p_good"].map(lambda p: "good" if p >= 0.5 else "bad" if p <= 0.025 else None)
    assert out["label"].fillna("").tolist() == expected.fillna("").tolist()
    assert out["label"].isna().any()
    assert out["flow"].tolist() == pd.read_csv("new.csv")["flow"].tolist()
    held = polyfid.json("inspect decides.polyfid")
    assert held["costs"] == {"bad": {"bad": 0, "good": 1}, "good": {"bad": 20, "good": 0}}
    assert held["cost_abstain"] == 0.5
    again = polyfid.json("score decides.polyfid test.csv")
    assert again["rule"]["cost_abstain"] == 0.5
    assert again["average_cost"]["decided"]["value"] > 0


@pytest.mark.parametrize("given", ["fp=1,fn=20", "'bad>good=1,good>bad=20'", "costs.csv"])
def test_costs_of_a_fit_are_those_of_a_score(polyfid, folder, given):
    (folder / "costs.csv").write_text("truth,bad,good\nbad,0,1\ngood,20,0\n")
    given = given.strip("'")
    said = polyfid(FIT, "--costs", given, "-o", "decides.polyfid").stdout
    assert "'good' is decided where its probability is above 0.04762." in said
    assert library.load("decides.polyfid").rule.costs.tolist() == [[0, 1], [20, 0]]
    blocks = f"{FIT} --inducing 10 --tuning 60 --in-blocks -o blocks.polyfid -q"
    polyfid(blocks, "--costs", given)
    assert library.load("blocks.polyfid").rule.costs.tolist() == [[0, 1], [20, 0]]
    scored = polyfid.json(SCORE, "--costs", given)
    assert scored["rule"]["costs"]["good"] == {"bad": 20, "good": 0}


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (f"{SCORE} --cost-abstain 1", 2, "--cost-abstain: goes with --costs"),
        (f"{SCORE} -o m.polyfid", 2, "--out: goes with --costs"),
        (f"{SCORE} --costs fp", 2, "--costs: must be fp=COST,fn=COST, or pairs"),
        (f"{SCORE} --costs fp=one", 2, "got 'fp=one'"),
        (f"{SCORE} --costs fp=1,fp=2", 2, "each once"),
        (f"{SCORE} --costs fp=-1", 1, "the cost of 'fp' must be a number from 0; got -1.0"),
        (f"{SCORE} --costs a>good=1", 1, "'a', which is no class; the classes are 'bad', 'good'"),
        (f"{SCORE} --costs costs.csv", 1, "costs.csv, row 3, column 'good': a cost must be"),
        (f"{SCORE} --costs fp=1 -o test.csv", 2, "would be replaced"),
        (f"{FIT} --costs good>bat=2 -o m.polyfid", 1, "'bat', which is no class"),
        (f"{FIT} --cost-abstain 1 -o m.polyfid", 2, "goes with --costs"),
        ("score model.polyfid crow.csv", 2, "crow.csv: No such file or directory; did you mean"),
    ],
)
def test_refused(polyfid, folder, call, code, words):
    (folder / "costs.csv").write_text("truth,bad,good\nbad,0,1\ngood,20,free\n")
    before = {*folder.iterdir()}
    assert words in polyfid.refusal(call, code=code)
    assert {*folder.iterdir()} == before


def test_names_of_kernels_are_those_of_python():
    kinds = typing.get_type_hints(Fitting)["kernel"]
    assert {*typing.get_args(kinds)} == {"auto", *NAMED}
