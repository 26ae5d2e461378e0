"""
Inducing points
===============

With many rows a few *inducing points* stand for all of them. The work of a fit then grows with the
number of rows and no longer with its cube. More points are more accurate. How many are enough?
"""

# %%
# 750 rows are few enough to compare with exact inference.

import matplotlib.pyplot as plt
from sklearn.metrics import log_loss

from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF

made = make_cokriging(600, 150, n_test=4000, labels="sigmoid", random_state=0)


def loss(n_inducing):
    """Log-loss of new rows."""
    model = MultiFidelityClassifier(
        1.0 * RBF(), inference="variational", n_inducing=n_inducing, n_tuning=300, random_state=0
    )
    model.fit(made.data, made.target, fidelity=made.fidelity)
    return log_loss(made.test_target, model.predict_proba(made.test_data))


numbers = [4, 8, 16, 32, 64]
losses = [loss(n) for n in numbers]
exact = loss(None)

# %%
# A smooth function of two features needs a few dozen points. A rough one would need more: see
# what "auto", the default, chooses, in ``report_``.

fig, ax = plt.subplots(figsize=(6, 3.6))
ax.axhline(exact, color="0.5", ls="--", label="exact inference")
ax.plot(numbers, losses, "o-", color="#0072b2", label="inducing points")
ax.set(xscale="log", xlabel="inducing points per latent function", ylabel="log-loss of new rows")
ax.set_xticks(numbers, [str(n) for n in numbers])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
