"""
When polyfid is the wrong tool
==============================

Cheap labels do not always help, and polyfid is not always the best way to use them. This tutorial
shows five such cases. For each it asks ``evaluate`` first, which needs no other data than your own,
and then says what to use instead.
"""

# %%
# We make all data on the spot, so that we know the truth and can check each verdict on new rows.

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import OneHotEncoder

from polyfid import MultiFidelityClassifier, TrustedOnly, evaluate, stack_levels
from polyfid.kernels import RBF

rng = np.random.RandomState(0)
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#999999"


def moons(n, wrong=0.0, seed=0):
    """Rows of two half moons, of whose labels a share is wrong."""
    X, y = make_moons(n, noise=0.2, random_state=seed)
    flipped = np.random.RandomState(seed).uniform(size=n) < wrong
    return X, np.where(flipped, 1 - y, y)


def gaussian_process():
    """The model of this page: one plain kernel, to save time."""
    return MultiFidelityClassifier(1.0 * RBF(), random_state=0)


def ask(X, y, fidelity):
    """What evaluate says."""
    said = evaluate(X, y, fidelity, model=gaussian_process())
    for text in (said.sentence, said.judgement.advice, *said.judgement.caveats):
        print(textwrap.fill(text, 80))
    return said


def draw_losses(names, values, colours, label, limits=None):
    """One bar per method, with intervals if there are any."""
    fig, ax = plt.subplots(figsize=(6.4, 0.9 + 0.45 * len(names)))
    bars = ax.barh(names, values, color=colours, height=0.65)
    if limits is None:
        ax.bar_label(bars, fmt="%.3f", padding=4)
    else:
        ax.errorbar(values, range(len(names)), xerr=limits, fmt="none", color="0.2", capsize=3)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set(xlabel=label)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    plt.show()


# %%
# Cheap labels that are noise
# ---------------------------
#
# Here the cheap labels are coin flips: half of them are wrong. There are 150 of them and 60 trusted
# ones.

levels = {"cheap": moons(150, wrong=0.5, seed=1), "trusted": moons(60, seed=2)}
noise = ask(*stack_levels(levels))

# %%
# The picture shows four ways to use the same labels. Lines are 95 % intervals. polyfid found out
# that it should not listen to the cheap labels, so it is about as good as the trusted rows alone.
# To pool all labels is what hurts.

names = list(noise.scores)
losses = [noise.scores[name]["log_loss"] for name in names]
values = np.array([loss.value for loss in losses])
ends = np.array([[loss.value - loss.low, loss.high - loss.value] for loss in losses]).T
draw_losses(
    names,
    values,
    [BLUE, GREY, GREY, GREY],
    "log-loss on held-out trusted rows (lower is better)",
    ends,
)

# %%
# **Instead:** leave the cheap labels out, as a model with fewer parts is easier to explain. Spend
# the money on trusted labels.
#
# Codes, and almost half of the labels wrong
# ------------------------------------------
#
# The features are codes: the type of a part, the plant, the supplier, the shift. Code 3 is not
# between 2 and 4, so polyfid gets indicators: a column per code, of ones and zeros.
#
# Of the cheap labels 42 % are wrong. Whether a row is positive depends on the second code or on the
# third one, and the first one decides which of the two it is. Trees ask such questions one after
# the other.

signs = np.random.RandomState(0).standard_normal((4, 8)) > 0


def coded(n, wrong=0.0, seed=0):
    """Rows of four codes from 0 to 7."""
    own = np.random.RandomState(seed)
    codes = own.randint(8, size=(n, 4))
    first, second, third, _ = signs[np.arange(4), codes].T
    y = np.where(first, second, third) ^ (own.uniform(size=n) < wrong)
    return codes, y.astype(int)


cheap, trusted, new = coded(150, 0.42, seed=1), coded(120, seed=2), coded(2000, seed=3)
indicators = OneHotEncoder(sparse_output=False).fit(trusted[0])
levels = {
    "cheap": (indicators.transform(cheap[0]), cheap[1]),
    "trusted": (indicators.transform(trusted[0]), trusted[1]),
}
X, y, fidelity = stack_levels(levels)
codes = ask(X, y, fidelity)

# %%
# ``evaluate`` compares ways to use labels, all of them with the same kind of classifier. It does
# not try other kinds. That is left to you, and takes two lines of scikit-learn on the trusted rows.

trees = HistGradientBoostingClassifier(
    categorical_features=[0, 1, 2, 3], min_samples_leaf=5, random_state=0
)
held_out = cross_val_predict(trees, *trusted, cv=5, method="predict_proba")
print(f"trees of the trusted rows, held out: log-loss {log_loss(trusted[1], held_out):.3f}")

# %%
# New rows confirm it. The second bar is polyfid with default settings, which tries many kernels.
# That helps, but trees are still better.

model = gaussian_process().fit(X, y, fidelity=fidelity)
alone = TrustedOnly(gaussian_process()).fit(X, y, fidelity=fidelity)
trees.fit(*trusted)
unseen = indicators.transform(new[0])
default = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)
proba = {
    "polyfid": model.predict_proba(unseen),
    "polyfid, default settings": default.predict_proba(unseen),
    "trusted rows alone": alone.predict_proba(unseen),
    "trees, trusted rows": trees.predict_proba(new[0]),
}
values = [log_loss(new[1], p) for p in proba.values()]
draw_losses(
    [*proba], values, [BLUE, BLUE, GREY, ORANGE], "log-loss of 2000 new rows (lower is better)"
)

# %%
# **Instead:** boosted trees of the trusted rows, told which columns are codes.
#
# Rows without features
# ---------------------
#
# Ten people vote on 200 questions, five votes for each. There is nothing else: no text, no picture,
# no measurement. The number of a question is not a feature, since question 7 is no more like
# question 8 than like any other one. An expert has answered the first 30.

