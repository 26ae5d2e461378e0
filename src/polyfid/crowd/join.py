"""Items, answers and trusted labels joined into one table of labelled rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.random import RandomState
from sklearn.utils import check_random_state

from polyfid.crowd.answers import COMMON_NAMES, Form, SourceTable, positions, read_answers
from polyfid.crowd.consensus import CROWD_KIT, MAJORITY, Ties, aggregate_answers, group_by_skill
from polyfid.tables import RowPlaces
from polyfid.tables.column import read_ids, sorted_names
from polyfid.text import name_few

Level = Literal["answer", "majority", "skill"]

GOLD = "gold"
ADDED = ("label", "fidelity", "weight", "worker")  # columns beside those of the items


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
    item_id: str | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    form: Form | None = None,
) -> pd.DataFrame:
    """Join items, answers of annotators and trusted labels into one table of labelled rows.

    Parameters
    ----------
    items : path, or pandas or polars DataFrame
        One row per item: its id and its features. Items without any label give no row.
    answers : path or DataFrame
        Long or wide; see `to_long`. Tasks are ids of items; 7, 7.0 and "7" are the same.
    gold : path or DataFrame, optional
        Trusted labels, with columns ``task`` and ``label``: the top level.
    level : {"answer", "majority", "skill"}
        "answer": each answer is a row of the level "crowd". "majority": the answers to an item
        become one row of the level "crowd", by majority. "skill": annotators are divided into
        ``n_groups`` levels "crowd-1" (the least skilled), "crowd-2", …; each answer is a row.
    ties : {"draw", "split"}
        Where k labels are equally good, draw one, or take all as rows of weight 1/k.
    n_groups : int
        Number of levels for ``level="skill"``, with about equally many answers in each.
    aggregate : str, optional
        Merge the answers of a level to an item into one row: by "majority", or by crowd-kit's
        "dawid-skene", "one-coin-dawid-skene", "glad", "mace" or "m-msr".
    random_state : int, RandomState or None
        For ties that are drawn, and for "mace".
    item_id : str, optional
        The column of ``items`` with the ids; by default ``id``, or one with another of the names
        by which `to_long` recognises tasks.
    task, worker, label : str, optional
        Columns of ``answers`` and ``gold``; see `to_long`.
    form : {"long", "wide"}, optional
        The form of ``answers``; see `to_long`.

    Returns
    -------
    DataFrame
        The id, the features, ``label``, ``fidelity`` (an ordered categorical, least trusted
        first; trusted labels have the level "gold"), ``weight``, and with ``level="answer"`` and
        no ``aggregate`` also ``worker``, which is "gold" for trusted labels. Rows are sorted by
        level, id and annotator, whatever the order of the tables. With ``level="skill"``,
        ``attrs["groups"]`` lists the annotators of each group, the least skilled first.

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
    features, ids, places = read_items(items, item_id)
    columns = {"task": task, "worker": worker, "label": label}
    read = read_answers(answers, gold, form, columns, ids)
    names, group = ["crowd"], np.zeros(len(read.workers), dtype=np.intp)
    skills = np.zeros(len(read.workers))
    if level == "skill":
        names = [f"crowd-{g + 1}" for g in range(n_groups)]
        group, skills = group_by_skill(read, n_groups)
    crowds = tuple(names)
    parts: list[tuple[Any, ...]] = []
    for g, name in enumerate(names):
        some = read.take(group[read.worker] == g)
        who = np.array(read.workers, dtype=object)[some.worker]
        if method is None:
            parts.append((some.task, some.label, name, 1.0, who))
        else:
            tasks, labels, weights = aggregate_answers(some, method, ties, rng)
            parts.append((tasks, labels, name, weights, method))
    if gold is not None:
        names.append(GOLD)
        trusted = np.flatnonzero(read.gold >= 0)
        parts.append((trusted, read.gold[trusted], GOLD, 1.0, GOLD))
    frames = [pd.DataFrame(dict(zip(("task", *ADDED), part, strict=True))) for part in parts]
    rows = pd.concat(frames, ignore_index=True)
    rows["fidelity"] = pd.Categorical(rows["fidelity"], names, ordered=True)
    rows["label"] = read.classes[rows["label"].to_numpy()]
    if level != "answer" or method is not None:
        rows = rows.drop(columns="worker")
    item = rows.pop("task").to_numpy()
    made = pd.concat([features.iloc[item].reset_index(drop=True), rows], axis=1)
    if places is not None:  # so that messages name the file of the items
        places.taken(pd.Index(features.index[item])).attached_to(made)
    if level == "skill":
        order = np.argsort(skills, kind="stable")
        made.attrs["groups"] = {
            name: [read.workers[w] for w in order if group[w] == g] for g, name in enumerate(crowds)
        }
    return made


def _check_options(level: Any, ties: Any, n_groups: Any, aggregate: Any) -> str | None:
    """Check options; the method of aggregation, None for one row per answer."""
    for name, value, choices in (
        ("level", level, ("answer", "majority", "skill")),
        ("ties", ties, ("draw", "split")),
        ("aggregate", aggregate, (None, MAJORITY, *CROWD_KIT)),
    ):
        if value not in choices:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}"
            )
    if isinstance(n_groups, bool) or not isinstance(n_groups, Integral) or n_groups < 1:
        raise ValueError(f"n_groups must be an integer from 1, got {n_groups!r}")
    if level == "majority" and aggregate not in (None, MAJORITY):
        raise ValueError(
            f"aggregate must be None or 'majority' with level='majority', got {aggregate!r}; pass "
            f"level='answer', aggregate={aggregate!r}"
        )
    return MAJORITY if level == "majority" else aggregate


def read_items(
    items: Any, item_id: str | None
) -> tuple[pd.DataFrame, tuple[str, ...], RowPlaces | None]:
    """Items sorted by id, with the column of ids first, the ids as text, and places in a file."""
    source = SourceTable.read(items, "items")
    item_id = source.find("item_id", item_id) or COMMON_NAMES["item_id"][0]
    source.refuse_gaps(source.cells({"item_id": item_id})[item_id])
    frame, ids = source.frame, pd.Series(read_ids(source.frame, item_id))
    again = ids[ids.duplicated()]
    if len(again):
        problem = f"{name_few(again.unique())} occurred before; keep one row per item"
        raise source.error(problem, again.index[0], item_id)
    if taken := [name for name in ADDED if name in frame]:
        raise source.error(
            f"columns {name_few(taken)} have names of the columns to be added; rename them, or "
            "drop them if they are not features"
        )
    order = sorted_names(ids)
    columns = [item_id, *frame.columns.drop(item_id)]
    places = None if source.places.file is None else source.places
    return frame.iloc[positions(order, ids)][columns], order, places
