"""The tables, in Markdown."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from experiments import paper
from experiments.paper import CLOSE, LOG_LOSS, OURS, ROC_AUC, THEIRS, Column, Method, Metric, label
from experiments.results import Mean, Results, close_to_best, paper_best

HIGHER, LOWER = "▲", "▼"  # than the paper's figure, which lies outside our interval
NONE = "–"


def table(
    title: str,
    text: str,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    words: Sequence[str] = (),
) -> list[str]:
    """A table in Markdown with a text above it; no block without lines. ``words`` align left."""
    left = (heads[0], *words)
    rules = ["---" if head in left else "---:" for head in heads]
    body = "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *lines))
    return [f"### {title}\n\n{text}\n\n{body}"] if lines else []


def figure(value: float, digits: int = 3, *, bold: bool = False, half: float = math.nan) -> str:
    """A number, in bold if it is to stand out, with half of its interval."""
    if math.isnan(value):
        return NONE
    text = f"**{value:.{digits}f}**" if bold else f"{value:.{digits}f}"
    return text if math.isnan(half) else f"{text} ±{half:.3f}"


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{value:+.3f}".replace("-", "−")


def plain(text: str) -> str:
    """Text that must not be read as Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>|&~])", r"\\\1", text)


# The three groups


def group_tables(results: Results, group: paper.Group, metric: Metric) -> list[str]:
    """The tables of a group as the paper lays them out: PMLB has one per noise."""
    if group.name == "pmlb":
        tables = [_group_table(results, group, (noise,), metric) for noise in group.noises]
        return [block for blocks in tables for block in blocks]
    return _group_table(results, group, group.noises, metric)


def _group_table(
    results: Results, group: paper.Group, noises: Sequence[float | None], metric: Metric
) -> list[str]:
    """One line per method."""
    columns = [c for c in results.columns if c.group == group.name and c.noise in noises]
    means = results.means(metric.name)
    methods = [m for m in results.methods if any(m in means[c] for c in columns)]
    heads, entries = ["method"], []
    for noise in noises:
        own = [c for c in columns if c.noise == noise]
        above = f"noise {noise}: " if len({c.noise for c in columns}) > 1 else ""
        for column in own:
            heads.append(above + column.label + small(_included(results, column)))
            entries.append(_column_entries(results, column, methods, metric))
        if len(own) > 1:
            heads.append(f"{above}mean" + small(f"of the {len(own)} columns"))
            entries.append(_mean_entries(results, own, methods, metric))
    title = metric.title if group.name != "pmlb" else f"{metric.title}, noise {noises[0]}"
    lines = [(label(m), *(entry[m] for entry in entries)) for m in methods]
    return table(title, _group_text(group, noises, metric), heads, lines)


def _group_text(group: paper.Group, noises: Sequence[float | None], metric: Metric) -> str:
    shares = " and ".join(f"{100 * noise:g} %" for noise in noises if noise is not None)
    what = {
        "artificial": "of the artificial sets of each dimension; the cheap labels differ from the "
        f"true ones in {shares} of the rows",
        "pmlb": f"of the eight PMLB tasks, with {shares} of the cheap labels flipped",
        "crowd": "of the crowdsourced sets; the majority vote is trusted, one random answer is "
        "cheap, and music genre is the mean of one-vs-all tasks",
    }[group.name]
    more = " With its 95 % interval; the paper gives ROC AUC only." if metric.marked else ""
    if metric is ROC_AUC:
        more = " Our figure comes first, with its 95 % interval, then the paper's."
    return f"{metric.meaning} Mean over the splits {what}.{more}"


def _included(results: Results, column: Column) -> str:
    """How many sets and splits a column has."""
    splits = counted(max(mean.n for mean in results.means("roc_auc")[column].values()), "split")
    sets = results.sets(column.group, column.name)
    if len(column.problems) == 1 and len(sets) == 1:
        return splits
    own = [name for name in sets if name in column.problems]
    if not own:
        return f"{counted(len(sets), 'made set')}, {splits}"
    kind = "genres" if column.name == "music_genre" else "sets"
    return f"{len(own)} of {len(column.problems)} {kind}, {splits}"


