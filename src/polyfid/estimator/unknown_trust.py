"""Fits that are not handed the fidelity, although their rows have levels of different trust.

Cross-validation hands each fit a part of X and y, and a fidelity only if it is asked to. Those of
our splitters whose training rows hold cheap ones know better. Their indices are remembered for as
long as they are in use, in whichever process that is: a fit to as many rows is a fit to these.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from polyfid.arrays import Indices
from polyfid.rows.survey import Levels


class TrainingRows(np.ndarray):
    """Indices of training rows, some of which are cheap; they are remembered where they arrive."""

    @classmethod
    def remembered(cls, indices: Indices) -> TrainingRows:
        """The same indices, remembered until they are no longer used."""
        rows = np.asarray(indices).view(cls)
        _IN_USE[id(rows)] = rows
        return rows

    def __reduce__(self) -> Any:  # such as to another process
        return TrainingRows.remembered, (np.asarray(self),)


_IN_USE: WeakValueDictionary[int, TrainingRows] = WeakValueDictionary()


def unknown_trust(fidelity: Any, n: int, levels: Levels) -> str | None:
    """What is to be said of a fit to n rows, by whether it was handed their fidelity.

    A fit that was makes sure that fits inside it, such as that of `Pooled`, are not complained of.
    """
    same = [rows for rows in list(_IN_USE.values()) if len(rows) == n]
    if fidelity is not None:
        for rows in same:
            _IN_USE.pop(id(rows), None)
        return None
    if same:
        return (
            f"fit got {n} training rows of a splitter, some of them cheap, but not their fidelity: "
            "all of them are taken to be of the most trusted level. Hand it over, as in "
            'cross_validate(model, X, y, cv=TrustedKFold(fidelity=f), params={"fidelity": f}) or '
            "fit(X[train], y[train], fidelity=f[train]); a step of a pipeline gets it as "
            'params={"STEP__fidelity": f}'
        )
    if len(levels) > 1:
        return (
            f"levels names {len(levels)} levels, but fit got no fidelity: all rows are taken to be "
            f"of the most trusted level, {levels[-1]!r}. Pass fidelity=, or leave levels out"
        )
    return None
