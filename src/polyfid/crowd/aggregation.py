"""One label per task from several answers."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.random import RandomState
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.crowd.answers import Answers

Ties = Literal["draw", "split"]

MAJORITY = "majority"
#: Classes of crowd-kit, and the attribute that holds a score for each task and label.
CROWD_KIT = {
    "dawid-skene": ("DawidSkene", "probas_"),
    "one-coin-dawid-skene": ("OneCoinDawidSkene", "probas_"),
    "glad": ("GLAD", "probas_"),
    "mace": ("MACE", "probas_"),
    "m-msr": ("MMSR", "scores_"),
}
METHODS = (MAJORITY, *CROWD_KIT)
TIE = 1e-9  # relative difference from the best score up to which labels tie


class CrowdKitMissingError(ImportError):
    """crowd-kit is not installed."""


def crowd_kit() -> Any:
    """Import crowd-kit's aggregators, which takes seconds, only where they are needed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import crowdkit.aggregation
    except ImportError as error:
        raise CrowdKitMissingError(
            'this needs crowd-kit, which is not installed: pip install "polyfid[crowd]", or take '
            'aggregate="majority"'
        ) from error
    return crowdkit.aggregation


def fit_crowd_kit(answers: Answers, method: str, random_state: RandomState) -> Any:
    """Fit an aggregator of crowd-kit, for which tasks, workers and labels are their positions."""
    name, scores = CROWD_KIT[method]
    options = {}
    if method == "mace":  # one start: with a seed, all of its restarts are the same
        options = {"random_state": int(random_state.randint(2**31 - 1)), "n_restarts": 1}
    columns = {"task": answers.task, "worker": answers.worker, "label": answers.label}
    aggregator = getattr(crowd_kit(), name)(**options)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its use of pandas is deprecated in many places
            aggregator.fit_predict(pd.DataFrame(columns))
        if not np.isfinite(getattr(aggregator, scores).to_numpy(dtype=float)).all():
            raise ValueError("scores are not finite")
    except Exception as error:  # it raises all kinds of errors on few or unusual answers
        raise ValueError(
            f"crowd-kit's {name} failed on these {len(answers)} answers "
            f"({type(error).__name__}: {error}); choose another method, such as "
            'aggregate="majority"'
        ) from error
    return aggregator


def score(answers: Answers, method: str, random_state: RandomState) -> Array:
    """A score for each task and class, (tasks, classes); all zero for tasks without answers."""
    votes = answers.votes()
    # If all answers are the same, some aggregators divide by zero.
    if method == MAJORITY or np.count_nonzero(votes.any(axis=0)) < 2:
        return votes
    fitted = fit_crowd_kit(answers, method, random_state)
    table: pd.DataFrame = getattr(fitted, CROWD_KIT[method][1])
    scores = np.zeros_like(votes)
    scores[np.ix_(table.index.to_numpy(), table.columns.to_numpy())] = table.to_numpy(dtype=float)
    return scores


def choose(
    scores: Array, answered: NDArray[np.bool_], ties: Ties, random_state: RandomState
) -> tuple[Indices, Indices, Array]:
    """The best class of each task that was answered: positions of task and class, and weights.

    If k classes tie, one of them is drawn, or all are returned with weights of 1/k.
    """
    best = scores.max(axis=1, keepdims=True)
    tied = (scores >= best - TIE * np.abs(best)) & answered[:, None]
    if ties == "draw":
        # One number per task, used or not: a task's draw does not depend on ties elsewhere.
        lot = random_state.uniform(size=len(scores))
        wanted = (lot * tied.sum(axis=1)).astype(np.intp)  # which of the classes that tie
        tied &= np.cumsum(tied, axis=1) == wanted[:, None] + 1
    task, label = np.nonzero(tied)
    return task, label, 1.0 / tied.sum(axis=1)[task]
