"""Simulated classification problems of any size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]


class Problem(NamedTuple):
    """Standardised features, labels in {0, 1} and levels, rows sorted by level."""

    x: Array
    y: NDArray[np.intp]
    level: NDArray[np.intp]


def make_problem(n: int, d: int = 5, n_levels: int = 1, seed: int = 0) -> Problem:
    """Labels through a sigmoid from smooth random functions that depend less on later features.

    With two levels three quarters of the rows are cheap, and the trusted function is the cheap one
    plus a correction half its size.
    """
    rng = np.random.RandomState(seed)
    x = rng.standard_normal((n, d))
    level = np.zeros(n, dtype=np.intp)
    f = 3.0 * _smooth(x, rng)
    if n_levels == 2:
        level[3 * n // 4 :] = 1
        f += 1.5 * level * _smooth(x, rng)
    y = rng.uniform(size=n) < expit(f)
    return Problem(x, y.astype(np.intp), level)


def _smooth(x: Array, rng: np.random.RandomState, n_waves: int = 200) -> Array:
    """A draw, nearly, from a Gaussian process of unit scale with an RBF kernel."""
    length_scale = np.sqrt(x.shape[1]) * np.linspace(0.6, 1.8, x.shape[1])
    waves = rng.standard_normal((x.shape[1], n_waves)) / length_scale[:, None]
    phases = rng.uniform(0.0, 2.0 * np.pi, n_waves)
    return np.asarray(
        np.cos(x @ waves + phases) @ rng.standard_normal(n_waves) * np.sqrt(2.0 / n_waves)
    )
