"""Sums over blocks of rows that are in the memory of a cluster's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import dask
from distributed import Client, Future, default_client, get_worker

from polyfid.distributed.blas_limit import BLAS_LIMIT
from polyfid.rows import Rows
from polyfid.rows.source import Source, Sum


def find_client(given: Client | None) -> Client:
    """The client that was given, or the current one."""
    if given is not None:
        return given
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "client is None, and there is no current client; connect to a cluster first: "
            "distributed.Client(address), or distributed.Client() for one on this machine"
        ) from None


@dataclass(frozen=True)
class ClusterSource(Source):
    """Rows on a cluster: futures of `Rows`, or of None where a partition has no rows."""

    client: Client
    blocks: Sequence[Future]

    def reduce(self, function: Callable[[Rows], Sum]) -> Sum:
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
        client.replicate([sent])
    terms = client.map(_term, [sent] * len(blocks), blocks, pure=False)
    while len(terms) > 1:
        # Before further terms, or all of them would be in memory at the same time.
        sums = client.map(_plus, terms[:-1:2], terms[1::2], pure=False, priority=1)
        terms = sums + terms[2 * len(sums) :]
    return terms[0].result()


def _same(value: Any) -> Any:
    return value


def _term(function: Callable[[Any], Any], block: Any) -> Any:
    if block is None:
        return None
    with BLAS_LIMIT if get_worker().state.nthreads > 1 else nullcontext():
        return function(block)


def _plus(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one + other
