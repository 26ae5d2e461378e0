"""
What to buy next, with 500 in the budget
========================================

A crowd answers for 1 per label and is often wrong. An expert asks 10 and is right. Some labels are
there already, and there is money for 500 more. Whom should we ask, about which rows, and when is it
time to stop?
"""

# %%
# The data
# --------
#
# Rows are places on a map, and the question is whether there is ore below. There is, in two round
# fields. The crowd overlooks the smaller one, and every tenth of its answers is wrong by chance.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

costs = {"crowd": 1, "expert": 10}


def has_ore(X):
    """The truth, which the expert finds."""
    west = np.hypot(X[:, 0] + 0.6, X[:, 1] - 0.5) < 0.9
    south = np.hypot(X[:, 0] - 1.0, X[:, 1] + 1.0) < 0.5
    return west | south


def crowd_says(X, rng):
    """What the crowd says."""
    seen = has_ore(X) & ~((X[:, 0] > 0.2) & (X[:, 1] < 0))
    return seen ^ (rng.uniform(size=len(X)) < 0.1)


# %%
# At the end we want to know whether the money was well spent. For that there are 4000 further
# places, and the truth of them, which nobody knows outside of a tutorial.

from sklearn.metrics import log_loss

everywhere = np.random.RandomState(99).uniform(-2, 2, (4000, 2))


def loss(study):
    """The log-loss at the 4000 places: small where probabilities are right."""
    return log_loss(has_ore(everywhere), study.predict_proba(everywhere)[:, 1])


# %%
# The *pool* is the rows that may be labelled: 1000 places. A *study* keeps the account of labels
# and money. It starts with 60 answers of the crowd and 25 of the expert. These 25 places were drawn
# at random, and ``audit=True`` says so.

from polyfid import MultiFidelityClassifier, Study
from polyfid.kernels import RBF


def begin(seed):
    """A pool, and a study of it that knows 85 labels."""
    rng = np.random.RandomState(seed)
    pool = rng.uniform(-2, 2, (1000, 2))
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0)
    study = Study(pool, costs=costs, model=model, random_state=seed)
    study.tell(np.arange(60), crowd_says(pool[:60], rng), level="crowd")
    study.tell(np.arange(60, 85), has_ore(pool[60:85]), level="expert", audit=True)
    return pool, study, rng


pool, study, rng = begin(1)
print(study)

# %%
# Advice before any money is spent
# --------------------------------
#
# ``advise`` asks the model what it would know after 500 more, spent in one way or another. No label
# is needed for that.

advice = study.advise(500)
print(advice)

# %%
# Each point is a way to spend the same 500. The diamond need not be the lowest point: while trusted
# labels are few, what the crowd promises counts for less. The band is wide for the same reason, and
# the curve is rather flat. So the advice is "go", and not much more.

from polyfid.plots import AdviceDisplay

fig, ax = plt.subplots(figsize=(6.4, 3.6))
AdviceDisplay.from_advice(advice, ax=ax)
plt.show()

# %%
# Ask, tell, ask again
# --------------------
#
# Advice is for rows at random. A study chooses the rows, too. ``ask`` gives a table with an empty
# column ``label``, people fill it in, and ``tell`` takes it. Here a function stands in for the
# people. We spend 100 at a time.


def answer(batch, rng):
    """What the crowd and the expert say about the rows of a batch."""
    places = batch[["x0", "x1"]].to_numpy()
    is_crowd = (batch["level"] == "crowd").to_numpy()
    return np.where(is_crowd, crowd_says(places, rng), has_ore(places))


losses = [loss(study)]
first = study.ask(budget=100)
print(first.drop(columns=["label", "gain"]).head(8).round(3).to_string(index=False))

# %%
# Labels of both levels are mixed in a batch, by what each teaches for its price. The column
# ``audit`` marks rows that were drawn at random. All others were chosen because they teach
# much. Such rows are hard, and a score on them would look too bad. So scores are from audit rows
# alone.

print(study.tell(first.assign(label=answer(first, rng))))
asked = [first]
for _ in range(4):
    losses.append(loss(study))
    asked.append(study.ask(budget=100))
    study.tell(asked[-1].assign(label=answer(asked[-1], rng)))
losses.append(loss(study))
print(study)

# %%
# Where did the money go? Dotted lines are the true borders of the ore.

