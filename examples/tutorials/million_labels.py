"""
A million cheap labels
======================

A machine has labelled far more rows than people ever could. People have checked a few of them.
This tutorial learns from both kinds of labels at once, reads the rows in blocks, and ends with a
decision: which new rows need no human eye.

The code that runs here has 60 000 cheap rows, so that the page is built quickly. The same calls
take a million.
"""

# %%
# The rows
# --------
#
# ``make_rough`` makes labels of a function that goes up and down a lot. The cheap labels follow a
# function that resembles the trusted one, but is not the same. We also get 5000 new rows with
# trusted labels. No model sees those before the end.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MultipleLocator
from sklearn.calibration import calibration_curve
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss

from polyfid import ArrayBlocks, MultiFidelityClassifier, Stacked, TrustedOnly
from polyfid.datasets import make_rough

made = make_rough(60_000, 2_000, n_test=5_000, random_state=0)
level = np.array(["machine", "people"])[made.fidelity]
for name in ("machine", "people"):
    print(f"{name}: {np.sum(level == name)} rows")

# %%
# Rows that are larger than memory live in files. Here they are files of NumPy, opened with
# ``mmap_mode="r"``, so that only the part that is needed is read.

folder = tempfile.TemporaryDirectory()
here = Path(folder.name)
np.save(here / "X.npy", made.data)
np.save(here / "y.npy", made.target)
X, y = np.load(here / "X.npy", mmap_mode="r"), np.load(here / "y.npy", mmap_mode="r")

# %%
# The fit
# -------
#
# ``ArrayBlocks`` hands the rows over block by block. ``fit_blocks`` reads them several times. After
# every pass it saves what it has learnt to the checkpoint.
#
# ``n_tuning=3000`` tunes the hyper-parameters on 3000 rows. The default is 6000 with so many rows;
# we take fewer to save time on this page.

levels = ["machine", "people"]
model = MultiFidelityClassifier(levels=levels, n_tuning=3_000, random_state=0)
model.fit_blocks(ArrayBlocks(X, y, level), checkpoint=here / "fit.polyfid")
print(f"checkpoint: {(here / 'fit.polyfid').stat().st_size / 1e6:.1f} MB")

# %%
# If the computer is switched off in the middle, this goes on from the last checkpoint::
#
#     model = polyfid.load("fit.polyfid").set_params(warm_start=True)
#     model.fit_blocks(blocks, checkpoint="fit.polyfid")
#
# What was done
# -------------
#
# The report tells how the rows were used.

print(model.report_)

# %%
# Four of its lines matter most.
#
# *rho* says how far people's labels follow those of the machine. A correlation of 1 would mean that
# the machine says all there is to say, and 0 that it says nothing.
#
# *mean* says that boosted trees learnt first. Trees can hold what tens of thousands of rows know.
# Gaussian processes then say how far the trees can be trusted. A second model without trees gets
# the rest of the weight.
#
# *size* has the numbers of inducing points: rows that stand for all the others. It also says what
# exact inference would have cost.
#
# *calibration* holds out each trusted row in turn. So there is a first answer to "how good is it?"
# without any test rows.
#
# Beside boosted trees
# --------------------
#
# Would boosted trees have done as well? We fit those of scikit-learn in three ways: to the trusted
# rows only, to all rows alike, and *stacked*, where the answer of the trees of the machine's labels
# is one more feature of the trusted rows. Trees stop early, and their other settings are defaults.

trees = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
fitted = {
    "trees, trusted rows": TrustedOnly(trees, levels=levels).fit(X, y, fidelity=level),
    "trees, all rows alike": trees.fit(X, y),
    "trees, stacked": Stacked(trees, levels=levels).fit(X, y, fidelity=level),
    "polyfid": model,
}
new, truth = made.test_data, made.test_target
positive = {name: one.predict_proba(new)[:, 1] for name, one in fitted.items()}
positive["nobody can do better"] = made.test_probability
losses = {name: log_loss(truth, p) for name, p in positive.items()}
for name, p in positive.items():
    print(f"{name:22} log-loss {losses[name]:.3f}  accuracy {accuracy_score(truth, p > 0.5):.3f}")

