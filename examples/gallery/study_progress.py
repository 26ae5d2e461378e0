"""
The progress of a study
=======================

A *study* buys labels batch after batch: it asks, takes answers, refits, and asks again. Its plot
shows whether what it promised came true, and so when to stop.
"""

# %%
# A function stands in for the people who would fill in the column ``label``.

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier, Study
from polyfid.kernels import RBF

rng = np.random.RandomState(0)
pool = rng.uniform(-2, 2, (800, 2))


def answer(batch):
    """What the crowd and the expert say about the rows of a batch."""
    x0, x1 = batch["x0"].to_numpy(), batch["x1"].to_numpy()
    is_crowd = batch["level"].to_numpy() == "crowd"
    label = x1 > np.sin(2 * x0 + 0.3 * is_crowd)
    return label ^ (is_crowd & (rng.uniform(size=len(batch)) < 0.1))


model = MultiFidelityClassifier(1.0 * RBF(), inference="ep", random_state=0)
study = Study(pool, costs={"crowd": 1, "expert": 6}, model=model, random_state=0)
for _ in range(8):
    batch = study.ask(budget=50)
    study.tell(batch.assign(label=answer(batch)))
print(study)

# %%
# Above, the log-loss that the model expects and the one that held-out labels show. Below, what each
# batch promised and what it delivered.

fig, axes = plt.subplots(2, 1, figsize=(6.4, 5.2))
study.plot(ax=axes)
plt.show()
