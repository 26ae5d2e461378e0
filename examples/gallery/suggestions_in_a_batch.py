"""
A batch of suggestions
======================

Which labels should be bought next? ``suggest`` ranks pairs of a row and a level by what their label
is expected to teach, per cost. A batch is diverse: every row is chosen with regard to what the
earlier ones will have taught.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF
from polyfid.plots import FeasibilityDisplay

rng = np.random.RandomState(4)


def truth(X, shift=0.0):
    """A curved boundary; the crowd sees it shifted."""
    return X[:, 1] > np.sin(2 * X[:, 0] + shift)


X_crowd, X_expert = rng.uniform(-2, 2, (60, 2)), rng.uniform(-2, 2, (20, 2))
X, y, fidelity = stack_levels(
    {"crowd": (X_crowd, truth(X_crowd, 0.3)), "expert": (X_expert, truth(X_expert))}
)
model = MultiFidelityClassifier(1.0 * RBF(), inference="ep", random_state=0)
model.fit(X, y, fidelity=fidelity)

# %%
# A label of the crowd costs 1, one of the expert 6, and there is money for 60.

pool = rng.uniform(-2, 2, (1500, 2))
batch = model.suggest(pool, costs={"crowd": 1, "expert": 6}, budget=60, random_state=0)
print(batch.head())

# %%
# Most trusted labels are asked for where the boundary may be. The diamond is an *audit row*: a
# trusted label of a random row, from which later scores are taken. The batch is spread out, because
# each label is the best of eight random rows, given those that were chosen before.

display = FeasibilityDisplay.from_estimator(model, X)
fig, ax = display.figure_, display.ax_
fig.set_size_inches(6.4, 4.6)
chosen = pool[batch["row"]]
for name, of, marker, colour, size in (
    ("crowd", (batch["level"] == "crowd"), "o", "#d98200", 40),
    ("expert", (batch["level"] == "expert") & ~batch["audit"], "*", "black", 130),
    ("expert, audit row", batch["audit"], "D", "#7a2fc4", 45),
):
    ax.scatter(*chosen[of].T, marker=marker, s=size, color=colour, edgecolor="white", label=name)
ax.legend(loc="upper left", bbox_to_anchor=(0, 1.1), ncols=3, frameon=False)
plt.show()
