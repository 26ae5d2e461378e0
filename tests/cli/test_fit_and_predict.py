"""``polyfid fit``, ``predict`` and ``inspect``."""

import io
import re

import numpy as np
import pandas as pd
import pytest

import polyfid as library
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF

LEVELS = "--level crowd=crowd.csv --level expert=expert.csv"
PREDICT = "predict model.polyfid new.csv"


def test_fit_saves_and_prints_what_it_learnt(polyfid, folder):
    result = polyfid(f"fit {LEVELS} --kernel rbf -o m.polyfid")
    written = "Written: m.polyfid, m.polyfid.toml"
    for words in ("crowd: 40 rows", "trusted: expert)", "expert on crowd: rho ", written):
        assert words in result.stdout
    assert result.stderr == ""
    assert polyfid.json(f"fit {LEVELS} --kernel rbf")["trusted_level"] == "expert"
    quiet = polyfid(f"fit {LEVELS} --kernel rbf --quiet")
    assert quiet.stdout == quiet.stderr == ""
    model, other = library.load("m.polyfid"), library.load("model.polyfid")  # of a tidy table
    assert list(model.classifier.levels_) == ["crowd", "expert"]
    assert model.table.ids[0] == "c00"
    new = pd.read_csv("new.csv")
    np.testing.assert_array_equal(model.predict(new)["p_good"], other.predict(new)["p_good"])


def test_columns_with_other_names(polyfid, folder):
    table = pd.read_csv("tidy.csv").rename(
        columns={"label": "verdict", "fidelity": "who", "id": "name"}
    )
    table["times"], table["kind"], table["noise"] = 2, [1, 2, 3] * 20, "z"
    table.to_parquet("other.parquet")
    polyfid(
        "fit other.parquet --target verdict --fidelity who --id name --weight times --kernel rbf "
        "--categorical kind --levels expert,crowd -q --features",
        "heat, kind",
    )
    held = polyfid.json("inspect model.polyfid")
    assert held["inputs"] == {"heat": "number", "kind": "category"}
    assert (held["levels"], held["target"]) == (["expert", "crowd"], "verdict")


def test_a_model_without_its_rows(polyfid, folder):
    polyfid("fit tidy.csv --levels crowd,expert --kernel rbf --no-rows -o bare.polyfid -q")
    assert library.load("bare.polyfid").table is None
    written = (folder / "bare.polyfid").read_bytes()
    assert not any(f'"{name}"'.encode() in written for name in ("c00", "c01", "e00"))
    polyfid("predict bare.polyfid new.csv -o out.csv")
    assert "give the tables instead" in polyfid("report bare.polyfid", code=1).stderr


def test_columns_of_predictions(polyfid, folder):
    result = polyfid(f"{PREDICT} -o out.csv")
    assert result.stdout == "12 rows predicted\nWritten: out.csv, out.csv.toml\n"
    out = pd.read_csv("out.csv")
    assert list(out) == ["id", "label", "p_bad", "p_good", "latent_mean", "latent_sd"]
    expected = library.load("model.polyfid").predict(pd.read_csv("new.csv"))
    np.testing.assert_allclose(out["p_good"], expected["p_good"], rtol=1e-5)
    assert max(map(len, out["p_good"].astype(str))) <= len("0.000123456")
    polyfid(f"{PREDICT} -o out.parquet")
    every = pd.read_parquet("out.parquet")  # has all digits
    np.testing.assert_allclose(every["p_good"], expected["p_good"], rtol=1e-14)
    assert polyfid(f"{PREDICT} --id heat").stdout.startswith("heat,")


def test_standard_input_standard_output_and_blocks(polyfid, folder):
    before = sorted(folder.iterdir())
    piped = polyfid("predict model.polyfid -", input=(folder / "new.csv").read_bytes())
    assert piped.stderr == "Labels are predicted for the level expert, the most trusted\n"
    said = polyfid(f"{PREDICT} --fidelity crowd").stderr
    assert said == "Labels are predicted for the level crowd; the most trusted is expert\n"
    few = polyfid(f"{PREDICT} --block 5 --jobs 1 -o - -q")
    frames = [pd.read_csv(io.StringIO(result.stdout)) for result in (piped, few)]
    assert len(frames[0]) == 12
    pd.testing.assert_frame_equal(*frames, rtol=1e-12)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["new.csv", "new.parquet", "-"])
def test_a_column_of_another_name_is_named_though_it_is_not_read(polyfid, folder, name):
    new = pd.read_csv("new.csv").rename(columns={"heat": "Heat", "flow": "feat"})
    text = new.to_csv(index=False)
    if name != "-":
        polyfid(f"convert - --to table -o {name}", input=text)
    said = polyfid(f"predict model.polyfid {name}", input=text, code=1).stderr
    file = "standard input" if name == "-" else name
    assert f"{file}: there is no column 'heat', which the model was fitted to" in said
    assert "did you mean 'Heat'? the columns are 'feat', 'Heat', 'id'" in said


def test_files_of_another_kind(polyfid, folder):
    said = polyfid("check model.polyfid", code=1).stderr
    assert "model.polyfid: this is a model that polyfid saved, not a table" in said
    for call in ("predict tidy.csv new.csv", "inspect tidy.csv"):
        assert "not a polyfid model" in polyfid(call, code=1).stderr
    x = np.linspace(-1, 1, 12)[:, None]
    MultiFidelityClassifier(1.0 * RBF()).fit(x, x[:, 0] > 0).save("plain.polyfid")
    said = polyfid("predict plain.polyfid new.csv", code=1).stderr
    assert "has no columns of tables" in said
    assert polyfid.json("inspect plain.polyfid")["kind"] == "classifier"


def test_inspect_shows_what_is_in_a_model(polyfid, folder):
    said = polyfid("inspect model.polyfid").stdout
    assert re.search(
        r"^levels: crowd, expert \(least trusted first; most trusted: expert\)$", said, re.MULTILINE
    )
    assert re.search(r"^  crowd:\n    bad: \d+", said, re.MULTILINE)
    assert polyfid.json("inspect model.polyfid")["schema"] == 2