# %%
# The labels themselves are drawn at random, so no model can reach zero. The last bar knows the
# probabilities that the labels were drawn with. It is the limit.

colours = ["#999999", "#999999", "#999999", "#0072b2", "#dddddd"]
fig, ax = plt.subplots(figsize=(6.6, 2.8))
bars = ax.barh(list(losses), list(losses.values()), color=colours)
ax.bar_label(bars, fmt="%.3f", padding=4)
ax.invert_yaxis()
ax.set(xlabel="log-loss of 5000 new rows (lower is better)", xlim=(0, 1.15 * max(losses.values())))
ax.spines[["top", "right"]].set_visible(False)
ax.tick_params(axis="y", length=0)
fig.tight_layout()
plt.show()

# %%
# Can its probabilities be believed?
# ----------------------------------
#
# Take all new rows to which a model gives about 80 %. Of these, 80 % should be positive. On the
# dashed line this is so. The trees here are those of all rows alike.

fig, ax = plt.subplots(figsize=(4.6, 4.4))
ax.plot([0, 1], [0, 1], ls="--", color="0.6")
for name, colour, mark in (("trees, all rows alike", "#999999", "s"), ("polyfid", "#0072b2", "o")):
    share, said = calibration_curve(truth, positive[name], n_bins=10)
    off = np.mean(np.abs(share - said))
    print(f"{name:22} off by {off:.3f} on average over the points")
    ax.plot(said, share, marker=mark, color=colour, label=name)
ax.set(xlabel="probability that is given", ylabel="share that is positive", aspect="equal")
ax.legend(frameon=False)
fig.tight_layout()
plt.show()

# %%
# The decision
# ------------
#
# New rows come every day. The model can label those it is sure of, and people look at the rest. The
# surer the model has to be, the more rows go to people, and the fewer of its own labels are wrong.

sure = np.maximum(positive["polyfid"], 1 - positive["polyfid"])
wrong = (positive["polyfid"] > 0.5) != truth
limits = np.linspace(0.5, 0.97, 48)
to_people = [np.mean(sure < limit) for limit in limits]
errors = [wrong[sure >= limit].mean() for limit in limits]
fig, ax = plt.subplots(figsize=(6.2, 3.6))
ax.plot(to_people, errors, color="#0072b2", lw=2)
for limit in (0.7, 0.8, 0.9, 0.95):
    share, error = np.mean(sure < limit), wrong[sure >= limit].mean()
    print(f"sure to {limit:.0%}: {share:.0%} of the rows to people, {error:.1%} of the rest wrong")
    ax.plot(share, error, "o", color="#0072b2")
    ax.annotate(f"{limit:.0%}", (share, error), xytext=(6, 6), textcoords="offset points")
ax.set(xlabel="share of rows that go to people", ylabel="wrong among the others")
ax.set(xlim=(0, 1), ylim=(0, None))
ax.yaxis.set_major_locator(MultipleLocator(0.05))
ax.xaxis.set_major_formatter("{x:.0%}")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
fig.tight_layout()
plt.show()

# %%
# The numbers beside the points say how sure the model has to be. Choose the point whose share of
# wrong labels you can live with, and you know how much work is left for people.
#
# A million
# ---------
#
# Nothing in the code above changes with a million rows. Leave out ``n_tuning``. The guide
# :doc:`/howto/many_rows` has what was measured, on two cores and with rows of the same kind:
# 1 000 000 cheap and 10 000 trusted rows took 64 s and reached a log-loss of .346. LightGBM with a
# base margin, the best of the rivals, took 59 s and reached .363. The fit needed 1.1 GB.
#
# If rows are in CSV or Parquet files, ``polyfid.tables.TableModel.fit_files`` or ``polyfid fit``
# read them in blocks without any code for it.

folder.cleanup()
