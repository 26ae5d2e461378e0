"""
Kernels and structures
======================

No single kernel suits all tables. With the default, ``kernel="auto"``, about a dozen *structures*
are fitted and averaged. A structure says how features are scaled, which kernel there is, and what
links the levels. ``structures_`` has those that are left, with their weights.
"""

# %%
# In the first table the boundary is a plane, and all structures that are left have a linear part.
# In the second one a row is positive where three of four columns are beyond a limit, and kernels of
# steps win, as trees would.

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels

rules = {
    "a straight boundary": lambda X: X @ [1, 0.6, -0.5, 0.3] > 0,
    "steps": lambda X: (X * [1, 1, -1, 1] > [0.3, 0.5, -0.5, -0.5]).sum(axis=1) >= 3,
}

fig, axes = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True)
for ax, (name, rule) in zip(axes, rules.items(), strict=True):
    rng = np.random.RandomState(0)
    X_cheap, X_trusted = rng.uniform(-2, 2, (200, 4)), rng.uniform(-2, 2, (80, 4))
    cheap = rule(X_cheap) ^ (rng.uniform(size=200) < 0.1)
    X, y, fidelity = stack_levels(
        {"cheap": (X_cheap, cheap), "trusted": (X_trusted, rule(X_trusted))}
    )
    model = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)
    found = model.structures_[:4][::-1]
    names = [textwrap.fill(one.name, 62) for one in found]
    bars = ax.barh(names, [one.weight for one in found], color="#0072b2", height=0.6)
    ax.bar_label(bars, fmt="{:.0%}", padding=3)
    ax.set_title(name, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set(xlabel="weight in the average", xlim=(0, 1.1))
plt.show()

# %%
# A kernel of your own is one argument away, for instance
# ``MultiFidelityClassifier(1.0 * Matern52(ard=True) + Linear())``.
