"""One label a task out of several answers."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.random import RandomState
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.crowd.answers import Answers, Index

Ties = Literal["draw", "split"]

MAJORITY = "majority"
# What crowd-kit calls them, and the attribute that holds a score for each task and label.
CROWD_KIT = {
    "dawid-skene": ("DawidSkene", "probas_"),
    "one-coin-dawid-skene": ("OneCoinDawidSkene", "probas_"),
    "glad": ("GLAD", "probas_"),
    "mace": ("MACE", "probas_"),
    "m-msr": ("MMSR", "scores_"),
}
METHODS = (MAJORITY, *CROWD_KIT)
TIE = 1e-9  # labels whose scores are as near as this to the best one, relatively, tie with it


class CrowdKitMissingError(ImportError):
    """crowd-kit is not installed."""


def crowd_kit() -> Any:
    """crowd-kit's aggregators; importing them takes seconds, hence only where they are needed."""
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
    """An aggregator of crowd-kit fitted to answers; its names of things are our places."""
    aggregator = getattr(crowd_kit(), CROWD_KIT[method][0])
    options = {}
    if method == "mace":  # one start: with a seed, those that it calls restarts are all the same
        options = {"random_state": int(random_state.randint(2**31 - 1)), "n_restarts": 1}
    columns = {"task": answers.task, "worker": answers.worker, "label": answers.label}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its use of pandas is deprecated in many places
            fitted = aggregator(**options)
            fitted.fit_predict(pd.DataFrame(columns))
    except Exception as error:  # whatever may go wrong in there, on answers too few or too odd
        raise ValueError(
            f"crowd-kit's {CROWD_KIT[method][0]} fails on these {len(answers)} answers "
            f'({type(error).__name__}: {error}); take another one, such as aggregate="majority"'
        ) from error
    return fitted


def score(answers: Answers, method: str, random_state: RandomState) -> Array:
    """A score for each task and class, (tasks, classes); all zero for tasks without answers."""
    votes = answers.votes()
    # Where all agree on one label there is nothing to weigh, and some aggregators divide by zero.
    if method == MAJORITY or np.count_nonzero(votes.sum(axis=0)) < 2:
        return votes
    fitted = fit_crowd_kit(answers, method, random_state)
    table: pd.DataFrame = getattr(fitted, CROWD_KIT[method][1])
    scores = np.zeros_like(votes)
    scores[np.ix_(table.index.to_numpy(), table.columns.to_numpy())] = table.to_numpy(dtype=float)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"crowd-kit's {CROWD_KIT[method][0]} gives no finite scores on these {len(answers)} "
            'answers; take another one, such as aggregate="majority"'
        )
    return scores


def choose(
    scores: Array, answered: NDArray[np.bool_], ties: Ties, random_state: RandomState
) -> tuple[Index, Index, Array]:
    """The best class of each task that was answered, as places of task and class, and weights.

    A tie gives one of the classes, drawn, or all of them as rows that share a weight of 1.
    """
    best = scores.max(axis=1, keepdims=True)
    tied = (scores >= best - TIE * np.abs(best)) & answered[:, None]
    if ties == "draw":
        # One number a task, used or not: a task's draw does not hang on ties elsewhere.
        lot = random_state.uniform(size=len(scores))
        wanted = (lot * tied.sum(axis=1)).astype(np.intp)  # of the classes that tie, which one
        tied &= np.cumsum(tied, axis=1) == wanted[:, None] + 1
    task, label = np.nonzero(tied)
    return task, label, 1.0 / tied.sum(axis=1)[task]
