"""Tables from files: what is understood, and what errors say."""

import gzip
import io
import os
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyfid.tables import RowPlaces, TableError, iter_blocks, read_table


def complaint(path, **csv):
    """The error of a file, which is the same whole and in blocks."""
    with pytest.raises(TableError) as caught:
        read_table(path, **csv)
    with pytest.raises(TableError) as again:
        list(iter_blocks(path, **csv))
    assert str(again.value) == str(caught.value)
    return caught.value


def test_importing_tables_loads_no_model():
    code = (
        "import sys; from polyfid.tables import read_labelled, read_table, iter_blocks, Roles; "
        "print(*{m.split('.')[1] for m in sys.modules if m.startswith('polyfid.')}); "
        "print('sklearn' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parts, sklearn = run.stdout.splitlines()
    assert {*parts.split()} == {"_version", "arrays", "tables", "text", "values"}
    assert sklearn == "False"


def test_numbers_text_and_missing_cells(write):
    frame = read_table(write("a,b,c,d\n1,1.5,x,NA\n2,,NA,3\n"))
    assert frame["a"].dtype == np.int64
    assert frame["c"].tolist() == ["x", "NA"]  # text stays what it is
    assert frame[["b", "d"]].fillna(0.0).to_numpy().tolist() == [[1.5, 0.0], [0.0, 3.0]]


@pytest.mark.parametrize(
    "content",
    [
        "x,y\n1.5,a\n2.5,b\n",
        "x;y\n1.5;a\n2.5;b\n",
        "x\ty\n1.5\ta\n2.5\tb\n",
        "x|y\n1.5|a\n2.5|b\n",
        "x;y\n1,5;a\n2,5;b",
        "x\ty\r\n1,5\ta\r\n2,5\tb\r\n",
        "x,y\r1.5,a\r2.5,b\r",
        "\ufeffx,y\n1.5,a\n2.5,b\n",
        '"x",y\n"1.5",a\n" 2.5 ","b"\n',
        "\n\nx,y\n\n1.5,a\n\n\n2.5,b\n\n",
        " x , y\n1.5,a\n2.5,b\n",
        "x,y\n+1.5,a\n25e-1,b\n",
        b"\xff\xfe" + "x,y\n1.5,a\n2.5,b\n".encode("utf-16-le"),
        gzip.compress(b"x,y\n1.5,a\n2.5,b\n", mtime=0),
    ],
)
def test_every_way_to_write_the_same_table(write, content):
    for frame in (read_table(write(content)), pd.concat(iter_blocks(write(content), rows=1))):
        assert frame.to_dict("list") == {"x": [1.5, 2.5], "y": ["a", "b"]}


def test_decimal_commas_and_commas_that_group_digits(write):
    rows = "".join(f"{k};a\n" for k in range(20_000))
    assert read_table(write(f"x;y\n{rows}2,5;b\n"))["x"].iloc[-1] == 2.5  # far down
    frame = read_table(write("x;y\n1,234;0.5\n2,345;1.5\n"))
    assert frame["x"].tolist() == ["1,234", "2,345"]


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["007", "8"], True),
        (["12345678901234567890123", "2"], True),
        (["9007199254740993", ""], True),
        (["9007199254740993", "1"], False),
        (["0", "10"], False),
        (["0.5", "-0.5"], False),
    ],
)
def test_ids_keep_their_digits(write, cells, kept):
    path = write("id,y\n" + "".join(f"{cell},x\n" for cell in cells))
    for frame in (read_table(path), *iter_blocks(path)):
        if kept:
            assert frame["id"].fillna("").tolist() == cells
        else:
            assert frame["id"].dtype.kind in "if"
            assert frame["id"].tolist() == [float(c) if "." in c else int(c) for c in cells]


def test_quoted_cells_may_hold_anything(write):
    frame = read_table(write('a,b\n"x,\ny","say ""hi"""\nz,5" pipe\n'))
    assert frame.to_dict("list") == {"a": ["x,\ny", "z"], "b": ['say "hi"', '5" pipe']}


@pytest.mark.parametrize("content", ["x,y\n", "x,y", "\ufeffx,y\r\n\r\n"])
def test_a_header_without_rows_is_a_table_without_rows(write, content):
    for frame in (read_table(write(content)), *iter_blocks(write(content))):
        assert frame.shape == (0, 2)


def test_ten_thousand_columns(write):
    names = [f"column_{k}" for k in range(10_000)]
    path = write(",".join(names) + "\n" + ",".join(["1.5"] * 10_000) + "\n")
    assert read_table(path).shape == (1, 10_000)
    assert next(iter_blocks(path, {"column_9999": "float64"})).iloc[0, 0] == 1.5


