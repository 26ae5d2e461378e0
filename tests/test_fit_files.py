"""Table models from files in blocks: as those from tables in memory, with the memory of a block."""

import gzip
import os
import tracemalloc
import warnings

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv

from polyfid import ArrayBlocks, MultiFidelityClassifier, load
from polyfid.kernels import RBF
from polyfid.tables import Roles, TableError, learning, read, read_labelled
from polyfid.tables.files import LabelledFiles
from polyfid.tabular import TableModel, spool

ROWS = 40


def make_model(**changes):
    given = {"n_inducing": 20, "optimizer": None, "n_tuning": 200, "random_state": 0}
    return MultiFidelityClassifier(1.0 * RBF(), **{**given, **changes})


def make_rows(n=300, seed=0):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, (n, 2)).round(3)
    trusted = rng.uniform(size=n) < 0.3
    wrong = (rng.uniform(size=n) < 0.2) & ~trusted
    return pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(n)],
            "heat": x[:, 0],
            "kind": np.array(["new", "old", "spare"])[rng.randint(0, 3, n)],
            "flow": x[:, 1],
            "label": np.where((x[:, 0] > 0) ^ wrong, "good", "bad"),
            "fidelity": np.where(trusted, "expert", "crowd"),
            "weight": rng.randint(0, 3, n),
        }
    )


@pytest.fixture
def tidy():
    return make_rows()


def fit_files(*given, classifier=None, rows=ROWS, **more):
    return TableModel.fit_files(*given, classifier=classifier or make_model(), rows=rows, **more)


def assert_as_in_memory(model, table, missing="error"):
    """The recipe and roles of the table, and the classifier of its rows in the same blocks."""
    whole = TableModel.fit(table, make_model(), missing)
    assert model.recipe == whole.recipe
    assert model.roles == whole.roles
    assert model.classifier.levels_ == whole.classifier.levels_
    assert model.classifier.classes_.tolist() == whole.classifier.classes_.tolist()
    np.testing.assert_array_equal(model.classifier.report_.counts, whole.classifier.report_.counts)
    new = table.features.head(20)
    np.testing.assert_allclose(
        model.predict(new).filter(like="p_"), whole.predict(new).filter(like="p_"), atol=0.05
    )
    return whole


def test_a_tidy_csv_file(tidy, tmp_path):
    path = tmp_path / "tidy.csv"
    tidy.to_csv(path, index=False)
    model = fit_files([path], Roles(levels=["crowd", "expert"]))
    assert_as_in_memory(model, read_labelled([path], Roles(levels=["crowd", "expert"])))
    assert model.table is None
    assert model.predict(tidy)["id"].tolist() == tidy["id"].tolist()
    with pytest.raises(ValueError, match="fitted in blocks"):
        model.training()


def test_the_fit_is_that_of_the_rows_in_blocks(tidy, tmp_path):
    path = tmp_path / "tidy.csv"
    tidy.to_csv(path, index=False)
    model = fit_files([path], rows=50)
    table = read_labelled([path])
    x = pd.DataFrame(model.recipe(table.features), columns=list(model.recipe.names))
    blocks = ArrayBlocks(x, table.label, table.fidelity, table.weight, rows=50)
    same = make_model(levels=table.levels).fit_blocks(blocks)
    np.testing.assert_array_equal(model.classifier.predict_proba(x), same.predict_proba(x))


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "frame", "several", "semicolons"])
def test_other_sources(tidy, tmp_path, kind):
    files = [tmp_path / f"t.{kind}"]
    if kind == "csv.gz":
        with gzip.open(files[0], "wt") as file:
            tidy.to_csv(file, index=False)
    elif kind == "parquet":
        tidy.to_parquet(files[0])
    elif kind == "frame":
        files = [tidy]
    elif kind == "several":
        files = [tmp_path / "a.csv", tmp_path / "b.csv"]
        tidy[:100].to_csv(files[0], index=False)
        tidy[100:].to_csv(files[1], index=False, columns=tidy.columns[::-1])
    else:
        tidy.to_csv(files[0], index=False, sep=";", decimal=",")
    model = fit_files(files)
    assert_as_in_memory(model, read_labelled(files))


