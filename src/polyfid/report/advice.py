"""The section of the page on how to split a budget."""

from __future__ import annotations

from typing import Any

from polyfid.evaluation import Estimate
from polyfid.plots import AdviceDisplay
from polyfid.report import charts
from polyfid.report.page import Cell, Download, Head, Table, clean, typeset
from polyfid.suggest import Advice

_HEIGHT = 2.4  # inches


def advice(found: Advice) -> dict[str, Any]:
    """What plans for a budget are expected to bring, in words, as a table and as a figure."""
    figure = charts.new_figure(_HEIGHT)
    AdviceDisplay.from_advice(found, ax=figure.subplots())
    label = "Expected log-loss by the part of the money that goes to trusted labels"
    return {
        "sentences": [typeset(clean(sentence)) for sentence in found.sentences],
        "plans": _plans(found),
        "drawing": charts.inline(figure, "advice", label),
    }


def _plans(found: Advice) -> Table:
    """The plans, the present state first; the best is bold."""
    heads = [
        Head("Plan"),
        Head("Log-loss", "lower is better"),
        Head("Accuracy", "higher is better"),
        Head("ROC AUC", "higher is better"),
    ]
    rows = [
        [
            Cell.word(name),
            *(_cell(e, plan is found.best) for e in (plan.log_loss, plan.accuracy, plan.roc_auc)),
        ]
        for name, plan in [("as it is", found.now), *((str(p), p) for p in found.plans)]
    ]
    return Table(heads, rows, Download.of(found.to_frame(), "plans.csv"))


def _cell(e: Estimate, strong: bool) -> Cell:
    return Cell(f"{e.value:.3f}", e.value, f"{e.low:.2f}–{e.high:.2f}", strong)
