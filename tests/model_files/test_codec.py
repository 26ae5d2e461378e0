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
from polyfid.model_files import inspect, read, register, write
from polyfid.model_files.codec import CLASSES, KINDS, find, name_of

DTYPES = hnp.scalar_dtypes().filter(lambda d: d.kind != "c").map(lambda d: d.newbyteorder("="))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
NUMPY_SCALARS = DTYPES.flatmap(hnp.from_dtype) | st.just(np.str_("")) | st.just(np.float32("-inf"))
ARRAYS = st.builds(
    lambda array, change: change(array),
    hnp.arrays(DTYPES, hnp.array_shapes(min_side=0, max_side=3)),
    st.sampled_from([np.asarray, np.asfortranarray, np.transpose, lambda a: a[..., ::2]]),
)
OBJECTS = st.lists(SCALARS).map(lambda items: np.array([*items, None], dtype=object))
KEYS = st.text(max_size=4) | st.integers() | st.just("$array")
VALUES = st.recursive(
    SCALARS | NUMPY_SCALARS | ARRAYS | OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
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


def test_arrays_keep_their_order_and_what_they_share(tmp_path):
    path = tmp_path / "x.polyfid"
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    write(path, "thing", [x, x.T, {"again": x}, np.arange(3, dtype=">i4")])
    assert len(inspect(path)["arrays"]) == 3
    _, (a, b, c, integers) = read(path)
    same([a, b], [x, x.T])
    assert a.flags.f_contiguous
    assert not a.flags.c_contiguous
    assert b.flags.c_contiguous
    assert c["again"] is a
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


def test_registered_classes_come_back_and_their_fields_are_checked(tmp_path):
    path = tmp_path / "spam.polyfid"
    spam = Spam(3, ("a", "b"), {"x": math.nan})
    write(path, "thing", {"spam": spam})
    assert repr(read(path)[1]["spam"]) == repr(spam)
    header, _ = split(path.read_bytes())

    def with_fields(**fields):
        return seal({**header, "state": {"$class": ["Spam", fields]}})

    path.write_bytes(with_fields(eggs=3))
    assert read(path)[1] == Spam(3)  # a field that came later takes its default
    refused(path, with_fields(eggs=3, colour=1), "unexpected keyword argument 'colour'", read)
    refused(path, with_fields(ham={"$tuple": []}), "missing 1 required.*'eggs'", read)
    for eggs in ("3", 3.5, None, True, [3]):
        refused(path, with_fields(eggs=eggs), r"Spam\.eggs must be int, not ", read)
    for wrong in ({"eggs": "3"}, {"ham": ("a", 1)}, {"more": {1: 1.0}}, {"more": {"a": True}}):
        with pytest.raises(TypeError, match=rf"Spam\.{next(iter(wrong))} must be .*, not "):
            write(path, "thing", Spam(**{"eggs": 3, **wrong}))


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
