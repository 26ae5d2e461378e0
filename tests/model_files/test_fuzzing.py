"""Damaged and forged files give a working model or the documented error."""

import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved_models import seal, split

from polyfid import MultiFidelityClassifier, load
from polyfid.model_files import ModelFileError, inspect

FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def load_or_refuse(path):
    """The model of a file or None; anything but ModelFileError fails the test."""
    try:
        inspect(path)
        return load(path)
    except ModelFileError:
        return None


@FUZZ
@given(data=st.data())
def test_damaged_files_are_refused_or_no_other_model(tmp_path_factory, file_bytes, data):
    path = tmp_path_factory.getbasetemp() / "damaged.polyfid"
    last = len(file_bytes) - 1
    place = st.integers(0, last) | st.integers(0, 2000) | st.integers(last - 2000, last)
    damaged = bytearray(file_bytes)
    for _ in range(data.draw(st.integers(1, 3))):
        a, b, c, d = (data.draw(place) for _ in range(4))
        b = data.draw(st.sampled_from([a, a + 1, max(a, b), last + 1]))
        copied = file_bytes[min(c, d) : max(c, d)]
        damaged[a:b] = data.draw(st.binary(max_size=20) | st.sampled_from([copied, bytes(b - a)]))
    path.write_bytes(damaged)
    model = load_or_refuse(path)
    if model is None:
        assert bytes(damaged) != file_bytes
    else:  # what changed is nothing but, for instance, a date in the zip
        model.save(path)
        assert path.read_bytes() == file_bytes


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "RBF", "fixed", "nan", "<f8", "laplace", "ep", "crowd", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$tuple", "$array", "$class", "$scalar", "$items", "$dict", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def places(tree, collected):
    """All places of a tree: containers and keys."""
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        collected.append((tree, key))
        if isinstance(value, dict | list) and value:
            places(value, collected)
    return collected


def forge(data, original):
    """A file that differs from another one in a few places, and has its checksums right."""
    header, arrays = split(original)
    part = data.draw(st.sampled_from(["state", "state", "state", "arrays", "header", "bytes"]))
    for _ in range(data.draw(st.integers(1, 3))):
        if part == "bytes":
            index = data.draw(st.integers(0, len(arrays) - 1))
            array = bytearray(arrays[index])
            array[data.draw(st.integers(0, len(array) - 1))] = data.draw(st.integers(0, 255))
            arrays[index] = bytes(array)
            continue
        tree = header if part == "header" else header.get(part)
        every = places(tree, []) if isinstance(tree, dict | list) else []
        if not every:
            break
        (tree, key), (other, place) = (data.draw(st.sampled_from(every)) for _ in range(2))
        what = data.draw(st.sampled_from(["new", "drop", "swap"]))
        if what == "drop":
            del tree[key]
        else:
            copied = json.loads(json.dumps(other[place]))
            tree[key] = data.draw(JSON) if what == "new" else copied
    return seal(header, arrays)


@settings(FUZZ, max_examples=200)
@given(data=st.data())
def test_forged_files_load_a_working_model_or_are_refused(
    tmp_path_factory, file_bytes, table_bytes, data
):
    path = tmp_path_factory.getbasetemp() / "forged.polyfid"
    path.write_bytes(forge(data, data.draw(st.sampled_from([file_bytes, table_bytes]))))
    model = load_or_refuse(path)
    if isinstance(model, MultiFidelityClassifier):
        X = np.zeros((3, model.n_features_in_))
        with np.errstate(all="ignore"):
            assert model.predict_proba(X).shape == (3, len(model.classes_))
