"""What to do about a row, given the probabilities of its classes and the costs of mistakes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.text import aligned, name_few
from polyfid.values import to_text

#: Costs of two classes, or of pairs of a true and a predicted class.
Costs = Mapping[Any, float]
#: The code of a row about which nothing is decided.
ABSTAIN = -1
#: Short names of the two mistakes that two classes allow, as (true, predicted).
MISTAKES = {"fp": (0, 1), "fn": (1, 0)}


@dataclass(frozen=True)
class DecisionRule:
    """Decide for the class of least expected cost, or abstain where even that is too much.

    Attributes
    ----------
    costs : array of shape (n_classes, n_classes)
        What it costs to decide for a class (columns) where another one is true (rows).
    cost_abstain : float or None
        What it costs to decide nothing; None never abstains.
    """

    costs: NDArray[np.float64]
    cost_abstain: float | None = None

    def __post_init__(self) -> None:
        costs = self.costs
        if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or len(costs) < 2:
            raise ValueError("costs must be a square matrix with a row per class")
        if not (np.isfinite(costs).all() and (costs >= 0.0).all()):
            raise ValueError("costs must be finite numbers from 0")
        if not costs[~np.eye(len(costs), dtype=bool)].any():
            raise ValueError("costs must be above 0 for one mistake at least; all of them are 0")
        if self.cost_abstain is not None:
            _check_cost(self.cost_abstain, "cost_abstain (--cost-abstain)")

    @classmethod
    def of(
        cls, costs: Costs, classes: Sequence[Any] | NDArray[Any], cost_abstain: float | None = None
    ) -> DecisionRule:
        """The rule of the costs that a user gives; see `MultiFidelityClassifier.decide`."""
        names = [to_text(c) for c in classes]
        if not isinstance(costs, Mapping) or not costs:
            raise ValueError(
                'costs must be a dictionary, {"fp": 1, "fn": 20} for two classes or '
                f"{{(true, predicted): cost}}; got {costs!r}"
            )
        matrix = 1.0 - np.eye(len(names))
        for key, cost in costs.items():
            _check_cost(cost, f"the cost of {key!r}")
            matrix[_place(key, names)] = float(cost)
        if cost_abstain is not None:
            _check_cost(cost_abstain, "cost_abstain (--cost-abstain)")
        return cls(matrix, None if cost_abstain is None else float(cost_abstain))

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless the rule is for so many classes."""
        if len(self.costs) != n_classes:
            raise ValueError(f"costs are of {len(self.costs)} classes instead of {n_classes}")

    def expected(self, proba: Array) -> Array:
        """Expected cost of deciding for each class (n, n_classes)."""
        return np.asarray(proba @ self.costs)

    def decide(self, proba: Array) -> Indices:
        """Places of the classes to decide for (n,), -1 where to abstain."""
        expected = self.expected(proba)
        code = np.argmin(expected, axis=1)
        if self.cost_abstain is not None:
            code[expected.min(axis=1) > self.cost_abstain] = ABSTAIN
        return code

    def paid(self, truth: Indices, code: Indices) -> Array:
        """What decisions cost (n,), given the true classes of the rows."""
        decided = self.costs[truth, np.maximum(code, 0)]
        return np.where(code == ABSTAIN, self.cost_abstain or 0.0, decided)

    def labels(self, code: Indices, classes: NDArray[Any]) -> NDArray[Any]:
        """Classes of decisions; if the rule may abstain, objects, with None where it does."""
        if self.cost_abstain is None:
            return np.asarray(classes[code])
        return np.array([*classes.tolist(), None], dtype=object)[code]

    def describe(self, classes: Sequence[Any] | NDArray[Any]) -> list[str]:
        """The rule in lines of text."""
        names = [to_text(c) for c in classes]
        if len(names) > 2 or np.diagonal(self.costs).any():
            lines = ["Costs of true classes (rows) and decisions (columns):"]
            cells = [[f"{cost:g}" for cost in row] for row in self.costs.tolist()]
            lines += aligned(
                [["", *names], *([n, *row] for n, row in zip(names, cells, strict=True))]
            )
            if self.cost_abstain is not None:
                lines.append(f"No decision costs {self.cost_abstain:g}.")
            return lines
        (_, fp), (fn, _) = self.costs.tolist()
        lines = [
            f"Costs: {fp:g} for {names[1]!r} where {names[0]!r} is true (fp), {fn:g} for "
            f"{names[0]!r} where {names[1]!r} is true (fn)."
        ]
        threshold = fp / (fp + fn)
        text = f"{names[1]!r} is decided where its probability is above {threshold:.4g}"
        if self.cost_abstain is not None:
            low, high = self._band(fp, fn)
            lines[0] = f"{lines[0][:-1]}, {self.cost_abstain:g} for no decision."
            if low < high:
                text = (
                    f"{names[1]!r} is decided where its probability is {high:.4g} or above, "
                    f"{names[0]!r} where it is {low:.4g} or below, and nothing in between"
                )
        return [*lines, f"{text}."]

    def _band(self, fp: float, fn: float) -> tuple[float, float]:
        """Between which probabilities of the second class both decisions cost too much."""
        limit = self.cost_abstain or 0.0
        return (limit / fn if fn else math.inf), (1.0 - limit / fp if fp else -math.inf)

    def pairs(self, classes: Sequence[Any] | NDArray[Any]) -> dict[tuple[str, str], float]:
        """All costs by true class and decision, of which `of` makes the same rule."""
        names = [to_text(c) for c in classes]
        return {
            (true, decided): float(self.costs[i, j])
            for i, true in enumerate(names)
            for j, decided in enumerate(names)
        }

    def to_dict(self, classes: Sequence[Any] | NDArray[Any]) -> dict[str, Any]:
        """The rule, ready for JSON: costs by true class and decision."""
        names = [to_text(c) for c in classes]
        rows = [dict(zip(names, row, strict=True)) for row in self.costs.tolist()]
        table = dict(zip(names, rows, strict=True))
        return {"costs": table, "cost_abstain": self.cost_abstain}


