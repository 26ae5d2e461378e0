"""How often annotators are right, and groups of them by that."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polyfid.arrays import Array
from polyfid.crowd.aggregation import CrowdKitMissingError, fit_crowd_kit
from polyfid.crowd.answers import Answers, Gold, Index, read_answers
from polyfid.crowd.columns import places
from polyfid.crowd.forms import Form, to_long

LEAST_GOLD = 5  # trusted tasks that an annotator must have answered to be judged by them alone
OTHERS = 10.0  # trusted tasks that what other annotators say is worth
LEAST_ERROR = 1e-6  # share of a confusion; keeps an answer from being impossible


def workers(
    answers: Any,
    gold: Any = None,
    *,
    form: Form | None = None,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
) -> pd.DataFrame:
    """Say how far each annotator can be relied on.

    Parameters
    ----------
    answers : pandas or polars DataFrame
        Long or wide; see `to_long`.
    gold : DataFrame, optional
        Trusted labels, with columns ``task`` and ``label``.
    form : {"long", "wide"}, optional
        The form of the answers; see `to_long`.
    task, worker, label : str
        Names of the columns.

    Returns
    -------
    DataFrame
        One row an annotator, the least skilled first: ``worker``, ``n`` (answers),
        ``agreement_majority``, ``n_gold`` (answers to tasks with a trusted label),
        ``agreement_gold``, ``skill`` (estimated share of right answers) and ``skill_from``, what
        it was estimated from. Shares that nothing is known about are missing.

    Notes
    -----
    The majority is that of the other annotators of a task; of k labels that tie, each counts 1/k.

    The skill is first, over the tasks that others answered as well, the mean probability of the
    annotator's answer given theirs, by the model of Dawid and Skene [1]_ which crowd-kit fits.
    Without crowd-kit it is the agreement with the majority, and a warning says so. Trusted labels
    correct it: it counts as much as 10 of them. Where nobody else answered an annotator's tasks,
    the skill is the agreement with gold if that has at least 5 of them.

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
    long = to_long(answers, form=form, task=task, worker=worker, label=label)
    read, trusted = read_answers(long, gold, {"task": task, "worker": worker, "label": label})
    skills = Skills.of(read, trusted)
    table = pd.DataFrame(
        {
            "worker": read.workers,
            "n": skills.n,
            "agreement_majority": skills.majority,
            "n_gold": skills.n_gold,
            "agreement_gold": skills.gold,
            "skill": skills.skill,
            "skill_from": skills.source,
        }
    )
    return table.sort_values("skill", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class Skills:
    """What is known about annotators, in the order of their names."""

    n: Index
    majority: Array
    n_gold: Index
    gold: Array
    skill: Array
    source: NDArray[np.object_]

    @classmethod
    def of(cls, answers: Answers, gold: Gold) -> Skills:
        """Skills by other annotators and trusted labels."""
        place = places(answers.tasks, gold.tasks)[answers.task]
        known = place >= 0
        right = np.full(len(answers), np.nan)
        right[known] = gold.label[place[known]] == answers.label[known]
        by_gold, n_gold = _mean_by_worker(answers, right)
        by_majority, _ = _mean_by_worker(answers, _agreement_with_others(answers))
        by_others, source = _by_others(answers, by_majority)
        skill = (n_gold * np.nan_to_num(by_gold) + OTHERS * by_others) / (n_gold + OTHERS)
        alone = np.isnan(by_others)
        skill[alone] = np.where(n_gold >= LEAST_GOLD, by_gold, np.nan)[alone]
        sources = np.full(len(skill), source, dtype=object)
        sources[n_gold > 0] = f"{source} and gold"
        sources[alone] = "gold"
        sources[np.isnan(skill)] = None
        n = np.bincount(answers.worker, minlength=len(answers.workers))
        return cls(n, by_majority, n_gold, by_gold, skill, sources)

    def groups(self, n_groups: int) -> Index:
        """The group of each annotator, from 0, the least skilled; about as many answers in each.

        Annotators of equal skill are in one group. Those nothing is known about are taken to be
        of average skill.
        """
        known = ~np.isnan(self.skill)
        if not known.any():
            raise ValueError(
                "level='skill' needs tasks that several annotators answered, or trusted labels for "
                f"at least {LEAST_GOLD} tasks of an annotator; there are none. Pass level='answer'"
            )
        skill = np.where(known, self.skill, np.average(self.skill[known], weights=self.n[known]))
        # Rounded, so that a skill does not depend on the order of summation.
        steps, step = np.unique(skill.round(9), return_inverse=True)
        if len(steps) < n_groups:
            raise ValueError(
                f"n_groups must be at most the number of different skills, which is {len(steps)} "
                f"among {len(skill)} annotators, got {n_groups}; pass less"
            )
        return _cut(np.bincount(step, self.n).astype(float), n_groups)[step]


def _by_others(answers: Answers, by_majority: Array) -> tuple[Array, str]:
    try:
        return _mean_by_worker(answers, _probability_given_others(answers))[0], "dawid-skene"
    except CrowdKitMissingError:
        warnings.warn(
            "crowd-kit is not installed: skills are agreements with the majority of the other "
            'annotators, a rougher guess; pip install "polyfid[crowd]"',
            UserWarning,
            stacklevel=5,
        )
        return by_majority, "majority"


def _mean_by_worker(answers: Answers, values: Array) -> tuple[Array, Index]:
    """The mean of what is known about each annotator's answers, and the number of those."""
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


def _cut(sizes: Array, n_groups: int) -> Index:
    """The group of each of some sizes in a row: runs that add up to about as much each."""
    total = np.cumsum(sizes)
    ends = [0]
    for g in range(1, n_groups):
        # Something is left for this group and for each that follows.
        candidates = np.arange(ends[-1] + 1, len(sizes) - (n_groups - g) + 1)
        off = np.abs(total[candidates - 1] - total[-1] * g / n_groups)
        ends.append(int(candidates[np.argmin(off)]))
    return np.searchsorted(ends, np.arange(len(sizes)), side="right") - 1
