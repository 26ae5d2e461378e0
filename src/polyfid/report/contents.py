"""What the page shows of a model, its rows and its evaluation, and the page as a file."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from polyfid._version import __version__
from polyfid.atomic import replacing
from polyfid.evaluation import Evaluation
from polyfid.report import comparison, maps
from polyfid.report.charts import CLASS_COLOURS, bars_chart, page_style, shares_chart
from polyfid.report.fitted_table import FittedTable, surprising_rows, uncertain_rows
from polyfid.report.page import Cell, Head, Table, clean, shorten_all, to_html
from polyfid.tables import LabelledTable, TableModel

MOST_BARS = 12  # features whose relevance is drawn
_NOT_MEASURED = {
    "effect": "unknown",
    "badge": "Not measured",
    "sentence": "Whether the cheaper labels help was not measured: that takes trusted rows held "
    "out, and an evaluation was not made.",
    "drawing": None,
}


def render(
    *,
    model: TableModel,
    table: LabelledTable,
    evaluation: Evaluation | None = None,
    command: str | None = None,
    seed: int | None = None,
    title: str | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """The report of a fitted model as one self-contained HTML page.

    Names and cells of the table are shown as text and never run; nothing is fetched.

    Parameters
    ----------
    model : TableModel
        Fitted to ``table``.
    table : LabelledTable
    evaluation : Evaluation, optional
        Of the same rows; adds the comparison with baselines, calibration and surprising rows.
    command : str, optional
        The command that wrote the page.
    seed : int, optional
        The random state it was made with.
    title : str, optional
    warnings : sequence of str
        For the reader, besides the warnings of the model itself.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.report import render
    >>> from polyfid.tables import Roles, TableModel, read_labelled
    >>> rows = pd.DataFrame({"x": [float(i) for i in range(20)]})
    >>> rows["label"] = ["no" if x < 9 else "yes" for x in rows["x"]]
    >>> rows["fidelity"] = ["crowd", "gold"] * 10
    >>> table = read_labelled([rows], Roles(levels=("crowd", "gold")))
    >>> model = TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()))
    >>> "<h1>Yes &amp; no</h1>" in render(model=model, table=table, title="Yes & no")
    True
    """
    fitted = FittedTable.of(model, table)
    if evaluation is not None:
        n, rows = len(table.label), evaluation.rows
        if rows.max() >= n or not np.array_equal(table.label[rows], evaluation.labels):
            raise ValueError(
                f"evaluation is of other rows than table, which has {n}; evaluate the features and "
                "labels of the same table"
            )
    report = fitted.classifier.report_
    libraries = (f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "pandas"))
    own = (f"Python {platform.python_version()}", f"polyfid {__version__}")
    contents: dict[str, Any] = {
        "title": clean(title or "What the labels say"),
        "verdict": _NOT_MEASURED,
        "warnings": list(dict.fromkeys((*map(clean, warnings), *report.problems))),
        "comparison": None,
        "trust": None,
        "calibration": None,
        "model_lines": [(clean(h), clean(text)) for h, text in report.lines if h != "warning"],
        "command": clean(command or ""),
        "settings": [("versions", ", ".join([*own, *libraries]))],
        "version": __version__,
    }
    if seed is not None:
        contents["settings"].append(("seed", str(seed)))
    names = shorten_all(fitted.relevance, 120)
    with page_style():
        contents["data"] = _data(table)
        relevance = list(zip(names, fitted.relevance.values(), strict=True))
        contents["features"] = {
            "relevance": bars_chart(dict(relevance[:MOST_BARS]), "Relevance of the features"),
            "omitted": max(len(names) - MOST_BARS, 0),
            "maps": maps.feasibility(fitted),
        }
        contents["rows"] = uncertain_rows(fitted)
        if len(table.levels) > 1:
            contents["trust"] = maps.trust(fitted)
        if evaluation is not None:
            contents["title"] = clean(title or "Do the cheaper labels help?")
            contents["verdict"] = comparison.verdict(evaluation)
            contents["comparison"] = comparison.comparison(evaluation)
            contents["calibration"] = comparison.calibration(evaluation)
            contents["rows"] |= surprising_rows(evaluation, fitted)
    return to_html(contents)


def write_report(path: str | os.PathLike[str], **arguments: Any) -> Path:
    """Write what `render` makes of the arguments, all of it or nothing; return the path."""
    # Opened before the work: a folder that cannot be written to shows at once.
    with replacing(path) as file:
        file.write(render(**arguments).encode("utf-8"))
    return Path(path)


def _data(table: LabelledTable) -> dict[str, Any]:
    """How many labels of each class there are at each level."""
    by_class = table.counts()
    classes, counts = list(by_class.columns), by_class.to_numpy()
    levels, n_features = shorten_all(table.levels, 30), table.features.shape[1]
    shares = None
    if len(classes) <= len(CLASS_COLOURS):
        names = shorten_all(table.levels, 120), shorten_all(classes, 120)
        shares = shares_chart(*names, counts, "Shares of the classes at each level")
    return {
        "lead": f"{_count(len(table.label), 'label')} at {_count(len(levels), 'level')} "
        f"({', '.join(levels)}), {_count(n_features, 'feature')}.",
        "facts": [
            (f"{counts.sum():,}", "labels in all"),
            (f"{counts[-1].sum():,}", f"of them trusted (level “{levels[-1]}”)"),
            (f"{len(classes)}", "classes"),
            tuple(_count(n_features, "feature").split()),
        ],
        "levels": Table(
            [Head("Level"), Head("Labels"), *map(Head, shorten_all(classes, 30))],
            [
                [Cell(level), *(Cell(f"{n:,}", float(n)) for n in (row.sum(), *row))]
                for level, row in zip(levels, counts, strict=True)
            ],
        ),
        "shares": shares,
    }


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
