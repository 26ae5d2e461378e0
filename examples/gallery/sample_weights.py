"""
Weights count repetitions
=========================

``sample_weight=3`` means that a label was given three times. A row of weight 3 and three equal rows
give the same model. So votes can be counted instead of being repeated.
"""

# %%
# Nine points have one vote each. At the point 0.5 further voters say "no", against the trend.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF

X = np.append(np.linspace(-2, 2, 9), 0.5)[:, None]
y = np.append(X[:9, 0] > -0.3, False)
grid = np.linspace(-2.5, 2.5, 200)[:, None]
model = MultiFidelityClassifier(
    4.0 * RBF(0.6), levels=["crowd"], inference="ep", optimizer=None, standardize=False
)

fig, ax = plt.subplots(figsize=(6.4, 3.6))
for votes, colour in ((1, "#9ecae1"), (3, "#4292c6"), (10, "#084594")):
    weight = np.append(np.ones(9), votes)
    p = model.fit(X, y, sample_weight=weight).predict_proba(grid)[:, 1]
    ax.plot(grid, p, color=colour, lw=2, label=f"weight {votes}")
ax.scatter(X[:9], y[:9], color="black", zorder=3, label="one vote each")
ax.scatter(X[9:], y[9:], marker="v", s=90, color="#d98200", zorder=3, label="the vote in question")
ax.set(xlabel="x", ylabel="P(yes)")
ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
plt.show()

# %%
# A weight of 3 and three rows are the same:

weighted = model.fit(X, y, sample_weight=np.append(np.ones(9), 3)).predict_proba(grid)
repeated = model.fit(np.vstack([X, X[9:], X[9:]]), np.append(y, [False, False]))
difference = np.abs(repeated.predict_proba(grid) - weighted).max()
print(f"largest difference of a probability: {difference:.0e}")
assert difference < 1e-8
