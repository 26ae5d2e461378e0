"""Table models from files in blocks: as those from tables in memory, with the memory of a block."""

import csv
import gc
import os
import re
import shlex
import tracemalloc
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from made_tables import LEVELS, fit_files, make_model, make_rows

from polyfid import ArrayBlocks, load
from polyfid.kernels import RBF
from polyfid.tables import TableError, TableModel, encoder, large, read, read_labelled
from polyfid.tables.large import open_labelled


@pytest.fixture
def tidy():
    return make_rows()


@pytest.fixture
def path(tidy, tmp_path):
    tidy.to_csv(tmp_path / "tidy.csv", index=False)
    return tmp_path / "tidy.csv"


def stop(step):
    if step.stage == "passes" and step.done == 2:
        raise KeyboardInterrupt


def assert_as_in_memory(model, table, missing="error"):
    """The encoder and roles of the table, and the classifier of its rows in the same blocks."""
    whole = TableModel.fit(table, make_model(), missing)
    assert model.encoder.columns_ == whole.encoder.columns_
    assert model.roles == whole.roles
    assert model.classifier.levels_ == whole.classifier.levels_
    assert model.classifier.classes_.tolist() == whole.classifier.classes_.tolist()
    np.testing.assert_array_equal(model.classifier.report_.counts, whole.classifier.report_.counts)
    new = table.features.head(20)
    np.testing.assert_allclose(
        model.predict(new).filter(like="p_"), whole.predict(new).filter(like="p_"), atol=0.05
    )


def test_a_tidy_csv_file(tidy, path, tmp_path):
    given = make_model()
    model = fit_files([path], classifier=given)
    assert given.levels is None
    assert not hasattr(given, "report_")
    assert_as_in_memory(model, read_labelled([path], LEVELS))
    assert model.table is None
    assert model.predict(tidy)["id"].tolist() == tidy["id"].tolist()
    with pytest.raises(ValueError, match="fitted in blocks"):
        model.training()
    model.save(tmp_path / "model.polyfid")
    again = load(tmp_path / "model.polyfid")
    pd.testing.assert_frame_equal(again.predict(tidy), model.predict(tidy))


def test_the_fit_is_that_of_the_rows_in_blocks(path):
    model, table = fit_files([path], rows=50), read_labelled([path], LEVELS)
    x = pd.DataFrame(model.encoder.transform(table.features), columns=list(model.encoder.names_))
    blocks = ArrayBlocks(x, table.label, table.fidelity, table.weight, rows=50)
    same = make_model(levels=table.levels).fit_blocks(blocks)
    np.testing.assert_array_equal(model.classifier.predict_proba(x), same.predict_proba(x))


def test_standard_input(path, monkeypatch):
    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert_as_in_memory(fit_files(["-"]), read_labelled([path], LEVELS))


@pytest.mark.parametrize("kind", ["parquet", "several", "levels"])
def test_other_sources(tidy, tmp_path, kind):
    files, levels, roles = [tmp_path / "a", tmp_path / "b"], None, LEVELS
    if kind == "parquet":
        files = files[:1]
        tidy.to_parquet(files[0])
    elif kind == "several":
        tidy[:100].to_csv(files[0], index=False, sep=";", decimal=",")
        tidy[100:].to_csv(files[1], index=False, columns=tidy.columns[::-1], compression="gzip")
    else:
        levels, files = dict(zip(("expert", "crowd"), files, strict=True)), []
        roles = None  # the order is that of the files
        for level, file in levels.items():
            rows = tidy[tidy["fidelity"] == level].drop(columns=["fidelity", "weight"])
            rows.to_csv(file, index=False)
    model = fit_files(files, roles, level_files=levels)
    assert_as_in_memory(model, read_labelled(files, roles, level_files=levels))
    assert model.classifier.levels_ == tuple(levels or ("crowd", "expert"))


@pytest.mark.parametrize("rows", [50, 7])
def test_the_dialect_is_found_once_and_rows_are_read_three_times(tmp_path, monkeypatch, rows):
    """For the types of columns, which are those of all rows, for their cells, and as numbers."""
    x = np.random.RandomState(0).uniform(size=40).round(2)
    code = [f"{k % 3}" for k in range(39)] + ["007"]
    frame = pd.DataFrame({"x": x, "code": code, "label": (x > 0.5) + 0.0, "fidelity": "1.0"})
    frame.loc[20:, "fidelity"] = "2"
    frame.to_csv(tmp_path / "t.csv", index=False)
    dialects, readers = Mock(wraps=read.find_dialect), Mock(wraps=pacsv.open_csv)
    monkeypatch.setattr(read, "find_dialect", dialects)
    monkeypatch.setattr(pacsv, "open_csv", readers)
    model = fit_files([tmp_path / "t.csv"], None, rows=rows)
    assert (dialects.call_count, readers.call_count) == (1, 3)
    assert_as_in_memory(model, read_labelled([tmp_path / "t.csv"]))
    assert model.encoder.columns_[1].categories == ("0", "007", "1", "2")
    assert model.classifier.classes_.tolist() == [0, 1]
    assert model.classifier.levels_ == ("1", "2")


