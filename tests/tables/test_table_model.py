"""Tables in, tables out."""

import numpy as np
import pandas as pd
import pytest

import polyfid
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.model_files import ModelFileError, inspect, write
from polyfid.tables import Roles, TableError, TableModel, read_labelled


def rows(n, seed, classes=("bad", "good")):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": [f"r{k:03d}" for k in range(n)], "x": rng.normal(size=n)})
    frame["c"] = rng.choice(["red", "green", "blue"], n)
    score = frame["x"] + (frame["c"] == "red")
    frame["label"] = np.array(classes)[np.digitize(score, np.linspace(0, 1, len(classes) - 1))]
    return frame


def tables(**kwargs):
    return {"crowd": rows(60, 0, **kwargs), "expert": rows(20, 1, **kwargs)}


CLASSIFIER = MultiFidelityClassifier(1.0 * RBF(), random_state=0)


@pytest.fixture(scope="module")
def model():
    return TableModel.fit(read_labelled([], level_files=tables()), CLASSIFIER)


NEW = rows(25, 2).drop(columns="label")


def test_predictions_are_those_of_the_classifier(model):
    assert not hasattr(CLASSIFIER, "report_")  # a copy was fitted
    made = model.predict(NEW)
    assert (made["label"] == rows(25, 2)["label"]).mean() > 0.8
    assert made.columns.tolist() == ["id", "label", "p_bad", "p_good", "latent_mean", "latent_sd"]
    assert made["id"].tolist() == NEW["id"].tolist()
    x = pd.DataFrame(model.encoder.transform(NEW), columns=model.encoder.names_)
    assert np.array_equal(made["label"], model.classifier.predict(x))
    assert np.array_equal(made[["p_bad", "p_good"]], model.classifier.predict_proba(x))
    mean, variance = model.classifier.latent_mean_and_variance(x)
    assert np.array_equal(made["latent_mean"], mean)
    assert np.array_equal(made["latent_sd"], np.sqrt(variance))


def test_frames_of_polars_and_files_are_predicted_too(model, tmp_path):
    polars = pytest.importorskip("polars")
    expected = model.predict(NEW)
    pd.testing.assert_frame_equal(model.predict(polars.from_pandas(NEW)), expected)
    NEW.to_csv(tmp_path / "new.csv", index=False)
    pd.testing.assert_frame_equal(model.predict(tmp_path / "new.csv"), expected)


def test_more_than_two_classes():
    table = read_labelled([], level_files=tables(classes=(0, 1, 2)))
    made = TableModel.fit(table, CLASSIFIER).predict(NEW)
    names = [f"{what}_{c}" for what in ("p", "latent_mean", "latent_sd") for c in "012"]
    assert made.columns.tolist() == ["id", "label", *names]
    assert np.allclose(made[names[:3]].sum(axis=1), 1.0)
    assert made["label"].dtype == np.int64


@pytest.mark.parametrize("rows", [7, 25, 100])
def test_blocks_give_the_same_whatever_the_number_of_threads(model, tmp_path, rows):
    NEW.assign(long="x" * 10)[["long", "c", "x", "id"]].to_csv(tmp_path / "n.csv", index=False)
    blocks = list(model.read_blocks(tmp_path / "n.csv", rows=rows))
    assert blocks[0].columns.tolist() == ["c", "x", "id"]  # only those that are needed
    one, *others = (
        pd.concat(model.predict_blocks(blocks, n_jobs=jobs), ignore_index=True)
        for jobs in (1, 2, None)
    )
    pd.testing.assert_frame_equal(one, model.predict(NEW), check_dtype=False, rtol=1e-9)
    for other in others:
        pd.testing.assert_frame_equal(other, one, check_exact=True)


def test_new_rows_without_id_or_with_another(model, tmp_path):
    assert "id" not in model.predict(NEW.drop(columns="id"))
    other = NEW.rename(columns={"id": "key"})
    other.to_csv(tmp_path / "n.csv", index=False)
    blocks = model.read_blocks(tmp_path / "n.csv", id="key")
    (made,) = model.predict_blocks(blocks, id="key")
    assert made["key"].tolist() == NEW["id"].tolist()
    with pytest.raises(TableError, match="no column 'kei' of ids; did you mean 'key'"):
        model.predict(other, id="kei")


