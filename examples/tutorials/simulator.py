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
# A beam has a span, a load and a thickness. The simulator uses the formula of the textbook, for a
# beam that rests on firm supports. It prints tenths of a millimetre.

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
    return np.round(1000 * (1000 * load) * span**3 / (48 * stiffness), 1)


# %%
# In truth the supports give way under a heavy load, so that beams bend further. And no two beams
# are quite alike: they scatter by 6 %.


def experiment(table):
    """Whether a beam held."""
    give = 1 + 0.9 * (table["load (kN)"] / 3) ** 2
    bent = simulate(table) * give * np.exp(0.06 * rng.normal(size=len(table)))
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
model = MultiFidelityClassifier(numeric_levels=["simulation"], random_state=0)
model.fit(X, y, fidelity=fidelity)
print(model.report_)

# %%
# ``rho`` is negative, and rightly so: the more millimetres, the less often a beam holds. Nobody had
# to say so. Its interval is wide, since few of the 30 beams failed.
#
# The line ``numbers`` has the error of the simulator's numbers, as the model learnt it.
# It is about that of rounding, as it should be: 0.029 mm for tenths of a millimetre.
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
# A map over span and load, for a thickness of 20 mm. The black line is the boundary as the model
# draws it. It may be anywhere in the grey band: 30 experiments do not tell exactly. The dotted line
# is the truth.

from polyfid.plots import FeasibilityDisplay

medium = [0.7, 1.6, 20.0]
display = FeasibilityDisplay.from_estimator(model, simulated, others=medium)
fig, ax = display.figure_, display.ax_
fig.set_size_inches(6.4, 4.6)
load = np.linspace(*ranges["load (kN)"], 100)
span_at_12 = (12 * 48 * 70e9 * 0.06 * 0.02**3 / 12 / (1e6 * load)) ** (1 / 3)
giving = (1 + 0.9 * (load / 3) ** 2) ** (-1 / 3)
ax.plot(span_at_12, load, color="#b3005a", lw=2.5)
ax.plot(span_at_12 * giving, load, "k:", lw=2.5)
ax.text(0.875, 2.88, "simulator:\n12 mm", color="#b3005a", fontsize=10, va="top")
ax.text(0.655, 2.84, "truth", fontsize=10, ha="right", va="top")
ax.set(xlim=ranges["span (m)"], ylim=ranges["load (kN)"])
plt.show()

# %%
# Where the simulator is wrong
# ----------------------------
#
# The simulator is too hopeful, and the more so the heavier the load. The model found most of that
# out from 30 experiments.
#
# The *correction* δ is what the experiments add to the simulator's numbers. It also holds the limit
# of 12 mm, so that its zero has no meaning. Its slope has one: where δ falls, beams hold less often
# than their millimetres say.

from polyfid.plots import DiscrepancyDisplay

display = DiscrepancyDisplay.from_estimator(model, simulated, others=medium, show="mean")
display.figure_.set_size_inches(6.4, 4.4)
display.ax_.set(xlim=ranges["span (m)"], ylim=ranges["load (kN)"])
plt.show()

# %%
# It falls towards long spans and heavy loads: there the supports give way. In the grey parts δ may
# be zero. The direction is right, but the size of the correction is not well known.
#
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


def logarithm(table):
    """What the simulator says, as a column for scikit-learn."""
    return np.log(simulate(table) + 0.1).reshape(-1, 1)


right = np.mean(limit(tested) == outcome)
curve = LogisticRegression().fit(logarithm(tested), outcome)
alone = TrustedOnly(MultiFidelityClassifier(random_state=0), numeric_levels=["simulation"])
alone.fit(X, y, fidelity=fidelity)
p_held = {
    "simulator, 12 mm": np.where(limit(test) == "held", right, 1 - right),
    "simulator and curve": curve.predict_proba(logarithm(test))[:, 1],
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

# %%
# The simulator alone is often right, but it does not know when. The experiments alone know what
# they saw, and 30 are few. The simulator's numbers fill the gaps between them.

fig, ax = plt.subplots(figsize=(6.4, 2.6))
colours = ["0.6"] * 3 + ["#0072b2"]
bars = ax.barh(scores.index, scores["log-loss"], 0.6, color=colours)
ax.bar_label(bars, [f"{value:.3f}" for value in scores["log-loss"]], padding=4)
ax.set(xlabel="log-loss of 3000 further beams (lower is better)", xlim=(0, 0.36))
ax.invert_yaxis()
plt.show()

# %%
# Does "95 %" mean 95 %? Beams are put together by how probable the model says it is that they hold.

sure = pd.cut(p_held["polyfid, both"], [0, 0.05, 0.5, 0.95, 0.99, 1])
groups = pd.DataFrame({"said": p_held["polyfid, both"], "held": held}).groupby(sure, observed=True)
print(groups.agg(beams=("held", "size"), said=("said", "mean"), held=("held", "mean")).round(3))

# %%
# The model is rather too cautious than too bold: where it is nearly sure it is right, and where it
# says "probably", beams hold even more often.
#
# The decision
# ------------
#
# A beam that is sold and fails costs 100. One that is scrapped and would have held costs 10. An
# experiment costs 4. ``decide`` takes what is expected to cost least; ``None`` is "make an
# experiment".

mistakes = {("failed", "held"): 100, ("held", "failed"): 10}
decided = model.decide(test, mistakes, cost_abstain=4)
action = pd.Series(decided).map({"held": "sell", "failed": "scrap"}).fillna("experiment")
print(pd.crosstab(action, truth, rownames=["action"], colnames=["truth"]))

# %%
# What that costs for each beam, and what else one could do:


def cost(decision):
    """The mean cost of a decision."""
    lost = [mistakes.get(pair, 0) for pair in zip(truth, decision, strict=True)]
    return (np.sum(lost) + 4 * np.sum(pd.isna(decision))) / len(truth)


costs = {
    "an experiment with each beam": 4.0,
    "simulator, 12 mm": cost(limit(test)),
    "30 experiments alone": cost(alone.estimator_.decide(test, mistakes, cost_abstain=4)),
    "polyfid, both": cost(decided),
}
print(pd.Series(costs).round(2).to_string())

# %%
# So: sell what surely holds, scrap what surely fails, and test what is left. Each such test is a
# further experiment to learn from, and the model will need fewer of them. Which experiment teaches
# most is another question: :doc:`what_to_buy`.
