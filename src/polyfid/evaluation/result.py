"""The result of a comparison: scores with intervals, a verdict and its text.

A bootstrap sample is a weighting of the rows: how often each was drawn. All scores here are
weighted sums over ranks or bins that do not depend on the weights, so that a thousand samples cost
one matrix product.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.model.calibration import calibration_error
from polyfid.text import aligned
from polyfid.values import to_json

#: The method that is judged, and the one that it is compared with.
OURS, ALONE = "polyfid", "trusted only"

#: With fewer trusted rows in all, or per class, intervals are rough.
_FEW_ROWS, _FEW_PER_CLASS = 50, 10
#: The scores that decide the verdict, in order of precedence.
_DECIDING = ("log_loss", "roc_auc")
#: Columns of the text of an evaluation.
_WIDTH = 80
#: Upper bound on the elements of one array of bootstrap weights.
_BATCH_ELEMENTS = 1 << 21


class Score(NamedTuple):
    """The name of a score as people write it, and whether higher values are better."""

    words: str
    more_is_better: bool


SCORES: dict[str, Score] = {
    "roc_auc": Score("ROC AUC", True),
    "log_loss": Score("log-loss", False),
    "brier": Score("Brier score", False),
    "calibration_error": Score("calibration error", False),
}


def score(proba: Array, code: Indices, weights: Array) -> Array:
    """All of `SCORES` under each row of ``weights``, (n_weightings, n_scores).

    ``code`` is the class of each row, as the place of its column in ``proba``. In each weighting
    every class in ``code`` must have a weight above zero.
    """
    total = weights.sum(axis=1)
    rows = np.arange(len(code))
    hit = np.zeros_like(proba)
    hit[rows, code] = 1.0
    loss = -np.log(np.maximum(proba[rows, code], np.finfo(float).eps))
    square = np.square(proba - hit).sum(axis=1)
    # As in scikit-learn: at most 1 for two classes, at most 2 for more.
    square *= 0.5 if proba.shape[1] == 2 else 1.0
    # Two classes: that of the second one. More: the mean over each class against the others.
    columns = [1] if proba.shape[1] == 2 else np.unique(code).tolist()
    auc, calibration = (
        np.mean([one_class(proba[:, k], hit[:, k], weights) for k in columns], axis=0)
        for one_class in (_auc, calibration_error)
    )
    return np.stack([auc, weights @ loss / total, weights @ square / total, calibration], axis=1)


def _auc(p: Array, hit: Array, weights: Array) -> Array:
    """Probability that a row of the class ranks above a row of another; ties count half."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) > 0.0])
    weights, hit = weights[:, order], hit[order]
    up = np.add.reduceat(weights * hit, starts, axis=1)
    down = np.add.reduceat(weights * (1.0 - hit), starts, axis=1)
    below = np.cumsum(down, axis=1) - 0.5 * down
    return np.asarray((up * below).sum(axis=1) / (up.sum(axis=1) * down.sum(axis=1)))


