"""Embeddings: joined by id or by order, and refused where they do not fit."""

import numpy as np
import pandas as pd
import pytest

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.tables import Embeddings, Roles, TableError, TableModel, read_held_out, read_labelled

N = 40
RNG = np.random.RandomState(0)
VALUES = RNG.normal(size=(N, 3)).round(3)
ROWS = pd.DataFrame(
    {
        "id": [f"r{k}" for k in range(N)],
        "label": np.where(VALUES[:, 0] > 0, "cat", "dog"),
        "fidelity": np.where(np.arange(N) % 4, "crowd", "gold"),
    }
)
ROLES = Roles(levels=("crowd", "gold"))
BY_ID = pd.DataFrame(VALUES, columns=["u", "v", "w"]).assign(id=ROWS["id"]).iloc[::-1]


@pytest.fixture(params=["npy", "csv", "parquet", "frame"])
def source(request, tmp_path):
    if request.param == "frame":
        return BY_ID
    file = tmp_path / f"emb.{request.param}"
    if request.param == "npy":
        np.save(file, VALUES)
    elif request.param == "csv":
        BY_ID.to_csv(file, index=False)
    else:
        BY_ID.to_parquet(file)
    return file


def test_all_forms_give_the_same_features(source):
    table = read_labelled([ROWS], ROLES, embeddings=source)
    assert table.features.columns.tolist() == ["emb0", "emb1", "emb2"]
    assert np.array_equal(table.features.to_numpy(), VALUES)


def test_they_come_in_the_order_of_all_tables(tmp_path):
    np.save(tmp_path / "emb.npy", VALUES)
    parts = {"crowd": ROWS[:30], "gold": ROWS[30:]}
    files = {name: part.drop(columns="fidelity") for name, part in parts.items()}
    table = read_labelled([], level_files=files, embeddings=tmp_path / "emb.npy")
    assert np.array_equal(table.features.to_numpy(), VALUES)
    roles = Roles(levels=("crowd", "gold"), features=["y"])
    named = read_labelled([ROWS.assign(x=1.0, y=2.0)], roles, embeddings=tmp_path / "emb.npy")
    assert named.features.columns.tolist() == ["y", "emb0", "emb1", "emb2"]


def test_a_model_predicts_from_them_in_blocks(source):
    table = read_labelled([ROWS], ROLES, embeddings=source)
    model = TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()))
    new = ROWS[["id"]]
    read = Embeddings.read(source)
    blocks = model.read_blocks(new, rows=7, embeddings=read)
    made = pd.concat(model.predict_blocks(blocks), ignore_index=True)
    pd.testing.assert_frame_equal(made, model.predict(read.add_to(new)), rtol=1e-12)
    assert (made["label"] == ROWS["label"]).mean() > 0.9
    kept = model.read_blocks(new.assign(note="n"), rows=7, keep=["note"], embeddings=read)
    assert next(model.predict_blocks(kept, keep=["note"])).columns[:2].tolist() == ["id", "note"]
    held_out = read_held_out(model, ROWS, embeddings=read)
    assert (held_out.n_known, held_out.n_other) == (N // 4, N - N // 4)
    with pytest.raises(TableError, match=r"fitted to embeddings too.*--embeddings FILE"):
        model.predict(new)


@pytest.mark.parametrize("rows", [N - 1, N + 1])
def test_the_number_of_rows_must_be_that_of_the_table(rows):
    made = Embeddings("embeddings", np.ones((rows, 2)))
    with pytest.raises(TableError, match=f"there are {rows} rows of embeddings.*has {N}"):
        made.add_to(ROWS)
    with pytest.raises(TableError, match=f"there are {rows} rows of embeddings, and the table has"):
        [*made.add_to_blocks([ROWS[:25], ROWS[25:]], ["id"])]
    with pytest.raises(TableError, match=f"has {N}"):
        made.with_ids(ROWS["id"].to_numpy())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[f["id"] != "r7"], r"1 of 40 ids of column 'id' have no embedding: 'r7'"),
        (lambda f: f.head(3), "37 of 40 ids.*'r0', 'r1', 'r2', 'r3', 'r4' and 32 more"),
        (lambda f: pd.concat([f, f.head(1)]), "several rows have the id 'r39'"),
        (lambda f: f.assign(word=["a", "b"] * 20), "column 'word'.*numbers only"),
        (lambda f: f[["id"]], "no columns of numbers beside 'id'"),
        (lambda f: f.drop(columns="id"), "no column 'id' of ids.*--id"),
        (lambda f: f.assign(u=np.nan), r"row 40, that of 'r0', has numbers that are missing"),
    ],
)
def test_embeddings_that_do_not_fit(change, message):
    with pytest.raises(TableError, match=f"embeddings.*{message}"):
        read_labelled([ROWS], ROLES, embeddings=Embeddings.read(change(BY_ID)))


def test_tables_that_do_not_fit():
    made = Embeddings.read(BY_ID)
    with pytest.raises(TableError, match=r"'id' of ids in the table to join them by.*--id"):
        made.add_to(ROWS.drop(columns="id"))
    with pytest.raises(TableError, match="the table has columns 'emb1' already"):
        made.add_to(ROWS.assign(emb1=1.0))
    keyed = made.add_to(ROWS.rename(columns={"id": "key"}), ["key"])
    assert np.array_equal(keyed[["emb0", "emb1", "emb2"]].to_numpy(), VALUES)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), r"one row per row of the table.*\(3,\)"),
        (np.array([["a"]]), "must hold numbers"),
        (np.array([[None]]), "cannot be read"),
    ],
)
def test_arrays_that_are_no_embeddings(tmp_path, array, message):
    np.save(tmp_path / "emb.npy", array, allow_pickle=True)
    with pytest.raises(TableError, match=rf"embeddings \(emb.npy\): .*{message}"):
        Embeddings.read(tmp_path / "emb.npy")
    whole = (tmp_path / "emb.npy").read_bytes()
    (tmp_path / "emb.npy").write_bytes(whole[:40])
    with pytest.raises(TableError, match="cannot be read"):
        Embeddings.read(tmp_path / "emb.npy")
