"""Long names: short enough, and told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyfid.text import abbreviate


@pytest.mark.parametrize("longest", [9, 16, 24])
def test_names_that_differ_in_the_middle_show_where(longest):
    names = [f"mean_temperature_of_reactor_number_{i}_in_degrees_celsius" for i in range(12)]
    short = abbreviate(names, longest)
    assert len(set(short)) == 12
    assert all(f"_{i}_" in text for i, text in enumerate(short))
    assert max(map(len, short)) <= longest


def test_short_names_stay_long_ones_lose_their_middle_and_the_hopeless_are_numbered():
    names = ["a", "b" * 16, "c" * 8 + "d" * 9]
    assert abbreviate(names, 16) == [*names[:2], "c" * 8 + "…" + "d" * 7]
    assert abbreviate(["x" * 30, "x" * 31], 9) == ["…xxxxxxx (1)", "…xxxxxxx (2)"]
    one, other = (
        "a" * 40 + "b" + k + "b" + "a" * 40 for k in ("x" * 30 + "1" + "x" * 30, "x" * 61)
    )
    short = abbreviate([one, other, one], 9)
    assert short[0] == short[2] != short[1]


@given(st.lists(st.text("abc_", max_size=40), max_size=6), st.integers(5, 20))
def test_what_differs_looks_different(names, longest):
    short = abbreviate(names, longest)
    for a, x in zip(names, short, strict=True):
        for b, y in zip(names, short, strict=True):
            assert (a == b) == (x == y)
