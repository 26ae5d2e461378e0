"""Files that are not models, or that lie, are refused before they do harm."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from saved_models import refused, seal, split, zipped

from polyfid import load
from polyfid.kernels import RBF
from polyfid.model_files import ModelFileError, container, inspect, is_model, read, write
from polyfid.model_files.codec import MAX_DEPTH
from polyfid.model_files.container import SCHEMA
from polyfid.tables import Roles

HOSTILE = json.loads(Path(__file__).with_name("hostile.json").read_text(encoding="utf-8"))
HEADER = {"format": "polyfid model", "schema": SCHEMA, "kind": "thing", "state": {"$array": 0}}


@contextmanager
def little_memory(most=1 << 20):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


class Bomb:
    def __reduce__(self):
        return exec, ("import os; os.environ['WENT_OFF'] = 'yes'",)


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x1,x2,label\n1,2,yes\n" * 100,
        pickle.dumps(Bomb()),
        npy(np.array([Bomb()])),
        zipped([("00000.npy", npy(np.zeros(3))), ("header.json", json.dumps(HEADER))]),
    ],
    ids=["empty", "csv", "pickle", "npy", "header last"],
)
def test_other_files_are_refused(tmp_path, data):
    refused(tmp_path / "m.polyfid", data, "is not a polyfid model")
    refused(tmp_path / "m.polyfid", data, read=inspect)
    assert not is_model(tmp_path / "m.polyfid")
    assert "WENT_OFF" not in os.environ


def test_a_file_cut_anywhere_is_called_truncated(tmp_path, file_bytes):
    for cut in [64, 500, len(file_bytes) // 2, len(file_bytes) - 21, len(file_bytes) - 1]:
        refused(tmp_path / "m.polyfid", file_bytes[:cut], "truncated")
    refused(tmp_path / "m.polyfid", file_bytes + b"\x00", "appended")


def test_a_bit_that_flips_in_any_member_is_noticed(tmp_path, file_bytes):
    with zipfile.ZipFile(io.BytesIO(file_bytes)) as archive:
        ends = [m.header_offset for m in archive.infolist()[1:]]
    for place in [60, 700, *(end - 1 for end in ends)]:
        data = bytearray(file_bytes)
        data[place] ^= 1
        refused(tmp_path / "m.polyfid", bytes(data), "damaged or altered.*CRC")
    # The CRC of a zip can be made right again by any tool; the header knows better.
    header, arrays = split(file_bytes)
    arrays[-1] = arrays[-1][:-1] + bytes([arrays[-1][-1] ^ 1])
    data = seal(json.dumps(header).encode(), arrays)
    refused(tmp_path / "m.polyfid", data, "damaged or altered.*SHA-256")
    assert inspect(tmp_path / "m.polyfid")["kind"] == "classifier"  # which reads no arrays


def test_other_schemas_and_kinds_say_what_to_do(tmp_path, file_bytes):
    header, arrays = split(file_bytes)
    path = tmp_path / "m.polyfid"
    later = header | {"schema": SCHEMA + 1, "created_by": "polyfid 9.0", "state": {"$new": 1}}
    message = refused(path, seal(later, arrays), "update polyfid")
    assert f"polyfid 9.0 with schema {SCHEMA + 1}" in message
    refused(path, b"\x89polyfid" + bytes(500), "schema 1.*fit the model again and save it")
    assert is_model(path)
    dragon = seal({**header, "kind": "dragon"}, arrays)
    refused(path, dragon, "holds a 'dragon'.*update polyfid")
    for state in (None, [], {"parameters": {}}, Roles(), RBF()):
        write(path, "classifier", state)
        with pytest.raises(ModelFileError, match="does not describe a model"):
            load(path)


def directory_edited(data, place, code, value):
    """The file with a field of the last entry of the zip's directory set to a value."""
    data = bytearray(data)
    struct.pack_into(code, data, data.rindex(b"PK\x01\x02") + place, value)
    return bytes(data)


