"""
Three levels
============

Levels form a ladder: a coarse simulation, a fine one, an experiment. Each level follows the one
below it, and each step has its own slope ρ and its own correction.
"""

# %%
# ``stack_levels`` takes them least trusted first. Some labels of the simulators are wrong by
# chance, too.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, TrustedOnly, stack_levels
from polyfid.kernels import RBF

rng = np.random.RandomState(0)
shift = {"coarse": 0.8, "fine": 0.3, "experiment": 0.0}
rows = {"coarse": 300, "fine": 80, "experiment": 40}


def is_safe(X, level):
    """Simulators shift the boundary, the coarse one more than the fine one."""
    return X[:, 1] > np.sin(2 * X[:, 0] + shift[level]) - shift[level] / 2


tables = {}
for level, n in rows.items():
    points = rng.uniform(-2, 2, (n, 2))
    flipped = rng.uniform(size=n) < (0.0 if level == "experiment" else 0.08)
    tables[level] = (points, is_safe(points, level) ^ flipped)
X, y, fidelity = stack_levels(tables)
model = MultiFidelityClassifier(1.0 * RBF(), random_state=0).fit(X, y, fidelity=fidelity)

# %%
# The boundary of each level as the model draws it, where the probability is one half. The dashed
# line is the truth of the experiment.

x0 = np.linspace(-2, 2, 90)
grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x0, x0)])
fig, ax = plt.subplots(figsize=(7.6, 4.2))
for level, colour in zip(rows, ("#e9b872", "#d98200", "#0072b2"), strict=True):
    p = model.predict_proba(grid, fidelity=level)[:, 1].reshape(90, 90)
    ax.contour(x0, x0, p, levels=[0.5], colors=colour, linewidths=2)
    ax.plot([], [], color=colour, lw=2, label=f"{level}, {rows[level]} rows")
alone = (
    TrustedOnly(MultiFidelityClassifier(1.0 * RBF()))
    .fit(X, y, fidelity=fidelity)
    .predict_proba(grid)[:, 1]
    .reshape(90, 90)
)
ax.contour(x0, x0, alone, levels=[0.5], colors="0.6", linewidths=1.5)
ax.plot([], [], color="0.6", lw=1.5, label="from the 40 experiments alone")
ax.plot(x0, np.sin(2 * x0), "k--", lw=1, label="truth")
ax.set(xlabel="speed", ylabel="load", xlim=(-2, 2), ylim=(-2, 2))
ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
plt.show()
