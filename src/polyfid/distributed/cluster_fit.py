"""Fits of rows on a cluster."""

from __future__ import annotations

import os
from typing import Any

from distributed import Client
from sklearn.utils import check_random_state

from polyfid.distributed.cluster_source import ClusterSource, add_up, find_client
from polyfid.distributed.partitions import read_partitions
from polyfid.estimator.blocks import given_levels, make_surveyor
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import Columns
from polyfid.learning.progress import Callback
from polyfid.rows import Rows
from polyfid.rows.survey import Block, Coding


def fit(
    model: MultiFidelityClassifier,
    X: Any,
    y: Any,
    fidelity: Any = None,
    sample_weight: Any = None,
    *,
    client: Client | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
) -> MultiFidelityClassifier:
    """Fit a model to dask arrays or data frames on the workers that hold them.

    The same as `MultiFidelityClassifier.fit_blocks` with one block per partition. Workers keep
    their partitions in memory as numbers, and compute sums over them in every pass of inference;
    the client tunes hyper-parameters on a sample of the rows and takes the steps between passes.

    Parameters
    ----------
    model : MultiFidelityClassifier
        The model to fit.
    X : dask array of shape (n, d), or dask data frame
        Partitions may be empty and of unknown size.
    y : dask array or series of shape (n,), or str
        Classes, in the same partitions as X; or the name of a column of X that holds them.
    fidelity, sample_weight : dask array or series of shape (n,), or str, optional
        Levels and weights, given like y.
    client : distributed.Client, optional
        Default: the current client.
    checkpoint : path, optional
        A file to which the model is saved after every pass.
    callback : callable, optional
        Receives a `polyfid.learning.progress.Progress` after every pass.

    Returns
    -------
    MultiFidelityClassifier
        The same model, fitted.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from polyfid import MultiFidelityClassifier, distributed
    >>> from polyfid.kernels import RBF
    >>> X = np.random.RandomState(0).uniform(-1, 1, (600, 2))
    >>> rows, labels = da.from_array(X, (200, 2)), da.from_array(X[:, 0] > 0, 200)
    >>> with Client(processes=False, dashboard_address=":0"):  # or Client("scheduler:8786")
    ...     model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=20)
    ...     model = distributed.fit(model, rows, labels)
    >>> model.predict([[-0.5, 0.0], [0.5, 0.0]])
    array([False,  True])
    """
    client = find_client(client)
    rng = check_random_state(model.random_state)
    surveyor, levels, features = make_surveyor(model, rng), given_levels(model), Columns()
    raw = client.compute(read_partitions(features, levels, X, y, fidelity, sample_weight))
    contents = add_up(client, surveyor, raw)
    if contents is None:
        raise ValueError("X has no rows (0 samples); at least one is needed")
    survey = contents.survey(levels)
    blocks = client.map(_encode, raw, coding=survey.coding, pure=False)
    del raw  # workers may forget raw blocks once they are encoded; they can be read again
    source = ClusterSource(survey.sample, survey.weight, client, blocks)
    return model._fit_source(features, survey, source, rng, checkpoint, callback)


def _encode(block: Block | None, coding: Coding) -> Rows | None:
    """A partition in numbers; None if it has no rows."""
    return None if block is None else coding(block)
