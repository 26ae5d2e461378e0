"""Dask's arrays and data frames, partition by partition: read for a fit, or predicted lazily."""

from __future__ import annotations

from copy import copy
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.dataframe.dispatch import meta_nonempty
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import Columns, read_block, read_features
from polyfid.rows.survey import Block, Levels


def predict(model: MultiFidelityClassifier, X: Any, fidelity: Any = None) -> Any:
    """Predict the most probable class of each row of a dask array or data frame.

    Parameters
    ----------
    model : MultiFidelityClassifier
        A fitted model.
    X : dask array of shape (n, d), or dask data frame
        The features, and no other columns.
    fidelity : level name, dask array or dask series of shape (n,), optional
        Default: the top level.

    Returns
    -------
    dask array of shape (n,)
        For a data frame a dask series ``class`` with the same index. It is lazy: computed when
        dask is asked to.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, distributed
    >>> from polyfid.kernels import RBF
    >>> X = np.linspace(-1, 1, 10)[:, None]
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)
    >>> distributed.predict(model, da.from_array(X[::3], 2)).compute(scheduler="synchronous")
    array([False, False,  True,  True])
    """
    return _predict(model, "predict", X, fidelity)


def predict_proba(model: MultiFidelityClassifier, X: Any, fidelity: Any = None) -> Any:
    """Predict class probabilities of each row of a dask array or data frame.

    Parameters
    ----------
    model, X, fidelity
        As for `predict`.

    Returns
    -------
    dask array of shape (n, n_classes)
        In the order of ``classes_``, and lazy. For a data frame a dask data frame with the same
        index and columns ``p_<class>``.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyfid import MultiFidelityClassifier, distributed
    >>> from polyfid.kernels import RBF
    >>> X = pd.DataFrame({"size": np.linspace(-1, 1, 10)})
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, np.where(X["size"] > 0, "b", "a"))
    >>> proba = distributed.predict_proba(model, dd.from_pandas(X, npartitions=2))
    >>> list(proba.columns), len(proba.compute(scheduler="synchronous"))
    (['p_a', 'p_b'], 10)
    """
    return _predict(model, "predict_proba", X, fidelity)


def _predict(model: MultiFidelityClassifier, method: str, X: Any, fidelity: Any) -> Any:
    """Predictions by a method of the model, as it is now, for every partition."""
    check_is_fitted(model, "report_")
    sent = copy(model)
    sent.__dict__.pop("_resume", None)  # of fitting only
    node = delayed(sent, pure=False, traverse=False)
    X = _whole_rows(X)
    by_row = fidelity is not None and np.ndim(fidelity) > 0
    levels = _aligned("fidelity", fidelity, X) if by_row else fidelity
    if _is_frame(X):
        meta = _frame_block(X._meta, None, model, method)
        options = {"meta": meta, "align_dataframes": False}
        return X.map_partitions(_frame_block, levels, node, method, **options)
    empty = _block(np.empty((0, X.shape[1])), None, model, method)
    return da.blockwise(
        _block,
        "ik"[: empty.ndim],
        X,
        "ij",
        levels,
        "i" if by_row else None,
        model=node,
        method=method,
        new_axes={"k": empty.shape[1]} if empty.ndim > 1 else {},
        concatenate=True,
        align_arrays=False,  # they are, and their sizes may be unknown
        meta=empty,
    )


def _block(x: Any, fidelity: Any, model: MultiFidelityClassifier, method: str) -> NDArray[Any]:
    """Predictions for a partition, which may have no rows."""
    if len(x):
        return np.asarray(getattr(model, method)(x, fidelity))
    if method == "predict":
        return np.empty(0, model.classes_.dtype)
    return np.empty((0, len(model.classes_)))


def _frame_block(X: Any, fidelity: Any, model: MultiFidelityClassifier, method: str) -> Any:
    values = _block(X, fidelity, model, method)
    if values.ndim == 1:
        return pd.Series(values, name="class", index=X.index)
    columns = [f"p_{c}" for c in model.classes_.tolist()]
    return pd.DataFrame(values, columns=columns, index=X.index)


