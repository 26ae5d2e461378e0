"""The tables of the three groups, as the paper lays them out, methods in lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from polyfid.experiments.averages import Mean, close_to_best, paper_best
from polyfid.experiments.paper import Column, Group, Method, Metric
from polyfid.experiments.results import Results
from polyfid.experiments.tables.base import (
    HIGHER,
    LOWER,
    ROC_AUC,
    Entry,
    Head,
    Line,
    Table,
    mean_over,
    spread,
)


def group_tables(results: Results, group: Group, metric: Metric) -> list[Table]:
    """The tables of a group as the paper lays them out, methods in lines."""
    if group.name == "pmlb":
        return [
            table
            for noise in group.noises
            if (table := _group_table(results, group, (noise,), metric)) is not None
        ]
    table = _group_table(results, group, group.noises, metric)
    return [] if table is None else [table]


def _group_table(
    results: Results, group: Group, noises: Sequence[float | None], metric: Metric
) -> Table | None:
    parts = [
        [c for c in results.columns if c.group == group.name and c.noise == noise]
        for noise in noises
    ]
    parts = [part for part in parts if part]
    columns = [column for part in parts for column in part]
    if not columns:
        return None
    means = results.means(metric.name)
    methods = [m for m in results.methods if any(m.key in means[c] for c in columns)]
    by_method: dict[Method, list[Entry]] = {method: [] for method in methods}
    heads: list[Head] = []
    for part in parts:
        for column in part:
            heads.append(Head(column.label, _what_went_in(results, column)))
            for method, entry in _column_entries(results, column, methods, metric).items():
                by_method[method].append(entry)
        if len(part) > 1:
            heads.append(Head("mean", f"of the {len(part)} columns"))
            for method, entry in _mean_entries(results, part, methods, metric).items():
                by_method[method].append(entry)
    noise = "" if len(noises) > 1 or noises[0] is None else f", noise {noises[0]}"
    lines = tuple(
        Line(method.label, tuple(entries), opens=i > 0 and _kind(method) != _kind(methods[i - 1]))
        for i, (method, entries) in enumerate(by_method.items())
    )
    spans = tuple((f"noise {part[0].noise}", len(part) + (len(part) > 1)) for part in parts)
    return Table(
        name=f"{group.name}_{metric.name}" + (f"_{noises[0]}" if noise else ""),
        title=f"{metric.title}{noise}",
        text=_group_text(group, noises, metric),
        corner="method",
        heads=tuple(heads),
        lines=lines,
        spans=spans if len(parts) > 1 else (),
    )


def _kind(method: Method) -> str:
    """What methods are set apart by: what they see of the cheap rows."""
    seen = method.mode in ("multi", "trusted", "concatenated", "stacked")
    return method.mode if seen and method.name != "majority" else "other"


def _group_text(group: Group, noises: Sequence[float | None], metric: Metric) -> str:
    shares = " and ".join(f"{100 * noise:g} %" for noise in noises if noise is not None)
    what = {
        "artificial": "on the artificial sets of each dimension, where the cheap labels differ "
        f"from the true ones in {shares} of the rows",
        "pmlb": f"on the eight PMLB tasks, with {shares} of the cheap labels flipped",
        "crowd": "on the crowdsourced sets, where the majority vote is trusted and one random "
        "answer is cheap; music genre is the mean of one-vs-all tasks",
    }[group.name]
    text = f"{metric.meaning} Mean over the splits {what}."
    if metric is ROC_AUC:
        return f"{text} Ours comes first, with its 95 % interval, then the paper's figure."
    if metric.marked:
        return f"{text} With its 95 % interval; the paper gives ROC AUC only."
    return text


def _what_went_in(results: Results, column: Column) -> str:
    """How many sets and splits, in words."""
    n = max((m.n for m in results.means("roc_auc")[column].values()), default=0)
    splits = f"{n} split" + "s" * (n != 1)
    sets = results.sets(column)
    if len(column.problems) == 1 and len(sets) == 1:
        return splits
    own = [name for name in sets if name in column.problems]
    if not own:
        return f"{len(sets)} made set{'s' * (len(sets) != 1)}, {splits}"
    kind = "genres" if column.name == "music_genre" else "sets"
    return f"{len(own)} of {len(column.problems)} {kind}, {splits}"


def _column_entries(
    results: Results, column: Column, methods: Iterable[Method], metric: Metric
) -> dict[Method, Entry]:
    means = results.means(metric.name)[column]
    most = max((mean.n for mean in means.values()), default=0)
    best = close_to_best({k: m.mean for k, m in means.items()}, metric.sign)
    theirs = paper_best(column)
    found = {}
    for method in methods:
        paper = results.paper(column, method.key) if metric is ROC_AUC else math.nan
        mean = means.get(method.key)
        given = {
            "paper": "" if math.isnan(paper) else f"{paper:.3f}",
            "paper_bold": metric is ROC_AUC and method.key in theirs,
        }
        if mean is None or mean.n == 0:
            text = "–" if mean is None else "failed"
            found[method] = Entry(text=text, **given)  # type: ignore[arg-type]
            continue
        found[method] = Entry(
            text=_figure(mean.mean, metric),
            spread=spread(mean.half) if metric.marked else "",
            bold=metric.marked and method.key in best,
            mark=_mark(mean, paper),
            note=f"{mean.n} splits" if mean.n != most else "",
            **given,  # type: ignore[arg-type]
        )
    return found


def _mean_entries(
    results: Results, columns: Sequence[Column], methods: Iterable[Method], metric: Metric
) -> dict[Method, Entry]:
    """The mean over columns, of methods that have all of them."""
    means = {m: mean_over(results, columns, m.key, metric.name) for m in methods}
    papers = {m: fmean(results.paper(c, m.key) for c in columns) for m in methods}
    best, paper_best = close_to_best(means, metric.sign), close_to_best(papers, 1)
    found = {}
    for method, mean in means.items():
        paper = papers[method] if metric is ROC_AUC else math.nan
        found[method] = Entry(
            text="–" if math.isnan(mean) else _figure(mean, metric),
            paper="" if math.isnan(paper) else f"{paper:.3f}",
            bold=metric.marked and method in best,
            paper_bold=metric is ROC_AUC and method in paper_best,
        )
    return found


def _figure(value: float, metric: Metric) -> str:
    if metric.name != "fit_seconds":
        return f"{value:.3f}"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _mark(mean: Mean, paper: float) -> str:
    if math.isnan(paper) or mean.compare(paper) in ("", "within"):
        return ""
    return HIGHER if mean.mean > paper else LOWER
