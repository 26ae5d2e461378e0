"""The paper's data sets: files in a directory or downloaded, checked and read."""

import gzip

import numpy as np
import pooch
import pytest
from result_rows import DATA, needs_data

from experiments import data
from experiments.data import (
    DatasetNotFound,
    available_artificial,
    load_artificial,
    load_music_genre,
    load_pmlb,
    load_sentiment_polarity,
)

ARTIFICIAL = """\
feature_0,feature_1,target_gold,target_noisy_0.0,target_noisy_0.2
0.25,0.5,1,1,0
0.75,0.125,0,0,0
0.5,0.5,0,1,1
"""
UPSTREAM_ARTIFICIAL = ARTIFICIAL.replace("target_noisy_", "taget_noisy_")
DIABETES = "A1,A2,target\n9.0,140.5,2\n2.0,108.0,1\n4.0,90.0,2\n"
SPLICE = "A0,A1,target\n0,3,0\n2,3,1\n0,1,2\n5,3,0\n"
MUSIC = {
    "items": "id,f0,f1,target\nb.mp3,0.5,-1,jazz\na.mp3,1.5,2,rock\n",
    "answers": "id,annotator,label\na.mp3,0,rock\nb.mp3,1,pop\na.mp3,1,jazz\n",
}
MUSIC_UPSTREAM = {
    "gold": "id,f0,f1,class\nb.mp3,0.5,-1,jazz\na.mp3,1.5,2,rock\n",
    "mturk": "id,annotator,f0,f1,class\n"
    "a.mp3,AX,1.5,2,rock\nb.mp3,AC,0.5,-1,pop\na.mp3,AC,1.5,2,jazz\n",
}
SENTIMENT = {
    "items": "id,lsa0,lsa1,target\n3,0.1,0.2,1\n2,-0.1,0.0,0\n",
    "answers": "id,annotator,label\n2,0,0\n3,0,1\n2,1,1\n",
}


@pytest.fixture(autouse=True)
def no_directory(monkeypatch):
    monkeypatch.delenv("POLYFID_DATA", raising=False)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_all(home, pattern, texts):
    for name, text in texts.items():
        write(home / pattern.format(name), text)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("artificial/df_7.csv.gz", ARTIFICIAL),
        ("artificial/df_7.csv", UPSTREAM_ARTIFICIAL),
        ("df_7.csv", ARTIFICIAL.replace("\n", "\r\n")),
    ],
)
def test_artificial(tmp_path, file, text):
    write(tmp_path / file, text)
    made = load_artificial(7, data_home=tmp_path)
    assert made.data.tolist() == [[0.25, 0.5], [0.75, 0.125], [0.5, 0.5]]
    assert made.target.tolist() == [1, 0, 0]
    noisy = {noise: y.tolist() for noise, y in made.noisy.items()}
    assert noisy == {0.0: [1, 0, 1], 0.2: [0, 0, 1]}


def test_available_artificial(tmp_path):
    assert available_artificial() == available_artificial(tmp_path) == []
    for name in ("artificial/df_10.csv.gz", "artificial/df_2.csv", "df_2.csv", "df_1.txt"):
        write(tmp_path / name, "")
    assert available_artificial(tmp_path) == [2, 10]


def test_pmlb(tmp_path):
    write(tmp_path / "pmlb/diabetes.csv.gz", DIABETES)
    made = load_pmlb("diabetes", data_home=str(tmp_path))
    np.testing.assert_array_equal(made.data, [[9, 140.5], [2, 108], [4, 90]])
    assert made.target.tolist() == [1, 0, 1]


def test_codes_without_order_become_columns(tmp_path):
    write(tmp_path / "splice.csv", SPLICE)
    made = load_pmlb("splice", data_home=tmp_path)
    wanted = ["10001", "01001", "10010", "00101"]
    assert made.data.tolist() == [[float(digit) for digit in line] for line in wanted]
    assert made.target.tolist() == [1, 0, 0, 1]
    with pytest.raises(ValueError, match=r"name must be one of diabetes, .*; got 'iris'"):
        load_pmlb("iris", data_home=tmp_path)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [("crowd/music_genre_{}.csv.gz", MUSIC), ("music_genre_{}.csv", MUSIC_UPSTREAM)],
)
def test_music_genre(tmp_path, pattern, texts):
    write_all(tmp_path, pattern, texts)
    made = load_music_genre(data_home=tmp_path)
    assert made.data.tolist() == [[0.5, -1], [1.5, 2]]
    assert made.id.tolist() == ["b.mp3", "a.mp3"]
    assert made.target.tolist() == ["jazz", "rock"]
    assert made.answers.task.tolist() == [1, 0, 1]
    assert made.answers.worker.tolist() == [0, 1, 1]
    assert made.answers.label.tolist() == ["rock", "pop", "jazz"]


def test_sentiment_polarity(tmp_path):
    write_all(tmp_path, "crowd/sentiment_polarity_{}.csv.gz", SENTIMENT)
    made = load_sentiment_polarity(data_home=tmp_path)
    assert made.data.tolist() == [[0.1, 0.2], [-0.1, 0.0]]
    assert made.target.tolist() == [1, 0]
    assert made.answers.task.tolist() == [1, 0, 1]
    assert made.answers.label.tolist() == [0, 1, 1]
    write(tmp_path / "crowd/sentiment_polarity_answers.csv.gz", "id,annotator,label\n9,0,0\n")
    with pytest.raises(ValueError, match="answers to '9', which is not a task of"):
        load_sentiment_polarity(data_home=tmp_path)


