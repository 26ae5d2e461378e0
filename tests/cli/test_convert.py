"""``polyfid convert`` between tables; Label Studio is tested with crowd tables."""

import io

import pandas as pd
import pytest


def test_level_files_to_a_tidy_table_and_back(polyfid, folder):
    said = polyfid("convert --level rough=crowd.csv --level fine=expert.csv -o all.csv").stdout
    assert "--levels 'rough,fine'" in said  # by name, fine would come first
    table = pd.read_csv("all.csv")
    assert table["fidelity"].value_counts().to_dict() == {"rough": 40, "fine": 20}
    made = polyfid.json("convert all.csv --levels rough,fine --to levels -o part.csv")
    assert made["written"] == ["part-rough.csv", "part-fine.csv"]
    pd.testing.assert_frame_equal(pd.read_csv("part-fine.csv"), pd.read_csv("expert.csv"))


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz", "t.tsv"])
def test_formats_of_files(polyfid, folder, name):
    polyfid(f"convert tidy.csv --to table -o {name}")
    polyfid(f"convert {name} --to table -o back.csv")
    pd.testing.assert_frame_equal(pd.read_csv("back.csv"), pd.read_csv("tidy.csv"))


def test_through_pipes(polyfid, folder):
    text = (folder / "tidy.csv").read_bytes()
    result = polyfid("convert - --to table -o -", input=text)
    read = pd.read_csv(io.StringIO(result.stdout))
    pd.testing.assert_frame_equal(read, pd.read_csv("tidy.csv"))
    assert result.stderr.startswith("Written")
    assert polyfid("convert - -o - -q", input=text).stderr == ""


def test_levels_whose_names_are_no_file_names(polyfid, folder):
    levels = ("--level", "a/b=crowd.csv", "--level", "a b=expert.csv")
    made = polyfid.json("convert --to levels -o t.csv", *levels)
    assert made["written"] == ["t-a_b.csv", "t-a_b_.csv"]
    assert len(pd.read_csv("t-a_b.csv")) == 40


def test_cells_that_a_spreadsheet_would_run(polyfid, folder):
    (folder / "t.csv").write_text("id,x,label,fidelity\n=1+1,-2,a,low\n@b,3,b,low\n")
    assert "'=1+1,-2,a" in polyfid("convert t.csv -o - -q").stdout
