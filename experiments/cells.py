"""Cells, the units of work of an experiment, and the scores of their rows."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

#: One row of results: the fields of its cell, its figures, or an ``error``.
Row = dict[str, Any]
Key = tuple[Any, ...]

#: Fields that identify a cell and its row.
KEY = ("experiment", "problem", "method", "mode", "noise", "seed", "share", "cost")
CLIP = 1e-15  # keeps the log-loss finite for a method that is certain and wrong

#: Packages that the figures depend on.
PACKAGES = "polyfid numpy scipy scikit-learn xgboost-cpu xgboost numpyro jax".split()  # noqa: SIM905


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One unit of work, usually one method on one split; each kind of cell has `compute`."""

    experiment: str
    column: str = ""  # of the paper's tables
    problem: str
    method: str
    mode: str
    noise: float | None = None
    seed: int = 0
    # Only in the budget experiment.
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
    """ROC AUC, log-loss, Brier score and accuracy of probabilities of class 1."""
    p = np.asarray(proba, dtype=float)
    return {
        "roc_auc": float(roc_auc_score(y, p)),
        "log_loss": float(log_loss(y, np.clip(p, CLIP, 1.0 - CLIP))),
        "brier": float(brier_score_loss(y, p)),
        "accuracy": float(accuracy_score(y, p > 0.5)),
    }


@functools.cache
def versions() -> str:
    """Versions of the packages that the figures depend on."""
    installed = {d.name: d.version for d in metadata.distributions()}
    texts = [f"{p.removesuffix('-cpu')} {installed[p]}" for p in PACKAGES if p in installed]
    return "; ".join([*dict.fromkeys(texts), f"python {platform.python_version()}"])