def _check_cost(cost: Any, what: str) -> None:
    number = isinstance(cost, Real) and not isinstance(cost, bool | np.bool_)
    if not number or not (math.isfinite(cost) and cost >= 0.0):
        raise ValueError(f"{what} must be a number from 0; got {cost!r}")


def _place(key: Any, names: Sequence[str]) -> tuple[int, int]:
    """Row and column of the cost of a pair of classes, or of "fp" or "fn"."""
    if isinstance(key, str) and key in MISTAKES:
        if len(names) != 2:
            raise ValueError(
                f"costs has {key!r}, which is for two classes, and there are {len(names)}; give "
                "the cost of a pair, (true, predicted) in Python, TRUE>PREDICTED=COST in --costs"
            )
        return MISTAKES[key]
    if not isinstance(key, tuple) or len(key) != 2:
        raise ValueError(
            f"costs has {key!r}; costs are those of pairs, (true, predicted), or for two classes "
            "'fp' and 'fn'"
        )
    unknown = [name for name in map(to_text, key) if name not in names]
    if unknown:
        raise ValueError(
            f"costs has {unknown[0]!r}, which is no class; the classes are {name_few(names)}"
        )
    true, predicted = map(to_text, key)
    return names.index(true), names.index(predicted)


class DecidesByCost:
    """The method ``decide`` of classifiers that have ``predict_proba`` and ``classes_``."""

    classes_: NDArray[Any]
    predict_proba: Any

    def decide(
        self,
        X: Any,
        costs: Costs,
        cost_abstain: float | None = None,
        fidelity: Any = None,
    ) -> NDArray[Any]:
        """The classes whose expected cost is least (n,), by `predict_proba`.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        costs : dict
            For two classes {"fp": cost, "fn": cost}. The positive class is the second one of
            ``classes_``: a false positive is the decision for it where the first one is true. For
            any number of classes {(true, predicted): cost}. Mistakes that are not named cost 1,
            right decisions nothing.
        cost_abstain : float, optional
            What it costs to decide nothing. Where the least expected cost is above it, the answer
            is None.
        fidelity : level name, or array-like of shape (n,), optional
            Which level's label to decide about; the top level by default.

        Returns
        -------
        array
            Of the type of ``classes_``; of objects if ``cost_abstain`` is given.

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> model = MultiFidelityClassifier("rbf").fit(X, np.where(X[:, 0] > 0, "leak", "ok"))
        >>> model.predict([[-0.04], [0.9]]).tolist()
        ['ok', 'leak']
        >>> model.decide([[-0.04], [0.9]], {("leak", "ok"): 20, ("ok", "leak"): 1}).tolist()
        ['leak', 'leak']
        >>> model.decide([[-0.04], [0.9]], {"fp": 1, "fn": 1}, cost_abstain=0.2).tolist()
        [None, 'leak']
        """
        rule = DecisionRule.of(costs, self.classes_, cost_abstain)
        return rule.labels(rule.decide(self.predict_proba(X, fidelity)), self.classes_)
