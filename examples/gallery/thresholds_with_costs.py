"""
Thresholds from costs
=====================

Missing a worn part (a false negative) costs twenty times as much as checking an intact one (a false
positive). The best decision is then not the more probable class but the one of least expected
cost. The threshold follows from the costs without any search: fp / (fp + fn).
"""

# %%
# The second class in ``classes_``, here "worn", is the positive one.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF

made = make_cokriging(200, 60, noise=0.15, n_test=4000, labels="sigmoid", random_state=2)
names = np.array(["intact", "worn"])
y, y_test = names[made.target], names[made.test_target]
model = MultiFidelityClassifier(1.0 * RBF(), inference="ep").fit(
    made.data, y, fidelity=made.fidelity
)

costs = {"fp": 1, "fn": 20}
decided = model.decide(made.test_data, costs)
print(f"called worn: {np.mean(decided == 'worn'):.0%}, truly worn: {np.mean(y_test == 'worn'):.0%}")

# %%
# What 4000 new parts would have cost with other thresholds. Nothing was tuned on these parts, and
# the threshold that follows from the costs is where the curve is lowest, or nearly so.

worn = y_test == "worn"
p = model.predict_proba(made.test_data)[:, 1]
thresholds = np.linspace(0.005, 0.7, 120)
paid = [np.mean(1 * (~worn & (p > t)) + 20 * (worn & (p <= t))) for t in thresholds]
at = 1 / (1 + 20)

fig, ax = plt.subplots(figsize=(6.4, 3.6))
ax.plot(thresholds, paid, color="#0072b2", lw=2)
ax.axvline(at, color="#d98200", lw=2, label=f"fp / (fp + fn) = {at:.3f}")
ax.axvline(0.5, color="0.6", ls="--", label="the more probable class")
ax.set(xlabel="call a part worn above this probability", ylabel="cost per part", ylim=0)
ax.legend(frameon=False)
plt.show()