def bootstrap(
    probas: Mapping[str, Array], code: Indices, weight: Array, n_samples: int, rng: Any
) -> dict[str, Array]:
    """Scores per method (n_samples, n_scores); all methods get the same bootstrap samples.

    Rows are drawn within their class, so that the number of rows per class stays the same.
    """
    size = max(1, _BATCH_ELEMENTS // len(code))
    scores: dict[str, list[Array]] = {name: [] for name in probas}
    for start in range(0, n_samples, size):
        counts = np.empty((min(size, n_samples - start), len(code)))
        for k in np.unique(code):
            members = np.flatnonzero(code == k)
            share = np.full(len(members), 1.0 / len(members))
            counts[:, members] = rng.multinomial(len(members), share, size=len(counts))
        for name, proba in probas.items():
            scores[name].append(score(proba, code, counts * weight))
    return {name: np.concatenate(batches) for name, batches in scores.items()}


def is_small(labels: NDArray[Any]) -> bool:
    """Whether there are so few trusted labels that intervals are rough."""
    counts = np.unique(labels, return_counts=True)[1]
    return len(labels) < _FEW_ROWS or bool(counts.min() < _FEW_PER_CLASS)


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


@dataclass(frozen=True)
class Evaluation:
    """How well each method predicts held-out trusted labels; ``print`` shows it.

    Attributes
    ----------
    levels, classes : tuple
        Levels are in order of trust, the least trusted first.
    rows : array of shape (n_trusted,)
        Indices of the trusted rows in X.
    labels : array of shape (n_trusted,)
        Their labels.
    fold : array of shape (n_trusted,)
        The fold in which each of them was held out.
    out_of_fold : dict of str to array of shape (n_trusted, n_classes)
        Per method, the probabilities of each trusted row by the model that was fitted without it;
        columns in the order of ``classes``.
    scores : dict of str to dict of str to Estimate
        Per method and score; the scores are those in `polyfid.evaluation.SCORES`.
    differences : dict of str to dict of str to Estimate
        Per method and score, "polyfid" minus that method on the same rows.
    n_splits, n_bootstrap : int
        The number of folds, which may be lower than asked for, and of bootstrap samples.
    notes : tuple of str
        Reasons for caution: small samples, fewer folds, warnings of fits.

    Notes
    -----
    Intervals are percentiles of a bootstrap over trusted rows, drawn within their class. They say
    how much the figure would change with other test rows; that other training rows would give
    other models is not in them.
    """

    levels: tuple[Any, ...]
    classes: tuple[Any, ...]
    rows: NDArray[np.intp]
    labels: NDArray[Any]
    fold: NDArray[np.intp]
    out_of_fold: Mapping[str, Array]
    scores: Mapping[str, Mapping[str, Estimate]]
    differences: Mapping[str, Mapping[str, Estimate]]
    n_splits: int
    n_bootstrap: int
    notes: tuple[str, ...]

    @property
    def codes(self) -> Indices:
        """The classes of the trusted rows, as columns of the probabilities."""
        return np.array([self.classes.index(label) for label in self.labels.tolist()])

    @property
    def verdict(self) -> str:
        """Whether the cheaper labels "help", do "harm", or make "no clear difference".

        They help if the interval of the paired difference to "trusted only" lies wholly on the
        better side in log-loss or ROC AUC, and in neither wholly on the worse side. Harm is the
        opposite.
        """
        sides = {*self._clear().values()}
        if len(sides) != 1:
            return "no clear difference"
        return "help" if sides.pop() else "harm"

    @property
    def deciding_score(self) -> str:
        """The score that the verdict rests on: the first clear one, without any the log-loss."""
        return next(iter(self._clear()), _DECIDING[0])

    @property
    def sentence(self) -> str:
        """The verdict as a sentence, with the figures that it rests on."""
        verb = {"help": "help", "harm": "do harm"}.get(self.verdict, f"make {self.verdict}")
        name = self.deciding_score
        alone, ours = (self.scores[method][name].value for method in (ALONE, OURS))
        change = self.differences[ALONE][name]
        few = ", which is few: take it with care" if is_small(self.labels) else ""
        return (
            f"The cheaper labels ({', '.join(map(str, self.levels[:-1]))}) {verb}: "
            f"{SCORES[name].words} {ours:.3f} with them and {alone:.3f} without "
            f"(difference {change.value:+.3f}, 95 % interval {change.low:+.3f} to "
            f"{change.high:+.3f}), on {len(self.rows)} held-out trusted rows{few}."
        )

    def to_dict(self, out_of_fold: bool = True) -> dict[str, Any]:
        """The result as plain values for JSON, with or without the probabilities of the rows."""
        fields = asdict(self)
        predictions = {name: fields.pop(name) for name in ("rows", "labels", "fold")}
        predictions["probabilities"] = fields.pop("out_of_fold")
        result = {"verdict": self.verdict, "sentence": self.sentence, "n_trusted": len(self.rows)}
        result |= fields
        if out_of_fold:
            result["out_of_fold"] = predictions
        return dict(to_json(result))

    def __str__(self) -> str:
        lines = [
            textwrap.fill(self.sentence, _WIDTH),
            "",
            *_table("", self.scores, ""),
            "",
            *_table(f"{OURS} minus", self.differences, "+"),
            "",
            "95 % intervals are below the figures. ROC AUC: higher is better; others: lower.",
        ]
        lines += [textwrap.fill(f"Note: {note}", _WIDTH) for note in self.notes]
        return "\n".join(lines)

    def _clear(self) -> dict[str, bool]:
        """Deciding scores whose interval does not hold zero, and whether they are better."""
        changes = {name: self.differences[ALONE][name] for name in _DECIDING}
        return {
            name: (change.low > 0.0) == SCORES[name].more_is_better
            for name, change in changes.items()
            if change.low > 0.0 or change.high < 0.0
        }


def _table(head: str, scores: Mapping[str, Mapping[str, Estimate]], sign: str) -> list[str]:
    """Lines of a table with one column per score; below each figure is its interval."""
    # The last word of "calibration error" would make its column wider than the interval.
    rows = [[head, *(s.words.removesuffix(" error") for s in SCORES.values())]]
    for method, row in scores.items():
        rows.append([method, *(f"{e.value:{sign}.3f}" for e in row.values())])
        rows.append(["", *(f"{e.low:{sign}.3f}..{e.high:{sign}.3f}" for e in row.values())])
    return aligned(rows, indent=0)
