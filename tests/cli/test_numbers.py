"""Levels of numbers on the command line: ``--value`` and what follows from it, verb by verb."""

import numpy as np
import pandas as pd
import pytest
from made_tables import make_measured

import polyfid as library
from polyfid.tables import Roles, TableModel, read_labelled

LEVELS = "--level simulation=sim.csv --level test=tests.csv --value simulation=load"
TIDY = "measured.csv --levels simulation,test --value simulation=load"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    rows = make_measured()
    rows.to_csv(folder / "measured.csv", index=False)
    for level, name, column in (("simulation", "sim", "load"), ("test", "tests", "label")):
        own = rows.loc[rows["fidelity"] == level, ["heat", "flow", column]]
        own.to_csv(folder / f"{name}.csv", index=False)
    rows[["heat", "flow"]].head(9).to_csv(folder / "fresh.csv", index=False)
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("tables", [LEVELS, TIDY])
def test_check_describes_numbers(polyfid, here, tables):
    said = polyfid(f"check {tables}").stdout
    assert "numbers of rows mean sd from to simulation 90 " in " ".join(said.split())
    assert "No problems found." in said
    found = polyfid.json(f"check {tables}")
    (own,) = found["numbers"]
    numbers = pd.read_csv("sim.csv")["load"]
    assert (own["level"], own["rows"]) == ("simulation", 90)
    assert own["mean"] == pytest.approx(numbers.mean())
    assert own["high"] == numbers.max()
    assert [f["name"] for f in found["features"]] == ["heat", "flow"]


def test_fit_predict_inspect_and_score(polyfid, here):
    said = polyfid(f"fit {LEVELS} --kernel rbf --noise simulation=1.5 -o m.polyfid").stdout
    assert "simulation: 90 rows (numbers)" in said
    assert "errors (given) of sd 1.22" in said
    assert "9 rows predicted" in polyfid("predict m.polyfid fresh.csv -o p.csv").stdout
    predicted = pd.read_csv("p.csv")
    assert list(predicted)[-2:] == ["value_simulation", "value_simulation_sd"]
    model = library.load("m.polyfid")
    assert model.classifier.noise == {"simulation": 1.5}
    expected = model.predict("fresh.csv")["value_simulation"]
    np.testing.assert_allclose(predicted["value_simulation"], expected, rtol=1e-5)
    result = polyfid("predict m.polyfid fresh.csv --fidelity simulation -o v.csv")
    assert "Numbers are predicted for the level simulation" in result.stderr
    assert list(pd.read_csv("v.csv")) == ["row", "value_simulation", "value_simulation_sd"]
    found = polyfid.json("inspect m.polyfid")
    assert found["rows"]["simulation"] == 90
    assert found["value"] == {"simulation": "load"}
    assert "simulation: 90" in polyfid("inspect m.polyfid").stdout
    scored = polyfid("score m.polyfid measured.csv --all-rows").stdout
    assert scored.startswith("90 rows have numbers, and are left out.")
    assert polyfid.json("score m.polyfid measured.csv --all-rows")["n_rows"] == 30
    assert polyfid.json("score m.polyfid measured.csv")["n_rows"] == 30


def test_the_fit_is_that_of_python(polyfid, here):
    polyfid(f"fit {TIDY} --kernel rbf --inference ep --warp --outliers -o m.polyfid -q")
    model = library.load("m.polyfid")
    assert (model.classifier.warp, model.classifier.outliers) == (True, True)
    roles = Roles(levels=["simulation", "test"], value={"simulation": "load"})
    table = read_labelled(["measured.csv"], roles)
    same = TableModel.fit(table, model.unfitted())
    pd.testing.assert_frame_equal(model.predict("fresh.csv"), same.predict("fresh.csv"))


def test_the_options_that_were_written_do_the_same_again(polyfid, here):
    polyfid(f"fit {TIDY} --kernel rbf --noise simulation=1.5 --warp -o m.polyfid -q")
    polyfid("fit --config m.polyfid.toml -o again.polyfid -q")
    assert (here / "again.polyfid").read_bytes() == (here / "m.polyfid").read_bytes()
    (here / "run.toml").write_text(
        'files = "measured.csv"\nlevels = ["simulation", "test"]\nkernel = "rbf"\nwarp = true\n'
        'value = {simulation = "load"}\nnoise = {simulation = 1.5}\n'
    )
    polyfid("fit --config run.toml -o again.polyfid -q")
    assert (here / "again.polyfid").read_bytes() == (here / "m.polyfid").read_bytes()


def test_a_fit_in_blocks(polyfid, here):
    call = f"fit {TIDY} --kernel rbf --in-blocks --block 50 -o m.polyfid"
    assert "simulation: 90 rows (numbers)" in polyfid(call).stdout
    predicted = library.load("m.polyfid").predict("fresh.csv")["value_simulation"]
    rows = pd.read_csv("fresh.csv")
    np.testing.assert_allclose(predicted, 30.0 * rows["heat"] + 6.0 * rows["flow"], atol=1.5)


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("check {TIDY}x", 1, "no column 'loadx' of the numbers of level 'simulation'; did you"),
        ("check measured.csv --levels simulation,test", 1, "(--value LEVEL=COLUMN)"),
        ("check sim.csv --value simulation", 2, "--value: must be LEVEL=COLUMN, as in --value"),
        ("check {TIDY} --value simulation=heat", 2, "--value: names a level twice"),
        ("fit {TIDY} --noise simulation=0", 2, "--noise: must be LEVEL=VARIANCE with a variance"),
        ("fit {TIDY} --noise 2", 2, "--noise: must be LEVEL=VARIANCE"),
        ("fit {TIDY} --noise test=2", 1, "noise of 'test' is for levels that have numbers"),
        ("fit --level test=tests.csv --outliers", 1, "outliers is for levels that have numbers"),
        ("check --items sim.csv --answers tests.csv --value a=b", 2, "--value is a column of tidy"),
    ],
)
def test_refusals(polyfid, here, call, code, words):
    assert words in polyfid.refusal(call.format(TIDY=TIDY), code=code)


def test_convert_keeps_numbers_and_says_how_to_read_them(polyfid, here):
    said = polyfid(f"convert {LEVELS} -o tidy.csv").stdout
    assert "To read its numbers, add --value simulation=load" in said
    written = pd.read_csv("tidy.csv")
    assert written["load"].notna().sum() == 90
    assert written.loc[written["load"].notna(), "label"].isna().all()
    call = "convert tidy.csv --levels simulation,test --value simulation=load --to levels -o f.csv"
    polyfid(call)
    for one, other in (("f-simulation.csv", "sim.csv"), ("f-test.csv", "tests.csv")):
        pd.testing.assert_frame_equal(pd.read_csv(one), pd.read_csv(other))
