"""``polyfid check`` and ``convert``, and the ways to give tables; crowd tables have their own."""

import pandas as pd
import pytest


def test_every_problem_is_reported_with_its_place(polyfid, folder):
    (folder / "bad.csv").write_text("x,label,fidelity,weight\n1,a,crowd,1\n2,,gold,-3\n3,b,,1\n")
    said = polyfid("check bad.csv", code=1).stderr
    for place in ("row 3, column 'label'", "row 4, column 'fidelity'", "row 3, column 'weight'"):
        assert f"bad.csv, {place}" in said
    assert polyfid("check bad.csv -q", code=1).stderr == said
    assert len(polyfid.json("check bad.csv", code=1)["problems"]) == 3


def test_missing_values_are_a_problem_unless_an_option_says_what_to_do(polyfid, folder):
    (folder / "gap.csv").write_text("x,label,fidelity\n1,a,low\n,b,low\n3,a,top\n4,b,top\n")
    for call in ("check gap.csv --levels low,top -q", "evaluate gap.csv --levels low,top"):
        assert "row 3, column 'x'" in polyfid(call, code=1).stderr
    polyfid("check gap.csv --missing median --levels low,top")


def test_formats_of_text_levels_and_standard_input(polyfid, folder):
    (folder / "tab.txt").write_text((folder / "tidy.csv").read_text().replace(",", "\t"))
    found = polyfid.json(
        "check tab.txt --delimiter tab --decimal . --encoding utf8 --levels crowd,expert"
    )
    assert found["features"][0]["kind"] == "number"
    found = polyfid.json("check - --levels crowd,expert", input=(folder / "tidy.csv").read_bytes())
    assert found["levels"] == ["crowd", "expert"]
    (folder / "a=b.csv").write_bytes((folder / "crowd.csv").read_bytes())
    levels = ("--level", "p=0.7, rough=a=b.csv", "--level", "p=1=expert.csv")
    found = polyfid.json("check", *levels, "--levels", '"p=0.7, rough",p=1')
    assert found["levels"] == ["p=0.7, rough", "p=1"]


def test_many_classes_stay_readable(polyfid, folder):
    rows = [f"{i},class{i % 100:03d},{level}" for level in ("low", "top") for i in range(200)]
    (folder / "many.csv").write_text("\n".join(["x,label,fidelity", *rows]))
    said = polyfid("check many.csv --levels low,top").stdout.splitlines()
    table = said[: said.index("")]
    assert len(table) == 1 + 1 + 100 + 1
    assert max(map(len, table)) <= 80


def test_level_files_to_a_tidy_table_and_back(polyfid, folder):
    said = polyfid("convert --level rough=crowd.csv --level fine=expert.csv -o all.csv").stdout
    assert "--levels 'rough,fine'" in said  # by name, fine would come first
    table = pd.read_csv("all.csv")
    assert table["fidelity"].value_counts().to_dict() == {"rough": 40, "fine": 20}
    made = polyfid.json("convert all.csv --levels rough,fine --to levels -o part.csv")
    assert made["written"] == ["part-rough.csv", "part-fine.csv"]
    pd.testing.assert_frame_equal(pd.read_csv("part-fine.csv"), pd.read_csv("expert.csv"))
    levels = ("--level", "a/b=crowd.csv", "--level", "a b=expert.csv")  # no names of files
    made = polyfid.json("convert --to levels -o t.csv", *levels)
    assert made["written"] == ["t-a_b.csv", "t-a_b_.csv"]
    assert len(pd.read_csv("t-a_b.csv")) == 40


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz", "t.tsv", "-"])
def test_formats_of_files_and_pipes(polyfid, folder, name):
    made = polyfid(f"convert tidy.csv --to table -o {name}")
    polyfid(f"convert {name} --to table -o back.csv", input=made.stdout)
    pd.testing.assert_frame_equal(pd.read_csv("back.csv"), pd.read_csv("tidy.csv"))
    assert made.stderr.startswith("Written") == (name == "-")