def test_the_argument_overrides_the_environment(tmp_path, monkeypatch):
    write(tmp_path / "here" / "df_0.csv", ARTIFICIAL)
    write(tmp_path / "there" / "df_0.csv", ARTIFICIAL.replace("0.25", "0.375"))
    monkeypatch.setenv("POLYFID_DATA", str(tmp_path / "here"))
    assert load_artificial(0).data[0, 0] == 0.25
    assert load_artificial(0, data_home=tmp_path / "there").data[0, 0] == 0.375


@pytest.mark.parametrize(
    "damaged",
    [
        gzip.compress(ARTIFICIAL.encode())[:-20],
        b"no gzip",
        gzip.compress(ARTIFICIAL.encode()[:-4]),
        gzip.compress(ARTIFICIAL.replace("0.75", "many").encode()),
    ],
    ids=["cut", "no gzip", "last line cut", "no number"],  # gzip writes the time
)
def test_damaged_files_are_named(tmp_path, damaged):
    (tmp_path / "df_0.csv.gz").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"df_0\.csv\.gz is damaged, get it again: "):
        load_artificial(0, data_home=tmp_path)
    write(tmp_path / "diabetes.csv", ARTIFICIAL)
    with pytest.raises(ValueError, match=r"diabetes\.csv has no column target, only feature_0, "):
        load_pmlb("diabetes", data_home=tmp_path)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Addresses that are asked for; there is no network, but DIABETES was downloaded before."""
    urls = []

    def retrieve(url, known_hash, name, folder):
        urls.append(url)
        assert (known_hash[:7], len(known_hash)) == ("sha256:", 71)
        if not (folder / name).is_file():
            raise ConnectionError("no network")
        return str(folder / name)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    write(tmp_path / "cache/polyfid/pmlb/diabetes.tsv.gz", DIABETES.replace(",", "\t"))
    return urls


def test_what_the_directory_lacks_is_downloaded(tmp_path, asked):
    write(tmp_path / "there/diabetes.csv", DIABETES)
    here, there = (load_pmlb("diabetes", data_home=tmp_path / name) for name in ("here", "there"))
    np.testing.assert_array_equal(here.data, there.data)
    assert [url.rpartition("/")[2] for url in asked] == ["diabetes.tsv.gz"]


def test_without_a_network_the_error_names_address_and_remedy(tmp_path, asked):
    with pytest.raises(DatasetNotFound) as caught:
        load_pmlb("german", data_home=tmp_path)
    for words in (
        f"pmlb/german.csv.gz was not found: it is not in {tmp_path}",
        "https://raw.githubusercontent.com/EpistasisLab/pmlb/",
        "--data (data_home) or POLYFID_DATA",
        "no network",
    ):
        assert words in str(caught.value)
    with pytest.raises(DatasetNotFound, match="no data directory is given"):
        load_artificial(0)


@pytest.mark.parametrize(
    ("load", "remedy"),
    [
        (load_music_genre, "music_genre_gold.csv.* are in data/Music of https://github.com/"),
        (load_sentiment_polarity, "original features are not public"),
        (lambda: load_artificial(99), "POLYFID_DATA"),
    ],
)
def test_files_without_an_address(asked, load, remedy):
    with pytest.raises(DatasetNotFound, match=f"no public address.*{remedy}"):
        load()
    assert asked == []


def test_public_addresses():
    upstream = data._upstream()
    names = {f"artificial/df_{i}" for i in range(40)} | {f"pmlb/{name}" for name in data.PMLB}
    assert set(upstream) == names
    for name, (url, sha256) in upstream.items():
        assert url.startswith("https://raw.githubusercontent.com/")
        assert url.rpartition("/")[2].partition(".")[0] == name.partition("/")[2]
        assert len(bytes.fromhex(sha256)) == 32


@needs_data
def test_the_sets_themselves():
    for i in available_artificial(DATA):
        made = load_artificial(i, data_home=DATA)
        assert made.data.shape == (5000, (2, 5, 10, 20)[i // 10])
        assert 0 < made.data.min() < made.data.max() < 1
        assert sorted(made.noisy) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
        assert np.mean(made.noisy[0.2] != made.target) == pytest.approx(0.2, abs=0.0011)
    sets = {name: load_pmlb(name, data_home=DATA) for name in data.PMLB}
    assert {name: (*rows.data.shape, rows.target.sum()) for name, rows in sets.items()} == {
        "diabetes": (768, 8, 268),
        "german": (1000, 20, 700),
        "waveform-40": (5000, 40, 1692),
        "satimage": (6435, 36, 1533),
        "splice": (3188, 287, 764),
        "spambase": (4601, 57, 1813),
        "hypothyroid": (3163, 25, 3012),
        "mushroom": (8124, 117, 3916),
    }
    for load, shape, answers, workers, correct in (
        (load_music_genre, (700, 124), 2945, 44, 0.560),
        (load_sentiment_polarity, (4999, 1200), 27746, 203, 0.790),
    ):
        made = load(data_home=DATA)
        given = made.answers
        assert made.data.shape == shape
        assert (len(given.task), len(np.unique(given.worker))) == (answers, workers)
        assert np.mean(given.label == made.target[given.task]) == pytest.approx(correct, abs=1e-3)
