"""Lazy predictions for dask arrays and data frames."""

from __future__ import annotations

from copy import copy
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polyfid.distributed.partitions import aligned, is_frame, whole_rows
from polyfid.estimator.classifier import MultiFidelityClassifier


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
    X = whole_rows(X)
    by_row = fidelity is not None and np.ndim(fidelity) > 0
    levels = aligned("fidelity", fidelity, X) if by_row else fidelity
    if is_frame(X):
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
