"""How often annotators are right, and groups of annotators of similar skill."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from polyfid.arrays import Array, Indices
from polyfid.crowd.aggregation import CrowdKitMissingError, fit_crowd_kit
from polyfid.crowd.answers import Answers, read_answers
from polyfid.crowd.long_form import Form

LEAST_GOLD = 5  # trusted tasks that an annotator must have answered to be judged by them alone
OTHERS = 10.0  # number of trusted labels that the answers of other annotators count as
LEAST_ERROR = 1e-6  # lower bound of the probability of an answer given the true class


def workers(
    answers: Any,
    gold: Any = None,
    *,
    form: Form | None = None,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
) -> pd.DataFrame:
    """Estimate how often each annotator is right.

    Parameters
    ----------
    answers : path, or pandas or polars DataFrame
        Long or wide; see `to_long`.
    gold : path or DataFrame, optional
        Trusted labels, with columns ``task`` and ``label``.
    form : {"long", "wide"}, optional
        The form of the answers; see `to_long`.
    task, worker, label : str
        Names of the columns.

    Returns
    -------
    DataFrame
        One row per annotator, the least skilled first: ``worker``, ``n`` (answers),
        ``agreement_majority``, ``n_gold`` (answers to tasks with a trusted label),
        ``agreement_gold``, ``skill`` (estimated share of right answers) and ``skill_from``, what
        it was estimated from. Shares that cannot be estimated are missing.

    Notes
    -----
    The majority is that of the other annotators of a task; of k labels that tie, each counts 1/k.

    The skill is a weighted mean of two estimates. The first is the mean probability of the
    annotator's answers given those of the other annotators, under the model of Dawid and Skene
    [1]_, fitted by crowd-kit; it counts as much as 10 trusted labels. Without crowd-kit it is the
    agreement with the majority, and a warning says so. The second is the agreement with gold. If
    nobody else answered an annotator's tasks, the skill is the agreement with gold, provided that
    gold has at least 5 of these tasks.

    References
    ----------
    .. [1] Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM
       algorithm", 1979.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import workers
    >>> answers = pd.DataFrame(
    ...     {
    ...         "song": [1, 2, 3, 4],
    ...         "ann": ["a", "b", "a", "b"],
    ...         "bob": ["a", "b", "a", "b"],
    ...         "cy": ["b", "a", "a", "b"],
    ...     }
    ... )
    >>> workers(answers)[["worker", "n", "agreement_majority"]]
      worker  n  agreement_majority
    0     cy  4                0.50
    1    ann  4                0.75
    2    bob  4                0.75
    """
    columns = {"task": task, "worker": worker, "label": label}
    skills = estimate_skills(read_answers(answers, gold, form, columns))
    return skills.sort_values("skill", kind="stable", ignore_index=True)


def estimate_skills(answers: Answers) -> pd.DataFrame:
    """The table of `workers`, in the order of the annotators' names."""
    gold = answers.gold[answers.task]
    right = np.where(gold < 0, np.nan, gold == answers.label)
    by_gold, n_gold = _mean_by_worker(answers, right)
    by_majority, _ = _mean_by_worker(answers, _agreement_with_others(answers))
    by_others, method = _skill_by_others(answers, by_majority)
    alone = np.isnan(by_others)
    skill = (n_gold * np.nan_to_num(by_gold) + OTHERS * by_others) / (n_gold + OTHERS)
    skill[alone] = np.where(n_gold >= LEAST_GOLD, by_gold, np.nan)[alone]
    source = np.full(len(skill), method, dtype=object)
    source[n_gold > 0] = f"{method} and gold"
    source[alone] = "gold"
    source[np.isnan(skill)] = None
    return pd.DataFrame(
        {
            "worker": answers.workers,
            "n": np.bincount(answers.worker, minlength=len(answers.workers)),
            "agreement_majority": by_majority,
            "n_gold": n_gold,
            "agreement_gold": by_gold,
            "skill": skill,
            "skill_from": source,
        }
    )


