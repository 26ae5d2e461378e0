"""Rows that a person should look at: wrong labels, surprises, and points that are uncertain.

The page shows the first few of each list, and has all of it as a file to download.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.estimator.inputs import point_ids
from polyfid.evaluation import METHODS, Evaluation
from polyfid.inspection import likely_wrong
from polyfid.report.fitted_table import FittedTable
from polyfid.report.page import Cell, Download, Head, Table, clean, shorten_all
from polyfid.tables import LabelledTable

#: Rows that are shown, rows of a list in all, columns beside a row.
MOST_ROWS, MOST_LISTED, MOST_COLUMNS = 12, 5000, 5


def wrong_labels(fitted: FittedTable) -> dict[str, Any]:
    """Cheap labels that the trusted level would probably contradict."""
    table = fitted.table
    found = likely_wrong(fitted.classifier, fitted.x, table.label, table.fidelity, table.weight)
    rows, probability = found.rows[:MOST_LISTED], found.probability[:MOST_LISTED]
    if not len(rows):
        return {}
    columns = {
        "Level": table.fidelity[rows],
        "Label": table.label[rows],
        "Probably wrong": probability,
        "Expected": found.expected[: len(rows)],
    }
    return {
        "wrong": _listed(fitted, rows, columns, "likely-wrong-labels.csv"),
        "n_cheap": len(found.rows),
        "n_doubtful": int((found.probability > 0.5).sum()),
    }


def uncertain_rows(fitted: FittedTable) -> dict[str, Any]:
    """Points without a trusted label whose class the model is least sure of.

    They are ordered by the entropy of the predicted probabilities. Where every point has a trusted
    label, they are sought among all points.
    """
    table, points = fitted.table, point_ids(fitted.x)
    candidate = ~np.isin(points, points[table.fidelity == table.levels[-1]])
    all_trusted = not candidate.any()
    rows = np.flatnonzero(candidate | all_trusted)
    rows = np.sort(rows[np.unique(points[rows], return_index=True)[1]])
    total = len(rows)
    if total > MOST_LISTED:
        rows = rows[np.linspace(0, total - 1, MOST_LISTED).astype(np.intp)]
    proba = fitted.classifier.predict_proba(fitted.x.iloc[rows])
    entropy = -(proba * np.log(np.maximum(proba, np.finfo(float).tiny))).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")
    rows, proba = rows[order], proba[order]
    label = table.label.astype(object)
    label[table.is_number] = [f"{value:.6g}" for value in table.label[table.is_number]]
    columns = {"Level": table.fidelity[rows], "Label there": label[rows]}
    columns |= _predictions(fitted, proba)
    return {
        "uncertain": _listed(fitted, rows, columns, "uncertain-rows.csv"),
        "all_trusted": all_trusted,
        "n_candidates": total,
        "n_searched": len(rows),
    }


def surprising_rows(evaluation: Evaluation, fitted: FittedTable) -> dict[str, Any]:
    """Trusted rows to whose label the model, fitted without it, gave the least probability."""
    proba = evaluation.out_of_fold[METHODS[0]]
    given = proba[np.arange(len(proba)), evaluation.codes]
    wrong = np.flatnonzero(given < proba.max(axis=1))
    order = wrong[np.argsort(given[wrong], kind="stable")][:MOST_LISTED]
    if not len(order):
        return {}
    columns = {"Trusted label": evaluation.labels[order], "Its probability": given[order]}
    columns |= _predictions(fitted, proba[order])
    table = _listed(fitted, evaluation.rows[order], columns, "surprising-trusted-rows.csv")
    return {"surprising": table, "n_trusted": len(proba), "n_wrong": len(wrong)}


def _predictions(fitted: FittedTable, proba: Array) -> dict[str, NDArray[Any]]:
    classes = np.asarray(fitted.classifier.classes_)
    return {"Predicted": classes[proba.argmax(axis=1)], "Probability": proba.max(axis=1)}


def _listed(
    fitted: FittedTable, rows: Indices, columns: dict[str, NDArray[Any]], file: str
) -> Table:
    """A table of rows: their names, the columns given, and the most relevant features.

    It shows the first of them; all are in a file beside it.
    """
    table = fitted.table
    features = list(fitted.relevance)[:MOST_COLUMNS]
    short = shorten_all(features, 22)
    heads = [Head(s, whole=clean(feature)) for s, feature in zip(short, features, strict=True)]
    shown = rows[:MOST_ROWS]
    cells = [[Cell.word(name) for name in _names(table, shown)]]
    for values in columns.values():
        show = _probability if values.dtype.kind == "f" and _is_share(values) else Cell.word
        cells.append([show(value) for value in values[: len(shown)].tolist()])
    cells += [_column(table.features[feature], shown) for feature in features]
    frame = pd.DataFrame({"Row": _names(table, rows)} | columns)
    for feature in features:
        # A feature may have the name of one of these columns.
        name = feature if feature not in frame.columns else f"feature {feature}"
        frame[name] = table.features[feature].to_numpy()[rows]
    rows_of_cells = list(zip(*cells, strict=True))
    return Table([*map(Head, ["Row", *columns]), *heads], rows_of_cells, Download.of(frame, file))


def _names(table: LabelledTable, rows: Indices) -> list[str]:
    names = table.places if table.ids is None else table.ids
    return [str(names[i]) for i in rows]


def _is_share(values: NDArray[Any]) -> bool:
    return bool(((values >= 0.0) & (values <= 1.0)).all())


def _column(values: pd.Series[Any], rows: Indices) -> list[Cell]:
    """Some entries of a column; numbers with as many decimals as their spread needs."""
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return [Cell("") if pd.isna(v) else Cell.word(v) for v in values.iloc[rows]]
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    every = numbers[np.isfinite(numbers)]
    spread, form = float(np.std(np.abs(every))), "g"
    if not 1e-4 < np.max(np.abs(every)) < 1e7:
        form = ".3g"
    elif spread and not np.all(every == np.round(every)):
        form = f".{int(np.clip(2 - np.floor(np.log10(spread)), 0, 6))}f"
    return [
        Cell("") if np.isnan(v) else Cell(format(v, form).replace("-", "−"), float(v))
        for v in numbers[rows]
    ]


def _probability(p: float) -> Cell:
    return Cell(f"{p:.3f}", p)
