"""What a comparison means: do the cheaper labels help, what weighs against it, what to do next.

One score decides, fixed beforehand: log-loss. A method is better or worse than another one only if
the 95 % interval of their difference leaves zero out; cheap labels help or hurt only if log-loss
changes by a tenth at least besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import binomtest

from polyfid.arrays import Array
from polyfid.text import percent

Effect = Literal["help", "hurt", "no clear difference", "too few trusted rows to tell"]

#: The score that decides.
PRIMARY = "log_loss"
#: With fewer trusted rows, in all or of a class, nothing is decided.
LEAST_ROWS, LEAST_PER_CLASS = 20, 5
#: With fewer, intervals are rough.
FEW_ROWS, FEW_PER_CLASS = 50, 10
#: A difference of this share of the log-loss matters. A smaller one is none, however clear, as the
#: models of noise and of nothing differ a little too; an interval that is wider than it on a side
#: cannot tell that there is none. Chosen on other seeds than those of ``benchmarks verdicts``.
MATTERS = 0.1


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, samples: Array) -> Estimate:
        """The value of the rows themselves with percentiles of their bootstrap samples."""
        # Noise can only increase a calibration error: all samples may lie above its value.
        low, high = np.percentile(samples, [2.5, 97.5])
        return cls(float(value), float(min(low, value)), float(max(high, value)))

    @classmethod
    def of_share(cls, hits: int, n: int) -> Estimate:
        """A share of n with its Wilson interval."""
        ends = binomtest(hits, n).proportion_ci(0.95, method="wilson")
        return cls(hits / n, float(ends.low), float(ends.high))

    def widened(self, factor: float) -> Estimate:
        """The same value with ends so many times as far away."""
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return Estimate(self.value, low, high)

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class Agreement:
    """On how many points that the top level has labelled too a lower level gives its label."""

    level: Any
    points: int
    share: Estimate


@dataclass(frozen=True)
class Verdict:
    """What held-out trusted labels say of the cheaper ones.

    Attributes
    ----------
    effect : str
        "help", "hurt", "no clear difference" or "too few trusted rows to tell".
    sentence, rivals, advice : str
        The effect with its figures; how the model does beside other ways to use the labels; what
        to do next.
    caveats : tuple of str
        What weighs against it.
    n_more : int
        How many more trusted rows would tell, roughly; 0 unless there are too few.
    """

    effect: Effect
    sentence: str
    rivals: str
    advice: str
    caveats: tuple[str, ...]
    n_more: int = 0

    def __str__(self) -> str:
        return " ".join((self.sentence, self.rivals, self.advice))


class Losses(NamedTuple):
    """Log-loss of the methods, and of the model minus each of the others.

    Where all cheaper levels are numeric there is no pooling.
    """

    ours: float
    alone: float
    pooled: float | None
    stacked: float
    minus_alone: Estimate
    minus_pooled: Estimate | None
    minus_stacked: Estimate
    chance: float


def judge(losses: Losses, counts: Sequence[int], levels: Sequence[Any]) -> Verdict:
    """The verdict; ``counts`` are trusted rows of each class that has some."""
    n, rarest = sum(counts), min(counts)
    effect, n_more = _effect(losses, n, rarest)
    cheap = ", ".join(map(str, levels[:-1]))
    if n_more:
        said = f"There are too few trusted rows to tell whether the cheaper labels ({cheap}) help"
    else:
        said = f"The cheaper labels ({cheap}) {'make ' * (effect not in ('help', 'hurt'))}{effect}"
    gap = losses.minus_alone
    sentence = (
        f"{said}: with them, log-loss is {relative(losses.ours, losses.alone)} ({losses.ours:.3f} "
        f"instead of {losses.alone:.3f}; difference {gap.value:+.3f}, 95 % interval {gap.low:+.3f} "
        f"to {gap.high:+.3f}) on {n} held-out trusted rows."
    )
    name, loss, other = min(
        ("stacking", losses.stacked, losses.minus_stacked),
        ("the trusted rows alone", losses.alone, gap),
        key=lambda rival: rival[1],
    )
    rivals = (
        f"{_compared(other)} {name}, the better of stacking and trusted rows alone ({loss:.3f})."
    )
    if losses.minus_pooled is not None:
        rivals = (
            f"{_compared(losses.minus_pooled)} simply pooling all labels (log-loss "
            f"{losses.pooled:.3f}), and {rivals}"
        )
    rivals = f"The model is {rivals}"
    caveats = []
    if n < FEW_ROWS or rarest < FEW_PER_CLASS:
        caveats.append(
            f"Only {n} trusted rows were scored, {rarest} of the rarest class; another sample may "
            "well give another verdict."
        )
    if min(losses.ours, losses.alone) > losses.chance:
        caveats.append(
            "Neither model predicts better than the shares of the classes do (log-loss "
            f"{losses.chance:.3f}): what helps here may not be of use."
        )
    return Verdict(
        effect,
        sentence,
        rivals,
        _advice(effect, n_more, losses, name, other),
        tuple(caveats),
        n_more,
    )


def _effect(losses: Losses, n: int, rarest: int) -> tuple[Effect, int]:
    """The effect, and how many more trusted rows would tell."""
    gap = losses.minus_alone
    half = 0.5 * (gap.high - gap.low)
    matters = MATTERS * losses.alone
    missing = max(LEAST_ROWS - n, -(-max(LEAST_PER_CLASS - rarest, 0) * n // max(rarest, 1)))
    if missing <= 0:
        if gap.is_clear and abs(gap.value) >= matters:
            return ("help" if gap.value < 0.0 else "hurt"), 0
        if half <= matters:
            return "no clear difference", 0
    target = max(abs(gap.value), matters, 1e-6)
    wanted = n * (np.square(half / target) - 1.0)
    return "too few trusted rows to tell", _rounded(max(wanted, missing, 1.0))


def _rounded(n: float) -> int:
    """A number of rows, upwards, with the digits that an estimate deserves."""
    step = 5.0 if n <= 100.0 else 10.0 ** np.floor(np.log10(n) - 1.0) * 5.0
    return int(np.ceil(n / step) * step)


def _advice(effect: Effect, n_more: int, losses: Losses, name: str, other: Estimate) -> str:
    """What to do next, in one sentence."""
    if n_more:
        return f"Next: get about {n_more:,} more trusted labels before deciding."
    pooled = losses.minus_pooled
    if pooled is not None and pooled.is_clear and pooled.value > 0.0:
        return "Next: use the pooled model, which trusts all labels alike."
    if other.is_clear and other.value > 0.0:
        return f"Next: use {'the stacked model' if name == 'stacking' else name}."
    if effect == "help":
        return "Next: use the model, and look at the rows where it disagrees with cheap labels."
    if effect == "hurt":
        return "Next: leave the cheaper labels out, and use the model of the trusted rows alone."
    return (
        "Next: use either model; further labels are better spent on the trusted level than on "
        "the cheaper ones."
    )


def _compared(gap: Estimate) -> str:
    if not gap.is_clear:
        return "no better than"
    return "better than" if gap.value < 0.0 else "worse than"


def relative(value: float, reference: float) -> str:
    """How much lower or higher a log-loss is, in words.

    >>> relative(0.34, 0.5), relative(0.5, 0.5)
    ('32 % lower', 'the same')
    """
    change = value / max(reference, 1e-12) - 1.0
    if abs(change) < 0.005:
        return "the same"
    return f"{percent(abs(change))} {'lower' if change < 0.0 else 'higher'}"