def test_medians_of_very_many_numbers_are_those_of_a_sample(monkeypatch):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": rng.normal(size=4000), "label": [0, 1] * 2000, "fidelity": "a"})
    frame.loc[::2, "x"] = np.nan
    monkeypatch.setattr(encoder, "MEDIAN_CELLS", 1000)
    with open_labelled([frame], rows=100) as files:
        (column,) = files.survey("median").encoder.columns_
    exact = float(frame["x"].median())
    assert column.fill != exact
    assert column.fill == pytest.approx(exact, abs=5 * 1.2533 / np.sqrt(1000))


@pytest.mark.parametrize("rows", [7, 1000])
def test_levels_without_an_order_are_refused_with_an_option_that_can_be_copied(tmp_path, rows):
    frame = make_rows().replace({"fidelity": {"crowd": "a crowd, ours", "expert": "it's me"}})
    frame.drop(columns="weight").to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match="without saying") as caught:
        fit_files([tmp_path / "t.csv"], None, rows=rows)
    with pytest.raises(TableError) as expected:
        read_labelled([tmp_path / "t.csv"])
    message = str(caught.value)
    assert message == str(expected.value)
    assert message.startswith("t.csv, column 'fidelity': the column names levels")
    for name, n in frame["fidelity"].value_counts().items():
        assert f"{name!r} ({n} rows)" in message
    option = re.search(r"such as (--levels .*) \(in Python Roles\(levels=", message)[1]
    _, names = shlex.split(option)
    assert next(csv.reader([names])) == ["a crowd, ours", "it's me"]


BROKEN = {
    "a typo": ("heat", 150, "wraam"),
    "an empty cell": ("heat", [150, 160, 290], None),
    "an infinite cell": ("heat", 150, np.inf),
    "an empty category": ("kind", [150, 151], None),
    "no label": ("label", [150, 151], None),
    "no level": ("fidelity", 299, None),
    "a weight that is none": ("weight", 150, "much"),
    "an unknown level": ("fidelity", 150, "boss"),
    "an empty column": ("flow", slice(None), None),
    "one class": ("label", slice(None), "good"),
    "no weight at all": ("weight", slice(None), 0),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("kind", ["csv", "frame"])
def test_errors_are_those_of_tables_in_memory(tidy, tmp_path, what, kind):
    column, rows, value = BROKEN[what]
    source = tidy.astype({column: object})
    source.loc[rows, column] = value
    if kind == "csv":
        source.to_csv(tmp_path / "tidy.csv", index=False)
        source = tmp_path / "tidy.csv"
    with pytest.raises(TableError) as expected:
        TableModel.fit(read_labelled([source], LEVELS), make_model())
    with pytest.raises(TableError) as error:
        fit_files([source], rows=7)
    assert error.value.problems == expected.value.problems


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("heat", "hot", "'hot' is not a number, and in tidy.csv the column is of numbers"),
        ("heat", None, "no column 'heat', which tidy.csv has"),
        ("label", None, "no column 'label' of labels"),
    ],
)
def test_tables_that_do_not_go_together(tidy, path, tmp_path, name, value, match):
    other = tidy.drop(columns=name) if value is None else tidy.assign(**{name: value})
    other.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(TableError, match=match) as error:
        fit_files([path, tmp_path / "b.csv"])
    with pytest.raises(TableError) as expected:
        read_labelled([path, tmp_path / "b.csv"], LEVELS)
    assert error.value.problems == expected.value.problems


def test_names_and_measurements_are_no_classes_or_categories(monkeypatch):
    numbers = np.random.RandomState(0).uniform(size=2500)
    frame = pd.DataFrame({"x": numbers, "label": [0, 1] * 1250, "fidelity": "a"})
    with pytest.raises(TableError, match="more than 1000 different labels"):
        fit_files([frame.assign(label=numbers)], None, rows=500)
    with pytest.raises(TableError, match=r"there are 300 different labels, .* measurements"):
        fit_files([frame.assign(label=numbers)[:300]], None)
    monkeypatch.setattr(encoder, "MOST_CATEGORIES_IN_BLOCKS", 100)
    with pytest.raises(TableError, match="more than 100 different texts"):
        fit_files([frame.assign(name=[f"n{k}" for k in range(2500)])], None, rows=500)


def test_files_without_rows_and_files_that_change(tidy, path, write):
    with pytest.raises(TableError, match="no rows below the header"):
        fit_files([write("x,label,fidelity\n")])
    with open_labelled([path], LEVELS, rows=50) as files:
        summary = files.survey()
        for other in (tidy[:-1], pd.concat([tidy, tidy]), tidy.assign(label="odd")):
            other.to_csv(path, index=False)
            with pytest.raises(TableError, match=r"tidy.csv: the file changed"):
                list(files.encoded(summary))


