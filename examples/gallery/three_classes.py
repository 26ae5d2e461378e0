"""
Three classes
=============

More than two classes need nothing special. Here a quarter of the cheap labels of the irises is
wrong, and eighteen flowers have a trusted label.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from polyfid import MultiFidelityClassifier, stack_levels

iris = load_iris()
X_all, names = iris.data[:, 2:], iris.target_names[iris.target]  # petals
rng = np.random.RandomState(0)
crowd = np.where(rng.uniform(size=150) < 0.25, rng.permutation(names), names)
trusted = rng.permutation(150)[:18]
X, y, fidelity = stack_levels(
    {"crowd": (X_all, crowd), "botanist": (X_all[trusted], names[trusted])}
)
model = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)

# %%
# Each class has a colour. It is stronger where the class is more probable; where it fades to white
# no class has more than a third. Large points are trusted.

colours = ["#d98200", "#0072b2", "#009e73"]
length, width = np.linspace(0.5, 7.3, 140), np.linspace(-0.1, 2.8, 140)
p = model.predict_proba(np.column_stack([a.ravel() for a in np.meshgrid(length, width)]))
best = p.argmax(axis=1)
rgb = np.array([plt.matplotlib.colors.to_rgb(c) for c in colours])[best]
strength = 0.75 * (p.max(axis=1, keepdims=True) - 1 / 3) / (2 / 3)
picture = (1 - strength * (1 - rgb)).reshape(140, 140, 3)

fig, ax = plt.subplots(figsize=(6, 4))
edges = (length[0], length[-1], width[0], width[-1])
ax.imshow(picture, origin="lower", extent=edges, aspect="auto", interpolation="bilinear")
for name, colour in zip(model.classes_, colours, strict=True):
    said = crowd == name
    ax.scatter(*X_all[said].T, s=14, color=colour, edgecolor="white", lw=0.4)
    right = trusted[names[trusted] == name]
    ax.scatter(*X_all[right].T, s=75, color=colour, edgecolor="black", label=name)
ax.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
ax.legend(loc="upper left", frameon=True)
plt.show()

right = np.mean(model.predict(X_all) == names)
print(f"right: crowd {np.mean(crowd == names):.0%}, model {right:.0%}")
