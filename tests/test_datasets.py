"""Data sets: files found, fetched, checked and read; samples from the model."""

import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pooch
import pytest

from polyfid.datasets import (
    DatasetNotFound,
    available_artificial,
    cokriging,
    files,
    load_artificial,
    load_music_genre,
    load_pmlb,
    load_sentiment_polarity,
    make_cokriging,
)

ARTIFICIAL = """\
feature_0,feature_1,target_gold,target_noisy_0.0,target_noisy_0.2
0.25,0.5,1,1,0
0.75,0.125,0,0,0
0.5,0.5,0,1,1
"""

DIABETES = "A1,A2,target\n9.0,140.5,2\n2.0,108.0,1\n4.0,90.0,2\n"

SPLICE = "A0,A1,target\n0,3,0\n2,3,1\n0,1,2\n5,3,0\n"

MUSIC = {
    "items": "id,f0,f1,target\nb.mp3,0.5,-1,jazz\na.mp3,1.5,2,rock\n",
    "answers": "id,annotator,label\na.mp3,0,rock\nb.mp3,1,pop\na.mp3,1,jazz\n",
    "test": "id,f0,f1,target\nc.mp3,7,8,pop\n",
}

MUSIC_UPSTREAM = {
    "gold": "id,f0,f1,class\nb.mp3,0.5,-1,jazz\na.mp3,1.5,2,rock\n",
    "mturk": "id,annotator,f0,f1,class\n"
    "a.mp3,AX,1.5,2,rock\nb.mp3,AC,0.5,-1,pop\na.mp3,AC,1.5,2,jazz\n",
    "test": "id,f0,f1,class\nc.mp3,7,8,pop\n",
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
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_all(home, pattern, texts):
    for name, text in texts.items():
        write(home / pattern.format(name), text)


# Files in a directory


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("artificial/df_7.csv.gz", ARTIFICIAL),
        ("artificial/df_7.csv", ARTIFICIAL.replace("target_noisy_", "taget_noisy_")),
        ("df_7.csv", ARTIFICIAL.replace("\n", "\r\n")),
    ],
)
def test_artificial(tmp_path, file, text):
    write(tmp_path / file, text)
    made = load_artificial(7, data_home=tmp_path)
    np.testing.assert_array_equal(made.data, [[0.25, 0.5], [0.75, 0.125], [0.5, 0.5]])
    assert made.target.tolist() == [1, 0, 0]
    assert made.target.dtype.kind == "i"
    assert {noise: y.tolist() for noise, y in made.noisy.items()} == {
        0.0: [1, 0, 1],
        0.2: [0, 0, 1],
    }
    assert made.feature_names == ["feature_0", "feature_1"]
    assert made.name == "df_7"
    assert "Klyuchnikov" in made.DESCR


def test_available_artificial(tmp_path, monkeypatch):
    assert available_artificial() == []
    assert available_artificial(tmp_path) == []
    for name in ("artificial/df_10.csv.gz", "artificial/df_2.csv", "df_2.csv", "df_1.txt"):
        write(tmp_path / name, "")
    assert available_artificial(tmp_path) == [2, 10]
    monkeypatch.setenv("POLYFID_DATA", str(tmp_path))
    assert available_artificial() == [2, 10]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pmlb/diabetes.csv.gz", DIABETES),
        ("pmlb/diabetes.tsv.gz", DIABETES.replace(",", "\t")),
        ("diabetes.tsv.gz", DIABETES.replace(",", "\t")),
    ],
)
def test_pmlb(tmp_path, file, text):
    write(tmp_path / file, text)
    made = load_pmlb("diabetes", data_home=str(tmp_path))
    np.testing.assert_array_equal(made.data, [[9, 140.5], [2, 108], [4, 90]])
    assert made.target.tolist() == [1, 0, 1]
    assert made.feature_names == ["A1", "A2"]
    assert made.name == "diabetes"


def test_pmlb_targets(tmp_path):
    write(tmp_path / "splice.csv", SPLICE)
    targets = {
        t: load_pmlb("splice", t, data_home=tmp_path).target.tolist() for t in ("paper", 2, None)
    }
    assert targets == {"paper": [1, 0, 0, 1], 2: [0, 0, 1, 0], None: [0, 1, 2, 0]}
    with pytest.raises(
        ValueError, match=r"target must be a class of splice, one of \[0, 1, 2\].* 7"
    ):
        load_pmlb("splice", 7, data_home=tmp_path)
    with pytest.raises(ValueError, match=r"name must be one of diabetes, .*; got 'iris'"):
        load_pmlb("iris", data_home=tmp_path)