def counted(n: int, noun: str) -> str:
    """A number and a noun: 1 split, 2 splits."""
    return f"{n} {noun}{'s' * (n != 1)}"


def _column_entries(
    results: Results, column: Column, methods: Iterable[Method], metric: Metric
) -> dict[Method, str]:
    means = results.means(metric.name)[column]
    most = max(mean.n for mean in means.values())
    best = results.best(metric)[column] if metric.marked else set()
    entries = {}
    for method in methods:
        mean = means.get(method, Mean())
        theirs = paper.published(column, method) if metric is ROC_AUC else math.nan
        text = "failed"
        if mean.n or method not in means:
            half = mean.half if metric.marked else math.nan
            text = figure(mean.mean, _digits(mean.mean, metric), bold=method in best, half=half)
        theirs_text = bracketed(theirs, bold=method in paper_best(column))
        if mean.compare(theirs) in ("near", "off"):
            theirs_text += f" {HIGHER if mean.mean > theirs else LOWER}"
        entries[method] = text + small(theirs_text, f"{mean.n} splits" * (0 < mean.n != most))
    return entries


def _mean_entries(
    results: Results, columns: Sequence[Column], methods: Iterable[Method], metric: Metric
) -> dict[Method, str]:
    """Means over columns of methods that have all of them."""
    means = {m: results.mean_over(columns, m, metric.name) for m in methods}
    theirs = {m: fmean(paper.published(c, m) for c in columns) for m in means}
    best = close_to_best(means, metric.sign) if metric.marked else set()
    their_best = close_to_best(theirs, 1)
    return {
        m: figure(mean, _digits(mean, metric), bold=m in best)
        + (small(bracketed(theirs[m], bold=m in their_best)) if metric is ROC_AUC else "")
        for m, mean in means.items()
    }


def _digits(value: float, metric: Metric) -> int:
    if metric.name != "fit_seconds":
        return 3
    return 3 if value < 0.1 else 2 if value < 10 else 0


def small(*notes: str) -> str:
    """Notes below a text, as far as there are any."""
    texts = [note for note in notes if note]
    return f"<br><small>{'<br>'.join(texts)}</small>" if texts else ""


def bracketed(value: float, *, bold: bool = False) -> str:
    """The paper's figure, in brackets."""
    return "" if math.isnan(value) else f"({figure(value, bold=bold)})"


# Across the groups


def count_table(results: Results) -> list[str]:
    """In how many columns each method is best or close to it, in the paper and here."""
    columns, methods = results.columns, results.methods
    if not columns or len(methods) < 2:
        return []
    here = {m: [c for c in columns if results.has(c, m)] for m in methods}
    in_paper = {m: [c for c in paper.COLUMNS if (c, m) in paper.PAPER] for m in methods}
    their_best = {column: paper_best(column) for column in paper.COLUMNS}
    others = here | {OURS: []}
    views = {
        "ROC AUC, the paper" + small("its figures and methods"): (in_paper, their_best),
        "ROC AUC, ours" + small("without polyfid"): (others, results.best(ROC_AUC, ours=False)),
        "ROC AUC, ours" + small("all methods"): (here, results.best(ROC_AUC)),
        "log-loss, ours" + small("all methods"): (here, results.best(LOG_LOSS)),
    }
    if not here.get(OURS):
        del views["ROC AUC, ours" + small("without polyfid")]
    lines = []
    for method in methods:
        hits = [_hits(method, there[method], best) for there, best in views.values()]
        means = [results.mean_over(columns, method, m.name) for m in (ROC_AUC, LOG_LOSS)]
        lines.append([label(method), *hits, *map(figure, means)])
    return table(
        "Which method is best",
        f"In how many columns a method is the best or within {CLOSE} of the best, of the columns "
        "in which it has a figure; below, the same by group (artificial, pmlb, crowd). The paper "
        f"has {len(paper.COLUMNS)} columns, {len(columns)} of which have rows here. The means at "
        "the right are over these columns, each with the same weight, for methods that have them "
        "all.",
        ("method", *views, "mean ROC AUC, ours", "mean log-loss, ours"),
        lines,
    )


