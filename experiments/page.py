"""The page of results: ``results.md``, and ``results.html`` rendered from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from experiments import figures, paper, tables
from experiments.paper import COLUMNS, GROUPS, LOG_LOSS, OURS, ROC_AUC, THEIRS, Column, Method
from experiments.results import Results, paper_best

TITLE = "The experiments of the paper, run again"
LEAD = (
    "Every table and figure of Klyuchnikov and Burnaev, “Gaussian Process Classification for "
    "Variable Fidelity Data”, computed anew with polyfid: our figure beside the paper's, and our "
    "own model beside its model."
)
NO_ROWS = "No rows yet."
HERE = Path(__file__).parent


class Section(NamedTuple):
    """A section of the page: its anchor, the word in the menu, the heading, and Markdown blocks."""

    name: str
    short: str
    title: str
    blocks: list[str]

    @property
    def markdown(self) -> str:
        """The heading and the blocks."""
        return "\n\n".join([f"## {self.title}", *self.blocks])


def write(out_dir: str | PathLike[str], names: Iterable[str]) -> Path:
    """Write results.md, results.html and the folder figures from the rows in a directory.

    All experiments with rows are shown; for one of ``names`` without rows, the page says so.
    Returns the path of results.html.
    """
    folder = Path(out_dir)
    results = Results.read(folder)
    drawn, svgs = figures.draw(results, folder / "figures")
    sections = _sections(results, drawn, set(names))
    lead = LEAD if len(results.rows) else f"{LEAD} {NO_ROWS}"
    text = "\n\n".join([f"# {TITLE}", lead, *(section.markdown for section in sections)])
    (folder / "results.md").write_text(f"{text}\n", encoding="utf-8")
    page = folder / "results.html"
    page.write_text(_html(lead, sections, svgs), encoding="utf-8")
    return page


def _html(lead: str, sections: Sequence[Section], svgs: dict[str, str]) -> str:
    """The page in HTML, complete in itself."""
    style = (HERE / "page.css").read_text(encoding="utf-8")
    links = " ".join(f'<a href="#{s.name}">{escape(s.short)}</a>' for s in sections)
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    body = "".join(
        f'<section id="{s.name}">\n{markdown.render(s.markdown)}</section>\n' for s in sections
    )
    # Wide tables and figures scroll, also with the keyboard; the first cell of a line is its head.
    scroll = '<{} class="scroll" tabindex="0" role="region" aria-label="{}"'
    body = body.replace("<table>", scroll.format("div", "table") + "><table>")
    body = body.replace("</table>", "</table></div>")
    body = re.sub(r"(\d) %", r"\1&nbsp;%", body)
    body = re.sub(r"(<tr>\n)<td[^>]*>(.*?)</td>", r'\1<th scope="row">\2</th>', body)
    body = re.sub(
        r'<img src="figures/(.*?)\.png" alt="(.*?)" />',
        lambda m: f'{scroll.format("span", m[2])} id="figure-{m[1]}">{svgs[m[1]]}</span>',
        body,
    )
    template = (HERE / "page.html").read_text(encoding="utf-8")
    title, lead = escape(TITLE), escape(lead)
    return template.format(title=title, lead=lead, style=style, links=links, body=body)


def _sections(results: Results, drawn: Mapping[str, list[str]], names: set[str]) -> list[Section]:
    """The sections that have something to show, or that were asked for."""
    reading = [(HERE / "reading.md").read_text(encoding="utf-8").strip()] * bool(results.columns)
    mcmc = tables.mcmc_tables(results) + drawn["mcmc"]
    mcmc_title = "Laplace, EP and variational inference against MCMC"
    budget_title = "Dividing a budget between cheap and trusted rows"
    sensitivity = _sensitivity(results) + drawn["sensitivity"]
    sections = [
        Section("summary", "Summary", "At a glance", _summary(results) + drawn["summary"]),
        Section("reading", "How to read", "How to read the tables", reading),
        *(Section(g.name, g.short, g.title, _group(results, g, drawn[g.name])) for g in GROUPS),
        Section("profiles", "Profiles", "Profiles of ROC AUC", drawn["profiles"]),
        Section("mcmc", "MCMC", mcmc_title, mcmc),
        Section("budget", "Budget", budget_title, _budget(results, drawn["budget"])),
        Section("sensitivity", "Sensitivity", "Sensitivity to hyper-parameters", sensitivity),
        Section("differences", "Differences", "Differences from the paper", _differences(results)),
        Section("missing", "Left out", "Left out and failed", _missing(results)),
        Section("versions", "Versions", "Versions", _versions(results)),
    ]
    shown = [section for section in sections if section.blocks or section.name in names]
    return [section._replace(blocks=section.blocks or [NO_ROWS]) for section in shown]


def _fold(title: str, blocks: Iterable[str]) -> list[str]:
    """Blocks that are shown on demand."""
    return [f"<details>\n<summary>{title}</summary>", *blocks, "</details>"]


def _list(points: Iterable[str]) -> str:
    return "\n".join(f"- {point}" for point in points)


def _summary(results: Results) -> list[str]:
    if results.rows.empty:
        return []
    facts = _list(f"**{number}** {words}" for number, words in _facts(results))
    return [facts, *tables.count_table(results), *tables.duel_table(results)]


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    """Numbers that stand out, each with a few words."""
    words = f"is the best or within {paper.CLOSE} of it"
    if len(results.methods) > 1:
        for metric, title in ((ROC_AUC, "ROC AUC"), (LOG_LOSS, "log-loss")):
            if hits := _hits(results.best(metric), results, OURS):
                yield hits, f"columns in which **polyfid** {words}, {title}"
        if hits := _hits(results.best(ROC_AUC, ours=False), results, THEIRS):
            published = sum(THEIRS in paper_best(column) for column in COLUMNS)
            text = f"columns in which **MF gpc**, the paper's model, {words} without polyfid"
            yield hits, f"{text}, ROC AUC; in the paper {published} of {len(COLUMNS)}"
    for metric, title in ((ROC_AUC, "ROC AUC"), (LOG_LOSS, "log-loss")):
        gap = results.difference(metric.name)
        if gap is not None:
            words = f"{title} of polyfid minus that of MF gpc, mean over columns"
            yield tables.signed(gap[0].mean), words
    verdicts = Counter(verdict for *_, verdict in results.compare() if verdict)
    if verdicts:
        words = "figures of the paper that lie within our 95 % interval"
        near = f"; {verdicts['near']} more can be explained by the paper's few splits"
        yield f"{verdicts['within']} of {verdicts.total()}", words + near * (verdicts["near"] > 0)
    seconds = float(results.rows[["fit_seconds", "predict_seconds"]].sum().sum())
    yield _duration(seconds), f"of processor time for {len(results.rows)} cells"
    if len(results.failures):
        yield str(len(results.failures)), "of these cells failed"


def _hits(best: dict[Column, set[Method]], results: Results, method: Method) -> str:
    """In how many of its columns a method is among the best; empty if it has none."""
    there = [column for column in best if results.has(column, method)]
    return f"{sum(method in best[column] for column in there)} of {len(there)}" if there else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _group(results: Results, group: paper.Group, drawn: list[str]) -> list[str]:
    by_metric = {m: tables.group_tables(results, group, m) for m in paper.METRICS}
    if not by_metric[ROC_AUC]:
        return []
    folds = [block for m in paper.METRICS[1:] for block in _fold(m.title, by_metric[m])]
    return [*by_metric[ROC_AUC], *drawn, *folds, _list(group.notes)]


def _budget(results: Results, drawn: list[str]) -> list[str]:
    rows = results.of("budget")
    if rows.empty:
        return []
    counts = []
    for method in (THEIRS, OURS):
        own = rows[rows["method"] == method[0]]
        if len(own):
            n = int(own.groupby("problem")["seed"].nunique().max())
            counts.append(f"{paper.label(method)} with up to {tables.counted(n, 'split')} of each")
    sets = results.sets("budget")
    text = f"Means over {len(sets)} sets ({_compact(sets)}), {', '.join(counts)}."
    return [text, *drawn, *_fold("The figures as numbers", tables.budget_table(results))]


def _sensitivity(results: Results) -> list[str]:
    cases = figures.sensitivity_noises(results)
    if not cases:
        return []
    noises = " and ".join(f"noise {noise:g} ({case})" for case, noise in cases.items())
    sets = _compact(results.sets("sensitivity"))
    return [f"One split of {sets} at {noises}; only the posterior is recomputed."]


def _differences(results: Results) -> list[str]:
    n = len([verdict for *_, verdict in results.compare() if verdict])
    none = [f"None of {n} figures of the paper is outside our interval."] if n else []
    return tables.outside_table(results) or none


def _missing(results: Results) -> list[str]:
    points = []
    for group in GROUPS:
        sets = results.sets(group.name)
        wanted = dict.fromkeys(p for column in group.columns for p in column.problems)
        absent = [name for name in wanted if name not in sets] if sets else []
        made = [name for name in sets if name.startswith("made_")]
        if absent:
            points.append(
                f"**{group.name}**: {len(absent)} of {len(wanted)} data sets have no rows "
                f"({_compact(absent)}); the paper's figures include them."
            )
        if made:
            points.append(
                f"**{group.name}**: {len(made)} sets made by the paper's recipe "
                f"({_compact(made)}) are used instead; the paper's figures are of other sets."
            )
    slow = results.rows[results.rows["converged"].eq(False)]
    if len(slow):
        by = Counter(zip(slow["method"], slow["mode"], strict=True))
        which = ", ".join(f"{name} {mode} {n}" for (name, mode), n in sorted(by.items()))
        points.append(f"{len(slow)} fits did not converge ({which}); their figures are included.")
    last = tables.failure_table(results)
    if not last and len(results.rows):
        last = ["No cell failed."]
    return [_list(points), *last] if points else last


def _versions(results: Results) -> list[str]:
    counts = results.rows.loc[results.rows["versions"] != "", "versions"].value_counts()
    return [_list(f"{text} ({n} rows)" for text, n in counts.items())] if len(counts) else []


def _compact(names: Sequence[str]) -> str:
    """A list of names in which consecutive numbers are shortened: df_5–9, df_15."""
    runs: list[list[str]] = []
    # df_2 comes before df_10.
    for name in sorted(names, key=lambda name: (name.rstrip("0123456789"), len(name), name)):
        stem, _, number = name.rpartition("_")
        last = runs[-1][-1] if runs else ""
        if number.isdigit() and last == f"{stem}_{int(number) - 1}":
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(
        run[0] + (f"–{run[-1].rpartition('_')[2]}" if len(run) > 1 else "") for run in runs
    )