def test_pmlb_one_hot(tmp_path):
    write(tmp_path / "splice.csv", SPLICE)
    made = load_pmlb("splice", data_home=tmp_path)
    assert made.feature_names == ["A0=0", "A0=2", "A0=5", "A1=1", "A1=3"]
    assert made.data.dtype == float
    assert made.data.tolist() == [
        [1, 0, 0, 0, 1],
        [0, 1, 0, 0, 1],
        [1, 0, 0, 1, 0],
        [0, 0, 1, 0, 1],
    ]
    plain = load_pmlb("splice", one_hot=False, data_home=tmp_path)
    assert plain.data.tolist() == [[0, 3], [2, 3], [0, 1], [5, 3]]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("crowd/music_genre_{}.csv.gz", MUSIC),
        ("crowd/music_genre_{}.csv", MUSIC_UPSTREAM),
        ("music_genre_{}.csv", MUSIC_UPSTREAM),
    ],
)
def test_music_genre(tmp_path, pattern, texts):
    write_all(tmp_path, pattern, texts)
    made = load_music_genre(data_home=tmp_path)
    assert made.data.tolist() == [[0.5, -1], [1.5, 2]]
    assert made.id.tolist() == ["b.mp3", "a.mp3"]
    assert made.target.tolist() == ["jazz", "rock"]
    assert made.target_names.tolist() == ["jazz", "rock"]
    assert made.answers.task.tolist() == [1, 0, 1]
    assert made.answers.worker.tolist() == [0, 1, 1]
    assert made.answers.label.tolist() == ["rock", "pop", "jazz"]
    assert made.test_data.tolist() == [[7, 8]]
    assert made.test_target.tolist() == ["pop"]
    assert made.feature_names == ["f0", "f1"]


def test_sentiment_polarity(tmp_path):
    write_all(tmp_path, "crowd/sentiment_polarity_{}.csv.gz", SENTIMENT)
    made = load_sentiment_polarity(data_home=tmp_path)
    assert made.data.tolist() == [[0.1, 0.2], [-0.1, 0.0]]
    assert made.target.tolist() == [1, 0]
    assert made.answers.task.tolist() == [1, 0, 1]
    assert made.answers.label.tolist() == [0, 1, 1]
    assert "recomputed" in made.DESCR


def test_answers_to_unknown_tasks(tmp_path):
    write_all(tmp_path, "sentiment_polarity_{}.csv", SENTIMENT)
    write(tmp_path / "sentiment_polarity_answers.csv", "id,annotator,label\n9,0,0\n")
    with pytest.raises(ValueError, match="answers to '9', which is no task"):
        load_sentiment_polarity(data_home=tmp_path)


def test_directory_from_the_environment(tmp_path, monkeypatch):
    write(tmp_path / "here" / "df_0.csv", ARTIFICIAL)
    write(tmp_path / "there" / "df_0.csv", ARTIFICIAL.replace("0.25", "0.375"))
    monkeypatch.setenv("POLYFID_DATA", str(tmp_path / "here"))
    assert load_artificial(0).data[0, 0] == 0.25
    assert load_artificial(0, data_home=tmp_path / "there").data[0, 0] == 0.375
    monkeypatch.setenv("POLYFID_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetNotFound, match=r"POLYFID_DATA must be a directory, got '.*nowhere'"):
        load_artificial(0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: data[:20] + b"x" + data[21:],
        lambda data: b"no gzip",
        lambda data: gzip.compress(b""),
        lambda data: gzip.compress(ARTIFICIAL.encode()[:-4]),
        lambda data: gzip.compress(b"\xff\xfe" + ARTIFICIAL.encode()),
        lambda data: gzip.compress(ARTIFICIAL.replace("0.75", "many").encode()),
    ],
)
def test_damaged_files_are_named(tmp_path, damage):
    path = tmp_path / "df_0.csv.gz"
    path.write_bytes(damage(gzip.compress(ARTIFICIAL.encode())))
    with pytest.raises(ValueError, match=r"df_0\.csv\.gz is damaged, get it again: "):
        load_artificial(0, data_home=tmp_path)


def test_wrong_files_are_named(tmp_path):
    write(tmp_path / "diabetes.csv", ARTIFICIAL)
    with pytest.raises(ValueError, match=r"diabetes\.csv has no column target, only feature_0, "):
        load_pmlb("diabetes", data_home=tmp_path)


def test_a_directory_needs_no_extras(tmp_path):
    write_all(tmp_path, "crowd/music_genre_{}.csv.gz", MUSIC)
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pooch', 'pandas', 'requests']));"
        f"from polyfid.datasets import *; load_music_genre(data_home={str(tmp_path)!r});"
        "make_cokriging(n_test=3)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


