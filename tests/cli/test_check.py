"""``polyfid check``."""

import pytest


def test_what_was_understood(polyfid, folder):
    said = polyfid("check", "tidy.csv").stdout
    for words in ("crowd", "expert", "40", "20", "heat", "number", "No problems found"):
        assert words in said
    found = polyfid.json("check", "tidy.csv")
    assert found["levels"] == ["crowd", "expert"]
    assert [sum(row) for row in found["counts"]] == [40, 20]
    assert [f["name"] for f in found["features"]] == ["heat", "flow"]
    assert found["problems"] == []


def test_one_file_a_level(polyfid, folder):
    found = polyfid.json("check", "--level", "zebra=crowd.csv", "--level", "ant=expert.csv")
    assert found["levels"] == ["zebra", "ant"]


def test_disagreement_and_duplicates(polyfid, folder):
    (folder / "t.csv").write_text(
        "x,label,fidelity\n1,a,crowd\n1,b,gold\n2,a,crowd\n2,a,gold\n2,a,gold\n"
    )
    said = polyfid("check", "t.csv").stdout
    assert "2 points in common, and disagree on 1" in said
    assert "1 row repeats another one" in said


def test_every_problem_is_told_with_its_place(polyfid, folder):
    (folder / "bad.csv").write_text("x,label,fidelity,weight\n1,a,crowd,1\n2,,gold,-3\n3,b,,1\n")
    said = polyfid("check", "bad.csv", code=1).stderr
    assert "bad.csv, row 3, column 'label'" in said
    assert "bad.csv, row 4, column 'fidelity'" in said
    assert "bad.csv, row 3, column 'weight'" in said
    assert polyfid("check", "bad.csv", "-q", code=1).stderr == said
    assert len(polyfid.json("check", "bad.csv", code=1)["problems"]) == 3


def test_missing_values_are_a_problem_unless_there_is_a_policy(polyfid, folder):
    (folder / "gap.csv").write_text("x,label,fidelity\n1,a,low\n,b,low\n3,a,top\n4,b,top\n")
    assert "row 3, column 'x'" in polyfid("check", "gap.csv", code=1).stdout
    assert "row 3, column 'x'" in polyfid("check", "gap.csv", "-q", code=1).stderr
    polyfid("check", "gap.csv", "--missing", "median")


def test_a_wrong_column_gets_the_nearest_name(polyfid, folder):
    said = polyfid("check", "tidy.csv", "--target", "lable", code=1).stderr
    assert "did you mean 'label'?" in said


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "in one way"),
        (["tidy.csv", "--level", "a=crowd.csv"], "in one way"),
        (["tidy.csv", "--items", "a.csv"], "in one way"),
        (["nowhere.csv"], "nowhere.csv: No such file"),
        (["."], "Is a directory"),
        (["--level", "crowd.csv"], "NAME=FILE"),
        (["--level", "a=crowd.csv", "--level", "a=expert.csv"], "twice"),
        (["--level", "a=-", "--level", "b=-"], "once only"),
        (["--level", "a=crowd.csv", "--levels", "b"], "--levels names b"),
        (["tidy.csv", "--target", "fidelity"], "both column 'fidelity'"),
        (["tidy.csv", "--features", "heat,heat"], "distinct"),
        (["tidy.csv", "--encoding", "klingon"], "klingon"),
        (["tidy.csv", "--delimiter", ";;"], "one character"),
        (["tidy.csv", "--decimal", "x"], "--decimal"),
        (["tidy.csv", "--missing", "perhaps"], "--missing"),
        (["tidy.csv", "--nothing"], "--nothing"),
        (["--items", "crowd.csv"], "--answers"),
        (["a.json", "b.csv"], "only file"),
    ],
)
def test_problems_with_the_call(polyfid, folder, args, words):
    result = polyfid("check", *args, code=2)
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


def test_text_formats(polyfid, folder):
    lines = (folder / "tidy.csv").read_text().replace(".", "%").replace(",", ";")
    (folder / "comma.csv").write_bytes(b"\xef\xbb\xbf" + lines.replace("%", ",").encode())
    assert polyfid.json("check", "comma.csv")["features"][0]["kind"] == "number"
    (folder / "tab.txt").write_text((folder / "tidy.csv").read_text().replace(",", "\t"))
    polyfid("check", "tab.txt", "--delimiter", "tab", "--decimal", ".", "--encoding", "utf8")


def test_standard_input(polyfid, folder):
    found = polyfid.json("check", "-", input=(folder / "tidy.csv").read_bytes())
    assert found["levels"] == ["crowd", "expert"]


def test_names_with_commas_and_equals_signs(polyfid, folder):
    (folder / "a=b.csv").write_bytes((folder / "crowd.csv").read_bytes())
    found = polyfid.json(
        "check",
        *("--level", "p=0.7, rough=a=b.csv", "--level", "p=1=expert.csv"),
        *("--levels", '"p=0.7, rough",p=1'),
    )
    assert found["levels"] == ["p=0.7, rough", "p=1"]


def test_many_classes_stay_readable(polyfid, folder):
    rows = [f"{i},class{i % 100:03d},{level}" for level in ("low", "top") for i in range(200)]
    (folder / "many.csv").write_text("\n".join(["x,label,fidelity", *rows]))
    said = polyfid("check", "many.csv").stdout.splitlines()
    table = said[: said.index("")]
    assert len(table) == 1 + 1 + 100 + 1
    assert max(map(len, table)) <= 80