def _hits(method: Method, columns: Sequence[Column], best: dict[Column, set[Method]]) -> str:
    """In how many of its columns a method is among the best, in bold if no other is more often."""
    if not columns:
        return NONE
    most = max(Counter(m for methods in best.values() for m in methods).values(), default=0)
    there = Counter(column.group for column in columns)
    hits = Counter(column.group for column in columns if method in best[column])
    by_group = " · ".join(str(hits[g.name]) if there[g.name] else NONE for g in paper.GROUPS)
    text = f"{hits.total()} of {len(columns)}"
    return (f"**{text}**" if hits.total() == most else text) + small(by_group)


def duel_table(results: Results) -> list[str]:
    """Our model minus the paper's, split by split."""
    chosen: dict[str, Sequence[Column]] = {}
    for group in paper.GROUPS:
        columns = [c for c in results.columns if c.group == group.name]
        if len(group.noises) > 1:
            for noise in group.noises:
                chosen[f"{group.name}, noise {noise}"] = [c for c in columns if c.noise == noise]
        elif len(columns) > 1:
            chosen |= {f"{group.name}, {c.label}": [c] for c in columns}
        chosen[f"{group.name}, all"] = columns
    if len({c.group for c in results.columns}) > 1:
        chosen["all columns"] = results.columns
    lines = [line for name, some in chosen.items() if (line := _duel(results, name, some))]
    heads = ("columns", "ROC AUC, difference", "better in", "log-loss, difference", "better in")
    return table(
        "polyfid against the paper's model",
        "polyfid minus MF gpc on the same splits: mean difference with its 95 % interval over "
        "random splits, each column with the same weight, and the number of columns in which "
        "polyfid's mean is better. Larger ROC AUC is better, and smaller log-loss; bold where "
        "polyfid is better by more than the interval.",
        (*heads, "splits"),
        lines,
    )


def _duel(results: Results, name: str, columns: Sequence[Column]) -> list[str]:
    """A line of the table; none without common splits."""
    line, n = [name], 0
    for metric in (ROC_AUC, LOG_LOSS):
        total = results.difference(metric.name, columns)
        if total is None:
            return []
        (mean, half), n = total
        singly = [results.difference(metric.name, [c]) for c in columns]
        gaps = [metric.sign * gap[0].mean for gap in singly if gap is not None]
        text = f"**{signed(mean)}**" if metric.sign * mean > half else signed(mean)
        text += "" if math.isnan(half) else f" ±{half:.3f}"
        text += small("worse") if -metric.sign * mean > half else ""
        line += [text, f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}"]
    return [*line, str(n)]


def outside_table(results: Results) -> list[str]:
    """The means for which the paper's figure lies outside our interval."""
    cells = [cell for cell in results.compare() if cell[-1] in ("near", "off")]
    cells.sort(key=lambda cell: cell[-1] != "off")
    lines = [
        (
            f"{column.group}: {column}",
            label(method),
            figure(theirs),
            figure(mean.mean, half=mean.half),
            signed(mean.mean - theirs),
            figure(mean.first),
            "yes" if verdict == "near" else "no",
        )
        for column, method, mean, theirs, verdict in cells
    ]
    return table(
        "Where the paper's figure lies outside our interval",
        "ROC AUC, the largest differences first. *First splits* is our mean over the first splits "
        "of each set, as many as the paper ran. *By chance* says whether random splits explain the "
        "difference once it is allowed for that the paper's figure is a mean over few splits, too. "
        "One figure in twenty is expected outside; as all methods of a column share their splits, "
        "they tend to be off together.",
        ("column", "method", "the paper", "ours", "difference", "first splits", "by chance"),
        lines,
        words=("method",),
    )


def failure_table(results: Results, limit: int = 200) -> list[str]:
    """The cells that failed, each with its error."""
    failed = results.failures
    lines = []
    for row in failed.head(limit).to_dict("records"):
        setting = ", ".join(f"{k} {row[k]:g}" for k in ("share", "cost") if row[k] == row[k])
        noise = f"{row['noise']:g}" if row["noise"] == row["noise"] else ""  # not NaN
        texts = (f"{row['method']} {row['mode']}", noise, str(row["seed"]), setting, row["error"])
        lines.append([f"{row['experiment']}: {row['problem']}", *(plain(t) or NONE for t in texts)])
    more = f" The first {limit} are listed." if len(failed) > limit else ""
    return table(
        "Cells that failed",
        f"{len(failed)} of {len(results.rows)} rows hold an error instead of figures; they are "
        f"not in any mean. `python -m experiments NAME --retry-failed` runs them again.{more}",
        ("cell", "method", "noise", "seed", "setting", "error"),
        lines,
        words=("method", "setting", "error"),
    )


