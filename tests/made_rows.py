"""Made-up rows of results, near the paper's figures: what pages are drawn from in the tests."""

import csv
import math

import numpy as np
from polyfid.experiments.paper import COLUMNS, METHODS, PAPER, PAPER_MCMC
from polyfid.experiments.rows import COLUMNS as FIELDS
from polyfid.experiments.rows import Row, as_setting

VERSIONS = "polyfid 0.1.0; numpy 2.3.4; scipy 1.16.3; scikit-learn 1.9.0; python 3.11.7"
SETS = [df for start in (0, 10, 20, 30) for df in range(start, start + 5)]
SECONDS = {"polyfid": 3.1, "mfgpc": 1.2, "hetmogp": 2.0, "gp-ma": 4.0, "gpc": 0.3, "xgb": 0.05}


def scores(rng, auc):
    """ROC AUC and what tends to go with it."""
    auc = float(np.clip(auc, 0.35, 0.9995))
    loss = float(0.70 - 0.62 * (max(auc, 0.5) - 0.5) * 2 + 0.01 * rng.standard_normal())
    return {
        "roc_auc": auc,
        "log_loss": loss,
        "brier": loss / 2.9,
        "accuracy": 0.5 + 0.9 * (max(auc, 0.5) - 0.5),
    }


def make_groups(rng, groups=("artificial", "pmlb", "crowd"), runs=None, sets=SETS):
    """Rows of the three groups of data sets."""
    rows = []
    for column in COLUMNS:
        if column.group not in groups:
            continue
        scatter = {"artificial": 0.012, "pmlb": 0.015, "crowd": 0.02}[column.group]
        n = runs or {"pmlb": 10}.get(column.group, column.runs)
        for problem in column.problems:
            if column.group == "artificial" and int(problem[3:]) not in sets:
                continue
            offset = 0.03 * rng.standard_normal() if len(column.problems) > 1 else 0.0
            for seed in range(0, 2 * n, 2):
                common = scatter * rng.standard_normal()
                for method in METHODS:
                    if method.name == "gp-ma" and column.group != "crowd":
                        continue
                    key = (column.group, column.name, column.noise)
                    best = max(v for k, v in PAPER.items() if k[:3] == key)
                    auc = PAPER.get((*key, *method.key), best - 0.02)
                    auc = best + 0.004 if method.name == "polyfid" else auc
                    spread = 1.0 - auc if auc > 0.95 else 1.0
                    auc += spread * (offset + common) + 0.3 * scatter * rng.standard_normal()
                    if method.name == "majority" or PAPER.get((*key, *method.key)) == 0.5:
                        auc = 0.5
                    multi = method.name in ("polyfid", "mfgpc")
                    rows.append(
                        Row(
                            experiment=column.group,
                            column=column.name,
                            problem=problem,
                            method=method.name,
                            mode=method.mode,
                            noise=column.noise,
                            seed=seed,
                            n_trusted=75,
                            n_cheap=225,
                            **scores(rng, auc),
                            fit_seconds=SECONDS.get(method.name, 0.004) * rng.uniform(0.8, 1.3),
                            predict_seconds=0.02,
                            rho=float(rng.normal(0.8, 0.1)) if multi else None,
                            evidence=float(rng.normal(-150, 10)) if multi else None,
                            converged=True,
                            versions=VERSIONS,
                        )
                    )
    return rows


def make_budget(rng, noises=(0.0, 0.2, 0.3, 0.4), problems=("df_1", "df_11"), n_runs=2):
    rows = []
    for method in ("mfgpc", "polyfid"):
        lift = 0.01 if method == "polyfid" else 0.0
        for problem in problems:
            for seed in range(0, 2 * n_runs, 2):
                what = {"experiment": "budget", "problem": problem, "method": method, "seed": seed}
                auc = 0.79 + lift + 0.005 * rng.standard_normal()
                setting = as_setting(share=1.0)
                rows.append(Row(**what, mode="trusted", setting=setting, **scores(rng, auc)))
                for noise in noises:
                    for cost in (1, 2, 4):
                        for share in (0.0, 0.2, 0.4, 0.6, 0.8):
                            gain = (0.3 - noise) * (1 - share) * 0.4 * (2.2 - math.log2(cost))
                            value = auc + gain - 0.03 * (share == 0) + 0.004 * rng.standard_normal()
                            rows.append(
                                Row(
                                    **what,
                                    mode="cheap" if share == 0 else "multi",
                                    noise=noise,
                                    setting=as_setting(share=share, cost=cost),
                                    **scores(rng, value),
                                )
                            )
    return rows


