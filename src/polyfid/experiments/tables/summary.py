"""Tables across the groups: who is best, who beats whom, what differs, what failed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from polyfid.experiments.averages import paper_best
from polyfid.experiments.paper import CLOSE, COLUMNS, GROUPS, Column, Method
from polyfid.experiments.results import Results
from polyfid.experiments.tables.base import (
    LOG_LOSS,
    OURS,
    ROC_AUC,
    THEIRS,
    Entry,
    Head,
    Line,
    Table,
    mean_over,
    signed,
    spread,
)


def count_table(results: Results) -> Table | None:
    """In how many columns each method is best or close to it, in the paper and here."""
    columns, methods = results.columns, results.methods
    if not columns or len(methods) < 2:
        return None
    published = {column: paper_best(column) for column in COLUMNS}
    in_paper = {
        c: {m.key for m in methods if not math.isnan(results.paper(c, m.key))} for c in COLUMNS
    }
    here = {c: {k for k, m in results.means("roc_auc")[c].items() if m.n} for c in columns}
    others = {column: keys - {OURS} for column, keys in here.items()}
    views = [
        (Head("ROC AUC, the paper", "its figures and methods"), in_paper, published),
        (Head("ROC AUC, ours", "without polyfid"), others, results.best(ROC_AUC, ours=False)),
        (Head("ROC AUC, ours", "all methods"), here, results.best(ROC_AUC)),
        (Head("log-loss, ours", "all methods"), here, results.best(LOG_LOSS)),
    ]
    if others == here:  # then the second is the same as the third
        del views[1]
    lines = []
    most = [
        max(sum(m.key in hits for hits in best.values()) for m in methods) for *_, best in views
    ]
    for method in methods:
        entries = [
            _count(method, [c for c in there if method.key in there[c]], best, highest)
            for (_, there, best), highest in zip(views, most, strict=True)
        ]
        for metric in (ROC_AUC, LOG_LOSS):
            mean = mean_over(results, columns, method.key, metric.name)
            entries.append(Entry("–" if math.isnan(mean) else f"{mean:.3f}"))
        lines.append(Line(method.label, tuple(entries)))
    groups = ", ".join(group.name for group in GROUPS)
    return Table(
        "counts",
        "Who is best",
        f"In how many columns a method is the best or within {CLOSE} of the best, of the columns "
        f"in which it has a figure; small below, the same by group ({groups}). The paper has "
        f"{len(COLUMNS)} columns, {len(columns)} of which have rows here. The means at the right "
        "are over these columns, each with the same weight, for methods that have them all.",
        "method",
        (
            *(head for head, *_ in views),
            Head("mean ROC AUC", "ours"),
            Head("mean log-loss", "ours"),
        ),
        tuple(lines),
    )


def _count(
    method: Method, columns: Sequence[Column], best: dict[Column, set[tuple[str, str]]], most: int
) -> Entry:
    if not columns:
        return Entry()
    hits = [column.group for column in columns if method.key in best[column]]
    by_group = " · ".join(
        str(hits.count(group.name)) if any(c.group == group.name for c in columns) else "–"
        for group in GROUPS
    )
    return Entry(f"{len(hits)} of {len(columns)}", bold=len(hits) == most, note=by_group)


def duel_table(results: Results) -> Table | None:
    """Our model less the paper's, split by split."""
    lines = []
    for group in GROUPS:
        columns = [c for c in results.columns if c.group == group.name]
        for noise in group.noises if len(group.noises) > 1 else ():
            part = [c for c in columns if c.noise == noise]
            lines.append(_duel(results, f"{group.name}, noise {noise}", part))
        if len(group.noises) == 1 and len(columns) > 1:
            lines += [_duel(results, f"{group.name}, {c.label}", [c]) for c in columns]
        lines.append(_duel(results, f"{group.name}, all", columns))
    if len({c.group for c in results.columns}) > 1:
        lines.append(_duel(results, "all columns", results.columns, opens=True))
    found = tuple(line for line in lines if line is not None)
    if not found:
        return None
    return Table(
        "duel",
        "polyfid against the paper's model",
        "polyfid less MF gpc on the same splits: mean difference with its 95 % interval over the "
        "draws of rows, each column with the same weight, and the number of columns in which "
        "polyfid's mean is better. More ROC AUC is better, and less log-loss; bold where "
        "polyfid is better by more than the interval.",
        "columns",
        (
            Head("ROC AUC", "difference"),
            Head("better in", "columns"),
            Head("log-loss", "difference"),
            Head("better in", "columns"),
            Head("splits"),
        ),
        found,
    )


