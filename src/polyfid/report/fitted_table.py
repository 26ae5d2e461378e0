"""A fitted model with the rows it was fitted to, and which of them should be checked.

Those are rows of which the model is unsure, and rows whose trusted label it did not predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import point_ids
from polyfid.evaluation import METHODS, Evaluation
from polyfid.inspection import feature_relevance
from polyfid.report.page import Cell, Head, Table, clean, shorten, shorten_all
from polyfid.tables import LabelledTable, TableModel

#: Rows that are listed, points among which the most uncertain are sought, columns beside a row.
MOST_ROWS, MOST_POINTS, MOST_COLUMNS = 12, 5000, 5


@dataclass(frozen=True)
class FittedTable:
    """Rows as the classifier takes them, and which columns matter most."""

    classifier: MultiFidelityClassifier
    table: LabelledTable
    x: pd.DataFrame  # the features as numbers, (n, d)
    relevance: dict[str, float]  # by column of the table, the most relevant first
    map_columns: list[int]  # the one or two most relevant columns of numbers in x, for maps
    typical: Array  # a row of x: medians, and the most frequent categories

    @classmethod
    def of(cls, model: TableModel, table: LabelledTable) -> Self:
        """Raise an error unless the levels are those of the model."""
        levels = model.classifier.levels_
        if tuple(table.levels) != tuple(levels):
            raise ValueError(
                f"table has the levels {list(table.levels)}, but model was fitted to "
                f"{list(levels)}; pass the table that it was fitted to"
            )
        encoder = model.encoder
        columns = encoder.columns_
        x = pd.DataFrame(encoder.transform(table.features), columns=list(encoder.names_))
        stops = np.cumsum([len(column.names) for column in columns]).tolist()
        groups = [slice(a, b) for a, b in zip([0, *stops], stops, strict=False)]
        relevance = feature_relevance(model.classifier, x, groups)
        order = np.argsort(-relevance, kind="stable").tolist()
        numeric = [groups[j].start for j in order if columns[j].kind == "number"]
        typical = np.median(x.to_numpy(), axis=0)
        for column, group in zip(columns, groups, strict=True):
            if column.kind == "category":
                counts = x.iloc[:, group].sum().to_numpy()
                typical[group] = np.arange(len(counts)) == counts.argmax()
        by_name = {columns[j].name: float(relevance[j]) for j in order}
        return cls(model.classifier, table, x, by_name, numeric[:2], typical)

    @property
    def over(self) -> str:
        """What maps are drawn over, in words."""
        if not self.map_columns:
            return ", at the rows along their first two principal components"
        names = shorten_all((self.x.columns[j] for j in self.map_columns), 30)
        rest = len(self.relevance) > len(names)
        text = " and ".join(f"“{name}”" for name in names)
        return f", over {text}" + ("; other columns have typical values" if rest else "")


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
    if total > MOST_POINTS:
        rows = rows[np.linspace(0, total - 1, MOST_POINTS).astype(np.intp)]
    proba = fitted.classifier.predict_proba(fitted.x.iloc[rows])
    entropy = -(proba * np.log(np.maximum(proba, np.finfo(float).tiny))).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")[:MOST_ROWS]
    columns = {
        "Level": [_word(table.fidelity[i]) for i in rows[order]],
        "Label there": [_word(table.label[i]) for i in rows[order]],
    }
    return {
        "uncertain": _table(fitted, rows[order], columns, proba[order]),
        "all_trusted": all_trusted,
        "n_candidates": total,
        "n_searched": len(rows),
        "surprising": None,
    }


def surprising_rows(evaluation: Evaluation, fitted: FittedTable) -> dict[str, Any]:
    """Trusted rows to whose label the model, fitted without it, gave the least probability."""
    proba = evaluation.out_of_fold[METHODS[0]]
    given = proba[np.arange(len(proba)), evaluation.codes]
    wrong = np.flatnonzero(given < proba.max(axis=1))
    order = wrong[np.argsort(given[wrong], kind="stable")][:MOST_ROWS]
    if not len(order):
        return {}
    columns = {
        "Trusted label": [_word(evaluation.labels[i]) for i in order],
        "Its probability": [_probability(p) for p in given[order]],
    }
    table = _table(fitted, evaluation.rows[order], columns, proba[order])
    return {"surprising": table, "n_trusted": len(proba), "n_wrong": len(wrong)}


def _table(
    fitted: FittedTable, rows: NDArray[np.intp], columns: dict[str, list[Cell]], proba: Array
) -> Table:
    """A table of rows: their names, the columns given, predictions, the most relevant features."""
    table, classes = fitted.table, fitted.classifier.classes_
    names = table.places if table.ids is None else table.ids
    columns = {
        "Row": [_word(names[i]) for i in rows],
        **columns,
        "Predicted": [_word(classes[k]) for k in proba.argmax(axis=1)],
        "Probability": [_probability(p) for p in proba.max(axis=1)],
    }
    features = list(fitted.relevance)[:MOST_COLUMNS]
    short = shorten_all(features, 22)
    heads = [Head(s, whole=clean(feature)) for s, feature in zip(short, features, strict=True)]
    values = [_column(table.features[feature], rows) for feature in features]
    cells = zip(*columns.values(), *values, strict=True)
    return Table([*map(Head, columns), *heads], list(cells))


def _column(values: pd.Series[Any], rows: NDArray[np.intp]) -> list[Cell]:
    """Some entries of a column; numbers with as many decimals as their spread needs."""
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return [Cell("") if pd.isna(v) else _word(v) for v in values.iloc[rows]]
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


def _word(value: Any) -> Cell:
    return Cell(shorten(value, 40))


def _probability(p: float) -> Cell:
    return Cell(f"{p:.3f}", float(p))
