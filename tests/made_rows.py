"""Made-up rows of results, near the paper's figures: what pages are drawn from in the tests."""

import math

import numpy as np

from experiments.paper import COLUMNS, METHODS, PAPER, PAPER_MCMC, PMLB
from experiments.run import RowFile

VERSIONS = "polyfid 0.1.0; numpy 2.3.4; scipy 1.16.3; scikit-learn 1.9.0; python 3.11.7"
SETS = [df for start in (0, 10, 20, 30) for df in range(start, start + 5)]
SECONDS = {"polyfid": 3.1, "mfgpc": 1.2, "hetmogp": 2.0, "gp-ma": 4.0, "gpc": 0.3, "xgb": 0.05}


def row(**changes):
    """A row of the PMLB group."""
    given = {"experiment": "pmlb", "column": "splice", "problem": "splice", "noise": 0.2}
    given |= {"method": "gpc", "mode": "trusted", "seed": 0, "roc_auc": 0.9}
    return given | changes


def figures(rng, auc):
    """ROC AUC and what tends to go with it."""
    auc = float(np.clip(auc, 0.35, 0.9995))
    loss = float(0.70 - 0.62 * (max(auc, 0.5) - 0.5) * 2 + 0.01 * rng.standard_normal())
    accuracy = 0.5 + 0.9 * (max(auc, 0.5) - 0.5)
    return {"roc_auc": auc, "log_loss": loss, "brier": loss / 2.9, "accuracy": accuracy}


def make_groups(rng, groups=("artificial", "pmlb", "crowd"), runs=None, sets=SETS):
    """Rows of the three groups of data sets."""
    rows = []
    for column in COLUMNS:
        if column.group not in groups:
            continue
        best = max(v for (where, _), v in PAPER.items() if where == column)
        scatter = {"artificial": 0.012, "pmlb": 0.015, "crowd": 0.02}[column.group]
        n = runs or {"pmlb": 10}.get(column.group, column.runs)
        for problem in column.problems:
            if column.group == "artificial" and int(problem[3:]) not in sets:
                continue
            offset = 0.03 * rng.standard_normal() if len(column.problems) > 1 else 0.0
            for seed in range(0, 2 * n, 2):
                common = scatter * rng.standard_normal()
                for method in METHODS:
                    name, mode = method
                    if name == "gp-ma" and column.group != "crowd":
                        continue
                    auc = PAPER.get((column, method), best - 0.02)
                    auc = best + 0.004 if name == "polyfid" else auc
                    spread = 1.0 - auc if auc > 0.95 else 1.0
                    auc += spread * (offset + common) + 0.3 * scatter * rng.standard_normal()
                    if name == "majority" or PAPER.get((column, method)) == 0.5:
                        auc = 0.5
                    rows.append(
                        {
                            "experiment": column.group,
                            "column": column.name,
                            "problem": problem,
                            "method": name,
                            "mode": mode,
                            "noise": column.noise,
                            "seed": seed,
                            **figures(rng, auc),
                            "fit_seconds": SECONDS.get(name, 0.004) * rng.uniform(0.8, 1.3),
                            "predict_seconds": 0.02,
                            "converged": True,
                            "versions": VERSIONS,
                        }
                    )
    return rows


def make_budget(rng, noises=(0.0, 0.2, 0.3, 0.4), problems=("df_1", "df_11"), n_runs=2):
    rows = []
    for method, lift in (("mfgpc", 0.0), ("polyfid", 0.01)):
        for problem in problems:
            for seed in range(0, 2 * n_runs, 2):
                what = {"experiment": "budget", "problem": problem, "method": method, "seed": seed}
                auc = 0.79 + lift + 0.005 * rng.standard_normal()
                rows.append(what | {"mode": "trusted", "share": 1.0} | figures(rng, auc))
                for noise in noises:
                    for cost in (1, 2, 4):
                        for share in (0.0, 0.2, 0.4, 0.6, 0.8):
                            gain = (0.3 - noise) * (1 - share) * 0.4 * (2.2 - math.log2(cost))
                            value = auc + gain - 0.03 * (share == 0) + 0.004 * rng.standard_normal()
                            where = {"noise": noise, "share": share, "cost": cost}
                            mode = "cheap" if share == 0 else "multi"
                            rows.append(what | where | {"mode": mode} | figures(rng, value))
    return rows


def make_sensitivity(rng, noises=(0.2, 0.4)):
    rows = []
    for noise in noises:
        points = []
        for rho in np.linspace(-2, 2, 41):
            auc = 0.5 + 0.35 * np.tanh(3 * rho) if noise == 0.2 else 0.74 - 0.1 * (rho - 0.4) ** 2
            points.append({"panel": "rho", "rho": rho, "roc_auc": auc})
        for panel, strength in (("low", 0.5 - noise), ("delta", noise - 0.1)):
            for s in np.linspace(-2, 2, 9):
                for sigma in np.geomspace(0.1, 10, 21):
                    fall = 0.3 * strength * np.log(sigma / 2) ** 2 / (1 + np.exp(s))
                    auc = (0.85 if noise == 0.2 else 0.74) - fall
                    at = {"panel": panel, "log_scale": s, "length_scale": sigma}
                    points.append(at | {"roc_auc": auc})
        fitted = {"rho": 0.8, "length_scale_low": 2.1, "length_scale_delta": 1.7}
        what = {"experiment": "sensitivity", "problem": "df_10", "method": "mfgpc", "mode": "multi"}
        auc = 0.85 if noise == 0.2 else 0.73
        further = {"noise": noise, "seed": 0, "fitted": fitted, "points": points}
        rows.append(what | further | figures(rng, auc))
    return rows


def make_mcmc(rng, n_rows=200):
    rows = []
    for problem in PMLB:
        exact = rng.beta(0.8, 0.8, n_rows)
        schemes = {}
        for scheme, error in {"mcmc": 0, "laplace": 0.05, "ep": 0.004, "variational": 0.01}.items():
            shrunk = exact + error * (0.5 - exact) + 0.3 * error * rng.standard_normal(n_rows)
            proba = np.clip(shrunk, 0, 1)
            gap = np.abs(proba - exact)
            auc = PAPER_MCMC[problem, "mcmc"] + 0.003 * rng.standard_normal()
            schemes[scheme] = {"roc_auc": auc, "probabilities": proba}
            if scheme == "mcmc":
                schemes[scheme] |= {"r_hat_max": 1.003, "ess_min": 1480.0, "divergences": 0}
                schemes[scheme] |= {"monte_carlo_error": 0.0031, "seconds": 31.0}
            else:
                schemes[scheme] |= {"max_difference": gap.max(), "mean_difference": gap.mean()}
        what = {"experiment": "mcmc", "problem": problem, "column": problem, "noise": 0.2}
        what |= {"method": "mfgpc", "mode": "multi", "seed": 0, "schemes": schemes}
        rows.append(what | figures(rng, schemes["laplace"]["roc_auc"]))
    return rows


def write_rows(folder, rows):
    """A directory with these rows and no others."""
    (folder / "rows.jsonl").unlink(missing_ok=True)
    file = RowFile(folder)
    for one in rows:
        file.append(one)


def write_all(folder, *, seed=0, **how):
    """A directory as a full run leaves it."""
    rng = np.random.default_rng(seed)
    mcmc = make_mcmc(rng)
    write_rows(folder, make_groups(rng, **how) + mcmc + make_budget(rng) + make_sensitivity(rng))
