"""Fits and predictions of tables by the workers of a Dask cluster."""

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
from polyfid.tabular.spool import Spool


def fit_on_cluster(
    model: MultiFidelityClassifier,
    spool: Spool,
    client: Any,
    checkpoint: str | os.PathLike[str] | None,
    callback: Callback | None = None,
) -> None:
    """Fit to the rows of a spool, of which each worker reads blocks from the folder."""
    blind = [who for who, sees in client.run(_is_there, str(spool.folder)).items() if not sees]
    if blind:
        raise ValueError(
            f"worker {blind[0]} does not see the folder {spool.folder}; name one on a file system "
            "that all workers share (spool=..., --spool)"
        )
    X = dd.from_map(
        spool.part,
        ["x"] * len(spool.sizes),
        range(len(spool.sizes)),
        meta=pd.DataFrame(columns=list(spool.found.recipe.names), dtype=np.float64),
    )
    levels = np.array(spool.found.levels)
    distributed.fit(
        model,
        X,
        _array(spool, "code", spool.found.classes.dtype),
        _array(spool, "level", levels.dtype),
        _array(spool, "weight", np.dtype(float)) if spool.weighted else None,
        client=client,
        checkpoint=checkpoint,
        callback=callback,
    )


def _is_there(folder: str) -> bool:
    return Path(folder).is_dir()


def _array(spool: Spool, name: str, dtype: np.dtype[Any]) -> da.Array:
    """One entry a row, in as many pieces as there are blocks."""
    read = delayed(spool.part, pure=False)
    return da.concatenate(
        [da.from_delayed(read(name, k), (n,), dtype) for k, n in enumerate(spool.sizes)]
    )


def in_order(
    client: Any, work: Callable[[Any, Any], Any], model: Any, items: Iterable[Any]
) -> Iterator[Any]:
    """What ``work`` makes of the model and each item, in order.

    Two items a thread of the cluster are on their way at a time. They travel inside the tasks, so
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