# Files that are fetched


@pytest.fixture
def public(tmp_path, monkeypatch):
    """Public files by address, without a network; what is asked for is kept in `asked`."""

    class Public(dict):
        def __call__(self, url, output_file, pooch, **_):
            self.asked.append(url)
            if url not in self:
                raise ConnectionError("no network")
            Path(output_file).write_bytes(self[url])

    addresses = Public()
    addresses.asked, addresses.cache = [], tmp_path / "cache"
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: addresses)
    monkeypatch.setattr(pooch, "os_cache", lambda name: addresses.cache / name)
    return addresses


def publish(monkeypatch, public, name, url, data):
    public[url] = data
    entry = {name: (url, hashlib.sha256(data).hexdigest())}
    monkeypatch.setattr(files, "_upstream", lambda: entry)


def test_fetched_once(tmp_path, monkeypatch, public):
    url = "https://example.org/sets/df_3.csv"
    text = ARTIFICIAL.replace("target_noisy_", "taget_noisy_")
    publish(monkeypatch, public, "artificial/df_3", url, text.encode())
    first = load_artificial(3)
    again = load_artificial(3, data_home=tmp_path)  # not in that directory, but in the cache
    np.testing.assert_array_equal(first.data, again.data)
    assert sorted(first.noisy) == [0.0, 0.2]
    assert public.asked == [url]
    assert (public.cache / "polyfid/artificial/df_3.csv").is_file()
    assert available_artificial(tmp_path) == []


def test_a_directory_goes_before_the_address(tmp_path, public):
    write(tmp_path / "df_3.csv", ARTIFICIAL)
    load_artificial(3, data_home=tmp_path)
    assert public.asked == []


def test_other_bytes_are_refused(monkeypatch, public):
    url = "https://example.org/sets/diabetes.tsv.gz"
    publish(monkeypatch, public, "pmlb/diabetes", url, gzip.compress(DIABETES.encode()))
    public[url] = gzip.compress(DIABETES.replace("9.0", "8.0").encode())
    with pytest.raises(ValueError, match=r"hash of downloaded file .* does not match"):
        load_pmlb("diabetes")
    assert not list(public.cache.rglob("diabetes*"))


def test_a_spoilt_cache_is_fetched_again(monkeypatch, public):
    url = "https://example.org/sets/diabetes.tsv.gz"
    publish(monkeypatch, public, "pmlb/diabetes", url, gzip.compress(DIABETES.encode()))
    write(public.cache / "polyfid/pmlb/diabetes.tsv.gz", DIABETES.replace("9.0", "8.0"))
    assert load_pmlb("diabetes").data[0, 0] == 9.0
    assert public.asked == [url]


def test_no_network(tmp_path, public):
    with pytest.raises(DatasetNotFound) as caught:
        load_pmlb("diabetes", data_home=tmp_path)
    assert isinstance(caught.value, FileNotFoundError)
    for part in (
        f"pmlb/diabetes.csv.gz was not found: it is not in {tmp_path}",
        "https://raw.githubusercontent.com/EpistasisLab/pmlb/",
        "data_home or POLYFID_DATA",
        "no network",
    ):
        assert part in str(caught.value)
    with pytest.raises(DatasetNotFound, match="no data directory is named"):
        load_artificial(0)


def test_no_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetNotFound, match=r'pip install "polyfid\[experiments\]"'):
        load_artificial(0)


@pytest.mark.parametrize(
    ("load", "remedy"),
    [
        (load_music_genre, "music_genre_gold.csv.* are in data/Music of https://github.com/"),
        (load_sentiment_polarity, "original features are not public"),
        (lambda: load_artificial(99), "POLYFID_DATA"),
    ],
)
def test_no_address(public, load, remedy):
    with pytest.raises(DatasetNotFound, match=f"no address to fetch it from.*{remedy}"):
        load()
    assert public.asked == []


def test_registry():
    upstream = files._upstream()
    numbers = [f"artificial/df_{i}" for i in range(40)]
    assert set(numbers) < set(upstream)
    assert len(upstream) == 48
    for name, (url, sha256) in upstream.items():
        assert url.startswith("https://raw.githubusercontent.com/")
        assert url.rpartition("/")[2].partition(".")[0] == name.partition("/")[2]
        assert len(bytes.fromhex(sha256)) == 32


# The sets themselves


HOME = os.environ.get("POLYFID_DATA", "")


def has(pattern):
    return bool(HOME) and bool(list(Path(HOME).glob(pattern)))


