"""How good each annotator is: agreement with trusted labels and others, and where errors gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import hypergeom

from polyfid.arrays import Array
from polyfid.crowd.answers import Answers, Form, read_answers
from polyfid.crowd.consensus import agreement_with_others
from polyfid.crowd.join import read_items
from polyfid.evaluation.verdict import Estimate
from polyfid.tables import LabelledTable, TableError
from polyfid.tables.column import to_numbers
from polyfid.text import percent

#: Answers to tasks with a trusted label on each side of a median, below which nothing is compared.
LEAST_ON_A_SIDE = 5
SIGNIFICANT = 0.05


def annotators(
    answers: Any,
    gold: Any = None,
    items: Any = None,
    *,
    form: Form | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    item_id: str | None = None,
) -> pd.DataFrame:
    """Report on each annotator: agreement with trusted labels, by class, and with the others.

    Parameters
    ----------
    answers, gold, form, task, worker, label, item_id
        As for `to_rows`.
    items : path or DataFrame, optional
        One row per task with its id and features, to find out where an annotator errs.

    Returns
    -------
    DataFrame
        One row per annotator, the one that agrees least with gold first: ``worker``, ``n``
        (answers), ``n_gold`` (those to tasks with a trusted label), ``agreement_gold``,
        ``agreement_majority`` (that of the others' answers to a task), and how often the answer is
        right by the class of the trusted label. With two classes these are ``sensitivity`` (of the
        class that sorts last) and ``specificity`` (of the other one), with more classes
        ``accuracy_<class>`` for each. Shares of trusted labels come with a 95 % interval by
        Wilson, ``<share>_low`` and ``<share>_high``. Shares of nothing are missing.

        With items there is also ``errs_most``: the side of the median of a feature of numbers on
        which the annotator errs more often than on the other. It is empty unless the difference is
        significant at 5 % after Bonferroni's correction for all features and annotators; of several
        features, the one with the largest difference is named.

        ``attrs["classes"]`` lists the classes as they sort.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import annotators
    >>> said = pd.DataFrame({"song": range(6), "ann": list("ppprrr"), "bob": list("prprrr")})
    >>> gold = pd.DataFrame({"task": range(6), "label": list("ppprrp")})
    >>> table = annotators(said, gold)
    >>> table[["worker", "n", "agreement_gold", "sensitivity", "specificity"]].round(2)
      worker  n  agreement_gold  sensitivity  specificity
    0    bob  6            0.67          1.0         0.50
    1    ann  6            0.83          1.0         0.75
    """
    features, ids = None, None
    if items is not None:
        features, ids, _ = read_items(items, item_id)
    given = {"task": task, "worker": worker, "label": label}
    read = read_answers(answers, gold, form, given, ids)
    truth = read.gold[read.task]
    judged, right = truth >= 0, truth == read.label
    groups = {"agreement_gold": judged}
    classes = read.classes.tolist()
    if len(classes) == 2:
        groups |= {"sensitivity": truth == 1, "specificity": truth == 0}
    else:
        groups |= {f"accuracy_{name}": truth == k for k, name in enumerate(classes)}
    n = len(read.workers)
    columns: dict[str, Any] = {
        "worker": read.workers,
        "n": np.bincount(read.worker, minlength=n),
        "n_gold": np.bincount(read.worker[judged], minlength=n),
    }
    others = pd.Series(agreement_with_others(read)).groupby(read.worker).mean()
    for name, among in groups.items():
        of = np.bincount(read.worker[among], minlength=n)
        hits = np.bincount(read.worker[among & right], minlength=n)
        columns |= _with_interval(name, hits, of)
    columns["agreement_majority"] = others.to_numpy()
    if features is not None:
        columns["errs_most"] = _where_errors_gather(read, features.iloc[:, 1:])
    made = pd.DataFrame(columns).sort_values(
        ["agreement_gold", "agreement_majority"], kind="stable", ignore_index=True
    )
    made.attrs["classes"] = classes
    return made


def answers_of(table: LabelledTable) -> tuple[pd.DataFrame, pd.DataFrame | None, pd.DataFrame]:
    """Answers, trusted labels and items of labelled rows that say who gave each label.

    Answers are the rows below the top level, trusted labels those at the top level. Rows with the
    same id, or, without ids, the same features, are one task.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.crowd import annotators, answers_of
    >>> from polyfid.tables import Roles, read_labelled
    >>> rows = pd.DataFrame({"id": [1, 1, 2, 2, 1, 2], "x": [5, 5, 7, 7, 5, 7]})
    >>> rows["label"], rows["worker"] = list("ababab"), ["ann", "bob", "ann", "bob", "", ""]
    >>> rows["fidelity"] = ["crowd"] * 4 + ["gold"] * 2
    >>> table = read_labelled([rows], Roles(levels=("crowd", "gold")))
    >>> annotators(*answers_of(table))[["worker", "n", "agreement_gold"]]
      worker  n  agreement_gold
    0    ann  2             0.5
    1    bob  2             0.5
    """
    frame = table.features
    task: Any = table.ids
    if task is None:
        codes = pd.DataFrame({name: pd.factorize(values)[0] for name, values in frame.items()})
        task = codes.groupby(list(codes.columns), sort=False).ngroup().to_numpy()
    rows = pd.DataFrame({"task": task, "worker": table.worker, "label": table.label})
    trusted = (table.fidelity == table.levels[-1]) & (len(table.levels) > 1)
    said = rows[~trusted & ~table.is_number & (rows["worker"].fillna("") != "")]
    if said.empty:
        raise TableError(
            "no row below the top level says who gave its label; name the column of annotators by "
            "--worker (in Python Roles(worker=...))",
            path=table.places.file,
        )
    gold = rows.loc[trusted, ["task", "label"]] if trusted.any() else None
    items = frame.reset_index(drop=True).rename(columns={"id": "data.id"})
    items.insert(0, "id", task)
    return said, gold, items.drop_duplicates("id")


def _with_interval(name: str, hits: NDArray[Any], of: NDArray[Any]) -> dict[str, Array]:
    """Shares with their 95 % intervals, missing where they are of nothing."""
    rows: list[tuple[Any, ...]] = []
    for k, n in zip(hits.tolist(), of.tolist(), strict=True):
        if n:
            share = Estimate.of_share(k, n)
            rows.append((share.value, share.low, share.high))
        else:
            rows.append((np.nan, np.nan, np.nan))
    values = np.array(rows, dtype=float).reshape(-1, 3)
    return {name: values[:, 0], f"{name}_low": values[:, 1], f"{name}_high": values[:, 2]}


def _where_errors_gather(answers: Answers, features: pd.DataFrame) -> list[str]:
    """In words, for each annotator, the side of a feature's median on which most errors are."""
    numbers = {name: to_numbers(values) for name, values in features.items()}
    usable = {str(n): x for n, (x, wrong) in numbers.items() if not wrong.any() and len({*x}) > 1}
    if not usable:
        return [""] * len(answers.workers)
    x = np.column_stack([*usable.values()])
    median = np.nanmedian(x, axis=0)
    above, below = x > median, x <= median  # a missing value is on no side
    truth = answers.gold[answers.task]
    tables = []
    for w in range(len(answers.workers)):
        own = (answers.worker == w) & (truth >= 0)
        task, wrong = answers.task[own], (truth != answers.label)[own]
        # Errors and answers above, errors and answers below, by feature.
        sides = [side for among in (above[task], below[task]) for side in (among[wrong], among)]
        tables.append([side.sum(axis=0) for side in sides])
    counts = np.array(tables)  # (annotators, 4, features)
    high, n_high, low, n_low = counts.transpose(1, 0, 2)
    compared = (np.minimum(n_high, n_low) >= LEAST_ON_A_SIDE) & (high + low > 0)
    # Fisher's exact test: twice the smaller tail.
    spread = hypergeom(n_high + n_low, high + low, n_high)
    p = np.where(compared, 2.0 * np.minimum(spread.cdf(high), spread.sf(high - 1)), 1.0)
    difference = np.abs(high / np.maximum(n_high, 1) - low / np.maximum(n_low, 1))
    chosen = np.where(p * max(compared.sum(), 1) < SIGNIFICANT, difference, 0.0)
    texts = []
    for w, f in enumerate(chosen.argmax(axis=1)):
        a, n_a, b, n_b = counts[w, :, f].tolist()
        side = "above"
        if chosen[w, f] == 0.0:
            texts.append("")
            continue
        if a / n_a < b / n_b:
            side, a, n_a, b, n_b = "not above", b, n_b, a, n_a
        texts.append(
            f"where {[*usable][f]} is {side} {median[f]:.4g}: {a} of {n_a} answers are wrong "
            f"({percent(a / n_a)}), elsewhere {b} of {n_b} ({percent(b / n_b)})"
        )
    return texts
