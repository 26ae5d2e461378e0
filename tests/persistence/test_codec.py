"""Values and registered classes in a file and back."""

import math
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved_models import seal, split
from sklearn.gaussian_process import kernels as sk

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Kernel
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.model_files import ModelFileError, read, register, write
from polyfid.model_files.registry import fits, take_apart

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from(
        [
            np.float64(0.1),
            np.float32(0.1),
            np.float64("nan"),
            np.float32("-inf"),
            np.int8(-3),
            np.uint64(2**64 - 1),
            np.bool_(True),
            np.str_("x\x00y"),
            np.str_(""),
            np.bytes_(b"\xff"),
            np.datetime64("2024-01-01"),
            np.timedelta64(3, "s"),
        ]
    )
)
ARRAYS = st.sampled_from(
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(3, dtype=">i4"),
        np.array(5.0),
        np.empty((0, 3)),
        np.array([], dtype="U"),
        np.array(["a", "💡 long"]),
        np.array([b"\x00\xff"]),
        np.array([True, False]),
        np.array([1.5], dtype=np.float16),
        np.array(["2024-01-01", "NaT"], dtype="M8[ns]"),
        np.array([[None, "x"], [1, 2.5]], dtype=object),
    ]
)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.text(max_size=4) | st.integers() | st.just("$array"), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def same_value(a, b):
    """As `same`; byte order and strides of arrays apart."""
    if isinstance(a, dict):
        assert list(a) == list(b)
        same_value(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same_value(x, y)
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape
        assert a.dtype.kind == b.dtype.kind
        assert b.dtype.isnative
        same_value(a.ravel().tolist(), b.ravel().tolist())
    else:
        assert type(a) is type(b)
        if isinstance(a, np.generic):
            assert a.dtype == b.dtype
        assert repr(a) == repr(b)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=VALUES)
def test_any_value_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.polyfid"
    write(path, "thing", value)
    kind, again = read(path)
    assert kind == "thing"
    same_value(value, again)


def test_the_order_of_arrays_in_memory_is_kept(tmp_path):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    write(tmp_path / "x.polyfid", "thing", [x, x.T])
    _, (a, b) = read(tmp_path / "x.polyfid")
    assert a.flags.f_contiguous
    assert not a.flags.c_contiguous
    assert b.flags.c_contiguous
    assert np.array_equal(a, x)


def concrete(base):
    """The classes below one, of the library, that can have instances."""
    for cls in base.__subclasses__():
        own = cls.__module__.startswith("polyfid.")
        if own and not cls.__abstractmethods__ and not cls.__name__.startswith("_"):
            yield cls
        yield from concrete(cls)


@pytest.mark.parametrize("base", [Kernel, FeatureMap, Likelihood, Prior])
def test_no_part_of_a_model_is_forgotten_on_the_list(base):
    from polyfid.model_files.registry import _BY_CLASS, _HOMES, _place

    found = {cls for cls in concrete(base) if _place(cls) not in _HOMES}
    assert found
    assert found <= set(_BY_CLASS), "register the new class in polyfid/persistence/known.py"


def test_kernels_of_scikit_learn_are_imported_where_a_file_has_one(tmp_path):
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    for name, kernel in (("native", RBF()), ("theirs", sk.RBF(1.0, "fixed") ** 2)):
        model = MultiFidelityClassifier(kernel, optimizer=None).fit(X, X[:, 0] > 0.0)
        model.save(tmp_path / name)
    code = (
        "import sys, polyfid\n"
        "polyfid.load('native')\n"
        "assert 'sklearn.gaussian_process' not in sys.modules\n"
        "model = polyfid.load('theirs')\n"
        "print(model.kernel, model.predict([[0.5]]))\n"
        "model.save('again')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "RBF(length_scale=1) ** 2 [ True]\n"
    assert (tmp_path / "again").read_bytes() == (tmp_path / "theirs").read_bytes()


@register
@dataclass(frozen=True)
class Spam:
    eggs: int
    ham: tuple[str, ...] = ("default",)
    more: "dict[str, float] | None" = None


def test_registered_classes_come_back(tmp_path):
    path = tmp_path / "spam.polyfid"
    spam = Spam(3, ("a", "b"), {"x": math.nan})
    write(path, "thing", {"spam": spam})
    _, state = read(path)
    assert repr(state["spam"]) == repr(spam)


def test_a_field_that_came_later_takes_its_default_and_others_are_refused(tmp_path):
    path = tmp_path / "spam.polyfid"
    write(path, "thing", Spam(3))
    header, rest = split(path.read_bytes())
    del header["state"]["fields"]["ham"]
    path.write_bytes(seal(header, rest))
    assert read(path)[1] == Spam(3)
    header["state"]["fields"]["colour"] = 1
    path.write_bytes(seal(header, rest))
    with pytest.raises(ModelFileError, match="Spam has no field 'colour'"):
        read(path)
    header["state"]["fields"] = {"ham": {"$tuple": []}}
    path.write_bytes(seal(header, rest))
    with pytest.raises(ModelFileError, match="Spam lacks its field 'eggs'"):
        read(path)


@pytest.mark.parametrize("eggs", ["3", 3.5, None, True, [3]])
def test_fields_of_another_type_are_refused_on_the_way_in_and_out(eggs, tmp_path):
    path = tmp_path / "spam.polyfid"
    with pytest.raises(TypeError, match=r"Spam\.eggs"):
        write(path, "thing", Spam(eggs))
    write(path, "thing", Spam(3))
    header, rest = split(path.read_bytes())
    header["state"]["fields"]["eggs"] = eggs
    path.write_bytes(seal(header, rest))
    with pytest.raises(ModelFileError, match=r"Spam\.eggs"):
        read(path)


def test_register_takes_frozen_dataclasses_under_names_of_their_own():
    @dataclass
    class Loose:
        x: int

    @dataclass(frozen=True)
    class Points:
        x: int

    with pytest.raises(TypeError, match="frozen dataclass"):
        register(Loose)
    with pytest.raises(TypeError, match="frozen dataclass"):
        register(int)
    with pytest.raises(ValueError, match="'Points' is taken"):
        register(Points)
    assert take_apart(Points(1)) is None
    assert register(Spam) is Spam  # again, as when a module is reloaded


@pytest.mark.parametrize(
    ("value", "hint", "good"),
    [
        (1, float, True),
        (np.float32(1), float, True),
        (True, float, False),
        (True, bool, True),
        (1, bool, False),
        (None, None, True),
        (0, None, False),
        ((1, "a"), tuple[int, str], True),
        ((1, "a", 2), tuple[int, str], False),
        ((), tuple[int, ...], True),
        ([1, "a"], list[int], False),
        ({"a": 1}, dict[str, int], True),
        ({1: 1}, dict[str, int], False),
        (np.zeros(2), np.ndarray, True),
        ([0.0], np.ndarray, False),
        ("a", str | None, True),
        (1, str | None, False),
    ],
)
def test_annotations_are_checked(value, hint, good):
    assert fits(value, hint) is good
