"""Labelled rows of several levels: columns found, mistakes named."""

import pandas as pd
import pytest

from polyfid.tables import Roles, TableError, read_labelled, read_table

TIDY = "id,x,colour,label,fidelity,weight\n01,1.5,red,yes,gold,2\n02,2.5,blue,no,crowd,1\n"
LEVELS = Roles(levels=["crowd", "gold"])


def test_a_tidy_table(write):
    table = read_labelled([write(TIDY)], LEVELS)
    assert table.features.columns.tolist() == ["x", "colour"]
    assert table.label.tolist() == ["yes", "no"]
    assert table.fidelity.tolist() == ["gold", "crowd"]
    assert table.levels == ("crowd", "gold")
    assert table.ids.tolist() == ["01", "02"]
    assert table.weight.tolist() == [2.0, 1.0]
    assert list(table.places) == ["t.csv, row 2", "t.csv, row 3"]
    assert (table.roles.id, table.roles.weight) == ("id", "weight")
    assert len(table) == 2


def test_rows_keep_their_numbers_when_some_are_left_out_before(write):
    one, other = (read_table(write("x,label\n1,a\n\n2,b\n3,a\n", n)) for n in ("a.csv", "b.csv"))
    table = read_labelled([], level_files={"low": one[one["x"] > 1], "top": other[::-1]})
    rows = ["a.csv, row 4", "a.csv, row 5", "b.csv, row 5", "b.csv, row 4", "b.csv, row 2"]
    assert list(table.places) == rows


def test_one_table_per_level_in_the_order_given(write):
    files = {"sim": write("x,label\n1,0\n2,1\n", "a.csv"), "exp": write("label,x\n1,3\n", "b.csv")}
    table = read_labelled([], level_files=files)
    assert table.levels == ("sim", "exp")
    assert table.features["x"].tolist() == [1, 2, 3]
    assert table.label.tolist() == [0, 1, 1]
    assert table.places[2] == "b.csv, row 2"
    assert table.counts().to_numpy().tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("fidelity", "levels", "expected"),
    [
        ([10, 9, 9], None, ("9", "10")),
        ([1.0, 2.0, 1.0], None, ("1", "2")),
        (["a", "a", "a"], None, ("a",)),
        (["10 ", "9", "9"], None, ("9", "10")),
        (["b", "a", "a"], ["b", "a"], ("b", "a")),
        (["b", "a", "a"], ["b", "a", "c"], ("b", "a", "c")),
        (pd.Categorical(["b", "a", "a"], ["b", "a"], ordered=True), None, ("b", "a")),
        (["crowd ", "gold", " crowd"], ["crowd", "gold"], ("crowd", "gold")),
    ],
)
def test_order_of_levels(fidelity, levels, expected):
    frame = pd.DataFrame({"x": [1, 2, 3], "label": [0, 1, 0], "fidelity": fidelity})
    table = read_labelled([frame], Roles(levels=levels))
    assert table.levels == expected
    assert set(table.fidelity) <= set(expected)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("0 1 1", [0, 1, 1]),
        ("0.0 1.0 1", [0, 1, 1]),
        ("-1 1 1", [-1, 1, 1]),
        ("0 1 unsure", ["0", "1", "unsure"]),
        ("01 02 02", ["01", "02", "02"]),
        ("NA no NA", ["NA", "no", "NA"]),
        ("true false true", ["true", "false", "true"]),
        ("0.5 1.5 0.5", ["0.5", "1.5", "0.5"]),
    ],
)
def test_labels_are_whole_numbers_or_text(write, labels, expected):
    rows = "".join(f"{k},{label},a\n" for k, label in enumerate(labels.split()))
    assert read_labelled([write(f"x,label,fidelity\n{rows}")]).label.tolist() == expected


def test_marks_of_audit_rows(write):
    marked = "x,label,fidelity,audit\n1,a,gold,1\n2,b,gold,\n3,b,crowd,0\n4,b,gold,true\n"
    table = read_labelled([write(marked)], LEVELS)
    assert table.audit.tolist() == table.to_frame()["audit"].tolist() == [True, False, False, True]
    assert table.features.columns.tolist() == ["x"]
    assert table.roles.audit == "audit"
    frames = {
        "crowd": pd.DataFrame({"x": [1, 2], "label": ["a", "b"]}),
        "gold": pd.DataFrame({"x": [1, 2], "label": ["a", "b"], "audit": [True, False]}),
    }
    only_some = read_labelled([], level_files=frames)
    assert only_some.audit.tolist() == [False, False, True, False]
    # A column of that name with something else in it is a feature, and so is one that is named.
    text = read_labelled([write(marked.replace("true", "late"))], LEVELS)
    assert (text.audit, text.features.columns.tolist()) == (None, ["x", "audit"])
    named = read_labelled([write(marked)], Roles(levels=["crowd", "gold"], categorical=["audit"]))
    assert (named.audit, named.features.columns.tolist()) == (None, ["x", "audit"])
    other = marked.replace("audit", "random")
    by_name = Roles(levels=["crowd", "gold"], audit="random")
    asked = read_labelled([write(other)], by_name)
    assert asked.audit.tolist() == table.audit.tolist()
    with pytest.raises(TableError, match=r"row 5, column 'random': 'late' is not an audit mark"):
        read_labelled([write(other.replace("true", "late"))], by_name)
    with pytest.raises(TableError, match="'chance' of audit marks"):
        read_labelled([write(marked)], Roles(audit="chance"))


