"""How to split a budget between levels: what plans of equal cost are expected to bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.fitted import posterior_needed
from polyfid.evaluation import Estimate
from polyfid.inference.linalg import suitable_threads
from polyfid.suggest.advice import (
    NEAR,
    Action,
    Advice,
    Again,
    BudgetPlan,
    CheapLabels,
    Promise,
    Scale,
    read_history,
    scale_of,
)
from polyfid.suggest.candidates import caution, is_positive, read_costs
from polyfid.suggest.outlook import N_ESTIMATED, Outlook, beliefs_of
from polyfid.suggest.spending import Design, Expected, Spending
from polyfid.suggest.suggestion import rows_of

#: Random orders of the pool.
N_ORDERS = 3
#: With fewer trusted rows there is no verdict: with 10 or 15 of them gains that were promised had
#: little to do with those that were delivered, with 20 as much as with more.
LEAST_TRUSTED = 20
#: Numbers of parts that the money is cut into, by number of levels.
_PARTS = {1: 1, 2: 8, 3: 4}
#: How often the number of further cheap labels is doubled, from an eighth of what the budget buys.
_DOUBLINGS = 7


def advise(
    model: Any,
    pool: Any,
    costs: Mapping[Any, float],
    budget: float,
    *,
    targets: Any = None,
    history: Iterable[Promise] = (),
    least_gain: float = 0.005,
    random_state: Any = None,
) -> Advice:
    """How to split a budget between levels, and whether to spend it.

    A plan is a number of random rows to label at each level. What it will bring is computed before
    any label is there: how certain the model will be, and how its predictions will then turn out,
    averaged over structures, hyper-parameters and outcomes. The best plan is chosen with the same
    caution as in `polyfid.suggest`: what money on cheaper levels promises counts for less, by
    1 + 60 / (number of trusted rows).

    Parameters
    ----------
    model : fitted MultiFidelityClassifier or TableModel
    pool : array or data frame of shape (n_rows, n_features)
        Rows that may be labelled. For a TableModel also a path.
    costs : dict
        What a label of each level costs, such as ``{"crowd": 1, "expert": 8}``. Plans are made of
        these levels.
    budget : float
        The money that a plan may cost.
    targets : array or data frame, optional
        Rows that predictions are wanted for; by default the pool.
    history : sequence of Promise
        What earlier plans promised and delivered. Gains are rescaled by it.
    least_gain : float
        A fall of the log-loss that is worth the budget. Below it the advice is to stop.
    random_state : int, RandomState or None

    Returns
    -------
    Advice
        With ``plans``, ``best``, ``action`` and more; printed, it is the advice in words.

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
    >>> advice.plans[-1].labels
    {'crowd': 0, 'expert': 10}
    """
    if not isinstance(model, MultiFidelityClassifier):
        found: Advice = model.advise(
            pool,
            costs,
            budget,
            targets=targets,
            history=history,
            least_gain=least_gain,
            random_state=random_state,
        )
        return found
    check_is_fitted(model, "report_")
    offer = read_costs(model, costs)
    if not is_positive(budget):
        raise ValueError(f"budget must be a number above 0, got {budget!r}")
    if budget < min(offer.values()):
        raise ValueError(
            f"budget={budget:g} buys no label: the cheapest one costs {min(offer.values()):g}"
        )
    if not (is_positive(least_gain) or least_gain == 0):
        raise ValueError(f"least_gain must be a number from 0, got {least_gain!r}")
    promises = read_history(history)
    x = rows_of(model, "pool", pool)
    at = x if targets is None else rows_of(model, "targets", targets)
    return _Adviser(model, offer, float(budget), promises, float(least_gain)).advise(
        x, at, check_random_state(random_state)
    )


def expected_gains(
    model: MultiFidelityClassifier,
    pool: Any,
    costs: Mapping[Any, float],
    counts: Sequence[Sequence[int]],
    *,
    moved: bool = True,
    random_state: Any = None,
) -> list[float]:
    """By how much the log-loss is expected to fall after numbers of labels per level of ``costs``.

    With ``moved=False`` hyper-parameters are taken as known, which `advise` never does.
    """
    offer, x = read_costs(model, costs), rows_of(model, "pool", pool)
    adviser = _Adviser(model, offer, 1.0, (), 0.0, moved)
    none = (0,) * len(offer)
    spendings = [Spending(none, none), *(Spending(tuple(n), none) for n in counts)]
    now, *later = adviser.expect(spendings, x, x, check_random_state(random_state))
    return [after.estimate("log_loss", since=now).value for after in later]


@dataclass(frozen=True)
class _Adviser:
    """A fitted model, prices by number of the level, and the money."""

    model: MultiFidelityClassifier
    offer: dict[int, float]
    budget: float
    history: tuple[Promise, ...]
    least_gain: float
    moved: bool = True

    def advise(self, x: Array, targets: Array, rng: np.random.RandomState) -> Advice:
        levels = list(self.offer)
        splits = self.splits()
        now = Spending((0,) * len(levels), (0,) * len(levels))
        wanted = [now, *splits, *self._curves(), *self._repeats()]
        found = dict(zip(wanted, self.expect(wanted, x, targets, rng), strict=True))
        scale, start = scale_of(self.history), found[now]

        def plan(spending: Spending) -> BudgetPlan:
            after, names = found[spending], [self.model.levels_[t] for t in levels]
            gain = after.estimate("log_loss", scale, since=start)
            loss, before = after.estimate("log_loss"), start.estimate("log_loss").value
            moved = before - gain.value - loss.value
            return BudgetPlan(
                dict(zip(names, spending.new, strict=True)),
                self._cost(spending.new),
                Estimate(before - gain.value, max(loss.low + moved, 0.0), loss.high + moved),
                after.estimate("accuracy"),
                after.estimate("roc_auc"),
                gain,
                gain.value * self._belief(self._share(spending.new)),
            )

        def gain(spending: Spending) -> float:
            return found[spending].estimate("log_loss", scale, since=start).value

        plans = tuple(map(plan, splits))
        top, n_trusted = len(self.model.levels_) - 1, self._n_trusted
        spent = [self._share(spending.new) for spending in splits]
        best, flat = max(plans, key=lambda p: p.cautious_gain), None
        near = [
            s for s, p in zip(spent, plans, strict=True) if p.gain.value >= NEAR * best.gain.value
        ]
        if top in self.offer:
            flat = min(near), max(near)
        enough = n_trusted >= LEAST_TRUSTED
        action: Action = "go" if best.gain.value >= self.least_gain else "stop"
        return Advice(
            action if enough else "too few trusted rows to tell",
            plan(now),
            plans,
            best if enough else None,
            tuple(spent),
            flat if enough else None,
            tuple(self._worth(t, gain) for t in levels if t != top and top in self.offer),
            tuple(
                self._again(k, found, start, scale)
                for k, t in enumerate(levels)
                if self._bought(t, self.budget)
            ),
            scale.factor,
            self.history,
            tuple(self.model.levels_),
            n_trusted,
            LEAST_TRUSTED,
            self.budget,
            self.least_gain,
        )

    @property
    def _n_trusted(self) -> int:
        return int(self.model._fitted.info.counts[-1].sum())

    def _cost(self, counts: Sequence[int]) -> float:
        return float(np.dot(counts, list(self.offer.values())))

    def _share(self, counts: Sequence[int]) -> float:
        """The part of the money that goes to the top level."""
        top, cost = len(self.model.levels_) - 1, self._cost(counts)
        own = dict(zip(self.offer, counts, strict=True)).get(top, 0) * self.offer.get(top, 0.0)
        return own / cost if cost else 0.0

    def _belief(self, share: float) -> float:
        """How much of a promise counts; ``share`` of its money is for the most trusted level."""
        return share + (1.0 - share) / caution(self.model)

    def _bought(self, level: int, money: float) -> int:
        return int(money / self.offer[level] + 1e-9)

    def _only(self, place: int, n: int, again: bool = False) -> Spending:
        counts = tuple(n if k == place else 0 for k in range(len(self.offer)))
        none = (0,) * len(counts)
        return Spending(none, counts) if again else Spending(counts, none)

    def splits(self) -> list[Spending]:
        """Ways to spend the budget, all money on the cheapest level first."""
        n, levels = len(self.offer), list(self.offer)
        parts = _PARTS.get(n, 2)
        shares = (s for s in product(range(parts + 1), repeat=n) if sum(s) == parts)
        found = {}
        for share in sorted(shares, reverse=True):
            counts = tuple(
                self._bought(t, self.budget * s / parts) for t, s in zip(levels, share, strict=True)
            )
            if any(counts):
                found[counts] = Spending(counts, (0,) * n)
        return list(found.values())

    def _curve(self, place: int) -> list[Spending]:
        """More and more labels of one level."""
        level = list(self.offer)[place]
        least = max(self._bought(level, self.budget) / 8.0, 1.0)
        numbers = dict.fromkeys(round(least * 2.0**k) for k in range(_DOUBLINGS))
        return [self._only(place, n) for n in numbers]

    def _curves(self) -> list[Spending]:
        top, places = len(self.model.levels_) - 1, range(len(self.offer))
        return [
            s for k in places if top in self.offer and len(self.offer) > 1 for s in self._curve(k)
        ]

    def _repeats(self) -> list[Spending]:
        """The budget for one level, on new rows and on rows that have a label."""
        return [
            self._only(k, self._bought(t, self.budget), again)
            for k, t in enumerate(self.offer)
            for again in (False, True)
        ]

    def _worth(self, level: int, gain: Any) -> CheapLabels:
        """What further labels of a cheaper level are worth beside trusted ones."""
        top = len(self.model.levels_) - 1
        place, place_of_top = (list(self.offer).index(t) for t in (level, top))
        curve = self._curve(place)
        numbers = np.array([s.new[place] for s in curve], dtype=float)
        gains = np.maximum.accumulate([gain(s) for s in curve])
        first = self._curve(place_of_top)[1]
        n_trusted = first.new[place_of_top]
        trusted = max(gain(first), 0.0)
        reached = bool(gains[-1] >= trusted)
        if gains[-1] <= 0.0:
            rate, reached = np.inf, False
        else:
            # The gain is about linear between neighbouring numbers.
            known = np.r_[0.0, gains], np.r_[0.0, numbers]
            rate = float(np.interp(trusted, *known)) / n_trusted
        per_cost = trusted / (n_trusted * self.offer[top])
        marginal = np.diff(gains, prepend=0.0) / np.diff(numbers, prepend=0.0) / self.offer[level]
        worse = np.flatnonzero(marginal < per_cost)
        useful = numbers[-1] if not len(worse) else np.r_[0.0, numbers][worse[0]]
        return CheapLabels(self.model.levels_[level], rate, reached, int(useful), int(numbers[-1]))

    def _again(
        self, place: int, found: dict[Spending, Expected], start: Expected, scale: Scale
    ) -> Again:
        level = list(self.offer)[place]
        n = self._bought(level, self.budget)
        new, again = (
            found[self._only(place, n, again)].estimate("log_loss", scale, since=start)
            for again in (False, True)
        )
        return Again(self.model.levels_[level], new, again)

    def expect(
        self,
        spendings: Sequence[Spending],
        x: Array,
        targets: Array,
        rng: np.random.RandomState,
    ) -> list[Expected]:
        """What is expected after each spending, over several orders of the pool."""
        mixtures = self.model._mixtures
        orders: list[list[Any]] = []
        with posterior_needed(), suitable_threads(max(m.size for m in mixtures)):
            moved = self.moved and self.model._fitted.options.weak_prior
            beliefs = [beliefs_of(mixture, moved) for mixture in mixtures]
            for _ in range(N_ORDERS):
                design = Design.draw(self.model, list(self.offer), spendings, x, targets, rng)
                outlook = Outlook(
                    mixtures,
                    beliefs,
                    design.x,
                    design.level,
                    design.n_targets,
                    design.old,
                    design.old_level,
                    rng,
                )
                orders.append([outlook.after(design.labels(s)) for s in spendings])
        return [
            Expected(
                np.stack([one.log_loss for one in of_orders]),
                np.stack([one.accuracy for one in of_orders]),
                np.stack([one.roc_auc for one in of_orders]),
                outlook.case_weights,
                self._excess(spending),
            )
            for spending, of_orders in zip(spendings, zip(*orders, strict=True), strict=True)
        ]

    def _excess(self, spending: Spending) -> float:
        """By how much the log-loss is expected to be larger than the model says."""
        top, n = len(self.model.levels_) - 1, max(self._n_trusted, 1)
        if self.moved and top in self.offer:
            place = list(self.offer).index(top)
            n += spending.new[place] + spending.again[place]
        elif not self.moved:
            return 0.0
        return 0.5 * N_ESTIMATED * max(len(self.model.classes_) - 1, 1) / n