@pytest.mark.skipif(not has("artificial/df_*"), reason="POLYFID_DATA names no artificial sets")
def test_the_artificial_sets():
    numbers = available_artificial(HOME)
    for i in numbers:
        made = load_artificial(i, data_home=HOME)
        assert made.data.shape == (5000, (2, 5, 10, 20)[i // 10])
        assert made.data.min() > 0
        assert made.data.max() < 1
        assert set(np.unique(made.target)) == {0, 1}
        assert sorted(made.noisy) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
        assert np.mean(made.noisy[0.2] != made.target) == pytest.approx(0.2, abs=0.0011)


@pytest.mark.skipif(not has("pmlb/*"), reason="POLYFID_DATA names no PMLB sets")
@pytest.mark.parametrize(
    ("name", "shape", "positives"),
    [
        ("diabetes", (768, 8), 268),
        ("german", (1000, 20), 700),
        ("waveform-40", (5000, 40), 1692),
        ("satimage", (6435, 36), 1533),
        ("splice", (3188, 287), 764),
        ("spambase", (4601, 57), 1813),
        ("hypothyroid", (3163, 25), 3012),
        ("mushroom", (8124, 117), 3916),
    ],
)
def test_the_pmlb_sets(name, shape, positives):
    made = load_pmlb(name, data_home=HOME)
    assert made.data.shape == shape == (len(made.target), len(made.feature_names))
    assert made.target.sum() == positives
    assert np.isfinite(made.data).all()


@pytest.mark.skipif(not has("crowd/music*"), reason="POLYFID_DATA names no music genre set")
def test_the_music_genre_set():
    made = load_music_genre(data_home=HOME)
    assert made.data.shape == (700, 124)
    assert made.test_data.shape == (300, 124)
    assert len(made.target_names) == 10
    assert [id.partition(".")[0] for id in made.id] == made.target.tolist()
    answers = made.answers
    assert (len(answers.task), len(np.unique(answers.worker))) == (2945, 44)
    assert np.mean(answers.label == made.target[answers.task]) == pytest.approx(0.560, abs=5e-4)


@pytest.mark.skipif(not has("crowd/sentiment*"), reason="POLYFID_DATA names no sentiment set")
def test_the_sentiment_polarity_set():
    made = load_sentiment_polarity(data_home=HOME)
    assert made.data.shape == (4999, 1200)
    assert made.target.sum() == 2502
    spread = made.data.std(axis=0)
    assert spread[:5].min() > spread[-5:].max()  # columns by falling singular value
    answers = made.answers
    assert (len(answers.task), answers.label.sum()) == (27746, 14828)
    assert len(np.unique(answers.worker)) == 203
    assert np.mean(answers.label == made.target[answers.task]) == pytest.approx(0.79, abs=5e-3)


# Samples from the model


def test_made_rows():
    made = make_cokriging(30, 10, 3, levels=3, n_test=7, random_state=0)
    assert made.data.shape == (70, 3)
    assert made.fidelity.tolist() == [0] * 30 + [1] * 30 + [2] * 10
    assert made.latent.shape == (70, 3)
    own = made.latent[np.arange(70), made.fidelity]
    np.testing.assert_array_equal(made.target, (own > 0).astype(int))
    assert made.test_data.shape == (7, 3)
    np.testing.assert_array_equal(made.test_target, made.test_latent[:, -1] > 0)
    assert 0 < made.data.min() < made.data.max() < 1
    np.testing.assert_allclose(made.length_scale, 0.12 * 3**0.6)
    np.testing.assert_array_equal(made.scale, [4.0, 4.0, 4.0])
    assert "test_data" not in make_cokriging(30, 10)


def test_made_rows_of_one_level():
    made = make_cokriging(30, 10, levels=1, random_state=0)
    assert made.data.shape == (10, 2)
    assert made.latent.shape == (10, 1)
    assert np.isnan(made.rho)
    assert made.noise == 0.0


def test_made_rows_repeat():
    one, two = (make_cokriging(20, 10, n_test=5, random_state=3) for _ in range(2))
    for key in one:
        np.testing.assert_array_equal(one[key], two[key])
    other = make_cokriging(20, 10, random_state=4)
    assert not np.allclose(one.data, other.data)


def test_rows_do_not_change_the_functions():
    few = make_cokriging(20, 10, n_test=5, random_state=3)
    many = make_cokriging(3 * cokriging.BLOCK, 10, labels="sigmoid", random_state=3)
    assert few.rho == many.rho
    np.testing.assert_array_equal(few.data, many.data[:30])
    np.testing.assert_allclose(few.latent, many.latent[:30], atol=1e-4)


@pytest.mark.parametrize("levels", [2, 3, 4])
@pytest.mark.parametrize("noise", [0.05, 0.2, 0.4])
def test_noise_is_as_wanted(levels, noise):
    made = make_cokriging(8000, 8000, 5, noise=noise, levels=levels, random_state=1)
    first, last = made.latent[:, 0] > 0, made.latent[:, -1] > 0
    assert made.noise == np.mean(first != last)
    assert made.noise == pytest.approx(noise, abs=0.015)
    assert made.rho > 0


def test_no_noise():
    made = make_cokriging(5000, 5000, noise=0.0, random_state=0)
    assert made.noise < 0.01
    assert made.rho == cokriging.MAX_RHO


def test_noise_of_alike_functions():
    # So long a length-scale that the functions hardly change sign: here both are of one sign.
    far = {"length_scale": 20.0, "noise": 0.4, "random_state": 3}
    assert make_cokriging(levels=2, **far).rho < 0
    with pytest.warns(UserWarning, match=r"noise=0\.4 cannot be reached .* only 0\.\d+ at rho = 0"):
        made = make_cokriging(levels=3, **far)
    assert made.rho == 0.0


def test_latent_values_have_the_law_of_a_gaussian_process():
    rng = np.random.RandomState(0)
    x = rng.uniform(size=(6, 3))
    length, scale, n = 0.5, 2.0, 5_000
    distance = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    K = scale * np.exp(-distance / (2 * length**2))
    f = np.array([cokriging._Waves.draw(rng, 3, length, scale)(x) for _ in range(n)])
    np.testing.assert_allclose(f.mean(axis=0), 0, atol=5 * np.sqrt(scale / n))
    # An entry of the covariance of n Gaussian draws has variance (K_ii K_jj + K_ij²) / n.
    error = np.sqrt((np.outer(K.diagonal(), K.diagonal()) + K**2) / n)
    assert np.max(np.abs(f.T @ f / n - K) / error) < 4.5
    # Squared Mahalanobis lengths of Gaussian vectors are χ² with 6 degrees: mean 6, variance 12.
    squared = np.sum(f @ np.linalg.inv(K) * f, axis=1)
    assert squared.mean() == pytest.approx(6, abs=5 * np.sqrt(12 / n))
    assert squared.var() == pytest.approx(12, rel=0.1)


def test_made_sets_have_the_covariance_of_the_model(monkeypatch):
    monkeypatch.setattr(cokriging, "N_ADJUST", 200)  # time, only ρ depends on it
    # Through the public function: f_0 and δ over many draws, at points that differ each time.
    length, products = 0.3, []
    for seed in range(300):
        made = make_cokriging(40, 0, length_scale=length, scale=[2.0, 0.5], random_state=seed)
        g = np.column_stack([made.latent[:, 0], made.latent[:, 1] - made.rho * made.latent[:, 0]])
        i, j = np.triu_indices(40)
        k = np.exp(-np.sum((made.data[i] - made.data[j]) ** 2, axis=1) / (2 * length**2))
        # Projections on k: the covariance is s·k exactly if these are s, 0 and s'.
        products.append([k @ (g[i, a] * g[j, b]) / (k @ k) for a, b in ((0, 0), (0, 1), (1, 1))])
    products = np.array(products)
    error = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) - [2.0, 0.0, 0.5]) < 4 * error)


