"""Built-in data for a first try: a welding process, a few experiments and many simulations.

A seam is sound if the beam melts the sheet through but does not cut it, and the gap between the
sheets is small. The simulator misjudges the depth in thick sheets, and for one setting in seven it
does not converge and says anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

N_EXPERIMENTS, N_SIMULATIONS, N_NEW = 40, 300, 500
ERRS = 1.0 / 7.0  # share of simulations that are wrong whatever the settings


class Tables(NamedTuple):
    """What a user would come with, and the truth about the new rows."""

    simulation: pd.DataFrame
    experiment: pd.DataFrame
    new: pd.DataFrame
    truth: pd.Series


def tables(seed: int = 0) -> Tables:
    """The tables of the demonstration.

    Examples
    --------
    >>> from polyfid.demo import tables
    >>> simulation, experiment, new, truth = tables()
    >>> len(simulation), len(experiment), len(new)
    (300, 40, 500)
    >>> list(experiment.columns)
    ['id', 'power', 'speed', 'thickness', 'gap', 'label']
    """
    rng = np.random.RandomState(seed)
    simulation = _settings(rng, N_SIMULATIONS, "sim")
    depth = 1.0 + 0.1 * (simulation.thickness - 2.0)
    said = _sound(simulation, depth) ^ (rng.uniform(size=N_SIMULATIONS) < ERRS)
    experiment = _settings(rng, N_EXPERIMENTS, "exp")
    new = _settings(rng, N_NEW, "new")
    return Tables(
        simulation.assign(label=_words(said)),
        experiment.assign(label=_words(_sound(experiment, 1.0))),
        new,
        pd.Series(_words(_sound(new, 1.0)), index=new.index),
    )


def _settings(rng: np.random.RandomState, n: int, prefix: str) -> pd.DataFrame:
    """Power in kW, speed in m/min, thickness and gap in mm."""
    return pd.DataFrame(
        {
            "id": [f"{prefix}-{i:03d}" for i in range(n)],
            "power": rng.uniform(1.0, 4.0, n).round(2),
            "speed": rng.uniform(1.0, 6.0, n).round(2),
            "thickness": rng.uniform(1.0, 3.0, n).round(2),
            "gap": rng.uniform(0.0, 0.4, n).round(3),
        }
    )


def _sound(rows: pd.DataFrame, depth: float | pd.Series) -> pd.Series:
    """Whether the melt is as deep as the sheet is thick, more or less, and the gap small."""
    reached = depth * 1.6 * rows.power / np.sqrt(rows.speed) / rows.thickness
    return (reached > 0.9) & (reached < 2.0) & (rows.gap < 0.3)


def _words(sound: pd.Series) -> pd.Series:
    return sound.map({True: "sound", False: "defect"})
