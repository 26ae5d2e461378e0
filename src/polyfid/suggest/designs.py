"""What to label before there is a model: rows that are far from each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices, Scale

#: Of more rows than this a sample is spread out.
_MOST_ROWS = 5000


class Purchase(NamedTuple):
    """A row to label at a level (a number), and whether it was drawn at random to be scored."""

    row: int
    level: int
    audit: bool


def first_labels(
    x: Array,
    labelled: NDArray[np.bool_],
    costs: Mapping[int, float],
    money: float,
    n: int,
    audit: float,
    rng: np.random.RandomState,
) -> list[Purchase]:
    """Rows to label without a model: as much money for each level, on rows far from each other.

    ``x`` are features of the rows, (n_rows, d), ``labelled`` says which are taken at which level,
    (n_rows, n_levels), and ``audit`` is the share of rows at the top level that are random ones.
    """
    taken, spent = labelled.copy(), dict.fromkeys(costs, 0.0)
    order = farthest_first(x, np.asarray(labelled.any(axis=1)), n, rng)
    random = rng.permutation(len(x))
    top, credit = labelled.shape[1] - 1, float(rng.uniform())
    bought: list[Purchase] = []
    while len(bought) < n:
        left = money - sum(spent.values())
        open_ = [t for t, c in costs.items() if c <= left * (1.0 + 1e-9) and not taken[:, t].all()]
        if not open_:
            break
        t = min(open_, key=lambda level: (spent[level], costs[level]))
        credit += audit if t == top else 0.0
        is_audit = t == top and credit >= 1.0
        credit -= 1.0 if is_audit else 0.0
        row = _first_free(random if is_audit else order, taken, t)
        taken[row, t] = True
        spent[t] += costs[t]
        bought.append(Purchase(row, t, is_audit))
    return bought


def _first_free(order: Indices, taken: NDArray[np.bool_], level: int) -> int:
    """The first row without any label, or else without one at this level."""
    unlabelled = order[~taken[order].any(axis=1)]
    free = unlabelled if len(unlabelled) else order[~taken[order, level]]
    return int(free[0]) if len(free) else int(np.flatnonzero(~taken[:, level])[0])


def farthest_first(
    x: Array, before: NDArray[np.bool_], n: int, rng: np.random.RandomState
) -> Indices:
    """An order of rows, each as far as possible from those before it; the first ones at least.

    ``before`` are rows that came before all others. Without any, a random row is the first.

    >>> x = np.array([[0.0], [0.1], [1.0], [0.5]])
    >>> farthest_first(x, np.array([True, False, False, False]), 2, np.random.RandomState(0))
    array([2, 3])
    """
    rows = np.flatnonzero(~before)
    if len(rows) > _MOST_ROWS:
        rows = np.sort(rng.choice(rows, _MOST_ROWS, replace=False))
    scaled = Scale.of(x, np.ones(len(x)))(x) if len(x) else x
    distance = np.full(len(rows), np.inf)
    for old in np.flatnonzero(before):
        distance = np.minimum(distance, np.square(scaled[rows] - scaled[old]).sum(axis=1))
    order = []
    for _ in range(min(n, len(rows))):
        best = int(rng.randint(len(rows))) if np.isinf(distance).all() else int(distance.argmax())
        order.append(int(rows[best]))
        distance = np.minimum(distance, np.square(scaled[rows] - scaled[order[-1]]).sum(axis=1))
        distance[best] = -1.0
    return np.array(order, dtype=np.intp)
