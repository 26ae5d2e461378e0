"""The section on what to label next, and on how a study goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from polyfid.plots import StudyDisplay
from polyfid.report import charts
from polyfid.report.page import Cell, Download, Figure, Head, Table, clean, shorten, shorten_all

#: Rows of the batch and columns of the pool that are shown.
MOST_ROWS, MOST_COLUMNS = 20, 6
#: Columns of a batch that are figures about suggestions, not columns of the pool.
_OURS = ("gain", "gain_per_cost", "relative_gain", "cost", "total", "audit", "label")


def next_labels(
    batch: pd.DataFrame | None, history: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """What the page shows of a batch of suggestions, as of ``polyfid suggest``, and of a study."""
    return {
        "batch": None if batch is None else _batch_table(batch),
        "sentence": "" if batch is None else _in_words(batch),
        "progress": _progress_figure(history) if len(history) > 1 else None,
        "history": _history_table(history) if history else None,
    }


def _in_words(batch: pd.DataFrame) -> str:
    counts = batch["level"].value_counts(sort=False).items()
    listed = ", ".join(f"{n} of “{shorten(level, 30)}”" for level, n in counts)
    audit = int(batch["audit"].sum())
    random = (
        f" {audit} of them {'is a random row' if audit == 1 else 'are random rows'}, marked so "
        "that scores can be made of them."
        if audit
        else ""
    )
    shown = f" The first {MOST_ROWS} are shown." if len(batch) > MOST_ROWS else ""
    return (
        f"The next {len(batch)} labels to buy ({listed}) for {batch['cost'].sum():g}, in order of "
        f"what they are expected to teach per cost.{random}{shown}"
    )


def _batch_table(batch: pd.DataFrame) -> Table:
    own = [name for name in batch.columns if name not in (*_OURS, "row", "level", "suggestion")]
    heads = [
        Head("Row"),
        Head("Level"),
        Head("Gain", "nats per target"),
        Head("Per cost"),
        Head("Against random", "rows of the level"),
        *(Head(name) for name in shorten_all(own[:MOST_COLUMNS], 24)),
    ]
    names = own[0] if own and own[0] == "id" else "row"
    rows = []
    for _, one in batch.head(MOST_ROWS).iterrows():
        figures = (one["gain"], one["gain_per_cost"], one["relative_gain"])
        cells = [_figure(value) for value in figures]
        label = f"{one[names]}{' (random)' if one['audit'] else ''}"
        columns = [_any(one[name]) for name in own[:MOST_COLUMNS]]
        rows.append([Cell.word(label), Cell.word(one["level"]), *cells, *columns])
    return Table(heads, rows, Download.of(batch, "next.csv"))


def _figure(value: float) -> Cell:
    return Cell("", 0.0) if pd.isna(value) else Cell(f"{value:.3g}", float(value))


def _any(value: Any) -> Cell:
    if isinstance(value, float) and not pd.isna(value):
        return Cell(f"{value:.4g}", value)
    return Cell.word("" if pd.isna(value) else value)


def _progress_figure(history: Sequence[Mapping[str, Any]]) -> Figure:
    figure = charts.new_figure(4.2)
    StudyDisplay.of_history(history).plot(figure.subplots(2, 1))
    label = "Log-loss over the money spent, and gains that batches promised and delivered"
    return Figure(
        "Progress of the study",
        charts.inline(figure, "study", label),
        caption="Held-out losses are of rows that were predicted without their own label: filled "
        "points of audit rows, hollow ones of all trusted rows, some of which were chosen.",
    )


def _history_table(history: Sequence[Mapping[str, Any]]) -> Table:
    heads = [Head("Batch"), Head("Spent")]
    heads += [Head(f"Labels of {shorten(clean(level), 20)}") for level in history[0]["labels"]]
    heads += [Head("Expected log-loss"), Head("Held-out log-loss"), Head("Promised")]
    heads += [Head("Delivered")]
    rows = []
    for h in history:
        batch = "now" if h["batch"] is None else str(h["batch"] + 1)
        losses = [h[name] for name in ("expected", "held_out", "promised", "delivered")]
        rows.append(
            [
                Cell(batch),
                Cell(f"{h['spent']:g}", h["spent"]),
                *map(Cell.count, h["labels"].values()),
                *(Cell("", 0.0) if v is None else Cell(f"{v:.3f}", v) for v in losses),
            ]
        )
    return Table(heads, rows)