def test_zips_that_are_no_models_are_refused_unread(tmp_path, file_bytes, monkeypatch):
    path = tmp_path / "m.polyfid"
    with zipfile.ZipFile(io.BytesIO(file_bytes)) as archive:
        members = [(m.filename, archive.read(m)) for m in archive.infolist()]
    sized = directory_edited(file_bytes, 20, "<I", 1 << 31)
    cases = {
        "is compressed": zipped([("header.json", b" " * (20 << 20))], zipfile.ZIP_DEFLATED),
        "encrypted": directory_edited(file_bytes, 8, "<H", 1),
        "holds 'header.json', '/etc/passwd'": zipped([members[0], ("/etc/passwd", b"root")]),
        "'header.json', '00001.npy'": zipped([members[0], *members[2:]]),
        "appended": file_bytes[:-2] + struct.pack("<H", 3) + b"hey",
        "not of the sizes": zipped(members[:-1]),
        "overlaps": directory_edited(file_bytes, 42, "<I", 0),
        "bytes, and it has": directory_edited(sized, 24, "<I", 1 << 31),
    }
    for message, data in cases.items():
        with little_memory(8 << 20):
            refused(path, data, message)
    with monkeypatch.context() as patch:
        patch.setattr(container, "_MAX_DIRECTORY", 100)
        refused(path, file_bytes, "more arrays than a model can have")
    monkeypatch.setattr(container, "MAX_HEADER", 100)
    refused(path, file_bytes, "header has .* bytes, more than 100")
    with pytest.raises(ValueError, match=r"too large for a file.*joblib\.dump"):
        write(path, "thing", 1)


ENTRY = {"name": "x", "dtype": "<f8", "shape": [1], "order": "C", "nbytes": 8}
TABLES = [[{**ENTRY, **changes}] for changes in HOSTILE["entries"]]


@pytest.mark.parametrize(
    "table", [*TABLES, [ENTRY, ENTRY], [], [{}], [None], {}, None, "arrays"], ids=str
)
def test_a_table_of_arrays_that_lies_is_refused_before_anything_is_allocated(tmp_path, table):
    data = seal({**HEADER, "arrays": table}, [npy(np.zeros(1))])
    with little_memory():
        refused(tmp_path / "m.polyfid", data, read=read)


def test_pickled_arrays_are_never_read(tmp_path):
    path = tmp_path / "m.polyfid"
    write(path, "thing", np.ones(1))
    _, arrays = split(path.read_bytes())
    path.write_bytes(seal({**HEADER, "arrays": [ENTRY]}, arrays))
    assert read(path)[1] == np.ones(1)  # so that the entry is a good one otherwise
    objects = npy(np.array([Bomb()]))
    text = {"dtype": "|S1", "shape": [len(objects) - 128], "nbytes": len(objects) - 128}
    for changes in ({"dtype": "|O"}, {}, text):
        table = [{**ENTRY, **changes}]
        refused(path, seal({**HEADER, "arrays": table}, [objects]), read=read)
    assert "WENT_OFF" not in os.environ


def test_bytes_that_are_not_values_of_their_type_are_refused(tmp_path):
    path = tmp_path / "m.polyfid"
    for array, content in [(np.array([True]), b"\x02"), (np.array(["a"]), b"\x00\x00\x11\x00")]:
        write(path, "thing", array)
        header, (stored,) = split(path.read_bytes())
        data = seal(header, [stored[: -len(content)] + content])
        refused(path, data, "has bytes that are no", read=read)


@pytest.mark.parametrize(
    "text",
    [*HOSTILE["headers"], "[" * 100_000, '{"a":' * 100_000, "1" * 5000],
    ids=lambda text: text[:20],
)
def test_headers_that_are_none_are_refused(tmp_path, text):
    refused(tmp_path / "m.polyfid", seal(text.encode("latin-1")))


