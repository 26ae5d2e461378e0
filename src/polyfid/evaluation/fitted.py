"""Scores of a fitted model on labelled rows that it has not learnt from."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, check_random_state, check_scalar

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.decisions import ABSTAIN, Costs, DecisionRule
from polyfid.evaluation.result import SCORES, Score, resamples, score
from polyfid.evaluation.verdict import Estimate
from polyfid.text import aligned, name_few
from polyfid.values import to_json, to_text

#: The scores of a fitted model; the first one is a proper score, by which models are compared.
MODEL_SCORES: dict[str, Score] = {
    name: {**SCORES, "accuracy": Score("accuracy", True)}[name]
    for name in ("log_loss", "roc_auc", "accuracy", "brier", "calibration_error")
}
#: Columns of the text.
_WIDTH = 60
#: Heads of the columns that are no class.
_ABSTAINED, _RECALL, _PRECISION = "(none)", "recall", "precision"


@dataclass(frozen=True)
class ModelScores:
    """How well a fitted model predicts labelled rows; ``print`` shows it.

    Attributes
    ----------
    classes : tuple
    level : str or other name
        The level whose labels were predicted.
    n_rows : int
        Rows that have a weight.
    scores : dict of str to Estimate
        Those in `MODEL_SCORES`, with 95 % bootstrap intervals. Accuracy is that of the most
        probable class.
    confusion : array of shape (n_classes, n_classes + 1)
        Rows by class and by what the model decides: the most probable class, or by costs if it has
        some. The last column are the rows about which it decides nothing.
    recall, precision : tuple of (Estimate or None)
        Per class, with 95 % Wilson intervals: of the rows of the class, those that are decided for
        it; of the rows that are decided for it, those of the class. None without such rows.
    rule : DecisionRule or None
        The costs.
    costs : dict of str to Estimate
        With costs, the average cost per row by the decisions ("decided"), by the most probable
        classes ("most probable"), and their difference ("difference"); else empty.
    """

    classes: tuple[Any, ...]
    level: Any
    n_rows: int
    scores: Mapping[str, Estimate]
    confusion: NDArray[np.intp]
    recall: tuple[Estimate | None, ...]
    precision: tuple[Estimate | None, ...]
    rule: DecisionRule | None
    costs: Mapping[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values for JSON."""
        names = [to_text(c) for c in self.classes]
        columns = [*names, "no decision"]
        confusion = {
            name: dict(zip(columns, row, strict=True))
            for name, row in zip(names, self.confusion.tolist(), strict=True)
        }
        shares = {
            what: {
                name: None if e is None else asdict(e)
                for name, e in zip(names, estimates, strict=True)
            }
            for what, estimates in (("recall", self.recall), ("precision", self.precision))
        }
        result = {
            "level": self.level,
            "n_rows": self.n_rows,
            "scores": {name: asdict(e) for name, e in self.scores.items()},
            "confusion": confusion,
            **shares,
            "rule": None if self.rule is None else self.rule.to_dict(self.classes),
            "average_cost": {name: asdict(e) for name, e in self.costs.items()},
        }
        return dict(to_json(result))

    def __str__(self) -> str:
        lines = [f"Scores on {self.n_rows:,} rows, with 95 % intervals:"]
        rows = [
            [MODEL_SCORES[name].words, f"{e.value:.3f}", f"{e.low:.3f} to {e.high:.3f}"]
            for name, e in self.scores.items()
        ]
        lines += aligned([["", "value", "interval"], *rows])
        if self.rule is not None:
            lines += ["", *map(_filled, self.rule.describe(self.classes)), *self._average_costs()]
        return "\n".join([*lines, "", *self._decisions()])

    def _average_costs(self) -> list[str]:
        words = {"decided": "by these decisions", "most probable": self._alternative()}
        rows = [
            [words.get(name, name), f"{e.value:.4g}", f"{e.low:.4g} to {e.high:.4g}"]
            for name, e in self.costs.items()
        ]
        return ["", "Average cost per row:", *aligned([["", "value", "interval"], *rows])]

    def _alternative(self) -> str:
        return "by probability above 0.5" if len(self.classes) == 2 else "by most probable class"

    def _decisions(self) -> list[str]:
        abstains = self.confusion[:, -1].any()
        heads = [*self.classes, *([_ABSTAINED] if abstains else [])]
        names = [to_text(c) for c in self.classes]
        counts = [
            [name, *(f"{n:,}" for n in row[: len(heads)])]
            for name, row in zip(names, self.confusion.tolist(), strict=True)
        ]
        shares = [
            [name, _share(recall), _share(precision)]
            for name, recall, precision in zip(names, self.recall, self.precision, strict=True)
        ]
        by = "the most probable class" if self.rule is None else "the decision"
        return [
            f"Rows by class and by {by}:",
            *aligned([["truth \\ decided", *heads], *counts]),
            "",
            "Share of rows that are right, with 95 % intervals:",
            *aligned([["class", _RECALL, _PRECISION], *shares]),
        ]


