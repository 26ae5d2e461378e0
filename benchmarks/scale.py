"""Many rows: growth of time and memory, and the same problems beside GPyTorch's SVGP."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import Context, Figure, Table, at_most, info, peer
from benchmarks.many_rows import save
from benchmarks.timing import run_python

#: Rows of the two levels.
SIZES = ((100_000, 3_000), (300_000, 5_000), (1_000_000, 10_000))
QUICK = ((20_000, 1_000), (60_000, 2_000))


def run(context: Context) -> list[Figure]:
    """Default fits of more and more rows."""
    sizes = QUICK if context.quick else SIZES
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for n_low, n_high in sizes:
            context.progress(f"scale: {n_low:,} + {n_high:,} rows")
            path = Path(folder, "problem.npz")
            save(path, n_low, n_high)
            results.append(_run("many_rows", path, {"kernel": "auto", "n_inducing": "auto"}))
    n = np.array([sum(size) for size in sizes])
    per_row = 1e6 * np.array([f["a_pass"] for f in results]) / n
    context.tables.append(
        Table(
            "Default fits of many rows (5 features, two levels)",
            [
                "rows",
                "fit, s",
                "CPU, s",
                "passes",
                "per pass, s",
                "µs per row",
                "peak, MB",
                "log-loss",
            ],
            [
                [
                    f"{n_:,}",
                    f"{f['wall']:.0f}",
                    f"{f['cpu']:.0f}",
                    str(f["passes"]),
                    f"{f['a_pass']:.2f}",
                    f"{p:.1f}",
                    f"{f['peak'] / 1e6:.0f}",
                    f"{f['log_loss']:.4f}",
                ]
                for n_, f, p in zip(n, results, per_row, strict=True)
            ],
        )
    )
    last, note = results[-1], f"{n[-1]:,} rows"
    return [
        at_most("scale: fit, wall time", last["wall"], 600.0, "s", note),
        at_most("scale: peak memory", last["peak"] / 1e6, 2000.0, "MB", note),
        at_most(
            "scale: time per row of a pass, largest against smallest",
            float(per_row[-1] / per_row[0]),
            1.3,
            "x",
            "1 is linear",
        ),
        at_most("scale: calibration error", last["calibration"], 0.02, "", note),
    ]


def against_svgp(context: Context) -> list[Figure]:
    """The time to the best held-out log-loss that SVGP reaches."""
    for name in ("torch", "gpytorch"):
        peer(name)
    n_low, n_high = QUICK[0] if context.quick else SIZES[0]
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        save(path, n_low, n_high)
        for m in (200,) if context.quick else (200, 500):
            context.progress(f"svgp: {m} inducing points")
            split = [m - m // 4, m // 4]
            ours = _run("many_rows", path, {"kernel": "ard", "n_inducing": split})
            seconds = (20 if context.quick else 300) * (m / 200)
            theirs = [
                _run(
                    "svgp",
                    path,
                    {"inducing": m, "rate": rate, "seconds": seconds, "threads": 2, "seed": 0},
                )
                for rate in (0.003, 0.01)
            ]
            best, when = min((loss, t) for run_ in theirs for t, loss in run_["trace"])
            note = (
                f"{m} points: log-loss {ours['log_loss']:.4f} after {ours['wall']:.0f} s, "
                f"SVGP's best {best:.4f} after {when:.0f} s"
            )
            name = f"svgp, {m} points"
            figures += [
                at_most(f"{name}: time to its best log-loss", ours["wall"] / when, 0.25, "x", note),
                at_most(f"{name}: log-loss less its best", ours["log_loss"] - best, 0.0),
                info(f"{name}: calibration error", ours["calibration"]),
            ]
            rows = [
                [f"{run_['options']['rate']}", f"{t:.0f}", f"{loss:.4f}"]
                for run_ in theirs
                for t, loss in _thinned(run_["trace"])
            ]
            context.tables.append(
                Table(f"SVGP, {m} inducing points", ["rate", "s", "log-loss"], rows)
            )
    return figures


def _thinned(trace: list[list[float]], most: int = 12) -> list[list[float]]:
    return [trace[i] for i in np.unique(np.linspace(0, len(trace) - 1, most).astype(int))]


def _run(module: str, path: Path, options: dict[str, Any]) -> dict[str, Any]:
    """What a module prints of a problem, in a process that may use both cores."""
    printed = run_python("-m", f"benchmarks.{module}", str(path), json.dumps(options))
    result: dict[str, Any] = json.loads(printed)
    return result