def test_a_bad_cell_is_named_wherever_its_block(model, tmp_path):
    path = tmp_path / "new.csv"
    good = "".join(f"{k},0.5,red\n" for k in range(30))
    path.write_text(f"id,x,c\n{good}30,oops,red\n")
    with pytest.raises(TableError, match=r"^new.csv, row 32, column 'x': 'oops' is not a number$"):
        list(model.predict_blocks(model.read_blocks(path, rows=10)))
    path.write_text(f"id,x,c\n{good}\n30,,red\n")
    for jobs in (1, 2):
        with pytest.raises(TableError, match=r"^new.csv, row 33, column 'x': the cell is empty"):
            list(model.predict_blocks(model.read_blocks(path, rows=10), n_jobs=jobs))
    path.write_text("id,X_,c\n1,2,red\n")
    with pytest.raises(TableError, match=r"^new.csv: there is no column 'x', which the model"):
        list(model.predict_blocks(model.read_blocks(path)))


def test_blocks_without_rows_and_with_unknown_categories(model, tmp_path):
    header = [*model.predict_blocks([NEW.iloc[:0]])]
    assert [(len(p), list(p)) for p in header] == [(0, list(model.predict(NEW)))]
    new = NEW.assign(c="mauve")
    with pytest.warns(UserWarning, match=r"'c': 25 rows are in no category") as caught:
        list(model.predict_blocks([new.iloc[:10], new.iloc[10:]]))
    assert len(caught) == 1


def test_stopping_early_stops_the_threads(model):
    def endless():
        while True:
            yield NEW

    blocks = model.predict_blocks(endless(), n_jobs=2)
    next(blocks)
    blocks.close()


def test_rows_without_weight_do_not_count_as_classes():
    light = rows(10, 0).assign(fidelity="a", weight=lambda t: t["label"] == "good")
    with pytest.raises(TableError, match="all labels are 'good'"):
        TableModel.fit(read_labelled([light]), CLASSIFIER)
    with pytest.raises(TableError, match="all rows have weight 0"):
        TableModel.fit(read_labelled([light.assign(weight=0)]), CLASSIFIER)


def test_a_saved_model_predicts_the_same(model, tmp_path):
    path = tmp_path / "m.polyfid"
    model.save(path)
    again = polyfid.load(path)
    assert isinstance(again, TableModel)
    pd.testing.assert_frame_equal(again.predict(NEW), model.predict(NEW), check_exact=True)
    assert (again.encoder.columns_, again.roles) == (model.encoder.columns_, model.roles)
    pd.testing.assert_frame_equal(again.table.to_frame(), model.table.to_frame(), check_dtype=False)
    assert list(again.table.places) == list(model.table.places)
    for a, b in zip(again.training(), model.training(), strict=True):
        assert np.array_equal(a, b)
    header = inspect(path)
    assert header["kind"] == "table"
    assert header["inputs"] == {"x": "number", "c": "category"}


def test_rows_keep_their_numbers_and_files_lose_their_folders(tmp_path):
    files = {}
    for name, frame in tables().items():
        files[name] = tmp_path / f"{name}.csv"
        header, *lines = frame.to_csv(index=False).splitlines()
        files[name].write_text("\n\n".join([header, *lines]))
    model = TableModel.fit(read_labelled([], level_files=files), CLASSIFIER)
    model.save(tmp_path / "m.polyfid")
    for file in files.values():
        file.unlink()
    assert str(tmp_path).encode() not in (tmp_path / "m.polyfid").read_bytes()
    again = polyfid.load(tmp_path / "m.polyfid")
    for places in (model.table.places, again.table.places):
        rows = ["crowd.csv, row 3", "crowd.csv, row 5", "expert.csv, row 3"]
        assert [places[k] for k in (0, 1, 60)] == rows
    holes = again.table.features.assign(x=[0.0] * 61 + [np.nan] * 19)
    with pytest.raises(TableError, match=r"^expert.csv, row 5, column 'x': the cell is empty"):
        again.encoder.transform(holes)


def test_parts_that_do_not_belong_together_are_refused(model, tmp_path):
    state = model._state()
    other = TableModel.fit(
        read_labelled([rows(20, 0).assign(fidelity="a")], Roles(features=["x"])), CLASSIFIER
    )
    short = {**state["table"], "label": state["table"]["label"][:-1]}
    others = {"columns": other.encoder.columns_, "roles": "x", "table": short, "classifier": {}}
    for change in ({name: value} for name, value in others.items()):
        write(tmp_path / "m.polyfid", "table", {**state, **change})
        with pytest.raises(ModelFileError):
            polyfid.load(tmp_path / "m.polyfid")
