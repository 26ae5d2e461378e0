"""What the page shows: the parts of the project's objects, in the order of a reader's questions."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from polyfid._version import __version__
from polyfid.evaluation import Evaluation
from polyfid.report import maps, rows, scores
from polyfid.report.drawing import bar_plot, share_plot
from polyfid.report.page import (
    Block,
    Cell,
    Code,
    Facts,
    Figure,
    Figures,
    Head,
    Lines,
    Page,
    Section,
    Table,
    Text,
    Verdict,
    clean,
    shorten_all,
)
from polyfid.report.relevance import relevance
from polyfid.report.svg import N_COLOURS
from polyfid.tables import LabelledTable
from polyfid.tabular import TableModel

__all__ = ["compose"]

#: Features whose relevance is drawn, and features that stand beside a listed row.
MOST_BARS, MOST_BESIDE = 12, 5
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas")


def compose(
    model: TableModel,
    table: LabelledTable,
    evaluation: Evaluation | None,
    *,
    title: str | None = None,
    command: str | None = None,
    seed: int | None = None,
    warnings: Sequence[str] = (),
) -> Page:
    """The page of a fitted model, the rows it was fitted to, and its evaluation if there is one."""
    check(model, table, evaluation)
    found = relevance(model, table)
    beside = list(found)[:MOST_BESIDE]
    sections = [_data(table)]
    if evaluation is not None:
        sections.append(scores.comparison(evaluation))
    if len(model.classifier.levels_) > 1:
        sections.append(maps.trust(model, table, list(found)))
    if evaluation is not None:
        sections.append(scores.calibration(evaluation))
    sections.append(_features(model, table, found))
    looked = rows.uncertain(model, table, beside)
    if evaluation is not None:
        looked += rows.surprising(evaluation, table, beside)
    sections += [
        Section("rows", "Rows", "Rows to look at", looked),
        _model(model),
        _repeat(command, seed),
    ]
    problems = (*map(clean, warnings), *model.classifier.report_.problems)
    return Page(
        clean(
            title
            or ("What the labels say" if evaluation is None else "Do the cheaper labels help?")
        ),
        _lead(table),
        _nothing_measured() if evaluation is None else scores.verdict(evaluation),
        tuple(sections),
        tuple(dict.fromkeys(problems)),
        f"Made by polyfid {__version__}. This file is complete: it fetches nothing.",
    )


def check(model: TableModel, table: LabelledTable, evaluation: Evaluation | None) -> None:
    """Refuse parts that do not belong together."""
    if tuple(table.levels) != tuple(model.classifier.levels_):
        raise ValueError(
            f"table has the levels {list(table.levels)}, but model was fitted to "
            f"{list(model.classifier.levels_)}; pass the table that it was fitted to"
        )
    if evaluation is None:
        return
    labels = np.asarray(table.label)
    fits = len(evaluation.rows) and evaluation.rows.max() < len(labels)
    if not fits or not np.array_equal(labels[evaluation.rows], evaluation.labels):
        raise ValueError(
            f"evaluation is of other rows than table, which has {len(labels)}; evaluate the "
            "features and labels of the same table"
        )


def _nothing_measured() -> Verdict:
    return Verdict(
        "unknown",
        "Not measured",
        "Whether the cheaper labels help was not measured: that takes trusted rows held out, and "
        "an evaluation was not made.",
    )


def _lead(table: LabelledTable) -> str:
    levels = ", ".join(shorten_all(table.levels, 30))
    n, d = table.features.shape
    parts = _count(n, "label"), _count(len(table.levels), "level"), _count(d, "feature")
    return f"{parts[0]} at {parts[1]} ({levels}), {parts[2]}."


def _data(table: LabelledTable) -> Section:
    by_class = table.counts()
    classes, counts = list(by_class.columns), by_class.to_numpy()
    names, levels = shorten_all(classes, 30), shorten_all(table.levels, 30)
    facts = (
        (f"{counts.sum():,}", "labels in all"),
        (f"{counts[-1].sum():,}", f"of them trusted (level “{levels[-1]}”)"),
        (f"{len(classes)}", "classes"),
        (f"{table.features.shape[1]:,}", "features"),
    )
    by_level = Table(
        "levels",
        "Labels by level and class",
        (Head("Level", words=True), Head("Labels"), *map(Head, names)),
        tuple(
            (Cell(level), _number(row.sum()), *map(_number, row))
            for level, row in zip(levels, counts, strict=True)
        ),
        "The least trusted level comes first." if len(levels) > 1 else "",
    )
    blocks: list[Block] = [Facts(facts), by_level]
    if len(classes) <= N_COLOURS:
        drawing = share_plot(
            shorten_all(table.levels, 120),
            shorten_all(classes, 120),
            counts,
            "Shares of the classes at each level",
        )
        caption = (
            "Levels that were asked about other rows, or answer differently, have other shares."
        )
        blocks.append(Figures((Figure("Shares of the classes", drawing, caption=caption),)))
    return Section("data", "Data", "The data", tuple(blocks))


def _features(model: TableModel, table: LabelledTable, found: dict[str, float]) -> Section:
    names = shorten_all(found, 120)
    shown = list(zip(names, found.values(), strict=True))[:MOST_BARS]
    caption = (
        "How far the predicted probabilities move, on average, when the values of a column are "
        "dealt out anew among the rows."
    )
    if len(found) > MOST_BARS:
        caption += f" The first {MOST_BARS} of {len(found)} columns."
    bars = Figure("Relevance", bar_plot(shown, "Relevance of the features"), caption=caption)
    figures = (bars, *maps.feasibility(model, table, list(found)))
    text = "What the predictions of the trusted label depend on, and where they turn over."
    return Section(
        "features", "Features", "What matters, and where", (Text(text), Figures(figures))
    )


def _model(model: TableModel) -> Section:
    report = model.classifier.report_
    lines = tuple((clean(head), clean(text)) for head, text in report.lines if head != "warning")
    return Section("model", "Model", "The model in words", (Lines(lines),))


def _repeat(command: str | None, seed: int | None) -> Section:
    made = [f"Python {platform.python_version()}", f"polyfid {__version__}"]
    made += [f"{name} {version(name)}" for name in _LIBRARIES]
    lines = [("versions", ", ".join(made))]
    if seed is not None:
        lines.append(("seed", str(seed)))
    blocks: list[Block] = [Lines(tuple(lines))]
    if command:
        blocks = [Text("The command that wrote this page:"), Code(clean(command)), *blocks]
    return Section("repeat", "Repeat", "To repeat it", tuple(blocks))


def _number(value: int | np.intp) -> Cell:
    return Cell(f"{value:,}", float(value))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
