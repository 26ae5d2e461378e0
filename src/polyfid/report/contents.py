"""What the page shows: the values that its template arranges."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from polyfid._version import __version__
from polyfid.evaluation import Evaluation
from polyfid.report import comparison, maps, rows_to_check
from polyfid.report.charts import CLASS_COLOURS, bars_chart, shares_chart
from polyfid.report.figures import page_style
from polyfid.report.fitted_table import FittedTable
from polyfid.report.page import Cell, Head, Table, clean, shorten_all
from polyfid.tables import LabelledTable, TableModel

MOST_BARS = 12  # features whose relevance is drawn
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas")
_NOT_MEASURED = {
    "effect": "unknown",
    "badge": "Not measured",
    "sentence": "Whether the cheaper labels help was not measured: that takes trusted rows held "
    "out, and an evaluation was not made.",
    "drawing": None,
}


def compose(
    model: TableModel,
    table: LabelledTable,
    evaluation: Evaluation | None,
    *,
    title: str | None = None,
    command: str | None = None,
    seed: int | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """What the template shows of a fitted model, its rows, and its evaluation if there is one."""
    fitted = FittedTable.of(model, table)
    report = fitted.classifier.report_
    settings = [("versions", _versions())]
    if seed is not None:
        settings.append(("seed", str(seed)))
    contents: dict[str, Any] = {
        "title": clean(title or "What the labels say"),
        "verdict": _NOT_MEASURED,
        "warnings": list(dict.fromkeys((*map(clean, warnings), *report.problems))),
        "comparison": None,
        "trust": None,
        "calibration": None,
        "model_lines": [(clean(h), clean(text)) for h, text in report.lines if h != "warning"],
        "command": clean(command or ""),
        "settings": settings,
        "version": __version__,
    }
    with page_style():
        contents["data"] = _data(table)
        contents["features"] = _features(fitted)
        contents["rows"] = rows_to_check.uncertain(fitted)
        if len(table.levels) > 1:
            contents["trust"] = maps.trust(fitted)
        if evaluation is not None:
            _check_rows(evaluation, table)
            contents["title"] = clean(title or "Do the cheaper labels help?")
            contents["verdict"] = comparison.verdict(evaluation)
            contents["comparison"] = comparison.comparison(evaluation)
            contents["calibration"] = comparison.calibration(evaluation)
            contents["rows"] |= rows_to_check.surprising(evaluation, fitted)
    return contents


def _check_rows(evaluation: Evaluation, table: LabelledTable) -> None:
    labels = np.asarray(table.label)
    fits = len(evaluation.rows) and evaluation.rows.max() < len(labels)
    if not fits or not np.array_equal(labels[evaluation.rows], evaluation.labels):
        raise ValueError(
            f"evaluation is of other rows than table, which has {len(labels)}; evaluate the "
            "features and labels of the same table"
        )


def _versions() -> str:
    libraries = [f"{name} {version(name)}" for name in _LIBRARIES]
    own = [f"Python {platform.python_version()}", f"polyfid {__version__}"]
    return ", ".join([*own, *libraries])


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
            (f"{n_features:,}", "feature" if n_features == 1 else "features"),
        ],
        "levels": Table(
            (Head("Level", words=True), Head("Labels"), *map(Head, shorten_all(classes, 30))),
            tuple(
                (Cell(level), *(Cell(f"{n:,}", float(n)) for n in (row.sum(), *row)))
                for level, row in zip(levels, counts, strict=True)
            ),
        ),
        "shares": shares,
    }


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _features(fitted: FittedTable) -> dict[str, Any]:
    """How much each column matters, and maps over those that matter most."""
    names = shorten_all(fitted.relevance, 120)
    shown = dict(list(zip(names, fitted.relevance.values(), strict=True))[:MOST_BARS])
    return {
        "relevance": bars_chart(shown, "Relevance of the features"),
        "omitted": len(names) - len(shown),
        "maps": maps.feasibility(fitted),
    }
