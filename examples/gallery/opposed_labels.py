"""
Cheap labels that are opposed
=============================

A sensor is wired the wrong way: it says "low" where the pressure is high, and errs by chance, too.
Such labels are as useful as right ones, once a few trusted labels show that they are opposed. The
slope ρ that links the levels is then negative.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF
from polyfid.plots import FeasibilityDisplay


def pressure_is_high(X):
    """A curved boundary."""
    return X[:, 1] > np.sin(2 * X[:, 0])


rng = np.random.RandomState(0)
X_sensor, X_gauge = rng.uniform(-2, 2, (150, 2)), rng.uniform(-2, 2, (20, 2))
X, y, fidelity = stack_levels(
    {
        "sensor": (X_sensor, ~pressure_is_high(X_sensor) ^ (rng.uniform(size=150) < 0.1)),
        "gauge": (X_gauge, pressure_is_high(X_gauge)),
    }
)
y = np.where(y, "high", "low")
model = MultiFidelityClassifier(1.0 * RBF(), random_state=0).fit(X, y, fidelity=fidelity)
print(f"rho = {model.rho_[0]:.2f}")

# %%
# The maps of the two levels are each other's negative. Twenty labels of the gauge alone could not
# draw the right-hand one.

fig = plt.figure(figsize=(8, 4.2))
for half, level in zip(fig.subfigures(1, 2), model.levels_, strict=True):
    half.suptitle(f"what the {level} says")
    ax = half.subplots()
    of = fidelity == level
    FeasibilityDisplay.from_estimator(
        model, X[of], y[of], fidelity[of], level=level, target="high", ax=ax
    )
    ax.set(xlabel="load", ylabel="speed")
plt.show()

new = rng.uniform(-2, 2, (2000, 2))
right = model.predict(new) == np.where(pressure_is_high(new), "high", "low")
print(f"{right.mean():.1%} of new points are right")
