"""The classification problems of the experiments, and the paper's way of drawing rows from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from experiments import data
from experiments.paper import DIMENSIONS, GENRES, NOISES
from polyfid.datasets import make_cokriging

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

N_CHEAP, N_TRUSTED = 225, 75
QUICK_PMLB = ("diabetes", "german", "splice", "hypothyroid")  # numbers, codes, one-hot, imbalanced

ANSWERS_SEED, TIES_SEED = 1, 0  # the published notebook draws its cheap answers after seed(1)
MAX_DRAWS = 1000


class Answers(NamedTuple):
    """Single answers: the features of the item, the label given, and who gave it."""

    X: Array
    y: Labels
    annotator: Labels


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows of two levels of trust, and test rows with true labels; labels are 0 and 1."""

    X_cheap: Array
    y_cheap: Labels
    X_trusted: Array
    y_trusted: Labels
    X_test: Array
    y_test: Labels
    answers: Answers | None = None

    @property
    def X(self) -> Array:
        """Training rows, cheap ones first."""
        return np.concatenate([self.X_cheap, self.X_trusted])

    @property
    def y(self) -> Labels:
        """Labels of the training rows."""
        return np.concatenate([self.y_cheap, self.y_trusted])

    @property
    def fidelity(self) -> Labels:
        """Level of the training rows: 0 cheap, 1 trusted."""
        return np.repeat([0, 1], [len(self.y_cheap), len(self.y_trusted)])

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of training rows, for the row of a cell."""
        return {"n_trusted": len(self.y_trusted), "n_cheap": len(self.y_cheap)}


@dataclass(frozen=True, eq=False)
class Labelled:
    """A whole data set with cheap labels, trusted labels (for training) and true ones (for tests).

    A crowd's set also has all single ``answers`` (task, worker, label), and in ``drawn`` for each
    row the index of the answer that is its cheap label.
    """

    X: Array
    cheap: Labels
    trusted: Labels
    true: Labels
    answers: Bunch | None = None
    drawn: Labels | None = None

    def draw(self, seed: int, n_test: int, n_cheap: int, n_trusted: int) -> Split:
        """The rows that the paper's published code draws with a seed.

        Test rows first; then cheap and trusted rows independently of each other from the rest, so
        that some are both.
        """
        rng = np.random.RandomState(seed)
        test = rng.choice(len(self.X), n_test, replace=False)
        rest = np.setdiff1d(np.arange(len(self.X)), test)
        cheap = rng.choice(rest, n_cheap, replace=False)
        trusted = rng.choice(rest, n_trusted, replace=False)
        return Split(
            self.X[cheap],
            self.cheap[cheap],
            self.X[trusted],
            self.trusted[trusted],
            self.X[test],
            self.true[test],
            self.answers_to(cheap, trusted),
        )

    def answers_to(self, cheap: Labels, trusted: Labels) -> Answers | None:
        """All answers to trusted rows and the cheap one to the others: none is used twice."""
        if self.answers is None or self.drawn is None:
            return None
        task = self.answers.task
        to_trusted = np.flatnonzero(np.isin(task, trusted))
        single = self.drawn[cheap[~np.isin(cheap, trusted)]]
        chosen = np.concatenate([to_trusted, single])
        return Answers(
            self.X[task[chosen]], self.answers.label[chosen], self.answers.worker[chosen]
        )


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One classification problem: what it is called and where its rows come from.

    Small and picklable; the data are read when they are needed, once per process.
    """

    experiment: str = ""  # the group of the paper it belongs to: "artificial", "pmlb" or "crowd"
    column: str = ""  # of the paper's tables
    name: str
    noise: float | None = None  # nominal share of wrong cheap labels, where it was chosen
    runs: int = 3  # number of splits
    load: Callable[..., Labelled]  # a function of a module, called with args
    args: tuple[Any, ...] = ()

    def split(self, seed: int, n_cheap: int = N_CHEAP, n_trusted: int = N_TRUSTED) -> Split:
        """The rows of one draw."""
        rows = _load(self.load, self.args)
        n = len(rows.X)
        n_test = n // 2 if self.experiment == "artificial" else n - N_CHEAP - 1
        return rows.draw(seed, n_test, n_cheap, n_trusted)


