"""The classification problems of the experiments, and the paper's way of drawing rows from them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from polyfid import datasets
from polyfid.arrays import Array

Labels = NDArray[np.intp]

N_CHEAP, N_TRUSTED = 225, 75
NOISES = (0.2, 0.4)
# In the order of the paper's tables.
PMLB = (
    "diabetes",
    "german",
    "satimage",
    "mushroom",
    "splice",
    "spambase",
    "hypothyroid",
    "waveform-40",
)
QUICK_PMLB = ("diabetes", "german", "splice", "hypothyroid")  # numbers, codes, one-hot, lopsided
DIMENSIONS = (2, 5, 10, 20)  # of ten artificial sets each

ANSWERS_SEED, TIES_SEED = 1, 0  # the published notebook draws its cheap answers after seed(1)
MAX_DRAWS = 1000


class Answers(NamedTuple):
    """Single answers: the features of the item, the label given, and who gave it."""

    X: Array
    y: Labels
    annotator: Labels


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from at two levels of trust, and true labels of other rows; labels are 0/1."""

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


@dataclass(frozen=True, eq=False)
class Labelled:
    """A whole set with its labels: cheap, trusted (what training sees) and true (what counts)."""

    X: Array
    cheap: Labels
    trusted: Labels
    true: Labels
    answers: Bunch | None = None  # task (a row), worker, label: 0/1
    drawn: Labels | None = None  # which answer is the cheap one, row by row

    def draw(self, seed: int, n_test: int, n_cheap: int, n_trusted: int) -> Split:
        """The rows that the paper's published code takes for a seed.

        Test rows first; cheap and trusted rows independently of each other from the rest, so
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
            self._answers(cheap, trusted),
        )

    def _answers(self, cheap: Labels, trusted: Labels) -> Answers | None:
        """All answers to trusted rows and the cheap one of the others: no answer counts twice."""
        if self.answers is None or self.drawn is None:
            return None
        task = self.answers.task
        known = np.flatnonzero(np.isin(task, trusted))
        single = self.drawn[cheap[~np.isin(cheap, trusted)]]
        chosen = np.concatenate([known, single])
        return Answers(
            self.X[task[chosen]], self.answers.label[chosen], self.answers.worker[chosen]
        )


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One classification problem: where its rows come from and how many are drawn.

    Small and picklable; the data are read when they are needed, once a process. A kind of problem
    is a frozen subclass with `load`.

    Attributes
    ----------
    experiment : str
        The group of the paper it belongs to: "artificial", "pmlb" or "crowd".
    name, column : str
        Its own name, and that of its column in the paper's table.
    noise : float or None
        Nominal share of wrong cheap labels, if it was set.
    runs : int
        Splits, unless told otherwise.
    data_home : str or None
        The directory to read from, as in `polyfid.datasets`.

    Examples
    --------
    >>> from polyfid.experiments.problems import Made
    >>> problem = Made(number=0, noise=0.2)
    >>> problem.name, problem.column
    ('made_0', '2D')
    >>> split = problem.split(seed=0)
    >>> split.X_cheap.shape, split.X_trusted.shape, split.X_test.shape
    ((225, 2), (75, 2), (2500, 2))
    """

    noise: float | None = None
    data_home: str | None = None
    experiment: str = field(init=False, default="")
    runs: int = field(init=False, default=3)

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def column(self) -> str:
        return self.name

    def load(self) -> Labelled:
        """All rows with their labels."""
        raise NotImplementedError

    def n_test(self, n: int) -> int:
        """How many of n rows are kept for the test."""
        return n - N_CHEAP - 1

    def split(self, seed: int, n_cheap: int = N_CHEAP, n_trusted: int = N_TRUSTED) -> Split:
        """The rows of one draw."""
        rows = _load(self)
        return rows.draw(seed, self.n_test(len(rows.X)), n_cheap, n_trusted)

    def seeds(
        self, runs: int | None = None, n_cheap: int = N_CHEAP, n_trusted: int = N_TRUSTED
    ) -> list[int]:
        """Seeds of the first splits that have rows of both classes in every part.

        As in the paper's published code the seed of run k is k plus the number of draws so far,
        accepted or not: 0, 2, 4 and so on while none is rejected.
        """
        found: list[int] = []
        for tried in range(MAX_DRAWS):
            if len(found) == (self.runs if runs is None else runs):
                return found
            split = self.split(len(found) + tried, n_cheap, n_trusted)
            parts = (split.y_cheap, split.y_trusted, split.y_test)
            if all(len(np.unique(part)) == 2 for part in parts if len(part)):
                found.append(len(found) + tried)
        raise ValueError(
            f"{self.name} must have rows of both classes in every part of a split, and "
            f"{MAX_DRAWS} draws gave {len(found)} such splits; take more rows a split"
        )


@functools.cache
def _load(problem: Problem) -> Labelled:
    return problem.load()


# What problems share is read once: all of it together takes some hundred megabytes.
_artificial = functools.cache(datasets.load_artificial)
_pmlb = functools.cache(datasets.load_pmlb)
_music = functools.cache(datasets.load_music_genre)


