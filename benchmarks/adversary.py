"""The product under attack: what was tried, how often, and what held.

``python -m benchmarks adversary`` runs everything, ``--quick`` a small part of each.
POLYFID_ATTACKS="files,processes" runs some of the attacks only.
"""

from __future__ import annotations

import os
from importlib import import_module

from benchmarks.figures import Context, Figure, Table, at_most

ATTACKS = ("numerics", "statistics", "interfaces", "files", "processes", "cluster", "soak")


def run(context: Context) -> list[Figure]:
    """Failures of every attack."""
    wanted = os.environ.get("POLYFID_ATTACKS", ",".join(ATTACKS)).split(",")
    figures, rows = [], []
    for name in wanted:
        context.progress(f"adversary: {name}")
        for trial in import_module(f"benchmarks.attacks.{name}").trials(context):
            failed = trial.tried - trial.held
            worst = "; ".join(f"{n} × {text}" for text, n in trial.failures.most_common(3))
            rows.append([name, trial.what, trial.expected, str(trial.tried), str(trial.held)])
            context.progress(f"{trial.what}: {trial.held} of {trial.tried} held {worst}")
            figures.append(at_most(f"{name}: {trial.what}, failures", failed, 0, note=worst))
    header = ["attack", "tried", "expected", "times", "held"]
    context.tables.append(Table("The product under attack", header, rows))
    return figures