@functools.cache
def _load(load: Callable[..., Labelled], args: tuple[Any, ...]) -> Labelled:
    return load(*args)


def usable_seeds(
    problems: Sequence[Problem], runs: int, n_cheap: int = N_CHEAP, n_trusted: int = N_TRUSTED
) -> list[int]:
    """Seeds of the first splits with both classes among cheap, trusted and test rows.

    As in the paper's published code the seed of run k is k plus the number of draws so far,
    accepted or not: 0, 2, 4 and so on while none is rejected. A seed must serve all the problems.
    """
    seeds: list[int] = []
    for tried in range(MAX_DRAWS):
        if len(seeds) == runs:
            return seeds
        seed = len(seeds) + tried
        splits = [problem.split(seed, n_cheap, n_trusted) for problem in problems]
        labels = [y for s in splits for y in (s.y_cheap, s.y_trusted, s.y_test)]
        if all(len(np.unique(y)) == 2 for y in labels):
            seeds.append(seed)
    raise ValueError(
        f"{problems[0].name} must have both classes among {n_cheap} cheap, {n_trusted} trusted and "
        f"all test rows, and {MAX_DRAWS} draws gave {len(seeds)} such splits; leave it out"
    )


# Files that several problems share are read once.
_artificial = functools.cache(data.load_artificial)
_pmlb = functools.cache(data.load_pmlb)
_music = functools.cache(data.load_music_genre)


def artificial_set(number: int, noise: float, data_home: str | None = None) -> Problem:
    """One of the paper's 40 artificial sets, ten for each number of features."""
    return _numbered(f"df_{number}", number, noise, _artificial_rows, data_home)


def made_set(number: int, noise: float, data_home: str | None = None) -> Problem:
    """A set made by the paper's recipe where its own are missing; 5000 rows, numbered alike."""
    return _numbered(f"made_{number}", number, noise, _made_rows, data_home)


def _numbered(name: str, number: int, noise: float, load: Any, data_home: str | None) -> Problem:
    column, args = f"{DIMENSIONS[number // 10]}D", (number, noise, data_home)
    return Problem(
        experiment="artificial", column=column, name=name, noise=noise, load=load, args=args
    )


def _artificial_rows(number: int, noise: float, data_home: str | None) -> Labelled:
    rows = _artificial(number, data_home=data_home)
    return Labelled(rows.data, rows.noisy[noise], rows.target, rows.target)