@pytest.mark.parametrize("changed", [{"schema": True}, {"schema": 0}, {"kind": 5}, {"state": None}])
def test_headers_with_other_contents_are_refused(tmp_path, changed):
    header = {**HEADER, "arrays": [], **changed}
    if header["state"] is None:
        del header["state"]
    refused(tmp_path / "m.polyfid", seal(header), "lacks what every header has", read=inspect)


DEEP = reduce(lambda tree, _: [tree], range(3 * MAX_DEPTH), 1)


@pytest.mark.parametrize("tree", [*HOSTILE["trees"], DEEP], ids=lambda tree: str(tree)[:80])
def test_trees_of_no_meaning_are_refused(tmp_path, tree):
    path = tmp_path / "m.polyfid"
    write(path, "thing", np.zeros(3))
    header, arrays = split(path.read_bytes())
    data = seal({**header, "state": tree}, arrays)
    refused(path, data, "does not describe a model", read=read)


def test_a_small_file_cannot_make_many_large_matrices(tmp_path):
    path = tmp_path / "m.polyfid"
    n = 1000
    write(path, "thing", np.zeros(n * (n + 1) // 2))
    header, arrays = split(path.read_bytes())
    factor = {"$class": ["Cholesky", {"size": n, "packed": {"$array": 0}}]}
    data = seal({**header, "state": [factor] * 500}, arrays)  # 4 GB
    with little_memory(300 << 20):
        refused(path, data, "again and again", read=read)


FIT = "mixtures 0 members 0 fit"
POSTERIOR = f"{FIT} posterior"


def content(tree):
    """The fields of an instance or the items of a tuple; anything else as it is."""
    if isinstance(tree, dict) and "$class" in tree:
        return tree["$class"][1]
    return tree["$tuple"] if isinstance(tree, dict) and "$tuple" in tree else tree


def at(tree, path):
    """The place in a state that words and numbers lead to."""
    for key in path.split():
        tree = content(tree)
        tree = tree[int(key) if isinstance(tree, list) else key]
    return tree


MISFITS = {
    "info n_features": [3],
    "info classes": [{"$items": [[3], [1, 2, 3]]}],
    "info levels": [{"$tuple": ["crowd", "expert", "more"]}, {"$tuple": ["same", "same"]}],
    "mixtures": [lambda state: {"$tuple": content(at(state, "mixtures")) * 2}],
    "parameters": [lambda state: {**at(state, "parameters"), "colour": "green"}],
    "info notes": [{"$tuple": [5]}],
    "info counts": [lambda state: at(state, f"{POSTERIOR} points level")],
    f"{FIT} scheme": ["magic"],
    f"{FIT} optimum climbs": [{"$tuple": []}],
    f"{POSTERIOR} alpha": [lambda state: at(state, f"{POSTERIOR} factor packed")],
    f"{POSTERIOR} factor size": [1],
    f"{POSTERIOR} prior kernels 0 right columns": [{"$tuple": [10**12]}],
    f"{POSTERIOR} prior kernels": [
        lambda state: {"$tuple": content(at(state, f"{POSTERIOR} prior kernels")) * 501}
    ],
}


@pytest.mark.parametrize(("path", "values"), MISFITS.items(), ids=list(MISFITS))
def test_parts_that_do_not_belong_together_are_refused(tmp_path, file_bytes, path, values):
    for value in values:
        header, arrays = split(file_bytes)
        state = header["state"]
        new = value(state) if callable(value) else value
        *way, last = path.split()
        content(at(state, " ".join(way)))[last] = new
        if last == "kernels":
            prior = content(at(state, f"{POSTERIOR} prior"))
            prior["rho"] = {"$tuple": [1.0] * (len(new["$tuple"]) - 1)}
        refused(tmp_path / "m.polyfid", seal(header, arrays), "does not describe a model")
