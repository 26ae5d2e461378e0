"""What `diagnose` says of a table."""

import json

import pandas as pd

from polyfid.tables import Roles, diagnose, read_labelled


def make(levels=("crowd", "gold"), **changes):
    frame = pd.DataFrame(
        {
            "id": list("abcdefgh"),
            "x": [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0],
            "c": list("rgrgrgrg"),
            "label": ["yes", "no"] * 4,
            "fidelity": ["crowd"] * 4 + ["gold"] * 4,
        }
    )
    return read_labelled([frame.assign(**changes)], Roles(levels=levels))


def test_counts_features_and_shared_points():
    diagnosis = diagnose(make(label=["yes", "no", "yes", "no", "yes", "yes", "yes", "no"]))
    assert diagnosis.problems == ()
    assert "No problems found." in str(diagnosis)
    assert "Most trusted: gold" in str(diagnosis).splitlines()
    assert diagnosis.to_dict()["trusted_level"] == "gold"
    assert (diagnosis.levels, diagnosis.classes) == (("crowd", "gold"), ("no", "yes"))
    assert diagnosis.counts == ((2, 2), (1, 3))
    number, category = diagnosis.features
    assert list(vars(number).values()) == ["x", "number", 0, 4, 1.0, 4.0]
    assert list(vars(category).values()) == ["c", "category", 0, 2, None, None]
    assert (diagnosis.shared[0].points, diagnosis.shared[0].differ) == (4, 1)
    assert any("disagree on 1 of them (25%)" in note for note in diagnosis.notes)


def test_all_problems_are_listed_with_their_places():
    diagnosis = diagnose(make(x=[1.0, None] * 4, c=["r", None] * 4))
    assert [p.partition(":")[0] for p in diagnosis.problems] == [
        "table 1, row 2, column 'x'",
        "table 1, row 2, column 'c'",
    ]
    assert "Problems:" in str(diagnosis)
    assert diagnose(make(x=[1.0, None] * 4), missing="median").problems == ()


def test_odd_things_are_noted():
    diagnosis = diagnose(make(x=1.0, c="r", id="a", worker="w", unnamed_5=1))
    text = "\n".join(diagnosis.notes)
    assert "one value only, which tell nothing: 'x', 'c'" in text
    assert "column 'worker' says who gave each label, and is no feature" in text
    assert "column left out: 'unnamed_5'" in text
    assert "points have different labels within one level" in text
    assert "ids come more than once within a level, first 'a' in table 1, row 2" in text
    assert diagnosis.duplicates == 4


def test_one_class_is_a_problem_and_levels_that_are_odd_are_noted():
    diagnosis = diagnose(make(None, label="yes", fidelity="gold"))
    assert "all labels are 'yes'" in diagnosis.problems[0]
    assert any("one level" in note for note in diagnosis.notes)
    for n_low, odd in ((1, True), (5, False)):
        notes = diagnose(make(fidelity=["crowd"] * n_low + ["gold"] * (8 - n_low))).notes
        assert any("other way round" in note for note in notes) == odd


def test_infinite_numbers_do_not_spoil_the_json():
    diagnosis = diagnose(make(x=[1.0, float("inf")] * 4))
    assert "not finite" in diagnosis.problems[0]
    assert json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))["counts"] == [
        [2, 2],
        [2, 2],
    ]
