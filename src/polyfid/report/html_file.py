"""The page as text and as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from polyfid.atomic import replacing
from polyfid.evaluation import Evaluation
from polyfid.report.contents import compose
from polyfid.report.page import to_html
from polyfid.tables import LabelledTable, TableModel


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

    Returns
    -------
    str
        HTML. Names and cells of the table are shown as text and never run; nothing is fetched.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.report import render
    >>> from polyfid.tables import Roles, read_labelled
    >>> from polyfid.tables import TableModel
    >>> rows = pd.DataFrame({"x": [float(i) for i in range(20)]})
    >>> rows["label"] = ["no" if x < 9 else "yes" for x in rows["x"]]
    >>> rows["fidelity"] = ["crowd", "gold"] * 10
    >>> table = read_labelled([rows], Roles(levels=("crowd", "gold")))
    >>> model = TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()))
    >>> page = render(model=model, table=table, title="Yes & no")
    >>> "<h1>Yes &amp; no</h1>" in page
    True
    """
    page = compose(
        model, table, evaluation, title=title, command=command, seed=seed, warnings=warnings
    )
    return to_html(page)


def write_report(
    path: str | os.PathLike[str],
    *,
    model: TableModel,
    table: LabelledTable,
    evaluation: Evaluation | None = None,
    command: str | None = None,
    seed: int | None = None,
    title: str | None = None,
    warnings: Sequence[str] = (),
) -> Path:
    """Write what `render` gives to a file, all of it or nothing; return its path."""
    # Opened before the work: a folder that cannot be written to shows at once.
    with replacing(path) as file:
        page = render(
            model=model,
            table=table,
            evaluation=evaluation,
            command=command,
            seed=seed,
            title=title,
            warnings=warnings,
        )
        file.write(page.encode("utf-8"))
    return Path(path)
