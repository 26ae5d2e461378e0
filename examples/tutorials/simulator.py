"""
A simulator and 30 experiments
==============================

A shelf rests on a metal beam. The beam *held* if it bent by less than 12 mm under its load. A
simulator says by how many millimetres it will bend, in no time; an experiment says what really
happened, and is dear. There are 30 of them. Which beams can be sold without another experiment?
"""

# %%
# The data
# --------
#
# A beam has a span, a load and a thickness. The simulator uses the formula of the textbook. It
# believes that the ends of the beam are fixed for good.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.RandomState(0)
ranges = {"span (m)": (0.4, 1.0), "load (kN)": (0.2, 3.0), "thickness (mm)": (17.0, 24.0)}


def beams(n):
    """Beams drawn at random."""
    return pd.DataFrame({name: rng.uniform(*ends, n) for name, ends in ranges.items()})


def simulate(table):
    """By how many millimetres a beam bends, as in the textbook."""
    span, load, thickness = table.to_numpy().T
    stiffness = 70e9 * 0.06 * (thickness / 1000) ** 3 / 12
    return 1000 * (1000 * load) * span**3 / (48 * stiffness)


# %%
# In truth bolts slip under a heavy load, so that beams bend further. And no two beams are quite
# alike: they scatter by 6 %.


def experiment(table):
    """Whether a beam held."""
    slip = 1 + 0.9 * (table["load (kN)"] / 3) ** 2
    bent = simulate(table) * slip * np.exp(0.06 * rng.normal(size=len(table)))
    return np.where(bent < 12, "held", "failed")


simulated, tested = beams(200), beams(30)
millimetres, outcome = simulate(simulated), experiment(tested)
print(tested.assign(outcome=outcome).head(4).round(2))
print(f"\n{np.mean(outcome == 'held'):.0%} of the 30 beams held.")
print(f"The simulator's numbers go from {millimetres.min():.1f} to {millimetres.max():.1f} mm.")

# %%
# Numbers below, classes above
# ----------------------------
#
# One could turn the simulator's numbers into classes, at 12 mm. That would throw away whether a
# beam bends by 1 mm or by 11. So the level ``simulation`` keeps its numbers, and the model learns
# itself how they go with what held.

from polyfid import MultiFidelityClassifier, stack_levels

X, y, fidelity = stack_levels(
    {"simulation": (simulated, millimetres), "experiment": (tested, outcome)}
)
settings = {"kernel": "rbf", "inference": "ep", "random_state": 0}
model = MultiFidelityClassifier(numeric_levels=["simulation"], **settings)
model.fit(X, y, fidelity=fidelity)
print(model.report_)

# %%
# ``rho`` is negative, and rightly so: the more millimetres, the less often a beam holds. Nobody had
# to say so.
#
# The model can stand in for the simulator, too. ``predict_value`` gives millimetres and how sure it
# is of them.

new = beams(5)
mean, sd = model.predict_value(new)
print(new.assign(predicted=mean, sd=sd, simulator=simulate(new)).round(2).to_string(index=False))

# %%
# Where do beams hold?
# --------------------
#
# A map over span and load, for a thickness of 20 mm. In the grey band the boundary may be here or
# there: 30 experiments do not tell exactly. The dashed line is where the simulator says 12 mm, the
# dotted one the truth.

from polyfid.plots import FeasibilityDisplay

medium = [0.7, 1.6, 20.0]
display = FeasibilityDisplay.from_estimator(model, simulated, others=medium)
fig, ax = display.figure_, display.ax_
fig.set_size_inches(6.4, 4.6)
load = np.linspace(*ranges["load (kN)"], 100)
span_at_12 = (12 / simulate(pd.DataFrame({"span": 1.0, "load": load, "thickness": 20.0}))) ** (1 / 3)
slipping = (1 + 0.9 * (load / 3) ** 2) ** (-1 / 3)
ax.plot(span_at_12, load, "k--", lw=1.5)
ax.plot(span_at_12 * slipping, load, "k:", lw=2)
ax.set(xlim=ranges["span (m)"], ylim=ranges["load (kN)"])
plt.show()

# %%
# Where the simulator is wrong
# ----------------------------
#
# The *correction* δ is what the experiments add to the simulator. It is blue where beams hold more
# often than the simulator lets one think, orange where they fail more often.

from polyfid.plots import DiscrepancyDisplay

display = DiscrepancyDisplay.from_estimator(model, simulated, others=medium, show="mean")
display.figure_.set_size_inches(6.4, 4.4)
plt.show()

# %%
# What are the simulator's numbers worth?
# ---------------------------------------
#
# 3000 further beams, whose outcome we know because we made them up. Four ways to predict it:
#
# - the simulator, with the limit at 12 mm. It gives no probabilities; so it gets the share of the
#   30 experiments in which it was right,
# - the simulator's number and a logistic curve, drawn through the 30 experiments,
# - the 30 experiments alone, in a classifier of the same kind,
# - both together.

from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss

from polyfid import TrustedOnly

test = beams(3000)
truth = experiment(test)


def limit(table):
    """What the simulator says at 12 mm."""
    return np.where(simulate(table) < 12, "held", "failed")


right = np.mean(limit(tested) == outcome)
curve = LogisticRegression().fit(np.log(simulate(tested)).to_numpy()[:, None], outcome)
alone = TrustedOnly(MultiFidelityClassifier(**settings), numeric_levels=["simulation"])
alone.fit(X, y, fidelity=fidelity)
p_held = {
    "simulator, 12 mm": np.where(limit(test) == "held", right, 1 - right),
    "simulator and curve": curve.predict_proba(np.log(simulate(test)).to_numpy()[:, None])[:, 1],
    "30 experiments alone": alone.predict_proba(test)[:, 1],
    "polyfid, both": model.predict_proba(test)[:, 1],
}
held = truth == "held"
scores = pd.DataFrame(
    {
        name: {"log-loss": log_loss(held, p), "accuracy": accuracy_score(held, p > 0.5)}
        for name, p in p_held.items()
    }
).T
print(scores.round(3))
