"""Fits of rows that are in the memory of a cluster's workers, which add up their own blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

from distributed import Client, Future, KilledWorker, default_client
from distributed.client import ClosedClientError

from polyfid.distributed.forest import Forest
from polyfid.distributed.partitions import read_partitions
from polyfid.distributed.sums import add_up, result_of
from polyfid.estimator.blocks import given_levels, make_surveyor
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.fitted import random_numbers
from polyfid.estimator.inputs import Columns
from polyfid.learning.progress import Callback
from polyfid.rows import Rows
from polyfid.rows.source import Source, Sum, one_blas_thread


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
    trees: Literal["auto", "xgboost", "sample"] = "auto",
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
        Classes, and numbers at ``numeric_levels`` of the model, in the same partitions as X; or
        the name of a column of X that holds them.
    fidelity, sample_weight : dask array or series of shape (n,), or str, optional
        Levels and weights, given like y.
    client : distributed.Client, optional
        Default: the current client.
    checkpoint : path, optional
        A file to which the model is saved after every pass.
    callback : callable, optional
        Receives a `polyfid.learning.progress.Progress` after every pass.
    trees : {"auto", "xgboost", "sample"}
        What grows the trees of levels of which the client's sample, up to a million rows, does not
        hold all rows: XGBoost on the workers, from all rows, or scikit-learn on the client, from
        the sample. "auto" is "xgboost" if it is installed.

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
        numeric = None if model.numeric_levels is None else list(model.numeric_levels)
        given = X, y, fidelity, sample_weight
        raw = client.compute(read_partitions(features, levels, numeric, *given))
        contents = add_up(client, surveyor, raw)
        if contents is None:
            raise ValueError("X has no rows (0 samples); at least one is needed")
        survey = contents.survey(levels)
        sizes = client.map(_size, raw, pure=False)
        known = [result_of(client, size) for size in sizes]
        blocks = client.map(_encode, [survey.coding] * len(raw), raw, known, pure=False)
        del raw  # workers may forget raw blocks once they are encoded; they can be read again
        forest = None
        if trees != "sample" and _has_xgboost(trees):
            n_rows = survey.counts.sum(axis=1) + survey.numbers
            forest = Forest(client, blocks, n_rows.tolist())
        source = ClusterSource(survey.sample, survey.weight, client, blocks, forest)
        return model._fit_source(features, survey, source, rng, checkpoint, callback)


@dataclass(frozen=True)
class ClusterSource(Source):
    """Rows on a cluster: futures of `Rows`, or of None where a partition has no rows."""

    client: Client
    blocks: Sequence[Future]
    forester: Forest | None = None

    def reduce(self, function: Callable[[Rows], Sum]) -> Sum:
        # For workers in this process; Dask sees to it where workers have their own.
        with one_blas_thread():
            total: Sum = add_up(self.client, function, self.blocks)
        return total


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


def _has_xgboost(trees: str) -> bool:
    """Whether XGBoost is there; an error if it must be."""
    if trees not in ("auto", "xgboost"):
        raise ValueError(f'trees must be "auto", "xgboost" or "sample", got {trees!r}')
    if find_spec("xgboost") is not None:
        return True
    if trees == "xgboost":
        raise ModuleNotFoundError(
            'trees="xgboost" needs xgboost; install it with: pip install "polyfid[dask]"',
            name="xgboost",
        )
    return False


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