def test_one_file_a_level(tidy, tmp_path):
    levels = {}
    for level in ("expert", "crowd"):  # not as they sort
        levels[level] = tmp_path / f"{level}.csv"
        part = tidy[tidy["fidelity"] == level].drop(columns=["fidelity", "weight"])
        part.to_csv(levels[level], index=False)
    model = fit_files([], level_files=levels)
    assert model.classifier.levels_ == ("expert", "crowd")
    assert_as_in_memory(model, read_labelled([], level_files=levels))


def test_standard_input_is_read_as_often_as_it_takes(tidy, monkeypatch, tmp_path):
    path = tmp_path / "tidy.csv"
    tidy.to_csv(path, index=False)
    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        model = fit_files(["-"])
    assert_as_in_memory(model, read_labelled([path]))


def test_names_that_look_like_numbers(tmp_path):
    """Types are those of all rows: late ones count."""
    rng = np.random.RandomState(0)
    x = rng.uniform(size=40).round(2)
    code = [f"{k % 3}" for k in range(39)] + ["007"]
    frame = pd.DataFrame({"x": x, "code": code, "label": (x > 0.5) + 0.0, "fidelity": "1.0"})
    frame.loc[20:, "fidelity"] = "2"
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = fit_files([tmp_path / "t.csv"], rows=7)
    whole = assert_as_in_memory(model, read_labelled([tmp_path / "t.csv"]))
    assert whole.recipe.columns[1].categories == ("0", "007", "1", "2")
    assert model.classifier.classes_.tolist() == [0, 1]
    assert model.classifier.levels_ == ("1", "2")


@pytest.mark.parametrize("missing", ["median", "indicator"])
def test_missing_values(tidy, tmp_path, missing):
    tidy.loc[[3, 200], "heat"] = np.nan
    tidy.loc[[5, 250], "kind"] = None
    path = tmp_path / "tidy.csv"
    tidy.to_csv(path, index=False)
    model = fit_files([path], missing=missing)
    assert_as_in_memory(model, read_labelled([path]), missing)
    assert_as_in_memory(fit_files([tidy], missing=missing), read_labelled([tidy]), missing)


def test_medians_of_very_many_numbers_are_those_of_a_sample(monkeypatch):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": rng.normal(size=4000), "label": [0, 1] * 2000, "fidelity": "a"})
    frame.loc[::2, "x"] = np.nan
    monkeypatch.setattr(learning, "MEDIAN_CELLS", 1000)
    with LabelledFiles([frame], rows=100) as files:
        (column,) = files.look("median").recipe.columns
    exact = float(frame["x"].median())
    assert column.fill != exact
    assert column.fill == pytest.approx(exact, abs=5 * 1.2533 / np.sqrt(1000))


BROKEN = {
    "a typo": ("heat", 150, "wraam"),
    "an empty cell": ("heat", [150, 160, 290], None),
    "an infinite cell": ("heat", 150, np.inf),
    "an empty category": ("kind", [150, 151], None),
    "no label": ("label", [150, 151], None),
    "no level": ("fidelity", 299, None),
    "a weight that is none": ("weight", 150, "much"),
    "a negative weight": ("weight", 150, -1),
    "an unknown level": ("fidelity", 150, "boss"),
    "an empty column": ("flow", slice(None), None),
    "one class": ("label", slice(None), "good"),
    "no weight at all": ("weight", slice(None), 0),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("kind", ["csv", "frame"])
def test_errors_are_those_of_tables_in_memory(tidy, tmp_path, what, kind):
    column, rows, value = BROKEN[what]
    broken = tidy.astype({column: object})
    broken.loc[rows, column] = value
    source = broken
    if kind == "csv":
        source = tmp_path / "tidy.csv"
        broken.to_csv(source, index=False)
    roles = Roles(levels=["crowd", "expert"])
    with pytest.raises(TableError) as expected:
        TableModel.fit(read_labelled([source], roles), make_model())
    with pytest.raises(TableError) as found:
        fit_files([source], roles, rows=7)
    assert found.value.problems == expected.value.problems


def test_all_that_is_wrong_is_told_at_once(tidy, tmp_path):
    broken = tidy.astype({"heat": object})
    broken.loc[100, "label"] = None
    broken.loc[200, "fidelity"] = None
    broken.to_csv(tmp_path / "tidy.csv", index=False)
    with pytest.raises(TableError, match=r"tidy.csv, row 102, column 'label'.*1 more") as error:
        fit_files([tmp_path / "tidy.csv"])
    assert "row 202, column 'fidelity'" in error.value.problems[1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"heat": "hot"}, "'hot' is not a number, and in a.csv the column is of numbers"),
        ({"heat": None}, "no column 'heat', which a.csv has"),
        ({"label": None}, "no column 'label' of labels"),
    ],
)
def test_tables_that_do_not_go_together(tidy, tmp_path, change, match):
    tidy.to_csv(tmp_path / "a.csv", index=False)
    ((name, value),) = change.items()
    other = tidy.drop(columns=name) if value is None else tidy.assign(**change)
    other.to_csv(tmp_path / "b.csv", index=False)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(TableError, match=match) as found:
        fit_files(files)
    with pytest.raises(TableError) as expected:
        read_labelled(files)
    assert found.value.problems == expected.value.problems