def _duel(
    results: Results, label: str, columns: Sequence[Column], *, opens: bool = False
) -> Line | None:
    entries: list[Entry] = []
    n = 0
    for metric in (ROC_AUC, LOG_LOSS):
        found = results.difference(metric.name, columns, OURS, THEIRS)
        if found is None:
            return None
        (mean, half), n = found
        singly = [results.difference(metric.name, [c], OURS, THEIRS) for c in columns]
        gaps = [gap[0].mean for gap in singly if gap is not None]
        entries += [
            Entry(
                signed(mean),
                spread(half),
                bold=metric.sign * mean > half,
                note="worse" if -metric.sign * mean > half else "",
            ),
            Entry(f"{sum(metric.sign * gap > 0 for gap in gaps)} of {len(gaps)}"),
        ]
    opens = opens or label.endswith("noise 0.2") or label.endswith("music genre")
    return Line(label, (*entries, Entry(str(n))), opens=opens)


def outside_table(results: Results) -> Table | None:
    """The cells where the paper's figure lies outside our interval."""
    cells = [cell for cell in results.compare() if cell[-1] != "within"]
    cells.sort(key=lambda cell: cell[-1] != "off")
    lines = []
    for i, (column, method, mean, paper, verdict) in enumerate(cells):
        entries = (
            Entry(method.label),
            Entry(f"{paper:.3f}"),
            Entry(f"{mean.mean:.3f}", spread(mean.half)),
            Entry(signed(mean.mean - paper)),
            Entry(f"{mean.first:.3f}"),
            Entry("yes" if verdict == "near" else "no"),
        )
        opens = i > 0 and verdict != cells[i - 1][-1]
        lines.append(Line(f"{column.group}: {column}", entries, opens=opens))
    if not lines:
        return None
    return Table(
        "outside",
        "Where the paper's figure lies outside our interval",
        "Cells of ROC AUC, those furthest off first. *First splits* is our mean over as many "
        "splits of each set as the paper ran, the first ones. *By chance* says whether the draws "
        "of rows explain the difference once it is allowed for that the paper's figure is a mean "
        "over few splits, too. One cell in twenty is expected outside; since all methods of a "
        "column share their splits, they tend to be off together.",
        "column",
        (
            Head("method", words=True),
            Head("the paper"),
            Head("ours"),
            Head("difference"),
            Head("first splits"),
            Head("by chance"),
        ),
        tuple(lines),
    )


def failure_table(results: Results, limit: int = 200) -> Table | None:
    """The cells that failed, each with its error."""
    failed = results.failures
    if failed.empty:
        return None
    lines = []
    for row in failed.head(limit).itertuples(index=False):
        noise = "" if math.isnan(row.noise) else f"{row.noise:g}"  # type: ignore[arg-type]
        what = (f"{row.method} {row.mode}", noise, str(row.seed), str(row.setting), str(row.error))
        entries = tuple(Entry(text or "–") for text in what)
        lines.append(Line(f"{row.experiment}: {row.problem}", entries))
    more = f" The first {limit} are listed." if len(failed) > limit else ""
    return Table(
        "failures",
        "Cells that failed",
        f"{len(failed)} of {len(results.rows)} rows hold an error instead of figures; they are "
        f"left out of every mean. `polyfid reproduce NAME --retry-failed` runs them again.{more}",
        "cell",
        (
            Head("method", words=True),
            Head("noise"),
            Head("seed"),
            Head("setting", words=True),
            Head("error", words=True),
        ),
        tuple(lines),
    )
