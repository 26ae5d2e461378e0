"""Many rows (`run`) and 3000 to 30 000 rows (`middle`) beside trees and Gaussian processes alone.

Problems are in `large_problems` and `real_tables`, methods in `large_methods` and `large_trees`.
Every method runs in a process of its own with all cores, one after the other. What it reached is
kept in ``benchmarks/out/large``: a run that was stopped goes on where it was. Remove the lines of
polyfid there to measure another version, or the folder to measure everything again.

``POLYFID_LARGE="rough 100000*,movies"`` runs some of the problems only, and
``POLYFID_LARGE_METHODS="polyfid,xgboost"`` some of the methods; ``*`` stands for anything.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks import large_problems
from benchmarks.figures import Context, Figure, Skip, Table, at_least, at_most, info
from benchmarks.large_methods import MANY, METHODS, TREES, scores
from benchmarks.large_problems import Problem
from benchmarks.large_trees import N_CORES
from benchmarks.timing import run_python
from experiments.run import RowFile

FOLDER = Path(__file__).parent / "out" / "large"
OURS, NO_TREES, BOOSTED = "polyfid", "polyfid mean=None", "polyfid mean=boosted"
#: Goals: time in times that of the best trees, calibration error, way from the best rival.
TIME, CALIBRATED, WAY = 3.0, 0.01, 1.0 / 3.0
#: Goals at a million rows: seconds, megabytes, seconds for a million predictions.
SECONDS, MEMORY, PREDICT = 180.0, 2000.0, 30.0

#: What was kept of the methods on a problem.
Results = dict[str, dict[str, Any]]


def run(context: Context) -> list[Figure]:
    """Every method on every problem of many rows, against the best of them."""
    methods = [name for name in METHODS if name != BOOSTED]
    figures = []
    for problem in chosen("POLYFID_LARGE", large_problems.large(context)):
        results, found = measure(context, problem, methods)
        figures += found
        if OURS in results and len(results) > 1:
            figures += _against_all(f"large, {problem.name}", results)
    return figures


def middle(context: Context) -> list[Figure]:
    """Both ways at once against a Gaussian process and trees alone."""
    methods = [name for name in METHODS if name != "svgp"]
    figures = []
    for problem in chosen("POLYFID_LARGE", large_problems.middle(context)):
        results, found = measure(context, problem, methods)
        figures += found
        if OURS in results and len(results) > 1:
            figures += _against_both_ways(f"middle, {problem.name}", results)
    return figures


def chosen(variable: str, items: Iterable[Any]) -> list[Any]:
    """The items, problems or names, that the patterns of an environment variable name."""
    items = list(items)
    patterns = [p.strip() for p in os.environ.get(variable, "").split(",") if p.strip()]
    names = [item.name if isinstance(item, Problem) else item for item in items]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{variable} has {pattern!r}, which is none of {', '.join(names)}")
    return [
        item
        for item, name in zip(items, names, strict=True)
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def measure(
    context: Context, problem: Problem, methods: Sequence[str]
) -> tuple[Results, list[Figure]]:
    """What methods reach on a problem, as it was kept or anew, and figures of those that failed."""
    methods = chosen("POLYFID_LARGE_METHODS", methods)
    done = _kept(problem)
    left = [name for name in methods if not {*METHODS[name].answers} <= {*done}]
    failed = _measure(context, problem, left) if left else []
    # Read again, with the digits that are kept: the same whether anything was left or not.
    kept = _kept(problem)
    wanted = [answer for name in methods for answer in METHODS[name].answers]
    results = {name: kept[name] for name in wanted if name in kept}
    if results:
        best = next(iter(results.values())).get("best_possible")
        title = problem.name if best is None else f"{problem.name}: best possible {best:.4f}"
        lines = [_line(name, found) for name, found in results.items()]
        context.tables.append(Table(title, HEADER, lines))
    return results, failed


def _measure(context: Context, problem: Problem, methods: Sequence[str]) -> list[Figure]:
    """Run methods on a problem and keep what they reach; figures of what could not be run."""
    context.progress(f"large: {problem.name}")
    try:
        rows = problem.make()
    except Skip as skip:
        return [Figure(f"large, {problem.name}", None, note=f"skipped: {skip}")]
    about = {"experiment": "large", "problem": problem.name, "n": len(rows.X)}
    if rows.q is not None:
        about["best_possible"] = scores(rows.q, rows)["log_loss"]
    kept, failed = RowFile(FOLDER), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        rows.save(path)
        for name in methods:
            if reason := METHODS[name].missing(len(rows.X)):
                context.progress(f"{name}: skipped, {reason}")
                continue
            try:
                answers = _in_a_process(path, name)
            except RuntimeError as error:
                figure = f"large, {problem.name}, {name}"
                failed.append(Figure(figure, None, met=False, note=f"failed: {error}"))
                continue
            for answer, found in answers.items():
                kept.append({**about, "method": answer, **found})
                context.progress("  ".join(_line(answer, found)))
    return failed


def _kept(problem: Problem) -> Results:
    rows = RowFile(FOLDER).rows.values()
    return {row["method"]: row for row in rows if row["problem"] == problem.name}


def _in_a_process(path: Path, method: str) -> Results:
    printed = run_python("-m", "benchmarks.large_methods", str(path), method, n_threads=N_CORES)
    answers: Results = json.loads(printed.splitlines()[-1])
    return answers


HEADER = ["method", "log-loss", "ROC AUC", "calibration error", "s", "CPU s"]
HEADER += ["s, settings known", "peak, MB", "settings"]


def _line(name: str, found: dict[str, Any]) -> list[str]:
    quality = [f"{found[key]:.4f}" for key in ("log_loss", "roc_auc", "calibration")]
    seconds = [f"{found[key]:.1f}" for key in ("wall", "cpu", "wall_known")]
    return [name, *quality, *seconds, f"{found['peak'] / 1e6:.0f}", found.get("settings", "")]


def _best(results: Results) -> str:
    return min(results, key=lambda name: float(results[name]["log_loss"]))


def _against_all(name: str, results: Results) -> list[Figure]:
    ours = results[OURS]
    others = {method: r for method, r in results.items() if method != OURS}
    best = _best(others)
    auc = max(others, key=lambda method: float(others[method]["roc_auc"]))
    gaps = ours["log_loss"] - others[best]["log_loss"], ours["roc_auc"] - others[auc]["roc_auc"]
    figures = [
        at_most(f"{name}: log-loss less the best", gaps[0], 0.0, note=best),
        at_least(f"{name}: ROC AUC less the best", gaps[1], 0.0, note=auc),
        at_most(f"{name}: calibration error", ours["calibration"], CALIBRATED),
    ]
    figures += _times(name, results, TIME)
    if "best_possible" in ours:
        share = gaps[0] / (ours["best_possible"] - others[best]["log_loss"])
        label = f"{name}: of the way from the best to the labels' own probabilities"
        rough = "rough" in name
        figures.append(at_least(label, share, WAY, note=best) if rough else info(label, share))
    if ours["n"] >= MANY:
        figures += [
            at_most(f"{name}: fit", ours["wall"], SECONDS, "s"),
            at_most(f"{name}: memory", ours["peak"] / 1e6, MEMORY, "MB"),
            at_most(f"{name}: a million predictions", ours["predict"], PREDICT, "s"),
        ]
    return figures


def _times(name: str, results: Results, bound: float | None = None) -> list[Figure]:
    """Our time beside that of the trees of lowest log-loss, with and without their search."""
    trees = {method: results[method] for method in TREES if method in results}
    if not trees:
        return []
    tree, wall = _best(trees), results[OURS]["wall"]
    whole, alone = (wall / trees[tree][key] for key in ("wall", "wall_known"))
    label, unit = f"{name}: time", "x the best trees"
    return [
        info(label, whole, unit, tree)
        if bound is None
        else at_most(label, whole, bound, unit, tree),
        info(f"{label}, their settings known", alone, unit, tree),
    ]


def _against_both_ways(name: str, results: Results) -> list[Figure]:
    ours = results[OURS]["log_loss"]
    figures = []
    trees = {method: results[method] for method in TREES if method in results}
    if NO_TREES in results:
        gap = ours - results[NO_TREES]["log_loss"]
        figures.append(at_most(f"{name}: log-loss less Gaussian processes alone", gap, 0.0))
    if trees:
        best = _best(trees)
        gap = ours - trees[best]["log_loss"]
        figures.append(at_most(f"{name}: log-loss less trees alone", gap, 0.0, note=best))
    if BOOSTED in results:
        gap = ours - results[BOOSTED]["log_loss"]
        figures.append(info(f"{name}: log-loss less mean=boosted", gap))
    return figures + _times(name, results)
