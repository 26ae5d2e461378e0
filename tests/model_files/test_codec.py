"""Values and registered classes in a file and back."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from model_makers import same
from saved_models import refused, seal, split

from polyfid.kernels import Kernel
from polyfid.model.features import FeatureMap
from polyfid.model.likelihoods import Likelihood
from polyfid.model.prior import Prior
from polyfid.model_files import read, register, write
from polyfid.model_files.registry import CLASSES, KINDS, find, fits, name_of

DTYPES = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="=")
    | hnp.unsigned_integer_dtypes(endianness="=")
    | hnp.floating_dtypes(sizes=(16, 32, 64), endianness="=")
    | hnp.unicode_string_dtypes(endianness="=")
    | hnp.byte_string_dtypes()
    | hnp.datetime64_dtypes(endianness="=")
    | hnp.timedelta64_dtypes(endianness="=")
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
NUMPY_SCALARS = DTYPES.flatmap(hnp.from_dtype) | st.sampled_from([np.str_(""), np.float32("-inf")])
ARRAYS = st.builds(
    lambda array, change: change(array),
    hnp.arrays(DTYPES, hnp.array_shapes(min_side=0, max_side=3)),
    st.sampled_from([np.asarray, np.asfortranarray, np.transpose, lambda a: a[..., ::2]]),
)
OBJECTS = st.lists(SCALARS).map(lambda items: np.array([*items, None], dtype=object))
VALUES = st.recursive(
    SCALARS | NUMPY_SCALARS | ARRAYS | OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.text(max_size=4) | st.integers() | st.just("$array"), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=VALUES)
def test_any_value_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.polyfid"
    write(path, "thing", value)
    kind, again = read(path)
    assert kind == "thing"
    same(value, again)


def test_the_order_in_memory_is_kept_and_that_of_bytes_becomes_the_machines(tmp_path):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    write(tmp_path / "x.polyfid", "thing", [x, x.T, np.array(5.0), np.arange(3, dtype=">i4")])
    _, (a, b, scalar, integers) = read(tmp_path / "x.polyfid")
    assert a.flags.f_contiguous
    assert not a.flags.c_contiguous
    assert b.flags.c_contiguous
    same([a, b, scalar], [x, x.T, np.array(5.0)])
    same(integers, np.arange(3, dtype=np.int32))


def concrete(base):
    """The classes below one, of the library, that can have instances."""
    for cls in base.__subclasses__():
        own = cls.__module__.startswith("polyfid.")
        if own and not cls.__abstractmethods__ and not cls.__name__.startswith("_"):
            yield cls
        yield from concrete(cls)


@pytest.mark.parametrize("base", [Kernel, FeatureMap, Likelihood, Prior])
def test_no_class_is_forgotten_in_the_table(base):
    names = {cls.__name__: name_of(cls) for cls in concrete(base)}
    assert names
    assert None not in names.values(), f"add a line to CLASSES for what has no name: {names}"


@pytest.mark.parametrize("place", [*CLASSES.values(), *KINDS.values()])
def test_the_table_says_where_classes_are_defined(place):
    cls = find(place)
    assert f"{cls.__module__}:{cls.__qualname__}" == place


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
    header, _ = split(path.read_bytes())

    def with_fields(**fields):
        return seal({**header, "state": {"$class": ["Spam", fields]}})

    path.write_bytes(with_fields(eggs=3))
    assert read(path)[1] == Spam(3)
    refused(path, with_fields(eggs=3, colour=1), "unexpected keyword argument 'colour'", read)
    refused(
        path,
        with_fields(ham={"$tuple": []}),
        "missing 1 required.*'eggs'",
        read,
    )
    for eggs in ("3", 3.5, None, True, [3]):
        refused(path, with_fields(eggs=eggs), r"Spam\.eggs must be", read)
        with pytest.raises(TypeError, match=r"Spam\.eggs must be"):
            write(path, "thing", Spam(eggs))


def test_register_takes_frozen_dataclasses_under_names_of_their_own():
    @dataclass
    class Loose:
        x: int

    @dataclass(frozen=True)
    class RBF:
        x: int

    for cls in (Loose, int):
        with pytest.raises(TypeError, match="frozen dataclass"):
            register(cls)
    with pytest.raises(ValueError, match=r"'RBF' belongs to polyfid.*rename the class"):
        register(RBF)
    assert name_of(RBF) is None
    assert register(Spam) is Spam  # again, as when a module is reloaded


@pytest.mark.parametrize(
    ("value", "hint", "good"),
    [
        (1, float, True),
        (np.float32(1), float, True),
        (True, float, False),
        (True, bool, True),
        (1, bool, False),
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
