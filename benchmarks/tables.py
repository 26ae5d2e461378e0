"""`polyfid predict` on a large CSV file against what pandas alone needs to read and write it.

Both run in processes of their own, so that the time to import them counts. The clock is what a user
sees, and the tool uses all cores where pandas uses one; the time of the processor is the work done.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from benchmarks.figures import Context, Figure, at_least, at_most, info
from benchmarks.fitting import scaled_rbf
from benchmarks.synthetic import Array, make_problem
from benchmarks.timing import run_python, take_turns
from polyfid import MultiFidelityClassifier
from polyfid.tables import Roles, TableModel, read_labelled

N_TRAIN, N_FEATURES = 300, 20
#: Rows that `polyfid predict` takes at a time.
N_BLOCK = 50_000
#: Most memory that predicting may take, in megabytes.
MEMORY = 500.0
#: Most time that predicting may take, in times that of pandas.
TIME = {"plain RBF": 2.0, "default model": 4.0}


@dataclass(frozen=True)
class Cost:
    """Of a process: seconds of the clock and of the processor, and most bytes in memory."""

    wall: float
    cpu: float
    peak: float


def run(context: Context) -> list[Figure]:
    n_new = 100_000 if context.quick else 1_000_000
    return [*_against_pandas(context, n_new), *_against_sklearn(context)]


def _against_pandas(context: Context, n_new: int, turns: int = 3) -> list[Figure]:
    context.progress(f"tables: {n_new:,} rows")
    with TemporaryDirectory() as name:
        folder = Path(name)
        commands = _prepare(folder, n_new)
        costs: dict[str, list[Cost]] = {who: [] for who in commands}
        for turn in range(turns):
            for who, command in commands.items():
                context.progress(f"tables: {who}, turn {turn + 1} of {turns}")
                costs[who].append(_cost(command))
                if who == "plain RBF" and turn == 0:
                    pd.read_csv(folder / "plain RBF.csv").to_pickle(folder / "answers.pkl")
    pandas = _least(costs["pandas"])
    size = f"{n_new:,} rows"
    figures = []
    for who, most in TIME.items():
        cost = _least(costs[who])
        wall, cpu = cost.wall / pandas.wall, cost.cpu / pandas.cpu
        note = f"{size}; {n_new / cost.wall:,.0f} rows/s"
        figures += [
            at_most(f"tables: {who}, time", wall, most, "x pandas", note),
            info(f"tables: {who}, CPU time", cpu, "x pandas", f"{size}; {cost.cpu:.3g} s"),
            at_most(f"tables: {who}, memory", cost.peak / 1e6, MEMORY, "MB", size),
        ]
    note = f"{size}; CPU time {pandas.cpu:.3g} s"
    return [*figures, info("tables: pandas, time", pandas.wall, "s", note)]


def _least(costs: list[Cost]) -> Cost:
    """The least time of each kind, as what else runs on the machine only adds; the most memory."""
    return Cost(min(c.wall for c in costs), min(c.cpu for c in costs), max(c.peak for c in costs))


def _prepare(folder: Path, n_new: int) -> dict[str, list[str]]:
    """Models and new rows in a folder, and the commands that use them."""
    old, new = make_problem(N_TRAIN, N_FEATURES, n_levels=2), folder / "new.csv"
    _frame(make_problem(n_new, N_FEATURES, seed=1).x).to_csv(new, index=False, float_format="%.6f")
    labels = _frame(old.x).assign(
        label=np.array(["a", "b"])[old.y], fidelity=np.array(["crowd", "gold"])[old.level]
    )
    table = read_labelled([labels], Roles(levels=("crowd", "gold")))
    models = {
        "plain RBF": MultiFidelityClassifier(scaled_rbf(), random_state=0),
        "default model": MultiFidelityClassifier(random_state=0),
    }
    commands = {}
    for who, classifier in models.items():
        saved = folder / f"{who}.polyfid"
        TableModel.fit(table, classifier).save(saved)
        out = ["--out", str(folder / f"{who}.csv")]
        commands[who] = ["-m", "polyfid.cli", "predict", str(saved), str(new), *out]
    files = [str(folder / name) for name in ("new.csv", "answers.pkl", "pandas.csv")]
    return {**commands, "pandas": ["-m", "benchmarks.pandas_alone", *files]}


def _frame(x: Array) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])])


def _cost(command: list[str]) -> Cost:
    measure = str(Path(__file__).parent / "measure.py")
    return Cost(**json.loads(run_python(measure, sys.executable, *command)))


def _against_sklearn(context: Context) -> list[Figure]:
    """Everything a row of the table needs, for one block, against probabilities alone."""
    context.progress("tables: scikit-learn")
    train, new = (make_problem(n, N_FEATURES, seed=n) for n in (N_TRAIN, N_BLOCK))
    peer = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(train.x, train.y)
    ours = MultiFidelityClassifier(scaled_rbf(), standardize=False, prior=None)
    ours.fit(train.x, train.y)
    calls = {
        "sklearn": partial(peer.predict_proba, new.x),
        "ours": partial(ours.predict_all, new.x),
    }
    seconds, answers = take_turns(calls, repetitions=5)
    typical = {name: float(np.median(taken)) for name, taken in seconds.items()}
    apart = float(np.abs(answers["ours"][0] - answers["sklearn"]).max())
    return [
        at_least(
            "tables: prediction against sklearn",
            typical["sklearn"] / typical["ours"],
            1.5,
            "x faster",
            f"{N_FEATURES} features, {N_BLOCK:,} rows; probabilities at most {apart:.1g} apart",
        )
    ]
