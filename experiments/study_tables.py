"""Tables of the further studies: dividing a budget, and inference against sampling."""

from __future__ import annotations

import math

from experiments.data import PMLB
from experiments.paper import CLOSE, OURS, PAPER_MCMC, SCHEMES, THEIRS, label
from experiments.results import Results, close_to_best
from experiments.tables import bracketed, figure, small, table


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
    rows = results.of("mcmc")
    if rows.empty:
        return []
    by_task = dict(zip(rows["problem"], rows["schemes"], strict=True))
    tasks = [name for name in PMLB if name in by_task]

    def line(name: str, scheme: str, fact: str, digits: int, good: float = -math.inf) -> list[str]:
        """The figures of a fact, those below ``good`` in bold."""
        values = [by_task[task].get(scheme, {}).get(fact) for task in tasks]
        numbers = [math.nan if value is None else float(value) for value in values]
        return [name, *(figure(x, digits, bold=x < good) for x in numbers)]

    auc = [line(name, scheme, "roc_auc", 3) for scheme, name in SCHEMES.items()]
    for row, scheme in zip(auc, SCHEMES, strict=True):
        theirs = [PAPER_MCMC.get((task, scheme), math.nan) for task in tasks]
        pairs = zip(row[1:], theirs, strict=True)
        row[1:] = [text + small(bracketed(value)) for text, value in pairs]
    differences = []
    for scheme in ("laplace", "ep", "variational"):
        name = SCHEMES[scheme]
        differences.append(line(f"{name}, maximum", scheme, "max_difference", 4, good=0.02))
        differences.append(line(f"{name}, mean", scheme, "mean_difference", 4))
    sampling = [
        line("largest R̂", "mcmc", "r_hat_max", 4),
        line("smallest effective sample size", "mcmc", "ess_min", 0),
        line("divergences", "mcmc", "divergences", 0),
        line("largest error of a probability", "mcmc", "monte_carlo_error", 4),
        line("seconds", "mcmc", "seconds", 1),
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
