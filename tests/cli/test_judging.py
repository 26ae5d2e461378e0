"""``polyfid evaluate``, ``report`` and ``demo``."""

import shlex
import sys

import pandas as pd
import pytest

from polyfid import datasets as built_in
from polyfid.cli.effort import processes

FAST = ("--kernel", "rbf", "--jobs", 1)


def test_evaluate_fits_a_terminal(polyfid, folder):
    result = polyfid("evaluate", "tidy.csv", *FAST, "--folds", 3)
    assert result.stdout.startswith("The cheaper labels (crowd)")
    assert max(map(len, result.stdout.splitlines())) <= 80
    for words in ("polyfid", "trusted only", "pooled", "stacked", "ROC AUC", "log-loss", "Brier"):
        assert words in result.stdout
    assert "Note: small sample: 20 trusted rows" in result.stdout
    assert result.stderr == ""


def test_evaluate_as_json(polyfid, folder):
    found = polyfid.json("evaluate", "tidy.csv", *FAST, "--folds", 2)
    assert found["verdict"] in {"help", "harm", "no clear difference"}
    assert {*found["scores"]} == {"polyfid", "trusted only", "pooled", "stacked"}
    assert {*found["scores"]["pooled"]["log_loss"]} == {"value", "low", "high"}
    assert found["n_splits"] == 2


def test_evaluate_needs_levels(polyfid, folder):
    assert "level" in polyfid("evaluate", "--level", "a=crowd.csv", *FAST, code=1).stderr
    assert "--folds" in polyfid("evaluate", "tidy.csv", "--folds", 1, code=2).stderr


def test_report_of_tables(polyfid, folder):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    args = (*FAST, "--folds", 2, "--title", "Mine & yours")
    result = polyfid("report", "tidy.csv", *args, "-o", "tables.html")
    assert result.stdout.startswith("The cheaper labels")
    assert "Written: tables.html and tables.html.toml" in result.stdout
    assert "Mine &amp; yours" in (folder / "tables.html").read_text(encoding="utf-8")


def test_a_model_gives_the_report_of_its_tables(polyfid, folder, not_drawn):
    args = ("--jobs", 1, "--folds", 2)
    of_model = polyfid.json("report", "model.polyfid", *args)
    of_tables = polyfid.json("report", "tidy.csv", "--kernel", "rbf", *args)
    assert of_model == of_tables
    assert of_model["evaluation"]["n_trusted"] == 20
    assert [asked["seed"] for asked in not_drawn] == [0, 0]


def test_report_of_one_level_says_why_there_is_no_evaluation(polyfid, folder, not_drawn):
    made = polyfid.json("report", "--level", "a=expert.csv", *FAST)
    assert made["evaluation"] is None
    assert "no evaluation" in made["warnings"][0]
    assert not_drawn[0]["warnings"] == made["warnings"]
    said = polyfid("report", "tidy.csv", *FAST, "--folds", 0).stdout
    assert "no evaluation was asked for" in said


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["tidy.csv", "-o", "-"], "a report is a file"),
        (["tidy.csv", "--folds", "1"], "0 or from 2"),
        (["model.polyfid", "--kernel", "rbf"], "leave out --kernel"),
        (["model.polyfid", "--target", "label"], "leave out --target"),
        (["model.polyfid", "tidy.csv"], "the only one"),
        (["model.polyfid", "-o", "model.polyfid"], "would be replaced"),
    ],
)
def test_reports_that_cannot_be_asked_for(polyfid, folder, args, words, not_drawn):
    said = polyfid("report", *args, code=2).stderr
    assert words in " ".join(said.replace("│", " ").split())


def test_a_missing_extra_is_named(polyfid, folder, monkeypatch):
    for name in [n for n in sys.modules if n.startswith(("polyfid.report", "jinja2"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert 'pip install "polyfid[report]"' in polyfid("report", "tidy.csv", code=2).stderr


def test_demo_end_to_end(polyfid, folder, monkeypatch, not_drawn):
    made = built_in.make_welding()
    little = made._replace(simulation=made.simulation[:80], experiment=made.experiment[:30])
    monkeypatch.setattr(built_in, "make_welding", lambda seed: little)
    call = ["demo", *map(str, FAST), "-o", "my demo"]
    monkeypatch.setattr("sys.argv", ["polyfid", *call])
    result = polyfid(*call)
    assert not_drawn[0]["command"] == shlex.join(["polyfid", *call])
    there = {p.name for p in (folder / "my demo").iterdir()}
    files = {"simulation.csv", "experiment.csv", "new.csv", "model.polyfid", "predictions.csv"}
    assert files | {"report.html", "report.html.toml"} == there
    assert len(pd.read_csv("my demo/predictions.csv")) == len(made.truth)
    assert "polyfid predict 'my demo/model.polyfid'" in result.stdout
    assert polyfid.json("demo", *FAST, "-o", "my demo")["roc_auc"] > 0.6


def test_small_work_is_done_by_one_process():
    assert processes(None, 300, 2, "auto") == 1
    assert processes(None, 300, 2, "rbf", fits=20) == 1
    assert processes(None, 300, 2, "auto", fits=20) == -1
    assert processes(None, 300, 10, "auto") == -1
    assert processes(None, 3000, 2, "rbf") == -1
    assert processes(2, 10, 2, "rbf") == 2
