"""An evaluation in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from polyfid.text import aligned

if TYPE_CHECKING:
    from polyfid.evaluation import Estimate, Evaluation

#: What fits above an interval.
SHORT = {"calibration error": "calibration"}


def compare(found: Evaluation) -> str:
    """Scores of all methods and paired differences, in 80 columns."""
    from polyfid.evaluation.scores import SCORES

    names = [SHORT.get(s.words, s.words) for s in SCORES.values()]
    lines = _figures(["", *names], found.scores, "")
    lines += ["", *_figures(["polyfid minus", *names], found.differences, "+")]
    lines += ["", "Below each figure its 95 % interval. ROC AUC: more is better, the others: less."]
    return "\n".join(lines)


def _figures(
    header: list[str], scores: Mapping[str, Mapping[str, Estimate]], sign: str
) -> list[str]:
    rows = [header]
    for method, row in scores.items():
        every = [(e.value, e.low, e.high) for e in row.values()]
        rows.append([method, *(f"{value:{sign}.3f}" for value, _, _ in every)])
        rows.append(["", *(f"{low:{sign}.3f}..{high:{sign}.3f}" for _, low, high in every)])
    return aligned(rows, indent=0)
