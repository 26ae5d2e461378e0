"""Rows to check: those the model is unsure of, and those whose trusted label it did not predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.estimator.inputs import point_ids
from polyfid.evaluation import METHODS, Evaluation
from polyfid.report.fitted_table import FittedTable
from polyfid.report.page import Cell, Head, Table, clean, shorten, shorten_all
from polyfid.tables import LabelledTable

Index = NDArray[np.intp]

#: Rows that are listed, points among which the most uncertain are sought, columns beside a row.
MOST_ROWS, MOST_POINTS, MOST_COLUMNS = 12, 5000, 5
_PREDICTED = (Head("Predicted", words=True), Head("Probability"))


def uncertain(fitted: FittedTable) -> dict[str, Any]:
    """Points without a trusted label whose class the model is least sure of.

    They are ordered by the entropy of the predicted probabilities. Where every point has a trusted
    label, they are sought among all points.
    """
    model, table = fitted.classifier, fitted.table
    points = point_ids(fitted.x)
    candidate = ~np.isin(points, points[np.asarray(table.fidelity) == table.levels[-1]])
    all_trusted = not candidate.any()
    rows = np.flatnonzero(candidate | all_trusted)
    rows = np.sort(rows[np.unique(points[rows], return_index=True)[1]])
    total = len(rows)
    if total > MOST_POINTS:
        rows = rows[np.linspace(0, total - 1, MOST_POINTS).astype(np.intp)]
    proba = model.predict_proba(fitted.x.iloc[rows])
    entropy = -(proba * np.log(np.maximum(proba, np.finfo(float).tiny))).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")[:MOST_ROWS]
    cells = [
        (_word(table.fidelity[i]), _word(table.label[i]), *_prediction(p, model.classes_))
        for i, p in zip(rows[order], proba[order], strict=True)
    ]
    heads = (Head("Level", words=True), Head("Label there", words=True))
    return {
        "uncertain": _table(fitted, rows[order], heads, cells),
        "all_trusted": all_trusted,
        "n_candidates": total,
        "n_searched": len(rows),
        "surprising": None,
    }


def surprising(evaluation: Evaluation, fitted: FittedTable) -> dict[str, Any]:
    """Trusted rows to whose label the model, fitted without it, gave the least probability."""
    proba = evaluation.out_of_fold[METHODS[0]]
    code = [evaluation.classes.index(label) for label in evaluation.labels.tolist()]
    given = proba[np.arange(len(proba)), code]
    wrong = np.flatnonzero(given < proba.max(axis=1))
    order = wrong[np.argsort(given[wrong], kind="stable")][:MOST_ROWS]
    if not len(order):
        return {}
    classes = np.asarray(evaluation.classes, dtype=object)
    cells = [
        (
            _word(evaluation.labels[i]),
            Cell(f"{given[i]:.3f}", float(given[i])),
            *_prediction(proba[i], classes),
        )
        for i in order
    ]
    heads = (Head("Trusted label", words=True), Head("Its probability"))
    table = _table(fitted, evaluation.rows[order], heads, cells)
    return {"surprising": table, "n_trusted": len(proba), "n_wrong": len(wrong)}


def _prediction(p: Array, classes: NDArray[Any]) -> tuple[Cell, Cell]:
    k = int(np.argmax(p))
    return _word(classes[k]), Cell(f"{p[k]:.3f}", float(p[k]))


def _table(
    fitted: FittedTable,
    rows: Index,
    heads: tuple[Head, ...],
    cells: Sequence[tuple[Cell, ...]],
) -> Table:
    """A table of rows: their names, the cells given, and the most relevant features."""
    columns = list(fitted.relevance)[:MOST_COLUMNS]
    values = [_column(fitted.table.features[column], rows) for column in columns]
    features = (
        Head(short, words=all(cell.key is None for cell in cells), whole=clean(column))
        for column, short, cells in zip(columns, shorten_all(columns, 22), values, strict=True)
    )
    names = (_row_name(fitted.table, i) for i in rows)
    lines = zip(names, cells, zip(*values, strict=True), strict=True)
    return Table(
        (Head("Row", words=True), *heads, *_PREDICTED, *features),
        tuple((first, *middle, *last) for first, middle, last in lines),
    )


def _row_name(table: LabelledTable, row: int) -> Cell:
    """The id of a row, or its file and line."""
    return _word(table.places[row] if table.ids is None else table.ids[row])


def _column(values: pd.Series[Any], rows: Index) -> list[Cell]:
    """Some entries of a column; numbers with as many decimals as their spread needs."""
    chosen = values.iloc[rows]
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return [Cell("") if pd.isna(v) else _word(v) for v in chosen]
    numbers = chosen.to_numpy(dtype=float, na_value=np.nan)
    every = values.to_numpy(dtype=float, na_value=np.nan)
    form = _number_format(every[np.isfinite(every)])
    return [
        Cell("") if np.isnan(v) else Cell(format(v, form).replace("-", "−"), float(v))
        for v in numbers
    ]


def _number_format(every: Array) -> str:
    spread, reach = float(np.std(np.abs(every))), float(np.max(np.abs(every)))
    if not 1e-4 < reach < 1e7:
        return ".3g"
    if np.all(every == np.round(every)) or not spread:
        return "g"
    return f".{int(np.clip(2 - np.floor(np.log10(spread)), 0, 6))}f"


def _word(value: Any) -> Cell:
    return Cell(shorten(value, 40))