def score_model(
    model: MultiFidelityClassifier,
    X: Any,
    y: ArrayLike,
    *,
    fidelity: Any = None,
    sample_weight: ArrayLike | None = None,
    costs: Costs | None = None,
    cost_abstain: float | None = None,
    n_bootstrap: int = 1000,
    random_state: Any = 0,
) -> ModelScores:
    """Score a fitted model on labelled rows that it has not learnt from.

    Parameters
    ----------
    model : MultiFidelityClassifier
        Fitted.
    X : array or data frame of shape (n, d)
    y : array-like of shape (n,)
        Trusted labels, at least two classes.
    fidelity : level name, optional
        The level to predict; the most trusted one by default.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts in scores and costs; counts of rows do not depend on it, but
        rows of weight 0 are left out.
    costs, cost_abstain : optional
        Of decisions, as in `MultiFidelityClassifier.decide`.
    n_bootstrap : int
        Number of bootstrap samples for the intervals.
    random_state : int, RandomState or None
        Seed of the bootstrap.

    Returns
    -------
    ModelScores

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.evaluation import score_model
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, (80, 1))
    >>> y = X[:, 0] + 0.3 * rng.standard_normal(80) > 0
    >>> model = MultiFidelityClassifier("rbf").fit(X[:40], y[:40])
    >>> result = score_model(model, X[40:], y[40:], costs={"fp": 1, "fn": 4})
    >>> result.confusion.tolist()
    [[19, 4, 0], [1, 16, 0]]
    >>> result.costs["difference"].high <= 0.0
    True
    """
    check_scalar(n_bootstrap, "n_bootstrap", Integral, min_val=10)
    classes = model.classes_
    code = _codes(y, classes)
    proba = model.predict_proba(X, fidelity)
    check_consistent_length(proba, code)
    weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != code.shape or not (np.isfinite(weight).all() and (weight >= 0.0).all()):
        raise ValueError("sample_weight must be one number from 0 for each row of X")
    counts = weight > 0.0
    proba, code, weight = proba[counts], code[counts], weight[counts]
    if len(np.unique(code)) < 2:
        there = name_few(classes[np.unique(code)])
        raise ValueError(
            f"y must have labels of two classes, or there is no ROC AUC; it has {there or 'none'}"
        )
    rule = None if costs is None else DecisionRule.of(costs, classes, cost_abstain)
    usual = np.argmax(proba, axis=1)
    decided = usual if rule is None else rule.decide(proba)
    per_row = [(usual == code).astype(float)]  # averages of these are scored beside the others
    if rule is not None:
        paid = [rule.paid(code, decided), rule.paid(code, usual)]
        per_row += [*paid, paid[0] - paid[1]]
    rng = check_random_state(random_state)
    weightings = [drawn * weight for drawn in resamples(code, int(n_bootstrap), rng)]
    value, samples = (
        np.concatenate([_values(proba, code, np.array(per_row), w) for w in of])
        for of in ([weight[None]], weightings)
    )
    estimates = [Estimate.of(v, s) for v, s in zip(value[0], samples.T, strict=True)]
    named = dict(zip([*SCORES, "accuracy"], estimates, strict=False))
    confusion = np.zeros((len(classes), len(classes) + 1), dtype=np.intp)
    np.add.at(confusion, (code, np.where(decided == ABSTAIN, len(classes), decided)), 1)
    right = np.diagonal(confusion)
    sums = confusion.sum(axis=1), confusion[:, :-1].sum(axis=0)
    recall, precision = (
        tuple(
            Estimate.of_share(int(r), int(n)) if n else None for r, n in zip(right, of, strict=True)
        )
        for of in sums
    )
    return ModelScores(
        tuple(classes.tolist()),
        model.levels_[-1] if fidelity is None else fidelity,
        len(code),
        {name: named[name] for name in MODEL_SCORES},
        confusion,
        recall,
        precision,
        rule,
        dict(
            zip(("decided", "most probable", "difference"), estimates[len(named) :], strict=False)
        ),
    )


def _codes(y: ArrayLike, classes: NDArray[Any]) -> Indices:
    """The places of labels among the classes of a model."""
    places = {name: k for k, name in enumerate(classes.tolist())}
    labels = np.asarray(y).tolist()
    unknown = [label for label in dict.fromkeys(labels) if label not in places]
    if unknown:
        raise ValueError(
            f"y has {name_few(unknown)}, and the classes of the model are {name_few(classes)}"
        )
    return np.array([places[label] for label in labels], dtype=np.intp)


def _values(proba: Array, code: Indices, per_row: Array, weights: Array) -> Array:
    """All scores under each weighting (n_weightings, n_scores), averages of rows last."""
    averages = weights @ per_row.T / weights.sum(axis=1, keepdims=True)
    return np.concatenate([score(proba, code, weights), averages], axis=1)


def _share(e: Estimate | None) -> str:
    return "no rows" if e is None else f"{e.value:.3f} ({e.low:.3f} to {e.high:.3f})"


def _filled(text: str) -> str:
    return text if text.startswith("  ") else textwrap.fill(text, _WIDTH)
