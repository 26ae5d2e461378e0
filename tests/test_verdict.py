"""The verdict of an evaluation: effect, sentences, caveats, advice, and how they are shown."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from polyfid import MultiFidelityClassifier, evaluate, stack_levels
from polyfid.evaluation import METHODS, SCORES, Estimate, Evaluation
from polyfid.kernels import RBF

LEVELS = ("crowd", "gold")
HELP, HURT, SAME = (-0.2, -0.3, -0.1), (0.2, 0.1, 0.3), (0.01, -0.03, 0.04)
WIDE = (-0.05, -0.15, 0.05)


def made(alone=SAME, pooled=SAME, stacked=SAME, counts=(60, 40), ours=0.4, levels=LEVELS, **more):
    """An evaluation with these differences of log-loss: polyfid minus the other method."""
    n, codes = sum(counts), np.repeat(np.arange(len(counts)), counts)
    gaps = dict(zip(METHODS[1:], (alone, pooled, stacked), strict=True))
    loss = {"polyfid": ours} | {name: ours - gap[0] for name, gap in gaps.items()}

    def row(name):
        return {s: Estimate(loss[name], loss[name] - 0.1, loss[name] + 0.1) for s in SCORES}

    classes = more.pop("classes", ("no", "yes", "maybe")[: len(counts)])
    given = {
        "levels": levels,
        "classes": classes,
        "rows": np.arange(n),
        "labels": np.array(classes, dtype=object)[codes],
        "codes": codes,
        "fold": np.arange(n) % 5,
        "out_of_fold": {name: np.eye(len(counts))[codes] for name in METHODS},
        "scores": {name: row(name) for name in METHODS},
        "differences": {name: {s: Estimate(*gap) for s in SCORES} for name, gap in gaps.items()},
        "n_splits": 5,
        "n_bootstrap": 100,
        "notes": (),
    }
    return Evaluation(**(given | more))


@pytest.mark.parametrize(
    ("gap", "counts", "verdict", "words"),
    [
        (HELP, (60, 40), "help", r"^The cheaper labels \(crowd\) help: .* is 33 % lower \(0.400 "),
        (HURT, (60, 40), "hurt", r"^The cheaper labels \(crowd\) hurt: .* is 100 % higher "),
        (SAME, (60, 40), "no clear difference", "make no clear difference: .* 3 % higher"),
        (WIDE, (60, 40), "too few trusted rows to tell", "^There are too few trusted rows to tell"),
        # Clear, but less than a tenth: none that matters.
        ((-0.03, -0.04, -0.02), (60, 40), "no clear difference", "make no clear difference"),
        # However clear the difference is: fewer than 20 rows, or than 5 of a class.
        (HELP, (9, 10), "too few trusted rows to tell", "whether the cheaper labels .* help"),
        (HELP, (40, 4), "too few trusted rows to tell", "on 44 held-out trusted rows"),
        (HELP, (15, 5), "help", "on 20 held-out trusted rows"),
    ],
)
def test_the_effect_is_that_of_the_interval_of_log_loss(gap, counts, verdict, words):
    result = made(gap, counts=counts)
    assert result.verdict == result.judgement.effect == verdict
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(result.sentence)
    value, low, high = (f"{x:+.3f}" for x in gap)
    assert f"difference {value}, 95 % interval {low} to {high}" in result.sentence


@pytest.mark.parametrize(
    ("gap", "counts", "n_more"),
    [
        (WIDE, (60, 40), 300),  # half the width is to fall from 0.1 to 0.05: four times the rows
        ((-0.03, -0.1, 0.04), (20, 20), 70),  # from 0.07 to 0.043, a tenth of the log-loss
        (HELP, (9, 9), 5),  # up to 20 rows, in steps of five
        (HELP, (36, 3), 30),  # up to five of the rarest class
        (HELP, (60, 40), 0),
        (SAME, (60, 40), 0),
    ],
)
def test_how_many_more_rows_would_tell(gap, counts, n_more):
    judged = made(gap, counts=counts).judgement
    assert judged.n_more == n_more
    asked = f"Next: get about {n_more} more trusted labels before deciding."
    assert (judged.advice == asked) == (n_more > 0)


@pytest.mark.parametrize(
    ("alone", "pooled", "stacked", "rivals", "advice"),
    [
        (HELP, HELP, HELP, ("better than", "better than stacking"), "use the model, and look"),
        (HELP, SAME, SAME, ("no better than", "no better than stacking"), "use the model, and"),
        (HELP, HURT, HELP, ("worse than", "better than stacking"), "use the pooled model"),
        (HELP, HELP, HURT, ("better than", "worse than stacking"), "use the stacked model"),
        (HURT, SAME, SAME, ("no better than", "worse than the trusted"), "use the trusted rows"),
        (SAME, HELP, HELP, ("better than", "no better than the trusted"), "use either model"),
    ],
)
def test_rivals_and_advice(alone, pooled, stacked, rivals, advice):
    judged = made(alone, pooled, stacked).judgement
    beside_pooling, beside_other = rivals
    assert f"The model is {beside_pooling} simply pooling all labels" in judged.rivals
    assert f"and {beside_other}" in judged.rivals
    assert judged.advice.startswith(f"Next: {advice}")
    assert str(judged) == " ".join((judged.sentence, judged.rivals, judged.advice))


def test_caveats():
    assert made(HELP).judgement.caveats == ()
    (few,) = made(HELP, counts=(25, 20)).judgement.caveats
    assert few.startswith("Only 45 trusted rows were scored, 20 of the rarest class")
    (rare,) = made(HELP, counts=(92, 8), ours=0.2).judgement.caveats
    assert "8 of the rarest class" in rare
    (chance,) = made(HELP, ours=0.9).judgement.caveats
    assert "Neither model predicts better than the shares of the classes do (log-loss 0.673)" in (
        chance
    )
    given = made(HELP, caveats=("It rained.",))
    assert given.judgement.caveats == ("It rained.",)
    assert "Caution: It rained." in str(given)


def test_accuracy_and_confusion():
    counts = (6, 4)
    proba = np.eye(2)[[0, 0, 0, 0, 0, 1, 1, 1, 0, 0]]
    result = made(counts=counts, out_of_fold=dict.fromkeys(METHODS, proba))
    assert result.confusion.tolist() == [[5, 1], [2, 2]]
    share = result.accuracy["stacked"]
    wilson = binomtest(7, 10).proportion_ci(method="wilson")
    assert (share.value, share.low, share.high) == pytest.approx((0.7, wilson.low, wilson.high))
    assert "  stacked      0.70 (0.40 to 0.89)" in str(result).splitlines()
    assert ["no", "5", "1"] in [line.split() for line in str(result).splitlines()]


def test_agreement_of_points_that_both_levels_labelled():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    y = X[:, 0] > 0
    points = np.concatenate([X[:10], X[:30]])  # ten of them have a second cheap label
    cheap = np.concatenate([y[:10], y[:30] ^ (np.arange(30) % 5 == 4)])
    data = stack_levels({"bots": (X[:2] + 9, y[:2]), "crowd": (points, cheap), "gold": (X, y)})
    model = MultiFidelityClassifier(2.0 * RBF(1.0), optimizer=None)
    result = evaluate(*data, model=model, n_splits=2, n_bootstrap=20)
    (one,) = result.agreement  # bots share no point with gold
    # Of the first ten, labels differ at two points: equal weights, the first class is taken.
    differ = [i for i in range(30) if i % 5 == 4 and (i >= 10 or y[i])]
    assert (one.level, one.points) == ("crowd", 30)
    wilson = binomtest(30 - len(differ), 30).proportion_ci(method="wilson")
    got = one.share.value, one.share.low, one.share.high
    assert got == pytest.approx((1 - len(differ) / 30, wilson.low, wilson.high))
    text = " ".join(str(result).split())
    assert "On 30 points that both labelled, crowd and gold agree in" in text
    assert any("30 of the 40 trusted points also have" in c for c in result.judgement.caveats)


@pytest.mark.parametrize("levels", [LEVELS, ("a rather long name of a crowd of people", "g" * 70)])
@pytest.mark.parametrize("classes", [("no", "yes", "maybe"), tuple(c * 28 for c in "abc")])
def test_the_text_is_narrow_and_says_which_level_is_trusted(levels, classes):
    how = {"counts": (30, 20, 10), "levels": levels, "classes": classes, "notes": ("odd " * 40,)}
    text = str(made(HELP, **how, caveats=("careful " * 30,)))
    assert max(map(len, text.splitlines())) <= 60
    assert "most trusted:" in " ".join(text.split())
    assert ("How polyfid answers" in text) == (classes[0] == "no")  # a wide table is left out


def test_repr_and_html():
    evil = "<script>alert(1)</script>"
    result = made(HELP, levels=(evil, "gold"), caveats=("a <b>bold</b> claim",))
    assert repr(result) == "<Evaluation: help; log-loss 0.400 on 100 trusted rows>"
    html = result._repr_html_()
    assert evil not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "<b>bold" not in html
    for text in (result.judgement.advice, "0.400", "trusted only"):
        assert text in html


def test_as_json():
    result = made(WIDE, caveats=("careful",), classes=(np.int64(3), np.datetime64("2020-01-01")))
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert told["verdict"] == "too few trusted rows to tell"
    assert (told["trusted_level"], told["n_trusted"], told["n_more_trusted"]) == ("gold", 100, 300)
    assert told["caveats"] == ["careful"]
    assert told["classes"] == [3, "2020-01-01"]
    assert told["confusion"] == [[60, 0], [0, 40]]
    assert told["accuracy"]["polyfid"]["value"] == 1.0
    judged = result.judgement
    texts = [told[key] for key in ("sentence", "beside_others", "next_step")]
    assert texts == [judged.sentence, judged.rivals, judged.advice]
    assert "out_of_fold" not in result.to_dict(out_of_fold=False)
