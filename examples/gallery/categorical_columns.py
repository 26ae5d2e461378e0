"""
Categorical columns
===================

A column of codes (material 0, 1, 2, 3) has no order, and 3 is not "more" than 1. The kernel
``Categorical`` treats equal codes as alike and all others as equally different. Multiplied by a
kernel of the numbers it gives each category a curve of its own, and lets the curves learn from
each other.
"""

# %%
# A weld holds up to some heat, which depends on the material.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF, Categorical

materials = ["steel", "brass", "copper", "zinc"]
limit = np.array([1.0, -0.5, 0.8, -1.2])
rng = np.random.RandomState(0)


def rows(n):
    """Heat and the code of the material."""
    return np.column_stack([rng.uniform(-2, 2, n), rng.randint(4, size=n)])


def holds(X, shift=0.0):
    """Whether a weld holds; a simulator sees all limits shifted."""
    return X[:, 0] < limit[X[:, 1].astype(int)] + shift


X_cheap, X_trusted = rows(160), rows(60)
X, y, fidelity = stack_levels(
    {"simulator": (X_cheap, holds(X_cheap, 0.4)), "test": (X_trusted, holds(X_trusted))}
)
kernel = 1.0 * (RBF(columns=[0]) * Categorical(columns=[1]))
model = MultiFidelityClassifier(kernel, inference="ep").fit(X, y, fidelity=fidelity)

# %%
# One curve per material. The vertical lines are the true limits.

heat = np.linspace(-2, 2, 200)
fig, ax = plt.subplots(figsize=(6.4, 3.6))
for code, colour in enumerate(["#d98200", "#0072b2", "#009e73", "#c2669a"]):
    p = model.predict_proba(np.column_stack([heat, np.full(200, code)]))[:, 1]
    ax.plot(heat, p, color=colour, lw=2, label=materials[code])
    ax.axvline(limit[code], color=colour, ls=":", lw=1.5)
ax.set(xlabel="heat", ylabel="P(holds)", xlim=(-2, 2))
ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
plt.show()

# %%
# Tables need none of this: in ``polyfid fit`` and `polyfid.tables.TableModel` columns of text are
# categories, and the default structure reads their indicator columns as such.
