"""What an adviser answers: plans for a budget, the best of them, and what follows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from polyfid.evaluation import Estimate
from polyfid.text import aligned, percent
from polyfid.values import to_json

Action = Literal["go", "stop", "too few trusted rows to tell"]

#: Columns of the text.
_WIDTH = 80
#: Upper bound on the plans that the text shows.
_MOST_SHOWN = 7


#: Plans that gain this share of what the best one gains are as good.
NEAR = 0.9


class Promise(NamedTuple):
    """What an earlier plan was expected to gain, and what it gained.

    Attributes
    ----------
    cost : float
        The money that was spent.
    expected, delivered : float
        The fall of the log-loss that was promised, and that was measured on rows which were drawn
        at random.
    error : float
        Standard error of what was measured.

    Examples
    --------
    >>> from polyfid.suggest import Promise
    >>> Promise(cost=100, expected=0.05, delivered=0.03).error
    0.03
    """

    cost: float
    expected: float
    delivered: float
    error: float = 0.03


@dataclass(frozen=True)
class BudgetPlan:
    """One way to spend the money, on random rows, and what is expected of it.

    Attributes
    ----------
    labels : dict
        The number of labels of each level.
    cost : float
    log_loss, accuracy, roc_auc : Estimate
        Expected on new rows, with 95 % intervals.
    gain : Estimate
        By how much the log-loss is expected to fall.
    cautious_gain : float
        What of it counts where plans are compared: less of what cheap labels promise.

    Examples
    --------
    >>> from polyfid.evaluation import Estimate
    >>> from polyfid.suggest import BudgetPlan
    >>> score = Estimate(0.5, 0.4, 0.6)
    >>> print(BudgetPlan({"crowd": 40, "expert": 5}, 80.0, score, score, score, score, 0.3))
    40 crowd + 5 expert
    """

    labels: dict[Any, int]
    cost: float
    log_loss: Estimate
    accuracy: Estimate
    roc_auc: Estimate
    gain: Estimate
    cautious_gain: float

    def __str__(self) -> str:
        return " + ".join(f"{n:,} {level}" for level, n in self.labels.items() if n) or "nothing"


@dataclass(frozen=True)
class CheapLabels:
    """What labels of a cheaper level are worth, beside those of the top level.

    Attributes
    ----------
    level : object
    rate : float
        So many of them gain as much as one trusted label does. Infinite where they never do.
    reached : bool
        Whether that many were tried; if not, the rate is larger than the number given.
    useful : int
        After so many further ones a trusted label gains more per cost.
    tried : int
        The largest number of further ones for which that was computed; ``useful`` is this where
        they go on to be worth their price.
    """

    level: Any
    rate: float
    reached: bool
    useful: int
    tried: int


@dataclass(frozen=True)
class Again:
    """The gain of labels of one level for the whole budget, on new rows and on labelled ones."""

    level: Any
    new: Estimate
    again: Estimate


@dataclass(frozen=True)
class Advice:
    """How to split a budget, and whether to spend it.

    Attributes
    ----------
    action : str
        "go", "stop" or "too few trusted rows to tell".
    now : BudgetPlan
        What is expected of the model as it is.
    plans : tuple of BudgetPlan
        Ways to spend the same money.
    best : BudgetPlan or None
        The one of which most is expected, with caution; None where there are too few trusted
        rows.
    shares : tuple of float
        The part of the money that goes to the top level in each plan.
    flat : tuple of two float
        Plans that gain at least nine tenths of what the best one does have shares from, to.
    cheap : tuple of CheapLabels
    again : tuple of Again
        Whether to label rows again or new ones.
    scale : float
        What promised gains were multiplied by, learnt from what earlier plans delivered.
    n_trusted, least_trusted : int
        Trusted rows that the model was fitted to, and how many a verdict takes.
    budget, least_gain : float

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, advise, stack_levels
    >>> from polyfid.kernels import RBF
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-2, 2, (90, 1))
    >>> right = X[:, 0] > 0
    >>> X, y, fidelity = stack_levels({"crowd": (X, right), "expert": (X[:30], right[:30])})
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, y, fidelity=fidelity)
    >>> pool = np.linspace(-2, 2, 200)[:, None]
    >>> advice = advise(model, pool, {"crowd": 1, "expert": 5}, budget=50, random_state=0)
    >>> len(advice.plans), advice.plans[0].labels
    (9, {'crowd': 50, 'expert': 0})
    >>> bool(advice.best.log_loss.value <= advice.now.log_loss.value)
    True
    """

    action: Action
    now: BudgetPlan
    plans: tuple[BudgetPlan, ...]
    best: BudgetPlan | None
    shares: tuple[float, ...]
    flat: tuple[float, float] | None
    cheap: tuple[CheapLabels, ...]
    again: tuple[Again, ...]
    scale: float
    history: tuple[Promise, ...]
    levels: tuple[Any, ...]
    n_trusted: int
    least_trusted: int
    budget: float
    least_gain: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice in words, the verdict first."""
        said = [self._verdict()]
        if self.best is None:
            return tuple(said)
        if self.flat is not None and self.action == "go" and len(self.plans) > 1:
            low, high = map(percent, self.flat)
            part = f"{low} of the money" if low == high else f"{low} to {high} of the money"
            said.append(
                f"Plans with {part} on {self.levels[-1]} gain at least nine tenths of that."
            )
        said += [self._worth(one) for one in self.cheap]
        said += [_again(one) for one in self.again]
        if self.history:
            said.append(self._kept())
        return tuple(said)

    def _verdict(self) -> str:
        if self.best is None:
            more = self.least_trusted - self.n_trusted
            return (
                f"There are too few trusted rows to tell how to split the money: {self.n_trusted} "
                f"of at least {self.least_trusted}. Next: label {more} more random rows at "
                f"{self.levels[-1]}."
            )
        gain = self.best.gain
        expected = (
            f"log-loss is expected to fall by {gain.value:.3f} (95 % interval {gain.low:.3f} to "
            f"{gain.high:.3f}), from {self.now.log_loss.value:.3f} to "
            f"{self.best.log_loss.value:.3f}"
        )
        if self.action == "stop":
            return (
                f"Stop: by the best plan, {self.best}, {expected}, which is less than "
                f"{self.least_gain:g}."
            )
        return f"Go: buy {self.best} for {self.best.cost:g}; {expected}."

    def _worth(self, one: CheapLabels) -> str:
        top = self.levels[-1]
        if not np.isfinite(one.rate):
            worth = f"Labels of {one.level} are expected to gain nothing"
        elif one.reached:
            worth = f"One label of {top} is worth {one.rate:.2g} of {one.level} here"
        else:
            worth = f"One label of {top} is worth more than {one.rate:.2g} of {one.level} here"
        if one.useful == 0:
            return f"{worth}; for the price, {top} is the better one from the first label."
        if one.useful >= one.tried:
            return f"{worth}; up to {one.tried:,} further ones are worth their price."
        return f"{worth}; after about {one.useful:,} further ones {top} gains more for the price."

    def _kept(self) -> str:
        expected = sum(one.expected for one in self.history)
        delivered = sum(one.delivered for one in self.history)
        return (
            f"Earlier plans promised a fall of {expected:.3f} and delivered {delivered:.3f}; gains "
            f"are multiplied by {self.scale:.2f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The advice for JSON."""
        values = asdict(self)
        values["history"] = [one._asdict() for one in self.history]
        values["sentences"] = list(self.sentences)
        found: dict[str, Any] = to_json(values)
        return found

    def to_frame(self) -> Any:
        """The plans as a data frame of pandas, the present state first."""
        import pandas as pd

        columns: dict[str, list[Any]] = {}
        for plan, share in zip((self.now, *self.plans), (np.nan, *self.shares), strict=True):
            for level, n in plan.labels.items():
                columns.setdefault(f"n_{level}", []).append(n)
            columns.setdefault("cost", []).append(plan.cost)
            columns.setdefault("share_trusted", []).append(share)
            for name in ("log_loss", "accuracy", "roc_auc", "gain"):
                estimate: Estimate = getattr(plan, name)
                columns.setdefault(name, []).append(estimate.value)
                columns.setdefault(f"{name}_low", []).append(estimate.low)
                columns.setdefault(f"{name}_high", []).append(estimate.high)
            columns.setdefault("cautious_gain", []).append(plan.cautious_gain)
            columns.setdefault("best", []).append(plan is self.best)
        return pd.DataFrame(columns)

    def shown(self) -> list[BudgetPlan]:
        """The plans that a short table has: evenly spread ones, and the best."""
        step = max(1, (len(self.plans) - 1) // (_MOST_SHOWN - 3))
        return [p for k, p in enumerate(self.plans) if k % step == 0 or p is self.best]

    def rows(self) -> list[tuple[str, ...]]:
        """Plans and their figures as text, the present state first."""
        plans = [("as it is", self.now), *((str(plan), plan) for plan in self.shown())]
        return [
            (
                name + " *" * (plan is self.best),
                *(_interval(e) for e in (plan.log_loss, plan.accuracy, plan.roc_auc)),
            )
            for name, plan in plans
        ]

    def __str__(self) -> str:
        lines = [line for said in self.sentences for line in textwrap.wrap(said, _WIDTH)]
        return "\n".join([*lines, "", *aligned([HEADS, *self.rows()])])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        cells = (
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows()
        )
        heads = "".join(f"<th>{head}</th>" for head in HEADS)
        return (
            f"{said}<table><thead><tr>{heads}</tr></thead><tbody>{''.join(cells)}</tbody></table>"
        )


#: Heads of the table of plans.
HEADS = ("plan", "log-loss", "accuracy", "ROC AUC")


def _interval(e: Estimate) -> str:
    return f"{e.value:.3f} ({e.low:.2f}–{e.high:.2f})"


def _again(one: Again) -> str:
    new, again = one.new.value, one.again.value
    figures = f"({again:.3f} against {new:.3f})"
    if again > new:
        return f"At {one.level}, labelling rows again gains more than new rows do {figures}."
    as_much = "about as much as" if again > NEAR * new else "less than"
    said = f"At {one.level}, labelling rows again gains {as_much} new rows do {figures}"
    return f"{said}; take new ones."


class Scale(NamedTuple):
    """What promised gains are multiplied by, and the standard deviation of what is right."""

    factor: float
    sd: float


#: Before any promise.
UNSCALED = Scale(1.0, 1.0)


def scale_of(history: Sequence[Promise]) -> Scale:
    """The slope of what was delivered by what was promised, drawn towards one.

    >>> scale_of([]).factor, round(scale_of([Promise(100, 0.1, 0.05, 0.01)]).factor, 2)
    (1.0, 0.5)
    """
    precision = total = UNSCALED.sd**-2.0
    for one in history:
        precision += (one.expected / one.error) ** 2
        total += one.expected * one.delivered / one.error**2
    return Scale(float(np.clip(total / precision, 0.1, 3.0)), float(precision**-0.5))


def read_history(history: Any) -> tuple[Promise, ...]:
    """Promises that are given as such, as tuples or as dictionaries."""
    promises = []
    for one in history:
        try:
            promise = Promise(**one) if isinstance(one, Mapping) else Promise(*one)
            good = bool(np.isfinite(promise).all()) and promise.error > 0.0
        except TypeError:
            good = False
        if not good:
            raise ValueError(
                "history must hold Promise(cost, expected, delivered, error), finite numbers with "
                f"an error above 0; got {one!r}"
            )
        promises.append(promise)
    return tuple(promises)