def test_names_and_measurements_are_no_classes_or_categories(monkeypatch, tmp_path):
    rng = np.random.RandomState(0)
    numbers = rng.uniform(size=2500)
    frame = pd.DataFrame({"x": numbers, "label": [0, 1] * 1250, "fidelity": "a"})
    with pytest.raises(TableError, match="more than 1000 different labels"):
        fit_files([frame.assign(label=numbers)], rows=500)
    with pytest.raises(TableError, match=r"there are 300 different labels, .* measurements"):
        fit_files([frame.assign(label=numbers)[:300]])
    monkeypatch.setattr(learning, "MOST_KNOWN", 100)
    with pytest.raises(TableError, match="more than 100 different texts"):
        fit_files([frame.assign(name=[f"n{k}" for k in range(2500)])], rows=500)


def test_an_empty_file(tmp_path):
    (tmp_path / "none.csv").write_text("x,label,fidelity\n")
    with pytest.raises(TableError, match="no rows below the header"):
        fit_files([tmp_path / "none.csv"])


def test_a_file_that_changes_between_readings(tidy, tmp_path):
    path = tmp_path / "tidy.csv"
    tidy.to_csv(path, index=False)
    with LabelledFiles([path], rows=50) as files:
        found = files.look()
        for other in (tidy[:-1], pd.concat([tidy, tidy]), tidy.assign(label="odd")):
            other.to_csv(path, index=False)
            with pytest.raises(TableError, match=r"tidy.csv: the file changed"):
                list(files.numbers(found))


# ------------------------------------------------------------------------------- spool


def test_the_spool_is_told_of_and_removed(tidy, tmp_path):
    said, seen = [], []
    folder = tmp_path / "spool"
    folder.mkdir()

    def step(stage, done, total):
        seen.append((stage, done, total))

    fit_files([tidy], rows=100, spool=folder, say=said.append, step=step)
    assert said[0].startswith("300 rows are read in blocks of 100; as numbers they take 1 MB in ")
    assert str(folder) in said[0]
    assert seen[:3] == [("Reading", n, None) for n in (100, 200, 300)]
    assert seen[3:] == [("Writing numbers", n, 300) for n in (100, 200, 300)]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, TableError])
