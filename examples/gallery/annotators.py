"""
One error rate per annotator
============================

Six people label the same kind of rows, and they are not equally careful. If rows say who gave
their label, ``label_noise="annotator"`` learns two rates per person: how often a positive row is
called positive (*sensitivity*), and how often a negative one is called negative (*specificity*).
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF

people = np.array(["Ann", "Bob", "Cem", "Dia", "Eva", "Finn"])
sensitivity = np.array([0.97, 0.95, 0.60, 0.85, 0.92, 0.55])
specificity = np.array([0.96, 0.65, 0.90, 0.85, 0.75, 0.50])

rng = np.random.RandomState(0)
X_crowd, X_expert = rng.uniform(-2, 2, (300, 2)), rng.uniform(-2, 2, (30, 2))


def truth(X):
    """A curved boundary."""
    return X[:, 1] > np.sin(2 * X[:, 0])


who = rng.randint(6, size=300)
positive = truth(X_crowd)
said = rng.uniform(size=300) < np.where(positive, sensitivity[who], 1 - specificity[who])
X, y, fidelity = stack_levels({"crowd": (X_crowd, said), "expert": (X_expert, truth(X_expert))})
annotator = np.append(people[who], ["expert"] * 30)

model = MultiFidelityClassifier(1.0 * RBF(), label_noise="annotator")
model.fit(X, y, fidelity=fidelity, annotator=annotator)

# %%
# The rates are among the hyper-parameters, as log-odds. Arrows lead from the true rates to those
# that the model learnt from 50 labels each.

learnt = {n: 1 / (1 + np.exp(-t)) for n, t in zip(model.theta_names_, model.theta_, strict=True)}
fig, ax = plt.subplots(figsize=(5.6, 4.6))
for name, a, b in zip(people, sensitivity, specificity, strict=True):
    k = model.annotators_.tolist().index(name)
    x, y = learnt[f"specificity[{k}]"], learnt[f"sensitivity[{k}]"]
    ax.annotate("", (x, y), (b, a), arrowprops={"arrowstyle": "->", "color": "0.5"})
    ax.plot(b, a, "o", ms=6, color="0.6", label="true" if name == "Ann" else None)
    ax.plot(x, y, "o", ms=9, color="#0072b2", label="learnt" if name == "Ann" else None)
    ax.annotate(name, (x, y), xytext=(8, 4), textcoords="offset points")
ax.set(xlabel="specificity", ylabel="sensitivity", xlim=(0.4, 1.04), ylim=(0.4, 1.04))
ax.legend(loc="lower right", frameon=False)
plt.show()
