"""Run benchmarks and print their figures as one table; see ``--help``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.figures import Context, Figure, Skip, Table
from benchmarks.registry import BENCHMARKS

OUT = Path(__file__).parent / "out"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    context = Context(options.data, options.golden, options.quick, options.full)
    warnings.simplefilter("ignore", ConvergenceWarning)
    machine = _machine()
    print(*(f"{key} {value}" for key, value in machine.items()), sep=", ", file=sys.stderr)
    figures: list[Figure] = []
    failed = False
    seconds: dict[str, float] = {}
    with threadpool_limits(1):
        for name in options.names or BENCHMARKS:
            print(name, file=sys.stderr, flush=True)
            start = time.perf_counter()
            try:
                figures += BENCHMARKS[name](context)
            except Skip as reason:
                figures.append(Figure(name, None, note=f"skipped: {reason}"))
            except Exception as error:
                traceback.print_exc()
                figures.append(Figure(name, None, met=False, note=f"failed: {error!r}"))
                failed = True
            seconds[name] = round(time.perf_counter() - start, 1)
            _save(context, machine, seconds, figures)
    for table in context.tables:
        print(f"\n{table.title}\n{_aligned(table)}")
    print(f"\n{_aligned(_main_table(figures))}")
    return int(failed)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller problems, fewer of them")
    size.add_argument("--full", action="store_true", help="all splits in every benchmark")
    parser.add_argument(
        "--data",
        type=Path,
        default=_path("POLYFID_DATA"),
        help="folder with the artificial sets (default: $POLYFID_DATA)",
    )
    parser.add_argument(
        "--golden",
        type=Path,
        default=_path("POLYFID_GOLDEN"),
        help="CSV of the reference's results on them (default: $POLYFID_GOLDEN)",
    )
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    return options


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _machine() -> dict[str, Any]:
    """What figures depend on besides the code."""
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }
    for package in ("polyfid", "numpy", "scipy", "scikit-learn", "gpboost"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = None
    return facts


def _save(
    context: Context, machine: dict[str, Any], seconds: dict[str, float], figures: list[Figure]
) -> None:
    result = {
        "machine": machine,
        "quick": context.quick,
        "full": context.full,
        "wall_seconds": seconds,
        "figures": [asdict(f) for f in figures],
        "tables": [asdict(t) for t in context.tables],
    }
    OUT.mkdir(exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def _main_table(figures: Sequence[Figure]) -> Table:
    verdict = {True: "yes", False: "NO", None: ""}
    rows = []
    for f in figures:
        shown = "-" if f.value is None else f"{_number(f.value)} {f.unit}".strip()
        rows.append([f.name, shown, f.goal, verdict[f.met], f.note])
    return Table("figures", ["figure", "measured", "goal", "met", "note"], rows)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _aligned(table: Table) -> str:
    lines = [list(table.header), *(list(row) for row in table.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.header))]
    lines.insert(1, ["-" * width for width in widths])
    padded = [[c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)


if __name__ == "__main__":
    sys.exit(main())