def _made_rows(number: int, noise: float, data_home: str | None) -> Labelled:
    del data_home
    d = DIMENSIONS[number // 10]
    rows = make_cokriging(2500, 2500, d, noise=noise, random_state=number)
    cheap, trusted = (rows.latent > 0.0).astype(np.intp).T
    return Labelled(rows.data, cheap, trusted, trusted)


def pmlb_set(name: str, noise: float, data_home: str | None = None) -> Problem:
    """A binary task from the Penn Machine Learning Benchmarks; cheap labels are flipped at random.

    The flipped rows depend on the set and the noise, not on the split.
    """
    args = name, noise, data_home
    about: Any = {"experiment": "pmlb", "column": name, "name": name, "runs": 10}
    return Problem(**about, noise=noise, load=_pmlb_rows, args=args)


def _pmlb_rows(name: str, noise: float, data_home: str | None) -> Labelled:
    rows = _pmlb(name, data_home=data_home)
    flips = np.random.RandomState(0).rand(len(rows.target)) < noise
    return Labelled(rows.data, (rows.target + flips) % 2, rows.target, rows.target)


def music(genre: str, data_home: str | None = None) -> Problem:
    """One genre of songs against all others; the crowd was asked for the genre.

    The majority vote is trusted and a single answer is cheap; both are taken among all genres.
    """
    about: Any = {"experiment": "crowd", "column": "music_genre", "name": f"music_genre:{genre}"}
    return Problem(**about, load=_music_rows, args=(genre, data_home))


def _music_rows(genre: str, data_home: str | None) -> Labelled:
    return vote(_music(data_home=data_home), genre)


def sentiment(data_home: str | None = None) -> Problem:
    """Sentences that the crowd calls positive or negative; labels as in `music`."""
    about: Any = {"experiment": "crowd", "runs": 15}
    about |= dict.fromkeys(("column", "name"), "sentiment_polarity")
    return Problem(**about, load=_sentiment_rows, args=(data_home,))


def _sentiment_rows(data_home: str | None) -> Labelled:
    return vote(data.load_sentiment_polarity(data_home=data_home), 1)


def vote(rows: Bunch, positive: str | int) -> Labelled:
    """Majority votes and single answers, then one class against the rest.

    The published notebook leaves ties to the order of rows in pandas, which differs between its
    versions (27 % of the songs are tied, 4 % of the sentences); here a seeded draw among the
    leaders decides.
    """
    task, label = rows.answers.task, rows.answers.label
    ties, single = np.random.RandomState(TIES_SEED), np.random.RandomState(ANSWERS_SEED)
    trusted = np.empty(len(rows.data), dtype=label.dtype)
    drawn = np.empty(len(rows.data), dtype=np.intp)
    by_task = np.split(np.argsort(task, kind="stable"), np.cumsum(np.bincount(task))[:-1])
    for item in np.argsort(rows.id):
        given = by_task[item]
        names, votes = np.unique(label[given], return_counts=True)
        leaders = names[votes == votes.max()]
        trusted[item] = leaders[0] if len(leaders) == 1 else ties.choice(leaders)
        drawn[item] = given[single.choice(len(given))]
    cheap, trusted, true, answered = (
        (labels == positive).astype(np.intp)
        for labels in (label[drawn], trusted, rows.target, label)
    )
    answers = Bunch(task=task, worker=rows.answers.worker, label=answered)
    return Labelled(rows.data, cheap, trusted, true, answers, drawn)


def artificial_sets(
    data_home: str | None, noises: Sequence[float] = NOISES
) -> dict[int, list[Problem]]:
    """Each artificial set in the data directory at some noises, or made ones if it has none."""
    numbers, make = data.available_artificial(data_home), artificial_set
    if not numbers:
        numbers, make = [10 * tens + i for tens in range(4) for i in range(5)], made_set
    return {number: [make(number, noise, data_home) for noise in noises] for number in numbers}


def artificial(data_home: str | None = None, *, quick: bool = False) -> list[Problem]:
    """The artificial sets; the first of each number of features for a quick run."""
    sets = artificial_sets(data_home)
    if quick:
        first = {number // 10: number for number in sorted(sets, reverse=True)}
        sets = {number: sets[number] for number in sorted(first.values())}
    return [problem for problems in sets.values() for problem in problems]


def pmlb(data_home: str | None = None, *, quick: bool = False) -> list[Problem]:
    """The eight PMLB tasks, as far as they can be read or downloaded."""
    names = QUICK_PMLB if quick else tuple(data.PMLB)
    sets = [name for name in names if _exists(pmlb_set(name, 0.2, data_home))]
    return [pmlb_set(name, noise, data_home) for name in sets for noise in NOISES]


def crowd(data_home: str | None = None, *, quick: bool = False) -> list[Problem]:
    """The genres of songs and the sentences, as far as they can be read or downloaded."""
    genres = [music(genre, data_home) for genre in GENRES[: 1 if quick else None]]
    return [task for task in (*genres, sentiment(data_home)) if _exists(task)]


def _exists(problem: Problem) -> bool:
    try:
        _load(problem.load, problem.args)
    except data.DatasetNotFound:
        return False
    return True