def make_sensitivity(rng):
    rows = []
    for noise in (0.2, 0.4):
        what = {
            "experiment": "sensitivity",
            "problem": "df_10",
            "method": "mfgpc",
            "mode": "multi",
            "noise": noise,
            "seed": 0,
        }

        def add(auc, what=what, **setting):
            rows.append(Row(**what, setting=as_setting(**setting), **scores(rng, auc)))

        for rho in np.linspace(-2, 2, 41):
            auc = 0.5 + 0.35 * np.tanh(3 * rho) if noise == 0.2 else 0.74 - 0.1 * (rho - 0.4) ** 2
            add(auc, panel="rho", rho=round(float(rho), 4))
        for panel, strength in (("low", 0.5 - noise), ("delta", noise - 0.1)):
            for log_scale in np.linspace(-2, 2, 9):
                for length_scale in np.geomspace(0.1, 10, 21):
                    fall = 0.3 * strength * np.log(length_scale / 2) ** 2 / (1 + np.exp(log_scale))
                    auc = (0.85 if noise == 0.2 else 0.74) - fall
                    add(
                        auc,
                        panel=panel,
                        log_scale=float(log_scale),
                        length_scale=float(length_scale),
                    )
        add(
            0.85 if noise == 0.2 else 0.73,
            panel="fitted",
            rho=0.8,
            log_scale_low=1.2,
            length_scale_low=2.1,
            log_scale_delta=0.3,
            length_scale_delta=1.7,
        )
    return rows


def make_mcmc(rng, n_rows=200):
    """Rows, and the lines of mcmc.csv and mcmc_probabilities.csv."""
    rows, merits, probabilities = [], [], []
    for problem in dict.fromkeys(problem for problem, _ in PAPER_MCMC):
        exact = rng.beta(0.8, 0.8, n_rows)
        for scheme, error in {"mcmc": 0, "laplace": 0.05, "ep": 0.004, "variational": 0.01}.items():
            shrunk = exact + error * (0.5 - exact) + 0.3 * error * rng.standard_normal(n_rows)
            proba = np.clip(shrunk, 0, 1)
            auc = PAPER_MCMC[problem, "mcmc"] + 0.003 * rng.standard_normal()
            setting = as_setting(scheme=scheme)
            what = {"experiment": "mcmc", "problem": problem, "column": problem, "noise": 0.2}
            rows.append(
                Row(
                    **what,
                    method="mfgpc",
                    mode="multi",
                    seed=0,
                    setting=setting,
                    **scores(rng, auc),
                )
            )
            gap = np.abs(proba - exact)
            sampled = scheme == "mcmc"
            merits.append(
                {
                    "problem": problem,
                    "scheme": scheme,
                    "roc_auc": auc,
                    "max_difference": "" if sampled else gap.max(),
                    "mean_difference": "" if sampled else gap.mean(),
                    "r_hat_max": 1.003 if sampled else "",
                    "ess_min": 1480.0 if sampled else "",
                    "divergences": 0 if sampled else "",
                    "monte_carlo_error": 0.0031 if sampled else "",
                    "seconds": 31.0 if sampled else 0.2,
                }
            )
            probabilities += [
                {"problem": problem, "row": i, "scheme": scheme, "probability": p}
                for i, p in enumerate(proba)
            ]
    return rows, merits, probabilities


def write_rows(folder, rows):
    write_csv(folder / "rows.csv", [row.as_text() for row in rows], FIELDS)


def write_csv(path, records, fields=None):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields or list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def write_all(folder, *, seed=0, **how):
    """A directory as a full run leaves it."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    rows, merits, probabilities = make_mcmc(rng)
    rows = make_groups(rng, **how) + rows + make_budget(rng) + make_sensitivity(rng)
    write_rows(folder, rows)
    write_csv(folder / "mcmc.csv", merits)
    write_csv(folder / "mcmc_probabilities.csv", probabilities)
