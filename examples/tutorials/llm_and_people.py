"""
Labels of a language model and of people, on texts
==================================================

A language model has labelled 300 product reviews: praise or complaint. It costs next to nothing,
and it has a blind spot. People have labelled 60 of the same reviews. This tutorial finds out how
far the language model can be trusted, which of its labels are wrong, and what people should label
next.
"""

# %%
# The reviews
# -----------
#
# We make reviews up, so that we know the truth and nothing has to be downloaded. About one review
# in five is ironic: "superb lamp, the cable melted, thanks a lot". It is a complaint in words of
# praise.

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from polyfid import MultiFidelityClassifier, TrustedOnly, evaluate, stack_levels
from polyfid.inspection import likely_wrong

rng = np.random.RandomState(1)
THINGS = ["kettle", "backpack", "lamp", "jacket", "blender", "suitcase", "radio", "stroller"]
PARTS = ["zip", "strap", "battery", "lid", "handle", "screen", "cable", "hinge", "motor", "button"]
HAPPY = ["great", "lovely", "excellent", "brilliant", "wonderful", "perfect", "superb", "fantastic"]
ANGRY = ["bad", "terrible", "poor", "awful", "disappointing", "useless", "dreadful", "horrible"]
ASIDES = ["bought", "ordered", "tested", "found", "gave", "sent", "own", "use"]
IRONY = [
    *("oh", "thanks a lot", "well done", "just what i needed"),
    *("congratulations", "what a surprise"),
]
WORKS = [
    *("glides", "clicks", "lasts", "glows", "sits tight", "stays cool", "charges fast", "is soft"),
    *("stays clean", "is light", "is bright", "keeps warm", "is handy", "opens easily", "holds"),
    *("is solid", "feels sturdy", "looks neat", "is silent", "is quick", "closes well", "shines"),
    *("runs smoothly", "is well made"),
]
FAILS = [
    *("wobbles", "squeaks", "jams", "bends", "slips", "smells", "melted", "tore", "sticks"),
    *("rusted", "burns", "peels off", "faded", "shrank", "broke", "snapped", "leaks", "rattles"),
    *("cracked", "fell off", "came loose", "is missing", "overheats", "died"),
]


def write():
    """A review, and of which kind it is."""
    kind = rng.choice(["praise", "complaint", "irony"], p=[0.45, 0.35, 0.2])
    fact = f"the {rng.choice(PARTS)} {rng.choice(WORKS if kind == 'praise' else FAILS)}"
    if kind == "irony":
        parts = [f"{rng.choice(HAPPY)} {rng.choice(THINGS)}", fact, rng.choice(IRONY)]
    elif rng.uniform() < 0.4:
        tone = rng.choice(HAPPY if kind == "praise" else ANGRY)
        parts = [f"{tone} {rng.choice(THINGS)}", fact]
    else:
        parts = [f"{rng.choice(ASIDES)} this {rng.choice(THINGS)}", fact]
    return ", ".join(parts), kind


def make_reviews(n):
    """A table of reviews, with what people say of them."""
    table = pd.DataFrame([write() for _ in range(n)], columns=["text", "kind"])
    return table.assign(truth=np.where(table.kind == "praise", "praise", "complaint"))


reviews, new = make_reviews(300), make_reviews(1000)
for kind, group in reviews.groupby("kind"):
    print(f"{kind:10} {group.text.iloc[0]}")

# %%
# The labels
# ----------
#
# Our language model is a stand-in. It understands plain reviews, but takes irony at its word and
# calls it praise. Besides, it slips in one label of twenty. People read the first 60 reviews. As
# reviews are in random order, these are a random sample.

n_people = 60
slips = rng.uniform(size=300) < 0.05
machine = np.where((reviews.kind != "complaint") ^ slips, "praise", "complaint")
people = reviews.truth[:n_people].to_numpy()
print(f"on the reviews of both, they agree in {np.mean(machine[:n_people] == people):.0%}")

# %%
# The model needs numbers. TF-IDF counts words and gives rare ones more weight. A singular value
# decomposition compresses the counts to 50 numbers per review. It needs no labels. (From tables
# with a column of text, ``polyfid fit --text`` does this by itself.)

reader = make_pipeline(
    TfidfVectorizer(min_df=2, sublinear_tf=True, token_pattern=r"\w+"),
    TruncatedSVD(50, random_state=0),
)
read = reader.fit_transform(reviews.text)
X, y, fidelity = stack_levels({"machine": (read, machine), "people": (read[:n_people], people)})

# %%
# Do the machine's labels help?
# -----------------------------
#
# ``evaluate`` holds out people's labels in turn, and compares four ways to use the rest. With
# ``drop_repeats=True`` the machine's labels of the held-out reviews are held out too. So the scores
# are those for reviews that nobody has labelled.
#
# There are three parts instead of the usual five, to save time on this page.

model = MultiFidelityClassifier(random_state=0)
comparison = evaluate(X, y, fidelity, model=model, n_splits=3, drop_repeats=True)
judged = comparison.judgement
for text in (judged.sentence, judged.rivals, judged.advice, *judged.caveats):
    print(textwrap.fill(text, 80))

