"""A fitted model with the rows it was fitted to, and which columns matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.evaluation import Estimate
from polyfid.inspection import feature_relevance
from polyfid.report.page import shorten_all
from polyfid.tables import LabelledTable, TableModel


@dataclass(frozen=True)
class FittedTable:
    """Rows as the classifier takes them, and which columns matter most."""

    classifier: MultiFidelityClassifier
    table: LabelledTable
    x: pd.DataFrame  # the features as numbers, (n, d)
    relevance: dict[str, Estimate]  # by column of the table, the most relevant first
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
        order = np.argsort(-relevance[:, 0], kind="stable").tolist()
        numeric = [groups[j].start for j in order if columns[j].kind == "number"]
        typical = np.median(x.to_numpy(), axis=0)
        for column, group in zip(columns, groups, strict=True):
            if column.kind == "category":
                counts = x.iloc[:, group].sum().to_numpy()
                typical[group] = np.arange(len(counts)) == counts.argmax()
        by_name = {columns[j].name: Estimate(*relevance[j].tolist()) for j in order}
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
