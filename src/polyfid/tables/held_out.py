"""Labelled rows of a table on which a fitted model is scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.column import cell_texts, level_names, to_numbers
from polyfid.tables.embeddings import Embeddings
from polyfid.tables.labelled import NO_LABEL, NO_WEIGHT
from polyfid.tables.model import TableModel
from polyfid.tables.places import TableError, WrongCells, file_of, no_column
from polyfid.tables.read import read_table
from polyfid.text import name_few
from polyfid.values import to_text


@dataclass(frozen=True)
class HeldOutRows:
    """Rows as a model's classifier takes them, with their labels.

    Attributes
    ----------
    x : DataFrame
    label : array of the type of the model's classes
    weight : array of float, or None
    level : str or None
        The level that was chosen, if the table has levels.
    n_other : int
        Rows of other levels, which are left out.
    n_known : int
        Rows with the features and the label of a row that the model was fitted to, if it has those.
    """

    x: pd.DataFrame
    label: NDArray[Any]
    weight: NDArray[np.float64] | None
    level: str | None
    n_other: int
    n_known: int


def read_held_out(
    model: TableModel,
    source: Any,
    *,
    target: str | None = None,
    all_rows: bool = False,
    embeddings: Embeddings | None = None,
    **csv: Any,
) -> HeldOutRows:
    """Labelled rows for `polyfid.evaluation.score_model`, in columns named as in the fit.

    Parameters
    ----------
    model : TableModel
    source : path, "-" or data frame
    target : str, optional
        Column of the labels; as in the fit by default.
    all_rows : bool
        Take the rows of all levels, if the table has a column of levels, and not only those of the
        most trusted one. Rows of levels that have numbers are never scored.
    embeddings : Embeddings, optional
        Of all rows of the table, if the model was fitted to some.
    **csv
        ``delimiter``, ``decimal`` and ``encoding`` of `read_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.tables import TableModel, read_held_out, read_labelled
    >>> rows = pd.DataFrame({"x": range(20), "label": ["leak"] * 10 + ["ok"] * 10})
    >>> table = read_labelled([], level_files={"expert": rows})
    >>> model = TableModel.fit(table, MultiFidelityClassifier("rbf"))
    >>> new = pd.DataFrame({"x": [2.5, 19], "label": ["leak", "ok"]})
    >>> held_out = read_held_out(model, new)
    >>> held_out.label.tolist(), held_out.n_known
    (['leak', 'ok'], 1)
    """
    roles, top = model.roles, to_text(model.classifier.levels_[-1])
    target, weight = target or roles.target, roles.weight
    frame = read_table(source, text={target, roles.fidelity, *model.text_columns()}, **csv)
    if embeddings is not None:
        frame = embeddings.add_to(frame, model.id_names())
    path = file_of(frame)
    if target not in frame.columns:
        advice = "name another one as target (--target)"
        raise no_column(target, frame.columns, path, " of labels", advice)
    has_levels = roles.fidelity in frame.columns and roles.fidelity not in model.encoder.kinds_
    level = top if has_levels and not all_rows else None
    n_all = len(frame)
    if level is not None:
        names = level_names(frame[roles.fidelity])
        frame = frame[names == level]
        if not len(frame):
            there = name_few(dict.fromkeys(name for name in names if name is not None))
            raise TableError(
                f"no row is of the most trusted level, {level!r}; the column has {there}; take the "
                "rows of all levels (all_rows=True, --all-rows), or other rows",
                path=path,
                column=roles.fidelity,
            )
    elif has_levels and roles.value:
        frame = frame[~np.isin(level_names(frame[roles.fidelity]), list(roles.value))]
    label, values = _labels(frame, target, model), None
    if weight is not None and weight in frame.columns:
        values, _ = to_numbers(frame[weight])
        _refuse(frame, weight, ~(np.isfinite(values) & (values >= 0.0)), NO_WEIGHT)
    x = model.to_numbers(frame)
    return HeldOutRows(x, label, values, level, n_all - len(frame), _known(model, x, label))


def _labels(frame: pd.DataFrame, target: str, model: TableModel) -> NDArray[Any]:
    """Labels, which must be classes of the model."""
    classes = model.classifier.classes_
    texts = cell_texts(frame[target])
    _refuse(frame, target, pd.isna(texts), NO_LABEL)
    code = pd.Index([to_text(c) for c in classes]).get_indexer(pd.Index(texts))
    problem = f"{{cell}} is not a class of the model, which has {name_few(classes)}"
    _refuse(frame, target, code < 0, problem)
    return np.asarray(classes[code])


def _refuse(frame: pd.DataFrame, column: str, wrong: Any, problem: str) -> None:
    cells = WrongCells(column, problem, ", nor has one after it", ", nor have {} rows after it")
    cells.add(frame, np.asarray(wrong, dtype=bool))
    if cells:
        raise cells.error()


def _known(model: TableModel, x: pd.DataFrame, label: NDArray[Any]) -> int:
    """How many rows have the features and the label of a training row."""
    if model.table is None:
        return 0
    trained, labels, _ = model.training()
    known = set(zip(map(bytes, trained.to_numpy()), labels.tolist(), strict=True))
    return sum(row in known for row in zip(map(bytes, x.to_numpy()), label.tolist(), strict=True))
