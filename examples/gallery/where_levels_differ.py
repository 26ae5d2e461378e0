"""
Where levels differ
===================

Cheap labels are often right in most places and wrong in one. ``DiscrepancyDisplay`` shows where a
cheap label would probably contradict a trusted one: there, do not rely on it.
"""

# %%
# A crowd judges photos. It agrees with the expert, except where photos are dark and noisy.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF
from polyfid.plots import DiscrepancyDisplay

rng = np.random.RandomState(2)


def expert_says(X):
    """Whether a photo is sharp."""
    return X[:, 0] + 0.4 * X[:, 1] > 0


def crowd_says(X):
    """The same, but for photos that are dark and noisy."""
    return expert_says(X) ^ ((X[:, 0] < 0.6) & (X[:, 1] < -1.0))


X_crowd, X_expert = rng.uniform(-2, 2, (250, 2)), rng.uniform(-2, 2, (60, 2))
crowd = crowd_says(X_crowd) ^ (rng.uniform(size=250) < 0.05)
X, y, fidelity = stack_levels(
    {"crowd": (X_crowd, crowd), "expert": (X_expert, expert_says(X_expert))}
)
y = np.where(y, "sharp", "blurred")
model = MultiFidelityClassifier(1.0 * RBF(), inference="ep", random_state=0)
model.fit(X, y, fidelity=fidelity)

# %%
# The left map is the probability that the two labels of a photo differ. The right map is the
# *correction* δ: orange where the crowd says "sharp" too often, blue where it does so too rarely.

fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.9))
display = DiscrepancyDisplay.from_estimator(model, X, feature_names=["light", "noise"], ax=axes)
plt.show()
