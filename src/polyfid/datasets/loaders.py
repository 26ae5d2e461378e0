"""Loaders of the paper's data sets."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from polyfid.datasets.files import ENDINGS, Home, named_directory, read_table

# The class that the paper tells from the rest.
POSITIVE = {
    "diabetes": 2,
    "german": 1,
    "waveform-40": 0,
    "satimage": 1,
    "splice": 0,
    "spambase": 1,
    "hypothyroid": 1,
    "mushroom": 1,
}
CATEGORICAL = frozenset({"splice", "mushroom"})


def load_artificial(i: int, *, data_home: Home = None) -> Bunch:
    """One of the paper's 40 artificial sets: 5000 rows of 2, 5, 10 or 20 features in (0, 1).

    Parameters
    ----------
    i : int
        Number of the set: 0–9 have 2 features, 10–19 have 5, 20–29 have 10, 30–39 have 20.
    data_home : path, optional
        Directory with ``artificial/df_0.csv.gz`` (or ``df_0.csv``) and so on. Default: the
        environment variable ``POLYFID_DATA``.

    Returns
    -------
    Bunch
        ``data`` (5000, d), ``target`` the true labels 0/1, ``noisy`` cheap labels 0/1 by their
        nominal share of wrong ones (0.0, 0.1, …, 0.5), ``feature_names``, ``name``, ``DESCR``.

    Examples
    --------
    >>> from polyfid.datasets import load_artificial
    >>> data = load_artificial(0, data_home="data")  # doctest: +SKIP
    >>> data.data.shape, float((data.noisy[0.2] != data.target).mean())  # doctest: +SKIP
    ((5000, 2), 0.2)
    """
    table = read_table(f"artificial/df_{i}", data_home)
    values = table.numbers(range(len(table.names)))
    labels = values.astype(np.intp)
    features = [k for k, name in enumerate(table.names) if name.startswith("feature_")]
    return Bunch(
        data=values[:, features],
        target=labels[:, table.column("target_gold")],
        noisy={
            float(name.rpartition("_")[2]): labels[:, k]
            for k, name in enumerate(table.names)
            if "get_noisy_" in name  # upstream lost a letter: taget_noisy_0.2
        },
        feature_names=[table.names[k] for k in features],
        name=f"df_{i}",
        DESCR=ARTIFICIAL,
    )


def available_artificial(data_home: Home = None) -> list[int]:
    """Numbers of the artificial sets that a directory has, without fetching any.

    Parameters
    ----------
    data_home : path, optional
        As in `load_artificial`.

    Returns
    -------
    list of int
        In increasing order; empty if no directory is named.

    Examples
    --------
    >>> from polyfid.datasets import available_artificial
    >>> available_artificial("data")  # doctest: +SKIP
    [0, 1, 2, 3, 4]
    """
    home = named_directory(data_home)
    if home is None:
        return []
    endings = "|".join(map(re.escape, ENDINGS))
    files = [*home.glob("df_*"), *home.glob("artificial/df_*")]
    found = (re.fullmatch(rf"df_(\d+)({endings})", path.name) for path in files)
    return sorted({int(match[1]) for match in found if match})


def load_pmlb(
    name: str,
    target: int | str | None = "paper",
    *,
    one_hot: bool | None = None,
    data_home: Home = None,
) -> Bunch:
    """One of the eight sets of the Penn Machine Learning Benchmarks that the paper uses.

    Parameters
    ----------
    name : str
        "diabetes", "german", "waveform-40", "satimage", "splice", "spambase", "hypothyroid" or
        "mushroom".
    target : int, "paper" or None
        The class that becomes 1, all others 0. "paper" is the paper's choice, None keeps the
        classes as they are.
    one_hot : bool, optional
        Whether each column becomes one column for each code that occurs in it. Default: for
        splice and mushroom, whose codes have no order.
    data_home : path, optional
        Directory with ``pmlb/NAME.csv.gz`` (or ``NAME.tsv.gz``). Default: the environment variable
        ``POLYFID_DATA``.

    Returns
    -------
    Bunch
        ``data`` (n, d), ``target`` (n,) int, ``feature_names``, ``name``, ``DESCR``.

    Examples
    --------
    >>> from polyfid.datasets import load_pmlb
    >>> data = load_pmlb("splice", data_home="data")  # doctest: +SKIP
    >>> data.data.shape, int(data.target.sum())  # doctest: +SKIP
    ((3188, 287), 764)
    """
    if name not in POSITIVE:
        raise ValueError(f"name must be one of {', '.join(POSITIVE)}; got {name!r}")
    table = read_table(f"pmlb/{name}", data_home)
    column = table.column("target")
    names = [feature for feature in table.names if feature != "target"]
    values = table.numbers(range(len(table.names)))
    y = values[:, column].astype(np.intp)
    X = np.delete(values, column, axis=1)
    positive = POSITIVE[name] if target == "paper" else target
    if positive is not None:
        if positive not in y:
            raise ValueError(
                f"target must be a class of {name}, one of {np.unique(y).tolist()}, or None for "
                f"all classes; got {target!r}"
            )
        y = (y == positive).astype(np.intp)
    if name in CATEGORICAL if one_hot is None else one_hot:
        codes = [np.unique(x) for x in X.T]
        names = [f"{n}={c:g}" for n, cs in zip(names, codes, strict=True) for c in cs]
        X = np.hstack([x[:, None] == cs for x, cs in zip(X.T, codes, strict=True)]).astype(float)
    return Bunch(data=X, target=y, feature_names=names, name=name, DESCR=PMLB)


def load_music_genre(*, data_home: Home = None) -> Bunch:
    """Songs of ten genres, each labelled by a few of 44 crowd workers.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``crowd/music_genre_items.csv.gz``, ``…_answers.csv.gz`` and
        ``…_test.csv.gz``, or the ``music_genre_gold.csv``, ``…_mturk.csv`` and ``…_test.csv`` they
        come from. Default: the environment variable ``POLYFID_DATA``.

    Returns
    -------
    Bunch
        ``data`` (700, 124), ``target`` the true genre of each song, ``target_names``, ``id`` the
        file name of each song, ``answers`` a Bunch of ``task`` (row of the song), ``worker`` and
        ``label``, one entry an answer; ``test_data`` (300, 124) and ``test_target``, songs without
        answers; ``feature_names``, ``name``, ``DESCR``.

    Examples
    --------
    >>> from polyfid.datasets import load_music_genre
    >>> data = load_music_genre(data_home="data")  # doctest: +SKIP
    >>> data.target[0].item(), data.answers.label[data.answers.task == 0].tolist()  # doctest: +SKIP
    ('hiphop', ['pop', 'pop', 'pop', 'pop', 'hiphop', 'metal'])
    """
    items, test = (_items(f"crowd/music_genre_{part}", data_home) for part in ("items", "test"))
    return Bunch(
        data=items.data,
        target=items.target,
        target_names=np.unique(items.target),
        id=items.id,
        answers=_answers("crowd/music_genre_answers", items.id, data_home),
        test_data=test.data,
        test_target=test.target,
        feature_names=items.feature_names,
        name="music_genre",
        DESCR=MUSIC_GENRE,
    )


def load_sentiment_polarity(*, data_home: Home = None) -> Bunch:
    """Sentences from film reviews, each judged by a few of 203 crowd workers.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``crowd/sentiment_polarity_items.csv.gz`` and ``…_answers.csv.gz``. Default:
        the environment variable ``POLYFID_DATA``.

    Returns
    -------
    Bunch
        ``data`` (4999, 1200), ``target`` 1 for a positive sentence and 0 for a negative one,
        ``target_names``, ``id``, ``answers`` a Bunch of ``task`` (row of the sentence), ``worker``
        and ``label``, one entry an answer; ``feature_names``, ``name``, ``DESCR``.

    Examples
    --------
    >>> from polyfid.datasets import load_sentiment_polarity
    >>> data = load_sentiment_polarity(data_home="data")  # doctest: +SKIP
    >>> data.data.shape, len(data.answers.label)  # doctest: +SKIP
    ((4999, 1200), 27746)
    """
    items = _items("crowd/sentiment_polarity_items", data_home)
    answers = _answers("crowd/sentiment_polarity_answers", items.id, data_home)
    answers.label = answers.label.astype(np.intp)
    return Bunch(
        data=items.data,
        target=items.target.astype(np.intp),
        target_names=np.array(["negative", "positive"]),
        id=items.id,
        answers=answers,
        feature_names=items.feature_names,
        name="sentiment_polarity",
        DESCR=SENTIMENT_POLARITY,
    )


def _items(name: str, data_home: Home) -> Bunch:
    """Crowd tasks: their id, features and true label."""
    table = read_table(name, data_home)
    task, label = table.column("id"), table.column("target", "class")
    features = [k for k in range(len(table.names)) if k not in (task, label)]
    return Bunch(
        id=table.strings(task),
        data=table.numbers(features),
        target=table.strings(label),
        feature_names=[table.names[k] for k in features],
    )


def _answers(name: str, ids: NDArray[np.str_], data_home: Home) -> Bunch:
    """Answers of crowd workers to the tasks with these ids."""
    table = read_table(name, data_home)
    row = {task: k for k, task in enumerate(ids.tolist())}
    tasks = table.strings(table.column("id")).tolist()
    unknown = sorted(set(tasks) - set(row))
    if unknown:
        raise ValueError(
            f"{table.path} has answers to {unknown[0]!r}, which is no task of the file beside it; "
            "get both files from one place"
        )
    numbers: dict[str, int] = {}  # of workers in order of appearance, whatever their names
    workers = table.strings(table.column("annotator")).tolist()
    return Bunch(
        task=np.array([row[task] for task in tasks], dtype=np.intp),
        worker=np.array([numbers.setdefault(w, len(numbers)) for w in workers], dtype=np.intp),
        label=table.strings(table.column("label", "class")),
    )


ARTIFICIAL = """\
Artificial sets of Klyuchnikov and Burnaev, "Gaussian Process Classification for Variable Fidelity
Data": github.com/user525/mfgpc, no licence stated. Labels are signs of latent Gaussian processes.
df_16 to df_19 are one and the same file. df_21 has 98 % positive labels, and its noisy labels 0.3,
0.4 and 0.5 are equal (26 % wrong); df_3 and df_26 have equal noisy labels 0.4 and 0.5. Noisy labels
0.0 are not free of noise (0.4 % to 5 % wrong).
"""

PMLB = """\
Penn Machine Learning Benchmarks (github.com/EpistasisLab/pmlb, MIT licence; data from UCI and
OpenML), revision d8b0e551 of 2017. Integer codes are label encodings of each column. Rows that
repeat: 285 in splice, 391 in spambase, 77 in hypothyroid. In hypothyroid, continuous columns are
codes in the order of strings ("1", "10", "11", …, "4", "40"), and the positive class is the
majority, healthy people.
"""

MUSIC_GENRE = """\
Music genre: Rodrigues, Pereira and Ribeiro, "Gaussian Process Classification and Active Learning
with Multiple Annotators", 2014; songs of GTZAN. 700 songs have 2945 answers of 44 workers, 1 to 7 a
song; single answers are right in 56 % of cases, majority votes in 79 %, and 27 % of the votes are
tied. 300 songs have no answers.
"""

SENTIMENT_POLARITY = """\
Sentiment polarity: answers of Rodrigues, Pereira and Ribeiro, "Gaussian Process Classification and
Active Learning with Multiple Annotators", 2014, to sentences of Pang and Lee, 2005. 4999 sentences
have 27746 answers of 203 workers; single answers are right in 79 % of cases, majority votes in
88 %, and 4 % of the votes are tied. Answers and true labels are the original ones. The features are
not: the 1200 LSA features were recomputed from all 10433 sentences (stems, tf-idf, truncated
singular value decomposition, in order of falling singular values).
"""
