"""What `diagnose` says of a table."""

import json

import pandas as pd

from polyfid.tables import Roles, diagnose, read_labelled


def make(**changes):
    frame = pd.DataFrame(
        {
            "id": list("abcdefgh"),
            "x": [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0],
            "c": list("rgrgrgrg"),
            "label": ["yes", "no"] * 4,
            "fidelity": ["crowd"] * 4 + ["gold"] * 4,
        }
    )
    return read_labelled([frame.assign(**changes)], Roles())


def test_counts_features_and_shared_points():
    found = diagnose(make(label=["yes", "no", "yes", "no", "yes", "yes", "yes", "no"]))
    assert found.problems == ()
    assert "No problems found." in str(found)
    assert (found.levels, found.classes) == (("crowd", "gold"), ("no", "yes"))
    assert found.counts == ((2, 2), (1, 3))
    number, category = found.features
    assert list(vars(number).values()) == ["x", "number", 0, 4, 1.0, 4.0]
    assert list(vars(category).values()) == ["c", "category", 0, 2, None, None]
    assert (found.shared[0].points, found.shared[0].differ) == (4, 1)
    assert any("disagree on 1 of them (25%)" in note for note in found.notes)


def test_all_problems_are_listed_with_their_places():
    found = diagnose(make(x=[1.0, None] * 4, c=["r", None] * 4))
    assert [p.partition(":")[0] for p in found.problems] == [
        "table 1, row 2, column 'x'",
        "table 1, row 2, column 'c'",
    ]
    assert "Problems:" in str(found)
    assert diagnose(make(x=[1.0, None] * 4), missing="median").problems == ()


def test_one_class_is_a_problem_and_one_level_a_note():
    found = diagnose(make(label="yes", fidelity="gold"))
    assert "all labels are 'yes'" in found.problems[0]
    assert any("one level" in note for note in found.notes)


def test_odd_things_are_noted():
    found = diagnose(make(x=1.0, c="r", id="a", worker="w"))
    text = "\n".join(found.notes)
    assert "one value only, which tell nothing: 'x', 'c'" in text
    assert "column left out: 'worker'" in text
    assert "points have different labels within one level" in text
    assert "ids come more than once within a level, first 'a' in table 1, row 2" in text
    assert found.duplicates == 4


def test_a_large_top_level_is_suspected():
    found = diagnose(make(fidelity=["crowd"] + ["gold"] * 7))
    assert any("other way round" in note for note in found.notes)
    named = make(fidelity=["crowd"] * 5 + ["gold"] * 3)
    assert not any("other way round" in note for note in diagnose(named).notes)


def test_infinite_numbers_do_not_spoil_the_json():
    found = diagnose(make(x=[1.0, float("inf")] * 4))
    assert "not finite" in found.problems[0]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["counts"] == [[2, 2], [2, 2]]