def test_the_spool_is_announced_and_removed(tidy, tmp_path):
    said, steps = [], []
    fit_files([tidy], rows=100, spool=tmp_path, say=said.append, callback=steps.append)
    assert said[0].startswith("300 rows are read in blocks of 100; as numbers they take 1 MB in ")
    assert str(tmp_path) in said[0]
    seen = [(step.stage, step.done, step.total) for step in steps[:6]]
    assert seen[:3] == [("reading", n, None) for n in (100, 200, 300)]
    assert seen[3:] == [("encoding", n, 300) for n in (100, 200, 300)]
    assert {step.stage for step in steps[6:]} == {"passes"}
    assert list(tmp_path.iterdir()) == []


def test_the_spool_is_removed_whatever_happens(tidy, tmp_path, monkeypatch):
    def fail(step):
        if step.stage == "passes":
            assert (tmp_path / os.listdir(tmp_path)[0] / "rows").is_file()
            raise KeyboardInterrupt("enough")

    with pytest.raises(KeyboardInterrupt, match="enough"):
        fit_files([tidy], spool=tmp_path, callback=fail)
    assert list(tmp_path.iterdir()) == []
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(large.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(ValueError, match=r"300 rows take .* free; name a folder on a larger disk"):
        fit_files([tidy], spool=tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="spool must be a folder that is there"):
        fit_files([tidy], spool=tmp_path / "none")


def test_memory_is_that_of_a_few_blocks(tidy, tmp_path, monkeypatch):
    """Of Python and NumPy and of Arrow's blocks, up to the second pass."""
    monkeypatch.setattr(read, "CHUNK", 1 << 15)  # of which Arrow reads 32 ahead
    rng, n = np.random.RandomState(0), 200_000
    columns = {f"x{k}": rng.uniform(-1, 1, n).round(4) for k in range(10)}
    columns["label"] = np.where(columns["x0"] > 0, "good", "bad")
    columns["fidelity"] = np.where(rng.uniform(size=n) < 0.05, "expert", "crowd")
    pacsv.write_csv(pa.table(columns), tmp_path / "many.csv")
    del columns
    arrow = 0

    def watch(step):
        nonlocal arrow
        arrow = max(arrow, pa.total_allocated_bytes())
        stop(step)

    fit_files([tidy])  # imports are not counted, nor what other tests left behind
    gc.collect()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fit_files([tmp_path / "many.csv"], rows=5000, callback=watch)
        peak = (tracemalloc.get_traced_memory()[1] + arrow - before) / 1e6
    finally:
        tracemalloc.stop()
    assert peak < 16.0  # megabytes, which is what the features take as numbers


def interrupt(source, checkpoint):
    with pytest.raises(KeyboardInterrupt):
        fit_files([source], checkpoint=checkpoint, callback=stop)
    assert checkpoint.is_file()


def test_a_fit_goes_on_from_its_checkpoint(tidy, tmp_path):
    checkpoint = tmp_path / "fit.polyfid"
    whole = fit_files([tidy])
    interrupt(tidy, checkpoint)
    stages = []
    again = fit_files([tidy], checkpoint=checkpoint, callback=lambda s: stages.append(s.stage))
    assert not checkpoint.exists()
    assert stages.count("passes") <= whole.classifier._fits[0].inference.n_iter
    assert again.classifier.converged_
    assert again.classifier.warm_start is False
    np.testing.assert_allclose(
        again.predict(tidy).filter(like="p_"), whole.predict(tidy).filter(like="p_"), atol=1e-4
    )


@pytest.mark.parametrize(
    ("change", "changes", "match"),
    [
        (lambda rows: rows, {"n_inducing": 10}, r"n_inducing \(20\)"),
        (lambda rows: rows, {"kernel": 2.0 * RBF()}, "kernel"),
        (lambda rows: rows[1:], {}, "numbers of rows"),
        (lambda rows: rows.rename(columns={"heat": "cold"}), {}, "columns"),
        (lambda rows: rows.replace({"label": {"bad": "worse"}}), {}, "classes"),
        (lambda rows: rows[rows["fidelity"] == "expert"], {}, "numbers of rows"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(tidy, tmp_path, change, changes, match):
    checkpoint = tmp_path / "fit.polyfid"
    interrupt(tidy, checkpoint)
    before = checkpoint.read_bytes()
    model = make_model().set_params(**changes)
    with pytest.raises(ValueError, match=f"another fit, with other {match}"):
        fit_files([change(tidy)], classifier=model, checkpoint=checkpoint)
    assert checkpoint.read_bytes() == before


def test_a_file_that_is_no_checkpoint_is_kept(tidy, tmp_path):
    model, text = tmp_path / "model.polyfid", tmp_path / "notes.txt"
    TableModel.fit(read_labelled([tidy[:40]], LEVELS), make_model()).save(model)
    text.write_text("mine\n" * 100)
    for path, words in ((model, "is a model, and not a checkpoint"), (text, "not a polyfid model")):
        before = path.read_bytes()
        with pytest.raises(ValueError, match=words):
            fit_files([tidy], checkpoint=path)
        assert path.read_bytes() == before
    with pytest.raises(ValueError, match="no folder for checkpoint"):
        fit_files([tidy], checkpoint=tmp_path / "none" / "c.polyfid")
