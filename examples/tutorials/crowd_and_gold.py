"""
A crowd and a gold set
======================

Six people read handwritten tickets, and a ticket wins if its digit is even. Their answers are
cheap, and some are wrong. Of 80 tickets we know the truth: that is the *gold set*. Which new
tickets should be paid?
"""

# %%
# The data
# --------
#
# The digits come with scikit-learn: 64 grey values each. We know the truth of all of them, and hide
# it: 80 digits are the gold set, 300 were read by people, and 1000 are new.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

digits = load_digits(as_frame=True)
pixels = digits.data
truth = pd.Series(np.where(digits.target % 2 == 0, "wins", "loses"))

rng = np.random.RandomState(0)
order = rng.permutation(len(pixels))
gold, read, new = order[:80], order[80:380], order[-1000:]

# %%
# Two people read each of the 300. Ann is careful, Finn hardly looks.

skill = pd.Series({"Ann": 0.96, "Bob": 0.94, "Cem": 0.90, "Dia": 0.85, "Eva": 0.75, "Finn": 0.60})
pairs = [(ticket, who) for ticket in read for who in rng.choice(skill.index, 2, replace=False)]
answers = pd.DataFrame(pairs, columns=["ticket", "who"])
true = truth[answers["ticket"]].to_numpy()
is_wrong = rng.uniform(size=len(answers)) > skill[answers["who"]].to_numpy()
answers["label"] = np.where(is_wrong, np.where(true == "wins", "loses", "wins"), true)
print(answers.head(4))
print(
    f"\n{len(answers)} answers, {is_wrong.mean():.0%} of them wrong. The model is not told which."
)

# %%
# One table for each level of trust
# ---------------------------------
#
# ``stack_levels`` takes the labels of each *level*, the least trusted first. Every answer is a row
# of its own, so that two answers to one ticket may differ.

from polyfid import MultiFidelityClassifier, stack_levels

X, y, fidelity = stack_levels(
    {
        "crowd": (pixels.loc[answers["ticket"]], answers["label"]),
        "gold": (pixels.loc[gold], truth[gold]),
    }
)
model = MultiFidelityClassifier("rbf", random_state=0)
model.fit(X, y, fidelity=fidelity)
print(model.report_)

# %%
# The line to read first is ``rho``. It says how the gold labels follow the crowd: 0 would mean that
# the crowd says nothing, and a negative number that it points the wrong way. It is clearly
# positive here, so the crowd is worth something.
#
# Do the cheap labels help?
# -------------------------
#
# ``evaluate`` hides gold labels in turn and predicts them. It compares with three simpler ways:
# forget the crowd, trust everybody alike, or feed the crowd's opinion to a second model.

from polyfid import evaluate

result = evaluate(X, y, fidelity, model=MultiFidelityClassifier("rbf", random_state=0))
print(result)

# %%
# The verdict comes in words. The intervals tell how far it can be trusted, since only 80 labels
# were there to judge by.
#
# We are luckier than one usually is, since we know the truth of the 1000 new tickets too. So the
# verdict can be checked.

from sklearn.metrics import accuracy_score, log_loss

from polyfid import Pooled, Stacked, TrustedOnly

alike = MultiFidelityClassifier("rbf", random_state=0)
ways = {
    "gold alone": TrustedOnly(alike),
    "all alike": Pooled(alike),
    "stacked": Stacked(alike),
    "polyfid": model,
}
scores = {}
for name, way in ways.items():
    if way is not model:
        way.fit(X, y, fidelity=fidelity)
    p = way.predict_proba(pixels.loc[new])
    right = accuracy_score(truth[new], way.predict(pixels.loc[new]))
    scores[name] = {"log-loss": log_loss(truth[new], p), "accuracy": right}
scores = pd.DataFrame(scores).T
print(scores.round(3))

# %%
# Log-loss is small where probabilities are right, not only decisions. Diamonds are what
# ``evaluate`` had expected from 80 labels, and dashed lines are its intervals. The best way is the
# same.