n_questions, n_gold = 200, 30
skill = np.array([0.95, 0.95, 0.9, 0.8, 0.6, 0.55, 0.55, 0.5, 0.5, 0.5])
truth = rng.randint(2, size=n_questions)
question = np.repeat(np.arange(n_questions), 5)
person = np.concatenate([rng.permutation(10)[:5] for _ in range(n_questions)])
is_right = rng.uniform(size=question.size) < skill[person]
vote = np.where(is_right, truth[question], 1 - truth[question])

numbers = np.arange(n_questions, dtype=float)[:, None]
levels = {"people": (numbers[question], vote), "expert": (numbers[:n_gold], truth[:n_gold])}
X, y, fidelity = stack_levels(levels)

# %%
# What counts is who voted. The method of Dawid and Skene learns at once how good people are and
# what is true. In its simplest form it is a loop of two steps.

belief = np.bincount(question, vote) / 5
majority = belief > 0.5
for _ in range(50):
    agrees = np.where(vote == 1, belief[question], 1 - belief[question])
    rate = (np.bincount(person, agrees) + 1) / (np.bincount(person) + 2)
    belief = expit(np.bincount(question, np.log(rate / (1 - rate))[person] * (2 * vote - 1)))

by_number = gaussian_process().fit(X, y, fidelity=fidelity).predict(numbers)
rest = slice(n_gold, None)
for name, said in [
    ("polyfid, of the question's number", by_number),
    ("majority of the votes", majority),
    ("Dawid and Skene", belief > 0.5),
]:
    print(f"{name:34} {np.mean(said[rest] == truth[rest]):.1%} of {n_questions - n_gold} right")

# %%
# ``evaluate`` would have warned us:

votes = ask(X, y, fidelity)

# %%
# The picture shows the people. The loop knew none of the skills, and no answer of the expert.

fig, ax = plt.subplots(figsize=(4.6, 4.2))
ax.plot([0.4, 1], [0.4, 1], "--", color="0.6")
ax.plot([np.mean(is_right[person == k]) for k in range(10)], rate, "o", ms=8, color=ORANGE)
ax.set(xlabel="share of a person's votes that is right", ylabel="as Dawid and Skene estimate it")
ax.set(xlim=(0.4, 1), ylim=(0.4, 1), aspect="equal")
ax.spines[["top", "right"]].set_visible(False)
fig.tight_layout()
plt.show()

# %%
# **Instead:** Dawid and Skene, for example that of the library crowd-kit. If your rows do have
# features, polyfid can use both: see ``polyfid.crowd`` and :doc:`/howto/crowds`.
#
# Too few trusted rows
# --------------------
#
# Back to the half moons. Now the cheap labels are better: 15 % of them are wrong. But there are
# only 12 trusted ones.

cheap, new = moons(150, wrong=0.15, seed=1), moons(2000, seed=3)
few = ask(*stack_levels({"cheap": cheap, "trusted": moons(12, seed=2)}))

# %%
# With so few rows to check by, ``evaluate`` does not decide, however large the difference is. The
# last picture of this page shows that the cheap labels do help here. But your own 12 rows could not
# tell you.
#
# **Instead:** label some more trusted rows first. ``evaluate`` says about how many.
#
# Plenty of trusted rows
# ----------------------
#
# Now there are 300 trusted rows, and the same cheap ones.

plenty = ask(*stack_levels({"cheap": cheap, "trusted": moons(300, seed=2)}))

# %%
# The cheap labels are as good as before, but trusted ones have said it all.
#
# Both cases are ends of one curve. We fit with and without the cheap labels, to 12 to 300 trusted
# rows, each with three draws of them, and look at new rows.

sizes, draws = [12, 25, 50, 100, 300], 3
curves = np.empty((2, len(sizes), draws))
for i, size in enumerate(sizes):
    for draw in range(draws):
        levels = {"cheap": cheap, "trusted": moons(size, seed=10 + draw)}
        X, y, fidelity = stack_levels(levels)
        for k, one in enumerate([gaussian_process(), TrustedOnly(gaussian_process())]):
            one.fit(X, y, fidelity=fidelity)
            curves[k, i, draw] = log_loss(new[1], one.predict_proba(new[0]))
for size, with_cheap, without in zip(sizes, *curves.mean(axis=2), strict=True):
    print(
        f"{size:3} trusted rows: log-loss {with_cheap:.3f} with cheap labels, {without:.3f} without"
    )

# %%
# Lines are means, and points are single draws.

fig, ax = plt.subplots(figsize=(6.2, 3.8))
for curve, name, colour in zip(
    curves, ["with the cheap labels", "trusted rows alone"], [BLUE, GREY], strict=True
):
    ax.plot(sizes, curve.mean(axis=1), color=colour, lw=2, label=name)
    ax.plot(sizes, curve, "o", ms=4, color=colour, alpha=0.6)
ax.set(xscale="log", xlabel="trusted rows", ylabel="log-loss of 2000 new rows", ylim=(0, None))
ax.set_xticks(sizes, [str(size) for size in sizes])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
fig.tight_layout()
plt.show()

# %%
# On the left the cheap labels are worth a lot, but hardly anybody could check it. On the right they
# can be checked, but are worth next to nothing.
#
# **Instead:** with plenty of trusted rows take any good classifier of these rows alone.
#
# The decision
# ------------
#
# Run ``evaluate`` on your own labels before anything else, and read its last sentence, the one that
# begins with "Next". Then do two checks that it does not do: compare with boosted trees of the
# trusted rows, and ask yourself whether your features say anything about the labels at all.
