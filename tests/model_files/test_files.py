"""What a model file is: a zip that appears whole or not at all, with a header that tells."""

import json
import os
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from saved_models import MODELS, predictions, zipped

import polyfid
from polyfid import load
from polyfid.model_files import inspect, is_model, read, write
from polyfid.model_files.container import SCHEMA


def test_inspect_tells_what_the_model_is(models, tmp_path):
    path = tmp_path / "m.polyfid"
    model = models("plain")
    model.save(path)
    header = inspect(path)
    expected = {
        "format": "polyfid model",
        "schema": SCHEMA,
        "kind": "classifier",
        "created_by": f"polyfid {polyfid.__version__}",
        "levels": ["crowd", "expert"],
        "classes": [False, True],
        "features": None,
        "n_features": 2,
        "structures": {"kernel as given": 1.0},
        "hyper_parameters": dict(zip(model.theta_names_, model.theta_, strict=True)),
    }
    assert {key: header[key] for key in expected} == expected
    assert header["versions"]["numpy"] == np.__version__
    counts = [list(row.values()) for row in header["rows"].values()]
    assert counts == model.report_.counts.tolist()
    assert "state" not in header
    json.dumps(header, allow_nan=False)
    # The triangle of a Cholesky factor is stored without the other half.
    packed = [a["shape"] for a in header["arrays"] if a["name"].endswith("packed")]
    assert packed == [[60 * 61 // 2]]

    models("three classes").save(path)
    header = inspect(path)
    assert list(header["structures"]) == list(header["hyper_parameters"]) == ["0", "10", "20"]
    models("fidelity in a data frame").save(path)
    assert inspect(path)["features"] == ["length", "naïve <b>"]


def test_numpy_reads_the_arrays_and_zip_the_members(tmp_path):
    path = tmp_path / "m.polyfid"
    arrays = [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "💡"]),
        np.array(["2024-01-01", "NaT"], dtype="M8[ns]"),
        np.array(5, dtype=np.int8),
        np.zeros((0, 3), dtype=bool),
    ]
    write(path, "thing", arrays)
    with np.load(path, allow_pickle=False) as file:
        for place, array in enumerate(arrays):
            again = file[f"{place:05d}"]
            assert again.dtype == array.dtype
            assert again.flags.f_contiguous == array.flags.f_contiguous
            np.testing.assert_array_equal(again, array)
    with zipfile.ZipFile(path) as archive:
        assert {m.date_time for m in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        members = [(m.filename, archive.read(m)) for m in archive.infolist()]
    # The same members in another zip are the same model.
    path.write_bytes(zipped(members))
    np.testing.assert_array_equal(read(path)[1][0], arrays[0])
    assert is_model(path)


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.polyfid")), ids=lambda path: path.stem)
def test_kept_files_load_and_predict_as_they_did(path):
    # If one no longer loads: a field that goes, or comes without a default, needs a new schema.
    then = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    now = predictions(load(path), np.array(then["X"]))
    assert now["levels"] == then["levels"]
    for key in ("predict_proba", "latent"):
        for ours, theirs in zip(now[key], then[key], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)
    evidence = then["log_marginal_likelihood"]
    assert now["log_marginal_likelihood"] == pytest.approx(evidence, rel=1e-6)


def test_links_and_permissions_stay(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "old")
    (tmp_path / "usual").write_text("")
    for name in ("link", "new"):
        write(str(tmp_path / name), "thing", 1)
        assert read(tmp_path / name) == ("thing", 1)
    assert (tmp_path / "link").is_symlink()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"old": 0o640, "link": 0o640, "new": modes["usual"], "usual": modes["usual"]}


@pytest.mark.parametrize("step", ["fsync", "replace"])  # on the disk before the old file goes
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    path = tmp_path / "m.polyfid"
    path.write_text("old")

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(KeyboardInterrupt):
        write(path, "thing", np.zeros(3))
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.polyfid"]


def test_a_pipe_takes_a_model(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        data = pool.submit((tmp_path / "pipe").read_bytes)
        write(tmp_path / "pipe", "thing", [1, np.zeros(3)])
    (tmp_path / "m.polyfid").write_bytes(data.result())
    assert read(tmp_path / "m.polyfid")[1][0] == 1


def test_errors_of_the_system_stay_what_they_are(tmp_path):
    for use in (load, lambda path: write(path, "thing", 1)):
        with pytest.raises(FileNotFoundError):
            use(tmp_path / "nowhere" / "m.polyfid")
        with pytest.raises(IsADirectoryError):
            use(tmp_path)
    assert list(tmp_path.iterdir()) == []
