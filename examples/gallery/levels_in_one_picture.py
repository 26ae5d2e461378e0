"""
Levels in one picture
=====================

Sixty cheap labels and ten trusted ones tell where a machine works. The cheap labels change at the
wrong place. The model sees the shift, because both kinds of labels overlap.
"""

# %%
# The truth is that the machine works between -1 and 1.2. The cheap labels come from a simulator,
# which puts both ends too far to the left.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF

rng = np.random.RandomState(1)
x_cheap = rng.uniform(-3, 3, (60, 1))
x_trusted = np.linspace(-2.4, 2.7, 10)[:, None]
simulated = (x_cheap[:, 0] > -1.5) & (x_cheap[:, 0] < 0.7)
works = (x_trusted[:, 0] > -1.0) & (x_trusted[:, 0] < 1.2)
X, y, fidelity = stack_levels({"simulator": (x_cheap, simulated), "test": (x_trusted, works)})

# %%
# One model learns both levels. It predicts what either of them would say.

model = MultiFidelityClassifier(1.0 * RBF(), inference="ep").fit(X, y, fidelity=fidelity)
grid = np.linspace(-3, 3, 300)[:, None]

fig, ax = plt.subplots(figsize=(7, 3.4))
for level, rows, labels, colour in (
    ("simulator", x_cheap, simulated, "#d98200"),
    ("test", x_trusted, works, "#0072b2"),
):
    p = model.predict_proba(grid, fidelity=level)[:, 1]
    ax.plot(grid, p, color=colour, lw=2, label=f"P(works), as the {level} says")
    size, edge = (60, "black") if level == "test" else (14, "none")
    ax.scatter(rows, np.where(labels, 1.06, -0.06), s=size, color=colour, edgecolor=edge)
ax.axvspan(-1.0, 1.2, color="0.5", alpha=0.12, lw=0, label="the truth: works")
ax.set(xlabel="setting", ylabel="probability", xlim=(-3, 3))
ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=3, frameon=False, fontsize=9)
plt.show()

# %%
# Points above are labels "works", points below "fails"; the large ones are trusted. The blue curve
# follows the trusted labels where there are some, and takes its shape from the cheap ones.
