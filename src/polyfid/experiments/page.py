"""The page of results: ``results.md`` and ``results.html``, written from rows alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from polyfid.experiments import figures
from polyfid.experiments.averages import paper_best
from polyfid.experiments.figures import Picture
from polyfid.experiments.figures.studies import sensitivity_noises
from polyfid.experiments.markup import (
    Block,
    Facts,
    Fold,
    Points,
    Section,
    Text,
    to_html,
    to_markdown,
)
from polyfid.experiments.paper import CLOSE, COLUMNS, GROUPS, METRICS, Column, Group
from polyfid.experiments.results import Results
from polyfid.experiments.tables import (
    HIGHER,
    LOG_LOSS,
    LOWER,
    OURS,
    ROC_AUC,
    THEIRS,
    Table,
    budget_table,
    count_table,
    duel_table,
    failure_table,
    group_tables,
    mcmc_tables,
    outside_table,
)

__all__ = ["write"]

TITLE = "The experiments of the paper, run again"
LEAD = (
    "Every table and figure of Klyuchnikov and Burnaev, “Gaussian Process Classification for "
    "Variable Fidelity Data”, computed anew with polyfid: our figure beside the paper's, and our "
    "own model beside its."
)


def write(out_dir: str | PathLike[str], names: Iterable[str]) -> Path:
    """Write results.md, results.html and the folder figures from the rows in a directory.

    Parameters
    ----------
    out_dir : path
        A directory with ``rows.csv``, as `polyfid reproduce` leaves it.
    names : iterable of str
        The experiments that were asked for. All that have rows are shown; of those asked for, it
        is said if they have none.

    Returns
    -------
    Path
        Of results.html.

    Examples
    --------
    >>> import tempfile
    >>> from polyfid.experiments.page import write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write(folder, ["pmlb"])
    ...     page.name, "No rows yet" in page.read_text(encoding="utf-8")
    ('results.html', True)
    """
    folder = Path(out_dir)
    results = Results.read(folder)
    pictures = figures.draw(results, folder / "figures")
    sections = _sections(results, pictures, set(names))
    lead = LEAD if len(results.rows) else f"{LEAD} No rows yet."
    (folder / "results.md").write_text(to_markdown(TITLE, lead, sections), encoding="utf-8")
    page = folder / "results.html"
    page.write_text(to_html(TITLE, lead, sections), encoding="utf-8")
    return page


def _sections(
    results: Results, pictures: dict[str, list[Picture]], names: set[str]
) -> list[Section]:
    studies = {
        "profiles": ("Profiles", "Profiles of ROC AUC", _profiles),
        "mcmc": ("MCMC", "Laplace, EP and variational inference against MCMC", _mcmc),
        "budget": ("Budget", "Dividing a budget between cheap and trusted rows", _budget),
        "sensitivity": ("Sensitivity", "Sensitivity to hyper-parameters", _sensitivity),
    }
    sections = [
        Section(
            "summary", "Summary", "At a glance", _summary(results, pictures.get("summary", []))
        ),
        Section("reading", "How to read", "How to read the tables", _reading(results)),
    ]
    for group in GROUPS:
        blocks = _group(results, group, pictures.get(group.name, []))
        title = f"Group {group.number}: {group.title}"
        sections.append(Section(group.name, group.short, title, blocks))
    for name, (short, title, fill) in studies.items():
        sections.append(Section(name, short, title, fill(results, pictures.get(name, []))))
    sections += [
        Section("differences", "Differences", "Differences from the paper", _differences(results)),
        Section("missing", "Left out", "Left out and failed", _missing(results)),
        Section("versions", "Versions", "Versions", _versions(results)),
    ]
    wanted = {group.name for group in GROUPS} | set(studies) if "all" in names else names
    nothing = (Text("No rows yet."),)
    return [
        section if section.blocks else replace(section, blocks=nothing)
        for section in sections
        if section.blocks or section.name in wanted
    ]


def _summary(results: Results, pictures: Sequence[Picture]) -> tuple[Block, ...]:
    if results.rows.empty:
        return ()
    tables = [table for table in (count_table(results), duel_table(results)) if table is not None]
    return (Facts(tuple(_facts(results))), *tables, *pictures)


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    if len(results.methods) > 1:
        for metric in (ROC_AUC, LOG_LOSS):
            if hits := _hits(results.best(metric), results, OURS):
                words = f"columns in which **polyfid** is the best or within {CLOSE} of it"
                yield hits, f"{words}, {_low(metric.title)}"
        if hits := _hits(results.best(ROC_AUC, ours=False), results, THEIRS):
            published = sum(THEIRS in paper_best(column) for column in COLUMNS)
            words = (
                "columns in which **MF gpc**, the paper's model, is so when polyfid is left aside"
            )
            yield hits, f"{words}, ROC AUC; in the paper {published} of {len(COLUMNS)}"
    for metric in (ROC_AUC, LOG_LOSS):
        found = results.difference(metric.name, COLUMNS, OURS, THEIRS)
        if found is not None:
            gap = f"{found[0].mean:+.3f}".replace("-", "−")
            yield gap, f"{_low(metric.title)} of polyfid less that of MF gpc, mean over columns"
    cells = results.compare()
    if cells:
        within = sum(cell[-1] == "within" for cell in cells)
        near = sum(cell[-1] == "near" for cell in cells)
        words = "cells in which the paper's figure lies within our 95 % interval"
        more = f"; {near} more can be explained by the scatter of its own few splits" * (near > 0)
        yield f"{within} of {len(cells)}", words + more
    seconds = float(results.rows[["fit_seconds", "predict_seconds"]].sum().sum())
    yield _duration(seconds), f"of processor time for {len(results.rows)} rows"
    if len(results.failures):
        yield str(len(results.failures)), "of these rows failed"


def _hits(
    best: dict[Column, set[tuple[str, str]]], results: Results, method: tuple[str, str]
) -> str:
    """In how many of its columns a method is among the best; empty if it has none."""
    means = results.means("roc_auc")
    there = [column for column in best if method in means[column] and means[column][method].n]
    return f"{sum(method in best[column] for column in there)} of {len(there)}" if there else ""


def _low(title: str) -> str:
    return title if title.isupper() or title.startswith("ROC") else title[:1].lower() + title[1:]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _reading(results: Results) -> tuple[Block, ...]:
    if not results.columns:
        return ()
    return (
        Points(
            (
                "**Protocol.** A split draws 75 trusted and 225 cheap rows from those not held "
                "out for testing; all methods see the same splits and are scored against the true "
                "labels of the test rows.",
                "**Methods.** `gpc` (Gaussian process classifier), `logit` (logistic regression) "
                "and `xgb` (XGBoost) see the trusted rows only; after C both levels as one; after "
                "S the trusted rows with the prediction of a model of the cheap rows as features. "
                "`MF gpc` is the paper's model, `polyfid` our default. `hetmogp` has the published "
                "setting, which often learns nothing, and beside it a tuned one; `gp-ma` models "
                "every annotator.",
                "**Cells.** Our mean, each data set with the same weight, ± half of its 95 % "
                "interval (Student's t); the paper's figure below it, or in brackets. The interval "
                "is over the draws of rows where all data sets of the paper went in, and over "
                "data sets where only some did, since their choice then moves the mean most.",
                f"**Bold** is the best of a column and whatever is within {CLOSE} of it, among "
                "our figures and, with the same rule, among the paper's. (The paper's own bold is "
                "one per cent of the best; the count of its model is 14 of 26 either way.)",
                f"**{HIGHER} and {LOWER}**: our figure is higher or lower than the paper's, which "
                "lies outside our interval. They are listed under Differences from the paper.",
            )
        ),
    )


def _group(results: Results, group: Group, pictures: Sequence[Picture]) -> tuple[Block, ...]:
    tables = {metric: group_tables(results, group, metric) for metric in METRICS}
    if not tables[ROC_AUC]:
        return ()
    folds = [Fold(metric.title, tuple(tables[metric])) for metric in METRICS[1:] if tables[metric]]
    return (*tables[ROC_AUC], *pictures, *folds, Points(group.notes))


def _profiles(results: Results, pictures: Sequence[Picture]) -> tuple[Block, ...]:
    return tuple(pictures)


def _mcmc(results: Results, pictures: Sequence[Picture]) -> tuple[Block, ...]:
    return (*mcmc_tables(results), *pictures)


def _budget(results: Results, pictures: Sequence[Picture]) -> tuple[Block, ...]:
    rows = results.of("budget")
    if rows.empty:
        return ()
    counts = []
    for name in ("mfgpc", "polyfid"):
        own = rows[rows["method"] == name]
        if len(own):
            label = "MF gpc" if name == "mfgpc" else name
            n = int(own.groupby("problem")["seed"].nunique().max())
            counts.append(f"{label} with up to {n} split{'s' * (n != 1)} of each")
    sets = _compact(sorted(set(rows["problem"]), key=_natural))
    text = Text(f"Means over {rows['problem'].nunique()} sets ({sets}), {', '.join(counts)}.")
    table = budget_table(results)
    folds = [] if table is None else [Fold("The figures as numbers", (table,))]
    return (text, *pictures, *folds)


def _sensitivity(results: Results, pictures: Sequence[Picture]) -> tuple[Block, ...]:
    rows = results.of("sensitivity")
    if rows.empty:
        return ()
    noises = sensitivity_noises(results)
    cases = " and ".join(f"noise {noise:g} ({case})" for case, noise in noises.items())
    sets = _compact(sorted(set(rows["problem"]), key=_natural))
    return (Text(f"One split of {sets} at {cases}; only the posterior is recomputed."), *pictures)


def _differences(results: Results) -> tuple[Block, ...]:
    cells = results.compare()
    if not cells:
        return ()
    table = outside_table(results)
    if table is None:
        return (Text(f"In none of {len(cells)} cells the paper's figure is outside our interval."),)
    return (table,)


def _missing(results: Results) -> tuple[Block, ...]:
    blocks: list[Block] = []
    points = []
    for group in GROUPS:
        rows = results.rows[results.rows["experiment"] == group.name]
        names = results.left_out.get(group.name, [])
        made = sorted({p for p in rows["problem"] if str(p).startswith("made_")}, key=_natural)
        if names:
            n = len({problem for column in _columns(group) for problem in column.problems})
            points.append(
                f"**{group.name}**: {len(names)} of {n} data sets have no rows "
                f"({_compact(names)}); the paper's figures include them."
            )
        if made:
            points.append(
                f"**{group.name}**: {len(made)} sets made by the paper's recipe "
                f"({_compact(made)}) stand in; the paper's figures are of other sets."
            )
    slow = results.rows[results.rows["converged"].str.lower() == "false"]
    if len(slow):
        by = Counter(zip(slow["method"], slow["mode"], strict=True))
        which = ", ".join(f"{name} {mode} {n}" for (name, mode), n in sorted(by.items()))
        points.append(f"{len(slow)} fits did not converge ({which}); their figures are included.")
    if points:
        blocks.append(Points(tuple(points)))
    table: Table | None = failure_table(results)
    if table is not None:
        blocks.append(table)
    elif len(results.rows):
        blocks.append(Text("No cell failed."))
    return tuple(blocks)


def _columns(group: Group) -> list[Column]:
    return [column for column in COLUMNS if column.group == group.name]


def _versions(results: Results) -> tuple[Block, ...]:
    counts = results.rows.loc[results.rows["versions"] != "", "versions"].value_counts()
    return (
        (Points(tuple(f"{text} ({n} rows)" for text, n in counts.items())),) if len(counts) else ()
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts df_2 before df_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _compact(names: Sequence[str]) -> str:
    """Names in words, runs of numbers shortened: df_5–9, df_15."""
    runs: list[tuple[str, int, int] | str] = []
    for name in names:
        found = re.fullmatch(r"(.*_)(\d+)", name)
        if found is None:
            runs.append(name)
            continue
        stem, number = found[1], int(found[2])
        last = runs[-1] if runs else ""
        if not isinstance(last, str) and last[0] == stem and last[2] == number - 1:
            runs[-1] = (stem, last[1], number)
        else:
            runs.append((stem, number, number))
    return ", ".join(
        run if isinstance(run, str) else f"{run[0]}{run[1]}" + f"–{run[2]}" * (run[2] > run[1])
        for run in runs
    )
