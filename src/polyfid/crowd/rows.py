"""Items, answers and trusted labels as one tidy table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polyfid.crowd.aggregation import MAJORITY, METHODS, Ties, choose, score
from polyfid.crowd.answers import Answers, Gold, Index, read_answers
from polyfid.crowd.columns import (
    as_frame,
    as_ids,
    in_order,
    listing,
    pick,
    places,
    read_ids,
    row_of,
    titled,
)
from polyfid.crowd.forms import Form, to_long
from polyfid.crowd.skill import Skills

Level = Literal["answer", "majority", "skill"]

GOLD = "gold"


def to_rows(
    items: Any,
    answers: Any,
    gold: Any = None,
    *,
    level: Level = "answer",
    ties: Ties = "draw",
    n_groups: int = 2,
    aggregate: str | None = None,
    random_state: int | RandomState | None = 0,
    item_id: str = "id",
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
    form: Form | None = None,
) -> pd.DataFrame:
    """Join items, answers of annotators and trusted labels into one table of levels.

    Parameters
    ----------
    items : pandas or polars DataFrame
        One row an item: its id and its features. Items without any label give no row.
    answers : DataFrame
        Long or wide; see `to_long`. Tasks are ids of items; 7, 7.0 and "7" are the same.
    gold : DataFrame, optional
        Trusted labels, with columns ``task`` and ``label``: the top level.
    level : {"answer", "majority", "skill"}
        "answer": each answer is a row of the level "crowd". "majority": the answers to an item
        become one row of the level "crowd", by majority. "skill": the annotators fall into
        ``n_groups`` levels "crowd-1" (the least skilled), "crowd-2", …, each answer is a row.
    ties : {"draw", "split"}
        Where several labels are as good as each other, draw one of k or take all of them as rows of
        weight 1/k.
    n_groups : int
        Levels for ``level="skill"``. Each has about as many answers; see `workers` for the skill.
    aggregate : str, optional
        Make the answers of a level to an item one row: "majority", or by crowd-kit "dawid-skene",
        "one-coin-dawid-skene", "glad", "mace" or "m-msr".
    random_state : int, RandomState or None
        For ties that are drawn, and for "mace".
    item_id : str
        The column of ``items`` with the ids.
    task, worker, label : str
        Columns of ``answers`` and ``gold``.
    form : {"long", "wide"}, optional
        The form of ``answers``; see `to_long`.

    Returns
    -------
    DataFrame
        The id, the features, ``label``, ``fidelity`` (an ordered categorical, least trusted
        first, trusted labels being the level "gold"), ``weight``, and with ``level="answer"`` and
        no ``aggregate`` also ``worker``, "gold" for trusted labels. Rows are sorted by level, id
        and annotator, whatever the order of the tables.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import to_rows
    >>> items = pd.DataFrame({"id": [1, 2], "tempo": [90.0, 120.0]})
    >>> answers = pd.DataFrame({"song": [1, 2], "ann": ["jazz", "rock"], "bob": ["jazz", "pop"]})
    >>> gold = pd.DataFrame({"task": [2], "label": ["rock"]})
    >>> to_rows(items, answers, gold, level="majority", ties="split")
       id  tempo label fidelity  weight
    0   1   90.0  jazz    crowd     1.0
    1   2  120.0   pop    crowd     0.5
    2   2  120.0  rock    crowd     0.5
    3   2  120.0  rock     gold     1.0
    """
    method = _check_options(level, ties, n_groups, aggregate)
    rng = check_random_state(random_state)
    listed = _read_items(items, item_id)
    long = to_long(answers, form=form, task=task, worker=worker, label=label)
    columns = {"task": task, "worker": worker, "label": label}
    read, trusted = read_answers(long, gold, columns, titled(answers, "answers"))
    _refuse_unknown(answers, "answers", read.tasks, listed.ids, task, item_id)
    _refuse_unknown(gold, "gold", trusted.tasks, listed.ids, task, item_id)
    names, group = ["crowd"], np.zeros(len(read.workers), dtype=np.intp)
    if level == "skill":
        names = [f"crowd-{g + 1}" for g in range(n_groups)]
        group = Skills.of(read, trusted).groups(n_groups)
    parts = _crowd_rows(read, group, method, ties, rng)
    if gold is not None:
        parts.append(_gold_rows(trusted, len(names)))
        names.append(GOLD)
    return _table(listed, parts, read.classes, names, with_worker=level == "answer" and not method)


def _check_options(level: Any, ties: Any, n_groups: Any, aggregate: Any) -> str | None:
    """Complain about options; the method of aggregation, None for a row an answer."""
    for name, value, choices in (
        ("level", level, ("answer", "majority", "skill")),
        ("ties", ties, ("draw", "split")),
        ("aggregate", aggregate, (None, *METHODS)),
    ):
        if value not in choices:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}"
            )
    if isinstance(n_groups, bool) or not isinstance(n_groups, Integral) or n_groups < 1:
        raise ValueError(f"n_groups must be an integer from 1, got {n_groups!r}")
    if level != "majority":
        return aggregate
    if aggregate not in (None, MAJORITY):
        raise ValueError(
            f"level='majority' aggregates by majority and aggregate is {aggregate!r}; pass "
            f"level='answer', aggregate={aggregate!r}"
        )
    return MAJORITY


class _Items(NamedTuple):
    """Items in the order of their ids: these as text, and the table with the id first."""

    ids: list[str]
    table: pd.DataFrame


def _read_items(items: Any, item_id: str) -> _Items:
    frame = as_frame(items, "items")
    pick(frame, "items", {"item_id": item_id})
    ids = read_ids(frame, "items", item_id).tolist()
    repeated = [i for i, n in Counter(ids).items() if n > 1]
    if len(repeated):
        second = [k for k, i in enumerate(ids) if i == repeated[0]][1]
        raise ValueError(
            f"{titled(frame, 'items')}, column {item_id!r}: {listing(repeated)} occur several "
            f"times, the first of them again in {row_of(frame, second)}; keep one row an item"
        )
    taken = [name for name in ("label", "fidelity", "weight", "worker") if name in frame.columns]
    if taken:
        raise ValueError(
            f"{titled(frame, 'items')} has columns {listing(taken)}, which are names of the "
            "columns to be added; rename them, or drop them if they are not features"
        )
    order = in_order(ids)
    features = [c for c in frame.columns if c != item_id]
    return _Items(order, frame.iloc[places(order, ids)][[item_id, *features]])


def _refuse_unknown(
    table: Any, name: str, tasks: Sequence[str], ids: Sequence[str], task: str, item_id: str
) -> None:
    unknown = in_order(set(tasks).difference(ids))
    if unknown:
        frame = as_frame(table, name)
        about = frame[task] if task in frame.columns else frame.iloc[:, 0]
        row = row_of(frame, int(np.argmax(as_ids(about) == unknown[0])))
        raise ValueError(
            f"{titled(frame, name)} has {len(unknown)} of {len(tasks)} tasks that are no items: "
            f"{listing(unknown)}; see column {about.name!r}, {row}. Ids of items, column "
            f"{item_id!r}, are such as {listing(ids[:2])}; add them to items, or drop their rows"
        )


class _Part(NamedTuple):
    """Some rows of the result."""

    task: NDArray[np.object_]
    label: Index
    level: Index
    weight: NDArray[np.float64]
    worker: NDArray[np.object_]


def _crowd_rows(
    answers: Answers, group: Index, method: str | None, ties: Ties, rng: RandomState
) -> list[_Part]:
    tasks = np.array(answers.tasks, dtype=object)
    group_of = group[answers.worker]
    parts = []
    for g in range(int(group.max()) + 1):
        some = answers.take(group_of == g)
        if method is None:
            by = np.array(answers.workers, dtype=object)[some.worker]
            task, label, weight = some.task, some.label, np.ones(len(some))
        else:
            answered = np.bincount(some.task, minlength=len(tasks)) > 0
            task, label, weight = choose(score(some, method, rng), answered, ties, rng)
            by = np.full(len(task), method, dtype=object)
        parts.append(_Part(tasks[task], label, np.full(len(task), g), weight, by))
    return parts


def _gold_rows(gold: Gold, level: int) -> _Part:
    n = len(gold.tasks)
    return _Part(
        np.array(gold.tasks, dtype=object),
        gold.label,
        np.full(n, level),
        np.ones(n),
        np.full(n, GOLD, dtype=object),
    )


def _table(
    items: _Items, parts: list[_Part], classes: NDArray[Any], names: list[str], with_worker: bool
) -> pd.DataFrame:
    joined = _Part(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    place = places(joined.task, items.ids)
    # Tasks are in the order of their own ids, which may be whole numbers where not all items' are.
    order = np.lexsort((place, joined.level))  # rows of the same item keep their order
    table = items.table.iloc[place[order]].reset_index(drop=True)
    added: dict[str, Any] = {
        "label": classes[joined.label[order]],
        "fidelity": pd.Categorical.from_codes(joined.level[order], pd.Index(names), ordered=True),
        "weight": joined.weight[order],
    }
    if with_worker:
        added["worker"] = joined.worker[order]
    return pd.concat([table, pd.DataFrame(added)], axis=1)
