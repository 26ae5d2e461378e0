"""Cells, the units of work of an experiment, and the scores of their rows."""

from __future__ import annotations

import contextlib
import functools
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

T = TypeVar("T")

#: One row of results: the fields of its cell, its figures, or an ``error``.
Row = dict[str, Any]
Key = tuple[Any, ...]

#: Fields that identify a cell and its row.
KEY = ("experiment", "problem", "method", "mode", "noise", "seed", "share", "cost")
CLIP = 1e-15  # keeps the log-loss finite for a method that is certain and wrong


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One unit of work, usually one method on one split; small and picklable.

    A kind of cell is a frozen subclass with `compute`.

    Attributes
    ----------
    experiment, problem, method, mode, noise, seed, share, cost
        What the cell is about; no two cells have the same values. Share and cost are coordinates of
        the budget experiment.
    column : str
        The column of the paper's tables it belongs to.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from experiments.cells import Cell, scores
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Coin(Cell):
    ...     def compute(self):
    ...         return scores([0, 1], [0.5, 0.5])
    >>> cell = Coin(experiment="toy", problem="coin", method="guess", mode="", seed=0)
    >>> cell.compute()["roc_auc"]
    0.5
    """

    experiment: str
    column: str = ""
    problem: str
    method: str
    mode: str
    noise: float | None = None
    seed: int = 0
    share: float | None = None
    cost: int | None = None

    @property
    def seconds(self) -> float:
        """A guess at how long it takes, relative to other cells."""
        return 1.0

    def compute(self) -> Row:
        """The figures of the row."""
        raise NotImplementedError

    def row(self, **figures: Any) -> Row:
        """The row: what the cell is about, and some figures."""
        about = {name: getattr(self, name) for name in (*KEY, "column")}
        return {name: v for name, v in about.items() if v is not None} | figures


def key_of(row: Mapping[str, Any]) -> Key:
    """What identifies a row or, via `Cell.row`, a cell."""
    return tuple(row.get(name) for name in KEY)


def scores(y: ArrayLike, proba: ArrayLike) -> Row:
    """ROC AUC, log-loss, Brier score and accuracy of probabilities of class 1 for labels 0 and 1.

    Examples
    --------
    >>> from experiments.cells import scores
    >>> scores([0, 1, 1], [0.5, 0.5, 0.75])["roc_auc"]
    0.75
    """
    y, p = np.asarray(y, dtype=float), np.asarray(proba, dtype=float)
    if y.shape != p.shape or not np.isin(y, (0.0, 1.0)).all():
        raise ValueError(
            f"y must hold labels 0 and 1, one for each of the {len(p)} probabilities; got "
            f"{len(y)} labels with the values {np.unique(y)[:5].tolist()}"
        )
    wrong = int((~((p >= 0.0) & (p <= 1.0))).sum())
    if wrong:
        raise ValueError(f"proba must lie in [0, 1]; {wrong} of {len(p)} do not or are NaN")
    clipped = np.clip(p, CLIP, 1.0 - CLIP)
    return {
        "roc_auc": float(roc_auc_score(y, p)),
        "log_loss": float(-np.mean(np.where(y == 1.0, np.log(clipped), np.log1p(-clipped)))),
        "brier": float(np.mean((p - y) ** 2)),
        "accuracy": float(np.mean((p > 0.5) == (y == 1.0))),
    }


@functools.cache
def versions() -> str:
    """Versions of the packages that the figures depend on."""
    names = (
        "polyfid",
        "numpy",
        "scipy",
        "scikit-learn",
        "xgboost-cpu",
        "xgboost",
        "numpyro",
        "jax",
    )
    texts = []
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            texts.append(f"{name.removesuffix('-cpu')} {metadata.version(name)}")
    return "; ".join([*dict.fromkeys(texts), f"python {platform.python_version()}"])


def interleave(parts: Iterable[Sequence[T]]) -> list[T]:
    """Items of all parts, each part in its own order and evenly spread.

    A run that is stopped early has then done an equal share of every part.

    Examples
    --------
    >>> from experiments.cells import interleave
    >>> interleave(["abcd", "xy"])
    ['a', 'x', 'b', 'c', 'y', 'd']
    """
    placed = [
        ((i + 0.5) / len(part), k, i, item)
        for k, part in enumerate(parts)
        for i, item in enumerate(part)
    ]
    return [item for *_, item in sorted(placed, key=lambda place: place[:3])]