def test_columns_that_are_no_features(write):
    path = write(",x,worker,label,fidelity,\n0,1,ann,a,c,\n1,2,bob,b,c,\n")
    table = read_labelled([path])
    assert table.features.columns.tolist() == ["x"]
    assert table.left_out == ("unnamed_1", "unnamed_6")
    assert table.worker.tolist() == table.to_frame()["worker"].tolist() == ["ann", "bob"]
    assert read_labelled([path], Roles(worker="x", features=["worker"])).worker.tolist() == [
        "1",
        "2",
    ]
    asked = read_labelled([path], Roles(features=["worker", "unnamed_1"]))
    assert asked.features.columns.tolist() == ["worker", "unnamed_1"]
    roles = Roles(features=["weight", "x"], categorical=["x"], levels=["crowd", "gold"])
    asked = read_labelled([write(TIDY)], roles)
    assert asked.features.to_dict("list") == {"weight": [2, 1], "x": ["1.5", "2.5"]}
    assert asked.weight is None


def complaint(files, roles=None, level_files=None, **csv):
    with pytest.raises(TableError) as caught:
        read_labelled(files, roles, level_files, **csv)
    return caught.value


@pytest.mark.parametrize(
    ("content", "roles", "row", "column", "words"),
    [
        (
            "x,Lable,fidelity\n1,a,c\n",
            None,
            None,
            None,
            r"^t.csv: there is no column 'label' of labels; did you mean 'Lable'\? the columns are "
            r"'x', 'Lable', 'fidelity'; name another one as target \(--target\)$",
        ),
        ("x,label\n1,a\n", None, None, None, "'fidelity' of levels of trust.*--level NAME=FILE"),
        ("0.5,1.5,1\n0.6,1.4,0\n", None, None, None, "row 1 looks like data"),
        ("x\n1\n", Roles(id="key", weight="w"), None, None, r"\(and 3 more problems\)"),
        (
            "x,label,fidelity\n1,a,c\n\n2,,c\n3,,c\n4,b,\n",
            None,
            4,
            "label",
            "nor has one after it.*1 more",
        ),
        ("x,label,fidelity\n1,a,c\n\n2,b,\n", None, 4, "fidelity", "the row has no level"),
        (
            "x,label,fidelity\n1,a,crowd\n3,b,glod\n",
            LEVELS,
            3,
            "fidelity",
            "'glod' is not among 'crowd', 'gold'",
        ),
        *(
            (f"x,label,fidelity,weight\n1,a,c,1\n2,b,c,{cell}\n", None, 3, "weight", "weight")
            for cell in ("-1", "many", "", "inf")
        ),
        ("x,label,fidelity\n", None, None, None, "no rows"),
        ("label,fidelity\na,b\n", None, None, None, "no column to learn from"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(write, content, roles, row, column, words):
    error = complaint([write(content)], roles)
    assert (error.path, error.row, error.column) == ("t.csv", row, column)
    with pytest.raises(TableError, match=words):
        raise error


def test_a_level_file_that_says_it_is_of_another_level(write):
    error = complaint([], None, {"crowd": write("x,label,fidelity\n1,a,crowd\n2,b,gold\n")})
    assert (error.row, error.column) == (3, "fidelity")
    assert "'gold'" in str(error)


def test_calls_that_make_no_sense(write):
    for files, level_files in (
        ([], None),
        ([write(TIDY)], {"a": write(TIDY)}),
        (write(TIDY), None),
    ):
        with pytest.raises(ValueError, match="files"):
            read_labelled(files, None, level_files)
    with pytest.raises(ValueError, match="levels and level_files"):
        read_labelled([], Roles(levels=["b"]), {"a": write(TIDY)})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"features": "x"}, "features must be a list of distinct names; got 'x'"),
        ({"features": []}, "at least one name"),
        ({"levels": ["a", "a"]}, "levels must be a list of distinct names"),
        ({"target": "fidelity"}, "fidelity and target are both column 'fidelity'"),
        ({"features": ["label"]}, "column 'label' is the target"),
        ({"features": ["x"], "categorical": ["y"]}, "'y', which is not among features"),
    ],
)
def test_roles_that_make_no_sense(wrong, words):
    with pytest.raises(ValueError, match=words):
        Roles(**wrong)
