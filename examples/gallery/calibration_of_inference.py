"""
Calibration of the three schemes
================================

A probability of 80 % should be right in 80 % of the cases. Laplace's method is the fastest of the
three schemes, and it is too timid. Expectation propagation (EP) and the variational scheme take
longer, and their probabilities mean what they say.
"""

# %%
# The labels are drawn from the model itself, so that any miscalibration comes from the inference.
# They are nearly without noise, which is hard for Laplace's method.

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import log_loss

from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF

made = make_cokriging(
    150, 50, 5, scale=100.0, length_scale=0.52, n_test=10_000, labels="sigmoid", random_state=2
)

fig, ax = plt.subplots(figsize=(5, 4.8))
for name, colour in (("laplace", "#d98200"), ("ep", "#0072b2"), ("variational", "#009e73")):
    model = MultiFidelityClassifier(1.0 * RBF(), inference=name)
    model.fit(made.data, made.target, fidelity=made.fidelity)
    p = model.predict_proba(made.test_data)[:, 1]
    loss = log_loss(made.test_target, p)
    CalibrationDisplay.from_predictions(
        made.test_target, p, n_bins=10, name=f"{name}: log-loss {loss:.3f}", ax=ax, color=colour
    )
ax.set(xlabel="predicted probability", ylabel="share of positive labels")
ax.legend(loc="upper left", frameon=False)
plt.show()
