"""What the page shows of a model, its rows and its evaluation, and the page as a file."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import pandas as pd

from polyfid import crowd
from polyfid._version import __version__
from polyfid.atomic import replacing
from polyfid.evaluation import Evaluation
from polyfid.report import maps, sections
from polyfid.report.advice import advice as budget_section
from polyfid.report.charts import bars_chart, page_style
from polyfid.report.fitted_table import FittedTable
from polyfid.report.next_labels import next_labels
from polyfid.report.page import clean, shorten_all, to_html
from polyfid.report.rows_to_check import surprising_rows, uncertain_rows, wrong_labels
from polyfid.suggest import Advice
from polyfid.tables import LabelledTable, TableModel

MOST_BARS = 12  # features whose relevance is drawn
_NOT_MEASURED: dict[str, Any] = {
    "effect": "unknown",
    "badge": "Not measured",
    "sentence": "Whether the cheaper labels help was not measured: that takes trusted rows held "
    "out, and an evaluation was not made.",
    "more": [],
    "caveats": [],
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
    annotators: pd.DataFrame | None = None,
    batch: pd.DataFrame | None = None,
    history: Sequence[Mapping[str, Any]] = (),
    advice: Advice | None = None,
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
    annotators : DataFrame, optional
        About the people who gave the labels, one row each; the first column names them. Columns
        ``x_low`` and ``x_high`` are shown as the interval of column ``x``.
    batch : DataFrame, optional
        Labels to buy next, as of `polyfid.suggest` or `Study.ask`.
    history : sequence of dict
        ``history_`` of a study, of which the page then shows the progress.
    advice : Advice, optional
        From `polyfid.advise`; adds the section on how to split a budget.

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
        "annotators": None if annotators is None else sections.annotators(annotators),
        "model_sentences": _in_short(fitted),
        "warnings": list(dict.fromkeys((*map(clean, warnings), *report.problems))),
        "comparison": None,
        "next": None,
        "trust": None,
        "budget": None,
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
        contents["data"] = sections.data(table)
        relevance = list(zip(names, fitted.relevance.values(), strict=True))
        contents["features"] = {
            "relevance": bars_chart(dict(relevance[:MOST_BARS]), "Relevance of the features"),
            "omitted": max(len(names) - MOST_BARS, 0),
        }
        contents["features"]["maps"], contents["features"]["sentences"] = maps.feasibility(fitted)
        if batch is not None or history:
            contents["next"] = next_labels(batch, history)
        contents["rows"] = {"wrong": None, "surprising": None, **uncertain_rows(fitted)}
        if len(table.levels) > 1:
            contents["trust"] = maps.trust(fitted)
            contents["rows"] |= wrong_labels(fitted)
        if advice is not None:
            contents["budget"] = budget_section(advice)
        if evaluation is not None:
            contents["title"] = clean(title or "Do the cheaper labels help?")
            contents["verdict"] = sections.verdict(evaluation)
            contents["comparison"] = sections.comparison(evaluation)
            contents["calibration"] = sections.calibration(evaluation)
            contents["rows"] |= surprising_rows(evaluation, fitted)
    if contents["trust"]:
        verdict = contents["verdict"]
        caveats = [*verdict["caveats"], *contents["trust"]["caveats"]]
        contents["verdict"] = verdict | {"caveats": caveats}
    return to_html(contents)


def _in_short(fitted: FittedTable) -> list[str]:
    """The model in two sentences without a technical word."""
    model, table = fitted.classifier, fitted.table
    n, d = len(table.label), table.features.shape[1]
    learnt = (
        f"The model has learnt from {n:,} labelled rows how the label goes together with "
        f"{d} column{'s' * (d != 1)} of the table"
    )
    if len(table.levels) == 1:
        return [
            f"{learnt}.",
            "Its predictions are less certain where labels are few or contradict each other.",
        ]
    names = shorten_all(model.levels_, 30)
    return [
        f"{learnt}, and how far the labels of each level can be trusted.",
        f"Its predictions are of what “{names[-1]}” would say, and they are less certain where "
        "labels are few or contradict each other.",
    ]


def annotators_of(table: LabelledTable) -> pd.DataFrame | None:
    """What `polyfid.crowd.annotators` says of labelled rows, for `render`.

    It is None unless there are trusted rows and cheaper ones that say who gave their labels. Where
    answers contradict each other, a warning says why there is none.
    """
    trusted = table.fidelity == table.levels[-1]
    if table.worker is None or not trusted.any() or not (table.worker[~trusted] != "").any():
        return None
    try:
        return crowd.annotators(*crowd.answers_of(table))
    except ValueError as error:
        problem = f"there is no table of annotators: {error}"
        warn(problem, UserWarning, stacklevel=2)
        return None


def write_report(path: str | os.PathLike[str], **arguments: Any) -> Path:
    """Write what `render` makes of the arguments, all of it or nothing; return the path."""
    # Opened before the work: a folder that cannot be written to shows at once.
    with replacing(path) as file:
        file.write(render(**arguments).encode("utf-8"))
    return Path(path)
