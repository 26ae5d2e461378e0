"""
Kernels and structures
======================

No single kernel suits all tables. With the default, ``kernel="auto"``, about a dozen *structures*
are fitted and averaged. A structure says how features are scaled, which kernel there is, and what
links the levels. ``structures_`` has those that are left, with their weights.
"""

# %%
# In the first table the boundary is smooth, in the second one it consists of steps along two of
# four columns.

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels

rules = {
    "a smooth boundary": lambda X: X[:, 1] + 0.5 * X[:, 2] > np.sin(1.5 * X[:, 0]),
    "steps": lambda X: (X[:, 0] > 0.3) ^ (X[:, 1] > -0.2),
}

fig, axes = plt.subplots(2, 1, figsize=(8, 4.6), sharex=True)
for seed, (name, rule) in enumerate(rules.items()):
    rng = np.random.RandomState(seed)
    X_cheap, X_trusted = rng.uniform(-2, 2, (200, 4)), rng.uniform(-2, 2, (80, 4))
    cheap = rule(X_cheap) ^ (rng.uniform(size=200) < 0.1)
    X, y, fidelity = stack_levels(
        {"cheap": (X_cheap, cheap), "trusted": (X_trusted, rule(X_trusted))}
    )
    model = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)
    found = model.structures_[:4][::-1]
    names = [textwrap.fill(one.name, 62) for one in found]
    ax = axes[seed]
    bars = ax.barh(names, [one.weight for one in found], color="#0072b2", height=0.6)
    ax.bar_label(bars, fmt="{:.0%}", padding=3)
    ax.set_title(name, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set(xlabel="weight in the average", xlim=(0, 1.1))
plt.show()

# %%
# A kernel of your own is one argument away, for instance
# ``MultiFidelityClassifier(1.0 * Matern52(ard=True) + Linear())``.
