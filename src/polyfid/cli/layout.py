"""Tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polyfid.cli.talk import visible

if TYPE_CHECKING:
    from polyfid.evaluation import Estimate, Evaluation
    from polyfid.tables import Findings

#: Longest name of a user that is shown in full.
LONGEST = 30
#: Features that are listed.
MOST = 40
#: What fits above an interval.
SHORT = {"calibration error": "calibration"}


def aligned(rows: Sequence[Sequence[object]], indent: int = 2) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    cells = [[_short(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        (
            " " * indent
            + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        ).rstrip()
        for row in cells
    ]


def _short(text: str) -> str:
    text = visible(text).replace("\n", "\\n")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def describe(findings: Findings, width: int) -> str:
    """What is in tables, and what is wrong or odd about it."""
    lines = ["Levels, least trusted first, and rows of each class:", *_counts(findings, width), ""]
    cells: list[Sequence[object]] = [["feature", "kind", "missing", "distinct", "from", "to"]]
    for f in findings.features[:MOST]:
        ends = ["" if v is None else f"{v:.6g}" for v in (f.low, f.high)]
        cells.append([f.name, f.kind, f.missing, f.distinct, *ends])
    count = len(findings.features)
    lines += [f"{count} feature{'s' * (count != 1)}:", *aligned(cells)]
    if count > MOST:
        lines.append(f"  and {count - MOST} more")
    for title, texts in (("Problems", findings.problems), ("Notes", findings.notes)):
        lines += ["", f"{title}:", *(f"  - {text}" for text in texts)] if texts else []
    return "\n".join(lines if findings.problems else [*lines, "", "No problems found."])


def _counts(findings: Findings, width: int) -> list[str]:
    """Rows by level and class; many classes go below each other."""
    rows: list[list[object]] = [["level", *findings.classes, "rows"]]
    for level, counts in zip(findings.levels, findings.counts, strict=True):
        rows.append([level, *counts, sum(counts)])
    lines = aligned(rows)
    if max(map(len, lines)) <= width:
        return lines
    turned = [list(column) for column in zip(*rows, strict=True)]
    turned[0][0] = "class"
    return aligned(turned)


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
