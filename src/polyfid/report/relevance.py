"""How much each column of a table matters to a fitted model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from polyfid.tables import LabelledTable
from polyfid.tabular import TableModel

__all__ = ["numbers", "relevance"]

#: Rows that are predicted, and shuffles of each column; fewer where there are many columns.
MOST_ROWS, LEAST_ROWS, SHUFFLES, MOST_PREDICTIONS = 200, 20, 4, 100_000


def numbers(model: TableModel, table: LabelledTable) -> pd.DataFrame:
    """The rows of a table as the classifier takes them."""
    return pd.DataFrame(model.recipe(table.features), columns=list(model.recipe.names))


def relevance(model: TableModel, table: LabelledTable, seed: int = 0) -> dict[str, float]:
    """By column, how far predictions move when its values are dealt out anew; largest first.

    The figure is the mean total variation distance of the class probabilities (of the most trusted
    level) before and after, between 0 and 1: for two classes, the mean change of a probability. It
    speaks of what the model has learnt and needs no labels, so that a close fit does not flatter.
    """
    rng = np.random.RandomState(seed)
    columns = model.recipe.columns
    n_rows = int(np.clip(MOST_PREDICTIONS // len(columns), LEAST_ROWS, MOST_ROWS))
    rows = np.sort(rng.permutation(len(table.features))[:n_rows])
    x = numbers(model, table).iloc[rows]
    shuffles = SHUFFLES if len(columns) * SHUFFLES * n_rows <= MOST_PREDICTIONS else 1
    before = model.classifier.predict_proba(x)
    moves, start = {}, 0
    for column in columns:
        stop = start + len(column.names)
        found = []
        for _ in range(shuffles):
            dealt = x.copy()
            dealt.iloc[:, start:stop] = x.iloc[rng.permutation(len(x)), start:stop].to_numpy()
            after = model.classifier.predict_proba(dealt)
            found.append(0.5 * np.abs(after - before).sum(axis=1).mean())
        moves[column.name] = float(np.mean(found))
        start = stop
    return dict(sorted(moves.items(), key=lambda item: -item[1]))
