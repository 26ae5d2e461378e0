"""What a comparison found: estimates with intervals, a verdict, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.evaluation.scores import SCORES

#: The method that is judged, and the one it must improve on.
OURS, ALONE = "polyfid", "trusted only"
#: Below these numbers of trusted rows, and of such rows of a class, an interval is rough.
FEW_ROWS, FEW_OF_A_CLASS = 50, 10

#: Scores the verdict rests on, in order of precedence.
_DECIDING = ("log_loss", "roc_auc")


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval.

    Examples
    --------
    >>> from polyfid.evaluation import Estimate
    >>> print(Estimate(0.5, 0.4, 0.61))
    0.500 [0.400, 0.610]
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, samples: Array) -> Estimate:
        """From the value on the rows themselves and on bootstrap samples of them.

        Percentiles, widened where needed to hold the value: noise only adds to a calibration
        error, so that all samples may be above it.
        """
        low, high = np.percentile(samples, [2.5, 97.5])
        return cls(float(value), float(min(low, value)), float(max(high, value)))

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Evaluation:
    """How well each method predicts trusted labels that it has not seen; ``print`` it.

    Attributes
    ----------
    levels, classes : tuple
        Levels are least trusted first.
    rows : array of shape (n_trusted,)
        Which rows of X are trusted, and were predicted by models that had not seen their label.
    labels : array of shape (n_trusted,)
        Their trusted labels.
    fold : array of shape (n_trusted,)
        The fold that each was held out in.
    out_of_fold : dict of str to array of shape (n_trusted, n_classes)
        Probabilities a method, columns in the order of ``classes``.
    scores : dict of str to dict of str to Estimate
        By method, then by the names in `polyfid.evaluation.SCORES`.
    differences : dict of str to dict of str to Estimate
        "polyfid" minus the named method on the same rows, by method and score.
    n_splits, n_bootstrap : int
        As used: folds may be fewer than asked for.
    notes : tuple of str
        What to keep in mind: small samples, fewer folds, fits that did not converge.

    Notes
    -----
    Intervals are percentiles of a bootstrap over trusted rows, drawn within their class. They say
    how far other test rows would change the figure; that other training rows would change the
    models too is not in them.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, stack_levels
    >>> from polyfid.evaluation import evaluate
    >>> from polyfid.kernels import RBF
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-2, 2, (90, 1))
    >>> right = X[:, 0] > 0
    >>> X, y, fidelity = stack_levels({"crowd": (X[:60], right[:60]), "gold": (X[60:], right[60:])})
    >>> model = MultiFidelityClassifier(kernel=1.0 * RBF())
    >>> result = evaluate(X, y, fidelity, model=model)
    >>> result.verdict, result.scores["polyfid"]["roc_auc"].value
    ('help', 1.0)
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
    def verdict(self) -> str:
        """Whether cheaper labels "help", do "harm", or make "no clear difference".

        They help if the interval of the paired difference to "trusted only" lies wholly on the
        good side in log-loss or ROC AUC, and wholly on the bad side in neither; and harm the
        other way round.
        """
        good, bad = self._clear(1.0), self._clear(-1.0)
        if good and not bad:
            return "help"
        return "harm" if bad and not good else "no clear difference"

    @property
    def deciding_score(self) -> str:
        """The name of the score that decides the verdict: log-loss if none is clear."""
        clear = self._clear(1.0) + self._clear(-1.0)
        return clear[0] if self.verdict != "no clear difference" else _DECIDING[0]

    @property
    def sentence(self) -> str:
        """The verdict in words, with the figure it rests on."""
        names = ", ".join(map(str, self.levels[:-1]))
        head = {
            "help": f"The cheaper labels ({names}) help",
            "harm": f"The cheaper labels ({names}) do harm",
            "no clear difference": f"The cheaper labels ({names}) make no clear difference",
        }[self.verdict]
        name = self.deciding_score
        without, with_them = (self.scores[m][name].value for m in (ALONE, OURS))
        change = self.differences[ALONE][name]
        few = ", which is few: take it with care" if self._is_small else ""
        return (
            f"{head}: {SCORES[name].words} {with_them:.3f} with them and {without:.3f} without "
            f"(difference {change.value:+.3f}, 95 % interval {change.low:+.3f} to "
            f"{change.high:+.3f}), on {len(self.rows)} held-out trusted rows{few}."
        )

    def to_dict(self, out_of_fold: bool = True) -> dict[str, Any]:
        """All of it as plain values, for JSON; probabilities of the rows can be left out."""
        result = {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "levels": [_plain(v) for v in self.levels],
            "classes": [_plain(v) for v in self.classes],
            "n_trusted": len(self.rows),
            "n_splits": self.n_splits,
            "n_bootstrap": self.n_bootstrap,
            "scores": _as_dicts(self.scores),
            "differences": _as_dicts(self.differences),
            "notes": list(self.notes),
        }
        if out_of_fold:
            result["out_of_fold"] = {
                "rows": self.rows.tolist(),
                "labels": [_plain(v) for v in self.labels.tolist()],
                "fold": self.fold.tolist(),
                "probabilities": {name: p.tolist() for name, p in self.out_of_fold.items()},
            }
        return result

    def __str__(self) -> str:
        lines = [self.sentence, ""]
        lines += _table("method", {m: _shown(s) for m, s in self.scores.items()})
        lines.append("")
        paired = {f"{OURS} - {m}": _shown(s, "+") for m, s in self.differences.items()}
        lines += _table("difference", paired)
        lines += ["", "Figures with 95 % intervals; ROC AUC: more is better, the others: less."]
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)

    @property
    def _is_small(self) -> bool:
        counts = np.unique(self.labels, return_counts=True)[1]
        return len(self.rows) < FEW_ROWS or counts.min() < FEW_OF_A_CLASS

    def _clear(self, side: float) -> list[str]:
        """Deciding scores whose whole interval is on the good (1) or bad (-1) side."""
        found = []
        for name in _DECIDING:
            better = side if SCORES[name].more_is_better else -side
            difference = self.differences[ALONE][name]
            if min(better * difference.low, better * difference.high) > 0.0:
                found.append(name)
        return found


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | bool) else str(value)


def _as_dicts(table: Mapping[str, Mapping[str, Estimate]]) -> dict[str, Any]:
    return {
        method: {s: {"value": e.value, "low": e.low, "high": e.high} for s, e in row.items()}
        for method, row in table.items()
    }


def _shown(row: Mapping[str, Estimate], sign: str = "") -> list[str]:
    return [f"{e.value:{sign}.3f} [{e.low:{sign}.3f}, {e.high:{sign}.3f}]" for e in row.values()]


def _table(head: str, rows: Mapping[str, list[str]]) -> list[str]:
    """Lines of a table whose columns are the scores."""
    cells = [[head, *(s.words for s in SCORES.values())]]
    cells += [[name, *values] for name, values in rows.items()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
