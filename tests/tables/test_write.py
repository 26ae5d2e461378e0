"""Tables to files: complete or not at all, and harmless in a spreadsheet."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyfid.tables import read_table, write_table


def frames(n, rows=3):
    for k in range(n):
        yield pd.DataFrame({"k": range(k * rows, (k + 1) * rows), "y": [f"t{k}"] * rows})


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t"])
def test_what_is_written_is_read(tmp_path, name):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, 50),
            "n": rng.integers(-5, 5, 50),
            "t": rng.choice(["a", "b,c", 'd"e', "f\ng", "ä", None], 50),
        }
    )
    frame.loc[3, "x"] = np.nan
    write_table(frame, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame, check_dtype=False)
    write_table((frame.iloc[i : i + 7] for i in range(0, 50, 7)), tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame, check_dtype=False)


def test_formats_follow_the_name(tmp_path):
    for name, mark, bytes_of in (("t.tsv", "\t", bytes), ("t.csv.gz", ",", gzip.decompress)):
        write_table(pd.DataFrame({"a": [1], "b": ["x"]}), tmp_path / name)
        text = f"a{mark}b\n1{mark}x\n".encode()
        assert bytes_of((tmp_path / name).read_bytes()) == text


def test_formulas_are_disarmed_and_numbers_are_not(tmp_path):
    cells = ["=1+1", "+cmd", "-x", "@a", "\ta", "\ra", "-5", "+1.5e3", "a=b", ""]
    frame = pd.DataFrame({"=id": cells, "x": [-1.5] * len(cells)})
    write_table(frame, tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)
    assert back.columns.tolist() == ["'=id", "x"]
    changed = ["'=1+1", "'+cmd", "'-x", "'@a", "'\ta", "'\ra"]
    assert back["'=id"].tolist() == [*changed, "-5", "+1.5e3", "a=b", ""]
    assert set(back["x"]) == {"-1.5"}
    write_table(frame, tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["=id"].tolist() == cells


def test_truth_values_categories_and_mixtures_are_text(tmp_path):
    frame = pd.DataFrame(
        {
            "b": [True, False],
            "c": pd.Categorical(["u", None]),
            "o": [1, "x"],
            "d": pd.to_datetime(["2020-01-02", None]),
        }
    )
    write_table(frame, tmp_path / "t.csv")
    header, first, second = (tmp_path / "t.csv").read_text().splitlines()
    assert (header, first[:19], second) == ("b,c,o,d", "True,u,1,2020-01-02", "False,,x,")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, GeneratorExit])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_nothing_is_left_of_a_table_that_was_not_finished(tmp_path, error, name):
    def interrupted():
        yield from frames(2)
        raise error

    (tmp_path / name).write_text("as it was")
    with pytest.raises(error):
        write_table(interrupted(), tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "as it was"


def test_blocks_of_different_columns_are_refused(tmp_path):
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match="same columns"):
            write_table([pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})], tmp_path / name)
        assert not list(tmp_path.iterdir())


def test_tables_without_rows_keep_their_header(tmp_path):
    write_table(pd.DataFrame({"a": [], "b": []}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\n"
    write_table([], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == ""


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1),
    st.sampled_from([",", ";", "\t", "|", "^"]),
)
def test_any_text_comes_back(tmp_path, cells, delimiter):
    path = tmp_path / "t.csv"
    write_table(pd.DataFrame({"a": cells, "b": 1}), path, delimiter=delimiter)
    back = read_table(path, text=["a"], delimiter=delimiter)["a"].fillna("").tolist()
    assert [b.removeprefix("'") for b in back] == [c.removeprefix("'") for c in cells]
