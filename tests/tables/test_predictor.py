"""Columns of predictions: ids or row numbers, kept columns, digits, decisions by costs."""

import numpy as np
import pandas as pd
import pytest
from made_tables import make_rows

import polyfid
from polyfid import MultiFidelityClassifier
from polyfid.model_files import ModelFileError, write
from polyfid.tables import (
    Roles,
    TableError,
    TableModel,
    iter_blocks,
    read_held_out,
    read_labelled,
)

ROLES = Roles(levels=["crowd", "expert"])
NEW = make_rows(30, 1).drop(columns=["label", "fidelity", "weight"])
COSTS = {"fp": 1, "fn": 9}  # good is the second class
PLAIN = MultiFidelityClassifier("rbf", optimizer=None)


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(read_labelled([make_rows(60)], ROLES), PLAIN)


def in_blocks(model, source, rows=4, keep=()):
    blocks = model.read_blocks(source, rows=rows, keep=keep)
    return pd.concat(model.predict_blocks(blocks, n_jobs=1, keep=keep), ignore_index=True)


TEXTS = {
    "plain": ["{0}", "{1}", "{2}", "{3}", "{4}", "{5}"],
    "empty lines": ["{0}", "", "{1}", "", "", "{2}", "{3}", "{4}", "{5}"],
    "quoted line breaks": ["{0}", '"a\nb",0.1,new,0.2', "{1}", "{2}", "{3}", "{4}", "{5}"],
    "quotes": ["{0}", '"a ""b""",0.1,new,0.2', "{1}", "{2}", "{3}", "{4}", "{5}"],
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_without_ids_have_the_numbers_that_messages_have(model, tmp_path, kind, end):
    rows = [f"n{k},{x},old,0.5" for k, x in enumerate(np.linspace(-1, 1, 6).round(2))]
    lines = [line.format(*rows) for line in TEXTS[kind]]
    path = tmp_path / "new.csv"
    path.write_bytes(end.join(["name,heat,kind,flow", *lines, ""]).encode())
    made = in_blocks(model, path, keep=["name"])
    pd.testing.assert_frame_equal(made, model.predict(path, keep=["name"]), rtol=1e-9)
    text = path.read_text(encoding="utf-8").replace('"', "").split("\n")
    for name, row in zip(made["name"], made["row"], strict=True):
        assert text[row - 1].startswith(name.split("\n")[0].replace('"', ""))
    assert len(made) == sum(map(bool, lines))
    with path.open("ab") as file:
        file.write(b"n9,?,old,0.5")
    with pytest.raises(TableError, match=rf"row {len(text)}, column 'heat'"):
        in_blocks(model, path)


@pytest.mark.parametrize("source", ["frame", "parquet"])
def test_row_numbers_of_tables_without_lines(model, tmp_path, source):
    new = NEW.drop(columns="id")
    if source == "parquet":
        new.to_parquet(tmp_path / "new.parquet")
        new = tmp_path / "new.parquet"
    for made in (model.predict(new), in_blocks(model, new, rows=7)):
        assert made["row"].tolist() == list(range(1, 31))
    assert "row" not in model.predict(NEW)


def test_kept_columns(model, tmp_path):
    new = NEW.assign(label="?", batch_a=[f"0{k}" for k in range(30)], batch_b=1.5)
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    keep = ["batch*", "id", "label", "heat"]
    made = in_blocks(model, path, keep=keep)
    first = ["id", "batch_a", "batch_b", "label_given", "heat", "label"]
    assert made.columns.tolist()[:6] == first
    assert made["batch_a"].tolist() == new["batch_a"].tolist()
    assert made["heat"].tolist() == new["heat"].tolist()
    assert model.predict(new, keep=keep).columns.tolist() == made.columns.tolist()
    with pytest.raises(
        TableError, match="no column 'batch' to keep; did you mean 'batch_b' or 'batch_a'"
    ):
        in_blocks(model, path, keep=["batch"])


def test_digits(model):
    every, (few,) = model.predict(NEW), model.predict_blocks([NEW], digits=3)
    for name in ("p_bad", "p_good", "latent_mean", "latent_sd"):
        assert few[name].tolist() == [float(f"{value:.3g}") for value in every[name]]
    assert few["label"].tolist() == every["label"].tolist()


def test_decisions_survive_the_file(model, tmp_path):
    decides = model.with_costs(COSTS, 0.3)
    made = decides.predict(NEW)
    p = made["p_good"]
    expected = np.where(p >= 0.7, "good", np.where(p <= 0.3 / 9, "bad", ""))
    assert made["label"].fillna("").tolist() == expected.tolist()
    assert {*expected} >= {"good", ""}
    pd.testing.assert_frame_equal(model.decide(NEW, COSTS, 0.3), made)
    assert model.predict(NEW)["label"].notna().all()
    decides.save(tmp_path / "m.polyfid")
    again = polyfid.load(tmp_path / "m.polyfid")
    pd.testing.assert_frame_equal(again.predict(NEW), made, check_exact=True)
    pd.testing.assert_frame_equal(again.decide(NEW), made, check_exact=True)
    with pytest.raises(ValueError, match="the model has no costs"):
        model.decide(NEW)
    with pytest.raises(ValueError, match=r"cost_abstain .* goes with costs"):
        TableModel.fit(model.table, cost_abstain=1.0)


def test_whole_numbers_stay_numbers_where_some_are_missing():
    rows = make_rows(60).assign(label=lambda t: (t["label"] == "good") + 3)
    table = read_labelled([rows], ROLES)
    labels = TableModel.fit(table, PLAIN, costs={"fp": 1}, cost_abstain=0.3).predict(NEW)["label"]
    assert labels.dtype == "Int64"
    assert labels.isna().any()
    assert {*labels.dropna()} == {3, 4}


def test_files_without_costs_and_with_wrong_ones(model, tmp_path):
    path, state = tmp_path / "m.polyfid", model.with_costs(COSTS)._state()
    write(path, "table", {name: value for name, value in state.items() if name != "rule"})
    assert polyfid.load(path).rule is None  # as files of earlier versions
    for rule in ("x", [1.0]):
        write(path, "table", {**state, "rule": rule})
        with pytest.raises(ModelFileError, match="the rule of decisions is something else"):
            polyfid.load(path)
    write(path, "table", {**state, "rule": type(state["rule"])(np.ones((3, 3)))})
    with pytest.raises(ModelFileError, match="costs are of 3 classes instead of 2"):
        polyfid.load(path)
    state["rule"].costs[0, 1] = -1.0
    write(path, "table", state)
    with pytest.raises(ModelFileError, match="costs must be finite numbers from 0"):
        polyfid.load(path)


def test_rows_to_score(model, tmp_path):
    labelled = make_rows(90, 3).drop(columns="weight")
    expert = labelled[labelled["fidelity"] == "expert"]
    held_out = read_held_out(model, labelled)
    assert (held_out.level, held_out.n_other) == ("expert", 90 - len(expert))
    assert held_out.label.tolist() == expert["label"].tolist()
    assert held_out.n_known == 0
    assert held_out.weight is None
    assert len(read_held_out(model, labelled, all_rows=True).label) == 90
    known = read_held_out(model, make_rows(60), all_rows=True)
    assert known.n_known == 60
    assert known.weight is not None
    path = tmp_path / "t.csv"
    expert.assign(label="odd").to_csv(path, index=False)
    with pytest.raises(TableError, match=r"t.csv, row 2, column 'label': 'odd' is not a class of"):
        read_held_out(model, path)
    with pytest.raises(TableError, match="no row is of the most trusted level, 'expert'"):
        read_held_out(model, labelled.assign(fidelity="crowd"))


def test_blocks_of_iter_blocks_are_predicted_too(model):
    made = pd.concat(model.predict_blocks(iter_blocks(NEW, rows=8), n_jobs=1), ignore_index=True)
    assert made["id"].tolist() == NEW["id"].tolist()


def test_a_model_is_shown_in_a_line(model):
    assert repr(model) == (
        "<TableModel: label (bad, good) from 3 columns (heat, kind, flow); "
        f"{model.classifier.report_.counts.sum()} rows of crowd, expert>"
    )
    assert "&lt;TableModel: label" in model._repr_html_()
    assert repr(model.classifier.structures_) == "[<100 % kernel as given>]"
    assert "<td>100 %</td>" in model.classifier.structures_._repr_html_()
