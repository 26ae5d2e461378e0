"""A page inside a notebook."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from polyfid.atomic import replacing
from polyfid.evaluation import Evaluation, evaluate
from polyfid.report.contents import annotators_of, render
from polyfid.tables import LabelledTable, TableModel

_HEIGHT = "46rem"


@dataclass(frozen=True)
class Page:
    """The report as HTML: a notebook shows it, and `save` writes it to a file."""

    html: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, all of it or nothing; return the path."""
        with replacing(path) as file:
            file.write(self.html.encode("utf-8"))
        return Path(path)

    def _repr_html_(self) -> str:
        # A frame keeps the styles of the page and those of the notebook apart.
        style = f"width: 100%; height: {_HEIGHT}; border: 0"
        return f'<iframe title="Report" srcdoc="{escape(self.html)}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return (
            f"<Page of {len(self.html) // 1000} kB; page.save('report.html') writes it to a file>"
        )


def report_of(
    model: TableModel,
    table: LabelledTable,
    folds: int,
    evaluation: Evaluation | None,
    **page: Any,
) -> Page:
    """The report of a fitted model on its training rows; see `TableModel.report`."""
    if evaluation is None and folds and len(table.levels) > 1:
        evaluation = evaluate(
            table.features,
            table.label,
            table.fidelity,
            levels=table.levels,
            sample_weight=table.weight,
            model=model.unfitted(),
            encoder=model.encoder.unfitted(),
            n_splits=folds,
            audit=table.audit,
        )
    people = page.pop("annotators") if "annotators" in page else annotators_of(table)
    page |= {"annotators": people, "evaluation": evaluation}
    return Page(render(model=model, table=table, **page))
