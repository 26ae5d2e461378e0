"""What annotators who answered the same tasks say together: labels of tasks and their own skill."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.random import RandomState
from sklearn.utils import check_random_state

from polyfid.arrays import Array, Indices
from polyfid.crowd.answers import Answers, Form, read_answers

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
TIE = 1e-9  # relative difference from the best score up to which labels tie
LEAST_GOLD = 5  # trusted tasks that an annotator must have answered to be judged by them alone
OTHERS = 10.0  # number of trusted labels that the answers of other annotators count as
LEAST_ERROR = 1e-6  # lower bound of the probability of an answer given the true class


def workers(
    answers: Any,
    gold: Any = None,
    *,
    form: Form | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
) -> pd.DataFrame:
    """Estimate how often each annotator is right.

    Parameters
    ----------
    answers, gold, form, task, worker, label
        As for `to_rows`.

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
    (1979), fitted by crowd-kit; it counts as much as 10 trusted labels. Without crowd-kit it is the
    agreement with the majority, and a warning says so. The second is the agreement with gold; it
    is the skill, from 5 trusted labels on, where nobody else answered an annotator's tasks.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import workers
    >>> said = {"ann": list("abab"), "bob": list("abab"), "cy": list("baab")}
    >>> workers(pd.DataFrame({"song": [1, 2, 3, 4], **said}))[["worker", "n", "agreement_majority"]]
      worker  n  agreement_majority
    0     cy  4                0.50
    1    ann  4                0.75
    2    bob  4                0.75
    """
    columns = {"task": task, "worker": worker, "label": label}
    skills = estimate_skills(read_answers(answers, gold, form, columns))
    return skills.sort_values("skill", kind="stable", ignore_index=True)


def aggregate_answers(
    answers: Answers, method: str, ties: Ties, random_state: RandomState
) -> tuple[Indices, Indices, Array]:
    """The best class of each task that was answered: positions of task and class, and weights.

    If k classes tie, one of them is drawn, or all are returned with weights of 1/k.
    """
    votes = scores = answers.votes()
    # If all answers are the same, some aggregators divide by zero.
    if method != MAJORITY and np.count_nonzero(votes.any(axis=0)) > 1:
        fitted = _fit_crowd_kit(answers, method, random_state)
        table = getattr(fitted, CROWD_KIT[method][1])
        scores = np.zeros_like(votes)
        scores[np.ix_(table.index, table.columns)] = table.to_numpy(dtype=float)
    best = scores.max(axis=1, keepdims=True)
    tied = (scores >= best - TIE * np.abs(best)) & votes.any(axis=1, keepdims=True)
    if ties == "draw":
        # One number per task, used or not: a task's draw does not depend on ties elsewhere.
        lot = random_state.uniform(size=len(scores))
        wanted = (lot * tied.sum(axis=1)).astype(np.intp)  # which of the classes that tie
        tied &= np.cumsum(tied, axis=1) == wanted[:, None] + 1
    task, label = np.nonzero(tied)
    return task, label, 1.0 / tied.sum(axis=1)[task]


def _fit_crowd_kit(answers: Answers, method: str, random_state: RandomState) -> Any:
    """Fit an aggregator of crowd-kit, for which tasks, workers and labels are their positions."""
    name, scores = CROWD_KIT[method]
    options = {}
    if method == "mace":  # one start: with a seed, all of its restarts are the same
        options = {"random_state": int(random_state.randint(2**31 - 1)), "n_restarts": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its use of pandas is deprecated in many places
        try:
            import crowdkit.aggregation  # takes seconds, hence only where it is needed
        except ImportError as error:
            raise ImportError(
                'this needs crowd-kit, which is not installed: pip install "polyfid[crowd]", or '
                'take aggregate="majority"'
            ) from error
        columns = {"task": answers.task, "worker": answers.worker, "label": answers.label}
        aggregator = getattr(crowdkit.aggregation, name)(**options)
        try:
            aggregator.fit_predict(pd.DataFrame(columns))
            if not np.isfinite(getattr(aggregator, scores).to_numpy(dtype=float)).all():
                raise ValueError("scores are not finite")
        except Exception as error:  # it raises all kinds of errors on few or unusual answers
            raise ValueError(
                f"crowd-kit's {name} failed on these {len(answers.task)} answers "
                f"({type(error).__name__}: {error}); choose another method, such as "
                'aggregate="majority"'
            ) from error
    return aggregator


def estimate_skills(answers: Answers) -> pd.DataFrame:
    """The table of `workers`, in the order of the annotators' names."""
    gold = answers.gold[answers.task]
    right = np.where(gold < 0, np.nan, gold == answers.label)
    by_majority = agreement_with_others(answers)
    try:
        by_others, method = _probability_given_others(answers), "dawid-skene"
    except ImportError:
        warnings.warn(
            "crowd-kit is not installed: skills are agreements with the majority of the other "
            'annotators, a rougher guess; pip install "polyfid[crowd]"',
            UserWarning,
            stacklevel=3,
        )
        by_others, method = by_majority, MAJORITY
    shares = pd.DataFrame({"gold": right, "majority": by_majority, "others": by_others})
    by_worker = shares.groupby(answers.worker)  # who all have answers
    n_gold, mean = by_worker["gold"].count(), by_worker.mean()
    alone = mean["others"].isna()
    skill = (n_gold * mean["gold"].fillna(0.0) + OTHERS * mean["others"]) / (n_gold + OTHERS)
    skill = skill.mask(alone, mean["gold"].where(n_gold >= LEAST_GOLD))
    sources: list[Any] = [None, "gold", f"{method} and gold"]
    return pd.DataFrame(
        {
            "worker": answers.workers,
            "n": by_worker.size(),
            "agreement_majority": mean["majority"],
            "n_gold": n_gold,
            "agreement_gold": mean["gold"],
            "skill": skill,
            "skill_from": np.select([skill.isna(), alone, n_gold > 0], sources, method),
        }
    )