# %%
# The first line is the verdict. Log-loss decides, and lower is better. Each line in the picture
# is a 95 % interval.

names = list(comparison.scores)
losses = [comparison.scores[name]["log_loss"] for name in names]
fig, ax = plt.subplots(figsize=(6.4, 2.6))
for place, loss in enumerate(losses):
    colour = "#0072b2" if names[place] == "polyfid" else "#777777"
    ax.plot([loss.low, loss.high], [place, place], color=colour, lw=2)
    ax.plot(loss.value, place, "o", ms=8, color=colour)
ax.set_yticks(range(len(names)), names)
ax.set(xlabel="log-loss on people's labels (lower is better)", ylim=(3.5, -0.5), xlim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
fig.tight_layout()
plt.show()

# %%
# How far can the machine be trusted?
# -----------------------------------
#
# We fit the model to all labels. The line *rho* of its report says how closely people's labels
# follow those of the machine: a correlation of 1 is perfect agreement, and 0 is none at all.

model.fit(X, y, fidelity=fidelity)
print(model.report_)

# %%
# One number for all reviews is not the whole story. We made the reviews, so we can look at 1000 new
# ones, kind by kind.

unread = reader.transform(new.text)
alone = TrustedOnly(model).fit(X, y, fidelity=fidelity)
literal = np.where(new.kind == "complaint", "complaint", "praise")
answers = {
    "the machine, without slips": literal,
    "people's labels only": alone.predict(unread),
    "polyfid": model.predict(unread),
}
right = pd.DataFrame({name: new.truth == said for name, said in answers.items()})
by_kind = right.groupby(new.kind).mean().loc[["praise", "complaint", "irony"]]
print(by_kind.T.round(2).to_string())
print("all kinds:", right.mean().round(3).to_dict())
for name, one in (("people's labels only", alone), ("polyfid", model)):
    print(f"{name}: log-loss {log_loss(new.truth, one.predict_proba(unread)):.3f}")

fig, ax = plt.subplots(figsize=(6.8, 3.4))
by_kind.plot.bar(ax=ax, rot=0, width=0.78, color=["#d55e00", "#999999", "#0072b2"])
ax.set(xlabel="", ylabel="share that is right", ylim=(0, 1.0))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
fig.tight_layout()
plt.show()

# %%
# Plain reviews have their words in common with those that the machine labelled. There polyfid is
# right more often than people's labels alone. On irony it is right a little less often, since the
# machine misleads it somewhat. Over all kinds it gains.
#
# Which of its labels are wrong?
# ------------------------------
#
# ``likely_wrong`` ranks the machine's labels by the probability that people would say otherwise. A
# label has no say in its own case. These are the first of the list. It is a list of suspects, and a
# suspect may be innocent.

suspects = likely_wrong(model, X, y, fidelity)
for row, probability in zip(suspects.rows[:6], suspects.probability[:6], strict=True):
    print(f"{probability:.0%} wrong: {machine[row]:9} {reviews.text[row]}")

# %%
# Somebody who checks the labels in this order finds the wrong ones soon. The dashed line is what
# one finds in random order, and the dotted line is the best that is possible.

wrong = (machine != reviews.truth)[suspects.rows].to_numpy()
found = np.append(0, np.cumsum(wrong))
checked = np.arange(len(found))
print(f"{wrong.sum()} of {len(wrong)} labels are wrong")
for n in (50, 100, 150):
    print(f"the first {n} of the list have {found[n]} of them ({found[n] / found[-1]:.0%})")

fig, ax = plt.subplots(figsize=(6, 3.6))
ax.plot(checked, np.minimum(checked, found[-1]), ":", color="0.4", label="the best possible")
ax.plot(checked, found, color="#0072b2", lw=2, label="in the order of likely_wrong")
ax.plot(checked, checked * found[-1] / checked[-1], "--", color="0.6", label="in random order")
ax.set(xlabel="labels that are checked", ylabel="wrong labels found", xlim=(0, 300), ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
fig.tight_layout()
plt.show()

# %%
# What should people label next?
# ------------------------------
#
# To correct labels is one aim. To get a better model is another one, and other reviews serve it.
# ``suggest`` chooses those whose labels teach most about all the others.

pool = np.arange(n_people, 300)
batch = model.suggest(read[pool], costs={"people": 1}, n=30, audit=0, random_state=0)
asked = pool[batch["row"]]
print("asked for:", reviews.kind[asked].value_counts(normalize=True).round(2).to_dict())
print("in the pool:", reviews.kind[pool].value_counts(normalize=True).round(2).to_dict())

# %%
# These are the first of them.

for row in asked[:6]:
    print(reviews.text[row])

# %%
# What such batches are worth beside random ones was measured on many problems: see
# :doc:`/howto/what_to_label`. Ask for a batch, fit again, and ask again.
#
# The decision
# ------------
#
# Three things to take home. Do not take the language model's labels as they are: the picture by
# kind shows where they fail. Do not throw them away either: the verdict says what they are worth.
# And before anybody reads 300 reviews again, let people read the top of the list.
