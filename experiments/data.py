"""Loaders of the paper's data sets.

A file is taken from the data directory (``data_home``, else the environment variable
``POLYFID_DATA``), else from earlier downloads, else from its public address (``upstream.csv``).
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

Home = str | os.PathLike[str] | None

#: The PMLB sets in the order of the paper's tables, and the class that counts as positive.
PMLB = {
    "diabetes": 2,
    "german": 1,
    "satimage": 1,
    "mushroom": 1,
    "splice": 0,
    "spambase": 1,
    "hypothyroid": 1,
    "waveform-40": 0,
}
ONE_HOT = frozenset({"splice", "mushroom"})  # their codes have no order

ENDINGS = (".csv.gz", ".csv", ".tsv.gz", ".tsv")

#: Upstream names of files that are called otherwise here.
UPSTREAM_NAMES = {
    "crowd/music_genre_items": "music_genre_gold",
    "crowd/music_genre_answers": "music_genre_mturk",
}

#: Where to get the files that cannot be downloaded automatically.
SOURCES = {
    "music_genre": (
        "; music_genre_gold.csv, music_genre_mturk.csv and music_genre_test.csv are in data/Music "
        "of https://github.com/shahanaibrahimosu/end-to-end-crowdsourcing"
    ),
    "sentiment_polarity": (
        ". The original features are not public: the directory must have an LSA of the sentences"
    ),
}


class DatasetNotFound(FileNotFoundError):  # noqa: N818
    """A file of a data set is neither in the data directory nor at its public address."""


def load_artificial(i: int, *, data_home: Home = None) -> Bunch:
    """One of the paper's 40 artificial sets: 5000 rows of 2, 5, 10 or 20 features in (0, 1).

    ``noisy`` has cheap labels by their nominal share of wrong ones (0.0, 0.1, …, 0.5). From
    github.com/user525/mfgpc (no licence stated). df_16 to df_19 are the same file. df_21 has 98 %
    positive labels, and its noisy labels 0.3, 0.4 and 0.5 are equal (26 % wrong); df_3 and df_26
    have equal noisy labels 0.4 and 0.5. Noisy labels 0.0 are not all right (0.4 % to 5 % wrong).
    """
    table, path = _read(f"artificial/df_{i}", data_home)
    _column(table, path, "target_gold")
    features = [name for name in map(str, table) if name.startswith("feature_")]
    # Upstream lost a letter: taget_noisy.
    noisy = [name for name in map(str, table) if "get_noisy_" in name]
    y = _numbers(table, ["target_gold", *noisy], path).astype(np.intp).T
    noises = [float(name.rpartition("_")[2]) for name in noisy]
    cheap = dict(zip(noises, y[1:], strict=True))
    return Bunch(data=_numbers(table, features, path), target=y[0], noisy=cheap)


def available_artificial(data_home: Home = None) -> list[int]:
    """Numbers of the artificial sets in the data directory; nothing is downloaded."""
    home = _directory(data_home)
    files = [] if home is None else [*home.glob("df_*"), *home.glob("artificial/df_*")]
    matches = (re.fullmatch(r"df_(\d+)\.[ct]sv(\.gz)?", path.name) for path in files)
    return sorted({int(match[1]) for match in matches if match})


def load_pmlb(name: str, *, data_home: Home = None) -> Bunch:
    """One of the paper's eight sets of the Penn Machine Learning Benchmarks, as a binary task.

    Revision d8b0e551 of 2017 (github.com/EpistasisLab/pmlb, MIT licence; data from UCI and OpenML).
    In hypothyroid, continuous columns are codes in the order of strings, and the positive class is
    the majority.
    """
    if name not in PMLB:
        raise ValueError(f"name must be one of {', '.join(PMLB)}; got {name!r}")
    table, path = _read(f"pmlb/{name}", data_home)
    target = _column(table, path, "target")
    X = _numbers(table, [column for column in map(str, table) if column != target], path)
    y = _numbers(table, [target], path)[:, 0]
    if name in ONE_HOT:
        X = np.hstack([x[:, None] == np.unique(x) for x in X.T]).astype(float)
    return Bunch(data=X, target=(y == PMLB[name]).astype(np.intp))


def load_music_genre(*, data_home: Home = None) -> Bunch:
    """700 songs of ten genres, each labelled by a few of 44 crowd workers.

    ``answers`` has ``task`` (row of the song), ``worker`` and ``label``, one entry per answer. From
    Rodrigues, Pereira and Ribeiro, "Gaussian Process Classification and Active Learning with
    Multiple Annotators", 2014; songs of GTZAN.
    """
    return _crowd("music_genre", data_home)


def load_sentiment_polarity(*, data_home: Home = None) -> Bunch:
    """Sentences from film reviews, positive or not, each judged by a few of 203 crowd workers.

    Sentences of Pang and Lee, 2005. The 1200 LSA features are not the original ones: they were
    recomputed from all 10433 sentences (stems, tf-idf, truncated singular value decomposition).
    """
    rows = _crowd("sentiment_polarity", data_home)
    rows.target, rows.answers.label = (y.astype(np.intp) for y in (rows.target, rows.answers.label))
    return rows


def _crowd(name: str, data_home: Home) -> Bunch:
    """Tasks with features and true labels, and the answers of workers to them."""
    items, path = _read(f"crowd/{name}_items", data_home)
    label = _column(items, path, "target", "class")
    ids = items[_column(items, path, "id")].tolist()
    features = [column for column in map(str, items) if column not in ("id", label)]
    given, its_path = _read(f"crowd/{name}_answers", data_home)
    tasks = given[_column(given, its_path, "id")]
    unknown = sorted(set(tasks) - set(ids))
    if unknown:
        raise ValueError(
            f"{its_path} has answers to {unknown[0]!r}, which is not a task of {path}; "
            "get both files from one place"
        )
    answers = Bunch(
        task=tasks.map({task: row for row, task in enumerate(ids)}).to_numpy(np.intp),
        worker=pd.factorize(given[_column(given, its_path, "annotator")])[0],
        label=given[_column(given, its_path, "label", "class")].to_numpy(np.str_),
    )
    target = items[label].to_numpy(np.str_)
    X = _numbers(items, features, path)
    return Bunch(data=X, target=target, id=np.array(ids, dtype=np.str_), answers=answers)


def _read(name: str, data_home: Home) -> tuple[pd.DataFrame, Path]:
    """Find and read a file such as "pmlb/diabetes", compressed or not."""
    path = _find(name, data_home)
    text = dict.fromkeys(("id", "annotator", "label", "class"), str)
    try:
        table = pd.read_csv(path, sep="\t" if ".tsv" in path.suffixes else ",", dtype=text)
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged, get it again: {error}") from None
    if table.isna().to_numpy().any():
        raise ValueError(f"{path} is damaged, get it again: it has lines that are cut short")
    return table, path


def _column(table: pd.DataFrame, path: Path, *names: str) -> str:
    """The first of these columns that the table has."""
    for name in names:
        if name in table:
            return name
    raise ValueError(
        f"{path} has no column {' or '.join(names)}, only {', '.join(table.columns[:5])}…; "
        "its content does not fit its name, get the right file"
    )


def _numbers(table: pd.DataFrame, columns: Sequence[str], path: Path) -> NDArray[np.float64]:
    try:
        return table[columns].to_numpy(dtype=float)
    except ValueError as error:
        raise ValueError(f"{path} is damaged, get it again: {error}") from None


def _find(name: str, data_home: Home) -> Path:
    """The file in the data directory, else in the cache of downloads, else downloaded into it."""
    home = _directory(data_home)
    folder, base = name.split("/")
    if home is not None:
        stems = (base, UPSTREAM_NAMES.get(name, base))
        for place, stem, ending in product((home / folder, home), stems, ENDINGS):
            path = place / (stem + ending)
            if path.is_file():
                return path
    where = "no data directory is given" if home is None else f"it is not in {home}"
    problem = f"{name}.csv.gz was not found: {where}"
    remedy = "Name a directory that has it with --data (data_home) or POLYFID_DATA"
    upstream = _upstream().get(name)
    if upstream is None:
        source = next((SOURCES[s] for s in SOURCES if base.startswith(s)), "")
        raise DatasetNotFound(f"{problem}, and it has no public address. {remedy}{source}")
    url, sha256 = upstream
    import pooch

    cache = Path(pooch.os_cache("polyfid")) / folder
    try:  # pooch checks the hash, also that of a file in the cache
        return Path(pooch.retrieve(url, f"sha256:{sha256}", url.rpartition("/")[2], cache))
    except OSError as error:
        raise DatasetNotFound(
            f"{problem}, and {url} could not be downloaded into {cache}. Try again later, or get "
            f"it in another way. {remedy}. The reason: {error}"
        ) from error


def _directory(data_home: Home) -> Path | None:
    """The data directory, if one is given."""
    given = os.environ.get("POLYFID_DATA") if data_home is None else data_home
    return Path(given).expanduser() if given else None


def _upstream() -> dict[str, tuple[str, str]]:
    """Public address and sha256 of the files that have them."""
    with (Path(__file__).parent / "upstream.csv").open(newline="") as lines:
        return {row["name"]: (row["url"], row["sha256"]) for row in csv.DictReader(lines)}
