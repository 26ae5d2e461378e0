"""How good probabilities are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score


class Score(NamedTuple):
    """ROC AUC and log-loss."""

    roc_auc: float
    log_loss: float


def score(y: NDArray[np.intp], probability: NDArray[np.float64]) -> Score:
    """Score the probabilities of class 1."""
    return Score(
        float(roc_auc_score(y, probability)), float(log_loss(y, probability, labels=[0, 1]))
    )