def group_by_skill(answers: Answers, n_groups: int) -> tuple[Indices, Array]:
    """The group of each annotator, from 0, the least skilled, and the skills.

    There are about as many answers in each group.

    Annotators of equal skill are in one group. Those of unknown skill count as average.
    """
    skills = estimate_skills(answers)
    skill, n = skills["skill"].to_numpy(), skills["n"].to_numpy()
    rated = ~np.isnan(skill)
    if not rated.any():
        raise ValueError(
            "level='skill' needs tasks that several annotators answered, or trusted labels for "
            f"at least {LEAST_GOLD} tasks of an annotator; there are none. Pass level='answer'"
        )
    skill = np.where(rated, skill, np.average(skill[rated], weights=n[rated]))
    # Rounded, so that a skill does not depend on the order of summation.
    steps, step = np.unique(skill.round(9), return_inverse=True)
    if len(steps) < n_groups:
        raise ValueError(
            f"n_groups must be at most the number of different skills, which is {len(steps)} "
            f"among {len(skill)} annotators, got {n_groups}; pass a smaller number"
        )
    total = np.cumsum(np.bincount(step, n))
    ends = [0]
    for g in range(1, n_groups):
        # At least one skill for this group and for each that follows.
        candidates = np.arange(ends[-1] + 1, len(steps) - (n_groups - g) + 1)
        off = np.abs(total[candidates - 1] - total[-1] * g / n_groups)
        ends.append(int(candidates[np.argmin(off)]))
    return np.searchsorted(ends, step, side="right") - 1, skill


def agreement_with_others(answers: Answers) -> Array:
    """Whether each answer is that of the majority of the others; missing where there are none."""
    votes = answers.votes()[answers.task]
    own = np.arange(len(answers.task)), answers.label
    votes[own] -= 1.0
    best = votes == votes.max(axis=1, keepdims=True)
    return np.where(votes.any(axis=1), best[own] / best.sum(axis=1), np.nan)


def _probability_given_others(answers: Answers) -> Array:
    """The probability of each answer given the others; missing where there are none."""
    alone = answers.votes().sum(axis=1)[answers.task] < 2.0
    if np.ptp(answers.label) == 0:
        return np.where(alone, np.nan, 1.0)
    fitted = _fit_crowd_kit(answers, "dawid-skene", check_random_state(0))
    classes = fitted.probas_.columns
    errors = fitted.errors_.reindex(columns=classes)
    mine = errors.index.get_indexer(pd.MultiIndex.from_arrays([answers.worker, answers.label]))
    of_task = fitted.probas_.index.get_indexer(answers.task)
    # The posterior of the true class without the factor that the answer itself contributed.
    weight = fitted.probas_.to_numpy()[of_task] / np.maximum(errors.to_numpy()[mine], LEAST_ERROR)
    weight /= weight.sum(axis=1, keepdims=True)
    own = weight[np.arange(len(answers.task)), classes.get_indexer(answers.label)]
    return np.where(alone, np.nan, own)
