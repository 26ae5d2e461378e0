"""What the head of a model file says, and how arrays are stored below it."""

import json
import tracemalloc

import numpy as np

import polyfid
from polyfid import model_files as persistence
from polyfid.model_files import inspect, read, write


def test_inspect_tells_what_the_model_is(models, tmp_path):
    model = models("plain")
    model.save(tmp_path / "m.polyfid")
    header = inspect(tmp_path / "m.polyfid")
    assert header["format"] == "polyfid model"
    assert header["schema"] == persistence.SCHEMA == 1
    assert header["kind"] == "classifier"
    assert header["created_by"] == f"polyfid {polyfid.__version__}"
    assert header["versions"]["numpy"] == np.__version__
    assert header["levels"] == ["crowd", "expert"]
    assert header["classes"] == [False, True]
    assert header["features"] is None
    assert header["n_features"] == 2
    counts = [list(row.values()) for row in header["rows"].values()]
    assert counts == model.report_.counts.tolist()
    assert header["structures"] == {"kernel as given": 1.0}
    assert header["hyper_parameters"] == dict(zip(model.theta_names_, model.theta_, strict=True))
    assert "state" not in header
    sizes = sum(entry["nbytes"] for entry in header["arrays"])
    assert sizes < (tmp_path / "m.polyfid").stat().st_size
    assert {"name", "dtype", "shape", "offset", "nbytes"} <= set(header["arrays"][0])
    json.dumps(header, allow_nan=False)


def test_inspect_of_several_classes_and_names(models, tmp_path):
    models("three classes").save(tmp_path / "m.polyfid")
    header = inspect(tmp_path / "m.polyfid")
    assert list(header["structures"]) == list(header["hyper_parameters"]) == ["0", "10", "20"]
    models("fidelity in a data frame").save(tmp_path / "m.polyfid")
    assert inspect(tmp_path / "m.polyfid")["features"] == ["length", "naïve <b>"]


def test_inspect_builds_nothing_and_reads_no_arrays(models, tmp_path):
    write(tmp_path / "m.polyfid", "thing", np.zeros(1 << 20))
    tracemalloc.start()
    try:
        inspect(tmp_path / "m.polyfid")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_triangles_are_stored_without_what_was_never_written(models, tmp_path):
    models("plain").save(tmp_path / "m.polyfid")
    packed = [a for a in inspect(tmp_path / "m.polyfid")["arrays"] if "packed" in a["name"]]
    assert [a["shape"] for a in packed] == [[60 * 61 // 2]]


def test_arrays_that_are_shared_are_stored_once_and_shared_again(tmp_path):
    x = np.arange(5.0)
    write(tmp_path / "m.polyfid", "thing", [x, {"again": x}, x.copy()])
    assert len(inspect(tmp_path / "m.polyfid")["arrays"]) == 2
    _, (first, second, third) = read(tmp_path / "m.polyfid")
    assert first is second["again"]
    assert third is not first
