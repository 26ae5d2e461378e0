"""Labelled tables and small models for tests of tables."""

import numpy as np
import pandas as pd

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.tables import Roles, TableModel


def make_rows(n=300, seed=0):
    """Rows of two levels with numbers, categories, ids and weights."""
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, (n, 2)).round(3)
    trusted = rng.uniform(size=n) < 0.3
    wrong = (rng.uniform(size=n) < 0.2) & ~trusted
    return pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(n)],
            "heat": x[:, 0],
            "kind": np.array(["new", "old", "spare"])[rng.randint(0, 3, n)],
            "flow": x[:, 1],
            "label": np.where((x[:, 0] > 0) ^ wrong, "good", "bad"),
            "fidelity": np.where(trusted, "expert", "crowd"),
            "weight": rng.randint(0, 3, n),
        }
    )


def make_model(**changes):
    given = {"n_inducing": 20, "optimizer": None, "n_tuning": 200, "random_state": 0}
    return MultiFidelityClassifier(1.0 * RBF(), **{**given, **changes})


#: The levels of `make_rows`.
LEVELS = Roles(levels=["crowd", "expert"])


def fit_files(files, roles=LEVELS, *given, classifier=None, rows=40, **more):
    how = {"classifier": classifier or make_model(), "rows": rows, **more}
    return TableModel.fit_files(files, roles, *given, **how)


def make_measured(n=120, seed=0):
    """Rows of a simulation, which computes numbers, and of tests, which say good or bad."""
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, (n, 2)).round(3)
    tested = np.arange(n) % 4 == 0
    height = 30.0 * x[:, 0] + 6.0 * x[:, 1]
    return pd.DataFrame(
        {
            "heat": x[:, 0],
            "flow": x[:, 1],
            "load": np.where(tested, np.nan, (height + rng.normal(size=n)).round(2)),
            "label": np.where(tested, np.where(height > 0, "good", "bad"), None),
            "fidelity": np.where(tested, "test", "simulation"),
        }
    )


#: The roles of the columns of `make_measured`.
MEASURED = Roles(levels=["simulation", "test"], value={"simulation": "load"})