def test_sigmoid_labels():
    made = make_cokriging(20_000, 20_000, labels="sigmoid", n_test=20_000, random_state=0)
    for f, y in (
        (made.latent[np.arange(40_000), made.fidelity], made.target),
        (made.test_latent[:, -1], made.test_target),
    ):
        p = 1 / (1 + np.exp(-f))
        for low in np.arange(0, 1, 0.2):
            rows = (p >= low) & (p < low + 0.2)
            assert y[rows].mean() == pytest.approx(p[rows].mean(), abs=2.5 / np.sqrt(rows.sum()))


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"n_low": -1}, "n_low == -1, must be >= 0"),
        ({"n_high": 1.5}, "n_high must be an instance of int"),
        ({"n_features": 0}, "n_features == 0, must be >= 1"),
        ({"levels": 0}, "levels == 0, must be >= 1"),
        ({"noise": 0.6}, r"noise == 0\.6, must be <= 0\.5"),
        ({"labels": "probit"}, "labels must be"),
        ({"length_scale": 0.0}, "length_scale must be a positive number or one .* 2 levels"),
        ({"scale": [1.0, 2.0, 3.0]}, "scale must be a positive number or one .* 2 levels"),
        ({"scale": np.nan}, "scale must be"),
    ],
)
def test_wrong_arguments(wrong, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make_cokriging(**wrong)
