"""Predictions for dask arrays and data frames, computed when they are asked for."""

from __future__ import annotations

from copy import copy
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polyfid.distributed.partitions import aligned, is_frame, whole_rows
from polyfid.estimator.classifier import MultiFidelityClassifier


def predict(model: MultiFidelityClassifier, X: Any, fidelity: Any = None) -> Any:
    """Most probable classes of the rows of a dask array or data frame.

    Parameters
    ----------
    model : MultiFidelityClassifier
        Fitted, here or on a cluster.
    X : dask array of shape (n, d), or dask data frame
        The features, and no other columns.
    fidelity : level name, dask array or dask series of shape (n,), optional
        The top level by default.

    Returns
    -------
    dask array of shape (n,)
        For a data frame a series ``class`` with its index. Nothing is computed yet.

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
    sent = _send(model)
    kind = model.classes_.dtype
    if is_frame(X):
        meta = pd.Series(np.empty(0, kind), name="class", index=X._meta.index)
        return _by_frames(_class_series, sent, X, fidelity, meta)
    return _by_blocks(_classes, sent, X, fidelity, kind, "i", {})


def predict_proba(model: MultiFidelityClassifier, X: Any, fidelity: Any = None) -> Any:
    """Class probabilities of the rows of a dask array or data frame.

    Parameters
    ----------
    model, X, fidelity
        As for `predict`.

    Returns
    -------
    dask array of shape (n, n_classes)
        In the order of ``classes_``. For a data frame a data frame with its index, whose columns
        are ``p_<class>``. Nothing is computed yet.

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
    sent = _send(model)
    if is_frame(X):
        names = _columns(model)
        meta = pd.DataFrame(np.empty((0, len(names))), columns=names, index=X._meta.index)
        return _by_frames(_probability_frame, sent, X, fidelity, meta)
    new = {"k": len(model.classes_)}
    return _by_blocks(_probabilities, sent, X, fidelity, np.dtype(float), "ik", new)


def _send(model: MultiFidelityClassifier) -> Delayed:
    """The model as it is now, as one node of a graph."""
    check_is_fitted(model, "report_")
    sent = copy(model)
    sent.__dict__.pop("_resume", None)  # of fitting only
    return delayed(sent, pure=False, traverse=False)


def _columns(model: MultiFidelityClassifier) -> list[str]:
    return [f"p_{c}" for c in model.classes_.tolist()]


def _by_blocks(
    function: Any,
    sent: Delayed,
    X: da.Array,
    fidelity: Any,
    dtype: np.dtype[Any],
    out: str,
    new_axes: dict[str, int],
) -> da.Array:
    """A function of the model, rows and their fidelity, of every block of rows."""
    parts: list[Any] = [whole_rows(X), "ij"]
    given = {"fidelity": fidelity}
    if fidelity is not None and np.ndim(fidelity) > 0:
        parts += [aligned("fidelity", fidelity, X), "i"]
        given = {}
    return da.blockwise(
        function,
        out,
        *parts,
        model=sent,
        **given,
        new_axes=new_axes,
        dtype=dtype,
        concatenate=True,
        align_arrays=False,  # they are, and their sizes may be unknown
        meta=np.empty((0,) * len(out), dtype),
    )


def _by_frames(function: Any, sent: Delayed, X: Any, fidelity: Any, meta: Any) -> Any:
    """A function of rows, model and fidelity, of every partition of rows."""
    if fidelity is not None and np.ndim(fidelity) > 0:
        fidelity = aligned("fidelity", fidelity, X)
    return X.map_partitions(function, sent, fidelity, meta=meta, align_dataframes=False)


def _classes(x: Any, fidelity: Any, model: MultiFidelityClassifier) -> NDArray[Any]:
    return model.predict(x, fidelity) if len(x) else np.empty(0, model.classes_.dtype)


def _probabilities(x: Any, fidelity: Any, model: MultiFidelityClassifier) -> NDArray[np.float64]:
    return model.predict_proba(x, fidelity) if len(x) else np.empty((0, len(model.classes_)))


def _class_series(X: Any, model: MultiFidelityClassifier, fidelity: Any) -> pd.Series[Any]:
    return pd.Series(_classes(X, fidelity, model), name="class", index=X.index)


def _probability_frame(X: Any, model: MultiFidelityClassifier, fidelity: Any) -> pd.DataFrame:
    values = _probabilities(X, fidelity, model)
    return pd.DataFrame(values, columns=_columns(model), index=X.index)