bought = pd.concat(asked)
fig, ax = plt.subplots(figsize=(6.2, 5.2))
line = np.linspace(-2, 2, 100)
grid = np.stack(np.meshgrid(line, line), axis=-1)
flat = grid.reshape(-1, 2)
p = study.predict_proba(flat)[:, 1].reshape(100, 100)
shades = ax.contourf(line, line, p, np.linspace(0, 1, 11), cmap="Blues", alpha=0.7)
fig.colorbar(shades, label="P(ore) after all batches")
ax.contour(line, line, has_ore(flat).reshape(100, 100), [0.5], colors="black", linestyles="dotted")
for name, of, marker, colour, size in (
    ("crowd", bought["level"] == "crowd", "o", "#d98200", 30),
    ("expert", (bought["level"] == "expert") & ~bought["audit"], "*", "black", 110),
    ("expert, audit row", bought["audit"], "D", "#7a2fc4", 36),
):
    places = bought.loc[of, ["x0", "x1"]].to_numpy()
    style = {"s": size, "marker": marker, "color": colour, "edgecolor": "white"}
    ax.scatter(*places.T, **style, label=f"{name}: {of.sum()}")
ax.set(xlim=(-2.05, 2.05), ylim=(-2.05, 2.05), xlabel="x0", ylabel="x1")
fig.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()

# %%
# The smaller field, which the crowd overlooks, was found, but its border is not sharp yet.
#
# Go on, or stop?
# ---------------
#
# Above is the log-loss that the model expects, and that of held-out labels. Below is what each
# batch had promised, and what it delivered. The money for the first 85 labels counts as spent.

fig, axes = plt.subplots(2, 1, figsize=(6.4, 5.2))
study.plot(ax=axes)
plt.show()

# %%
# Deliveries are measured on few rows, so single bars say little. The model expects worse losses
# than held-out labels show: it is too modest here.
#
# ``should_stop`` weighs the next batch against its price. For that it must know what better
# predictions are worth to you: ``value`` is the worth of one nat of log-loss on one row. From a
# toss-up to certainty is 0.69 nats.

for value in (0.05, 0.5, 5.0):
    word = "stop" if study.should_stop(value=value, budget=100) else "go on"
    print(f"one nat on one of {len(pool)} places is worth {value:4}: {word}")

# %%
# An honest comparison
# --------------------
#
# Was it worth it to choose? The truth is known here, so that we can count. The study above and two
# more, each with its own pool and start, against labels of random rows for the same money: half of
# it for each level, or all of it for the expert.


def course(seed, way):
    """The losses over five batches of 100."""
    pool, study, rng = begin(seed)
    losses, order = [loss(study)], 85 + rng.permutation(len(pool) - 85)
    for _ in range(5):
        if way == "chosen":
            batch = study.ask(budget=100)
            study.tell(batch.assign(label=answer(batch, rng)))
        else:
            n_crowd, n_expert = (50, 5) if way == "random, half each" else (0, 10)
            rows, order = np.split(order, [n_crowd + n_expert])
            crowd, expert = np.split(rows, [n_crowd])
            if n_crowd:
                study.tell(crowd, crowd_says(pool[crowd], rng), level="crowd")
            study.tell(expert, has_ore(pool[expert]), level="expert", audit=True)
        losses.append(loss(study))
    return losses


ways = {"chosen": "#0072b2", "random, half each": "#d98200", "random, all expert": "black"}
courses = {way: [course(seed, way) for seed in (0, 1, 2)] for way in list(ways)[1:]}
courses["chosen"] = [losses, course(0, "chosen"), course(2, "chosen")]
table = pd.DataFrame({way: np.mean(courses[way], axis=0) for way in ways}, index=range(0, 600, 100))
print(table.rename_axis("spent").round(3))
for way in list(ways)[1:]:
    money = np.interp(-table.loc[500, way], -table["chosen"], table.index)
    print(f"chosen labels for {money:.0f} are as good as 500 of: {way}")

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.8))
for way, colour in ways.items():
    ax.plot(table.index, np.transpose(courses[way]), color=colour, lw=0.8, alpha=0.4)
    ax.plot(table.index, table[way], "o-", color=colour, lw=2, label=way)
ax.set(xlabel="money spent", ylabel="log-loss at 4000 places", ylim=0)
ax.legend(frameon=False)
plt.show()

# %%
# Thick lines are the mean of the three studies, and thin lines are single ones. On average, chosen
# labels bring more for the same money. But thin lines cross, so in a single study luck matters as
# much. Three studies on one problem prove little; :doc:`../howto/what_to_label` has 20 problems,
# and some on which random labels were better.
#
# The decision
# ------------
#
# The last word is the next offer: what 100 more are expected to bring, now that promises of the
# past can be set beside what they delivered.

print(study.advise(100))

# %%
# ``advise`` says "go" as soon as the log-loss may fall by 0.005. It does not know whether that is
# worth 100 to you. ``should_stop`` does, once you tell it a value.
#
# So: say what a better prediction is worth, buy while the next batch is worth its price, and stop
# when it is not.