@dataclass(frozen=True, kw_only=True)
class Artificial(Problem):
    """One of the paper's 40 artificial sets."""

    number: int
    experiment: str = field(init=False, default="artificial")

    @property
    def name(self) -> str:
        return f"df_{self.number}"

    @property
    def column(self) -> str:
        return f"{DIMENSIONS[self.number // 10]}D"

    def n_test(self, n: int) -> int:
        return n // 2

    def load(self) -> Labelled:
        rows = _artificial(self.number, data_home=self.data_home)
        return Labelled(rows.data, rows.noisy[self.noise], rows.target, rows.target)


@dataclass(frozen=True, kw_only=True)
class Made(Artificial):
    """A set by the paper's recipe, for want of its own: 5000 rows, numbered like those."""

    @property
    def name(self) -> str:
        return f"made_{self.number}"

    def load(self) -> Labelled:
        rows = datasets.make_cokriging(
            2500,
            2500,
            DIMENSIONS[self.number // 10],
            noise=self.noise or 0.0,
            random_state=self.number,
        )
        cheap, trusted = (rows.latent > 0.0).astype(np.intp).T
        return Labelled(rows.data, cheap, trusted, trusted)


@dataclass(frozen=True, kw_only=True)
class Pmlb(Problem):
    """A binary task from the Penn Machine Learning Benchmarks; cheap labels flip at random.

    The same rows are flipped whatever is drawn: once a set and noise level.
    """

    set: str
    experiment: str = field(init=False, default="pmlb")
    runs: int = field(init=False, default=10)

    @property
    def name(self) -> str:
        return self.set

    def load(self) -> Labelled:
        rows = _pmlb(self.set, data_home=self.data_home)
        flips = np.random.RandomState(0).rand(len(rows.target)) < (self.noise or 0.0)
        return Labelled(rows.data, (rows.target + flips) % 2, rows.target, rows.target)


@dataclass(frozen=True, kw_only=True)
class Music(Problem):
    """One genre of songs against all others; the crowd is asked for the genre.

    Trusted is what most answers say, cheap a single answer, both found among all genres first.
    """

    genre: str
    experiment: str = field(init=False, default="crowd")

    @property
    def name(self) -> str:
        return f"music_genre:{self.genre}"

    @property
    def column(self) -> str:
        return "music_genre"

    def load(self) -> Labelled:
        return _voted(_music(data_home=self.data_home), self.genre)


@dataclass(frozen=True, kw_only=True)
class Sentiment(Problem):
    """Sentences that the crowd calls positive or negative; labels as in `Music`."""

    experiment: str = field(init=False, default="crowd")
    runs: int = field(init=False, default=15)

    @property
    def name(self) -> str:
        return "sentiment_polarity"

    def load(self) -> Labelled:
        return _voted(datasets.load_sentiment_polarity(data_home=self.data_home), 1)


def _voted(rows: Bunch, positive: str | int) -> Labelled:
    """Majorities and single answers, then the one class against the rest.

    The published notebook leaves ties to the order that pandas happens to give, which differs
    between its versions (27 % of the songs are tied, 4 % of the sentences); here a seeded draw
    among the leaders decides.
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
    one = Bunch(task=task, worker=rows.answers.worker, label=_is(label, positive))
    return Labelled(
        rows.data,
        _is(label[drawn], positive),
        _is(trusted, positive),
        _is(rows.target, positive),
        one,
        drawn,
    )


def _is(label: NDArray[np.str_] | Labels, positive: str | int) -> Labels:
    return (label == positive).astype(np.intp)


def artificial(data_home: str | None = None, *, quick: bool = False) -> list[Problem]:
    """The artificial sets that a directory has, or made ones where it has none.

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.problems import artificial
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     [problem.name for problem in artificial(empty, quick=True)][:3]
    ['made_0', 'made_0', 'made_10']
    """
    numbers = datasets.available_artificial(data_home)
    kind: type[Artificial] = Artificial if numbers else Made
    numbers = numbers or [10 * tens + i for tens in range(4) for i in range(5)]
    if quick:
        numbers = list({number // 10: number for number in reversed(numbers)}.values())[::-1]
    return [
        kind(number=number, noise=noise, data_home=data_home)
        for number in numbers
        for noise in NOISES
    ]


def pmlb(data_home: str | None = None, *, quick: bool = False) -> list[Problem]:
    """The eight tasks of the second group, those that can be read or fetched.

    Examples
    --------
    >>> from polyfid.experiments.problems import pmlb
    >>> pmlb("data")[0].name  # doctest: +SKIP
    'diabetes'
    """
    names = QUICK_PMLB if quick else PMLB
    sets = [name for name in names if _there(Pmlb(set=name, noise=0.2, data_home=data_home))]
    return [Pmlb(set=name, noise=c, data_home=data_home) for name in sets for c in NOISES]


def crowd(data_home: str | None = None, *, quick: bool = False) -> list[Problem]:
    """The genres of songs and the sentences of the third group, if they can be read or fetched.

    Examples
    --------
    >>> from polyfid.experiments.problems import crowd
    >>> crowd("data")[-1].name  # doctest: +SKIP
    'sentiment_polarity'
    """
    found: list[Problem] = []
    try:
        genres = _music(data_home=data_home).target_names.tolist()
        found += [Music(genre=g, data_home=data_home) for g in genres[: 1 if quick else None]]
    except datasets.DatasetNotFound:
        pass
    sentences = Sentiment(data_home=data_home)
    return [*found, sentences] if _there(sentences) else found


def _there(problem: Problem) -> bool:
    try:
        _load(problem)
    except datasets.DatasetNotFound:
        return False
    return True
