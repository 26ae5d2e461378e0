"""``polyfid evaluate``, ``report`` and ``demo``."""

import shlex
import sys

import numpy as np
import pandas as pd

from polyfid import datasets as built_in
from polyfid.cli.models import make_classifier, n_jobs
from polyfid.cli.options import Fitting
from polyfid.tables import read_labelled

FAST, LEVELS = "--kernel rbf --jobs 1", "--levels crowd,expert"


def test_evaluate_fits_a_terminal(polyfid, folder):
    result = polyfid(f"evaluate tidy.csv {LEVELS} {FAST} --folds 3")
    assert result.stdout.startswith("There are too few trusted rows to tell whether the cheaper")
    assert max(map(len, result.stdout.splitlines())) <= 60
    assert "Caution: Only 20 trusted rows were scored" in result.stdout
    assert "most trusted: expert)." in " ".join(result.stdout.split())
    assert polyfid.json(f"evaluate tidy.csv {LEVELS} {FAST} --folds 2")["trusted_level"] == "expert"
    assert result.stderr == ""
    assert "level" in polyfid(f"evaluate --level a=crowd.csv {FAST}", code=1).stderr


def test_audit_rows_alone_are_scored(polyfid, folder, not_drawn):
    table = pd.read_csv("tidy.csv")
    table["audit"] = (np.arange(60) % 4 < 2).astype(int)
    table.to_csv("marked.csv", index=False)
    found = polyfid.json(f"evaluate marked.csv {LEVELS} {FAST} --folds 2")
    assert found["n_audit"] == found["n_trusted"] == 10
    assert found["notes"][0].startswith("scores are from 10 audit rows")
    table.rename(columns={"audit": "drawn"}).to_csv("drawn.csv", index=False)
    named = polyfid.json(f"evaluate drawn.csv {LEVELS} {FAST} --folds 2 --audit drawn")
    assert named["scores"] == found["scores"]
    polyfid(f"fit marked.csv {LEVELS} --kernel rbf -q -o marked.polyfid")
    of_model = polyfid.json("report marked.polyfid --jobs 1 --folds 2")  # the file has the marks
    assert of_model["evaluation"]["n_audit"] == 10


def test_a_category_of_held_out_rows_is_unknown_to_the_models(polyfid, folder):
    table = pd.read_csv("tidy.csv")
    table["colour"] = ["red", "blue"] * 30
    table.loc[59, "colour"] = "mauve"
    table.to_csv("colours.csv", index=False)
    found = polyfid.json(f"evaluate colours.csv {LEVELS} {FAST} --folds 3")
    (note,) = [note for note in found["notes"] if "mauve" in note]
    assert note.startswith("all methods, 1 of 3 folds: column 'colour'")


def test_a_model_gives_the_report_of_its_tables(polyfid, folder, not_drawn):
    of_model = polyfid.json("report model.polyfid --jobs 1 --folds 2")
    said = polyfid(f"report tidy.csv {LEVELS} {FAST} --folds 2 --title", "Mine & yours").stdout
    assert said.startswith("There are too few trusted rows")
    assert "most trusted: expert)." in said
    assert of_model["trusted_level"] == "expert"
    assert "Written: report.html, report.html.toml" in said
    first, second = (asked["evaluation"].to_dict() for asked in not_drawn)
    assert first == second == of_model["evaluation"]
    assert [asked["title"] for asked in not_drawn] == [None, "Mine & yours"]


def test_report_without_an_evaluation_says_why(polyfid, folder, not_drawn):
    made = polyfid.json(f"report --level a=expert.csv {FAST}")
    assert made["evaluation"] is None
    assert "no evaluation" in made["warnings"][0]
    assert not_drawn[0]["warnings"] == made["warnings"]
    said = polyfid(f"report tidy.csv {LEVELS} {FAST} --folds 0").stdout
    assert "no evaluation was asked for" in said


def test_a_missing_extra_is_named(polyfid, folder, monkeypatch):
    for name in [n for n in sys.modules if n.startswith(("polyfid.report", "jinja2"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert 'pip install "polyfid[report]"' in polyfid(f"report tidy.csv {LEVELS}", code=2).stderr


def test_demo_end_to_end(polyfid, folder, monkeypatch, not_drawn):
    made = built_in.make_welding()
    little = made._replace(simulation=made.simulation[:80], experiment=made.experiment[:30])
    monkeypatch.setattr(built_in, "make_welding", lambda seed: little)
    call = ["demo", *FAST.split(), "-o", "my demo"]
    monkeypatch.setattr("sys.argv", ["polyfid", *call])
    result = polyfid(*call)
    assert not_drawn[0]["command"] == shlex.join(["polyfid", *call])
    assert len(pd.read_csv("my demo/predictions.csv")) == len(made.truth)
    assert "polyfid predict 'my demo/model.polyfid'" in result.stdout
    assert {"simulation.csv", "report.html.toml"} < {p.name for p in (folder / "my demo").iterdir()}


def test_little_work_is_done_by_one_process():
    for classes, fits, jobs, processes in [
        (2, 1, None, 1),
        (2, 20, None, -1),
        (10, 1, None, -1),
        (2, 1, 2, 2),
    ]:
        fitting = Fitting(jobs=jobs)
        rows = pd.DataFrame({"x": np.arange(300.0), "label": np.arange(300) % classes})
        table = read_labelled([rows.assign(fidelity="expert")])
        assert n_jobs(fitting, make_classifier(fitting), table, fits) == processes
