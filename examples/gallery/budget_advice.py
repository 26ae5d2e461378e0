"""
How to split a budget
=====================

Is money better spent on many cheap labels or on few trusted ones? ``advise`` asks the model what it
would know after either, before any label is bought.
"""

# %%

import matplotlib.pyplot as plt

from polyfid import MultiFidelityClassifier, advise
from polyfid.datasets import make_cokriging
from polyfid.kernels import RBF
from polyfid.plots import AdviceDisplay

made = make_cokriging(200, 60, noise=0.1, n_test=1000, random_state=0)
names = ["crowd", "expert"]
fidelity = [names[level] for level in made.fidelity]
model = MultiFidelityClassifier(1.0 * RBF(), levels=names, inference="ep", random_state=0)
model.fit(made.data, made.target, fidelity=fidelity)

# %%
# A label of the crowd costs 1, one of the expert costs 20, and there is money for 1000.

advice = advise(model, made.test_data, {"crowd": 1, "expert": 20}, budget=1000)
print(advice)

# %%
# Each point is a plan. All plans cost the same, and lower is better. Here most of the
# money belongs to the expert, and it hardly matters whether a part of it goes to the crowd.

fig, ax = plt.subplots(figsize=(6.4, 4))
AdviceDisplay.from_advice(advice, ax=ax)
plt.show()