# Further studies


def budget_table(results: Results) -> list[str]:
    """Mean ROC AUC by noise, cost and share of the budget."""
    rows = results.budget_means()
    shares = sorted(rows["share"].unique())
    methods = [m for m in (THEIRS, OURS) if m[0] in set(rows["method"])]
    auc = rows.set_index(["method", "noise", "cost", "share"])["roc_auc"].to_dict()
    lines = []
    for noise in sorted(rows["noise"].unique()):
        for cost in sorted(rows["cost"].unique()):
            line = [f"noise {noise:.1f}, cost X/{8 / cost:g}"]
            for method in methods:
                values = {x: auc.get((method[0], noise, cost, x), math.nan) for x in shares}
                best = close_to_best(values, 1)
                line += [figure(value, bold=x in best) for x, value in values.items()]
            lines.append(line)
    return table(
        "ROC AUC by share of the budget",
        "Mean over sets and splits, by the share of the budget that is spent on trusted rows, as "
        f"in the figures; the best share of each line, and those within {CLOSE} of it, in bold.",
        ("cheap rows", *(f"{label(m)}: {share:g}" for m in methods for share in shares)),
        lines,
    )


def mcmc_tables(results: Results) -> list[str]:
    """Approximate inference against sampling: ROC AUC, differences, quality of the sampling."""
    by_task = results.by_task()
    tasks = list(by_task)
    if not tasks:
        return []

    def values(scheme: str, fact: str) -> list[float]:
        facts = [by_task[task].get(scheme, {}).get(fact) for task in tasks]
        return [math.nan if fact is None else float(fact) for fact in facts]

    auc, differences = [], []
    for scheme, name in paper.SCHEMES.items():
        theirs = [
            small(bracketed(paper.PAPER_MCMC.get((task, scheme), math.nan))) for task in tasks
        ]
        ours = map(figure, values(scheme, "roc_auc"))
        auc.append([name, *(a + b for a, b in zip(ours, theirs, strict=True))])
        if scheme != "mcmc":
            largest = (figure(x, 4, bold=x < 0.02) for x in values(scheme, "max_difference"))
            mean = (figure(x, 4) for x in values(scheme, "mean_difference"))
            differences += [[f"{name}, maximum", *largest], [f"{name}, mean", *mean]]
    diagnostics = {
        "largest R̂": ("r_hat_max", 4),
        "smallest effective sample size": ("ess_min", 0),
        "divergences": ("divergences", 0),
        "largest error of a probability": ("monte_carlo_error", 4),
        "seconds": ("seconds", 1),
    }
    sampling = [
        [name, *(figure(x, digits) for x in values("mcmc", fact))]
        for name, (fact, digits) in diagnostics.items()
    ]
    return [
        *table(
            "ROC AUC by inference scheme",
            "One run on each PMLB task with 75 trusted and 225 cheap rows, a fifth of the cheap "
            "labels flipped, and the hyper-parameters that MF gpc tuned, the same for all four "
            "schemes. Our figure comes first, then the paper's, which is of unknown rows.",
            ("scheme", *tasks),
            auc,
        ),
        *table(
            "Difference of probabilities from MCMC",
            "Absolute difference of the predicted probability from that of MCMC, maximum and mean "
            "over the test rows; maxima under 0.02 in bold.",
            ("scheme", *tasks),
            differences,
        ),
        *table(
            "Quality of the sampling",
            "Over all latent values of a task: R̂ should be below 1.01, the effective sample size "
            "in the hundreds, and no transition divergent. The error is the standard error of the "
            "chain's average, the largest over the test rows.",
            ("diagnostic", *tasks),
            sampling,
        ),
    ]
