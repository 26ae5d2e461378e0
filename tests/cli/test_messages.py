"""What a call says: errors in one style, help, completion, progress, hints."""

import math

import pandas as pd
import pytest

from polyfid import datasets, load
from polyfid.cli.console import ProgressBar
from polyfid.learning.progress import Progress

LEVELS = "--level crowd=crowd.csv --level expert=expert.csv"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("nope", "polyfid: no such command 'nope' (polyfid --help lists the options)"),
        ("fit --kernel round", "polyfid: --kernel: 'round' is not one of 'auto', 'rbf', 'ard'"),
        ("fit --jobs 0", "polyfid: --jobs: "),
        ("predict", "polyfid: missing argument 'MODEL'"),
        ("check", "polyfid: give labelled rows in one way"),
        (
            "check crowd.cvs",
            "polyfid: crowd.cvs: No such file or directory; did you mean crowd.csv",
        ),
        ("check no/crowd.csv", "polyfid: no/crowd.csv: No such file or directory\n"),
    ],
)
def test_errors_are_single_lines(polyfid, folder, call, said):
    result = polyfid(call, code=2)
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1


def test_a_column_that_is_not_there(polyfid, folder):
    wide = pd.read_csv("tidy.csv").rename(columns={"label": "verdict"})
    noise = pd.DataFrame(0.0, range(60), [f"gene{k}" for k in range(40)])
    pd.concat([noise, wide], axis=1).to_csv("wide.csv", index=False)
    said = polyfid("check wide.csv --levels crowd,expert", code=1).stderr
    assert "the last of the 45 columns are 'gene39', 'id', 'heat', 'flow', 'verdict'" in said


def test_help_names_no_types_of_flags_and_offers_completion(polyfid):
    said = polyfid("--help").stdout
    assert "--install-completion" in said
    assert "--show-completion" in said
    for verb in ("fit", "predict", "score"):
        said = polyfid(f"{verb} --help").stdout
        assert "<bool>" not in said
    assert "latent_mean" in polyfid("predict --help").stdout


def test_columns_by_pattern(polyfid, folder):
    said = polyfid.refusal(f"fit {LEVELS} --features q*", code=1)
    assert "crowd.csv: there is no column that matches 'q*'" in said
    polyfid(f"fit {LEVELS} --kernel rbf --exclude fl* -o m.polyfid -q")
    assert polyfid.json("inspect m.polyfid")["inputs"] == {"heat": "number"}


def test_numbers_that_may_be_categories_are_pointed_out(polyfid, folder):
    table = pd.read_csv("tidy.csv").assign(grade=[1, 2, 3] * 20, flag=[0, 1] * 30)
    table.to_csv("grades.csv", index=False)
    said = polyfid("check grades.csv --levels crowd,expert").stdout
    assert "column 'grade' has few different whole numbers" in said
    assert "--categorical grade" in said
    assert "flag" not in said.partition("Notes")[2]
    said = polyfid("check grades.csv --levels crowd,expert --categorical grade").stdout
    assert "few different whole numbers" not in said


def test_inspect_shows_values(polyfid, folder):
    found = polyfid.json("inspect model.polyfid")["hyper_parameters"]
    classifier = load("model.polyfid").classifier
    theta = dict(zip(classifier.theta_names_, classifier.theta_, strict=True))
    assert found["f[0].rbf.length_scale"] == pytest.approx(math.exp(theta["f[0].rbf.length_scale"]))
    assert found["rho[1]"] == pytest.approx(theta["rho[1]"])


def test_progress_names_structures_and_the_time_left(monkeypatch):
    now = iter([0.0, 0.0, 60.0, 60.0])
    monkeypatch.setattr("polyfid.cli.console.time.monotonic", lambda: next(now))
    shown = []
    bar = ProgressBar(lambda **fields: shown.append(fields["count"]))
    bar(Progress("structures", 3, 12, math.nan))
    bar(Progress("structures", 6, 12, math.nan))
    bar(Progress("structures", 12, 12, math.nan))
    bar(Progress("classes", 1, 1, -5.0))
    assert shown == [
        "structure 3 of 12, about 3 min left",
        "structure 6 of 12, about 60 s left",
        "structure 12 of 12",
        "1 of 1, log evidence -5.0",
    ]


def test_the_demo_says_how_to_open_its_report(polyfid, folder, monkeypatch, not_drawn):
    made = datasets.make_welding()
    little = made._replace(simulation=made.simulation[:80], experiment=made.experiment[:30])
    monkeypatch.setattr(datasets, "make_welding", lambda seed: little)
    last = polyfid("demo --kernel rbf --jobs 1 -o d").stdout.splitlines()[-1]
    assert last.startswith(f"The report is {(folder / 'd' / 'report.html').as_uri()} (")
    assert last.endswith("open d/report.html)")
