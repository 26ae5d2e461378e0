"""A Dask cluster that breaks: workers, memory, scheduler and client lost, partitions unlike."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.attacks.trial import Trial, attack
from benchmarks.figures import Context, Skip
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF

try:
    import dask.array as da
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from polyfid import distributed
except ModuleNotFoundError as missing:
    raise Skip(f"needs Dask: {missing}") from missing

#: Seconds that anything may take.
LIMIT = 60
RNG = np.random.RandomState(0)
X = RNG.uniform(-1, 1, (600, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
LEVEL = np.where(RNG.uniform(size=600) < 0.2, "expert", "crowd")
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": Y, "level": LEVEL})
PARTS = [slice(k, k + 100) for k in range(0, 600, 100)]


def new() -> MultiFidelityClassifier:
    return MultiFidelityClassifier(
        2.0 * RBF(0.7),
        n_inducing=(15, 8),
        optimizer=None,
        n_tuning=300,
        random_state=3,
        levels=["crowd", "expert"],
    )


def two_workers(**changes: Any) -> LocalCluster:
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    return LocalCluster(**{**how, "silence_logs": logging.CRITICAL, **changes})


class Hang(BaseException):
    """Not an Exception, so that nobody mistakes it for an error of the cluster."""


def timed(act: Callable[[], str | None]) -> str | None:
    """What an attempt says, or that it hung."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        return act()
    except Hang:
        return f"no answer within {LIMIT} s"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Partitions unlike the others: a change of the third, and a word of the error; None is no error.

CHANGES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str | None]] = {
    "none": (lambda part: part, None),
    "float32": (lambda part: part.astype({"a": "float32"}), None),
    "whole numbers": (lambda part: part.assign(a=part["a"].round().astype(int)), None),
    "no rows": (lambda part: part[:0], None),
    "columns in another order": (lambda part: part[["b", "a", "label", "level"]], "partition 3"),
    "a column too many": (lambda part: part.assign(c=1.0), "partition 3"),
    "a column too few": (lambda part: part.drop(columns="b"), "partition 3"),
    "a column of another name": (lambda part: part.rename(columns={"b": "z"}), "partition 3"),
    "text": (lambda part: part.assign(a="x"), "not numeric: a"),
    "no labels": (lambda part: part.drop(columns="label"), "'label'"),
    "labels missing": (lambda part: part.assign(label=None), "missing"),
    "numbers as labels": (lambda part: part.assign(label=1), "text in some blocks"),
    "an unknown level": (lambda part: part.assign(level="who"), "'who'"),
    "NaN": (lambda part: part.assign(b=np.nan), "NaN"),
}


def parts_of(name: str) -> list[pd.DataFrame]:
    change = CHANGES[name][0]
    return [change(FRAME[p]) if k == 3 else FRAME[p] for k, p in enumerate(PARTS)]


def unlike(client: Client, name: str) -> str | None:
    parts, word = parts_of(name), CHANGES[name][1]
    table = dd.from_map(lambda part: part, parts, meta=FRAME[:0])
    try:
        there = distributed.fit(new(), table, "label", "level", client=client)
    except (ValueError, TypeError) as error:
        said = word is not None and word in str(error)
        return None if said else f"an error that does not say {word!r}: {error}"
    if word is not None:
        return "it was accepted"
    here = new().fit_blocks([(p[["a", "b"]], p["label"], p["level"]) for p in parts])
    return same(there, here)


def same(one: MultiFidelityClassifier, other: MultiFidelityClassifier) -> str | None:
    rows = FRAME[["a", "b"]] if hasattr(one, "feature_names_in_") else X
    gap = float(np.abs(one.predict_proba(rows) - other.predict_proba(rows)).max())
    return None if gap < 1e-8 else f"other probabilities, by {gap:.1e}"


# Losses in the middle of a fit


def broken(act: Callable[[LocalCluster, Client], None], may_fail: bool, **how: Any) -> str | None:
    """A fit during whose first pass something is lost: the right answer, or a plain error."""
    cluster = two_workers(**how)
    client = Client(cluster)
    arrays = [da.from_array(v, chunks=(100, *v.shape[1:])) for v in (X, Y, LEVEL)]
    done: list[bool] = []

    def callback(step: Any) -> None:
        if step.stage == "passes" and not done:
            done.append(True)
            act(cluster, client)

    try:
        there = distributed.fit(new(), *arrays, client=client, callback=callback)
    except RuntimeError as error:
        plain = "closed; connect" in str(error) or "no workers" in str(error)
        return None if may_fail and plain else f"{type(error).__name__}: {error}"
    finally:
        client.close(timeout=5)
        cluster.close(timeout=10)
    return same(there, new().fit_blocks([(X[p], Y[p], LEVEL[p]) for p in PARTS]))


def kill(n: int, cluster: LocalCluster, client: Client) -> None:
    for pid in sorted(client.run(os.getpid).values())[:n]:
        os.kill(pid, signal.SIGKILL)


def eater(part: pd.DataFrame, number: int) -> pd.DataFrame:
    """A partition that takes more than a gigabyte to read."""
    if number == 3:
        taken = np.ones(150_000_000)
        time.sleep(3)
        return part.assign(a=part["a"] + 0 * taken[: len(part)])
    return part


def out_of_memory() -> str | None:
    with two_workers(memory_limit="600MiB") as cluster, Client(cluster) as client:
        parts = [FRAME[p] for p in PARTS]
        table = dd.from_map(eater, parts, range(6), meta=FRAME[:0])
        try:
            distributed.fit(new(), table, "label", "level", client=client)
        except RuntimeError as error:
            return None if "memory" in str(error) else str(error)
    return "it fitted into memory"


LOSSES: dict[str, Callable[[], str | None]] = {
    "a worker killed": lambda: broken(partial(kill, 1), may_fail=False),
    "both workers killed": lambda: broken(partial(kill, 2), may_fail=True),
    "the scheduler closed": lambda: broken(lambda cluster, _: cluster.close(), may_fail=True),
    "the client closed": lambda: broken(lambda _, client: client.close(), may_fail=True),
    "all workers taken away": lambda: broken(lambda cluster, _: cluster.scale(0), may_fail=True),
    "a partition larger than memory": out_of_memory,
}


def trials(context: Context) -> Iterator[Trial]:
    """Partitions of all kinds, then losses."""
    with two_workers() as cluster, Client(cluster) as client:
        yield attack(
            "a partition unlike the others",
            "the answer of the same blocks here, or an error that says why",
            CHANGES,
            lambda name: timed(lambda: unlike(client, name)),
        )
    names = ["a worker killed", "the client closed"] if context.quick else list(LOSSES)
    yield attack(
        "something lost in the middle of a fit on a cluster",
        f"the right answer or a plain error, within {LIMIT} s",
        names * (1 if context.quick else 3),
        lambda name: timed(LOSSES[name]),
    )
