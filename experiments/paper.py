"""What the paper measured, as data: its methods, columns, and the figures of its tables.

Klyuchnikov and Burnaev, "Gaussian Process Classification for Variable Fidelity Data".
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

from experiments.data import PMLB

#: A method and its mode: which rows it is trained on, and how.
Method = tuple[str, str]

#: A method is marked as good if it is the best of a column or this close to the best.
CLOSE = 0.01

NOISES = (0.2, 0.4)
DIMENSIONS = (2, 5, 10, 20)  # features of the artificial sets, ten sets each
GENRES = "blues classical country disco hiphop jazz metal pop reggae rock".split()  # noqa: SIM905

#: Names of the methods as the paper prints them, in its order; polyfid comes first, methods that
#: the paper does not have come last.
METHODS = {
    ("polyfid", "multi"): "polyfid",
    ("mfgpc", "multi"): "MF gpc",
    ("gpc", "trusted"): "gpc",
    ("logit", "trusted"): "logit",
    ("xgb", "trusted"): "xgb",
    ("gpc", "concatenated"): "C gpc",
    ("logit", "concatenated"): "C logit",
    ("xgb", "concatenated"): "C xgb",
    ("gpc", "stacked"): "S gpc",
    ("logit", "stacked"): "S logit",
    ("xgb", "stacked"): "S xgb",
    ("hetmogp", "published"): "hetmogp",
    ("hetmogp", "tuned"): "hetmogp, tuned",
    ("gp-ma", "answers"): "gp-ma",
    ("majority", "trusted"): "majority class",
}
OURS, THEIRS = ("polyfid", "multi"), ("mfgpc", "multi")


def label(method: Method) -> str:
    """The printed name of a method, also of one that the list does not have."""
    return METHODS.get(method, " ".join(method))


class Column(NamedTuple):
    """A column of the paper's tables; ``noise`` is None where it is not chosen."""

    group: str
    name: str
    noise: float | None

    @property
    def label(self) -> str:
        """The printed name."""
        return self.name.replace("_", " ")

    @property
    def problems(self) -> tuple[str, ...]:
        """Names of the data sets that the paper averages in it."""
        if self.group == "artificial":
            start = 10 * DIMENSIONS.index(int(self.name.removesuffix("D")))
            return tuple(f"df_{i}" for i in range(start, start + 10))
        if self.name == "music_genre":
            return tuple(f"music_genre:{genre}" for genre in GENRES)
        return (self.name,)

    @property
    def runs(self) -> int:
        """Number of splits per data set in the paper."""
        return 15 if self.name == "sentiment_polarity" else 3

    def __str__(self) -> str:
        return self.label if self.noise is None else f"{self.label}, noise {self.noise}"


class Group(NamedTuple):
    """One of the paper's three groups of data sets; ``notes`` are peculiarities of the data."""

    name: str
    short: str
    title: str
    names: tuple[str, ...]
    noises: tuple[float | None, ...]
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns, all names at the first noise first."""
        return tuple(Column(self.name, name, c) for c in self.noises for name in self.names)


GROUPS = (
    Group(
        "artificial",
        "Artificial",
        "Group 1: Artificial data sets",
        tuple(f"{d}D" for d in DIMENSIONS),
        NOISES,
        (
            "df_16, df_17, df_18 and df_19 are the same set.",
            "df_21 has 98 % positives, and its labels of noise 0.4 differ from the truth in only "
            "26 % of the rows; those of df_3 in 37 %.",
        ),
    ),
    Group(
        "pmlb",
        "PMLB",
        "Group 2: Penn Machine Learning Benchmarks",
        tuple(PMLB),
        NOISES,
        (
            "All rows but 226 are test rows, so nearly all of the 75 trusted rows are also among "
            "the cheap ones.",
            "The positive class of hypothyroid is the majority, 95 % of the rows, and its "
            "continuous columns are codes in the order of strings.",
        ),
    ),
    Group(
        "crowd",
        "Crowd",
        "Group 3: Crowdsourced labels",
        ("music_genre", "sentiment_polarity"),
        (None,),
        (
            "The majority vote is tied for 27 % of the songs; how ties are broken changes the "
            "trusted labels, and the paper's way depends on the version of a library.",
            "The LSA features of sentiment polarity are recomputed from the sentences, because the "
            "originals are not published any more.",
        ),
    ),
)

#: The 26 columns of the paper's tables, in their order.
COLUMNS = tuple(column for group in GROUPS for column in group.columns)


class Metric(NamedTuple):
    """A measure of the rows; ``sign`` is 1 where larger is better and -1 where smaller is."""

    name: str
    title: str
    sign: int
    meaning: str
    marked: bool = True  # whether the best of a column are printed in bold


METRICS = (
    Metric("roc_auc", "ROC AUC", 1, "Area under the ROC curve; larger is better, chance is 0.5."),
    Metric(
        "log_loss",
        "Log-loss",
        -1,
        "Mean negative log-probability of the true label, in nats; smaller is better, a coin has "
        "0.693.",
    ),
    Metric(
        "brier",
        "Brier score",
        -1,
        "Mean squared error of the probability; smaller is better, a coin has 0.25.",
    ),
    Metric(
        "accuracy", "Accuracy", 1, "Share of correct labels at threshold 0.5; larger is better."
    ),
    Metric(
        "fit_seconds",
        "Seconds to fit",
        -1,
        "Processor time of training, including tuning and restarts, with one BLAS thread.",
        marked=False,
    ),
)
ROC_AUC, LOG_LOSS = METRICS[:2]


def _read() -> dict[tuple[Column, Method], float]:
    """The figures in paper.csv, which has a line per column and an entry per method."""
    methods = {name: method for method, name in METHODS.items()}
    figures: dict[tuple[Column, Method], float] = {}
    with (Path(__file__).parent / "paper.csv").open(newline="") as lines:
        for line in csv.DictReader(lines):
            noise = line.pop("noise")
            column = Column(line.pop("group"), line.pop("column"), float(noise) if noise else None)
            figures |= {(column, methods[name]): float(x) for name, x in line.items() if x}
    return figures


#: Mean ROC AUC in the paper.
PAPER = _read()


def published(column: Column, method: Method) -> float:
    """The paper's mean ROC AUC, NaN where it has none."""
    return PAPER.get((column, method), math.nan)


#: Inference schemes in the order of tables and figures, with their printed names.
SCHEMES = {"laplace": "Laplace", "ep": "EP", "variational": "variational", "mcmc": "MCMC"}

#: ROC AUC of one run in the paper's check of Laplace inference, by (set, scheme).
PAPER_MCMC = {
    (name, scheme): value
    for scheme, values in {
        "laplace": (0.815, 0.787, 0.998, 0.999, 0.940, 0.942, 0.614, 0.932),
        "mcmc": (0.809, 0.780, 0.997, 0.999, 0.922, 0.946, 0.624, 0.927),
    }.items()
    for name, value in zip(PMLB, values, strict=True)
}
