"""Fits of rows that are in the memory of a cluster's workers, which add up their own blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, default_client
from distributed.client import ClosedClientError

from polyfid.distributed.partitions import read_partitions
from polyfid.estimator.blocks import given_levels, make_surveyor
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.fitted import random_numbers
from polyfid.estimator.inputs import Columns
from polyfid.learning.progress import Callback
from polyfid.rows import Rows
from polyfid.rows.source import Source, Sum, one_blas_thread

#: Seconds without any worker after which a fit gives up.
PATIENCE = 30
#: Seconds between checks of whether there are workers, and for a copy to reach all of them.
INTERVAL = 2
COPYING = 5


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
    Partitions of lost workers are read again by others; a cluster that has had no worker at all
    for 30 s is an error.

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
    client = client or default_client()
    levels, features = given_levels(model), Columns()
    with random_numbers(model.random_state) as rng, _in_plain_words():
        surveyor = make_surveyor(model, rng)
        raw = client.compute(read_partitions(features, levels, X, y, fidelity, sample_weight))
        contents = add_up(client, surveyor, raw)
        if contents is None:
            raise ValueError("X has no rows (0 samples); at least one is needed")
        survey = contents.survey(levels)
        sizes = client.map(_size, raw, pure=False)
        known = [_result(client, size) for size in sizes]
        blocks = client.map(_encode, [survey.coding] * len(raw), raw, known, pure=False)
        del raw  # workers may forget raw blocks once they are encoded; they can be read again
        source = ClusterSource(survey.sample, survey.weight, client, blocks)
        return model._fit_source(features, survey, source, rng, checkpoint, callback)


@dataclass(frozen=True)
class ClusterSource(Source):
    """Rows on a cluster: futures of `Rows`, or of None where a partition has no rows."""

    client: Client
    blocks: Sequence[Future]

    def reduce(self, function: Callable[[Rows], Sum]) -> Sum:
        # For workers in this process; Dask sees to it where workers have their own.
        with one_blas_thread():
            total: Sum = add_up(self.client, function, self.blocks)
        return total


def add_up(client: Client, function: Callable[[Any], Any], blocks: Sequence[Future]) -> Any:
    """The sum of a function of all blocks that are not None; None if all are.

    Each worker computes the terms of its own blocks. Neighbours are added in pairs, then pairs of
    pairs: always the same ones, so that the sum does not depend on which worker is when ready.
    """
    # The function, which may hold large matrices, is the result of a task rather than scattered:
    # if all workers that have it are lost, it can be made again.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
        sent = client.submit(_same, function, pure=False)
    # Without a copy on every worker blocks would be moved to where it is. If workers come or go at
    # this moment it may fail; then those without a copy fetch one.
    with suppress(Exception):
        client.replicate([sent], callback_timeout=COPYING)
    terms = client.map(_apply, [sent] * len(blocks), blocks, pure=False)
    while len(terms) > 1:
        # Before further terms, or all of them would be in memory at the same time.
        sums = client.map(_plus, terms[:-1:2], terms[1::2], pure=False, priority=1)
        terms = sums + terms[2 * len(sums) :]
    return _result(client, terms[0])


def _result(client: Client, future: Future) -> Any:
    """The result of a task; an error if there has been no worker to compute it for some time."""
    since = None
    while True:
        try:
            return future.result(timeout=INTERVAL)
        except TimeoutError:
            if future.done():  # it is the task's own error
                raise
        if client.nthreads():
            since = None
            continue
        since = since or monotonic()
        if monotonic() - since > PATIENCE:
            raise RuntimeError(
                f"the cluster has had no workers for {PATIENCE} s; start some, and fit again"
            )


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Errors of Dask that name tasks, as errors that say what happened and what to do."""
    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            "several workers of the cluster died one after another while they worked on the same "
            "partition, most often because it does not fit into their memory; use smaller "
            "partitions (repartition or rechunk), or workers with more memory"
        ) from error
    except (ClosedClientError, CancelledError) as error:
        raise RuntimeError(
            "the client or the cluster of the fit is closed; connect a new client, and fit again "
            "(with checkpoint= and warm_start=True it goes on from the last pass)"
        ) from error


def _same(value: Any) -> Any:
    return value


def _apply(function: Callable[[Any], Any], block: Any) -> Any:
    """A function of a block; None if it has no rows."""
    return None if block is None else function(block)


def _size(block: Any) -> int | None:
    return None if block is None else len(block.x)


def _encode(coding: Callable[[Any], Rows], block: Any, size: int | None) -> Rows | None:
    """A block in numbers, which must have as many rows as when it was first read.

    Dask reads a partition again if the worker that held it was lost.
    """
    if _size(block) != size:
        number = "" if block is None else f" {block.number}"
        raise ValueError(
            f"partition{number} has {_size(block) or 0} rows, and had {size or 0} when it was "
            "first read; partitions must be the same whenever they are read"
        )
    return None if block is None else coding(block)


def _plus(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one + other