def test_a_header_of_a_million_columns_is_refused(write):
    wide = write(",".join(f"c{k}" for k in range(1_000_000)) + "\n" + "1," * 999_999 + "1\n")
    assert "there are 1,000,000 columns, and a table can have 100,000" in str(complaint(wide))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_is_read_once(tmp_path, monkeypatch):
    """As of a shell's <(zcat rows.csv.gz)."""
    scratch, pipe = tmp_path / "scratch", tmp_path / "pipe"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    os.mkfifo(pipe)
    feeder = threading.Thread(target=pipe.write_text, args=("a,b\n1,2\n",), daemon=True)
    feeder.start()
    assert read_table(pipe).to_dict("list") == {"a": [1], "b": [2]}
    feeder.join(timeout=10)
    assert list(scratch.iterdir()) == []


def test_standard_input(monkeypatch):
    for content in (b"x,y\n1,a\n", gzip.compress(b"x,y\n1,a\n", mtime=0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_table("-")["y"].tolist() == ["a"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n1\n")))
    with pytest.raises(TableError, match=r"^standard input, row 2: "):
        read_table("-")


def test_parquet(tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.5, np.nan], "y": ["a", None, "=b"], "k": [1, 2, 3]})
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), frame)
    blocks = list(iter_blocks(tmp_path / "t.parquet", rows=2))
    assert [len(b) for b in blocks] == [2, 1]
    pd.testing.assert_frame_equal(pd.concat(blocks), frame)
    (only,) = iter_blocks(tmp_path / "t.parquet", {"k": "int64", "absent": "str"})
    assert only.columns.tolist() == ["k"]


