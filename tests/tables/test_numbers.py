"""Levels that have numbers in tables: read, refused, fitted, predicted, kept and written."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_tables import MEASURED, fit_files, make_measured, make_model

from polyfid import ArrayBlocks, MultiFidelityClassifier, load
from polyfid.kernels import RBF
from polyfid.tables import (
    Roles,
    TableError,
    TableModel,
    diagnose,
    read_held_out,
    read_labelled,
    write_table,
)

VALUE = {"simulation": "load"}


@pytest.fixture(scope="module")
def rows():
    return make_measured()


@pytest.fixture(scope="module")
def table(rows):
    return read_labelled([rows], MEASURED)


@pytest.fixture(scope="module")
def model(table):
    return TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF(), random_state=0))


def in_files(rows, folder, columns=("load", "label")):
    """One file per level, with numbers and labels in these columns."""
    files = {}
    for level, had, column in zip(("simulation", "test"), ("load", "label"), columns, strict=True):
        files[level] = folder / f"{level}.csv"
        own = rows.loc[rows["fidelity"] == level, ["heat", "flow", had]]
        own.rename(columns={had: column}).to_csv(files[level], index=False)
    return files


def in_one_column(rows):
    """The rows with numbers and labels in the column ``label``."""
    mixed = rows["label"].astype(object).where(rows["label"].notna(), rows["load"])
    return rows.assign(label=mixed).drop(columns="load")


def numbers_of(table):
    return table.label[table.is_number].astype(float).tolist()


# ------------------------------------------------------------------------ reading


def test_a_tidy_table_has_numbers_beside_labels(rows, table):
    assert list(table.features) == ["heat", "flow"]
    assert table.numeric_levels == ("simulation",)
    np.testing.assert_array_equal(table.is_number, rows["fidelity"] == "simulation")
    assert numbers_of(table) == rows["load"].dropna().tolist()
    assert table.label[~table.is_number].tolist() == rows["label"].dropna().tolist()
    assert table.counts().loc["simulation"].sum() == 0
    assert table.counts().loc["test"].sum() == 30


@pytest.mark.parametrize("columns", [("load", "label"), ("label", "label")])
def test_one_file_per_level_needs_no_label_where_numbers_are(rows, table, tmp_path, columns):
    roles = Roles(value={"simulation": columns[0]})
    read = read_labelled([], roles, in_files(rows, tmp_path, columns))
    assert list(read.features) == ["heat", "flow"]
    assert read.levels == ("simulation", "test")
    assert numbers_of(read) == numbers_of(table)
    assert read.classes.tolist() == table.classes.tolist()


def test_numbers_and_labels_may_share_a_column(rows, table):
    roles = replace(MEASURED, value={"simulation": "label"})
    read = read_labelled([in_one_column(rows)], roles)
    assert read.label.tolist() == table.label.tolist()


def test_classes_that_are_whole_numbers_stay_so_beside_numbers(rows):
    codes = rows.assign(label=(rows["label"] == "good").where(rows["label"].notna()))
    codes["label"] = codes["label"].map({True: 1, False: 0})
    table = read_labelled([codes], MEASURED)
    assert table.classes.dtype.kind == "i"
    model = TableModel.fit(table, make_model(n_inducing=None))
    assert model.classifier.classes_.tolist() == [0, 1]


def test_what_a_number_column_has_elsewhere_does_not_matter(rows, table):
    more = rows.assign(load=rows["load"].fillna(7.0), label=rows["label"].fillna("bad"))
    assert read_labelled([more], MEASURED).label.tolist() == table.label.tolist()


def test_a_decimal_comma(rows, table, tmp_path):
    files = {}
    for level, file in in_files(rows, tmp_path, ("label", "label")).items():
        pd.read_csv(file).to_csv(file, index=False, sep=";", decimal=",")
        files[level] = file
    read = read_labelled([], Roles(value={"simulation": "label"}), files)
    assert numbers_of(read) == numbers_of(table)


# ------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({1: None}, r"t.csv, row 3, column 'load': the row has no number, but an empty cell; all"),
        ({1: "much"}, "row 3, column 'load': the row has no number, but 'much'; all rows of level"),
        ({1: np.inf}, "row 3, column 'load': the row has no number, but 'inf'; .*'simulation'"),
        ({5: "?", 6: "x", 7: None}, "row 7, .*, nor have 2 rows after it, but .*leave the row out"),
    ],
)
def test_rows_without_their_number_are_named_as_in_blocks(rows, tmp_path, cells, words):
    wrong = rows.astype({"load": object})
    for row, cell in cells.items():
        wrong.loc[row, "load"] = cell
    wrong.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match=words) as caught:
        read_labelled([tmp_path / "t.csv"], MEASURED)
    with pytest.raises(TableError) as in_blocks:
        fit_files([tmp_path / "t.csv"], MEASURED, rows=7)
    assert in_blocks.value.problems == caught.value.problems


def test_a_forgotten_option_is_proposed(rows, tmp_path):
    with pytest.raises(TableError, match=r"no label.*if its level has numbers, .*--value LEVEL"):
        read_labelled([rows], replace(MEASURED, value={}))
    with pytest.raises(TableError, match=r"simulation.csv: .*\(--value simulation=COLUMN\)"):
        read_labelled([], None, in_files(rows, tmp_path))
    remedy = r"--value simulation=label \(in Python Roles\(value=\{'simulation': 'label'\}\)\)"
    files = in_files(rows, tmp_path, ("label", "label"))
    with pytest.raises(TableError, match=f"measurements, not classes; .*{remedy}"):
        read_labelled([], None, files)
    with pytest.raises(TableError, match=remedy):
        fit_files([], None, files)


def test_few_labels_with_decimals_are_a_note(rows, tmp_path):
    few = rows.groupby("fidelity").head(12)
    files = in_files(few, tmp_path, ("label", "label"))
    notes = diagnose(read_labelled([], None, files)).notes
    assert any("if they were measured" in n and "--value simulation=label" in n for n in notes)
    notes = diagnose(read_labelled([], Roles(value={"simulation": "label"}), files)).notes
    assert not any("measured" in note for note in notes)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"simulatoin": "load"}, r"names level 'simulatoin'; the levels are \['simulation', "),
        ({"test": "load"}, "names 'test', the most trusted level, which must have labels"),
        ({"simulation": "lode"}, "no column 'lode' of the numbers of level 'simulation'; did you"),
    ],
)
def test_values_that_make_no_sense(rows, value, words):
    for read in (read_labelled, fit_files):
        with pytest.raises(ValueError, match=words):
            read([rows], replace(MEASURED, value=value))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"value": "load"}, "value must be a mapping of levels to columns"),
        ({"value": VALUE, "weight": "load"}, "value of level 'simulation' and weight are both"),
        ({"value": VALUE, "features": ["load"]}, "column 'load' is the value; it is no feature"),
        ({"value": VALUE, "exclude": ["load"]}, "column 'load' is the value; it cannot be"),
    ],
)
def test_roles_that_make_no_sense(wrong, words):
    with pytest.raises(ValueError, match=words):
        Roles(**wrong)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"noise": {"test": 1.0}}, "noise of 'test' is for levels that have numbers"),
        ({"numeric_levels": ["test"]}, "numeric_levels of 'test' .*--value LEVEL=COLUMN"),
    ],
)
def test_a_classifier_with_other_numbers_is_refused(table, given, words):
    with pytest.raises(ValueError, match=words):
        TableModel.fit(table, make_model(**given))


def test_warps_need_numbers(rows):
    tested = rows[rows["label"].notna()].drop(columns="load")
    table = read_labelled([tested], Roles(levels=["test"]))
    with pytest.raises(ValueError, match=r"warp is for levels that have numbers, .* none"):
        TableModel.fit(table, make_model(warp=True))


# ------------------------------------------------------------------------- models


def test_predictions_have_the_number_that_a_level_would_give(model):
    new = pd.DataFrame({"heat": [-0.8, 0.8], "flow": [0.0, 0.0]})
    made = model.predict(new)
    assert list(made)[-2:] == ["value_simulation", "value_simulation_sd"]
    assert made["label"].tolist() == ["bad", "good"]
    np.testing.assert_allclose(made["value_simulation"], [-24.0, 24.0], atol=2.0)
    mean, sd = model.classifier.predict_value(model.to_numbers(new))
    np.testing.assert_array_equal(made["value_simulation"], mean)
    np.testing.assert_array_equal(made["value_simulation_sd"], sd)
    alone = model.predict(new, "simulation")
    pd.testing.assert_frame_equal(alone, made[["row", "value_simulation", "value_simulation_sd"]])
    assert list(model.predict(new[:0])) == list(made)
    with pytest.raises(ValueError, match="a level of numbers, about which nothing is decided"):
        model.decide(new, {"fp": 1}, fidelity="simulation")


def test_the_classifier_gets_classes_and_numbers(model, table):
    x, y, fidelity = model.training()
    same = MultiFidelityClassifier(1.0 * RBF(), random_state=0)
    same.set_params(levels=table.levels, numeric_levels=["simulation"]).fit(x, y, fidelity)
    np.testing.assert_array_equal(same.predict_proba(x), model.classifier.predict_proba(x))


def test_a_saved_model_is_the_same(model, table, rows, tmp_path):
    model.save(tmp_path / "model.polyfid")
    again = load(tmp_path / "model.polyfid")
    pd.testing.assert_frame_equal(again.predict(rows), model.predict(rows))
    assert again.roles == model.roles
    assert again.roles.value == VALUE
    assert again.table.label.tolist() == table.label.tolist()
    assert "120 rows of simulation, test" in repr(again)
    assert again.summary()["value"] == VALUE


@pytest.mark.parametrize("rows_of_block", [25, 1000])
def test_a_fit_in_blocks_is_that_of_the_rows_in_blocks(table, rows, tmp_path, rows_of_block):
    rows.to_csv(tmp_path / "t.csv", index=False)
    model = fit_files([tmp_path / "t.csv"], MEASURED, rows=rows_of_block)
    x, y, fidelity = TableModel.fit(table, make_model(n_inducing=None)).training()
    blocks = ArrayBlocks(x, y, fidelity, rows=rows_of_block)
    same = make_model(levels=table.levels, numeric_levels=["simulation"]).fit_blocks(blocks)
    np.testing.assert_array_equal(model.classifier.predict_proba(x), same.predict_proba(x))
    np.testing.assert_array_equal(model.classifier.predict_value(x), same.predict_value(x))
    assert model.roles == table.roles
    np.testing.assert_array_equal(model.classifier.report_.counts[1], table.counts().loc["test"])


def test_a_checkpoint_of_other_numbers_is_refused(rows, tmp_path):
    def stop(step):
        if step.stage == "passes" and step.done == 2:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit_files([rows], MEASURED, checkpoint=checkpoint, callback=stop)
    fewer = rows.drop(index=1)
    with pytest.raises(ValueError, match="of another fit, with other numbers of rows"):
        fit_files([fewer], MEASURED, checkpoint=checkpoint)
    fit_files([rows], MEASURED, checkpoint=checkpoint)
    assert not checkpoint.exists()


def test_rows_with_numbers_are_not_scored(model, rows):
    held_out = read_held_out(model, rows, all_rows=True)
    assert (len(held_out.label), held_out.n_other, held_out.n_known) == (30, 90, 30)
    assert {*held_out.label} == {"bad", "good"}


# ---------------------------------------------------------------- checks and files


def test_a_diagnosis_describes_numbers(rows, table):
    found = diagnose(table)
    (own,) = found.numbers
    numbers = rows["load"].dropna()
    assert (own.level, own.rows) == ("simulation", 90)
    figures = [numbers.mean(), numbers.std(ddof=0), numbers.min(), numbers.max()]
    np.testing.assert_allclose([own.mean, own.sd, own.low, own.high], figures)
    assert found.classes == ("bad", "good")
    assert found.counts == ((0, 0), tuple(table.counts().loc["test"]))
    assert not found.problems
    assert not any("no rows" in note for note in found.notes)
    assert f"simulation    90  {own.mean:.6g}" in str(found)
    assert found.to_dict()["numbers"][0]["level"] == "simulation"


def test_repeated_numbers_are_no_contradictions(rows):
    again = rows.assign(load=rows["load"] + 1.0)
    found = diagnose(read_labelled([rows, again[rows["load"].notna()]], MEASURED))
    assert not any("different labels" in note for note in found.notes)
    assert not found.shared
    assert found.duplicates == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["load", "label"])
def test_a_tidy_table_that_was_written_is_read_again(rows, table, tmp_path, ending, column):
    roles = replace(MEASURED, value={"simulation": column})
    if column == "label":
        rows = in_one_column(rows)
    file = tmp_path / f"t.{ending}"
    write_table(read_labelled([rows], roles).to_frame(), file)
    again = read_labelled([file], roles)
    assert again.label.tolist() == table.label.tolist()
    assert again.fidelity.tolist() == table.fidelity.tolist()
