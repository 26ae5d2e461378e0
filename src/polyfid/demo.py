"""Built-in data for a first try: a few labels of an expert, many of a crowd that errs.

Scikit-learn's breast cancer data: what the expert and the crowd say of the cells of a sample.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

N_EXPERT, N_CROWD, WRONG = 40, 300, 0.3


class Tables(NamedTuple):
    """What a user would come with, and the truth about the new rows."""

    crowd: pd.DataFrame
    expert: pd.DataFrame
    new: pd.DataFrame
    truth: pd.Series


def tables(seed: int = 0) -> Tables:
    """The tables of the demonstration.

    Examples
    --------
    >>> from polyfid.demo import tables
    >>> crowd, expert, new, truth = tables()
    >>> len(crowd), len(expert), len(new), expert.columns[-1]
    (300, 40, 229, 'label')
    """
    data = load_breast_cancer(as_frame=True)
    features = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    features.insert(0, "id", [f"sample-{i:03d}" for i in range(len(features))])
    truth = data.target.map(dict(enumerate(data.target_names)))
    rng = np.random.RandomState(seed)
    expert, crowd, new = np.split(rng.permutation(len(features)), [N_EXPERT, N_EXPERT + N_CROWD])
    swapped = truth.map({"benign": "malignant", "malignant": "benign"})
    said = truth.iloc[crowd].where(rng.uniform(size=N_CROWD) >= WRONG, swapped.iloc[crowd])
    return Tables(
        features.iloc[crowd].assign(label=said),
        features.iloc[expert].assign(label=truth.iloc[expert]),
        features.iloc[new],
        truth.iloc[new],
    )
