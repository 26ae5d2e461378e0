"""
Labels flipped at random
========================

Some cheap labels are not wrong in one place but anywhere: people click the wrong button. Such
errors are *label noise*. ``label_noise="fidelity"`` learns the share of flipped labels per level.
"""

# %%
# The same points get cheap labels of which 5, 15, 25 or 35 % are flipped. Forty trusted labels do
# not change. For each share a model says how large it thinks the share is.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF

rng = np.random.RandomState(3)
X_cheap, X_trusted = rng.uniform(-2, 2, (150, 2)), rng.uniform(-2, 2, (40, 2))
draw = rng.uniform(size=150)


def truth(X):
    """A curved boundary."""
    return X[:, 1] > np.sin(2 * X[:, 0])


shares, learnt = [0.05, 0.15, 0.25, 0.35], []
for share in shares:
    X, y, fidelity = stack_levels(
        {
            "cheap": (X_cheap, truth(X_cheap) ^ (draw < share)),
            "trusted": (X_trusted, truth(X_trusted)),
        }
    )
    model = MultiFidelityClassifier(1.0 * RBF(), label_noise="fidelity").fit(
        X, y, fidelity=fidelity
    )
    log_odds = model.theta_[model.theta_names_.index("reliability[0]")]
    learnt.append(1 / (1 + np.exp(log_odds)))

# %%

fig, ax = plt.subplots(figsize=(4.6, 4.2))
flipped = [np.mean(draw < share) for share in shares]
ax.axline((0, 0), slope=1, color="0.7", lw=1)
ax.plot(flipped, learnt, "o", ms=9, color="#0072b2")
ax.set(xlim=(0, 0.42), ylim=(0, 0.42), xlabel="share of labels flipped", ylabel="share learnt")
ax.set_aspect("equal")
plt.show()
