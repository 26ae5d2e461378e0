"""Rows that deserve a look: those the model is unsure of, and those it would not have believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.estimator.inputs import point_ids
from polyfid.evaluation import METHODS, Evaluation
from polyfid.report.page import Block, Cell, Head, Table, Text, clean, shorten, shorten_all
from polyfid.report.relevance import numbers
from polyfid.tables import LabelledTable
from polyfid.tabular import TableModel

Index = NDArray[np.intp]

__all__ = ["MOST_ROWS", "surprising", "uncertain"]

#: Rows that are listed, and points that are looked at for the most uncertain ones.
MOST_ROWS, MOST_POINTS = 12, 5000


def uncertain(model: TableModel, table: LabelledTable, columns: Sequence[str]) -> tuple[Block, ...]:
    """Points without a trusted label whose class the model is least sure of.

    They are ordered by the entropy of the predicted probabilities. Where every point has a trusted
    label, all points are looked at.
    """
    x = numbers(model, table)
    trusted = np.asarray(table.fidelity) == table.levels[-1]
    points = point_ids(x)
    open_ = ~np.isin(points, points[trusted])
    known = not open_.any()
    _, first = np.unique(np.where(open_ | known, points, -1), return_index=True)
    rows = np.sort(first[(open_ | known)[first]])
    total = len(rows)
    if total > MOST_POINTS:
        rows = rows[np.linspace(0, total - 1, MOST_POINTS).astype(np.intp)]
    proba = model.classifier.predict_proba(x.iloc[rows])
    entropy = -(proba * np.log(np.maximum(proba, np.finfo(float).tiny))).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")[:MOST_ROWS]
    text = "Points " + ("" if known else "without a trusted label ")
    text += f"whose trusted label the model is least sure of, of {total} in all"
    text += f" ({MOST_POINTS} of them looked at)" if total > MOST_POINTS else ""
    text += ": labelling these teaches it most." if not known else "."
    classes = model.classifier.classes_
    chosen = rows[order]
    heads = (Head("Level", words=True), Head("Label there", words=True), *_PREDICTED)
    cells = [
        (_word(table.fidelity[i]), _word(table.label[i]), *_prediction(p, classes))
        for i, p in zip(chosen, proba[order], strict=True)
    ]
    listed = _listed(table, chosen, columns, heads, cells)
    return (Table("uncertain", "Most uncertain rows", *listed, text),)


def surprising(
    evaluation: Evaluation, table: LabelledTable, columns: Sequence[str]
) -> tuple[Block, ...]:
    """Trusted rows to whose label the model, not having seen it, gave the least probability."""
    proba = evaluation.out_of_fold[METHODS[0]]
    code = [evaluation.classes.index(label) for label in evaluation.labels.tolist()]
    given = proba[np.arange(len(proba)), code]
    wrong = np.flatnonzero(given < proba.max(axis=1))
    order = wrong[np.argsort(given[wrong], kind="stable")][:MOST_ROWS]
    if not len(order):
        return (Text("No trusted label was a surprise: out of fold, all were predicted rightly."),)
    text = (
        f"Of {len(proba)} trusted rows {len(wrong)} have a label that the model, not having seen "
        "it, did not predict. These are the least expected: errors of the model, or of the label."
    )
    classes = np.asarray(evaluation.classes, dtype=object)
    heads = (Head("Trusted label", words=True), Head("Its probability"), *_PREDICTED)
    cells = [
        (
            _word(evaluation.labels[i]),
            Cell(f"{given[i]:.3f}", float(given[i])),
            *_prediction(proba[i], classes),
        )
        for i in order
    ]
    listed = _listed(table, evaluation.rows[order], columns, heads, cells)
    return (Table("surprising", "Most surprising rows", *listed, text),)


_PREDICTED = (Head("Predicted", words=True), Head("Probability"))


def _prediction(p: Array, classes: NDArray[Any]) -> tuple[Cell, Cell]:
    k = int(np.argmax(p))
    return _word(classes[k]), Cell(f"{p[k]:.3f}", float(p[k]))


def _listed(
    table: LabelledTable,
    rows: Index,
    columns: Sequence[str],
    heads: tuple[Head, ...],
    cells: Sequence[tuple[Cell, ...]],
) -> tuple[tuple[Head, ...], tuple[tuple[Cell, ...], ...]]:
    """Heads and rows of a table: what a row is called, what is said of it, a few features."""
    values = [_column(table.features[name], rows) for name in columns]
    features = (
        Head(short, words=all(cell.key is None for cell in column), whole=clean(name))
        for name, short, column in zip(columns, shorten_all(columns, 22), values, strict=True)
    )
    lines = (
        (_name(table, i), *said, *(column[k] for column in values))
        for k, (i, said) in enumerate(zip(rows, cells, strict=True))
    )
    return (Head("Row", words=True), *heads, *features), tuple(lines)


def _name(table: LabelledTable, row: int) -> Cell:
    """The id of a row, else where it stands in its file."""
    if table.ids is not None:
        return _word(table.ids[row])
    return _word(table.origin[row])


def _column(values: pd.Series[Any], rows: Index) -> list[Cell]:
    """Some entries of a column; numbers with as many decimals as their spread calls for."""
    chosen = values.iloc[rows]
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return [Cell("") if pd.isna(v) else _word(v) for v in chosen]
    numbers = chosen.to_numpy(dtype=float, na_value=np.nan)
    every = values.to_numpy(dtype=float, na_value=np.nan)
    return [Cell("") if np.isnan(v) else Cell(_decimal(v, every), float(v)) for v in numbers]


def _decimal(value: float, every: Array) -> str:
    every = every[np.isfinite(every)]
    spread, reach = (float(f(np.abs(every))) for f in (np.std, np.max))
    if not 1e-4 < reach < 1e7:
        text = f"{value:.3g}"
    elif np.all(every == np.round(every)) or not spread:
        text = f"{value:g}"
    else:
        text = f"{value:.{int(np.clip(2 - np.floor(np.log10(spread)), 0, 6))}f}"
    return text.replace("-", "−")


def _word(value: Any) -> Cell:
    return Cell(shorten(value, 40))