def group_by_skill(skills: pd.DataFrame, n_groups: int) -> Indices:
    """The group of each annotator, from 0, the least skilled; about as many answers in each.

    Annotators of equal skill are in one group. Those of unknown skill count as average.
    """
    skill, n = skills["skill"].to_numpy(), skills["n"].to_numpy()
    known = ~np.isnan(skill)
    if not known.any():
        raise ValueError(
            "level='skill' needs tasks that several annotators answered, or trusted labels for "
            f"at least {LEAST_GOLD} tasks of an annotator; there are none. Pass level='answer'"
        )
    skill = np.where(known, skill, np.average(skill[known], weights=n[known]))
    # Rounded, so that a skill does not depend on the order of summation.
    steps, step = np.unique(skill.round(9), return_inverse=True)
    if len(steps) < n_groups:
        raise ValueError(
            f"n_groups must be at most the number of different skills, which is {len(steps)} "
            f"among {len(skill)} annotators, got {n_groups}; pass a smaller number"
        )
    return _cut(np.bincount(step, n).astype(float), n_groups)[step]


def _skill_by_others(answers: Answers, by_majority: Array) -> tuple[Array, str]:
    """Skills that the answers of other annotators suggest, and the method."""
    try:
        return _mean_by_worker(answers, _probability_given_others(answers))[0], "dawid-skene"
    except CrowdKitMissingError:
        warnings.warn(
            "crowd-kit is not installed: skills are agreements with the majority of the other "
            'annotators, a rougher guess; pip install "polyfid[crowd]"',
            UserWarning,
            stacklevel=4,
        )
        return by_majority, "majority"


def _mean_by_worker(answers: Answers, values: Array) -> tuple[Array, Indices]:
    """The mean of the values of each annotator's answers that are not missing, and their number."""
    known = ~np.isnan(values)
    n = np.bincount(answers.worker[known], minlength=len(answers.workers))
    total = np.bincount(answers.worker[known], values[known], minlength=len(answers.workers))
    return np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0), n


def _agreement_with_others(answers: Answers) -> Array:
    """Whether each answer is that of the majority of the others; missing where there are none."""
    votes = answers.votes()[answers.task]
    own = np.arange(len(answers)), answers.label
    votes[own] -= 1.0
    best = votes == votes.max(axis=1, keepdims=True)
    return np.where(votes.any(axis=1), best[own] / best.sum(axis=1), np.nan)


def _probability_given_others(answers: Answers) -> Array:
    """The probability of each answer given the others; missing where there are none."""
    alone = answers.votes().sum(axis=1)[answers.task] < 2.0
    if np.ptp(answers.label) == 0:
        return np.where(alone, np.nan, 1.0)
    fitted = fit_crowd_kit(answers, "dawid-skene", check_random_state(0))
    classes = fitted.probas_.columns
    errors = fitted.errors_.reindex(columns=classes)
    mine = errors.index.get_indexer(pd.MultiIndex.from_arrays([answers.worker, answers.label]))
    of_task = fitted.probas_.index.get_indexer(answers.task)
    # The posterior of the true class without the factor that the answer itself contributed.
    weight = fitted.probas_.to_numpy()[of_task] / np.maximum(errors.to_numpy()[mine], LEAST_ERROR)
    weight /= weight.sum(axis=1, keepdims=True)
    own = weight[np.arange(len(answers)), classes.get_indexer(answers.label)]
    return np.where(alone, np.nan, own)


def _cut(sizes: Array, n_groups: int) -> Indices:
    """Divide a list of sizes into runs of about equal sums; the number of the run of each size."""
    total = np.cumsum(sizes)
    ends = [0]
    for g in range(1, n_groups):
        # At least one size for this group and for each that follows.
        candidates = np.arange(ends[-1] + 1, len(sizes) - (n_groups - g) + 1)
        off = np.abs(total[candidates - 1] - total[-1] * g / n_groups)
        ends.append(int(candidates[np.argmin(off)]))
    return np.searchsorted(ends, np.arange(len(sizes)), side="right") - 1
