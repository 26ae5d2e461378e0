"""Sums over blocks that are in the memory of a cluster's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import dask
from distributed import Client, Future

#: Seconds without any worker after which a fit gives up.
PATIENCE = 30
#: Seconds between checks of whether there are workers, and for a copy to reach all of them.
INTERVAL = 2
COPYING = 5


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
    return result_of(client, terms[0])


def result_of(client: Client, future: Future) -> Any:
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


def _same(value: Any) -> Any:
    return value


def _apply(function: Callable[[Any], Any], block: Any) -> Any:
    """A function of a block; None if it has no rows."""
    return None if block is None else function(block)


def _plus(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one + other
