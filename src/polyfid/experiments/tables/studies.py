"""Tables of the further studies: the budget, and inference against sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polyfid.experiments.averages import close_to_best
from polyfid.experiments.paper import CLOSE, GROUPS, METHODS, PAPER_MCMC, SCHEMES
from polyfid.experiments.results import Results, budget_means, numbers
from polyfid.experiments.tables.base import Entry, Head, Line, Table


def budget_table(results: Results) -> Table | None:
    """Mean ROC AUC by noise, cost and share of the budget."""
    rows = budget_means(results)
    if rows.empty:
        return None
    shares = sorted(rows["share"].unique())
    methods = [m for m in METHODS if m.mode == "multi" and m.name in set(rows["method"])][::-1]
    auc = rows.set_index(["method", "noise", "cost", "share"])["roc_auc"].to_dict()
    lines: list[Line] = []
    for noise in sorted(rows["noise"].unique()):
        for i, cost in enumerate(sorted(rows["cost"].unique())):
            entries: list[Entry] = []
            for method in methods:
                values = {x: auc.get((method.name, noise, cost, x), math.nan) for x in shares}
                best = close_to_best(values, 1)
                entries += [
                    Entry("–" if math.isnan(v) else f"{v:.3f}", bold=x in best)
                    for x, v in values.items()
                ]
            label = f"noise {noise:.1f}, cost X/{8 / cost:g}"
            lines.append(Line(label, tuple(entries), opens=bool(lines) and i == 0))
    return Table(
        "budget_roc_auc",
        "ROC AUC by share of the budget",
        "Mean over sets and splits, by the share of the budget that is spent on trusted rows, as "
        f"in the figures; the best share of each line, and those within {CLOSE} of it, in bold.",
        "cheap rows",
        tuple(Head(f"{share:g}") for _ in methods for share in shares),
        tuple(lines),
        tuple((method.label, len(shares)) for method in methods),
    )


def mcmc_tables(results: Results) -> list[Table]:
    """Approximate inference against sampling: ROC AUC, differences, how the sampling went."""
    rows = results.settings("mcmc")
    if rows.empty or "scheme" not in rows:
        return []
    auc = {
        (str(r.problem), str(r.scheme)): float(r.roc_auc)  # type: ignore[arg-type]
        for r in rows.itertuples(index=False)
    }
    sets = [c for c in GROUPS[1].columns if any(problem == c for problem, _ in auc)]
    heads = tuple(Head(name) for name in sets)
    lines = []
    for scheme, label in SCHEMES.items():
        entries = []
        for name in sets:
            paper = PAPER_MCMC.get((name, scheme))
            ours = auc.get((name, scheme))
            entries.append(
                Entry(
                    "–" if ours is None else f"{ours:.3f}",
                    paper="" if paper is None else f"{paper:.3f}",
                )
            )
        lines.append(Line(label, tuple(entries), opens=scheme == "mcmc"))
    tables = [
        Table(
            "mcmc_roc_auc",
            "ROC AUC by inference scheme",
            "One run on each PMLB task with 75 trusted and 225 cheap rows, a fifth of the cheap "
            "labels flipped, and the hyper-parameters that MF gpc tuned, the same for all four "
            "schemes. Ours comes first, then the paper's figure; it does not say which rows it "
            "drew.",
            "scheme",
            heads,
            tuple(lines),
        )
    ]
    return tables + _merit_tables(results, sets)


def _merit_tables(results: Results, sets: Sequence[str]) -> list[Table]:
    if results.side["mcmc"].empty:
        return []
    merits = numbers(results.side["mcmc"], *_MERITS).set_index(["problem", "scheme"])
    there = merits.to_dict("index")

    def line(label: str, scheme: str, merit: str, opens: bool = False) -> Line:
        show, good = _MERITS[merit]
        entries = []
        for name in sets:
            value = float(there.get((name, scheme), {}).get(merit, math.nan))
            known = not math.isnan(value)
            entries.append(Entry(show(value) if known else "–", bold=known and good(value)))
        return Line(label, tuple(entries), opens)

    heads = tuple(Head(name) for name in sets)
    schemes = [s for s in SCHEMES if s != "mcmc" and s in merits.index.get_level_values(1)]
    differences = [
        line(f"{SCHEMES[scheme]}, {word}", scheme, f"{merit}_difference", opens=i > 0 and not k)
        for i, scheme in enumerate(schemes)
        for k, (word, merit) in enumerate((("maximum", "max"), ("mean", "mean")))
    ]
    sampling = [
        line("largest R̂", "mcmc", "r_hat_max"),
        line("least effective sample size", "mcmc", "ess_min"),
        line("divergences", "mcmc", "divergences"),
        line("largest error of a probability", "mcmc", "monte_carlo_error"),
        line("seconds", "mcmc", "seconds"),
    ]
    return [
        Table(
            "mcmc_differences",
            "Difference of probabilities from MCMC",
            "Absolute difference of the predicted probability from that of MCMC, largest and mean "
            "over the test rows; largest ones under 0.02 in bold.",
            "scheme",
            heads,
            tuple(differences),
        ),
        Table(
            "mcmc_sampling",
            "How the sampling went",
            "Over all latent values of a task: R̂ should be below 1.01, the effective sample size "
            "in the hundreds, and no transition divergent. The error is the standard error of the "
            "chain's average, the largest over the test rows.",
            "",
            heads,
            tuple(sampling),
        ),
    ]


#: How a figure of merit of the sampling is shown, and when it stands out.
_MERITS: dict[str, tuple[Callable[[float], str], Callable[[float], bool]]] = {
    "max_difference": (lambda x: f"{x:.4f}", lambda x: x < 0.02),
    "mean_difference": (lambda x: f"{x:.4f}", lambda _: False),
    "r_hat_max": (lambda x: f"{x:.4f}", lambda _: False),
    "ess_min": (lambda x: f"{x:.0f}", lambda _: False),
    "divergences": (lambda x: f"{x:.0f}", lambda _: False),
    "monte_carlo_error": (lambda x: f"{x:.4f}", lambda _: False),
    "seconds": (lambda x: f"{x:.1f}", lambda _: False),
}
