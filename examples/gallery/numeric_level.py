"""
A simulator that says a number
==============================

A simulator says by how many millimetres a beam bends, an experiment says only whether it broke.
``numeric_levels`` lets the model learn from the number itself: no limit has to be put on it first.
"""

# %%
# The simulator knows how thickness, load and span bend a beam, but neither how far off it is nor at
# which deflection a real beam breaks. There are 60 simulations and 30 experiments.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from polyfid import MultiFidelityClassifier, stack_levels

rng = np.random.RandomState(0)
names = ["thickness", "load", "span"]
low, high = np.array([1.0, 0.2, 0.5]), np.array([2.0, 1.0, 1.5])


def deflection(X):
    """What the simulator says, in millimetres."""
    return 12.0 * X[:, 1] * X[:, 2] ** 2 / X[:, 0] ** 1.5


def breaks(X):
    """What happens: thick beams are stiffer than the simulator thinks."""
    return deflection(X) * (1.25 - 0.25 * X[:, 0]) > 3.5


X_sim, X_exp, X_new = (rng.uniform(low, high, (n, 3)) for n in (60, 30, 2000))
experiments = X_exp, np.where(breaks(X_exp), "broke", "held")
X, y, fidelity = stack_levels({"simulation": (X_sim, deflection(X_sim)), "experiment": experiments})
model = MultiFidelityClassifier(numeric_levels=["simulation"], random_state=0)
model.fit(X, y, fidelity=fidelity)

# %%
# To compare: the same experiments with simulations that were turned into classes, at the limit of
# 4.5 mm that the beams were designed for, and the experiments alone.

said = np.where(deflection(X_sim) > 4.5, "broke", "held")
X_cut, y_cut, cut = stack_levels({"simulation": (X_sim, said), "experiment": experiments})
thresholded = MultiFidelityClassifier(random_state=0).fit(X_cut, y_cut, fidelity=cut)
alone = MultiFidelityClassifier(random_state=0).fit(*experiments)
truth = np.where(breaks(X_new), "broke", "held")
for name, one in {"numbers": model, "classes": thresholded, "experiments alone": alone}.items():
    print(f"log-loss with {name}: {log_loss(truth, one.predict_proba(X_new)):.3f}")

# %%
# ``predict_value`` says what the simulator would say, with a standard deviation.

mean, sd = model.predict_value([[1.5, 0.6, 1.0]])
print(f"deflection: {mean[0]:.2f} ± {sd[0]:.2f} mm")

# %%
# On the left the deflection as the model has learnt it, on the right the probability that a beam
# breaks, both for a span of 1. The dashed line is the truth. Points are of all spans, so that some
# seem to be on the wrong side.

axes = [np.linspace(low[j], high[j], 60) for j in (0, 1)]
grid = np.column_stack([*(g.ravel() for g in np.meshgrid(*axes)), np.ones(3600)])
maps = model.predict_value(grid)[0], model.predict_proba(grid)[:, 0]
fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True)
shown = left.contourf(*axes, maps[0].reshape(60, 60), 12, cmap="Greys")
fig.colorbar(shown, ax=left, label="simulated deflection, mm")
left.plot(*X_sim.T[:2], ".", color="0.35", ms=4, label="simulation")
shown = right.contourf(*axes, maps[1].reshape(60, 60), np.linspace(0, 1, 11), cmap="PuOr_r")
fig.colorbar(shown, ax=right, label="P(broke)")
right.contour(*axes, breaks(grid).reshape(60, 60), [0.5], linestyles="--", colors="k")
for what, colour in {"broke": "#d98200", "held": "#5e3c99"}.items():
    own = X_exp[experiments[1] == what]
    right.plot(*own.T[:2], "D", mfc=colour, mec="k", ms=6, ls="none", label=what)
for ax in (left, right):
    ax.set_xlabel(names[0])
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
left.set_ylabel(names[1])
plt.show()
