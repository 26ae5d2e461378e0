"""Files that are no models, or lie, are refused before they do harm."""

import os
import pickle
import tracemalloc

import numpy as np
import pytest
from saved_models import PRELUDE, refused, seal, split

from polyfid import load
from polyfid.kernels import RBF
from polyfid.model_files import ModelFileError, inspect, read, write
from polyfid.model_files.codec import MAX_DEPTH
from polyfid.tables import Roles


class Bomb:
    def __reduce__(self):
        return exec, ("import os; os.environ['WENT_OFF'] = 'yes'",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 5000,
        b"x1,x2,label\n1,2,yes\n" * 100,
        pickle.dumps(Bomb()),
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        b"PK\x03\x04" + b"\x00" * 100,
        b"\x89polyfi",
    ],
    ids=["empty", "zeros", "csv", "pickle", "npy", "zip", "almost"],
)
def test_foreign_files_are_refused(tmp_path, data):
    refused(tmp_path / "m.polyfid", data, "is not a polyfid model")
    with pytest.raises(ModelFileError):
        inspect(tmp_path / "m.polyfid")
    assert "WENT_OFF" not in os.environ


def test_a_file_cut_anywhere_is_called_truncated(tmp_path, file_bytes):
    length = PRELUDE.unpack(file_bytes[: PRELUDE.size])[1]
    cuts = [8, 20, PRELUDE.size - 1, PRELUDE.size, PRELUDE.size + length // 2]
    cuts += [PRELUDE.size + length, len(file_bytes) // 2, len(file_bytes) - 1]
    for cut in cuts:
        refused(tmp_path / "m.polyfid", file_bytes[:cut], "truncated")
    refused(tmp_path / "m.polyfid", file_bytes + b"\x00", "1 bytes that belong to no model")


def test_a_bit_that_flips_anywhere_is_noticed(tmp_path, file_bytes):
    for place in [0, 9, 17, 60, 700, len(file_bytes) // 2, len(file_bytes) - 1]:
        data = bytearray(file_bytes)
        data[place] ^= 1
        refused(tmp_path / "m.polyfid", bytes(data))
    refused(tmp_path / "m.polyfid", bytes(data), "altered since it was saved")


def test_a_later_schema_says_what_to_do(tmp_path, file_bytes):
    header, rest = split(file_bytes)
    header |= {"schema": 2, "created_by": "polyfid 9.0", "state": {"$new": 1}}
    message = refused(tmp_path / "m.polyfid", seal(header, rest), "update polyfid")
    assert "polyfid 9.0 with schema 2" in message


def test_another_kind_says_what_to_do(tmp_path, file_bytes):
    header, rest = split(file_bytes)
    data = seal({**header, "kind": "dragon"}, rest)
    refused(tmp_path / "m.polyfid", data, "holds a 'dragon'.*update polyfid")


def test_a_state_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "m.polyfid"
    for state in (None, [], {"parameters": {}}, Roles(), RBF()):
        write(path, "classifier", state)
        with pytest.raises(ModelFileError):
            load(path)


TERABYTE = 1 << 40


def entry(**changes):
    given = {"name": "x", "dtype": "<f8", "shape": [1], "offset": 0, "nbytes": 8}
    return {**given, **changes}


@pytest.mark.parametrize(
    "table",
    [
        [entry(shape=[TERABYTE], nbytes=8 * TERABYTE)],
        [entry(shape=[TERABYTE])],
        [entry(shape=[1 << 40, 1 << 40], nbytes=8)],
        [entry(shape=[-1], nbytes=-8)],
        [entry(shape=[-1, -1])],
        [entry(shape=[1.0])],
        [entry(shape=[True])],
        [entry(shape=1)],
        [entry(shape=[1] * 100)],
        [entry(shape=[0, 1 << 61, 1 << 61], nbytes=0), entry()],
        [entry(dtype="<U0", shape=[TERABYTE], nbytes=0), entry()],
        [entry(dtype="|S0", shape=[TERABYTE], nbytes=0), entry()],
        [entry(dtype="|V0", shape=[TERABYTE], nbytes=0), entry()],
        [entry(dtype="|O")],
        [entry(dtype="O")],
        [entry(dtype=">f8")],
        [entry(dtype="<c16", nbytes=16)],
        [entry(dtype="f8,f8", nbytes=16)],
        [entry(dtype=["<f8"])],
        [entry(dtype="<U99999999999", nbytes=4)],
        [entry(offset=8)],
        [entry(offset=-8)],
        [entry(), entry()],
        [entry(nbytes=8.0)],
        [entry(nbytes="8")],
        [entry(order="K")],
        [entry(order=["F"])],
        [{}],
        [None],
        {},
        None,
        "arrays",
    ],
)
def test_a_table_of_arrays_that_lies_is_refused_before_anything_is_allocated(tmp_path, table):
    header = {"format": "polyfid model", "schema": 1, "kind": "classifier", "state": {"$array": 0}}
    data = seal({**header, "arrays": table}, bytes(8))
    tracemalloc.start()
    try:
        refused(tmp_path / "m.polyfid", data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [TERABYTE, 2**64 - 1, (64 << 20) + 1, 64 << 20])
def test_a_header_that_declares_too_much_is_refused_unread(tmp_path, file_bytes, length):
    data = PRELUDE.pack(b"\x89polyfid", length, bytes(32)) + file_bytes[PRELUDE.size :]
    tracemalloc.start()
    try:
        refused(tmp_path / "m.polyfid", data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"NaN",
        b"\xff\xfe",
        b'"' + b"x" * 100,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
        b'{"format": "polyfid model", "schema": NaN}',
        b'{"format": "polyfid model", "schema": true, "kind": "x", "arrays": [], "state": 1}',
        b'{"format": "polyfid model", "schema": 0, "kind": "x", "arrays": [], "state": 1}',
        b'{"format": "polyfid model", "schema": 1, "kind": 5, "arrays": [], "state": 1}',
        b'{"format": "polyfid model", "schema": 1, "kind": "x", "arrays": []}',
    ],
)
def test_headers_that_are_none_are_refused(tmp_path, text):
    refused(tmp_path / "m.polyfid", seal(text, b""))


@pytest.mark.parametrize(
    "tree",
    [
        {"$class": "os.system", "fields": {"command": "true"}},
        {"$class": "eval", "fields": {}},
        {"$class": "builtins.eval", "fields": {}},
        {"$class": ["RBF"], "fields": {}},
        {"$class": "RBF", "fields": []},
        {"$class": "RBF", "fields": {"__class__": 1}},
        {"$class": "RBF", "fields": {"length_scale": -1.0}},
        {"$class": "RBF", "fields": {"length_scale": "1"}},
        {"$class": "RBF", "fields": {}, "extra": 1},
        {"$class": "RBF"},
        {"$class": "Cholesky", "fields": {"size": 1 << 30, "packed": {"$array": 0}}},
        {"$class": "Cholesky", "fields": {"size": -1, "packed": {"$array": 0}}},
        {"$class": "Cholesky", "fields": {}},
        {"$class": "Indefinite", "fields": {"values": {"$array": 0}, "vectors": {"$array": 0}}},
        {"$class": "Indefinite", "fields": {"values": 1, "vectors": 2}},
        {"$class": "sklearn.PairwiseKernel", "fields": {"metric": 3}},
        {"$class": "sklearn.RBF", "fields": {"colour": 3}},
        {"$class": "SklearnKernel", "fields": {"kernel": "x"}},
        {"$class": "Mixture", "fields": {"members": [1]}},
        {"$array": 1},
        {"$array": -1},
        {"$array": True},
        {"$array": "0"},
        {"$array": 0, "$tuple": []},
        {"$tuple": 3},
        {"$tuple": {"a": 1}},
        {"$dict": [[1, 2, 3]]},
        {"$dict": [[[1], 2]]},
        {"$dict": 5},
        {"$float": "1e5"},
        {"$float": 1},
        {"$float": []},
        {"$bytes": "💡"},
        {"$bytes": 1},
        {"$scalar": "|O", "value": 1},
        {"$scalar": "<f8", "value": [1]},
        {"$scalar": "<f8", "value": "x"},
        {"$scalar": "|i1", "value": 300},
        {"$scalar": "<i8", "value": 2**70},
        {"$scalar": "<M8[D]", "value": 2**70},
        {"$items": [1], "shape": [2]},
        {"$items": [1], "shape": [-1, -1]},
        {"$items": {"a": 1}, "shape": [1]},
        {"$items": [1], "shape": [1], "of": "code"},
        {"$import": "os"},
        {"$tuple": [{"$tuple": [{"$unknown": 1}]}]},
    ],
)
def test_trees_of_no_meaning_are_refused(tmp_path, tree):
    path = tmp_path / "m.polyfid"
    write(path, "thing", np.zeros(3))
    header, rest = split(path.read_bytes())
    path.write_bytes(seal({**header, "state": tree}, rest))
    with pytest.raises(ModelFileError, match="does not describe a model"):
        read(path)


def test_trees_too_deep_are_refused(tmp_path):
    path = tmp_path / "m.polyfid"
    write(path, "thing", 1)
    header, rest = split(path.read_bytes())
    for depth in (3 * MAX_DEPTH, 400):
        tree = 1
        for _ in range(depth):
            tree = [tree]
        path.write_bytes(seal({**header, "state": tree}, rest))
        with pytest.raises(ModelFileError):
            read(path)


def test_a_small_file_cannot_make_many_large_matrices(tmp_path):
    path = tmp_path / "m.polyfid"
    n = 1000
    write(path, "thing", np.zeros(n * (n + 1) // 2))
    header, rest = split(path.read_bytes())
    factor = {"$class": "Cholesky", "fields": {"size": n, "packed": {"$array": 0}}}
    path.write_bytes(seal({**header, "state": [factor] * 500}, rest))  # 4 GB
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="again and again"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("dtype", "content"),
    [("|b1", b"\x02"), ("<U1", b"\xff\xff\xff\xff"), ("<U1", b"\x00\x00\x11\x00")],
)
def test_bytes_that_are_no_value_of_their_type_are_refused(tmp_path, dtype, content):
    header = {"format": "polyfid model", "schema": 1, "kind": "thing", "state": {"$array": 0}}
    table = [entry(dtype=dtype, nbytes=len(content))]
    path = tmp_path / "m.polyfid"
    path.write_bytes(seal({**header, "arrays": table}, content))
    with pytest.raises(ModelFileError, match="array of"):
        read(path)