def _is_frame(X: Any) -> bool:
    """Whether X is a dask data frame; if not, it must be a dask array of shape (n, d)."""
    if isinstance(X, dd.DataFrame):
        return True
    if not isinstance(X, da.Array) or X.ndim != 2 or np.isnan(X.shape[1]):
        shape = f" of shape {X.shape}" if isinstance(X, da.Array) else ""
        raise TypeError(
            "X must be a dask data frame, or a dask array of two dimensions with a known number of "
            f"features, got {type(X).__name__}{shape}; use dask.array.from_array or "
            "dask.dataframe.from_pandas, or the method of the model"
        )
    return False


def _whole_rows(X: Any) -> Any:
    """X with all features of a row in the same partition."""
    return X if _is_frame(X) or X.numblocks[1] == 1 else X.rechunk({1: -1})


def _aligned(name: str, values: Any, X: Any) -> Any:
    """A dask array or series (n,) in as many partitions as X, of as many rows where it is known."""
    if not isinstance(values, da.Array | dd.Series) or values.ndim != 1:
        raise TypeError(
            f"{name} must be a dask array of one dimension or a dask series, one entry per row of "
            f"X, or the name of a column of X; got {type(values).__name__}"
        )
    n_partitions = X.npartitions if isinstance(X, dd.DataFrame) else X.numblocks[0]
    if isinstance(values, da.Array) and isinstance(X, da.Array):
        ours, theirs = values.shape[0], X.shape[0]
        if ours == theirs:  # not if sizes are unknown, which are NaN
            return values.rechunk((X.chunks[0],))
        if not np.isnan(ours + theirs):
            raise ValueError(f"{name} has {ours} entries and X has {theirs} rows; pass as many")
    if values.npartitions != n_partitions:
        raise ValueError(
            f"{name} has {values.npartitions} partitions and X has {n_partitions}; they must be "
            "cut at the same rows: repartition or rechunk one of them"
        )
    return values


def read_partitions(
    features: Columns,
    levels: Levels | None,
    numeric_levels: Any,
    X: Any,
    y: Any,
    fidelity: Any,
    sample_weight: Any,
) -> list[Delayed]:
    """A Block, or None, for each partition, still to be computed; sets the features of X."""
    if y is None:
        raise ValueError("y must be given: one class per row of X")
    X = _whole_rows(X)
    columns: list[str | None] = []
    pieces = [X.to_delayed()]
    given = {"y": y, "fidelity": fidelity, "sample_weight": sample_weight}
    for name, values in given.items():
        is_column = isinstance(values, str)
        if is_column and values not in getattr(X, "columns", ()):
            raise ValueError(
                f"{name} must be a dask array or series, or the name of a column of X; got "
                f"{values!r}, and X has columns {list(getattr(X, 'columns', ()))}"
            )
        columns.append(values if is_column else None)
        absent = values is None or is_column
        pieces.append([None] * X.npartitions if absent else _aligned(name, values, X).to_delayed())
    example: Any = np.zeros((1, X.shape[1]))
    if _is_frame(X):
        example = meta_nonempty(X.drop(columns=[c for c in columns if c is not None])._meta)
    read_features(features, example, reset=True)
    return [
        delayed(_read_partition)(features, levels, numeric_levels, columns, number, *parts)
        for number, parts in enumerate(zip(*map(np.ravel, pieces), strict=True))
    ]


def _read_partition(
    features: Columns,
    levels: Levels | None,
    numeric_levels: Any,
    columns: list[str | None],
    number: int,
    X: Any,
    *others: Any,
) -> Block | None:
    """A partition, checked; ``others`` are labels and more that are no ``columns`` of X."""
    named = [column for column in columns if column is not None]
    if absent := [column for column in named if column not in X.columns]:
        raise ValueError(
            f"partition {number} lacks the column {absent[0]!r}; it has {list(X.columns)}. All "
            "partitions must have the same columns"
        )
    values = [
        other if column is None else X[column]
        for column, other in zip(columns, others, strict=True)
    ]
    X = X.drop(columns=named) if named else X
    try:
        return read_block(features, levels, number, (X, *values), numeric_levels=numeric_levels)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from error