def test_the_spool_is_removed_whatever_happens(tidy, tmp_path, error):
    def stop(stage, turn, n_turns, bounds):
        assert (tmp_path / os.listdir(tmp_path)[0] / "x.npy").is_file()
        raise error("enough")

    model = make_model()
    model._on_step = stop
    with pytest.raises(error, match="enough"):
        fit_files([tidy], classifier=model, spool=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_the_spool(tidy, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(spool.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(ValueError, match=r"300 rows take .* free; name a folder on a larger disk"):
        fit_files([tidy], spool=tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="spool must be a folder that is there"):
        fit_files([tidy], spool=tmp_path / "none")


def write_many(path, n, d=10):
    rng = np.random.RandomState(0)
    x = rng.uniform(-1, 1, (n, d)).round(4)
    columns = {f"x{k}": x[:, k] for k in range(d)}
    columns["label"] = np.where(x[:, 0] > 0, "good", "bad")
    columns["fidelity"] = np.where(rng.uniform(size=n) < 0.05, "expert", "crowd")
    pacsv.write_csv(pa.table(columns), path)


def peak_of_a_fit(path):
    """Megabytes, of Python and NumPy and of Arrow's blocks, up to the second pass."""
    arrow = 0
    model = make_model(n_inducing=5)

    def stop(stage, turn, n_turns, bounds):
        if stage == "passes" and len(bounds) == 2:
            raise KeyboardInterrupt

    model._on_step = stop

    def look(stage, done, total):
        nonlocal arrow
        arrow = max(arrow, pa.total_allocated_bytes())

    tracemalloc.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fit_files([path], classifier=model, rows=5000, step=look)
        return (tracemalloc.get_traced_memory()[1] + arrow) / 1e6
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "CHUNK", 1 << 15)  # of which Arrow reads 32 ahead
    few, many = tmp_path / "few.csv", tmp_path / "many.csv"
    write_many(few, 40_000)
    write_many(many, 200_000)
    peak_of_a_fit(few)  # what is imported and kept on the way
    small, large = peak_of_a_fit(few), peak_of_a_fit(many)
    assert large < 1.3 * small, (small, large)
    assert large < 16.0  # which is what the features would take as numbers


# -------------------------------------------------------------------------- checkpoints


def interrupted_fit(source, path, **changes):
    model = make_model(**changes)

    def stop(stage, turn, n_turns, bounds):
        if stage == "passes" and len(bounds) == 2:
            raise KeyboardInterrupt

    model._on_step = stop
    with pytest.raises(KeyboardInterrupt):
        fit_files([source], classifier=model, checkpoint=path)
    assert path.is_file()


def test_a_fit_goes_on_from_its_checkpoint(tidy, tmp_path):
    path = tmp_path / "fit.polyfid"
    whole = fit_files([tidy])
    interrupted_fit(tidy, path)
    passes = []
    model = make_model()
    model._on_step = lambda stage, *_: passes.append(stage)
    again = fit_files([tidy], classifier=model, checkpoint=path)
    assert not path.exists()
    assert passes.count("passes") <= whole.classifier._fits[0].inference.n_iter + 1
    assert again.classifier.converged_
    assert again.classifier.warm_start is False
    assert again.classifier._on_step is None
    np.testing.assert_allclose(
        again.predict(tidy).filter(like="p_"), whole.predict(tidy).filter(like="p_"), atol=1e-4
    )


@pytest.mark.parametrize(
    ("source", "changes", "match"),
    [
        ("same", {"n_inducing": 10}, r"another fit, with other n_inducing \(20\)"),
        ("same", {"kernel": 2.0 * RBF()}, "another fit, with other kernel"),
        ("fewer", {}, "another fit, with other numbers of rows"),
        ("columns", {}, "another fit, with other columns"),
        ("classes", {}, "another fit, with other classes"),
        ("levels", {}, "another fit, with other levels"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(tidy, tmp_path, source, changes, match):
    path = tmp_path / "fit.polyfid"
    interrupted_fit(tidy, path)
    before = path.read_bytes()
    other = {
        "same": tidy,
        "fewer": tidy[1:],
        "columns": tidy.rename(columns={"heat": "cold"}),
        "classes": tidy.replace({"label": {"bad": "worse"}}),
        "levels": tidy.replace({"fidelity": {"crowd": "mob"}}),
    }[source]
    model = make_model()
    model.set_params(**changes)
    with pytest.raises(ValueError, match=match):
        fit_files([other], classifier=model, checkpoint=path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_checkpoint_is_kept(tidy, tmp_path):
    path = tmp_path / "model.polyfid"
    TableModel.fit(read_labelled([tidy[:40]]), make_model()).save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is a model, and not a checkpoint"):
        fit_files([tidy], checkpoint=path)
    text = tmp_path / "notes.txt"
    text.write_text("mine\n" * 100)
    with pytest.raises(ValueError, match="not a polyfid model"):
        fit_files([tidy], checkpoint=text)
    assert path.read_bytes() == before
    assert text.read_text() == "mine\n" * 100
    with pytest.raises(ValueError, match="no folder for checkpoint"):
        fit_files([tidy], checkpoint=tmp_path / "none" / "c.polyfid")


def test_saved_and_loaded(tidy, tmp_path):
    model = fit_files([tidy])
    model.save(tmp_path / "model.polyfid")
    again = load(tmp_path / "model.polyfid")
    pd.testing.assert_frame_equal(again.predict(tidy), model.predict(tidy))


def test_the_classifier_of_the_user_stays_as_it_is(tidy):
    given = make_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_files([tidy], classifier=given)
    assert given.levels is None
    assert not hasattr(given, "report_")
