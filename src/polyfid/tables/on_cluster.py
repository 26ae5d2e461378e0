"""Fits and predictions of tables on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed

from polyfid import distributed
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.learning.progress import Callback
from polyfid.tables.spool import Spool


def fit_on_cluster(
    model: MultiFidelityClassifier,
    spool: Spool,
    client: Any,
    checkpoint: str | os.PathLike[str] | None,
    callback: Callback | None,
) -> None:
    """Fit to the rows of a spool; workers read its blocks from the folder."""
    blind = [who for who, sees in client.run(_is_there, str(spool.folder)).items() if not sees]
    if blind:
        raise ValueError(
            f"worker {blind[0]} does not see the folder {spool.folder}; name one on a file system "
            "that all workers share (spool=..., --spool)"
        )
    names = list(spool.summary.encoder.names_)
    X = dd.from_map(
        _column,
        [spool] * len(spool),
        range(len(spool)),
        place=0,
        meta=pd.DataFrame(columns=names, dtype=np.float64),
    )
    others = [_array(spool, place) for place in range(1, len(spool.block(0)))]
    distributed.fit(model, X, *others, client=client, checkpoint=checkpoint, callback=callback)


def _is_there(folder: str) -> bool:
    return Path(folder).is_dir()


def _column(spool: Spool, number: int, place: int) -> Any:
    return spool.block(number)[place]


def _array(spool: Spool, place: int) -> da.Array:
    """One entry per row, in one chunk per block."""
    read, dtype = delayed(_column, pure=False), spool.block(0)[place].dtype
    n, rows = spool.summary.n_rows, spool.rows
    return da.concatenate(
        [
            da.from_delayed(read(spool, k, place), (min(rows, n - k * rows),), dtype)
            for k in range(len(spool))
        ]
    )


def in_order(
    client: Any, work: Callable[[Any, Any], Any], model: Any, items: Iterable[Any]
) -> Iterator[Any]:
    """The results of ``work(model, item)`` for all items, in order.

    Two items per thread of the cluster are under way at a time. They travel inside the tasks, so
    that one that was on a lost worker can be sent again.
    """
    ahead = 2 * max(sum(client.nthreads().values()), 1)
    waiting: deque[Any] = deque()
    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            sent = client.submit(_same, model, pure=False)
            for item in items:
                waiting.append(client.submit(work, sent, item, pure=False))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        client.cancel([*waiting])


def _same(value: Any) -> Any:
    return value