def test_data_frames_of_pandas_and_polars():
    given = pd.DataFrame({1: [1, 2], "y": ["a", "b"]})
    frame = read_table(given)
    assert frame.columns.tolist() == ["1", "y"]
    assert given.columns.tolist() == [1, "y"]
    polars = pl.DataFrame({"1": [1, 2], "y": ["a", "b"]})
    for other in (polars, polars.lazy(), polars.to_arrow()):
        assert read_table(other).to_dict("list") == frame.to_dict("list")
    with pytest.raises(TableError, match="both called 'a'"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_rows_have_the_number_of_their_line_even_after_rows_are_chosen(write):
    frame = read_table(write('x,y\n1,"a\nb"\n\n2,c\n3,d\n'))
    assert list(RowPlaces.of(frame)) == ["t.csv, row 2", "t.csv, row 5", "t.csv, row 6"]
    chosen = frame[frame["x"] > 1][["y"]]
    assert RowPlaces.of(chosen)[chosen.index[0]] == "t.csv, row 5"
    assert list(RowPlaces.of(chosen).taken(chosen.index)) == ["t.csv, row 5", "t.csv, row 6"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_are_counted_whichever_way_lines_end(write, end):
    for start in ("", "\n\n"):
        frame = read_table(write(f"{start}x,y\n1,a\n2,b\n".replace("\n", end)))
        assert [int(p.split()[-1]) - len(start) for p in RowPlaces.of(frame)] == [2, 3]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", " , ,\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file(write, content):
    error = complaint(write(content))
    assert error.path == "t.csv"
    assert "empty" in str(error)


@pytest.mark.parametrize(
    ("content", "row", "column", "words"),
    [
        ("a,b,c\n1,2,3\n\n1,2\n", 4, None, "2 cells, the header 3: from 'c' on there is nothing"),
        ("a,b\n1,2\n1,2,hello\n", 3, None, "3 cells.*'hello' is beyond the last column, 'b'"),
        ('a,b\n"x\ny\nz",1\n\n1,2,3\n', 6, None, "3 cells"),
        ("a,b,a\n1,2,3\n", 1, None, "columns 1 and 3 are both called 'a'"),
        (b"id,town\n1,Koeln\n2,K\xf6ln\n", 3, "town", "0xf6 is not UTF-8.*--encoding cp1252"),
        (b"id,town\n" + b"1,Koeln\n" * 30_000 + b"2,K\xf6ln\n", 30_002, "town", "0xf6"),
        ('a,b\n1,2\n3,"4\n5,6\n', 3, "b", "quote"),
        ('a,b\n1,2\n"3,4\n5,6\n', 3, "a", "quote"),
        ('a\n1\n"2\n3\n', 3, "a", "quote"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(write, content, row, column, words):
    error = complaint(write(content))
    assert (error.path, error.row, error.column) == ("t.csv", row, column)
    with pytest.raises(TableError, match=words):
        raise error


def test_a_quote_that_is_not_closed_in_a_column_left_out(write):
    with pytest.raises(TableError, match="row 3, column 'b'"):
        list(iter_blocks(write('a,b\n1,2\n3,"4\n5,6\n'), {"a": "float64"}))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"a,b\n" + b"1,2\n" * 9, mtime=0)[:-9], "damaged"),
        (
            gzip.compress(np.random.RandomState(0).bytes(99_999).hex().encode(), mtime=0)[:50_000],
            "damaged",
        ),
        (b"PAR1nonsense", "Parquet"),
        (b"PK\x03\x04nonsense", "spreadsheet"),
        (bytes(range(256)) * 20, ""),
        (b"\x89PNG\r\n\x1a\n" + bytes(500), "binary"),
    ],
)
def test_files_that_are_no_tables(write, content, words):
    assert words in str(complaint(write(content)))


@pytest.mark.parametrize(
    "wrong",
    [{"delimiter": "ab"}, {"decimal": ";"}, {"encoding": "klingon"}, {"encoding": "hex"}],
)
def test_options_of_text(write, wrong):
    path = write("id,town\n2,Köln\n".encode("cp1252"))
    assert read_table(path, encoding="cp1252")["town"].tolist() == ["Köln"]
    with pytest.raises(ValueError, match=next(iter(wrong))):
        read_table(write("a,b\n1,2\n"), **wrong)


def test_what_is_no_source(tmp_path):
    with pytest.raises(TypeError, match="path"):
        read_table(3)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
def test_blocks_put_together_are_the_table(write, rows):
    path = write("x,y,z\n" + "".join(f"{k},{k},1\n" for k in range(6)) + "6.5,t,\n")
    blocks = list(iter_blocks(path, rows=rows))
    assert [len(b) for b in blocks[:-1]] == [rows] * (len(blocks) - 1)
    text = str(pd.Series(["t"]).dtype)  # pandas 2 and 3 differ
    assert {tuple(map(str, b.dtypes)) for b in blocks} == {("float64", text, "float64")}
    pd.testing.assert_frame_equal(pd.concat(blocks), read_table(path))


def test_types_that_are_given(write):
    path = write("x,y,z\n1,007,q\n2,8,q\n")
    (block,) = iter_blocks(path, {"y": "str", "x": "float64", "w": "str"})
    assert block.to_dict("list") == {"x": [1.0, 2.0], "y": ["007", "8"]}
    with pytest.raises(ValueError, match="types"):
        iter_blocks(path, {"x": "complex"})
    with pytest.raises(ValueError, match="rows"):
        iter_blocks(path, rows=0)


def test_a_cell_that_is_no_number_is_named(write):
    path = write("x,y\n" + "1,2\n" * 50_000 + "1,2..5\n")
    with pytest.raises(TableError, match=r"^t.csv, row 50002, column 'y': '2..5' is not a number$"):
        list(iter_blocks(path, {"y": "float64"}, rows=1000))


def test_a_decimal_comma_that_came_as_a_surprise_is_explained(write):
    path = write("x;y\n" + "1;2\n" * 300_000 + "1;2,5\n")
    with pytest.raises(TableError, match=r"row 300002, column 'y': '2,5' .*\(--decimal ,\)"):
        list(iter_blocks(path, {"y": "float64"}))
    assert list(iter_blocks(path, {"y": "float64"}, decimal=","))[-1]["y"].iloc[-1] == 2.5


SEEDS = [
    b"id,x,label\n1,0.5,good\n2,1.5,bad\n3,,good\n",
    b"x;y\n1,5;a\n2,5;b\n",
    b'a\tb\r\n"x\r\ny"\t1\r\n2\t3\r\n',
    b"\xef\xbb\xbfa,b\n\xc3\xa4,1\n",
    gzip.compress(b"a,b\n1,2\n", mtime=0),
]
PIECES = st.sampled_from(
    [b",", b";", b'"', b'""', b"\n", b"\r", b"\0", b"\xff", b"\xe4", b"1e999", b"nan", b"\t", b"|"]
)
EDITS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5), PIECES | st.binary(max_size=4)))
quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=150, **quiet)
@given(
    st.sampled_from(SEEDS) | st.binary(max_size=200),
    EDITS,
    st.sampled_from(["utf-8", None, "utf-16", "cp1252"]),
)
def test_nothing_but_table_errors_comes_of_mutated_files(tmp_path, content, edits, encoding):
    for place, length, piece in edits:
        content = content[:place] + piece + content[place + length :]
    path = tmp_path / "f.csv"
    path.write_bytes(content)
    shapes = set()
    with suppress(TableError):
        frame = read_table(path, encoding=encoding)
        assert len(RowPlaces.of(frame)) == len(frame)
        shapes.add(frame.shape)
    with suppress(TableError):
        shapes.add(pd.concat(iter_blocks(path, rows=2, encoding=encoding)).shape)
    assert len(shapes) < 2
    with suppress(TableError):
        list(iter_blocks(path, {"a": "float64"}, encoding=encoding))