fig, ax = plt.subplots(figsize=(6.4, 2.8))
expected = result.scores
for place, (name, told) in enumerate(
    zip(scores.index, ["trusted only", "pooled", "stacked", "polyfid"], strict=True)
):
    estimate = expected[told]["log_loss"]
    colour = "#0072b2" if name == "polyfid" else "0.6"
    ax.barh(place, scores.loc[name, "log-loss"], 0.6, color=colour)
    ax.plot([estimate.low, estimate.high], [place, place], "--", color="black", lw=1)
    ax.plot(estimate.value, place, "D", color="black", ms=4)
ax.set(xlabel="log-loss of 1000 new tickets (bars), as expected (diamonds)")
ax.set_yticks(range(4), scores.index)
ax.invert_yaxis()
plt.show()

# %%
# Which answers are wrong?
# ------------------------
#
# ``likely_wrong`` ranks the crowd's answers by the probability that gold would say otherwise. Each
# answer is left out of its own judgement.

from polyfid.inspection import likely_wrong

suspects = likely_wrong(model, X, y, fidelity)
sure = suspects.probability > 0.8
print(f"suspected with more than 80 %: {sure.sum()} answers")
print(f"of these truly wrong: {is_wrong[suspects.rows[sure]].mean():.0%}")

# %%
# The ten most suspicious answers, each as its digit. Odd digits lose and even ones win: look
# yourself.

fig, axes = plt.subplots(2, 5, figsize=(7.2, 3.7))
for ax, row, p in zip(axes.flat, suspects.rows, suspects.probability, strict=False):
    one = answers.iloc[row]
    ax.imshow(pixels.loc[one["ticket"]].to_numpy().reshape(8, 8), cmap="gray_r")
    ax.set_title(f'{one["who"]}: "{one["label"]}"', fontsize=10)
    ax.set_xlabel(f"P(wrong) = {p:.2f}", fontsize=9)
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Who gave them? For each person, the share of answers that the model calls wrong, beside the share
# that is.

called = np.zeros(len(answers))
called[suspects.rows] = suspects.probability > 0.5
by_person = answers.assign(called=called, truly=is_wrong).groupby("who")[["called", "truly"]].mean()
print(by_person.round(2))

# %%
fig, ax = plt.subplots(figsize=(5.4, 3.2))
at = np.arange(len(by_person))
ax.bar(at - 0.2, by_person["called"], 0.38, color="#0072b2", label="called wrong by the model")
ax.bar(at + 0.2, by_person["truly"], 0.38, color="0.7", label="truly wrong")
ax.set(ylabel="share of answers", ylim=0)
ax.set_xticks(at, by_person.index)
ax.legend(frameon=False)
plt.show()

# %%
# The order of the people is nearly right, though nobody's answers were checked. Everybody is called
# wrong a little too often.
#
# The decision
# ------------
#
# Paying a ticket that lost costs 20. Refusing one that won costs 5, for an apology. A clerk who
# looks at a ticket costs 1. ``decide`` takes what is expected to cost least, and answers ``None``
# where that is the clerk.

mistakes = {("loses", "wins"): 20, ("wins", "loses"): 5}
decided = model.decide(pixels.loc[new], mistakes, cost_abstain=1)
action = pd.Series(decided).map({"wins": "pay", "loses": "refuse"}).fillna("ask the clerk")
print(pd.crosstab(action, truth[new].to_numpy(), rownames=["action"], colnames=["truth"]))

# %%
# The model pays no ticket that lost and refuses none that won, but it sends many to the clerk. What
# that costs, and what else one could do with 1000 tickets:


def cost(decision):
    """What decisions cost, per 1000 tickets."""
    paid = [mistakes.get(pair, 0) for pair in zip(truth[new], decision, strict=True)]
    return int(np.sum(paid) + np.sum(pd.isna(decision)))


gold_alone = ways["gold alone"].estimator_
print(f"the clerk looks at all of them      {len(new)}")
print(
    f"gold alone, the same rule           {cost(gold_alone.decide(pixels.loc[new], mistakes, 1))}"
)
print(f"polyfid, the more probable class    {cost(model.predict(pixels.loc[new]))}")
print(f"polyfid, the least expected cost    {cost(decided)}")

# %%
# So: pay and refuse what the model is sure of, and send the rest to the clerk. Fewer will go to the
# clerk when the model has more labels: :doc:`what_to_buy` says which ones.
