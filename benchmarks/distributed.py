"""A fit on a cluster of two worker processes against the same blocks in two threads of one."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.figures import Context, Figure, Skip, at_most, info
from benchmarks.timing import take_turns
from polyfid import ArrayBlocks, MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF

WORKERS = 2
#: Workers keep freed memory, as docs/howto/clusters.md recommends.
MALLOC = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}


def run(context: Context) -> list[Figure]:
    try:
        import dask
        import dask.array as da
        from distributed import Client, LocalCluster

        from polyfid import distributed
    except ImportError as error:
        raise Skip(f"needs {error.name}: the extra dask") from None
    context.progress("distributed")
    n_low, n_high = (50_000, 1_000) if context.quick else (1_000_000, 10_000)
    rows = 8192 if context.quick else 16_384
    problem = make_cokriging(n_low, n_high, 5, labels="sigmoid", random_state=0)
    order = np.random.RandomState(0).permutation(n_low + n_high)
    parts = [np.asarray(problem[name])[order] for name in ("data", "target", "fidelity")]
    collections = [da.from_array(part, chunks=(rows, *part.shape[1:])) for part in parts]
    given = {"n_inducing": (200, 100), "optimizer": None, "random_state": 0}

    def model(n_jobs: int | None = None) -> MultiFidelityClassifier:
        return MultiFidelityClassifier(4.0 * RBF(2.0), **given, n_jobs=n_jobs)

    def local() -> MultiFidelityClassifier:
        return model(WORKERS).fit_blocks(ArrayBlocks(*parts, rows=rows))

    with (
        dask.config.set(MALLOC),
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(import_it)
        calls = {
            "fit_blocks": local,
            "cluster": partial(distributed.fit, model(), *collections, client=client),
        }
        repetitions = 1 if context.quick else 2
        seconds, fits = take_turns(calls, repetitions, time.perf_counter)
        used, _ = take_turns(calls, 1, lambda: _cpu_of_all(client))
    ratio = np.median(seconds["cluster"] / seconds["fit_blocks"])
    some = parts[0][:1000]
    proba = [fits[name].predict_proba(some) for name in calls]
    apart = float(np.abs(proba[0] - proba[1]).max())
    note = f"{n_low} + {n_high} rows of 5 features, 200 + 100 inducing points, {WORKERS} workers"
    return [
        at_most("distributed: a fit against fit_blocks", float(ratio), 1.3, "x the time", note),
        at_most("distributed: probabilities apart", apart, 1e-8),
        *(
            info(f"distributed: {name}", float(np.median(taken)), "s", f"CPU {used[name][0]:.3g} s")
            for name, taken in seconds.items()
        ),
    ]


def import_it() -> None:
    """What a worker does once."""
    import polyfid.distributed  # noqa: F401


def _cpu_of_all(client: Any) -> float:
    """CPU seconds of this process and of the workers, so far."""
    return time.process_time() + sum(client.run(time.process_time).values())
