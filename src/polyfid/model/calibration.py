"""How far predicted probabilities are from observed frequencies."""

from __future__ import annotations

import numpy as np

from polyfid.arrays import Array, Indices

#: Upper bound on the bins of probabilities, and lower bound on the rows per bin.
_MAX_BINS, _ROWS_PER_BIN = 10, 10


def bins(p: Array) -> Indices:
    """The bin of each probability, of equally many rows each."""
    n_bins = int(np.clip(len(p) // _ROWS_PER_BIN, 1, _MAX_BINS))
    edges = np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    return np.searchsorted(edges, p, side="right")


def calibration_error(p: Array, hit: Array, weights: Array) -> Array:
    """Mean distance between predicted and observed frequency, over `bins`, (n_weightings,).

    ``weights`` (n_weightings, n) count the rows.
    """
    inside = bins(p)[:, None] == np.arange(_MAX_BINS)
    gaps = weights @ ((p - hit)[:, None] * inside)
    return np.asarray(np.abs(gaps).sum(axis=1) / weights.sum(axis=1))
